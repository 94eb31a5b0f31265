// What may not leave slurm.conf yet, because jobs use it. slurmctld ends the jobs of a partition that is gone, waiting ones
// too, and forgets the licenses and the GRES of jobs whose name is gone (_sync_jobs_to_conf in read_config.c, license_update
// and gres_job_state_unpack; 24.11 and 26.05).
//
// A partition goes in two steps. First it is rendered with State=DRAIN: what waits there still starts, and nothing more is
// submitted. Once slurmctld says that this is in force, and after that names no job of it, it is left out. So no job comes
// between the look and the act. What is withheld stands in slurm.conf itself, so a new process goes on with it. One of a
// NodeSet that was offered goes no other way, though slurmctld does not have it yet: a volume that is behind may bring it.
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

/// Reason of a problem: a table of slurmctld is to be smaller than what it has in it.
inline constexpr std::string_view kTableTooSmall = "TableTooSmall";

struct Withheld {
  std::string what;  ///< "partition/gpu", "license/matlab" or "gres/gpu", as the annotation remove-now lists it.
  std::vector<std::int64_t> jobs{};  ///< That use it, or wait for it.
  bool unlimited = false;            ///< One of them runs without a time limit.
  /// Without jobs: true when Slurm does not say (now) whether there are any; else slurmctld is to take no more of them first.
  bool unknown = false;
};

/// Keeps the partitions that `state` has, that `ours` and `user` no longer have, and that cannot go yet: in `ours` those of
/// NodeSets, in `user` all others, each with the NodeSets and nodes that it names.
std::vector<Withheld> withhold_partitions(slurm::conf::Conf& ours, slurm::conf::Conf& user, const Observed& observed,
                                          const ConfigState& state);
/// Keeps the licenses and kinds of GRES that jobs use.
std::vector<Withheld> withhold_resources(slurm::conf::Conf& wanted, const Observed& observed, const ConfigState& state);

/// Keeps the size of a table that is to be smaller than what slurmctld has in it, or than nobody knows what: at its next
/// reconfigure it would drop the rest (24.11 and 26.05: "node table is full", "MaxJobCount limit from slurm.conf reached").
void withhold_tables(slurm::conf::Conf& wanted, const Observed& observed, const ConfigState& state,
                     std::vector<Problem>& warnings);

/// The partition as it was, but that it takes no more jobs. It is nobody's default any more, or it would hide the new one.
slurm::conf::Entry drained(slurm::conf::Entry partition);

/// The condition ChangesWithheld is about these: by jobs, or for want of knowledge. A partition that only takes its two steps
/// is not told.
std::vector<Withheld> told_of(const std::vector<Withheld>& withheld);
/// What is withheld, for which jobs, and what to do about it.
std::string describe(const Observed& observed, const std::vector<Withheld>& withheld);

/// What `state` offers lacks a partition that is withheld in `wanted` for its jobs: a slurmctld that starts with it would end
/// them.
bool lacks_withheld(const ConfigState& state, const Rendered& wanted);
/// Partitions that are wanted, that `state` does not offer, and in which slurmctld has jobs: it would end them if it loaded
/// that. It has run with more than it is known to have accepted, and that has been gone back to.
std::set<std::string> load_ends_jobs(const Observed& observed, const ConfigState& state, const Rendered& wanted);

/// Looks again later: jobs that end wake nobody.
void watch_withheld(const Observed& observed, const std::vector<Withheld>& withheld, plan::Plan& plan);

}  // namespace op::controller
