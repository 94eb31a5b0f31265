// `kubectl slurm tree`: makes a document of the accounts and users of slurmdbd, and text of the document. Both steps are pure.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/session.hpp"
#include "cli/terminal.hpp"
#include "slurm/accounting/model.hpp"
#include "slurm/accounting/usage.hpp"

namespace cli {

struct TreeFacts {
  template <class Row>
  using Rows = std::vector<std::shared_ptr<const Row>>;
  std::string ns, accounting;
  Rows<slurm::accounting::Association> in_force;  ///< All associations, with inherited limits.
  Rows<slurm::accounting::Association> own;       ///< All associations, with their own limits only.
  Rows<slurm::accounting::Account> accounts;
  Rows<slurm::accounting::User> users;
  /// A Controller that uses the Accounting, and the answer of its slurmctld.
  struct Cluster {
    std::string controller, name;  ///< `name` is the ClusterName in Slurm; "" if unknown.
    std::string why_not;           ///< Why the usage is missing; "" if the usage is present.
    Rows<slurm::accounting::Share> shares;
  };
  std::vector<Cluster> clusters;
  bool only_these = false;  ///< Shows only the clusters of `clusters`, even if slurmdbd has more.
};

/// Reads slurmdbd's lists from the first slurmrestd that answers, and each cluster's usage from the cluster's own slurmrestd.
/// `accounting` "" means the only Accounting, and `cluster` "" all clusters of the Accounting. Fails if no slurmrestd returns
/// the lists.
core::Result<TreeFacts> read_tree(Api& api, const std::string& ns, const std::string& accounting, const std::string& cluster);

/// Returns the accounts and users. docs/reference/kubectl-slurm.md documents the form of the document, which is stable.
[[nodiscard]] core::Json tree_document(const TreeFacts& facts);
[[nodiscard]] std::string tree_text(const core::Json& document, const Style& style);

}  // namespace cli
