// Slurm's topology.yaml (25.05 and later), made from labels of Kubernetes nodes, and the place of a Slurm node in it. The file
// does not list nodes: dynamic nodes send their place as a topology string, "default:k8s:k8s/zone-a:...".
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "api/controller.hpp"
#include "kube/object.hpp"

namespace op {

/// The switches of a tree, or the blocks, by name. The value is the name of the parent switch; "" for top switches and blocks.
using TopologyUnits = std::map<std::string, std::string, std::less<>>;

/// The switch above all others. Without it, a job could not span two switches of the widest label.
inline constexpr std::string_view kTopologyRoot = "k8s";

/// Returns the first label of the spec that the Kubernetes node lacks, or "".
[[nodiscard]] std::string missing_label(const api::Topology& spec, const kube::ObjectMeta& kube_node);

/// Returns the topology string of the Slurm nodes on a Kubernetes node. "": the node lacks a label. The name of a unit
/// has the values of its label and of all wider labels, so that equal values below different units make different units.
/// Slurm limits names to 64 characters: a longer name is cut and ends with a digest. For a tree, the string has all
/// units from the top, so that Slurm can create missing switches (switch_record_add_switch) and always accepts its own
/// state.
[[nodiscard]] std::string topology_of(const api::Topology& spec, const kube::ObjectMeta& kube_node);

/// True if the names of all units in the topology string can come from topology_of, for any spec. Assumes that nobody else
/// names a unit kTopologyRoot, or begins a name with kTopologyRoot and a slash.
[[nodiscard]] bool is_from_labels(std::string_view topology);

/// True if topology_of could return this topology string for the spec, with some values of the labels.
[[nodiscard]] bool is_of(const api::Topology& spec, std::string_view topology);

/// Parses the units of a file that render_topology has written.
[[nodiscard]] TopologyUnits read_topology(std::string_view yaml);

/// Adds the units of the topology string, unless the string has none or does not fit `type`. If the string lacks the switches
/// above its first unit, takes them from `before`. Does not change existing units.
void add_units(TopologyUnits& units, api::TopologyType type, std::string_view topology, const TopologyUnits& before);

/// True if Slurm accepts the topology string with these units. slurmctld does not start with a node whose string it rejects.
[[nodiscard]] bool has_place(const TopologyUnits& units, api::TopologyType type, std::string_view topology);

/// Renders the file. Requires at least one unit. Sorts units by name, so that blocks that share wider labels are neighbours.
[[nodiscard]] std::string render_topology(const api::Topology& spec, const TopologyUnits& units);

}  // namespace op
