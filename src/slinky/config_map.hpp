// Reads the ConfigMap "X-config" of the Controller X, and the slurm.conf in it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "kube/object.hpp"
#include "slurm/conf/conf.hpp"

namespace slinky {

inline constexpr std::string_view kSlurmConf = "slurm.conf";
inline constexpr std::string_view kCgroupConf = "cgroup.conf";
inline constexpr std::string_view kTopologyYaml = "topology.yaml";
/// The AccountingStorageType in the slurm.conf of clusters that use slurmdbd.
inline constexpr std::string_view kSlurmdbdStorage = "accounting_storage/slurmdbd";
/// The prefix of data keys. While the ConfigMap offers newer files, these keys hold the files that slurmctld has loaded.
inline constexpr std::string_view kAcceptedPrefix = "accepted.";

/// Returns the text of a file as slurmctld has loaded it; "" if it is unknown whether slurmctld has loaded the file.
std::string loaded_file(const kube::Object& config_map, std::string_view file);

/// Returns the text of slurm.conf in `files`, whose keys are file names; "" if there is none.
std::string_view slurm_conf(const std::map<std::string, std::string>& files);

/// Returns the slurm.conf that the ConfigMap offers to slurmctld; empty if there is none.
slurm::conf::Conf offered_conf(const kube::Object& config_map);

/// Returns a digest of the values in a slurm.conf that only a restart of slurmctld applies. If two texts have the same digest,
/// a reconfigure applies all their differences.
std::string restart_digest(std::string_view text);

/// Returns the address of slurmdbd in a slurm.conf as "host:port"; "" if the slurm.conf names no slurmdbd.
std::string slurmdbd_of(std::string_view text);

/// Returns the address of slurmdbd (slurmdbd_of) in the slurm.conf that slurmctld has loaded. If that is unknown, returns the
/// address in the slurm.conf that the ConfigMap offers.
std::string joined_slurmdbd(const kube::Object& config_map);

/// Returns a digest of the values that slurmrestd reads only at its start: those of restart_digest and slurmdbd's address.
std::string slurmrestd_digest(std::string_view text);

/// Returns SlurmdTimeout. slurmctld considers a slurmd and its jobs lost if slurmd does not answer for this time. 0: never.
core::Duration slurmd_timeout(const slurm::conf::Conf& conf);

/// Returns MaxNodeCount, at which slurmctld refuses more dynamic nodes. nullopt if the slurm.conf does not set it.
std::optional<std::size_t> max_node_count(const slurm::conf::Conf& conf);

/// Reports whether PrologFlags contains Contain or a flag that implies it. Each job then has a step that ssh sessions can join.
bool contains_jobs(const slurm::conf::Conf& conf);
/// Reports contains_jobs() of the slurm.conf that the ConfigMap offers to slurmctld.
bool contains_jobs(const kube::Object& config_map);

/// Reports whether CommunicationParameters contains EnableIPv6.
bool enables_ipv6(const slurm::conf::Conf& conf);

/// Describes which workers are already at their place in Slurm's topology, as the user's topology file defines it: see
/// operator/controller/places.hpp.
struct Places {
  /// The workers whose nodes Slurm had before this time have their places. nullopt: not known.
  std::optional<core::WallTime> given_until;
  /// slurmctld must still assign places to the workers whose nodes Slurm had before this time. nullopt: to no worker.
  std::optional<core::WallTime> due;
  friend bool operator==(const Places&, const Places&) = default;
};
/// Reads Places from the ConfigMap's annotations. Returns nullopt if no topology file gives workers their places.
std::optional<Places> read_places(const kube::Object& config_map);

/// A partition whose current config is not offered. Instead, the ConfigMap has the last accepted config or omits the
/// partition.
struct LeftOut {
  std::string config;                             ///< The spec.partition.config of the NodeSet, which is not offered.
  std::string refusal;                            ///< The error of slurmctld; "" while another partition can be the cause.
  std::optional<core::WallTime> refused_at = {};  ///< When slurmctld last refused this partition alone; in whole seconds.
  int refusals = 0;                               ///< The number of consecutive refusals.
  bool trying = false;  ///< The ConfigMap offers the refused config again, to test whether slurmctld accepts it now.
  friend bool operator==(const LeftOut&, const LeftOut&) = default;
};

/// Maps the name of a partition to its LeftOut.
using LeftOuts = std::map<std::string, LeftOut, std::less<>>;

/// Reads the LeftOuts in the ConfigMap's annotation. Returns an empty map if the annotation is missing or invalid.
LeftOuts read_left_out(const kube::Object& config_map);
/// Returns the value of the annotation that read_left_out() reads.
std::string write_left_out(const LeftOuts& left_out);

}  // namespace slinky
