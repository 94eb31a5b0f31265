#include "sim/kube/merge.hpp"

#include <algorithm>

namespace sim {
namespace {

using core::Json;

/// Returns the text that identifies an item of an associative list: `k:{"name":"x"}`.
std::string item_key(const Json& item, const ListType& type) {
  if (type.kind == ListType::Kind::kSet) return "v:" + item.dump();
  Json key = Json::object();
  for (const std::string& name : type.keys) {
    if (item.is_object() && item.contains(name)) {
      key[name] = item[name];
    } else if (name == "protocol") {
      key[name] = "TCP";  // the only key with a default
    }
  }
  return "k:" + key.dump();
}

bool is_map(const ListType& type) {
  return type.kind == ListType::Kind::kMap;
}

/// Reports whether the map in this field is replaced as a whole (x-kubernetes-map-type: atomic).
bool atomic_map(std::string_view field, bool custom) {
  if (custom) return false;
  return field == "selector" || field == "labelSelector" || field == "nodeSelector" || field == "secretKeyRef" ||
         field == "configMapKeyRef" || field == "fieldRef" || field == "resourceFieldRef" || field == "secretRef" ||
         field == "nodeSelectorTerms";
}

bool server_set(const FieldPath& path) {
  if (path.size() == 1) return path[0] == "f:apiVersion" || path[0] == "f:kind" || path[0] == "f:metadata";
  if (path[0] != "f:metadata") return false;
  static const std::set<std::string> kNames{"f:name",
                                            "f:namespace",
                                            "f:uid",
                                            "f:resourceVersion",
                                            "f:generation",
                                            "f:selfLink",
                                            "f:managedFields",
                                            "f:creationTimestamp",
                                            "f:generateName",
                                            "f:deletionTimestamp",
                                            "f:deletionGracePeriodSeconds"};
  return kNames.contains(path[1]);
}

void collect(const Json& value, std::string_view field, bool custom, FieldPath& path, FieldSet& out) {
  if (value.is_null()) return;
  if (value.is_object() && !value.empty() && !atomic_map(field, custom)) {
    for (const auto& [name, child] : value.items()) {
      path.push_back("f:" + name);
      collect(child, name, custom, path, out);
      path.pop_back();
    }
    return;
  }
  if (value.is_array() && !value.empty()) {
    const ListType type = list_type(field, value, custom);
    if (type.kind != ListType::Kind::kAtomic) {
      for (const Json& item : value) {
        path.push_back(item_key(item, type));
        out.insert(path);
        if (is_map(type)) collect(item, "", custom, path, out);
        path.pop_back();
      }
      return;
    }
  }
  if (!path.empty()) out.insert(path);
}

Json merge_applied(const Json& live, const Json& config, std::string_view field, bool custom);

Json merge_applied_list(const Json& live, const Json& config, const ListType& type, bool custom) {
  // First merges each applied item with the existing item of the same key.
  Json out = Json::array();
  std::set<std::string> ours;
  for (const Json& item : config) {
    const std::string key = item_key(item, type);
    ours.insert(key);
    const auto have = std::find_if(live.begin(), live.end(), [&](const Json& l) { return item_key(l, type) == key; });
    out.push_back(have != live.end() && is_map(type) ? merge_applied(*have, item, "", custom) : item);
  }
  // Then keeps the existing order. New items come last, in the order of the configuration.
  Json kept = Json::array();
  std::set<std::string> placed;
  for (const Json& item : live) {
    const std::string key = item_key(item, type);
    placed.insert(key);
    if (!ours.contains(key)) {
      kept.push_back(item);
      continue;
    }
    for (const Json& merged : out) {
      if (item_key(merged, type) == key) kept.push_back(merged);
    }
  }
  for (const Json& merged : out) {
    if (!placed.contains(item_key(merged, type))) kept.push_back(merged);
  }
  return kept;
}

Json merge_applied(const Json& live, const Json& config, std::string_view field, bool custom) {
  if (config.is_object() && live.is_object() && !atomic_map(field, custom)) {
    Json out = live;
    for (const auto& [name, value] : config.items()) {
      if (value.is_null()) continue;
      out[name] = out.contains(name) ? merge_applied(out[name], value, name, custom) : value;
    }
    return out;
  }
  if (config.is_array() && live.is_array()) {
    const ListType type = list_type(field, config.empty() ? live : config, custom);
    if (type.kind != ListType::Kind::kAtomic) return merge_applied_list(live, config, type, custom);
  }
  return config;
}

const Json* at_path(const Json& root, const FieldPath& path) {
  const Json* at = &root;
  std::string_view field;
  for (const std::string& part : path) {
    if (part.starts_with("f:")) {
      field = std::string_view(part).substr(2);
      if (!at->is_object()) return nullptr;
      const auto it = at->find(std::string(field));
      if (it == at->end()) return nullptr;
      at = &*it;
      continue;
    }
    if (!at->is_array()) return nullptr;
    ListType type = list_type(field, *at, false);
    const auto it = std::find_if(at->begin(), at->end(), [&](const Json& item) {
      return part.starts_with("v:") ? "v:" + item.dump() == part : item_key(item, type) == part;
    });
    if (it == at->end()) return nullptr;
    at = &*it;
  }
  return at;
}

/// Removes the value at a path, and the parents that become empty. Reports whether `node` is empty afterwards.
bool remove_path(Json& node, const FieldPath& path, std::size_t depth, std::string_view field) {
  const std::string& part = path[depth];
  const bool last = depth + 1 == path.size();
  if (part.starts_with("f:")) {
    const std::string name = part.substr(2);
    if (!node.is_object() || !node.contains(name)) return false;
    if (last || remove_path(node[name], path, depth + 1, name)) node.erase(name);
    return node.empty();
  }
  if (!node.is_array()) return false;
  const ListType type = list_type(field, node, false);
  for (std::size_t i = 0; i < node.size(); ++i) {
    const std::string key = part.starts_with("v:") ? "v:" + node[i].dump() : item_key(node[i], type);
    if (key != part) continue;
    if (last) {
      node.erase(i);
    } else {
      remove_path(node[i], path, depth + 1, "");
    }
    break;
  }
  return node.empty();
}

std::string readable(const FieldPath& path) {
  std::string out;
  for (const std::string& part : path) out += part.starts_with("f:") ? "." + part.substr(2) : "[" + part.substr(2) + "]";
  return out;
}

bool starts_with(const FieldPath& path, const FieldPath& prefix) {
  return path.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), path.begin());
}

/// Returns the top-level members of each of the two documents that differ from the other document. Usually there is only one.
std::pair<Json, Json> differing(const Json& from, const Json& to) {
  std::pair<Json, Json> out{Json::object(), Json::object()};
  const auto copy = [](const Json& one, const Json& other, Json& into) {
    for (const auto& [name, value] : one.items()) {
      const auto it = other.find(name);
      if (it == other.end() || *it != value) into[name] = value;
    }
  };
  copy(from, to, out.first);
  copy(to, from, out.second);
  return out;
}

bool owned_by_others(const FieldOwners& owners, const std::string& manager, const FieldPath& path) {
  return std::any_of(owners.begin(), owners.end(), [&](const auto& entry) {
    if (entry.first == manager) return false;
    const auto it = entry.second.lower_bound(path);
    return it != entry.second.end() && starts_with(*it, path);
  });
}

}  // namespace

ListType list_type(std::string_view field, const Json& list, bool custom) {
  using Kind = ListType::Kind;
  if (field == "ownerReferences") return {Kind::kMap, {"uid"}};
  if (field == "finalizers") return {Kind::kSet, {}};
  if (field == "conditions") return {Kind::kMap, {"type"}};
  if (custom || list.empty() || !list[0].is_object()) return {};
  const Json& first = list[0];
  static const std::set<std::string, std::less<>> kByName{"containers", "initContainers",   "ephemeralContainers", "volumes",
                                                          "env",        "imagePullSecrets", "resourceClaims"};
  if (kByName.contains(field)) return {Kind::kMap, {"name"}};
  if (field == "volumeMounts") return {Kind::kMap, {"mountPath"}};
  if (field == "volumeDevices") return {Kind::kMap, {"devicePath"}};
  if (field == "hostAliases") return {Kind::kMap, {"ip"}};
  if (field == "topologySpreadConstraints") return {Kind::kMap, {"topologyKey", "whenUnsatisfiable"}};
  if (field == "ports" && first.contains("containerPort")) return {Kind::kMap, {"containerPort", "protocol"}};
  if (field == "ports" && first.contains("port")) return {Kind::kMap, {"port", "protocol"}};
  return {};
}

void merge_patch(Json& target, const Json& patch) {
  target.merge_patch(patch);
}

core::Result<Json> json_patch(const Json& target, const Json& patch) {
  try {
    return target.patch(patch);
  } catch (const Json::other_error& e) {  // 501: a test failed
    return core::fail(core::ErrorCode::kConflict, e.what());
  } catch (const Json::exception& e) {
    return core::fail(core::ErrorCode::kInvalid, e.what());
  }
}

namespace {

void strategic_list(Json& target, const Json& patch, const ListType& type) {
  const auto find = [&](Json& list, const std::string& key) {
    return std::find_if(list.begin(), list.end(), [&](const Json& item) { return item_key(item, type) == key; });
  };
  Json patched = Json::array();  // in the patch's order
  std::set<std::string> named;
  for (const Json& item : patch) {
    const std::string directive = core::get_string(item, {"$patch"});
    const std::string key = item_key(item, type);
    named.insert(key);
    if (directive == "delete") continue;
    const auto have = find(target, key);
    Json made = have != target.end() ? *have : is_map(type) ? Json::object() : item;
    if (is_map(type)) strategic_patch(made, item);
    patched.push_back(std::move(made));
  }
  // Existing items keep their order. New items have the order of the patch, and come before items that only the server has.
  const auto place = [&](const Json& item) {
    const auto at = find(target, item_key(item, type));
    return at == target.end() ? -1 : at - target.begin();
  };
  Json out = Json::array();
  std::size_t next = 0;
  for (const Json& item : target) {
    if (named.contains(item_key(item, type))) continue;
    while (next < patched.size() && place(patched[next]) <= place(item)) out.push_back(patched[next++]);
    out.push_back(item);
  }
  while (next < patched.size()) out.push_back(patched[next++]);
  target = std::move(out);
}

}  // namespace

void strategic_patch(Json& target, const Json& patch) {
  if (!patch.is_object()) {
    target = patch;
    return;
  }
  if (!target.is_object() || core::get_string(patch, {"$patch"}) == "replace") target = Json::object();
  constexpr std::string_view kRemove = "$deleteFromPrimitiveList/";
  for (const auto& [name, value] : patch.items()) {
    if (name.starts_with(kRemove)) {
      Json& list = target[name.substr(kRemove.size())];
      for (const Json& gone : value) {
        for (std::size_t i = list.size(); i > 0; --i) {
          if (list[i - 1] == gone) list.erase(i - 1);
        }
      }
    } else if (name.starts_with("$")) {
      continue;  // $patch itself, and $setElementOrder, which only sorts
    } else if (value.is_null()) {
      target.erase(name);
    } else if (value.is_array()) {
      const ListType type = list_type(name, value, false);
      if (type.kind == ListType::Kind::kAtomic) {
        target[name] = value;
      } else {
        if (!target.contains(name) || !target[name].is_array()) target[name] = Json::array();
        strategic_list(target[name], value, type);
      }
    } else if (value.is_object()) {
      strategic_patch(target[name], value);
    } else {
      target[name] = value;
    }
  }
}

FieldSet fields_of(const Json& document, bool custom) {
  FieldSet all;
  FieldPath path;
  collect(document, "", custom, path, all);
  std::erase_if(all, server_set);
  return all;
}

Json fields_v1(const FieldSet& fields) {
  Json out = Json::object();
  for (const FieldPath& path : fields) {
    Json* at = &out;
    for (const std::string& part : path) {
      if (!at->contains(part)) (*at)[part] = Json::object();
      at = &(*at)[part];
    }
    if (path.back().starts_with("k:")) (*at)["."] = Json::object();
  }
  return out;
}

ApplyResult apply_config(const Json& live, const FieldOwners& owners, const Json& config, const std::string& manager,
                         bool force, bool custom) {
  ApplyResult result{live, owners, {}};
  const FieldSet wanted = fields_of(config, custom);
  for (const FieldPath& path : wanted) {
    if (path.back().starts_with("k:")) continue;  // several managers may own an item; only its fields can conflict
    const Json* have = at_path(live, path);
    const Json* want = at_path(config, path);
    if (have != nullptr && want != nullptr && *have == *want) continue;
    for (auto& [other, set] : result.owners) {
      if (other == manager || !set.contains(path)) continue;
      if (force) {
        set.erase(path);
      } else {
        result.conflicts.push_back({other, readable(path)});
      }
    }
  }
  if (!result.conflicts.empty()) return result;

  result.object = merge_applied(live, config, "", custom);
  const auto before = owners.find(manager);
  if (before != owners.end()) {
    // Removes whole items first, because an item that has lost its key field could not be found.
    std::vector<FieldPath> items;
    std::vector<FieldPath> fields;
    for (const FieldPath& path : before->second) {
      if (wanted.contains(path) || owned_by_others(result.owners, manager, path)) continue;
      (path.back().starts_with("f:") ? fields : items).push_back(path);
    }
    for (const FieldPath& item : items) {
      remove_path(result.object, item, 0, "");
      std::erase_if(fields, [&](const FieldPath& field) { return starts_with(field, item); });
    }
    for (const FieldPath& field : fields) {
      // The field has become an object or a list, and the new configuration sets a field inside of it.
      const auto inside = wanted.lower_bound(field);
      if (inside != wanted.end() && starts_with(*inside, field)) continue;
      remove_path(result.object, field, 0, "");
    }
  }
  result.owners[manager] = wanted;
  std::erase_if(result.owners, [](const auto& entry) { return entry.second.empty(); });
  return result;
}

FieldOwners own_changes(const Json& from, const Json& to, FieldOwners owners, const std::string& manager, bool custom) {
  const auto [before, after] = differing(from, to);
  const FieldSet had = fields_of(before, custom);
  const FieldSet has = fields_of(after, custom);
  for (const FieldPath& path : has) {
    const Json* old_value = had.contains(path) ? at_path(before, path) : nullptr;
    const Json* new_value = at_path(after, path);
    const bool item = path.back().starts_with("k:");
    if (old_value != nullptr && new_value != nullptr && (item || *old_value == *new_value)) continue;
    for (auto& [other, set] : owners) {
      if (other != manager) set.erase(path);
    }
    owners[manager].insert(path);
  }
  for (const FieldPath& path : had) {
    if (has.contains(path)) continue;
    for (auto& [other, set] : owners) set.erase(path);
  }
  std::erase_if(owners, [](const auto& entry) { return entry.second.empty(); });
  return owners;
}

}  // namespace sim
