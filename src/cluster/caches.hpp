// The caches that the controllers read. Wired in src/cmd; scenarios and the simulator fill their own.
//
// Secrets and ConfigMaps that users name have no cache: they are read one by one through kube::Recorder.
#pragma once

#include <functional>
#include <string_view>

#include "kube/cache.hpp"
#include "kube/object.hpp"
#include "slurm/model.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace op {

/// Label selector of the caches of pods and children.
inline constexpr std::string_view kChildSelector = "app.kubernetes.io/name in (slurmctld,slurmrestd,slurmd)";
/// Label selector of the cache of claims: the StatefulSet controller puts the selector's labels on those it makes.
inline constexpr std::string_view kClaimSelector = "app.kubernetes.io/name in (slurmctld)";

/// What Slurm last said of a cluster; null when no server is known for it.
using SnapshotSource = std::function<slurm::SnapshotPtr(const slurm::ClusterKey&)>;

/// Label selector of the cache of Secrets that hold Tokens' tokens.
inline constexpr std::string_view kTokenSelector = "app.kubernetes.io/name in (slurm-token)";

struct Caches {
  // Our kinds, whole.
  kube::Cache<kube::Object>& controllers;
  kube::Cache<kube::Object>& restapis;
  kube::Cache<kube::Object>& nodesets;
  kube::Cache<kube::Object>& tokens;
  // Children, by kChildSelector.
  kube::Cache<kube::PodRecord>& pods;  ///< slurmctld, slurmrestd and all workers; indices below.
  kube::Cache<kube::Object>& services;
  kube::Cache<kube::Object>& config_maps;
  kube::Cache<kube::Object>& stateful_sets;
  kube::Cache<kube::Object>& deployments;
  kube::Cache<kube::Object>& pod_disruption_budgets;
  kube::Cache<kube::Object>& controller_revisions;
  kube::Cache<kube::Object>& claims;               ///< By kClaimSelector.
  kube::Cache<kube::SecretRecord>& token_secrets;  ///< By kTokenSelector.

  SnapshotSource snapshot;
};

/// Index of pods by "ns/app/instance", e.g. "default/slurmctld/demo", and of workers by "ns/cluster", e.g. "default/demo".
inline constexpr std::string_view kIndexInstance = "instance";
inline constexpr std::string_view kIndexCluster = "cluster";
/// Index of RestApis and NodeSets by the key of the Controller that they name, "ns/name".
inline constexpr std::string_view kIndexController = "controller";
/// Index of ControllerRevisions and Tokens' Secrets by the uid of their owner.
inline constexpr std::string_view kIndexOwner = "owner";

/// Adds the indices above; once, before the caches are fed.
void add_indices(Caches& caches);
std::string instance_key(std::string_view ns, std::string_view app, std::string_view instance);

}  // namespace op
