#include "kube/acts.hpp"

#include <algorithm>

namespace kube {

namespace {

core::Json evidence_json(const PodEvidence& evidence) {
  return {{"kind", evidence.kind()}, {"subject", evidence.uid()}, {"detail", evidence.detail()}};
}

core::Json base(std::string_view act, const Resource& resource, const Key& key) {
  core::Json json = {{"act", act}, {"kind", resource.kind}, {"name", key.name}};
  if (!resource.group.empty()) json["group"] = resource.group;
  if (!key.ns.empty()) json["namespace"] = key.ns;
  return json;
}

std::string_view to_string(PatchType type) {
  switch (type) {
    case PatchType::kMerge:
      return "merge";
    case PatchType::kJson:
      return "json";
    case PatchType::kStrategic:
      return "strategic";
  }
  return "?";
}

}  // namespace

core::Json Create::describe() const {
  core::Json json = base("kube.Create", resource, key_of(object));
  json["object"] = object;
  return json;
}

core::Json DryRun::describe() const {
  core::Json json = base("kube.DryRun", resource, key_of(object));
  json["object"] = object;
  return json;
}

core::Json Apply::describe() const {
  core::Json json = base("kube.Apply", resource, key_of(object));
  json["manager"] = manager;
  json["object"] = object;
  return json;
}

core::Json Patch::describe() const {
  core::Json json = base("kube.Patch", resource, key);
  json["type"] = to_string(type);
  json["patch"] = patch;
  if (!subresource.empty()) json["subresource"] = subresource;
  if (!uid.empty()) json["uid"] = uid;
  if (!resource_version.empty()) json["resourceVersion"] = resource_version;
  return json;
}

core::Json Delete::describe() const {
  core::Json json = base("kube.Delete", resource, key);
  json["uid"] = uid;
  json["propagation"] = "Background";
  if (!required_version().empty()) json["resourceVersion"] = required_version();
  if (evidence) json["evidence"] = evidence_json(*evidence);
  return json;
}

const std::string& Delete::required_version() const {
  return evidence && !evidence->resource_version().empty() ? evidence->resource_version() : resource_version;
}

core::Json Evict::describe() const {
  core::Json json = base("kube.Evict", resources::kPod, pod);
  json["uid"] = uid;
  if (grace_seconds) json["graceSeconds"] = *grace_seconds;
  if (evidence && !evidence->resource_version().empty()) json["resourceVersion"] = evidence->resource_version();
  if (evidence) json["evidence"] = evidence_json(*evidence);
  return json;
}

core::Json Get::describe() const {
  return base("kube.Get", resource, key);
}

core::Json Log::describe() const {
  core::Json json = base("kube.Log", resources::kPod, pod);
  json["container"] = container;
  json["sinceSeconds"] = since.count();
  return json;
}

core::Json List::describe() const {
  core::Json json = base("kube.List", resource, {ns, ""});
  json["fieldSelector"] = field_selector;
  if (!label_selector.empty()) json["labelSelector"] = label_selector;
  json["limit"] = limit;
  return json;
}

core::Json EventAct::describe() const {
  core::Json json = base("kube.Event", regarding, object.key());
  json["type"] = type;
  json["reason"] = reason;
  json["action"] = action;
  json["note"] = note;
  return json;
}

plan::ActPtr create(const Resource& resource, core::Json object) {
  return std::make_shared<Create>(resource, std::move(object));
}

namespace {

std::shared_ptr<Patch> patch_of(const Resource& resource, const ObjectMeta& object, core::Json patch, std::string subresource) {
  auto act = std::make_shared<Patch>();
  act->resource = resource;
  act->key = object.key();
  act->subresource = std::move(subresource);
  act->patch = std::move(patch);
  act->uid = object.uid;
  return act;
}

std::shared_ptr<Delete> deletion(const Resource& resource, const ObjectMeta& object) {
  auto act = std::make_shared<Delete>();
  act->resource = resource;
  act->key = object.key();
  act->uid = object.uid;
  return act;
}

std::shared_ptr<Delete> deletion_of_pod(const PodRecord& pod, PodEvidence evidence, PodVersion version) {
  auto act = deletion(resources::kPod, pod.meta);
  if (version == PodVersion::kAsSeen) act->resource_version = pod.meta.resource_version;
  act->evidence = std::move(evidence);
  return act;
}

}  // namespace

plan::ActPtr merge_patch(const Resource& resource, const ObjectMeta& object, core::Json patch, std::string subresource) {
  auto act = patch_of(resource, object, std::move(patch), std::move(subresource));
  act->resource_version = object.resource_version;
  return act;
}

plan::ActPtr json_patch(const Resource& resource, const ObjectMeta& object, core::Json operations) {
  auto act = patch_of(resource, object, std::move(operations), "");
  act->type = PatchType::kJson;
  act->resource_version = object.resource_version;
  return act;
}

plan::ActPtr patch_any_version(const Resource& resource, const ObjectMeta& object, core::Json patch, PatchType type,
                               std::string subresource) {
  auto act = patch_of(resource, object, std::move(patch), std::move(subresource));
  act->type = type;
  return act;
}

plan::ActPtr delete_pod(const PodRecord& pod, PodEvidence evidence, PodVersion version) {
  return deletion_of_pod(pod, std::move(evidence), version);
}

plan::ActPtr delete_fenced_pod(const PodRecord& pod, PodEvidence evidence, PodVersion version) {
  auto act = deletion_of_pod(pod, std::move(evidence), version);
  act->fenced = true;
  return act;
}

plan::ActPtr delete_object(const Resource& resource, const ObjectMeta& object) {
  return deletion(resource, object);
}

bool has_finalizer(const ObjectMeta& object, std::string_view finalizer) {
  return std::ranges::find(object.finalizers, finalizer) != object.finalizers.end();
}

bool has_finalizer(const core::Json& object, std::string_view finalizer) {
  const core::Json* list = core::find(object, {"metadata", "finalizers"});
  const auto same = [&](const core::Json& item) { return item.is_string() && item.get_ref<const std::string&>() == finalizer; };
  return list != nullptr && std::ranges::any_of(*list, same);
}

plan::ActPtr add_finalizer(const Resource& resource, const ObjectMeta& object, std::string_view finalizer) {
  if (has_finalizer(object, finalizer)) return nullptr;
  auto act = std::make_shared<Patch>();
  act->resource = resource;
  act->key = object.key();
  act->type = PatchType::kJson;
  act->uid = object.uid;
  act->finalizer = true;
  if (object.finalizers.empty()) {
    // The patch would overwrite a list that somebody else has created since, so it requires the version that we
    // saw.
    act->resource_version = object.resource_version;
    act->patch = {{{"op", "add"}, {"path", "/metadata/finalizers"}, {"value", {finalizer}}}};
  } else {
    act->patch = {{{"op", "test"}, {"path", "/metadata/finalizers"}, {"value", object.finalizers}},
                  {{"op", "add"}, {"path", "/metadata/finalizers/-"}, {"value", finalizer}}};
  }
  return act;
}

plan::ActPtr remove_finalizer(const Resource& resource, const ObjectMeta& object, std::string_view finalizer) {
  const auto it = std::ranges::find(object.finalizers, finalizer);
  if (it == object.finalizers.end()) return nullptr;
  const std::string path = "/metadata/finalizers/" + std::to_string(it - object.finalizers.begin());
  auto act = std::make_shared<Patch>();
  act->resource = resource;
  act->key = object.key();
  act->type = PatchType::kJson;
  act->uid = object.uid;
  act->finalizer = true;
  act->patch = {{{"op", "test"}, {"path", path}, {"value", finalizer}}, {{"op", "remove"}, {"path", path}}};
  return act;
}

std::optional<NeverStarted> NeverStarted::of(const plan::Observing& observing, const PodRecord& pod) {
  if (pod.phase != "Pending" || !pod.node_name.empty()) return std::nullopt;
  return NeverStarted(observing, pod, "NeverStarted", pod.meta.key().str() + " has no node yet", std::nullopt, About::kVersion);
}

std::optional<Ended> Ended::of(const plan::Observing& observing, const PodRecord& pod) {
  if (pod.phase != "Failed" && pod.phase != "Succeeded") return std::nullopt;
  return Ended(observing, pod, "Ended", "phase " + pod.phase, std::nullopt);
}

}  // namespace kube
