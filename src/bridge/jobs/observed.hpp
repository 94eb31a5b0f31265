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
  bool seems_unneeded = false;       ///< A newer snapshot may show that no pod needs the job.
};

/// `pod` is null if it does not exist. `job` is the job that the pod was placed for. For a pod that was not placed, it is the
/// oldest of its jobs that has not ended, or else the youngest.
struct Observed : Facts, PodState {
  std::vector<PodJob> jobs;                     ///< Sorted by number. Includes the jobs of earlier pods with this name.
  std::optional<NamedJob> current;              ///< `job` as a NamedJob.
  std::optional<Unneeded> replaceable;          ///< Set if `job` may be cancelled to submit another one.
  int attempts = 0;                             ///< The greatest attempt number of the submissions for the pod.
  Leftovers leftovers;                          ///< On the node of `job`.
  std::optional<core::MonoTime> refused_since;  ///< Since when `job` is refused, as far as this process has seen.
  bool asks_for_node = false;                   ///< The node must be read live, because it may be ready again.
};

}  // namespace bridge::jobs
