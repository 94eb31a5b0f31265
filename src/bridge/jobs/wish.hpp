// The job that a pod asks for, from its requests and its annotations.
#pragma once

#include <string>

#include "bridge/jobs/settings.hpp"
#include "core/result.hpp"
#include "kube/object.hpp"
#include "slurm/own_job.hpp"

namespace bridge::jobs {

/// Returns the wish for a pod, without excluded nodes. Error: kInvalid, which names the field of the pod, its value and what is
/// allowed, if Slurm cannot do what the pod asks for.
[[nodiscard]] core::Result<slurm::JobWish> wish_of(const kube::SchedulingPodRecord& pod, const Settings& settings);

}  // namespace bridge::jobs
