// NodeSet: what to do next. A pure function of what was observed.
//
// One pass, in the order of plan.cpp: the goal (serve, drain all, end all, hold), the fate of each worker, then by concern:
// revision.cpp, scale_in.cpp, slurm_states.cpp, workers.cpp, status.cpp.
#pragma once

#include "operator/nodeset/observe.hpp"
#include "plan/plan.hpp"

namespace op::nodeset {

[[nodiscard]] plan::Plan plan_nodeset(const Observed& observed);

}  // namespace op::nodeset
