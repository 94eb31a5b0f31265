// Empty caches for tests to fill, with their indices.
#pragma once

#include <utility>

#include "cluster/caches.hpp"

namespace op::testing {

struct CacheSet {
  explicit CacheSet(SnapshotSource snapshot = nullptr)
      : caches{controllers,   restapis,    nodesets, tokens,    pods,   services,      config_maps,
               stateful_sets, deployments, budgets,  revisions, claims, token_secrets, std::move(snapshot)} {
    add_indices(caches);
  }
  CacheSet(const CacheSet&) = delete;
  CacheSet& operator=(const CacheSet&) = delete;

  kube::Cache<kube::Object> controllers, restapis, nodesets, tokens, services, config_maps, stateful_sets, deployments, budgets,
      revisions, claims;
  kube::Cache<kube::PodRecord> pods;
  kube::Cache<kube::SecretRecord> token_secrets;
  Caches caches;
};

}  // namespace op::testing
