// What an administrator, or Slurm itself, did to a node is not undone by the operator: no drain or DOWN of theirs is lifted,
// its reason is not written over, and it is not lost with the record of a worker that is still wanted.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/loop.hpp"
#include "sim/kube/api.hpp"
#include "sim/programs/operator/oracles/looks.hpp"
#include "sim/site/slurm_site.hpp"

namespace sim {

class HoldOracle {
 public:
  using Tell = std::function<void(std::string)>;
  HoldOracle(core::Loop& loop, KubeApi& api, const Looks& looks, Tell violation);
  HoldOracle(const HoldOracle&) = delete;
  HoldOracle& operator=(const HoldOracle&) = delete;

  /// What an admin did to a node and did not undo.
  struct Hold {
    bool drain = false, down = false;
    std::string reason;  ///< Of the drain.
    /// Where the record is gone that had the drain: by whom it is noted. Both have to stay.
    std::string nodeset_uid, controller_uid;
    core::MonoTime since;
  };
  [[nodiscard]] Hold on(const kube::Key& controller, const std::string& node) const;

  /// Somebody changes a node.
  void updated(const SlurmSite::Cluster& cluster, const SimNode& node, const SimNodeUpdate& update, const std::string& user);
  /// To service, by its registration.
  void returned(const SlurmSite::Cluster& cluster, const SimNode& node);
  /// A slurmd makes a record.
  void made(const SlurmSite::Cluster& cluster, const SimNode& node);
  /// Deleted by the operator, with no job on it. True: what an admin did to it is to outlive it.
  bool record_deletion(const SlurmSite::Cluster& cluster, const SimNode& node);
  /// Its record is deleted, whoever does it.
  void forget(const SlurmSite::Cluster& cluster, const SimNode& node, bool by_operator);

 private:
  void listen();
  /// One that is bound to a Kubernetes node.
  [[nodiscard]] bool wants_bound_worker(const kube::Key& controller, const std::string& node) const;
  [[nodiscard]] bool wants_worker(const kube::Key& controller, const std::string& node) const;
  /// The NodeSet whose status says what the drain is that the next worker of the node is to have; null: none.
  [[nodiscard]] const core::Json* noted_by(const kube::Key& controller, const std::string& node,
                                           const std::string& reason) const;

  core::Loop& loop_;
  KubeApi& api_;
  const Looks& looks_;
  Tell violation_;
  std::map<std::pair<kube::Key, std::string>, Hold> foreign_;  ///< By Controller and node.
  std::set<std::pair<kube::Key, std::string>> freed_;          ///< Drained by an admin, who freed them since.
  std::map<kube::Key, core::MonoTime> changed_;                ///< When a Kubernetes node or a NodeSet last changed.
  std::map<kube::Key, core::MonoTime> left_;                   ///< When a worker last ended, was deleted, or is gone.
};

}  // namespace sim
