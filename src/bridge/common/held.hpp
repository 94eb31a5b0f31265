// Which external jobs a Slurm node with a slurmd may still run pods of. It stands in the field `extra` of the node:
//
//   {"slurm-bridge": "12 13"}
//
// Slurm frees the nodes of an external job in the call that ends it, before its pod is gone. The prolog of the bridge
// (dev/manifests/slurm-bridge/prolog.yaml) holds a native job back while one of these jobs has ended. The nodes controller
// writes the field, and the jobs controller starts no pod before its job stands there.
//
// Folder src/bridge/common: what the controllers of the bridge share. Uses slinky.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "bridge/common/names.hpp"
#include "core/json.hpp"

namespace bridge {

/// Returns the field. It is never empty: an empty text might change nothing.
[[nodiscard]] inline std::string extra_of(const std::set<std::int64_t>& jobs) {
  std::string list;
  for (const std::int64_t job : jobs) list += (list.empty() ? "" : " ") + std::to_string(job);
  return core::Json{{std::string(kProgram), list}}.dump();
}

/// Returns the jobs in the field; nullopt if somebody else has written it.
[[nodiscard]] inline std::optional<std::set<std::int64_t>> jobs_in(const std::string& extra) {
  std::set<std::int64_t> out;
  if (extra.empty()) return out;
  const auto json = core::parse_json(extra);
  if (!json || !json->is_object() || json->size() != 1 || !json->contains(kProgram)) return std::nullopt;
  const std::string list = core::get_string(*json, {kProgram});
  const char* at = list.data();
  const char* const end = at + list.size();
  while (at < end) {
    std::int64_t job = 0;
    const auto [next, error] = std::from_chars(at, end, job);
    if (error != std::errc() || (next < end && *next != ' ')) return std::nullopt;
    out.insert(job);
    at = next == end ? end : next + 1;
  }
  return out;
}

}  // namespace bridge
