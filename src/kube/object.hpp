// Kubernetes objects as compact records for caches. The records contain neither managedFields nor the bytes of secrets.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "core/json.hpp"
#include "run/key.hpp"

namespace kube {

/// A resource of the API. `plural` is the path segment.
struct Resource {
  std::string group;  ///< "" for the core group.
  std::string version;
  std::string kind;
  std::string plural;
  bool namespaced = true;

  [[nodiscard]] std::string api_version() const { return group.empty() ? version : group + "/" + version; }
  /// Returns the path "/apis/apps/v1/namespaces/ns/statefulsets/name". Without `name`, returns the path of the collection in
  /// `ns`; without `ns` too, the path of the collection of all namespaces.
  [[nodiscard]] std::string path(std::string_view ns, std::string_view name = "", std::string_view subresource = "") const;
  friend bool operator==(const Resource&, const Resource&) = default;
};

namespace resources {
extern const Resource kPod, kService, kConfigMap, kSecret, kNode, kServiceAccount, kNamespace, kPersistentVolumeClaim,
    kStatefulSet, kDeployment, kControllerRevision, kEndpointSlice, kLease, kEvent, kPodDisruptionBudget,
    kCustomResourceDefinition;
}

using Key = run::Key;
/// Returns the key of an object from the API server. Missing parts are "".
Key key_of(const core::Json& object);

struct OwnerReference {
  std::string api_version, kind, name, uid;
  bool controller = false;
  friend bool operator==(const OwnerReference&, const OwnerReference&) = default;
};

using StringMap = std::map<std::string, std::string, std::less<>>;

struct ObjectMeta {
  std::string ns, name, uid, resource_version;
  std::int64_t generation = 0;
  StringMap labels, annotations;
  std::vector<OwnerReference> owners;
  std::vector<std::string> finalizers;
  core::WallTime created;
  std::optional<core::WallTime> deletion_timestamp;

  [[nodiscard]] Key key() const { return {ns, name}; }
  [[nodiscard]] const OwnerReference* controller_owner() const;            ///< Null if the object has none.
  [[nodiscard]] std::string_view label(std::string_view name) const;       ///< "" if absent.
  [[nodiscard]] std::string_view annotation(std::string_view name) const;  ///< "" if absent.
  [[nodiscard]] bool terminating() const { return deletion_timestamp.has_value(); }
};
ObjectMeta parse_meta(const core::Json& object);

/// A whole object, for kinds with few objects: our own resources and owned children.
struct Object {
  ObjectMeta meta;
  core::Json body;  ///< The object without metadata.managedFields and kubectl's last-applied-configuration.
};

/// A condition in the status of a pod or a node.
struct PodCondition {
  std::string type, status, reason, message;
  friend bool operator==(const PodCondition&, const PodCondition&) = default;
};

struct ContainerState {
  std::string name;
  bool init = false;
  bool ready = false;
  bool started_once = false;  ///< The container runs or has run (restartCount > 0, running, terminated, or a lastState).
  int restarts = 0;
  std::string waiting_reason;  ///< "ImagePullBackOff", "CrashLoopBackOff" ... or "".
  std::string message;         ///< The message of the waiting state. After a crash or an end: the termination message.
  std::string last_message{};  ///< If the container runs and its last run failed: the termination message of that run.
  /// The container has failed more than once and does not run now: it is in CrashLoopBackOff, or soon will be.
  bool crashed = false;
};

/// A container that was added to a running pod.
struct EphemeralContainer {
  std::string name;
  std::optional<core::WallTime> done{};  ///< When the container ended with exit code 0, by the kubelet's clock. Whole seconds.
  bool failed = false;                   ///< The container ended with an error. It is not started again.
};

/// How long a pod stays on a node with a NoExecute taint that Kubernetes sets when the node's kubelet does not report.
struct Patience {
  std::int32_t index = -1;              ///< The index in spec.tolerations of the toleration that matches; -1: none.
  std::optional<std::int64_t> seconds;  ///< nullopt if the toleration has no time limit, or covers all taints.
  friend bool operator==(const Patience&, const Patience&) = default;
};
inline constexpr std::string_view kTaintNotReady = "node.kubernetes.io/not-ready";
inline constexpr std::string_view kTaintUnreachable = "node.kubernetes.io/unreachable";

/// The names of a container's probe fields.
inline constexpr std::array<std::string_view, 3> kProbes{"startupProbe", "livenessProbe", "readinessProbe"};

/// The part of a pod that caches store: about 1 KB of 12 KB.
struct PodRecord {
  ObjectMeta meta;
  std::string node_name, hostname, phase, pod_ip, reason, message;
  std::string pinned_to;  ///< The only node (metadata.name) that the required node affinity allows. "": none.
  bool host_network = false;
  std::string image;  ///< The image of the first container.
  std::vector<PodCondition> conditions;
  std::vector<ContainerState> containers;
  std::vector<EphemeralContainer> ephemeral;
  std::optional<core::WallTime> ready_since;  ///< When the pod became ready; nullopt if it is not ready, or if that is unknown.
  Patience not_ready, unreachable;            ///< The patience for kTaintNotReady and for kTaintUnreachable.
  std::vector<std::string> secrets;           ///< The names of the Secrets that the pod mounts, in the order of the spec.
  std::vector<std::string> http_probed;       ///< The names of the pod's containers with HTTP probes.
  [[nodiscard]] bool mounts_secret(std::string_view name) const;
  [[nodiscard]] const PodCondition* condition(std::string_view type) const;
  [[nodiscard]] bool ready() const;
};

/// A Secret without its bytes: its data keys, and a hash of each value to detect changes.
struct SecretRecord {
  ObjectMeta meta;
  StringMap value_hashes;  ///< data key -> hex SHA-256 of the decoded value, salted with the Secret's uid and
                           ///< ParseContext::secret_salt.
  StringMap sizes;         ///< data key -> length of the decoded value in bytes, in decimal.
  /// data key -> a hash without the uid, which shows whether two Secrets have the same value. Never shown or written.
  StringMap contents;
  std::string type;
  bool immutable = false;
};

struct Taint {
  std::string key, value, effect;
  friend bool operator==(const Taint&, const Taint&) = default;
};

/// The part of a Kubernetes node that caches store. Omits the node's images and most conditions, which are long and not
/// needed.
struct NodeRecord {
  ObjectMeta meta;
  bool unschedulable = false;
  bool ready = false;  ///< The kubelet reports that the node is ready, and has reported recently.
  std::vector<Taint> taints;
  std::vector<PodCondition> troubles;  ///< The conditions other than Ready that are True.
};

/// The metadata of an object of any kind (PartialObjectMetadata), for readers that need only the existence or the owners.
struct MetadataRecord {
  ObjectMeta meta;
};

struct Toleration {
  std::string key, op, value, effect;   ///< As in the spec. "" if unset: op is Equal; key and effect match all.
  std::optional<std::int64_t> seconds;  ///< The limit for NoExecute. nullopt: no limit.
  friend bool operator==(const Toleration&, const Toleration&) = default;
};
/// Maps the name of a resource ("cpu", "memory", "nvidia.com/gpu") to an amount in whole units: half a CPU is 0.5.
using ResourceAmounts = std::map<std::string, long double, std::less<>>;

/// The part of a pod that a scheduler needs, including PodRecord. Use it only for scheduling: it takes twice the memory.
struct SchedulingPodRecord : PodRecord {
  std::vector<std::string> gates;  ///< The scheduling gates of the pod that are not removed yet.
  bool annotated = false;          ///< The pod has annotations, even if `meta` omits them.
  /// The greatest exit code among the containers and init containers that have terminated. nullopt: none has terminated.
  std::optional<int> exit_code;
  std::string scheduler, priority_class;
  std::int32_t priority = 0;
  core::Duration grace{30000};  ///< spec.terminationGracePeriodSeconds.
  /// The resources that the scheduler counts for the pod. For each resource, this is the pod-level request if there is one.
  /// Otherwise it is the larger of two amounts: the sum over the containers and sidecars, and the largest sum of one init
  /// container and the sidecars before it. The overhead is added.
  ResourceAmounts requests;
  std::vector<Toleration> tolerations;
  StringMap node_selector;
  core::Json affinity;  ///< spec.affinity, unchanged; null: none.
};

/// The part of a node that a scheduler needs, including NodeRecord.
struct SchedulingNodeRecord : NodeRecord {
  ResourceAmounts allocatable;
  std::string internal_ip;  ///< The first InternalIP; "": none.
  std::vector<PodCondition> conditions;
};

using ObjectPtr = std::shared_ptr<const Object>;
using PodPtr = std::shared_ptr<const PodRecord>;
using SecretPtr = std::shared_ptr<const SecretRecord>;

/// Whether an object exists. kUnknown until the watch of the object has synced.
enum class Presence { kUnknown, kAbsent, kPresent };
template <class Record>
struct Named {
  Presence presence = Presence::kUnknown;
  std::shared_ptr<const Record> record;  ///< Null unless kPresent.
};

/// Returns the JSON of the metadata of a new object.
core::Json meta_json(const Key& key, const StringMap& labels = {}, const StringMap& annotations = {});
/// Returns a controller owner reference with blockOwnerDeletion, for metadata.ownerReferences.
core::Json owner_reference_json(const Resource& resource, const ObjectMeta& owner);

/// Reports whether the resourceVersion `have` is equal to `want` or newer. Both must belong to the same resource. Compares the
/// lengths first and then the bytes, as KEP-5504 allows. Returns true if `want` is "".
bool rv_at_least(std::string_view have, std::string_view want);

}  // namespace kube
