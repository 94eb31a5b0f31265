// agent.json: what the agent must know after a restart. The file contains no secret. Its mode is 0600, because it names the
// coordinator that the agent trusts.
#pragma once

#include <filesystem>
#include <string>

#include "core/json.hpp"
#include "core/result.hpp"
#include "enlist/agent/plan.hpp"
#include "enlist/host/host.hpp"

namespace enlist {

inline constexpr const char* kMemoryFile = "agent.json";

[[nodiscard]] std::string memory_text(const Memory& memory);
/// Parses agent.json. Error: kInvalid with the member that is missing or wrong.
[[nodiscard]] core::Result<Memory> memory_from(std::string_view text);

/// Reads agent.json in the folder. Errors: kNotFound (the host has not joined), kInvalid, kUnavailable.
[[nodiscard]] core::Result<Memory> read_memory(Host& host, const std::filesystem::path& folder);
[[nodiscard]] core::Result<void> write_memory(Host& host, const std::filesystem::path& folder, const Memory& memory);

}  // namespace enlist
