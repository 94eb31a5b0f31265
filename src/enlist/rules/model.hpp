// What the coordinator and the agents know of pools and their nodes, as data. Pure: no I/O.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.hpp"

namespace enlist {

/// A pool: a partition, and the hosts that joined it. Its name is also the name of the partition, of the NodeSet, and of the
/// feature that the nodes carry.
struct Pool {
  std::string name;
  std::string partition_conf{};  ///< Further words of the PartitionName line: "MaxTime=1-0 Default=YES".
  std::string node_conf{};       ///< Words of slurmd's --conf for all nodes of the pool: "Weight=5". A host's own words win.
  std::int64_t next_number = 1;  ///< The number of the next node. Numbers are never used again.
  /// Its partition takes no new jobs. Once no job is left there, its nodes leave, and then the pool is removed.
  bool removing = false;
  friend bool operator==(const Pool&, const Pool&) = default;
};

/// What an agent says of its host. The coordinator believes an agent about its own node only.
struct Report {
  std::string hostname, boot_id;
  std::string slurm_version{};  ///< Of the installed slurmd: "26.05.1".
  std::string conf{};           ///< The value of --conf with which slurmd was started; "": it was not started.
  /// The value of --instance-id. It tells hosts apart, not the starts of slurmd: Slurm stores the id of the first
  /// registration, and keeps it as long as it has the record of the node (seen with 26.05.5).
  std::string instance_id{};
  bool running = false;        ///< slurmd runs.
  std::string key_revision{};  ///< The revision of the auth key in its file; "": none.
  /// The revision of the auth key with which slurmd runs, if it was seen to have started or reloaded after the file was
  /// written, or if it does not run. "": not known, or an older agent does not tell.
  std::string key_loaded{};
  std::uint64_t registrations = 0;  ///< The last Desired::registrations that the agent has carried out.
  std::string error{};              ///< Why slurmd does not run, or what the agent cannot do: one line, no secrets.
  bool check_passed = false;        ///< The admin's check script has passed, or there is none.
  /// When the process of slurmd was started, by the clock of the host. 0: it does not run, or an older agent does not tell.
  /// With systemd, slurmd has another process after it was reloaded.
  core::WallTime started{};
  // While the node leaves (Desired::leave):
  bool steps_known = false;          ///< `steps` was read. Otherwise, any steps may run.
  std::vector<std::string> steps{};  ///< The steps of jobs whose processes (slurmstepd) are on the host: "12.batch".
  bool stopped = false;              ///< slurmd was stopped because the node leaves, and does not start at the next boot.
  bool left = false;                 ///< The host has no files of slurm-enlist any more, except for those of the agent itself.

  std::string note{};  ///< What people should know, and is no error: one line, no secrets.
  friend bool operator==(const Report&, const Report&) = default;
};

/// The values of Desired::leave. An agent takes a word that it does not know for kLeaveSteps.
inline constexpr std::string_view kLeaveSteps = "steps";  ///< slurmd runs on. The report has the steps on the host.
inline constexpr std::string_view kLeaveStop = "stop";    ///< slurmd is stopped, unless steps run on the host.
inline constexpr std::string_view kLeaveClean = "clean";  ///< The host's files are removed as well.

/// What the agent must bring about on its host.
struct Desired {
  std::string node;                        ///< The name of the node in Slurm, for -N.
  std::string pool;                        ///< The pool: the feature of the node.
  std::string cluster;                     ///< ClusterName, to recognise a slurm.conf of another cluster on the host.
  std::vector<std::string> controllers{};  ///< For --conf-server: "host:port", the primary first. Empty: do not start slurmd.
  std::string node_conf{};                 ///< Words for --conf from the pool and the administrator, who wins over detection.
  std::string key_revision{};              ///< The auth key that the host must have.
  /// Grows by one each time that slurmd must register again, because Slurm has lost the record of the node.
  std::uint64_t registrations = 0;
  /// How far the node has left: "" (it stays), kLeaveSteps, kLeaveStop or kLeaveClean. A node that gets other words goes as
  /// far as kLeaveStop, and back to "".
  std::string leave{};
  friend bool operator==(const Desired&, const Desired&) = default;
};

/// The key of a node that has left and whose record Slurm has again. No host has it.
inline constexpr const char* kDepartedKey = "departed";

/// Where a node is on its way into and out of Slurm. In this order; those from kRefused on are faults.
enum class Phase {
  kPending,     ///< The host has joined. Its agent has not reported yet.
  kStarting,    ///< The agent writes files and starts slurmd.
  kConfirming,  ///< slurmd runs. Slurm does not show this process yet.
  kEnlisted,    ///< Slurm shows this very process with the values asked for. The node is still drained by the gate.
  kReady,       ///< The gate is open: Slurm may start jobs.
  kDraining,    ///< The node leaves, or gets other words. It is drained, and what runs there is waited for.
  kStopping,    ///< Nothing runs there any more. The agent stops slurmd.
  kDeleting,    ///< slurmd is stopped. The record in Slurm is deleted.
  kGone,        ///< Slurm does not have the node. The coordinator's record may be forgotten once the host is clean.
  kRefused,     ///< Slurm has not taken the node within the limit: its table is full, the name is taken, or slurmd failed.
  kInvalid,     ///< Slurm has the node, but with less than it was asked for (INVALID_REG), or in another pool.
  kImpostor,    ///< Slurm shows another slurmd under this name, or two hosts use its key.
  kLost,        ///< Slurm had the node and does not any more, while slurmd runs.
  kSilent,      ///< Neither the agent nor slurmd has been heard of for the limit.
  kStuck,       ///< The node leaves, or gets other words, and something has kept it for longer than the limit.
};

/// The wish that a node leaves.
struct Leaving {
  bool wanted = false;
  bool force = false;  ///< The host is not waited for for long. Jobs that Slurm has there are waited for in any case.
  bool dead = false;   ///< The coordinator itself wishes it, because the host has been silent for too long.
  bool stop = false;   ///< The host may have stopped slurmd, so the leave cannot be cancelled.
  core::WallTime since{};
  friend bool operator==(const Leaving&, const Leaving&) = default;
};

/// The wish that a node gets other words of its own (Node::node_conf).
struct Configuring {
  bool wanted = false;
  bool live = false;   ///< Slurm's record is changed while slurmd runs. Node::node_conf has the words already.
  bool stop = false;   ///< The host may have stopped slurmd.
  std::string conf{};  ///< The words.
  core::WallTime since{};
  bool taken_back = false;  ///< The last wish was taken back. Slurm's record may still be drained for it.
  /// Reports whether slurmd must be started with another record, so that the node leaves Slurm for a moment.
  [[nodiscard]] bool restarts() const { return wanted && !live; }
  friend bool operator==(const Configuring&, const Configuring&) = default;
};

/// What was changed in Slurm's record since it was made. Slurm reverts it at each reconfigure, so it is said again.
struct LiveWords {
  bool weight = false;
  std::vector<std::string> dropped{};  ///< Features that the node had, and must not have.
  friend bool operator==(const LiveWords&, const LiveWords&) = default;
};

/// What people have set in Slurm's record of a node, for a record that is made anew.
struct Marks {
  std::string reason{};  ///< Somebody else keeps the node from work, with this reason. "": nobody does.
  std::string comment{};
  friend bool operator==(const Marks&, const Marks&) = default;
};

/// A node's record at the coordinator. Exactly one host owns it: the one with this key.
struct Node {
  std::string name, pool;
  std::string key;          ///< The fingerprint of the host's public key (enlist/wire/identity.hpp).
  std::string node_conf{};  ///< Words of --conf for this node alone. They win over those of the pool.
  std::uint64_t registrations = 0;
  bool revoked = false;
  core::WallTime joined{};
  Report report{};  ///< The last report; empty before the first.
  /// The process that was confirmed last (Report::instance_id); "": none yet. From then on a missing record means kLost.
  std::string confirmed{};
  /// The boot of the host (Report::boot_id) for which the gate was last closed, or the check had passed.
  std::string gate_boot{};
  Phase phase = Phase::kPending;
  std::string message{};  ///< Why it is in this phase: one line for people.
  Leaving leaving{};
  Configuring configuring{};
  LiveWords live{};
  Marks marks{};                  ///< As Slurm last showed them.
  core::WallTime silent_since{};  ///< Since when the host is silent; 0: it is not.
  friend bool operator==(const Node&, const Node&) = default;
};

/// A one-time token. The store keeps the digest of its secret, never the secret.
struct Token {
  std::string pool;
  core::WallTime expires{};
  int uses_left = 1;
  friend bool operator==(const Token&, const Token&) = default;
};

[[nodiscard]] std::string_view to_string(Phase phase);  ///< "Confirming".
[[nodiscard]] std::optional<Phase> phase_from(std::string_view text);

}  // namespace enlist
