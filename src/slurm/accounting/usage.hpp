// The usage and requests of jobs, and the usage of associations. Limits and fair share depend on them.
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
/// Parses TRES as Slurm writes them for people. Leaves out parts that cannot be parsed.
[[nodiscard]] TresCounts read_tres(std::string_view text);

/// A job, with the values that limits depend on. Texts are as Slurm reports them.
struct QueuedJob {
  std::int64_t id = 0;
  std::int64_t array = 0;  ///< The job array that the job is a task of; 0: none.
  std::optional<std::int64_t> task{};
  std::string tasks;  ///< The tasks of an array for which the record stands: "1-3%1". "": one job.
  std::string name, cluster, user, account, qos, partition, state;
  std::set<std::string, std::less<>> flags;  ///< Flags beside the base state: "COMPLETING".
  std::string reason, description;
  TresCounts asks, has;  ///< `asks`: what the job asked for. `has`: what is allocated to it.
  std::string nodes;     ///< A hostlist.
  Number time_limit;     ///< In minutes. Unset: the limit of its partition applies.
  Number priority;
  std::optional<core::WallTime> submitted, eligible, start, end;
  std::string dependency, reservation, required_nodes, licenses;
  std::int64_t exit_code = 0;

  [[nodiscard]] bool pending() const { return state == "PENDING"; }
  /// True if the job counts as running for limits.
  [[nodiscard]] bool running() const { return state == "RUNNING" || state == "SUSPENDED"; }
  /// Returns "12"; "12_3" for a task of an array; "12_[1-3%1]" for tasks that wait together.
  [[nodiscard]] std::string full_id() const;
  /// Returns the number of jobs for which the record stands.
  [[nodiscard]] std::int64_t count() const;
  /// True if the record stands for this task of its array, alone or with other tasks.
  [[nodiscard]] bool has_task(std::int64_t index) const;
  friend bool operator==(const QueuedJob&, const QueuedJob&) = default;
};

/// The usage and fair share of an association, as slurmctld counts them.
struct Share {
  std::string cluster;
  bool is_user = false;
  std::string name;    ///< The name of the user. For the association of an account, the name of the account.
  std::string parent;  ///< The parent account; for a user, the account of the association.
  std::string partition;
  std::optional<double> usage;                              ///< The fraction of the parent's usage, from 0 to 1.
  std::optional<double> factor;                             ///< The fair-share factor, from 0 to 1. Counts only for users.
  std::map<std::string, double, std::less<>> tres_seconds;  ///< The usage by TRES, decayed by PriorityDecayHalfLife.
  friend bool operator==(const Share&, const Share&) = default;
};

/// A partition, with the settings that can make jobs wait.
struct PartitionRules {
  std::string name, state;
  std::string qos;  ///< The QOS whose limits apply to all jobs of the partition; "": none.
  Number max_minutes, default_minutes, max_nodes;
  std::int64_t min_nodes = 0;
  friend bool operator==(const PartitionRules&, const PartitionRules&) = default;
};

}  // namespace slurm::accounting
