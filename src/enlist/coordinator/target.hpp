// Carries out the acts that change the coordinator's own records of nodes and pools. slurm::Target carries out acts on Slurm.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/clock.hpp"
#include "enlist/store/store.hpp"
#include "plan/executor.hpp"

namespace enlist {

/// The acts need no gates, because the contents of the store show the result as soon as an act is done.
class StoreTarget final : public plan::Target {
 public:
  /// `heard_at` returns when the agent of a node last reported to this process; nullopt: never.
  StoreTarget(Store& store, std::function<std::optional<core::MonoTime>(const std::string& node)> heard_at);

 private:
  Store& store_;
  std::function<std::optional<core::MonoTime>(const std::string& node)> heard_at_;
};

}  // namespace enlist
