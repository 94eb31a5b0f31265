// Which Controllers share an Accounting, and with which keys.
//
// Folder src/operator/common: what several controllers of the operator share. Uses slinky, and no controller.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/accounting.hpp"
#include "kube/cache/cache.hpp"
#include "kube/cache/recorder.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/keys.hpp"

namespace op {

/// The Controllers that name this Accounting, the oldest first. Includes those that are being deleted: their slurmctlds may
/// still have jobs to record, for which they need their key and name.
[[nodiscard]] std::vector<kube::ObjectPtr> clusters_of(const kube::Cache<kube::Object>& controllers,
                                                       const kube::Key& accounting);

/// The keys for the slurmdbd of an Accounting: those that its spec names, or the oldest cluster's. nullopt: it names none, and
/// no cluster names it.
struct AccountingKeys {
  std::optional<SecretFacts> slurm, jwt;
};
[[nodiscard]] AccountingKeys read_accounting_keys(kube::Recorder& recorder, const std::string& ns,
                                                  const api::AccountingSpec& spec,
                                                  const std::vector<kube::ObjectPtr>& clusters);

}  // namespace op
