// Continues the rotation of the auth key, if one runs. Has one run::Key.
//
// The owner connects it like PoolsController, and calls files_changed() after each change of SlurmFiles.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/loop.hpp"
#include "core/random.hpp"
#include "enlist/coordinator/rotation_plan.hpp"
#include "enlist/coordinator/slurm_files.hpp"
#include "enlist/store/store.hpp"
#include "plan/executor.hpp"
#include "run/controller.hpp"
#include "slurm/snapshot/registry.hpp"

namespace enlist {

/// Returns the holders of the auth key other than the nodes and the slurmctld of this host: the other SlurmctldHosts, the hosts
/// of slurmdbd, and `also`.
[[nodiscard]] std::vector<KeyHolder> key_holders(const SlurmFacts& facts, const std::string& own_host,
                                                 const std::set<std::string>& also);

class RotationController final : public run::TypedController<RotationObserved> {
 public:
  /// `own_host`: the name of this host, to find it among the SlurmctldHosts. `wake` starts a pass for a work key.
  RotationController(core::Loop& loop, Store& store, slurm::Clusters& clusters, slurm::ClusterKey cluster, SlurmFiles& files,
                     std::string own_host, std::function<void(const run::Key&)> wake);

  [[nodiscard]] std::string name() const override { return "rotation"; }
  [[nodiscard]] std::string share(const run::Key&) const override { return cluster_; }

  void start() { wake(); }
  void changed(const Changes& changes);  ///< Call it after each change of the store.
  void changed(const slurm::Change& change);
  void files_changed() { wake(); }
  /// Returns the present rotation_status().
  [[nodiscard]] core::Json status();

 private:
  [[nodiscard]] std::shared_ptr<const RotationObserved> observe_typed(const run::Key& key, run::Recorder& recorder,
                                                                      const run::Observation& context) override;
  [[nodiscard]] std::shared_ptr<const RotationObserved> observed(const plan::Context& context);
  void wake();

  core::Loop& loop_;
  Store& store_;
  slurm::Clusters& clusters_;
  slurm::ClusterKey cluster_;
  SlurmFiles& files_;
  std::string own_host_;
  std::function<void(const run::Key&)> wake_;
  std::string settled_phase_;  ///< Rotation::phase and Rotation::settled to which settled_since_ belongs.
  std::optional<core::MonoTime> settled_since_;
  plan::Outcomes outcomes_;  ///< The outcomes that the last pass observed.
};

/// Carries out RecordRotation and WriteAuthKey.
class RotationTarget final : public plan::Target {
 public:
  /// `host` is used on other threads. The loop must not run any more after the target is destroyed.
  RotationTarget(core::Loop& loop, core::Random& random, core::Logger& log, Store& store, Host& host, SlurmFiles& files);

 private:
  void write(const WriteAuthKey& act, Done done);

  core::Loop& loop_;
  core::Random& random_;
  core::Logger& log_;
  Host& host_;
  SlurmFiles& files_;
};

}  // namespace enlist
