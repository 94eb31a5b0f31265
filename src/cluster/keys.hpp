// Key Secrets as observers may know them: whether they are there, and a digest to see changes by.
//
// Daemons do not mount the Secret of slurmKeyRef: where its data change, a kubelet swaps the file under them, and the next
// reconfigure makes slurmctld and slurmds load it, one before the other. They mount the operator's copy, the keyring, which
// changes only when that cuts nobody off (controller/keyring.hpp).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cluster/names.hpp"
#include "cluster/status.hpp"
#include "kube/controller.hpp"

namespace op {

struct SecretFacts {
  KeyRef ref;
  kube::Presence presence = kube::Presence::kUnknown;
  bool has_key = false;  ///< The data key exists and is not empty.
  /// Changes when the value changes; the same in every process if the salt of SecretRecords is. Of a keyring that of the Secret
  /// which it was copied from, as it was then.
  std::string digest;
  std::optional<kube::ObjectMeta> meta;
  std::string content;  ///< The same for two Secrets that hold the same; for comparisons, never written nor shown itself.
  bool edited = false;  ///< A keyring whose data are not those that its note is of; it is not usable.

  [[nodiscard]] bool usable() const { return presence == kube::Presence::kPresent && has_key; }
};

SecretFacts read_key(kube::Recorder& recorder, const std::string& ns, const KeyRef& ref);
/// The keyring of a Controller. One that does not say what it is a copy of is not usable.
SecretFacts read_keyring(kube::Recorder& recorder, const std::string& ns, const std::string& controller);

/// What a keyring notes of its own data (annotation data-hash), to know an edit by. Salted with the uid of the Controller, so
/// that it tells nothing about other Secrets.
std::string keyring_note(std::string_view controller_uid, std::string_view content);

/// What is wrong with a key that the user named in `field` ("spec.slurmKeyRef"), or what is still awaited.
std::optional<Problem> key_problem(const SecretFacts& facts, std::string_view ns, const std::string& field);

}  // namespace op
