// Parses requests to the API server: paths, options, selectors, and the shape of the reply.
#include <fmt/format.h>

#include <algorithm>

#include "sim/kube/api_parts.hpp"
#include "sim/kube/refusals.hpp"

namespace sim {

using core::Json;

namespace {

const Json kNull;

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

/// Matches one clause of "a=b,c!=d,e in (x,y),!f,g".
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

}  // namespace

const kube::Resource kListOptions{"meta.k8s.io", "v1", "ListOptions", "listoptions", false};

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

bool Selection::matches(const kube::Key& key, const Json& object) const {
  if (!ns.empty() && key.ns != ns) return false;
  const Json* have = core::find(object, {"metadata", "labels"});
  const Json& labelled = have != nullptr ? *have : kNull;
  return std::all_of(labels.begin(), labels.end(), [&](const std::string& c) { return matches_label_clause(labelled, c); }) &&
         std::all_of(fields.begin(), fields.end(), [&](const std::string& c) { return matches_field_clause(object, c); });
}

Selection KubeApi::Parsed::selection() const {
  return {key.ns, split(option("labelSelector"), ','), split(option("fieldSelector"), ',')};
}

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
  // /namespaces/NAME is an object itself, unless the name of a resource follows.
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

}  // namespace sim
