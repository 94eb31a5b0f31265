// Judges how far a node is on its way out of Slurm: one that leaves, or one that gets other words and comes back.
//
//   drain it -> nothing runs there, by Slurm's word and by the host's -> the host stops slurmd -> delete Slurm's record
//   -> a later answer of Slurm lacks it -> the host is cleaned up -> forget it
//                                       or the host starts slurmd with the other words
//
// No step is stored as done: each is seen in Slurm or in the agent's report, so any process can continue at any time. What is
// not known counts as running.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "enlist/rules/model.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace enlist {

/// The reason of a node that leaves, that of one that gets other words, and that of one of which nothing is heard. A node that
/// stays is opened again once it is confirmed, as at the gate.
inline constexpr std::string_view kLeaves = "leaving", kConfigures = "configuring", kUnheard = "silent";

/// Reports whether the reason has a hold that slurm-enlist itself has set. Somebody may have added words to it.
[[nodiscard]] bool holds_itself(std::string_view reason);

/// From when on something that keeps a node is a fault. Jobs that run may take as long as they like.
inline constexpr core::Duration kStuckAfter{120'000};
/// How long Slurm must lack the record of a node before its deletion counts as saved: several times as long as slurmctld takes
/// to save its state.
inline constexpr core::Duration kSavedAfter{30'000};
/// With Leaving::force, how long after the wish an agent counts that does not answer, or cannot do what it is asked for.
inline constexpr core::Duration kForcedAfter{10'000};

struct Leaves {
  Phase phase = Phase::kDraining;
  std::string message;  ///< One line for people: what is waited for.
  /// What keeps the node, in one word, to measure for how long it does. "": nothing, or jobs that run.
  std::string kept_by;
  bool stop = false;    ///< Leaving::stop, or Configuring::stop.
  bool drain = false;   ///< The node is to be drained, or the reason of its drain is to be ours.
  bool erase = false;   ///< The record in Slurm is to be deleted.
  bool forget = false;  ///< The coordinator's record is to be deleted.
  bool cancel = false;  ///< The host has returned that the coordinator itself wished to leave.
  bool start = false;   ///< Slurm does not have the record any more: slurmd is to be started with the other words.
};

struct LeaveInput {
  const Node& node;  ///< Its leave is wanted, or other words that restart it. A leave goes first.
  slurm::SnapshotPtr slurm;
  /// When this process first saw the wish. An answer of Slurm that was asked for before proves nothing.
  std::optional<core::MonoTime> asked_at;
  std::optional<core::MonoTime> heard_at;    ///< JudgeInput::heard_at.
  std::optional<core::MonoTime> kept_since;  ///< Since when Leaves::kept_by is the same; nullopt: just now.
  core::MonoTime now;
  std::string two_hosts{};  ///< Boots::two_hosts. The report may be that of a copy on which nothing runs.
  std::string_view why{};   ///< The reason of its drain. "": kLeaves or kConfigures, by the wish.
};

[[nodiscard]] Leaves judge_leave(const LeaveInput& input);

/// Reports whether Slurm's record under the name of the node is that of its host. Any other one is left alone.
[[nodiscard]] bool is_of(const slurm::Node& record, const Node& node);

/// Returns the value of Desired::leave for a node.
[[nodiscard]] std::string_view leave_of(const Node& node);

/// Reports whether the phase is one of a node on its way out of Slurm.
[[nodiscard]] bool leaves(Phase phase);

}  // namespace enlist
