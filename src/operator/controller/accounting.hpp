// Lets a cluster join and leave an Accounting.
//
// slurmctld gets the number of its cluster from slurmdbd, stores the number with its state, and exits if slurmdbd later reports
// another number (cluster_number.hpp). A slurmctld that ran without accounting has made up a number, and releases before 26.05
// do not report this number to slurmdbd. So a cluster joins an Accounting with a restart: before slurmctld starts, an init
// container removes the number, once for each slurmdbd.
//
// A slurmctld without a number opens its port and then waits for slurmdbd. Users cannot see this wait. So a new cluster waits
// in the init container instead. If slurmctld is newer than its slurmdbd, the init container also waits, before slurmctld
// changes its state. A running cluster joins when slurmdbd answers. If slurmdbd goes away during the restart, a slurmctld that
// never had a slurmdbd waits. A slurmctld that has joined before starts without slurmdbd and stores the accounting records
// until slurmdbd answers.
//
// Folder src/operator/controller: the controller of Controllers. Plans slurmctld and its configuration. The folder uses
// operator/common, and no other controller.
#pragma once

#include <string>

#include "operator/common/slinky.hpp"
#include "operator/controller/config.hpp"
#include "operator/controller/observed.hpp"
#include "operator/controller/rollout.hpp"
#include "slinky/status.hpp"
#include "slurm/conf/conf.hpp"

namespace op::controller {

/// Adds the Accounting's settings to slurm.conf. While the Accounting has a problem, adds those of the offered slurm.conf in
/// `state` instead. A new cluster has no offered slurm.conf, so it joins the Accounting after the problem is solved.
void add_accounting(slurm::conf::Conf& out, const Observed& observed, const ConfigState& state, Rendered& rendered);

/// Returns a problem for each setting in the user's slurm.conf that spec.accountingRef already sets.
std::vector<slurm::conf::Problem> accounting_settings(const Observed& observed, const slurm::conf::Conf& user);

/// Returns the "host:port" of the slurmdbd that the cluster is to use, from spec.accountingRef and the offered file. "": none.
std::string joins(const Observed& observed, const ConfigState& state);

/// The init container of slurmctld that lets the cluster join the Accounting.
inline constexpr const char* kJoin = "accounting";
/// Returns the script of the init container. Its arguments: the state directory, "host:port" of slurmdbd, the file with
/// slurmdbd's release (empty if the release is not published), a file to create if that release is too old, and the file for
/// the termination message.
std::string join_script();

/// Returns the name of the ConfigMap in which the operator publishes the release of its slurmdbd at "host:port". Returns "" if
/// the operator does not run that slurmdbd.
std::string release_map(const std::string& ns, const std::string& slurmdbd);

/// Returns the step that makes the kubelet deliver slurmdbd's release at once to a slurmctld that waits for this release.
std::optional<plan::Step> tell_release(const Observed& observed);

/// Returns the problem that the init container reports: slurmctld does not start because it is newer than its slurmdbd.
std::optional<Problem> start_problem(const Observed& observed);

/// Returns what slurmctld waits for in the init container, or "".
std::string awaited_slurmdbd(const Observed& observed, const ConfigState& state);

/// Sets the condition AccountingJoined if spec.accountingRef is set.
void set_accounting_condition(Conditions& conditions, const Observed& observed, const ConfigState& state,
                              const Rendered& wanted);

}  // namespace op::controller
