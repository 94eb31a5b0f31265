// Reads what Kubernetes and Slurm say about a pod of slurm-bridge, for `kubectl slurm why pod/NAME`.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/bridges.hpp"
#include "cli/why.hpp"
#include "slurm/model.hpp"

namespace cli {

struct PodFacts {
  core::Json object;  ///< The pod, as the API server has it.
  std::shared_ptr<const kube::SchedulingPodRecord> pod;
  std::vector<core::Json> warnings;  ///< The events of the pod of type Warning. Empty if they could not be read.
  Bridges bridges;
  std::optional<kube::Key> controller;  ///< The Controller of the cluster that has the pod's job; nullopt if it is not known.
  std::optional<WhyFacts> job;          ///< The pod's job in Slurm.
  std::string no_job;                   ///< Why `job` is missing; "" if it is present.
  core::WallTime now;
};

/// Returns the pod's job, which has the mark of slurm-bridge. Of a waiting pod, this is the newest job that has not ended or,
/// if all have ended, the newest. Of a placed pod, this is the job that the pod was placed for. `installation` is the UID of
/// the Kubernetes cluster. If it is "", because it could not be read, only a job whose mark has the UID of the pod is
/// returned. Returns null if no such job is listed.
[[nodiscard]] std::shared_ptr<const slurm::Job> job_of_pod(const kube::SchedulingPodRecord& pod,
                                                           const std::string& installation,
                                                           const std::vector<std::shared_ptr<const slurm::Job>>& jobs);

/// Reads the pod and, as far as the user may, everything else. `controller` names the Controller; nullopt means the one that
/// the settings of slurm-bridge name. Errors: those of the request for the pod, and kCancelled.
core::Result<PodFacts> read_pod_facts(Api& api, const kube::Key& pod, const std::optional<kube::Key>& controller);

}  // namespace cli
