// Plans the backups of slurmctld, which have a StatefulSet in addition to that of the primary.
//
// A standby slurmctld reads its configuration when it starts, and takes over with that configuration. It does not know what was
// added to the configuration later, and jobs that use the additions would be lost. So each change of the configuration replaces
// the backups' pods, which ends no job. The primary is reconfigured only when no backup has another configuration.
//
//   slurm.conf or a template changes -> the backups' StatefulSet replaces its pods
//   no backup runs with another slurm.conf -> the primary is reconfigured
//   another release of Slurm is wanted -> the backups are deleted, and created again once the primary has that release
//   the new backups are ready -> the primary's pod is replaced if its template has changed
//
// While a backup serves because the primary's pod is not ready, the operator does not change the backups. When the primary's
// pod starts again, it waits in an init container (kWaitBackup) until no backup serves. The operator then waits for up to a
// minute until Slurm reports that a backup serves, and deletes all backups. It creates them again once the primary has started,
// or after two minutes.
#pragma once

#include <string>
#include <vector>

#include "operator/common/slinky.hpp"
#include "operator/controller/draft.hpp"
#include "operator/controller/observed.hpp"
#include "operator/controller/rollout.hpp"
#include "slinky/status.hpp"

namespace op::controller {

/// The init container of the primary's pod that waits until no backup serves.
inline constexpr const char* kWaitBackup = "wait-backup";

/// Returns the number of standby slurmctlds that the spec asks for.
int backups(const Observed& observed);

/// True if the pod of the primary is ready.
bool primary_ready(const Observed& observed);
/// True if a backup serves in place of the primary.
bool backup_serves(const Observed& observed);

/// True while the backups are to be deleted so that the primary's waiting pod can start: for two minutes at most.
bool backup_hands_over(const Observed& observed);

/// True if a backup may take over with a configuration that is not the offered one.
bool stale_backup(const Observed& observed, const ConfigState& state);
/// True if the primary's pod may be replaced: the primary does not serve, or all backups are ready and up to date. For a pod
/// with another release of Slurm, there must be no backup.
bool primary_may_restart(const Observed& observed, const ConfigState& state);

/// Returns the names of all slurmctld pods, each of which has a Service of its own name. Empty without backups.
std::vector<std::string> addressed_pods(const Observed& observed);

/// A StatefulSet with several slurmctlds, created by release 1.3 of the Go operator. The operator cannot adopt it unchanged:
/// its slurmctlds and ours would fail over independently, because each group has another list of slurmctlds.
struct OtherSlurmctlds {
  Problem problem;
  std::optional<plan::Step> end;  ///< Scales the StatefulSet down to its first pod, which serves.
};
/// Finds the slurmctlds of the Go operator. Returns nullopt if there is at most one.
std::optional<OtherSlurmctlds> find_other_slurmctlds(const Observed& observed);

/// Adds the Service of each slurmctld and the PodDisruptionBudget of all of them.
void plan_backup_network(Draft& draft, plan::Lane& lane);
/// Adds the steps for the backups. `lane`: the lane of the primary's pod. Returns true if the backups change.
bool plan_backups(Draft& draft, plan::Lane& lane, const ConfigState& state, const std::string& slurm_key_digest);

/// Sets the condition that reports which slurmctld is the primary and which backups are missing.
void set_backups_condition(Conditions& conditions, Draft& draft);

}  // namespace op::controller
