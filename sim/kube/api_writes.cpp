// Writes of the API server: creation with defaults, updates, patches, server-side apply, and deletion.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "core/hash.hpp"
#include "sim/kube/api_parts.hpp"
#include "sim/kube/merge.hpp"
#include "sim/kube/refusals.hpp"

namespace sim {

using core::Json;

namespace {

constexpr std::string_view kModified =
    "the object has been modified; please apply your changes to the latest version and try again";

std::size_t finalizer_count(const Json& object) {
  const Json* list = core::find(object, {"metadata", "finalizers"});
  return list == nullptr ? 0 : list->size();
}

void drop_empty(Json& metadata, const char* name) {
  if (metadata.contains(name) && (metadata[name].is_null() || metadata[name].empty())) metadata.erase(name);
}

/// Reports whether to record the field owners of a kind. Pods and similar kinds are often written and never applied, so
/// recording their owners would take time without any use.
bool follows_owners(const KubeKind& kind) {
  static const std::set<std::string> kNot{"pods", "nodes", "leases", "events", "endpointslices", "replicasets"};
  return !kNot.contains(kind.resource.plural);
}

/// Returns who owns the fields of an object. As long as only its creator has written the object, the creator owns all fields.
FieldOwners owners_of(const KubeKind& kind, const Stored& stored) {
  if (!stored.owners.empty()) return stored.owners;
  return {{"Update " + stored.creator, fields_of(stored.body, kind.custom)}};
}

FieldOwners owners_after(const KubeKind& kind, const Stored& before, const Json& after, const std::string& manager,
                         const std::string& subresource) {
  const bool only_creator = manager == before.creator && subresource.empty();
  if (after == before.body || (before.owners.empty() && (only_creator || !follows_owners(kind)))) return before.owners;
  const std::string owner = "Update " + manager + (subresource.empty() ? "" : "/" + subresource);
  return own_changes(before.body, after, owners_of(kind, before), owner, kind.custom);
}

}  // namespace

Json without(Json object, std::initializer_list<const char*> names) {
  for (const char* name : names) object.erase(name);
  return object;
}

ApiResult<Json> KubeApi::create(const kube::Resource& resource, Json object, const Caller& caller) {
  return create_owned(must_find(resource), std::move(object), caller, {});
}

ApiResult<Json> KubeApi::create_owned(const KubeKind& kind, Json object, const Caller& caller, FieldOwners owners) {
  const kube::Resource& resource = kind.resource;
  if (!object.is_object()) return std::unexpected(bad_request("the body is no object"));
  if (object.contains("kind") && object["kind"] != resource.kind) {
    return std::unexpected(
        bad_request(fmt::format("{} in version \"{}\" cannot be handled as a {}: no kind \"{}\" is registered",
                                object["kind"].dump(), resource.version, resource.kind, object["kind"].dump())));
  }
  Json& metadata = object["metadata"];
  if (!metadata.is_object()) metadata = Json::object();
  for (const char* name :
       {"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields"}) {
    metadata.erase(name);
  }
  if (!core::get_string(metadata, {"resourceVersion"}).empty()) {
    return std::unexpected(bad_request("resourceVersion should not be set on objects to be created"));
  }
  if (core::get_string(metadata, {"name"}).empty() && metadata.contains("generateName")) {
    metadata["name"] = core::get_string(metadata, {"generateName"}) + core::short_hash(new_uid(), 5);
  }
  const kube::Key key{resource.namespaced ? core::get_string(metadata, {"namespace"}) : "",
                      core::get_string(metadata, {"name"})};
  if (auto refusal = check_namespace(kind, key)) return std::unexpected(*refusal);
  if (kind.status) object.erase("status");
  if (auto refusal = check_object(kind, object, caller)) return std::unexpected(*refusal);
  if (kind.defaults) kind.defaults(object);
  if (kind.on_create) kind.on_create(object);
  for (const char* name : {"labels", "annotations", "finalizers", "ownerReferences"}) drop_empty(metadata, name);
  metadata["uid"] = new_uid();
  metadata["creationTimestamp"] = now();
  if (kind.generation) metadata["generation"] = 1;
  if (auto refusal = admit({"CREATE", resource, key, "", &object, nullptr, caller.user})) return std::unexpected(*refusal);
  if (store_.find(table_name(resource), key)) return std::unexpected(already_exists(resource, key.name));
  object.erase("apiVersion");
  object.erase("kind");
  if (caller.dry_run) return shown(kind, Stored{std::move(object), {}, 0});
  return shown(kind, *store_.put(table_name(resource), key, std::move(object), std::move(owners), caller.manager));
}

ApiResult<Json> KubeApi::write(const KubeKind& kind, const StoredPtr& before, Json after, const Caller& caller,
                               const std::string& subresource, std::optional<FieldOwners> owners, bool patched) {
  const auto written = store(kind, before, std::move(after), caller, subresource, std::move(owners), patched);
  if (!written) return std::unexpected(written.error());
  return shown(kind, **written);
}

ApiResult<StoredPtr> KubeApi::store(const KubeKind& kind, const StoredPtr& before, Json after, const Caller& caller,
                                    const std::string& subresource, std::optional<FieldOwners> owners, bool patched) {
  const Json& was = before->body;
  const kube::Key key = kube::key_of(was);
  Json& metadata = after["metadata"];
  if (!metadata.is_object()) metadata = Json::object();
  const std::string uid = core::get_string(metadata, {"uid"});
  if (!uid.empty() && uid != core::get_string(was, {"metadata", "uid"})) {
    if (patched) {
      return std::unexpected(
          invalid(kind.resource, key.name,
                  {{"metadata.uid", "FieldValueInvalid", fmt::format("Invalid value: \"{}\": field is immutable", uid)}}));
    }
    return std::unexpected(conflict(
        kind.resource, key.name,
        fmt::format("StorageError: invalid object, Code: 4, Key: /registry/{}{}/{}, ResourceVersion: 0, AdditionalErrorMsg: "
                    "Precondition failed: UID in precondition: {}, UID in object meta: {}",
                    kind.custom ? kind.resource.group + "/" : "", kind.resource.plural, key.str(), uid,
                    core::get_string(was, {"metadata", "uid"}))));
  }
  const std::string version = core::get_string(metadata, {"resourceVersion"});
  if (!version.empty() && version != core::get_string(was, {"metadata", "resourceVersion"})) {
    return std::unexpected(conflict(kind.resource, key.name, kModified));
  }

  after.erase("apiVersion");
  after.erase("kind");
  metadata.erase("managedFields");
  for (const char* name : {"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
                           "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generateName"}) {
    if (was["metadata"].contains(name)) {
      metadata[name] = was["metadata"][name];
    } else {
      metadata.erase(name);
    }
  }
  if (subresource == "status") {
    Json kept = was;
    if (after.contains("status")) {
      kept["status"] = after["status"];
    } else {
      kept.erase("status");
    }
    after = std::move(kept);
  } else if (subresource == "ephemeralcontainers") {
    Json kept = was;
    const Json before_it = was["spec"].value("ephemeralContainers", Json::array());
    Json containers = after["spec"].value("ephemeralContainers", Json::array());
    for (const Json& old : before_it) {
      if (std::ranges::find(containers, old) != containers.end()) continue;
      const std::string name = core::get_string(old, {"name"});
      return std::unexpected(
          invalid(kind.resource, key.name,
                  {{"spec.ephemeralContainers", "FieldValueForbidden",
                    fmt::format("Forbidden: existing ephemeral containers \"{}\" may not be changed\n", name)}}));
    }
    if (!containers.empty()) kept["spec"]["ephemeralContainers"] = std::move(containers);
    after = std::move(kept);
  } else if (kind.status) {
    if (was.contains("status")) {
      after["status"] = was["status"];
    } else {
      after.erase("status");
    }
  }
  Json& meta = after["metadata"];
  for (const char* name : {"labels", "annotations", "finalizers", "ownerReferences"}) drop_empty(meta, name);
  if (kind.defaults && subresource.empty()) kind.defaults(after);
  if (auto refusal = check_object(kind, after, caller)) return std::unexpected(*refusal);
  if (subresource.empty() && kind.validate_update) {
    const auto problems = kind.validate_update(was, after);
    if (!problems.empty()) return std::unexpected(invalid(kind.resource, key.name, problems));
  }
  if (terminating(was) && finalizer_count(after) > 0) {
    const Json* old_list = core::find(was, {"metadata", "finalizers"});
    for (const Json& finalizer : after["metadata"]["finalizers"]) {
      if (old_list != nullptr && std::find(old_list->begin(), old_list->end(), finalizer) != old_list->end()) continue;
      return std::unexpected(
          invalid(kind.resource, key.name,
                  {{"metadata.finalizers", "FieldValueForbidden",
                    fmt::format("Forbidden: no new finalizers can be added if the object is being deleted, found new "
                                "finalizers []string{{{}}}",
                                finalizer.dump())}}));
    }
  }
  if (kind.generation && subresource.empty()) {
    const bool spec_changed = kind.custom ? without(was, {"metadata", "status"}) != without(after, {"metadata", "status"})
                                          : was.value("spec", Json()) != after.value("spec", Json());
    if (spec_changed) after["metadata"]["generation"] = core::get_int(was, {"metadata", "generation"}) + 1;
  }
  if (auto refusal = admit({"UPDATE", kind.resource, key, subresource, &after, &was, caller.user}))
    return std::unexpected(*refusal);

  if (!owners) owners = owners_after(kind, *before, after, caller.manager, subresource);
  if (after == was && *owners == before->owners) return before;
  if (caller.dry_run) return std::make_shared<const Stored>(Stored{std::move(after), std::move(*owners), 0});
  const Json* space_finalizers = core::find(after, {"spec", "finalizers"});
  const bool held = kind.resource.plural == "namespaces" && space_finalizers != nullptr && !space_finalizers->empty();
  if (terminating(after) && !held && finalizer_count(after) == 0 &&
      core::get_int(after, {"metadata", "deletionGracePeriodSeconds"}) == 0) {
    // Deletes without storing `after`, because watches report the object as it was before, with its finalizers.
    store_.erase(table_name(kind.resource), key);
    return std::make_shared<const Stored>(Stored{std::move(after), std::move(*owners), before->revision});
  }
  return store_.put(table_name(kind.resource), key, std::move(after), std::move(*owners));
}

ApiResult<Json> KubeApi::update(const kube::Resource& resource, Json object, const Caller& caller,
                                const std::string& subresource) {
  const KubeKind& kind = must_find(resource);
  const kube::Key key{resource.namespaced ? core::get_string(object, {"metadata", "namespace"}) : "",
                      core::get_string(object, {"metadata", "name"})};
  const StoredPtr before = store_.find(table_name(resource), key);
  if (!before) return std::unexpected(not_found(resource, key.name));
  const bool conditional_only = kind.custom || resource.plural == "leases";
  if (conditional_only && core::get_string(object, {"metadata", "resourceVersion"}).empty()) {
    kube::Resource named = resource;  // this error has the resource where others have the kind
    named.kind = resource.plural;
    return std::unexpected(
        invalid(named, key.name,
                {{"metadata.resourceVersion", "FieldValueInvalid", "Invalid value: 0: must be specified for an update"}}));
  }
  return write(kind, before, std::move(object), caller, subresource, std::nullopt);
}

ApiResult<Json> KubeApi::patch(const kube::Resource& resource, const kube::Key& key, PatchKind how, const Json& patch,
                               const Caller& caller, const std::string& subresource, bool force, bool* created) {
  const KubeKind& kind = must_find(resource);
  if (how == PatchKind::kApply) return apply(kind, key, patch, caller, subresource, force, created);
  const StoredPtr before = store_.find(table_name(resource), key);
  if (!before) return std::unexpected(not_found(resource, key.name));
  Json after = before->body;
  after["apiVersion"] = resource.api_version();
  after["kind"] = resource.kind;
  if (how == PatchKind::kMerge) {
    merge_patch(after, patch);
  } else if (how == PatchKind::kStrategic) {
    strategic_patch(after, patch);
  } else {
    auto patched = json_patch(after, patch);
    if (!patched) {
      return std::unexpected(make_status(422, "Invalid", "the server rejected our request due to an error in our request"));
    }
    after = std::move(*patched);
  }
  if (core::get_string(after, {"metadata", "name"}) != key.name) {
    return std::unexpected(bad_request(fmt::format("the name of the object ({}) does not match the name on the URL ({})",
                                                   core::get_string(after, {"metadata", "name"}), key.name)));
  }
  return write(kind, before, std::move(after), caller, subresource, std::nullopt, true);
}

ApiResult<Json> KubeApi::apply(const KubeKind& kind, const kube::Key& key, const Json& config, const Caller& caller,
                               const std::string& subresource, bool force, bool* created) {
  if (created != nullptr) *created = false;
  if (!config.is_object() || config.value("kind", "") != kind.resource.kind ||
      config.value("apiVersion", "") != kind.resource.api_version()) {
    return std::unexpected(bad_request("invalid object type: apiVersion and kind must be those of the resource"));
  }
  if (core::find(config, {"metadata", "managedFields"}) != nullptr) {
    return std::unexpected(bad_request("metadata.managedFields must be nil"));
  }
  if (core::get_string(config, {"metadata", "name"}, key.name) != key.name) {
    return std::unexpected(bad_request("the name of the object does not match the name on the URL"));
  }
  const std::string manager = "Apply " + caller.manager + (subresource.empty() ? "" : "/" + subresource);
  Json wanted = config;
  if (subresource == "status") {
    wanted = Json{{"metadata", Json::object()}};
    if (config.contains("status")) wanted["status"] = config["status"];
  } else if (kind.status) {
    wanted.erase("status");
  }
  wanted["metadata"]["name"] = key.name;
  if (kind.resource.namespaced) wanted["metadata"]["namespace"] = key.ns;

  const StoredPtr before = store_.find(table_name(kind.resource), key);
  if (!before) {
    if (!subresource.empty()) return std::unexpected(not_found(kind.resource, key.name));
    const std::string uid = core::get_string(config, {"metadata", "uid"});
    if (!uid.empty()) {
      return std::unexpected(
          conflict(kind.resource, key.name,
                   fmt::format("uid mismatch: the provided object specified uid {}, and no existing object was found", uid)));
    }
    auto made = create_owned(kind, wanted, caller, {{manager, fields_of(wanted, kind.custom)}});
    if (made && created != nullptr) *created = true;
    return made;
  }
  const Json& live = before->body;
  const FieldOwners owners = owners_of(kind, *before);
  ApplyResult result = apply_config(live, owners, wanted, manager, force, kind.custom);
  if (!result.conflicts.empty()) return std::unexpected(apply_conflict(kind.resource, result.conflicts));
  // uid and resourceVersion in an apply are preconditions, which write() checks.
  for (const char* name : {"uid", "resourceVersion"}) {
    const std::string value = core::get_string(config, {"metadata", name});
    if (!value.empty()) result.object["metadata"][name] = value;
  }
  return write(kind, before, std::move(result.object), caller, subresource, std::move(result.owners), true);
}

Json KubeApi::finish_removal(const KubeKind& kind, const kube::Key& key) {
  const StoredPtr last = store_.find(table_name(kind.resource), key);
  Json object = shown(kind, *last);
  store_.erase(table_name(kind.resource), key);
  return object;
}

ApiResult<Json> KubeApi::remove(const kube::Resource& resource, const kube::Key& key, const Deletion& deletion,
                                const Caller& caller) {
  const KubeKind& kind = must_find(resource);
  const std::string table = table_name(resource);
  const StoredPtr before = store_.find(table, key);
  if (!before) return std::unexpected(not_found(resource, key.name));
  const Json& was = before->body;
  const std::string uid = core::get_string(was, {"metadata", "uid"});
  const std::string version = core::get_string(was, {"metadata", "resourceVersion"});
  if (!deletion.uid.empty() && deletion.uid != uid) {
    return std::unexpected(
        delete_conflict(resource, key.name,
                        fmt::format("the UID in the precondition ({}) does not match the UID in record ({}). The object might "
                                    "have been deleted and then recreated",
                                    deletion.uid, uid)));
  }
  if (!deletion.resource_version.empty() && deletion.resource_version != version) {
    return std::unexpected(
        delete_conflict(resource, key.name,
                        fmt::format("the ResourceVersion in the precondition ({}) does not match the ResourceVersion in record "
                                    "({}). The object might have been modified",
                                    deletion.resource_version, version)));
  }
  if (auto refusal = admit({"DELETE", resource, key, "", nullptr, &was, caller.user})) return std::unexpected(*refusal);
  if (caller.dry_run) return shown(kind, *before);

  Json after = was;
  Json& metadata = after["metadata"];
  int grace = 0;
  if (kind.graceful) {
    const bool no_kubelet = core::get_string(was, {"spec", "nodeName"}).empty() || ended(was);
    const int wished =
        deletion.grace_seconds.value_or(static_cast<int>(core::get_int(was, {"spec", "terminationGracePeriodSeconds"}, 30)));
    grace = no_kubelet ? 0 : wished;
  }
  Json finalizers = metadata.value("finalizers", Json::array());
  const auto drop = [&](const char* name) {
    Json kept = Json::array();
    for (const Json& finalizer : finalizers) {
      if (finalizer != name) kept.push_back(finalizer);
    }
    finalizers = std::move(kept);
  };
  if (!terminating(was) && !deletion.propagation.empty()) {
    drop("foregroundDeletion");
    drop("orphan");
    if (deletion.propagation == "Foreground") finalizers.push_back("foregroundDeletion");
    if (deletion.propagation == "Orphan") finalizers.push_back("orphan");
  }
  if (resource.plural == "namespaces") {
    after["status"]["phase"] = "Terminating";
    grace = 0;
  }
  // A namespace stays until the namespace controller has removed the finalizers in its spec.
  const bool waits = !finalizers.empty() || grace > 0 || resource.plural == "namespaces";
  if (!waits) {
    if (kind.graceful) {  // watches see that it is being deleted, and then its deletion
      metadata["deletionTimestamp"] = now();
      metadata["deletionGracePeriodSeconds"] = 0;
      if (!terminating(was)) metadata["generation"] = core::get_int(was, {"metadata", "generation"}) + 1;
      store_.put(table, key, std::move(after), before->owners);
    }
    return finish_removal(kind, key);
  }

  if (finalizers.empty()) {
    metadata.erase("finalizers");
  } else {
    metadata["finalizers"] = finalizers;
  }
  if (!terminating(was)) {
    metadata["deletionTimestamp"] = core::format_rfc3339(loop_.clock().wall() + std::chrono::seconds(grace));
    metadata["deletionGracePeriodSeconds"] = grace;
    if (kind.generation && metadata.contains("generation"))
      metadata["generation"] = core::get_int(metadata, {"generation"}) + 1;
  } else if (grace < core::get_int(metadata, {"deletionGracePeriodSeconds"})) {
    metadata["deletionTimestamp"] = core::format_rfc3339(loop_.clock().wall() + std::chrono::seconds(grace));
    metadata["deletionGracePeriodSeconds"] = grace;
  }
  if (after == was) return shown(kind, *before);
  return shown(kind, *store_.put(table, key, std::move(after), before->owners));
}

bool KubeApi::modify(const kube::Resource& resource, const kube::Key& key, const std::function<void(Json&)>& change,
                     const Caller& caller, const std::string& subresource) {
  const KubeKind& kind = must_find(resource);
  const StoredPtr before = store_.find(table_name(resource), key);
  if (!before) return false;
  Json after = before->body;
  change(after);
  return store(kind, before, std::move(after), caller, subresource, std::nullopt).has_value();
}

}  // namespace sim
