// Plans the backups of slurmctld. The backups have a StatefulSet of their own, next to the StatefulSet of the primary.
//
// A standby slurmctld reads its configuration when it starts, and takes over with that configuration. It does not know later
// additions to the configuration, and jobs that use the additions would be lost. So each change of the configuration replaces
// the backups' pods, which ends no job. The primary is reconfigured only when all backups have the new configuration.
//
//   slurm.conf or a template changes -> the backups' StatefulSet replaces its pods
//   no backup runs with a slurm.conf other than the offered one -> the primary is reconfigured
//   another release of Slurm is wanted -> the backups are deleted, and created again once the primary has that release
//   the new backups are ready -> the primary's pod is replaced if its template has changed
//
// While a backup serves because the primary's pod is not ready, the operator does not change the backups. When the primary's
// pod starts again, it waits in an init container (kWaitBackup) until no backup serves. The operator waits for up to a minute
// until Slurm reports that a backup serves, and then deletes all backups. The operator creates the backups again once the
// primary has started, or after two minutes.
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

/// True while the backups are to be deleted so that the primary's waiting pod can start. Lasts two minutes at most.
bool backup_hands_over(const Observed& observed);

/// True if a backup might take over with a configuration other than the offered one.
bool stale_backup(const Observed& observed, const ConfigState& state);
/// True if the primary's pod is allowed to be replaced: the primary does not serve, or all backups are ready and up to date. If
/// the new pod has another release of Slurm, all backups must be gone.
bool primary_may_restart(const Observed& observed, const ConfigState& state);

/// Returns the names of all slurmctld pods that have a Service. The Service has the name of the pod. Empty without backups.
std::vector<std::string> addressed_pods(const Observed& observed);

/// A StatefulSet with several slurmctlds, created by release 1.3 of the Go operator. The operator cannot adopt this StatefulSet
/// unchanged: the Go operator's slurmctlds and ours have different lists of slurmctlds, so each group would fail over on its
/// own.
struct OtherSlurmctlds {
  Problem problem;
  std::optional<plan::Step> end;  ///< Scales the StatefulSet down to the first pod, which serves.
};
/// Finds the slurmctlds of the Go operator. Returns nullopt if the Go operator left at most one slurmctld.
std::optional<OtherSlurmctlds> find_other_slurmctlds(const Observed& observed);

/// Adds one Service for each slurmctld, and one PodDisruptionBudget for all slurmctlds.
void plan_backup_network(Draft& draft, plan::Lane& lane);
/// Adds the steps for the backups. `lane`: the lane of the primary's pod. Returns true if the backups are changing.
bool plan_backups(Draft& draft, plan::Lane& lane, const ConfigState& state, const std::string& slurm_key_digest);

/// Sets the condition that reports which slurmctld is the primary and which backups are missing.
void set_backups_condition(Conditions& conditions, Draft& draft);

}  // namespace op::controller
