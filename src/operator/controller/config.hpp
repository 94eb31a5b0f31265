// The configuration that the Controller wants for a cluster: a pure function of the observed facts.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "operator/controller/observed.hpp"
#include "operator/controller/withhold.hpp"

namespace op::controller {

/// Reason of a warning: a NodeSet is left out of slurm.conf because something else has its name.
inline constexpr std::string_view kNodeSetNameTaken = "NodeSetNameTaken";

struct ConfigState;

struct Rendered {
  /// Files of the ConfigMaps by name, including the users' files (kUsers in rollout.hpp); empty when there are problems.
  std::map<std::string, std::string> files;
  /// Hash of everything that slurmctld reads when it reconfigures. It is part of slurm.conf, and visible over REST once it is
  /// loaded.
  std::string hash;
  /// spec.partition.config of the NodeSets with a partition, by the partition's name.
  std::map<std::string, std::string> partitions;
  /// Items that no resource asks for any more but that the files must keep, mostly because jobs use them.
  std::vector<Withheld> withheld;
  /// Digest of what users ask for, independent of Slurm's answers. The content may change while this digest does not, because
  /// the content keeps what jobs or Slurm nodes still need.
  std::string asked;
  std::string slurmdbd;  ///< slurmdbd according to spec.accountingRef, as "host:port"; "": none.
  /// True if topology.yaml may change when the nodes of Slurm change.
  bool topology_may_change = false;
  /// True if slurmctld's pod must stay: slurmctld would not start with the files that the spec wants mounted. See topology.hpp.
  bool keeps_pod = false;
  /// The problems that prevent the files: a malformed extraConf with its line, a missing ConfigMap ...
  std::vector<Problem> problems;
  /// Problems that are reported, but do not prevent the files.
  std::vector<Problem> warnings;
  [[nodiscard]] bool ok() const { return problems.empty(); }
};

/// Renders the configuration. A partition that Slurm would reject, or that `state` leaves out, stays as slurmctld accepted it,
/// or is left out.
Rendered render_config(const Observed& observed, const ConfigState& state);

/// Renders the slurm.conf for the slurmrestd of a slurmctld outside of Kubernetes. The lines of spec.extraConf are merged over
/// it. slurmctld itself does not read this file.
Rendered render_external(const Observed& observed);

/// Returns the ConfigMap that the spec names although the operator writes it, or "". Its content would count as the content of
/// the user and change the configuration each time.
std::string own_map_named(const Observed& observed);

/// Returns, for a message, how to see why slurmctld refuses. Over REST, slurmctld only reports that it refuses: the cause is in
/// its log. Returns "" for a slurmctld that has ended, because its termination message is reported and its log is gone with its
/// pod.
std::string log_hint(const Observed& observed, std::string_view refusal);

/// Returns, for a message, the nodes that topology.yaml names and Slurm does not know, or "". slurmctld reports them only in
/// its log.
std::string topology_hint(const Observed& observed);

/// Returns a digest of the scripts that slurmctld itself runs, or "". A change of the scripts needs a fresh volume but no
/// reconfigure.
std::string scripts_digest(const Observed& observed);

}  // namespace op::controller
