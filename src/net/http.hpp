// HTTP for the project's state machines: sends requests, and receives replies and pieces of streams, all on the loop's thread.
//
// Production: net/beast_transport.hpp (HTTP/1.1, TLS, keep-alive pool). Tests and the simulator use their own transports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "core/result.hpp"

namespace net {

/// Maps the names of headers, in lower case, to their values.
using Headers = std::map<std::string, std::string>;

struct HttpRequest {
  std::string method = "GET";
  std::string target = "/";  ///< Path and query, percent-encoded: "/api/v1/pods?limit=500".
  Headers headers{};
  std::string body{};
  /// The time from send to the last byte of the reply. For a stream: the longest time until the head arrives, and then the
  /// longest silence between two pieces.
  core::Duration timeout{15000};
  /// The request does not wait for a free connection. Set this only for the few requests whose delay would end the process,
  /// such as the renewal of a Lease.
  bool urgent = false;
  /// The longest body of a reply that is not a stream, in bytes. A longer body gives kInternal. 0: the limit of the transport.
  std::size_t max_reply_bytes = 0;
  /// Set by a server that asks for certificates: the fingerprint of the client's public key (net/certificate.hpp). The client
  /// has proven that it has the private key. "" if the client has sent no certificate.
  std::string peer_key{};
};

struct HttpResponse {
  int status = 0;
  Headers headers{};
  std::string body{};
  std::shared_ptr<void> room{};  ///< Holds the body's bytes in a ReplyBudget until the last copy of the response is destroyed.
};

/// Limits the memory of all replies under way, over any number of transports. One reply can take at most half of the bytes that
/// the other replies leave, so that even endless replies leave memory for small replies.
class ReplyBudget {
 public:
  explicit ReplyBudget(std::size_t bytes) : bytes_(bytes) {}
  /// Takes `more` bytes for a reply that holds `held` bytes so far. Returns false, and takes nothing, if too few are left.
  bool take(std::size_t more, std::size_t held) {
    if (held + more > (bytes_ - (used_ - held)) / 2) return false;
    used_ += more;
    return true;
  }
  void give_back(std::size_t held) { used_ -= held; }
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  std::size_t bytes_;
  std::size_t used_ = 0;
};

/// Receives a streamed reply. No calls follow on_end.
struct StreamHandler {
  std::function<void(int status, const Headers& headers)> on_head{};
  std::function<void(std::string_view piece)> on_data{};
  /// Called with success if the body ended, and with an error if the connection was cut or silent for too long.
  std::function<void(core::Result<void>)> on_end{};
};

/// One HTTP endpoint (scheme, host, port, TLS). Errors: kUnavailable if the server cannot have carried out the request (nothing
/// was sent), kUnknownOutcome if it possibly has (sent, but no complete reply). HTTP statuses are not errors here.
class HttpTransport {
 public:
  using RequestId = std::uint64_t;
  using Done = std::function<void(core::Result<HttpResponse>)>;

  virtual ~HttpTransport() = default;
  virtual RequestId send(HttpRequest request, Done done) = 0;
  virtual RequestId stream(HttpRequest request, StreamHandler handler) = 0;
  /// Cancels a request. No callback of the request is called after that.
  virtual void cancel(RequestId id) = 0;
};

}  // namespace net
