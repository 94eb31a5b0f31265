// Judges in which phase a node is, from its record and from what Slurm shows.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "enlist/rules/model.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace enlist {

/// Reason of the gate: a node registers drained with this hold, and is opened after it was confirmed.
inline constexpr std::string_view kGate = "joining";

/// Since when neither the agent nor slurmd has been heard of before a node is silent.
inline constexpr core::Duration kSilentAfter{120'000};

struct Judged {
  Phase phase = Phase::kPending;  ///< kEnlisted and kReady: the process of the report is confirmed.
  std::string message;  ///< Why: one line for people, the same as long as nothing changes. "": there is nothing to say.
  /// The node is confirmed and responds, its check has passed, and only our hold keeps it drained. The snapshot may be seconds
  /// old: the act that opens the node looks at its reason again.
  bool open_gate = false;
  /// The host has booted since the check passed, and it has not passed again: the node must be drained by our gate. Nobody
  /// drains it yet.
  bool close_gate = false;
  /// The check has passed in this boot of the host, or the gate is closed: Node::gate_boot becomes Report::boot_id, which is
  /// known. So a node that somebody resumes from the gate stays open.
  bool gate_decided = false;
  /// Slurm has no record of the node while slurmd runs: slurmd must register again, once. Node::registrations grows by one, and
  /// the phase is stored, before judge is called again. The result is true again only after the agent has carried that out, and
  /// after a pause that grows from 5 s to 5 minutes, or after the record was there meanwhile.
  bool register_again = false;
};

/// Returns in which CPUs or memory Slurm's record differs from Report::conf, in one line; "": in none. Ignores a difference of
/// one percent of the memory: a host may have some MiB more or less after an update of its kernel.
[[nodiscard]] std::string differs_from_conf(const slurm::Node& record, const Report& report);

/// True if the agent of a host was heard of since the host has joined. The join itself tells its name and version.
[[nodiscard]] bool has_reported(const Report& report);

struct JudgeInput {
  const Node& node;
  /// Null or incomplete: Slurm is not known. Then the phase stays, and the message says that Slurm does not answer.
  slurm::SnapshotPtr slurm;
  /// Since when this process has seen the report's slurmd run without being confirmed; nullopt: it is confirmed or not running.
  /// Begins again with another instance id, and when slurmd has registered again after its record was lost.
  std::optional<core::MonoTime> running_since;
  /// When slurmd has last registered again because it was asked to. nullopt: not after running_since.
  std::optional<core::MonoTime> registered_at{};
  int registered = 0;  ///< How often it has done so since the node was last confirmed, the one at running_since included.
  /// When this process first saw Report::started. nullopt: just now.
  std::optional<core::MonoTime> started_at{};
  /// When the agent last reported to this process. nullopt: not yet, and the node is not called silent. A coordinator that has
  /// run for a while passes its own start instead.
  std::optional<core::MonoTime> heard_at;
  core::MonoTime now;
  /// Slurm takes a node within a second, and tells nobody when it refuses one. A cause that is known is reported before this
  /// time.
  core::Duration refused_after{10'000};
  std::optional<std::size_t> max_node_count;  ///< MaxNodeCount of slurmctld, if known, to name a full table as the cause.
  std::string two_hosts{};                    ///< Boots::two_hosts: the report is not that of one host.
};

/// Returns the phase. Confirmed means: Slurm's record has the instance id of the report, the pool among its features and its
/// partitions, at least the CPUs and the memory of Report::conf, and is not INVALID_REG. A record with an earlier start of
/// slurmd than that of the report confirms only a node that is ready, before the limit. After that it confirms any node, with a
/// message, because the clock of the host may have been set.
[[nodiscard]] Judged judge(const JudgeInput& input);

/// Returns a number that grows by one with each major release of Slurm. Versions are like "26.05.1". nullopt: it cannot be
/// read.
[[nodiscard]] std::optional<int> release_number(std::string_view version);

/// Returns why slurmctld does not talk to a slurmd of this version; "" if it does, or if a version cannot be read. slurmd must
/// not be newer, and at most three major releases older (Slurm's Upgrade Guide, 24.11 and later).
[[nodiscard]] std::string version_problem(std::string_view slurmd, std::string_view slurmctld);

}  // namespace enlist
