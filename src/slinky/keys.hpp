// Key Secrets as observers may know them: whether they are there, and a digest to see changes by.
//
// Daemons do not mount the Secret of slurmKeyRef: where its data change, a kubelet swaps the file under them, and the next
// reconfigure makes slurmctld and slurmds load it, one before the other. They mount the operator's copy, the keyring, which
// changes only when that cuts nobody off (controller/keyring.hpp).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kube/object.hpp"
#include "slinky/names.hpp"
#include "slinky/status.hpp"

namespace slinky {

/// The steps of a rotation: see controller/rotation.hpp.
enum class KeyStep { kBoth = 1, kLogins = 2, kSwitched = 3, kAlone = 4 };

/// What a keyring notes of the rotation that is under way.
struct KeyRotation {
  std::string id;  ///< Of no other rotation of this cluster.
  KeyStep step = KeyStep::kBoth;
  std::string to;                             ///< The digest of the key that comes into force.
  std::string other_note{};                   ///< keyring_note of the key that slurm.key does not hold; "": there is none.
  std::optional<core::WallTime> loaded_at{};  ///< When slurmctld loaded the files of this step; in seconds.
  std::string loaded_by{};                    ///< The uid of its pod.
  std::optional<core::WallTime> logins_at{};  ///< Since when all login pods sign with the new key; in seconds.
  /// slurm.key holds the former key.
  [[nodiscard]] bool begins() const { return step == KeyStep::kBoth || step == KeyStep::kLogins; }
  /// It has what login pods are to start with.
  [[nodiscard]] bool has_login_keys() const { return step == KeyStep::kLogins || step == KeyStep::kSwitched; }
  /// Of the files of this step that slurmctld and slurmd read.
  [[nodiscard]] std::string generation() const;
  [[nodiscard]] std::string str() const;
  /// nullopt: nothing that str() has made.
  static std::optional<KeyRotation> parse(std::string_view text);
  friend bool operator==(const KeyRotation&, const KeyRotation&) = default;
};

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
  std::optional<KeyRotation> rotation{};  ///< Of a keyring.
  int size = 0;                           ///< Of the value, in bytes.

  [[nodiscard]] bool usable() const { return presence == kube::Presence::kPresent && has_key; }
};

/// What a keyring notes of its own data (annotation data-hash), to know an edit by. Salted with the uid of the Controller, so
/// that it tells nothing about other Secrets.
std::string keyring_note(std::string_view controller_uid, std::string_view content);

/// What is wrong with a key that the user named in `field` ("spec.slurmKeyRef"), or what is still awaited.
std::optional<Problem> key_problem(const SecretFacts& facts, std::string_view ns, const std::string& field);

}  // namespace slinky
