// Plans all resources of an Accounting together. Each resource has a lane with its finalizer, its status, the write to slurmdbd
// and the event about it, in this order. The status notes a write before it happens, so that any process knows later which QOS,
// accounts, users and settings are the operator's.
#pragma once

#include "operator/governance/observed.hpp"
#include "plan/plan.hpp"

namespace op::governance {

plan::Plan plan(const Observed& observed);

}  // namespace op::governance
