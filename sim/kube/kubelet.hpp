// The nodes of the simulated cluster: a scheduler, and a kubelet for each node that pulls images, starts containers, follows
// their probes, stops them with preStop and grace, and reports. What runs in a container is a Process: SimSlurm brings its own.
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

/// What a container sees of its pod. Cheap to copy; may be kept for as long as the process lives.
class PodView {
 public:
  [[nodiscard]] const kube::Key& key() const;
  [[nodiscard]] const std::string& uid() const;
  [[nodiscard]] const std::string& node() const;  ///< Kubernetes node.
  [[nodiscard]] const std::string& ip() const;
  [[nodiscard]] std::int64_t machine_started() const;  ///< Seconds of the wall clock; 0: before all else.
  [[nodiscard]] std::string hostname() const;          ///< spec.hostname, or the pod's name; the node's with hostNetwork.
  [[nodiscard]] const core::Json& object() const;      ///< As the kubelet last saw it.
  /// Item of spec.containers, spec.initContainers or spec.ephemeralContainers; null when there is none.
  [[nodiscard]] const core::Json* container(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> args(const std::string& container) const;
  /// Values of env, references resolved when the container was started.
  [[nodiscard]] std::map<std::string, std::string> env(const std::string& container) const;
  /// A file of a mounted ConfigMap or Secret, as old as the kubelet's last refresh; nullopt when there is none.
  [[nodiscard]] std::optional<std::string> file(const std::string& container, const std::string& path) const;
  /// All files of the volume that is mounted there, by their names.
  [[nodiscard]] std::map<std::string, std::string> files(const std::string& container, const std::string& mount_path) const;
  /// Tells the kubelet to ask the process again (ready, alive, exit code). A probe sees it within its period.
  void changed() const;

  struct State;
  explicit PodView(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  /// The files of the volume in which a path lies, and its name there.
  [[nodiscard]] std::pair<std::map<std::string, std::string>, std::string> mounted(const std::string& container,
                                                                                   const std::string& path) const;

  std::shared_ptr<State> state_;
};

/// A running container. Destroyed when it is killed or its node dies.
class Process {
 public:
  virtual ~Process() = default;
  // Answers of probes, asked only where the container has one.
  /// Until it has been true once, the other two are not asked.
  [[nodiscard]] virtual bool started() const { return true; }
  [[nodiscard]] virtual bool ready() const { return true; }
  [[nodiscard]] virtual bool alive() const { return true; }
  /// Set once it has ended by itself.
  [[nodiscard]] virtual std::optional<int> exit_code() const { return std::nullopt; }
  /// What it leaves in its termination log.
  [[nodiscard]] virtual std::string last_words() const { return ""; }
  /// The preStop hook, when the container has one; terminate() comes 0.1 s later.
  virtual void pre_stop() {}
  /// SIGTERM. It ends when exit_code() is set, or is killed when the grace period is over. By default it is gone 0.1 s later.
  virtual void terminate() {}
  /// False: terminate() needs the time until exit_code() is set.
  [[nodiscard]] virtual bool ends_at_once() const { return true; }
  /// Mounted files have been refreshed.
  virtual void files_changed() {}
};
/// Null: a process that is ready at once, and, in an init container, ends with 0.
using ProcessFactory = std::function<std::unique_ptr<Process>(PodView pod, const std::string& container)>;

/// What nobody asked for.
enum class Accident {
  kMachineOff,  ///< Its processes end.
  kMachineCut,  ///< From the API server; its processes live on.
  kFailed,      ///< As under pressure of resources.
  kProbe,       ///< A probe ends a container.
};

struct KubeletOptions {
  core::Duration least_schedule{5}, most_schedule{100};
  core::Duration least_start{50}, most_start{600};  ///< Sandbox and each container.
  core::Duration least_pull{500}, most_pull{4000};  ///< The first time an image is used on a node.
  core::Duration least_files{30000},
      most_files{90000};  ///< How late mounted files follow; 0.1 to 0.5 s after the pod object changes.
  core::Duration least_report{5}, most_report{100};  ///< How late the API server hears of a pod's state ...
  core::Duration slowest_report{2000};               ///< ... mostly, and now and then.
  core::Duration node_grace{50000};                  ///< Silence before nobody knows whether a node is ready.
  core::Duration pod_gc{30000};                      ///< Before pods of a deleted node are removed.
};

class Kubelets {
 public:
  Kubelets(KubeApi& api, SeededRandom random, KubeletOptions options = {});
  ~Kubelets();
  Kubelets(const Kubelets&) = delete;
  Kubelets& operator=(const Kubelets&) = delete;

  void add_node(const std::string& name, const kube::StringMap& labels = {});
  /// Makes the image exist; from the first call on, images that were not added do not exist. A tag of a repository.
  void add_image(const std::string& image);
  /// Makes it present on every node, so that there is no pull.
  void preload_image(const std::string& image);
  void remove_image(const std::string& image);
  void set_process_factory(ProcessFactory factory);
  /// Told of each pod (by its uid) that has an accident, right before.
  void set_on_accident(std::function<void(const std::string& pod, Accident what)> call);

  /// The machine stops: processes are gone, nothing is reported any more.
  void crash_node(const std::string& name);
  /// It comes back, and starts its pods again (those that still exist).
  void restart_node(const std::string& name);
  /// The network between the node and the API server breaks; processes live on.
  void cut_node(const std::string& name);
  void heal_node(const std::string& name);
  /// Removes the Node object (and stops the machine).
  void delete_node(const std::string& name);
  /// As under pressure of resources: the pod fails with reason Evicted.
  void fail_pod(const kube::Key& key, const std::string& reason = "Evicted");
  /// So much is to be done there that no probe of a running process is answered in time; or is again.
  void load_node(const std::string& name, bool loaded);
  /// A pod of a higher priority needs its place: the scheduler deletes it, if it may.
  void preempt(const kube::Key& key);

  /// The process of a running container; null when there is none.
  [[nodiscard]] Process* find_process(const kube::Key& pod, const std::string& container) const;
  /// Ends the simulation's processes, for owners of what they speak to.
  void end_processes();
  /// Pods with processes, for oracles.
  [[nodiscard]] std::vector<kube::Key> running() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace sim
