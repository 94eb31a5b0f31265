#include <stdexcept>
#include <string>

namespace core {
namespace {
[[noreturn]] void broken(const char* rule) {
  throw std::logic_error(std::string("json: ") + rule);
}
}  // namespace
}  // namespace core
// Makes the JSON library throw, not abort, if the code reads a key that is missing. A missing key is a bug, but an abort would
// also end all other tests, or the whole program.
#define JSON_ASSERT(rule) ((rule) ? static_cast<void>(0) : core::broken(#rule))
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/json.hpp"
#include "core/quantity.hpp"

template class nlohmann::basic_json<>;

namespace core {
namespace {

/// Reports whether the key identifies the items of a list: every item has the key with a string, and all strings differ.
bool keyed_by(const Json& list, const char* key) {
  if (!list.is_array() || list.empty()) return false;
  std::unordered_set<std::string_view> seen;
  for (const Json& item : list) {
    if (!item.is_object() || !item.contains(key) || !item[key].is_string()) return false;
    if (!seen.insert(item[key].get_ref<const std::string&>()).second) return false;
  }
  return true;
}

/// Maps each text of the key to the place of the first item with this text. Ignores items that do not have the key as a string.
/// Uses a map, because lists that users write can be long.
std::unordered_map<std::string_view, std::size_t> items_by(const Json& list, const char* key) {
  std::unordered_map<std::string_view, std::size_t> out;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json& item = list[i];
    if (item.is_object() && item.contains(key) && item[key].is_string())
      out.emplace(item[key].get_ref<const std::string&>(), i);
  }
  return out;
}

bool empty_value(const Json& value) {
  return value.is_null() || ((value.is_object() || value.is_array()) && value.empty());
}

/// Reports whether the member is a quantity. Servers rewrite quantities ("0.5" becomes "500m"), so quantities are compared by
/// value.
bool holds_quantities(std::string_view parent, std::string_view key) {
  return parent == "limits" || parent == "requests" || parent == "capacity" || parent == "hard" || key == "sizeLimit" ||
         key == "divisor";
}

bool is_any_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Reports whether the value is false, "" or 0, and belongs to a field of the API. Returns false for a map whose keys users
/// choose, because the API server stores such a value there.
bool zero_member(const Json& value, std::string_view parent) {
  const bool empty_text = value.is_string() && value.get_ref<const std::string&>().empty();
  const bool zero = value == false || empty_text || (value.is_number() && value == 0);
  return zero && !parent.empty() &&
         !is_any_of(parent, {"labels", "annotations", "matchLabels", "nodeSelector", "selector", "data", "binaryData",
                             "stringData", "limits", "requests", "volumeAttributes"});
}

/// Reports whether absence means the same as false, "" or 0. This is so for most members, because the API server does not store
/// such values. The members that are listed here are exceptions.
bool absent_is_zero(const Json& value, std::string_view parent, std::string_view key) {
  return zero_member(value, parent) &&
         !is_any_of(key, {"automountServiceAccountToken", "enableServiceLinks", "allowPrivilegeEscalation", "hostUsers",
                          "runAsNonRoot", "runAsUser", "runAsGroup", "fsGroup", "mode", "tolerationSeconds", "storageClassName",
                          "terminationGracePeriodSeconds", "replicas", "revisionHistoryLimit", "maxUnavailable"});
}

/// Reports whether the API server replaces a "" or 0 of this member by its default, so that the value means the same as
/// absence.
bool zero_is_default(const Json& value, std::string_view parent, std::string_view key) {
  if (!zero_member(value, parent)) return false;
  // Only the type of a Service is meant. The API server does not replace the type of a hostPath.
  if (key == "type") return parent == "spec";
  if (key == "path") return parent == "httpGet";
  if (key == "apiVersion") return parent == "fieldRef";
  return is_any_of(
      key, {"imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy", "protocol", "restartPolicy", "dnsPolicy",
            "schedulerName", "scheme", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold", "targetPort",
            "clusterIP", "nodePort", "healthCheckNodePort", "sessionAffinity", "externalTrafficPolicy"});
}

bool contains_at(const Json& observed, const Json& intent, std::string_view parent, std::string_view key);

bool contains_list(const Json& observed, const Json& intent, std::string_view name) {
  if (keyed_by(intent, "name")) {
    const auto observed_by_name = items_by(observed, "name");
    for (const Json& want : intent) {
      const auto have = observed_by_name.find(want["name"].get_ref<const std::string&>());
      if (have == observed_by_name.end() || !contains_at(observed[have->second], want, "", name)) return false;
    }
    return true;
  }
  if (observed.size() != intent.size()) return false;
  for (std::size_t i = 0; i < intent.size(); ++i) {
    if (!contains_at(observed[i], intent[i], "", name)) return false;
  }
  return true;
}

bool contains_at(const Json& observed, const Json& intent, std::string_view parent, std::string_view key) {
  if (intent.is_object() && observed.is_object()) {
    for (const auto& [name, value] : intent.items()) {
      const auto it = observed.find(name);
      if (it != observed.end() ? !contains_at(*it, value, key, name) : !empty_value(value) && !absent_is_zero(value, key, name))
        return false;
    }
    return true;
  }
  if (intent.is_array() && observed.is_array()) return contains_list(observed, intent, key);
  if (observed == intent || zero_is_default(intent, parent, key)) return true;
  if (!holds_quantities(parent, key)) return false;
  const auto have = quantity(observed);
  return have && have == quantity(intent);
}

void diff(const Json& a, const Json& b, const std::string& path, std::vector<std::string>& out) {
  if (a == b) return;
  if (a.is_object() && b.is_object()) {
    const auto child = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
    Json keys = Json::object();
    for (const auto& [key, value] : a.items()) keys[key] = nullptr;
    for (const auto& [key, value] : b.items()) keys[key] = nullptr;
    for (const auto& [key, unused] : keys.items()) {
      if (!a.contains(key) || !b.contains(key)) {
        out.push_back(child(key));
      } else {
        diff(a[key], b[key], child(key), out);
      }
    }
    return;
  }
  if (a.is_array() && b.is_array()) {
    for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
      const std::string item = fmt::format("{}[{}]", path, i);
      if (i >= a.size() || i >= b.size()) {
        out.push_back(item);
      } else {
        diff(a[i], b[i], item, out);
      }
    }
    return;
  }
  out.push_back(path);
}

Json merge_list(Json base, const Json& over, const char* key) {
  // Items of `over` have distinct keys, so one map of the items of `base` is enough. The map copies the keys, because items
  // move.
  std::unordered_map<std::string, std::size_t> places;
  for (const auto& [text, place] : items_by(base, key)) places.emplace(text, place);
  for (const Json& item : over) {
    const auto found = places.find(item[key].get_ref<const std::string&>());
    if (found == places.end()) {
      base.push_back(merge(Json::object(), item));
    } else {
      base[found->second] = merge(std::move(base[found->second]), item);
    }
  }
  return base;
}

Json merge_at(Json base, const Json& over, std::string_view name) {
  if (over.is_object()) {
    if (!base.is_object()) base = Json::object();
    for (const auto& [key, value] : over.items()) {
      if (value.is_null()) {
        base.erase(key);
      } else {
        Json before = base.contains(key) ? std::move(base[key]) : Json();
        base[key] = merge_at(std::move(before), value, key);
      }
    }
    return base;
  }
  if (over.is_array() && base.is_array()) {
    const char* key = name == "volumeMounts" ? "mountPath" : "name";
    if (keyed_by(over, key) && (base.empty() || keyed_by(base, key))) return merge_list(std::move(base), over, key);
  }
  return over;
}

}  // namespace

Result<Json> parse_json(std::string_view text) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& e) {
    return fail(ErrorCode::kInvalid, fmt::format("malformed JSON at byte {}", e.byte));
  } catch (const Json::exception& e) {
    return fail(ErrorCode::kInvalid, fmt::format("malformed JSON: {}", e.what()));
  }
}

const Json* find(const Json& root, std::initializer_list<std::string_view> path) {
  const Json* at = &root;
  for (std::string_view key : path) {
    if (!at->is_object()) return nullptr;
    const auto it = at->find(key);
    if (it == at->end()) return nullptr;
    at = &*it;
  }
  return at;
}

std::string get_string(const Json& root, std::initializer_list<std::string_view> path, std::string_view fallback) {
  const Json* value = find(root, path);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string(fallback);
}

long long get_int(const Json& root, std::initializer_list<std::string_view> path, long long fallback) {
  const Json* value = find(root, path);
  return value != nullptr && value->is_number_integer() ? value->get<long long>() : fallback;
}

bool get_bool(const Json& root, std::initializer_list<std::string_view> path, bool fallback) {
  const Json* value = find(root, path);
  return value != nullptr && value->is_boolean() ? value->get<bool>() : fallback;
}

bool contains(const Json& observed, const Json& intent) {
  return contains_at(observed, intent, "", "");
}

std::vector<std::string> diff_paths(const Json& a, const Json& b) {
  std::vector<std::string> out;
  diff(a, b, "", out);
  return out;
}

Json merge(Json base, const Json& over) {
  return merge_at(std::move(base), over, "");
}

Json without_unsaid(const Json& manifest) {
  Json out = manifest;
  if (manifest.is_object()) {
    for (const auto& [name, value] : manifest.items()) {
      if (value.is_null() || (value.is_array() && value.empty())) {
        out.erase(name);
      } else {
        out[name] = without_unsaid(value);
      }
    }
  } else if (manifest.is_array()) {
    for (Json& item : out) item = without_unsaid(item);
  }
  return out;
}

}  // namespace core
