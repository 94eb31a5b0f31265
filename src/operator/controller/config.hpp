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

/// `files` includes the users' files (kUsers in rollout.hpp), and is empty when there are problems.
struct Rendered : slurm::rollout::Wanted {
  /// spec.partition.config of the NodeSets with a partition, by the partition's name.
  std::map<std::string, std::string> partitions;
  /// Items that no resource asks for any more, but that the files must keep, mostly because jobs use them.
  std::vector<Withheld> withheld;
  std::string slurmdbd;  ///< slurmdbd according to spec.accountingRef, as "host:port"; "": none.
  /// True if topology.yaml may change when the nodes of Slurm change.
  bool topology_may_change = false;
  /// True if slurmctld's pod must stay: slurmctld would not start with the files that the spec wants mounted. See topology.hpp.
  bool keeps_pod = false;
  /// The problems that prevent the files: a malformed extraConf with its line, a missing ConfigMap.
  std::vector<Problem> problems;
  /// Problems that are reported, but do not prevent the files.
  std::vector<Problem> warnings;
  [[nodiscard]] bool ok() const { return problems.empty(); }
};

/// Renders the configuration. If Slurm would reject a partition, or `state` leaves it out, uses the line that slurmctld last
/// accepted for the partition, or no line if there is none.
Rendered render_config(const Observed& observed, const ConfigState& state);

/// Renders the slurm.conf for the slurmrestd of a slurmctld outside of Kubernetes, with the lines of spec.extraConf. slurmctld
/// itself does not read this file.
Rendered render_external(const Observed& observed);

/// Returns the name of a ConfigMap that the spec lists as the user's although the operator writes it, or "". Each write of that
/// ConfigMap would change the configuration and so cause another write.
std::string own_map_named(const Observed& observed);

/// Returns, for a message, where to find the cause of slurmctld's refusal: over REST, slurmctld reports only that it refuses,
/// and the cause is in its log. Returns "" for a slurmctld that has ended, because its termination message is reported and its
/// log is gone with its pod.
std::string log_hint(const Observed& observed, std::string_view refusal);

/// Returns, for a message, the nodes that topology.yaml names and Slurm does not know, or "". slurmctld reports these nodes
/// only in its log.
std::string topology_hint(const Observed& observed);

/// Returns a digest of the scripts that slurmctld itself runs, or "". A change of the scripts needs a fresh volume but no
/// reconfigure.
std::string scripts_digest(const Observed& observed);

}  // namespace op::controller
