// The facts for the plan of a pod and its jobs, copied from the caches at one moment.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bridge/common/steps.hpp"

namespace bridge::jobs {

struct PodJob : NamedJob {
  std::optional<Unneeded> unneeded;  ///< Set if no pod needs the job.
  bool asks_for_pod = false;         ///< The API server must be asked whether the pod is gone.
  bool seems_unneeded = false;       ///< A newer snapshot might show that no pod needs the job.
};

/// `pod`: null if the pod does not exist. `job`: the job that the pod was placed for. If the pod was not placed, `job` is the
/// oldest job of the pod that has not ended, or else the youngest job of the pod.
struct Observed : Facts, PodState {
  std::vector<PodJob> jobs;                     ///< Sorted by number. Includes the jobs of earlier pods with this name.
  std::optional<NamedJob> current;              ///< `job` as a NamedJob.
  std::optional<Unneeded> replaceable;          ///< Allows the bridge to cancel `job` and submit another job.
  int attempts = 0;                             ///< The greatest attempt number of the submissions for the pod.
  Leftovers leftovers;                          ///< The leftovers on the node of `job`.
  std::optional<core::MonoTime> refused_since;  ///< Since when this process has known that slurmctld refused `job`.
  bool asks_for_node = false;                   ///< The node must be read live, because it might be ready again.
};

}  // namespace bridge::jobs
