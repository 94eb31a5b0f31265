// The structs that several custom resources share. Core types that are only passed on (containers, pod and service specs) stay
// JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/field.hpp"
#include "core/clock.hpp"
#include "core/json.hpp"

namespace api {

/// Names an object in the namespace of the custom resource. The kind of the object depends on the field.
struct LocalObjectReference {
  std::string name;
  friend bool operator==(const LocalObjectReference&, const LocalObjectReference&) = default;
};

/// The Controller that an object belongs to. It is in the same namespace. Its name is never empty and never changes.
struct ControllerReference {
  std::string name;
  friend bool operator==(const ControllerReference&, const ControllerReference&) = default;
};

/// Names a data key of a Secret or ConfigMap in the namespace of the custom resource.
struct KeySelector {
  std::string name;
  std::string key;
  std::optional<bool> optional;
  friend bool operator==(const KeySelector&, const KeySelector&) = default;
};
struct SecretKeySelector : KeySelector {
  friend bool operator==(const SecretKeySelector&, const SecretKeySelector&) = default;
};
struct ConfigMapKeySelector : KeySelector {
  friend bool operator==(const ConfigMapKeySelector&, const ConfigMapKeySelector&) = default;
};

struct Metadata {
  StringMap labels;
  StringMap annotations;
};

struct PodTemplate {
  Metadata metadata;
  core::Json spec = core::Json::object();  ///< A core/v1 PodSpec that is merged over the operator's own.
};

struct ServiceSpec {
  Metadata metadata;
  core::Json spec = core::Json::object();  ///< A core/v1 ServiceSpec that is merged over the operator's own.
  std::int32_t port = 0;                   ///< 0: the component's own port.
  std::int32_t node_port = 0;              ///< 0: Kubernetes chooses the port.
};

struct MetricEndpoint {
  std::string path;
  std::string interval;  ///< A duration in the notation of Prometheus ("30s"). "": Prometheus uses its own setting.
  std::string scrape_timeout;
};
struct ServiceMonitor {
  bool enabled = false;
  Metadata metadata;
  std::string interval;
  std::string scrape_timeout;
  std::vector<MetricEndpoint> endpoints;
  std::optional<SecretKeySelector> token_secret_ref;  ///< Absent: Prometheus sends no token.
};
struct Metrics {
  bool enabled = false;
  ServiceMonitor service_monitor;
};

struct ExternalConfig {
  std::string host;
  std::int32_t port = 0;
};

/// Returns the schema of a core/v1 Container that is merged over the operator's. It types only the members that the operator
/// reads. The API server checks the rest when the pod is created.
core::Json container_schema();

/// Returns the schemas of the members of a core/v1 PersistentVolumeClaimSpec, for structs whose JSON object has other members
/// as well: see embed_raw.
core::Json claim_properties();

/// Returns the rule for names that become parts of other names. The rule requires a DNS label of at most `longest` characters;
/// with `begins_with_letter`, the label begins with a letter. An object that has a status is exempt, so that its finalizers
/// can always be removed.
Rule name_is_label(std::size_t longest, bool begins_with_letter);

/// Returns the rule for structs with jwtKeyRef and its old name jwtHs256KeyRef: the reference in force cannot be changed.
Rule jwt_key_unchanged();

enum class ConditionStatus { kTrue, kFalse, kUnknown };
constexpr std::array<std::string_view, 3> enum_names(ConditionStatus) {
  return {"True", "False", "Unknown"};
}

/// A metav1.Condition.
struct Condition {
  std::string type;
  ConditionStatus status = ConditionStatus::kUnknown;
  std::string reason;   ///< One CamelCase word; never empty.
  std::string message;  ///< A text that a user can act on; contains no secrets.
  std::optional<core::WallTime> last_transition_time;
  std::int64_t observed_generation = 0;
};
/// Returns the condition of type `type`, or null if there is none.
const Condition* find_condition(const std::vector<Condition>& conditions, std::string_view type);

const FieldList& field_list(const LocalObjectReference*);
const FieldList& field_list(const ControllerReference*);
const FieldList& field_list(const SecretKeySelector*);
const FieldList& field_list(const ConfigMapKeySelector*);
const FieldList& field_list(const Metadata*);
const FieldList& field_list(const PodTemplate*);
const FieldList& field_list(const ServiceSpec*);
const FieldList& field_list(const MetricEndpoint*);
const FieldList& field_list(const ServiceMonitor*);
const FieldList& field_list(const Metrics*);
const FieldList& field_list(const ExternalConfig*);
const FieldList& field_list(const Condition*);

}  // namespace api
