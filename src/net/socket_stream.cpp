#include "net/socket_stream.hpp"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>

#include "net/certificate.hpp"

namespace net {
namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
using tcp = asio::ip::tcp;

namespace {

core::Result<TlsContext> load_identity(TlsContext context, const Tls& tls) {
  ErrorCode error;
  // Without this callback, OpenSSL would ask for a passphrase on the terminal.
  context->set_password_callback([](std::size_t, ssl::context::password_purpose) { return std::string(); }, error);
  if (!tls.cert_pem.empty()) {
    context->use_certificate_chain(asio::buffer(tls.cert_pem), error);
    if (error) return core::fail(core::ErrorCode::kInvalid, "TLS certificate: " + error.message());
    context->use_private_key(asio::buffer(tls.key_pem), ssl::context::pem, error);
    if (error) return core::fail(core::ErrorCode::kInvalid, "TLS private key: not readable, or not the certificate's");
    if (SSL_CTX_check_private_key(context->native_handle()) != 1) {
      ERR_clear_error();
      return core::fail(core::ErrorCode::kInvalid, "TLS private key: not the certificate's");
    }
  }
  return context;
}

core::Result<TlsContext> make_context(ssl::context::method method) {
  auto context = std::make_shared<ssl::context>(method);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  return context;
}

bool is_fingerprint(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// A context, and the only key that it trusts.
struct PinnedContext {
  std::string key;
  TlsContext context;
};

/// Replaces OpenSSL's verification of the server's chain. The handshake itself proves that the server has the private key.
int verify_pinned(X509_STORE_CTX* chain, void* pinned) {
  const std::string& wanted = static_cast<const PinnedContext*>(pinned)->key;
  const X509* cert = X509_STORE_CTX_get0_cert(chain);
  const std::string key = cert != nullptr ? fingerprint_of(*cert) : "";
  if (key == wanted) {
    X509_STORE_CTX_set_error(chain, X509_V_OK);
    return 1;
  }
  X509_STORE_CTX_set_error(chain, X509_V_ERR_APPLICATION_VERIFICATION);
  const auto* ssl = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx()));
  if (auto* refused = static_cast<std::string*>(SSL_get_app_data(ssl)))
    *refused = "the server's key has the fingerprint " + key + ", expected " + wanted;
  return 0;
}

/// Trusts the pinned key instead of authorities.
TlsContext pin(TlsContext context, const std::string& key) {
  auto pinned = std::make_shared<PinnedContext>(key, std::move(context));
  SSL_CTX* const raw = pinned->context->native_handle();
  SSL_CTX_set_min_proto_version(raw, TLS1_3_VERSION);
  SSL_CTX_set_cert_verify_callback(raw, verify_pinned, pinned.get());
  return {pinned, pinned->context.get()};
}

/// The longest certificate with its chain, in bytes, that a client may send to a server with Tls::any_client.
constexpr long kMaxAnyCert = 8192;

/// Asks clients for a certificate and accepts any. Every connection makes a full handshake, which proves that the client has
/// the private key. A resumed session would only prove that the client has the secret of an earlier connection.
void accept_any_client(SSL_CTX* context) {
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_cert_verify_callback(
      context,
      [](X509_STORE_CTX* chain, void*) {
        X509_STORE_CTX_set_error(chain, X509_V_OK);
        return 1;
      },
      nullptr);
  // Limits the memory that an unknown client can use: OpenSSL stores the certificate before we can check its key.
  SSL_CTX_set_max_cert_list(context, kMaxAnyCert);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(context, 0);
}

}  // namespace

core::Result<TlsContext> make_client_tls(const Tls& tls) {
  if (tls.any_client) return core::fail(core::ErrorCode::kInvalid, "TLS client: any_client is for servers");
  auto context = *make_context(ssl::context::tls_client);
  if (!tls.pinned_key.empty()) {
    if (!is_fingerprint(tls.pinned_key))
      return core::fail(core::ErrorCode::kInvalid, "TLS pinned key: must be 64 lower-case hexadecimal digits");
    if (!tls.ca_pem.empty() || tls.insecure_skip_verify)
      return core::fail(core::ErrorCode::kInvalid, "TLS pinned key: excludes an authority and insecure_skip_verify");
    return load_identity(pin(std::move(context), tls.pinned_key), tls);
  }
  ErrorCode error;
  if (tls.ca_pem.empty()) {
    context->set_default_verify_paths(error);
  } else {
    context->add_certificate_authority(asio::buffer(tls.ca_pem), error);
  }
  if (error) return core::fail(core::ErrorCode::kInvalid, "TLS certificate authority: " + error.message());
  return load_identity(std::move(context), tls);
}

core::Result<TlsContext> make_server_tls(const Tls& tls) {
  if (tls.cert_pem.empty()) return core::fail(core::ErrorCode::kInvalid, "TLS server: no certificate");
  if (!tls.pinned_key.empty()) return core::fail(core::ErrorCode::kInvalid, "TLS server: pinned_key is for clients");
  if (tls.any_client && !tls.ca_pem.empty())
    return core::fail(core::ErrorCode::kInvalid, "TLS server: any_client excludes an authority");
  auto context = *make_context(ssl::context::tls_server);
  SSL_CTX_set_session_cache_mode(context->native_handle(), SSL_SESS_CACHE_OFF);
  if (!tls.ca_pem.empty()) {
    ErrorCode error;
    context->add_certificate_authority(asio::buffer(tls.ca_pem), error);
    if (error) return core::fail(core::ErrorCode::kInvalid, "TLS certificate authority: " + error.message());
    context->set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert, error);
  }
  if (tls.any_client) accept_any_client(context->native_handle());
  return load_identity(std::move(context), tls);
}

namespace {

constexpr std::size_t kMaxPiece = 1U << 30U;                 // OpenSSL counts in int
constexpr std::size_t kMostAtOnce = std::size_t{64} * 1024;  // four records

struct SslDeleter {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};

/// Connects OpenSSL to our socket. `tried` is the result of the last read or write.
struct Wire {
  tcp::socket& socket;
  ErrorCode tried{};
  /// The number of bytes that one call can still read. Without a limit, a peer that sends records without data and never stops
  /// could block the loop.
  std::size_t left = 0;

  template <typename Call>
  static int transfer(BIO* bio, int retry, Call call) {
    auto& wire = *static_cast<Wire*>(BIO_get_data(bio));
    wire.tried = {};
    BIO_clear_retry_flags(bio);
    const std::size_t n = call(wire);
    if (!wire.tried) return static_cast<int>(n);
    if (wire.tried == asio::error::would_block || wire.tried == asio::error::try_again)
      BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
    return -1;
  }

  static int write(BIO* bio, const char* data, int size) {
    return transfer(bio, BIO_FLAGS_WRITE, [&](Wire& wire) {
      return wire.socket.write_some(asio::buffer(data, static_cast<std::size_t>(size)), wire.tried);
    });
  }

  static int read(BIO* bio, char* data, int size) {
    return transfer(bio, BIO_FLAGS_READ, [&](Wire& wire) {
      if (wire.left == 0) {
        wire.tried = asio::error::would_block;
        return std::size_t{0};
      }
      const std::size_t most = std::min(wire.left, static_cast<std::size_t>(size));
      const std::size_t n = wire.socket.read_some(asio::buffer(data, most), wire.tried);
      wire.left -= n;
      return n;
    });
  }

  static BIO* make_bio(Wire& wire) {
    static BIO_METHOD* const kMethod = [] {
      BIO_METHOD* method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "socket");
      BIO_meth_set_write(method, write);
      BIO_meth_set_read(method, read);
      BIO_meth_set_ctrl(method, [](BIO*, int command, long, void*) -> long { return command == BIO_CTRL_FLUSH ? 1 : 0; });
      return method;
    }();
    BIO* bio = BIO_new(kMethod);
    BIO_set_data(bio, &wire);
    BIO_set_init(bio, 1);
    return bio;
  }
};

/// Sets the peer's host name or IP address to verify. Returns false if the name is not valid, because then nothing would be
/// verified.
bool set_peer_name(SSL* ssl, const std::string& name) {
  if (name.empty() || name.contains('\0')) return false;
  ErrorCode error;
  const asio::ip::address address = asio::ip::make_address(name, error);
  // RFC 6066: SNI does not allow addresses.
  if (error) return SSL_set1_host(ssl, name.c_str()) == 1 && SSL_set_tlsext_host_name(ssl, name.c_str()) == 1;
  const auto set = [&](const auto& bytes) {
    return X509_VERIFY_PARAM_set1_ip(SSL_get0_param(ssl), bytes.data(), bytes.size()) == 1;
  };
  return address.is_v4() ? set(address.to_v4().to_bytes()) : set(address.to_v6().to_bytes());
}

}  // namespace

// Asio's own TLS stream keeps buffers of 70 KB for each connection, and there are many watches. So here OpenSSL itself reads
// and writes the socket when the socket is ready, without a buffer in between.
struct SocketStream::Impl : std::enable_shared_from_this<SocketStream::Impl> {
  Impl(tcp::socket s, TlsContext t) : socket(std::move(s)), tls(std::move(t)) {
    if (!tls) return;
    ssl.reset(SSL_new(tls->native_handle()));
    SSL_set_app_data(ssl.get(), &refused);
    SSL_set_mode(ssl.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    BIO* bio = Wire::make_bio(wire);
    SSL_set_bio(ssl.get(), bio, bio);
  }

  /// Calls `call`, an OpenSSL function that returns more than 0 when it is done. Calls it now, and again whenever the socket is
  /// ready for it. Passes the return value to `done` in a later loop iteration, even if `call` is done at once.
  void drive(std::function<int(SSL*)> call, IoHandler done) {
    ErrorCode error;
    socket.non_blocking(true, error);
    if (error) return asio::post(socket.get_executor(), [done = std::move(done), error] { done(error, 0); });
    wire.tried = {};
    wire.left = kMostAtOnce;
    ERR_clear_error();
    const int n = call(ssl.get());
    const int verdict = SSL_get_error(ssl.get(), n);
    if (verdict == SSL_ERROR_WANT_READ || verdict == SSL_ERROR_WANT_WRITE) {
#if OPENSSL_VERSION_NUMBER >= 0x300000e0L && OPENSSL_VERSION_NUMBER < 0x30100000L  // CVE-2024-4741 is fixed in 3.0.14.
      // After a session ticket, OpenSSL keeps a buffer of 16 KB. It is not needed before the next request, and a watch has no
      // next request.
      if (SSL_is_init_finished(ssl.get()) == 1) SSL_free_buffers(ssl.get());
#endif
      socket.async_wait(verdict == SSL_ERROR_WANT_READ ? tcp::socket::wait_read : tcp::socket::wait_write,
                        [self = shared_from_this(), call = std::move(call), done = std::move(done)](ErrorCode failed) mutable {
                          if (failed) return done(failed, 0);
                          self->drive(std::move(call), std::move(done));
                        });
      return;
    }
    if (n <= 0) error = explain_end(verdict);
    asio::post(socket.get_executor(),
               [done = std::move(done), error, n] { done(error, n > 0 ? static_cast<std::size_t>(n) : 0); });
  }

  ErrorCode explain_end(int verdict) const {
    if (verdict == SSL_ERROR_ZERO_RETURN) return asio::error::eof;
    // The connection ended without the peer's close_notify, so somebody else has possibly cut it.
    if (verdict == SSL_ERROR_SYSCALL && wire.tried == asio::error::eof) return ssl::error::stream_truncated;
    if (verdict == SSL_ERROR_SYSCALL && wire.tried) return wire.tried;
    const int code = static_cast<int>(ERR_get_error());
    return code == 0 ? ErrorCode(ssl::error::unexpected_result) : ErrorCode(code, asio::error::get_ssl_category());
  }

  void write_rest(std::string_view data, std::size_t written, IoHandler handler) {
    drive([piece = data.substr(0, kMaxPiece)](SSL* s) { return SSL_write(s, piece.data(), static_cast<int>(piece.size())); },
          [self = shared_from_this(), data, written, handler = std::move(handler)](ErrorCode error, std::size_t n) mutable {
            if (error || n == data.size()) return handler(error, written + n);
            self->write_rest(data.substr(n), written + n, std::move(handler));
          });
  }

  /// An attempt to connect to one address.
  struct Try {
    explicit Try(const asio::any_io_executor& executor) : timer(executor) {}
    asio::steady_timer timer;
    bool over = false, given_up = false;
  };

  void connect(std::vector<tcp::endpoint> addresses, std::size_t at, core::Duration patience, Handler handler) {
    const tcp::endpoint address = addresses.at(at);
    const bool last = at + 1 == addresses.size();
    const auto now = std::make_shared<Try>(socket.get_executor());
    if (!last) {
      now->timer.expires_after(patience);
      now->timer.async_wait([self = shared_from_this(), now](ErrorCode) {
        if (now->over || self->closed) return;
        now->given_up = true;
        ErrorCode ignored;
        self->socket.close(ignored);
      });
    }
    socket.async_connect(address, [self = shared_from_this(), addresses = std::move(addresses), at, last, patience, now,
                                   handler = std::move(handler)](ErrorCode error) mutable {
      now->over = true;
      now->timer.cancel();
      const bool failed = error || now->given_up;
      if (!failed || last || self->closed) return handler(error);
      ErrorCode ignored;
      self->socket.close(ignored);
      self->connect(std::move(addresses), at + 1, patience, std::move(handler));
    });
  }

  void close() {
    closed = true;
    ErrorCode ignored;
    socket.shutdown(tcp::socket::shutdown_both, ignored);
    socket.close(ignored);
  }

  tcp::socket socket;
  TlsContext tls;
  Wire wire{socket};
  std::string refused;                   ///< Why the peer's key was refused.
  std::unique_ptr<SSL, SslDeleter> ssl;  ///< Empty for a plain stream.
  bool closed = false;
};

SocketStream::SocketStream(asio::io_context& io, TlsContext tls) : SocketStream(tcp::socket(io), std::move(tls)) {}
SocketStream::SocketStream(tcp::socket socket, TlsContext tls)
    : impl_(std::make_shared<Impl>(std::move(socket), std::move(tls))) {}
SocketStream::~SocketStream() {
  impl_->close();
}

tcp::socket& SocketStream::socket() {
  return impl_->socket;
}

void SocketStream::connect(const std::vector<tcp::endpoint>& addresses, core::Duration patience, Handler handler) {
  impl_->connect(addresses, 0, patience, std::move(handler));
}

// Asio only uses the descriptor, so the type of TCP sockets also works for Unix sockets. A connect to a Unix socket never
// waits: it fails if too many other connections wait to be accepted.
void SocketStream::connect(const std::string& path, Handler handler) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  ErrorCode error;
  if (path.size() >= sizeof address.sun_path) error = asio::error::name_too_long;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int fd = error ? -1 : ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (!error && (fd < 0 || ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0))
    error.assign(errno, asio::error::get_system_category());
  if (!error) impl_->socket.assign(tcp::v4(), fd, error);
  if (error && fd >= 0) ::close(fd);
  asio::post(impl_->socket.get_executor(), [handler = std::move(handler), error] { handler(error); });
}

void SocketStream::handshake_client(const std::string& name, bool skip_verify, Handler handler) {
  if (SSL* const ssl = impl_->ssl.get()) {
    if (!set_peer_name(ssl, name)) {
      asio::post(impl_->socket.get_executor(), [handler = std::move(handler)] { handler(asio::error::invalid_argument); });
      return;
    }
    SSL_set_verify(ssl, skip_verify ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nullptr);
  }
  handshake(SSL_connect, std::move(handler));
}

void SocketStream::handshake_server(Handler handler) {
  handshake(SSL_accept, std::move(handler));
}

void SocketStream::handshake(int (*step)(ssl_st*), Handler handler) {
  if (!impl_->ssl) {
    asio::post(impl_->socket.get_executor(), [handler = std::move(handler)] { handler({}); });
    return;
  }
  impl_->drive(step, [handler = std::move(handler)](ErrorCode error, std::size_t) { handler(error); });
}

void SocketStream::read_some(char* data, std::size_t size, IoHandler handler) {
  if (impl_->ssl) {
    impl_->drive([data, size](SSL* ssl) { return SSL_read(ssl, data, static_cast<int>(size)); }, std::move(handler));
  } else {
    impl_->socket.async_read_some(asio::buffer(data, size), std::move(handler));
  }
}

void SocketStream::write(std::string_view data, IoHandler handler) {
  if (impl_->ssl && !data.empty()) {  // OpenSSL treats an empty write as an error
    impl_->write_rest(data, 0, std::move(handler));
  } else {
    asio::async_write(impl_->socket, asio::buffer(data), std::move(handler));
  }
}

void SocketStream::close() {
  impl_->close();
}

std::string SocketStream::peer_key() const {
  const X509* cert = impl_->ssl ? SSL_get0_peer_certificate(impl_->ssl.get()) : nullptr;
  return cert != nullptr ? fingerprint_of(*cert) : "";
}

std::string SocketStream::explain(ErrorCode error) const {
  if (impl_->ssl && error.category() == asio::error::get_ssl_category()) {
    if (!impl_->refused.empty()) return "certificate refused: " + impl_->refused;
    const long verdict = SSL_get_verify_result(impl_->ssl.get());
    if (verdict != X509_V_OK) return std::string("certificate refused: ") + X509_verify_cert_error_string(verdict);
  }
  return error.message();
}

}  // namespace net
