// Carries out the acts that change the coordinator's own records. Acts on Slurm are carried out by slurm::Target.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/clock.hpp"
#include "enlist/store/store.hpp"
#include "plan/executor.hpp"

namespace enlist {

/// Its acts need no gates: when an act is done, the contents of the store show it.
class StoreTarget final : public plan::Target {
 public:
  /// `heard_at` returns when the agent of a node was last heard of; nullopt: never by this process.
  StoreTarget(Store& store, std::function<std::optional<core::MonoTime>(const std::string& node)> heard_at);

 private:
  Store& store_;
  std::function<std::optional<core::MonoTime>(const std::string& node)> heard_at_;
};

}  // namespace enlist
