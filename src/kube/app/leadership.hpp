// Decides whether this process may act. With an election: only while it holds the Lease. Without an election: from start() on.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kube/app/lease.hpp"
#include "kube/app/metrics.hpp"

namespace kube {

class Leadership {
 public:
  struct Callbacks {
    std::function<void()> on_leading;
    std::function<void(const std::string& why)> on_lost;
  };
  /// Without `election`, this process leads from start() on. With `election`, the client refuses writes unless we hold the
  /// Lease.
  Leadership(core::Loop& loop, core::Random& random, core::Logger& logger, Client& client, std::optional<LeaseOptions> election,
             Metrics* metrics, Callbacks callbacks);
  /// Makes the client refuse all later writes.
  ~Leadership();
  Leadership(const Leadership&) = delete;
  Leadership& operator=(const Leadership&) = delete;

  void start();
  [[nodiscard]] bool leads() const { return leads_; }
  /// Reports whether there is an election. If so, another process has possibly led before. Then data that this process read
  /// before it became the leader might lack the last writes of that other process.
  [[nodiscard]] bool elected() const { return election_ != nullptr; }
  /// Ends the leadership, then calls `done`. If `writes_under_way`, the Lease is not released but expires, so that no other
  /// process begins to lead while the API server can still carry out these writes.
  void give_up(bool writes_under_way, std::function<void()> done);

 private:
  void won();
  void lost(const std::string& why);
  void report(bool leading);

  Client& client_;
  Metrics* metrics_;
  Callbacks callbacks_;
  std::string lease_;  ///< The name of the Lease.
  std::unique_ptr<LeaderElection> election_;
  bool leads_ = false;
};

}  // namespace kube
