// Of a NodeSet the operator makes no more workers than were wished for lately.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
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

  /// How many workers were made so far, by name.
  [[nodiscard]] const std::map<std::string, int>& made() const { return made_; }

 private:
  void listen();
  void count_workers(const core::Json& made);

  core::Loop& loop_;
  KubeApi& api_;
  Tell violation_;
  /// By a NodeSet's uid: the workers that were wished for, and since when.
  std::map<std::string, std::vector<std::pair<core::MonoTime, std::int64_t>>> wished_;
  std::map<std::string, int> made_;  ///< Workers, by name.
};

}  // namespace sim
