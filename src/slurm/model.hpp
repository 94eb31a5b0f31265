// Slurm as the rest of the project sees it: one neutral model, whatever release and data_parser answered.
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

/// Which slurmctld: the namespace and name of its Controller, or whatever names it uniquely here.
using ClusterKey = std::string;

/// Which accounting database. A name of the caller's choice, but not one that a cluster has: plans name what they wait for by
/// either key (Plan::waits_on).
using AccountingKey = std::string;

/// Slurm's numbers have three kinds of value, and they are three different things.
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
  /// No job starts there. A node that is being undrained shows both flags for a moment.
  [[nodiscard]] bool drains() const { return has("DRAIN") && !has("UNDRAIN"); }
  friend bool operator==(const NodeState&, const NodeState&) = default;
};

struct Node {
  std::string name, address, hostname, reason, comment, extra, instance_id, version;
  NodeState state;
  std::vector<std::string> features, active_features, partitions;
  std::string topology;     ///< "default:switch-1"; "" where it has none, and of a server that does not tell.
  std::string reservation;  ///< The active one that it is in; "": none. Of several, one.
  std::optional<core::WallTime> slurmd_start_time, boot_time;
  std::optional<core::WallTime> reason_time;  ///< When the reason was given.
  std::int64_t cpus = 0, real_memory_mib = 0;
  std::int64_t weight = 1;
  friend bool operator==(const Node&, const Node&) = default;
};

/// slurmctld has given it up after SlurmdTimeout, and still hears nothing of it.
[[nodiscard]] bool is_silent(const Node& node);

/// More about a job, for programs that submit jobs or show them to users. Some of it changes often while a job waits, so a
/// program gets it only if it asks for it (ClientOptions::job_details).
struct JobDetails {
  std::string user;
  std::string reason;         ///< Why it waits, as Slurm spells it: "Resources".
  std::string admin_comment;  ///< Only administrators can write it.
  std::string mcs_label;      ///< Multi-Category Security.
  bool external = false;      ///< EXTERNAL_JOB: it holds nodes, and Slurm runs nothing on them.
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
  std::int64_t id = 0;                          ///< Below 0: it could not be read.
  std::string state;                            ///< Base: RUNNING PENDING SUSPENDED COMPLETED ...
  std::set<std::string, std::less<>> flags;     ///< COMPLETING CONFIGURING ...
  std::string partition;                        ///< Of a waiting job perhaps several: "a,b".
  std::vector<std::string> licenses{}, gres{};  ///< Their names alone, as in Licenses= and GresTypes=.
  bool prolog = false;             ///< RUNNING, and its prolog has not ended on all of its nodes. Seen with PrologFlags=Alloc.
  std::vector<std::string> nodes;  ///< Those that it holds, expanded, and those that it names (-w) and needs to go on.
  std::size_t only_named = 0;      ///< So many at their end it does not hold.
  bool nodes_unknown = false;      ///< Its nodes could not be read: any may be among them.
  std::string required_nodes;      ///< -w, while it waits: a hostlist, as long as its user made it.
  /// end: start + limit; absent: no limit. For a job that waits they are Slurm's estimate, which is read only with details.
  std::optional<core::WallTime> start, end;
  std::int64_t array = 0;              ///< The job array that it is a task of; 0: none.
  std::optional<std::int64_t> task{};  ///< Its number in that.
  bool stepmgr = false;                ///< One of its slurmstepds manages its steps, and keeps the auth/slurm key.
  bool batch = false;                  ///< It has a script: only such a job can be requeued,
  bool requeue = false;                ///< and only if its user allows it.
  JobDetailsPtr details{};
  [[nodiscard]] bool holds_nodes() const;  ///< RUNNING, SUSPENDED, CONFIGURING or COMPLETING; or a state that we do not know.
  [[nodiscard]] bool in_queue() const;     ///< Not ended: it holds nodes, or waits for them.
  [[nodiscard]] bool holds(std::string_view node) const;
  /// It was given the node, and has not begun to end.
  [[nodiscard]] bool runs_on(std::string_view node) const;
  /// "12", or "12_3" for a task of an array: the number alone may stand for all tasks.
  [[nodiscard]] std::string full_id() const;
  /// It has its nodes, and they, or prologs, are not ready for it: its launch stands in slurmctld's memory alone.
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

/// A change to a node. Only what is set is sent. `state` is Slurm's word: DRAIN, UNDRAIN, RESUME, DOWN, IDLE.
struct NodeUpdate {
  std::optional<std::string> state, reason, comment;
  std::optional<std::vector<std::string>> features;
  std::optional<std::vector<std::string>> active_features{};  ///< Empty: the same as `features`, where these are set.
  std::optional<std::string> topology{};                      ///< Only where the server can: see Capabilities.
  std::optional<std::int64_t> weight{};                       ///< Until slurmctld reconfigures.
};

/// What the sender says of a node's features. All others are somebody else's.
struct OwnFeatures {
  std::string prefix;                 ///< "k8s/": those that carry it are the sender's; "": it has no prefix of its own.
  std::vector<std::string> values;    ///< With the prefix.
  std::vector<std::string> besides;   ///< Others that must never be missing.
  std::vector<std::string> obsolete;  ///< Others that must not be there.
  friend bool operator==(const OwnFeatures&, const OwnFeatures&) = default;
};
/// What `have` is with these instead of the sender's former ones: `besides` first, `values` that are new last.
[[nodiscard]] std::vector<std::string> replace_own(const std::vector<std::string>& have, const OwnFeatures& own);
/// Nothing would be another with these. Features are a set.
[[nodiscard]] bool has_own(const Node& node, const OwnFeatures& own);

/// What this server can do, learnt from /openapi/v3 and its release; no other code looks at versions.
struct Capabilities {
  std::string release;             ///< "26.05.5".
  std::string data_parser;         ///< "v0.0.45".
  bool batch_node_update = false;  ///< POST nodes
  bool nodes_difference = false;   ///< update_time on nodes is safe
  bool jobs_difference = false;
  bool conf = false;             ///< GET conf
  bool metrics = false;          ///< MetricsType, and /metrics of slurmctld (25.11 and later)
  bool requeue = false;          ///< POST jobs/requeue (26.05 and later)
  bool topology_update = false;  ///< A node's topology can be set (25.05 and later)
  bool reservations = false;     ///< POST reservation (25.05 and later)
  bool slurmdb = false;          ///< The server also serves an accounting database.
};

}  // namespace slurm
