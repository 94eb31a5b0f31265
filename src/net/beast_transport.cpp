#include "net/beast_transport.hpp"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/address.hpp>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "net/http_parser.hpp"
#include "net/socket_stream.hpp"

namespace net {
namespace asio = boost::asio;
using core::fail;
using tcp = asio::ip::tcp;

namespace {

constexpr core::Duration kPatience{2000};  // the time for one address, if there are others to try
constexpr std::size_t kReadBytes = 4096;   // each connection keeps a buffer of this size, and there are many watches

bool is_idempotent(const std::string& method) {
  return method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "PUT" || method == "DELETE";
}

bool has_line_break(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos;
}

bool is_token(std::string_view text) {
  return !text.empty() && text.find_first_of(" \t:") == std::string_view::npos && !has_line_break(text);
}

core::Result<void> check(const HttpRequest& request) {
  if (!is_token(request.method)) return fail(core::ErrorCode::kInvalid, "HTTP method is malformed");
  if (request.target.empty() || request.target[0] != '/' || has_line_break(request.target) ||
      request.target.find(' ') != std::string::npos) {
    return fail(core::ErrorCode::kInvalid, "HTTP target is malformed");
  }
  for (const auto& [name, value] : request.headers) {
    if (!is_token(name) || has_line_break(value)) return fail(core::ErrorCode::kInvalid, "HTTP header is malformed");
  }
  return {};
}

bool is_path(const Endpoint& endpoint) {
  return endpoint.host.starts_with('/');
}

std::string host_header(const Endpoint& endpoint) {
  if (is_path(endpoint)) return "localhost";
  const bool ipv6 = endpoint.host.find(':') != std::string::npos;
  std::string host = ipv6 ? "[" + endpoint.host + "]" : endpoint.host;
  const std::uint16_t usual = endpoint.scheme == "https" ? 443 : 80;
  if (endpoint.port != usual) host += fmt::format(":{}", endpoint.port);
  return host;
}

std::string serialize(const HttpRequest& request, const Endpoint& endpoint) {
  std::string out = fmt::format("{} {} HTTP/1.1\r\n", request.method, request.target);
  if (!request.headers.contains("host")) out += fmt::format("host: {}\r\n", host_header(endpoint));
  for (const auto& [name, value] : request.headers) {
    if (name != "content-length") out += fmt::format("{}: {}\r\n", name, value);
  }
  if (!request.body.empty() || request.method == "POST" || request.method == "PUT" || request.method == "PATCH") {
    out += fmt::format("content-length: {}\r\n", request.body.size());
  }
  out += "\r\n";
  out += request.body;
  return out;
}

/// Detects within half a minute that a peer has vanished, even if nothing is sent, as on a watch.
void ask_whether_alive(tcp::socket& socket) {
  const auto set = [&](int level, int option, int value) {
    setsockopt(socket.native_handle(), level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);  // In milliseconds. KEEPIDLE and KEEPINTVL are in seconds.
}

class Connection;
using ConnectionPtr = std::shared_ptr<Connection>;

/// One request, from send to its last callback.
struct Exchange {
  explicit Exchange(core::Loop& loop) : timer(loop) {}

  HttpTransport::RequestId id = 0;
  HttpRequest request;
  HttpTransport::Done done;  ///< The callback of a unary request.
  StreamHandler handler;     ///< The callbacks of a stream.
  bool streaming = false;
  core::Timer timer;
  core::MonoTime deadline;  ///< When the timer is due.
  ConnectionPtr connection;
  bool retried = false;
  bool finished = false;
  /// Reports whether the request counts against max_connections, so that it possibly has to wait.
  [[nodiscard]] bool counts() const { return !streaming && !request.urgent; }

  // State of the current attempt.
  bool sent_any = false;   ///< Some bytes of the request may have been sent.
  bool heard_any = false;  ///< Some bytes of a reply arrived.
  HttpResponse response;
};
using ExchangePtr = std::shared_ptr<Exchange>;

/// The callbacks of a connection. None of them is called after close().
struct ConnectionEvents {
  std::function<void(const ConnectionPtr&)> on_ready;                           ///< Connected.
  std::function<void(const ConnectionPtr&, const std::string& why)> on_failed;  ///< Not connected, cut, or malformed.
  std::function<void(const ConnectionPtr&, ResponseParser&)> on_head;
  std::function<void(const ConnectionPtr&, std::string_view)> on_body;
  std::function<void(const ConnectionPtr&, bool keep)> on_message_end;
};

/// One socket with one message at a time. It always reads, so that it notices at once when the peer closes a kept connection.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(AsioLoop& loop, Endpoint endpoint, const TlsContext& tls, ConnectionEvents events)
      : endpoint_(std::move(endpoint)),
        stream_(loop.context(), tls),
        resolver_(loop.context()),
        events_(std::move(events)),
        idle_timer_(loop) {}

  void connect() {
    if (is_path(endpoint_)) return stream_.connect(endpoint_.host, on_connected());
    ErrorCode no_address;
    const auto address = asio::ip::make_address(endpoint_.host, no_address);
    // One thread resolves all names, one after another. Addresses need no DNS and must not wait behind names.
    if (!no_address) return connect_to({tcp::endpoint(address, endpoint_.port)});
    const auto self = shared_from_this();
    resolver_.async_resolve(endpoint_.host, std::to_string(endpoint_.port), tcp::resolver::numeric_service,
                            [self](const ErrorCode& error, const tcp::resolver::results_type& results) {
                              if (self->closed_) return;
                              if (error)
                                return self->fail_with(fmt::format("resolve {}: {}", self->endpoint_.host, error.message()));
                              self->connect_to({results.begin(), results.end()});
                            });
  }

  /// Sends one request. If sending fails, calls `on_sent` with whether a part of the request was possibly sent. If `fenced`,
  /// and the connection is closed or the process ends before the reply, the kernel discards the bytes that it has not sent yet.
  void send(std::string bytes, bool is_head, bool fenced, std::function<void(bool any)> on_sent) {
    if (fenced != fenced_) set_fenced(fenced);
    out_ = std::move(bytes);
    write_done_ = false;
    make_parser(is_head);
    stream_.write(out_, [self = shared_from_this(), on_sent = std::move(on_sent)](const ErrorCode& error, std::size_t n) {
      self->write_done_ = true;
      if (self->closed_) return;
      if (!error) return;
      on_sent(n > 0);
      self->fail_with("send: " + self->stream_.explain(error));
    });
  }

  void close() {
    if (closed_) return;
    closed_ = true;
    idle_timer_.cancel();
    resolver_.cancel();
    stream_.close();
  }

  [[nodiscard]] bool closed() const { return closed_; }
  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }
  core::Timer& idle_timer() { return idle_timer_; }

  ExchangePtr exchange;  ///< The request that the connection carries.
  bool used = false;     ///< The connection has completed a request, so it is possibly stale.
  std::uint64_t generation = 0;

 private:
  void connect_to(const std::vector<tcp::endpoint>& addresses) { stream_.connect(addresses, kPatience, on_connected()); }

  SocketStream::Handler on_connected() {
    return [self = shared_from_this()](const ErrorCode& error) {
      if (self->closed_) return;
      if (error) return self->fail_with(self->place("connect") + error.message());
      ErrorCode ignored;
      self->stream_.socket().set_option(tcp::no_delay(true), ignored);
      ask_whether_alive(self->stream_.socket());
      self->handshake();
    };
  }

  void handshake() {
    const std::string& name = endpoint_.tls.server_name.empty() ? endpoint_.host : endpoint_.tls.server_name;
    stream_.handshake_client(name, endpoint_.tls.insecure_skip_verify, [self = shared_from_this()](const ErrorCode& error) {
      if (self->closed_) return;
      if (error) return self->fail_with(self->place("TLS handshake") + self->stream_.explain(error));
      self->read();
      self->events_.on_ready(self);
    });
  }

  std::string place(std::string_view what) const {
    return fmt::format("{} {}{}: ", what, endpoint_.host, is_path(endpoint_) ? "" : fmt::format(":{}", endpoint_.port));
  }

  void set_fenced(bool fenced) {
    ErrorCode ignored;
    stream_.socket().set_option(tcp::socket::linger(fenced, 0), ignored);
    fenced_ = fenced;
  }

  void make_parser(bool is_head) {
    head_request_ = is_head;
    parser_.emplace(
        [this] {
          interim_ = parser_->status < 200 && parser_->status != 101;
          if (!interim_) tell_head();
        },
        [this](std::string_view piece) {
          if (!closed_) events_.on_body(shared_from_this(), piece);
        });
    if (is_head) parser_->skip(true);
  }

  void tell_head() {
    if (!closed_) events_.on_head(shared_from_this(), *parser_);
  }

  void read() {
    stream_.read_some(buffer_.data(), buffer_.size(), [self = shared_from_this()](const ErrorCode& error, std::size_t n) {
      if (self->closed_) return;
      if (error) return self->read_ended(error);
      self->received(n);
      if (!self->closed_) self->read();
    });
  }

  void received(std::size_t n) {
    if (!parser_) return fail_with("the server spoke without being asked");
    if (exchange) exchange->heard_any = true;
    in_.append(buffer_.data(), n);
    while (parser_ && !closed_) {
      if (!parser_->feed(in_)) return fail_with("malformed HTTP reply");
      if (closed_ || !parser_->is_done()) return;
      if (!interim_) return message_ended(parser_->keep_alive() && write_done_ && in_.empty());
      make_parser(head_request_);  // after an interim reply such as 100 Continue, the actual reply follows
    }
  }

  void read_ended(const ErrorCode& error) {
    if (parser_ && error == asio::error::eof && parser_->feed_end()) return message_ended(false);
    fail_with(error == asio::error::eof ? "the server closed the connection" : "receive: " + stream_.explain(error));
  }

  void message_ended(bool keep) {
    const auto self = shared_from_this();
    parser_.reset();
    used = true;
    if (fenced_) set_fenced(false);
    if (!closed_) events_.on_message_end(self, keep);
  }

  void fail_with(const std::string& why) {
    if (closed_) return;
    close();
    events_.on_failed(shared_from_this(), why);
  }

  Endpoint endpoint_;
  SocketStream stream_;
  tcp::resolver resolver_;
  ConnectionEvents events_;
  core::Timer idle_timer_;
  std::array<char, kReadBytes> buffer_;
  std::string in_;
  std::string out_;
  std::optional<ResponseParser> parser_;
  bool head_request_ = false;
  bool interim_ = false;
  bool write_done_ = true;
  bool fenced_ = false;
  bool closed_ = false;
};

}  // namespace

struct BeastTransport::Impl : std::enable_shared_from_this<BeastTransport::Impl> {
  Impl(AsioLoop& l, Endpoint e, TransportOptions o) : loop(l), endpoint(std::move(e)), options(o) {}

  AsioLoop& loop;
  Endpoint endpoint;
  TransportOptions options;
  core::Result<TlsContext> tls = TlsContext();
  std::uint64_t generation = 0;  ///< The number of the endpoint. Connections to an earlier endpoint are not kept.
  RequestId last_id = 0;
  std::map<RequestId, ExchangePtr> exchanges;
  std::deque<ExchangePtr> waiting;
  std::set<ConnectionPtr> connections;
  std::vector<ConnectionPtr> idle;  ///< The most recently used connection is last.
  std::size_t busy_unary = 0;       ///< Connections of requests that count against max_connections.
  std::uint64_t opened = 0;

  static core::Result<TlsContext> make_tls(const Endpoint& e) {
    if (e.scheme == "http" && !e.tls.pinned_key.empty())
      return fail(core::ErrorCode::kInvalid, "scheme \"http\" with a pinned key, must be https");
    if (e.scheme == "http") return TlsContext();
    if (e.scheme != "https")
      return fail(core::ErrorCode::kInvalid, fmt::format("scheme \"{}\", must be http or https", e.scheme));
    return make_client_tls(e.tls);
  }

  RequestId start(HttpRequest request, Done done, StreamHandler handler, bool streaming) {
    auto exchange = std::make_shared<Exchange>(loop);
    exchange->id = ++last_id;
    exchange->request = std::move(request);
    exchange->done = std::move(done);
    exchange->handler = std::move(handler);
    exchange->streaming = streaming;
    exchanges[exchange->id] = exchange;
    const auto valid = check(exchange->request);
    const std::optional<core::Error> refused = !valid ? std::optional(valid.error())
                                               : !tls ? std::optional(tls.error())
                                                      : std::nullopt;
    if (refused) {
      exchange->timer.set(core::Duration{0}, [this, exchange, error = *refused] { finish(exchange, std::unexpected(error)); });
      return exchange->id;
    }
    set_deadline(exchange);
    assign(exchange);
    return exchange->id;
  }

  void set_deadline(const ExchangePtr& exchange) {
    exchange->deadline = loop.clock().mono() + exchange->request.timeout;
    exchange->timer.set(exchange->request.timeout, [this, raw = exchange.get()] {
      const ExchangePtr held = exchanges.at(raw->id);
      const bool silent = held->streaming && held->heard_any;
      // If a request on a kept connection gets no reply, the other kept connections are probably broken as well. Each of them
      // would cost another request its full timeout.
      const bool deaf = held->connection && held->connection->used && !held->heard_any;
      if (deaf) drop_idle_ones();
      fail_exchange(held, fmt::format("{} after {} ms", silent ? "silence" : "no reply", held->request.timeout.count()));
    });
  }

  /// Gives the request a connection, or a place in the queue.
  void assign(const ExchangePtr& exchange) {
    if (exchange->counts() && busy_unary >= options.max_connections) {
      waiting.push_back(exchange);
      return;
    }
    if (exchange->counts()) ++busy_unary;
    // A retry needs a connection that cannot be stale.
    if (!idle.empty() && !exchange->retried) {
      const ConnectionPtr connection = idle.back();
      idle.pop_back();
      connection->idle_timer().cancel();
      occupy(connection, exchange);
      // Asio ensures that an error of the write is not reported before send() has returned.
      transmit(connection);
      return;
    }
    open(exchange);
  }

  void open(const ExchangePtr& exchange) {
    // The callbacks do not keep the transport alive. shutdown() closes every connection first.
    ConnectionEvents events;
    events.on_ready = [this](const ConnectionPtr& c) { transmit(c); };
    events.on_failed = [this](const ConnectionPtr& c, const std::string& why) { connection_failed(c, why); };
    events.on_head = [this](const ConnectionPtr& c, ResponseParser& parser) { head(c, parser); };
    events.on_body = [this](const ConnectionPtr& c, std::string_view piece) { body(c, piece); };
    events.on_message_end = [this](const ConnectionPtr& c, bool keep) { message_end(c, keep); };
    auto connection = std::make_shared<Connection>(loop, endpoint, *tls, std::move(events));
    connection->generation = generation;
    connections.insert(connection);
    ++opened;
    occupy(connection, exchange);
    connection->connect();
  }

  static void occupy(const ConnectionPtr& connection, const ExchangePtr& exchange) {
    connection->exchange = exchange;
    exchange->connection = connection;
    exchange->sent_any = false;
    exchange->heard_any = false;
    exchange->response = {};
  }

  void transmit(const ConnectionPtr& connection) {
    const ExchangePtr exchange = connection->exchange;
    // After a pause of the process, this can run before the overdue timer of the request. Then send nothing: the timer ends the
    // request.
    if (loop.clock().mono() >= exchange->deadline) return;
    exchange->sent_any = true;  // until the write reports that nothing was sent
    // Some writes are a GET (slurmrestd's reconfigure), so everything is fenced except streams, which only read.
    connection->send(serialize(exchange->request, connection->endpoint()), exchange->request.method == "HEAD",
                     !exchange->streaming, [exchange](bool any) { exchange->sent_any = any; });
  }

  void head(const ConnectionPtr& connection, ResponseParser& parser) {
    const ExchangePtr exchange = connection->exchange;
    exchange->response.status = parser.status;
    exchange->response.headers = parser.headers;
    if (!exchange->streaming) return;
    set_deadline(exchange);
    const auto on_head = exchange->handler.on_head;
    if (on_head) on_head(parser.status, exchange->response.headers);
  }

  void body(const ConnectionPtr& connection, std::string_view piece) {
    const ExchangePtr exchange = connection->exchange;
    if (!exchange || exchange->finished) return;
    if (exchange->streaming) {
      set_deadline(exchange);
      const auto on_data = exchange->handler.on_data;
      if (on_data) on_data(piece);
      return;
    }
    const std::size_t own = exchange->request.max_reply_bytes;
    const std::size_t most = own == 0 ? options.max_reply_bytes : own;
    if (exchange->response.body.size() + piece.size() > most) {
      return too_long(connection, fmt::format("the reply is longer than {} bytes, the limit of {}", most,
                                              own == 0 ? "this connection" : "such requests"));
    }
    if (!take_room(*exchange, piece.size())) {
      return too_long(connection, fmt::format("the reply is longer than there is room for: {} bytes beside other replies",
                                              exchange->response.body.size()));
    }
    exchange->response.body += piece;
  }

  /// The share of the budget that a reply has taken. The share is returned when the last holder of the reply releases the
  /// reply.
  struct Room {
    explicit Room(std::shared_ptr<ReplyBudget> from) : budget(std::move(from)) {}
    ~Room() { budget->give_back(held); }
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;
    std::shared_ptr<ReplyBudget> budget;
    std::size_t held = 0;
  };

  bool take_room(Exchange& exchange, std::size_t more) const {
    if (!options.budget) return true;
    if (!exchange.response.room) exchange.response.room = std::make_shared<Room>(options.budget);
    auto& room = *std::static_pointer_cast<Room>(exchange.response.room);
    if (!options.budget->take(more, room.held)) return false;
    room.held += more;
    return true;
  }

  void too_long(const ConnectionPtr& connection, const std::string& why) {
    const ExchangePtr exchange = connection->exchange;
    drop(connection);
    core::Error error{core::ErrorCode::kInternal,
                      fmt::format("{} {}: {}", exchange->request.method, exchange->request.target, why),
                      exchange->response.status,
                      {},
                      {}};
    finish(exchange, std::unexpected(std::move(error)));
  }

  void message_end(const ConnectionPtr& connection, bool keep) {
    const ExchangePtr exchange = connection->exchange;
    release(connection);
    if (keep && connection->generation == generation) {
      idle.push_back(connection);
      connection->idle_timer().set(options.idle_timeout, [this, raw = connection.get()] { drop_idle(raw); });
    } else {
      drop(connection);
    }
    finish(exchange, {});
  }

  void drop_idle_ones() {
    while (!idle.empty()) drop(idle.back());
  }

  void drop_idle(const Connection* raw) {
    const auto it = std::find_if(idle.begin(), idle.end(), [&](const ConnectionPtr& c) { return c.get() == raw; });
    if (it != idle.end()) drop(*it);
  }

  /// Releases the connection from its request.
  void release(const ConnectionPtr& connection) {
    const ExchangePtr exchange = std::move(connection->exchange);
    connection->exchange = nullptr;
    if (!exchange) return;
    exchange->connection = nullptr;
    if (exchange->counts()) --busy_unary;
  }

  void drop(ConnectionPtr connection) {
    release(connection);
    connection->close();
    std::erase(idle, connection);
    connections.erase(connection);
  }

  void connection_failed(const ConnectionPtr& connection, const std::string& why) {
    const ExchangePtr exchange = connection->exchange;
    const bool stale = connection->used;
    drop(connection);
    if (!exchange || exchange->finished) return serve_waiting();
    const bool harmless = !exchange->sent_any || is_idempotent(exchange->request.method);
    if (stale && !exchange->heard_any && !exchange->retried && harmless) {
      exchange->retried = true;
      assign(exchange);
      return;
    }
    fail_exchange(exchange, why);
  }

  void fail_exchange(const ExchangePtr& exchange, const std::string& why) {
    const bool sent = exchange->sent_any;
    if (exchange->connection) drop(exchange->connection);
    std::erase(waiting, exchange);
    core::Error error{sent ? core::ErrorCode::kUnknownOutcome : core::ErrorCode::kUnavailable,
                      fmt::format("{} {}: {}", exchange->request.method, exchange->request.target, why),
                      0,
                      {},
                      {}};
    finish(exchange, std::unexpected(std::move(error)));
  }

  /// Calls the last callback of a request.
  void finish(const ExchangePtr& exchange, core::Result<void> result) {
    const auto self = shared_from_this();  // the callback may destroy the transport
    exchange->finished = true;
    exchange->timer.cancel();
    exchanges.erase(exchange->id);
    const auto done = std::move(exchange->done);
    const auto on_end = std::move(exchange->handler.on_end);
    if (exchange->streaming) {
      if (on_end) on_end(std::move(result));
    } else if (result) {
      done(std::move(exchange->response));
    } else {
      done(std::unexpected(std::move(result.error())));
    }
    serve_waiting();
  }

  void serve_waiting() {
    while (!waiting.empty() && busy_unary < options.max_connections) {
      const ExchangePtr exchange = waiting.front();
      waiting.pop_front();
      assign(exchange);
    }
  }

  void cancel(RequestId id) {
    const auto it = exchanges.find(id);
    if (it == exchanges.end()) return;
    const ExchangePtr exchange = it->second;
    exchanges.erase(it);
    exchange->finished = true;
    exchange->timer.cancel();
    std::erase(waiting, exchange);
    if (exchange->connection) drop(exchange->connection);
    // A callback of the exchange may be running, so the exchange is destroyed in a later loop iteration.
    loop.after(core::Duration{0}, [weak = weak_from_this(), exchange] {
      if (const auto self = weak.lock()) self->serve_waiting();
    });
  }

  void shutdown() {
    waiting.clear();
    const auto withdrawn = std::exchange(exchanges, {});
    for (const auto& [id, exchange] : withdrawn) {
      exchange->finished = true;
      exchange->timer.cancel();
      exchange->connection = nullptr;
    }
    const auto open_ones = std::exchange(connections, {});
    idle.clear();
    for (const ConnectionPtr& connection : open_ones) {
      connection->exchange = nullptr;
      connection->close();
    }
  }

  core::Result<void> set_endpoint(Endpoint wanted) {
    auto made = make_tls(wanted);
    if (!made) return std::unexpected(made.error());
    if (wanted == endpoint && tls) return {};
    tls = std::move(made);
    endpoint = std::move(wanted);
    ++generation;
    drop_idle_ones();
    return {};
  }
};

BeastTransport::BeastTransport(AsioLoop& loop, Endpoint endpoint, TransportOptions options)
    : impl_(std::make_shared<Impl>(loop, std::move(endpoint), options)) {
  impl_->tls = Impl::make_tls(impl_->endpoint);
}

BeastTransport::~BeastTransport() {
  impl_->shutdown();
}

HttpTransport::RequestId BeastTransport::send(HttpRequest request, Done done) {
  return impl_->start(std::move(request), std::move(done), {}, false);
}

HttpTransport::RequestId BeastTransport::stream(HttpRequest request, StreamHandler handler) {
  return impl_->start(std::move(request), {}, std::move(handler), true);
}

void BeastTransport::cancel(RequestId id) {
  impl_->cancel(id);
}
core::Result<void> BeastTransport::set_endpoint(Endpoint endpoint) {
  return impl_->set_endpoint(std::move(endpoint));
}
const Endpoint& BeastTransport::endpoint() const {
  return impl_->endpoint;
}

BeastTransport::Stats BeastTransport::stats() const {
  return {impl_->connections.size(), impl_->idle.size(), impl_->waiting.size(), impl_->opened};
}

}  // namespace net
