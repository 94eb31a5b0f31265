// Reads what slurmdbd reports about its clusters, through the slurmrestd of each cluster. An open port of slurmdbd does not
// show whether slurmdbd can use its database, nor which slurmctlds are connected to slurmdbd.
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
  std::string away;       ///< Slurm's error if slurmdbd answers through no cluster. "": slurmdbd answers, or no error is known.
  std::string waiting;    ///< What some clusters lack until slurmdbd serves them: an answer, a registration or a connection.
  std::string not_asked;  ///< The clusters through which slurmdbd cannot be asked.
};
/// Returns what the last answers about slurmdbd show. Plans new requests if they are due and `may_ask` is true. An answer can
/// take as long as slurmrestd waits for slurmdbd. `reachable`: false if it is known that nothing listens at slurmdbd's port.
[[nodiscard]] Report look_at_slurmdbd(const Observed& observed, bool reachable, bool may_ask, plan::Plan& plan);

/// Plans a new connection to the port of an external slurmdbd, if the connection is due and `report` does not show whether
/// slurmdbd answers. Does so only while a cluster has not joined: to join, slurmctld is restarted, and the restarted
/// slurmctld might exit if it cannot reach slurmdbd.
void look_at_port(const Observed& observed, const Report& report, plan::Plan& plan);

}  // namespace op::accounting
