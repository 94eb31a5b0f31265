// Reads what slurmdbd reports about its clusters, through the slurmrestd of each cluster. An open port of slurmdbd does not
// show whether slurmdbd can use its database, nor which slurmctlds are connected to it.
#pragma once

#include <string>

#include "operator/accounting/observed.hpp"
#include "plan/plan.hpp"

namespace op::accounting {

/// Returns the plan::Need to read slurmdbd's clusters through the slurmrestd of a cluster.
[[nodiscard]] plan::Need ask_clusters(const slurm::ClusterKey& cluster);
[[nodiscard]] Said read_said(const plan::Fact& fact);
/// Returns the plan::Need to connect to the port of an external slurmdbd.
[[nodiscard]] plan::Need ask_port(const Endpoint& port);
[[nodiscard]] Reached read_reached(Endpoint port, const plan::Fact& fact);

/// The conclusions from the answers about slurmdbd.
struct Report {
  bool answers = false;   ///< slurmdbd has answered through at least one cluster.
  std::string away;       ///< Slurm's error if slurmdbd answers through no cluster. "": slurmdbd answers, or this is unknown.
  std::string waiting;    ///< What some clusters lack until slurmdbd serves them: an answer, a registration or a connection.
  std::string not_asked;  ///< The clusters through which slurmdbd cannot be asked.
};
/// Asks slurmdbd again if that is due and `may_ask` is true, and returns what the answers show. An answer may take as long as
/// Slurm waits for slurmdbd. `reachable`: something listens at slurmdbd's port, as far as is known.
[[nodiscard]] Report look_at_slurmdbd(const Observed& observed, bool reachable, bool may_ask, plan::Plan& plan);

/// Asks again whether an external slurmdbd can be reached, if that is due and `report` does not show it. Asks only while a
/// cluster has not joined: to join, slurmctld is restarted, and it may exit if it cannot reach slurmdbd.
void look_at_port(const Observed& observed, const Report& report, plan::Plan& plan);

}  // namespace op::accounting
