// Plans all resources of an Accounting together. Each resource has a lane with its finalizer, its status, the write to slurmdbd
// and the event about it, in this order. The status records each write before it is sent. So a restarted operator knows which
// QOS, accounts, users and settings are its own.
#pragma once

#include "operator/governance/observed.hpp"
#include "plan/plan.hpp"

namespace op::governance {

plan::Plan plan(const Observed& observed);

}  // namespace op::governance
