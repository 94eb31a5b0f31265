// Slurm's topology.yaml (25.05 and later) as it is made from labels of Kubernetes nodes, and the place of a Slurm node in it.
// Nodes are not listed in the file: dynamic nodes say where they are by their topology string, "default:k8s:k8s/zone-a:...".
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "api/controller.hpp"
#include "kube/object.hpp"

namespace op {

/// The switches of a tree, or the blocks, by name; of each switch the one above it, "" for those at the top and for blocks.
using TopologyUnits = std::map<std::string, std::string, std::less<>>;

/// The switch that is above all others: without one, a job could not have nodes below two switches of the widest label.
inline constexpr std::string_view kTopologyRoot = "k8s";

/// The first label of the spec that the Kubernetes node lacks; "": it has all.
[[nodiscard]] std::string missing_label(const api::Topology& spec, const kube::ObjectMeta& kube_node);

/// The topology string of the Slurm nodes on a Kubernetes node; "": it lacks a label. A unit is named by the values of all
/// labels down to its own, so that the same value below two others names two units. Slurm's limit for a name is 64 characters;
/// what is longer ends with a digest. Of a tree the whole way is told, so that Slurm can make switches that it does not have
/// (switch_record_add_switch), and never refuses its own state for want of one.
[[nodiscard]] std::string topology_of(const api::Topology& spec, const kube::ObjectMeta& kube_node);

/// The topology string names units of topology_of alone, of whatever spec: no others begin like these.
[[nodiscard]] bool is_from_labels(std::string_view topology);

/// The topology string is one that topology_of gives with this spec, of whatever values.
[[nodiscard]] bool is_of(const api::Topology& spec, std::string_view topology);

/// The units of a file that render_topology has written.
[[nodiscard]] TopologyUnits read_topology(std::string_view yaml);

/// Adds the units that the topology string names, where it can be told what they are; `before` knows what stands above them.
/// What is there already stays.
void add_units(TopologyUnits& units, api::TopologyType type, std::string_view topology, const TopologyUnits& before);

/// Slurm would take this topology string with these units: it refuses to start with a node whose string it does not take.
[[nodiscard]] bool has_place(const TopologyUnits& units, api::TopologyType type, std::string_view topology);

/// The file, of at least one unit, in the order of the names; blocks that share the wider labels are neighbours so.
[[nodiscard]] std::string render_topology(const api::Topology& spec, const TopologyUnits& units);

}  // namespace op
