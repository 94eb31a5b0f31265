// Judges whether a unit's node may be taken out of Slurm, and parses the jobs that squeue prints. Pure.
//
// The rules are those of enlist/rules/leave.hpp, except for the order of the last steps: the node record is deleted, and seen
// to be gone, before slurmd is stopped. This is because slurmd signs the requests of Slurm's commands on its machine, so that
// no command works without slurmd.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "enlist/rules/leave.hpp"
#include "slurm/model.hpp"
#include "slurm/snapshot/shared_map.hpp"

namespace enlist::juju {

using Jobs = slurm::SharedMap<std::int64_t, std::shared_ptr<const slurm::Job>>;

/// Returns the command that prints jobs for jobs_from(). `which`: further arguments of squeue.
[[nodiscard]] std::vector<std::string> jobs_question(const std::vector<std::string>& which);
/// Parses the output of that command. Leaves Job::nodes empty. Error: kInternal if a line has another format.
[[nodiscard]] core::Result<Jobs> jobs_from(std::string_view squeue);

/// A node as it was seen. The members are read in this order. No job is missed, because none starts after a drained record was
/// read.
struct LeaveSeen {
  std::string node, instance;           ///< `instance`: instance_of() the unit.
  std::optional<slurm::Node> record{};  ///< nullopt: Slurm has no such node.
  Jobs there{};                         ///< The jobs that Slurm has on the node, including ended ones.
  Jobs waiting{};                       ///< All pending jobs of the cluster.
  std::vector<std::string> steps{};     ///< Service::steps().
  std::string_view why = kLeaves;       ///< The reason with which the node is drained.
  /// Set only if the unit is gone: for how long Slurm has had no answer from its slurmd. Nobody can read `steps` then.
  std::optional<core::Duration> silent_for{};
};
/// Returns what to do next, in Leaves::drain, Leaves::erase and Leaves::message. The phase is kGone if Slurm has no record of
/// this slurmd, so that slurmd may be stopped. The record of a unit that is gone stays as it is unless its slurmd is silent.
[[nodiscard]] Leaves judge_unit(const LeaveSeen& seen);

/// Returns the reason with which to drain a record because of `why`. Keeps somebody else's reason for a node that is down or
/// fails.
[[nodiscard]] std::string drain_reason(const slurm::Node& record, std::string_view why);
/// Returns the reason with which somebody else has drained a node, set it down or let it fail; "": nobody has.
[[nodiscard]] std::string kept_by_others(const slurm::Node& record);

}  // namespace enlist::juju
