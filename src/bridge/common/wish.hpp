// The job that a pod asks for, from its requests and its annotations.
#pragma once

#include <string>
#include <string_view>

#include "bridge/common/settings.hpp"
#include "core/result.hpp"
#include "kube/object.hpp"
#include "slurm/own_job.hpp"

namespace bridge {

/// Returns the wish without the excluded nodes. Error: kInvalid, which names the field of the pod, its value and what is
/// allowed, if Slurm cannot do what the pod asks for.
[[nodiscard]] core::Result<slurm::JobWish> wish_of(const kube::SchedulingPodRecord& pod, const Settings& settings);
/// Reports whether an annotation with kAnnotationPrefix and this name is a setting of the job: "timelimit".
[[nodiscard]] bool is_setting(std::string_view name);

}  // namespace bridge
