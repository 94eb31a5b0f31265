// The jobs of the bridge in the last snapshot, by the pods that they name.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "bridge/jobs/states.hpp"
#include "run/key.hpp"
#include "slurm/own_job.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace bridge::jobs {

/// How long slurmctld has certainly kept its state. A job that it lists was submitted in this life. A job of the bridge also
/// has what the bridge knew when it submitted the job.
struct Life {
  std::int64_t since = 0;  ///< Seconds on slurmctld's clock; 0: nothing is known.
  std::int64_t last = 0;   ///< The greatest number of a job. A later job with a smaller number is of another life.
};

class JobTable {
 public:
  struct Row {
    std::shared_ptr<const slurm::Job> job;
    slurm::JobMark mark;
    // From the admin_comment.
    std::set<run::Key> pods;
    std::string wish;  ///< The digest of the wish that was submitted.
    Life life;         ///< What was known when the job was submitted.
  };

  /// Reads the jobs that differ from those of the last call.
  void read(const slurm::SnapshotPtr& snapshot);
  /// Returns the rows of the jobs that name the pod, by number.
  [[nodiscard]] std::vector<const Row*> of(const run::Key& pod) const;
  [[nodiscard]] const Row* row(std::int64_t job) const;
  [[nodiscard]] const std::map<std::int64_t, Row>& rows() const { return rows_; }
  /// Returns the pods that jobs name.
  [[nodiscard]] std::vector<run::Key> pods() const;
  /// Returns how long slurmctld has certainly kept its state.
  [[nodiscard]] Life life() const;
  /// Returns a job of this installation that was submitted after `job` in the same life of slurmctld. 0: no job is proven to be
  /// such. Slurm has forgotten a job that it does not list if there is a younger one. Otherwise it may have lost the job.
  [[nodiscard]] std::int64_t younger(const std::string& installation, const JobId& job) const;

 private:
  void drop(std::int64_t id);
  void add(const std::shared_ptr<const slurm::Job>& job);
  void follow_life(const slurm::Snapshot* before, const slurm::Snapshot& now);

  slurm::SnapshotPtr last_;
  std::map<std::int64_t, Row> rows_;
  std::map<run::Key, std::set<std::int64_t>> by_pod_;
  std::int64_t since_ = 0;  ///< Life::since.
};

}  // namespace bridge::jobs
