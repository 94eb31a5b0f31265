// Whether a unit's node may be taken out of Slurm, and which jobs there are, from what Slurm's commands print. Pure.
//
// The judgement is that of enlist/rules/leave.hpp. Only the order at the end differs: slurmd itself signs what the commands of
// its machine send, so that none of them works without it. So the record is deleted, and seen to be gone, before slurmd is
// stopped.
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
/// Reads it. `Job::nodes` stays empty. Error: kInternal if a line is not understood.
[[nodiscard]] core::Result<Jobs> jobs_from(std::string_view squeue);

/// A node as it was seen. What is read later stands later here: a job that starts in between is not missed, because the record
/// is drained.
struct LeaveSeen {
  std::string node, instance;           ///< `instance`: instance_of() the unit.
  std::optional<slurm::Node> record{};  ///< nullopt: Slurm has no such node.
  Jobs there{};                         ///< Those that Slurm has on the node, also ended ones.
  Jobs waiting{};                       ///< All that wait.
  std::vector<std::string> steps{};     ///< Service::steps.
  std::string_view why = kLeaves;       ///< The reason of its drain.
  /// Set if the unit is gone: for how long Slurm has had no answer from its slurmd. Then nobody can read `steps`.
  std::optional<core::Duration> silent_for{};
};
/// Leaves::drain, Leaves::erase and Leaves::message are set as they apply. The phase is kGone if Slurm has no record of this
/// slurmd: slurmd may be stopped. The record of a unit that is gone is left alone unless its slurmd is silent.
[[nodiscard]] Leaves judge_unit(const LeaveSeen& seen);

/// Returns the reason for a record that is to be drained for `why`. That of somebody else who keeps it out of service stays.
[[nodiscard]] std::string drain_reason(const slurm::Node& record, std::string_view why);
/// Returns the reason with which somebody else keeps a node out of service; "": nobody does.
[[nodiscard]] std::string kept_by_others(const slurm::Node& record);

}  // namespace enlist::juju
