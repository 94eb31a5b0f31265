// Shared by the source files of the API server: a parsed request, an open watch, and parts of replies. Private to this folder.
// api.cpp reads and validates, api_writes.cpp writes, and api_subresources.cpp handles POSTs to subresources. api_requests.cpp
// parses HTTP requests, api_serve.cpp answers them, and api_watches.cpp serves watches.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/loop.hpp"
#include "net/http.hpp"
#include "sim/kube/api.hpp"

namespace sim {

net::HttpResponse reply(int code, const core::Json& body);
net::HttpResponse reply(const Refusal& refusal);

core::Json without(core::Json object, std::initializer_list<const char*> names);
core::Json metadata_only(const core::Json& object);

/// The form in which a client wants objects: whole, or only the metadata of one object or of all objects in a list.
enum class Shape { kWhole, kMetadata, kMetadataList };

/// Returns the shape for the first clause of Accept that the server knows; nullopt if it knows none.
std::optional<Shape> shape_of(const net::HttpRequest& request);

/// The resource that a refusal names for problems from match_problems().
extern const kube::Resource kListOptions;
/// Returns what is wrong with the parameter resourceVersionMatch and the parameters related to it.
std::vector<FieldProblem> match_problems(const std::map<std::string, std::string>& query, bool watch, bool watch_list);

struct Selection {
  std::string ns;
  std::vector<std::string> labels, fields;

  [[nodiscard]] bool matches(const kube::Key& key, const core::Json& object) const;
};

struct KubeApi::Watch {
  explicit Watch(core::Loop& loop) : timeout(loop) {}
  WatchId id = 0;
  const KubeKind* kind = nullptr;
  std::string table;
  Selection selection;
  bool bookmarks = false;
  bool metadata_only = false;
  WatchSink sink;
  core::Timer timeout;
};

/// A request to the API server, parsed from its path, query, headers and body.
struct KubeApi::Parsed {
  const KubeKind* kind = nullptr;
  kube::Key key;  ///< The name is "" for the collection.
  std::string subresource;
  std::map<std::string, std::string> query;
  Caller caller;
  core::Json body;

  [[nodiscard]] std::string option(const std::string& name) const {
    const auto it = query.find(name);
    return it == query.end() ? "" : it->second;
  }
  [[nodiscard]] Selection selection() const;
};

}  // namespace sim
