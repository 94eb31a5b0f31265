// What runs inside of the containers of Slurm pods: each slurmctld, slurmd and slurmrestd pod of the simulated cluster is wired
// to a SimSlurm. Nothing here knows the operator but by what it writes into pods.
//
// A slurmctld's state lies on its volume claim: it outlives pods, and goes with the claim. A Slurm cluster is told by the host
// name of its slurmctld ("demo-controller.default"), as slurmd and slurmrestd find it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "core/json.hpp"
#include "core/loop.hpp"
#include "core/random.hpp"
#include "kube/object.hpp"
#include "sim/kube/api.hpp"
#include "sim/kube/kubelet.hpp"
#include "sim/slurm/rest.hpp"
#include "sim/slurm/sim_slurm.hpp"

namespace sim {

class SlurmSite {
 public:
  struct Cluster {
    kube::Key controller;  ///< Namespace, and the Controller's name.
    std::unique_ptr<SimSlurm> slurm;
    std::unique_ptr<SlurmRest> rest;
    std::optional<PodView> pod;                  ///< Of the slurmctld that runs.
    std::string jwt_key;                         ///< Read when it started.
    std::map<std::string, std::string> etc;      ///< /etc/slurm as it last read it, at its start or to reconfigure.
    std::string volume;                          ///< Uid of the claim that holds its state.
    std::map<std::string, std::string> slurmds;  ///< The pod (uid) whose slurmd has the node.
  };

  /// Made before the simulated Kubernetes, whose containers hold on to it; `attach` comes before the first of them.
  SlurmSite(core::Loop& loop, core::Random& random, SlurmOptions options = {});
  void attach(KubeApi& api) { api_ = &api; }
  ~SlurmSite();
  SlurmSite(const SlurmSite&) = delete;
  SlurmSite& operator=(const SlurmSite&) = delete;

  /// What runs in a container; null for what Slurm has no part in. The site must outlive it.
  std::unique_ptr<Process> make_process(PodView pod, const std::string& container);

  /// The slurmrestd behind a Service "name.namespace", or null: nobody listens.
  [[nodiscard]] SlurmRest* listening(const std::string& host, std::uint16_t port) const;
  /// Of a Controller; null when none ever ran.
  [[nodiscard]] Cluster* find(const kube::Key& controller) const;
  [[nodiscard]] const std::map<std::string, std::unique_ptr<Cluster>>& clusters() const { return clusters_; }
  /// A slurmd was started in the pod with this uid, whatever became of it.
  [[nodiscard]] bool slurmd_ever_ran(const std::string& pod) const { return ran_.contains(pod); }
  /// How often each daemon was started: "slurmctld demo" and "slurmrestd demo" by their resource, "slurmd cpu-0" by its pod.
  [[nodiscard]] const std::map<std::string, int>& starts() const { return starts_; }
  /// Called when a cluster is first made, to listen in.
  std::function<void(Cluster&)> on_cluster;
  /// Told when the kubelet ends the slurmd of a pod that is being deleted, right after its preStop.
  std::function<void(const Cluster&, const std::string& node)> on_slurmd_end;

 private:
  class SlurmProcess;
  class Slurmctld;
  class Slurmd;
  class Slurmrestd;
  class WaitController;
  class KeysWitness;
  class InitConf;

  Cluster& cluster_for(const kube::Key& controller);
  [[nodiscard]] Cluster* at_host(const std::string& host) const;
  void moved(const std::string& host, const std::string& node);

  core::Loop& loop_;
  core::Random& random_;
  KubeApi* api_ = nullptr;
  SlurmOptions options_;
  std::map<std::string, std::unique_ptr<Cluster>> clusters_;  ///< By slurmctld's host.
  std::map<std::uint64_t, SlurmProcess*> processes_;          ///< In the order of their starts.
  std::uint64_t last_process_ = 0;
  std::map<std::string, Slurmrestd*> restds_;  ///< By the pod's uid.
  std::set<std::string> ran_;                  ///< Pods (uids) in which a slurmd was started.
  std::map<std::string, int> starts_;
};

/// What the workers' preStop script does to its node: down, with the reason of whoever took it from work before; or drained and
/// down, with its own.
void run_pre_stop(SimSlurm& slurm, const std::string& node, const std::string& pod_uid);
/// The Slurm node that a worker pod is.
std::string slurm_node_of(const core::Json& pod);

}  // namespace sim
