// The jobs of the bridge in the last snapshot, by the pods that they name.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "run/key.hpp"
#include "slurm/own_job.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace bridge::jobs {

class JobTable {
 public:
  struct Row {
    std::shared_ptr<const slurm::Job> job;
    slurm::JobMark mark;
    // From the admin_comment.
    std::set<run::Key> pods;
    std::string wish;  ///< The digest of the wish that was submitted.
  };

  /// Reads the jobs that differ from those of the last call.
  void read(const slurm::SnapshotPtr& snapshot);
  /// Returns the rows of the jobs that name the pod, by number.
  [[nodiscard]] std::vector<const Row*> of(const run::Key& pod) const;
  [[nodiscard]] const Row* row(std::int64_t job) const;
  /// Returns the pods that jobs name.
  [[nodiscard]] std::vector<run::Key> pods() const;
  /// Returns the greatest number of a job of this installation, whatever its state; 0 if there is none.
  [[nodiscard]] std::int64_t youngest(const std::string& installation) const;

 private:
  void drop(std::int64_t id);

  slurm::SnapshotPtr last_;
  std::map<std::int64_t, Row> rows_;
  std::map<run::Key, std::set<std::int64_t>> by_pod_;
};

}  // namespace bridge::jobs
