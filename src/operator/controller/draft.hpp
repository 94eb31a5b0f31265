// A draft of a Controller's plan, and the functions that the parts of the plan share.
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

/// The plan, and the values that the parts of the plan share.
struct Draft {
  const Observed& observed;
  plan::Plan plan;
  std::vector<Problem> problems;
  std::string waiting;   ///< What the Controller still waits for, if it has no problem.
  bool blocked = false;  ///< slurmctld will not become ready until somebody changes something.
};

Conditions conditions_of(const Observed& observed);
void append(std::vector<Problem>& into, std::vector<Problem> more);

/// Reads an object in the Controller's namespace from the API server. Returns null until the API server has answered.
const core::Result<core::Json>* read_live(Draft& draft, const kube::Resource& resource, const std::string& name);

/// True if the PersistentVolumeClaim of slurmctld's state is being deleted. Kubernetes removes the claim when its pod has
/// ended.
bool claim_goes(const Observed& observed);
/// True if slurmctld's state would be lost with its pod, and no user has allowed that (api::kAnnotationLoseJobs).
bool state_at_stake(const Observed& observed);
/// True if jobs would be lost with slurmctld's state. Also true if the jobs are unknown, or if workers exist but no RestApi
/// through which the operator could read the jobs.
bool jobs_at_stake(const Observed& observed);

/// Adds our finalizer, so that workers and RestApis are deleted before the Controller.
void plan_guard(Draft& draft);
/// Plans the copy of the auth/slurm key that daemons mount (keyring.hpp), and the ephemeral containers of a rotation. The
/// caller must add Keyring::renew to the plan.
Keyring plan_copy(Draft& draft);
/// Adds the headless Service and the PodDisruptionBudget that all workers share.
void plan_workers_objects(Draft& draft);
/// Deletes the Slurm nodes of workers whose NodeSet is gone, unless deletions are stopped or Slurm's answers are doubtful.
void plan_records(Draft& draft);

/// Sets the condition KeyChanged while the key rotates or has a problem. Only KeyChanged names the daemons for which the
/// rotation waits, because in the condition Degraded, each new message creates an event.
void set_key_condition(Conditions& conditions, Draft& draft, const Keyring& keyring);
/// Returns a problem if Slurm refuses tokens that are signed with the Controller's JWT key.
std::vector<Problem> token_problems(const Observed& observed);
void plan_status(Draft& draft, Conditions conditions, bool ready);

/// Plans for a Controller whose slurmctld runs outside of Kubernetes.
void plan_external(Draft& draft);

}  // namespace op::controller
