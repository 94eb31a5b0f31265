// The reasons that slurm-bridge writes into the conditions of pods, in plain words.
#pragma once

#include <optional>
#include <string_view>

#include "cli/reasons.hpp"

namespace cli {

/// Explains a reason of the condition SlurmQueued: one of slurm-bridge, or one of Slurm. nullopt if it is unknown.
[[nodiscard]] std::optional<Explanation> explain_queued(std::string_view reason);
/// Explains a reason of the condition SlurmEnded. nullopt if it is unknown.
[[nodiscard]] std::optional<Explanation> explain_pod_end(std::string_view reason);

}  // namespace cli
