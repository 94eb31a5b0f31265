// Keeps the snapshot of one cluster: polls nodes, jobs and partitions, and makes one immutable value of each complete round. A
// round that fails or is incomplete keeps the contents as kStale.
//
// A round reads partitions and nodes first, and jobs after them. A draining node takes no new job, so the jobs read later
// include all jobs that can hold it. If slurmctld is away, slurmrestd needs 10 s to report that, except for a ping. So after a
// failure a ping is sent first. A ping has the same result if slurmctld is absent and if slurmctld refuses our token. So a
// table is read beside some pings.
//
// If rounds are expensive, as with thousands of jobs, there are fewer rounds. For a client with ClientOptions::job_details, the
// poller then reads the states of all jobs between two rounds, at a fraction of the cost of a round. If an external job has
// changed its state, the next round starts early.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/log.hpp"
#include "core/loop.hpp"
#include "core/random.hpp"
#include "slurm/rest/client.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace slurm {

struct PollerOptions {
  core::Duration whole{60000};       ///< After this time a round reads all tables, even if slurmctld reports no changes.
  core::Duration period{1000};       ///< The time between the starts of two rounds.
  core::Duration often_period{300};  ///< The period after poll_often().
  core::Duration often_for{2000};    ///< How long the effect of one poll_often() lasts.
  /// The least time from the start of a round to the start of the next, as a multiple of the earlier round's duration. This
  /// time is at most 15 s, or twice the earlier round's duration if that is longer.
  int cost_factor = 20;
  int often_cost_factor = 4;          ///< The factor after poll_often() and poll_soon().
  core::Duration first_backoff{300};  ///< The pause after a failure. Doubles each time, with jitter.
  core::Duration last_backoff{5000};  ///< The longest pause after failures.
  core::Duration often_backoff{500};  ///< The longest pause after failures while poll_often() has its effect.
};

class Poller {
 public:
  /// Called on the loop after each round, with the snapshots before and after it.
  using Listener = std::function<void(const SnapshotPtr& before, const SnapshotPtr& now)>;
  /// Returns the number of the next round. Later rounds have greater numbers.
  using Rounds = std::function<std::uint64_t()>;

  Poller(core::Loop& loop, core::Random& random, core::Logger& log, Client& client, Rounds rounds, Listener listener,
         PollerOptions options = {});
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  /// Starts polling at once. `last_known` has the contents of an earlier connection, which count as kStale.
  void start(SnapshotPtr last_known = nullptr);
  /// Stops polling. The listener is not called any more. The snapshot stays.
  void stop();
  /// Starts a round as soon as often_cost_factor allows, or, after a failure, when the pause ends. Call it after a write. If a
  /// round is under way, another round follows it.
  void poll_soon();
  /// Makes rounds more frequent, and retries failures sooner, for two seconds (PollerOptions::often_for). Call it while
  /// something waits for a change in Slurm.
  void poll_often();
  /// Makes the next round read all tables. Call it when a live read contradicts the snapshot, or when slurmctld was
  /// reconfigured: slurmctld can then report that nothing has changed.
  void poll_all_next();
  /// Makes the contents stale until a round that begins later is complete.
  void mark_stale();
  /// Records that the outcome of a write is final at `when`. A round that began earlier proves nothing about the write. Gates
  /// normally prevent plans from using such a round, but gates are open while Slurm does not answer. Therefore such a round
  /// never makes a stale snapshot complete.
  void wrote(core::MonoTime when);
  [[nodiscard]] const SnapshotPtr& snapshot() const;
  /// Returns the last_update of the jobs in the snapshot; 0 if unknown.
  [[nodiscard]] std::int64_t jobs_update() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace slurm
