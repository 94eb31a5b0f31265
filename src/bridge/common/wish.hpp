// The job that a pod asks for, from its requests and its annotations.
#pragma once

#include <string>

#include "bridge/common/hosts.hpp"
#include "bridge/common/settings.hpp"
#include "core/result.hpp"
#include "kube/object.hpp"
#include "slurm/own_job.hpp"

namespace bridge {

/// Returns the wish for a pod, without excluded nodes. Error: kInvalid, which names the field of the pod, its value and what is
/// allowed, if Slurm cannot do what the pod asks for.
[[nodiscard]] core::Result<slurm::JobWish> wish_of(const kube::SchedulingPodRecord& pod, const Settings& settings);
/// Returns the wish for a group with this name: a node for each pod, and on each node what the largest pod needs. Error:
/// kInvalid as well if the pods ask for different jobs otherwise.
[[nodiscard]] core::Result<slurm::JobWish> wish_of_group(const std::string& name, const Pods& pods, const Settings& settings);

}  // namespace bridge
