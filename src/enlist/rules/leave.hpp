// Judges how far a node is on its way out of Slurm. The node leaves, or is restarted with other parameters for --conf.
//
//   drain the node -> Slurm and the agent report that nothing runs there -> the host stops slurmd -> delete Slurm's record
//   -> a later answer of Slurm lacks the record -> the host is cleaned up -> delete the coordinator's record
//                                               or the host starts slurmd with the other parameters
//
// No step is stored as done: each is visible in Slurm or in the agent's report, so any process can continue at any time.
// Unknown values count as running jobs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "enlist/rules/model.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace enlist {

/// The holds (slurm/holds.hpp) of a node that leaves, of one that is restarted with other parameters, and of a silent one. If
/// such a node stays after all, it is resumed once it is confirmed, like a node at the gate.
inline constexpr std::string_view kLeaves = "leaving", kConfigures = "configuring", kUnheard = "silent";

/// Reports whether the reason contains a hold of slurm-enlist: kGate, kLeaves, kConfigures or kUnheard. It can contain other
/// holds as well.
[[nodiscard]] bool holds_itself(std::string_view reason);

/// After this time with the same Leaves::kept_by, the node is kStuck. Running jobs never make a node kStuck.
inline constexpr core::Duration kStuckAfter{120'000};
/// How long Slurm must lack the record of a node before its deletion counts as saved: several times as long as slurmctld takes
/// to save its state.
inline constexpr core::Duration kSavedAfter{30'000};
/// With Leaving::force, how long the agent has to report and to stop slurmd. After that, the leave goes on without the agent.
inline constexpr core::Duration kForcedAfter{10'000};

struct Leaves {
  Phase phase = Phase::kDraining;
  std::string message;  ///< One line for people: what the leave waits for.
  /// What the leave waits for, as a keyword such as "jobs" or "steps". The caller measures how long it stays the same. "":
  /// nothing.
  std::string kept_by;
  bool stop = false;    ///< The new value of Leaving::stop or Configuring::stop.
  bool drain = false;   ///< The node is to be drained, or its drain is to get our hold.
  bool erase = false;   ///< The record in Slurm is to be deleted.
  bool forget = false;  ///< The coordinator's record is to be deleted.
  bool cancel = false;  ///< The leave is to be cancelled: it is a Leaving::dead one, and the host has returned.
  bool start = false;   ///< slurmd is to be started with the other parameters: Slurm has no record of the node any more.
};

struct LeaveInput {
  const Node& node;  ///< Has a request to leave (Node::leaving) or to restart (Node::configuring). A leave takes precedence.
  slurm::SnapshotPtr slurm;
  /// When this process first saw the request to leave or to restart. Snapshots that were requested earlier are not used.
  std::optional<core::MonoTime> asked_at;
  std::optional<core::MonoTime> heard_at;    ///< JudgeInput::heard_at.
  std::optional<core::MonoTime> kept_since;  ///< Since when Leaves::kept_by is the same; nullopt: just now.
  core::MonoTime now;
  std::string two_hosts{};  ///< Boots::two_hosts. Not "": the report can come from a copy of the host, where nothing runs.
  std::string_view why{};   ///< The hold to drain the node with. "": kLeaves for a leave, kConfigures for a restart.
};

[[nodiscard]] Leaves judge_leave(const LeaveInput& input);

/// Reports whether the record that Slurm has under the name of the node comes from the node's host. Other records are not
/// changed.
[[nodiscard]] bool is_of(const slurm::Node& record, const Node& node);

/// Returns Desired::leave for the node.
[[nodiscard]] std::string_view leave_of(const Node& node);

/// Reports whether the phase is one of a node on its way out of Slurm.
[[nodiscard]] bool leaves(Phase phase);

}  // namespace enlist
