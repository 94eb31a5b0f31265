// The jobs controller: a pod with the gate of the bridge becomes a job of Slurm, and the end of the one ends the other. A key
// is the "ns/name" of a pod. Jobs whose pods are gone have the key that their admin_comment names. declaration.cpp says which
// changes wake it.
#pragma once

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

class JobsController final : public kube::TypedController<Observed> {
 public:
  JobsController(slinky::Wiring& wiring, Settings settings);
  [[nodiscard]] std::string name() const override { return "jobs"; }
  [[nodiscard]] std::string share(const kube::Key&) const override { return settings_->cluster; }
  /// Returns the pods that wait for Slurm, or run for a job of it: a bridge that retires has to stay for these.
  [[nodiscard]] slinky::Keys served() const;

 protected:
  std::shared_ptr<const Observed> observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                const run::Observation& context) override;

 private:
  /// What this process has seen of a pod.
  struct Memory {
    std::string uid;
    std::int64_t refused = 0;  ///< The number of the job that was refused last.
    std::optional<core::MonoTime> unbound_since, over_since, refused_since;
  };

  void observe_jobs(const run::Observation& context, Observed& out) const;
  void choose_job(const run::Observation& context, Observed& out) const;
  void issue_unneeded(const run::Observation& context, Observed& out) const;
  void observe_end(const run::Observation& context, Observed& out) const;
  void observe_leftovers(Observed& out) const;
  void remember(const run::Observation& context, Observed& out);
  [[nodiscard]] bool is_managed(const std::string& ns) const;
  [[nodiscard]] bool concerns(const kube::SchedulingPodRecord& pod) const;
  /// Returns the keys of the pods that concern the bridge; with `waiting`, only of those with the gate.
  [[nodiscard]] slinky::Keys keys(bool waiting) const;
  [[nodiscard]] slinky::Keys woken_by(const slurm::Change& change);

  slinky::Wiring& wiring_;
  Caches caches_;
  std::shared_ptr<const Settings> settings_;
  JobTable table_;
  std::shared_ptr<const Hosts> hosts_;  ///< Null after a change of a node.
  std::map<kube::Key, Memory> memory_;
};

}  // namespace bridge::jobs
