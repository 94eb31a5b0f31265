// Checks which of the QOS, TRES, accounts, users and clusters that a resource names exist in slurmdbd. Slurm refuses some
// unknown names, and drops others without an error.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "operator/governance/claim.hpp"
#include "slurm/accounting/qos.hpp"
#include "slurm/accounting/rows.hpp"

namespace op::governance {

/// The association of an account in a cluster: as a resource declares it, or else as slurmdbd has it. In lower case.
struct AccountRow {
  std::string parent;
  std::string default_qos;  ///< "": the default QOS of the parent.
};

/// The names that slurmdbd has. All are in lower case, except those of TRES and partitions.
struct Names {
  Names() = default;
  explicit Names(const slurm::accounting::View& view);
  std::set<std::string, std::less<>> qos, users;
  std::set<std::string> clusters;
  std::set<std::string, std::less<>> tres;  ///< Empty while the list is incomplete.
  /// Maps each QOS to the QOS that it preempts, as its SlurmQos declares, or else as slurmdbd has it.
  std::map<std::string, std::set<std::string>, std::less<>> preempts;
  /// Maps each account to the coordinators that it inherits from the accounts above it, without its own coordinators.
  std::map<std::string, std::set<std::string>, std::less<>> inherited_coordinators;
  std::map<std::string, std::string, std::less<>> parents;  ///< Maps accounts to the parents that SlurmAccounts declare.
  std::set<std::pair<std::string, std::string>> leaving;    ///< The keys of those `accounts` that are about to be deleted.
  std::map<std::pair<std::string, std::string>, AccountRow> accounts;  ///< By cluster and account.
};

/// The subjects and names that resources declare. Leaves out resources that only observe or are being deleted.
using Declared = std::set<std::pair<Subject, std::string>>;

/// The settings that can be written now, and what is missing for the other settings.
struct Writable {
  slurm::accounting::Settings settings;
  bool hold = false;            ///< No setting may be written yet.
  std::string reason, message;  ///< What is missing, for the condition Synced. "": nothing.
  bool coming = false;          ///< Nobody has to act: other resources declare all missing names, or no cluster has joined yet.
};

/// Removes settings from `wanted` that refer to names that slurmdbd does not have. Sets `hold` if the remaining settings would
/// allow more than the resource declares, or if Slurm would refuse them. `found`: the settings of the entity in slurmdbd.
[[nodiscard]] Writable writable(const Claim& claim, slurm::accounting::Settings wanted,
                                const slurm::accounting::Settings& found, const Names& names, const Declared& declared);

/// Joins names for a message: "a, b".
[[nodiscard]] std::string joined(const std::vector<std::string>& names);

}  // namespace op::governance
