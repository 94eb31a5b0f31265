// Translates a SlurmQos into the neutral form of slurm/accounting/qos.hpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/slurmqos.hpp"
#include "core/result.hpp"
#include "slurm/accounting/qos.hpp"

namespace op::governance {

/// Returns the settings that the spec declares, those of spec.config included. Error: kInvalid, with the path of what is wrong.
[[nodiscard]] core::Result<slurm::accounting::Settings> declared(const api::SlurmQosSpec& spec);

/// Reads a time in the notation of Slurm ("1-12:00:00", "30:00", or minutes: "90") or of Kubernetes ("36h"). Returns seconds,
/// or nullopt.
[[nodiscard]] std::optional<std::int64_t> read_time(std::string_view text);

}  // namespace op::governance
