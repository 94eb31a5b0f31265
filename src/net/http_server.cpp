#include "net/http_server.hpp"

#include <fmt/format.h>

#include <array>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/v6_only.hpp>
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

constexpr std::size_t kRequestReadBytes = 16384;
constexpr std::size_t kMaxPipelined = 65536;  ///< The most bytes of later requests that are read while one is answered.
constexpr std::size_t kStrangerHead = 4096;   ///< The longest head of a stranger's request.
constexpr core::Duration kStrangerTime{3000};
constexpr core::Duration kLookForRoom{10};

std::string_view status_text(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 413:
      return "Payload Too Large";
    case 415:
      return "Unsupported Media Type";
    case 422:
      return "Unprocessable Entity";
    case 429:
      return "Too Many Requests";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    default:
      return "Status";
  }
}

std::string serialize_head(int status, const Headers& headers) {
  std::string out = fmt::format("HTTP/1.1 {} {}\r\n", status, status_text(status));
  for (const auto& [name, value] : headers) {
    if (name != "content-length" && name != "transfer-encoding") out += fmt::format("{}: {}\r\n", name, value);
  }
  return out;
}

class ServerConnection;
using ServerConnectionPtr = std::shared_ptr<ServerConnection>;

}  // namespace

/// The state that copies of a Responder share.
struct Responder::State {
  explicit State(ServerConnectionPtr c) : connection(std::move(c)) {}
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  ServerConnectionPtr connection;  ///< Null once the answer is complete or the client has gone.
  bool begun = false;
  core::Callback gone;
};

namespace {

/// The connection of one client, with one request at a time.
class ServerConnection : public std::enable_shared_from_this<ServerConnection> {
 public:
  ServerConnection(AsioLoop& loop, tcp::socket socket, TlsContext tls, const ServerOptions& options,
                   const HttpServer::Handler& handler, std::function<void(const ServerConnectionPtr&)> on_closed)
      : loop_(loop),
        stream_(std::move(socket), std::move(tls)),
        options_(options),
        handler_(handler),
        on_closed_(std::move(on_closed)),
        idle_timer_(loop),
        known_(!options.known) {}

  void start() {
    ErrorCode ignored;
    stream_.socket().set_option(tcp::no_delay(true), ignored);
    set_idle();
    stream_.handshake_server([self = shared_from_this()](const ErrorCode& error) {
      if (self->closed_) return;
      if (error) return self->close();
      self->greeted_ = true;
      self->idle_since_ = self->loop_.clock().mono();
      self->peer_key_ = self->stream_.peer_key();
      self->make_parser();
      self->read();
    });
  }

  void close() {
    if (closed_) return;
    closed_ = true;
    idle_timer_.cancel();
    stream_.close();
    if (const auto state = state_.lock()) {
      state->connection = nullptr;
      if (state->gone) loop_.after(core::Duration{0}, std::exchange(state->gone, nullptr));
    }
    if (on_closed_) on_closed_(shared_from_this());
  }

  /// Accepts no more requests after the current one.
  void drain() {
    draining_ = true;
    keep_ = false;
    const bool between_requests = parser_ && !parser_->got_some() && in_.empty();
    if (between_requests || !greeted_) close();
  }

  /// Closes without callbacks, when the server itself ends.
  void abandon() {
    on_closed_ = nullptr;
    close();
  }

  void respond(HttpResponse response) {
    std::string bytes = serialize_head(response.status, response.headers) + farewell();
    if (response.status != 204 && response.status != 304) bytes += fmt::format("content-length: {}\r\n", response.body.size());
    bytes += "\r\n";
    if (!head_request_) bytes += response.body;
    send(std::move(bytes));
    answered();
  }

  void begin(int status, const Headers& headers) {
    send(serialize_head(status, headers) + farewell() + "transfer-encoding: chunked\r\n\r\n");
  }

  void write(std::string_view piece) {
    if (piece.empty() || head_request_) return;  // an empty chunk would end the body
    send(fmt::format("{:x}\r\n{}\r\n", piece.size(), piece));
  }

  void end() {
    if (!head_request_) send("0\r\n\r\n");
    answered();
  }

  [[nodiscard]] bool closed() const { return closed_; }
  /// Returns the time since which no request is being answered; nullopt while a request is being answered.
  [[nodiscard]] std::optional<core::MonoTime> idle_since() const {
    return state_.expired() ? std::optional(idle_since_) : std::nullopt;
  }
  [[nodiscard]] bool known() const { return known_; }
  [[nodiscard]] std::size_t backlog() const { return out_.size() + writing_.size(); }

 private:
  /// Returns the header that asks the client to close the connection, or "". Without the header, the client might send its next
  /// request on a connection that this server no longer reads.
  [[nodiscard]] std::string farewell() const { return draining_ || !known_ ? "connection: close\r\n" : ""; }

  void set_idle() {
    idle_since_ = loop_.clock().mono();
    idle_timer_.set(options_.idle_timeout, [this] { close(); });
  }

  void make_parser() {
    body_.clear();
    if (options_.known) known_ = options_.known(peer_key_);
    parser_.emplace([this] { expects_continue(); },
                    [this, most = known_ ? options_.max_request_bytes : options_.max_stranger_bytes](std::string_view piece) {
                      if (body_.size() + piece.size() > most) {
                        too_long_ = true;
                      } else {
                        body_ += piece;
                      }
                    });
    if (!known_) parser_->header_limit(kStrangerHead);
  }

  void expects_continue() {
    const auto it = parser_->headers.find("expect");
    if (it != parser_->headers.end() && it->second == "100-continue") send("HTTP/1.1 100 Continue\r\n\r\n");
  }

  void read() {
    if (reading_ || closed_ || in_.size() > (known_ ? kMaxPipelined : kStrangerHead)) return;
    reading_ = true;
    stream_.read_some(buffer_.data(), buffer_.size(), [self = shared_from_this()](const ErrorCode& error, std::size_t n) {
      self->reading_ = false;
      if (self->closed_) return;
      if (error) return self->close();
      self->in_.append(self->buffer_.data(), n);
      self->parse();
      self->read();
    });
  }

  void parse() {
    if (!parser_ || closed_) return;  // busy answering
    if (!parser_->feed(in_)) {
      keep_ = false;
      parser_.reset();
      return respond({400, {}, "malformed request\n"});
    }
    if (too_long_) {
      keep_ = false;
      parser_.reset();
      return respond({413, {}, "request too long\n"});
    }
    if (!parser_->is_done()) return;
    dispatch();
  }

  void dispatch() {
    idle_timer_.cancel();
    HttpRequest request;
    request.method = parser_->method;
    request.target = parser_->target;
    request.headers = std::move(parser_->headers);
    request.body = std::move(body_);
    request.peer_key = peer_key_;
    keep_ = parser_->keep_alive() && !draining_ && known_;
    head_request_ = request.method == "HEAD";
    parser_.reset();
    auto state = std::make_shared<Responder::State>(shared_from_this());
    state_ = state;
    handler_(std::move(request), Responder(std::move(state)));
  }

  /// Continues with the next request only after the answer is sent. Otherwise a client that reads nothing would fill our
  /// memory.
  void answered() {
    state_.reset();
    answered_ = true;
    set_idle();
    // Continues in a later loop iteration, so that a client that pipelines requests cannot cause recursion.
    if (backlog() == 0) loop_.after(core::Duration{0}, [self = shared_from_this()] { self->go_on(); });
  }

  void go_on() {
    if (closed_ || !answered_) return;
    answered_ = false;
    if (!keep_) return close();
    make_parser();
    parse();
    read();
  }

  void send(std::string bytes) {
    if (closed_) return;
    out_ += bytes;
    flush();
  }

  void flush() {
    if (!writing_.empty() || out_.empty()) return;
    writing_ = std::exchange(out_, {});
    stream_.write(writing_, [self = shared_from_this()](const ErrorCode& error, std::size_t) {
      self->writing_.clear();
      if (self->closed_) return;
      if (error) return self->close();
      if (!self->out_.empty()) return self->flush();
      self->go_on();
    });
  }

  AsioLoop& loop_;
  SocketStream stream_;
  const ServerOptions& options_;
  const HttpServer::Handler& handler_;
  std::function<void(const ServerConnectionPtr&)> on_closed_;
  core::Timer idle_timer_;
  core::MonoTime idle_since_;
  std::array<char, kRequestReadBytes> buffer_;
  std::string in_, body_, out_, writing_;
  std::string peer_key_;                 ///< Set after the handshake; see HttpRequest::peer_key.
  std::optional<RequestParser> parser_;  ///< Empty while a request is being answered.
  std::weak_ptr<Responder::State> state_;
  bool known_;  ///< See ServerOptions::known.
  bool head_request_ = false;
  bool too_long_ = false;
  bool keep_ = true;
  bool reading_ = false;
  bool answered_ = false;  ///< The answer is complete, but not yet sent.
  bool greeted_ = false;   ///< The handshake is over.
  bool draining_ = false;
  bool closed_ = false;
};

}  // namespace

Responder::State::~State() {
  if (!connection) return;
  const ServerConnectionPtr c = std::exchange(connection, nullptr);
  if (begun) {
    c->close();
  } else {
    c->respond({500, {}, "the request was dropped\n"});
  }
}

void Responder::respond(HttpResponse response) {
  if (!state_->connection || state_->begun) return;
  std::exchange(state_->connection, nullptr)->respond(std::move(response));
}

void Responder::begin(int status, Headers headers) {
  if (!state_->connection || state_->begun) return;
  state_->begun = true;
  state_->connection->begin(status, headers);
}

void Responder::write(std::string_view piece) {
  if (state_->connection && state_->begun) state_->connection->write(piece);
}

void Responder::end() {
  if (state_->connection && state_->begun) std::exchange(state_->connection, nullptr)->end();
}

void Responder::cut() {
  state_->gone = nullptr;
  if (const auto connection = std::exchange(state_->connection, nullptr)) connection->close();
}

bool Responder::open() const {
  return state_->connection != nullptr && !state_->connection->closed();
}
std::size_t Responder::backlog() const {
  return state_->connection ? state_->connection->backlog() : 0;
}

void Responder::on_gone(core::Callback call) {
  state_->gone = std::move(call);
}

core::Result<ServerOptions> parse_listen_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const std::string port = colon == std::string::npos ? text : text.substr(colon + 1);
  std::string host = colon == std::string::npos ? "" : text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  // Without brackets, the last part of an IPv6 address would look like the port.
  const bool unambiguous = bracketed || host.find_first_of(":[]") == std::string::npos;
  const bool digits = !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string::npos;
  if (!unambiguous || !digits || std::stoi(port) > 65535) {
    return fail(core::ErrorCode::kInvalid,
                fmt::format("{} is not host:port, [IPv6 address]:port or :port with a port of 0 to 65535", text));
  }
  return ServerOptions{.address = std::move(host), .port = static_cast<std::uint16_t>(std::stoi(port))};
}

struct HttpServer::Impl : std::enable_shared_from_this<HttpServer::Impl> {
  Impl(AsioLoop& l, ServerOptions o, Handler h)
      : loop(l), options(std::move(o)), handler(std::move(h)), acceptor(l.context()), retry(l), grace_over(l), all_closed(l) {}

  AsioLoop& loop;
  ServerOptions options;
  Handler handler;
  TlsContext tls;
  tcp::acceptor acceptor;
  core::Timer retry;
  core::Timer grace_over;  ///< The grace period of drain().
  core::Timer all_closed;
  std::vector<std::function<void()>> drained;  ///< The callbacks of drain().
  std::set<ServerConnectionPtr> connections;

  core::Result<void> load_tls(const Tls& wanted) {
    auto made = make_server_tls(wanted);
    if (!made) return std::unexpected(made.error());
    tls = std::move(*made);
    return {};
  }

  core::Result<void> start() {
    if (options.use_tls) {
      if (auto loaded = load_tls(options.tls); !loaded) return loaded;
    }
    ErrorCode error;
    if (options.address.empty()) {
      error = listen(asio::ip::address_v6::any());
      // The kernel possibly lacks IPv6. If the port is in use, it is in use for both versions.
      if (error && error != asio::error::address_in_use) error = listen(asio::ip::address_v4::any());
    } else {
      const auto address = asio::ip::make_address(options.address, error);
      if (error) return fail(core::ErrorCode::kInvalid, fmt::format("listen address \"{}\" is no IP address", options.address));
      error = listen(address);
    }
    if (error) {
      const bool ipv6 = options.address.find(':') != std::string::npos;
      return fail(core::ErrorCode::kUnavailable,
                  fmt::format("listen on {}:{}: {}", ipv6 ? "[" + options.address + "]" : options.address, options.port,
                              error.message()));
    }
    accept();
    return {};
  }

  ErrorCode listen(const asio::ip::address& address) {
    const tcp::endpoint endpoint(address, options.port);
    ErrorCode error;
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    // One socket also serves IPv4, whatever the default of the system is.
    if (!error && address.is_v6() && address.is_unspecified()) acceptor.set_option(asio::ip::v6_only(false), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
    if (error) {
      ErrorCode ignored;
      acceptor.close(ignored);
    }
    return error;
  }

  void accept() {
    if (options.known && !has_room_for_stranger()) return retry.set(kLookForRoom, [this] { accept(); });
    acceptor.async_accept([weak = weak_from_this()](const ErrorCode& error, tcp::socket socket) {
      const auto self = weak.lock();
      if (!self || !self->acceptor.is_open()) return;
      if (error) {
        // The process is probably out of file descriptors. An immediate retry would spin.
        self->retry.set(core::Duration{100}, [raw = self.get()] { raw->accept(); });
        return;
      }
      if (self->has_room()) self->adopt(std::move(socket));
      self->accept();
    });
  }

  /// Makes room by closing the connection that has been idle longest, so that silent clients cannot block other clients.
  /// Returns false if no connection is idle.
  bool has_room() {
    if (connections.size() < options.max_connections) return true;
    ServerConnectionPtr oldest;
    for (const ServerConnectionPtr& connection : connections) {
      const auto since = connection->idle_since();
      if (since && (!oldest || *since < *oldest->idle_since())) oldest = connection;
    }
    if (oldest) oldest->close();
    return oldest != nullptr;
  }

  /// Makes room by closing the stranger that has been idle longest. Returns false if no stranger has been idle for
  /// kStrangerTime.
  bool has_room_for_stranger() {
    std::size_t strangers = 0;
    ServerConnectionPtr oldest;
    for (const ServerConnectionPtr& connection : connections) {
      if (connection->known()) continue;
      ++strangers;
      const auto since = connection->idle_since();
      if (since && (!oldest || *since < *oldest->idle_since())) oldest = connection;
    }
    if (strangers < options.max_strangers) return true;
    if (!oldest || loop.clock().mono() - *oldest->idle_since() < kStrangerTime) return false;
    oldest->close();
    return true;
  }

  void adopt(tcp::socket socket) {
    auto connection = std::make_shared<ServerConnection>(loop, std::move(socket), tls, options, handler,
                                                         [this](const ServerConnectionPtr& c) { closed(c); });
    connections.insert(connection);
    connection->start();
  }

  void closed(const ServerConnectionPtr& connection) {
    connections.erase(connection);
    if (!drained.empty() && connections.empty()) all_closed.set(core::Duration{0}, [this] { end_drain(); });
  }

  void drain(core::Duration grace, std::function<void()> done) {
    refuse();
    drained.push_back(std::move(done));
    for (const ServerConnectionPtr& connection : std::set(connections)) connection->drain();
    if (connections.empty()) all_closed.set(core::Duration{0}, [this] { end_drain(); });
    grace_over.set(grace, [this] { end_drain(); });
  }

  void end_drain() {
    const auto told = std::exchange(drained, {});
    stop();
    for (const auto& done : told) done();
  }

  /// Accepts no more connections.
  void refuse() {
    ErrorCode ignored;
    acceptor.close(ignored);
    retry.cancel();
  }

  void stop() {
    refuse();
    drained.clear();
    grace_over.cancel();
    all_closed.cancel();
    for (const ServerConnectionPtr& connection : std::exchange(connections, {})) connection->abandon();
  }
};

HttpServer::HttpServer(AsioLoop& loop, ServerOptions options, Handler handler)
    : impl_(std::make_shared<Impl>(loop, std::move(options), std::move(handler))) {}
HttpServer::~HttpServer() {
  impl_->stop();
}
core::Result<void> HttpServer::start() {
  return impl_->start();
}
void HttpServer::stop() {
  impl_->stop();
}

void HttpServer::drain(core::Duration grace, std::function<void()> done) {
  impl_->drain(grace, std::move(done));
}

std::uint16_t HttpServer::port() const {
  ErrorCode error;
  const auto endpoint = impl_->acceptor.local_endpoint(error);
  return error ? 0 : endpoint.port();
}

core::Result<void> HttpServer::set_tls(Tls tls) {
  return impl_->load_tls(tls);
}

}  // namespace net
