// Checks that the operator deletes neither a worker that may run jobs nor the worker's record. The worker must have ended, its
// slurmd must never have run, its node must be idle and held in Slurm (looks.hpp), or its user must have deleted the cluster.
// Without a Controller, no worker is deleted. No slurmd may end with its pod while Slurm can still start jobs on it.
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

  /// Judges the end of a slurmd that ends with its pod.
  void slurmd_ends(const SlurmSite::Cluster& cluster, const std::string& node);
  /// Judges the deletion, by anyone, of a record while its node has this job.
  void record_deletion_under(const SimNode& node, const SimJob& job);
  /// Judges the deletion, by the operator, of a record without jobs.
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
  std::map<kube::Key, core::MonoTime> gone_;  ///< Maps a Controller to the time of its last deletion.
};

}  // namespace sim
