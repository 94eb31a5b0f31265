// The acts on Kubernetes that the steps of plans contain. kube::Target executes the acts.
//
// A plan writes random and secret values as recipes in the object. kube::Target replaces the recipes by values, so that no
// plan, log or scenario contains the values. Recipes in the "data" of a Secret:
//
//   {"$generate": {"bytes": 32}}
//     Random bytes, base64. With "as": "hex", their hexadecimal digits, for values that must be text.
//   {"$sshKey": {"type": "rsa" | "ecdsa" | "ed25519", "publicKey": DATA_KEY, "comment": ...}}
//     A new SSH key, base64, in OpenSSH's format. Its public key goes under another data key of the same Secret.
//   {"$mintToken": {"keyRef": {"namespace", "name", "key"}, "claims": {...}, "lifetimeSeconds": 900}}
//     An HS256 JWT, base64. iat, nbf, exp and jti are added.
//   {"$copy": {"namespace", "name", "key", "uid", "resourceVersion"}}
//     The value of another Secret, read live. Nothing is written if that Secret has another uid or version than the plan saw
//     (Conflict), or if it has no such key (NotFound).
//   {"$jwks": {"signs": 0, "keys": [{"namespace", "name", "key", "uid", "resourceVersion"}, ...]}}
//     A slurm.jwks of auth/slurm (https://slurm.schedmd.com/authentication.html) with the values of Secrets, each read like
//     $copy. `signs` is the index of the key that signs; all keys verify. A key has the same "kid" in each such file.
//   {"$requestToken": {"serviceAccount": {"namespace", "name"}, "audiences": [...], "expirationSeconds": 3600, ...}}
//     A token of a service account, base64. The other members are the spec of the TokenRequest, including "boundObjectRef".
//
// Folder src/kube: the data of kube that plans may use, which are Kubernetes objects, and acts on them. Uses core, and the data
// of run and plan. Code that reads or writes is in the subfolders.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "kube/object.hpp"
#include "plan/evidence.hpp"
#include "plan/plan.hpp"

namespace kube {

/// Creates an object that must not exist. If an object of that name exists, the outcome is AlreadyExists. Exception: the act
/// succeeds if a live read shows that an earlier attempt of ours created the object. This is so if the object is not being
/// deleted, and has the same controller owner (if any) and all our labels.
struct Create final : plan::Act {
  Create(Resource of, core::Json body) : resource(std::move(of)), object(std::move(body)) {}
  Resource resource;
  core::Json object;
  [[nodiscard]] core::Json describe() const override;
};

/// Server-side apply with a fixed field manager and strict field validation. The apply is forced: it takes fields from other
/// managers, because `manager` owns all fields that `object` sets.
struct Apply final : plan::Act {
  Apply(Resource of, core::Json body, std::string field_manager)
      : resource(std::move(of)), object(std::move(body)), manager(std::move(field_manager)) {}
  Resource resource;
  core::Json object;
  std::string manager;
  /// True if the plan has not seen an object of this name. If one exists anyway, the apply takes over the object only in two
  /// cases. First: the object has an owner of the same API group as our controller owner. Second: our object has no controller
  /// owner, and the existing object has no controller and all our labels. Otherwise the outcome is AlreadyExists.
  bool unseen = false;
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] Withhold withhold() const override { return Withhold::kLong; }
};

enum class PatchType { kMerge, kJson, kStrategic };

/// A patch. If set, uid and resource_version are preconditions. They are written into the metadata of a merge or strategic
/// patch, or as test operations of a JSON patch. Error: kConflict if a precondition does not hold.
struct Patch final : plan::Act {
  Resource resource;
  Key key;
  std::string subresource;  ///< "", "status" or "ephemeralcontainers".
  PatchType type = PatchType::kMerge;
  core::Json patch;
  std::string uid, resource_version;
  bool finalizer = false;  ///< The patch adds or removes a finalizer and does nothing else.
  [[nodiscard]] core::Json describe() const override;
  /// Returns kNever for a change of a finalizer. Instead, the act for which the finalizer was set is withheld.
  [[nodiscard]] Withhold withhold() const override { return finalizer ? Withhold::kNever : Withhold::kLong; }
};

/// Proves that a pod may be deleted: the deletion loses nothing, or the user wants the deletion. Other folders derive their
/// own kinds of evidence from this class.
class PodEvidence : public plan::Evidence {
 public:
  /// Returns the uid of the pod. The evidence does not cover a later pod with the same name.
  [[nodiscard]] const std::string& uid() const { return uid_; }
  /// Returns the resourceVersion of the pod that the evidence is about; "" if changes of the pod do not affect the evidence.
  [[nodiscard]] const std::string& resource_version() const { return resource_version_; }

 protected:
  enum class About {
    kPod,      ///< The pod in any version.
    kVersion,  ///< Only the version of the pod that was observed.
  };
  PodEvidence(const plan::Observing& observing, const PodRecord& pod, std::string_view kind, std::string detail,
              std::optional<core::MonoTime> good_until, About about = About::kPod)
      : Evidence(observing, kind, std::move(detail), good_until),
        uid_(pod.meta.uid),
        resource_version_(about == About::kVersion ? pod.meta.resource_version : "") {}

 private:
  std::string uid_, resource_version_;
};

/// Proves that the pod had no Kubernetes node when it was observed. Once a pod has a node, a missing container status proves
/// nothing: slurmd can run jobs a second before the API server learns that the container has started.
class NeverStarted final : public PodEvidence {
 public:
  static std::optional<NeverStarted> of(const plan::Observing& observing, const PodRecord& pod);

 private:
  using PodEvidence::PodEvidence;
};

/// Proves that the pod's phase is Failed or Succeeded.
class Ended final : public PodEvidence {
 public:
  static std::optional<Ended> of(const plan::Observing& observing, const PodRecord& pod);

 private:
  using PodEvidence::PodEvidence;
};

/// Deletes an object, with preconditions. Kubernetes then deletes the object's dependents in the background. Succeeds if the
/// object with this uid is gone. Errors: kInvalid without a uid, or for a pod without evidence about exactly this pod; kExpired
/// if the evidence is too old; kConflict if the object no longer has the required version.
struct Delete final : plan::Act {
  Resource resource;
  Key key;
  std::string uid;               ///< Required.
  std::string resource_version;  ///< Optional. If the evidence is about one version, that version takes precedence.
  std::optional<PodEvidence> evidence;
  /// The previous step of the lane checks live that the evidence still holds. So the evidence may have any age.
  bool fenced = false;
  /// Returns the version that the object must have; "" if any version is accepted.
  [[nodiscard]] const std::string& required_version() const;
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] bool destructive() const override { return true; }
};

/// Evicts a pod (subresource "eviction"). PodDisruptionBudgets apply. Like Delete, the act needs evidence about the pod.
/// Errors: kBusy with the reason "DisruptionBudget" if a budget does not allow the eviction; kConflict if the pod no longer
/// has the version that the evidence is about.
struct Evict final : plan::Act {
  Key pod;
  std::string uid;                            ///< Required.
  std::optional<std::int64_t> grace_seconds;  ///< nullopt: the pod's own grace period.
  std::optional<PodEvidence> evidence;
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] bool destructive() const override { return true; }
};

/// Reads an object live, for Plan::need. Get and List return the lengths of the values of a Secret, not the values.
struct Get final : plan::Act {
  Resource resource;
  Key key;
  [[nodiscard]] core::Json describe() const override;
};

/// Reads the last line of a container's log, for Plan::need. The result is {"log": TEXT}. TEXT is "" if, by the kubelet's
/// clock, the container has written nothing in the last `since` seconds.
struct Log final : plan::Act {
  Log(Key of, std::string from, std::chrono::seconds time) : pod(std::move(of)), container(std::move(from)), since(time) {}
  Key pod;
  std::string container;
  std::chrono::seconds since;
  [[nodiscard]] core::Json describe() const override;
};

/// Reports whether the API server and its admission would accept the creation of the object, for Plan::need. An existing object
/// of that name is no error, because the API server checks the name last.
struct DryRun final : plan::Act {
  DryRun(Resource of, core::Json body) : resource(std::move(of)), object(std::move(body)) {}
  Resource resource;
  core::Json object;
  [[nodiscard]] core::Json describe() const override;
};

/// Lists a few objects live, for Plan::need. The result is {"items": [...]} in the API server's order, with at most `limit`
/// items. If `limit` is 0, the result has all items, which are read page by page.
struct List final : plan::Act {
  Resource resource;
  std::string ns, field_selector, label_selector;
  int limit = 0;
  [[nodiscard]] core::Json describe() const override;
};

/// Writes an event about an object through the recorder. The act has no gate. A lost event is not an error.
struct EventAct final : plan::Act {
  Resource regarding;
  ObjectMeta object;
  std::string type;    ///< "Normal" or "Warning".
  std::string reason;  ///< Why, in one CamelCase word: "ScalingDown".
  std::string action;  ///< What is done, in one CamelCase word: "Scale".
  std::string note;
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] bool incidental() const override { return true; }
};

// Functions that make the usual acts. The act of merge_patch() fails if the object has changed since it was observed.
plan::ActPtr create(const Resource& resource, core::Json object);
plan::ActPtr merge_patch(const Resource& resource, const ObjectMeta& object, core::Json patch, std::string subresource = "");
/// Returns a JSON patch that fails if the object no longer has the version that was observed.
plan::ActPtr json_patch(const Resource& resource, const ObjectMeta& object, core::Json operations);
/// Returns a patch that does not depend on the object's version. The patch fails if the object was deleted and another object
/// was created under its name.
plan::ActPtr patch_any_version(const Resource& resource, const ObjectMeta& object, core::Json patch,
                               PatchType type = PatchType::kMerge, std::string subresource = "");
/// Selects whether a deletion fails if the pod has changed since it was observed. If the evidence is about one version of the
/// pod, the deletion fails with either value.
enum class PodVersion { kAny, kAsSeen };
/// Returns the deletion of a pod. A pod cannot be deleted without evidence.
plan::ActPtr delete_pod(const PodRecord& pod, PodEvidence evidence, PodVersion version = PodVersion::kAny);
/// Returns a deletion with evidence of any age. The step before the deletion must check live that the evidence holds.
plan::ActPtr delete_fenced_pod(const PodRecord& pod, PodEvidence evidence, PodVersion version = PodVersion::kAny);
/// Returns the deletion of one of our objects other than a pod. The act does not delete another object of the same name.
plan::ActPtr delete_object(const Resource& resource, const ObjectMeta& object);
/// Reports whether the object, given as metadata or as its whole JSON, has this finalizer.
[[nodiscard]] bool has_finalizer(const ObjectMeta& object, std::string_view finalizer);
[[nodiscard]] bool has_finalizer(const core::Json& object, std::string_view finalizer);
/// Returns a patch that adds or removes one finalizer; null if nothing is to change. The patch fails if the finalizers have
/// changed.
plan::ActPtr add_finalizer(const Resource& resource, const ObjectMeta& object, std::string_view finalizer);
plan::ActPtr remove_finalizer(const Resource& resource, const ObjectMeta& object, std::string_view finalizer);

}  // namespace kube
