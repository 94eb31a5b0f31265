// Keeps in slurm.conf what jobs still use. If a partition is gone, slurmctld ends its jobs, pending jobs included. If a license
// or a kind of GRES is gone, slurmctld drops it from the jobs that use it (_sync_jobs_to_conf in read_config.c, license_update
// and gres_job_state_unpack; 24.11 and 26.05).
//
// A partition is removed in two steps. First it is rendered with State=DRAIN: pending jobs still start, and no more are
// accepted. It is left out once slurmctld reports that state, and then no job of the partition. So no job can arrive between
// the check and the removal. Withheld items stay in slurm.conf, so a restarted operator goes on with them. A NodeSet's
// partition in an offered slurm.conf takes both steps even if slurmctld does not report it yet: the kubelet may deliver that
// file late.
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

/// Reason of a problem: a table of slurmctld is to become smaller than its contents.
inline constexpr std::string_view kTableTooSmall = "TableTooSmall";

struct Withheld {
  std::string what;  ///< "partition/gpu", "license/matlab" or "gres/gpu", as the annotation remove-now lists it.
  std::vector<std::int64_t> jobs{};  ///< Jobs that use the item or wait for it.
  bool unlimited = false;            ///< One of the jobs runs without a time limit.
  /// The reason why the item is withheld if `jobs` is empty. True: Slurm does not report now whether jobs use it. False:
  /// slurmctld must first stop accepting jobs for it.
  bool unknown = false;
};

/// Keeps the partitions that `state` has, that `ours` and `user` no longer have, and that cannot be removed yet. Partitions of
/// NodeSets are added to `ours` and all others to `user`, each with the NodeSets and nodes that it names.
std::vector<Withheld> withhold_partitions(slurm::conf::Conf& ours, slurm::conf::Conf& user, const Observed& observed,
                                          const ConfigState& state);
/// Keeps the licenses and kinds of GRES that jobs use.
std::vector<Withheld> withhold_resources(slurm::conf::Conf& wanted, const Observed& observed, const ConfigState& state);

/// Keeps the size of a table that would become smaller than its contents in slurmctld, or whose contents are unknown. At its
/// next reconfigure slurmctld would drop the rest (24.11 and 26.05: "node table is full", "MaxJobCount limit from slurm.conf
/// reached").
void withhold_tables(slurm::conf::Conf& wanted, const Observed& observed, const ConfigState& state,
                     std::vector<Problem>& warnings);

/// Returns the partition with a state in which it accepts no more jobs, and without Default, which would override the new
/// default.
slurm::conf::Entry drained(slurm::conf::Entry partition);

/// Returns the items to report in the condition ChangesWithheld: those with jobs, and those whose jobs are unknown. A partition
/// without jobs that is being removed in two steps is not reported.
std::vector<Withheld> told_of(const std::vector<Withheld>& withheld);
/// Describes what is withheld, for which jobs, and what users can do.
std::string describe(const Observed& observed, const std::vector<Withheld>& withheld);

/// True if the offered file lacks a partition that `wanted` withholds for its jobs. A slurmctld that starts with the file would
/// end these jobs.
bool lacks_withheld(const ConfigState& state, const Rendered& wanted);
/// Returns the wanted partitions that the offered file lacks and in which slurmctld has jobs. slurmctld would end the jobs if
/// it loaded that file. This happens after a rollback, if slurmctld had loaded more than it is known to have accepted.
std::set<std::string> load_ends_jobs(const Observed& observed, const ConfigState& state, const Rendered& wanted);

/// Plans for the key again later, because nothing wakes the key when a job ends.
void watch_withheld(const Observed& observed, const std::vector<Withheld>& withheld, plan::Plan& plan);

}  // namespace op::controller
