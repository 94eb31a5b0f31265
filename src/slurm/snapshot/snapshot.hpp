// The last answers of Slurm, as one immutable value with its completeness and age. Unknown is not empty: do not conclude
// anything from what is missing in an incomplete snapshot.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "core/hostlist.hpp"
#include "core/result.hpp"
#include "slurm/model.hpp"
#include "slurm/snapshot/shared_map.hpp"

namespace slurm {

/// Summarizes the jobs that hold a node.
struct Work {
  int jobs = 0;
  bool running = false;                    ///< At least one job is RUNNING.
  bool suspended = false;                  ///< At least one job is SUSPENDED.
  std::optional<core::WallTime> deadline;  ///< The latest end of the running jobs. Absent if a running job has no limit.
};

/// An index of the jobs by node, so that finding the jobs of a node does not visit all jobs.
struct JobIndex {
  struct Held {
    std::vector<std::shared_ptr<const Job>> jobs;
    Work work;  ///< The summary of these jobs.
  };
  std::map<std::string, Held, std::less<>> by_node;  ///< Maps each node to the jobs that hold it.
  Held of_any;                                       ///< Jobs that hold nodes, but whose nodes cannot be read.
  core::HostSet required;                            ///< The nodes that waiting jobs name.

  static std::shared_ptr<const JobIndex> of(const SharedMap<std::int64_t, std::shared_ptr<const Job>>& jobs);
};

struct Snapshot {
  enum class Health {
    kNone,      ///< No server is known yet, or the server has never answered.
    kStale,     ///< The contents can be old: the last poll failed, or nothing was read since a reconnect or mark_stale().
    kComplete,  ///< Nodes, jobs and partitions were all read in one round.
  };
  Health health = Health::kNone;
  std::string error;                                           ///< Why the snapshot is not complete.
  core::ErrorCode error_code = core::ErrorCode::kUnavailable;  ///< The code of `error`.
  bool from_server = false;                                    ///< The error was returned by slurmrestd itself.
  bool other_cluster = false;                                  ///< The error is that another cluster answers.
  int failures = 0;                                            ///< Rounds in a row that failed with `error_code`.
  core::MonoTime requested_at;                                 ///< No request for the contents started before this time.
  core::Duration cost{0};                                      ///< The time from requested_at to the last answer.
  std::uint64_t round = 0;  ///< The round of polls that read the contents. Later rounds have greater numbers.
  Capabilities capabilities;
  SharedMap<std::string, std::shared_ptr<const Node>> nodes;
  SharedMap<std::int64_t, std::shared_ptr<const Job>> jobs;  ///< Jobs that have not ended, or ended recently.
  SharedMap<std::string, Partition> partitions;
  std::shared_ptr<const JobIndex> job_index;  ///< The index of `jobs`, from the poller. If null, every call builds an index.
  /// slurmctld's clock at `clock_at`, in whole seconds. Absent: no answer has shown it yet.
  std::optional<core::WallTime> clock;
  core::MonoTime clock_at;

  [[nodiscard]] bool complete() const { return health == Health::kComplete; }
  /// True if Slurm has answered several times in a row, but with answers that we cannot read.
  [[nodiscard]] bool unreadable() const;
  /// True if slurmrestd has reported several times in a row that slurmctld does not answer.
  [[nodiscard]] bool silent() const;
  /// Returns the age up to which the snapshot counts as evidence: kFresh, or longer if Slurm takes long to answer.
  [[nodiscard]] core::Duration good_for() const;
  /// True if the snapshot is complete and not older than good_for().
  [[nodiscard]] bool fresh(core::MonoTime now) const;
  /// Returns the time on slurmctld's clock. The error is up to one second plus the time that Slurm took to answer. Does not use
  /// our own wall clock. nullopt: the time is not known.
  [[nodiscard]] std::optional<core::WallTime> time_at(core::MonoTime now) const;
  [[nodiscard]] const Node* node(std::string_view name) const;
  /// Returns the jobs that hold the node (running, suspended, configuring or completing there), and those whose nodes cannot be
  /// read, because they possibly hold it.
  [[nodiscard]] std::vector<std::shared_ptr<const Job>> jobs_on(std::string_view node) const;
  /// Summarizes the jobs of the node. If Slurm has no such node, jobs whose nodes cannot be read do not count.
  [[nodiscard]] Work work_on(std::string_view node) const;
  /// True if a job holds or possibly holds the node, or waits for it by name. slurmctld ends such a job if the node's record is
  /// deleted.
  [[nodiscard]] bool job_names(std::string_view node) const;
  /// True if a job waits for the node by name.
  [[nodiscard]] bool awaited(std::string_view node) const { return index()->required.has(node); }

 private:
  [[nodiscard]] std::shared_ptr<const JobIndex> index() const { return job_index ? job_index : JobIndex::of(jobs); }
};
using SnapshotPtr = std::shared_ptr<const Snapshot>;

/// True if Slurm has ever answered completely, even long ago.
[[nodiscard]] inline bool has_answered(const SnapshotPtr& snapshot) {
  return snapshot != nullptr && snapshot->health != Snapshot::Health::kNone;
}

/// The time that a slurmd is given to register. slurmd tries at intervals that double up to 128 s. A slurmd whose name
/// slurmctld refused without an error never tries again.
inline constexpr core::Duration kRegistration{3 * 60 * 1000};
/// Every complete snapshot up to this age counts as evidence.
inline constexpr core::Duration kFresh{3000};
/// The greatest age for evidence, unless the round itself took longer. Objects are still read live before they are destroyed.
inline constexpr core::Duration kFreshAtMost{60000};

}  // namespace slurm
