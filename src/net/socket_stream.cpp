#include "net/socket_stream.hpp"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <optional>

namespace net {
namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
using tcp = asio::ip::tcp;

namespace {

core::Result<TlsContext> load_identity(TlsContext context, const Tls& tls) {
  ErrorCode error;
  // Without this OpenSSL would ask for a passphrase on the terminal.
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
  SSL_CTX_set_mode(context->native_handle(), SSL_MODE_RELEASE_BUFFERS);  // idle connections are many
  return context;
}

}  // namespace

core::Result<TlsContext> make_client_tls(const Tls& tls) {
  auto context = *make_context(ssl::context::tls_client);
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
  auto context = *make_context(ssl::context::tls_server);
  SSL_CTX_set_session_cache_mode(context->native_handle(), SSL_SESS_CACHE_OFF);
  if (!tls.ca_pem.empty()) {
    ErrorCode error;
    context->add_certificate_authority(asio::buffer(tls.ca_pem), error);
    if (error) return core::fail(core::ErrorCode::kInvalid, "TLS certificate authority: " + error.message());
    context->set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert, error);
  }
  return load_identity(std::move(context), tls);
}

struct SocketStream::Impl {
  Impl(tcp::socket s, TlsContext t) : tls(std::move(t)) {
    if (tls) {
      secure.emplace(std::move(s), *tls);
    } else {
      plain.emplace(std::move(s));
    }
  }

  tcp::socket& socket() { return secure ? secure->next_layer() : *plain; }

  TlsContext tls;
  std::optional<tcp::socket> plain;
  std::optional<ssl::stream<tcp::socket>> secure;
};

SocketStream::SocketStream(asio::io_context& io, TlsContext tls) : SocketStream(tcp::socket(io), std::move(tls)) {}
SocketStream::SocketStream(tcp::socket socket, TlsContext tls) : impl_(new Impl(std::move(socket), std::move(tls))) {}
SocketStream::~SocketStream() = default;

tcp::socket& SocketStream::socket() {
  return impl_->socket();
}

void SocketStream::handshake_client(const std::string& name, bool skip_verify, Handler handler) {
  if (!impl_->secure) {
    asio::post(impl_->socket().get_executor(), [handler = std::move(handler)] { handler({}); });
    return;
  }
  ErrorCode error;
  asio::ip::make_address(name, error);
  const bool is_address = !error;
  // RFC 6066: no addresses in SNI.
  if (!is_address) SSL_set_tlsext_host_name(impl_->secure->native_handle(), name.c_str());
  impl_->secure->set_verify_mode(skip_verify ? ssl::verify_none : ssl::verify_peer, error);
  if (!skip_verify) impl_->secure->set_verify_callback(ssl::host_name_verification(name), error);
  impl_->secure->async_handshake(ssl::stream_base::client, std::move(handler));
}

void SocketStream::handshake_server(Handler handler) {
  if (!impl_->secure) {
    asio::post(impl_->socket().get_executor(), [handler = std::move(handler)] { handler({}); });
    return;
  }
  impl_->secure->async_handshake(ssl::stream_base::server, std::move(handler));
}

void SocketStream::read_some(char* data, std::size_t size, IoHandler handler) {
  if (impl_->secure) {
    impl_->secure->async_read_some(asio::buffer(data, size), std::move(handler));
  } else {
    impl_->plain->async_read_some(asio::buffer(data, size), std::move(handler));
  }
}

void SocketStream::write(std::string_view data, IoHandler handler) {
  if (impl_->secure) {
    asio::async_write(*impl_->secure, asio::buffer(data), std::move(handler));
  } else {
    asio::async_write(*impl_->plain, asio::buffer(data), std::move(handler));
  }
}

void SocketStream::close() {
  ErrorCode ignored;
  impl_->socket().shutdown(tcp::socket::shutdown_both, ignored);
  impl_->socket().close(ignored);
}

std::string SocketStream::explain(ErrorCode error) const {
  if (impl_->secure && error.category() == asio::error::get_ssl_category()) {
    const long verdict = SSL_get_verify_result(impl_->secure->native_handle());
    if (verdict != X509_V_OK) return std::string("certificate refused: ") + X509_verify_cert_error_string(verdict);
  }
  return error.message();
}

}  // namespace net
