// Keeps the snapshot of one cluster: asks for nodes, jobs and partitions again and again, and makes one immutable value of each
// complete round. A round that fails, or is not whole, leaves the contents as they were and says kStale.
//
// A round asks for partitions and nodes first and for jobs after them: a node that was seen draining takes no new job, so the
// jobs read afterwards are all that can hold it. While slurmctld is away, slurmrestd takes 10 s to say so to anything but a
// ping, so after a failure a ping goes first. To a ping, a refused token and a slurmctld that is away look alike: a table is
// asked for beside it now and then, to tell which.
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
  core::Duration whole{60000};        ///< For so long slurmctld's word that nothing has changed is taken.
  core::Duration period{1000};        ///< From the start of one round to the next.
  core::Duration often_period{300};   ///< The same after poll_often().
  core::Duration often_for{2000};     ///< How long one poll_often() counts.
  int cost_factor = 20;               ///< A round starts no sooner than this many times the length of the last after its start.
  int often_cost_factor = 4;          ///< The same after poll_often() and poll_soon().
  core::Duration first_backoff{300};  ///< After a failure; doubles, with jitter ...
  core::Duration last_backoff{5000};  ///< ... up to this, or ...
  core::Duration often_backoff{500};  ///< ... up to this after poll_often().
};

class Poller {
 public:
  /// Called on the loop after each round, with the snapshot before it and after it.
  using Listener = std::function<void(const SnapshotPtr& before, const SnapshotPtr& now)>;
  /// Gives each round its number; greater ones for later rounds.
  using Rounds = std::function<std::uint64_t()>;

  Poller(core::Loop& loop, core::Random& random, core::Logger& log, Client& client, Rounds rounds, Listener listener,
         PollerOptions options = {});
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  /// Starts polling at once. `last_known`: contents of an earlier connection, to start from as kStale.
  void start(SnapshotPtr last_known = nullptr);
  /// No more rounds, no more calls of the listener; the snapshot stays.
  void stop();
  /// For who has written: a round starts as soon as the cost of the last allows; when one is under way, another follows it.
  void poll_soon();
  /// For who waits: for the next two seconds (PollerOptions::often_for) rounds come faster, and failures are retried sooner.
  void poll_often();
  /// A live look contradicted the snapshot, or slurmctld was reconfigured, though the tables may be said to be unchanged: the
  /// next round asks for all of them.
  void poll_all_next();
  /// The contents are stale until a round that begins from now on is whole.
  void mark_stale();
  /// A write is settled at `when`: a round that began before says nothing of it. Gates hold keys back from what such a round
  /// shows, but they are open while Slurm does not answer; so none of these rounds ends its silence.
  void wrote(core::MonoTime when);
  [[nodiscard]] const SnapshotPtr& snapshot() const;
  /// The last_update of the jobs in the snapshot; 0 when it is not known.
  [[nodiscard]] std::int64_t jobs_update() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace slurm
