// Translates the specs of resources into settings: see slurm/accounting.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "api/slurmaccount.hpp"
#include "api/slurmqos.hpp"
#include "core/result.hpp"
#include "operator/governance/capacity.hpp"
#include "slurm/accounting/entities.hpp"

namespace op::governance {

/// A limit that follows the capacity of a cluster.
struct CapacityLimit {
  std::string limit;  ///< The member and the TRES, as in status.capacityLimits: "grpTRES[cpu]".
  std::string tres;   ///< The TRES: "cpu".
  std::string text;   ///< The expression as users write it: "50%".
  Expression expression;
};

/// The declarations of a SlurmQos.
struct DeclaredQos {
  slurm::accounting::Settings settings;  ///< Plain values, including those of spec.config.
  /// Limits that are expressions, by setting ("GrpTRES/cpu"). `settings` has none of them.
  std::map<std::string, CapacityLimit, std::less<>> capacity;
};

/// Returns what the spec declares. Error: kInvalid, with the path of the invalid field.
[[nodiscard]] core::Result<DeclaredQos> declared(const api::SlurmQosSpec& spec);

/// Returns the settings that the spec declares: those of the account, and those of the account's associations in the `clusters`
/// that the spec names, or in all `clusters`. Error: kInvalid, with the path of the invalid field.
[[nodiscard]] core::Result<slurm::accounting::Settings> declared(const api::SlurmAccountSpec& spec,
                                                                 const std::set<std::string>& clusters);

/// Returns the settings of a user and its associations. A default account is included only if the spec names one. Error:
/// kInvalid, with the path of the field, also for two associations at one place and for a default account in no association.
[[nodiscard]] core::Result<slurm::accounting::Settings> declared(const api::SlurmUserSpec& spec,
                                                                 const std::set<std::string>& clusters);

/// Returns the settings of an association in the `clusters` that the spec names, or in all. Error: kInvalid, with the field.
[[nodiscard]] core::Result<slurm::accounting::Settings> declared(const api::SlurmAssociationSpec& spec,
                                                                 const std::set<std::string>& clusters);

/// Returns the places whose associations make `account` the user's default account: one in each cluster where `settings` have
/// an association in `account`. An association for all partitions takes precedence over one for a single partition.
[[nodiscard]] std::set<slurm::accounting::Place> default_places(const slurm::accounting::Settings& settings,
                                                                const std::string& account);

/// Returns the names of clusters in the spec that are not among `clusters`.
[[nodiscard]] std::set<std::string> unknown_clusters(const api::SlurmAccountSpec& spec, const std::set<std::string>& clusters);
[[nodiscard]] std::set<std::string> unknown_clusters(const api::SlurmUserSpec& spec, const std::set<std::string>& clusters);
[[nodiscard]] std::set<std::string> unknown_clusters(const api::SlurmAssociationSpec& spec,
                                                     const std::set<std::string>& clusters);

/// Reads a time in the notation of Slurm ("1-12:00:00", "30:00", or minutes: "90") or of Kubernetes ("36h"). Returns seconds,
/// or nullopt.
[[nodiscard]] std::optional<std::int64_t> read_time(std::string_view text);

}  // namespace op::governance
