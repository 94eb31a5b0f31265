// Carries out the acts of slurm/accounting/acts.hpp. slurmdbd has no conditional writes, so the object is read live right
// before each write. It is read again after each write, because slurmdbd drops some writes without an error. Writes that begin
// together share these reads, and new QOS share a request.
//
// Each act returns a gate that opens when the list of QOS was requested after the act. If the reply was lost, the list must
// have been requested after slurmrestd's own timeout.
#pragma once

#include <memory>

#include "core/loop.hpp"
#include "plan/executor.hpp"
#include "slurm/snapshot/registry.hpp"

namespace slurm {

/// Besides the errors of slurm::AccountingClient, acts fail with kUnavailable while the list of QOS is incomplete.
class AccountingTarget final : public plan::Target {
 public:
  AccountingTarget(core::Loop& loop, Clusters& clusters);
  ~AccountingTarget() override;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace slurm
