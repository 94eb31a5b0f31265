#include "operator/common/topology.hpp"

#include <algorithm>
#include <sstream>
#include <vector>

#include "core/hash.hpp"

namespace op {
namespace {

/// The name that Slurm gives its topology if there is no topology.yaml. With this name, topology strings stay valid without the
/// file.
constexpr std::string_view kTopologyName = "default";
constexpr std::size_t kMaxName = 64;
constexpr std::size_t kHashLength = 10;
/// The characters that are allowed in the name of a unit. Other characters have a special meaning in Slurm's hostlists.
constexpr std::string_view kNameAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/";
constexpr std::string_view kSwitch = "      - switch: ", kChildren = "        children: ", kBlock = "      - block: ";

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> out;
  std::istringstream in{std::string(text)};
  for (std::string part; std::getline(in, part, at);) out.push_back(std::move(part));
  return out;
}

/// Returns the units of a topology string, from the widest to the narrowest. Empty: the string does not have the form of the
/// strings that the operator makes from labels.
std::vector<std::string> way_of(std::string_view topology) {
  std::vector<std::string> out = split(topology, ':');
  if (out.empty() || out.front() != kTopologyName) return {};
  out.erase(out.begin());
  const auto is_name = [](const std::string& name) {
    return !name.empty() && name.size() <= kMaxName && name.find_first_not_of(kNameAllowed) == std::string::npos;
  };
  return std::ranges::all_of(out, is_name) ? out : std::vector<std::string>{};
}

std::string fitting(const std::string& name) {
  if (name.size() <= kMaxName) return name;
  return name.substr(0, kMaxName - kHashLength - 1) + "-" + core::short_hash(name, kHashLength);
}

std::string unquoted(std::string_view text) {
  return text.size() < 2 ? std::string() : std::string(text.substr(1, text.size() - 2));
}

bool is_leaf(const TopologyUnits& units, std::string_view name) {
  return std::ranges::none_of(units, [&](const auto& unit) { return unit.second == name; });
}

/// Returns the units above `name`, from the top down.
std::vector<std::string> above(const TopologyUnits& units, std::string_view name) {
  std::vector<std::string> out;
  auto unit = units.find(name);
  while (unit != units.end() && !unit->second.empty() && out.size() <= units.size()) {
    out.insert(out.begin(), unit->second);
    unit = units.find(unit->second);
  }
  return out;
}

}  // namespace

std::string missing_label(const api::Topology& spec, const kube::ObjectMeta& kube_node) {
  const auto label = std::ranges::find_if(spec.node_labels, [&](const auto& name) { return kube_node.label(name).empty(); });
  return label == spec.node_labels.end() ? "" : *label;
}

std::string topology_of(const api::Topology& spec, const kube::ObjectMeta& kube_node) {
  std::string name(kTopologyRoot), way = std::string(kTopologyName) + ":" + name;
  if (!missing_label(spec, kube_node).empty()) return "";
  for (const std::string& label : spec.node_labels) {
    name += "/" + std::string(kube_node.label(label));
    way += ":" + fitting(name);
  }
  return spec.type == api::TopologyType::kTree ? way : std::string(kTopologyName) + ":" + fitting(name);
}

bool is_from_labels(std::string_view topology) {
  const std::vector<std::string> way = way_of(topology);
  return !way.empty() && std::ranges::all_of(way, [](std::string_view unit) {
    return unit.starts_with(kTopologyRoot) && (unit.size() == kTopologyRoot.size() || unit[kTopologyRoot.size()] == '/');
  });
}

bool is_of(const api::Topology& spec, std::string_view topology) {
  return is_from_labels(topology) &&
         way_of(topology).size() == (spec.type == api::TopologyType::kBlock ? 1 : spec.node_labels.size() + 1);
}

TopologyUnits read_topology(std::string_view yaml) {
  TopologyUnits out;
  std::string above;
  std::map<std::string, std::string> parents;
  for (const std::string& line : split(yaml, '\n')) {
    const std::string_view text = line;
    if (text.starts_with(kSwitch)) {
      above = unquoted(text.substr(kSwitch.size()));
      out.try_emplace(above);
    } else if (text.starts_with(kBlock)) {
      out.try_emplace(unquoted(text.substr(kBlock.size())));
    } else if (text.starts_with(kChildren)) {
      for (const std::string& child : split(unquoted(text.substr(kChildren.size())), ',')) parents[child] = above;
    }
  }
  for (const auto& [child, parent] : parents) out[child] = parent;
  return out;
}

void add_units(TopologyUnits& units, api::TopologyType type, std::string_view topology, const TopologyUnits& before) {
  std::vector<std::string> way = way_of(topology);
  if (way.empty()) return;
  if (type == api::TopologyType::kBlock) {
    if (way.size() == 1) units.try_emplace(way.front());
    return;
  }
  if (!units.contains(way.front())) {
    std::vector<std::string> rest = above(before, way.front());
    way.insert(way.begin(), rest.begin(), rest.end());
  }
  std::string parent = way.front() == kTopologyRoot ? "" : std::string(kTopologyRoot);
  for (const std::string& name : way) {
    units.try_emplace(name, parent);
    parent = name;
  }
}

bool has_place(const TopologyUnits& units, api::TopologyType type, std::string_view topology) {
  const std::vector<std::string> way = way_of(topology);
  if (way.empty() || (type == api::TopologyType::kBlock && way.size() > 1)) return false;
  const auto known = [&](const std::string& name) { return units.contains(name); };
  return std::ranges::all_of(way, known) && is_leaf(units, way.back());
}

std::string render_topology(const api::Topology& spec, const TopologyUnits& units) {
  std::string out =
      "# Made from labels of Kubernetes nodes: spec.topology of the Controller.\n- topology: " + std::string(kTopologyName) +
      "\n  cluster_default: true\n";
  if (spec.type == api::TopologyType::kBlock) {
    out += "  block:\n    block_sizes:\n";
    for (const std::int32_t size : spec.block_sizes) out += "      - " + std::to_string(size) + "\n";
    out += "    blocks:\n";
    for (const auto& [name, none] : units) out += std::string(kBlock) + '"' + name + "\"\n";
    return out;
  }
  std::map<std::string_view, std::string> children;
  for (const auto& [name, parent] : units) {
    std::string& list = children[parent];
    list += (list.empty() ? "" : ",") + name;
  }
  out += "  tree:\n    switches:\n";
  for (const auto& [name, parent] : units) {
    out += std::string(kSwitch) + '"' + name + "\"\n";
    if (const auto below = children.find(name); below != children.end())
      out += std::string(kChildren) + '"' + below->second + "\"\n";
  }
  return out;
}

}  // namespace op
