// Slurm as the rest of the project sees it: one neutral model, whatever release and data_parser answered.
#pragma once

#include <cstdint>
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
  friend bool operator==(const NodeState&, const NodeState&) = default;
};

struct Node {
  std::string name, address, hostname, reason, comment, extra, instance_id, version;
  NodeState state;
  std::vector<std::string> features, active_features, partitions;
  std::optional<core::WallTime> slurmd_start_time, boot_time;
  std::optional<core::WallTime> reason_time;  ///< When the reason was given.
  std::int64_t cpus = 0, real_memory_mib = 0;
  friend bool operator==(const Node&, const Node&) = default;
};

/// slurmctld has given it up after SlurmdTimeout, and still hears nothing of it.
[[nodiscard]] bool is_silent(const Node& node);

struct Job {
  std::int64_t id = 0;                       ///< Below 0: it could not be read.
  std::string state;                         ///< Base: RUNNING PENDING SUSPENDED COMPLETED ...
  std::set<std::string, std::less<>> flags;  ///< COMPLETING CONFIGURING ...
  std::string user;
  std::string partition;                        ///< Of a waiting job perhaps several: "a,b".
  std::vector<std::string> licenses{}, gres{};  ///< Their names alone, as in Licenses= and GresTypes=.
  std::vector<std::string> nodes;  ///< Those that it holds, expanded, and those that it names (-w) and needs to go on.
  bool nodes_unknown = false;      ///< Its nodes could not be read: any may be among them.
  std::string required_nodes;      ///< -w, while it waits: a hostlist, as long as its user made it.
  std::optional<core::WallTime> start, end;  ///< end: start + limit; absent: no limit.
  [[nodiscard]] bool holds_nodes() const;    ///< RUNNING, SUSPENDED, CONFIGURING or COMPLETING; or a state that we do not know.
  [[nodiscard]] bool in_queue() const;       ///< Not ended: it holds nodes, or waits for them.
  [[nodiscard]] bool holds(std::string_view node) const;
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
};

/// What this server can do, learnt from /openapi/v3 and its release; no other code looks at versions.
struct Capabilities {
  std::string release;             ///< "26.05.5".
  std::string data_parser;         ///< "v0.0.45".
  bool batch_node_update = false;  ///< POST nodes
  bool nodes_difference = false;   ///< update_time on nodes is safe
  bool jobs_difference = false;
  bool conf = false;         ///< GET conf
  bool http_probes = false;  ///< /livez and /readyz on the daemons' ports (25.11 and later)
  bool slurmdb = false;
};

}  // namespace slurm
