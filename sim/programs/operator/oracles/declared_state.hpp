// Checks that the declared state is reached in the end: the running pods and the status match the users' Controllers, RestApis,
// NodeSets, LoginSets and Tokens, and no other objects remain.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/loop.hpp"
#include "sim/kube/api.hpp"
#include "sim/programs/operator/oracles/abandoned.hpp"
#include "sim/programs/operator/oracles/holds.hpp"
#include "sim/site/slurm_site.hpp"

namespace sim {

class DeclaredState {
 public:
  DeclaredState(core::Loop& loop, KubeApi& api, SlurmSite& site, const HoldOracle& holds, const AbandonedRecords& abandoned);
  DeclaredState(const DeclaredState&) = delete;
  DeclaredState& operator=(const DeclaredState&) = delete;

  /// The namespaces in which operators act; empty: all.
  void limit_to(std::vector<std::string> namespaces) { namespaces_ = std::move(namespaces); }
  /// Returns why the declared state is not reached; empty if it is.
  [[nodiscard]] std::vector<std::string> unmet() const;

 private:
  [[nodiscard]] std::string rolled_revision(const core::Json& nodeset) const;
  void unmet_features(const core::Json& nodeset, const core::Json& pod, const core::Json& host, const SimNode& node,
                      std::vector<std::string>& out) const;
  void unmet_nodeset(const core::Json& nodeset, std::vector<std::string>& out) const;
  void unmet_slurm(const SlurmSite::Cluster& cluster, std::vector<std::string>& out) const;
  void unmet_controller(const kube::Key& key, const core::Json& object, std::vector<std::string>& out) const;
  void unmet_inputs(const SlurmSite::Cluster& cluster, const core::Json& controller, std::vector<std::string>& out) const;
  void unmet_loginset(const kube::Key& key, const core::Json& object, std::vector<std::string>& out) const;
  void unmet_token(const core::Json& token, std::vector<std::string>& out) const;
  [[nodiscard]] std::optional<std::string> secret_value(const kube::Key& key, const std::string& field) const;

  core::Loop& loop_;
  KubeApi& api_;
  SlurmSite& site_;
  const HoldOracle& holds_;
  const AbandonedRecords& abandoned_;
  std::vector<std::string> namespaces_;
};

}  // namespace sim
