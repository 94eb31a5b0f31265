// Keeps in slurm.conf what jobs still use. If a partition is gone, slurmctld ends its jobs, pending jobs included. If a license
// or a kind of GRES is gone, slurmctld drops it from the jobs that use it (_sync_jobs_to_conf in read_config.c, license_update
// and gres_job_state_unpack; 24.11 and 26.05).
//
// A partition is removed in two steps. First it is rendered with State=DRAIN: pending jobs still start, and Slurm accepts no
// more. It is left out once slurmctld reports that state and, after that, no job of the partition. So no job can arrive between
// the check and the removal. Withheld items stay in slurm.conf, from which a restarted operator reads them. A NodeSet's
// partition in an offered slurm.conf takes both steps even if slurmctld does not report it yet, because the kubelet may deliver
// that file late.
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

/// Reason of a warning: the wanted limit of a table of slurmctld is too small for the entries of the table: see
/// withhold_tables.
inline constexpr std::string_view kTableTooSmall = "TableTooSmall";

struct Withheld {
  std::string what;  ///< "partition/gpu", "license/matlab" or "gres/gpu", as the annotation remove-now lists it.
  std::vector<std::int64_t> jobs{};  ///< Jobs that use the item or wait for it.
  bool unlimited = false;            ///< One of the jobs runs without a time limit.
  /// Why the item is withheld if `jobs` is empty. True: Slurm does not report now whether jobs use the item. False: slurmctld
  /// must first stop accepting jobs for it.
  bool unknown = false;
};

/// Keeps the partitions of `state` that `ours` and `user` no longer have but that cannot be removed yet. Adds partitions of
/// NodeSets to `ours` and all others to `user`, each with the NodeSets and nodes that it names.
std::vector<Withheld> withhold_partitions(slurm::conf::Conf& ours, slurm::conf::Conf& user, const Observed& observed,
                                          const ConfigState& state);
/// Keeps the licenses and kinds of GRES that jobs use.
std::vector<Withheld> withhold_resources(slurm::conf::Conf& wanted, const Observed& observed, const ConfigState& state);

/// Keeps the present limit of a table if the wanted limit is smaller and does not exceed the number of entries in slurmctld, or
/// if that number is unknown. At its next reconfigure, slurmctld would drop the entries beyond the limit (24.11 and 26.05:
/// "node table is full", "MaxJobCount limit from slurm.conf reached").
void withhold_tables(slurm::conf::Conf& wanted, const Observed& observed, const ConfigState& state,
                     std::vector<Problem>& warnings);

/// Returns the partition with a state in which Slurm accepts no more jobs for it, and without Default, because it would
/// override the new default partition.
slurm::conf::Entry drained(slurm::conf::Entry partition);

/// Returns the items to report in the condition ChangesWithheld: those with jobs, and those whose jobs are unknown. A partition
/// without jobs that is being removed in two steps is not reported.
std::vector<Withheld> told_of(const std::vector<Withheld>& withheld);
/// Describes what is withheld, for which jobs, and what users can do.
std::string describe(const Observed& observed, const std::vector<Withheld>& withheld);

/// True if the offered file lacks a partition that `wanted` withholds for its jobs. A slurmctld that starts with the file would
/// end these jobs.
bool lacks_withheld(const ConfigState& state, const Rendered& wanted);
/// Returns the wanted partitions that the offered file lacks and in which slurmctld has jobs: if slurmctld loaded that file, it
/// would end the jobs. This happens after a rollback if slurmctld had loaded content that it is not known to have accepted.
std::set<std::string> load_ends_jobs(const Observed& observed, const ConfigState& state, const Rendered& wanted);

/// Asks for another pass later, because no event wakes the key when a job ends.
void watch_withheld(const Observed& observed, const std::vector<Withheld>& withheld, plan::Plan& plan);

}  // namespace op::controller
