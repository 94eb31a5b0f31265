// Leader election with a coordination.k8s.io Lease: one of several replicas acts.
//
// Guarantees: no two processes that use this class have a deadline() in the future at once, whatever their wall clocks say.
//
// A holder counts as alive while the Lease changes, measured by our own clock, never by the timestamps in the Lease. If a
// leader has not renewed the Lease for renew_deadline, the leader's client refuses writes; by default, this is 5 s before
// another process can begin to lead. A later renewal restores the right to write, because it proves that no other process has
// written the Lease in between. So if an API server takes 5 s for every answer, the leader cannot write, but does not lose the
// Lease. If no renewal succeeds, the Lease counts as lost retry_period before another process can begin to lead. `on_lost` then
// ends the process.
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
  Key key;               ///< The key of the Lease.
  std::string identity;  ///< Our identity, unique for each process start ("hostname_random").
  core::Duration duration{15000};
  core::Duration renew_deadline{10000};
  core::Duration retry_period{2000};
  double jitter = 1.2;
};

class LeaderElection {
 public:
  struct Callbacks {
    std::function<void()> on_leading;
    std::function<void(std::string why)> on_lost;  ///< Called at most once: the Lease is lost, and the election has ended.
    /// Called when the holder changes, to another process or to us; may be unset.
    std::function<void(const std::string& holder)> on_holder;
    std::function<void()> on_slow_renewal{};  ///< Called if the Lease must be read before a renewal; may be unset.
  };
  LeaderElection(core::Loop& loop, core::Random& random, core::Logger& logger, Client& client, LeaseOptions options,
                 Callbacks callbacks);
  ~LeaderElection();

  void start();
  /// Releases the Lease if we hold it, so that another process can take the Lease at once. Call it only after all writers have
  /// stopped. Waits for a renewal under way. Calls `done` when the API server has answered or the request has failed.
  void release(std::function<void()> done);
  /// Stops without releasing the Lease: the Lease expires, and our writes are refused from now on. Call it if writes are still
  /// under way.
  void end();
  [[nodiscard]] bool leading() const;
  /// Returns the time until which our writes are safe: renew_deadline after the last successful renewal was sent. Returns
  /// nullopt if that time has passed or another process leads.
  [[nodiscard]] std::optional<core::MonoTime> deadline() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace kube
