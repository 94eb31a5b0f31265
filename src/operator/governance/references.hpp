// What a resource names, and what slurmdbd has of it: QOS, TRES, accounts, users, clusters. Slurm refuses some unknown names,
// and drops others in silence.
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
  std::string default_qos;  ///< "": that of the parent.
};

/// The names that slurmdbd has. All are in lower case, except those of TRES and partitions.
struct Names {
  Names() = default;
  explicit Names(const slurm::accounting::View& view);
  std::set<std::string, std::less<>> qos, users;
  std::set<std::string> clusters;
  std::set<std::string, std::less<>> tres;  ///< Empty while the list is incomplete.
  /// Maps each QOS to those that it preempts: as its SlurmQos declares it, or else as slurmdbd has it.
  std::map<std::string, std::set<std::string>, std::less<>> preempts;
  /// Maps each account to the coordinators of the accounts above it that are not its own coordinators.
  std::map<std::string, std::set<std::string>, std::less<>> inherited_coordinators;
  std::map<std::string, std::string, std::less<>> parents;  ///< By account, the parent that its SlurmAccount declares.
  std::set<std::pair<std::string, std::string>> leaving;    ///< Those of `accounts` that are to be deleted.
  std::map<std::pair<std::string, std::string>, AccountRow> accounts;  ///< By cluster and account.
};

/// The subjects and names that resources declare, without resources that are being deleted or only observe.
using Declared = std::set<std::pair<Subject, std::string>>;

/// The settings that can be written now, and what is missing for the others.
struct Writable {
  slurm::accounting::Settings settings;
  bool hold = false;            ///< Nothing may be written yet.
  std::string reason, message;  ///< What is missing, for the condition Synced. "" if nothing is.
  bool coming = false;          ///< Other resources declare all of what is missing.
};

/// Removes from `wanted` the settings that refer to names that slurmdbd does not have. If the rest would allow more than is
/// declared, or would be refused, sets `hold`. `found`: what slurmdbd has of the account, user or association.
[[nodiscard]] Writable writable(const Claim& claim, slurm::accounting::Settings wanted,
                                const slurm::accounting::Settings& found, const Names& names, const Declared& declared);

/// Joins names for a message: "a, b".
[[nodiscard]] std::string joined(const std::vector<std::string>& names);

}  // namespace op::governance
