// topology.yaml as spec.topology asks for it. A unit that a Slurm node names stays in the file: slurmctld refuses a
// reconfigure, and does not start, with a node whose topology string it does not take (_set_nodes_topo in read_config.c; 25.05
// to 26.05). So one comes into the file before a node gets it, and goes after the last node has been given another.
#pragma once

#include <string>
#include <vector>

#include "operator/controller/observed.hpp"

namespace op::controller {

struct ConfigState;

/// The release of a slurmctld that has no topology.yaml, which came with 25.05; "": it has, as far as is known.
[[nodiscard]] std::string release_without_topology_yaml(const Observed& observed);

struct TopologyFile {
  std::string text;         ///< "": there is none.
  bool may_change = false;  ///< By what Slurm says of its nodes, which wakes nobody.
  bool keeps_pod = false;   ///< slurmctld would not start with what the spec asks its pod to mount.
  std::vector<Problem> problems, warnings;
};

/// The file as it is wanted, or as it is offered while that is not known, or while it goes. `state`: as in render_config.
[[nodiscard]] TopologyFile topology_file(const Observed& observed, const ConfigState& state);

}  // namespace op::controller
