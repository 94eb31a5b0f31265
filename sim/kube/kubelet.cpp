#include "sim/kube/kubelet.hpp"

#include <chrono>
#include <utility>

#include "sim/kube/kubelet_parts.hpp"

namespace sim {

using core::Duration;
using core::Json;
namespace res = kube::resources;

const kube::Key& PodView::key() const {
  return state_->key;
}
const std::string& PodView::uid() const {
  return state_->uid;
}
const std::string& PodView::node() const {
  return state_->node;
}
std::int64_t PodView::machine_started() const {
  return state_->machine_started;
}
const std::string& PodView::ip() const {
  return state_->ip;
}
const Json& PodView::object() const {
  return state_->object;
}

std::string PodView::hostname() const {
  if (core::get_bool(state_->object, {"spec", "hostNetwork"})) return state_->node;
  return core::get_string(state_->object, {"spec", "hostname"}, state_->key.name);
}

const Json* PodView::container(const std::string& name) const {
  const Container* found = state_->find(name);
  return found == nullptr ? nullptr : &found->spec;
}

std::vector<std::string> PodView::args(const std::string& container_name) const {
  std::vector<std::string> out;
  const Json* spec = container(container_name);
  if (spec == nullptr || !spec->contains("args")) return out;
  for (const Json& arg : (*spec)["args"]) out.push_back(arg.get<std::string>());
  return out;
}

std::map<std::string, std::string> PodView::env(const std::string& container_name) const {
  const Container* found = state_->find(container_name);
  return found == nullptr ? std::map<std::string, std::string>{} : found->env;
}

std::pair<std::map<std::string, std::string>, std::string> PodView::mounted(const std::string& container_name,
                                                                            const std::string& path) const {
  const Json* spec = container(container_name);
  if (spec == nullptr || !spec->contains("volumeMounts")) return {};
  const Json* best = nullptr;
  for (const Json& mount : (*spec)["volumeMounts"]) {
    const std::string at = core::get_string(mount, {"mountPath"});
    if (path != at && !path.starts_with(at + "/")) continue;
    if (best == nullptr || at.size() > core::get_string(*best, {"mountPath"}).size()) best = &mount;
  }
  if (best == nullptr) return {};
  const auto volume = state_->volumes.find(core::get_string(*best, {"name"}));
  if (volume == state_->volumes.end()) return {};
  const std::string at = core::get_string(*best, {"mountPath"});
  std::string inside = path == at ? "" : path.substr(at.size() + 1);
  if (const std::string sub = core::get_string(*best, {"subPath"}); !sub.empty())
    inside = inside.empty() ? sub : sub + "/" + inside;
  return {volume->second, inside};
}

std::optional<std::string> PodView::file(const std::string& container_name, const std::string& path) const {
  const auto [volume, inside] = mounted(container_name, path);
  const auto file = volume.find(inside);
  return file == volume.end() ? std::nullopt : std::optional(file->second);
}

std::map<std::string, std::string> PodView::files(const std::string& container_name, const std::string& mount_path) const {
  return mounted(container_name, mount_path).first;
}

void PodView::changed() const {
  if (state_->on_changed) state_->on_changed();
}

void Kubelets::Impl::set_node_ready(const std::string& name, const char* status, const char* reason) {
  const std::string at = now();
  api.modify(
      res::kNode, {"", name},
      [&](Json& node) {
        set_condition(node, {{"type", "Ready"}, {"status", status}, {"reason", reason}}, at);
      },
      kubelet(name), "status");
}

void Kubelets::Impl::lose(const std::string& name) {
  const std::uint64_t number = ++nodes[name].outage;
  later(options.node_grace, [name, number](Impl& self) {
    if (!self.nodes.contains(name) || self.nodes[name].outage != number || self.connected(name)) return;
    self.set_node_ready(name, "Unknown", "NodeStatusUnknown");
  });
}

void Kubelets::Impl::tell_accident(const std::string& pod, Accident what) const {
  if (on_accident) on_accident(pod, what);
}

void Kubelets::Impl::tell_accidents(const std::string& node, Accident what) const {
  for (const auto& [uid, pod] : pods) {
    if (pod->node == node) tell_accident(uid, what);
  }
}

void Kubelets::Impl::crash(const std::string& name) {
  nodes[name].running = false;
  tell_accidents(name, Accident::kMachineOff);
  for (const auto& [uid, pod] : pods) {
    if (pod->node != name) continue;
    for (Container& container : pod->containers) container.process.reset();
  }
  lose(name);
}

/// Handles the return of a node's kubelet. The kubelet drops pods that the API server no longer has, reports or restarts its
/// other pods, and notices new pods.
void Kubelets::Impl::come_back(const std::string& name, bool restarted) {
  ++nodes[name].outage;
  if (restarted) {
    nodes[name].started = std::chrono::duration_cast<std::chrono::seconds>(api.loop().clock().wall().since_epoch).count();
  }
  set_node_ready(name, "True", "KubeletReady");
  std::vector<PodPtr> mine;
  for (const auto& [uid, pod] : pods) {
    if (pod->node == name) mine.push_back(pod);
  }
  for (const PodPtr& pod : mine) {
    const Json* object = api.peek(res::kPod, pod->key);
    if (object == nullptr || core::get_string(*object, {"metadata", "uid"}) != pod->uid) {
      drop(pod);
      continue;
    }
    if (restarted) {
      restart_pod(pod);
      continue;
    }
    report(pod);
  }
  for (const kube::Key& key : api.store().pods_on(name)) notice(key);
  for (const PodPtr& pod : mine) {
    if (!pod->gone) sync_in(pod, Duration{10});
  }
}

/// Restarts the containers of a pod whose machine was switched off.
void Kubelets::Impl::restart_pod(const PodPtr& pod) {
  pod->machine_started = nodes[pod->node].started;
  for (Container& container : pod->containers) {
    container.starting = container.ready = container.started = container.killing = container.replaced = false;
    container.backoffs = container.started_once ? 1 : 0;
    if (container.started_once && !container.terminated) {
      container.terminated =
          Json{{"exitCode", 255}, {"reason", "Unknown"}, {"startedAt", container.started_at}, {"finishedAt", now()}};
    }
    container.backing_off = false;
    if (container.waiting == "CrashLoopBackOff") container.waiting.clear();
    if (container.init && !container.sidecar && container.done()) container.terminated.reset();
  }
  pod->syncing = false;
  if (pod->stopping) {
    pod->stopping = false;
    return;
  }
  if (!pod->mounted)
    later(between(options.least_start, options.most_start), pod, [](Impl& self, const PodPtr& p) { self.mount(p); });
  if (pod->mounted) plan_refresh(pod);
}

Kubelets::Kubelets(KubeApi& api, SeededRandom random, KubeletOptions options)
    : impl_(std::make_shared<Impl>(api, std::move(random), options)) {
  api.store().listen([weak = std::weak_ptr<Impl>(impl_)](const std::string& table, const ChangePtr& change) {
    if (const auto self = weak.lock()) self->on_change(table, change);
  });
}

Kubelets::~Kubelets() {
  end_processes();
}

void Kubelets::end_processes() {
  // The destructor of a process can call the kubelet, so all pods are marked as gone and removed first.
  for (const auto& [uid, pod] : impl_->pods) pod->gone = true;
  const auto pods = std::exchange(impl_->pods, {});
  for (const auto& [uid, pod] : pods) pod->containers.clear();
}

void Kubelets::add_node(const std::string& name, const kube::StringMap& labels, const Json& allocatable) {
  impl_->nodes[name] = {};
  Json node{{"metadata", {{"name", name}, {"labels", {{"kubernetes.io/hostname", name}}}}}, {"spec", Json::object()}};
  for (const auto& [key, value] : labels) node["metadata"]["labels"][key] = value;
  (void)impl_->api.create(res::kNode, node, Impl::kubelet(name));
  if (allocatable.is_object()) {
    impl_->api.modify(
        res::kNode, {"", name}, [&](Json& made) { made["status"]["capacity"] = made["status"]["allocatable"] = allocatable; },
        Impl::kubelet(name), "status");
  }
  // A node that was deleted and is soon created again still has its pods.
  if (impl_->api.store().pods_on(name).empty())
    impl_->set_node_ready(name, "True", "KubeletReady");
  else
    impl_->come_back(name, true);
}

void Kubelets::add_image(const std::string& image) {
  impl_->images_limited = true;
  impl_->images.insert(image);
}
void Kubelets::preload_image(const std::string& image) {
  impl_->preloaded.insert(image);
  if (impl_->images_limited) impl_->images.insert(image);
}
void Kubelets::set_process_factory(ProcessFactory factory) {
  impl_->factory = std::move(factory);
}
void Kubelets::set_on_accident(std::function<void(const std::string& pod, Accident what)> call) {
  impl_->on_accident = std::move(call);
}

void Kubelets::crash_node(const std::string& name) {
  impl_->crash(name);
}
void Kubelets::restart_node(const std::string& name) {
  impl_->nodes[name].running = true;
  impl_->nodes[name].connected = true;
  impl_->come_back(name, true);
}
void Kubelets::cut_node(const std::string& name) {
  impl_->nodes[name].connected = false;
  impl_->tell_accidents(name, Accident::kMachineCut);
  impl_->lose(name);
}
void Kubelets::heal_node(const std::string& name) {
  impl_->nodes[name].connected = true;
  impl_->come_back(name, false);
}

void Kubelets::delete_node(const std::string& name) {
  impl_->crash(name);
  (void)impl_->api.remove(res::kNode, {"", name});
  impl_->later(impl_->options.pod_gc, [name](Impl& self) {
    if (self.api.peek(res::kNode, {"", name})) return;
    for (const kube::Key& key : self.api.store().pods_on(name)) {
      Deletion deletion;
      deletion.grace_seconds = 0;
      (void)self.api.remove(
          res::kPod, key, deletion,
          {"system:serviceaccount:kube-system:pod-garbage-collector", "kube-controller-manager", false, false});
    }
  });
}

void Kubelets::load_node(const std::string& name, bool loaded) {
  impl_->nodes[name].loaded = loaded;
  std::vector<std::function<void()>> calls;
  for (const auto& [uid, pod] : impl_->pods) {
    if (pod->node == name && pod->on_changed) calls.push_back(pod->on_changed);
  }
  for (const auto& call : calls) call();
}

void Kubelets::preempt(const kube::Key& key) {
  const Caller scheduler{"system:kube-scheduler", "kube-scheduler", false, false};
  KubeApi& api = impl_->api;
  const Json* pod = api.peek(res::kPod, key);
  if (pod == nullptr) return;
  Deletion deletion;
  deletion.uid = core::get_string(*pod, {"metadata", "uid"});
  api.modify(
      res::kPod, key, [&](Json& p) { api.disrupt(p, "PreemptionByScheduler", "kube-scheduler: preempting"); }, scheduler,
      "status");
  (void)api.remove(res::kPod, key, deletion, scheduler);
}

void Kubelets::fail_pod(const kube::Key& key, const std::string& reason) {
  for (const auto& [uid, pod] : impl_->pods) {
    if (pod->key != key || pod->stopping) continue;
    impl_->tell_accident(uid, Accident::kFailed);
    pod->failed_reason = reason;
    for (Container& container : pod->containers) {
      if (container.process) {
        container.process.reset();
        container.ready = false;
        container.terminated =
            Json{{"exitCode", 137}, {"reason", "Error"}, {"startedAt", container.started_at}, {"finishedAt", impl_->now()}};
      }
    }
    impl_->report(pod);
    return;
  }
}

Process* Kubelets::find_process(const kube::Key& pod, const std::string& container) const {
  for (const auto& [uid, held] : impl_->pods) {
    if (held->key != pod) continue;
    const Container* found = held->find(container);
    if (found != nullptr && found->process) return found->process.get();
  }
  return nullptr;
}

std::vector<kube::Key> Kubelets::running() const {
  std::vector<kube::Key> out;
  for (const auto& [uid, pod] : impl_->pods) {
    if (Impl::runs(*pod)) out.push_back(pod->key);
  }
  return out;
}

}  // namespace sim
