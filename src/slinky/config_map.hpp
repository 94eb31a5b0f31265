// The ConfigMap "X-config" of a Controller, as others than the Controller read it.
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
/// AccountingStorageType of clusters that have a slurmdbd.
inline constexpr std::string_view kSlurmdbdStorage = "accounting_storage/slurmdbd";
/// What the keys of the content that slurmctld had loaded begin with, while another one is offered.
inline constexpr std::string_view kAcceptedPrefix = "accepted.";

/// The text of that file as slurmctld has loaded it; "": it has loaded none, as far as is known.
std::string loaded_file(const kube::Object& config_map, std::string_view file);

/// The text of the slurm.conf among files by name; "" when there is none.
std::string_view slurm_conf(const std::map<std::string, std::string>& files);

/// The slurm.conf that the ConfigMap offers to slurmctld; empty when there is none.
slurm::conf::Conf offered_conf(const kube::Object& config_map);

/// A digest of those values in the text of a slurm.conf that only a restart of slurmctld brings into force. Two texts with the
/// same digest differ by nothing but what a reconfigure loads.
std::string restart_digest(std::string_view text);

/// Where the text of a slurm.conf has slurmdbd, as "host:port"; "": there is no accounting.
std::string slurmdbd_of(std::string_view text);

/// The same of the slurm.conf that slurmctld has loaded; that it is offered, where nobody sees what it loads.
std::string joined_slurmdbd(const kube::Object& config_map);

/// A digest of what slurmrestd reads in the text of a slurm.conf, once: restart_digest, and where slurmdbd is.
std::string slurmrestd_digest(std::string_view text);

/// SlurmdTimeout of a slurm.conf: after it slurmctld takes a slurmd that does not answer for lost, with its jobs.
/// 0: never.
core::Duration slurmd_timeout(const slurm::conf::Conf& conf);

/// MaxNodeCount of a slurm.conf: slurmctld refuses dynamic nodes beyond it. nullopt: it says none.
std::optional<std::size_t> max_node_count(const slurm::conf::Conf& conf);

/// PrologFlags of a slurm.conf has Contain, or a flag that implies it: each job has a step that sessions of sshd
/// join.
bool contains_jobs(const slurm::conf::Conf& conf);
/// The same of the ConfigMap.
bool contains_jobs(const kube::Object& config_map);

/// CommunicationParameters of a slurm.conf has EnableIPv6.
bool enables_ipv6(const slurm::conf::Conf& conf);

/// Until when workers have been given the places that a topology file of the user's gives them: see
/// operator/controller/places.hpp.
struct Places {
  std::optional<core::WallTime> given_until;  ///< Those that were in Slurm before it; nullopt: that is not known of any.
  std::optional<core::WallTime> due;          ///< slurmctld is to give places to those that were in Slurm before it.
  friend bool operator==(const Places&, const Places&) = default;
};
/// nullopt: no such file gives any.
std::optional<Places> read_places(const kube::Object& config_map);

/// A NodeSet's partition that is offered as it was accepted before, or not at all.
struct LeftOut {
  std::string config;                             ///< Its spec.partition.config, for which it is left out.
  std::string refusal;                            ///< slurmctld's words; "" while another partition may be to blame.
  std::optional<core::WallTime> refused_at = {};  ///< When slurmctld refused it last, alone; in seconds.
  int refusals = 0;                               ///< How often, in a row.
  bool trying = false;                            ///< It is offered once more, though it was refused.
  friend bool operator==(const LeftOut&, const LeftOut&) = default;
};

/// By the partition's name.
using LeftOuts = std::map<std::string, LeftOut, std::less<>>;

/// The partitions left out; none where the annotation is absent or cannot be read.
LeftOuts read_left_out(const kube::Object& config_map);
/// The annotation's value.
std::string write_left_out(const LeftOuts& left_out);

}  // namespace slinky
