// Makes Slurm's topology.yaml (25.05 and later) and the topology strings of Slurm nodes from labels of Kubernetes nodes. The
// file does not list nodes. Instead, each dynamic node sends its place in the topology as a topology string, such as
// "default:k8s:k8s/zone-a:...".
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "api/controller.hpp"
#include "kube/object.hpp"

namespace op {

/// The switches of a tree, or the blocks, by name. The value is the name of the parent switch; "" for top switches and blocks.
using TopologyUnits = std::map<std::string, std::string, std::less<>>;

/// The switch above all other switches. Without it, a job could not span two switches of the widest label.
inline constexpr std::string_view kTopologyRoot = "k8s";

/// Returns the first label of the spec that the Kubernetes node lacks, or "".
[[nodiscard]] std::string missing_label(const api::Topology& spec, const kube::ObjectMeta& kube_node);

/// Returns the topology string of the Slurm nodes on a Kubernetes node. "": the Kubernetes node lacks a label of the spec. The
/// name of a unit (a switch or block) contains the value of the label of the unit and the values of all wider labels. So an
/// equal label value below two different units yields two units. Slurm limits names to 64 characters: a longer name is cut and
/// ends with a digest. For a tree, the string has all units from the top down, so that Slurm can create missing switches
/// (switch_record_add_switch) and always accepts its own saved state.
[[nodiscard]] std::string topology_of(const api::Topology& spec, const kube::ObjectMeta& kube_node);

/// True if topology_of can have made all unit names in the topology string, whatever the spec. Assumes that only the operator
/// names a unit kTopologyRoot, or begins the name of a unit with kTopologyRoot and a slash.
[[nodiscard]] bool is_from_labels(std::string_view topology);

/// True if topology_of could return this topology string for the spec, with some values of the labels.
[[nodiscard]] bool is_of(const api::Topology& spec, std::string_view topology);

/// Parses the units of a file that render_topology has written.
[[nodiscard]] TopologyUnits read_topology(std::string_view yaml);

/// Adds the units of the topology string, unless the string has none or does not fit `type`. If the string lacks the switches
/// above its first unit, takes these switches from `before`. Does not change existing units.
void add_units(TopologyUnits& units, api::TopologyType type, std::string_view topology, const TopologyUnits& before);

/// True if slurmctld accepts the topology string when topology.yaml has these units. slurmctld does not start if it rejects the
/// topology string of a node.
[[nodiscard]] bool has_place(const TopologyUnits& units, api::TopologyType type, std::string_view topology);

/// Renders topology.yaml. Requires at least one unit. Sorts units by name, so that blocks with equal wider labels are
/// neighbours.
[[nodiscard]] std::string render_topology(const api::Topology& spec, const TopologyUnits& units);

}  // namespace op
