// `kubectl slurm status`: makes a document of the facts that were read, and text of the document. Both steps are pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/session.hpp"
#include "cli/slurm_facts.hpp"
#include "cli/terminal.hpp"

namespace cli {

struct StatusFacts {
  std::vector<core::Json> controllers, nodesets, restapis, loginsets, accountings;
  std::vector<core::Json> pods;             ///< The pods of the workers.
  std::map<std::string, SlurmFacts> slurm;  ///< Maps "namespace/controller" to the answers of the clusters that were asked.
};

/// Reads the facts. `name` is the name of one cluster; "" means all clusters. `with_slurm`: also sends requests to Slurm.
core::Result<StatusFacts> read_status(Api& api, const std::string& ns, const std::string& name, bool with_slurm);

struct StatusOptions {
  bool jobs = false;  ///< Lists the jobs instead of only counting them.
};

/// Returns a list of clusters. docs/reference/kubectl-slurm.md documents the form of the list, which is stable.
[[nodiscard]] core::Json status_document(const StatusFacts& facts, const StatusOptions& options = {});
[[nodiscard]] std::string status_text(const core::Json& document, const Style& style, core::WallTime now);

}  // namespace cli
