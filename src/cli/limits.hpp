// Finds the accounting limits that apply to a job, and the amount by which the job would exceed each limit. Pure.
//
// The functions count as slurmctld does (Slurm's src/slurmctld/acct_policy.c), from the jobs that slurmctld has now. Values
// that slurmrestd does not list, such as the past usage of a QOS, stay unknown.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/reasons.hpp"
#include "core/clock.hpp"
#include "slurm/accounting/model.hpp"
#include "slurm/accounting/usage.hpp"

namespace cli {

/// The answers of slurmctld and slurmdbd about one cluster.
struct ClusterFacts {
  template <class Row>
  using Rows = std::vector<std::shared_ptr<const Row>>;
  Rows<slurm::accounting::QueuedJob> jobs;
  Rows<slurm::accounting::PartitionRules> partitions;
  Rows<slurm::accounting::Qos> qos;
  Rows<slurm::accounting::Association> associations;  ///< The associations of this cluster, without inherited limits.
  Rows<slurm::accounting::Share> shares;
  std::string no_limits;  ///< Why the lists of slurmdbd are missing; "" if the lists are present.
  core::WallTime now;

  [[nodiscard]] const slurm::accounting::PartitionRules* partition(std::string_view name) const;
};

/// A limit that is set and applies to a job. Times are in minutes, memory is in MiB.
struct JobLimit {
  const LimitKind* kind = nullptr;
  std::string tres;         ///< The TRES that the limit restricts: "cpu"; "" if the limit is not on TRES.
  std::string holder_kind;  ///< "QOS", "account" or "user".
  std::string holder;       ///< The name of the QOS, account or user that sets the limit.
  std::string whose;        ///< The owner of the jobs that count: "user ann in account physics". "" for a limit on one job.
  std::int64_t limit = 0;
  bool percent = false;                  ///< The limit is in percent of the cluster (a QOS with the flag Relative).
  std::optional<std::int64_t> in_use{};  ///< The use by other jobs, or past use. nullopt if unknown.
  std::optional<std::int64_t> asks{};  ///< This job's request. nullopt if it depends on a time limit that is unknown or absent.
  /// The excess: `in_use` + `asks` - `limit`. A negative value is what is left. kUsedMinutes ignores `asks`. For a minimum:
  /// `limit` - `asks`. nullopt if a number is unknown or in percent. See holds().
  std::optional<std::int64_t> over{};
  std::vector<const slurm::accounting::QueuedJob*> counted{};  ///< The running jobs that count.
  [[nodiscard]] bool holds() const { return over && *over > (kind->measure == Measure::kUsedMinutes ? -1 : 0); }
  [[nodiscard]] bool of_qos() const { return holder_kind == "QOS"; }
  /// Reports whether the job exceeds the limit even if no other job runs, so that waiting does not help.
  [[nodiscard]] bool never() const;
};

/// Returns the limits in the order in which slurmctld checks them: limits of the QOS, of the job's association, and of the
/// associations above that association.
[[nodiscard]] std::vector<JobLimit> limits_of(const slurm::accounting::QueuedJob& job, const ClusterFacts& facts);

/// Returns the time at which enough of the counted jobs have reached their time limits that the job fits the limit. Returns
/// nullopt if that is unknown, and for limits that do not restrict the number or the TRES of running jobs.
[[nodiscard]] std::optional<core::WallTime> free_by(const JobLimit& limit);

}  // namespace cli
