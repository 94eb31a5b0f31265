#include "sim/kube/api.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "core/hash.hpp"
#include "sim/kube/api_parts.hpp"
#include "sim/kube/merge.hpp"
#include "sim/kube/refusals.hpp"

namespace sim {

using core::Json;

namespace {

bool valid_name(std::string_view name) {
  if (name.empty() || name.size() > 253) return false;
  const auto good = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  if (!good(name.front()) || !good(name.back())) return false;
  return std::all_of(name.begin(), name.end(), [&](char c) { return good(c) || c == '-' || c == '.' || c == ':'; });
}

}  // namespace

bool is_ready(const Json& object) {
  const Json* conditions = core::find(object, {"status", "conditions"});
  if (conditions == nullptr) return false;
  return std::any_of(conditions->begin(), conditions->end(), [](const Json& c) {
    return core::get_string(c, {"type"}) == "Ready" && core::get_string(c, {"status"}) == "True";
  });
}

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

ApiResult<Json> KubeApi::get(const kube::Resource& resource, const kube::Key& key) const {
  const KubeKind& kind = must_find(resource);
  const StoredPtr stored = store_.find(table_name(resource), key);
  if (!stored) return std::unexpected(not_found(resource, key.name));
  return shown(kind, *stored);
}

const Json* KubeApi::peek(const kube::Resource& resource, const kube::Key& key) const {
  const StoredPtr stored = store_.find(table_name(resource), key);
  return stored ? &stored->body : nullptr;  // stays valid while it is the newest version
}

}  // namespace sim
