// Decides what to do next for a NodeSet. A pure function of the observed facts.
//
// A View has the facts of the pass and does not change. A Draft is the plan while it is being made. The parts of a pass
// (parts.hpp) take the View and the results of earlier parts, add to the Draft, and return what later parts need.
#pragma once

#include "operator/nodeset/observed.hpp"
#include "plan/plan.hpp"

namespace op::nodeset {

[[nodiscard]] plan::Plan plan_nodeset(const Observed& observed);
/// Like plan_nodeset(), but returns an empty plan if the NodeSet is gone. Also records whether the plan waits for Slurm.
[[nodiscard]] plan::Plan plan(const Observed& observed);

}  // namespace op::nodeset
