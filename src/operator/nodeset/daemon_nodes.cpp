#include "operator/nodeset/daemon_nodes.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <tuple>
#include <utility>

#include "api/well_known.hpp"
#include "core/hash.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/managed_nodes.hpp"
#include "slinky/worker_names.hpp"

namespace op::nodeset {
namespace {

using core::Json;

constexpr std::string_view kNoSchedule = "NoSchedule";
constexpr std::string_view kNoExecute = "NoExecute";
/// The pod's name is also used as a label value. Label values are limited to this length.
constexpr std::size_t kMaxLabel = 63;
constexpr std::size_t kHashLength = 10;

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

const Json& items(const Json& object, std::initializer_list<std::string_view> path) {
  static const Json kNone = Json::array();
  const Json* found = core::find(object, path);
  return found != nullptr && found->is_array() ? *found : kNone;
}

std::vector<std::string> texts(const Json& array) {
  std::vector<std::string> out;
  for (const Json& item : array) {
    if (item.is_string()) out.push_back(item.get<std::string>());
  }
  return out;
}

kube::Toleration read_toleration(const Json& json) {
  return {core::get_string(json, {"key"}),
          core::get_string(json, {"operator"}),
          core::get_string(json, {"value"}),
          core::get_string(json, {"effect"}),
          {}};
}

}  // namespace

NodeSelection::Requirement NodeSelection::read_requirement(const Json& json) {
  constexpr std::array<std::pair<std::string_view, Operator>, 6> kOperators{{{"In", Operator::kIn},
                                                                             {"NotIn", Operator::kNotIn},
                                                                             {"Exists", Operator::kExists},
                                                                             {"DoesNotExist", Operator::kDoesNotExist},
                                                                             {"Gt", Operator::kGt},
                                                                             {"Lt", Operator::kLt}}};
  Requirement out;
  out.key = core::get_string(json, {"key"});
  const std::string name = core::get_string(json, {"operator"});
  const auto found = std::ranges::find(kOperators, std::string_view(name), &std::pair<std::string_view, Operator>::first);
  if (found != kOperators.end()) out.op = found->second;
  out.values = texts(items(json, {"values"}));
  return out;
}

bool NodeSelection::Requirement::met(const std::string* value) const {
  const auto listed = [&] { return std::ranges::find(values, *value) != values.end(); };
  switch (op) {
    case Operator::kIn:
      return value != nullptr && listed();
    case Operator::kNotIn:
      return value == nullptr || !listed();
    case Operator::kExists:
      return value != nullptr;
    case Operator::kDoesNotExist:
      return value == nullptr;
    case Operator::kGt:
    case Operator::kLt: {
      if (value == nullptr || values.size() != 1) return false;
      const auto has = whole_number(*value), bound = whole_number(values.front());
      return has && bound && (op == Operator::kGt ? *has > *bound : *has < *bound);
    }
    case Operator::kUnknown:
      return false;
  }
  return false;
}

bool NodeSelection::Term::met(const kube::NodeRecord& node) const {
  // A term without requirements matches nothing.
  if (labels.empty() && fields.empty()) return false;
  const auto label = [&](const std::string& key) {
    const auto found = node.meta.labels.find(key);
    return found == node.meta.labels.end() ? nullptr : &found->second;
  };
  // metadata.name is the only field that Kubernetes supports in matchFields.
  const auto field = [&](const std::string& key) { return key == "metadata.name" ? &node.meta.name : nullptr; };
  return std::ranges::all_of(labels, [&](const Requirement& one) { return one.met(label(one.key)); }) &&
         std::ranges::all_of(fields, [&](const Requirement& one) { return field(one.key) && one.met(field(one.key)); });
}

NodeSelection::NodeSelection(const Json& pod_spec) {
  if (const Json* labels = core::find(pod_spec, {"nodeSelector"}); labels != nullptr && labels->is_object()) {
    for (const auto& [key, value] : labels->items()) labels_[key] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  const Json* required = core::find(pod_spec, {"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"});
  if (required != nullptr && required->is_object()) {
    terms_.emplace();
    for (const Json& term : items(*required, {"nodeSelectorTerms"})) {
      Term& one = terms_->emplace_back();
      for (const Json& label : items(term, {"matchExpressions"})) one.labels.push_back(read_requirement(label));
      for (const Json& field : items(term, {"matchFields"})) one.fields.push_back(read_requirement(field));
    }
  }
  for (const Json& toleration : items(pod_spec, {"tolerations"})) tolerations_.push_back(read_toleration(toleration));
  for (const Json& toleration : daemon_tolerations(core::get_bool(pod_spec, {"hostNetwork"})))
    tolerations_.push_back(read_toleration(toleration));
  for (const std::string_view taint : {kube::kTaintNotReady, kube::kTaintUnreachable, api::kTaintWorker})
    tolerations_.push_back({std::string(taint), "Exists", "", std::string(kNoExecute), {}});
}

bool NodeSelection::tolerates(const kube::Taint& taint) const {
  return std::ranges::any_of(tolerations_, [&](const kube::Toleration& one) {
    if (!one.effect.empty() && one.effect != taint.effect) return false;
    if (!one.key.empty() && one.key != taint.key) return false;
    if (one.op == "Exists") return true;
    return (one.op.empty() || one.op == "Equal") && !one.key.empty() && one.value == taint.value;
  });
}

Fit NodeSelection::judge(const kube::NodeRecord& node) const {
  const bool labelled = std::ranges::all_of(labels_, [&](const auto& wanted) {
    const auto found = node.meta.labels.find(wanted.first);
    return found != node.meta.labels.end() && found->second == wanted.second;
  });
  if (!labelled) return {};
  if (terms_ && std::ranges::none_of(*terms_, [&](const Term& term) { return term.met(node); })) return {};
  Fit out{true, true};
  for (const kube::Taint& taint : node.taints) {
    const bool ends = taint.effect == kNoExecute;
    // The taint of slurm-bridge excludes workers only from an external node. For an external node, Slurm already has a node
    // with the worker's name and without a slurmd.
    const bool hybrid = taint.key == slinky::kTaintManagedNode && !slinky::is_external(node.meta);
    if ((!ends && taint.effect != kNoSchedule) || hybrid || tolerates(taint)) continue;
    out.starts = false;
    if (ends) out.stays = false;
  }
  return out;
}

core::Json daemon_tolerations(bool host_network) {
  std::vector<std::string_view> keys{"node.kubernetes.io/disk-pressure", "node.kubernetes.io/memory-pressure",
                                     "node.kubernetes.io/pid-pressure", "node.kubernetes.io/unschedulable"};
  if (host_network) keys.emplace_back("node.kubernetes.io/network-unavailable");
  Json out = Json::array();
  for (const std::string_view key : keys) out.push_back({{"key", key}, {"operator", "Exists"}, {"effect", kNoSchedule}});
  return out;
}

std::string daemon_hostname(const kube::NodeRecord& node) {
  const std::string_view override = node.meta.annotation(api::kAnnotationNodeHostnameOverride);
  if (!override.empty()) return std::string(override);
  std::string name = node.meta.name;
  if (name.find_first_not_of("0123456789.") != std::string::npos) return name.substr(0, name.find('.'));
  // An IP address has no short name: many addresses share the part before the first dot.
  std::ranges::replace(name, '.', '-');
  return name;
}

std::string daemon_pod_name(std::string_view nodeset, std::string_view kube_node) {
  const std::string hash = core::short_hash(std::string(nodeset) + "/" + std::string(kube_node), kHashLength);
  static_assert(kPodNamePrefix + 1 + kHashLength == kMaxLabel);
  std::string prefix(nodeset.substr(0, kPodNamePrefix));
  while (prefix.ends_with('-') || prefix.ends_with('.')) prefix.pop_back();
  return prefix + "-" + hash;
}

std::optional<SlotKey> place_of(const kube::PodRecord& pod, std::string_view nodeset) {
  const std::string_view mode = pod.meta.label(api::kLabelScalingMode);
  const std::optional<int> ordinal = ordinal_of(pod.meta.name, std::string(nodeset) + "-");
  if (mode != api::to_string(api::ScalingMode::kDaemonSet) && ordinal) return SlotKey{*ordinal};
  // If the pin of a pod cannot be read, its place is the node on which it runs, because a pinned pod runs only on that node.
  const std::string& host = pod.pinned_to.empty() ? pod.node_name : pod.pinned_to;
  if (mode != api::to_string(api::ScalingMode::kDaemonSet) || host.empty()) return {};
  return SlotKey{-1, host};
}

Hosts find_hosts(const api::NodeSetSpec& spec, const KubeNodes& nodes) {
  const NodeSelection selection(spec.pod_template.spec);
  Hosts out;
  for (const auto& node : nodes)
    out.emplace(node->meta.name, Host{selection.judge(*node), daemon_hostname(*node), node->meta.created});
  return out;
}

void settle_hosts(Hosts& hosts, const std::vector<kube::PodPtr>& pods, std::string_view nodeset, bool named_after_hosts) {
  std::set<std::string, std::less<>> occupied, named;
  for (const kube::PodPtr& pod : pods) {
    const std::optional<SlotKey> place = place_of(*pod, nodeset);
    if (!place || place->numbered() || pod->meta.terminating()) continue;
    occupied.insert(place->kube_node);
    const auto host = hosts.find(place->kube_node);
    if (host != hosts.end() && slurm_node_name(*pod) == host->second.slurm_node) named.insert(place->kube_node);
  }
  std::map<std::string_view, std::pair<std::tuple<bool, core::WallTime, std::string_view>, Host*>> first;
  for (auto& [name, host] : hosts) {
    host.wanted = host.fit.starts || (host.fit.stays && occupied.contains(name));
    if (!host.wanted || named_after_hosts) continue;
    const std::tuple rank(!named.contains(name), host.created, std::string_view(name));
    const auto [found, added] = first.try_emplace(host.slurm_node, rank, &host);
    if (added) continue;
    auto& [best, holder] = found->second;
    const std::string_view other = std::get<2>(best);
    if (best < rank) {
      host.twin = other;
      continue;
    }
    holder->twin = name;
    found->second = {rank, &host};
  }
  for (auto& [name, host] : hosts) {
    if (!host.twin.empty() && !occupied.contains(name)) host.wanted = false;
  }
}

bool matters_to_daemons(const kube::NodeRecord& before, const kube::NodeRecord& after) {
  const auto override = [](const kube::NodeRecord& node) { return node.meta.annotation(api::kAnnotationNodeHostnameOverride); };
  return before.meta.labels != after.meta.labels || before.taints != after.taints || override(before) != override(after);
}

}  // namespace op::nodeset
