// Retains in slurm.conf the items that jobs still use. If a partition is gone, slurmctld ends the partition's jobs, pending
// jobs included. If a license or a kind of GRES is gone, slurmctld drops it from the jobs that use it (_sync_jobs_to_conf in
// read_config.c, license_update and gres_job_state_unpack; 24.11 and 26.05).
//
// A partition is removed in two steps. First it is rendered with State=DRAIN: pending jobs still start, and Slurm accepts no
// new jobs. The partition is left out once slurmctld reports that state and, after that, no job of the partition. So no job can
// arrive between the check and the removal. Withheld items stay in slurm.conf, from which a restarted operator reads them. If
// an offered slurm.conf has a NodeSet's partition that slurmctld does not report yet, the removal also takes both steps,
// because the kubelet might deliver that file late.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "operator/controller/observed.hpp"
#include "plan/plan.hpp"
#include "slurm/conf/conf.hpp"

namespace op::controller {

struct ConfigState;
struct Rendered;

/// Reason of a warning: the wanted limit of a table in slurmctld leaves no room for a further entry, or the number of entries
/// is unknown. See withhold_tables.
inline constexpr std::string_view kTableTooSmall = "TableTooSmall";

struct Withheld {
  std::string what;  ///< "partition/gpu", "license/matlab" or "gres/gpu", as the annotation remove-now lists it.
  std::vector<std::int64_t> jobs{};  ///< Jobs that use the item or wait for it.
  bool unlimited = false;            ///< One of the jobs runs without a time limit.
  /// Meaningful if `jobs` is empty. True: Slurm does not report now whether jobs use the item. False: slurmctld must first stop
  /// accepting jobs for the item.
  bool unknown = false;
};

/// Retains the partitions of `state` that are neither in `ours` nor in `user` any more but cannot be removed yet. Adds
/// partitions of NodeSets to `ours` and all other partitions to `user`. Also adds the NodeSets and nodes that these partitions
/// name.
std::vector<Withheld> withhold_partitions(slurm::conf::Conf& ours, slurm::conf::Conf& user, const Observed& observed,
                                          const ConfigState& state);
/// Retains the licenses and kinds of GRES that jobs use.
std::vector<Withheld> withhold_resources(slurm::conf::Conf& wanted, const Observed& observed, const ConfigState& state);

/// Retains the present limit of a table if the wanted limit is smaller and does not exceed the number of entries in slurmctld.
/// Also retains the present limit if that number is unknown and the wanted limit is smaller. At its next reconfigure, slurmctld
/// would drop the entries beyond the limit (24.11 and 26.05: "node table is full", "MaxJobCount limit from slurm.conf
/// reached").
void withhold_tables(slurm::conf::Conf& wanted, const Observed& observed, const ConfigState& state,
                     std::vector<Problem>& warnings);

/// Returns the partition in a state in which Slurm accepts no new jobs. Removes Default, which would override the new default
/// partition.
slurm::conf::Entry drained(slurm::conf::Entry partition);

/// Returns the items to report in the condition ChangesWithheld: items with jobs, and items whose jobs are unknown. A partition
/// without jobs that is being removed in two steps is not reported.
std::vector<Withheld> told_of(const std::vector<Withheld>& withheld);
/// Describes what is withheld, for which jobs, and what users can do.
std::string describe(const Observed& observed, const std::vector<Withheld>& withheld);

/// True if the offered file lacks a partition that `wanted` withholds for its jobs. A slurmctld that starts with the file would
/// end these jobs.
bool lacks_withheld(const ConfigState& state, const Rendered& wanted);
/// Returns the wanted partitions that the offered file lacks and in which slurmctld has jobs: if slurmctld loaded that file, it
/// would end the jobs. This can happen after a rollback, if slurmctld has loaded content but the operator has not recorded that
/// slurmctld accepted this content.
std::set<std::string> load_ends_jobs(const Observed& observed, const ConfigState& state, const Rendered& wanted);

/// Requests another pass later, because the end of a job causes no event that would start a pass.
void watch_withheld(const Observed& observed, const std::vector<Withheld>& withheld, plan::Plan& plan);

}  // namespace op::controller
