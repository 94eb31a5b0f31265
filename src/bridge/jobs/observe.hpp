// The jobs controller: submits a Slurm job for each pod that starts alone. The end of the pod ends the job, and the end of the
// job ends the pod. A key is the "ns/name" of a pod. A job whose pod is gone belongs to the key in the job's admin_comment.
// declaration.cpp lists the changes that wake a key.
//
// Folder src/bridge/jobs: the jobs controller of slurm-bridge. Uses bridge/common, and no other controller.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bridge/common/observer.hpp"
#include "bridge/jobs/observed.hpp"

namespace bridge::jobs {

/// The numbers of pods and jobs that concern the controller, for metrics.
struct Counts {
  std::size_t waiting = 0, placed = 0;  ///< Pods.
  std::size_t orphans = 0;              ///< Jobs that have not ended and name no pod that exists.
  std::size_t missing = 0;              ///< Placed pods whose jobs Slurm does not have.
  core::Duration oldest{0};             ///< The age of the oldest job that waits.
};

class JobsController final : public kube::TypedController<Observed> {
 public:
  JobsController(slinky::Wiring& wiring, Settings settings);
  [[nodiscard]] std::string name() const override { return "jobs"; }
  /// Returns the Slurm cluster. Returns "" if the pod's job no longer holds nodes: an eviction needs only the API server.
  [[nodiscard]] std::string share(const kube::Key& key) const override;

  /// Counts the pods and jobs that exist now, including those of groups. Counts jobs only while Slurm answers.
  [[nodiscard]] Counts counts(core::WallTime now) const;
  /// Returns the pods that wait or run for a job, and the jobs that have not ended, including those of groups. A bridge that
  /// retires must keep running while the list is not empty.
  [[nodiscard]] std::vector<std::string> left() const;
  /// Callbacks after the bridge has placed a pod for a job, and after it has set the condition SlurmEnded with a reason.
  std::function<void(const JobId& job)> on_placed;
  std::function<void(const std::string& reason)> on_told_to_end;

 protected:
  std::shared_ptr<const Observed> observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                const run::Observation& context) override;

 private:
  /// Reports whether this bridge manages the pod, or Slurm has a job for the pod. Another bridge can be responsible for other
  /// pods.
  [[nodiscard]] bool serves(const Pod& pod) const;
  void note(const Pod& before, const Pod& after) const;
  void observe_jobs(const run::Observation& context, Observed& out) const;
  void choose_job(const run::Observation& context, Observed& out) const;
  void issue_unneeded(const run::Observation& context, Observed& out) const;
  void observe_end(const run::Observation& context, Observed& out) const;
  void observe_fit(Observed& out);
  void observe_leftovers(Observed& out);
  void observe_silence(const run::Observation& context, Observed& out) const;
  void remember(const run::Observation& context, Observed& out);
  /// Reports whether the pod belongs to a group, so that the gangs controller is responsible for it.
  [[nodiscard]] bool in_group(const Pod& pod) const;
  [[nodiscard]] bool concerns(const Pod& pod) const;
  /// Returns the keys of the pods that concern the bridge; with `waiting`, only of those with the gate.
  [[nodiscard]] slinky::Keys keys(bool waiting) const;
  /// Returns the keys of the pods that the bridge placed on the node.
  [[nodiscard]] slinky::Keys placed_on(const std::string& node) const;
  [[nodiscard]] slinky::Keys woken_by(const slurm::Change& change);

  Observer observer_;
  std::map<kube::Key, Since> memory_;
};

}  // namespace bridge::jobs
