// What jobs use and ask for, and what associations have used: as far as limits and fair share are about it.
//
//   const auto asks = read_tres("cpu=2,mem=1.5G,gres/gpu=1");   // {"cpu": 2, "gres/gpu": 1, "mem": 1536}
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "slurm/model.hpp"

namespace slurm::accounting {

/// Counts by TRES. Memory is in MiB.
using TresCounts = std::map<std::string, std::int64_t, std::less<>>;
/// Reads TRES as Slurm writes them for people. Parts that do not read are left out.
[[nodiscard]] TresCounts read_tres(std::string_view text);

/// A job, with what limits are about. Texts are Slurm's own.
struct QueuedJob {
  std::int64_t id = 0;
  std::int64_t array = 0;  ///< The job array of which it is a task; 0: none.
  std::optional<std::int64_t> task{};
  std::string tasks;  ///< The tasks of an array for which the record stands: "1-3%1". "" if it is one job.
  std::string cluster, user, account, qos, partition, state;
  std::set<std::string, std::less<>> flags;  ///< Beside the base state: "COMPLETING".
  std::string reason, description;
  TresCounts asks, has;  ///< What it asked for, and what is allocated to it.
  std::string nodes;     ///< A hostlist.
  Number time_limit;     ///< In minutes. Unset: that of its partition.
  Number priority;
  std::optional<core::WallTime> submitted, eligible, start, end;
  std::string dependency, reservation, required_nodes, licenses;
  std::int64_t exit_code = 0;

  [[nodiscard]] bool pending() const { return state == "PENDING"; }
  /// True if it counts as running for limits.
  [[nodiscard]] bool running() const { return state == "RUNNING" || state == "SUSPENDED"; }
  /// Returns "12", "12_3" for a task of an array, "12_[1-3%1]" for tasks that wait together.
  [[nodiscard]] std::string full_id() const;
  /// Returns the number of jobs for which the record stands.
  [[nodiscard]] std::int64_t count() const;
  /// True if it is this task of its array, or stands for it.
  [[nodiscard]] bool has_task(std::int64_t index) const;
  friend bool operator==(const QueuedJob&, const QueuedJob&) = default;
};

/// What an association has used, and its part of it, as slurmctld counts them.
struct Share {
  std::string cluster;
  bool is_user = false;
  std::string name;    ///< Of the account, or of the user.
  std::string parent;  ///< The account above it: that of the user.
  std::string partition;
  std::optional<double> usage;                              ///< The part of its parent's usage that is its own, from 0 to 1.
  std::optional<double> factor;                             ///< Of fair share, from 0 to 1. Only users have one that counts.
  std::map<std::string, double, std::less<>> tres_seconds;  ///< Decayed as PriorityDecayHalfLife says.
  friend bool operator==(const Share&, const Share&) = default;
};

/// A partition, with what keeps jobs waiting.
struct PartitionRules {
  std::string name, state;
  std::string qos;  ///< Whose limits hold for all its jobs; "": none.
  Number max_minutes, default_minutes, max_nodes;
  std::int64_t min_nodes = 0;
  friend bool operator==(const PartitionRules&, const PartitionRules&) = default;
};

}  // namespace slurm::accounting
