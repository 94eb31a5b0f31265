#include "sim/kube/api.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base64.hpp"
#include "core/hash.hpp"

namespace sim {

using core::Json;

namespace {

const Json kNull;

std::string quoted(const kube::Resource& resource, std::string_view name) {
  return fmt::format("{} \"{}\"", table_name(resource), name);
}

Refusal not_found(const kube::Resource& resource, std::string_view name) {
  return make_status(404, "NotFound", quoted(resource, name) + " not found", &resource, name);
}
Refusal already_exists(const kube::Resource& resource, std::string_view name) {
  return make_status(409, "AlreadyExists", quoted(resource, name) + " already exists", &resource, name);
}
Refusal conflict(const kube::Resource& resource, std::string_view name, std::string_view why) {
  return make_status(409, "Conflict", fmt::format("Operation cannot be fulfilled on {}: {}", quoted(resource, name), why),
                     &resource, name);
}
Refusal bad_request(std::string message) {
  return make_status(400, "BadRequest", std::move(message));
}

Refusal too_large(std::uint64_t wanted, std::uint64_t current) {
  Refusal status =
      make_status(504, "Timeout", fmt::format("Timeout: Too large resource version: {}, current: {}", wanted, current));
  status["details"]["causes"] =
      Json::array({Json{{"reason", "ResourceVersionTooLarge"}, {"message", "Too large resource version"}}});
  status["details"]["retryAfterSeconds"] = 1;
  return status;
}

/// "user" using v1: who holds a field, as apply names it.
std::string printed_owner(const kube::Resource& resource, const std::string& owner) {
  const std::size_t space = owner.find(' ');
  const std::size_t slash = std::min(owner.rfind('/'), owner.size());
  std::string out = fmt::format("\"{}\"", owner.substr(space + 1, slash - space - 1));
  if (slash < owner.size()) out += fmt::format(" with subresource \"{}\"", owner.substr(slash + 1));
  if (owner.starts_with("Update")) out += " using " + resource.api_version();
  return out;
}

Refusal apply_conflict(const kube::Resource& resource, const std::vector<ApplyConflict>& conflicts) {
  Json causes = Json::array();
  std::map<std::string, std::string> by_owner;
  for (const ApplyConflict& conflict : conflicts) {
    const std::string owner = printed_owner(resource, conflict.owner);
    causes.push_back({{"reason", "FieldManagerConflict"}, {"message", "conflict with " + owner}, {"field", conflict.path}});
    by_owner[owner] += "\n- " + conflict.path;
  }
  std::string message;
  if (conflicts.size() == 1) {
    message = fmt::format("Apply failed with 1 conflict: {}: {}", causes[0]["message"].get<std::string>(), conflicts[0].path);
  } else {
    for (const auto& [owner, paths] : by_owner)
      message += (message.empty() ? "" : "\n") + fmt::format("conflicts with {}:{}", owner, paths);
    message = fmt::format("Apply failed with {} conflicts: {}", conflicts.size(), message);
  }
  Refusal status = make_status(409, "Conflict", std::move(message));
  status["details"]["causes"] = std::move(causes);
  return status;
}

/// A failed precondition of a DELETE, which names the kind where others name the resource.
Refusal delete_conflict(const kube::Resource& resource, std::string_view name, std::string_view why) {
  kube::Resource named = resource;
  named.plural = resource.kind;
  return conflict(named, name, why);
}

constexpr std::string_view kModified =
    "the object has been modified; please apply your changes to the latest version and try again";

/// 422, as field validation answers it.
Refusal invalid(const kube::Resource& resource, std::string_view name, const std::vector<FieldProblem>& problems) {
  std::string list;
  Json causes = Json::array();
  for (const FieldProblem& problem : problems) {
    list += (list.empty() ? "" : ", ") + problem.field + ": " + problem.message;
    causes.push_back({{"reason", problem.reason}, {"message", problem.message}, {"field", problem.field}});
  }
  if (problems.size() > 1) list = "[" + list + "]";
  const std::string kind = resource.group.empty() ? resource.kind : resource.kind + "." + resource.group;
  Refusal status = make_status(422, "Invalid", fmt::format("{} \"{}\" is invalid: {}", kind, name, list), &resource, name);
  status["details"]["kind"] = resource.kind;
  status["details"]["causes"] = std::move(causes);
  return status;
}

net::HttpResponse reply(int code, const Json& body) {
  net::HttpResponse response{code, {{"content-type", "application/json"}}, core::canonical(body)};
  return response;
}
net::HttpResponse reply(const Refusal& refusal) {
  net::HttpResponse response = reply(static_cast<int>(core::get_int(refusal, {"code"}, 500)), refusal);
  const long long wait = core::get_int(refusal, {"details", "retryAfterSeconds"});
  if (wait > 0) response.headers["retry-after"] = std::to_string(wait);
  return response;
}

std::string decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

std::map<std::string, std::string> parse_query(std::string_view query) {
  std::map<std::string, std::string> out;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    const std::size_t equals = std::min(pair.find('='), pair.size());
    out[decode(pair.substr(0, equals))] = equals < pair.size() ? decode(pair.substr(equals + 1)) : "";
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return out;
}

std::string trim(std::string text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out;
  std::size_t start = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '(') ++depth;
    if (i < text.size() && text[i] == ')') --depth;
    if (i == text.size() || (text[i] == separator && depth == 0)) {
      if (i > start) out.emplace_back(text.substr(start, i - start));
      start = i + 1;
    }
  }
  return out;
}

/// How a client wants objects: whole, or (meta.k8s.io/v1) the metadata of one, or of each of a list.
enum class Shape { kWhole, kMetadata, kMetadataList };

/// By the first clause of Accept that the server knows, as its negotiation goes; nullopt: none.
std::optional<Shape> shape_of(const net::HttpRequest& request) {
  const auto accept = request.headers.find("accept");
  if (accept == request.headers.end() || accept->second.empty()) return Shape::kWhole;
  for (const std::string& clause : split(accept->second, ',')) {
    const std::vector<std::string> parts = split(clause, ';');
    const std::string type = parts.empty() ? "" : trim(parts[0]);
    if (type != "application/json" && type != "application/*" && type != "*/*") continue;
    std::map<std::string, std::string> options;
    for (std::size_t i = 1; i < parts.size(); ++i) {
      const std::string part = trim(parts[i]);
      const std::size_t equals = std::min(part.find('='), part.size());
      options[part.substr(0, equals)] = equals < part.size() ? part.substr(equals + 1) : "";
    }
    if (!options.contains("as")) return Shape::kWhole;
    const bool known = options["g"] == "meta.k8s.io" && options["v"] == "v1";
    if (known && options["as"] == "PartialObjectMetadata") return Shape::kMetadata;
    if (known && options["as"] == "PartialObjectMetadataList") return Shape::kMetadataList;
  }
  return std::nullopt;
}

Json metadata_only(const Json& object) {
  return {{"kind", "PartialObjectMetadata"}, {"apiVersion", "meta.k8s.io/v1"}, {"metadata", object["metadata"]}};
}

/// An answer in another shape. A list is none of one object, and the other way round.
net::HttpResponse reshaped(net::HttpResponse whole, Shape shape) {
  const auto json = core::parse_json(whole.body);
  if (!json || json->value("kind", "") == "Status") return whole;
  const bool list = json->contains("items");
  if (list != (shape == Shape::kMetadataList)) {
    return reply(make_status(406, "NotAcceptable",
                             list ? "you requested PartialObjectMetadata, but the requested object is a list"
                                  : "you requested PartialObjectMetadataList, but the requested object is not a list"));
  }
  if (!list) return reply(whole.status, metadata_only(*json));
  Json items = Json::array();
  for (const Json& item : (*json)["items"]) items.push_back(metadata_only(item));
  return reply(whole.status, {{"kind", "PartialObjectMetadataList"},
                              {"apiVersion", "meta.k8s.io/v1"},
                              {"metadata", (*json)["metadata"]},
                              {"items", std::move(items)}});
}

/// "a=b,c!=d,e in (x,y),!f,g".
bool matches_label_clause(const Json& labels, const std::string& clause) {
  const auto value = [&](const std::string& key) -> std::optional<std::string> {
    return labels.contains(key) ? std::optional(labels[key].get<std::string>()) : std::nullopt;
  };
  for (const std::string word : {" notin (", " in ("}) {
    const std::size_t at = clause.find(word);
    if (at == std::string::npos) continue;
    const auto have = value(trim(clause.substr(0, at)));
    bool listed = false;
    for (const std::string& item : split(clause.substr(at + word.size(), clause.rfind(')') - at - word.size()), ',')) {
      listed = listed || have == trim(item);
    }
    return word == " in (" ? listed : !listed;
  }
  std::size_t at = clause.find("!=");
  if (at != std::string::npos) return value(trim(clause.substr(0, at))) != trim(clause.substr(at + 2));
  at = clause.find('=');
  if (at != std::string::npos) {
    const std::size_t skip = clause.compare(at, 2, "==") == 0 ? 2 : 1;
    return value(trim(clause.substr(0, at))) == trim(clause.substr(at + skip));
  }
  return clause[0] == '!' ? !value(trim(clause.substr(1))).has_value() : value(trim(clause)).has_value();
}

std::string field_value(const Json& object, const std::string& path) {
  const Json* at = &object;
  for (const std::string& part : split(path, '.')) {
    if (!at->is_object() || !at->contains(part)) return "";
    at = &(*at)[part];
  }
  return at->is_string() ? at->get<std::string>() : at->dump();
}

bool matches_field_clause(const Json& object, const std::string& clause) {
  std::size_t at = clause.find("!=");
  if (at != std::string::npos) return field_value(object, clause.substr(0, at)) != clause.substr(at + 2);
  at = clause.find('=');
  if (at == std::string::npos) return false;
  const std::size_t skip = clause.compare(at, 2, "==") == 0 ? 2 : 1;
  return field_value(object, clause.substr(0, at)) == clause.substr(at + skip);
}

struct Selection {
  std::string ns;
  std::vector<std::string> labels, fields;

  [[nodiscard]] bool matches(const kube::Key& key, const Json& object) const {
    if (!ns.empty() && key.ns != ns) return false;
    const Json* have = core::find(object, {"metadata", "labels"});
    const Json& labelled = have != nullptr ? *have : kNull;
    return std::all_of(labels.begin(), labels.end(), [&](const std::string& c) { return matches_label_clause(labelled, c); }) &&
           std::all_of(fields.begin(), fields.end(), [&](const std::string& c) { return matches_field_clause(object, c); });
  }
};

bool valid_name(std::string_view name) {
  if (name.empty() || name.size() > 253) return false;
  const auto good = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  if (!good(name.front()) || !good(name.back())) return false;
  return std::all_of(name.begin(), name.end(), [&](char c) { return good(c) || c == '-' || c == '.' || c == ':'; });
}

std::size_t finalizer_count(const Json& object) {
  const Json* list = core::find(object, {"metadata", "finalizers"});
  return list == nullptr ? 0 : list->size();
}

Json without(Json object, std::initializer_list<const char*> names) {
  for (const char* name : names) object.erase(name);
  return object;
}

void drop_empty(Json& metadata, const char* name) {
  if (metadata.contains(name) && (metadata[name].is_null() || metadata[name].empty())) metadata.erase(name);
}

}  // namespace

Refusal make_status(int code, std::string_view reason, std::string message, const kube::Resource* resource,
                    std::string_view name) {
  Json status{{"kind", "Status"},
              {"apiVersion", "v1"},
              {"metadata", Json::object()},
              {"status", "Failure"},
              {"message", std::move(message)},
              {"reason", reason},
              {"code", code}};
  if (resource != nullptr) {
    Json details{{"kind", resource->plural}};
    if (!name.empty()) details["name"] = name;
    if (!resource->group.empty()) details["group"] = resource->group;
    status["details"] = std::move(details);
  }
  return status;
}

bool is_ready(const Json& object) {
  const Json* conditions = core::find(object, {"status", "conditions"});
  if (conditions == nullptr) return false;
  return std::any_of(conditions->begin(), conditions->end(), [](const Json& c) {
    return core::get_string(c, {"type"}) == "Ready" && core::get_string(c, {"status"}) == "True";
  });
}

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

/// A request, taken apart.
struct KubeApi::Parsed {
  const KubeKind* kind = nullptr;
  kube::Key key;  ///< Empty name: the collection.
  std::string subresource;
  std::map<std::string, std::string> query;
  Caller caller;
  Json body;

  [[nodiscard]] std::string option(const std::string& name) const {
    const auto it = query.find(name);
    return it == query.end() ? "" : it->second;
  }
  [[nodiscard]] Selection selection() const {
    return {key.ns, split(option("labelSelector"), ','), split(option("fieldSelector"), ',')};
  }
};

KubeApi::KubeApi(core::Loop& loop, core::Random& random, ApiOptions options)
    : loop_(loop), random_(random), options_(options), bookmarks_(loop), compact_looked_(loop.clock().mono()) {
  for (KubeKind& kind : builtin_kinds()) serve_kind(std::move(kind));
  store_.listen([this](const std::string& table, const ChangePtr& change) { on_change(table, change); });
}

KubeApi::~KubeApi() = default;

void KubeApi::serve_kind(KubeKind kind) {
  const std::string path = kind.resource.api_version() + "/" + kind.resource.plural;
  if (by_path_.contains(path)) {
    kinds_[by_path_[path]] = std::move(kind);
    return;
  }
  by_path_[path] = kinds_.size();
  kinds_.push_back(std::move(kind));
}

const KubeKind* KubeApi::find_kind(std::string_view group, std::string_view version, std::string_view plural) const {
  const auto it = by_path_.find(fmt::format("{}{}{}/{}", group, group.empty() ? "" : "/", version, plural));
  return it == by_path_.end() ? nullptr : &kinds_[it->second];
}

const KubeKind* KubeApi::find_table(const std::string& table) const {
  const auto it =
      std::find_if(kinds_.begin(), kinds_.end(), [&](const KubeKind& kind) { return table_name(kind.resource) == table; });
  return it == kinds_.end() ? nullptr : &*it;
}

const KubeKind& KubeApi::must_find(const kube::Resource& resource) const {
  const KubeKind* kind = find_kind(resource.group, resource.version, resource.plural);
  if (kind == nullptr) throw std::logic_error("SimKube does not serve " + table_name(resource));
  return *kind;
}

std::string KubeApi::now() const {
  return core::format_rfc3339(loop_.clock().wall());
}

std::string KubeApi::new_uid() {
  const std::string hex = core::sha256_hex(std::to_string(random_.below(~0ULL)) + std::to_string(store_.revision()));
  return fmt::format("{}-{}-4{}-8{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 3), hex.substr(15, 3),
                     hex.substr(18, 12));
}

std::optional<Refusal> KubeApi::admit(const AdmissionRequest& request) const {
  for (const Admission& admission : admissions_) {
    if (auto refusal = admission(request)) return refusal;
  }
  return std::nullopt;
}

std::optional<Refusal> KubeApi::check_namespace(const KubeKind& kind, const kube::Key& key) const {
  if (!kind.resource.namespaced) return std::nullopt;
  const StoredPtr space = store_.find("namespaces", {"", key.ns});
  if (!space) return not_found(kube::resources::kNamespace, key.ns);
  if (!terminating(space->body)) return std::nullopt;
  Refusal status =
      make_status(403, "Forbidden",
                  fmt::format("{} is forbidden: unable to create new content in namespace {} because it is being terminated",
                              quoted(kind.resource, key.name), key.ns),
                  &kind.resource, key.name);
  status["details"]["causes"] = Json::array({Json{{"reason", "NamespaceTerminating"},
                                                  {"message", fmt::format("namespace {} is being terminated", key.ns)},
                                                  {"field", "metadata.namespace"}}});
  return status;
}

std::optional<Refusal> KubeApi::check_object(const KubeKind& kind, const Json& object, const Caller& caller) const {
  const std::string name = core::get_string(object, {"metadata", "name"});
  if (caller.strict && kind.unknown_fields) {
    const auto unknown = kind.unknown_fields(object);
    if (!unknown.empty()) {
      std::string list;
      for (const std::string& field : unknown)
        list += (list.empty() ? "unknown field \"" : ", unknown field \"") + field + "\"";
      return bad_request(fmt::format("{} in version \"{}\" cannot be handled as a {}: strict decoding error: {}",
                                     kind.resource.kind, kind.resource.version, kind.resource.kind, list));
    }
  }
  std::vector<FieldProblem> problems;
  if (!valid_name(name)) {
    problems.push_back(
        {"metadata.name", "FieldValueInvalid",
         fmt::format(
             "Invalid value: \"{}\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
             "'-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation "
             "is "
             "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
             name)});
  }
  if (kind.validate) {
    auto more = kind.validate(object);
    problems.insert(problems.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  if (problems.empty()) return std::nullopt;
  return invalid(kind.resource, name, problems);
}

Json KubeApi::shown(const KubeKind& kind, const Stored& stored) const {
  Json object = stored.body;
  object["apiVersion"] = kind.resource.api_version();
  object["kind"] = kind.resource.kind;
  Json managed = Json::array();
  const auto entry = [&](const std::string& manager, const std::string& operation, const std::string& subresource,
                         Json fields) {
    Json one{{"manager", manager},
             {"operation", operation},
             {"apiVersion", kind.resource.api_version()},
             {"time", core::get_string(object, {"metadata", "creationTimestamp"})},
             {"fieldsType", "FieldsV1"},
             {"fieldsV1", std::move(fields)}};
    if (!subresource.empty()) one["subresource"] = subresource;
    managed.push_back(std::move(one));
  };
  for (const auto& [owner, fields] : stored.owners) {
    const std::size_t space = owner.find(' ');
    const std::size_t slash = std::min(owner.rfind('/'), owner.size());
    entry(owner.substr(space + 1, slash - space - 1), owner.substr(0, space),
          slash < owner.size() ? owner.substr(slash + 1) : "", fields_v1(fields));
  }
  if (stored.owners.empty()) entry(stored.creator, "Update", "", {{"f:metadata", Json::object()}});
  object["metadata"]["managedFields"] = std::move(managed);
  return object;
}

const std::string& KubeApi::text_of(const KubeKind& kind, const Stored& stored) const {
  if (stored.text.empty()) stored.text = core::canonical(shown(kind, stored));
  return stored.text;
}

std::string KubeApi::text_for(const Watch& watch, const Stored& stored) const {
  return watch.metadata_only ? core::canonical(metadata_only(shown(*watch.kind, stored))) : text_of(*watch.kind, stored);
}

ApiResult<Json> KubeApi::get(const kube::Resource& resource, const kube::Key& key) const {
  const KubeKind& kind = must_find(resource);
  const StoredPtr stored = store_.find(table_name(resource), key);
  if (!stored) return std::unexpected(not_found(resource, key.name));
  return shown(kind, *stored);
}

const Json* KubeApi::peek(const kube::Resource& resource, const kube::Key& key) const {
  const StoredPtr stored = store_.find(table_name(resource), key);
  return stored ? &stored->body : nullptr;  // the store keeps it for as long as it is the newest
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

namespace {

/// Pods and the like are written by several and applied by none: who owns what of them is not worth its time.
bool follows_owners(const KubeKind& kind) {
  static const std::set<std::string> kNot{"pods", "nodes", "leases", "events", "endpointslices", "replicasets"};
  return !kNot.contains(kind.resource.plural);
}

/// Everything, as long as nobody but its creator has written it.
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

ApiResult<Json> KubeApi::write(const KubeKind& kind, const StoredPtr& before, Json after, const Caller& caller,
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
  if (after == was && *owners == before->owners) return shown(kind, *before);
  if (caller.dry_run) return shown(kind, Stored{std::move(after), std::move(*owners), 0});
  const Json* space_finalizers = core::find(after, {"spec", "finalizers"});
  const bool held = kind.resource.plural == "namespaces" && space_finalizers != nullptr && !space_finalizers->empty();
  if (terminating(after) && !held && finalizer_count(after) == 0 &&
      core::get_int(after, {"metadata", "deletionGracePeriodSeconds"}) == 0) {
    store_.erase(table_name(kind.resource), key);  // never stored: watches do not see it without its finalizers
    return shown(kind, Stored{std::move(after), std::move(*owners), before->revision});
  }
  return shown(kind, *store_.put(table_name(kind.resource), key, std::move(after), std::move(*owners)));
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
    kube::Resource named = resource;  // here too the resource stands where the kind does elsewhere
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
  // Preconditions of the caller, which are no fields of the object.
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
    after["status"]["phase"] = "Terminating";  // its own finalizer, spec.finalizers, is the namespace controller's
    grace = 0;
  }
  const bool waits = !finalizers.empty() || grace > 0 || resource.plural == "namespaces";
  if (!waits) {
    if (kind.graceful) {  // watches see that it is being deleted, and then that it is gone
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

ApiResult<Json> KubeApi::evict(const kube::Key& pod, const Deletion& deletion, const Caller& caller) {
  const auto& resource = kube::resources::kPod;
  const StoredPtr stored = store_.find("pods", pod);
  if (!stored) return std::unexpected(not_found(resource, pod.name));
  const bool pending = core::get_string(stored->body, {"status", "phase"}) == "Pending";
  const bool counted = !terminating(stored->body) && !ended(stored->body) && !pending;
  if (counted) {
    for (const auto& [key, budget] : store_.all("poddisruptionbudgets.policy")) {
      if (key.ns != pod.ns) continue;
      const Json* labels = core::find(budget->body, {"spec", "selector", "matchLabels"});
      if (labels == nullptr || labels->empty() ||
          !core::contains(stored->body["metadata"].value("labels", Json::object()), *labels))
        continue;
      const auto count = [&](const char* name) { return core::get_int(budget->body, {"status", name}); };
      // What is not ready does not count for the budget, as long as enough others are.
      if (!is_ready(stored->body) && (core::get_string(budget->body, {"spec", "unhealthyPodEvictionPolicy"}) == "AlwaysAllow" ||
                                      (count("currentHealthy") >= count("desiredHealthy") && count("desiredHealthy") > 0)))
        continue;
      const auto allowed = count("disruptionsAllowed");
      if (allowed <= 0) {
        Refusal status =
            make_status(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.");
        status["details"]["causes"] =
            Json::array({Json{{"reason", "DisruptionBudget"},
                              {"message", fmt::format("The disruption budget {} needs {} healthy pods and has {} currently",
                                                      key.name, count("desiredHealthy"), count("currentHealthy"))}}});
        return std::unexpected(status);
      }
      modify(
          kube::resources::kPodDisruptionBudget, key, [&](Json& b) { b["status"]["disruptionsAllowed"] = allowed - 1; }, {},
          "status");
    }
  }
  const auto meets = [&](const std::string& wanted, const char* field) {
    return wanted.empty() || wanted == core::get_string(stored->body, {"metadata", field});
  };
  Deletion last = deletion;
  if (meets(deletion.uid, "uid") && meets(deletion.resource_version, "resourceVersion")) {
    modify(
        resource, pod, [&](Json& p) { disrupt(p, "EvictionByEvictionAPI", "Eviction API: evicting"); }, caller, "status");
    last.resource_version.clear();  // the condition was the change that it knows nothing of
  }
  return remove(resource, pod, last, caller);
}

namespace {

/// Field errors that no strategy turns into a 422: they come as they are, of a server's fault.
Refusal unexplained(std::string message) {
  Refusal status = make_status(500, "", std::move(message));
  status.erase("reason");
  return status;
}

std::optional<Refusal> check_binding(const kube::Key& pod, const Json& binding) {
  if (core::get_string(binding, {"metadata", "name"}) != pod.name)
    return bad_request("name in URL does not match name in Binding object");
  std::vector<std::string> problems;
  const std::string kind = core::get_string(binding, {"target", "kind"});
  if (!kind.empty() && kind != "Node") {
    problems.push_back(fmt::format(R"(target.kind: Unsupported value: "{}": supported values: "Node", "<empty>")", kind));
  }
  if (core::get_string(binding, {"target", "name"}).empty()) problems.emplace_back("target.name: Required value");
  if (problems.empty()) return std::nullopt;
  return unexplained(problems.size() == 1 ? problems[0] : fmt::format("[{}]", fmt::join(problems, ", ")));
}

/// Why no binding is possible; "": it is.
std::string not_bindable(const Json& pod, const std::string& name) {
  const std::string node = core::get_string(pod, {"spec", "nodeName"});
  if (terminating(pod)) return fmt::format("pod {} is being deleted, cannot be assigned to a host", name);
  if (!node.empty()) return fmt::format("pod {} is already assigned to node \"{}\"", name, node);
  const Json* gates = core::find(pod, {"spec", "schedulingGates"});
  return gates == nullptr || gates->empty() ? "" : fmt::format("pod {} has non-empty .spec.schedulingGates", name);
}

std::string precondition_of(const kube::Key& pod, const char* what, const std::string& wanted, const std::string& found) {
  return fmt::format(
      "StorageError: invalid object, Code: 4, Key: /registry/pods/{}, ResourceVersion: 0, AdditionalErrorMsg: Precondition "
      "failed: {} in precondition: {}, {} in object meta: {}",
      pod.str(), what, wanted, what, found);
}

}  // namespace

ApiResult<Json> KubeApi::bind(const kube::Key& pod, const Json& binding, const Caller& caller) {
  const auto& resource = kube::resources::kPod;
  if (auto refusal = check_binding(pod, binding)) return std::unexpected(*refusal);
  const StoredPtr stored = store_.find("pods", pod);
  if (!stored) return std::unexpected(not_found(resource, pod.name));
  const Json& was = stored->body;
  for (const auto& [field, what] : {std::pair("uid", "UID"), std::pair("resourceVersion", "ResourceVersion")}) {
    const std::string wanted = core::get_string(binding, {"metadata", field});
    const std::string found = core::get_string(was, {"metadata", field});
    if (!wanted.empty() && wanted != found)
      return std::unexpected(conflict(resource, pod.name, precondition_of(pod, what, wanted, found)));
  }
  if (const std::string why = not_bindable(was, pod.name); !why.empty()) {
    kube::Resource named = resource;
    named.plural = "pods/binding";
    return std::unexpected(conflict(named, pod.name, why));
  }
  if (auto refusal = admit({"CREATE", resource, pod, "binding", &binding, &was, caller.user})) return std::unexpected(*refusal);
  if (caller.dry_run) return shown(must_find(resource), *stored);
  Json after = was;
  after["spec"]["nodeName"] = core::get_string(binding, {"target", "name"});
  const Json annotations = binding["metadata"].value("annotations", Json::object());
  for (const auto& [name, value] : annotations.items()) after["metadata"]["annotations"][name] = value;
  if (!after["status"]["conditions"].is_array()) after["status"]["conditions"] = Json::array();
  Json& conditions = after["status"]["conditions"];
  std::erase_if(conditions.get_ref<Json::array_t&>(), [](const Json& c) { return c["type"] == "PodScheduled"; });
  conditions.push_back(
      {{"type", "PodScheduled"}, {"status", "True"}, {"lastTransitionTime", now()}, {"lastProbeTime", nullptr}});
  return shown(must_find(resource), *store_.put("pods", pod, std::move(after), stored->owners));
}

ApiResult<Json> KubeApi::request_token(const kube::Key& account, Json request) {
  const kube::Resource& resource = kube::resources::kServiceAccount;
  const kube::Resource kind{"authentication.k8s.io", "v1", "TokenRequest", "tokenrequests", true};
  const std::string name_in_body = core::get_string(request, {"metadata", "name"}, account.name);
  if (name_in_body != account.name) {
    return std::unexpected(
        invalid(kind, account.name,
                {{"metadata.name", "FieldValueInvalid",
                  fmt::format("Invalid value: \"{}\": must match the service account name if specified", name_in_body)}}));
  }
  const StoredPtr stored = store_.find("serviceaccounts", account);
  if (!stored) return std::unexpected(not_found(resource, account.name));
  Json& spec = request["spec"];
  if (!spec.is_object()) spec = Json::object();
  const long long seconds = core::get_int(spec, {"expirationSeconds"}, 3600);
  if (seconds < 600) {
    return std::unexpected(
        invalid(kind, "",
                {{"spec.expirationSeconds", "FieldValueInvalid",
                  fmt::format("Invalid value: {}: may not specify a duration less than 10 minutes", seconds)}}));
  }
  if (const Json* bound = core::find(spec, {"boundObjectRef"}); bound != nullptr && bound->is_object()) {
    const std::string of_kind = core::get_string(*bound, {"kind"});
    const std::string name = core::get_string(*bound, {"name"});
    if (of_kind != "Pod" && of_kind != "Secret")
      return std::unexpected(bad_request("cannot bind token to object of type /v1, Kind=" + of_kind));
    const auto& to = of_kind == "Pod" ? kube::resources::kPod : kube::resources::kSecret;
    const Json* object = peek(to, {account.ns, name});
    if (object == nullptr) return std::unexpected(not_found(to, name));
    const std::string uid = core::get_string(*bound, {"uid"});
    const std::string found = core::get_string(*object, {"metadata", "uid"});
    if (!uid.empty() && uid != found) {
      return std::unexpected(delete_conflict(
          to, name,
          fmt::format("the UID in the bound object reference ({}) does not match the UID in record ({}). The object might have "
                      "been deleted and then recreated",
                      uid, found)));
    }
  }
  spec["expirationSeconds"] = seconds;
  if (!spec.contains("audiences") || spec["audiences"].empty()) spec["audiences"] = {"https://kubernetes.default.svc"};
  request["kind"] = "TokenRequest";
  request["apiVersion"] = "authentication.k8s.io/v1";
  request["metadata"] = {{"name", account.name}, {"namespace", account.ns}, {"creationTimestamp", now()}};
  request["status"] = {{"token", "sim." + core::sha256_hex(new_uid())},
                       {"expirationTimestamp", core::format_rfc3339(loop_.clock().wall() + std::chrono::seconds(seconds))}};
  return request;
}

void KubeApi::disrupt(Json& pod, const char* reason, const char* message) const {
  Json& conditions = pod["status"]["conditions"];
  if (!conditions.is_array()) conditions = Json::array();
  std::erase_if(conditions.get_ref<Json::array_t&>(), [](const Json& c) { return c["type"] == "DisruptionTarget"; });
  conditions.push_back({{"type", "DisruptionTarget"},
                        {"status", "True"},
                        {"reason", reason},
                        {"message", message},
                        {"lastTransitionTime", now()},
                        {"lastProbeTime", nullptr}});
}

bool KubeApi::modify(const kube::Resource& resource, const kube::Key& key, const std::function<void(Json&)>& change,
                     const Caller& caller, const std::string& subresource) {
  const KubeKind& kind = must_find(resource);
  const StoredPtr before = store_.find(table_name(resource), key);
  if (!before) return false;
  Json after = before->body;
  change(after);
  return write(kind, before, std::move(after), caller, subresource, std::nullopt).has_value();
}

// ---------------------------------------------------------------------------------------------------------------------- HTTP

bool KubeApi::is_watch(const net::HttpRequest& request) {
  const std::size_t question = request.target.find('?');
  if (request.method != "GET" || question == std::string::npos) return false;
  const auto query = parse_query(std::string_view(request.target).substr(question + 1));
  const auto it = query.find("watch");
  return it != query.end() && (it->second == "true" || it->second == "1");
}

std::expected<KubeApi::Parsed, net::HttpResponse> KubeApi::parse(const net::HttpRequest& request) const {
  const auto unknown = [] {
    return std::unexpected(reply(make_status(404, "NotFound", "the server could not find the requested resource")));
  };
  Parsed parsed;
  const std::size_t question = std::min(request.target.find('?'), request.target.size());
  std::vector<std::string> parts = split(request.target.substr(0, question), '/');
  for (std::string& part : parts) part = decode(part);
  if (question < request.target.size()) parsed.query = parse_query(std::string_view(request.target).substr(question + 1));
  if (parts.size() < 3) return unknown();
  std::string group;
  std::size_t at = 1;
  if (parts[0] == "apis") {
    group = parts[1];
    at = 2;
  } else if (parts[0] != "api") {
    return unknown();
  }
  const std::string version = parts[at++];
  if (at >= parts.size()) return unknown();
  const bool served = std::any_of(kinds_.begin(), kinds_.end(), [&](const KubeKind& kind) {
    return kind.resource.group == group && kind.resource.version == version;
  });
  if (!served)
    return std::unexpected(net::HttpResponse{404, {{"content-type", "text/plain; charset=utf-8"}}, "404 page not found\n"});
  // /namespaces/NAME is an object of its own, unless a resource follows.
  if (parts[at] == "namespaces" && at + 2 < parts.size() && parts[at + 2] != "status" && parts[at + 2] != "finalize") {
    parsed.key.ns = parts[at + 1];
    at += 2;
  }
  parsed.kind = find_kind(group, version, parts[at]);
  if (parsed.kind == nullptr) return unknown();
  ++at;
  if (at < parts.size()) parsed.key.name = parts[at++];
  if (at < parts.size()) parsed.subresource = parts[at++];
  if (at < parts.size()) return unknown();
  if (!parsed.key.name.empty() && parsed.kind->resource.namespaced && parsed.key.ns.empty()) return unknown();

  const auto agent = request.headers.find("user-agent");
  const std::string program = agent == request.headers.end() ? "unknown" : agent->second.substr(0, agent->second.find('/'));
  const auto user = request.headers.find("x-sim-user");
  parsed.caller.user = user == request.headers.end() ? program : user->second;
  parsed.caller.manager = parsed.option("fieldManager").empty() ? program : parsed.option("fieldManager");
  parsed.caller.strict = parsed.option("fieldValidation") == "Strict";
  parsed.caller.dry_run = parsed.option("dryRun") == "All";
  if (!request.body.empty()) {
    auto body = core::parse_json(request.body);
    if (!body) return std::unexpected(reply(bad_request("the object provided is unrecognized: " + body.error().message)));
    parsed.body = std::move(*body);
  }
  return parsed;
}

net::HttpResponse KubeApi::serve(const net::HttpRequest& request) {
  const std::string path = request.target.substr(0, request.target.find('?'));
  if (path == "/version") return reply(200, {{"major", "1"}, {"minor", "34"}, {"gitVersion", "v1.34.4+sim"}});
  if (path == "/readyz" || path == "/livez" || path == "/healthz") return {200, {{"content-type", "text/plain"}}, "ok"};
  auto parsed = parse(request);
  if (!parsed) return parsed.error();
  const auto shape = shape_of(request);
  if (!shape) {
    return reply(make_status(406, "NotAcceptable",
                             "only the following media types are accepted: application/json, application/yaml, "
                             "application/vnd.kubernetes.protobuf"));
  }
  net::HttpResponse whole = serve_parsed(*parsed, request);
  return *shape == Shape::kWhole || whole.status >= 300 ? whole : reshaped(std::move(whole), *shape);
}

std::optional<net::HttpResponse> KubeApi::serve_created_subresource(const Parsed& parsed, const net::HttpRequest& request) {
  const std::string& what = parsed.subresource;
  const bool of_pods = parsed.kind->resource.plural == "pods" && (what == "eviction" || what == "binding");
  const bool of_accounts = parsed.kind->resource.plural == "serviceaccounts" && what == "token";
  if (!of_pods && !of_accounts) return std::nullopt;
  if (request.method != "POST") {
    return reply(make_status(405, "MethodNotAllowed", "the server does not allow this method on the requested resource"));
  }
  ++counts_["create " + table_name(parsed.kind->resource) + "/" + what];
  if (of_accounts) {
    const auto made = request_token(parsed.key, parsed.body);
    return made ? reply(201, *made) : reply(made.error());
  }
  ApiResult<Json> done;
  if (what == "binding") {
    done = bind(parsed.key, parsed.body, parsed.caller);
  } else {
    if (core::get_string(parsed.body, {"metadata", "name"}) != parsed.key.name)
      return reply(bad_request("name in URL does not match name in Eviction object"));
    Deletion deletion;
    deletion.uid = core::get_string(parsed.body, {"deleteOptions", "preconditions", "uid"});
    deletion.resource_version = core::get_string(parsed.body, {"deleteOptions", "preconditions", "resourceVersion"});
    const Json* grace = core::find(parsed.body, {"deleteOptions", "gracePeriodSeconds"});
    if (grace != nullptr && grace->is_number()) deletion.grace_seconds = grace->get<int>();
    done = evict(parsed.key, deletion, parsed.caller);
  }
  if (!done) return reply(done.error());
  return reply(201,
               {{"kind", "Status"}, {"apiVersion", "v1"}, {"metadata", Json::object()}, {"status", "Success"}, {"code", 201}});
}

net::HttpResponse KubeApi::serve_parsed(const Parsed& parsed, const net::HttpRequest& request) {
  const kube::Resource& resource = parsed.kind->resource;
  const std::string table = table_name(resource);
  const auto method_not_allowed = [&] {
    return reply(make_status(405, "MethodNotAllowed", "the server does not allow this method on the requested resource"));
  };
  const auto answer = [](const ApiResult<Json>& result, int code = 200) {
    return result ? reply(code, *result) : reply(result.error());
  };
  const auto count = [&](const char* verb) { ++counts_[fmt::format("{} {}", verb, table)]; };

  if (parsed.subresource == "scale") {
    count(request.method == "GET" ? "get" : "update");
    return serve_scale(parsed, request);
  }
  if (auto created = serve_created_subresource(parsed, request)) return std::move(*created);
  const bool known_subresource = parsed.subresource.empty() || (parsed.subresource == "status" && parsed.kind->status) ||
                                 (parsed.subresource == "finalize" && table == "namespaces");
  if (!known_subresource) return reply(make_status(404, "NotFound", "the server could not find the requested resource"));

  if (request.method == "GET") {
    if (parsed.key.name.empty()) {
      count("list");
      return serve_list(parsed);
    }
    count("get");
    return answer(get(resource, parsed.key));
  }
  if (request.method == "POST" && parsed.key.name.empty()) {
    count("create");
    Json object = parsed.body;
    const std::string ns = core::get_string(object, {"metadata", "namespace"}, parsed.key.ns);
    if (resource.namespaced && ns != parsed.key.ns) {
      return reply(bad_request("the namespace of the provided object does not match the namespace sent on the request"));
    }
    if (object.is_object() && resource.namespaced) object["metadata"]["namespace"] = parsed.key.ns;
    return answer(create(resource, std::move(object), parsed.caller), 201);
  }
  if (request.method == "PUT" && !parsed.key.name.empty()) {
    count("update");
    Json object = parsed.body;
    if (core::get_string(object, {"metadata", "name"}) != parsed.key.name) {
      return reply(bad_request(fmt::format("the name of the object ({}) does not match the name on the URL ({})",
                                           core::get_string(object, {"metadata", "name"}), parsed.key.name)));
    }
    if (resource.namespaced) object["metadata"]["namespace"] = parsed.key.ns;
    return answer(
        update(resource, std::move(object), parsed.caller, parsed.subresource == "finalize" ? "" : parsed.subresource));
  }
  if (request.method == "PATCH" && !parsed.key.name.empty()) {
    count("patch");
    return serve_patch(parsed, request);
  }
  if (request.method == "DELETE") {
    count("delete");
    return serve_delete(parsed, request);
  }
  return method_not_allowed();
}

net::HttpResponse KubeApi::serve_patch(const Parsed& parsed, const net::HttpRequest& request) {
  const auto header = request.headers.find("content-type");
  const std::string type = header == request.headers.end() ? "" : header->second;
  const auto unsupported = [&] {
    return reply(make_status(415, "UnsupportedMediaType",
                             "the body of the request was in an unknown format - accepted media types include: "
                             "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"));
  };
  PatchKind kind = PatchKind::kMerge;
  if (type == "application/json-patch+json") {
    kind = PatchKind::kJson;
  } else if (type == "application/strategic-merge-patch+json") {
    if (parsed.kind->custom) return unsupported();
    kind = PatchKind::kStrategic;
  } else if (type == "application/apply-patch+yaml") {
    kind = PatchKind::kApply;
  } else if (type != "application/merge-patch+json") {
    return unsupported();
  }
  bool created = false;
  const auto result = patch(parsed.kind->resource, parsed.key, kind, parsed.body, parsed.caller, parsed.subresource,
                            parsed.option("force") == "true", &created);
  return result ? reply(created ? 201 : 200, *result) : reply(result.error());
}

net::HttpResponse KubeApi::serve_delete(const Parsed& parsed, const net::HttpRequest&) {
  const kube::Resource& resource = parsed.kind->resource;
  Deletion deletion;
  deletion.uid = core::get_string(parsed.body, {"preconditions", "uid"});
  deletion.resource_version = core::get_string(parsed.body, {"preconditions", "resourceVersion"});
  deletion.propagation = core::get_string(parsed.body, {"propagationPolicy"}, parsed.option("propagationPolicy"));
  const Json* grace = core::find(parsed.body, {"gracePeriodSeconds"});
  if (grace != nullptr && grace->is_number()) deletion.grace_seconds = grace->get<int>();
  if (!parsed.option("gracePeriodSeconds").empty()) deletion.grace_seconds = std::stoi(parsed.option("gracePeriodSeconds"));
  if (parsed.key.name.empty()) {
    const Selection selection = parsed.selection();
    const auto all = store_.all(table_name(resource));  // a copy: removal changes it
    for (const auto& [key, stored] : all) {
      if (selection.matches(key, stored->body)) (void)remove(resource, key, deletion, parsed.caller);
    }
    return reply(200, {{"kind", "Status"}, {"apiVersion", "v1"}, {"metadata", Json::object()}, {"status", "Success"}});
  }
  const StoredPtr before = store_.find(table_name(resource), parsed.key);
  const auto removed = remove(resource, parsed.key, deletion, parsed.caller);
  if (!removed) return reply(removed.error());
  const bool gone = !store_.find(table_name(resource), parsed.key);
  if (!gone || parsed.kind->returns_object_on_delete) return reply(200, *removed);
  Json details{{"name", parsed.key.name}, {"kind", resource.plural}, {"uid", before->body["metadata"]["uid"]}};
  if (!resource.group.empty()) details["group"] = resource.group;
  return reply(
      200,
      {{"kind", "Status"}, {"apiVersion", "v1"}, {"metadata", Json::object()}, {"status", "Success"}, {"details", details}});
}

net::HttpResponse KubeApi::serve_scale(const Parsed& parsed, const net::HttpRequest& request) {
  const kube::Resource& resource = parsed.kind->resource;
  if (!parsed.kind->scale) return reply(make_status(404, "NotFound", "the server could not find the requested resource"));
  const StoredPtr stored = store_.find(table_name(resource), parsed.key);
  if (!stored) return reply(not_found(resource, parsed.key.name));
  const auto scale_of = [&](const Json& object) {
    const Json& metadata = object["metadata"];
    Json selector = parsed.kind->custom ? Json(core::get_string(object, {"status", "selector"})) : Json("");
    if (const Json* labels = core::find(object, {"spec", "selector", "matchLabels"});
        labels != nullptr && !parsed.kind->custom) {
      std::string text;
      for (const auto& [key, value] : labels->items()) text += (text.empty() ? "" : ",") + key + "=" + value.get<std::string>();
      selector = text;
    }
    Json scale{{"kind", "Scale"},
               {"apiVersion", "autoscaling/v1"},
               {"metadata",
                {{"name", parsed.key.name},
                 {"uid", metadata["uid"]},
                 {"resourceVersion", metadata["resourceVersion"]},
                 {"creationTimestamp", metadata["creationTimestamp"]}}},
               {"spec", Json::object()},
               {"status", {{"replicas", core::get_int(object, {"status", "replicas"})}, {"selector", selector}}}};
    if (const long long replicas = core::get_int(object, {"spec", "replicas"}); replicas != 0)
      scale["spec"]["replicas"] = replicas;
    if (resource.namespaced) scale["metadata"]["namespace"] = parsed.key.ns;
    return scale;
  };
  if (request.method == "GET") return reply(200, scale_of(stored->body));
  Json scale = scale_of(stored->body);
  if (request.method == "PUT") {
    scale = parsed.body;
  } else if (request.method == "PATCH") {
    merge_patch(scale, parsed.body);
  } else {
    return reply(make_status(405, "MethodNotAllowed", "the server does not allow this method on the requested resource"));
  }
  Json object = stored->body;
  object["spec"]["replicas"] = core::get_int(scale, {"spec", "replicas"});
  object["metadata"]["resourceVersion"] = core::get_string(scale, {"metadata", "resourceVersion"});
  const auto written = write(*parsed.kind, stored, std::move(object), parsed.caller, "", std::nullopt);
  return written ? reply(200, scale_of(*written)) : reply(written.error());
}

namespace {

const kube::Resource kListOptions{"meta.k8s.io", "v1", "ListOptions", "listoptions", false};

/// Of resourceVersionMatch and what goes with it.
std::vector<FieldProblem> match_problems(const std::map<std::string, std::string>& query, bool watch, bool watch_list) {
  const auto option = [&](const char* name) {
    const auto it = query.find(name);
    return it == query.end() ? std::string() : it->second;
  };
  std::vector<FieldProblem> problems;
  const auto forbidden = [&](const char* field, const std::string& why) {
    problems.push_back({field, "FieldValueForbidden", "Forbidden: " + why});
  };
  const std::string match = option("resourceVersionMatch");
  const bool initial = query.contains("sendInitialEvents");
  if (watch && initial && match != "NotOlderThan")
    forbidden("resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
  if (watch && initial && !watch_list) {
    forbidden("sendInitialEvents", "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled");
  }
  if (!match.empty()) {
    if (watch && !initial) {
      forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
    }
    if (!watch && option("resourceVersion").empty())
      forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided");
    if (!watch && !option("continue").empty())
      forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided");
    if (match != "NotOlderThan" && (watch || match != "Exact")) {
      problems.push_back({"resourceVersionMatch", "FieldValueNotSupported",
                          fmt::format("Unsupported value: \"{}\": supported values: {}", match,
                                      watch ? R"("NotOlderThan")" : R"("Exact", "NotOlderThan", "")")});
    }
    if (!watch && match == "Exact" && option("resourceVersion") == "0") {
      forbidden("resourceVersionMatch", "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
    }
  }
  if (!watch && initial) forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list");
  return problems;
}

}  // namespace

net::HttpResponse KubeApi::serve_list(const Parsed& parsed) {
  const KubeKind& kind = *parsed.kind;
  const std::string table = table_name(kind.resource);
  const Selection selection = parsed.selection();
  if (const auto problems = match_problems(parsed.query, false, options_.watch_list); !problems.empty())
    return reply(invalid(kListOptions, "", problems));
  const std::size_t limit = std::strtoull(parsed.option("limit").c_str(), nullptr, 10);
  std::uint64_t revision = store_.revision();
  std::string start;
  const std::string token = parsed.option("continue");
  if (!token.empty()) {
    const auto decoded = core::base64_decode(token);
    const auto json = decoded ? core::parse_json(*decoded) : core::fail(core::ErrorCode::kInvalid, "");
    if (!json) return reply(bad_request("continue key is not valid"));
    const long long of_token = core::get_int(*json, {"rv"});
    if (of_token >= 0) revision = static_cast<std::uint64_t>(of_token);  // -1: the rest as it is now
    start = core::get_string(*json, {"start"});
  } else if (const std::string wanted = parsed.option("resourceVersion"); !wanted.empty() && wanted != "0") {
    const std::uint64_t at = std::strtoull(wanted.c_str(), nullptr, 10);
    if (at > revision) {
      return reply(too_large(at, revision));
    }
    const std::string match = parsed.option("resourceVersionMatch");
    if (match == "Exact" || (match.empty() && limit > 0)) revision = at;
  }
  const auto next_token = [](long long rv, const std::string& after) {
    return core::base64_encode(Json{{"v", "meta.k8s.io/v1"}, {"rv", rv}, {"start", after}}.dump());
  };
  const auto objects = store_.all_at(table, revision);
  if (!objects) {
    if (token.empty()) return reply(make_status(410, "Expired", "The resourceVersion for the provided list is too old."));
    Refusal expired = make_status(
        410, "Expired",
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without the "
        "continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing "
        "with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the "
        "time the first chunk was returned and now may show up in the list.");
    expired["metadata"]["continue"] = next_token(-1, start);
    return reply(expired);
  }
  std::string items;
  std::size_t shown_count = 0;
  std::size_t left = 0;
  std::string next;
  for (const auto& [key, stored] : *objects) {
    const std::string place = key.ns + "/" + key.name;
    if ((!start.empty() && place <= start) || !selection.matches(key, stored->body)) continue;
    if (limit > 0 && shown_count == limit) {
      ++left;
      continue;
    }
    if (!items.empty()) items += ',';
    if (kind.custom) {
      items += text_of(kind, *stored);
    } else {
      // Items of built-in lists carry no kind of their own; both fields stand first and in the middle of a sorted object.
      items += core::canonical(without(shown(kind, *stored), {"apiVersion", "kind"}));
    }
    next = place;
    ++shown_count;
  }
  Json metadata{{"resourceVersion", std::to_string(revision)}};
  if (left > 0) {
    metadata["continue"] = next_token(static_cast<long long>(revision), next);
    if (selection.labels.empty() && selection.fields.empty()) metadata["remainingItemCount"] = left;
  }
  return {200,
          {{"content-type", "application/json"}},
          fmt::format(R"({{"kind":"{}List","apiVersion":"{}","metadata":{},"items":[{}]}})", kind.resource.kind,
                      kind.resource.api_version(), metadata.dump(), items)};
}

// --------------------------------------------------------------------------------------------------------------------- watches

namespace {

using Event = KubeApi::WatchEvent;

Event make_event(Event::Type type, std::string_view object) {
  static constexpr std::string_view kNames[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"};
  return {type, fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", kNames[static_cast<int>(type)], object)};
}

}  // namespace

std::expected<KubeApi::WatchId, net::HttpResponse> KubeApi::watch(const net::HttpRequest& request, WatchSink sink) {
  auto parsed = parse(request);
  if (!parsed) return std::unexpected(parsed.error());
  auto watch = std::make_shared<Watch>(loop_);
  watch->id = ++last_watch_;
  watch->kind = parsed->kind;
  watch->table = table_name(parsed->kind->resource);
  watch->selection = parsed->selection();
  // A name in the path watches one object (deprecated, but served).
  if (!parsed->key.name.empty()) watch->selection.fields.push_back("metadata.name=" + parsed->key.name);
  watch->bookmarks = parsed->option("allowWatchBookmarks") == "true";
  watch->metadata_only = shape_of(request) == Shape::kMetadata;
  watch->sink = std::move(sink);
  ++counts_["watch " + watch->table];
  if (auto error = open_watch(*parsed, watch)) return std::unexpected(*error);
  return watch->id;
}

std::optional<net::HttpResponse> KubeApi::open_watch(const Parsed& parsed, const std::shared_ptr<Watch>& watch) {
  const std::string version = parsed.option("resourceVersion");
  const bool initial = parsed.option("sendInitialEvents") == "true";
  if (const auto problems = match_problems(parsed.query, true, options_.watch_list); !problems.empty())
    return reply(invalid(kListOptions, "", problems));
  if (version.find_first_not_of("0123456789") != std::string::npos) {
    return reply(
        make_status(500, "InternalError",
                    fmt::format("resourceVersion: Invalid value: \"{}\": strconv.ParseUint: parsing \"{}\": invalid syntax",
                                version, version)));
  }
  const std::uint64_t from = std::strtoull(version.c_str(), nullptr, 10);
  if (from > store_.revision()) {
    return reply(too_large(from, store_.revision()));
  }
  watches_[watch->id] = watch;
  const long long seconds = std::strtoll(parsed.option("timeoutSeconds").c_str(), nullptr, 10);
  const core::Duration timeout = seconds > 0 ? core::Duration{seconds * 1000} : core::Duration{1800000};
  watch->timeout.set(timeout, [this, id = watch->id] {
    const auto held = watches_.at(id);
    if (held->bookmarks) send_bookmark(*held, false);
    end_watch(id);
  });
  if (!bookmarks_.pending()) bookmarks_.set(options_.bookmark_interval, [this] { tick_bookmarks(); });

  if (initial && !options_.watch_progress) {
    loop_.after(core::Duration{0}, [this, id = watch->id] {
      fail_watch(id, make_status(500, "InternalError",
                                 "a watch stream was requested by the client but the required storage feature "
                                 "RequestWatchProgress is disabled"));
    });
    watch->kind = nullptr;  // nothing else is told before the error
    return std::nullopt;
  }
  if (initial || from == 0) {
    for (const auto& [key, stored] : store_.all(watch->table)) {
      if (watch->selection.matches(key, stored->body))
        watch->sink.on_event(make_event(Event::Type::kAdded, text_for(*watch, *stored)));
    }
    if (initial) send_bookmark(*watch, true);
    return std::nullopt;
  }
  const auto changes = store_.changes_after(watch->table, from);
  if (!changes) {
    loop_.after(core::Duration{0}, [this, id = watch->id, from] {
      fail_watch(id, make_status(410, "Expired", fmt::format("too old resource version: {} ({})", from, store_.compacted())));
    });
    watch->kind = nullptr;  // nothing else is told before the error
    return std::nullopt;
  }
  for (const ChangePtr& change : *changes) deliver(*watch, change);
  return std::nullopt;
}

void KubeApi::close_watch(WatchId id) {
  watches_.erase(id);
}

void KubeApi::end_watch(WatchId id) {
  const auto node = watches_.extract(id);
  if (!node) return;
  const auto watch = node.mapped();
  watch->timeout.cancel();
  if (watch->sink.on_end) watch->sink.on_end();
}

void KubeApi::fail_watch(WatchId id, const Refusal& status) {
  const auto it = watches_.find(id);
  if (it == watches_.end()) return;
  it->second->sink.on_event(make_event(Event::Type::kError, core::canonical(status)));
  end_watch(id);
}

void KubeApi::end_watches() {
  std::vector<WatchId> ids;
  for (const auto& [id, watch] : watches_) ids.push_back(id);
  for (const WatchId id : ids) end_watch(id);
}

void KubeApi::on_change(const std::string& table, const ChangePtr& change) {
  compact_by_age();
  for (const auto& [id, watch] : watches_) {
    if (watch->kind != nullptr && watch->table == table) deliver(*watch, change);
  }
}

void KubeApi::deliver(Watch& watch, const ChangePtr& change) {
  const bool matched = change->before && watch.selection.matches(change->key, change->before->body);
  const bool matches = change->type != Change::Type::kDeleted && watch.selection.matches(change->key, change->object->body);
  if (!matched && !matches) return;
  const Event::Type type = !matched ? Event::Type::kAdded : matches ? Event::Type::kModified : Event::Type::kDeleted;
  if (type == Event::Type::kDeleted && change->type != Change::Type::kDeleted) {
    // It left the selection: told as it was, under the revision of the change.
    Stored last{change->before->body, change->before->owners, change->revision, change->before->creator};
    last.body["metadata"]["resourceVersion"] = std::to_string(change->revision);
    watch.sink.on_event(make_event(type, text_for(watch, last)));
    return;
  }
  watch.sink.on_event(make_event(type, text_for(watch, *change->object)));
}

void KubeApi::send_bookmark(Watch& watch, bool initial_end) {
  if (watch.kind == nullptr) return;
  Json object{{"kind", watch.kind->resource.kind},
              {"apiVersion", watch.kind->resource.api_version()},
              {"metadata", {{"resourceVersion", std::to_string(store_.revision())}, {"creationTimestamp", nullptr}}}};
  if (initial_end) object["metadata"]["annotations"] = {{"k8s.io/initial-events-end", "true"}};
  if (watch.metadata_only) object = metadata_only(object);
  watch.sink.on_event(make_event(Event::Type::kBookmark, core::canonical(object)));
}

void KubeApi::tick_bookmarks() {
  for (const auto& [id, watch] : watches_) {
    if (watch->bookmarks) send_bookmark(*watch, false);
  }
  if (!watches_.empty()) bookmarks_.set(options_.bookmark_interval, [this] { tick_bookmarks(); });
}

void KubeApi::compact_by_age() {
  if (options_.compaction_interval == core::Duration{0}) return;
  const core::MonoTime at = loop_.clock().mono();
  if (at - compact_looked_ < options_.compaction_interval) return;
  store_.compact(compact_next_);
  compact_next_ = store_.revision();
  compact_looked_ = at;
}

}  // namespace sim
