// Answers the requests to the API server, except watches: calls the verbs and builds the replies.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/base64.hpp"
#include "core/hash.hpp"
#include "sim/kube/api_parts.hpp"
#include "sim/kube/merge.hpp"
#include "sim/kube/refusals.hpp"

namespace sim {

using core::Json;

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

Json metadata_only(const Json& object) {
  return {{"kind", "PartialObjectMetadata"}, {"apiVersion", "meta.k8s.io/v1"}, {"metadata", object["metadata"]}};
}

namespace {

/// Returns an answer in another shape. A list cannot be shown in the shape of an object, nor an object in that of a list.
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

}  // namespace

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
  const bool of_pods = parsed.kind->resource.plural == "pods" && what == "eviction";
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
  if (core::get_string(parsed.body, {"metadata", "name"}) != parsed.key.name)
    return reply(bad_request("name in URL does not match name in Eviction object"));
  Deletion deletion;
  deletion.uid = core::get_string(parsed.body, {"deleteOptions", "preconditions", "uid"});
  deletion.resource_version = core::get_string(parsed.body, {"deleteOptions", "preconditions", "resourceVersion"});
  const Json* grace = core::find(parsed.body, {"deleteOptions", "gracePeriodSeconds"});
  if (grace != nullptr && grace->is_number()) deletion.grace_seconds = grace->get<int>();
  if (const auto done = evict(parsed.key, deletion, parsed.caller); !done) return reply(done.error());
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
  if (parsed.subresource == "log" && table == "pods" && request.method == "GET") {
    count("get log of");
    const auto pod = get(resource, parsed.key);
    if (!pod) return reply(pod.error());
    if (core::get_string(*pod, {"status", "phase"}) != "Running")
      return reply(bad_request("the container is waiting to start"));
    // Reports no sessions, because nobody logs in to a simulated pod.
    return {200, {{"content-type", "text/plain"}}, "sessions=0\n"};
  }
  if (auto created = serve_created_subresource(parsed, request)) return std::move(*created);
  const bool known_subresource = parsed.subresource.empty() || (parsed.subresource == "status" && parsed.kind->status) ||
                                 (parsed.subresource == "finalize" && table == "namespaces") ||
                                 (parsed.subresource == "ephemeralcontainers" && table == "pods");
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
    const auto all = store_.all(table_name(resource));  // a copy, because remove() changes the table
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
    if (of_token >= 0) revision = static_cast<std::uint64_t>(of_token);  // -1: continue with the current state
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
      // Items of built-in lists have neither apiVersion nor kind.
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

}  // namespace sim
