// The life of a pod under its kubelet: adopted, started container by container, probed, and stopped.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "sim/kube/kubelet_parts.hpp"

namespace sim {

using core::Duration;
using core::Json;
namespace res = kube::resources;

namespace {

/// A process that runs until it is terminated. In an init container that is not a sidecar, it exits at once with code 0.
class DefaultProcess final : public Process {
 public:
  explicit DefaultProcess(bool ends) : ends_(ends) {}
  [[nodiscard]] std::optional<int> exit_code() const override { return ends_ ? std::optional(0) : std::nullopt; }

 private:
  bool ends_;
};

}  // namespace

/// Handles a new or changed pod on a node that is connected.
void Kubelets::Impl::notice(const kube::Key& key) {
  const StoredPtr stored = api.store().find("pods", key);
  if (!stored) return;
  const Json& object = stored->body;
  const std::string node = core::get_string(object, {"spec", "nodeName"});
  if (!connected(node)) return;
  const std::string uid = core::get_string(object, {"metadata", "uid"});
  const auto it = pods.find(uid);
  if (it == pods.end()) {
    if (ended(object) && !terminating(object)) return;
    return adopt(key, object);
  }
  const PodPtr pod = it->second;
  const bool touched = pod->object["metadata"].value("annotations", Json()) != object["metadata"].value("annotations", Json());
  pod->object = object;
  const bool added = add_ephemeral(*pod);
  if (added && pod->mounted) sync_in(pod, between(Duration{10}, Duration{300}));
  if ((touched || added) && pod->mounted) refresh_files_in(pod, between(Duration{100}, Duration{500}));
  if (terminating(object)) return stop(pod);
}

/// Adds the ephemeral containers that were added to an existing pod.
bool Kubelets::Impl::add_ephemeral(Pod& pod) {
  bool added = false;
  for (const Json& spec : pod.object["spec"].value("ephemeralContainers", Json::array())) {
    if (pod.find(core::get_string(spec, {"name"})) != nullptr) continue;
    Container container;
    container.spec = spec;
    container.ephemeral = added = true;
    pod.containers.push_back(std::move(container));
  }
  return added;
}

void Kubelets::Impl::adopt(const kube::Key& key, const Json& object) {
  auto pod = std::make_shared<Pod>();
  pod->key = key;
  pod->uid = core::get_string(object, {"metadata", "uid"});
  pod->node = core::get_string(object, {"spec", "nodeName"});
  pod->machine_started = nodes[pod->node].started;
  pod->object = object;
  pod->start_time = now();
  pod->ip = fmt::format("10.244.{}.{}", (last_ip >> 8) & 255, last_ip & 255);
  ++last_ip;
  for (const char* list : {"initContainers", "containers"}) {
    for (const Json& spec : object["spec"].value(list, Json::array())) {
      Container container;
      container.spec = spec;
      container.init = std::string_view(list) == "initContainers";
      container.sidecar = container.init && core::get_string(spec, {"restartPolicy"}) == "Always";
      if (object["spec"].contains("initContainers")) container.waiting = "PodInitializing";
      pod->containers.push_back(std::move(container));
    }
  }
  add_ephemeral(*pod);
  pod->on_changed = [weak = weak_from_this(), held = std::weak_ptr<Pod>(pod)] {
    const auto self = weak.lock();
    const PodPtr p = held.lock();
    if (self && p && !p->gone) self->sync_in(p, self->between(Duration{10}, Duration{1000}));
  };
  pods[pod->uid] = pod;
  if (terminating(object)) return stop(pod);
  later(between(options.least_start, options.most_start), pod, [](Impl& self, const PodPtr& p) { self.mount(p); });
}

void Kubelets::Impl::mount(const PodPtr& pod) {
  if (pod->stopping) return;
  std::string missing;
  auto files = read_volumes(*pod, missing);
  if (!files) {
    report(pod);  // only an event says what is missing
    return later(between(Duration{500}, Duration{2500}), pod, [](Impl& self, const PodPtr& p) { self.mount(p); });
  }
  pod->volumes = std::move(*files);
  pod->mounted = true;
  plan_refresh(pod);
  sync(pod);
}

void Kubelets::Impl::sync_in(const PodPtr& pod, Duration delay) {
  if (std::exchange(pod->syncing, true)) return;
  later(delay, [weak = std::weak_ptr<Pod>(pod)](Impl& self) {
    const PodPtr held = weak.lock();
    if (!held) return;
    held->syncing = false;
    if (!held->gone && self.able(*held)) self.sync(held);
  });
}

/// Reports whether an ended container starts again, if its pod is not being stopped.
bool Kubelets::Impl::starts_again(const Pod& pod, const Container& container) {
  if (container.ephemeral) return false;
  if (container.sidecar) return true;
  const std::string policy = core::get_string(pod.object, {"spec", "restartPolicy"}, "Always");
  return policy != "Never" && !(container.done() && (container.init || policy == "OnFailure"));
}

/// Starts the containers that may start, and checks the running ones.
void Kubelets::Impl::sync(const PodPtr& pod) {
  if (!pod->mounted) return;
  for (Container& container : pod->containers) observe(pod, container);
  if (!pod->stopping && pod->failed_reason.empty()) start_next(pod);
  report(pod);
  if (pod->stopping) finish_stop(pod);
}

void Kubelets::Impl::start_next(const PodPtr& pod) {
  for (Container& container : pod->containers) {
    if (container.ephemeral && !container.process && !container.starting && !container.terminated) begin(pod, container);
  }
  for (Container& container : pod->containers) {
    if (container.ephemeral || (container.init && container.done())) continue;
    if (!container.process && !container.starting && !container.backing_off &&
        (!container.terminated || starts_again(*pod, container))) {
      begin(pod, container);
    }
    if (!container.init) continue;
    if (container.sidecar && container.process) continue;
    return;  // the next container waits for this one
  }
}

void Kubelets::Impl::begin(const PodPtr& pod, Container& container) {
  container.starting = true;
  Node& node = nodes[pod->node];
  const std::string image = core::get_string(container.spec, {"image"});
  const bool present = node.images.contains(image) || preloaded.contains(image);
  const Duration wait =
      present ? between(options.least_start, options.most_start) : between(options.least_pull, options.most_pull);
  later(wait, pod, [name = container.name()](Impl& self, const PodPtr& p) {
    Container* c = p->find(name);
    if (c == nullptr || p->ends()) return;
    self.launch(p, *c);
  });
}

void Kubelets::Impl::launch(const PodPtr& pod, Container& container) {
  container.starting = false;
  container.replaced = false;
  const std::string image = core::get_string(container.spec, {"image"});
  if (images_limited && !images.contains(image)) {
    container.waiting = container.waiting == "ErrImagePull" ? "ImagePullBackOff" : "ErrImagePull";
    container.message = fmt::format("failed to pull and unpack image \"{}\": not found", image);
    container.starting = true;  // until the next pull
    report(pod);
    return later(Duration{10000}, pod, [name = container.name()](Impl& self, const PodPtr& p) {
      Container* c = p->find(name);
      if (c == nullptr || p->ends()) return;
      c->starting = false;
      self.sync(p);
    });
  }
  nodes[pod->node].images.insert(image);
  std::string problem;
  auto env = read_env(*pod, container.spec, problem);
  if (!env) {
    container.waiting = "CreateContainerConfigError";
    container.message = problem;
    container.starting = true;
    report(pod);
    return later(Duration{5000}, pod, [name = container.name()](Impl& self, const PodPtr& p) {
      Container* c = p->find(name);
      if (c == nullptr || p->ends()) return;
      c->starting = false;
      self.sync(p);
    });
  }
  container.env = std::move(*env);
  container.waiting.clear();
  container.message.clear();
  if (container.terminated) container.last_terminated = std::exchange(container.terminated, std::nullopt);
  if (std::exchange(container.started_once, true)) ++container.restarts;
  container.backing_off = false;
  container.started_at = now();
  container.process = factory ? factory(PodView(pod), container.name()) : nullptr;
  if (!container.process) container.process = std::make_unique<DefaultProcess>(container.init && !container.sidecar);
  container.started = !container.probed("startupProbe");
  container.failing.reset();
  container.killing = false;
  container.ready = container.started && !container.probed("readinessProbe");
  if (!container.started) {
    const std::chrono::seconds first(core::get_int(container.spec, {"startupProbe", "initialDelaySeconds"}) + 1);
    later_in_run(first + container.failing_time("startupProbe"), pod, container, [](Impl& self, const PodPtr& p, Container& c) {
      c.started = c.started || c.process->started();
      if (!c.started) self.kill_by_probe(p, c, "startupProbe");
    });
  }
  report(pod);
  sync_in(pod, between(Duration{10}, Duration{300}));
}

bool Kubelets::Impl::alive(const Pod& pod, const Container& container) {
  return !nodes[pod.node].loaded && container.process->alive();
}

/// Checks one container: whether it has ended, is ready, is alive.
void Kubelets::Impl::observe(const PodPtr& pod, Container& container) {
  if (!container.process) return;
  if (const auto code = container.process->exit_code())
    return end_container(pod, container, *code, *code == 0 ? "Completed" : "Error");
  if (pod->stopping || container.killing) return;
  container.started = container.started || container.process->started();
  if (!container.started) return;
  if (container.probed("livenessProbe")) look_for_life(pod, container);
  container.ready = !container.probed("readinessProbe") || (!nodes[pod->node].loaded && container.process->ready());
}

/// Calls `call` after the delay, unless the container has ended or its pod is being stopped by then.
void Kubelets::Impl::later_in_run(Duration delay, const PodPtr& pod, const Container& container,
                                  std::function<void(Impl&, const PodPtr&, Container&)> call) {
  later(delay, pod, [name = container.name(), run = container.restarts, call = std::move(call)](Impl& self, const PodPtr& p) {
    Container* c = p->find(name);
    if (c != nullptr && c->process && c->restarts == run && !p->stopping) call(self, p, *c);
  });
}

/// Runs the liveness probe. Only failures in a row count: a success ends the series.
void Kubelets::Impl::look_for_life(const PodPtr& pod, Container& container) {
  if (!alive(*pod, container)) return doubt(pod, container);
  container.failing.reset();
}

/// Handles a failed liveness probe. Ends the container if the probe fails failureThreshold times without an answer in between.
void Kubelets::Impl::doubt(const PodPtr& pod, Container& container) {
  if (container.failing) return;
  const core::MonoTime since = api.loop().clock().mono();
  container.failing = since;
  later_in_run(container.failing_time("livenessProbe"), pod, container, [since](Impl& self, const PodPtr& p, Container& c) {
    if (c.failing != since) return;
    c.failing.reset();
    if (!c.killing && !self.alive(*p, c)) self.kill_by_probe(p, c, "livenessProbe");
  });
}

void Kubelets::Impl::kill_by_probe(const PodPtr& pod, Container& container, const char* probe) {
  container.killing = true;
  tell_accident(pod->uid, Accident::kProbe);
  ask_to_end(pod, container);
  const auto of_pod = core::get_int(pod->object, {"spec", "terminationGracePeriodSeconds"}, 30);
  const std::chrono::seconds grace(core::get_int(container.spec, {probe, "terminationGracePeriodSeconds"}, of_pod));
  later_in_run(grace, pod, container, [](Impl& self, const PodPtr& p, Container& c) {
    self.end_container(p, c, 137, "Error");
    self.sync_in(p, Duration{1});
  });
}

void Kubelets::Impl::end_container(const PodPtr& pod, Container& container, int code, const char* reason) {
  const bool killed = std::exchange(container.killing, false);
  const std::string said = container.process ? container.process->last_words() : "";
  container.process.reset();
  container.terminated =
      Json{{"exitCode", code}, {"reason", reason}, {"startedAt", container.started_at}, {"finishedAt", now()}};
  if (!said.empty()) (*container.terminated)["message"] = said;
  const bool again = !pod->stopping && starts_again(*pod, container);
  // If a failed probe caused the first restart of a container, this restart does not lengthen the delay of later restarts.
  const bool counts = again && (!killed || container.restarts > 0);
  const int before = counts ? container.backoffs++ : 0;
  container.replaced = again && killed && before == 0;
  container.ready = container.ready && container.replaced;
  // The first restart that counts is immediate. Each later restart has a longer delay, up to five minutes.
  if (before == 0) return;
  const Duration backoff = std::min(Duration{10000} * (1 << std::min(before - 1, 5)), Duration{300000});
  container.backing_off = true;
  container.message = fmt::format("back-off {}ms restarting failed container", backoff.count());
  back_off(pod, container.name(), api.loop().clock().mono() + backoff);
}

/// Shows a container that waits for its restart as terminated until the next sync of the kubelet. Then shows CrashLoopBackOff
/// until the first sync after the back-off, which starts the container.
void Kubelets::Impl::back_off(const PodPtr& pod, const std::string& name, core::MonoTime until) {
  later(between(Duration{10000}, Duration{15000}), pod, [name, until](Impl& self, const PodPtr& p) {
    Container* c = p->find(name);
    if (c == nullptr || p->ends() || c->process || c->starting) return;
    c->waiting = "CrashLoopBackOff";
    c->backing_off = self.api.loop().clock().mono() < until;
    if (c->backing_off) self.back_off(p, name, until);
    self.sync(p);
  });
}

void Kubelets::Impl::stop(const PodPtr& pod) {
  const auto grace = std::chrono::seconds(core::get_int(pod->object, {"metadata", "deletionGracePeriodSeconds"}, 30));
  const std::uint64_t number = ++pod->refresh;
  // A second deletion can shorten the grace period.
  later(grace, pod, [number](Impl& self, const PodPtr& p) {
    if (p->refresh == number) self.kill(p);
  });
  if (std::exchange(pod->stopping, true)) return;
  for (Container& container : pod->containers) {
    container.replaced = false;
    // Drops the reason why the container did not start.
    container.waiting = container.terminated || container.process        ? ""
                        : pod->object["spec"].contains("initContainers") ? "PodInitializing"
                                                                         : "ContainerCreating";
    if (container.process && !container.killing) ask_to_end(pod, container);
  }
  pod->mounted = true;
  sync_in(pod, Duration{1});
}

void Kubelets::Impl::ask_to_end(const PodPtr& pod, Container& container) {
  const bool hooked = core::find(container.spec, {"lifecycle", "preStop"}) != nullptr;
  if (hooked) container.process->pre_stop();
  later(Duration{hooked ? 100 : 1}, pod, [name = container.name()](Impl& self, const PodPtr& p) { self.terminate(p, name); });
}

void Kubelets::Impl::terminate(const PodPtr& pod, const std::string& name) {
  Container* container = pod->find(name);
  if (container == nullptr || !container->process) return;
  container->process->terminate();
  if (!container->process->ends_at_once()) return sync_in(pod, Duration{10});
  later(Duration{100}, pod, [name](Impl& self, const PodPtr& p) {
    Container* c = p->find(name);
    if (c == nullptr || !c->process) return;
    self.end_container(p, *c, 0, "Completed");
    self.sync_in(p, Duration{1});
  });
}

void Kubelets::Impl::kill(const PodPtr& pod) {
  for (Container& container : pod->containers) {
    if (container.process) end_container(pod, container, 137, "Error");
  }
  sync_in(pod, Duration{1});
}

void Kubelets::Impl::finish_stop(const PodPtr& pod) {
  if (runs(*pod) || !connected(pod->node)) return;
  later(between(Duration{20}, Duration{300}), pod, [](Impl& self, const PodPtr& p) {
    if (!self.connected(p->node)) return;
    p->torn_down = true;
    self.write_status(p);  // the kubelet reports the last state before it deletes the pod
    Deletion deletion;
    deletion.uid = p->uid;
    deletion.grace_seconds = 0;
    if (self.api.remove(res::kPod, p->key, deletion, kubelet(p->node))) return;
    const Json* still = self.api.peek(res::kPod, p->key);
    if (still == nullptr || core::get_string(*still, {"metadata", "uid"}) != p->uid) return;
    self.sync_in(p, Duration{1000});  // refused for now
  });
}

void Kubelets::Impl::forget(const std::string& uid) {
  const auto it = pods.find(uid);
  if (it == pods.end()) return;
  // A node without connection cannot know that the pod is deleted. The pod's processes continue until the node reconnects.
  if (!connected(it->second->node) && able(*it->second)) return;
  drop(it->second);
}

void Kubelets::Impl::drop(const PodPtr& pod) {
  pod->gone = true;
  for (Container& container : pod->containers) container.process.reset();
  pods.erase(pod->uid);
}

}  // namespace sim
