#include "sim/kube/refusals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace sim {

using core::Json;

namespace {

/// Returns the owner of a field as the message of a conflict names it: "user" using v1.
std::string printed_owner(const kube::Resource& resource, const std::string& owner) {
  const std::size_t space = owner.find(' ');
  const std::size_t slash = std::min(owner.rfind('/'), owner.size());
  std::string out = fmt::format("\"{}\"", owner.substr(space + 1, slash - space - 1));
  if (slash < owner.size()) out += fmt::format(" with subresource \"{}\"", owner.substr(slash + 1));
  if (owner.starts_with("Update")) out += " using " + resource.api_version();
  return out;
}

}  // namespace

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

Refusal delete_conflict(const kube::Resource& resource, std::string_view name, std::string_view why) {
  kube::Resource named = resource;
  named.plural = resource.kind;
  return conflict(named, name, why);
}

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

}  // namespace sim
