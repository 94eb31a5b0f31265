// Shared by the source files of the kubelets: pods and containers as a kubelet knows them, and all its functions. Private to
// this folder. kubelet.cpp has the nodes and PodView, kubelet_schedule.cpp the scheduler, kubelet_pods.cpp the lives of pods
// and containers, kubelet_volumes.cpp volumes and variables, and kubelet_status.cpp the status of pods.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/loop.hpp"
#include "sim/base/random.hpp"
#include "sim/kube/api.hpp"
#include "sim/kube/kubelet.hpp"

namespace sim {

using Files = std::map<std::string, std::string>;

/// One container of a pod as its kubelet knows it.
struct Container {
  core::Json spec;
  bool init = false;
  bool sidecar = false;  ///< An init container that keeps running.
  bool ephemeral = false;
  std::unique_ptr<Process> process;
  bool starting = false;
  bool backing_off = false;  ///< The container has ended and must not start again yet.
  bool ready = false;
  bool started = false;   ///< The startup probe, if any, has passed. The other probes only run after that.
  bool killing = false;   ///< A probe has failed, and the container is being ended.
  bool replaced = false;  ///< A probe ended the container, which starts again before the end is reported.
  bool started_once = false;
  /// The start of the current series of failed liveness probes; nullopt if the last probe was answered.
  std::optional<core::MonoTime> failing;
  int restarts = 0;
  int backoffs = 0;  ///< The number of restarts that make the delay of the next restart longer.
  std::string started_at;
  std::string waiting = "ContainerCreating";
  std::string message;
  std::optional<core::Json> terminated;
  std::optional<core::Json> last_terminated;
  std::map<std::string, std::string> env;
  bool pulled = false;

  [[nodiscard]] std::string name() const { return core::get_string(spec, {"name"}); }
  [[nodiscard]] bool probed(const char* probe) const { return spec.contains(probe); }
  /// Returns the time from the first failure of a probe to the failure that reaches failureThreshold.
  [[nodiscard]] core::Duration failing_time(const char* probe) const {
    const auto more = core::get_int(spec, {probe, "failureThreshold"}, 3) - 1;
    return std::chrono::seconds(core::get_int(spec, {probe, "periodSeconds"}, 10) * more);
  }
  [[nodiscard]] bool done() const { return terminated && (*terminated)["exitCode"] == 0; }
};

struct PodView::State {
  kube::Key key;
  std::string uid, node, ip;
  std::int64_t machine_started = 0;
  core::Json object;
  std::vector<Container> containers;     ///< Init containers come first.
  std::map<std::string, Files> volumes;  ///< The files of each volume, by the volume's name.
  std::function<void()> on_changed;

  // Used by the kubelet only.
  bool stopping = false;
  bool mounted = false;
  bool syncing = false;
  bool reporting = false;
  bool torn_down = false;  ///< The pod's containers and its sandbox have ended.
  bool gone = false;
  std::string failed_reason;
  /// Reports whether no container of the pod may start any more.
  [[nodiscard]] bool ends() const { return stopping || !failed_reason.empty(); }
  std::string start_time;
  std::string reported_at;  ///< When the kubelet last had news to report.
  std::uint64_t refresh = 0;

  Container* find(const std::string& name) {
    const auto it = std::find_if(containers.begin(), containers.end(), [&](const Container& c) { return c.name() == name; });
    return it == containers.end() ? nullptr : &*it;
  }
};

struct Kubelets::Impl : std::enable_shared_from_this<Kubelets::Impl> {
  Impl(KubeApi& a, SeededRandom r, KubeletOptions o) : api(a), random(std::move(r)), options(o) {}

  using Pod = PodView::State;
  using PodPtr = std::shared_ptr<Pod>;

  struct Node {
    bool running = true;    ///< The machine runs.
    bool connected = true;  ///< The machine is connected to the API server.
    bool loaded = false;    ///< The machine is overloaded: no liveness or readiness probe is answered in time.
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
  std::map<std::string, PodPtr> pods;  ///< The pods that a kubelet has accepted, by uid.
  std::set<std::string> images;
  std::set<std::string> preloaded;
  bool images_limited = false;
  bool scheduling = false;
  std::uint32_t last_ip = 0;

  core::Duration between(core::Duration least, core::Duration most) {
    return core::Duration{random.between(least.count(), most.count())};
  }
  std::string now() const { return core::format_rfc3339(api.loop().clock().wall()); }

  void later(core::Duration delay, std::function<void(Impl&)> call) {
    api.loop().after(delay, [weak = weak_from_this(), call = std::move(call)] {
      if (const auto self = weak.lock()) call(*self);
    });
  }
  /// Calls `call` after the delay, if the kubelet still has the pod and its machine runs.
  void later(core::Duration delay, const PodPtr& pod, std::function<void(Impl&, const PodPtr&)> call) {
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

  static bool runs(const Pod& pod) {
    return std::any_of(pod.containers.begin(), pod.containers.end(), [](const Container& c) { return c.process != nullptr; });
  }

  // kubelet.cpp.
  void set_node_ready(const std::string& name, const char* status, const char* reason);
  void lose(const std::string& name);
  void tell_accident(const std::string& pod, Accident what) const;
  void tell_accidents(const std::string& node, Accident what) const;
  void crash(const std::string& name);
  void come_back(const std::string& name, bool restarted);
  void restart_pod(const PodPtr& pod);

  // kubelet_schedule.cpp.
  void on_change(const std::string& table, const ChangePtr& change);
  void schedule_later(core::Duration more = core::Duration{0});
  void schedule();
  std::vector<std::string> fitting_nodes(const kube::Key& key, const core::Json& pod);
  static bool tolerates_taints(const core::Json& pod, const core::Json& node);
  static bool affine(const core::Json& pod, const core::Json& node);
  bool has_room(const core::Json& pod, const core::Json& node);
  bool tolerant(const kube::Key& key, const core::Json& pod, const std::string& node);

  // kubelet_pods.cpp.
  void notice(const kube::Key& key);
  void adopt(const kube::Key& key, const core::Json& object);
  static bool add_ephemeral(Pod& pod);
  void mount(const PodPtr& pod);
  void sync_in(const PodPtr& pod, core::Duration delay);
  static bool starts_again(const Pod& pod, const Container& container);
  void sync(const PodPtr& pod);
  void start_next(const PodPtr& pod);
  void begin(const PodPtr& pod, Container& container);
  void launch(const PodPtr& pod, Container& container);
  bool alive(const Pod& pod, const Container& container);
  void observe(const PodPtr& pod, Container& container);
  void later_in_run(core::Duration delay, const PodPtr& pod, const Container& container,
                    std::function<void(Impl&, const PodPtr&, Container&)> call);
  void look_for_life(const PodPtr& pod, Container& container);
  void doubt(const PodPtr& pod, Container& container);
  void kill_by_probe(const PodPtr& pod, Container& container, const char* probe);
  void end_container(const PodPtr& pod, Container& container, int code, const char* reason);
  void back_off(const PodPtr& pod, const std::string& name, core::MonoTime until);
  void stop(const PodPtr& pod);
  void ask_to_end(const PodPtr& pod, Container& container);
  void terminate(const PodPtr& pod, const std::string& name);
  void kill(const PodPtr& pod);
  void finish_stop(const PodPtr& pod);
  void forget(const std::string& uid);
  void drop(const PodPtr& pod);

  // kubelet_volumes.cpp.
  std::optional<std::map<std::string, Files>> read_volumes(const Pod& pod, std::string& missing);
  bool read_source(const std::string& kind, const core::Json& source, const char* name_field, const std::string& ns, Files& out,
                   std::string& missing);
  void plan_refresh(const PodPtr& pod);
  void refresh_files_in(const PodPtr& pod, core::Duration delay);
  void refresh_files(const PodPtr& pod);
  std::optional<std::map<std::string, std::string>> read_env(const Pod& pod, const core::Json& container, std::string& problem);
  static std::string field(const Pod& pod, const std::string& path);
  static std::string resource(const core::Json& container, const core::Json& ref);

  // kubelet_status.cpp.
  static void set_condition(core::Json& pod, core::Json condition, const std::string& at);
  static core::Json container_status(const Container& c);
  static std::string phase(const Pod& pod);
  void report(const PodPtr& pod);
  void write_status(const PodPtr& pod);
};

}  // namespace sim
