// Not an oracle by itself: finds records of Slurm nodes that may stay at the end (declared_state.hpp), because nobody can
// delete these records. Either their Controller or NodeSet is gone and has not deleted them, or their worker had no owner, or
// their worker's machine was renamed before the operator wrote the owner into the record.
//
// Folder sim/programs/operator/oracles: the oracles of the operator. They rely on the simulated servers alone. Uses
// sim/oracles.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/loop.hpp"
#include "sim/kube/api.hpp"
#include "sim/site/slurm_site.hpp"

namespace sim {

class AbandonedRecords {
 public:
  AbandonedRecords(core::Loop& loop, KubeApi& api, SlurmSite& site);
  AbandonedRecords(const AbandonedRecords&) = delete;
  AbandonedRecords& operator=(const AbandonedRecords&) = delete;

  [[nodiscard]] bool contain(const kube::Key& controller, const std::string& node) const {
    return abandoned_.contains({controller, node});
  }
  /// Notes that the record is deleted, and is no longer abandoned.
  void forget(const SlurmSite::Cluster& cluster, const SimNode& node) { abandoned_.erase({cluster.controller, node.name}); }

 private:
  void listen();
  void abandon_records(const kube::Key& controller);
  void abandon_record(const core::Json& pod);
  void abandon_left(const core::Json& nodeset);
  void abandon_renamed(const std::string& was);

  core::Loop& loop_;
  KubeApi& api_;
  SlurmSite& site_;
  std::set<std::string> alone_;                            ///< The uids of NodeSets that were deleted with --cascade=orphan.
  std::set<std::pair<kube::Key, std::string>> abandoned_;  ///< The Controller and the node of each abandoned record.
  std::map<std::pair<kube::Key, std::string>, core::MonoTime> gone_;  ///< By Controller and node: when its last worker ended.
};

}  // namespace sim
