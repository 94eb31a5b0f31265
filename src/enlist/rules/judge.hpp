// Judges in which phase a node is, from its record and from what Slurm shows. Pure.
#pragma once

#include <optional>
#include <string>

#include "core/clock.hpp"
#include "enlist/rules/model.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace enlist {

/// Reason of the gate: a node registers drained with this hold, and is opened after it was confirmed.
inline constexpr std::string_view kGate = "joining";

struct Judged {
  Phase phase = Phase::kPending;
  std::string message;
  bool open_gate = false;       ///< The node is confirmed, its check has passed, and only our gate keeps it drained.
  bool register_again = false;  ///< The record has vanished while slurmd runs: it must register again, once.
};

struct JudgeInput {
  const Node& node;
  /// Null or incomplete: Slurm is not known. Then the phase stays, and the message says that Slurm does not answer.
  slurm::SnapshotPtr slurm;
  /// Since when this process has seen the report's slurmd run without being confirmed; nullopt: it is confirmed or not running.
  std::optional<core::MonoTime> running_since;
  std::optional<core::MonoTime> heard_at;  ///< When the agent last reported to this process; nullopt: not yet.
  core::MonoTime now;
  core::Duration refused_after{10000};  ///< Slurm takes a node within a second. It tells nobody when it refuses one.
  std::optional<std::size_t> max_node_count;  ///< MaxNodeCount of slurmctld, if known, to name a full table as the cause.
};

/// Returns the phase. Confirmed means: Slurm's record has the instance id of the report, the pool among its features and its
/// partitions, at least the CPUs and the memory of Report::conf, and is not INVALID_REG.
[[nodiscard]] Judged judge(const JudgeInput& input);

}  // namespace enlist
