// Finds the Controllers that share an Accounting, and the keys that the slurmdbd of the Accounting uses.
//
// Folder src/operator/common: code that several controllers of the operator share. It uses slinky/, but no controller.
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
  bool joined = false;  ///< The loaded or the offered slurm.conf names the slurmdbd of the Accounting.
};

/// Returns the Controllers that name this Accounting. Controllers that have joined the Accounting precede Controllers that have
/// not joined. Within each group, older Controllers come first. So a cluster that already uses this slurmdbd precedes an older
/// cluster that has not joined yet. Controllers that are being deleted are included, because slurmdbd needs their keys and
/// names as long as their slurmctlds record jobs.
[[nodiscard]] std::vector<NamedBy> clusters_of(const kube::Cache<kube::Object>& controllers,
                                               const kube::Cache<kube::Object>& config_maps, const kube::Key& accounting,
                                               const api::AccountingSpec& spec);

/// Returns the names of the Controllers that no longer name this Accounting, but whose loaded or offered slurm.conf still names
/// the slurmdbd of this Accounting. Controllers that are being deleted are left out.
[[nodiscard]] std::vector<std::string> leaving_clusters(const kube::Cache<kube::Object>& controllers,
                                                        const kube::Cache<kube::Object>& config_maps,
                                                        const kube::Key& accounting, const api::AccountingSpec& spec);

/// The keys of an Accounting's slurmdbd. A key that the Accounting's spec names takes precedence. The remaining keys come from
/// the first cluster that has joined, or, until a cluster has joined, from the oldest cluster whose spec can be parsed. A key
/// is nullopt if the spec does not name it and no such cluster exists.
struct AccountingKeys {
  std::optional<SecretFacts> slurm, jwt;
  std::string controller;  ///< The Controller that provides the keys that the spec does not name. "": there is none.
};
[[nodiscard]] AccountingKeys read_accounting_keys(kube::Recorder& recorder, const std::string& ns,
                                                  const api::AccountingSpec& spec, const std::vector<NamedBy>& clusters);

}  // namespace op
