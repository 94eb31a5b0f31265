#include "enlist/coordinator/rotating.hpp"

#include <algorithm>
#include <utility>

#include "enlist/coordinator/rotation_plan.hpp"
#include "enlist/rules/text.hpp"

namespace enlist {
namespace {

using core::ErrorCode;

constexpr std::size_t kLongestHost = 253;

Changes stored(const Rotation& rotation) {
  return {.values = {{kRotationValue, to_json(rotation)}}};
}

/// Returns the stored rotation. Error: kConflict, if no rotation runs.
core::Result<Rotation> running_rotation(const Contents& now) {
  const auto found = now.values.find(kRotationValue);
  if (found == now.values.end()) return core::fail(ErrorCode::kConflict, "no rotation runs");
  auto out = rotation_from(found->second);
  if (out && out->phase == RotationPhase::kEnded) return core::fail(ErrorCode::kConflict, "no rotation runs");
  return out;
}

bool is_host(const std::string& name) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == ':'; };
  return !name.empty() && name.size() <= kLongestHost && std::ranges::all_of(name, plain);
}

}  // namespace

core::Result<Changes> begin_rotation(const Contents& now, const core::Result<KeySet>& keys, const std::string& kid,
                                     const std::set<std::string>& also, core::Duration lifetime, core::WallTime time) {
  const auto found = now.values.find(kRotationValue);
  if (found != now.values.end()) {
    const auto last = rotation_from(found->second);
    if (!last) return std::unexpected(last.error());
    if (last->phase != RotationPhase::kEnded)
      return core::fail(ErrorCode::kConflict, "a rotation runs: see slurm-enlist rotate status");
  }
  if (!keys) return std::unexpected(keys.error());
  const auto bad = std::ranges::find_if_not(also, is_host);
  if (bad != also.end()) return core::fail(ErrorCode::kInvalid, "--also " + shown(*bad) + ": must be the name of a host");
  auto rotation = begin_rotation(*keys, kid, time);
  if (!rotation) return std::unexpected(rotation.error());
  rotation->also = also;
  rotation->lifetime = lifetime;
  rotation->mark = rotation->former_mark = key_mark_of(now.values);
  return stored(*rotation);
}

core::Result<Changes> acknowledge(const Contents& now, const core::Json& status, const std::set<std::string>& hosts,
                                  const std::string& phase) {
  auto rotation = running_rotation(now);
  if (!rotation) return std::unexpected(rotation.error());
  // If the administrator repeats a command, the next phase may have begun meanwhile.
  if (const std::string_view runs = to_string(rotation->phase); phase != runs) {
    return core::fail(ErrorCode::kConflict, "the rotation is in the phase " + std::string(runs) + ", not in " + shown(phase) +
                                                ": see slurm-enlist rotate status");
  }
  const core::Json* waits = core::find(status, {"hosts"});
  for (const std::string& host : hosts) {
    const bool waited = waits != nullptr && std::ranges::any_of(*waits, [&](const core::Json& wait) {
                          return core::get_string(wait, {"host"}) == host && core::get_bool(wait, {"acknowledge"});
                        });
    if (!waited && !rotation->acknowledged.contains(host)) {
      return core::fail(ErrorCode::kNotFound, "the rotation does not wait for an acknowledgement from " + shown(host) +
                                                  " now: see slurm-enlist rotate status");
    }
    rotation->acknowledged.insert(host);
  }
  return stored(*rotation);
}

core::Result<Changes> go_without(const Contents& now, const slurm::SnapshotPtr& slurm, const std::set<std::string>& nodes) {
  auto rotation = running_rotation(now);
  if (!rotation) return std::unexpected(rotation.error());
  for (const std::string& node : nodes) {
    const bool known = now.nodes.contains(node) || (slurm && slurm->node(node) != nullptr);
    if (!known) return core::fail(ErrorCode::kNotFound, "there is no node " + shown(node));
    if (const std::string why = must_wait_for(slurm, node); !why.empty())
      return core::fail(ErrorCode::kConflict, "node " + node + " cannot be left out of the rotation: " + why);
    rotation->without.insert(node);
  }
  return stored(*rotation);
}

core::Result<Changes> abandon_rotation(const Contents& now, const core::Result<KeySet>& keys, core::WallTime time) {
  const auto rotation = running_rotation(now);
  if (!rotation) return std::unexpected(rotation.error());
  const auto next = abandoned(*rotation, keys, time);
  if (!next) return std::unexpected(next.error());
  return stored(*next);
}

}  // namespace enlist
