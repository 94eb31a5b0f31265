// The nodes that a user's topology.yaml or topology.conf names. Other people's text: nothing in it costs more than its length.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace op::controller {

struct NamedNodes {
  std::vector<std::string> lists;  ///< Hostlists.
  bool all = false;                ///< It has a flat topology, in which every node is.
};

/// topology.yaml(5): the values of `nodes`, of whatever topology in it. Error: kInvalid, what cannot be read, aliases included,
/// and what is nested deeper, or has more parts, than any such file.
core::Result<NamedNodes> nodes_of_yaml(std::string_view text);

/// topology.conf(5): the values of Nodes=.
NamedNodes nodes_of_conf(std::string_view text);

}  // namespace op::controller
