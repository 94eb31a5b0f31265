// Carries out the acts that change the coordinator's own records. Acts on Slurm are carried out by slurm::Target.
#pragma once

#include "enlist/store/store.hpp"
#include "plan/executor.hpp"

namespace enlist {

/// Its acts need no gates: when an act is done, the contents of the store show it.
class StoreTarget final : public plan::Target {
 public:
  explicit StoreTarget(Store& store);

 private:
  Store& store_;
};

}  // namespace enlist
