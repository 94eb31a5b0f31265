// NodeSet: a set of workers (slurmd pods) of one Controller.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/common.hpp"
#include "api/field.hpp"
#include "core/clock.hpp"

namespace api {

enum class ScalingMode { kDaemonSet, kStatefulSet };
constexpr std::array<std::string_view, 2> enum_names(ScalingMode) {
  return {"DaemonSet", "StatefulSet"};
}

enum class UpdateStrategyType { kRollingUpdate, kOnDelete, kScheduledUpdate };
constexpr std::array<std::string_view, 3> enum_names(UpdateStrategyType) {
  return {"RollingUpdate", "OnDelete", "ScheduledUpdate"};
}

enum class ClaimRetention { kRetain, kDelete };
constexpr std::array<std::string_view, 2> enum_names(ClaimRetention) {
  return {"Retain", "Delete"};
}

enum class DisruptionPolicy { kAlways, kWhenBusy };
constexpr std::array<std::string_view, 2> enum_names(DisruptionPolicy) {
  return {"Always", "WhenBusy"};
}

enum class PruneNodeRecords { kNever, kNodeNotFound };
constexpr std::array<std::string_view, 2> enum_names(PruneNodeRecords) {
  return {"Never", "NodeNotFound"};
}

enum class OnDrainTimeout { kWait, kRequeue, kCancel };
constexpr std::array<std::string_view, 3> enum_names(OnDrainTimeout) {
  return {"Wait", "Requeue", "Cancel"};
}

/// The longest name of a NodeSet, and the longest template.spec.hostname. Hostnames and label values have at most 63
/// characters. The hostname of a worker with an ordinal is "<name of the NodeSet>-" or template.spec.hostname, followed by the
/// ordinal.
inline constexpr std::size_t kMaxNodeSetName = 61;
inline constexpr std::size_t kMaxHostnamePrefix = 62;

struct NodeSetSsh {
  bool enabled = false;
  std::string extra_sshd_config;
  std::optional<SecretKeySelector> sssd_conf_ref;
};

struct NodeSetPartition {
  bool enabled = false;
  std::string config;  ///< Options for the PartitionName line of slurm.conf; one line.
};

struct RollingUpdate {
  IntOrString max_unavailable{std::string("25%")};
  std::int32_t partition = 0;  ///< Workers with a smaller ordinal keep the previous template.
};
struct ScheduledUpdate {
  std::optional<core::WallTime> start_time;
  core::Duration duration{30 * 60 * 1000};
  std::vector<std::string> flags;
};
struct UpdateStrategy {
  UpdateStrategyType type = UpdateStrategyType::kRollingUpdate;
  bool paused = false;
  RollingUpdate rolling_update;
  ScheduledUpdate scheduled_update;
};

struct DrainPolicy {
  core::Duration timeout{0};
  OnDrainTimeout on_timeout = OnDrainTimeout::kWait;
};

struct ClaimRetentionPolicy {
  ClaimRetention when_deleted = ClaimRetention::kRetain;
  ClaimRetention when_scaled = ClaimRetention::kRetain;
};

struct NodeSetSpec {
  ControllerReference controller_ref;
  std::int32_t replicas = 1;
  ScalingMode scaling_mode = ScalingMode::kStatefulSet;
  core::Json slurmd = core::Json::object();   ///< A core/v1 Container that is merged over the operator's own.
  core::Json logfile = core::Json::object();  ///< A core/v1 Container that is merged over the operator's own.
  std::optional<NodeSetSsh> ssh;
  PodTemplate pod_template;
  std::string extra_conf;  ///< Pairs Key=Value for `slurmd --conf`, separated by spaces.
  NodeSetPartition partition;
  core::Json volume_claim_templates = core::Json::array();  ///< core/v1 PersistentVolumeClaims.
  UpdateStrategy update_strategy;
  std::optional<DrainPolicy> drain_policy;
  std::int32_t revision_history_limit = 0;
  ClaimRetentionPolicy persistent_volume_claim_retention_policy;
  std::int32_t min_ready_seconds = 0;
  std::int32_t ordinal_padding = 0;  ///< Ordinals are padded with zeros to this many digits.
  bool pin_to_node = false;
  std::vector<std::string> node_feature_labels;  ///< Labels of Kubernetes nodes. Their values become features in Slurm.
  bool workload_disruption_protection = true;
  DisruptionPolicy workload_disruption_policy = DisruptionPolicy::kAlways;
  PruneNodeRecords prune_slurm_node_records = PruneNodeRecords::kNever;
  bool oversubscribe_node = false;
};

struct NodeSetStatus {
  std::int32_t replicas = 0;
  std::int32_t updated_replicas = 0;
  std::int32_t ready_replicas = 0;
  std::int32_t available_replicas = 0;
  std::int32_t unavailable_replicas = 0;
  std::int32_t desired = 0;
  std::int32_t slurm_idle = 0;
  std::int32_t slurm_allocated = 0;  ///< The number of workers that are ALLOCATED or MIXED in Slurm.
  std::int32_t slurm_down = 0;
  std::int32_t slurm_drain = 0;
  std::int64_t observed_generation = 0;
  std::string nodeset_hash;
  std::optional<std::int32_t> collision_count;
  std::vector<Condition> conditions;
  StringMap ordinal_to_node;    ///< The Kubernetes node of each ordinal. Only with pin_to_node.
  StringMap drains_to_restore;  ///< Maps the name of a Slurm node to the reason of the drain that the operator must set again.
  std::string selector;
};

struct NodeSet {
  NodeSetSpec spec;
  NodeSetStatus status;
};

const FieldList& field_list(const NodeSetSsh*);
const FieldList& field_list(const NodeSetPartition*);
const FieldList& field_list(const RollingUpdate*);
const FieldList& field_list(const ScheduledUpdate*);
const FieldList& field_list(const UpdateStrategy*);
const FieldList& field_list(const DrainPolicy*);
const FieldList& field_list(const ClaimRetentionPolicy*);
const FieldList& field_list(const NodeSetSpec*);
const FieldList& field_list(const NodeSetStatus*);
const FieldList& field_list(const NodeSet*);

}  // namespace api
