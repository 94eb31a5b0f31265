// SlurmQos: a QOS in the accounting database of an Accounting.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/common.hpp"
#include "api/field.hpp"

namespace api {

/// Names an Accounting in the namespace of the custom resource. Immutable.
struct AccountingReference {
  std::string name;
  friend bool operator==(const AccountingReference&, const AccountingReference&) = default;
};

enum class QosFlag {
  kDenyOnLimit,
  kEnforceUsageThreshold,
  kNoDecay,
  kNoReserve,
  kOverPartQos,
  kPartitionMaxNodes,
  kPartitionMinNodes,
  kPartitionQos,
  kPartitionTimeLimit,
  kRelative,
  kRequiresReservation,
  kUsageFactorSafe,
};
constexpr std::array<std::string_view, 12> enum_names(QosFlag) {
  return {"DenyOnLimit",         "EnforceUsageThreshold", "NoDecay",      "NoReserve",          "OverPartQOS",
          "PartitionMaxNodes",   "PartitionMinNodes",     "PartitionQOS", "PartitionTimeLimit", "Relative",
          "RequiresReservation", "UsageFactorSafe"};
}

enum class PreemptMode { kCluster, kCancel, kGang, kRequeue, kSuspend };
constexpr std::array<std::string_view, 5> enum_names(PreemptMode) {
  return {"Cluster", "Cancel", "Gang", "Requeue", "Suspend"};
}

/// Selects whether the resource adopts a QOS, account, user or association that already exists in Slurm.
enum class Adoption { kNever, kAdopt };
constexpr std::array<std::string_view, 2> enum_names(Adoption) {
  return {"Never", "Adopt"};
}

/// Selects whether the operator reverts changes that others make in Slurm.
enum class DriftPolicy { kEnforce, kObserve };
constexpr std::array<std::string_view, 2> enum_names(DriftPolicy) {
  return {"Enforce", "Observe"};
}

/// Selects whether deleting the resource also deletes the QOS, account, user or association in Slurm.
enum class QosDeletion { kDelete, kOrphan };
constexpr std::array<std::string_view, 2> enum_names(QosDeletion) {
  return {"Delete", "Orphan"};
}

/// Maps the name of a TRES ("cpu", "gres/gpu") to a limit.
using TresMap = std::map<std::string, IntOrString, std::less<>>;

/// The limits of a QOS. sacctmgr(1) explains them under the same names.
struct QosLimits {
  std::optional<IntOrString> grp_jobs, grp_jobs_accrue, grp_submit_jobs, max_jobs_accrue_per_account, max_jobs_accrue_per_user,
      max_jobs_per_account, max_jobs_per_user, max_submit_jobs_per_account, max_submit_jobs_per_user, min_prio_threshold;
  std::optional<IntOrString> grp_wall, max_wall_duration_per_job;
  TresMap grp_tres, grp_tres_mins, grp_tres_run_mins, max_tres_mins_per_job, max_tres_per_account, max_tres_per_job,
      max_tres_per_node, max_tres_per_user, max_tres_run_mins_per_account, max_tres_run_mins_per_user, min_tres_per_job;
};

struct SlurmQosSpec {
  AccountingReference accounting_ref;
  std::optional<std::string> name;
  std::optional<std::string> description;
  std::optional<IntOrString> priority;
  std::optional<std::vector<QosFlag>> flags;
  std::optional<std::string> grace_time;
  std::optional<IntOrString> usage_factor, usage_threshold, limit_factor;
  std::optional<std::vector<std::string>> preempt;
  std::optional<PreemptMode> preempt_mode;
  std::optional<std::string> preempt_exempt_time;
  QosLimits limits;
  core::Json config = core::Json::object();  ///< A QOS in slurmrestd's JSON, for fields of a QOS that this struct lacks.
  std::string config_version;                ///< The data_parser version ("v0.0.44") that `config` follows. "": any.
  std::optional<std::string> capacity_cluster;
  Adoption adoption = Adoption::kNever;
  DriftPolicy policy = DriftPolicy::kEnforce;
  QosDeletion deletion_policy = QosDeletion::kDelete;
};

/// A limit whose value is an expression, and the value in force.
struct CapacityLimitStatus {
  std::string limit;  ///< The name of the limit: "grpTRES[cpu]".
  std::string expression;
  std::int64_t value = 0;
  std::string cluster;                                     ///< The name of the Controller.
  std::map<std::string, IntOrString, std::less<>> inputs;  ///< The values used: {"all": 128, "partition(gpu)": 64}.
  std::optional<core::WallTime> lower_since;  ///< When the result fell below `value`. Absent: not known to be below.
};

struct SlurmQosStatus {
  std::int64_t observed_generation = 0;
  bool ready = false;
  std::int64_t id = 0;  ///< The id of the QOS in Slurm. 0: this resource has no QOS.
  /// The slurm::accounting::Settings that the operator has set. If `id` is 0, the operator is about to create the QOS.
  std::optional<core::Json> applied;
  std::vector<CapacityLimitStatus> capacity_limits;
  std::vector<Condition> conditions;
};

struct SlurmQos {
  SlurmQosSpec spec;
  SlurmQosStatus status;
};

const FieldList& field_list(const AccountingReference*);
const FieldList& field_list(const QosLimits*);
const FieldList& field_list(const SlurmQosSpec*);
const FieldList& field_list(const CapacityLimitStatus*);
const FieldList& field_list(const SlurmQosStatus*);
const FieldList& field_list(const SlurmQos*);

}  // namespace api
