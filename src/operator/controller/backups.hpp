// Backups of slurmctld: one StatefulSet beside that of the primary.
//
// A slurmctld that stands by reads its configuration when it starts, and takes over with that: what was added since it does
// not know, and the jobs that use it would be lost. So its pods are made anew with each configuration, which costs nothing,
// and the primary is reconfigured only when no backup is left that was started with another one.
//
//   slurm.conf or a template changes -> the backups' StatefulSet replaces its pods
//   no backup runs with another slurm.conf -> the primary is reconfigured
//   another release of Slurm is wanted -> the backups go, and come back when the primary is of that release
//   the new backups are ready -> the primary's pod is replaced, where its template has changed
//
// While a backup serves, because the primary's pod is not ready, the backups are left as they are. A primary that comes back
// waits in its pod until none serves (kWaitBackup). Then all backups go, and come back when the primary has begun.
#pragma once

#include <string>
#include <vector>

#include "cluster/status.hpp"
#include "operator/controller/draft.hpp"
#include "operator/controller/observed.hpp"
#include "operator/controller/rollout.hpp"

namespace op::controller {

/// The init container of the primary's pod that ends when no backup serves.
inline constexpr const char* kWaitBackup = "wait-backup";

/// How many slurmctlds stand by beside the one that runs.
int backups(const Observed& observed);

/// The pod of the primary is ready.
bool primary_ready(const Observed& observed);
/// A backup answers in place of the primary.
bool backup_serves(const Observed& observed);

/// The primary's pod waits for the end of the backup that serves.
bool backup_hands_over(const Observed& observed);

/// A backup may take over with another configuration than the offered one.
bool stale_backup(const Observed& observed, const ConfigState& state);
/// The primary's pod may be replaced: it serves nobody, or each backup is ready, and as it is wanted; for another release,
/// when there is no backup.
bool primary_may_restart(const Observed& observed, const ConfigState& state);

/// The names of all slurmctlds' pods, which each have a Service of their name; none without backups.
std::vector<std::string> addressed_pods(const Observed& observed);

/// What is in the way of taking over a StatefulSet with several slurmctlds, as release 1.3 of the Go operator makes it. With
/// ours there would be two that take over by themselves, each of which has another list of slurmctlds.
struct OtherSlurmctlds {
  Problem problem;
  std::optional<plan::Step> end;  ///< Scales it to the first, which serves.
};
/// nullopt: there is one slurmctld at most that we have not made.
std::optional<OtherSlurmctlds> find_other_slurmctlds(const Observed& observed);

/// Adds the Service of each slurmctld, and the disruption budget of all of them.
void plan_backup_network(Draft& draft, plan::Lane& lane);
/// Adds the steps that make the backups. `lane`: that of the primary's pod. Whether anything of them is to change.
bool plan_backups(Draft& draft, plan::Lane& lane, const ConfigState& state, const std::string& slurm_key_digest);

/// Who is primary, and which backup is not there.
void set_backups_condition(Conditions& conditions, Draft& draft);

}  // namespace op::controller
