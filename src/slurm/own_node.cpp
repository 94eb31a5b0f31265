#include "slurm/own_node.hpp"

#include <algorithm>
#include <array>

#include "core/hash.hpp"

namespace slurm {
namespace {

constexpr std::array kOwners{Owner::kOperator, Owner::kBridge, Owner::kEnlistment};

std::optional<NodeMark> read_mark(std::string_view feature) {
  for (const Owner owner : kOwners) {
    const std::string prefix = std::string(to_string(owner)) + "/";
    if (!feature.starts_with(prefix)) continue;
    feature.remove_prefix(prefix.size());
    const std::size_t slash = feature.find('/');
    if (slash == std::string_view::npos || slash == 0 || slash + 1 == feature.size()) return std::nullopt;
    return NodeMark{owner, std::string(feature.substr(0, slash)), std::string(feature.substr(slash + 1))};
  }
  return std::nullopt;
}

}  // namespace

bool is_plain_word(std::string_view word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' ||
           c == '/' || c == ':';
  };
  return !word.empty() && std::ranges::all_of(word, plain);
}

std::string made_of(const NodeWish& wish) {
  const core::Json made{{"address", wish.address}, {"cpus", wish.cpus}, {"memory", wish.real_memory_mib}, {"gpus", wish.gpus}};
  return core::short_digest(core::canonical(made)).substr(0, 8);
}

std::string NodeMark::feature() const {
  return std::string(to_string(owner)) + "/" + instance + "/" + made;
}

std::optional<NodeMark> mark_of(const Node& node) {
  if (!node.state.has("EXTERNAL")) return std::nullopt;
  std::optional<NodeMark> out;
  for (const std::string& feature : node.features) {
    std::optional<NodeMark> mark = read_mark(feature);
    if (!mark) continue;
    if (out) return std::nullopt;
    out = std::move(mark);
  }
  return out;
}

std::string node_line(const NodeWish& wish, const NodeMark& mark) {
  std::string features = mark.feature();
  for (const std::string& feature : wish.features) features += "," + feature;
  std::string out = "NodeName=" + wish.name + " NodeAddr=" + wish.address + " State=EXTERNAL";
  const std::string cpus = std::to_string(wish.cpus);
  out += " CPUs=" + cpus + " Sockets=1 CoresPerSocket=" + cpus + " ThreadsPerCore=1";
  out += " RealMemory=" + std::to_string(wish.real_memory_mib) + " Features=" + features;
  // If GresConf were omitted, slurmctld would read its own gres.conf, which does not contain this node.
  const std::string gpus = std::to_string(wish.gpus);
  if (wish.gpus > 0) out += " Gres=gpu:" + gpus + " GresConf=\"count=" + gpus + ",name=gpu\"";
  return out;
}

std::optional<OwnDrained> OwnDrained::of(const plan::Observing& observing, const Snapshot& snapshot, NodeId id, Owner owner,
                                         std::string_view instance) {
  const Node* node = snapshot.node(id.name);
  if (node == nullptr || node->state.has("FAIL") || node->state.base == "DOWN") return std::nullopt;
  std::optional<NodeMark> mark = mark_of(*node);
  const Holds holds = Holds::read(node->reason);
  if (!mark || mark->owner != owner || mark->instance != instance || !holds.has(owner) || holds.others_than(owner))
    return std::nullopt;
  const auto drained = Drained::of(observing, snapshot, std::move(id));
  if (!drained) return std::nullopt;
  return OwnDrained(observing, *drained, *std::move(mark));
}

}  // namespace slurm
