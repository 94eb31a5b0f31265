// Shared by the parts of a Controller's plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/common/slinky.hpp"
#include "operator/controller/keyring.hpp"
#include "operator/controller/observed.hpp"
#include "plan/plan.hpp"
#include "slinky/status.hpp"

namespace op::controller {

/// The plan, and what its parts pass to each other.
struct Draft {
  const Observed& observed;
  plan::Plan plan;
  std::vector<Problem> problems;
  std::string waiting;   ///< What has yet to happen, if nothing is wrong.
  bool blocked = false;  ///< slurmctld will not become ready by itself.
};

Conditions conditions_of(const Observed& observed);
void append(std::vector<Problem>& into, std::vector<Problem> more);

/// Reads an object of the Controller's namespace from the API server; null until the answer is there.
const core::Result<core::Json>* read_live(Draft& draft, const kube::Resource& resource, const std::string& name);

/// Somebody has deleted the claim of slurmctld's state. Kubernetes waits for the end of the pod that uses it.
bool claim_goes(const Observed& observed);
/// slurmctld's state would be lost with its pod, and nobody has given it up.
bool state_at_stake(const Observed& observed);
/// Jobs would be lost with that state. Also true if the jobs cannot be seen; without a RestApi, if there are workers.
bool jobs_at_stake(const Observed& observed);

/// Adds our finalizer: workers and RestApis are deleted before the Controller.
void plan_guard(Draft& draft);
/// Creates the copy of the auth/slurm key that daemons mount, if that is possible at once.
Keyring plan_copy(Draft& draft);
/// Adds the headless Service of all workers and their PodDisruptionBudget.
void plan_workers_objects(Draft& draft);
/// Deletes records of workers that no NodeSet manages any more.
void plan_records(Draft& draft);

/// Sets KeyChanged if something is wrong with the key. Only this condition says what is waited for, because each new message of
/// Degraded is a new event.
void set_key_condition(Conditions& conditions, Draft& draft, const Keyring& keyring);
/// Reports that slurmctld refuses our tokens: the key is not the one with which it runs.
std::vector<Problem> token_problems(const Observed& observed);
void plan_status(Draft& draft, Conditions conditions, bool ready);

/// Plans for a Controller whose slurmctld runs outside of Kubernetes.
void plan_external(Draft& draft);

}  // namespace op::controller
