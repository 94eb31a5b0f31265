// Leader election by a coordination.k8s.io Lease: one of several replicas acts.
//
// Guarantees: no two processes that use this class have a deadline() in the future at once, whatever their wall clocks say.
//
// A holder is taken for alive for as long as the Lease changes, by our own clock (never by the timestamps in it). A leader that
// could not renew for renew_deadline may not write 5 s before anybody else can begin: the client refuses. A renewal that is
// answered after that makes it whole again, for nobody else has written the Lease in between; so an API server that takes 5 s
// for every answer costs writes, but not the lease. retry_period before anybody else can begin it is lost, and `on_lost` ends
// the process.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/log.hpp"
#include "core/loop.hpp"
#include "core/random.hpp"
#include "kube/client/client.hpp"

namespace kube {

struct LeaseOptions {
  Key key;               ///< Of the Lease.
  std::string identity;  ///< Ours: unique per process start ("hostname_random").
  core::Duration duration{15000};
  core::Duration renew_deadline{10000};
  core::Duration retry_period{2000};
  double jitter = 1.2;
};

class LeaderElection {
 public:
  struct Callbacks {
    std::function<void()> on_leading;
    std::function<void(std::string why)> on_lost;              ///< Once; the election has ended.
    std::function<void(const std::string& holder)> on_holder;  ///< Somebody else (or we) was seen to lead; may be unset.
    std::function<void()> on_slow_renewal{};                   ///< The Lease has to be read before it is renewed; may be unset.
  };
  LeaderElection(core::Loop& loop, core::Random& random, core::Logger& logger, Client& client, LeaseOptions options,
                 Callbacks callbacks);
  ~LeaderElection();

  void start();
  /// Gives the Lease up, if we hold it, so that another may take it at once. Only after all writers have stopped. A renewal
  /// under way is waited for. `done` is called when the API server said so, or could not be asked.
  void release(std::function<void()> done);
  /// Stops without giving the Lease up: it runs out by itself, and our writes are refused from now on. For an end with writes
  /// still under way.
  void end();
  [[nodiscard]] bool leading() const;
  /// Until when our writes are safe: the end of renew_deadline since the last renewal was sent. nullopt when that is over, or
  /// another leads.
  [[nodiscard]] std::optional<core::MonoTime> deadline() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace kube
