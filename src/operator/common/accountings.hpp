// Finds the Controllers that share an Accounting, and their keys.
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

/// A Controller that names an Accounting.
struct NamedBy {
  kube::ObjectPtr object;
  bool joined = false;  ///< The loaded or the offered slurm.conf has the slurmdbd of the Accounting.
};

/// Returns the Controllers that name this Accounting: first those that have joined it, then the others, each group from the
/// oldest to the newest. So a cluster that runs with this slurmdbd comes before an older one that has not joined yet. Includes
/// Controllers that are being deleted: their slurmctlds may still record jobs, for which their keys and names are needed.
[[nodiscard]] std::vector<NamedBy> clusters_of(const kube::Cache<kube::Object>& controllers,
                                               const kube::Cache<kube::Object>& config_maps, const kube::Key& accounting,
                                               const api::AccountingSpec& spec);

/// Returns the names of the Controllers that no longer name this Accounting, but whose loaded or offered slurm.conf still has
/// its slurmdbd. Leaves out Controllers that are being deleted.
[[nodiscard]] std::vector<std::string> leaving_clusters(const kube::Cache<kube::Object>& controllers,
                                                        const kube::Cache<kube::Object>& config_maps,
                                                        const kube::Key& accounting, const api::AccountingSpec& spec);

/// The keys for the slurmdbd of an Accounting: those that the spec names, or those of the first cluster that has joined. Until
/// a cluster has joined, they are those of the oldest cluster whose spec can be parsed. nullopt: there is no such cluster.
struct AccountingKeys {
  std::optional<SecretFacts> slurm, jwt;
  std::string controller;  ///< The Controller whose keys are used where the spec names none. "": there is no such cluster.
};
[[nodiscard]] AccountingKeys read_accounting_keys(kube::Recorder& recorder, const std::string& ns,
                                                  const api::AccountingSpec& spec, const std::vector<NamedBy>& clusters);

}  // namespace op
