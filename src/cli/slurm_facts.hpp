// Slurm's answers to the requests of a command (cli/slurm_access.hpp). If the user lacks the rights to send requests to Slurm,
// the command still works, and its output says why Slurm's answers are missing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/objects.hpp"
#include "cli/session.hpp"
#include "slurm/model.hpp"

namespace cli {

struct SlurmFacts {
  std::string why_not;  ///< Why Slurm's answer is missing. "": the answer is in the other members.
  std::string release;  ///< The release of Slurm: "26.05.5".
  std::vector<std::shared_ptr<const slurm::Node>> nodes;
  std::vector<std::shared_ptr<const slurm::Job>> jobs;  ///< Jobs that have not ended, and some jobs that ended lately.

  [[nodiscard]] bool known() const { return why_not.empty(); }
  [[nodiscard]] const slurm::Node* node(std::string_view name) const;
  /// Returns the jobs that hold this node, and the running jobs whose nodes are unknown.
  [[nodiscard]] std::vector<const slurm::Job*> jobs_on(std::string_view node) const;
};

/// The known state of a worker's node: as Slurm answered, or, without an answer, as the worker's pod shows it.
struct Said {
  std::optional<SlurmWord> word;
  bool missing = false;  ///< Slurm has no such node, or the pod shows no state of a node.
  Deadline deadline{};
  std::optional<std::size_t> jobs{};
  std::vector<std::int64_t> ids{};
};
[[nodiscard]] Said said_of(const kube::PodRecord& pod, const SlurmFacts* slurm);

/// Asks the slurmrestd of a Controller. `restapis` are all RestApis in the Controller's namespace.
SlurmFacts ask_slurm(Api& api, const core::Json& controller, const std::vector<core::Json>& restapis);
/// Reads the Controller and the RestApis of its namespace, and then asks the Controller's slurmrestd.
SlurmFacts ask_slurm(Api& api, const kube::Key& controller);

}  // namespace cli
