// One TCP connection, plain or TLS, with type-erased handlers, so that Asio's templates are instantiated in one source only.
// Private to this room.
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

/// Error: kInvalid, naming what could not be read; never the key's text.
core::Result<TlsContext> make_client_tls(const Tls& tls);
core::Result<TlsContext> make_server_tls(const Tls& tls);

class SocketStream {
 public:
  using IoHandler = std::function<void(ErrorCode, std::size_t)>;
  using Handler = std::function<void(ErrorCode)>;

  /// A null context makes it plain.
  SocketStream(boost::asio::io_context& io, TlsContext tls);
  SocketStream(boost::asio::ip::tcp::socket socket, TlsContext tls);
  ~SocketStream();

  boost::asio::ip::tcp::socket& socket();
  /// Tries one address after another; one that has another behind it for at most `patience`. The error is that of the last.
  void connect(const std::vector<boost::asio::ip::tcp::endpoint>& addresses, core::Duration patience, Handler handler);
  /// Does nothing (but calls back) on a plain stream. The name is verified, as a host name or as an IP address, unless
  /// skip_verify.
  void handshake_client(const std::string& name, bool skip_verify, Handler handler);
  void handshake_server(Handler handler);
  /// At most one read and one write may be under way. The buffers must stay until the handler is called.
  void read_some(char* data, std::size_t size, IoHandler handler);
  void write(std::string_view data, IoHandler handler);
  void close();
  /// What went wrong in a TLS handshake, in words.
  [[nodiscard]] std::string explain(ErrorCode error) const;

 private:
  void handshake(int (*step)(ssl_st*), Handler handler);

  struct Impl;
  std::shared_ptr<Impl> impl_;  ///< Handlers under way share it.
};

}  // namespace net
