// Finds the slurm-bridges of the Kubernetes cluster, and their settings, from the arguments of their Deployments.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bridge/common/settings.hpp"
#include "cli/session.hpp"

namespace cli {

struct KnownBridge {
  kube::Key deployment;
  bool ready = false;  ///< At least one of its pods is ready.
  /// The Controller of the Slurm cluster; nullopt if the bridge has the address of a slurmrestd instead.
  std::optional<kube::Key> controller;
  /// Only `cluster`, `managed_namespaces` and `scheduler_name` are read. `cluster` is "" if the arguments name no cluster.
  bridge::Settings settings;
};

/// Reads the arguments of a Deployment with the label of slurm-bridge.
[[nodiscard]] KnownBridge bridge_of(const core::Json& deployment);

struct Bridges {
  std::vector<KnownBridge> known;
  std::string unknown;  ///< Why the Deployments could not be read; "" if they were.

  /// Returns the bridges that manage the pod: they submit jobs for it.
  [[nodiscard]] std::vector<const KnownBridge*> of(const kube::SchedulingPodRecord& pod) const;
};

/// Reads the Deployments of all namespaces. Error: kCancelled if the user interrupted.
core::Result<Bridges> read_bridges(Api& api);

/// The Controller of the cluster that has the jobs of a pod.
struct PodCluster {
  std::optional<kube::Key> controller;
  std::string unknown;  ///< Why it is not known; "" if it is.
};
/// Finds the Controller from the settings of the bridges. If they could not be read, uses the annotation of a pod that asked
/// for Slurm by its schedulerName.
[[nodiscard]] PodCluster cluster_of(const kube::SchedulingPodRecord& pod, const Bridges& bridges);

}  // namespace cli
