// Checks that the operator does not undo a drain or DOWN that an administrator or Slurm has set. The operator must preserve the
// drain or DOWN and its reason, also when it deletes the record of a worker that is still wanted.
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

  /// A drain or DOWN that an administrator set and has not undone.
  struct Hold {
    bool drain = false, down = false;
    std::string reason;  ///< The reason of the drain or DOWN.
    /// The objects that preserve the drain, set when the record is deleted. While both exist, the next record must be drained.
    std::string nodeset_uid, controller_uid;
    core::MonoTime since;
  };
  [[nodiscard]] Hold on(const kube::Key& controller, const std::string& node) const;

  /// Judges a change of a node, and notes what an administrator changes.
  void updated(const SlurmSite::Cluster& cluster, const SimNode& node, const SimNodeUpdate& update, const std::string& user);
  /// Judges a registration that returns the node to service.
  void returned(const SlurmSite::Cluster& cluster, const SimNode& node);
  /// Judges a record that a slurmd has created.
  void made(const SlurmSite::Cluster& cluster, const SimNode& node);
  /// Judges the operator's deletion of a record without jobs. Returns true if an administrator's hold must outlive the record.
  bool record_deletion(const SlurmSite::Cluster& cluster, const SimNode& node);
  /// Notes that a record is deleted, by anyone.
  void forget(const SlurmSite::Cluster& cluster, const SimNode& node, bool by_operator);

 private:
  void listen();
  /// Reports whether a NodeSet with scalingMode DaemonSet wants a worker for this node of Slurm.
  [[nodiscard]] bool wants_bound_worker(const kube::Key& controller, const std::string& node) const;
  [[nodiscard]] bool wants_worker(const kube::Key& controller, const std::string& node) const;
  /// Returns the NodeSet whose status records the drain for the next worker of the node; null if there is none.
  [[nodiscard]] const core::Json* noted_by(const kube::Key& controller, const std::string& node,
                                           const std::string& reason) const;

  core::Loop& loop_;
  KubeApi& api_;
  const Looks& looks_;
  Tell violation_;
  std::map<std::pair<kube::Key, std::string>, Hold> foreign_;  ///< The holds, by Controller and node.
  /// The nodes that an administrator drained and then undrained, by Controller.
  std::set<std::pair<kube::Key, std::string>> freed_;
  std::map<kube::Key, core::MonoTime> changed_;  ///< Maps a Kubernetes node or NodeSet to the time of its last change.
  std::map<kube::Key, core::MonoTime> left_;     ///< Maps a worker to when it last ended, was deleted, or vanished.
};

}  // namespace sim
