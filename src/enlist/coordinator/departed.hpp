// The nodes that have left a moment ago, in the store's value kDepartedValue.
//
// slurmctld writes its state to disk up to five seconds after a change (SAVE_MAX_WAIT in slurmctld's state_save.c). If it is
// killed before that, it starts again with the record of a node that was deleted, and would give jobs to it. The coordinator
// therefore remembers a node that has left until Slurm has lacked the record for kSavedAfter (enlist/rules/leave.hpp). If the
// record returns, so does the node, as one that leaves.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/json.hpp"
#include "enlist/rules/model.hpp"

namespace enlist {

/// The name of the value in Contents::values: an object that maps names to nodes. There is no value without departed nodes.
inline constexpr const char* kDepartedValue = "departed-nodes";

/// Returns the departed nodes among the values of the store. What cannot be read is not among them.
[[nodiscard]] std::map<std::string, Node> departed_nodes(const std::map<std::string, core::Json>& values);
/// Returns the value to store; nullopt if there are none.
[[nodiscard]] std::optional<core::Json> departed_value(const std::map<std::string, Node>& departed);

}  // namespace enlist
