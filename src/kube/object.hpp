// Kubernetes objects as the caches hold them: compact records, never managedFields, never secret bytes.
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

/// A served resource. `plural` is the path segment.
struct Resource {
  std::string group;  ///< "" for the core group.
  std::string version;
  std::string kind;
  std::string plural;
  bool namespaced = true;

  [[nodiscard]] std::string api_version() const { return group.empty() ? version : group + "/" + version; }
  /// "/apis/apps/v1/namespaces/ns/statefulsets/name"; empty name: the collection; empty ns: all namespaces.
  [[nodiscard]] std::string path(std::string_view ns, std::string_view name = "", std::string_view subresource = "") const;
  friend bool operator==(const Resource&, const Resource&) = default;
};

namespace resources {
extern const Resource kPod, kService, kConfigMap, kSecret, kNode, kServiceAccount, kNamespace, kPersistentVolumeClaim,
    kStatefulSet, kDeployment, kControllerRevision, kEndpointSlice, kLease, kEvent, kPodDisruptionBudget,
    kCustomResourceDefinition;
}

using Key = run::Key;
/// Of an object as the API server gives it; what it lacks is "".
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
  [[nodiscard]] const OwnerReference* controller_owner() const;
  [[nodiscard]] std::string_view label(std::string_view name) const;       ///< "" when absent.
  [[nodiscard]] std::string_view annotation(std::string_view name) const;  ///< "" when absent.
  [[nodiscard]] bool terminating() const { return deletion_timestamp.has_value(); }
};
ObjectMeta parse_meta(const core::Json& object);

/// A whole object, for kinds of which there are few: our own resources and owned children.
struct Object {
  ObjectMeta meta;
  core::Json body;  ///< Without metadata.managedFields.
};

/// A condition of a status of a pod or a node.
struct PodCondition {
  std::string type, status, reason, message;
  friend bool operator==(const PodCondition&, const PodCondition&) = default;
};

struct ContainerState {
  std::string name;
  bool init = false;
  bool ready = false;
  bool started_once = false;  ///< It runs, or ran (restartCount > 0, running, terminated, or a lastState).
  int restarts = 0;
  std::string waiting_reason;  ///< "ImagePullBackOff", "CrashLoopBackOff" ... or "".
  std::string message;         ///< Of the waiting state; of one that crashed or ended, what it said at its end.
  std::string last_message{};  ///< Of one that runs: what it said when it last ended with an error.
  /// It ended with an error more than once and does not run: CrashLoopBackOff, or the time until that shows.
  bool crashed = false;
};

/// A container that was added to a pod that runs.
struct EphemeralContainer {
  std::string name;
  std::optional<core::WallTime> done{};  ///< When it ended with 0, by its kubelet's clock; in seconds.
  bool failed = false;                   ///< It ended otherwise. It is not started again.
};

/// How long a pod stays on a node that Kubernetes has tainted (NoExecute) because its kubelet is away.
struct Patience {
  std::int32_t index = -1;              ///< Where its toleration of that taint stands in spec.tolerations; -1: it has none.
  std::optional<std::int64_t> seconds;  ///< Empty, with a toleration: without limit, or it is of all taints.
  friend bool operator==(const Patience&, const Patience&) = default;
};
inline constexpr std::string_view kTaintNotReady = "node.kubernetes.io/not-ready";
inline constexpr std::string_view kTaintUnreachable = "node.kubernetes.io/unreachable";

/// The fields of a container that hold probes.
inline constexpr std::array<std::string_view, 3> kProbes{"startupProbe", "livenessProbe", "readinessProbe"};

/// What we keep of a pod: about 1 KB of 12.
struct PodRecord {
  ObjectMeta meta;
  std::string node_name, hostname, phase, pod_ip, reason, message;
  std::string pinned_to;  ///< The one Kubernetes node that its required node affinity names (metadata.name); "": none does.
  bool host_network = false;
  std::string image;  ///< Of its first container.
  std::vector<PodCondition> conditions;
  std::vector<ContainerState> containers;
  std::vector<EphemeralContainer> ephemeral;
  std::optional<core::WallTime> ready_since;  ///< Since when it is ready, where it is and says so.
  Patience not_ready, unreachable;            ///< Of the taints of these names.
  std::vector<std::string> secrets;           ///< Names of the Secrets that its volumes mount, as they stand there.
  std::vector<std::string> http_probed;       ///< Names of its containers that are probed by HTTP.
  [[nodiscard]] bool mounts_secret(std::string_view name) const;
  [[nodiscard]] const PodCondition* condition(std::string_view type) const;
  [[nodiscard]] bool ready() const;
};

/// A Secret without its bytes: which keys it has, and a hash of each value to see changes by.
struct SecretRecord {
  ObjectMeta meta;
  StringMap value_hashes;  ///< data key -> hex SHA-256 of the decoded value, salted with its uid and ParseContext::secret_salt.
  StringMap sizes;         ///< data key -> decimal length in bytes of the decoded value.
  /// data key -> the same hash without the uid, to tell whether two Secrets hold the same. It is shown and written nowhere.
  StringMap contents;
  std::string type;
  bool immutable = false;
};

struct Taint {
  std::string key, value, effect;
  friend bool operator==(const Taint&, const Taint&) = default;
};

/// What we keep of a Kubernetes node: its images and most of its conditions are long and of no use here.
struct NodeRecord {
  ObjectMeta meta;
  bool unschedulable = false;
  bool ready = false;  ///< Its kubelet says so, and was heard lately.
  std::vector<Taint> taints;
  std::vector<PodCondition> troubles;  ///< Those of its other conditions that are True.
};

/// An object of any kind without what it is about (PartialObjectMetadata): to see that it is there, and whose.
struct MetadataRecord {
  ObjectMeta meta;
};

struct Toleration {
  std::string key, op, value, effect;   ///< As they stand: "" where unset (op: Equal; key and effect: all).
  std::optional<std::int64_t> seconds;  ///< Of NoExecute; empty: without limit.
  friend bool operator==(const Toleration&, const Toleration&) = default;
};
/// By name of the resource ("cpu", "memory", "nvidia.com/gpu"), in whole units: half a CPU is 0.5.
using ResourceAmounts = std::map<std::string, long double, std::less<>>;

/// What a scheduler needs of a pod, beside all that PodRecord has. Not for caches that do not schedule: it takes twice as much.
struct SchedulingPodRecord : PodRecord {
  std::vector<std::string> gates;  ///< Of its scheduling, not yet removed.
  std::string scheduler, priority_class;
  std::int32_t priority = 0;
  /// What it takes of a node, as the scheduler counts it: the larger of what its containers take together and what any init
  /// container takes beside the sidecars before it; what the pod asks for as a whole; and its overhead.
  ResourceAmounts requests;
  std::vector<Toleration> tolerations;
  StringMap node_selector;
  core::Json affinity;  ///< spec.affinity as it stands; null: none.
};

/// What a scheduler needs of a node, beside what NodeRecord has.
struct SchedulingNodeRecord : NodeRecord {
  ResourceAmounts allocatable;
  std::vector<PodCondition> conditions;
};

using ObjectPtr = std::shared_ptr<const Object>;
using PodPtr = std::shared_ptr<const PodRecord>;
using SecretPtr = std::shared_ptr<const SecretRecord>;

/// Whether an object exists. Until its watch has synced that is kUnknown, which is not kAbsent.
enum class Presence { kUnknown, kAbsent, kPresent };
template <class Record>
struct Named {
  Presence presence = Presence::kUnknown;
  std::shared_ptr<const Record> record;
};

/// Metadata for an object we build.
core::Json meta_json(const Key& key, const StringMap& labels = {}, const StringMap& annotations = {});
/// A controller owner reference with blockOwnerDeletion, as an item of metadata.ownerReferences.
core::Json owner_reference_json(const Resource& resource, const ObjectMeta& owner);

/// Compares resourceVersions as KEP-5504 allows: by length, then bytes. Only of one resource type.
bool rv_at_least(std::string_view have, std::string_view want);

}  // namespace kube
