#include "sim/slurm/rest.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/base64.hpp"
#include "core/json.hpp"
#include "core/jwt.hpp"
#include "sim/base/loop.hpp"
#include "sim/slurm/text.hpp"

namespace sim {
namespace {

using core::Json;
using net::HttpRequest;
using net::HttpResponse;

std::string percent_decode(std::string_view text) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : (c | 32) - 'a' + 10; };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

/// Returns the body with the byte 0xE9 for each kOddByte: slurmrestd writes users' bytes unchanged, even if they are no UTF-8.
std::string as_written(const Json& body) {
  static const std::string kPlaceholder = "\\u001a";  // kOddByte, as JSON writes it
  std::string text = body.dump();
  for (std::size_t at = 0; (at = text.find(kPlaceholder, at)) != std::string::npos;) {
    text.replace(at, kPlaceholder.size(), "\xe9");
  }
  return text;
}

Json triple(std::int64_t value) {
  return {{"set", true}, {"infinite", false}, {"number", value}};
}
Json unset() {
  return {{"set", false}, {"infinite", false}, {"number", 0}};
}
Json infinite() {
  return {{"set", false}, {"infinite", true}, {"number", 0}};
}

std::string_view text_of(SlurmErrno number) {
  switch (number) {
    case SlurmErrno::kSuccess:
      return "No error";
    case SlurmErrno::kNoController:
      return "Unable to contact slurm controller (connect failure)";
    case SlurmErrno::kInvalidPartition:
      return "Invalid partition name specified";
    case SlurmErrno::kScriptMissing:
      return "Job script not specified";
    case SlurmErrno::kNodeConfiguration:
      return "Requested node configuration is not available";
    case SlurmErrno::kPartitionConfiguration:
      return "Requested partition configuration not available now";
    case SlurmErrno::kInvalidFeature:
      return "Invalid feature specification";
    case SlurmErrno::kBatchOnly:
      return "Only batch jobs are accepted or processed";
    case SlurmErrno::kJobHeld:
      return "Job is in held state, pending scheduler release";
    case SlurmErrno::kInvalidAccount:
      return "Invalid account or account/partition combination specified";
    case SlurmErrno::kInvalidQos:
      return "Invalid qos specification";
    case SlurmErrno::kNodeNotAvailable:
      return "Required node not available (down, drained or reserved)";
    case SlurmErrno::kPartitionNotAvailable:
      return "Required partition not available (inactive or drain)";
    case SlurmErrno::kInvalidGres:
      return "Invalid generic resource (gres) specification";
    case SlurmErrno::kJobFinished:
      return "Job has already finished";
    case SlurmErrno::kNodeTableFull:
      return "Unable to add node, node table is full";
    case SlurmErrno::kInvalidExternalJob:
      return "Invalid configuration for external job";
    case SlurmErrno::kJobNotPending:
      return "Job is no longer pending execution";
    case SlurmErrno::kAccessDenied:
      return "Access/permission denied";
    case SlurmErrno::kActiveFeatures:
      return "Active features not subset of available features";
    case SlurmErrno::kInvalidJob:
      return "Invalid job id specified";
    case SlurmErrno::kAlreadyDone:
      return "Job/step already completing or completed";
    case SlurmErrno::kDisabled:
      return "Requested operation is presently disabled";
    case SlurmErrno::kBusy:
      return "Requested nodes are busy";
    case SlurmErrno::kInvalidNode:
      return "Invalid node name specified";
    case SlurmErrno::kInvalidState:
      return "Invalid node state specified";
    case SlurmErrno::kInvalidTransition:
      return "Invalid node state transition";
    case SlurmErrno::kNodeExists:
      return "Node already exists in the node table";
    case SlurmErrno::kNotSupported:
      return "Requested operation not supported on this system";
    case SlurmErrno::kInvalidReservation:
      return "Requested reservation is invalid";
    case SlurmErrno::kInvalidTime:
      return "Invalid time specified";
    case SlurmErrno::kReservationStarted:
      return "Reservation already started";
    case SlurmErrno::kInvalidArgument:
      return "Invalid argument";
    case SlurmErrno::kUnspecified:
      break;
  }
  return "Unspecified error";
}

}  // namespace

std::optional<Json> verify_token(const std::string& token, const std::string& key) {
  const std::size_t first = token.find('.');
  const std::size_t last = token.rfind('.');
  if (first == std::string::npos || first == last) return {};
  std::string body = token.substr(first + 1, last - first - 1);
  std::replace(body.begin(), body.end(), '-', '+');
  std::replace(body.begin(), body.end(), '_', '/');
  while (body.size() % 4 != 0) body += '=';
  const auto decoded = core::base64_decode(body);
  if (!decoded) return {};
  auto claims = core::parse_json(*decoded);
  if (!claims || core::sign_hs256(key, *claims) != token) return {};
  return *std::move(claims);
}

struct SlurmRest::Impl : std::enable_shared_from_this<SlurmRest::Impl> {
  Impl(core::Loop& l, SimSlurm& s, std::function<std::string()> k) : loop(l), slurm(s), key(std::move(k)) {}

  core::Loop& loop;
  SimSlurm& slurm;
  std::function<std::string()> key;
  struct {
    std::int64_t nodes = -1, jobs = -1, partitions = -1;
  } missed;                                    ///< The time of each table's change that clients do not see.
  std::map<std::string, std::string> counted;  ///< Base states by node, as of the last request for the table.

  struct Call {
    std::string method, parser, path, query, user;
    Json body;
    [[nodiscard]] std::optional<std::int64_t> update_time() const {
      const std::size_t at = query.find("update_time=");
      if (at == std::string::npos) return {};
      return std::strtoll(query.c_str() + at + 12, nullptr, 10);
    }
  };

  [[nodiscard]] bool has_reservations() const { return slurm.release_at_least(25, 5); }
  [[nodiscard]] bool new_release() const { return slurm.release_at_least(26, 5); }
  [[nodiscard]] std::vector<std::string> parsers() const {
    if (new_release()) return {"v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45"};
    if (slurm.release_at_least(25, 11)) return {"v0.0.41", "v0.0.42", "v0.0.43", "v0.0.44"};
    if (slurm.release_at_least(25, 5)) return {"v0.0.40", "v0.0.41", "v0.0.42", "v0.0.43"};
    return {"v0.0.40", "v0.0.41", "v0.0.42"};
  }

  // --- Envelopes ------------------------------------------------------------------------------------------------------

  [[nodiscard]] Json meta(const Call& call) const {
    const std::string& release = slurm.options().release;
    const std::size_t dot = release.find('.');
    const std::size_t last = release.rfind('.');
    return {{"plugin",
             {{"type", "openapi/slurmctld"},
              {"name", "Slurm OpenAPI slurmctld"},
              {"data_parser", "data_parser/" + call.parser},
              {"accounting_storage", ""}}},
            {"client", {{"source", "[localhost]:8031(fd:9)"}, {"user", call.user}, {"group", call.user}}},
            {"command", Json::array()},
            {"slurm",
             {{"version",
               {{"major", release.substr(0, dot)},
                {"micro", release.substr(last + 1)},
                {"minor", release.substr(dot + 1, last - dot - 1)}}},
              {"release", release},
              {"cluster", slurm.cluster_name()}}}};
  }

  [[nodiscard]] HttpResponse answer(const Call& call, int status, Json body, Json errors = Json::array(),
                                    Json warnings = Json::array()) const {
    body["meta"] = meta(call);
    body["errors"] = std::move(errors);
    body["warnings"] = std::move(warnings);
    return {status, {{"content-type", "application/json"}}, as_written(body)};
  }

  [[nodiscard]] HttpResponse good(const Call& call, Json body = Json::object()) const {
    return answer(call, 200, std::move(body));
  }

  static Json error_json(int number, std::string_view text, std::string_view description, std::string_view source) {
    return Json::array({{{"description", description}, {"error_number", number}, {"error", text}, {"source", source}}});
  }

  /// Returns an error from slurmctld. From 26.05 on, a mistake of the client gets the status 422. Some mistakes get 500
  /// instead, because slurmrestd does not know that their error numbers stand for mistakes of the client.
  [[nodiscard]] HttpResponse refused(const Call& call, SlurmErrno number, const std::string& description,
                                     std::string_view source, Json body = Json::object()) const {
    const bool not_known = number == SlurmErrno::kUnspecified || number == SlurmErrno::kInvalidExternalJob;
    const int status = number == SlurmErrno::kNoController ? 502
                       : number == SlurmErrno::kInvalidJob ? 404
                       : not_known || !new_release()       ? 500
                                                           : 422;
    return answer(call, status, std::move(body), error_json(static_cast<int>(number), text_of(number), description, source));
  }

  static Json warning(const std::string& description, const std::string& source) {
    return {{"description", description}, {"source", source}};
  }

  [[nodiscard]] HttpResponse unknown_path() const {
    return {404,
            {{"content-type", "text/plain"}},
            new_release()
                ? "Unable to find requested URL endpoint. Please query the '/openapi/v3' endpoint or visit "
                  "'https://slurm.schedmd.com/rest_api.html' for the OpenAPI specification which includes a list of all "
                  "possible slurmrestd endpoints."
                : "Unable find requested URL. Please view /openapi/v3 for API reference."};
  }

  // --- Dispatch -------------------------------------------------------------------------------------------------------

  void serve(const HttpRequest& request, Reply reply) {
    const std::size_t question = request.target.find('?');
    std::string path = request.target.substr(0, question);
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    const auto token = request.headers.find("x-slurm-user-token");
    const auto user = request.headers.find("x-slurm-user-name");
    if (path == "/livez" || path == "/readyz" || path == "/healthz") {
      return reply(new_release() ? HttpResponse{204, {}, ""} : unknown_path());
    }
    if (token == request.headers.end() || token->second.empty()) {
      return reply({401, {{"content-type", "text/plain"}}, "Authentication failure"});
    }
    if (path == "/openapi/v3") return reply({200, {{"content-type", "application/json"}}, openapi().dump()});
    Call call;
    call.method = request.method;
    if (question != std::string::npos) call.query = request.target.substr(question + 1);
    if (user != request.headers.end()) call.user = user->second;
    const auto known = parsers();
    for (const std::string& parser : known) {
      const std::string base = "/slurm/" + parser + "/";
      if (!path.starts_with(base)) continue;
      call.parser = parser;
      call.path = percent_decode(path.substr(base.size()));
    }
    if (call.parser.empty()) return reply(unknown_path());
    if (!request.body.empty()) {
      auto body = core::parse_json(request.body);
      if (!body) return reply({500, {{"content-type", "text/plain"}}, "unable to parse body"});
      call.body = *std::move(body);
    }
    const auto claims = verify_token(token->second, key());
    const bool trusted =
        claims && core::get_string(*claims, {"sun"}) == call.user && core::get_int(*claims, {"exp"}) > slurm.now_seconds();
    if (call.path == "ping") return ping(call, trusted, std::move(reply));
    if (slurm.up() && trusted) return reply(dispatch(call));
    if (slurm.up()) {
      return reply(answer(call, 511, Json::object(),
                          error_json(1007, "Protocol authentication error", "Failure to query " + call.path, "_dump_nodes")));
    }
    // slurmrestd retries for a long time before it reports that slurmctld is down.
    loop.after(core::Duration{new_release() ? 10000 : 9000}, [weak = weak_from_this(), call, reply = std::move(reply)] {
      if (const auto self = weak.lock()) reply(self->away(call));
    });
  }

  [[nodiscard]] HttpResponse away(const Call& call) const {
    if (call.path == "partitions") return answer(call, 502, Json::object());
    HttpResponse out = refused(call, SlurmErrno::kNoController, "Failure to query " + call.path, "slurm_load");
    return out;
  }

  /// Reports whether the user is SlurmUser or root. All other users may only read.
  [[nodiscard]] static bool administrator(const Call& call) { return call.user == "slurm" || call.user == "root"; }

  HttpResponse dispatch(const Call& call) {
    const bool get = call.method == "GET";
    if ((!get || call.path == "reconfigure") && !administrator(call)) {
      return refused(call, SlurmErrno::kAccessDenied, "Failure to update " + call.path, "_update_node");
    }
    if (call.update_time() && call.parser < "v0.0.42") {
      return answer(call, 500, Json::object(),
                    error_json(9202, "Unable to convert Data type", "Parsing of a timestamp failed", "#/update_time/"));
    }
    if (get && call.path == "conf" && call.parser >= "v0.0.45") {
      return good(call, {{"slurm_conf", {{"ClusterName", slurm.cluster_name()}}}});
    }
    if (get && call.path == "nodes") return get_nodes(call);
    if (get && call.path == "jobs") return get_jobs(call);
    if (get && call.path == "jobs/state" && call.parser >= "v0.0.41") return get_job_states(call);
    if (get && call.path == "partitions") return get_partitions(call);
    if (get && call.path == "diag") return get_diag(call);
    if (get && call.path == "reservations") return get_reservations(call);
    if (has_reservations() && call.method == "POST" && call.path == "reservation") return post_reservation(call);
    if (has_reservations() && call.method == "DELETE" && call.path.starts_with("reservation/")) {
      const std::string name = call.path.substr(12);
      const SlurmErrno number = slurm.delete_reservation(name);
      return number == SlurmErrno::kSuccess
                 ? good(call)
                 : refused(call, number, "Error deleting reservation " + name, "slurm_delete_reservation");
    }
    if (get && call.path == "reconfigure") {
      const SlurmErrno number = slurm.reconfigure();
      return number == SlurmErrno::kSuccess ? good(call)
                                            : refused(call, number, "slurm_reconfigure() failed", "op_handler_reconfigure");
    }
    if (call.method == "POST" && call.path == "nodes") return post_nodes(call);
    if (call.method == "POST" && call.path == "new/node" && call.parser >= "v0.0.44") return post_new_node(call);
    if (call.method == "POST" && call.path == "jobs/requeue" && call.parser >= "v0.0.45") return requeue_jobs(call);
    if (call.method == "POST" && call.path == "job/submit") return submit_job(call);
    if (call.path.starts_with("job/")) {
      const std::int64_t id = std::strtoll(call.path.c_str() + 4, nullptr, 10);
      if (get) return get_job(call, id);
      if (call.method == "POST") return post_job(call, id);
      if (call.method == "DELETE") return cancel_jobs(call, {std::to_string(id)});
    }
    if (call.method == "DELETE" && call.path == "jobs")
      return cancel_jobs(call, call.body.value("jobs", std::vector<std::string>()));
    if (call.path.starts_with("node/")) {
      const std::string name = call.path.substr(5);
      if (get) return get_node(call, name);
      if (call.method == "POST") return post_node(call, name);
      if (call.method == "DELETE") {
        const SlurmErrno number = slurm.delete_node(name, call.user);
        if (number == SlurmErrno::kSuccess) return good(call);
        return refused(call, number, (new_release() ? "Failure to delete node " : "Failure to update node ") + name,
                       "op_handler_node");
      }
    }
    return unknown_path();
  }

  void ping(const Call& call, bool trusted, Reply reply) {
    const bool up = slurm.up() && trusted;
    Json item{{"hostname", "slurmctld"}, {"latency", 905}};
    const bool old_words = call.parser < "v0.0.45";
    if (old_words) {
      item["pinged"] = up ? "UP" : "DOWN";
      item["mode"] = "primary";
    } else {
      item["status"] = up ? "No error" : "Unable to contact slurm controller (connect failure)";
    }
    if (call.parser >= "v0.0.42") {
      item["responding"] = up;
      item["primary"] = true;
    }
    HttpResponse out = good(call, {{"pings", Json::array({std::move(item)})}});
    if (trusted) return reply(std::move(out));
    // If slurmctld does not accept the token of a ping, slurmrestd answers only after ten seconds.
    loop.after(core::Duration{10000}, [reply = std::move(reply), out = std::move(out)] { reply(out); });
  }

  [[nodiscard]] Json openapi() const {
    Json paths = Json::object();
    const auto add = [&](const std::string& path, std::initializer_list<const char*> methods) {
      for (const char* method : methods) paths[path][method] = Json::object();
    };
    for (const std::string& parser : parsers()) {
      const std::string base = "/slurm/" + parser + "/";
      add(base + "ping/", {"get"});
      add(base + "diag/", {"get"});
      add(base + "reconfigure/", {"get"});
      add(base + "nodes/", {"get", "post"});
      add(base + "node/{node_name}", {"get", "post", "delete"});
      add(base + "jobs/", {"get", "delete"});
      add(base + "partitions/", {"get"});
      add(base + "reservations/", {"get"});
      if (has_reservations() && parser >= "v0.0.43") {
        add(base + "reservation", {"post"});
        add(base + "reservation/{reservation_name}", {"get", "delete"});
      }
      if (parser >= "v0.0.41") add(base + "jobs/state/", {"get"});
      if (parser >= "v0.0.44") add(base + "new/node/", {"post"});
      add(base + "job/{job_id}", {"get", "post", "delete"});
      add(base + "job/submit", {"post"});
      if (parser >= "v0.0.45") add(base + "conf", {"get"});
      if (parser >= "v0.0.45") add(base + "jobs/requeue", {"post"});
    }
    const std::string& release = slurm.options().release;
    Json info{{"title", "Slurm REST API"}};
    if (new_release()) {
      info["version"] = "Slurm-" + release;
      info["x-slurm"] = {{"release", release}};
    } else {
      info["version"] = "Slurm-" + release + "&openapi/slurmctld";
    }
    return {{"openapi", "3.0.3"}, {"info", std::move(info)}, {"paths", std::move(paths)}};
  }

  // --- Tables ---------------------------------------------------------------------------------------------------------

  /// Reports whether slurmrestd answers a request with the update_time `since` that a table is unchanged. `changed`: when the
  /// table last changed. `missed`: the time of a change that is hidden from clients.
  static bool unchanged(std::optional<std::int64_t> since, std::int64_t changed, std::int64_t missed) {
    return since && (*since - 1 >= changed || changed == missed);
  }

  /// Slurm counts allocated CPUs when a client requests the whole table, even if the answer is that nothing changed. Requests
  /// for one node return the last count.
  void count_allocated() {
    counted.clear();
    for (const auto& [name, node] : slurm.nodes()) counted[name] = slurm.state_words(node).front();
  }
  static bool counts(std::string_view base) { return base == "IDLE" || base == "MIXED" || base == "ALLOCATED"; }

  [[nodiscard]] Json node_json(const SimNode& node) const {
    return {{"name", node.name},
            {"hostname", node.hostname},
            {"address", node.address},
            {"architecture", node.external ? "" : "x86_64"},
            {"port", 6818},
            {"state", slurm.state_words(node)},
            {"features", node.features},
            {"active_features", node.active_features},
            {"partitions", std::vector<std::string>(node.partitions.begin(), node.partitions.end())},
            {"reason", node.reason},
            {"reason_changed_at", triple(node.reason_at)},
            {"reason_set_by_user", node.reason.empty() ? "" : node.reason_user},
            {"comment", node.comment},
            {"extra", node.extra},
            {"instance_id", node.instance_id},
            {"weight", node.weight},
            {"cpus", node.cpus},
            {"real_memory", node.real_memory},
            {"boot_time", triple(node.external ? 0 : node.registered_at - 100)},
            {"slurmd_start_time", triple(node.registered_at)},
            {"reservation", node.reservation},
            {"gres", node.gres},
            {"tres", "cpu=" + std::to_string(node.cpus)},
            {"version", node.external ? "" : slurm.options().release}};
  }

  HttpResponse get_nodes(const Call& call) {
    count_allocated();
    const auto since = call.update_time();
    if (unchanged(since, slurm.nodes_changed(), missed.nodes)) return {304, {}, ""};
    // slurmrestd requests the partitions with the same time, and treats their "no change" as a failure.
    if (!slurm.release_at_least(26, 5, 3) && unchanged(since, slurm.partitions_changed(), missed.partitions)) {
      return answer(call, 500, Json::object(),
                    error_json(-1, "Unspecified error", "Unable to query partitions", "_dump_nodes"));
    }
    Json rows = Json::array();
    for (const auto& [name, node] : slurm.nodes()) rows.push_back(node_json(node));
    return good(call, {{"nodes", std::move(rows)}, {"last_update", triple(slurm.now_seconds())}});
  }

  HttpResponse get_node(const Call& call, const std::string& name) const {
    const SimNode* node = slurm.node(name);
    if (node == nullptr) {
      return answer(call, 200, Json::object(), error_json(0, "No error", "Failure to query node " + name, "_dump_nodes"));
    }
    Json row = node_json(*node);
    const std::string now = row["state"][0].get<std::string>();
    const auto found = counted.find(name);
    const std::string then = found != counted.end() && counts(found->second) ? found->second : "IDLE";
    if (now == "IDLE" && then != "IDLE") row["state"][0] = "MIXED";
    if (now == "MIXED" && then == "IDLE") row["state"][0] = "ALLOCATED";
    return good(call, {{"nodes", Json::array({std::move(row)})}, {"last_update", triple(slurm.now_seconds())}});
  }

  static Json exit_code(int signal) {
    return {{"status", Json::array({signal == 0 ? "SUCCESS" : "SIGNALED"})},
            {"return_code", triple(0)},
            {"signal", {{"id", signal == 0 ? unset() : triple(signal)}, {"name", signal == 1 ? "Hangup" : ""}}}};
  }

  static Json states_of(const SimJob& job) {
    Json state = Json::array({to_string(job.state)});
    if (job.completing) state.push_back("COMPLETING");
    return state;
  }

  [[nodiscard]] Json job_json(const SimJob& job) const {
    std::vector<std::string> required = job.request.required_nodes;
    const JobRequest& request = job.request;
    return {{"job_id", job.id},
            {"job_state", states_of(job)},
            {"state_reason", slurm.in_prolog(job) ? "Prolog" : job.reason},
            {"state_description", job.description},
            {"failed_node", job.failed_node},
            {"account", request.account},
            {"qos", request.qos},
            {"comment", request.comment},
            {"mcs_label", request.mcs_label},
            {"features", request.constraints},
            {"tres_per_node", request.tres_per_node},
            {"excluded_nodes", request.excluded_nodes.empty() ? "" : write_hostlist(request.excluded_nodes)},
            {"node_count", triple(request.nodes)},
            {"tasks_per_node", triple(request.tasks_per_node)},
            {"cpus_per_task", triple(request.cpus_per_task)},
            {"memory_per_node", triple(request.external ? request.memory : 0)},
            {"priority", triple(request.held || job.state == SimJob::State::kSuspended ? 0 : 1)},
            {"hold", request.held},
            {"preempt_time", triple(job.preempted)},
            {"submit_time", triple(job.submitted_at)},
            {"derived_exit_code", exit_code(0)},
            {"exit_code", exit_code(job.state == SimJob::State::kNodeFail ? 1 : 0)},
            {"cluster", slurm.cluster_name()},
            {"user_name", job.request.user},
            {"partition", job.request.partition},
            {"nodes", job.nodes.empty() ? "" : write_hostlist(job.nodes)},
            {"required_nodes", required.empty() ? "" : write_hostlist(required)},
            {"start_time", job.start == 0 ? triple(0) : triple(job.start)},
            // For a job without a limit, Slurm reports an end one year after its start.
            {"end_time", job.end != 0     ? triple(job.end)
                         : job.start != 0 ? triple(job.start + 31536000)
                                          : triple(0)},
            {"time_limit", job.request.limit ? triple(job.request.limit->count() / 60000) : infinite()},
            {"name", job.request.name},
            {"batch_flag", !job.request.external},
            {"admin_comment", job.request.admin_comment},
            {"flags", job.request.external ? Json::array({"EXTERNAL_JOB"}) : Json::array()},
            {"requeue", job.request.requeue}};
  }

  HttpResponse get_jobs(const Call& call) const {
    const auto since = call.update_time();
    Json rows = Json::array();
    if (unchanged(since, slurm.jobs_changed(), missed.jobs)) {
      // Slurm answers with an empty table and a warning here, not with a 304.
      return answer(
          call, 200, {{"jobs", std::move(rows)}, {"last_backfill", triple(0)}, {"last_update", triple(0)}}, Json::array(),
          Json::array({{{"description", "No job changes since update_time[" + std::to_string(*since) + "]=2026-01-02T03:04:05"},
                        {"source", "op_handler_jobs"}}}));
    }
    for (const auto& [id, job] : slurm.jobs()) rows.push_back(job_json(job));
    Json warnings = Json::array();
    if (rows.empty()) warnings.push_back({{"description", "Zero jobs to dump"}, {"source", ""}});
    return answer(call, 200,
                  {{"jobs", std::move(rows)}, {"last_backfill", triple(0)}, {"last_update", triple(slurm.now_seconds())}},
                  Json::array(), std::move(warnings));
  }

  /// In this reply, job ids are strings. In the table of jobs, job ids are numbers.
  HttpResponse get_job_states(const Call& call) const {
    Json rows = Json::array();
    for (const auto& [id, job] : slurm.jobs()) rows.push_back({{"job_id", std::to_string(id)}, {"state", states_of(job)}});
    return good(call, {{"jobs", std::move(rows)}});
  }

  HttpResponse get_job(const Call& call, std::int64_t id) const {
    const auto found = slurm.jobs().find(id);
    Json body{{"jobs", Json::array()}, {"last_backfill", triple(0)}, {"last_update", triple(0)}};
    if (found == slurm.jobs().end()) {
      return refused(call, SlurmErrno::kInvalidJob, "Unable to query JobId=" + std::to_string(id), "_handle_job_get",
                     std::move(body));
    }
    body["jobs"].push_back(job_json(found->second));
    body["last_update"] = triple(slurm.now_seconds());
    return good(call, std::move(body));
  }

  HttpResponse get_partitions(const Call& call) const {
    if (unchanged(call.update_time(), slurm.partitions_changed(), missed.partitions)) return {304, {}, ""};
    Json rows = Json::array();
    for (const auto& [name, partition] : slurm.partitions()) {
      const std::vector<std::string> members(partition.members.begin(), partition.members.end());
      Json row{{"name", name},
               {"nodes",
                {{"allowed_allocation", ""},
                 {"configured", members.empty() ? "" : write_hostlist(members)},
                 {"total", members.size()}}},
               {"node_sets", partition.nodes_expression},
               {"partition", {{"state", Json::array({partition.state})}}}};
      if (call.parser >= "v0.0.45") {
        Json flags = Json::array();
        if (partition.is_default) flags.push_back("DEFAULT");
        if (partition.hidden) flags.push_back("HIDDEN");
        if (partition.root_only) flags.push_back("ROOT_ONLY");
        row["flags"] = std::move(flags);
      }
      rows.push_back(std::move(row));
    }
    return answer(call, 200, {{"partitions", std::move(rows)}, {"last_update", triple(slurm.now_seconds())}}, Json::array(),
                  Json::array({{{"description", "Slurm accounting storage is disabled. Could not query the following: [TRES]."},
                                {"source", ""}}}));
  }

  HttpResponse get_reservations(const Call& call) const {
    Json rows = Json::array();
    for (const auto& [name, reservation] : slurm.reservations()) {
      const std::vector<std::string> nodes(reservation.nodes.begin(), reservation.nodes.end());
      rows.push_back({{"name", name},
                      {"node_list", nodes.empty() ? "" : write_hostlist(nodes)},
                      {"node_count", nodes.size()},
                      {"users", reservation.users},
                      {"flags", reservation.flags},
                      {"start_time", triple(reservation.start)},
                      {"end_time", triple(reservation.end)}});
    }
    return good(call, {{"reservations", std::move(rows)}, {"last_update", triple(slurm.now_seconds())}});
  }

  HttpResponse get_diag(const Call& call) const {
    int running = 0, pending = 0;
    for (const auto& [id, job] : slurm.jobs()) {
      running += job.state == SimJob::State::kRunning ? 1 : 0;
      pending += job.state == SimJob::State::kPending ? 1 : 0;
    }
    return good(call, {{"statistics",
                        {{"server_thread_count", 1},
                         {"agent_queue_size", 0},
                         {"jobs_running", running},
                         {"jobs_pending", pending},
                         {"req_time", triple(slurm.now_seconds())}}}});
  }

  // --- Writes ---------------------------------------------------------------------------------------------------------

  static SimNodeUpdate update_of(const Json& body) {
    SimNodeUpdate out;
    const auto text = [&](const char* key, std::optional<std::string>& to) {
      if (body.contains(key) && body[key].is_string()) to = body[key].get<std::string>();
    };
    text("reason", out.reason);
    text("comment", out.comment);
    text("extra", out.extra);
    text("gres", out.gres);
    if (body.contains("weight"))
      out.weight = body["weight"].is_object() ? body["weight"]["number"].get<int>() : body["weight"].get<int>();
    if (body.contains("state")) {
      const Json& state = body["state"];
      if (state.is_string()) out.state = state.get<std::string>();
      if (state.is_array() && !state.empty()) out.state = state.front().get<std::string>();
    }
    // An empty list changes nothing, and a list with only an empty name removes all entries.
    const auto words = [&](const char* key, std::optional<std::vector<std::string>>& to) {
      if (!body.contains(key) || !body[key].is_array() || body[key].empty()) return;
      to = body[key].get<std::vector<std::string>>();
      std::erase(*to, "");
    };
    words("features", out.features);
    words("features_act", out.active_features);
    return out;
  }

  HttpResponse post_node(const Call& call, const std::string& name) {
    const SlurmErrno number = slurm.update_node(name, update_of(call.body), call.user);
    return number == SlurmErrno::kSuccess ? good(call)
                                          : refused(call, number, "Failure to update node " + name, "_update_node");
  }

  HttpResponse post_new_node(const Call& call) {
    const SlurmErrno number = slurm.create_nodes(core::get_string(call.body, {"node_conf"}));
    return number == SlurmErrno::kSuccess ? good(call) : refused(call, number, "Failure to create node", "_create_node");
  }

  /// Creates a reservation, or changes the nodes of an existing reservation. Refuses other changes of an existing reservation.
  HttpResponse post_reservation(const Call& call) {
    const std::string name = call.body.value("name", "");
    const auto listed = call.body.value("node_list", std::vector<std::string>{});
    const std::set<std::string> nodes(listed.begin(), listed.end());
    if (slurm.reservations().contains(name)) {
      const SlurmErrno number = call.body.contains("start_time") || call.body.contains("flags")
                                    ? SlurmErrno::kNotSupported
                                    : slurm.set_reservation_nodes(name, nodes);
      return number == SlurmErrno::kSuccess
                 ? good(call)
                 : refused(call, number, "Error updating reservation " + name, "slurm_update_reservation");
    }
    SimReservation wanted;
    wanted.nodes = nodes;
    wanted.users.clear();
    for (const Json& user : call.body.value("users", Json::array()))
      wanted.users += (wanted.users.empty() ? "" : ",") + user.get<std::string>();
    for (const Json& flag : call.body.value("flags", Json::array())) wanted.flags.insert(flag.get<std::string>());
    wanted.start = core::get_int(call.body, {"start_time", "number"});
    wanted.end = wanted.start + 60 * core::get_int(call.body, {"duration", "number"});
    const SlurmErrno number = slurm.create_reservation(name, std::move(wanted));
    return number == SlurmErrno::kSuccess
               ? good(call)
               : refused(call, number, "Error creating reservation  " + name, "slurm_create_reservation");
  }

  /// Reads a number. The number can be in an object or, like a count of nodes, in a string.
  static std::int64_t count_in(const Json& body, const char* key, std::int64_t fallback) {
    const Json* value = core::find(body, {key});
    if (value == nullptr) return fallback;
    if (value->is_object()) return value->value("set", true) ? value->value("number", fallback) : fallback;
    if (value->is_string()) return number(value->get<std::string>(), static_cast<int>(fallback));
    return value->is_number() ? value->get<std::int64_t>() : fallback;
  }
  static std::vector<std::string> names_in(const Json& value) {
    if (value.is_string()) return read_hostlist(value.get<std::string>()).value_or(std::vector<std::string>());
    return value.is_array() ? value.get<std::vector<std::string>>() : std::vector<std::string>();
  }

  /// Returns a warning for each unknown key in the description of a job. The model knows fewer keys than slurmrestd.
  static Json ignored(const Json& body, const std::string& at) {
    static const std::set<std::string> kKnown{"account",
                                              "admin_comment",
                                              "comment",
                                              "constraints",
                                              "cpus_per_task",
                                              "environment",
                                              "excluded_nodes",
                                              "flags",
                                              "group_id",
                                              "hold",
                                              "licenses",
                                              "mcs_label",
                                              "memory_per_node",
                                              "name",
                                              "nodes",
                                              "partition",
                                              "priority",
                                              "qos",
                                              "reservation",
                                              "script",
                                              "shared",
                                              "tasks_per_node",
                                              "time_limit",
                                              "tres_per_node",
                                              "current_working_directory",
                                              "user_id",
                                              "minimum_nodes",
                                              "maximum_nodes",
                                              "nice",
                                              "kill_on_node_fail",
                                              "minimum_cpus",
                                              "requeue",
                                              "dependency",
                                              "begin_time",
                                              "wckey"};
    Json out = Json::array();
    for (const auto& [key, value] : body.items()) {
      if (kKnown.contains(key)) continue;
      const char* type = value.is_string()   ? "string"
                         : value.is_number() ? "64 bit integer"
                         : value.is_array()  ? "list"
                                             : "dictionary";
      out.push_back(warning("Ignoring unknown field \"" + key + "\" of type " + type + " in DATA_PARSER_JOB_DESC_MSG",
                            "#/" + at + key + "/"));
    }
    return out;
  }

  /// Accepts only external jobs. Tests submit all other jobs with SimSlurm::submit().
  HttpResponse submit_job(const Call& call) {
    const char* source = "slurm_submit_batch_job()";
    const auto refuse = [&](SlurmErrno number) { return refused(call, number, "Batch job submission failed", source); };
    const Json body = call.body.value("job", Json::object());
    const Json flags = body.value("flags", Json::array());
    const bool external = std::ranges::find(flags, Json("EXTERNAL_JOB")) != flags.end();
    if (external && call.parser < "v0.0.43") {
      return answer(
          call, 500, Json::object(),
          error_json(9207, "Data parser unable to parse invalid flag", "Unknown flag \"EXTERNAL_JOB\"", "#/job/flags[0]/"));
    }
    const bool script = !body.value("script", call.body.value("script", "")).empty();
    if (!external && !script) {
      return answer(call, new_release() ? 422 : 500, Json::object(),
                    error_json(9000, "Query empty or not RFC7320 compliant",
                               "Populated \"script\" field is required for job submission", "_job_post"));
    }
    if (!external) return refuse(SlurmErrno::kNotSupported);  // The users of the model submit such jobs with sbatch.
    if (script) return refuse(SlurmErrno::kInvalidExternalJob);
    JobRequest request;
    request.user = call.user;
    request.partition = body.value("partition", "");
    request.name = body.value("name", "");
    request.admin_comment = body.value("admin_comment", "");
    request.comment = body.value("comment", "");
    request.account = body.value("account", "");
    request.qos = body.value("qos", "");
    request.mcs_label = body.value("mcs_label", "");
    request.constraints = body.value("constraints", "");
    request.tres_per_node = body.value("tres_per_node", "");
    request.nodes = static_cast<int>(count_in(body, "nodes", count_in(body, "minimum_nodes", 1)));
    request.tasks_per_node = static_cast<int>(count_in(body, "tasks_per_node", 1));
    request.cpus_per_task = static_cast<int>(count_in(body, "cpus_per_task", 1));
    request.memory = count_in(body, "memory_per_node", 0);
    if (body.contains("excluded_nodes")) request.excluded_nodes = names_in(body["excluded_nodes"]);
    if (const std::int64_t minutes = count_in(body, "time_limit", 0); minutes > 0)
      request.limit = std::chrono::minutes(minutes);
    request.exclusive = body.value("shared", Json::array()) == Json::array({"none"});
    request.held = count_in(body, "priority", 1) == 0 || body.value("hold", false);
    const SimSlurm::Submission made = slurm.submit_external(std::move(request));
    if (made.id == 0) return refuse(made.error);
    Json warnings = ignored(body, "job/");
    if (made.error != SlurmErrno::kSuccess) {
      const std::string text(text_of(made.error));
      warnings.push_back(warning("Job submission resulted in non-zero return code: " + text, source));
      warnings.push_back(warning(text, source));
    }
    return answer(call, 200, {{"job_id", made.id}, {"step_id", "batch"}, {"job_submit_user_msg", ""}}, Json::array(),
                  std::move(warnings));
  }

  HttpResponse post_job(const Call& call, std::int64_t id) {
    const Json& body = call.body.is_object() ? call.body : Json::object();
    JobUpdate update;
    if (body.contains("excluded_nodes")) update.excluded_nodes = names_in(body["excluded_nodes"]);
    if (body.contains("comment")) update.comment = body["comment"].get<std::string>();
    if (body.contains("admin_comment")) update.admin_comment = body["admin_comment"].get<std::string>();
    if (const std::int64_t minutes = count_in(body, "time_limit", 0); minutes > 0) update.limit = std::chrono::minutes(minutes);
    if (body.contains("priority")) update.held = count_in(body, "priority", 1) == 0;
    if (body.contains("hold")) update.held = body["hold"].get<bool>();
    const SlurmErrno number = slurm.update_job(id, update);
    if (number == SlurmErrno::kSuccess) return answer(call, 200, {{"results", nullptr}}, Json::array(), ignored(body, ""));
    return refused(call, number, "Job update requested failed", "slurm_update_job2()", {{"results", nullptr}});
  }

  /// Lists each job that slurmctld does not cancel in `status`, with slurmctld's reason. The request still succeeds.
  HttpResponse cancel_jobs(const Call& call, const std::vector<std::string>& ids) {
    Json status = Json::array();
    for (const std::string& text : ids) {
      const std::int64_t id = std::strtoll(text.c_str(), nullptr, 10);
      const SlurmErrno number = slurm.cancel_by(id, call.user);
      if (number == SlurmErrno::kSuccess) continue;
      const std::string_view error = text_of(number);
      status.push_back({{"error", {{"string", error}, {"code", static_cast<int>(number)}, {"message", error}}},
                        {"step_id", text},
                        {"job_id", number == SlurmErrno::kInvalidJob ? unset() : triple(id)},
                        {"federation", {{"sibling", ""}}}});
    }
    return good(call, {{"status", std::move(status)}});
  }

  HttpResponse requeue_jobs(const Call& call) {
    SlurmErrno failed = SlurmErrno::kSuccess;
    for (const Json& id : call.body.value("jobs", Json::array())) {
      const SlurmErrno number = slurm.requeue(std::strtoll(id.get<std::string>().c_str(), nullptr, 10), call.user);
      if (number != SlurmErrno::kSuccess) failed = number;
    }
    return failed == SlurmErrno::kSuccess ? good(call) : refused(call, failed, "Requeue failed", "op_handler_jobs_requeue");
  }

  /// Changes the known nodes, even if the request also names unknown nodes.
  HttpResponse post_nodes(const Call& call) {
    std::vector<std::string> names;
    const Json& given = call.body.contains("name") ? call.body["name"] : Json::array();
    if (given.is_array()) names = given.get<std::vector<std::string>>();
    if (given.is_string()) names = read_hostlist(given.get<std::string>()).value_or(std::vector<std::string>{});
    SlurmErrno failed = SlurmErrno::kSuccess;
    std::string text;
    for (const std::string& name : names) {
      const SlurmErrno number = slurm.update_node(name, update_of(call.body), call.user);
      if (number != SlurmErrno::kSuccess) failed = number;
      text += (text.empty() ? "" : ",") + name;
    }
    return failed == SlurmErrno::kSuccess ? good(call)
                                          : refused(call, failed, "Failure to update node " + text, "_update_nodes");
  }
};

SlurmRest::SlurmRest(core::Loop& loop, SimSlurm& slurm, std::function<std::string()> key)
    : impl_(std::make_shared<Impl>(loop, slurm, std::move(key))) {}
SlurmRest::~SlurmRest() = default;

void SlurmRest::serve(const net::HttpRequest& request, Reply reply) {
  impl_->serve(request, std::move(reply));
}

void SlurmRest::miss_changes() {
  impl_->missed = {impl_->slurm.nodes_changed(), impl_->slurm.jobs_changed(), impl_->slurm.partitions_changed()};
}

// --- The network ------------------------------------------------------------------------------------------------------

namespace {

class SlurmTransport final : public net::HttpTransport {
 public:
  SlurmTransport(core::Loop& network, core::Loop& client, core::Random& random, std::function<SlurmRest*()> find,
                 SlurmRest::Faults faults)
      : network_(network), loop_(client), random_(random), find_(std::move(find)), faults_(std::move(faults)) {}
  ~SlurmTransport() override { *alive_ = false; }

  RequestId send(HttpRequest request, Done done) override {
    const RequestId id = ++last_;
    const auto waiting = std::make_shared<Waiting>(Waiting{std::move(done), 0});
    waiting_[id] = waiting;
    waiting->deadline = loop_.after(request.timeout, [this, id, alive = alive_] {
      if (*alive) finish(id, std::unexpected(lost("no answer in time")));
    });
    const SlurmFault fault = faults_ ? faults_(request) : SlurmFault{};
    if (fault.kind == SlurmFault::Kind::kRefused) {
      answer(id, core::fail(core::ErrorCode::kUnavailable, kRefusedText));
    } else if (fault.kind == SlurmFault::Kind::kLostEarly) {
      answer(id, std::unexpected(lost("the connection was cut")));
    } else {
      // The network carries the request to the server even if the client has ended or given up meanwhile.
      network_.after(hop(), [this, alive = alive_, find = find_, id, request = std::move(request), fault] {
        if (SlurmRest* server = find()) {
          arrive(*server, alive, id, request, fault);
        } else if (*alive) {
          answer(id, core::fail(core::ErrorCode::kUnavailable, kRefusedText));
        }
      });
    }
    return id;
  }

  RequestId stream(HttpRequest, net::StreamHandler handler) override {
    loop_.after(core::Duration{0}, [handler = std::move(handler)] {
      handler.on_end(core::fail(core::ErrorCode::kUnsupported, "slurmrestd has no streams"));
    });
    return ++last_;
  }

  void cancel(RequestId id) override {
    const auto entry = waiting_.extract(id);
    if (!entry.empty()) loop_.cancel(entry.mapped()->deadline);
  }

 private:
  struct Waiting {
    Done done;
    core::Loop::TimerId deadline = 0;
  };

  static constexpr const char* kRefusedText = "slurmrestd: connection refused";
  /// The answer of another cluster's slurmrestd to any request.
  static constexpr const char* kOfAnother =
      R"({"nodes":[],"jobs":[],"partitions":[],"reservations":[],"last_update":{"set":true,"infinite":false,"number":1},)"
      R"("pings":[{"hostname":"elsewhere","responding":true,"pinged":"UP","mode":"primary","primary":true}],)"
      R"("slurm_conf":{"ClusterName":"elsewhere"},"meta":{"slurm":{"cluster":"elsewhere"}},"errors":[],"warnings":[]})";

  static core::Error lost(std::string message) {
    return {core::ErrorCode::kUnknownOutcome, "slurmrestd: " + std::move(message), 0, {}, {}};
  }

  core::Duration hop() { return core::Duration{static_cast<std::int64_t>(1 + random_.below(8))}; }

  /// Calls back on the client's loop, if the client still waits.
  void answer(RequestId id, core::Result<HttpResponse> result) {
    loop_.after(hop(), [this, id, alive = alive_, result = std::move(result)]() mutable {
      if (*alive) finish(id, std::move(result));
    });
  }

  /// Carries out the request at the server, even if the client has been destroyed meanwhile.
  void arrive(SlurmRest& server, const std::shared_ptr<bool>& alive, RequestId id, const HttpRequest& request,
              const SlurmFault& fault) {
    if (fault.kind == SlurmFault::Kind::kError) {
      if (!*alive) return;
      return answer(
          id,
          HttpResponse{
              500,
              {{"content-type", "application/json"}},
              R"({"errors":[{"description":"slurmctld is unwell","error_number":-1,"error":"Unspecified error","source":""}],)"
              R"("warnings":[],"meta":{}})"});
    }
    if (fault.kind == SlurmFault::Kind::kUnchanged) server.miss_changes();
    server.serve(request, [this, id, fault, alive](HttpResponse reply) {
      if (!*alive) return;
      if (fault.after) fault.after();
      loop_.after(fault.delay + hop(), [this, id, fault, alive, reply = std::move(reply)]() mutable {
        if (*alive) deliver(id, std::move(reply), fault);
      });
    });
  }

  void deliver(RequestId id, HttpResponse reply, const SlurmFault& fault) {
    using Kind = SlurmFault::Kind;
    if (fault.kind == Kind::kLost) return finish(id, std::unexpected(lost("the connection was cut")));
    if (fault.kind == Kind::kEmpty) reply = {200, {{"content-type", "application/json"}}, ""};
    if (fault.kind == Kind::kOther) reply = {200, {{"content-type", "application/json"}}, kOfAnother};
    if (fault.kind == Kind::kBare)
      reply = {200, {{"content-type", "application/json"}}, R"({"meta":{},"errors":[],"warnings":[]})"};
    if (fault.kind == Kind::kPartial && reply.body.size() > 1) reply.body.resize(1 + random_.below(reply.body.size() - 1));
    finish(id, std::move(reply));
  }

  void finish(RequestId id, core::Result<HttpResponse> result) {
    const auto entry = waiting_.extract(id);
    if (entry.empty()) return;
    loop_.cancel(entry.mapped()->deadline);
    entry.mapped()->done(std::move(result));
  }

  core::Loop& network_;
  core::Loop& loop_;
  core::Random& random_;
  std::function<SlurmRest*()> find_;
  SlurmRest::Faults faults_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::map<RequestId, std::shared_ptr<Waiting>> waiting_;
  RequestId last_ = 0;
};

}  // namespace

std::unique_ptr<net::HttpTransport> slurm_transport(core::Loop& network, core::Loop& client, core::Random& random,
                                                    std::function<SlurmRest*()> find, SlurmRest::Faults faults) {
  return std::make_unique<SlurmTransport>(network, client, random, std::move(find), std::move(faults));
}

}  // namespace sim
