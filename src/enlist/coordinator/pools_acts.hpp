// The acts of the rollout of the pool file and of the removal of pools. FileTarget (pools_target.hpp) carries out RecordRollout
// and WritePoolFile, StoreTarget (target.hpp) the others.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/json.hpp"
#include "enlist/rules/pool_file.hpp"
#include "plan/plan.hpp"

namespace enlist {

/// The names of single values in the store (Contents::values). kRolloutValue: the state of the rollout, see pools_plan.hpp.
/// kProblemsValue: an object that maps the name of a pool to why slurmctld does not have the pool as it should be, in one line;
/// missing if there are no problems. kNumbersValue: an object that maps the name of a removed pool to the number of its next
/// node. kFoundValue: see found_pools() in pools_plan.hpp.
inline constexpr const char* kRolloutValue = "pool-file";
inline constexpr const char* kProblemsValue = "pool-problems";
inline constexpr const char* kNumbersValue = "removed-pools";
inline constexpr const char* kFoundValue = "found-pools";

/// Stores the state of the rollout (unless it is nullopt) and the problems, and adds the found pools, in one transaction.
struct RecordRollout final : plan::Act {
  RecordRollout(std::optional<core::Json> new_state, std::map<std::string, std::string> of_pools,
                std::map<std::string, Pool> new_found)
      : state(std::move(new_state)), problems(std::move(of_pools)), found(std::move(new_found)) {}
  [[nodiscard]] core::Json describe() const override {
    core::Json out{{"act", "enlist.RecordRollout"}, {"problems", problems}};
    if (state) out["state"] = *state;
    for (const auto& [name, pool] : found) out["found"].push_back(name);
    return out;
  }
  std::optional<core::Json> state;
  std::map<std::string, std::string> problems;
  std::map<std::string, Pool> found;
};

/// Replaces the pool file.
struct WritePoolFile final : plan::Act {
  explicit WritePoolFile(std::string content) : text(std::move(content)) {}
  [[nodiscard]] core::Json describe() const override { return {{"act", "enlist.WritePoolFile"}, {"hash", hash_of(text)}}; }
  std::string text;
};

/// Requests that all nodes of a pool that is being removed leave. Fails with kConflict if the pool is not being removed.
struct LeavePool final : plan::Act {
  LeavePool(std::string name, core::WallTime when) : pool(std::move(name)), at(when) {}
  [[nodiscard]] core::Json describe() const override { return {{"act", "enlist.LeavePool"}, {"pool", pool}}; }
  std::string pool;
  core::WallTime at;
};

/// Deletes the record of a pool that is being removed, and stores the number of its next node. Fails with kConflict if the pool
/// has nodes or is not being removed.
struct ForgetPool final : plan::Act {
  explicit ForgetPool(std::string name) : pool(std::move(name)) {}
  [[nodiscard]] core::Json describe() const override { return {{"act", "enlist.ForgetPool"}, {"pool", pool}}; }
  std::string pool;
};

}  // namespace enlist
