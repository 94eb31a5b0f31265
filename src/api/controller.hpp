// Controller: one Slurm cluster's slurmctld, its configuration, keys and state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/common.hpp"
#include "api/field.hpp"

namespace api {

/// Selects what happens to the workers when the Controller or its namespace is deleted.
enum class DeletionPolicy { kImmediate, kDrain };
constexpr std::array<std::string_view, 2> enum_names(DeletionPolicy) {
  return {"Immediate", "Drain"};
}

/// The kind of network that slurmctld assumes.
enum class TopologyType { kTree, kBlock };
constexpr std::array<std::string_view, 2> enum_names(TopologyType) {
  return {"Tree", "Block"};
}

/// Describes how the operator makes topology.yaml from labels of Kubernetes nodes.
struct Topology {
  TopologyType type = TopologyType::kTree;
  std::vector<std::string> node_labels;  ///< Names of labels. The first label forms the largest groups of nodes.
  std::vector<std::int32_t> block_sizes;
  friend bool operator==(const Topology&, const Topology&) = default;
};

struct ControllerHighAvailability {
  bool enabled = false;
  std::int32_t backups = 1;
};

struct ControllerPersistence {
  bool enabled = true;
  std::string existing_claim;
  core::Json claim = core::Json::object();  ///< The fields of a core/v1 PersistentVolumeClaimSpec: see embed_raw.
};

struct ControllerSpec {
  std::string cluster_name;                            ///< "": <namespace>_<name>.
  std::optional<SecretKeySelector> slurm_key_ref;      ///< Absent: the operator generates a key.
  std::optional<SecretKeySelector> jwt_key_ref;        ///< Absent: jwt_hs256_key_ref is used instead.
  std::optional<SecretKeySelector> jwt_hs256_key_ref;  ///< The old name of jwt_key_ref. If neither is set, a key is generated.
  std::optional<ConfigMapKeySelector> jwks_key_ref;
  std::optional<LocalObjectReference> accounting_ref;
  bool external = false;
  std::optional<ExternalConfig> external_config;
  ControllerHighAvailability ha;
  core::Json slurmctld = core::Json::object();    ///< A core/v1 Container that is merged over the operator's own.
  core::Json reconfigure = core::Json::object();  ///< A core/v1 Container that is merged over the operator's own.
  core::Json logfile = core::Json::object();      ///< A core/v1 Container that is merged over the operator's own.
  bool inplace_reconfigure = false;
  PodTemplate pod_template;
  std::string extra_conf;
  std::optional<SecretKeySelector> sssd_conf_ref;
  std::vector<LocalObjectReference> config_file_refs;
  std::optional<Topology> topology;
  std::vector<LocalObjectReference> prolog_script_refs;
  std::vector<LocalObjectReference> epilog_script_refs;
  std::vector<LocalObjectReference> prolog_slurmctld_script_refs;
  std::vector<LocalObjectReference> epilog_slurmctld_script_refs;
  ControllerPersistence persistence;
  ServiceSpec service;
  Metrics metrics;
  DeletionPolicy deletion_policy = DeletionPolicy::kImmediate;

  /// Reports whether deleting the Controller drains its workers first. True for an external slurmctld, because its jobs go on.
  [[nodiscard]] bool drains_on_deletion() const { return external || deletion_policy == DeletionPolicy::kDrain; }

  /// Returns the reference to the JWT key under either name, or null if the key is generated.
  [[nodiscard]] const SecretKeySelector* jwt_key() const {
    if (jwt_key_ref) return &*jwt_key_ref;
    return jwt_hs256_key_ref ? &*jwt_hs256_key_ref : nullptr;
  }
};

struct ControllerStatus {
  std::int64_t observed_generation = 0;
  std::vector<Condition> conditions;
};

struct Controller {
  ControllerSpec spec;
  ControllerStatus status;
};

/// Returns Slurm's ClusterName: spec.clusterName, or <namespace>_<name> if that is empty.
std::string cluster_name(const ControllerSpec& spec, std::string_view ns, std::string_view name);
/// The longest name of a Controller. A label of its pods has the value "<name>-controller-<10 characters>", at most 63
/// characters.
inline constexpr std::size_t kMaxControllerName = 41;
/// The longest name of a Controller with backups. The limit is smaller, because the backups' StatefulSet has a longer name.
inline constexpr std::size_t kMaxNameWithBackups = 34;
/// Slurm's limit for ClusterName, in bytes.
inline constexpr std::size_t kMaxClusterName = 40;

const FieldList& field_list(const Topology*);
const FieldList& field_list(const ControllerHighAvailability*);
const FieldList& field_list(const ControllerPersistence*);
const FieldList& field_list(const ControllerSpec*);
const FieldList& field_list(const ControllerStatus*);
const FieldList& field_list(const Controller*);

}  // namespace api
