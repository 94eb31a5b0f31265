// Carries out the acts of slurm/acts.hpp. Slurm has no conditional writes: the node is read live right before each write.
//
// Each write closes a gate until a snapshot is in that was asked for after the reply. A lost reply is settled by a snapshot
// asked for after the request's deadline.
#pragma once

#include "core/loop.hpp"
#include "plan/executor.hpp"
#include "slurm/snapshot/registry.hpp"

namespace slurm {

/// Errors of acts beyond those of slurm::Client: kUnavailable at once while the cluster's snapshot is not complete, for a write
/// to a slurmctld that is away would hang for ten seconds; kConflict when the live node forbids the act.
class Target final : public plan::Target {
 public:
  Target(core::Loop& loop, Clusters& clusters);
  ~Target() override;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace slurm
