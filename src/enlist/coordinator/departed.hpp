// The nodes that have left a moment ago: one value of the store for each.
//
// slurmctld writes its state to disk up to five seconds after a change (SAVE_MAX_WAIT in slurmctld's state_save.c). If it is
// killed before that, it starts again with the record of a node that was deleted, and would give jobs to it. The coordinator
// therefore remembers a node that has left until Slurm has lacked the record for kSavedAfter (enlist/rules/leave.hpp). If the
// record returns, so does the node, as one that leaves.
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
