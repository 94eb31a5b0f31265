#include "bridge/common/hosts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "bridge/common/held.hpp"
#include "bridge/common/names.hpp"
#include "slurm/own_node.hpp"

namespace bridge {
namespace {

std::optional<long long> whole_number(std::string_view text) {
  long long out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(out) : std::nullopt;
}

/// Reports whether a value satisfies one expression of a node selector. `value` is null if the node has no such label.
bool satisfies(const core::Json& expression, const std::string* value) {
  const std::string op = core::get_string(expression, {"operator"});
  const core::Json values = expression.value("values", core::Json::array());
  const bool listed = value != nullptr && std::ranges::find(values, core::Json(*value)) != values.end();
  if (op == "In") return listed;
  if (op == "NotIn") return !listed;
  if (op == "Exists") return value != nullptr;
  if (op == "DoesNotExist") return value == nullptr;
  if ((op != "Gt" && op != "Lt") || value == nullptr || values.size() != 1 || !values.front().is_string()) return false;
  const auto have = whole_number(*value), limit = whole_number(values.front().get_ref<const std::string&>());
  if (!have || !limit) return false;
  return op == "Gt" ? *have > *limit : *have < *limit;
}

/// Follows Kubernetes' rule: all expressions of a term must hold, and a term without expressions matches nothing.
bool matches_term(const core::Json& term, const kube::ObjectMeta& node) {
  const core::Json labels = term.value("matchExpressions", core::Json::array());
  const core::Json fields = term.value("matchFields", core::Json::array());
  if (labels.empty() && fields.empty()) return false;
  const auto label_holds = [&](const core::Json& expression) {
    const auto label = node.labels.find(core::get_string(expression, {"key"}));
    return satisfies(expression, label == node.labels.end() ? nullptr : &label->second);
  };
  const auto field_holds = [&](const core::Json& expression) {
    return core::get_string(expression, {"key"}) == "metadata.name" && satisfies(expression, &node.name);
  };
  return std::ranges::all_of(labels, label_holds) && std::ranges::all_of(fields, field_holds);
}

bool matches_affinity(const kube::SchedulingPodRecord& pod, const kube::ObjectMeta& node) {
  const core::Json* terms =
      core::find(pod.affinity, {"nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
  if (terms == nullptr) return true;
  return std::ranges::any_of(*terms, [&](const core::Json& term) { return matches_term(term, node); });
}

bool tolerates(const kube::Toleration& toleration, const kube::Taint& taint) {
  if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
  if (!toleration.key.empty() && toleration.key != taint.key) return false;
  if (toleration.op == "Exists") return true;
  return !toleration.key.empty() && toleration.value == taint.value;
}

std::set<std::string, std::less<>> split(std::string_view names) {
  std::set<std::string, std::less<>> out;
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(','), names.size());
    if (end > 0) out.emplace(names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return out;
}

/// Returns why one of the pods could not run on the node, or "". Checks only one of successive pods that are alike.
std::string misfit(const Pods& pods, const kube::SchedulingNodeRecord& node) {
  const Pod* last = nullptr;
  for (const PodPtr& pod : pods) {
    if (last != nullptr && are_alike(*pod, *last)) continue;
    if (std::string why = bridge::misfit(*pod, node); !why.empty()) return why;
    last = pod.get();
  }
  return {};
}

bool in_one_of(const slurm::Node& node, const std::set<std::string, std::less<>>& partitions) {
  return partitions.empty() ||
         std::ranges::any_of(node.partitions, [&](const std::string& name) { return partitions.contains(name); });
}

}  // namespace

Hosts hosts_of(const std::vector<KubeNodePtr>& nodes) {
  Hosts out;
  for (const KubeNodePtr& node : nodes) {
    const std::string_view given = node->meta.label(kLabelSlurmNodeName);
    const std::string name(given.empty() ? node->meta.name : given);
    const auto [it, added] = out.emplace(name, node);
    if (!added && node->meta.name == name) it->second = node;
  }
  return out;
}

std::string misfit(const kube::SchedulingPodRecord& pod, const kube::SchedulingNodeRecord& node) {
  if (node.meta.terminating()) return "being deleted";
  if (node.unschedulable) return "cordoned";
  for (const auto& [name, value] : pod.node_selector) {
    const auto label = node.meta.labels.find(name);
    if (label == node.meta.labels.end() || label->second != value) return "without the label " + name + "=" + value;
  }
  if (!matches_affinity(pod, node.meta)) return "outside of the node affinity";
  for (const kube::Taint& taint : node.taints) {
    if (taint.effect == "PreferNoSchedule" || taint.key == kTaintManagedNode) continue;
    const auto by = [&](const kube::Toleration& toleration) { return tolerates(toleration, taint); };
    if (std::ranges::none_of(pod.tolerations, by)) return "tainted with " + taint.key;
  }
  for (const auto& [name, amount] : pod.requests) {
    const auto there = node.allocatable.find(name);
    if (amount > (there == node.allocatable.end() ? 0 : there->second)) return "short of " + name;
  }
  return {};
}

std::string other_cluster_of(const slurm::Node& node, const std::string& installation) {
  const auto mark = slurm::mark_of(node);
  if (mark && mark->owner == slurm::Owner::kBridge && mark->instance != installation) return mark->instance;
  const auto listed = node.state.has("EXTERNAL") ? std::nullopt : held_in(node.extra);
  return listed && !listed->jobs.empty() && listed->cluster != installation ? listed->cluster : "";
}

bool are_alike(const Pod& a, const Pod& b) {
  return &a == &b || (a.requests == b.requests && a.node_selector == b.node_selector && a.affinity == b.affinity &&
                      a.tolerations == b.tolerations);
}

bool Fit::is_of(const Pods& pods, std::string_view of_partitions) const {
  return like != nullptr && partitions == of_partitions &&
         std::ranges::all_of(pods, [&](const PodPtr& pod) { return are_alike(*pod, *like); });
}

Fit fit_of(const Pods& pods, const Hosts& hosts, const slurm::Snapshot& snapshot, const std::string& installation,
           std::string_view partitions) {
  Fit out;
  out.partitions = partitions;
  if (!pods.empty()) out.like = pods.front();
  if (!out.is_of(pods, partitions)) out.like = nullptr;
  const auto wanted = split(partitions);
  for (const auto& [name, node] : snapshot.nodes) {
    if (!in_one_of(*node, wanted)) continue;
    const auto host = hosts.find(name);
    const bool elsewhere = host == hosts.end() || !other_cluster_of(*node, installation).empty();
    const std::string why = elsewhere ? "outside of this Kubernetes cluster" : misfit(pods, *host->second);
    if (why.empty()) {
      ++out.fitting;
    } else {
      ++out.reasons[why];
      out.excluded.push_back(name);
    }
  }
  return out;
}

Candidates candidates_of(FitPtr fit, std::size_t pods) {
  Candidates out{std::move(fit), {}};
  const std::size_t fitting = out.fit->fitting;
  if (fitting >= pods) return out;
  const bool anywhere = split(out.fit->partitions).empty();
  const std::string where = anywhere ? "Slurm" : "partition " + out.fit->partitions;
  if (fitting > 0) {
    out.why = fmt::format("only {} of the {} nodes that the group needs in {} can run its pods:", fitting, pods, where);
  } else {
    out.why = out.excluded().empty() ? where + " has no nodes" : "no node of " + where + " can run the pod:";
  }
  for (const auto& [why, count] : out.fit->reasons) out.why += fmt::format(" {} {},", count, why);
  if (out.why.ends_with(',') || out.why.ends_with(':')) out.why.pop_back();
  return out;
}

}  // namespace bridge
