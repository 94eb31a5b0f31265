// One connection over TCP, plain or TLS, or over a Unix socket. The handlers are type-erased, so that only one source file
// instantiates Asio's templates. Private to this folder.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "core/result.hpp"
#include "net/tls.hpp"

namespace net {

using ErrorCode = boost::system::error_code;
using TlsContext = std::shared_ptr<boost::asio::ssl::context>;

/// Makes the TLS context. Error: kInvalid. The message names the part that could not be read, and never contains the key.
core::Result<TlsContext> make_client_tls(const Tls& tls);
core::Result<TlsContext> make_server_tls(const Tls& tls);

class SocketStream {
 public:
  using IoHandler = std::function<void(ErrorCode, std::size_t)>;
  using Handler = std::function<void(ErrorCode)>;

  /// A null context means plain TCP.
  SocketStream(boost::asio::io_context& io, TlsContext tls);
  SocketStream(boost::asio::ip::tcp::socket socket, TlsContext tls);
  ~SocketStream();

  boost::asio::ip::tcp::socket& socket();
  /// Tries one address after the other, each except the last for at most `patience`. Fails with the error of the last address.
  void connect(const std::vector<boost::asio::ip::tcp::endpoint>& addresses, core::Duration patience, Handler handler);
  /// Connects to the Unix socket with this path. Socket options of TCP have no effect on this connection.
  void connect(const std::string& path, Handler handler);
  /// Does the TLS handshake, and verifies `name` (host name or IP address) unless skip_verify. Plain TCP: only calls `handler`.
  void handshake_client(const std::string& name, bool skip_verify, Handler handler);
  void handshake_server(Handler handler);
  /// At most one read and one write may be under way. The buffers must live until the handler is called.
  void read_some(char* data, std::size_t size, IoHandler handler);
  void write(std::string_view data, IoHandler handler);
  void close();
  /// Returns the fingerprint of the peer's public key after the handshake (net/certificate.hpp); "" if the peer has sent no
  /// certificate.
  [[nodiscard]] std::string peer_key() const;
  /// Describes what went wrong in a TLS handshake.
  [[nodiscard]] std::string explain(ErrorCode error) const;

 private:
  void handshake(int (*step)(ssl_st*), Handler handler);

  struct Impl;
  std::shared_ptr<Impl> impl_;  ///< Shared with the handlers under way.
};

}  // namespace net
