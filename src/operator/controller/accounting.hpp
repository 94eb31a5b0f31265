// Lets a cluster join and leave an Accounting.
//
// slurmctld gets the number of its cluster from slurmdbd, stores it with its state, and exits if slurmdbd later reports another
// number (cluster_number.hpp). A slurmctld that ran without accounting has made up a number, and releases before 26.05 do not
// report it to slurmdbd. So a cluster joins an Accounting with a restart: before slurmctld starts, an init container removes
// the number, once for each slurmdbd.
//
// A slurmctld without a number waits at its start for slurmdbd, with its port open. Therefore a new cluster waits in the init
// container, where users see it. So does a slurmctld that is newer than its slurmdbd, before it touches its state. A running
// cluster joins when slurmdbd answers. If slurmdbd goes away during the restart, a slurmctld that never had a slurmdbd waits. A
// slurmctld that has joined also starts without slurmdbd and keeps the records for it.
//
// Folder src/operator/controller: the controller of Controllers: slurmctld and its configuration. Uses operator/common, and no
// other controller.
#pragma once

#include <string>

#include "operator/common/slinky.hpp"
#include "operator/controller/config.hpp"
#include "operator/controller/observed.hpp"
#include "operator/controller/rollout.hpp"
#include "slinky/status.hpp"
#include "slurm/conf/conf.hpp"

namespace op::controller {

/// Adds the Accounting's settings to slurm.conf. While something is wrong with the Accounting, the settings stay as `state`
/// offers them, and a new cluster waits.
void add_accounting(slurm::conf::Conf& out, const Observed& observed, const ConfigState& state, Rendered& rendered);

/// Returns a problem for each setting in the user's slurm.conf that spec.accountingRef already sets.
std::vector<slurm::conf::Problem> accounting_settings(const Observed& observed, const slurm::conf::Conf& user);

/// Returns the slurmdbd of the cluster according to spec.accountingRef and the offered file, as "host:port", or "".
std::string joins(const Observed& observed, const ConfigState& state);

/// The init container of slurmctld that lets the cluster join the Accounting.
inline constexpr const char* kJoin = "accounting";
/// Returns the script of the init container. Arguments: the state directory, "host:port" of slurmdbd, the file with slurmdbd's
/// release ("": nobody reports it), a file that marks that the release was found too old, and the termination message file.
std::string join_script();

/// Returns the name of the ConfigMap with the release of the slurmdbd at "host:port", if the operator runs that slurmdbd, or
/// "".
std::string release_map(const std::string& ns, const std::string& slurmdbd);

/// Returns the step that makes the kubelet deliver the release at once to a slurmctld that waits for it.
std::optional<plan::Step> tell_release(const Observed& observed);

/// Returns why slurmctld does not start, according to the init container: it is newer than its slurmdbd.
std::optional<Problem> start_problem(const Observed& observed);

/// Returns what slurmctld waits for in the init container, or "".
std::string awaited_slurmdbd(const Observed& observed, const ConfigState& state);

/// Sets AccountingJoined if spec.accountingRef is set.
void set_accounting_condition(Conditions& conditions, const Observed& observed, const ConfigState& state,
                              const Rendered& wanted);

}  // namespace op::controller
