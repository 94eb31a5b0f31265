// The gangs controller: the pods of a group become one job of Slurm. All of them are placed, in their order on Slurm's order of
// the nodes, or none. A key is a group of pods (bridge/common/groups.hpp). declaration.cpp says which changes wake it.
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
  /// Says for each pod which job it is in, and for each job its pods.
  void assign(Observed& out) const;
  void observe_ends(const run::Observation& context, Observed& out) const;
  void issue_unneeded(const run::Observation& context, Observed& out) const;
  void observe_leftovers(Observed& out);
  void remember(const run::Observation& context, Observed& out);
  /// Returns the group of the pod; null if it is in none.
  [[nodiscard]] std::optional<run::Key> key_of(const Pod& pod) const;
  [[nodiscard]] slinky::Keys keys(bool waiting) const;
  [[nodiscard]] slinky::Keys woken_by(const slurm::Change& change);

  Observer observer_;
  std::map<run::Key, Since> memory_;
};

}  // namespace bridge::gangs
