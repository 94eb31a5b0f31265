// Backups of slurmctld: a StatefulSet beside that of the primary.
//
// A standby slurmctld reads its configuration when it starts, and takes over with it. It does not know later additions, and
// jobs that use them would be lost. So the pods of the backups are replaced with each configuration, which ends no job. The
// primary is reconfigured only when no backup runs with another configuration.
//
//   slurm.conf or a template changes -> the backups' StatefulSet replaces its pods
//   no backup runs with another slurm.conf -> the primary is reconfigured
//   another release of Slurm is wanted -> the backups are deleted, and created again once the primary has that release
//   the new backups are ready -> the primary's pod is replaced if its template has changed
//
// While a backup serves, because the primary's pod is not ready, the backups are left alone. A primary that returns waits in
// its pod until no backup serves (kWaitBackup). As soon as it waits, all backups are deleted. They are created again once the
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
/// True if a backup answers in place of the primary.
bool backup_serves(const Observed& observed);

/// True while the backups hand over to the primary, whose pod waits for their end.
bool backup_hands_over(const Observed& observed);

/// True if a backup may take over with another configuration than the offered one.
bool stale_backup(const Observed& observed, const ConfigState& state);
/// True if the primary's pod may be replaced: it does not serve, or all backups are ready and up to date. For a pod with
/// another release of Slurm, there must be no backup.
bool primary_may_restart(const Observed& observed, const ConfigState& state);

/// Returns the names of all slurmctld pods, each of which has a Service of its own name. Empty without backups.
std::vector<std::string> addressed_pods(const Observed& observed);

/// A StatefulSet with several slurmctlds that release 1.3 of the Go operator made. It cannot be taken over as it is: the
/// slurmctlds of that StatefulSet and ours would fail over independently, each with another list of slurmctlds.
struct OtherSlurmctlds {
  Problem problem;
  std::optional<plan::Step> end;  ///< Scales the StatefulSet down to its first pod, which serves.
};
/// Returns nullopt if at most one slurmctld is not ours.
std::optional<OtherSlurmctlds> find_other_slurmctlds(const Observed& observed);

/// Adds the Service of each slurmctld and the PodDisruptionBudget of all of them.
void plan_backup_network(Draft& draft, plan::Lane& lane);
/// Adds the steps for the backups. `lane`: the lane of the primary's pod. Returns true if the backups change.
bool plan_backups(Draft& draft, plan::Lane& lane, const ConfigState& state, const std::string& slurm_key_digest);

/// Reports which slurmctld is primary and which backups are missing.
void set_backups_condition(Conditions& conditions, Draft& draft);

}  // namespace op::controller
