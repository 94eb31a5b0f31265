// What can be done to Kubernetes, as steps of plans. Carried out by kube::Target.
//
// Values that are random or secret are written as recipes inside of the object; the executor fills them in, so that no plan,
// log or scenario holds them. In a Secret's "data":
//
//   {"$generate": {"bytes": 32}}
//     Random bytes, base64. With "as": "hex", their hexadecimal digits, for what has to be text.
//   {"$sshKey": {"type": "rsa" | "ecdsa" | "ed25519", "publicKey": DATA_KEY, "comment": ...}}
//     A new SSH key, base64, in OpenSSH's format; and its public key under another data key of the same Secret.
//   {"$mintToken": {"keyRef": {"namespace", "name", "key"}, "claims": {...}, "lifetimeSeconds": 900}}
//     An HS256 JWT, base64. iat, nbf, exp and jti are added.
//   {"$copy": {"namespace", "name", "key", "uid", "resourceVersion"}}
//     The value of another Secret, read live. Nothing is written if that is another object, or another version of it, than the
//     plan saw (Conflict), or if it has no such key (NotFound).
//   {"$jwks": {"signs": 0, "keys": [{"namespace", "name", "key", "uid", "resourceVersion"}, ...]}}
//     Slurm's slurm.jwks (jwks(5) of auth/slurm) of values of Secrets, each read as $copy reads it. `signs`: which of them
//     signs; all of them verify. A key has the same "kid" in each such file.
//   {"$requestToken": {"serviceAccount": {"namespace", "name"}, "audiences": [...], "expirationSeconds": 3600, ...}}
//     A token of a service account, base64. All but `serviceAccount` is the spec of the TokenRequest: "boundObjectRef" too.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "kube/object.hpp"
#include "plan/evidence.hpp"
#include "plan/plan.hpp"

namespace kube {

/// Must not exist. AlreadyExists is a failed outcome unless a live read finds what an earlier try made: an object of the same
/// controller, if it is to have one, and with all our labels.
struct Create final : plan::Act {
  Create(Resource of, core::Json body) : resource(std::move(of)), object(std::move(body)) {}
  Resource resource;
  core::Json object;
  [[nodiscard]] core::Json describe() const override;
};

/// Server-side apply with a fixed field manager; forced, since the manager owns what it names. Strict field validation.
struct Apply final : plan::Act {
  Apply(Resource of, core::Json body, std::string field_manager)
      : resource(std::move(of)), object(std::move(body)), manager(std::move(field_manager)) {}
  Resource resource;
  core::Json object;
  std::string manager;
  /// No such object was seen. One that is there all the same is taken over only if an owner of it is of the same API group as
  /// ours, or, if no controller is to own it, if none does and it has all our labels; else AlreadyExists.
  bool unseen = false;
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] Withhold withhold() const override { return Withhold::kLong; }
};

enum class PatchType { kMerge, kJson, kStrategic };

/// A patch. uid and resource_version, where given, become preconditions (in metadata of a merge patch, as test operations of a
/// JSON patch).
struct Patch final : plan::Act {
  Resource resource;
  Key key;
  std::string subresource;  ///< "", "status" or "ephemeralcontainers".
  PatchType type = PatchType::kMerge;
  core::Json patch;
  std::string uid, resource_version;
  bool finalizer = false;  ///< It adds or removes one, and nothing else.
  [[nodiscard]] core::Json describe() const override;
  /// Finalizers never wait: what they guard does.
  [[nodiscard]] Withhold withhold() const override { return finalizer ? Withhold::kNever : Withhold::kLong; }
};

/// That a pod may be deleted: nothing is lost with it, or the user wanted that. Other rooms have kinds of it for pods of
/// theirs.
class PodEvidence : public plan::Evidence {
 public:
  /// Of the pod that it speaks of, and of no later one of the name.
  [[nodiscard]] const std::string& uid() const { return uid_; }
  /// The resourceVersion of the pod that it speaks of; "": what it says outlasts changes to the pod.
  [[nodiscard]] const std::string& resource_version() const { return resource_version_; }

 protected:
  enum class About {
    kPod,      ///< However it changes.
    kVersion,  ///< Of the version that was seen, and of no later one.
  };
  PodEvidence(const plan::Observing& observing, const PodRecord& pod, std::string_view kind, std::string detail,
              std::optional<core::MonoTime> good_until, About about = About::kPod)
      : Evidence(observing, kind, std::move(detail), good_until),
        uid_(pod.meta.uid),
        resource_version_(about == About::kVersion ? pod.meta.resource_version : "") {}

 private:
  std::string uid_, resource_version_;
};

/// The pod, as it was seen, has no Kubernetes node yet. Of a pod that has one, nothing is concluded from what its kubelet has
/// not reported: slurmd may run jobs a second before the API server hears that its container started.
class NeverStarted final : public PodEvidence {
 public:
  static std::optional<NeverStarted> of(const plan::Observing& observing, const PodRecord& pod);

 private:
  using PodEvidence::PodEvidence;
};

/// Its phase is Failed or Succeeded.
class Ended final : public PodEvidence {
 public:
  static std::optional<Ended> of(const plan::Observing& observing, const PodRecord& pod);

 private:
  using PodEvidence::PodEvidence;
};

/// Deletes with preconditions, in the background; a missing object counts as done. Refused without a UID (kInvalid); a pod also
/// without evidence about that very pod (kInvalid), or when the evidence is not good any more (kExpired).
struct Delete final : plan::Act {
  Resource resource;
  Key key;
  std::string uid;               ///< Required.
  std::string resource_version;  ///< Optional. That of the evidence, if it has one, is used instead.
  std::optional<PodEvidence> evidence;
  /// The step before it in its lane has just looked whether the evidence still holds: its age does not count.
  bool fenced = false;
  /// The version that the object must have; "": any.
  [[nodiscard]] const std::string& required_version() const;
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] bool destructive() const override { return true; }
};

/// Evicts a pod (its subresource "eviction"): like Delete, but its PodDisruptionBudgets are asked. Busy, with the reason
/// "DisruptionBudget": one of them holds it. Needs evidence about the pod, as any way to delete one does. Conflict: it is of a
/// version of the pod that is no more.
struct Evict final : plan::Act {
  Key pod;
  std::string uid;                            ///< Required.
  std::optional<std::int64_t> grace_seconds;  ///< Empty: the pod's own.
  std::optional<PodEvidence> evidence;
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] bool destructive() const override { return true; }
};

/// A live read, for Plan::need.
struct Get final : plan::Act {
  Resource resource;
  Key key;
  [[nodiscard]] core::Json describe() const override;
};

/// The last line that a container of a pod has written, for Plan::need: the answer is {"log": TEXT}, with "" if it wrote none
/// within `since`, by its kubelet's clock.
struct Log final : plan::Act {
  Log(Key of, std::string from, std::chrono::seconds time) : pod(std::move(of)), container(std::move(from)), since(time) {}
  Key pod;
  std::string container;
  std::chrono::seconds since;
  [[nodiscard]] core::Json describe() const override;
};

/// Whether the API server, with its admission, would create the object, for Plan::need. One of that name may exist: it is
/// looked for last.
struct DryRun final : plan::Act {
  DryRun(Resource of, core::Json body) : resource(std::move(of)), object(std::move(body)) {}
  Resource resource;
  core::Json object;
  [[nodiscard]] core::Json describe() const override;
};

/// A live read of a few objects, for Plan::need: the answer is {"items": [...]}, at most `limit` of them (0: all, page by
/// page), in the API server's order.
struct List final : plan::Act {
  Resource resource;
  std::string ns, field_selector, label_selector;
  int limit = 0;
  [[nodiscard]] core::Json describe() const override;
};

/// An event about an object; written by the recorder, never gated, never a failure.
struct EventAct final : plan::Act {
  Resource regarding;
  ObjectMeta object;
  std::string type;    ///< "Normal" or "Warning".
  std::string reason;  ///< "ScalingDown".
  std::string action;  ///< "Scale".
  std::string note;
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] bool incidental() const override { return true; }
};

// Builders for the usual steps.
plan::ActPtr create(const Resource& resource, core::Json object);
plan::ActPtr merge_patch(const Resource& resource, const ObjectMeta& object, core::Json patch, std::string subresource = "");
/// Changes the object whatever its version is: only another object of its name is left alone.
plan::ActPtr patch_any_version(const Resource& resource, const ObjectMeta& object, core::Json patch,
                               PatchType type = PatchType::kMerge, std::string subresource = "");
/// Whether a delete is refused when the pod has changed since it was seen. With evidence that is true of the pod only as it was
/// seen, it always is.
enum class PodVersion { kAny, kAsSeen };
/// Deletes a pod: there is no way to do it without evidence.
plan::ActPtr delete_pod(const PodRecord& pod, PodEvidence evidence, PodVersion version = PodVersion::kAny);
/// For the step behind one that fails unless the evidence still holds, asked live: however long that took.
plan::ActPtr delete_fenced_pod(const PodRecord& pod, PodEvidence evidence, PodVersion version = PodVersion::kAny);
/// Deletes an object of ours that is not a pod, by uid.
plan::ActPtr delete_object(const Resource& resource, const ObjectMeta& object);
/// The object, of which there is a record or the whole body, has this finalizer.
[[nodiscard]] bool has_finalizer(const ObjectMeta& object, std::string_view finalizer);
[[nodiscard]] bool has_finalizer(const core::Json& object, std::string_view finalizer);
/// Adds or removes one finalizer, guarded by a test so that nobody else's is touched. Null when there is nothing to do.
plan::ActPtr add_finalizer(const Resource& resource, const ObjectMeta& object, std::string_view finalizer);
plan::ActPtr remove_finalizer(const Resource& resource, const ObjectMeta& object, std::string_view finalizer);

}  // namespace kube
