// The interface of simulated servers (API server, slurmrestd) to transports: a request gets one immediate reply, or a stream.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <string>

#include "net/http.hpp"
#include "sim/base/faults.hpp"

namespace sim {

struct StreamPiece {
  enum class Kind { kData, kBookmark, kLastBookmark, kError };  ///< kLastBookmark ends an initial list and is never withheld.
  Kind kind = Kind::kData;
  std::string text;
};

struct StreamSink {
  std::function<void(StreamPiece)> on_piece;  ///< Can be called from inside of open(). Must not call the server.
  std::function<void()> on_end;
};

class Server {
 public:
  using StreamId = std::uint64_t;
  virtual ~Server() = default;

  /// Returns false if connections are refused.
  [[nodiscard]] virtual bool listening() const { return true; }
  virtual net::HttpResponse serve(const net::HttpRequest& request) = 0;

  [[nodiscard]] virtual bool is_stream(const net::HttpRequest&) const { return false; }
  virtual std::expected<StreamId, net::HttpResponse> open(const net::HttpRequest&, StreamSink) {
    return std::unexpected(net::HttpResponse{405, {}, "no streams here"});
  }
  virtual void close(StreamId) {}

  /// Returns this server's own kind of reply for an injected 403, 409, 410, 429 or 500.
  [[nodiscard]] virtual net::HttpResponse fault_reply(int status) const { return {status, {}, "injected"}; }
};

}  // namespace sim
