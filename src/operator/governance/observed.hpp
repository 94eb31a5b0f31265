// The facts for the governance plan, copied from the caches at one moment: all resources of one Accounting, and the lists that
// its slurmdbd last sent.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kube/object.hpp"
#include "operator/common/slinky.hpp"
#include "operator/governance/capacity.hpp"
#include "operator/governance/claim.hpp"
#include "plan/plan.hpp"
#include "slurm/accounting/acts.hpp"
#include "slurm/accounting/rows.hpp"

namespace op::governance {

struct Observed {
  plan::Context context;
  kube::Key key;               ///< The key of the Accounting.
  kube::ObjectPtr accounting;  ///< Null if it does not exist.
  std::vector<Claim> claims;   ///< The resources of the Accounting, the oldest first.

  slurm::AccountingKey database;
  /// The lists of slurmdbd; nullopt while no cluster is known whose slurmrestd can ask it.
  std::optional<slurm::accounting::View> view;
  /// The capacities of clusters, by the names of their Controllers: all that name the Accounting. nullopt: not known now. Empty
  /// unless a limit is an expression.
  std::map<std::string, std::optional<Capacity>, std::less<>> capacities;
  /// The Controllers whose capacity is not known because the last complete answer of Slurm is old. The next poll brings it.
  std::set<std::string, std::less<>> outdated;
  /// The partitions of the clusters that have ever answered completely, by Slurm's name of the cluster in lower case. Empty
  /// unless an association is for a partition.
  std::map<std::string, std::set<std::string>, std::less<>> partitions;
  /// Evidence for the QOS that may be deleted, by name in lower case.
  std::map<std::string, slurm::UnusedQos, std::less<>> unused;
  /// Evidence for the accounts and users that may be deleted, by subject and name in lower case.
  std::map<std::pair<Subject, std::string>, slurm::UnusedEntity> unused_entities;
};

}  // namespace op::governance
