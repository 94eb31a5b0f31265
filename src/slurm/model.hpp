// Slurm's objects in one neutral model, independent of Slurm's release and data_parser version.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/clock.hpp"
#include "core/result.hpp"

namespace slurm {

/// Identifies a slurmctld: the namespace and name of its Controller, or any other unique name.
using ClusterKey = std::string;

/// Identifies an accounting database by a name of the caller's choice. It must differ from all cluster keys, because
/// Plan::waits_on takes keys of both kinds.
using AccountingKey = std::string;

/// A number in Slurm is unset, infinite or a value. Code must distinguish these three cases.
struct Unset {
  friend bool operator==(Unset, Unset) = default;
};
struct Infinite {
  friend bool operator==(Infinite, Infinite) = default;
};
using Number = std::variant<Unset, Infinite, std::int64_t>;

/// A node's state: one base state and any number of flags, in upper case as Slurm names them ("IDLE", "DRAIN",
/// "NOT_RESPONDING").
struct NodeState {
  std::string base;  ///< ALLOCATED DOWN ERROR FUTURE IDLE MIXED UNKNOWN
  std::set<std::string, std::less<>> flags;
  [[nodiscard]] bool has(std::string_view flag) const { return flags.contains(flag); }
  /// True if the node drains or is drained, so that no job can start on it. False while the node is being undrained: for a
  /// moment, it then has both DRAIN and UNDRAIN.
  [[nodiscard]] bool drains() const { return has("DRAIN") && !has("UNDRAIN"); }
  friend bool operator==(const NodeState&, const NodeState&) = default;
};

struct Node {
  std::string name, address, hostname, reason, comment, extra, instance_id, version;
  NodeState state;
  std::vector<std::string> features, active_features, partitions;
  std::string gres;         ///< The GRES as in slurm.conf, with sockets: "gpu:h100:8(S:0-1)"; "": none.
  std::string topology;     ///< "default:switch-1"; "" if the node has none or the server does not report it.
  std::string reservation;  ///< The active reservation of the node; "": none. If there are several, one of them.
  std::optional<core::WallTime> slurmd_start_time, boot_time;
  std::optional<core::WallTime> reason_time;  ///< Time at which the reason was set.
  std::int64_t cpus = 0, real_memory_mib = 0;
  std::int64_t weight = 1;
  friend bool operator==(const Node&, const Node&) = default;
};

/// True if the node is down and does not respond to slurmctld.
[[nodiscard]] bool is_silent(const Node& node);

/// Details of a job, for programs that submit jobs or show them to users. Some details change often while a job waits, so a
/// program gets them only if it asks for them (ClientOptions::job_details).
struct JobDetails {
  std::string user;
  std::string reason;                         ///< Why the job waits, as Slurm spells it: "Resources".
  std::string admin_comment;                  ///< Only administrators can write this comment.
  std::string mcs_label;                      ///< The label that Slurm's Multi-Category Security gives the job.
  std::string comment;                        ///< The user of the job can write this comment.
  std::string excluded_nodes;                 ///< A hostlist.
  bool external = false;                      ///< EXTERNAL_JOB: the job holds nodes, and Slurm runs nothing on them.
  std::optional<core::WallTime> submitted{};  ///< A requeue sets a later time.
  std::optional<core::WallTime> preempted{};  ///< When GraceTime began. At its end, Slurm gives the nodes to another job.
  friend bool operator==(const JobDetails&, const JobDetails&) = default;
};
/// Null if the program does not ask for details. Compares the details, not the addresses.
struct JobDetailsPtr : std::shared_ptr<const JobDetails> {
  using std::shared_ptr<const JobDetails>::shared_ptr;
  friend bool operator==(const JobDetailsPtr& a, const JobDetailsPtr& b) {
    return a.get() == b.get() || (a.get() != nullptr && b.get() != nullptr && *a == *b);
  }
};

struct Job {
  std::int64_t id = 0;                          ///< Negative if the job could not be read.
  std::string state;                            ///< The base state: RUNNING PENDING SUSPENDED COMPLETED ...
  std::set<std::string, std::less<>> flags;     ///< Flags beside the base state: COMPLETING CONFIGURING ...
  std::string partition;                        ///< A waiting job can have several: "a,b".
  std::vector<std::string> licenses{}, gres{};  ///< Names only, as in Licenses= and GresTypes=.
  bool prolog = false;                          ///< RUNNING, but its prolog still runs. Known only with PrologFlags=Alloc.
  /// The nodes that the job holds, followed by the nodes that it only names (-w). If Slurm lacks a named node, the job fails.
  /// An external job that has ended keeps the nodes that it held, because a pod was possibly placed on one of them.
  std::vector<std::string> nodes;
  std::size_t only_named = 0;  ///< The number of `nodes` at the end that are only named, not held.
  bool nodes_unknown = false;  ///< The nodes could not be read. The job can hold any node.
  std::string required_nodes;  ///< -w of a waiting job: a hostlist of any length.
  /// `end` is the start plus the time limit, or absent without a limit. For a job that has ended, `end` is the real end. For a
  /// waiting job, `start` and `end` are Slurm's estimates, which are read only if the program asks for details.
  std::optional<core::WallTime> start, end;
  std::int64_t array = 0;              ///< The job array that the job is a task of; 0: none.
  std::optional<std::int64_t> task{};  ///< The index of the task in its job array. nullopt: the job is not in an array.
  bool stepmgr = false;                ///< One slurmstepd of the job manages its steps and keeps the auth/slurm key.
  bool batch = false;                  ///< The job has a batch script. Other jobs cannot be requeued.
  bool requeue = false;                ///< The user allows Slurm to requeue the job.
  JobDetailsPtr details{};
  [[nodiscard]] bool holds_nodes() const;  ///< True if RUNNING, SUSPENDED, CONFIGURING, COMPLETING, or in an unknown state.
  [[nodiscard]] bool in_queue() const;     ///< True if the job holds nodes or is PENDING.
  [[nodiscard]] bool holds(std::string_view node) const;
  /// True if the node is allocated to the job, and the job is RUNNING or SUSPENDED but not yet COMPLETING. False if its nodes
  /// or its number could not be read.
  [[nodiscard]] bool runs_on(std::string_view node) const;
  /// Returns "12", or "12_3" for a task of an array, because the bare number can mean all tasks of the array.
  [[nodiscard]] std::string full_id() const;
  /// True if nodes of the job are not ready or run its prolog. Meanwhile only slurmctld's memory contains the job's launch.
  [[nodiscard]] bool starting() const { return prolog || flags.contains("CONFIGURING"); }
  friend bool operator==(const Job&, const Job&) = default;
};

struct Partition {
  std::string name, nodes, state;
  bool hidden = false;
  friend bool operator==(const Partition&, const Partition&) = default;
};

struct Ping {
  std::string hostname;
  bool responding = false;
  bool primary = false;
};

/// A change to a node. Only members that are set are sent. `state` is DRAIN, UNDRAIN, RESUME, DOWN or IDLE.
struct NodeUpdate {
  std::optional<std::string> state, reason, comment;
  std::optional<std::vector<std::string>> features;
  std::optional<std::vector<std::string>> active_features{};  ///< Sent only with `features`. Unset: the same as `features`.
  std::optional<std::string> topology{};                      ///< Ignored unless Capabilities::topology_update.
  std::optional<std::int64_t> weight{};                       ///< Lasts until slurmctld reconfigures.
  std::optional<std::string> extra{};                         ///< JSON, or "". A field for administrators and programs.
};

/// The features of a node that the sender manages. All other features stay.
struct OwnFeatures {
  std::string prefix;                 ///< All features with this prefix ("k8s/") are the sender's; "": no prefix.
  std::vector<std::string> values;    ///< Features to have, including the prefix.
  std::vector<std::string> besides;   ///< Further features, without the prefix, that the node must have.
  std::vector<std::string> obsolete;  ///< Further features, without the prefix, that the node must not have.
  friend bool operator==(const OwnFeatures&, const OwnFeatures&) = default;
};
/// Returns `have` with the sender's features replaced: `besides` first, then the features that stay, then new `values`.
[[nodiscard]] std::vector<std::string> replace_own(const std::vector<std::string>& have, const OwnFeatures& own);
/// True if replace_own would not change the node's features. Their order does not matter.
[[nodiscard]] bool has_own(const Node& node, const OwnFeatures& own);

/// The abilities of the server, from /openapi/v3 and from the server's release. No other code looks at versions.
struct Capabilities {
  std::string release;             ///< The release of Slurm: "26.05.5".
  std::string data_parser;         ///< The data_parser in use: "v0.0.45".
  bool batch_node_update = false;  ///< One POST nodes request can update many nodes.
  bool nodes_difference = false;   ///< GET nodes with update_time works even if only nodes changed (26.05.3 and later).
  bool jobs_difference = false;    ///< GET jobs with update_time returns no jobs if nothing changed.
  bool conf = false;               ///< The server has GET conf.
  bool metrics = false;            ///< slurmctld has MetricsType and serves /metrics (25.11 and later).
  bool job_states = false;         ///< The server has GET jobs/state, which costs much less than GET jobs (24.05 and later).
  bool requeue = false;            ///< The server has POST jobs/requeue (26.05 and later).
  bool topology_update = false;    ///< The server can set a node's topology (25.05 and later).
  bool reservations = false;       ///< The server has POST reservation (25.05 and later).
  bool external_jobs = false;      ///< The server has external jobs and nodes (25.11 and later).
  bool slurmdb = false;            ///< The server also serves an accounting database.
};

}  // namespace slurm
