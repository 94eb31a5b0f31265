#include "operator/controller/topology.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "operator/common/keyring_volume.hpp"
#include "operator/common/slinky.hpp"
#include "operator/common/topology.hpp"
#include "operator/controller/backups.hpp"
#include "operator/controller/build.hpp"
#include "operator/controller/rollout.hpp"
#include "slinky/config_map.hpp"
#include "slinky/releases.hpp"
#include "slinky/status.hpp"

namespace op::controller {
namespace {

constexpr ImageRelease kFirstRelease{25, 5};

/// Returns why the topology strings of Slurm nodes cannot be read or changed until users act, or nullopt.
std::optional<Problem> blindness(const Observed& observed) {
  if (observed.restapis.empty()) {
    return Problem{"TopologyWaits",
                   "spec.topology: without a RestApi, the operator cannot move Slurm nodes to other places, so topology.yaml "
                   "is not changed"};
  }
  // These are the capabilities of slurmrestd. The release of slurmrestd can differ from that of slurmctld.
  if (answers(observed) && !observed.snapshot->capabilities.topology_update) {
    return Problem{"TopologyNotSupported", "spec.topology: slurmrestd of Slurm " + observed.snapshot->capabilities.release +
                                               " cannot change the places of nodes, so topology.yaml is not changed: use 25.05 "
                                               "or later, or a topology.conf in spec.configFileRefs"};
  }
  return {};
}

/// True if Slurm would accept the topology string without a topology file. Without the file, Slurm has one flat topology,
/// "default", which accepts any unit. So each part of the string must begin with "default:".
bool is_for_flat(std::string_view topology) {
  while (topology.starts_with("default:")) {
    const std::size_t comma = topology.find(',');
    if (comma == std::string_view::npos) return true;
    topology.remove_prefix(comma + 1);
  }
  return false;
}

/// Removes the file, `out.text`, after spec.topology was removed. The file stays until no Slurm node uses a unit of the file:
/// if a user's file took its place earlier, slurmctld would not start. Meanwhile, the NodeSets remove the units from the nodes.
void let_go(const Observed& observed, TopologyFile& out) {
  if (out.text.empty()) return;
  if (!release_without_topology_yaml(observed).empty()) return out.text.clear();
  if (auto problem = blindness(observed)) return out.warnings.push_back(std::move(*problem));
  std::map<std::string_view, std::string> named;
  if (answers(observed)) {
    for (const auto& [name, node] : observed.snapshot->nodes) {
      if (is_from_labels(node->topology)) named.emplace(node->topology, node->name + " (" + node->topology + ")");
    }
    if (named.empty()) return out.text.clear();
    out.may_change = true;
  }
  std::vector<std::string> nodes;
  for (auto& [topology, node] : named) nodes.push_back(std::move(node));
  out.warnings.push_back({"TopologyWaits",
                          "spec.topology has been removed; topology.yaml is kept until " +
                              (nodes.empty() ? "Slurm answers" : "no Slurm node has a place in it: " + some_of(nodes)),
                          Problem::Kind::kComing});
}

void refuse_files(const Observed& observed, std::vector<Problem>& problems) {
  for (const NamedFiles& map : observed.config_files) {
    for (const char* file : {"topology.yaml", "topology.conf"}) {
      if (!map.files.contains(file)) continue;
      problems.push_back({"TopologyConflict", "ConfigMap " + observed.object->meta.ns + "/" + map.name +
                                                  " of spec.configFileRefs has a file " + file +
                                                  ", which conflicts with spec.topology: remove one of the two"});
    }
  }
}

/// True if slurmctld's pod mounts a ConfigMap that the spec no longer names and that has, or might have, the user's
/// topology.yaml.
bool mounts_unnamed(const Observed& observed, const ConfigState& state) {
  const auto has_topology = [](const NamedFiles& map) { return map.files.contains(std::string(kTopologyYaml)); };
  if (file_copy(state, kTopologyYaml) != nullptr) return std::ranges::none_of(observed.config_files, has_topology);
  const core::Json* volumes =
      observed.stateful_set ? core::find(observed.stateful_set->body, {"spec", "template", "spec", "volumes"}) : nullptr;
  if (volumes == nullptr || !volumes->is_array()) return false;
  const std::string& own = observed.object->meta.name;
  std::set<std::string> named{config_map_name(own), config_files_name(own)};
  if (observed.jwks) named.insert(observed.jwks->name);
  for (const auto* maps :
       {&observed.config_files, &observed.prolog, &observed.epilog, &observed.prolog_slurmctld, &observed.epilog_slurmctld}) {
    for (const NamedFiles& map : *maps) named.insert(map.name);
  }
  for (const core::Json& volume : *volumes) {
    const core::Json* sources = core::find(volume, {"projected", "sources"});
    if (core::get_string(volume, {"name"}) != kEtcVolume || sources == nullptr || !sources->is_array()) continue;
    return std::ranges::any_of(*sources, [&](const core::Json& source) {
      const std::string map = core::get_string(source, {"configMap", "name"});
      return !map.empty() && !named.contains(map);
    });
  }
  return false;
}

}  // namespace

std::string release_without_topology_yaml(const Observed& observed) {
  const ImageRelease release = slurm_release(slurmctld_image(observed.controller.spec));
  return release != ImageRelease{} && release < kFirstRelease ? to_string(release) : "";
}

TopologyFile topology_file(const Observed& observed, const ConfigState& state) {
  TopologyFile out;
  const auto offered = state.offered.find(std::string(kTopologyYaml));
  if (offered != state.offered.end()) out.text = offered->second;
  if (!observed.controller.spec.topology) {
    let_go(observed, out);
    return out;
  }
  const api::Topology& spec = *observed.controller.spec.topology;
  refuse_files(observed, out.problems);
  if (const std::string release = release_without_topology_yaml(observed); !release.empty()) {
    out.warnings.push_back({"TopologyNotSupported", "spec.topology: Slurm " + release +
                                                        " has no topology.yaml: use 25.05 or later, or a topology.conf in "
                                                        "spec.configFileRefs"});
    out.text.clear();
    return out;
  }
  if (!observed.reads_kube_nodes) {
    out.warnings.push_back({"KubernetesNodesNotReadable",
                            "spec.topology needs the right to read Kubernetes nodes, which this installation of the operator "
                            "does not have: it has no effect"});
    return out;
  }
  if (auto problem = blindness(observed)) {
    out.warnings.push_back(std::move(*problem));
    return out;
  }
  // If Kubernetes reports no nodes, the nodes count as unknown. The operator knows which units Slurm nodes use only while Slurm
  // answers.
  if (observed.no_kube_nodes || (!answers(observed) && state.exists())) {
    out.keeps_pod = out.text.empty() && mounts_unnamed(observed, state);
    return out;
  }

  TopologyUnits units, wanted;
  for (const std::string& topology : observed.places) add_units(units, spec.type, topology, {});
  wanted = units;
  std::map<std::string_view, const std::string*> named;  // One node for each topology string: many nodes share a string.
  if (answers(observed)) {
    const TopologyUnits before = read_topology(out.text);
    for (const auto& [name, node] : observed.snapshot->nodes) {
      if (!node->topology.empty() && named.emplace(node->topology, &node->name).second)
        add_units(units, spec.type, node->topology, before);
    }
  }
  std::vector<std::string> elsewhere;
  for (const auto& [topology, node] : named) {
    if (!has_place(units, spec.type, topology)) elsewhere.push_back(*node + " (" + std::string(topology) + ")");
  }
  out.may_change = units != wanted || !elsewhere.empty();
  const auto strange = std::ranges::find_if(named, [](const auto& item) { return !is_for_flat(item.first); });
  if (out.text.empty() && out.problems.empty() && strange != named.end()) {
    out.keeps_pod = true;
    out.problems.push_back(
        {"TopologyConflict",
         "spec.topology: slurmctld runs with a topology.yaml that spec.configFileRefs no longer names, and cannot start "
         "without it while Slurm nodes have places in it. Name it again, and remove these places before you remove the file: " +
             *strange->second + " (" + std::string(strange->first) + ")"});
    return out;
  }
  if (!elsewhere.empty()) {
    out.warnings.push_back({"TopologyWaits",
                            "spec.topology: topology.yaml is not changed, because slurmctld would not start while these Slurm "
                            "nodes have places that the new file lacks: " +
                                some_of(elsewhere),
                            Problem::Kind::kComing});
    return out;
  }
  if (units.empty()) {
    // slurmctld does not start with an empty file.
    out.warnings.push_back({"TopologyEmpty",
                            "spec.topology: no Kubernetes node has all of these labels, so there is no topology.yaml: " +
                                some_of(spec.node_labels),
                            Problem::Kind::kComing});
    out.text.clear();
    return out;
  }
  if (spec.type == api::TopologyType::kTree) units.try_emplace(std::string(kTopologyRoot));
  out.text = render_topology(spec, units);
  return out;
}

}  // namespace op::controller
