#include "sim/kube/kubelet.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/base64.hpp"
#include "core/hash.hpp"
#include "sim/kube/controllers.hpp"

namespace sim {

using core::Duration;
using core::Json;
namespace res = kube::resources;

namespace {

using Files = std::map<std::string, std::string>;

/// One container of a pod as its kubelet knows it.
struct Container {
  Json spec;
  bool init = false;
  bool sidecar = false;  ///< An init container that stays.
  std::unique_ptr<Process> process;
  bool starting = false;
  bool backing_off = false;  ///< Ended, and not yet to be started again.
  bool ready = false;
  bool started = false;   ///< Its startup probe has passed, if it has one. Only then the others are asked.
  bool killing = false;   ///< It is ended because of a probe.
  bool replaced = false;  ///< It was, and is started again before anybody hears that it had ended.
  bool started_once = false;
  std::optional<core::MonoTime> failing;  ///< Since when no liveness probe was answered, if that is not yet for too long.
  int restarts = 0;
  int backoffs = 0;  ///< Restarts that make the next one come later.
  std::string started_at;
  std::string waiting = "ContainerCreating";
  std::string message;
  std::optional<Json> terminated;
  std::optional<Json> last_terminated;
  std::map<std::string, std::string> env;
  bool pulled = false;

  [[nodiscard]] std::string name() const { return core::get_string(spec, {"name"}); }
  [[nodiscard]] bool probed(const char* probe) const { return spec.contains(probe); }
  /// From one failure of a probe to the last that is allowed.
  [[nodiscard]] Duration failing_time(const char* probe) const {
    const auto more = core::get_int(spec, {probe, "failureThreshold"}, 3) - 1;
    return std::chrono::seconds(core::get_int(spec, {probe, "periodSeconds"}, 10) * more);
  }
  [[nodiscard]] bool done() const { return terminated && (*terminated)["exitCode"] == 0; }
};

/// Runs until told to stop; in an init container, ends well at once.
class DefaultProcess final : public Process {
 public:
  explicit DefaultProcess(bool ends) : ends_(ends) {}
  [[nodiscard]] std::optional<int> exit_code() const override { return ends_ ? std::optional(0) : std::nullopt; }

 private:
  bool ends_;
};

}  // namespace

struct PodView::State {
  kube::Key key;
  std::string uid, node, ip;
  std::int64_t machine_started = 0;
  Json object;
  std::vector<Container> containers;     ///< Init containers first.
  std::map<std::string, Files> volumes;  ///< By volume.
  std::function<void()> on_changed;

  // For the kubelet.
  bool stopping = false;
  bool mounted = false;
  bool syncing = false;
  bool reporting = false;
  bool torn_down = false;  ///< All of it has ended, the sandbox too.
  bool gone = false;
  std::string failed_reason;
  /// No container of it is started any more.
  [[nodiscard]] bool ends() const { return stopping || !failed_reason.empty(); }
  std::string start_time;
  std::string reported_at;  ///< When it last had something to report.
  std::uint64_t refresh = 0;

  Container* find(const std::string& name) {
    const auto it = std::find_if(containers.begin(), containers.end(), [&](const Container& c) { return c.name() == name; });
    return it == containers.end() ? nullptr : &*it;
  }
};

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

struct Kubelets::Impl : std::enable_shared_from_this<Kubelets::Impl> {
  Impl(KubeApi& a, SeededRandom r, KubeletOptions o) : api(a), random(std::move(r)), options(o) {}

  using Pod = PodView::State;
  using PodPtr = std::shared_ptr<Pod>;

  struct Node {
    bool running = true;    ///< The machine.
    bool connected = true;  ///< To the API server.
    bool loaded = false;    ///< Probes are not answered in time.
    std::set<std::string> images;
    std::uint64_t outage = 0;
    std::int64_t started = 0;  ///< Seconds of the wall clock.
  };

  KubeApi& api;
  SeededRandom random;
  KubeletOptions options;
  ProcessFactory factory;
  std::function<void(const std::string&, Accident)> on_accident;
  std::map<std::string, Node> nodes;
  std::map<std::string, PodPtr> pods;  ///< By uid: those that a kubelet has taken on.
  std::set<std::string> images;
  std::set<std::string> preloaded;
  bool images_limited = false;
  bool scheduling = false;
  std::uint32_t last_ip = 0;

  Duration between(Duration least, Duration most) { return Duration{random.between(least.count(), most.count())}; }
  std::string now() const { return core::format_rfc3339(api.loop().clock().wall()); }

  void later(Duration delay, std::function<void(Impl&)> call) {
    api.loop().after(delay, [weak = weak_from_this(), call = std::move(call)] {
      if (const auto self = weak.lock()) call(*self);
    });
  }
  /// The same for a pod that its kubelet still has.
  void later(Duration delay, const PodPtr& pod, std::function<void(Impl&, const PodPtr&)> call) {
    later(delay, [weak = std::weak_ptr<Pod>(pod), call = std::move(call)](Impl& self) {
      const PodPtr held = weak.lock();
      if (held && !held->gone && self.able(*held)) call(self, held);
    });
  }

  bool able(const Pod& pod) const {
    const auto it = nodes.find(pod.node);
    return it != nodes.end() && it->second.running;
  }
  bool connected(const std::string& node) const {
    const auto it = nodes.find(node);
    return it != nodes.end() && it->second.running && it->second.connected;
  }

  static Caller kubelet(const std::string& node) { return {"system:node:" + node, "kubelet", false, false}; }

  // --------------------------------------------------------------------------------------------------------------- scheduling

  void on_change(const std::string& table, const ChangePtr& change) {
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

  void schedule_later(Duration more = Duration{0}) {
    if (std::exchange(scheduling, true)) return;
    later(between(options.least_schedule, options.most_schedule) + more, [](Impl& self) {
      self.scheduling = false;
      self.schedule();
    });
  }

  void schedule() {
    std::vector<std::pair<kube::Key, Json>> waiting;
    for (const auto& [key, stored] : api.store().all("pods")) {
      const Json& pod = stored->body;
      if (core::get_string(pod, {"spec", "nodeName"}).empty() && !terminating(pod) && !ended(pod))
        waiting.emplace_back(key, pod);
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

  std::vector<std::string> fitting_nodes(const kube::Key& key, const Json& pod) {
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
      if (core::get_bool(node, {"spec", "unschedulable"}) || !is_ready(node)) continue;
      const Json selector = pod["spec"].value("nodeSelector", Json::object());
      if (!core::contains(node["metadata"].value("labels", Json::object()), selector)) continue;
      if (!affine(pod, name.name) || !tolerant(key, pod, name.name) || !tolerates_taints(pod, node)) continue;
      out.push_back(name.name);
    }
    return out;
  }

  static bool tolerates_taints(const Json& pod, const Json& node) {
    const Json* taints = core::find(node, {"spec", "taints"});
    return taints == nullptr || std::all_of(taints->begin(), taints->end(), [&](const Json& taint) {
             return taint.value("effect", "") == "PreferNoSchedule" || !tolerations_of(pod, taint).empty();
           });
  }

  /// Node affinity by name (matchFields), as DaemonSets and pinned workers have it.
  static bool affine(const Json& pod, const std::string& node) {
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

  /// Required anti-affinity by host name.
  bool tolerant(const kube::Key& key, const Json& pod, const std::string& node) {
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

  // ------------------------------------------------------------------------------------------------------------------ the pods

  /// The kubelet sees a pod that is bound to it, or that changed.
  void notice(const kube::Key& key) {
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
    const bool touched =
        pod->object["metadata"].value("annotations", Json()) != object["metadata"].value("annotations", Json());
    pod->object = object;
    if (touched && pod->mounted) refresh_files_in(pod, between(Duration{100}, Duration{500}));
    if (terminating(object)) return stop(pod);
  }

  void adopt(const kube::Key& key, const Json& object) {
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
    pod->on_changed = [weak = weak_from_this(), held = std::weak_ptr<Pod>(pod)] {
      const auto self = weak.lock();
      const PodPtr p = held.lock();
      if (self && p && !p->gone) self->sync_in(p, self->between(Duration{10}, Duration{1000}));
    };
    pods[pod->uid] = pod;
    if (terminating(object)) return stop(pod);
    later(between(options.least_start, options.most_start), pod, [](Impl& self, const PodPtr& p) { self.mount(p); });
  }

  void mount(const PodPtr& pod) {
    if (pod->stopping) return;
    std::string missing;
    auto files = read_volumes(*pod, missing);
    if (!files) {
      report(pod);  // what is missing stands in an event only
      return later(between(Duration{500}, Duration{2500}), pod, [](Impl& self, const PodPtr& p) { self.mount(p); });
    }
    pod->volumes = std::move(*files);
    pod->mounted = true;
    plan_refresh(pod);
    sync(pod);
  }

  /// The contents of ConfigMap, Secret and projected volumes; nullopt when something that is not optional is missing.
  std::optional<std::map<std::string, Files>> read_volumes(const Pod& pod, std::string& missing) {
    std::map<std::string, Files> out;
    for (const Json& volume : pod.object["spec"].value("volumes", Json::array())) {
      Files files;
      bool complete = true;
      if (volume.contains("configMap"))
        complete = read_source("configMap", volume["configMap"], "name", pod.key.ns, files, missing);
      if (volume.contains("secret"))
        complete = read_source("secret", volume["secret"], "secretName", pod.key.ns, files, missing);
      if (volume.contains("projected")) {
        for (const Json& source : volume["projected"].value("sources", Json::array())) {
          for (const char* kind : {"configMap", "secret"}) {
            if (source.contains(kind))
              complete = read_source(kind, source[kind], "name", pod.key.ns, files, missing) && complete;
          }
        }
      }
      if (!complete) return std::nullopt;
      out[core::get_string(volume, {"name"})] = std::move(files);
    }
    return out;
  }

  bool read_source(const std::string& kind, const Json& source, const char* name_field, const std::string& ns, Files& out,
                   std::string& missing) {
    const std::string name = core::get_string(source, {name_field});
    const bool secret = kind == "secret";
    const Json* object = api.peek(secret ? res::kSecret : res::kConfigMap, {ns, name});
    const bool optional = core::get_bool(source, {"optional"});
    if (object == nullptr) {
      if (!optional)
        missing = fmt::format("MountVolume.SetUp failed: {} \"{}\" not found", secret ? "secret" : "configmap", name);
      return optional;
    }
    const Json data = object->value("data", Json::object());
    const auto content = [&](const std::string& key) {
      const std::string value = data[key].is_string() ? data[key].get<std::string>() : "";
      return secret ? core::base64_decode(value).value_or("") : value;
    };
    if (!source.contains("items")) {
      for (const auto& [key, value] : data.items()) out[key] = content(key);
      return true;
    }
    for (const Json& item : source["items"]) {
      const std::string key = core::get_string(item, {"key"});
      if (data.contains(key)) {
        out[core::get_string(item, {"path"})] = content(key);
      } else if (!optional) {
        missing = fmt::format("references non-existent {} key: {}", secret ? "secret" : "config", key);
        return false;
      }
    }
    return true;
  }

  void plan_refresh(const PodPtr& pod) { refresh_files_in(pod, between(options.least_files, options.most_files)); }

  void refresh_files_in(const PodPtr& pod, Duration delay) {
    const std::uint64_t number = ++pod->refresh;  // only the latest counts
    later(delay, pod, [number](Impl& self, const PodPtr& p) {
      if (p->refresh != number || p->stopping) return;
      if (self.connected(p->node)) self.refresh_files(p);
      self.plan_refresh(p);
    });
  }

  void refresh_files(const PodPtr& pod) {
    std::string missing;
    auto files = read_volumes(*pod, missing);
    if (!files || *files == pod->volumes) return;
    pod->volumes = std::move(*files);
    for (Container& container : pod->containers) {
      if (container.process) container.process->files_changed();
    }
  }

  void sync_in(const PodPtr& pod, Duration delay) {
    if (std::exchange(pod->syncing, true)) return;
    later(delay, [weak = std::weak_ptr<Pod>(pod)](Impl& self) {
      const PodPtr held = weak.lock();
      if (!held) return;
      held->syncing = false;
      if (!held->gone && self.able(*held)) self.sync(held);
    });
  }

  /// Of a container that has ended, in a pod that stays.
  static bool starts_again(const Pod& pod, const Container& container) {
    if (container.sidecar) return true;
    const std::string policy = core::get_string(pod.object, {"spec", "restartPolicy"}, "Always");
    return policy != "Never" && !(container.done() && (container.init || policy == "OnFailure"));
  }

  /// Starts what may be started, and looks at what runs.
  void sync(const PodPtr& pod) {
    if (!pod->mounted) return;
    for (Container& container : pod->containers) observe(pod, container);
    if (!pod->stopping && pod->failed_reason.empty()) start_next(pod);
    report(pod);
    if (pod->stopping) finish_stop(pod);
  }

  void start_next(const PodPtr& pod) {
    for (Container& container : pod->containers) {
      if (container.init && container.done()) continue;
      if (!container.process && !container.starting && !container.backing_off &&
          (!container.terminated || starts_again(*pod, container))) {
        begin(pod, container);
      }
      if (!container.init) continue;
      if (container.sidecar && container.process) continue;
      return;  // the next waits for this one
    }
  }

  void begin(const PodPtr& pod, Container& container) {
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

  void launch(const PodPtr& pod, Container& container) {
    container.starting = false;
    container.replaced = false;
    const std::string image = core::get_string(container.spec, {"image"});
    if (images_limited && !images.contains(image)) {
      container.waiting = container.waiting == "ErrImagePull" ? "ImagePullBackOff" : "ErrImagePull";
      container.message = fmt::format("failed to pull and unpack image \"{}\": not found", image);
      container.starting = true;  // until the next try
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
      later_in_run(first + container.failing_time("startupProbe"), pod, container,
                   [](Impl& self, const PodPtr& p, Container& c) {
                     c.started = c.started || c.process->started();
                     if (!c.started) self.kill_by_probe(p, c, "startupProbe");
                   });
    }
    report(pod);
    sync_in(pod, between(Duration{10}, Duration{300}));
  }

  std::optional<std::map<std::string, std::string>> read_env(const Pod& pod, const Json& container, std::string& problem) {
    std::map<std::string, std::string> out;
    for (const Json& env : container.value("env", Json::array())) {
      const std::string name = core::get_string(env, {"name"});
      if (!env.contains("valueFrom")) {
        out[name] = core::get_string(env, {"value"});
        continue;
      }
      const Json& from = env["valueFrom"];
      if (from.contains("fieldRef")) out[name] = field(pod, core::get_string(from, {"fieldRef", "fieldPath"}));
      if (from.contains("resourceFieldRef")) out[name] = resource(container, from["resourceFieldRef"]);
      for (const char* kind : {"secretKeyRef", "configMapKeyRef"}) {
        if (!from.contains(kind)) continue;
        const bool secret = std::string_view(kind) == "secretKeyRef";
        const std::string object_name = core::get_string(from, {kind, "name"});
        const std::string key = core::get_string(from, {kind, "key"});
        const Json* object = api.peek(secret ? res::kSecret : res::kConfigMap, {pod.key.ns, object_name});
        const Json* value = object == nullptr ? nullptr : core::find(*object, {"data", key});
        if (value == nullptr) {
          if (core::get_bool(from, {kind, "optional"})) continue;
          problem = object == nullptr ? fmt::format("{} \"{}\" not found", secret ? "secret" : "configmap", object_name)
                                      : fmt::format("couldn't find key {} in {}/{}", key, pod.key.ns, object_name);
          return std::nullopt;
        }
        const std::string text = value->is_string() ? value->get<std::string>() : "";
        out[name] = secret ? core::base64_decode(text).value_or("") : text;
      }
    }
    return out;
  }

  static std::string field(const Pod& pod, const std::string& path) {
    if (path == "metadata.name") return pod.key.name;
    if (path == "metadata.namespace") return pod.key.ns;
    if (path == "metadata.uid") return pod.uid;
    if (path == "spec.nodeName") return pod.node;
    if (path == "status.podIP") return pod.ip;
    for (const char* map : {"annotations", "labels"}) {
      const std::string start = fmt::format("metadata.{}['", map);
      if (!path.starts_with(start) || path.size() < start.size() + 2) continue;
      return core::get_string(pod.object, {"metadata", map, path.substr(start.size(), path.size() - start.size() - 2)});
    }
    return "";
  }

  /// Limits in whole cores, or in divisors of 1 or 1Mi; "0" where there is no limit.
  static std::string resource(const Json& container, const Json& ref) {
    const std::string what = core::get_string(ref, {"resource"});
    const std::size_t dot = what.find('.');
    const Json* value = core::find(container, {"resources", what.substr(0, dot), what.substr(dot + 1)});
    if (value == nullptr) return "0";
    const std::string text = value->is_string() ? value->get<std::string>() : value->dump();
    double amount = std::atof(text.c_str());
    if (text.ends_with("m")) amount /= 1000;
    for (const auto& [suffix, factor] : {std::pair{"Ki", 1024.0}, {"Mi", 1048576.0}, {"Gi", 1073741824.0}}) {
      if (text.ends_with(suffix)) amount *= factor;
    }
    if (core::get_string(ref, {"divisor"}) == "1Mi") amount /= 1048576.0;
    return std::to_string(static_cast<long long>(amount + 0.999));
  }

  bool alive(const Pod& pod, const Container& container) { return !nodes[pod.node].loaded && container.process->alive(); }

  /// Looks at one container: has it ended, is it ready, is it alive.
  void observe(const PodPtr& pod, Container& container) {
    if (!container.process) return;
    if (const auto code = container.process->exit_code())
      return end_container(pod, container, *code, *code == 0 ? "Completed" : "Error");
    if (pod->stopping || container.killing) return;
    container.started = container.started || container.process->started();
    if (!container.started) return;
    if (container.probed("livenessProbe")) look_for_life(pod, container);
    container.ready = !container.probed("readinessProbe") || (!nodes[pod->node].loaded && container.process->ready());
  }

  /// Calls unless the container has ended meanwhile, or is being ended.
  void later_in_run(Duration delay, const PodPtr& pod, const Container& container,
                    std::function<void(Impl&, const PodPtr&, Container&)> call) {
    later(delay, pod, [name = container.name(), run = container.restarts, call = std::move(call)](Impl& self, const PodPtr& p) {
      Container* c = p->find(name);
      if (c != nullptr && c->process && c->restarts == run && !p->stopping) call(self, p, *c);
    });
  }

  /// Failures count only one after the other: an answer forgets those before it.
  void look_for_life(const PodPtr& pod, Container& container) {
    if (!alive(*pod, container)) return doubt(pod, container);
    container.failing.reset();
  }

  /// Its liveness probe has failed once: it ends when it fails as often as allowed, without an answer in between.
  void doubt(const PodPtr& pod, Container& container) {
    if (container.failing) return;
    const core::MonoTime since = api.loop().clock().mono();
    container.failing = since;
    later_in_run(container.failing_time("livenessProbe"), pod, container, [since](Impl& self, const PodPtr& p, Container& c) {
      if (c.failing != since) return;
      c.failing.reset();
      if (!c.killing && !self.alive(*p, c)) self.kill_by_probe(p, c, "livenessProbe");
    });
  }

  void kill_by_probe(const PodPtr& pod, Container& container, const char* probe) {
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

  void end_container(const PodPtr& pod, Container& container, int code, const char* reason) {
    const bool killed = std::exchange(container.killing, false);
    container.process.reset();
    container.terminated =
        Json{{"exitCode", code}, {"reason", reason}, {"startedAt", container.started_at}, {"finishedAt", now()}};
    const bool again = !pod->stopping && starts_again(*pod, container);
    // What a probe has ended is started in the same breath, and the first time it does not count.
    const bool counts = again && (!killed || container.restarts > 0);
    const int before = counts ? container.backoffs++ : 0;
    container.replaced = again && killed && before == 0;
    container.ready = container.ready && container.replaced;
    // The first restart comes at once, later ones ever more slowly.
    if (before == 0) return;
    const Duration backoff = std::min(Duration{10000} * (1 << std::min(before - 1, 5)), Duration{300000});
    container.backing_off = true;
    container.message = fmt::format("back-off {}ms restarting failed container", backoff.count());
    back_off(pod, container.name(), api.loop().clock().mono() + backoff);
  }

  /// A container stands as terminated until the kubelet looks again, and as backing off until it looks after the back-off.
  void back_off(const PodPtr& pod, const std::string& name, core::MonoTime until) {
    later(between(Duration{10000}, Duration{15000}), pod, [name, until](Impl& self, const PodPtr& p) {
      Container* c = p->find(name);
      if (c == nullptr || p->ends() || c->process || c->starting) return;
      c->waiting = "CrashLoopBackOff";
      c->backing_off = self.api.loop().clock().mono() < until;
      if (c->backing_off) self.back_off(p, name, until);
      self.sync(p);
    });
  }

  // --------------------------------------------------------------------------------------------------------------- termination

  void stop(const PodPtr& pod) {
    const auto grace = std::chrono::seconds(core::get_int(pod->object, {"metadata", "deletionGracePeriodSeconds"}, 30));
    const std::uint64_t number = ++pod->refresh;
    // A second deletion may shorten the grace.
    later(grace, pod, [number](Impl& self, const PodPtr& p) {
      if (p->refresh == number) self.kill(p);
    });
    if (std::exchange(pod->stopping, true)) return;
    for (Container& container : pod->containers) {
      container.replaced = false;
      // Why it was not started is forgotten.
      container.waiting = container.terminated || container.process        ? ""
                          : pod->object["spec"].contains("initContainers") ? "PodInitializing"
                                                                           : "ContainerCreating";
      if (container.process && !container.killing) ask_to_end(pod, container);
    }
    pod->mounted = true;
    sync_in(pod, Duration{1});
  }

  void ask_to_end(const PodPtr& pod, Container& container) {
    const bool hooked = core::find(container.spec, {"lifecycle", "preStop"}) != nullptr;
    if (hooked) container.process->pre_stop();
    later(Duration{hooked ? 100 : 1}, pod, [name = container.name()](Impl& self, const PodPtr& p) { self.terminate(p, name); });
  }

  void terminate(const PodPtr& pod, const std::string& name) {
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

  void kill(const PodPtr& pod) {
    for (Container& container : pod->containers) {
      if (container.process) end_container(pod, container, 137, "Error");
    }
    sync_in(pod, Duration{1});
  }

  static bool runs(const Pod& pod) {
    return std::any_of(pod.containers.begin(), pod.containers.end(), [](const Container& c) { return c.process != nullptr; });
  }

  void finish_stop(const PodPtr& pod) {
    if (runs(*pod) || !connected(pod->node)) return;
    later(between(Duration{20}, Duration{300}), pod, [](Impl& self, const PodPtr& p) {
      if (!self.connected(p->node)) return;
      p->torn_down = true;
      self.write_status(p);  // the status manager deletes it, after its last state
      Deletion deletion;
      deletion.uid = p->uid;
      deletion.grace_seconds = 0;
      if (self.api.remove(res::kPod, p->key, deletion, kubelet(p->node))) return;
      const Json* still = self.api.peek(res::kPod, p->key);
      if (still == nullptr || core::get_string(*still, {"metadata", "uid"}) != p->uid) return;
      self.sync_in(p, Duration{1000});  // refused for now
    });
  }

  void forget(const std::string& uid) {
    const auto it = pods.find(uid);
    if (it == pods.end()) return;
    // The node cannot know yet: its processes live on until it hears of it.
    if (!connected(it->second->node) && able(*it->second)) return;
    drop(it->second);
  }

  void drop(const PodPtr& pod) {
    pod->gone = true;
    for (Container& container : pod->containers) container.process.reset();
    pods.erase(pod->uid);
  }

  // -------------------------------------------------------------------------------------------------------------------- status

  static void set_condition(Json& pod, Json condition, const std::string& at) {
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

  static Json container_status(const Container& c) {
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

  static std::string phase(const Pod& pod) {
    if (!pod.failed_reason.empty()) return "Failed";
    // What starts again is Running between two starts; a terminal phase is for ever.
    bool started = false, all_ended = true, all_well = true;
    for (const Container& c : pod.containers) {
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

  /// As a kubelet's status manager does: the API server hears of it later, and of the newest state only. Nothing that the
  /// kubelet itself decides waits for this.
  void report(const PodPtr& pod) {
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

  void write_status(const PodPtr& pod) {
    if (pod->gone || !connected(pod->node)) return;
    const StoredPtr stored = api.store().find("pods", pod->key);
    if (!stored || core::get_string(stored->body, {"metadata", "uid"}) != pod->uid) return;
    const std::string& at = pod->reported_at;
    std::string now_phase = phase(*pod);
    // One that ends before it has started.
    const bool lost = pod->torn_down && now_phase == "Pending";
    bool initialized = true, ready = now_phase == "Running";
    Json inits = Json::array(), mains = Json::array();
    for (const Container& c : pod->containers) {
      if (c.init) {
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
    // A pod that ends by itself has its last phase when the rest of it is gone too.
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
          // The scheduler's was there first, and comes last.
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
          if (!pod->failed_reason.empty()) {
            status["reason"] = pod->failed_reason;
            status["message"] = "The node was low on resource: memory.";
          }
        },
        kubelet(pod->node), "status");
  }

  // --------------------------------------------------------------------------------------------------------------------- nodes

  void set_node_ready(const std::string& name, const char* status, const char* reason) {
    const std::string at = now();
    api.modify(
        res::kNode, {"", name},
        [&](Json& node) {
          set_condition(node, {{"type", "Ready"}, {"status", status}, {"reason", reason}}, at);
        },
        kubelet(name), "status");
  }

  void lose(const std::string& name) {
    const std::uint64_t number = ++nodes[name].outage;
    later(options.node_grace, [name, number](Impl& self) {
      if (!self.nodes.contains(name) || self.nodes[name].outage != number || self.connected(name)) return;
      self.set_node_ready(name, "Unknown", "NodeStatusUnknown");
    });
  }

  void tell_accident(const std::string& pod, Accident what) const {
    if (on_accident) on_accident(pod, what);
  }

  void tell_accidents(const std::string& node, Accident what) const {
    for (const auto& [uid, pod] : pods) {
      if (pod->node == node) tell_accident(uid, what);
    }
  }

  void crash(const std::string& name) {
    nodes[name].running = false;
    tell_accidents(name, Accident::kMachineOff);
    for (const auto& [uid, pod] : pods) {
      if (pod->node != name) continue;
      for (Container& container : pod->containers) container.process.reset();
    }
    lose(name);
  }

  /// The kubelet is back: it forgets what it held and takes on what the API server has for it.
  void come_back(const std::string& name, bool restarted) {
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

  /// Containers of a machine that was switched off begin again.
  void restart_pod(const PodPtr& pod) {
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
};

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
  // Processes may call back while they go.
  for (const auto& [uid, pod] : impl_->pods) pod->gone = true;
  const auto pods = std::exchange(impl_->pods, {});
  for (const auto& [uid, pod] : pods) pod->containers.clear();
}

void Kubelets::add_node(const std::string& name, const kube::StringMap& labels) {
  impl_->nodes[name] = {};
  Json node{{"metadata", {{"name", name}, {"labels", {{"kubernetes.io/hostname", name}}}}}, {"spec", Json::object()}};
  for (const auto& [key, value] : labels) node["metadata"]["labels"][key] = value;
  (void)impl_->api.create(res::kNode, node, Impl::kubelet(name));
  impl_->set_node_ready(name, "True", "KubeletReady");
}

void Kubelets::add_image(const std::string& image) {
  impl_->images_limited = true;
  impl_->images.insert(image);
}
void Kubelets::preload_image(const std::string& image) {
  impl_->preloaded.insert(image);
  if (impl_->images_limited) impl_->images.insert(image);
}
void Kubelets::remove_image(const std::string& image) {
  impl_->images_limited = true;
  impl_->images.erase(image);
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
