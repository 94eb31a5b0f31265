// Turns the decisions of enlist/rules/rotation.hpp into the steps of a rotation of the auth key. Pure.
//
// The phase is stored before the key file of the phase is written. The write replaces only the file that the plan has seen. So
// it can be repeated after a crash: the content of the file shows whether it was written.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "core/result.hpp"
#include "enlist/rules/key_file.hpp"
#include "enlist/rules/model.hpp"
#include "enlist/rules/rotation.hpp"
#include "plan/plan.hpp"
#include "slurm/model.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace enlist {

/// The name of the value in the store (Contents::values) with the state of the last rotation.
inline constexpr const char* kRotationValue = "key-rotation";

/// Stores the state of the rotation. Fails with kConflict if the stored state is not `seen` any more.
struct RecordRotation final : plan::Act {
  RecordRotation(core::Json as_seen, core::Json to_store) : seen(std::move(as_seen)), next(std::move(to_store)) {}
  [[nodiscard]] core::Json describe() const override {
    return {{"act", "enlist.RecordRotation"}, {"phase", core::get_string(next, {"phase"})}};
  }
  [[nodiscard]] Withhold withhold() const override { return Withhold::kNever; }
  core::Json seen, next;
};

/// Replaces the file of the auth key. The act contains no secrets. Fails with kConflict if the file does not have `revision`
/// any more.
struct WriteAuthKey final : plan::Act {
  WriteAuthKey(std::string revision_seen, KeyChange to_write)
      : revision(std::move(revision_seen)), change(std::move(to_write)) {}
  [[nodiscard]] core::Json describe() const override {
    return {{"act", "enlist.WriteAuthKey"}, {"kids", change.kids}, {"signer", change.signer}};
  }
  std::string revision;
  KeyChange change;
};

struct RotationObserved {
  plan::Context context;
  slurm::ClusterKey cluster;
  std::optional<core::Json> state{};  ///< The value kRotationValue of the store.
  core::Result<KeySet> keys = core::fail(core::ErrorCode::kUnavailable, "the auth key is not read yet");
  std::map<std::string, Pool> pools{};
  std::map<std::string, Node> nodes{};
  std::optional<core::Json> pool_file{};  ///< The value kRolloutValue of the store.
  std::vector<KeyHolder> others{};
  slurm::SnapshotPtr slurm{};
  core::Duration lifetime{0};
  std::optional<core::MonoTime> settled_since{};  ///< RotationInput::settled_since.
};

[[nodiscard]] plan::Plan plan_rotation(const RotationObserved& observed);
/// Returns the status of the last rotation, which is the body of the reply to GET /v1/rotation.
[[nodiscard]] core::Json rotation_status(const RotationObserved& observed);

/// Returns Rotation::mark, the revision of the key file that the pool file has to contain; "": none.
[[nodiscard]] std::string key_mark_of(const std::map<std::string, core::Json>& values);

}  // namespace enlist
