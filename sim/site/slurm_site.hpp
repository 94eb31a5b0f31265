// Runs the containers of Slurm pods: connects each slurmctld, slurmd and slurmrestd pod of the simulated cluster to a SimSlurm.
// Knows nothing of the operator except the pods that the operator writes.
//
// The state of a slurmctld outlives its pod, and is lost with the volume claim. Without a claim, the state is lost with the
// pod. The host name of slurmctld ("demo-controller.default") identifies a Slurm cluster, as it does for slurmd and slurmrestd.
//
// Folder sim/site: the daemons of Slurm in simulated pods. Uses sim/kube, sim/slurm and slinky.
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
    kube::Key controller;  ///< The namespace and name of the Controller.
    std::unique_ptr<SimSlurm> slurm;
    std::unique_ptr<SlurmRest> rest;
    std::optional<PodView> pod;                  ///< The pod of the running slurmctld.
    std::string jwt_key;                         ///< The jwt.key that slurmctld read at its start.
    std::map<std::string, std::string> etc;      ///< /etc/slurm as slurmctld last read it, at its start or for a reconfigure.
    std::string volume;                          ///< The uid of the volume claim with slurmctld's state.
    std::map<std::string, std::string> slurmds;  ///< Maps a node to the uid of the pod of its slurmd.
  };

  /// Create the site before the simulated Kubernetes, whose containers use it. Call `attach` before a container starts.
  SlurmSite(core::Loop& loop, core::Random& random, SlurmOptions options = {});
  void attach(KubeApi& api) { api_ = &api; }
  ~SlurmSite();
  SlurmSite(const SlurmSite&) = delete;
  SlurmSite& operator=(const SlurmSite&) = delete;

  /// Returns the process of a container; null if the container runs no part of Slurm. The site must outlive the process.
  std::unique_ptr<Process> make_process(PodView pod, const std::string& container);

  /// Returns the slurmrestd behind a Service "name.namespace"; null if nothing listens. Any port is accepted.
  [[nodiscard]] SlurmRest* listening(const std::string& host, std::uint16_t port) const;
  /// Returns the cluster of a Controller; null if none ever ran.
  [[nodiscard]] Cluster* find(const kube::Key& controller) const;
  [[nodiscard]] const std::map<std::string, std::unique_ptr<Cluster>>& clusters() const { return clusters_; }
  /// Reports whether a slurmd was ever started in the pod with this uid.
  [[nodiscard]] bool slurmd_ever_ran(const std::string& pod) const { return ran_.contains(pod); }
  /// Returns how often each daemon was started. The keys are "slurmctld demo" and "slurmrestd demo", with the name of the
  /// resource, and "slurmd cpu-0", with the name of the pod.
  [[nodiscard]] const std::map<std::string, int>& starts() const { return starts_; }
  /// Called for each new cluster, for example to set the callbacks of its SimSlurm.
  std::function<void(Cluster&)> on_cluster;
  /// Called when the kubelet ends the slurmd of a terminating pod, right after its preStop.
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
  std::map<std::string, std::unique_ptr<Cluster>> clusters_;  ///< The keys are the hosts of the slurmctlds.
  std::map<std::uint64_t, SlurmProcess*> processes_;          ///< The keys are numbers in the order of the starts.
  std::uint64_t last_process_ = 0;
  std::map<std::string, Slurmrestd*> restds_;  ///< The keys are the uids of the pods.
  std::set<std::string> ran_;                  ///< The uids of pods in which a slurmd was started.
  std::map<std::string, int> starts_;
};

/// Does to the node what the workers' preStop script does. Does nothing if somebody else has drained the node and the node is
/// idle. Otherwise sets the node DOWN. If somebody else has set a drain or DOWN, keeps its reason, or sets "drained without a
/// reason". Otherwise drains the node first, with the operator's reason.
void run_pre_stop(SimSlurm& slurm, const std::string& node, const std::string& pod_uid);
/// Returns the name of a worker pod's Slurm node.
std::string slurm_node_of(const core::Json& pod);

}  // namespace sim
