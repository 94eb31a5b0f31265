// Facts about Secrets that hold keys, without the keys: whether a Secret exists, and a digest that detects changes.
//
// Daemons do not mount the Secret of slurmKeyRef. When the data of a mounted Secret change, the kubelet replaces the file in
// running pods, and the next reconfigure makes slurmctld and the slurmds load the file one after the other. Daemons mount a
// copy, the keyring. The operator changes it only when no daemon loses its connection (operator/controller/keyring.hpp).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kube/object.hpp"
#include "slinky/names.hpp"
#include "slinky/status.hpp"

namespace slinky {

/// The steps of a key rotation: see operator/controller/rotation.hpp.
enum class KeyStep { kBoth = 1, kLogins = 2, kSwitched = 3, kAlone = 4 };

/// The state of a key rotation under way, stored in an annotation of the keyring.
struct KeyRotation {
  std::string id;  ///< Unique among the rotations of this cluster.
  KeyStep step = KeyStep::kBoth;
  std::string to;            ///< The digest of the new key.
  std::string other_note{};  ///< keyring_note of the key that slurm.key does not hold; "" if there is only one key.
  std::optional<core::WallTime> loaded_at{};  ///< When slurmctld loaded the files of this step; in whole seconds.
  std::string loaded_by{};                    ///< The uid of the slurmctld pod that loaded the files of this step.
  std::optional<core::WallTime> logins_at{};  ///< When all login pods began to sign with the new key; in whole seconds.
  /// Reports whether slurm.key still holds the former key.
  [[nodiscard]] bool begins() const { return step == KeyStep::kBoth || step == KeyStep::kLogins; }
  /// Reports whether the keyring contains separate key files for login pods.
  [[nodiscard]] bool has_login_keys() const { return step == KeyStep::kLogins || step == KeyStep::kSwitched; }
  /// Identifies the files that slurmctld and slurmd read in this step.
  [[nodiscard]] std::string generation() const;
  [[nodiscard]] std::string str() const;
  /// Returns nullopt if the text is not a valid result of str().
  static std::optional<KeyRotation> parse(std::string_view text);
  friend bool operator==(const KeyRotation&, const KeyRotation&) = default;
};

struct SecretFacts {
  KeyRef ref;
  kube::Presence presence = kube::Presence::kUnknown;
  bool has_key = false;  ///< The Secret has a non-empty value under the data key.
  /// A digest of the value. Processes with the same salt for SecretRecords compute the same digest. The digest of a keyring is
  /// the one that the copied Secret had at the time of the copy.
  std::string digest;
  std::optional<kube::ObjectMeta> meta;
  std::string content;  ///< Two Secrets with equal data have equal `content`. Only for comparisons: never written or shown.
  bool edited = false;  ///< The data of this keyring do not match the hash in its annotation, so it is not usable.
  std::optional<KeyRotation> rotation{};  ///< The current rotation. Only set for keyrings.
  int size = 0;                           ///< The size of the value in bytes.

  [[nodiscard]] bool usable() const { return presence == kube::Presence::kPresent && has_key; }
};

/// Returns a hash of a keyring's data. The annotation data-hash stores the hash, to detect edits by others. The hash is salted
/// with the Controller's uid, so that it reveals nothing about other Secrets.
std::string keyring_note(std::string_view controller_uid, std::string_view content);

/// Returns why the key that the user named in `field` ("spec.slurmKeyRef") cannot be used (yet); nullopt if it can be used.
std::optional<Problem> key_problem(const SecretFacts& facts, std::string_view ns, const std::string& field);

}  // namespace slinky
