// Translates a SlurmQos into the neutral form of slurm/accounting/qos.hpp.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "api/slurmqos.hpp"
#include "core/result.hpp"
#include "operator/governance/capacity.hpp"
#include "slurm/accounting/qos.hpp"

namespace op::governance {

/// A limit that follows the capacity of a cluster.
struct CapacityLimit {
  std::string limit;  ///< The member and the TRES, as in status.capacityLimits: "grpTRES[cpu]".
  std::string tres;   ///< "cpu"
  std::string text;   ///< "50%"
  Expression expression;
};

/// What a spec declares.
struct Declared {
  slurm::accounting::Settings settings;  ///< Plain values, those of spec.config included.
  /// Limits without a plain value, by setting ("GrpTRES/cpu"). None is in `settings`.
  std::map<std::string, CapacityLimit, std::less<>> capacity;
};

/// Returns what the spec declares. Error: kInvalid, with the path of what is wrong.
[[nodiscard]] core::Result<Declared> declared(const api::SlurmQosSpec& spec);

/// Reads a time in the notation of Slurm ("1-12:00:00", "30:00", or minutes: "90") or of Kubernetes ("36h"). Returns seconds,
/// or nullopt.
[[nodiscard]] std::optional<std::int64_t> read_time(std::string_view text);

}  // namespace op::governance
