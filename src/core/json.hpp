// JSON trees for small documents: objects we write, custom resources, replies to single requests.
//
// Not for streams of many large objects: caches read those with simdjson into records (kube/cache/cache.hpp).
// Objects are sorted by key, so that the same content always has the same text.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

extern template class nlohmann::basic_json<>;  // Compiled once, in json.cpp, not in every file.

namespace core {

using Json = nlohmann::json;

/// Parses text. Error: kInvalid with the byte offset.
Result<Json> parse_json(std::string_view text);

/// The member at a path of keys, or nullptr when any part is absent or of another type.
const Json* find(const Json& root, std::initializer_list<std::string_view> path);
/// The string, integer or boolean at a path, or the fallback.
std::string get_string(const Json& root, std::initializer_list<std::string_view> path, std::string_view fallback = "");
long long get_int(const Json& root, std::initializer_list<std::string_view> path, long long fallback = 0);
bool get_bool(const Json& root, std::initializer_list<std::string_view> path, bool fallback = false);

/// True when everything in `intent` stands in `observed` with the same value; `observed` may hold more (defaults that a server
/// filled in). Lists whose items have a "name" (containers, volumes, ports ...) are matched by it, other lists in order and
/// length. What the API server does not store may be absent: null, empty containers, and inside of a member also false, "" and
/// 0, but where absence means something else (labels, runAsUser ...). Where it puts a default in the place of a "" or 0
/// (imagePullPolicy, protocol, a probe's periodSeconds ...), any value will do. Resource quantities (under limits, requests,
/// capacity, hard, sizeLimit, divisor) are compared by value.
bool contains(const Json& observed, const Json& intent);

/// Dotted paths ("spec.replicas", "spec.template.containers[0].image") at which two documents differ.
std::vector<std::string> diff_paths(const Json& a, const Json& b);

/// A strategic-merge-like merge of `over` onto `base`: objects by key, lists of named items by "name" (env, containers,
/// volumes), lists of volumeMounts by "mountPath", other lists replaced; null removes.
Json merge(Json base, const Json& over);

/// The same without members that are null or an empty list, at any depth: in a manifest they say as much as absent ones.
Json without_unsaid(const Json& manifest);

}  // namespace core
