// The ConfigMap "X-config" of a Controller, as others than the Controller read it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "kube/object.hpp"

namespace op {

inline constexpr std::string_view kSlurmConf = "slurm.conf";
inline constexpr std::string_view kCgroupConf = "cgroup.conf";

/// The text of the slurm.conf among files by name; "" when there is none.
std::string_view slurm_conf(const std::map<std::string, std::string>& files);

/// A digest of those values in the text of a slurm.conf that only a restart of slurmctld brings into force. Two texts with the
/// same digest differ by nothing but what a reconfigure loads.
std::string restart_digest(std::string_view text);

/// SlurmdTimeout of the text of a slurm.conf: after it slurmctld takes a slurmd that does not answer for lost, with its jobs.
/// 0: never.
core::Duration slurmd_timeout(std::string_view text);

/// MaxNodeCount of the text of a slurm.conf: slurmctld refuses dynamic nodes beyond it. nullopt: it says none.
std::optional<std::size_t> max_node_count(std::string_view text);

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

}  // namespace op
