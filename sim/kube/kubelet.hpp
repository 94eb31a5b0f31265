// The nodes of the simulated cluster: a scheduler, and a kubelet for each node. A kubelet pulls images, starts containers, runs
// their probes, stops them with preStop and grace period, and reports. A container runs a Process. SimSlurm provides its own.
//
//   class Slurmd : public sim::Process { ... };
//   sim::Kubelets nodes(api, random);
//   nodes.add_node("node-1");
//   nodes.add_image("local/slurmd:26.05");   // from then on, other images fail with ErrImagePull
//   nodes.set_process_factory([&](sim::PodView pod, const std::string& container) { return std::make_unique<Slurmd>(); });
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/loop.hpp"
#include "sim/base/random.hpp"
#include "sim/kube/api.hpp"

namespace sim {

/// A container's view of its pod. Cheap to copy. A copy stays valid as long as the process lives.
class PodView {
 public:
  [[nodiscard]] const kube::Key& key() const;
  [[nodiscard]] const std::string& uid() const;
  [[nodiscard]] const std::string& node() const;  ///< The Kubernetes node.
  [[nodiscard]] const std::string& ip() const;
  [[nodiscard]] std::int64_t machine_started() const;  ///< When the machine started (wall clock, s); 0: with the simulation.
  [[nodiscard]] std::string hostname() const;          ///< spec.hostname, or the pod's name; with hostNetwork the node's name.
  [[nodiscard]] const core::Json& object() const;      ///< The pod as the kubelet last saw it.
  /// Returns the item of spec.containers, spec.initContainers or spec.ephemeralContainers; null if there is none.
  [[nodiscard]] const core::Json* container(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> args(const std::string& container) const;
  /// Returns the values of env. References are resolved when the container starts.
  [[nodiscard]] std::map<std::string, std::string> env(const std::string& container) const;
  /// Returns a file of a mounted ConfigMap or Secret, as of the kubelet's last refresh; nullopt if there is none.
  [[nodiscard]] std::optional<std::string> file(const std::string& container, const std::string& path) const;
  /// Returns all files of the volume that is mounted at this path. The keys are the files' names.
  [[nodiscard]] std::map<std::string, std::string> files(const std::string& container, const std::string& mount_path) const;
  /// Makes the kubelet check the process again (ready, alive, exit code). A probe sees the change within its period.
  void changed() const;

  struct State;
  explicit PodView(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  /// Returns the files of the volume that contains a path, and the file's name in it.
  [[nodiscard]] std::pair<std::map<std::string, std::string>, std::string> mounted(const std::string& container,
                                                                                   const std::string& path) const;

  std::shared_ptr<State> state_;
};

/// A running container. Destroyed when it is killed or its node stops.
class Process {
 public:
  virtual ~Process() = default;
  // Answers of probes. Only called if the container has the probe.
  /// Answers the startup probe. ready() and alive() are not called until it has returned true once.
  [[nodiscard]] virtual bool started() const { return true; }
  [[nodiscard]] virtual bool ready() const { return true; }
  [[nodiscard]] virtual bool alive() const { return true; }
  /// Returns the exit code once the process has ended by itself; nullopt while it runs.
  [[nodiscard]] virtual std::optional<int> exit_code() const { return std::nullopt; }
  /// Returns the termination message.
  [[nodiscard]] virtual std::string last_words() const { return ""; }
  /// Runs the preStop hook, if the container has one. terminate() is called 0.1 s later.
  virtual void pre_stop() {}
  /// Handles SIGTERM. The process ends 0.1 s later, or if ends_at_once() is false, with exit_code() or after the grace period.
  virtual void terminate() {}
  /// Returns false if the process keeps running after terminate(), until exit_code() is set.
  [[nodiscard]] virtual bool ends_at_once() const { return true; }
  /// Called when the mounted files have been refreshed.
  virtual void files_changed() {}
};
/// Returns the process of a container. Null means a process that is ready at once. In an init container, that exits with 0.
using ProcessFactory = std::function<std::unique_ptr<Process>(PodView pod, const std::string& container)>;

/// An event that hits a pod although no user caused it.
enum class Accident {
  kMachineOff,  ///< The machine stops, and its processes end.
  kMachineCut,  ///< The machine loses its connection to the API server; its processes continue.
  kFailed,      ///< The pod fails, as under resource pressure.
  kProbe,       ///< A probe ends a container.
};

struct KubeletOptions {
  core::Duration least_schedule{5}, most_schedule{100};
  core::Duration least_start{50}, most_start{600};  ///< The time to start the sandbox, and to start each container.
  core::Duration least_pull{500}, most_pull{4000};  ///< The time to pull an image when a node first uses it.
  /// The delay until mounted files follow a change of their source. After a change of the pod object, it is 0.1 to 0.5 s.
  core::Duration least_files{30000}, most_files{90000};
  core::Duration least_report{5}, most_report{100};  ///< The usual delay until a pod's state is reported.
  core::Duration slowest_report{2000};               ///< The longest such delay, which is rare.
  core::Duration node_grace{50000};                  ///< The silence after which a node's readiness is unknown.
  core::Duration pod_gc{30000};                      ///< The time before pods of a deleted node are removed.
};

class Kubelets {
 public:
  Kubelets(KubeApi& api, SeededRandom random, KubeletOptions options = {});
  ~Kubelets();
  Kubelets(const Kubelets&) = delete;
  Kubelets& operator=(const Kubelets&) = delete;

  /// `allocatable` limits what the scheduler places on the node: {"cpu": "4", "memory": "8Gi"}. Null: no limit.
  void add_node(const std::string& name, const kube::StringMap& labels = {}, const core::Json& allocatable = nullptr);
  /// Adds an image, such as "repository:tag", to those that can be pulled. Before the first call, every image can be pulled.
  void add_image(const std::string& image);
  /// Makes an image present on every node, so that it need not be pulled.
  void preload_image(const std::string& image);
  void set_process_factory(ProcessFactory factory);
  /// Sets a callback that is called with the uid of each pod right before its accident.
  void set_on_accident(std::function<void(const std::string& pod, Accident what)> call);

  /// Stops the machine: its processes end, and nothing is reported any more.
  void crash_node(const std::string& name);
  /// Starts the machine again. Its kubelet restarts the pods that still exist.
  void restart_node(const std::string& name);
  /// Breaks the network between the node and the API server. The processes continue.
  void cut_node(const std::string& name);
  void heal_node(const std::string& name);
  /// Deletes the Node object and stops the machine.
  void delete_node(const std::string& name);
  /// Lets the pod fail with this reason, as under resource pressure.
  void fail_pod(const kube::Key& key, const std::string& reason = "Evicted");
  /// Sets whether the node is under load: then no liveness or readiness probe is answered in time.
  void load_node(const std::string& name, bool loaded);
  /// Deletes the pod as the scheduler does for a pod with a higher priority. An admission rule can refuse this deletion.
  void preempt(const kube::Key& key);

  /// Returns the process of a running container; null if there is none.
  [[nodiscard]] Process* find_process(const kube::Key& pod, const std::string& container) const;
  /// Destroys all processes. Call this before the objects that the processes use are destroyed.
  void end_processes();
  /// Returns the pods with processes, for oracles.
  [[nodiscard]] std::vector<kube::Key> running() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace sim
