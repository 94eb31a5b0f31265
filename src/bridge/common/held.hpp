// The external jobs whose pods might still run on a Slurm node that has a slurmd. The field `extra` of the Slurm node lists
// these jobs and has the UID of the Kubernetes cluster in which the pods are:
//
//   {"slurm-bridge": "12 13", "slurm-bridge-cluster": "UID"}
//
// When an external job ends, Slurm frees its nodes at once, before the job's pod is gone. The prolog of the bridge
// (charts/slurm-bridge/files/prolog.sh) delays a native job for as long as the field lists a job that has ended. The nodes
// controller writes the field. The jobs and gangs controllers place a pod on the node only once the field lists the pod's job.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "bridge/common/names.hpp"
#include "core/json.hpp"

namespace bridge {

struct HeldJobs {
  std::set<std::int64_t> jobs;
  std::string cluster;  ///< The UID of the Kubernetes cluster; "" if there are no jobs.
  friend bool operator==(const HeldJobs&, const HeldJobs&) = default;
};

inline constexpr std::string_view kHeldCluster = "slurm-bridge-cluster";

/// Returns the value of `extra` that lists these jobs. The value is never empty, because Slurm might ignore an empty value. The
/// prolog relies on the order of the members.
[[nodiscard]] inline std::string extra_of(const HeldJobs& held) {
  std::string list;
  for (const std::int64_t job : held.jobs) list += (list.empty() ? "" : " ") + std::to_string(job);
  core::Json out{{std::string(kProgram), list}};
  if (!held.jobs.empty()) out[std::string(kHeldCluster)] = held.cluster;
  return out.dump();
}

/// Returns the jobs in this value of `extra`; nullopt if somebody else wrote the value.
[[nodiscard]] inline std::optional<HeldJobs> held_in(const std::string& extra) {
  HeldJobs out;
  if (extra.empty()) return out;
  const auto json = core::parse_json(extra);
  if (!json || !json->is_object() || !json->contains(kProgram)) return std::nullopt;
  if (json->size() != (json->contains(kHeldCluster) ? 2U : 1U)) return std::nullopt;
  out.cluster = core::get_string(*json, {kHeldCluster});
  const std::string list = core::get_string(*json, {kProgram});
  const char* at = list.data();
  const char* const end = at + list.size();
  while (at < end) {
    std::int64_t job = 0;
    const auto [next, error] = std::from_chars(at, end, job);
    if (error != std::errc() || (next < end && *next != ' ')) return std::nullopt;
    out.jobs.insert(job);
    at = next == end ? end : next + 1;
  }
  return out;
}

}  // namespace bridge
