// The job that a pod asks for, from its requests and its annotations.
#pragma once

#include <string>
#include <string_view>

#include "bridge/common/hosts.hpp"
#include "bridge/common/settings.hpp"
#include "core/result.hpp"
#include "kube/object.hpp"
#include "slurm/own_job.hpp"

namespace bridge {

/// Returns the JobWish for a pod, without excluded nodes. Error: kInvalid if Slurm cannot do what the pod asks for. The error
/// names the field of the pod, its value and what is allowed.
[[nodiscard]] core::Result<slurm::JobWish> wish_of(const kube::SchedulingPodRecord& pod, const Settings& settings);
/// Returns the JobWish for a group with this name: one node for each pod, and on each node what the largest pod needs. Errors:
/// those of wish_of(), and kInvalid if the pods differ in any other setting of the job.
[[nodiscard]] core::Result<slurm::JobWish> wish_of_group(const std::string& name, const Pods& pods, const Settings& settings);
/// Checks whether wish_of() or, for a pod of a group, wish_of_group() can accept the pod, whatever the size of its group.
/// Errors: those of wish_of().
[[nodiscard]] core::Result<void> check_wish(const kube::SchedulingPodRecord& pod, const Settings& settings);
/// Returns the partitions for the pod's job, separated by commas; "": Slurm's default.
[[nodiscard]] std::string partitions_of(const kube::SchedulingPodRecord& pod, const Settings& settings);
/// Reports whether an annotation with kAnnotationPrefix and this name, such as "timelimit", is a setting of the job.
[[nodiscard]] bool is_setting(std::string_view name);

}  // namespace bridge
