// The data that the coordinator and the agents have about pools and their nodes. Pure: no I/O.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.hpp"

namespace enlist {

/// A pool: a partition, and the hosts that joined it. The partition, the NodeSet and the feature of the nodes have the name of
/// the pool.
struct Pool {
  std::string name;
  std::string partition_conf{};  ///< Further parameters of the PartitionName line: "MaxTime=1-0 Default=YES".
  std::string node_conf{};       ///< Parameters for slurmd's --conf on all nodes: "Weight=5". Node::node_conf overrides them.
  std::int64_t next_number = 1;  ///< The number of the next node. Numbers are never used again.
  /// The pool is being removed. Its partition accepts no new jobs. Once no job uses the partition, the nodes leave, and then
  /// the pool is deleted.
  bool removing = false;
  friend bool operator==(const Pool&, const Pool&) = default;
};

/// What an agent reports about its host. The coordinator accepts an agent's report for its own node only.
struct Report {
  std::string hostname, boot_id;
  std::string slurm_version{};  ///< The version of the installed slurmd: "26.05.1".
  std::string conf{};           ///< The value of --conf with which slurmd was started; "": slurmd was not started.
  /// The value of --instance-id. It identifies the host, not a start of slurmd: Slurm stores the id of the first registration,
  /// and keeps it as long as it has the record of the node (seen with 26.05.5).
  std::string instance_id{};
  bool running = false;        ///< slurmd runs.
  std::string key_revision{};  ///< The revision of the auth key in its file; "": none.
  /// The revision of the auth key that slurmd has loaded. The agent reports it if it saw slurmd start or reload after the key
  /// file was written, or if slurmd does not run. "": unknown, or an older agent does not report it.
  std::string key_loaded{};
  std::uint64_t registrations = 0;  ///< The last Desired::registrations that the agent has carried out.
  std::string error{};              ///< Why slurmd does not run, or what the agent cannot do: one line, no secrets.
  bool check_passed = false;        ///< The admin's check script has passed, or there is none.
  /// When the process of slurmd was started, by the clock of the host. 0: slurmd does not run, or an older agent does not
  /// report the time. With systemd, a reload replaces the process of slurmd.
  core::WallTime started{};
  // These four are for a node that leaves (Desired::leave):
  bool steps_known = false;          ///< The agent has read `steps`. If not, steps can be running that nobody knows of.
  std::vector<std::string> steps{};  ///< The steps of jobs whose processes (slurmstepd) are on the host: "12.batch".
  bool stopped = false;              ///< slurmd was stopped because the node leaves, and does not start at the next boot.
  bool left = false;                 ///< The host has no files of slurm-enlist any more, except for those of the agent itself.

  std::string note{};  ///< A notice for people that is not an error: one line, no secrets.
  friend bool operator==(const Report&, const Report&) = default;
};

/// The values of Desired::leave. An agent treats an unknown value like kLeaveSteps.
inline constexpr std::string_view kLeaveSteps = "steps";  ///< slurmd continues to run. The agent reports the steps on the host.
inline constexpr std::string_view kLeaveStop = "stop";    ///< The agent stops slurmd, unless steps run on the host.
inline constexpr std::string_view kLeaveClean = "clean";  ///< The agent also removes the files of slurm-enlist from the host.

/// What the agent must bring about on its host.
struct Desired {
  std::string node;                        ///< The name of the node in Slurm, for -N.
  std::string pool;                        ///< The pool, whose name is a feature of the node.
  std::string cluster;                     ///< ClusterName, to detect a slurm.conf of another cluster on the host.
  std::vector<std::string> controllers{};  ///< For --conf-server: "host:port", the primary first. Empty: do not start slurmd.
  std::string node_conf{};                 ///< Parameters for --conf from the pool and the node. They override detected ones.
  std::string key_revision{};              ///< The auth key that the host must have.
  /// Grows by one each time that slurmd must register again because Slurm has no record of the node.
  std::uint64_t registrations = 0;
  /// How far the node has left: "" (it stays), kLeaveSteps, kLeaveStop or kLeaveClean. A node that is restarted with other
  /// parameters goes as far as kLeaveStop, and back to "".
  std::string leave{};
  friend bool operator==(const Desired&, const Desired&) = default;
};

/// The key of a node that has left and whose record Slurm has again. No host has it.
inline constexpr const char* kDepartedKey = "departed";

/// Where a node is on its way into and out of Slurm, in this order. The phases from kRefused on are faults.
enum class Phase {
  kPending,     ///< The host has joined. Its agent has not reported yet.
  kStarting,    ///< The agent writes files and starts slurmd.
  kConfirming,  ///< slurmd runs. Slurm does not show this slurmd yet.
  kEnlisted,    ///< Slurm shows this slurmd with the requested values. The node is still drained by the gate.
  kReady,       ///< The gate is open: Slurm may start jobs.
  kDraining,    ///< The node leaves, or is restarted with other parameters. It is drained, and its jobs are waited for.
  kStopping,    ///< No job runs on the node any more. The agent stops slurmd.
  kDeleting,    ///< slurmd is stopped. The record in Slurm is being deleted.
  kGone,        ///< Slurm does not have the node. The coordinator's record may be deleted once the host is clean.
  kRefused,     ///< Slurm has not accepted the node in time: its table is full, the name is taken, or slurmd failed.
  kInvalid,     ///< Slurm has the node, but with less than the requested resources (INVALID_REG), or in another pool.
  kImpostor,    ///< Slurm shows another slurmd under this name, or two hosts use the key of the node.
  kLost,        ///< slurmd runs, and Slurm does not have the node any more.
  kSilent,      ///< The agent has not reported for kSilentAfter, and slurmd does not respond to slurmctld.
  kStuck,       ///< The node leaves or is restarted with other parameters, and has been blocked for longer than kStuckAfter.
};

/// The request that a node leaves.
struct Leaving {
  bool wanted = false;
  bool force = false;  ///< The leave goes on if the host does not respond. In any case it waits for the jobs in Slurm.
  bool dead = false;   ///< The coordinator itself has made the request, because the host has been silent for too long.
  bool stop = false;   ///< The host may have stopped slurmd, so the leave cannot be cancelled.
  core::WallTime since{};
  friend bool operator==(const Leaving&, const Leaving&) = default;
};

/// The request that a node gets other parameters of its own (Node::node_conf).
struct Configuring {
  bool wanted = false;
  bool live = false;   ///< Slurm's record is changed while slurmd runs. Node::node_conf has the parameters already.
  bool stop = false;   ///< The host was asked to stop slurmd, and might have done so.
  std::string conf{};  ///< The requested parameters.
  core::WallTime since{};
  bool taken_back = false;  ///< The last request was cancelled. Slurm's record is possibly still drained for it.
  /// Reports whether slurmd must be restarted and its record in Slurm replaced, so that the node leaves Slurm for a moment.
  [[nodiscard]] bool restarts() const { return wanted && !live; }
  friend bool operator==(const Configuring&, const Configuring&) = default;
};

/// What was changed in Slurm's record since slurmd registered. Slurm reverts it at each reconfigure, so it is changed again.
struct LiveWords {
  bool weight = false;
  std::vector<std::string> dropped{};  ///< Features that the node had, and must not have any more.
  friend bool operator==(const LiveWords&, const LiveWords&) = default;
};

/// What people have set in Slurm's record of a node. It is set again in a new record of the node.
struct Marks {
  std::string reason{};  ///< The reason with which somebody else has drained the node or set it down. "": nobody has.
  std::string comment{};
  friend bool operator==(const Marks&, const Marks&) = default;
};

/// A node's record at the coordinator. Exactly one host owns it: the one with this key.
struct Node {
  std::string name, pool;
  std::string key;          ///< The fingerprint of the host's public key (enlist/wire/identity.hpp).
  std::string node_conf{};  ///< Parameters for --conf of this node alone. They override those of the pool.
  std::uint64_t registrations = 0;
  bool revoked = false;
  core::WallTime joined{};
  Report report{};  ///< The last report; empty before the first.
  /// The Report::instance_id that was confirmed last; "": none yet. If it is set, a missing record in Slurm means kLost.
  std::string confirmed{};
  /// The last boot of the host (Report::boot_id) in which the gate was closed or the check has passed; "": none yet.
  std::string gate_boot{};
  Phase phase = Phase::kPending;
  std::string message{};  ///< Why the node is in this phase: one line for people.
  Leaving leaving{};
  Configuring configuring{};
  LiveWords live{};
  Marks marks{};                  ///< As Slurm last showed them.
  core::WallTime silent_since{};  ///< Since when the host is silent; 0: the host is not silent.
  friend bool operator==(const Node&, const Node&) = default;
};

/// A token with which hosts join a pool. The store has the digest of its secret, never the secret.
struct Token {
  std::string pool;
  core::WallTime expires{};
  int uses_left = 1;
  friend bool operator==(const Token&, const Token&) = default;
};

[[nodiscard]] std::string_view to_string(Phase phase);  ///< Returns the name: "Confirming".
[[nodiscard]] std::optional<Phase> phase_from(std::string_view text);

}  // namespace enlist
