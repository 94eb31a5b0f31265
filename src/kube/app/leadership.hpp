// Whether this process may act: with an election, while it holds the Lease; without, from the start.
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
  /// `election`: absent, and nobody else is asked. With one, the client's writes are fenced by the Lease from now on.
  Leadership(core::Loop& loop, core::Random& random, core::Logger& logger, Client& client, std::optional<LeaseOptions> election,
             Metrics* metrics, Callbacks callbacks);
  /// No more leader, no more writes: whoever still uses the client has lost the right to.
  ~Leadership();
  Leadership(const Leadership&) = delete;
  Leadership& operator=(const Leadership&) = delete;

  void start();
  [[nodiscard]] bool leads() const { return leads_; }
  /// Another may have led before us: what was read before may lack what it wrote last.
  [[nodiscard]] bool elected() const { return election_ != nullptr; }
  /// The end. With `writes_under_way` the Lease is not released but runs out by itself: nobody else may begin before.
  void give_up(bool writes_under_way, std::function<void()> done);

 private:
  void won();
  void lost(const std::string& why);
  void report(bool leading);

  Client& client_;
  Metrics* metrics_;
  Callbacks callbacks_;
  std::string lease_;  ///< Its name.
  std::unique_ptr<LeaderElection> election_;
  bool leads_ = false;
};

}  // namespace kube
