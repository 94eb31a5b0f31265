// JSON trees for small documents: objects that we write, custom resources, replies to single requests.
//
// Do not use these trees for streams of many large objects: caches read those with simdjson into records
// (kube/cache/cache.hpp). Objects are sorted by key, so that the same content always has the same text.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

extern template class nlohmann::basic_json<>;  // The template is compiled once, in json.cpp, not in every file.

namespace core {

using Json = nlohmann::json;

/// Parses a document. Error: kInvalid with the byte offset.
Result<Json> parse_json(std::string_view text);

/// Returns the member at a path of keys, of any type. Returns nullptr if a key is absent, or if its parent is not an object.
const Json* find(const Json& root, std::initializer_list<std::string_view> path);
/// Returns the string, integer or boolean at a path, or the fallback if the member is absent or has another type.
std::string get_string(const Json& root, std::initializer_list<std::string_view> path, std::string_view fallback = "");
long long get_int(const Json& root, std::initializer_list<std::string_view> path, long long fallback = 0);
bool get_bool(const Json& root, std::initializer_list<std::string_view> path, bool fallback = false);

/// Returns true if `observed` contains everything in `intent` with the same value. `observed` can contain more, such as
/// defaults from the server. Items of lists that have a "name" (containers, volumes, ports ...) are matched by name, items of
/// other lists by position in lists of equal length. Values that the API server does not store can be absent: null, empty
/// objects and lists, and below the top level also false, "" and 0, except where absence means something else (labels,
/// runAsUser ...). Where the server replaces a "" or 0 with a default (imagePullPolicy, protocol, periodSeconds ...), any value
/// matches. Resource quantities (under limits, requests, capacity, hard, sizeLimit, divisor) are compared by value.
bool contains(const Json& observed, const Json& intent);

/// Returns the dotted paths ("spec.replicas", "spec.template.containers[0].image") at which two documents differ.
std::vector<std::string> diff_paths(const Json& a, const Json& b);

/// Returns `base` merged with `over`, like a strategic merge: objects by key, lists of named items (env, containers, volumes)
/// by "name", lists of volumeMounts by "mountPath". `over` replaces other lists. A null in `over` removes the member.
Json merge(Json base, const Json& over);

/// Removes members that are null or an empty list, at any depth. In a manifest, they mean the same as absent members.
Json without_unsaid(const Json& manifest);

}  // namespace core
