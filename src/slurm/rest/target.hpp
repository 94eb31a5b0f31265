// Carries out the acts of slurm/acts.hpp. Reads the node live right before each write, because Slurm has no conditional writes.
//
// Each write returns a closed gate. The first snapshot that was requested after the reply opens the gate. If the reply was
// lost, the snapshot must have been requested after slurmrestd's own timeout, which is a little longer than ours.
#pragma once

#include "core/loop.hpp"
#include "plan/executor.hpp"
#include "slurm/snapshot/registry.hpp"

namespace slurm {

/// Carries out acts. Fails with the errors of slurm::Client and those that slurm/acts.hpp names for each act. Fails at once
/// with kUnavailable if the snapshot of the cluster is not complete, because a write to a slurmctld that is away would hang for
/// ten seconds. Only ReadAccountingClusters does not need a complete snapshot.
class Target final : public plan::Target {
 public:
  Target(core::Loop& loop, Clusters& clusters);
  ~Target() override;
  /// Records that other processes might have submitted jobs until now. Snapshots requested soon might lack these jobs.
  void others_wrote();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace slurm
