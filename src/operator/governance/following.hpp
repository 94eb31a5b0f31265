// Evaluates, for one pass, the limits that follow the capacity of a cluster. Returns the values in force, the entries for the
// status, and why a limit has no value. Pure. Expressions and the delay are in capacity.hpp.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kube/object.hpp"
#include "operator/governance/claim.hpp"
#include "operator/governance/observed.hpp"
#include "operator/governance/settings.hpp"
#include "slinky/status.hpp"

namespace op::governance {

/// Reports whether a limit of the SlurmQos is an expression, whether it is valid or not.
[[nodiscard]] bool follows_capacity(const kube::Object& qos);

struct Following {
  slurm::accounting::Settings settings;          ///< The values in force, by setting. Limits without a value are left out.
  std::vector<api::CapacityLimitStatus> status;  ///< The next status.capacityLimits. The next pass reads it.
  std::optional<Problem> problem;            ///< CapacityInvalid: a person must act. CapacityUnknown: a limit has no value yet.
  bool complete = true;                      ///< Every limit has a value.
  std::optional<core::Duration> look_again;  ///< The time until a limit can be lowered, or a capacity might be known.
  std::set<slurm::ClusterKey> awaited;       ///< The clusters whose next poll is needed.
};

/// Evaluates the expressions of a SlurmQos. `applied`: the settings that the operator has written. If the capacity of a limit
/// is unknown, or its expression does not fit the cluster, the limit keeps its value from the status, or else from `applied`. A
/// lower value is delayed only if the limit had the same expression and cluster before. The capacities in the status change
/// only with the value or lowerSince, so that the status is not written each time a node changes.
[[nodiscard]] Following follow(const std::map<std::string, CapacityLimit, std::less<>>& limits, const Claim& claim,
                               const slurm::accounting::Settings& applied, const Observed& observed);

}  // namespace op::governance
