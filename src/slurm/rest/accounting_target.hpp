// Carries out the acts of slurm/accounting/acts.hpp. slurmdbd has no conditional writes, so the object is read live right
// before each write. It is read again after each write, because slurmdbd drops some writes without an error. Writes that begin
// together share these reads. New QOS share a request, and so do accounts, users, and associations.
//
// Each act returns gates. A gate opens once a poll that began after the act has read a list that shows the act's outcome. If
// the reply was lost, the poll must have begun after slurmrestd's own timeout.
#pragma once

#include <memory>

#include "core/loop.hpp"
#include "plan/executor.hpp"
#include "slurm/snapshot/registry.hpp"

namespace slurm {

/// Besides the errors of slurm::AccountingClient, an act fails with kUnavailable while a list that it needs is incomplete.
class AccountingTarget final : public plan::Target {
 public:
  AccountingTarget(core::Loop& loop, Clusters& clusters);
  ~AccountingTarget() override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace slurm
