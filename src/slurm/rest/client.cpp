#include "slurm/rest/client.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "core/retry.hpp"
#include "slurm/rest/decode.hpp"
#include "slurm/rest/errors.hpp"
#include "slurm/rest/release.hpp"
#include "slurm/rest/spelling.hpp"

namespace slurm {
namespace {

using core::ErrorCode;

/// Longer bodies are read on another thread.
constexpr std::size_t kShort = 64UL << 10;
/// A job takes 5 KiB. What all clusters together may take is the transport's to bound.
constexpr std::size_t kLongestTable = 512UL << 20;
/// Of whatever else is asked: who runs slurmrestd is not who pays for our memory. /openapi/v3 takes 2 MiB.
constexpr std::size_t kLongestReply = 32UL << 20;
/// A write that has less time than this is not worth beginning.
constexpr core::Duration kShortestWrite{200};
/// The longest that a table is waited for.
constexpr core::Duration kMostPatience{60000};

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

core::Json body_of(const NodeUpdate& update) {
  core::Json body = core::Json::object();
  if (update.state) body["state"] = core::Json::array({*update.state});
  if (update.reason) body["reason"] = *update.reason;
  if (update.comment) body["comment"] = *update.comment;
  if (update.features) {
    // Slurm refuses to take away a feature that is active still.
    body["features"] = *update.features;
    body["features_act"] = *update.features;
  }
  return body;
}

bool is_json(const net::HttpResponse& response) {
  const std::size_t start = response.body.find_first_not_of(" \t\r\n");
  return start != std::string::npos && response.body[start] == '{';
}

/// A request whose path stands behind /slurm/<data_parser>/.
struct Call {
  std::string method = "GET";
  std::string path;
  std::string body;
  bool write = false;
  bool table = false;
  std::size_t longest_reply = kLongestReply;
};

}  // namespace

struct Client::Impl : std::enable_shared_from_this<Client::Impl> {
  Impl(core::Loop& in_loop, net::HttpTransport& in_transport, TokenSource& in_tokens, core::Logger& in_log,
       ClientOptions in_options)
      : loop(in_loop), transport(in_transport), tokens(in_tokens), log(in_log), options(std::move(in_options)) {}

  using Reply = std::function<void(core::Result<net::HttpResponse>)>;

  // --- Requests ---------------------------------------------------------------------------------------------------

  /// How long a request may take that is sent now, or why it may not be sent.
  [[nodiscard]] core::Result<core::Duration> allowed(bool write, bool table) const {
    if (!write) return table ? patience : options.read_timeout;
    if (!options.write_deadline) return options.write_timeout;
    const auto until = options.write_deadline();
    const core::Duration left = until ? *until - loop.clock().mono() : core::Duration{0};
    if (left < kShortestWrite) return core::fail(ErrorCode::kCancelled, "no time is left for writes: it was not sent");
    return std::min(left, options.write_timeout);
  }

  /// Sends one request with credentials.
  void send(net::HttpRequest request, bool write, Reply reply, bool table = false) {
    if (closed) return reply(core::fail(ErrorCode::kCancelled, "the connection was given up"));
    const auto timeout = allowed(write, table);
    if (!timeout) {
      // Held for as long as that: what waits for the reply speaks of this object.
      loop.after(core::Duration{0}, [self = shared_from_this(), reply = std::move(reply), error = timeout.error()] {
        reply(std::unexpected(error));
      });
      return;
    }
    const Credentials credentials = tokens.current();
    request.headers["x-slurm-user-name"] = credentials.user;
    request.headers["x-slurm-user-token"] = credentials.token;
    request.headers["accept"] = "application/json";
    if (!request.body.empty()) request.headers["content-type"] = "application/json";
    request.timeout = *timeout;
    const auto ticket = std::make_shared<net::HttpTransport::RequestId>(0);
    *ticket = transport.send(std::move(request), [weak = weak_from_this(), ticket](core::Result<net::HttpResponse> response) {
      if (const auto self = weak.lock()) self->answered(*ticket, std::move(response));
    });
    under_way.emplace(*ticket, Waiting{write, table, loop.clock().mono(), std::move(reply)});
  }

  void answered(net::HttpTransport::RequestId ticket, core::Result<net::HttpResponse> response) {
    const auto entry = under_way.extract(ticket);
    if (entry.empty()) return;
    if (!response) {
      // The next request finds out anew who answers.
      if (response.error().code == ErrorCode::kUnavailable) capabilities.reset();
      if (!entry.mapped().write) response.error().code = core::code_of_read(response.error().code);
    }
    if (entry.mapped().table) note_pace(loop.clock().mono() - entry.mapped().since, response.has_value());
    entry.mapped().reply(std::move(response));
  }

  /// slurmrestd goes on with a table that nobody waits for any more: to give up each time at the same moment would only slow it
  /// down, and never see the table.
  void note_pace(core::Duration took, bool came) {
    if (!came && took >= patience) patience = std::min(patience * 2, std::max(kMostPatience, options.read_timeout));
    if (came && took * 2 < options.read_timeout) patience = options.read_timeout;
  }

  /// The client goes: whoever still waits is told so.
  void close() {
    closed = true;
    std::map<net::HttpTransport::RequestId, Waiting> left;
    left.swap(under_way);
    for (const auto& [ticket, entry] : left) transport.cancel(ticket);
    for (const auto& [ticket, entry] : left) {
      entry.reply(core::fail(entry.write ? ErrorCode::kUnknownOutcome : ErrorCode::kCancelled, "the connection was given up"));
    }
    negotiated(core::Error{ErrorCode::kCancelled, "the connection was given up", 0, {}, {}});
  }

  /// Negotiates if need be, sends, and renews the token once if it was refused.
  void call(Call what, Reply reply, bool again = false) {
    with_server([this, what = std::move(what), reply = std::move(reply), again](core::Result<void> ready) mutable {
      if (!ready) return reply(std::unexpected(ready.error()));
      net::HttpRequest request;
      request.method = what.method;
      request.target = "/slurm/" + capabilities->data_parser + "/" + what.path;
      request.body = what.body;
      request.max_reply_bytes = what.longest_reply;
      const bool write = what.write, table = what.table;
      send(
          std::move(request), write,
          [this, what = std::move(what), reply = std::move(reply), again,
           write](core::Result<net::HttpResponse> response) mutable {
            const bool refused =
                response && core::retry_of(classify(0, response->status, write)) == core::Retry::kRenewCredentials;
            if (refused) tokens.refused();
            if (refused && !again) return call(std::move(what), std::move(reply), true);
            if (response && response->status == 404 && !is_json(*response)) {
              capabilities.reset();
              core::Error error = to_error(404, response->body, what.write);
              error.code = ErrorCode::kUnavailable;
              return reply(std::unexpected(error.with("the path /" + what.path + " has gone")));
            }
            reply(std::move(response));
          },
          table);
    });
  }

  /// Decodes on the loop or, when long, beside it.
  template <class T>
  void decode(std::string body, std::function<core::Result<T>(std::string)> decoder,
              std::function<void(core::Result<T>)> then) {
    if (body.size() <= kShort) return then(decoder(std::move(body)));
    auto result = std::make_shared<core::Result<T>>(core::fail(ErrorCode::kCancelled, "not read"));
    auto text = std::make_shared<std::string>(std::move(body));
    loop.offload([result, text, decoder = std::move(decoder)] { *result = decoder(std::move(*text)); },
                 [self = shared_from_this(), result, then = std::move(then)] { then(std::move(*result)); });
  }

  // --- Negotiation ------------------------------------------------------------------------------------------------

  void with_server(std::function<void(core::Result<void>)> then) {
    if (capabilities) return then({});
    waiting.push_back(std::move(then));
    if (waiting.size() == 1) negotiate(false);
  }

  void negotiate(bool again) {
    net::HttpRequest request;
    request.target = "/openapi/v3";
    request.max_reply_bytes = kLongestReply;
    send(std::move(request), false, [this, again](core::Result<net::HttpResponse> response) {
      if (!response) return negotiated(response.error().with("slurmrestd"));
      if (response->status == 401 || response->status == 511) {
        tokens.refused();
        if (!again) return negotiate(true);
      }
      if (response->status != 200) return negotiated(to_error(response->status, response->body, false).with("/openapi/v3"));
      decode<Paths>(std::move(response->body), decode_paths, [this](core::Result<Paths> paths) {
        if (!paths) return negotiated(paths.error().with("/openapi/v3"));
        choose(*paths);
      });
    });
  }

  void choose(const Paths& paths) {
    const auto known = std::ranges::find_if(kSpellings, [&](const Spelling& s) {
      return s.parser <= options.newest_parser && paths.has("/slurm/" + std::string(s.parser) + "/nodes", "get");
    });
    if (known == kSpellings.end()) {
      return negotiated(core::Error{ErrorCode::kUnsupported,
                                    "slurmrestd " + paths.release + " has no data_parser that we know (" +
                                        std::string(kSpellings.back().parser) + " to " +
                                        std::string(kSpellings.front().parser) + "), or its openapi/slurmctld is not loaded",
                                    0,
                                    {},
                                    {}});
    }
    const std::string base = "/slurm/" + std::string(known->parser);
    Capabilities found;
    found.data_parser = known->parser;
    found.batch_node_update = paths.has(base + "/nodes", "post");
    found.conf = paths.has(base + "/conf", "get");
    found.jobs_difference = known->differences;
    found.slurmdb = paths.has("/slurmdb/" + std::string(known->parser) + "/qos", "get");
    spelling = &*known;
    capabilities = std::move(found);
    learn_release(paths.release);
    log.info("slurmrestd answers", {{"release", capabilities->release}, {"data_parser", capabilities->data_parser}});
    negotiated({});
  }

  void learn_release(const std::string& text) {
    capabilities->release = text;
    const Release release = parse_release(text);
    capabilities->nodes_difference = spelling->differences && release >= Release{26, 5, 3};
    capabilities->http_probes = release >= Release{25, 11, 0};
  }

  void negotiated(std::optional<core::Error> error) {
    std::vector<std::function<void(core::Result<void>)>> calls;
    calls.swap(waiting);
    for (auto& then : calls) {
      if (error) {
        then(std::unexpected(*error));
      } else if (!capabilities) {
        // A call before this one found the server gone already.
        then(core::fail(ErrorCode::kUnavailable, "slurmrestd went away again"));
      } else {
        then({});
      }
    }
  }

  /// Every reply names the release of its server; another one than before means an upgrade.
  void check_release(const Envelope& envelope) {
    if (!capabilities || envelope.release.empty() || envelope.release == capabilities->release) return;
    if (capabilities->release.empty()) return learn_release(envelope.release);
    log.info("slurmrestd was changed", {{"from", capabilities->release}, {"to", envelope.release}});
    capabilities.reset();
  }

  // --- Reads ------------------------------------------------------------------------------------------------------

  template <class T>
  using ListDecoder = std::function<core::Result<Decoded<T>>(std::string)>;

  /// A list as it came, its errors included. 304 is handed on as an absent list without errors.
  template <class T>
  void get_list(std::string path, ListDecoder<T> decoder, std::function<void(core::Result<Decoded<T>>, int status)> then,
                std::size_t longest_reply = kLongestReply, bool table = false) {
    Call what;
    what.table = table;
    what.path = std::move(path);
    what.longest_reply = longest_reply;
    call(std::move(what),
         [this, decoder = std::move(decoder), then = std::move(then)](core::Result<net::HttpResponse> response) {
           if (!response) return then(std::unexpected(response.error()), 0);
           const int status = response->status;
           if (status == 304) return then(Decoded<T>{}, status);
           if (!is_json(*response)) return then(std::unexpected(to_error(status, response->body, false)), status);
           decode<Decoded<T>>(std::move(response->body), decoder,
                              [this, status, then, room = response->room](core::Result<Decoded<T>> decoded) {
                                if (decoded) check_release(decoded->envelope);
                                then(std::move(decoded), status);
                              });
         });
  }

  /// An answer that is good as it is, or its error.
  template <class T>
  static core::Result<void> sound(const core::Result<Decoded<T>>& decoded, int status) {
    if (!decoded) return std::unexpected(decoded.error());
    if (!decoded->envelope.errors.empty()) return std::unexpected(to_error(decoded->envelope.errors, status, false));
    if (status != 200) return std::unexpected(to_error(status, "", false));
    if (!decoded->present) return core::fail(ErrorCode::kInternal, "a reply without what was asked for");
    return {};
  }

  static bool says_no_changes(const Envelope& envelope) {
    return std::ranges::any_of(envelope.warnings,
                               [](const std::string& w) { return w.find("No job changes") != std::string::npos; });
  }

  template <class T>
  void get_table(std::string path, std::optional<std::int64_t> since, ListDecoder<T> decoder, Done<Table<T>> done) {
    with_server([this, path = std::move(path), since, decoder = std::move(decoder),
                 done = std::move(done)](core::Result<void> ready) mutable {
      if (!ready) return done(std::unexpected(ready.error()));
      ask_table<T>(std::move(path), spelling->differences ? since : std::nullopt, std::move(decoder), std::move(done));
    });
  }

  template <class T>
  void ask_table(std::string path, std::optional<std::int64_t> since, ListDecoder<T> decoder, Done<Table<T>> done) {
    std::string asked = path;
    if (since) asked += "?update_time=" + std::to_string(*since);
    get_list<T>(
        asked, decoder,
        [this, path = std::move(path), since, decoder, done = std::move(done)](core::Result<Decoded<T>> decoded, int status) {
          Table<T> table;
          if (status == 304) {
            if (!since) return done(core::fail(ErrorCode::kInternal, path + ": 304 to a question without a time"));
            table.unchanged = true;
            table.last_update = *since;
            return done(std::move(table));
          }
          if (const auto good = sound(decoded, status); !good) {
            // Slurm before 26.05.3, when nodes changed and partitions did not: slurmrestd asks for both with our time.
            if (since && decoded && lacks_partitions(decoded->envelope)) return ask_table<T>(path, {}, decoder, done);
            return done(std::unexpected(good.error().with(path)));
          }
          if (says_no_changes(decoded->envelope) || (since && decoded->rows.empty() && decoded->last_update == 0)) {
            if (!since) return done(core::fail(ErrorCode::kInternal, path + ": no changes, since no time"));
            table.unchanged = true;
            table.last_update = *since;
            return done(std::move(table));
          }
          table.last_update = decoded->last_update;
          table.rows = std::move(decoded->rows);
          done(std::move(table));
        },
        kLongestTable, true);
  }

  static bool lacks_partitions(const Envelope& envelope) {
    return std::ranges::any_of(envelope.errors,
                               [](const RestError& e) { return e.description == "Unable to query partitions"; });
  }

  // --- Writes -----------------------------------------------------------------------------------------------------

  void write(std::string method, std::string path, core::Json body, Done<void> done) {
    Call what;
    what.method = std::move(method);
    what.path = std::move(path);
    what.write = true;
    if (!body.is_null()) what.body = body.dump(-1, ' ', false, core::Json::error_handler_t::replace);
    const std::string place = what.path;
    call(std::move(what), [this, place, done = std::move(done)](core::Result<net::HttpResponse> response) {
      if (!response) return done(std::unexpected(response.error().with(place)));
      if (response->status == 304) return done({});
      if (!is_json(*response)) {
        core::Error error = to_error(response->status, response->body, true);
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
      if (!envelope->errors.empty()) return done(std::unexpected(to_error(envelope->errors, response->status, true)));
      if (response->status != 200) return done(std::unexpected(to_error(response->status, "", true).with(place)));
      done({});
    });
  }

  /// One after the other, where the server has no batch; the first error is told, the others are tried all the same.
  void write_each(std::vector<std::string> names, NodeUpdate update, std::optional<core::Error> failed, Done<void> done) {
    if (names.empty()) return failed ? done(std::unexpected(*failed)) : done({});
    const std::string path = "node/" + percent_encode(names.back());
    names.pop_back();
    write("POST", path, body_of(update),
          [this, names = std::move(names), update, failed = std::move(failed), done](core::Result<void> result) mutable {
            if (!result && !failed) failed = result.error();
            write_each(std::move(names), std::move(update), std::move(failed), std::move(done));
          });
  }

  core::Loop& loop;
  net::HttpTransport& transport;
  TokenSource& tokens;
  core::Logger& log;
  ClientOptions options;
  std::optional<Capabilities> capabilities;
  const Spelling* spelling = &kSpellings.front();
  std::vector<std::function<void(core::Result<void>)>> waiting;
  struct Waiting {
    bool write = false, table = false;
    core::MonoTime since;
    Reply reply;
  };
  std::map<net::HttpTransport::RequestId, Waiting> under_way;
  core::Duration patience = options.read_timeout;  ///< With tables; longer while they come late.
  bool closed = false;
};

Client::Client(core::Loop& loop, net::HttpTransport& transport, TokenSource& tokens, core::Logger& log, ClientOptions options)
    : impl_(std::make_shared<Impl>(loop, transport, tokens, log, std::move(options))) {}

Client::~Client() {
  impl_->close();
}

void Client::connect(Done<Capabilities> done) {
  impl_->loop.after(core::Duration{0}, [weak = std::weak_ptr(impl_), done = std::move(done)] {
    const auto self = weak.lock();
    if (!self) return;
    self->with_server([impl = self.get(), done](core::Result<void> ready) {
      if (!ready) return done(std::unexpected(ready.error()));
      done(*impl->capabilities);
    });
  });
}

const Capabilities* Client::capabilities() const {
  return impl_->capabilities ? &*impl_->capabilities : nullptr;
}

void Client::nodes(std::optional<std::int64_t> since, Done<Table<Node>> done) {
  impl_->get_table<Node>("nodes/", since, decode_nodes, std::move(done));
}

void Client::jobs(std::optional<std::int64_t> since, Done<Table<Job>> done) {
  impl_->get_table<Job>("jobs/", since, decode_jobs, std::move(done));
}

void Client::partitions(std::optional<std::int64_t> since, Done<Table<Partition>> done) {
  impl_->get_table<Partition>("partitions/", since, decode_partitions, std::move(done));
}

void Client::node(const std::string& name, Done<Node> done) {
  impl_->get_list<Node>("node/" + percent_encode(name), decode_nodes,
                        [name, done = std::move(done)](core::Result<Decoded<Node>> decoded, int status) {
                          // An unknown node is HTTP 200, an error of number 0, and no nodes. A reply that says nothing is none.
                          const bool whole = decoded && (status == 200 || status == 404 || status == 422 || status == 500);
                          const bool no_such =
                              whole && decoded->rows.empty() &&
                              std::ranges::all_of(decoded->envelope.errors,
                                                  [](const RestError& e) { return e.number == 0 || e.number == 2018; }) &&
                              (!decoded->envelope.errors.empty() || (status == 200 && decoded->present));
                          if (no_such) return done(core::fail(ErrorCode::kNotFound, "node " + name + " is not known to Slurm"));
                          if (const auto good = Impl::sound(decoded, status); !good) {
                            return done(std::unexpected(good.error().with("node " + name)));
                          }
                          if (decoded->rows.size() != 1 || decoded->rows.front()->name != name) {
                            return done(core::fail(ErrorCode::kInternal, "node " + name + ": the reply speaks of others"));
                          }
                          done(*decoded->rows.front());
                        });
}

void Client::ping(Done<std::vector<Ping>> done) {
  // The spelling is known only after negotiation.
  impl_->with_server([impl = impl_.get(), done = std::move(done)](core::Result<void> ready) {
    if (!ready) return done(std::unexpected(ready.error()));
    const auto decoder = [spelling = impl->spelling](std::string body) { return decode_pings(std::move(body), *spelling); };
    impl->get_list<Ping>("ping/", decoder, [done](core::Result<Decoded<Ping>> decoded, int status) {
      if (const auto good = Impl::sound(decoded, status); !good) return done(std::unexpected(good.error().with("ping")));
      std::vector<Ping> pings;
      for (const auto& row : decoded->rows) pings.push_back(*row);
      done(std::move(pings));
    });
  });
}

void Client::diag(Done<Diag> done) {
  impl_->get_list<Diag>("diag/", decode_diag, [done = std::move(done)](core::Result<Decoded<Diag>> decoded, int status) {
    if (const auto good = Impl::sound(decoded, status); !good) return done(std::unexpected(good.error().with("diag")));
    done(*decoded->rows.front());
  });
}

void Client::update_node(const std::string& name, const NodeUpdate& update, Done<void> done) {
  impl_->write("POST", "node/" + percent_encode(name), body_of(update), std::move(done));
}

void Client::update_nodes(const std::vector<std::string>& names, const NodeUpdate& update, Done<void> done) {
  std::vector<std::string> reversed(names.rbegin(), names.rend());
  impl_->with_server([impl = impl_.get(), names = std::move(reversed), update = NodeUpdate(update),
                      done = std::move(done)](core::Result<void> ready) mutable {
    if (!ready) return done(std::unexpected(ready.error()));
    if (!impl->capabilities->batch_node_update || names.size() == 1) {
      return impl->write_each(std::move(names), std::move(update), {}, std::move(done));
    }
    core::Json body = body_of(update);
    body["name"] = names;
    impl->write("POST", "nodes/", std::move(body), std::move(done));
  });
}

void Client::delete_node(const std::string& name, Done<void> done) {
  impl_->write("DELETE", "node/" + percent_encode(name), nullptr, std::move(done));
}

void Client::reconfigure(Done<void> done) {
  impl_->write("GET", "reconfigure/", nullptr, std::move(done));
}

}  // namespace slurm
