// Renders topology.yaml according to spec.topology. The file retains each unit (a switch or block) that a Slurm node uses: if
// slurmctld does not accept a node's topology string, it refuses a reconfigure and does not start (_set_nodes_topo in
// read_config.c; 25.05 to 26.05). So a unit is added before a node uses the unit, and removed after no node uses the unit any
// more.
#pragma once

#include <string>
#include <vector>

#include "operator/controller/observed.hpp"

namespace op::controller {

struct ConfigState;

/// Returns the release of slurmctld if it is before 25.05, the first release with topology.yaml. "": slurmctld is not known to
/// be too old for topology.yaml.
[[nodiscard]] std::string release_without_topology_yaml(const Observed& observed);

struct TopologyFile {
  std::string text;         ///< The content of topology.yaml; "": no file.
  bool may_change = false;  ///< The text depends on Slurm's nodes. Their changes start no pass, so the plan must look again.
  bool keeps_pod = false;   ///< The pod must not be replaced: slurmctld would not start with the files that the new pod mounts.
  std::vector<Problem> problems, warnings;
};

/// Returns the wanted file. While the wanted file is unknown or the file is about to be removed, returns the offered file.
/// `state`: as in render_config().
[[nodiscard]] TopologyFile topology_file(const Observed& observed, const ConfigState& state);

}  // namespace op::controller
