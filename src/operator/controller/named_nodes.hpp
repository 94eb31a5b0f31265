// Finds the nodes that a user's topology.yaml or topology.conf names. The text is untrusted, so the cost is bounded by its
// length.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace op::controller {

struct NamedNodes {
  std::vector<std::string> lists;  ///< Hostlists of the named nodes.
  bool all = false;                ///< The file has a flat topology, which contains every node.
};

/// Returns the values of `nodes` in all topologies of a topology.yaml(5). Error kInvalid: the text cannot be parsed, has
/// aliases, or has deeper nesting or more parts than any topology.yaml needs.
core::Result<NamedNodes> nodes_of_yaml(std::string_view text);

/// Returns the values of Nodes= in a topology.conf(5).
NamedNodes nodes_of_conf(std::string_view text);

}  // namespace op::controller
