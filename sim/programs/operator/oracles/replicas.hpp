// Checks that the operator creates no more workers for a NodeSet than were wanted recently.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/loop.hpp"
#include "sim/kube/api.hpp"

namespace sim {

class ReplicaOracle {
 public:
  using Tell = std::function<void(std::string)>;
  ReplicaOracle(core::Loop& loop, KubeApi& api, Tell violation);
  ReplicaOracle(const ReplicaOracle&) = delete;
  ReplicaOracle& operator=(const ReplicaOracle&) = delete;

  /// Returns how often each worker was created so far, by the worker's name.
  [[nodiscard]] const std::map<std::string, int>& made() const { return made_; }

 private:
  struct Wish {
    core::MonoTime since;
    std::int64_t workers = 0;
    std::set<std::string> machines;  ///< The matching Kubernetes nodes, if workers are bound to nodes.
  };
  void listen();
  void note_wish(const core::Json& nodeset);
  void note_worker(const Change& change);
  void judge_bound(const core::Json& made);
  void count_workers(const core::Json& made);

  core::Loop& loop_;
  KubeApi& api_;
  Tell violation_;
  std::map<std::string, std::vector<Wish>> wished_;  ///< Maps the uid of a NodeSet to its specs, oldest first.
  std::map<std::string, int> made_;                  ///< How often a worker of this name was created.
  /// Maps each worker that has not ended and is not terminating to the uid of its NodeSet.
  std::map<kube::Key, std::string> owners_;
  std::map<std::string, std::int64_t> live_;  ///< Maps the uid of a NodeSet to the number of its workers in owners_.
};

}  // namespace sim
