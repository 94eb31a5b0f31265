// The configuration of a cluster as the Controller wants it: a pure function of what was observed.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "operator/controller/observed.hpp"
#include "operator/controller/withhold.hpp"

namespace op::controller {

/// The reason of a warning: a NodeSet is left out of slurm.conf, for somebody else has its name.
inline constexpr std::string_view kNodeSetNameTaken = "NodeSetNameTaken";

struct ConfigState;

struct Rendered {
  /// Files of the ConfigMap; empty when there are problems.
  std::map<std::string, std::string> files;
  /// Of everything slurmctld reads when it reconfigures; stands inside of slurm.conf, and is seen again over REST once it is
  /// loaded.
  std::string hash;
  /// spec.partition.config of the NodeSets that ask for a partition, by the partition's name.
  std::map<std::string, std::string> partitions;
  /// What the resources no longer ask for, and is in the files all the same.
  std::vector<Withheld> withheld;
  /// Digest of what people ask for: the same, whatever Slurm answers, and whether it does. The content may be another then, as
  /// what jobs or Slurm nodes still need stays in it.
  std::string asked;
  std::string slurmdbd;  ///< Where it is by spec.accountingRef, as "host:port"; "": that names none that is there.
  /// topology.yaml may change by what Slurm says of its nodes.
  bool topology_may_change = false;
  /// slurmctld would not start with the files that the spec asks its pod to mount: see topology.hpp.
  bool keeps_pod = false;
  /// What must be mended before there can be files: a malformed extraConf with its line, a missing ConfigMap ...
  std::vector<Problem> problems;
  /// Worth telling, but nothing is held up by it.
  std::vector<Problem> warnings;
  [[nodiscard]] bool ok() const { return problems.empty(); }
};

/// A partition that Slurm would not read, or that `state` leaves out, stays as slurmctld has accepted it, or away.
Rendered render_config(const Observed& observed, const ConfigState& state);

/// What slurmrestd needs to know of a slurmctld outside of Kubernetes, as the file slurm.conf. The lines of spec.extraConf are
/// merged over it; that slurmctld itself reads none of this.
Rendered render_external(const Observed& observed);

/// The ConfigMap that the spec names although the operator writes it; "": none. What is written there would be read as the
/// user's, and be another configuration each time.
std::string own_map_named(const Observed& observed);

/// Over REST slurmctld says only that it refuses; what it stumbled on stands in its log. How to see that, for a message. "" for
/// a slurmctld that has ended: its last words are told, and its log goes with its pod.
std::string log_hint(const Observed& observed, std::string_view refusal);

/// The nodes that topology.yaml names and Slurm does not know, of which slurmctld says only in its log, for a message; "".
std::string topology_hint(const Observed& observed);

/// A digest of the scripts that slurmctld runs itself; "" when there are none. They need no reconfigure, only a fresh volume.
std::string scripts_digest(const Observed& observed);

}  // namespace op::controller
