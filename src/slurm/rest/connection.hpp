// The connection to one slurmrestd: adds credentials, negotiates once for both scopes, and checks that replies are complete.
// Two clients share it: rest/client.hpp (a cluster) and rest/accounting_client.hpp (the accounting database behind it).
//
// Requires: a shared_ptr owns the Connection, and the owner calls close() before it releases that pointer. Guarantees: each
// callback is called exactly once, on the loop.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "slurm/rest/client.hpp"
#include "slurm/rest/decode.hpp"
#include "slurm/rest/errors.hpp"
#include "slurm/rest/spelling.hpp"

namespace slurm {

/// Encodes a text as a part of a path.
[[nodiscard]] std::string percent_encode(std::string_view text);
[[nodiscard]] bool is_json(const net::HttpResponse& response);

/// The daemon that a request is about: slurmctld or slurmdbd.
enum class Scope { kCluster, kAccounting };

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  template <class T>
  using Done = std::function<void(core::Result<T>)>;
  using Reply = std::function<void(core::Result<net::HttpResponse>)>;
  template <class T>
  using ListDecoder = std::function<core::Result<Decoded<T>>(std::string)>;

  /// The size limit of all replies except tables, so that a foreign slurmrestd cannot fill our memory. /openapi/v3 takes 2 MiB.
  static constexpr std::size_t kLongestReply = 32UL << 20;
  /// The size limit of a table. A job takes 5 KiB. The transport limits the size of the tables of all clusters together.
  static constexpr std::size_t kLongestTable = 512UL << 20;

  Connection(core::Loop& loop, net::HttpTransport& transport, TokenSource& tokens, core::Logger& log, ClientOptions options);
  /// Sends no more requests. Pending callbacks get kCancelled, or kUnknownOutcome for a write.
  void close();

  /// Negotiates unless the connection already has. Calls `then` when capabilities and spelling are known, at once if they
  /// already are. Error: kUnsupported if the server does not serve this scope.
  void with_server(std::function<void(core::Result<void>)> then, Scope scope = Scope::kCluster);
  /// Returns what the server can do. Null before the first negotiation and while the connection has to negotiate again.
  [[nodiscard]] const Capabilities* capabilities() const { return capabilities_ ? &*capabilities_ : nullptr; }
  /// Returns how the data_parser spells fields. Valid in a callback of with_server.
  [[nodiscard]] const Spelling& spelling() const { return *spelling_; }
  [[nodiscard]] bool job_details() const { return options_.job_details; }
  /// True if replies of another cluster are errors.
  [[nodiscard]] bool expects_cluster() const { return !options_.cluster_name.empty(); }
  [[nodiscard]] core::Loop& loop() { return loop_; }

  /// Reads a list, and the errors in the reply. A reply with status 304 counts as one without a list and without errors.
  template <class T>
  void get_list(std::string path, ListDecoder<T> decoder, std::function<void(core::Result<Decoded<T>>, int status)> then,
                Scope scope = Scope::kCluster, std::size_t longest_reply = kLongestReply,
                RequestKind kind = RequestKind::kRead) {
    Call what;
    what.scope = scope;
    what.kind = kind;
    what.path = std::move(path);
    what.longest_reply = longest_reply;
    call(std::move(what),
         [this, decoder = std::move(decoder), then = std::move(then)](core::Result<net::HttpResponse> response) {
           if (!response) return then(std::unexpected(response.error()), 0);
           const int status = response->status;
           if (status == 304) return then(Decoded<T>{}, status);
           if (!is_json(*response)) return then(std::unexpected(to_error(status, response->body, RequestKind::kRead)), status);
           decode<Decoded<T>>(std::move(response->body), decoder,
                              [this, status, then, room = response->room](core::Result<Decoded<T>> decoded) {
                                if (!decoded) return then(std::move(decoded), status);
                                check_release(decoded->envelope);
                                if (const auto ours = check_cluster(decoded->envelope); !ours)
                                  return then(std::unexpected(ours.error()), status);
                                then(std::move(decoded), status);
                              });
         });
  }

  /// Returns the error if the reading failed, the reply contains an error, or the reply lacks the list.
  template <class T>
  static core::Result<void> sound(const core::Result<Decoded<T>>& decoded, int status) {
    if (!decoded) return std::unexpected(decoded.error());
    if (!decoded->envelope.errors.empty())
      return std::unexpected(to_error(decoded->envelope.errors, status, RequestKind::kRead));
    if (status != 200) return std::unexpected(to_error(status, "", RequestKind::kRead));
    if (!decoded->present) return core::fail(core::ErrorCode::kInternal, "a reply without what was asked for");
    return {};
  }

  /// Reads a whole table for a poll, or learns that nothing in it changed since `since`.
  template <class T>
  void get_table(std::string path, std::optional<std::int64_t> since, ListDecoder<T> decoder, Done<Table<T>> done,
                 Scope scope = Scope::kCluster) {
    with_server(
        [this, scope, path = std::move(path), since, decoder = std::move(decoder),
         done = std::move(done)](core::Result<void> ready) mutable {
          if (!ready) return done(std::unexpected(ready.error()));
          ask_table<T>(scope, std::move(path), spelling_->differences ? since : std::nullopt, std::move(decoder),
                       std::move(done));
        },
        scope);
  }

  /// Sends a change. Errors: those of to_error(); kUnknownOutcome for a malformed reply.
  void write(std::string method, std::string path, core::Json body, Done<void> done, Scope scope = Scope::kCluster);
  /// Sends a change and returns the reply.
  void write_for_reply(std::string method, std::string path, core::Json body, Done<Envelope> done,
                       Scope scope = Scope::kCluster);

 private:
  /// A request. `path` is the part after /SCOPE/DATA_PARSER/.
  struct Call {
    Scope scope = Scope::kCluster;
    std::string method = "GET";
    std::string path;
    std::string body;
    RequestKind kind = RequestKind::kRead;
    std::size_t longest_reply = kLongestReply;
  };
  struct Waiting {
    RequestKind kind;
    Scope scope;
    core::MonoTime since;
    Reply reply;
  };
  /// Bodies that are longer than this are decoded on another thread.
  static constexpr std::size_t kShort = 64UL << 10;

  /// Returns the time limit for a request that is sent now, or the error if the request must not be sent.
  [[nodiscard]] core::Result<core::Duration> allowed(RequestKind kind, Scope scope) const;
  /// Sends one request with credentials.
  void send(net::HttpRequest request, RequestKind kind, Scope scope, Reply reply);
  void answered(net::HttpTransport::RequestId ticket, core::Result<net::HttpResponse> response);
  /// Adapts the timeout for tables. slurmrestd keeps working on a table after we give up. So further requests with the same
  /// short timeout would only slow slurmrestd down and never get the table.
  void note_pace(Scope scope, core::Duration took, bool came);
  /// Negotiates if necessary and sends. If the token is refused, renews it once and sends again.
  void call(Call what, Reply reply, bool again = false);
  void negotiate(bool again);
  void choose(const Paths& paths);
  /// True if the server is known to serve this scope.
  [[nodiscard]] bool serves(Scope scope) const;
  void learn_release(const std::string& text);
  void negotiated(std::optional<core::Error> error);
  /// Checks the release of the server, which every reply names. If it has changed, negotiates again.
  void check_release(const Envelope& envelope);
  /// Returns the error kOtherCluster if the reply comes from another cluster.
  [[nodiscard]] core::Result<void> check_cluster(const Envelope& envelope) const;

  /// Decodes short bodies on the loop and long ones on another thread.
  template <class T>
  void decode(std::string body, std::function<core::Result<T>(std::string)> decoder,
              std::function<void(core::Result<T>)> then) {
    if (body.size() <= kShort) return then(decoder(std::move(body)));
    auto result = std::make_shared<core::Result<T>>(core::fail(core::ErrorCode::kCancelled, "not read"));
    auto text = std::make_shared<std::string>(std::move(body));
    loop_.offload([result, text, decoder = std::move(decoder)] { *result = decoder(std::move(*text)); },
                  [self = shared_from_this(), result, then = std::move(then)] { then(std::move(*result)); });
  }

  template <class T>
  void ask_table(Scope scope, std::string path, std::optional<std::int64_t> since, ListDecoder<T> decoder,
                 Done<Table<T>> done) {
    std::string asked = path;
    if (since) asked += "?update_time=" + std::to_string(*since);
    get_list<T>(
        asked, decoder,
        [this, scope, path = std::move(path), since, decoder, done = std::move(done)](core::Result<Decoded<T>> decoded,
                                                                                      int status) {
          Table<T> table;
          if (status == 304) {
            if (!since)
              return done(
                  core::fail(core::ErrorCode::kInternal, path + ": status 304, although the request had no update time"));
            table.unchanged = true;
            table.last_update = *since;
            return done(std::move(table));
          }
          if (const auto good = sound(decoded, status); !good) {
            // Before 26.05.3, slurmrestd reads nodes and partitions with our update_time, and fails if only nodes have changed.
            if (since && decoded && lacks_partitions(decoded->envelope)) return ask_table<T>(scope, path, {}, decoder, done);
            return done(std::unexpected(good.error().with(path)));
          }
          if (says_no_changes(decoded->envelope) || (since && decoded->rows.empty() && decoded->last_update == 0)) {
            if (!since)
              return done(core::fail(core::ErrorCode::kInternal,
                                     path + ": reported no changes, although the request had no update time"));
            table.unchanged = true;
            table.last_update = *since;
            return done(std::move(table));
          }
          table.last_update = decoded->last_update;
          table.rows = std::move(decoded->rows);
          done(std::move(table));
        },
        scope, kLongestTable, RequestKind::kTable);
  }

  [[nodiscard]] static bool says_no_changes(const Envelope& envelope);
  [[nodiscard]] static bool lacks_partitions(const Envelope& envelope);

  core::Loop& loop_;
  net::HttpTransport& transport_;
  TokenSource& tokens_;
  core::Logger& log_;
  ClientOptions options_;
  std::optional<Capabilities> capabilities_;
  const Spelling* spelling_ = &kSpellings.front();
  std::vector<std::function<void(core::Result<void>)>> waiting_;
  std::map<net::HttpTransport::RequestId, Waiting> under_way_;
  /// The timeout of a table, for each scope. The timeout grows while tables arrive too late.
  std::map<Scope, core::Duration> patience_{{Scope::kCluster, options_.read_timeout},
                                            {Scope::kAccounting, options_.read_timeout}};
  bool closed_ = false;
};

}  // namespace slurm
