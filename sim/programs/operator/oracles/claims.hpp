// Checks that a worker's volume claim is deleted only as the retention policy of its NodeSet allows: with the NodeSet, or after
// the worker was scaled in. Also checks that no worker is created before its claims.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/loop.hpp"
#include "sim/kube/api.hpp"

namespace sim {

class ClaimOracle {
 public:
  using Tell = std::function<void(std::string)>;
  ClaimOracle(core::Loop& loop, KubeApi& api, Tell violation);
  ClaimOracle(const ClaimOracle&) = delete;
  ClaimOracle& operator=(const ClaimOracle&) = delete;

 private:
  void listen();
  void note_nodeset(const core::Json& nodeset);
  void note_worker(const core::Json& pod, bool made);
  void note_gone(const core::Json& pod);
  [[nodiscard]] bool goes_for_good(const core::Json& pod) const;
  void judge(const core::Json& claim);
  void judge_garbage(const kube::Key& key, const std::string& owner);

  struct Wish {
    core::MonoTime since;
    std::int64_t replicas = 0;
    bool when_scaled = false, when_deleted = false;  ///< Whether whenScaled, and whenDeleted, is Delete.
  };
  /// Returns the recent specs of a NodeSet. An operator is still allowed to act on each of them.
  [[nodiscard]] std::vector<Wish> lately(const std::string& uid) const;

  core::Loop& loop_;
  KubeApi& api_;
  Tell violation_;
  std::map<std::string, std::vector<Wish>> wishes_;  ///< Maps the uid of a NodeSet to its specs, oldest first.
  std::set<std::string> alone_;                      ///< The uids of NodeSets that were deleted with --cascade=orphan.
  std::set<std::string> deleted_;                    ///< The uids of claims that were deleted.
  /// Maps a claim that Kubernetes deletes with its NodeSet to the NodeSet's uid and the time. An operator that has not noticed
  /// the deletion may create the workers once more. These workers are deleted with the NodeSet.
  std::map<kube::Key, std::pair<std::string, core::MonoTime>> collected_;
  std::map<kube::Key, bool> scaled_in_;  ///< Maps a worker to whether it was surplus when it was last deleted.
  /// Maps a worker that is gone, and whose claims remain, to the uid of its NodeSet and the time when it disappeared.
  std::map<kube::Key, std::pair<std::string, core::MonoTime>> vacancies_;
};

}  // namespace sim
