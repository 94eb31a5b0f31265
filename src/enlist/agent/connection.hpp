// The agent's connection to the coordinator: reports the state of the host, and receives the desired state.
//
// One request (POST /v1/sync) is always open. The coordinator answers the request as soon as there is news for the host. A new
// report replaces the open request at once. After a failure, the request is repeated after 0.3 s to 5 s.
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
    /// Called when the coordinator cannot be reached or refuses this host, and again when the cause changes. `why`: the cause,
    /// in one line for people. The trouble lasts until the next on_reply.
    std::function<void(const std::string& why)> on_trouble;
  };
  /// The auth key, as the coordinator sends it. Never log `content`.
  struct Key {
    std::string file, revision, content;
  };

  Connection(core::Loop& loop, core::Random& random, net::HttpTransport& transport, Callbacks callbacks);
  ~Connection() { stop(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Sends a report to the coordinator. The first report opens the connection.
  void report(Report report);
  /// Fetches the auth key. Errors: kForbidden (the coordinator refuses it to this host), kUnavailable, kInternal (a malformed
  /// answer). After stop(), `done` is never called.
  void fetch_key(std::function<void(core::Result<Key>)> done);
  /// Reports whether the coordinator has received the last report, or has refused this host in answer to it.
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
  bool sent_ = false;   ///< report_ was sent. The answer might not have arrived yet.
  bool heard_ = false;  ///< The result of heard().
  std::string revision_;
  bool ready_ = false;  ///< The node's phase was Ready in the last reply.
  std::optional<net::HttpTransport::RequestId> waiting_, key_request_;
  core::MonoTime sent_at_;
  core::Duration wait_{0};
  int failures_ = 0;
  std::string trouble_;  ///< The cause that on_trouble last got; "": no trouble since the last reply.
  bool stopped_ = false;
  core::Timer next_;
};

}  // namespace enlist
