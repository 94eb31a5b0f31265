// The jobs of the bridge in the last snapshot, indexed by the pod or the group of pods that they were submitted for.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "bridge/common/states.hpp"
#include "run/key.hpp"
#include "slurm/own_job.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace bridge {

/// A life of slurmctld: a period in which slurmctld has certainly not lost its state. Every job that Slurm lists was submitted
/// in the present life. A job of the bridge also stores the Life that the bridge knew when it submitted the job.
struct Life {
  std::int64_t since = 0;  ///< The earliest known time in the life: Unix seconds on slurmctld's clock; 0: none is known.
  std::int64_t last = 0;   ///< The greatest job number. If a later job has a smaller number, slurmctld has lost its state.
};

class JobTable {
 public:
  struct Row {
    std::shared_ptr<const slurm::Job> job;
    slurm::JobMark mark;
    // Read from the admin_comment of the job:
    std::set<run::Key> keys;     ///< The pod or the group that the job was submitted for.
    std::set<std::string> uids;  ///< The UIDs of the pods that the job was submitted for.
    std::string wish;            ///< The digest of the JobWish that was submitted.
    Life life;                   ///< The Life that was known when the job was submitted.

    /// Returns the group that the job was submitted for; null if it was submitted for a single pod.
    [[nodiscard]] const run::Key* group() const;
    /// Reports whether the job is for the pod: the job was submitted for the pod, or the pod took the place of another pod of
    /// the group.
    [[nodiscard]] bool is_for(const kube::SchedulingPodRecord& pod) const;
  };

  /// Reads the jobs that have changed since the snapshot of the last call.
  void read(const slurm::SnapshotPtr& snapshot);
  /// Returns the rows of the jobs for a pod or a group, sorted by job number.
  [[nodiscard]] std::vector<const Row*> of(const run::Key& key) const;
  [[nodiscard]] const Row* row(std::int64_t job) const;
  /// Returns the rows of the jobs that ran on this Slurm node and have ended, sorted by job number.
  [[nodiscard]] std::vector<const Row*> ended_on(const std::string& slurm_node) const;
  [[nodiscard]] const std::map<std::int64_t, Row>& rows() const { return rows_; }
  /// Returns the pods and the groups that jobs were submitted for.
  [[nodiscard]] std::vector<run::Key> keys() const;
  /// Reports whether a job that the pod was placed for still holds its nodes.
  [[nodiscard]] bool holds(const kube::SchedulingPodRecord& pod) const;
  /// Returns the group whose job the pod was placed for; null if there is none.
  [[nodiscard]] const run::Key* placed_group_of(const kube::SchedulingPodRecord& pod) const;
  /// Reports whether a job was submitted for this pod alone. Such a pod joins no group, whatever its labels say later.
  [[nodiscard]] bool has_own_job(const kube::SchedulingPodRecord& pod) const;
  /// Returns the present life of slurmctld.
  [[nodiscard]] Life life() const;
  /// Returns the number of a job of this installation that was submitted after `job` in the same life of slurmctld; 0: none is
  /// known. If Slurm does not list `job`, a later job proves that `job` has ended and that slurmctld has not lost its state.
  [[nodiscard]] std::int64_t younger(const std::string& installation, const JobId& job) const;

 private:
  template <class Key>
  [[nodiscard]] std::vector<const Row*> rows_in(const std::map<Key, std::set<std::int64_t>>& index, const Key& key) const;
  void drop(std::int64_t id);
  void add(const std::shared_ptr<const slurm::Job>& job);
  void follow_life(const slurm::Snapshot* before, const slurm::Snapshot& now);

  slurm::SnapshotPtr last_;
  std::map<std::int64_t, Row> rows_;
  std::map<run::Key, std::set<std::int64_t>> by_key_;
  std::map<std::string, std::set<std::int64_t>> ended_on_;  ///< By Slurm node.
  std::int64_t since_ = 0;                                  ///< Life::since.
};

}  // namespace bridge
