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

/// `pod` is null if there is none. `job` is the one that it was placed for; else the oldest that has not ended; else the
/// youngest.
struct Observed : Facts, PodState {
  std::vector<PodJob> jobs;                     ///< By number. Jobs of earlier pods of the name as well.
  std::optional<NamedJob> current;              ///< What is known of `job`.
  std::optional<Unneeded> replaceable;          ///< Set if `job` may be cancelled to submit another one.
  int attempts = 0;                             ///< The greatest number of a submission for the pod.
  Leftovers leftovers;                          ///< On the node of `job`.
  std::optional<core::MonoTime> refused_since;  ///< Since when `job` is refused, as far as this process has seen.
  bool asks_for_node = false;                   ///< Whether the node is still not ready must be looked up live.
};

}  // namespace bridge::jobs
