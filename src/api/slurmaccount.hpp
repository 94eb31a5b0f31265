// SlurmAccount, SlurmUser and SlurmAssociation: an account, a user with its associations, and an association that no
// SlurmAccount or SlurmUser declares. They are in the accounting database of an Accounting.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/slurmqos.hpp"

namespace api {

/// The limits of an association. sacctmgr(1) explains them under the same names.
struct AssociationLimits {
  std::optional<IntOrString> grp_jobs, grp_jobs_accrue, grp_submit_jobs, max_jobs, max_jobs_accrue, max_submit_jobs,
      min_prio_threshold;
  std::optional<IntOrString> grp_wall, max_wall_duration_per_job;
  TresMap grp_tres, grp_tres_mins, grp_tres_run_mins, max_tres_mins_per_job, max_tres_per_job, max_tres_per_node;
};

struct SlurmAccountSpec {
  AccountingReference accounting_ref;
  std::optional<std::string> name;
  std::optional<std::string> parent;  ///< The name of an account. Default: root.
  std::optional<std::string> description, organization;
  std::optional<std::vector<std::string>> coordinators;
  std::vector<std::string> clusters;  ///< The clusters that have the account. Empty: all clusters of the Accounting.
  std::optional<IntOrString> fair_share, priority;
  std::optional<std::string> default_qos;
  std::optional<std::vector<std::string>> qos;
  AssociationLimits limits;
  Adoption adoption = Adoption::kNever;
  DriftPolicy policy = DriftPolicy::kEnforce;
  QosDeletion deletion_policy = QosDeletion::kDelete;
};

/// The status of a SlurmAccount, a SlurmUser or a SlurmAssociation.
struct EntityStatus {
  std::int64_t observed_generation = 0;
  bool ready = false;
  bool created = false;  ///< True once the account, user or association of this resource has existed in slurmdbd.
  /// The slurm::accounting::Settings that the operator has set, or is about to set. Absent: the resource owns nothing in
  /// Slurm.
  std::optional<core::Json> applied;
  std::vector<Condition> conditions;
};

struct SlurmAccount {
  SlurmAccountSpec spec;
  EntityStatus status;
};

enum class AdminLevel { kNone, kOperator, kAdministrator };
constexpr std::array<std::string_view, 3> enum_names(AdminLevel) {
  return {"None", "Operator", "Administrator"};
}

/// An association of a user: its membership in an account.
struct UserAssociation {
  std::string account;
  std::string partition;              ///< "": all partitions.
  std::vector<std::string> clusters;  ///< Empty: all clusters of the Accounting.
  std::optional<IntOrString> fair_share, priority;
  std::optional<std::string> default_qos;
  std::optional<std::vector<std::string>> qos;
  AssociationLimits limits;
};

struct SlurmUserSpec {
  AccountingReference accounting_ref;
  std::optional<std::string> name;
  std::optional<AdminLevel> admin_level;
  std::optional<std::string> default_account;  ///< Default: the account of the first association.
  std::vector<UserAssociation> associations;   ///< The list has at least one item.
  Adoption adoption = Adoption::kNever;
  DriftPolicy policy = DriftPolicy::kEnforce;
  QosDeletion deletion_policy = QosDeletion::kDelete;
};

struct SlurmUser {
  SlurmUserSpec spec;
  EntityStatus status;
};

struct SlurmAssociationSpec {
  AccountingReference accounting_ref;
  std::string account;
  std::optional<std::string> user;    ///< Absent: the association of the account itself.
  std::string partition;              ///< "": all partitions. Only with a user.
  std::vector<std::string> clusters;  ///< Empty: all clusters of the Accounting.
  std::optional<IntOrString> fair_share, priority;
  std::optional<std::string> default_qos;
  std::optional<std::vector<std::string>> qos;
  AssociationLimits limits;
  Adoption adoption = Adoption::kNever;
  DriftPolicy policy = DriftPolicy::kEnforce;
  QosDeletion deletion_policy = QosDeletion::kDelete;
};

struct SlurmAssociation {
  SlurmAssociationSpec spec;
  EntityStatus status;
};

const FieldList& field_list(const AssociationLimits*);
const FieldList& field_list(const SlurmAccountSpec*);
const FieldList& field_list(const EntityStatus*);
const FieldList& field_list(const SlurmAccount*);
const FieldList& field_list(const UserAssociation*);
const FieldList& field_list(const SlurmUserSpec*);
const FieldList& field_list(const SlurmUser*);
const FieldList& field_list(const SlurmAssociationSpec*);
const FieldList& field_list(const SlurmAssociation*);

}  // namespace api
