// The jobs controller: a pod with the gate of the bridge becomes a job of Slurm, and the end of the one ends the other. A key
// is the "ns/name" of a pod. Jobs whose pods are gone have the key that their admin_comment names. declaration.cpp says which
// changes wake it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "bridge/jobs/job_table.hpp"
#include "bridge/jobs/observed.hpp"
#include "kube/cache/recorder.hpp"
#include "slinky/wiring.hpp"

namespace bridge::jobs {

/// The caches that the controller reads.
struct Caches {
  explicit Caches(slinky::Wiring& wiring);
  kube::Cache<kube::SchedulingPodRecord>& pods;
  kube::Cache<kube::SchedulingNodeRecord>& nodes;
};

/// What the controller has to do with, for metrics.
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
  [[nodiscard]] std::string share(const kube::Key&) const override { return settings_->cluster; }

  /// Counts what is there now. Jobs count only if Slurm answers.
  [[nodiscard]] Counts counts(core::WallTime now) const;
  /// Called when the bridge has placed a pod, with its job; and when it has told a pod to end, with the reason.
  std::function<void(const JobId& job)> on_placed;
  std::function<void(const std::string& reason)> on_told_to_end;

 protected:
  std::shared_ptr<const Observed> observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                const run::Observation& context) override;

 private:
  /// What this process has seen of a pod.
  struct Memory {
    std::string uid;
    std::int64_t refused = 0;  ///< The number of the job that was refused last.
    std::optional<core::MonoTime> unbound_since, over_since, refused_since, silent_since, unanswered_since;
  };

  void note(const kube::SchedulingPodRecord& before, const kube::SchedulingPodRecord& after) const;
  void observe_jobs(const run::Observation& context, Observed& out) const;
  void choose_job(const run::Observation& context, Observed& out) const;
  void issue_unneeded(const run::Observation& context, Observed& out) const;
  void observe_end(const run::Observation& context, Observed& out) const;
  void observe_leftovers(Observed& out) const;
  void observe_silence(const run::Observation& context, Observed& out) const;
  [[nodiscard]] bool on_silent_node(const kube::SchedulingPodRecord& pod) const;
  void remember(const run::Observation& context, Observed& out);
  [[nodiscard]] bool concerns(const kube::SchedulingPodRecord& pod) const;
  /// Returns the keys of the pods that concern the bridge; with `waiting`, only of those with the gate.
  [[nodiscard]] slinky::Keys keys(bool waiting) const;
  /// Returns the keys of the pods that the bridge placed on the node.
  [[nodiscard]] slinky::Keys placed_on(const std::string& node) const;
  [[nodiscard]] slinky::Keys woken_by(const slurm::Change& change);

  slinky::Wiring& wiring_;
  Caches caches_;
  std::shared_ptr<const Settings> settings_;
  JobTable table_;
  std::string installation_;            ///< Observed::installation.
  std::shared_ptr<const Hosts> hosts_;  ///< Null after a change of a node.
  std::map<kube::Key, Memory> memory_;
};

}  // namespace bridge::jobs
