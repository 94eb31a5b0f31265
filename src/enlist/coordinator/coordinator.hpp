// The coordinator without its process: the controllers, the engine that runs them, and the handlers of requests.
//
//   enlist::Coordinator coordinator(loop, random, log, *store, *host, supervise, clusters, options);
//   coordinator.start();
//
// Folder src/enlist/coordinator: the coordinator, which runs beside slurmctld. No other part of slurm-enlist changes Slurm.
// Uses enlist/store, enlist/wire, enlist/host, slurm and run. The plans link only enlist/rules and plan.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/log.hpp"
#include "core/loop.hpp"
#include "core/random.hpp"
#include "enlist/coordinator/nodes_controller.hpp"
#include "enlist/coordinator/pools_controller.hpp"
#include "enlist/coordinator/pools_target.hpp"
#include "enlist/coordinator/rotation_controller.hpp"
#include "enlist/coordinator/server.hpp"
#include "enlist/coordinator/slurm_files.hpp"
#include "enlist/coordinator/slurmrestd.hpp"
#include "enlist/coordinator/target.hpp"
#include "enlist/host/host.hpp"
#include "enlist/store/store.hpp"
#include "run/passes.hpp"
#include "run/shutdown.hpp"
#include "slurm/rest/target.hpp"
#include "slurm/snapshot/registry.hpp"

namespace enlist {

/// The key of the only Slurm cluster that a coordinator has.
inline constexpr const char* kCluster = "slurm";

struct CoordinatorOptions {
  ServerOptions server{};  ///< The coordinator sets ServerOptions::cluster itself.
  SlurmrestdOptions slurmrestd{};
  std::filesystem::path slurm_conf = "/etc/slurm/slurm.conf";
  std::optional<core::Duration> forget_dead_after{};  ///< NodeObserved::forget_dead_after.
  std::string own_host{};                             ///< The name of this host, to find it among the SlurmctldHosts.
};

class Coordinator {
 public:
  /// `metrics` may be null. The arguments must outlive the coordinator, and the loop must not run any more after the
  /// coordinator is destroyed. `host` is used on other threads, and must outlive the loop.
  Coordinator(core::Loop& loop, core::Random& random, core::Logger& log, Store& store, Host& host, Supervise supervise,
              slurm::Clusters& clusters, CoordinatorOptions options, run::PassMetrics* metrics = nullptr);
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  void start();
  /// Answers all agents that wait, begins no more passes, and calls `done` once the passes have ended, or after 10 s.
  void stop(std::function<void()> done);
  [[nodiscard]] Server& server() { return server_; }
  /// Reports whether slurm.conf and the auth key can be read and Slurm answers.
  [[nodiscard]] bool ready() const;
  [[nodiscard]] const run::Passes& passes() const { return passes_; }

 private:
  void files_changed();

  Store& store_;
  slurm::Clusters& clusters_;
  SlurmFiles files_;
  Slurmrestd slurmrestd_;
  StoreTarget store_target_;
  FileTarget pool_file_;
  RotationTarget rotation_target_;
  slurm::Target slurm_target_;
  plan::Router router_;
  plan::Executor executor_;
  run::Passes passes_;
  NodesController nodes_;
  PoolsController pools_;
  RotationController rotation_;
  Server server_;
  run::Shutdown shutdown_;
  slurm::Clusters::ListenerId listener_;
};

}  // namespace enlist
