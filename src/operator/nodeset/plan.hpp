// NodeSet: what to do next. A pure function of what was observed.
//
// A View is what the pass goes by, and does not change; a Draft is the plan while it is written. The parts of a pass
// (parts.hpp) take the View, and what earlier parts have found out, add to the Draft, and return what later ones need.
#pragma once

#include "operator/nodeset/observed.hpp"
#include "plan/plan.hpp"

namespace op::nodeset {

[[nodiscard]] plan::Plan plan_nodeset(const Observed& observed);
/// The same, of a NodeSet that may be gone; and it says whether it waits on Slurm.
[[nodiscard]] plan::Plan plan(const Observed& observed);

}  // namespace op::nodeset
