// A resource of an Accounting in the form that the plan uses: its declaration and the contents of its status. All kinds share
// the rules of ownership, drift and deletion, so they share this form.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/slurmaccount.hpp"
#include "api/slurmqos.hpp"
#include "core/json.hpp"
#include "kube/object.hpp"
#include "operator/common/slinky.hpp"
#include "slurm/accounting/entities.hpp"

namespace op::governance {

/// The kind of entry that a resource declares in slurmdbd.
enum class Subject { kQos, kAccount, kUser, kAssociation };

/// The texts for a subject in messages, steps, events and conditions.
struct SubjectTexts {
  std::string_view word;                             ///< In messages and step ids: "QOS".
  std::string_view a_word;                           ///< The word with its article: "a QOS".
  std::string_view created, updated, deleted, kept;  ///< Reasons of events.
  std::string_view missing;                          ///< The reason of the condition Synced if slurmdbd lacks the subject.
  const kube::Resource& resource;
  std::string_view finalizer;
};
[[nodiscard]] const SubjectTexts& texts(Subject subject);
/// Returns the kind of entity for kAccount or kUser. Other subjects are not allowed.
[[nodiscard]] slurm::accounting::EntityKind entity_kind(Subject subject);

struct Claim {
  kube::ObjectPtr object;
  Subject subject = Subject::kQos;
  /// The name in Slurm, in lower case. An association has the name "ACCOUNT", "ACCOUNT/USER" or "ACCOUNT/USER/PARTITION".
  std::string name;
  std::string parse_error;  ///< Why the object cannot be parsed. "": it was parsed.
  std::variant<api::SlurmQosSpec, api::SlurmAccountSpec, api::SlurmUserSpec, api::SlurmAssociationSpec> spec;
  api::Adoption adoption = api::Adoption::kNever;
  api::DriftPolicy policy = api::DriftPolicy::kEnforce;
  api::QosDeletion deletion_policy = api::QosDeletion::kDelete;

  // From the status of the resource:
  std::int64_t observed_generation = 0;
  /// The number of the QOS; 0: none. Other subjects have no number: 1 means that the subject has existed in slurmdbd.
  std::int64_t id = 0;
  std::optional<core::Json> applied;                      ///< See api::SlurmQosStatus::applied.
  std::vector<api::CapacityLimitStatus> capacity_limits;  ///< Only for a SlurmQos.
  std::vector<api::Condition> conditions;

  /// Reports whether the operator writes the declared settings to slurmdbd.
  [[nodiscard]] bool enforces() const { return parse_error.empty() && policy == api::DriftPolicy::kEnforce; }
  /// Reports whether the operator deletes the entity from slurmdbd once the resource is deleted or no longer declares it.
  [[nodiscard]] bool deletes() const { return enforces() && deletion_policy == api::QosDeletion::kDelete && !built_in(); }
  /// Reports whether Slurm itself creates what the resource declares: QOS normal, account root and user root.
  [[nodiscard]] bool built_in() const;
  /// Returns the name by which step ids identify the resource.
  [[nodiscard]] std::string label() const;
};

/// An account or user. SlurmAccounts, SlurmUsers and SlurmAssociations declare its settings in slurmdbd.
struct EntityName {
  Subject subject = Subject::kAccount;  ///< kAccount or kUser.
  std::string name;                     ///< In lower case.
  friend auto operator<=>(const EntityName&, const EntityName&) = default;
};
/// Returns the account or user that a claim declares or that owns the declared association. Not for the subject kQos.
[[nodiscard]] EntityName entity_of(const Claim& claim);

[[nodiscard]] Claim read_claim(Subject subject, kube::ObjectPtr object);

/// Reports whether the SlurmUser or SlurmAssociation has an association for a partition.
[[nodiscard]] bool names_partition(const kube::Object& object);

/// Returns the settings of status.applied that this release knows.
[[nodiscard]] slurm::accounting::Settings applied_settings(const Claim& claim);

/// Returns the accounts, users and clusters of the associations in status.applied.
[[nodiscard]] std::set<slurm::accounting::Place> made_places(const Claim& claim);

}  // namespace op::governance
