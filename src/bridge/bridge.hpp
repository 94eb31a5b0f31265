// The bridge as a whole: its controllers, wired to a manager, and its connection to one Slurm cluster. The binary and the
// simulator both use this class.
//
//   kube::Manager manager(loop, random, log, client, options);
//   bridge::Bridge slurm_bridge(loop, random, log, manager, slurm_transport, {.controller = kube::Key{"slurm", "demo"}});
//   manager.start();
//
// Folder src/bridge: slurm-bridge, which lets Slurm choose where pods run. Uses its controllers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bridge/common/settings.hpp"
#include "bridge/nodes/settings.hpp"
#include "bridge/retirement.hpp"
#include "core/log.hpp"
#include "core/loop.hpp"
#include "core/random.hpp"
#include "kube/app/manager.hpp"
#include "slurm/snapshot/registry.hpp"

namespace bridge {

/// The address of a slurmrestd without a RestApi, and the Secret with the key that signs tokens for it.
struct SlurmAddress {
  slurm::Endpoint endpoint;
  kube::Key secret;
  std::string data_key;
};

struct Options {
  std::optional<kube::Key> controller;  ///< The Controller of the Slurm cluster. Its RestApi gives slurmrestd's address.
  std::optional<SlurmAddress> address;  ///< Used if there is no `controller`.
  Settings jobs;                        ///< Bridge sets `cluster` from `controller` or `address`.
  nodes::Settings nodes;                ///< Bridge sets `cluster` from `controller` or `address`.
  bool retires = false;                 ///< The bridge only undoes what it has changed: see retirement.hpp.
  bool runs_nodes = true;               ///< Runs the nodes controller, which registers, taints and drains nodes.
};

class Bridge {
 public:
  /// Registers everything with the manager, which must not be started yet. The bridge must live until the manager has stopped,
  /// and the manager must outlive the bridge.
  Bridge(core::Loop& loop, core::Random& random, core::Logger& log, kube::Manager& manager,
         slurm::Clusters::TransportFactory slurm, Options options);
  ~Bridge();
  Bridge(const Bridge&) = delete;
  Bridge& operator=(const Bridge&) = delete;

  [[nodiscard]] slurm::Clusters& clusters();
  /// Returns the pods, jobs and nodes for which a bridge that retires must keep running. nullopt: unknown for now, because this
  /// process does not lead, its caches are not filled yet, or steps are still to be done.
  [[nodiscard]] std::optional<Left> left() const;
  /// Returns the release of Slurm if this release has no external jobs, so that the bridge does nothing. "": the release has
  /// external jobs, or is not known.
  [[nodiscard]] std::string too_old() const;
  [[nodiscard]] const Settings& settings() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bridge
