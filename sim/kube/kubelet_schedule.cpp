// The scheduler, which selects a node for each pod, and the reactions of scheduler and kubelets to changes.
#include <algorithm>
#include <utility>

#include "sim/kube/controllers.hpp"
#include "sim/kube/kubelet_parts.hpp"

namespace sim {

using core::Duration;
using core::Json;
namespace res = kube::resources;

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
  if (!pod["spec"].value("schedulingGates", Json::array()).empty()) return out;
  for (const auto& [name, stored] : api.store().all("nodes")) {
    const Json& node = stored->body;
    const Json cordon{{"key", "node.kubernetes.io/unschedulable"}, {"effect", "NoSchedule"}};
    if (core::get_bool(node, {"spec", "unschedulable"}) && tolerations_of(pod, cordon).empty()) continue;
    if (!is_ready(node)) continue;
    const Json selector = pod["spec"].value("nodeSelector", Json::object());
    if (!core::contains(node["metadata"].value("labels", Json::object()), selector)) continue;
    if (!affine(pod, name.name) || !tolerant(key, pod, name.name) || !tolerates_taints(pod, node)) continue;
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

/// Evaluates node affinity by name (matchFields), which pods of DaemonSets and bound workers have. Ignores other affinity.
bool Kubelets::Impl::affine(const Json& pod, const std::string& node) {
  const Json* terms = core::find(pod, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"});
  if (terms == nullptr || !terms->contains("nodeSelectorTerms")) return true;
  for (const Json& term : (*terms)["nodeSelectorTerms"]) {
    if (!term.contains("matchFields")) return true;
    for (const Json& field : term["matchFields"]) {
      const Json values = field.value("values", Json::array());
      if (std::find(values.begin(), values.end(), node) != values.end()) return true;
    }
  }
  return false;
}

/// Reports whether the pod's required anti-affinity, which is by host name, allows the node.
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
