// What slurmdbd itself says of its clusters, asked over the slurmrestd of each of them. Its port alone does not tell whether it
// has its database, nor which slurmctld is with it.
#pragma once

#include <string>

#include "operator/accounting/observed.hpp"
#include "plan/plan.hpp"

namespace op::accounting {

/// The question to slurmdbd over the slurmrestd of a cluster.
[[nodiscard]] plan::Need ask_clusters(const slurm::ClusterKey& cluster);
[[nodiscard]] Said read_said(const plan::Fact& fact);

/// What follows from what was said.
struct Report {
  bool answers = false;   ///< slurmdbd has answered over one cluster at least.
  std::string away;       ///< It answers nobody: why, in the words of Slurm.
  std::string waiting;    ///< What is missing of clusters.
  std::string not_asked;  ///< Which clusters say nothing, because nobody can ask over them.
};
/// Asks where it is time to, if `may_ask`: it may take as long as Slurm waits for slurmdbd. `reachable`: somebody answers at
/// its port, as far as that is known.
[[nodiscard]] Report look_at_slurmdbd(const Observed& observed, bool reachable, bool may_ask, plan::Plan& plan);

}  // namespace op::accounting
