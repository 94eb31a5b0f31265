// Carries out the acts of slurm/acts.hpp. Reads the node live right before each write, because Slurm has no conditional writes.
//
// Each write closes a gate. A snapshot that was requested after the reply opens it, or after the request's deadline if the
// reply was lost.
#pragma once

#include "core/loop.hpp"
#include "plan/executor.hpp"
#include "slurm/snapshot/registry.hpp"

namespace slurm {

/// Carries out acts. Errors besides those of slurm::Client: kUnavailable at once if the snapshot of the cluster is not
/// complete, because a write to a slurmctld that is away would hang for ten seconds; kConflict if the live node forbids the
/// act.
class Target final : public plan::Target {
 public:
  Target(core::Loop& loop, Clusters& clusters);
  ~Target() override;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace slurm
