// What the parts of a Controller's plan share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/status.hpp"
#include "operator/controller/keyring.hpp"
#include "operator/controller/observed.hpp"
#include "plan/plan.hpp"

namespace op::controller {

/// What the parts of a plan learn from one another.
struct Draft {
  const Observed& observed;
  plan::Plan plan;
  std::vector<Problem> problems;
  std::string waiting;   ///< What is still to come, when nothing is wrong.
  bool blocked = false;  ///< slurmctld does not come by itself.
};

Conditions conditions_of(const Observed& observed);
void append(std::vector<Problem>& into, std::vector<Problem> more);

/// What the API server itself says of an object of the Controller's namespace; null until it has been asked, which is done
/// then.
const core::Result<core::Json>* read_live(Draft& draft, const kube::Resource& resource, const std::string& name);

/// Somebody has deleted the claim of slurmctld's state: Kubernetes waits for the end of the pod that uses it.
bool claim_goes(const Observed& observed);
/// slurmctld's state goes with its pod, and nobody has given it up.
bool state_at_stake(const Observed& observed);
/// With that state jobs would be lost. True also while they cannot be seen; where nobody can look, workers may run some.
bool jobs_at_stake(const Observed& observed);

/// Our finalizer: workers and RestApis go before the Controller.
void plan_guard(Draft& draft);
/// Makes the copy of the auth/slurm key that daemons mount, where that can be done at once.
Keyring plan_copy(Draft& draft);
/// The headless Service of all workers, and their disruption budget.
void plan_workers_objects(Draft& draft);
/// Deletes records of workers that nobody answers for any more.
void plan_records(Draft& draft);

/// Is there only where something is wrong with the key. What is waited for stands in it alone: each other message of Degraded
/// is another event.
void set_key_condition(Conditions& conditions, Draft& draft, const Keyring& keyring);
/// slurmctld runs, and refuses who we say we are: a key that is not the one it runs with.
std::vector<Problem> token_problems(const Observed& observed);
void plan_status(Draft& draft, Conditions conditions, bool ready);

/// A Controller whose slurmctld runs outside of Kubernetes.
void plan_external(Draft& draft);

}  // namespace op::controller
