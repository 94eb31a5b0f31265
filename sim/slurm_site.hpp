// What runs inside of the containers of Slurm pods: each slurmctld, slurmd and slurmrestd pod of the simulated cluster is wired to a
// SimSlurm. The kubelet's model asks here what a container does; nothing here knows the operator.
//
// A slurmctld's state lies on its volume claim: it outlives pods, and goes with the claim. A Slurm cluster is told by the host name
// of its slurmctld ("demo-controller.default"), as slurmd and slurmrestd find it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "core/loop.hpp"
#include "core/random.hpp"
#include "kube/object.hpp"
#include "sim/kube_api.hpp"
#include "sim/sim_slurm.hpp"
#include "sim/slurm_rest.hpp"

namespace sim {

class SlurmSite {
 public:
  /// A file of a pod's volumes as its kubelet projected it; nullopt when it has none by that name.
  using Projected = std::function<std::optional<std::string>(const core::Json& pod, const std::string& file)>;
  struct Cluster {
    kube::Key controller;  ///< Namespace, and the Controller's name.
    std::unique_ptr<SimSlurm> slurm;
    std::unique_ptr<SlurmRest> rest;
    std::string pod_uid;    ///< Of the slurmctld that runs; "": none.
    core::Json pod;         ///< The same pod.
    std::string jwt_key;    ///< Read when it started.
    std::string claim_uid;  ///< Of the volume that holds its state.
  };

  SlurmSite(core::Loop& loop, core::Random& random, KubeApi& api, Projected projected, SlurmOptions options = {});
  ~SlurmSite();

  // What containers do.
  /// True when an init container is done; the others of a pod are at once.
  [[nodiscard]] bool init_done(const core::Json& pod, const std::string& container) const;
  /// The container's process starts. An error: it ends at once, with that message.
  core::Result<void> start(const core::Json& pod, const std::string& container);
  [[nodiscard]] bool ready(const core::Json& pod, const std::string& container) const;
  void pre_stop(const core::Json& pod, const std::string& container);
  /// The container's process is gone, for whatever reason.
  void stop(const core::Json& pod, const std::string& container);

  // What clients see.
  /// The slurmrestd behind a Service "name.namespace", or null: nobody listens.
  [[nodiscard]] SlurmRest* listening(const std::string& host, std::uint16_t port) const;
  /// Of a Controller; null when none ever ran.
  [[nodiscard]] Cluster* find(const kube::Key& controller);
  [[nodiscard]] const std::map<std::string, std::unique_ptr<Cluster>>& clusters() const { return clusters_; }
  /// Called when a cluster is first made, to listen in.
  std::function<void(Cluster&)> on_cluster;

 private:
  [[nodiscard]] Cluster* of(const core::Json& pod, const std::string& container) const;
  core::Result<void> start_slurmctld(const core::Json& pod);
  core::Result<void> start_slurmd(const core::Json& pod, const core::Json& container);

  core::Loop& loop_;
  core::Random& random_;
  KubeApi& api_;
  Projected projected_;
  SlurmOptions options_;
  std::map<std::string, std::unique_ptr<Cluster>> clusters_;  ///< By slurmctld's host.
  std::map<std::string, std::string> slurmds_;                ///< Node by the pod's uid; only the pod that started it stops it.
  std::map<std::string, std::string> restds_;                 ///< slurmctld's host by the pod's uid.
};

/// The Slurm node that a worker pod is.
std::string slurm_node_of(const core::Json& pod);

}  // namespace sim
