#include "sim/kube/controllers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/hash.hpp"
#include "kube/acts.hpp"

namespace sim {

using core::Json;
namespace res = kube::resources;

namespace {

const kube::Resource kReplicaSet{"apps", "v1", "ReplicaSet", "replicasets", true};
constexpr const char* kNotReady = "node.kubernetes.io/not-ready";
constexpr const char* kUnreachable = "node.kubernetes.io/unreachable";

Caller caller(std::string name) {
  Caller out;
  out.user = "system:serviceaccount:kube-system:" + name;
  out.manager = std::move(name);
  return out;
}

std::string uid_of(const Json& object) {
  return core::get_string(object, {"metadata", "uid"});
}

std::string controller_uid(const Json& object) {
  const Json* owners = core::find(object, {"metadata", "ownerReferences"});
  if (owners == nullptr) return "";
  for (const Json& owner : *owners) {
    if (core::get_bool(owner, {"controller"})) return core::get_string(owner, {"uid"});
  }
  return "";
}

Json owner_reference(const kube::Resource& resource, const Json& owner) {
  return {{"apiVersion", resource.api_version()}, {"kind", resource.kind}, {"name", owner["metadata"]["name"]},
          {"uid", owner["metadata"]["uid"]},      {"controller", true},    {"blockOwnerDeletion", true}};
}

Json pod_from_template(const kube::Resource& resource, const Json& owner) {
  const Json& spec = owner["spec"]["template"];
  Json pod{
      {"metadata",
       {{"namespace", owner["metadata"]["namespace"]}, {"ownerReferences", Json::array({owner_reference(resource, owner)})}}},
      {"spec", spec.value("spec", Json::object())}};
  for (const char* name : {"labels", "annotations"}) {
    if (const Json* map = core::find(spec, {"metadata", name})) pod["metadata"][name] = *map;
  }
  return pod;
}

Json condition(const std::string& type, bool status, const std::string& reason, const std::string& at) {
  return {{"type", type},
          {"status", status ? "True" : "False"},
          {"reason", reason},
          {"lastUpdateTime", at},
          {"lastTransitionTime", at}};
}

}  // namespace

bool selects(const Json& selector, const Json& labels) {
  const Json* match = selector.contains("matchLabels") ? &selector["matchLabels"] : nullptr;
  if (match != nullptr && !match->empty() && !core::contains(labels, *match)) return false;
  if (selector.contains("matchExpressions")) {
    for (const Json& expression : selector["matchExpressions"]) {
      const std::string key = core::get_string(expression, {"key"});
      const std::string op = core::get_string(expression, {"operator"});
      const bool has = labels.contains(key);
      const Json values = expression.value("values", Json::array());
      const bool listed = has && std::find(values.begin(), values.end(), labels[key]) != values.end();
      if ((op == "In" && !listed) || (op == "NotIn" && listed) || (op == "Exists" && !has) || (op == "DoesNotExist" && has))
        return false;
    }
  }
  return true;
}

std::vector<Json> tolerations_of(const Json& pod, const Json& taint) {
  std::vector<Json> out;
  const Json* tolerations = core::find(pod, {"spec", "tolerations"});
  if (tolerations == nullptr) return out;
  for (const Json& toleration : *tolerations) {
    const auto fits = [&](const char* field) {
      const std::string wanted = core::get_string(toleration, {field});
      return wanted.empty() || wanted == core::get_string(taint, {field});
    };
    const bool any_value = core::get_string(toleration, {"operator"}) == "Exists";
    const bool same_value = core::get_string(toleration, {"value"}) == core::get_string(taint, {"value"});
    if (fits("key") && fits("effect") && (any_value || same_value)) out.push_back(toleration);
  }
  return out;
}

struct KubeControllers::Impl : std::enable_shared_from_this<KubeControllers::Impl> {
  Impl(KubeApi& a, SeededRandom r, ControllerOptions o) : api(a), random(std::move(r)), options(o) {}

  struct Place {
    std::string table;
    kube::Key key;
    auto operator<=>(const Place&) const = default;
  };
  using Sync = void (Impl::*)(const kube::Key&);

  KubeApi& api;
  SeededRandom random;
  ControllerOptions options;
  std::set<std::string> pending;                      ///< The ids of queued work.
  std::map<std::string, Place> by_uid;                ///< Maps a uid to the table and key of the object.
  std::map<std::string, std::set<Place>> dependents;  ///< Maps the uid of an owner to its dependents.
  struct Eviction {
    std::string uid;
    core::MonoTime at;
    bool operator==(const Eviction&) const = default;
  };
  std::map<kube::Key, Eviction> evictions;  ///< Maps a pod on a tainted node to its planned eviction.

  core::Duration delay() { return core::Duration{random.between(options.least_delay.count(), options.most_delay.count())}; }

  /// Does the work once after a delay, even if it is queued again before.
  void queue(const std::string& name, const kube::Key& key, Sync sync, core::Duration more = core::Duration{0}) {
    const std::string id = name + " " + key.str();
    if (!pending.insert(id).second) return;
    api.loop().after(delay() + more, [weak = weak_from_this(), id, key, sync] {
      const auto self = weak.lock();
      if (!self) return;
      self->pending.erase(id);
      (self.get()->*sync)(key);
    });
  }

  void on_change(const std::string& table, const ChangePtr& change) {
    index(table, *change);
    const Json& object = change->object->body;
    if (options.garbage) watch_garbage(table, *change);
    if (table == "namespaces" && terminating(object)) queue("namespace", change->key, &Impl::sync_namespace);
    if (options.workloads) {
      if (table == "statefulsets.apps") queue("statefulset", change->key, &Impl::sync_stateful_set);
      if (table == "deployments.apps") queue("deployment", change->key, &Impl::sync_deployment);
      if (table == "replicasets.apps") queue("replicaset", change->key, &Impl::sync_replica_set);
      if (table == "replicasets.apps" || table == "pods") queue_owner(object, change->key.ns);
    }
    if (table == "poddisruptionbudgets.policy") queue("budget", change->key, &Impl::sync_budget);
    if (table == "persistentvolumeclaims") queue("claim", change->key, &Impl::sync_claim);
    if (table == "services" && options.endpoints) queue("endpoints", change->key, &Impl::sync_endpoints);
    if (table == "pods") pod_changed(*change);
    if (table == "nodes" && change->type != Change::Type::kDeleted) {
      queue("node", change->key, &Impl::sync_node);
      const bool lost = change->before && is_ready(change->before->body) && !is_ready(object);
      if (lost) queue("lost node", change->key, &Impl::unready_pods);
    }
  }

  void pod_changed(const Change& change) {
    const Json& pod = change.object->body;
    const Json* node = api.peek(res::kNode, {"", core::get_string(pod, {"spec", "nodeName"})});
    const bool tainted = node != nullptr && core::find(*node, {"spec", "taints"}) != nullptr;
    if (tainted || evictions.contains(change.key)) queue("taints", change.key, &Impl::heed_taints);
    const Json labels = pod["metadata"].value("labels", Json::object());
    for (const auto& [key, budget] : api.store().all("poddisruptionbudgets.policy")) {
      if (key.ns == change.key.ns) queue("budget", key, &Impl::sync_budget);
    }
    if (options.endpoints) {
      for (const auto& [key, service] : api.store().all("services")) {
        const Json* selector = core::find(service->body, {"spec", "selector"});
        if (key.ns == change.key.ns && selector != nullptr && core::contains(labels, *selector)) {
          queue("endpoints", key, &Impl::sync_endpoints);
        }
      }
    }
    if (change.type == Change::Type::kDeleted || ended(pod)) {
      if (pod["spec"].contains("volumes")) {
        for (const Json& volume : pod["spec"]["volumes"]) {
          const std::string claim = core::get_string(volume, {"persistentVolumeClaim", "claimName"});
          if (!claim.empty()) queue("claim", {change.key.ns, claim}, &Impl::sync_claim);
        }
      }
    }
  }

  void queue_owner(const Json& object, const std::string& ns) {
    const Json* owners = core::find(object, {"metadata", "ownerReferences"});
    if (owners == nullptr) return;
    for (const Json& owner : *owners) {
      const kube::Key key{ns, core::get_string(owner, {"name"})};
      const std::string kind = core::get_string(owner, {"kind"});
      if (kind == "StatefulSet") queue("statefulset", key, &Impl::sync_stateful_set);
      if (kind == "Deployment") queue("deployment", key, &Impl::sync_deployment);
      if (kind == "ReplicaSet") queue("replicaset", key, &Impl::sync_replica_set);
    }
  }

  // ------------------------------------------------------------------------------------------------------ garbage collection

  static std::vector<std::string> owner_uids(const StoredPtr& stored) {
    std::vector<std::string> out;
    const Json* owners = stored ? core::find(stored->body, {"metadata", "ownerReferences"}) : nullptr;
    if (owners == nullptr) return out;
    for (const Json& owner : *owners) out.push_back(core::get_string(owner, {"uid"}));
    return out;
  }

  void index(const std::string& table, const Change& change) {
    const Place place{table, change.key};
    for (const std::string& uid : owner_uids(change.before)) dependents[uid].erase(place);
    if (change.type == Change::Type::kDeleted) {
      by_uid.erase(uid_of(change.object->body));
      return;
    }
    by_uid[uid_of(change.object->body)] = place;
    for (const std::string& uid : owner_uids(change.object)) dependents[uid].insert(place);
  }

  static std::string garbage_name(const Place& place) { return "garbage " + place.table; }

  void queue_garbage(const Place& place) {
    const std::string id = garbage_name(place) + " " + place.key.str();
    if (!pending.insert(id).second) return;
    api.loop().after(delay(), [weak = weak_from_this(), id, place] {
      const auto self = weak.lock();
      if (!self) return;
      self->pending.erase(id);
      self->collect(place);
    });
  }

  void watch_garbage(const std::string& table, const Change& change) {
    const Place place{table, change.key};
    if (change.type != Change::Type::kDeleted) {
      if (!owner_uids(change.object).empty() || terminating(change.object->body)) queue_garbage(place);
    }
    // Checks the owners, which may wait for the deletion of the object. If the object was deleted, checks its dependents too.
    for (const std::string& uid : owner_uids(change.object)) {
      const auto owner = by_uid.find(uid);
      if (owner != by_uid.end()) queue_garbage(owner->second);
    }
    if (change.type == Change::Type::kDeleted) {
      const auto it = dependents.find(uid_of(change.object->body));
      if (it == dependents.end()) return;
      for (const Place& dependent : it->second) queue_garbage(dependent);
    }
  }

  void collect(const Place& place) {
    const StoredPtr stored = api.store().find(place.table, place.key);
    const KubeKind* kind = api.find_table(place.table);
    if (!stored || kind == nullptr) return;
    const Json& object = stored->body;
    const Caller who = caller("generic-garbage-collector");
    if (terminating(object)) {
      finish_cascade(place, *kind, object, who);
      return;
    }
    const auto owners = owner_uids(stored);
    if (owners.empty()) return;
    std::set<std::string> keep, waiting;
    for (const std::string& uid : owners) {
      const auto owner = by_uid.find(uid);
      if (owner == by_uid.end()) continue;
      const StoredPtr owning = api.store().find(owner->second.table, owner->second.key);
      const bool waits = owning && terminating(owning->body) && kube::has_finalizer(owning->body, "foregroundDeletion");
      (waits ? waiting : keep).insert(uid);
    }
    if (!keep.empty()) {
      if (keep.size() < owners.size())
        disown(
            *kind, place.key, [&](const std::string& uid) { return !keep.contains(uid); }, who);
      return;
    }
    const auto owned = dependents.find(uid_of(object));
    const bool owns = owned != dependents.end() && !owned->second.empty();
    Deletion deletion;
    deletion.uid = uid_of(object);
    deletion.propagation = "Background";
    if (kube::has_finalizer(object, "foregroundDeletion") || (owns && !waiting.empty())) deletion.propagation = "Foreground";
    if (kube::has_finalizer(object, "orphan")) deletion.propagation = "Orphan";
    // A deletion that is refused (by a policy, for example) is tried again. The real controller retries with a growing delay.
    if (!api.remove(kind->resource, place.key, deletion, who)) {
      api.loop().after(core::Duration{random.between(1000, 5000)}, [weak = weak_from_this(), place] {
        if (const auto self = weak.lock()) self->queue_garbage(place);
      });
    }
  }

  static void remove_finalizer(Json& object, const char* name) {
    Json kept = Json::array();
    for (const Json& finalizer : object["metadata"]["finalizers"]) {
      if (finalizer != name) kept.push_back(finalizer);
    }
    object["metadata"]["finalizers"] = std::move(kept);
  }

  /// Removes from an object each owner for whose uid `off` returns true.
  void disown(const KubeKind& kind, const kube::Key& key, const std::function<bool(const std::string& uid)>& off,
              const Caller& who) {
    api.modify(
        kind.resource, key,
        [&](Json& object) {
          Json kept = Json::array();
          for (const Json& owner : object["metadata"]["ownerReferences"]) {
            if (!off(core::get_string(owner, {"uid"}))) kept.push_back(owner);
          }
          object["metadata"]["ownerReferences"] = std::move(kept);
        },
        who);
  }

  /// Orphans the dependents of an owner that has the finalizer "orphan". Removes this finalizer, or "foregroundDeletion" once
  /// no dependent blocks the owner's deletion.
  void finish_cascade(const Place& place, const KubeKind& kind, const Json& object, const Caller& who) {
    const auto it = dependents.find(uid_of(object));
    const std::set<Place> owned = it == dependents.end() ? std::set<Place>{} : it->second;
    if (kube::has_finalizer(object, "orphan")) {
      for (const Place& dependent : owned) {
        disown(
            *api.find_table(dependent.table), dependent.key, [&](const std::string& uid) { return uid == uid_of(object); },
            who);
      }
      api.modify(
          kind.resource, place.key, [](Json& o) { remove_finalizer(o, "orphan"); }, who);
      return;
    }
    if (!kube::has_finalizer(object, "foregroundDeletion")) return;
    bool blocked = false;
    for (const Place& dependent : owned) {
      const StoredPtr stored = api.store().find(dependent.table, dependent.key);
      if (!stored) continue;
      if (!terminating(stored->body)) queue_garbage(dependent);
      for (const Json& owner : stored->body["metadata"]["ownerReferences"]) {
        if (core::get_string(owner, {"uid"}) == uid_of(object))
          blocked = blocked || core::get_bool(owner, {"blockOwnerDeletion"});
      }
    }
    if (!blocked)
      api.modify(
          kind.resource, place.key, [](Json& o) { remove_finalizer(o, "foregroundDeletion"); }, who);
  }

  void sync_namespace(const kube::Key& key) {
    const Json* space = api.peek(res::kNamespace, key);
    if (space == nullptr || !terminating(*space)) return;
    const Caller who = caller("namespace-controller");
    bool empty = true;
    for (const KubeKind& kind : api.kinds()) {
      if (!kind.resource.namespaced) continue;
      const auto all = api.store().all(table_name(kind.resource));
      for (const auto& [object_key, stored] : all) {
        if (object_key.ns != key.name) continue;
        if (!terminating(stored->body)) {
          Deletion deletion;
          deletion.propagation = "Background";
          (void)api.remove(kind.resource, object_key, deletion, who);
        }
        empty = empty && !api.store().find(table_name(kind.resource), object_key);
      }
    }
    if (!empty) return queue("namespace", key, &Impl::sync_namespace, core::Duration{random.between(200, 2000)});
    api.modify(
        res::kNamespace, key, [](Json& n) { n["spec"]["finalizers"] = Json::array(); }, who);
  }

  // ---------------------------------------------------------------------------------------------------------------- workloads

  std::vector<std::pair<kube::Key, Json>> owned_by(const std::string& table, const std::string& uid) {
    std::vector<std::pair<kube::Key, Json>> out;
    const auto it = dependents.find(uid);
    if (it == dependents.end()) return out;
    for (const Place& place : it->second) {
      if (place.table != table) continue;
      const StoredPtr stored = api.store().find(table, place.key);
      if (stored && controller_uid(stored->body) == uid) out.emplace_back(place.key, stored->body);
    }
    return out;
  }

  void delete_pod(const kube::Key& key, const Json& pod, const Caller& who) {
    Deletion deletion;
    deletion.uid = uid_of(pod);
    (void)api.remove(res::kPod, key, deletion, who);
  }

  void sync_stateful_set(const kube::Key& key) {
    const StoredPtr stored = api.store().find("statefulsets.apps", key);
    if (!stored || terminating(stored->body)) return;
    const Json& set = stored->body;
    const Caller who = caller("statefulset-controller");
    const int replicas = static_cast<int>(core::get_int(set, {"spec", "replicas"}, 1));
    const bool ordered = core::get_string(set, {"spec", "podManagementPolicy"}) != "Parallel";
    const std::string revision = key.name + "-" + core::short_hash(core::canonical(set["spec"]["template"]), 10);
    std::map<int, std::pair<kube::Key, Json>> pods;
    for (auto& [pod_key, pod] : owned_by("pods", uid_of(set))) {
      const std::size_t dash = pod_key.name.rfind('-');
      pods[std::atoi(pod_key.name.c_str() + dash + 1)] = {pod_key, std::move(pod)};
    }
    bool settled = true;
    for (int ordinal = 0; ordinal < replicas; ++ordinal) {
      const auto it = pods.find(ordinal);
      if (it == pods.end()) {
        if (!create_stateful_pod(set, key, ordinal, revision, who)) settled = false;
      } else if (terminating(it->second.second)) {
      } else if (ended(it->second.second)) {
        delete_pod(it->second.first, it->second.second, who);
      } else if (is_ready(it->second.second) || !ordered) {
        // With parallel pod management, the update of the set does not wait for a pod that is not ready. So a corrected
        // template can replace this pod.
        continue;
      }
      settled = false;
      if (ordered) break;
    }
    const bool may_shrink = !ordered || settled;
    for (auto it = pods.rbegin(); may_shrink && it != pods.rend() && it->first >= replicas; ++it) {
      if (!terminating(it->second.second)) delete_pod(it->second.first, it->second.second, who);
      settled = false;
      if (ordered) break;
    }
    if (settled) roll_stateful_set(set, pods, revision, who);
    write_stateful_status(key, set, pods, revision, who);
  }

  void roll_stateful_set(const Json& set, const std::map<int, std::pair<kube::Key, Json>>& pods, const std::string& revision,
                         const Caller& who) {
    if (core::get_string(set, {"spec", "updateStrategy", "type"}) != "RollingUpdate") return;
    const int partition = static_cast<int>(core::get_int(set, {"spec", "updateStrategy", "rollingUpdate", "partition"}));
    for (auto it = pods.rbegin(); it != pods.rend() && it->first >= partition; ++it) {
      const bool updated = core::get_string(it->second.second, {"metadata", "labels", "controller-revision-hash"}) == revision;
      if (updated && is_ready(it->second.second)) continue;
      if (updated) return;
      return delete_pod(it->second.first, it->second.second, who);
    }
  }

  bool create_stateful_pod(const Json& set, const kube::Key& key, int ordinal, const std::string& revision, const Caller& who) {
    const std::string name = fmt::format("{}-{}", key.name, ordinal);
    Json pod = pod_from_template(res::kStatefulSet, set);
    pod["metadata"]["name"] = name;
    Json& labels = pod["metadata"]["labels"];
    labels["statefulset.kubernetes.io/pod-name"] = name;
    labels["apps.kubernetes.io/pod-index"] = std::to_string(ordinal);
    labels["controller-revision-hash"] = revision;
    pod["spec"]["hostname"] = name;
    if (const std::string service = core::get_string(set, {"spec", "serviceName"}); !service.empty())
      pod["spec"]["subdomain"] = service;
    if (set["spec"].contains("volumeClaimTemplates")) {
      for (const Json& made : set["spec"]["volumeClaimTemplates"]) {
        const std::string volume = core::get_string(made, {"metadata", "name"});
        const std::string claim = volume + "-" + name;
        if (!api.peek(res::kPersistentVolumeClaim, {key.ns, claim})) {
          Json object{{"metadata", {{"name", claim}, {"namespace", key.ns}}}, {"spec", made["spec"]}};
          if (const Json* match = core::find(set, {"spec", "selector", "matchLabels"})) object["metadata"]["labels"] = *match;
          if (const auto done = api.create(res::kPersistentVolumeClaim, object, who); !done) {
            tell_refusal(set, key, fmt::format("create Claim {} Pod {} in StatefulSet {}", claim, name, key.name), done.error(),
                         who);
            return false;
          }
        }
        Json volumes = Json::array();
        for (const Json& v : pod["spec"].value("volumes", Json::array())) {
          if (core::get_string(v, {"name"}) != volume) volumes.push_back(v);
        }
        volumes.push_back({{"name", volume}, {"persistentVolumeClaim", {{"claimName", claim}}}});
        pod["spec"]["volumes"] = std::move(volumes);
      }
    }
    const auto done = api.create(res::kPod, pod, who);
    if (done) return true;
    tell_refusal(set, key, fmt::format("create Pod {} in StatefulSet {}", name, key.name), done.error(), who);
    queue("statefulset", key, &Impl::sync_stateful_set, core::Duration{1000});
    return false;
  }

  /// Writes events as the recorder of the real controller does: one event for each refusal, with a count for repeats.
  void tell_refusal(const Json& set, const kube::Key& key, const std::string& what, const Refusal& refusal, const Caller& who) {
    const std::string note = what + " failed error: " + core::get_string(refusal, {"message"});
    const std::string now = core::format_rfc3339(api.loop().clock().wall());
    const kube::Key event{key.ns, key.name + "." + core::short_hash(note, 10)};
    const auto again = [&](Json& e) {
      e["deprecatedCount"] = core::get_int(e, {"deprecatedCount"}) + 1;
      e["deprecatedLastTimestamp"] = now;
    };
    if (api.modify(res::kEvent, event, again, who)) return;
    Json regarding = owner_reference(res::kStatefulSet, set);
    for (const char* not_here : {"controller", "blockOwnerDeletion"}) regarding.erase(not_here);
    regarding["namespace"] = key.ns;
    (void)api.create(res::kEvent,
                     {{"metadata", {{"name", event.name}, {"namespace", event.ns}}},
                      {"type", "Warning"},
                      {"reason", "FailedCreate"},
                      {"regarding", std::move(regarding)},
                      {"note", note},
                      {"deprecatedCount", 1},
                      {"deprecatedFirstTimestamp", now},
                      {"deprecatedLastTimestamp", now}},
                     who);
  }

  void write_stateful_status(const kube::Key& key, const Json& set, const std::map<int, std::pair<kube::Key, Json>>& pods,
                             const std::string& revision, const Caller& who) {
    int ready = 0, updated = 0, current = 0;
    const std::string before = core::get_string(set, {"status", "currentRevision"}, revision);
    for (const auto& [ordinal, entry] : pods) {
      const std::string has = core::get_string(entry.second, {"metadata", "labels", "controller-revision-hash"});
      if (is_ready(entry.second)) ++ready;
      if (terminating(entry.second)) continue;
      if (has == revision) ++updated;
      if (has == before) ++current;
    }
    const int replicas = static_cast<int>(core::get_int(set, {"spec", "replicas"}, 1));
    const bool rolled = core::get_string(set, {"spec", "updateStrategy", "type"}) == "RollingUpdate" && updated == replicas &&
                        ready == replicas && static_cast<int>(pods.size()) == replicas;
    api.modify(
        res::kStatefulSet, key,
        [&](Json& s) {
          s["status"] = {{"observedGeneration", set["metadata"]["generation"]},
                         {"replicas", pods.size()},
                         {"readyReplicas", ready},
                         {"availableReplicas", ready},
                         {"updatedReplicas", updated},
                         {"currentReplicas", rolled ? updated : current},
                         {"currentRevision", rolled ? revision : before},
                         {"updateRevision", revision},
                         {"collisionCount", 0}};
        },
        who, "status");
  }

  void sync_replica_set(const kube::Key& key) {
    const StoredPtr stored = api.store().find("replicasets.apps", key);
    if (!stored || terminating(stored->body)) return;
    const Json& set = stored->body;
    const Caller who = caller("replicaset-controller");
    const int replicas = static_cast<int>(core::get_int(set, {"spec", "replicas"}, 1));
    std::vector<std::pair<kube::Key, Json>> pods;
    for (auto& entry : owned_by("pods", uid_of(set))) {
      if (!terminating(entry.second) && !ended(entry.second)) pods.push_back(std::move(entry));
    }
    for (int missing = replicas - static_cast<int>(pods.size()); missing > 0; --missing) {
      Json pod = pod_from_template(kReplicaSet, set);
      pod["metadata"]["generateName"] = key.name + "-";
      if (!api.create(res::kPod, pod, who)) {
        queue("replicaset", key, &Impl::sync_replica_set, core::Duration{1000});
        break;
      }
    }
    std::stable_sort(pods.begin(), pods.end(),
                     [](const auto& a, const auto& b) { return is_ready(a.second) < is_ready(b.second); });
    for (int surplus = static_cast<int>(pods.size()) - replicas, i = 0; i < surplus; ++i) {
      delete_pod(pods[static_cast<std::size_t>(i)].first, pods[static_cast<std::size_t>(i)].second, who);
    }
    const auto ready = std::count_if(pods.begin(), pods.end(), [](const auto& entry) { return is_ready(entry.second); });
    api.modify(
        kReplicaSet, key,
        [&](Json& s) {
          s["status"] = {{"observedGeneration", set["metadata"]["generation"]},
                         {"replicas", pods.size()},
                         {"fullyLabeledReplicas", pods.size()},
                         {"readyReplicas", ready},
                         {"availableReplicas", ready}};
        },
        who, "status");
  }

  void sync_deployment(const kube::Key& key) {
    const StoredPtr stored = api.store().find("deployments.apps", key);
    if (!stored || terminating(stored->body)) return;
    const Json& deployment = stored->body;
    const Caller who = caller("deployment-controller");
    const int replicas = static_cast<int>(core::get_int(deployment, {"spec", "replicas"}, 1));
    const std::string hash = core::short_hash(core::canonical(deployment["spec"]["template"]), 10);
    const std::string wanted = key.name + "-" + hash;
    const auto sets = owned_by("replicasets.apps", uid_of(deployment));
    const auto current = std::find_if(sets.begin(), sets.end(), [&](const auto& entry) { return entry.first.name == wanted; });
    if (current == sets.end()) {
      Json set{{"metadata",
                {{"name", wanted},
                 {"namespace", key.ns},
                 {"labels", deployment["spec"]["template"]["metadata"].value("labels", Json::object())},
                 {"ownerReferences", Json::array({owner_reference(res::kDeployment, deployment)})}}},
               {"spec",
                {{"replicas", replicas},
                 {"selector", deployment["spec"]["selector"]},
                 {"template", deployment["spec"]["template"]}}}};
      set["metadata"]["labels"]["pod-template-hash"] = hash;
      set["spec"]["selector"]["matchLabels"]["pod-template-hash"] = hash;
      set["spec"]["template"]["metadata"]["labels"]["pod-template-hash"] = hash;
      (void)api.create(kReplicaSet, set, who);
    } else if (core::get_int(current->second, {"spec", "replicas"}) != replicas) {
      api.modify(
          kReplicaSet, current->first, [&](Json& s) { s["spec"]["replicas"] = replicas; }, who);
    }
    const long long available = current == sets.end() ? 0 : core::get_int(current->second, {"status", "availableReplicas"});
    long long total = 0, ready = 0;
    for (const auto& [set_key, set] : sets) {
      total += core::get_int(set, {"status", "replicas"});
      ready += core::get_int(set, {"status", "readyReplicas"});
      // Once enough pods of the new ReplicaSet are available, the old ReplicaSets are scaled to 0.
      if (set_key.name != wanted && available >= replicas && core::get_int(set, {"spec", "replicas"}) != 0) {
        api.modify(
            kReplicaSet, set_key, [](Json& s) { s["spec"]["replicas"] = 0; }, who);
      }
    }
    const std::string at = core::format_rfc3339(api.loop().clock().wall());
    api.modify(
        res::kDeployment, key,
        [&](Json& d) {
          Json status{{"observedGeneration", deployment["metadata"]["generation"]},
                      {"replicas", total},
                      {"updatedReplicas", current == sets.end() ? 0 : core::get_int(current->second, {"status", "replicas"})},
                      {"readyReplicas", ready},
                      {"availableReplicas", ready},
                      {"unavailableReplicas", std::max(0LL, replicas - ready)}};
          const bool enough = ready >= replicas;
          status["conditions"] = Json::array(
              {condition("Available", enough, enough ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable", at),
               condition("Progressing", true, available >= replicas ? "NewReplicaSetAvailable" : "ReplicaSetUpdated", at)});
          keep_times(d.value("status", Json::object()), status);
          d["status"] = std::move(status);
        },
        who, "status");
  }

  /// Restores the times of conditions that did not change.
  static void keep_times(const Json& before, Json& after) {
    if (!before.contains("conditions")) return;
    for (Json& c : after["conditions"]) {
      for (const Json& old : before["conditions"]) {
        if (old["type"] == c["type"] && old["status"] == c["status"] && old.value("reason", "") == c.value("reason", ""))
          c = old;
      }
    }
  }

  // -------------------------------------------------------------------------------------------------------------------- nodes

  /// Sets the taints of a node that is not ready, and removes them when the node is ready. Does not change other taints.
  void sync_node(const kube::Key& key) {
    const Json* node = api.peek(res::kNode, key);
    const Json* conditions = node == nullptr ? nullptr : core::find(*node, {"status", "conditions"});
    if (conditions == nullptr) return;
    std::string taint;
    for (const Json& c : *conditions) {
      if (core::get_string(c, {"type"}) != "Ready") continue;
      if (core::get_string(c, {"status"}) == "False") taint = kNotReady;
      if (core::get_string(c, {"status"}) == "Unknown") taint = kUnreachable;
    }
    std::set<std::string> missing;
    if (!taint.empty()) missing = {"NoExecute", "NoSchedule"};
    const Json before = (*node)["spec"].value("taints", Json::array());
    Json after = Json::array();
    for (const Json& has : before) {
      const std::string name = core::get_string(has, {"key"});
      if (name == taint) missing.erase(core::get_string(has, {"effect"}));
      if (name == taint || (name != kNotReady && name != kUnreachable)) after.push_back(has);
    }
    for (const std::string& effect : missing) {
      after.push_back({{"key", taint}, {"effect", effect}, {"timeAdded", core::format_rfc3339(api.loop().clock().wall())}});
    }
    if (after != before) {
      api.modify(
          res::kNode, key,
          [&](Json& n) {
            n["spec"]["taints"] = after;
            if (after.empty()) n["spec"].erase("taints");
          },
          caller("node-controller"));
    }
    for (const kube::Key& pod : api.store().pods_on(key.name)) queue("taints", pod, &Impl::heed_taints);
  }

  /// Sets the condition Ready of the pods on a lost node to False. Changes nothing else.
  void unready_pods(const kube::Key& node) {
    const std::string at = core::format_rfc3339(api.loop().clock().wall());
    for (const kube::Key& key : api.store().pods_on(node.name)) {
      api.modify(
          res::kPod, key,
          [&](Json& pod) {
            if (!is_ready(pod)) return;
            for (Json& c : pod["status"]["conditions"]) {
              if (c["type"] != "Ready") continue;
              c["status"] = "False";
              c["lastTransitionTime"] = at;
            }
          },
          caller("node-controller"), "status");
    }
  }

  /// Deletes a pod that does not tolerate a NoExecute taint of its node. If the pod tolerates the taint only for a time
  /// (tolerationSeconds), deletes it after that time.
  void heed_taints(const kube::Key& key) {
    const Json* pod = api.peek(res::kPod, key);
    const Json* node = pod == nullptr ? nullptr : api.peek(res::kNode, {"", core::get_string(*pod, {"spec", "nodeName"})});
    constexpr long long kForEver = std::numeric_limits<long long>::max();
    std::optional<long long> patience;  // nullopt: for ever
    const Json* taints = node == nullptr ? nullptr : core::find(*node, {"spec", "taints"});
    for (const Json& taint : taints == nullptr ? Json::array() : *taints) {
      if (core::get_string(taint, {"effect"}) != "NoExecute") continue;
      const auto tolerations = tolerations_of(*pod, taint);
      if (tolerations.empty()) patience = 0;
      for (const Json& toleration : tolerations) {
        if (toleration.contains("tolerationSeconds"))
          patience = std::clamp<long long>(core::get_int(toleration, {"tolerationSeconds"}), 0, patience.value_or(kForEver));
      }
    }
    if (!patience) {
      evictions.erase(key);
      return;
    }
    const Eviction next{uid_of(*pod), api.loop().clock().mono() + std::chrono::seconds(*patience)};
    Eviction& planned = evictions[key];
    if (planned.uid == next.uid && planned.at <= next.at) return;
    planned = next;
    api.loop().after(std::chrono::seconds(*patience), [weak = weak_from_this(), key, next] {
      const auto self = weak.lock();
      if (!self) return;
      const auto it = self->evictions.find(key);
      if (it != self->evictions.end() && it->second == next) self->evict(key, next.uid);
    });
  }

  void evict(const kube::Key& key, const std::string& uid) {
    const Caller who = caller("taint-eviction-controller");
    const Json* pod = api.peek(res::kPod, key);
    if (pod == nullptr || uid_of(*pod) != uid) return;
    api.modify(
        res::kPod, key,
        [&](Json& p) { api.disrupt(p, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"); }, who,
        "status");
    Deletion deletion;
    deletion.uid = uid;
    (void)api.remove(res::kPod, key, deletion, who);
  }

  // ------------------------------------------------------------------------------------------------------------------- others

  /// Returns the controller of the object; null if there is none, or if it is deleted.
  [[nodiscard]] StoredPtr controller_of(const Json& object) const {
    const auto place = by_uid.find(controller_uid(object));
    return place == by_uid.end() ? nullptr : api.store().find(place->second.table, place->second.key);
  }

  /// Returns the sum of spec.replicas of the pods' controllers. If a Deployment controls a ReplicaSet, the Deployment counts
  /// instead. nullopt: a controller is deleted, or its kind has no scale subresource.
  [[nodiscard]] std::optional<long long> expected_scale(const std::vector<StoredPtr>& pods) const {
    std::map<std::string, long long> scales;
    for (const StoredPtr& pod : pods) {
      if (controller_uid(pod->body).empty()) continue;  // not managed: does not count
      StoredPtr owner = controller_of(pod->body);
      if (owner && core::get_string(owner->body, {"kind"}) == kReplicaSet.kind) {
        if (const StoredPtr above = controller_of(owner->body)) owner = above;
      }
      const KubeKind* kind = owner ? api.find_table(by_uid.at(uid_of(owner->body)).table) : nullptr;
      if (kind == nullptr || !kind->scale) return std::nullopt;
      scales[uid_of(owner->body)] = core::get_int(owner->body, {"spec", "replicas"});
    }
    long long sum = 0;
    for (const auto& [uid, replicas] : scales) sum += replicas;
    return sum;
  }

  /// Updates the status of a budget. Called when the budget or a pod changes, but not when only the scale of an owner changes.
  void sync_budget(const kube::Key& key) {
    const StoredPtr stored = api.store().find("poddisruptionbudgets.policy", key);
    if (!stored) return;
    const Json& budget = stored->body;
    std::vector<StoredPtr> pods;
    long long healthy = 0;
    const Json selector = budget["spec"].value("selector", Json::object());
    for (const auto& [pod_key, pod] : api.store().all("pods")) {
      if (pod_key.ns != key.ns || !selects(selector, pod->body["metadata"].value("labels", Json::object()))) continue;
      pods.push_back(pod);
      if (is_ready(pod->body) && !terminating(pod->body)) ++healthy;
    }
    // An integer `minAvailable` refers to the existing pods. All other values refer to the replicas that the pods' owners want.
    const Json* most = core::find(budget, {"spec", "maxUnavailable"});
    const Json* least = core::find(budget, {"spec", "minAvailable"});
    std::optional<long long> counted = 0;
    if (most != nullptr || (least != nullptr && !least->is_number())) {
      counted = expected_scale(pods);
    } else if (least != nullptr) {
      counted = static_cast<long long>(pods.size());
    }
    const Caller who = caller("disruption-controller");
    if (!counted) {
      api.modify(
          res::kPodDisruptionBudget, key, [](Json& b) { b["status"]["disruptionsAllowed"] = 0; }, who, "status");
      return;
    }
    const long long expected = *counted;
    const auto amount = [&](const Json& value) {
      return value.is_number() ? value.get<long long>() : (std::atoll(value.get<std::string>().c_str()) * expected + 99) / 100;
    };
    const long long desired = most != nullptr ? std::max(0LL, expected - amount(*most)) : least != nullptr ? amount(*least) : 0;
    api.modify(
        res::kPodDisruptionBudget, key,
        [&](Json& b) {
          b["status"]["expectedPods"] = expected;
          b["status"]["currentHealthy"] = healthy;
          b["status"]["desiredHealthy"] = desired;
          b["status"]["disruptionsAllowed"] = expected <= 0 ? 0 : std::max(0LL, healthy - desired);
          b["status"]["observedGeneration"] = budget["metadata"]["generation"];
        },
        who, "status");
  }

  void sync_claim(const kube::Key& key) {
    const StoredPtr stored = api.store().find("persistentvolumeclaims", key);
    if (!stored) return;
    const Json& claim = stored->body;
    if (terminating(claim)) {
      for (const auto& [pod_key, pod] : api.store().all("pods")) {
        if (pod_key.ns != key.ns || ended(pod->body)) continue;
        for (const Json& volume : pod->body["spec"].value("volumes", Json::array())) {
          if (core::get_string(volume, {"persistentVolumeClaim", "claimName"}) == key.name) return;
        }
      }
      api.modify(
          res::kPersistentVolumeClaim, key, [](Json& c) { remove_finalizer(c, "kubernetes.io/pvc-protection"); },
          caller("pvc-protection-controller"));
      return;
    }
    // In this model, other storage classes have no provisioner.
    if (core::get_string(claim, {"status", "phase"}) == "Bound" ||
        core::get_string(claim, {"spec", "storageClassName"}) != "standard")
      return;
    const Caller who = caller("persistent-volume-binder");
    api.modify(
        res::kPersistentVolumeClaim, key, [&](Json& c) { c["spec"]["volumeName"] = "pvc-" + uid_of(claim); }, who);
    api.modify(
        res::kPersistentVolumeClaim, key,
        [&](Json& c) {
          c["status"] = {{"phase", "Bound"},
                         {"accessModes", claim["spec"].value("accessModes", Json::array())},
                         {"capacity", claim["spec"].value("resources", Json::object()).value("requests", Json::object())}};
        },
        who, "status");
  }

  void sync_endpoints(const kube::Key& key) {
    const StoredPtr stored = api.store().find("services", key);
    if (!stored) return;  // its slices are deleted as garbage
    const Json& service = stored->body;
    const Json* selector = core::find(service, {"spec", "selector"});
    if (selector == nullptr || selector->empty()) return;
    const bool all = core::get_bool(service, {"spec", "publishNotReadyAddresses"});
    Json endpoints = Json::array();
    for (const auto& [pod_key, pod] : api.store().all("pods")) {
      const Json& body = pod->body;
      if (pod_key.ns != key.ns || !core::contains(body["metadata"].value("labels", Json::object()), *selector)) continue;
      const std::string ip = core::get_string(body, {"status", "podIP"});
      if (ip.empty() || ended(body)) continue;
      const bool serving = is_ready(body);
      Json endpoint{
          {"addresses", Json::array({ip})},
          {"conditions",
           {{"ready", all || (serving && !terminating(body))}, {"serving", serving}, {"terminating", terminating(body)}}},
          {"targetRef", {{"kind", "Pod"}, {"namespace", key.ns}, {"name", pod_key.name}, {"uid", uid_of(body)}}}};
      if (const std::string host = core::get_string(body, {"spec", "hostname"});
          !host.empty() && core::get_string(body, {"spec", "subdomain"}) == key.name) {
        endpoint["hostname"] = host;
      }
      endpoints.push_back(std::move(endpoint));
    }
    const Caller who = caller("endpointslice-controller");
    const kube::Key slice{key.ns, key.name + "-" + core::short_hash(uid_of(service), 5)};
    const Json* have = api.peek(res::kEndpointSlice, slice);
    if (have == nullptr) {
      (void)api.create(res::kEndpointSlice,
                       {{"metadata",
                         {{"name", slice.name},
                          {"namespace", key.ns},
                          {"labels", {{"kubernetes.io/service-name", key.name}}},
                          {"ownerReferences", Json::array({owner_reference(res::kService, service)})}}},
                        {"addressType", "IPv4"},
                        {"endpoints", endpoints}},
                       who);
    } else if ((*have)["endpoints"] != endpoints) {
      api.modify(
          res::kEndpointSlice, slice, [&](Json& s) { s["endpoints"] = endpoints; }, who);
    }
  }
};

KubeControllers::KubeControllers(KubeApi& api, SeededRandom random, ControllerOptions options)
    : impl_(std::make_shared<Impl>(api, std::move(random), options)) {
  api.store().listen([weak = std::weak_ptr<Impl>(impl_)](const std::string& table, const ChangePtr& change) {
    if (const auto self = weak.lock()) self->on_change(table, change);
  });
}

KubeControllers::~KubeControllers() = default;

}  // namespace sim
