#include "enlist/coordinator/server.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base64.hpp"
#include "core/hash.hpp"
#include "core/hostlist.hpp"
#include "enlist/coordinator/leaving.hpp"
#include "enlist/coordinator/node_words.hpp"
#include "enlist/coordinator/pools_plan.hpp"
#include "enlist/coordinator/rotating.hpp"
#include "enlist/wire/token.hpp"
#include "slurm/holds.hpp"

namespace enlist {
namespace {

using core::ErrorCode;
using namespace std::chrono_literals;

/// The delay of the answer to each wrong token, so that the time of the answer reveals nothing about tokens.
constexpr core::Duration kWrongTokenAfter = 300ms;
constexpr int kWrongTokensASecond = 10;
constexpr int kLongestWait = 30000;
constexpr std::size_t kLongestLine = 1000;
constexpr std::size_t kMostRefused = 100;
/// The largest number of steps of a report that is stored. More are not needed: it matters only whether there are any.
constexpr std::size_t kMostSteps = 100;
constexpr std::int64_t kLongestLifetime = 7LL * 24 * 3600;
constexpr std::int64_t kLongestToken = 30LL * 24 * 3600, kMostUses = 10000;

bool is_for_agents(std::string_view path) {
  return path == "/v1/sync" || path == "/v1/key" || path == "/v1/leave";
}

net::HttpResponse answer(int status, const core::Json& body) {
  return {status, {{"content-type", "application/json"}, {"cache-control", "no-store"}}, core::canonical(body), {}};
}

net::HttpResponse refusal(int status, const std::string& why) {
  return answer(status, {{"error", why}});
}

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUnauthorized:
      return 401;
    case ErrorCode::kForbidden:
      return 403;
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kConflict:
    case ErrorCode::kAlreadyExists:
      return 409;
    case ErrorCode::kTooManyRequests:
      return 429;
    case ErrorCode::kUnavailable:
    case ErrorCode::kUnknownOutcome:
      return 503;
    case ErrorCode::kInternal:
      return 500;
    default:
      return 422;
  }
}

net::HttpResponse refusal(const core::Error& error) {
  return refusal(status_of(error.code), error.message);
}

std::string path_of(const net::HttpRequest& request) {
  return request.target.substr(0, request.target.find('?'));
}

template <class T>
core::Result<T> read_body(const net::HttpRequest& request) {
  const core::Result<core::Json> json = core::parse_json(request.body);
  if (!json) return core::fail(ErrorCode::kInvalid, "the body is not JSON");
  return from_json<T>(*json);
}

/// Returns the names of removed pools whose lines slurmctld still has, or may still have.
core::Json dropping(const Contents& contents, const std::map<std::string, Pool>& there) {
  std::set<std::string> out;
  const auto value = contents.values.find(kRolloutValue);
  const auto state = value == contents.values.end() ? slurm::rollout::State{} : rollout_from_json(value->second);
  if (!state) return core::Json::array();
  for (const auto* files : {&state->offered, &state->accepted}) {
    for (const auto& [name, text] : *files) {
      for (const auto& [pool, words] : pools_of(text)) {
        if (!there.contains(pool)) out.insert(pool);
      }
    }
  }
  return out;
}

/// Returns a text of a client as one printable line of about kLongestLine characters at most, because people read it.
std::string one_line(std::string text) {
  if (text.size() > kLongestLine) text = text.substr(0, kLongestLine) + "...";
  return without_controls(std::move(text));
}

Report cleaned(Report report) {
  for (std::string* text : {&report.hostname, &report.boot_id, &report.slurm_version, &report.instance_id, &report.key_revision,
                            &report.key_loaded, &report.error, &report.note})
    *text = one_line(std::move(*text));
  report.conf = without_controls(std::move(report.conf));
  if (report.steps.size() > kMostSteps) report.steps.resize(kMostSteps);
  for (std::string& step : report.steps) step = one_line(std::move(step));
  return report;
}

}  // namespace

Server::Server(core::Loop& loop, core::Random& random, core::Logger& log, Store& store, slurm::Clusters& clusters,
               SlurmFiles& files, ServerOptions options, Callbacks callbacks)
    : loop_(loop),
      random_(random),
      log_(log),
      store_(store),
      clusters_(clusters),
      files_(files),
      options_(std::move(options)),
      slurm_requests_(clusters, options_.cluster),
      callbacks_(std::move(callbacks)) {}
Server::~Server() = default;

SlurmNow Server::slurm_now() const {
  return {files_.facts(), clusters_.snapshot(options_.cluster)};
}

const Node* Server::node_of(const std::string& key) const {
  if (key.empty()) return nullptr;
  const auto found =
      std::ranges::find(store_.contents().nodes, key, [](const auto& entry) -> const std::string& { return entry.second.key; });
  return found == store_.contents().nodes.end() ? nullptr : &found->second;
}

bool Server::knows(const std::string& key) const {
  if (!options_.admin.empty() && key == options_.admin) return true;
  const Node* node = node_of(key);
  return node != nullptr && !node->revoked;
}

// --- Joining ------------------------------------------------------------------------------------------------------

void Server::join(const net::HttpRequest& request, Reply reply) {
  if (path_of(request) != "/v1/join") return reply(refusal(404, "there is nothing at this address but POST /v1/join"));
  if (request.method != "POST") return reply(refusal(405, "use POST"));
  core::Result<JoinRequest> wish = read_body<JoinRequest>(request);
  if (!wish) return reply(refusal(wish.error()));
  if (request.peer_key.empty()) return reply(refusal(401, "the host presented no key; join with slurm-enlist join"));
  const JoinAsk ask{.token = digest_of(wish->secret),
                    .key = request.peer_key,
                    .hostname = wish->hostname,
                    .slurm_version = wish->slurm_version,
                    .conf = wish->conf};
  // Check the token before the commit, so that a wrong token causes no commit.
  if (auto good = check_token(store_.contents(), ask.token, ask.key, loop_.clock().wall()); !good)
    return refuse_token(ask, reply, good.error());
  if (auto usable = check_host_keys(*wish, files_.key_file(), files_.key_revision()); !usable)
    return joined(ask, {}, usable, reply);
  const auto got = std::make_shared<Joined>();
  store_.commit(
      [this, ask, got](const Contents& now) {
        return enlist::join(now, slurm_now(), files_.key_revision(), ask, loop_.clock().wall(), *got);
      },
      [this, alive = std::weak_ptr(alive_), ask, got, reply = std::move(reply)](const core::Result<void>& result) {
        if (!alive.expired()) joined(ask, *got, result, reply);
      });
}

void Server::joined(const JoinAsk& ask, const Joined& got, const core::Result<void>& result, const Reply& reply) {
  if (!result) {
    if (result.error().code == ErrorCode::kUnauthorized) return refuse_token(ask, reply, result.error());
    log_.warn("a host is refused", {{"hostname", one_line(ask.hostname)}, {"key", ask.key}, core::error_field(result.error())});
    return reply(refusal(result.error()));
  }
  if (!files_.facts()) return reply(refusal(files_.facts().error()));
  log_.info(got.again ? "a host joins again" : "a host joins",
            {{"node", got.node}, {"pool", got.pool}, {"hostname", ask.hostname}, {"key", ask.key}});
  reply(answer(200, to_json(JoinReply{got.node, got.pool, files_.facts()->cluster_name, options_.agent_port})));
}

void Server::refuse_token(const JoinAsk& ask, const Reply& reply, const core::Error& error) {
  const core::MonoTime now = loop_.clock().mono();
  if (now - second_began_ >= 1s) {
    second_began_ = now;
    failures_ = 0;
  }
  const bool too_many = ++failures_ > kWrongTokensASecond;
  if (!too_many) log_.warn("a wrong token is refused", {{"hostname", one_line(ask.hostname)}, {"key", ask.key}});
  net::HttpResponse told = too_many ? refusal(429, "too many wrong tokens; try again in a second") : refusal(error);
  loop_.after(kWrongTokenAfter, [reply, told = std::move(told)] { reply(told); });
}

// --- Agents -------------------------------------------------------------------------------------------------------

void Server::serve(const net::HttpRequest& request, Reply reply) {
  if (!options_.admin.empty() && request.peer_key == options_.admin)
    return serve_admin(request, logged(path_of(request), std::move(reply)));
  const Node* node = node_of(request.peer_key);
  if (node != nullptr && !node->revoked) return serve_node(request, *node, std::move(reply));
  std::string why;
  if (node != nullptr) {
    why = "node " + node->name + " is revoked; join again with a new token of pool " + node->pool;
  } else if (is_for_agents(path_of(request))) {
    why =
        "this host is not known here, and may have been removed; it must join again, with a new token: slurm-enlist join "
        "--again";
  } else {
    why = "this is not the key of the administrators; run this on the coordinator's host, with the --state of the coordinator";
  }
  log_refused(request, why);
  reply(refusal(403, why));
}

/// Logs at most one refusal for each key, and at most kMostRefused refusals, in a minute.
void Server::log_refused(const net::HttpRequest& request, const std::string& why) {
  const core::MonoTime now = loop_.clock().mono();
  if (now - minute_began_ >= 1min) {
    minute_began_ = now;
    refused_.clear();
  }
  if (refused_.size() >= kMostRefused || !refused_.insert(request.peer_key).second) return;
  const core::Json body = core::parse_json(request.body).value_or(core::Json());
  log_.warn(
      "a key is refused",
      {{"hostname", one_line(core::get_string(body, {"report", "hostname"}))}, {"key", request.peer_key}, {"error", why}});
}

void Server::serve_node(const net::HttpRequest& request, const Node& node, Reply reply) {
  const std::string path = path_of(request);
  if (path == "/v1/sync" && request.method == "POST") return sync(request, node, std::move(reply));
  if (path == "/v1/key" && request.method == "GET") return give_key(node.name, std::move(reply));
  if (path == "/v1/leave" && request.method == "POST") {
    const auto leave = [this, name = node.name](const Contents& now) {
      return enlist::leave(now, {name}, false, loop_.clock().wall());
    };
    return change_nodes({node.name}, "a host asks to leave", leave, std::move(reply));
  }
  reply(refusal(403, "node " + node.name + " may not do this: " + request.method + " " + one_line(path)));
}

void Server::sync(const net::HttpRequest& request, const Node& node, Reply reply) {
  core::Result<Sync> read = read_body<Sync>(request);
  if (!read) return reply(refusal(read.error()));
  read->report = cleaned(std::move(read->report));
  if (!callbacks_.reports(node, read->report) || read->report == node.report) {
    callbacks_.heard(node.name);
    return settle(node.name, *read, std::move(reply));
  }
  store_.commit(
      [name = node.name, key = node.key, report = read->report](const Contents& now) -> core::Result<Changes> {
        const auto found = now.nodes.find(name);
        if (found == now.nodes.end() || found->second.key != key || found->second.revoked)
          return core::fail(ErrorCode::kForbidden, "node " + name + " is revoked");
        Node next = found->second;
        next.report = report;
        return Changes{.nodes = {{name, std::move(next)}}};
      },
      [this, alive = std::weak_ptr(alive_), name = node.name, sync = *read,
       reply = std::move(reply)](core::Result<void> result) {
        if (alive.expired()) return;
        if (!result) return reply(refusal(result.error()));
        callbacks_.heard(name);
        // Poll Slurm soon: it may already show the slurmd of this report.
        if (sync.report.running) clusters_.poll_soon(options_.cluster);
        settle(name, sync, reply);
      });
}

/// Answers at once if the reply differs from the one that the agent has, or else when it does, or when `wait_ms` is over.
void Server::settle(const std::string& node, const Sync& sync, Reply reply) {
  if (const auto earlier = waiters_.extract(node); !earlier.empty())
    answer_if_new(node, earlier.mapped().revision, earlier.mapped().reply, true);
  const int wait = std::clamp(sync.wait_ms, 0, kLongestWait);
  if (answer_if_new(node, sync.revision, reply, wait == 0)) return;
  Waiter waiter{std::move(reply), sync.revision, pool_words(node), std::make_unique<core::Timer>(loop_)};
  waiter.limit->set(core::Duration{wait}, [this, node] {
    const auto over = waiters_.extract(node);
    answer_if_new(node, over.mapped().revision, over.mapped().reply, true);
  });
  waiters_.insert_or_assign(node, std::move(waiter));
}

/// Answers the agent and returns true, if the reply has another revision than `revision`, is a refusal, or with `anyway`.
bool Server::answer_if_new(const std::string& node, const std::string& revision, const Reply& reply, bool anyway) {
  const auto found = store_.contents().nodes.find(node);
  if (found == store_.contents().nodes.end() || found->second.revoked) {
    reply(refusal(403, "node " + node + " is revoked"));
    return true;
  }
  const core::Result<Desired> desired = desired_of(store_.contents(), found->second, files_.facts(), files_.key_revision());
  if (!desired) {
    // The agent goes on with the last Desired that it got.
    reply(refusal(503, desired.error().message));
    return true;
  }
  SyncReply told{*desired, "", std::string(to_string(found->second.phase)), found->second.message};
  told.revision = core::short_digest(core::canonical(to_json(told)));
  if (!anyway && told.revision == revision) return false;
  reply(answer(200, to_json(told)));
  return true;
}

std::string Server::pool_words(const std::string& node) const {
  const auto found = store_.contents().nodes.find(node);
  if (found == store_.contents().nodes.end()) return {};
  const auto pool = store_.contents().pools.find(found->second.pool);
  return pool == store_.contents().pools.end() ? std::string() : pool->second.node_conf;
}

// Computes the reply only for agents that the changes concern: that takes some time, and most changes are about one node.
void Server::changed(const Changes& changes) {
  for (auto at = waiters_.begin(); at != waiters_.end();) {
    const bool concerned =
        changes.nodes.contains(at->first) || (!changes.pools.empty() && pool_words(at->first) != at->second.words);
    const bool told = concerned && answer_if_new(at->first, at->second.revision, at->second.reply, false);
    at = told ? waiters_.erase(at) : std::next(at);
  }
}

void Server::changed() {
  for (auto at = waiters_.begin(); at != waiters_.end();) {
    at = answer_if_new(at->first, at->second.revision, at->second.reply, false) ? waiters_.erase(at) : std::next(at);
  }
}

void Server::stop() {
  for (auto& [node, waiter] : std::exchange(waiters_, {})) answer_if_new(node, waiter.revision, waiter.reply, true);
}

void Server::give_key(const std::string& node, Reply reply) {
  files_.read_key([this, alive = std::weak_ptr(alive_), node, reply = std::move(reply)](core::Result<AuthKey> key) {
    if (alive.expired()) return;
    if (!key) {
      log_.error("a node cannot get the auth key", {{"node", node}, core::error_field(key.error())});
      return reply(refusal(503, "the coordinator cannot read the auth key"));
    }
    log_.info("a node gets the auth key", {{"node", node}, {"revision", key->revision}});
    reply(answer(200, {{"file", key->file}, {"revision", key->revision}, {"content", core::base64_encode(key->content)}}));
  });
}

// --- Administrators -----------------------------------------------------------------------------------------------

Server::Reply Server::logged(const std::string& path, Reply reply) {
  return [this, alive = std::weak_ptr(alive_), path, reply = std::move(reply)](net::HttpResponse response) {
    if (response.status != 200 && !alive.expired()) {
      const core::Json body = core::parse_json(response.body).value_or(core::Json());
      log_.warn("a command is refused", {{"path", one_line(path)}, {"error", core::get_string(body, {"error"})}});
    }
    reply(std::move(response));
  };
}

void Server::serve_admin(const net::HttpRequest& request, Reply reply) {
  const std::string path = path_of(request);
  const auto list = [](const auto& rows) {
    core::Json out = core::Json::array();
    for (const auto& [name, row] : rows) out.push_back(to_json(row));
    return out;
  };
  if (path == "/v1/pools" && request.method == "GET") {
    std::map<std::string, Pool> all = store_.contents().pools;
    all.merge(found_pools(store_.contents().values));
    core::Json pools = list(all);
    const auto problems = store_.contents().values.find(kProblemsValue);
    for (core::Json& pool : pools) {
      if (problems != store_.contents().values.end())
        pool["problem"] = core::get_string(problems->second, {core::get_string(pool, {"name"})});
    }
    return reply(answer(200, {{"pools", std::move(pools)}, {"dropping", dropping(store_.contents(), all)}}));
  }
  if (path == "/v1/nodes" && request.method == "GET")
    return reply(answer(200, {{"nodes", list(store_.contents().nodes)}, {"store_problem", store_.problem()}}));
  if (path == "/v1/pools" && request.method == "POST") return make_pool(request, std::move(reply));
  if (path == "/v1/tokens" && request.method == "POST") return make_token(request, std::move(reply));
  if (path == "/v1/pools/remove" && request.method == "POST") return remove_pool(request, std::move(reply));
  if (path == "/v1/jobs/end" && request.method == "POST") return end_jobs(request, std::move(reply));
  constexpr std::string_view kRotation = "/v1/rotation";
  if (path == kRotation && request.method == "GET") return reply(answer(200, callbacks_.rotation()));
  if (path.starts_with(kRotation) && request.method == "POST")
    return serve_rotation(path.substr(kRotation.size()), request, std::move(reply));
  constexpr std::string_view kNodes = "/v1/nodes/";
  if (path.starts_with(kNodes) && request.method == "POST")
    return serve_nodes(path.substr(kNodes.size()), request, std::move(reply));
  const bool known = path == "/v1/pools" || path == "/v1/nodes" || path == "/v1/tokens";
  reply(refusal(known ? 405 : 404, "there is no " + one_line(request.method + " " + path)));
}

void Server::make_pool(const net::HttpRequest& request, Reply reply) {
  const core::Result<Pool> pool = read_body<Pool>(request);
  if (!pool) return reply(refusal(pool.error()));
  const bool existed = store_.contents().pools.contains(pool->name);
  store_.commit([this, wish = *pool](const Contents& now) { return enlist::make_pool(now, slurm_now(), wish); },
                [this, alive = std::weak_ptr(alive_), name = pool->name, existed,
                 reply = std::move(reply)](const core::Result<void>& result) {
                  if (alive.expired()) return;
                  if (!result) return reply(refusal(result.error()));
                  if (!existed) log_.info("a pool is made", {{"pool", name}});
                  core::Json told = to_json(store_.contents().pools.at(name));
                  told["existed"] = existed;
                  reply(answer(200, told));
                });
}

void Server::make_token(const net::HttpRequest& request, Reply reply) {
  const core::Result<core::Json> body = core::parse_json(request.body);
  if (!body || !body->is_object()) return reply(refusal(422, "the body is not a JSON object"));
  const std::int64_t valid = core::get_int(*body, {"valid_for_s"}, 3600), uses = core::get_int(*body, {"uses"}, 1);
  if (valid < 1 || valid > kLongestToken) return reply(refusal(422, "a token is valid for 1 s to 30 days"));
  if (uses < 1 || uses > kMostUses) return reply(refusal(422, "a token has 1 to 10000 uses"));
  const std::string secret = core::hex(random_.bytes(16));
  const core::WallTime now = loop_.clock().wall();
  const Token token{core::get_string(*body, {"pool"}), now + std::chrono::seconds(valid), static_cast<int>(uses)};
  const core::Json told{{"token", write_token({options_.host, options_.join_port, options_.own, secret})}};
  store_.commit(
      [digest = digest_of(secret), token, now](const Contents& at) { return enlist::make_token(at, digest, token, now); },
      [this, alive = std::weak_ptr(alive_), token, told, reply = std::move(reply)](const core::Result<void>& result) {
        if (alive.expired()) return;
        if (!result) return reply(refusal(result.error()));
        log_.info("a token is made",
                  {{"pool", token.pool}, {"uses", token.uses_left}, {"expires", core::format_rfc3339(token.expires)}});
        reply(answer(200, told));
      });
}

void Server::change_nodes(std::vector<std::string> nodes, const std::string& what, Store::Change change, Reply reply) {
  store_.commit(std::move(change), [this, alive = std::weak_ptr(alive_), nodes = std::move(nodes), what,
                                    reply = std::move(reply)](const core::Result<void>& result) {
    if (alive.expired()) return;
    if (!result) return reply(refusal(result.error()));
    core::Json out = core::Json::array();
    for (const std::string& name : nodes) {
      log_.info(what, {{"node", name}});
      if (const auto node = store_.contents().nodes.find(name); node != store_.contents().nodes.end())
        out.push_back(to_json(node->second));
    }
    reply(answer(200, {{"nodes", std::move(out)}}));
  });
}

void Server::serve_nodes(const std::string& verb, const net::HttpRequest& request, Reply reply) {
  const core::Result<core::Json> body = core::parse_json(request.body);
  const core::Json* list = body ? core::find(*body, {"nodes"}) : nullptr;
  if (list == nullptr || !list->is_array()) return reply(refusal(422, "the body has no list of nodes"));
  std::vector<std::string> nodes;
  for (const core::Json& name : *list) nodes.push_back(name.is_string() ? name.get<std::string>() : "");
  if (verb == "leave") {
    const auto change = [this, nodes, force = core::get_bool(*body, {"force"})](const Contents& now) {
      return enlist::leave(now, nodes, force, loop_.clock().wall());
    };
    return change_nodes(nodes, "an administrator lets a node leave", change, std::move(reply));
  }
  if (verb == "keep") {
    return change_nodes(
        nodes, "an administrator keeps a node", [nodes](const Contents& now) { return enlist::keep(now, nodes); },
        std::move(reply));
  }
  if (verb == "revoke") {
    return change_nodes(
        nodes, "the key of a node is revoked, and the tokens of its pool are withdrawn",
        [nodes](const Contents& now) { return enlist::revoke(now, nodes); }, std::move(reply));
  }
  if (verb == "config") {
    const std::string name = nodes.size() == 1 ? nodes.front() : "", words = core::get_string(*body, {"conf"});
    if (one_line(words) != words) return reply(refusal(422, "the parameters must be one line of at most 1000 characters"));
    return change_nodes(
        nodes, "an administrator gives a node new parameters",
        [this, name, words](const Contents& now) { return configure(now, slurm_now(), name, words, loop_.clock().wall()); },
        std::move(reply));
  }
  if (verb != "drain" && verb != "resume") return reply(refusal(404, "there is no " + one_line(request.target)));
  const std::string reason = core::get_string(*body, {"reason"});
  if (nodes.size() != 1 || !store_.contents().nodes.contains(nodes.front()))
    return reply(refusal(404, "there is no node " + one_line(nodes.empty() ? "" : nodes.front())));
  if (verb == "drain" && (reason.empty() || one_line(reason) != reason || slurm::held_by(reason, slurm::Owner::kEnlistment)))
    return reply(refusal(422, "the reason must be one line, and not one of slurm-enlist's own"));
  if (verb == "drain") return set_state(verb, nodes.front(), reason, "Slurm: ", std::move(reply));
  // First cancel a leave or a restart with other parameters, because the coordinator would drain the node again.
  const Node& node = store_.contents().nodes.at(nodes.front());
  const bool keeps = node.leaving.wanted || node.configuring.restarts();
  store_.commit([nodes](const Contents& now) { return enlist::keep(now, nodes); },
                [this, alive = std::weak_ptr(alive_), keeps, name = node.name,
                 reply = std::move(reply)](const core::Result<void>& result) {
                  if (alive.expired()) return;
                  if (!result) return reply(refusal(result.error()));
                  set_state("resume", name, "", keeps ? "the node stays with its parameters, but Slurm: " : "Slurm: ", reply);
                });
}

void Server::set_state(const std::string& verb, const std::string& node, const std::string& reason, const std::string& trouble,
                       Reply reply) {
  auto done = [this, alive = std::weak_ptr(alive_), verb, node, trouble,
               reply = std::move(reply)](const core::Result<void>& result) {
    if (alive.expired()) return;
    if (!result) return reply(refusal(status_of(result.error().code), trouble + result.error().message));
    log_.info("an administrator changes a node", {{"node", node}, {"to", verb}});
    reply(answer(200, core::Json::object()));
  };
  if (verb == "drain") return slurm_requests_.drain(node, reason, std::move(done));
  slurm_requests_.resume(node, std::move(done));
}

void Server::remove_pool(const net::HttpRequest& request, Reply reply) {
  const core::Result<core::Json> body = core::parse_json(request.body);
  if (!body || !body->is_object()) return reply(refusal(422, "the body is not a JSON object"));
  const std::string name = core::get_string(*body, {"name"});
  const bool force = core::get_bool(*body, {"force"});
  // Ask Slurm now, because the snapshot may lack a job that was submitted just before.
  clusters_.live_jobs(
      options_.cluster, [this, alive = std::weak_ptr(alive_), name, force, reply = std::move(reply)](LiveJobs jobs) {
        if (alive.expired()) return;
        store_.commit(
            [name, force, jobs = std::move(jobs)](const Contents& now) { return enlist::remove_pool(now, jobs, name, force); },
            [this, alive, name, reply](const core::Result<void>& result) {
              if (alive.expired()) return;
              if (!result) return reply(refusal(result.error()));
              log_.info("a pool is being removed", {{"pool", name}});
              reply(answer(200, core::Json::object()));
            });
      });
}

void Server::end_jobs(const net::HttpRequest& request, Reply reply) {
  const core::Result<core::Json> body = core::parse_json(request.body);
  if (!body || !body->is_object()) return reply(refusal(422, "the body is not a JSON object"));
  const std::string node = core::get_string(*body, {"node"}), pool = core::get_string(*body, {"pool"});
  std::set<std::string> nodes;
  for (const auto& [name, record] : store_.contents().nodes) {
    if (name == node || (node.empty() && record.pool == pool)) nodes.insert(name);
  }
  const bool known = node.empty() ? store_.contents().pools.contains(pool) : !nodes.empty();
  if (!known)
    return reply(refusal(404, node.empty() ? "there is no pool " + one_line(pool) : "there is no node " + one_line(node)));
  slurm_requests_.end_jobs(
      std::move(nodes), [this, alive = std::weak_ptr(alive_), reply = std::move(reply)](const core::Result<core::Json>& jobs) {
        if (alive.expired()) return;
        if (!jobs) return reply(refusal(jobs.error()));
        for (const core::Json& job : *jobs) {
          log_.info("an administrator ends a job",
                    {{"job", core::get_string(job, {"job"})}, {"user", core::get_string(job, {"user"})}});
        }
        reply(answer(200, {{"jobs", *jobs}}));
      });
}

void Server::serve_rotation(const std::string& verb, const net::HttpRequest& request, Reply reply) {
  const core::Result<core::Json> body = core::parse_json(request.body);
  if (!body || !body->is_object()) return reply(refusal(422, "the body is not a JSON object"));
  std::set<std::string> names;
  for (const char* member : {"also", "hosts", "nodes"}) {
    const core::Json* list = core::find(*body, {member});
    for (const core::Json& item : list != nullptr && list->is_array() ? *list : core::Json::array()) {
      const std::string name = item.is_string() ? item.get<std::string>() : "";
      const auto expanded = core::expand_hostlist(name);
      names.insert(name);
      if (!expanded || expanded->empty()) continue;
      names.erase(name);
      names.insert(expanded->begin(), expanded->end());
    }
  }
  const core::WallTime now = loop_.clock().wall();
  Store::Change change;
  if (verb.empty()) {
    const std::int64_t lifetime = core::get_int(*body, {"lifetime_s"});
    if (lifetime < 0 || lifetime > kLongestLifetime) return reply(refusal(422, "lifetime_s must be at most 7 days"));
    change = [this, names, lifetime, kid = "enlist-" + core::hex(random_.bytes(8)), now](const Contents& contents) {
      return begin_rotation(contents, files_.keys(), kid, names, std::chrono::seconds(lifetime), now);
    };
  } else if (verb == "/acknowledge") {
    // Only hosts that the status asks for now can be acknowledged: the key file may not be that of the phase yet.
    change = [this, names, phase = core::get_string(*body, {"phase"})](const Contents& contents) {
      return acknowledge(contents, callbacks_.rotation(), names, phase);
    };
  } else if (verb == "/without") {
    change = [this, names](const Contents& contents) {
      return go_without(contents, clusters_.snapshot(options_.cluster), names);
    };
  } else if (verb == "/abandon") {
    change = [this, now](const Contents& contents) { return abandon_rotation(contents, files_.keys(), now); };
  } else {
    return reply(refusal(404, "there is no " + one_line(request.target)));
  }
  store_.commit(std::move(change),
                [this, alive = std::weak_ptr(alive_), verb, names, reply = std::move(reply)](const core::Result<void>& result) {
                  if (alive.expired()) return;
                  if (!result) return reply(refusal(result.error()));
                  log_.info("an administrator changes the rotation of the auth key",
                            {{"what", verb.empty() ? "begin" : verb.substr(1)}, {"names", core::Json(names).dump()}});
                  reply(answer(200, callbacks_.rotation()));
                });
}

}  // namespace enlist
