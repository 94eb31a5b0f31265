// Which Controllers share an Accounting, and with which keys.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/accounting.hpp"
#include "cluster/keys.hpp"
#include "kube/cache/cache.hpp"
#include "kube/cache/recorder.hpp"

namespace op {

/// The Controllers that name this Accounting, the oldest first. One that is being deleted is among them: its slurmctld may have
/// jobs to record, which takes the key and the name that it has.
[[nodiscard]] std::vector<kube::ObjectPtr> clusters_of(const kube::Cache<kube::Object>& controllers,
                                                       const kube::Key& accounting);

/// The keys that the slurmdbd of an Accounting is to have: those that its spec names, or the oldest cluster's. nullopt: it
/// names none, and no cluster names it.
struct AccountingKeys {
  std::optional<SecretFacts> slurm, jwt;
};
[[nodiscard]] AccountingKeys read_accounting_keys(kube::Recorder& recorder, const std::string& ns,
                                                  const api::AccountingSpec& spec,
                                                  const std::vector<kube::ObjectPtr>& clusters);

}  // namespace op
