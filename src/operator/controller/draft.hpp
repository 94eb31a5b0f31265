// The plan of a Controller while it is being written, and the functions that its parts share.
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
  std::string waiting;   ///< What the Controller still waits for, if nothing is wrong.
  bool blocked = false;  ///< slurmctld will not become ready by itself.
};

Conditions conditions_of(const Observed& observed);
void append(std::vector<Problem>& into, std::vector<Problem> more);

/// Reads an object of the namespace of the Controller from the API server. Returns null until the answer is there.
const core::Result<core::Json>* read_live(Draft& draft, const kube::Resource& resource, const std::string& name);

/// True if somebody has deleted the claim with slurmctld's state. Kubernetes waits for the end of the pod that uses the claim.
bool claim_goes(const Observed& observed);
/// True if slurmctld's state would be lost with its pod, and users have not given it up (api::kAnnotationLoseJobs).
bool state_at_stake(const Observed& observed);
/// True if jobs would be lost with slurmctld's state. Also true if the jobs cannot be seen, and without a RestApi if there are
/// workers.
bool jobs_at_stake(const Observed& observed);

/// Adds our finalizer: workers and RestApis are deleted before the Controller.
void plan_guard(Draft& draft);
/// Plans the copy of the auth/slurm key that daemons mount (keyring.hpp), and the ephemeral containers of a rotation. The
/// caller must add Keyring::renew to the plan.
Keyring plan_copy(Draft& draft);
/// Adds the headless Service of all workers and their PodDisruptionBudget.
void plan_workers_objects(Draft& draft);
/// Deletes records of workers that no NodeSet manages any more, unless deletions are stopped or Slurm's answers are in doubt.
void plan_records(Draft& draft);

/// Sets KeyChanged while the key rotates, or if something is wrong with it. Only this condition says what is waited for,
/// because each new message of Degraded is a new event.
void set_key_condition(Conditions& conditions, Draft& draft, const Keyring& keyring);
/// Returns the problem that Slurm refuses tokens that are signed with the Controller's JWT key.
std::vector<Problem> token_problems(const Observed& observed);
void plan_status(Draft& draft, Conditions conditions, bool ready);

/// Plans for a Controller whose slurmctld runs outside of Kubernetes.
void plan_external(Draft& draft);

}  // namespace op::controller
