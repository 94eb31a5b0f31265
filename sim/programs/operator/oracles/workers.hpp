// No worker that may run jobs is taken away by the operator, and no record of such a one: what it deletes has ended, or its
// slurmd never ran, or Slurm has it idle and held, or its user ended the cluster. While there is no Controller it deletes none,
// and no slurmd ends with its pod where Slurm may still start jobs.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "core/loop.hpp"
#include "sim/kube/api.hpp"
#include "sim/programs/operator/oracles/jobs.hpp"
#include "sim/programs/operator/oracles/looks.hpp"
#include "sim/site/slurm_site.hpp"

namespace sim {

class WorkerOracle {
 public:
  using Tell = std::function<void(std::string)>;
  WorkerOracle(core::Loop& loop, KubeApi& api, SlurmSite& site, const Looks& looks, JobOracle& jobs, Tell violation);
  WorkerOracle(const WorkerOracle&) = delete;
  WorkerOracle& operator=(const WorkerOracle&) = delete;

  /// With its pod.
  void slurmd_ends(const SlurmSite::Cluster& cluster, const std::string& node);
  /// Whoever deleted it.
  void record_deletion_under(const SimNode& node, const SimJob& job);
  /// Deleted by the operator, with no job on it.
  void record_deletion(const SlurmSite::Cluster& cluster, const SimNode& node);

 private:
  void listen();
  void worker_deletion(const core::Json& pod);

  core::Loop& loop_;
  KubeApi& api_;
  SlurmSite& site_;
  const Looks& looks_;
  JobOracle& jobs_;
  Tell violation_;
  std::map<kube::Key, core::MonoTime> gone_;  ///< When a Controller last went.
};

}  // namespace sim
