// The status that a kubelet reports for its pods.
#include <algorithm>
#include <utility>

#include "core/hash.hpp"
#include "sim/kube/kubelet_parts.hpp"

namespace sim {

using core::Duration;
using core::Json;
namespace res = kube::resources;

void Kubelets::Impl::set_condition(Json& pod, Json condition, const std::string& at) {
  Json& conditions = pod["status"]["conditions"];
  if (!conditions.is_array()) conditions = Json::array();
  for (Json& have : conditions) {
    if (have["type"] != condition["type"]) continue;
    condition["lastTransitionTime"] = have["status"] == condition["status"] ? have["lastTransitionTime"] : Json(at);
    condition["lastProbeTime"] = nullptr;
    have = std::move(condition);
    return;
  }
  condition["lastTransitionTime"] = at;
  condition["lastProbeTime"] = nullptr;
  conditions.push_back(std::move(condition));
}

Json Kubelets::Impl::container_status(const Container& c) {
  const std::string image = core::get_string(c.spec, {"image"});
  Json status{{"name", c.name()},
              {"image", image},
              {"imageID", c.started_once ? "sha256:" + core::sha256_hex(image) : ""},
              {"ready", c.init && !c.sidecar ? c.done() : c.ready},
              {"started", (c.process || c.replaced) && c.started},
              {"restartCount", c.restarts},
              {"lastState", Json::object()}};
  if (c.process || c.replaced) {
    status["state"] = {{"running", {{"startedAt", c.started_at}}}};
  } else if (c.terminated && c.waiting.empty()) {
    status["state"] = {{"terminated", *c.terminated}};
  } else {
    Json waiting{{"reason", c.waiting.empty() ? "ContainerCreating" : c.waiting}};
    if (!c.message.empty()) waiting["message"] = c.message;
    status["state"] = {{"waiting", std::move(waiting)}};
    if (c.terminated) status["lastState"] = {{"terminated", *c.terminated}};
  }
  if (c.last_terminated && status["lastState"].empty()) status["lastState"] = {{"terminated", *c.last_terminated}};
  return status;
}

std::string Kubelets::Impl::phase(const Pod& pod) {
  if (!pod.failed_reason.empty()) return "Failed";
  // Between two runs of a container, the pod stays Running, because Succeeded and Failed are final.
  bool started = false, all_ended = true, all_well = true;
  for (const Container& c : pod.containers) {
    if (c.ephemeral) continue;
    const bool over = c.terminated && !c.process && (pod.stopping || !starts_again(pod, c));
    if (c.init && !c.sidecar && over && !c.done() && !pod.stopping) return "Failed";
    if (c.init) continue;
    started = started || c.started_once;
    all_ended = all_ended && over;
    all_well = all_well && c.done();
  }
  if (started && all_ended) return all_well ? "Succeeded" : "Failed";
  return started ? "Running" : "Pending";
}

/// Reports the state of the pod, as a kubelet's status manager does. The API server gets a state with a delay, and only the
/// latest state. The kubelet's own decisions do not wait for the report.
void Kubelets::Impl::report(const PodPtr& pod) {
  pod->reported_at = now();
  if (std::exchange(pod->reporting, true)) return;
  const Duration slowest = random.chance(0.1) ? options.slowest_report : options.most_report;
  later(between(options.least_report, slowest), [weak = std::weak_ptr<Pod>(pod)](Impl& self) {
    const PodPtr held = weak.lock();
    if (!held) return;
    held->reporting = false;
    self.write_status(held);
  });
}

void Kubelets::Impl::write_status(const PodPtr& pod) {
  if (pod->gone || !connected(pod->node)) return;
  const StoredPtr stored = api.store().find("pods", pod->key);
  if (!stored || core::get_string(stored->body, {"metadata", "uid"}) != pod->uid) return;
  const std::string& at = pod->reported_at;
  std::string now_phase = phase(*pod);
  // The pod was torn down before any main container had started.
  const bool lost = pod->torn_down && now_phase == "Pending";
  bool initialized = true, ready = now_phase == "Running";
  Json inits = Json::array(), mains = Json::array(), added = Json::array();
  for (const Container& c : pod->containers) {
    if (c.ephemeral) {
      added.push_back(container_status(c));
    } else if (c.init) {
      initialized = initialized && (c.sidecar ? c.started_once : c.done());
      if (c.sidecar) ready = ready && c.ready;
      inits.push_back(container_status(c));
    } else {
      ready = ready && c.ready;
      mains.push_back(container_status(c));
      if (lost && !pod->object["spec"].contains("initContainers"))
        mains.back()["state"] = {{"terminated", {{"exitCode", 137}, {"reason", "ContainerStatusUnknown"}}}};
    }
  }
  const auto condition = [](const char* type, bool value, const char* reason) {
    Json out{{"type", type}, {"status", value ? "True" : "False"}};
    if (*reason != '\0') out["reason"] = reason;
    return out;
  };
  const bool done = now_phase == "Succeeded";
  const char* unready = ready ? "" : done ? "PodCompleted" : now_phase == "Failed" ? "PodFailed" : "ContainersNotReady";
  if (lost) now_phase = "Failed";
  // A pod that ends by itself gets its last phase only when its sandbox has ended too.
  if ((done || now_phase == "Failed") && !pod->stopping && pod->failed_reason.empty() && !pod->torn_down) {
    now_phase = core::get_string(stored->body, {"status", "phase"});
    later(between(Duration{20}, Duration{300}), pod, [](Impl& self, const PodPtr& p) {
      p->torn_down = true;
      self.report(p);
    });
  }
  api.modify(
      res::kPod, pod->key,
      [&](Json& p) {
        set_condition(p, condition("PodReadyToStartContainers", pod->mounted, ""), at);
        set_condition(p,
                      condition("Initialized", initialized,
                                !initialized ? "ContainersNotInitialized"
                                : done       ? "PodCompleted"
                                             : ""),
                      at);
        set_condition(p, condition("Ready", ready, unready), at);
        set_condition(p, condition("ContainersReady", ready, unready), at);
        set_condition(p, {{"type", "PodScheduled"}, {"status", "True"}}, at);
        // Moves PodScheduled, which the scheduler wrote first, to the end of the list.
        Json& conditions = p["status"]["conditions"];
        const auto scheduled =
            std::find_if(conditions.begin(), conditions.end(), [](const Json& c) { return c["type"] == "PodScheduled"; });
        std::rotate(scheduled, scheduled + 1, conditions.end());
        Json& status = p["status"];
        status["phase"] = now_phase;
        status["startTime"] = pod->start_time;
        status["hostIP"] = "192.0.2.1";
        if (pod->mounted) {
          status["podIP"] = pod->ip;
          status["podIPs"] = Json::array({Json{{"ip", pod->ip}}});
        }
        if (!inits.empty()) status["initContainerStatuses"] = inits;
        status["containerStatuses"] = mains;
        if (!added.empty()) status["ephemeralContainerStatuses"] = added;
        if (!pod->failed_reason.empty()) {
          status["reason"] = pod->failed_reason;
          status["message"] = "The node was low on resource: memory.";
        }
      },
      kubelet(pod->node), "status");
}

}  // namespace sim
