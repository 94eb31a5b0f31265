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
  /// The lists that slurmdbd sent. nullopt while no cluster has a slurmrestd through which slurmdbd can be read.
  std::optional<slurm::accounting::View> view;
  /// The capacities of the clusters whose Controllers name the Accounting, by Controller name. A capacity is nullopt while it
  /// is unknown. The map is empty unless a limit is an expression.
  std::map<std::string, std::optional<Capacity>, std::less<>> capacities;
  /// The Controllers whose capacity is unknown because Slurm's last complete answer is old. The next poll renews the answer.
  std::set<std::string, std::less<>> outdated;
  /// The partitions of each cluster, by the cluster's name in Slurm, in lower case. Clusters that have never sent a complete
  /// answer are left out. Empty unless an association is for a partition.
  std::map<std::string, std::set<std::string>, std::less<>> partitions;
  /// Evidence that a QOS may be deleted, by the name of the QOS in lower case.
  std::map<std::string, slurm::UnusedQos, std::less<>> unused;
  /// Evidence that an account or user may be deleted, by its subject and its name in lower case.
  std::map<std::pair<Subject, std::string>, slurm::UnusedEntity> unused_entities;
};

}  // namespace op::governance
