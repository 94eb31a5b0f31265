// Renders the configuration that the Controller wants for a cluster. A pure function of the observed facts.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "operator/controller/observed.hpp"
#include "operator/controller/withhold.hpp"
#include "slurm/rollout/rollout.hpp"

namespace op::controller {

/// Reason of a warning: a NodeSet is left out of slurm.conf because its name in Slurm is already taken.
inline constexpr std::string_view kNodeSetNameTaken = "NodeSetNameTaken";

struct ConfigState;

/// The rendered files and their problems. `files` includes users' files (kUsers in rollout.hpp). It is empty if there are
/// problems.
struct Rendered : slurm::rollout::Wanted {
  /// Maps the name of each NodeSet partition to the spec.partition.config of its NodeSet.
  std::map<std::string, std::string> partitions;
  /// Items that no resource requests any more but that must stay in the files, mostly because jobs use these items.
  std::vector<Withheld> withheld;
  std::string slurmdbd;  ///< "host:port" of the slurmdbd from spec.accountingRef. "": none.
  /// True if topology.yaml depends on the nodes of Slurm and so might change when these nodes change.
  bool topology_may_change = false;
  /// True if slurmctld's pod must not be replaced: slurmctld would not start with the files that the new pod mounts. See
  /// topology.hpp.
  bool keeps_pod = false;
  /// Problems because of which no files are rendered: a malformed extraConf (with the line number), a missing ConfigMap.
  std::vector<Problem> problems;
  /// Problems that are reported. The files are rendered nevertheless.
  std::vector<Problem> warnings;
  [[nodiscard]] bool ok() const { return problems.empty(); }
};

/// Renders the configuration. If Slurm would reject a partition, or if `state` leaves the partition out, slurm.conf has the
/// partition line that slurmctld last accepted. If slurmctld has accepted no line, slurm.conf does not have the partition.
Rendered render_config(const Observed& observed, const ConfigState& state);

/// Renders the slurm.conf for a slurmrestd whose slurmctld runs outside of Kubernetes. Includes the lines of spec.extraConf.
/// slurmctld itself does not read this file.
Rendered render_external(const Observed& observed);

/// Returns the name of a ConfigMap that the operator writes and that the spec wrongly lists as a ConfigMap of the user, or "".
/// Each write of that ConfigMap would change the configuration and so cause another write.
std::string own_map_named(const Observed& observed);

/// Returns a text for a message: where to find the cause of slurmctld's refusal. Over REST, slurmctld reports only the refusal,
/// and its log has the cause. Returns "" if slurmctld has ended: the log is then gone with the pod, and the termination message
/// is reported instead.
std::string log_hint(const Observed& observed, std::string_view refusal);

/// Returns a text for a message that lists the nodes that are in topology.yaml but unknown to Slurm, or "". slurmctld reports
/// these nodes only in its log.
std::string topology_hint(const Observed& observed);

/// Returns a digest of the scripts that slurmctld itself runs, or "". After a change of the scripts, the volume must be
/// refreshed, but slurmctld need not be reconfigured.
std::string scripts_digest(const Observed& observed);

}  // namespace op::controller
