// How a cluster gets its accounting, and loses it.
//
// slurmctld takes the number of its cluster from slurmdbd, keeps it with its state, and ends when both differ
// (cluster_number.hpp). One that ran without accounting has made up a number of its own, which releases before 26.05 do not
// tell slurmdbd. So a cluster joins an Accounting with a restart: before slurmctld starts, an init container removes the
// number, once for each slurmdbd.
//
// A slurmctld that has no number waits for slurmdbd at its start, with its port open. A new cluster therefore waits in the
// init container, where that shows, and so does a slurmctld that is newer than its slurmdbd, before it touches its state. One
// that runs joins when slurmdbd answers; from then on it starts without it as well, and keeps what it has to record.
#pragma once

#include <string>

#include "cluster/status.hpp"
#include "operator/controller/config.hpp"
#include "operator/controller/observed.hpp"
#include "operator/controller/rollout.hpp"
#include "slurm/conf/conf.hpp"

namespace op::controller {

/// Adds what slurm.conf says of the Accounting. While something is wrong with that, all stays as `state` has offered it; a new
/// cluster waits until it is mended.
void add_accounting(slurm::conf::Conf& out, const Observed& observed, const ConfigState& state, Rendered& rendered);

/// The user's settings that spec.accountingRef makes.
std::vector<slurm::conf::Problem> accounting_settings(const Observed& observed, const slurm::conf::Conf& user);

/// Where the cluster's slurmdbd is by spec.accountingRef and by what is offered, as "host:port"; "": it has none by that.
std::string joins(const Observed& observed, const ConfigState& state);

/// The init container by which a slurmctld joins.
inline constexpr const char* kJoin = "accounting";
/// What it does. Arguments: the state's directory, "host:port" of slurmdbd, the file with its release ("": nobody tells
/// it), a file that remembers what was told of that, and the file for its last words.
std::string join_script();

/// The ConfigMap with the release of the slurmdbd at "host:port", where the operator runs that one; "": it does not.
std::string release_map(const std::string& ns, const std::string& slurmdbd);

/// Makes the kubelet give that at once to a slurmctld that waits for it.
std::optional<plan::Step> tell_release(const Observed& observed);

/// Why slurmctld does not start, as that container told: it is newer than its slurmdbd.
std::optional<Problem> start_problem(const Observed& observed);

/// What slurmctld waits for in that container; "": it does not.
std::string awaited_slurmdbd(const Observed& observed, const ConfigState& state);

/// Sets AccountingJoined where spec.accountingRef is set.
void set_accounting_condition(Conditions& conditions, const Observed& observed, const ConfigState& state,
                              const Rendered& wanted);

}  // namespace op::controller
