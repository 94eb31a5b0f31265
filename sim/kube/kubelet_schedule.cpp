// The scheduler, which selects a node for each pod, and the reactions of scheduler and kubelets to changes.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include "core/quantity.hpp"
#include "sim/kube/controllers.hpp"
#include "sim/kube/kubelet_parts.hpp"

namespace sim {

using core::Duration;
using core::Json;
namespace res = kube::resources;

namespace {

using Amounts = std::map<std::string, long double>;

Amounts amounts(const Json& quantities) {
  Amounts out;
  for (const auto& [name, quantity] : quantities.items()) out[name] = core::quantity(quantity).value_or(0);
  return out;
}

/// Returns the sum of the containers' requests, and 1 for the resource "pods". If a request is missing, its limit counts.
Amounts requests(const Json& pod) {
  Amounts out{{"pods", 1}};
  for (const Json& container : pod["spec"].value("containers", Json::array())) {
    const Json resources = container.value("resources", Json::object());
    Amounts of_one = amounts(resources.value("limits", Json::object()));
    for (const auto& [name, amount] : amounts(resources.value("requests", Json::object()))) of_one[name] = amount;
    for (const auto& [name, amount] : of_one) out[name] += amount;
  }
  return out;
}

bool gated(const Json& pod) {
  const Json* gates = core::find(pod, {"spec", "schedulingGates"});
  return gates != nullptr && !gates->empty();
}

/// Evaluates one requirement of a node selector term.
bool meets(const Json& requirement, const Json& values) {
  const std::string key = core::get_string(requirement, {"key"}), how = core::get_string(requirement, {"operator"});
  const bool there = values.contains(key);
  const Json wanted = requirement.value("values", Json::array());
  const auto listed = [&] { return there && std::ranges::find(wanted, values[key]) != wanted.end(); };
  if (how == "In") return listed();
  if (how == "NotIn") return !listed();
  if (how == "Exists") return there;
  if (how == "DoesNotExist") return !there;
  if (!there || wanted.size() != 1) return false;
  const long long have = std::atoll(values[key].get<std::string>().c_str());
  const long long bound = std::atoll(wanted[0].get<std::string>().c_str());
  return how == "Gt" ? have > bound : how == "Lt" && have < bound;
}

}  // namespace

void Kubelets::Impl::on_change(const std::string& table, const ChangePtr& change) {
  if (table == "nodes" || table == "persistentvolumeclaims") return schedule_later();
  if (table != "pods") return;
  const Json& pod = change->object->body;
  if (change->type == Change::Type::kDeleted) {
    later(between(Duration{1}, Duration{50}),
          [uid = core::get_string(pod, {"metadata", "uid"})](Impl& self) { self.forget(uid); });
    return schedule_later();
  }
  const std::string node = core::get_string(pod, {"spec", "nodeName"});
  if (node.empty()) return schedule_later();
  later(between(Duration{1}, Duration{50}), [key = change->key](Impl& self) { self.notice(key); });
}

void Kubelets::Impl::schedule_later(Duration more) {
  if (std::exchange(scheduling, true)) return;
  later(between(options.least_schedule, options.most_schedule) + more, [](Impl& self) {
    self.scheduling = false;
    self.schedule();
  });
}

void Kubelets::Impl::schedule() {
  std::vector<std::pair<kube::Key, Json>> waiting;
  for (const auto& [key, stored] : api.store().all("pods")) {
    const Json& pod = stored->body;
    if (gated(pod)) continue;
    if (core::get_string(pod, {"spec", "nodeName"}).empty() && !terminating(pod) && !ended(pod)) waiting.emplace_back(key, pod);
  }
  for (const auto& [key, pod] : waiting) {
    const auto fitting = fitting_nodes(key, pod);
    const std::string at = now();
    if (fitting.empty()) {
      api.modify(
          res::kPod, key,
          [&](Json& p) {
            set_condition(p,
                          {{"type", "PodScheduled"},
                           {"status", "False"},
                           {"reason", "Unschedulable"},
                           {"message", "0 nodes are available"}},
                          at);
          },
          {"system:kube-scheduler", "kube-scheduler", false, false}, "status");
      continue;
    }
    const std::string node = fitting[random.below(fitting.size())];
    const Caller who{"system:kube-scheduler", "kube-scheduler", false, false};
    api.modify(
        res::kPod, key, [&](Json& p) { p["spec"]["nodeName"] = node; }, who);
    api.modify(
        res::kPod, key,
        [&](Json& p) {
          set_condition(p, {{"type", "PodScheduled"}, {"status", "True"}}, at);
        },
        who, "status");
  }
}

std::vector<std::string> Kubelets::Impl::fitting_nodes(const kube::Key& key, const Json& pod) {
  std::vector<std::string> out;
  for (const Json& volume : pod["spec"].value("volumes", Json::array())) {
    const std::string claim = core::get_string(volume, {"persistentVolumeClaim", "claimName"});
    if (claim.empty()) continue;
    const Json* object = api.peek(res::kPersistentVolumeClaim, {key.ns, claim});
    if (object == nullptr || core::get_string(*object, {"status", "phase"}) != "Bound") return out;
  }
  for (const auto& [name, stored] : api.store().all("nodes")) {
    const Json& node = stored->body;
    const Json cordon{{"key", "node.kubernetes.io/unschedulable"}, {"effect", "NoSchedule"}};
    if (core::get_bool(node, {"spec", "unschedulable"}) && tolerations_of(pod, cordon).empty()) continue;
    if (!is_ready(node)) continue;
    const Json selector = pod["spec"].value("nodeSelector", Json::object());
    if (!core::contains(node["metadata"].value("labels", Json::object()), selector)) continue;
    if (!affine(pod, node) || !tolerant(key, pod, name.name) || !tolerates_taints(pod, node)) continue;
    if (!has_room(pod, node)) continue;
    out.push_back(name.name);
  }
  return out;
}

bool Kubelets::Impl::tolerates_taints(const Json& pod, const Json& node) {
  const Json* taints = core::find(node, {"spec", "taints"});
  return taints == nullptr || std::all_of(taints->begin(), taints->end(), [&](const Json& taint) {
           return taint.value("effect", "") == "PreferNoSchedule" || !tolerations_of(pod, taint).empty();
         });
}

/// Evaluates required node affinity: at least one term must match, and a term matches if all its requirements do. An empty term
/// matches no node.
bool Kubelets::Impl::affine(const Json& pod, const Json& node) {
  const Json* terms = core::find(pod, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"});
  if (terms == nullptr || !terms->contains("nodeSelectorTerms")) return true;
  const Json labels = node["metadata"].value("labels", Json::object());
  const Json fields{{"metadata.name", node["metadata"]["name"]}};
  return std::ranges::any_of((*terms)["nodeSelectorTerms"], [&](const Json& term) {
    const Json by_label = term.value("matchExpressions", Json::array()), by_field = term.value("matchFields", Json::array());
    return (!by_label.empty() || !by_field.empty()) &&
           std::ranges::all_of(by_label, [&](const Json& one) { return meets(one, labels); }) &&
           std::ranges::all_of(by_field, [&](const Json& one) { return meets(one, fields); });
  });
}

/// Reports whether the node has room for the pod's requests beside the requests of its other pods. A node without
/// status.allocatable has room for every pod.
bool Kubelets::Impl::has_room(const Json& pod, const Json& node) {
  const Json* allocatable = core::find(node, {"status", "allocatable"});
  if (allocatable == nullptr) return true;
  Amounts left = amounts(*allocatable);
  for (const kube::Key& key : api.store().pods_on(core::get_string(node, {"metadata", "name"}))) {
    const StoredPtr other = api.store().find("pods", key);
    if (!other || ended(other->body)) continue;
    for (const auto& [name, amount] : requests(other->body)) left[name] -= amount;
  }
  return std::ranges::all_of(requests(pod),
                             [&](const auto& wanted) { return wanted.second <= 0 || wanted.second <= left[wanted.first]; });
}

/// Reports whether the pod's required anti-affinity allows the node. Every rule is treated as a rule for the pod's namespace
/// with the host name as its topologyKey.
bool Kubelets::Impl::tolerant(const kube::Key& key, const Json& pod, const std::string& node) {
  const Json* rules =
      core::find(pod, {"spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"});
  if (rules == nullptr) return true;
  for (const auto& [other_key, other] : api.store().all("pods")) {
    if (other_key.ns != key.ns || core::get_string(other->body, {"spec", "nodeName"}) != node || ended(other->body)) continue;
    for (const Json& rule : *rules) {
      if (selects(rule.value("labelSelector", Json::object()), other->body["metadata"].value("labels", Json::object())))
        return false;
    }
  }
  return true;
}

}  // namespace sim
