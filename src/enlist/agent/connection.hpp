// The agent's connection to the coordinator: reports the host, and waits for what is desired.
//
// A request (POST /v1/sync) always waits at the coordinator, which answers as soon as it has something new. A new report is
// sent at once. While the coordinator does not answer, the request is repeated after 0.3 s to 5 s.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/loop.hpp"
#include "core/random.hpp"
#include "enlist/wire/messages.hpp"
#include "net/http.hpp"

namespace enlist {

class Connection {
 public:
  struct Callbacks {
    std::function<void(const SyncReply&)> on_reply;
    /// Called when the coordinator cannot be reached or refuses this host, and again when the cause has changed: one line for
    /// people. The next reply ends the trouble.
    std::function<void(const std::string& why)> on_trouble;
  };
  /// The auth key, as the coordinator sends it. Never log the content.
  struct Key {
    std::string file, revision, content;
  };

  Connection(core::Loop& loop, core::Random& random, net::HttpTransport& transport, Callbacks callbacks);
  ~Connection() { stop(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Reports the host. The first report opens the connection.
  void report(Report report);
  /// Fetches the auth key. Errors: kForbidden (the node is not enlisted), kUnavailable, kInternal. After stop(), `done`
  /// is never called.
  void fetch_key(std::function<void(core::Result<Key>)> done);
  /// True if the coordinator has heard the last report, or has refused this host since.
  [[nodiscard]] bool heard() const { return heard_; }
  /// Cancels all requests.
  void stop();

 private:
  void sync();
  void answered(const core::Result<net::HttpResponse>& reply);
  void replied(const SyncReply& reply);
  void failed(const std::string& why, bool refused);

  core::Loop& loop_;
  core::Random& random_;
  net::HttpTransport& transport_;
  Callbacks callbacks_;
  std::optional<Report> report_;
  bool sent_ = false;   ///< The coordinator is being told the report, or was.
  bool heard_ = false;  ///< heard().
  std::string revision_;
  bool ready_ = false;  ///< The node is ready, so nothing is about to change.
  std::optional<net::HttpTransport::RequestId> waiting_, key_request_;
  core::MonoTime sent_at_;
  core::Duration wait_{0};
  int failures_ = 0;
  std::string trouble_;  ///< What on_trouble was last told; "": nothing since the last answer.
  bool stopped_ = false;
  core::Timer next_;
};

}  // namespace enlist
