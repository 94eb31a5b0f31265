// Judges in which phase a node is, from its record and from what Slurm shows.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "enlist/rules/model.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace enlist {

/// The hold (slurm/holds.hpp) of the gate. A node registers as drained with this hold, and is resumed once it is confirmed.
inline constexpr std::string_view kGate = "joining";

/// A node is silent if its agent has not reported for this long, and Slurm has no record of the node or shows it as not
/// responding.
inline constexpr core::Duration kSilentAfter{120'000};

struct Judged {
  Phase phase = Phase::kPending;  ///< kEnlisted and kReady: the slurmd of the report is confirmed.
  std::string message;  ///< The cause of the phase: one line for people, the same as long as nothing changes. "": none.
  /// The node is confirmed and responds, its check has passed, and only our hold drains it. The snapshot can be seconds old, so
  /// the act that opens the node checks its reason again.
  bool open_gate = false;
  /// The node must be drained by our gate: the host has booted since its check passed, the check has not passed again, and
  /// nothing drains the node yet.
  bool close_gate = false;
  /// The check has passed since the host booted, or the gate is closed. The caller sets Node::gate_boot to Report::boot_id (not
  /// empty here), so that the gate does not close again in this boot after somebody has resumed the node.
  bool gate_decided = false;
  /// slurmd must register again, once, because it runs and Slurm has no record of the node. The caller adds one to
  /// Node::registrations and stores the phase before it calls judge again. It is true again only after the agent has carried
  /// out the registration, and after a pause that grows from 5 s to 5 minutes, or when Slurm has lost the record once more.
  bool register_again = false;
};

/// Returns how the CPUs or the memory in Slurm's record differ from Report::conf, in one line; "": they do not. Ignores up to
/// one percent of the memory, because a host can have some MiB more or less after an update of its kernel.
[[nodiscard]] std::string differs_from_conf(const slurm::Node& record, const Report& report);

/// True if the agent has reported since the host joined. The join itself sets only the hostname and the Slurm version.
[[nodiscard]] bool has_reported(const Report& report);

struct JudgeInput {
  const Node& node;
  /// Null or incomplete: the state of Slurm is unknown. Then the phase stays, and the message says that Slurm does not answer.
  slurm::SnapshotPtr slurm;
  /// Since when the coordinator's process has seen the slurmd of the report run unconfirmed. nullopt: that slurmd is confirmed
  /// or not running. Begins again with another instance id, and when slurmd has registered again after its record was lost.
  std::optional<core::MonoTime> running_since;
  /// When slurmd last registered again because of Judged::register_again. nullopt: not since running_since.
  std::optional<core::MonoTime> registered_at{};
  int registered = 0;  ///< How often slurmd has registered again at running_since or later.
  /// When the coordinator's process first saw this value of Report::started. nullopt: just now.
  std::optional<core::MonoTime> started_at{};
  /// When the agent last reported to this process of the coordinator. nullopt: never, and the node does not count as silent. A
  /// process that has known the node for kSilentAfter passes the time at which it first saw the node instead of nullopt.
  std::optional<core::MonoTime> heard_at;
  core::MonoTime now;
  /// How long slurmd may run unconfirmed before the node is refused. slurmctld accepts a node within a second, and reports no
  /// refusal. A node is refused earlier if the cause is known.
  core::Duration refused_after{10'000};
  std::optional<std::size_t> max_node_count;  ///< MaxNodeCount of slurmctld, if known, to name a full table as the cause.
  std::string two_hosts{};                    ///< Boots::two_hosts. Not "": two hosts send reports for this node.
};

/// Returns the phase of the node. The node is confirmed if Slurm's record has the instance id of the report, the pool among its
/// features and its partitions, at least the CPUs and the memory of Report::conf, and not the state INVALID_REG. If the record
/// shows an earlier start of slurmd than the report, the record confirms only a ready node until `refused_after` is over. After
/// that it confirms any node, with a message, because the clock of the host has possibly been set.
[[nodiscard]] Judged judge(const JudgeInput& input);

/// Returns a number that grows by one with each major release of Slurm. `version`: such as "26.05.1". nullopt: it cannot be
/// parsed.
[[nodiscard]] std::optional<int> release_number(std::string_view version);

/// Returns why slurmctld does not accept a slurmd of this version; "" if it does, or if a version cannot be parsed. slurmd must
/// not be newer, and at most three major releases older (Slurm's Upgrade Guide, 24.11 and later).
[[nodiscard]] std::string version_problem(std::string_view slurmd, std::string_view slurmctld);

}  // namespace enlist
