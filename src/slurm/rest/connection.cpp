#include "slurm/rest/connection.hpp"

#include "core/retry.hpp"
#include "slurm/rest/release.hpp"

namespace slurm {
namespace {

using core::ErrorCode;

/// A write is not sent if less time than this is left for it.
constexpr core::Duration kShortestWrite{200};
/// The longest timeout for a table.
constexpr core::Duration kMostPatience{60000};

/// Returns the first part of all paths of the scope.
std::string place_of(Scope scope) {
  return scope == Scope::kCluster ? "slurm" : "slurmdb";
}

/// Returns the error for a server that shares no data_parser with us for this scope.
core::Error unsupported(Scope scope, const std::string& release) {
  return {core::ErrorCode::kUnsupported,
          "slurmrestd " + release + " has no data_parser that this program supports (" + std::string(kSpellings.back().parser) +
              " to " + std::string(kSpellings.front().parser) + "), or its openapi/" +
              (scope == Scope::kCluster ? "slurmctld" : "slurmdbd") + " is not loaded",
          0,
          {},
          {}};
}

}  // namespace

std::string percent_encode(std::string_view text) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
                       c == '_' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

bool is_json(const net::HttpResponse& response) {
  const std::size_t start = response.body.find_first_not_of(" \t\r\n");
  return start != std::string::npos && response.body[start] == '{';
}

Connection::Connection(core::Loop& loop, net::HttpTransport& transport, TokenSource& tokens, core::Logger& log,
                       ClientOptions options)
    : loop_(loop), transport_(transport), tokens_(tokens), log_(log), options_(std::move(options)) {}

core::Result<core::Duration> Connection::allowed(RequestKind kind, Scope scope) const {
  if (kind == RequestKind::kTable) return patience_.at(scope);
  if (kind == RequestKind::kRead) return options_.read_timeout;
  if (!options_.write_deadline) return options_.write_timeout;
  const auto until = options_.write_deadline();
  const core::Duration left = until ? *until - loop_.clock().mono() : core::Duration{0};
  if (left < kShortestWrite) return core::fail(ErrorCode::kCancelled, "no time is left for writes: the request was not sent");
  return std::min(left, options_.write_timeout);
}

void Connection::send(net::HttpRequest request, RequestKind kind, Scope scope, Reply reply) {
  if (closed_) return reply(core::fail(ErrorCode::kCancelled, "the connection was given up"));
  const auto timeout = allowed(kind, scope);
  if (!timeout) {
    // Keep this object alive until the callback has run, because the callback may use it.
    loop_.after(core::Duration{0}, [self = shared_from_this(), reply = std::move(reply), error = timeout.error()] {
      reply(std::unexpected(error));
    });
    return;
  }
  const Credentials credentials = tokens_.current();
  request.headers["x-slurm-user-name"] = credentials.user;
  request.headers["x-slurm-user-token"] = credentials.token;
  request.headers["accept"] = "application/json";
  if (!request.body.empty()) request.headers["content-type"] = "application/json";
  request.timeout = *timeout;
  const auto ticket = std::make_shared<net::HttpTransport::RequestId>(0);
  *ticket = transport_.send(std::move(request), [weak = weak_from_this(), ticket](core::Result<net::HttpResponse> response) {
    if (const auto self = weak.lock()) self->answered(*ticket, std::move(response));
  });
  under_way_.emplace(*ticket, Waiting{kind, scope, loop_.clock().mono(), std::move(reply)});
}

void Connection::answered(net::HttpTransport::RequestId ticket, core::Result<net::HttpResponse> response) {
  const auto entry = under_way_.extract(ticket);
  if (entry.empty()) return;
  if (!response) {
    // Without capabilities, the next request negotiates again.
    if (response.error().code == ErrorCode::kUnavailable) capabilities_.reset();
    if (entry.mapped().kind != RequestKind::kWrite) response.error().code = core::code_of_read(response.error().code);
  }
  if (entry.mapped().kind == RequestKind::kTable)
    note_pace(entry.mapped().scope, loop_.clock().mono() - entry.mapped().since, response.has_value());
  entry.mapped().reply(std::move(response));
}

void Connection::note_pace(Scope scope, core::Duration took, bool came) {
  core::Duration& patience = patience_.at(scope);
  if (!came && took >= patience) patience = std::min(patience * 2, std::max(kMostPatience, options_.read_timeout));
  if (came && took * 2 < options_.read_timeout) patience = options_.read_timeout;
}

void Connection::close() {
  closed_ = true;
  std::map<net::HttpTransport::RequestId, Waiting> left;
  left.swap(under_way_);
  for (const auto& [ticket, entry] : left) transport_.cancel(ticket);
  for (const auto& [ticket, entry] : left) {
    const bool write = entry.kind == RequestKind::kWrite;
    entry.reply(core::fail(write ? ErrorCode::kUnknownOutcome : ErrorCode::kCancelled, "the connection was given up"));
  }
  negotiated(core::Error{ErrorCode::kCancelled, "the connection was given up", 0, {}, {}});
}

void Connection::call(Call what, Reply reply, bool again) {
  const Scope scope = what.scope;
  auto ask = [this, what = std::move(what), reply = std::move(reply), again](core::Result<void> ready) mutable {
    if (!ready) return reply(std::unexpected(ready.error()));
    net::HttpRequest request;
    request.method = what.method;
    request.target = "/" + place_of(what.scope) + "/" + capabilities_->data_parser + "/" + what.path;
    request.body = what.body;
    request.max_reply_bytes = what.longest_reply;
    const RequestKind kind = what.kind;
    const Scope of = what.scope;
    send(std::move(request), kind, of,
         [this, what = std::move(what), reply = std::move(reply), again](core::Result<net::HttpResponse> response) mutable {
           const bool refused =
               response && core::retry_of(classify(0, response->status, what.kind)) == core::Retry::kRenewCredentials;
           if (refused) tokens_.refused();
           if (refused && !again) return call(std::move(what), std::move(reply), true);
           if (response && response->status == 404 && !is_json(*response)) {
             capabilities_.reset();
             core::Error error = to_error(404, response->body, what.kind);
             error.code = ErrorCode::kUnavailable;
             return reply(std::unexpected(error.with("the path /" + what.path + " no longer exists")));
           }
           reply(std::move(response));
         });
  };
  with_server(std::move(ask), scope);
}

bool Connection::serves(Scope scope) const {
  return capabilities_ && (scope == Scope::kCluster || capabilities_->slurmdb);
}

void Connection::with_server(std::function<void(core::Result<void>)> then, Scope scope) {
  if (serves(scope)) return then({});
  waiting_.emplace_back([this, scope, then = std::move(then)](core::Result<void> ready) {
    if (ready && !serves(scope)) return then(std::unexpected(unsupported(scope, capabilities_->release)));
    then(std::move(ready));
  });
  if (waiting_.size() == 1) negotiate(false);
}

void Connection::negotiate(bool again) {
  net::HttpRequest request;
  request.target = "/openapi/v3";
  request.max_reply_bytes = kLongestReply;
  send(std::move(request), RequestKind::kRead, Scope::kCluster, [this, again](core::Result<net::HttpResponse> response) {
    if (!response) return negotiated(response.error().with("slurmrestd"));
    if (response->status == 401 || response->status == 511) {
      tokens_.refused();
      if (!again) return negotiate(true);
    }
    if (response->status != 200)
      return negotiated(to_error(response->status, response->body, RequestKind::kRead).with("/openapi/v3"));
    decode<Paths>(std::move(response->body), decode_paths, [this](core::Result<Paths> paths) {
      if (!paths) return negotiated(paths.error().with("/openapi/v3"));
      choose(*paths);
    });
  });
}

void Connection::choose(const Paths& paths) {
  const auto serves = [&](const Spelling& s, Scope scope) {
    const std::string probe = scope == Scope::kCluster ? "/nodes" : "/qos";
    return paths.has("/" + place_of(scope) + "/" + std::string(s.parser) + probe, "get");
  };
  const auto known = std::ranges::find_if(
      kSpellings, [&](const Spelling& s) { return s.parser <= options_.newest_parser && serves(s, Scope::kCluster); });
  if (known == kSpellings.end()) return negotiated(unsupported(Scope::kCluster, paths.release));
  const std::string base = "/slurm/" + std::string(known->parser);
  Capabilities found;
  found.data_parser = known->parser;
  found.batch_node_update = paths.has(base + "/nodes", "post");
  found.conf = paths.has(base + "/conf", "get");
  found.reservations = paths.has(base + "/reservation", "post");
  found.requeue = paths.has(base + "/jobs/requeue", "post");
  found.jobs_difference = known->differences;
  found.job_states = paths.has(base + "/jobs/state", "get");
  found.slurmdb = serves(*known, Scope::kAccounting);
  spelling_ = &*known;
  const bool first = !capabilities_;
  capabilities_ = std::move(found);
  learn_release(paths.release);
  if (first)
    log_.info("slurmrestd answers", {{"release", capabilities_->release}, {"data_parser", capabilities_->data_parser}});
  negotiated({});
}

void Connection::learn_release(const std::string& text) {
  capabilities_->release = text;
  const Release release = parse_release(text);
  capabilities_->nodes_difference = spelling_->differences && release >= Release{26, 5, 3};
  capabilities_->topology_update = release >= Release{25, 5, 0};
  capabilities_->metrics = release >= Release{25, 11, 0};
  capabilities_->external_jobs = release >= Release{25, 11, 0};
}

void Connection::negotiated(std::optional<core::Error> error) {
  std::vector<std::function<void(core::Result<void>)>> calls;
  calls.swap(waiting_);
  for (auto& then : calls) {
    if (error) {
      then(std::unexpected(*error));
    } else if (!capabilities_) {
      // An earlier callback may already have found that the server is gone.
      then(core::fail(ErrorCode::kUnavailable, "slurmrestd has stopped answering again"));
    } else {
      then({});
    }
  }
}

void Connection::check_release(const Envelope& envelope) {
  if (!capabilities_ || envelope.release.empty() || envelope.release == capabilities_->release) return;
  if (capabilities_->release.empty()) return learn_release(envelope.release);
  log_.info("slurmrestd was changed", {{"from", capabilities_->release}, {"to", envelope.release}});
  capabilities_.reset();
}

core::Result<void> Connection::check_cluster(const Envelope& envelope) const {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  const auto same = [&](const std::string& name) { return std::ranges::equal(name, options_.cluster_name, {}, lower, lower); };
  if (!expects_cluster()) return {};
  for (const auto& [name, who] : {std::pair(&envelope.cluster, "slurmrestd"), {&envelope.slurmctld_cluster, "slurmctld"}}) {
    if (name->empty() || same(*name)) continue;
    return std::unexpected(
        core::Error{ErrorCode::kUnavailable,
                    std::string(who) + " is of cluster \"" + *name + "\", not of \"" + options_.cluster_name + "\"",
                    0,
                    std::string(kOtherCluster),
                    {}});
  }
  return {};
}

void Connection::write(std::string method, std::string path, core::Json body, Done<void> done, Scope scope) {
  write_for_reply(
      std::move(method), std::move(path), std::move(body),
      [done = std::move(done)](const core::Result<Envelope>& reply) {
        done(reply ? core::Result<void>() : std::unexpected(reply.error()));
      },
      scope);
}

void Connection::write_for_reply(std::string method, std::string path, core::Json body, Done<Envelope> done, Scope scope) {
  Call what;
  what.scope = scope;
  what.method = std::move(method);
  what.path = std::move(path);
  what.kind = RequestKind::kWrite;
  if (!body.is_null()) what.body = body.dump(-1, ' ', false, core::Json::error_handler_t::replace);
  const std::string place = what.path;
  call(std::move(what), [this, place, done = std::move(done)](core::Result<net::HttpResponse> response) {
    if (!response) return done(std::unexpected(response.error().with(place)));
    if (response->status == 304) return done(Envelope{});
    if (!is_json(*response)) {
      core::Error error = to_error(response->status, response->body, RequestKind::kWrite);
      if (response->status < 400) error.code = ErrorCode::kUnknownOutcome;
      return done(std::unexpected(error.with(place)));
    }
    const auto envelope = decode_envelope(std::move(response->body));
    if (!envelope) {
      core::Error error = envelope.error();
      error.code = ErrorCode::kUnknownOutcome;
      return done(std::unexpected(error.with(place)));
    }
    check_release(*envelope);
    if (!envelope->errors.empty())
      return done(std::unexpected(to_error(envelope->errors, response->status, RequestKind::kWrite)));
    if (response->status != 200) return done(std::unexpected(to_error(response->status, "", RequestKind::kWrite).with(place)));
    done(*envelope);
  });
}

bool Connection::says_no_changes(const Envelope& envelope) {
  return std::ranges::any_of(envelope.warnings,
                             [](const std::string& w) { return w.find("No job changes") != std::string::npos; });
}

bool Connection::lacks_partitions(const Envelope& envelope) {
  return std::ranges::any_of(envelope.errors, [](const RestError& e) { return e.description == "Unable to query partitions"; });
}

}  // namespace slurm
