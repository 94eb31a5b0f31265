// The departed nodes: those that have left a moment ago. The store has one value for each.
//
// slurmctld writes its state to disk up to five seconds after a change (SAVE_MAX_WAIT in slurmctld's state_save.c). If
// slurmctld is killed before that, it starts again with the record of a deleted node, and might start jobs on the node.
// So the coordinator remembers a node that has left until Slurm has lacked the record for kSavedAfter (enlist/rules/leave.hpp).
// If the record returns, the coordinator adds the node to its nodes again, with a request to leave.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "enlist/rules/model.hpp"

namespace enlist {

/// Returns the name of the value in Contents::values that has the departed node, as JSON.
[[nodiscard]] std::string departed_value(const std::string& node);
/// Returns the departed node of this name; nullopt if there is none, or if its value cannot be read.
[[nodiscard]] std::optional<Node> departed_node(const std::map<std::string, core::Json>& values, const std::string& node);
/// Returns the names of all departed nodes.
[[nodiscard]] std::vector<std::string> departed_nodes(const std::map<std::string, core::Json>& values);

}  // namespace enlist
