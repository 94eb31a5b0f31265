#include "core/json.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace core {
namespace {

/// The key that tells the items of a list apart: the member every item has as a string, and no two alike.
bool keyed_by(const Json& list, const char* key) {
  if (!list.is_array() || list.empty()) return false;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!list[i].is_object() || !list[i].contains(key) || !list[i][key].is_string()) return false;
    for (std::size_t j = 0; j < i; ++j) {
      if (list[i][key] == list[j][key]) return false;
    }
  }
  return true;
}

const Json* item_by(const Json& list, const char* key, const Json& value) {
  for (const Json& item : list) {
    if (item.is_object() && item.contains(key) && item[key] == value) return &item;
  }
  return nullptr;
}

bool empty_value(const Json& value) {
  return value.is_null() || ((value.is_object() || value.is_array()) && value.empty());
}

bool contains_list(const Json& observed, const Json& intent) {
  if (keyed_by(intent, "name")) {
    for (const Json& want : intent) {
      const Json* have = item_by(observed, "name", want["name"]);
      if (have == nullptr || !contains(*have, want)) return false;
    }
    return true;
  }
  if (observed.size() != intent.size()) return false;
  for (std::size_t i = 0; i < intent.size(); ++i) {
    if (!contains(observed[i], intent[i])) return false;
  }
  return true;
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
  for (const Json& item : over) {
    bool found = false;
    for (Json& have : base) {
      if (have.is_object() && have.contains(key) && have[key] == item[key]) {
        have = merge(std::move(have), item);
        found = true;
        break;
      }
    }
    if (!found) base.push_back(merge(Json::object(), item));
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
    const auto it = at->find(std::string(key));
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
  if (intent.is_object() && observed.is_object()) {
    for (const auto& [key, value] : intent.items()) {
      const auto it = observed.find(key);
      if (it == observed.end() ? !empty_value(value) : !contains(*it, value)) return false;
    }
    return true;
  }
  if (intent.is_array() && observed.is_array()) return contains_list(observed, intent);
  return observed == intent;
}

std::vector<std::string> diff_paths(const Json& a, const Json& b) {
  std::vector<std::string> out;
  diff(a, b, "", out);
  return out;
}

Json merge(Json base, const Json& over) {
  return merge_at(std::move(base), over, "");
}

}  // namespace core
