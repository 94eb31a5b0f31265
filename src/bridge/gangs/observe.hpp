// The gangs controller: submits one Slurm job for the pods of a group, and places all of these pods or none. The first pod of
// the group gets the first node in Slurm's order, and so on. A key is a group of pods (bridge/common/groups.hpp).
// declaration.cpp lists the changes that wake a key.
//
// Folder src/bridge/gangs: the gangs controller of slurm-bridge. Uses bridge/common, and no other controller.
#pragma once

#include <map>
#include <memory>

#include "bridge/common/observer.hpp"
#include "bridge/gangs/observed.hpp"

namespace bridge::gangs {

class GangsController final : public kube::TypedController<Observed> {
 public:
  GangsController(slinky::Wiring& wiring, Settings settings);
  [[nodiscard]] std::string name() const override { return "gangs"; }
  [[nodiscard]] std::string share(const kube::Key&) const override { return observer_.settings->cluster; }

 protected:
  std::shared_ptr<const Observed> observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                const run::Observation& context) override;

 private:
  [[nodiscard]] Pods pods_of(const run::Key& key) const;
  void observe_jobs(const run::Observation& context, Observed& out) const;
  /// Sets the job of each pod, and the pods of each job.
  void assign(Observed& out) const;
  void observe_ends(const run::Observation& context, Observed& out) const;
  void issue_unneeded(const run::Observation& context, Observed& out) const;
  void observe_leftovers(Observed& out);
  void remember(const run::Observation& context, Observed& out);
  /// Returns the group of the pod; nullopt if the pod is in none.
  [[nodiscard]] std::optional<run::Key> key_of(const Pod& pod) const;
  [[nodiscard]] slinky::Keys keys(bool waiting) const;
  [[nodiscard]] slinky::Keys woken_by(const slurm::Change& change);

  Observer observer_;
  std::map<run::Key, Since> memory_;
};

}  // namespace bridge::gangs
