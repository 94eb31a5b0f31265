#include "slurm/snapshot/poller.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace slurm {
namespace {

/// The longest time between the starts of two expensive rounds, unless twice the duration of a round is longer.
constexpr core::Duration kLongestPause{15000};
/// The shortest time between two runs of ask_why(). Its request can hang in slurmrestd for ten seconds.
constexpr core::Duration kWhyAgain{30000};

/// Returns rows by key. An unchanged row keeps its record, and an unchanged table keeps its map.
template <class Key, class T, class KeyOf>
SharedMap<Key, std::shared_ptr<const T>> merge(const SharedMap<Key, std::shared_ptr<const T>>& before,
                                               const std::vector<std::shared_ptr<const T>>& rows, KeyOf key_of) {
  std::map<Key, std::shared_ptr<const T>, std::less<>> now;
  bool changed = rows.size() != before.size();
  for (const auto& row : rows) {
    const auto old = before.find(key_of(*row));
    const bool same = old != before.end() && *old->second == *row;
    changed = changed || !same;
    now.emplace(key_of(*row), same ? old->second : row);
  }
  if (!changed && now.size() == before.size()) return before;
  return now;
}

SharedMap<std::string, Partition> merge_partitions(const SharedMap<std::string, Partition>& before,
                                                   const std::vector<std::shared_ptr<const Partition>>& rows) {
  std::map<std::string, Partition, std::less<>> now;
  for (const auto& row : rows) now.emplace(row->name, *row);
  if (std::ranges::equal(before, now)) return before;
  return now;
}

}  // namespace

struct Poller::Impl : std::enable_shared_from_this<Poller::Impl> {
  Impl(core::Loop& in_loop, core::Random& in_random, core::Logger& in_log, Client& in_client, Rounds in_rounds,
       Listener in_listener, PollerOptions in_options)
      : loop(in_loop),
        random(in_random),
        log(in_log),
        client(in_client),
        rounds(std::move(in_rounds)),
        listener(std::move(in_listener)),
        options(in_options),
        timer(in_loop),
        glance_timer(in_loop) {}

  [[nodiscard]] core::MonoTime now() const { return loop.clock().mono(); }
  [[nodiscard]] bool often() const { return now() < often_until; }

  // --- One round --------------------------------------------------------------------------------------------------

  struct Round {
    std::uint64_t number = 0;
    core::MonoTime started;
    core::MonoTime asked_for_jobs;
    bool whole = false;  ///< The round reads all tables, even unchanged ones.
    std::optional<Table<Partition>> partitions;
    std::optional<Table<Node>> nodes;
    std::optional<Table<Job>> jobs;
    bool confirmed = false;  ///< Client::confirm_cluster has succeeded, or the round does not need it.
    bool over = false;
  };
  using RoundPtr = std::shared_ptr<Round>;

  void begin_round() {
    running = true;
    soon = false;
    glance_timer.cancel();
    last_started = now();
    if (snapshot->complete()) return fetch();
    client.ping([weak = weak_from_this()](core::Result<std::vector<Ping>> pings) {
      const auto self = weak.lock();
      if (!self) return;
      if (!pings) return self->fail(pings.error());
      const bool up = std::ranges::any_of(*pings, [](const Ping& p) { return p.responding; });
      if (up) return self->fetch();
      self->ask_why();
      static const core::Error kSilent{core::ErrorCode::kUnavailable, "slurmctld does not answer slurmrestd", 200, {}, {}};
      self->fail(self->refused.value_or(kSilent));
    });
  }

  /// Finds out whether slurmctld does not answer or refuses our token. A ping has the same result in both cases, so this
  /// function reads a table. The request runs in parallel to the rounds, because it can hang.
  void ask_why() {
    if (asking_why || now() < why_again) return;
    asking_why = true;
    client.nodes({}, [weak = weak_from_this()](const core::Result<Table<Node>>& table) {
      const auto self = weak.lock();
      if (!self) return;
      self->asking_why = false;
      self->why_again = self->now() + kWhyAgain;
      self->refused.reset();
      if (table || table.error().code != core::ErrorCode::kUnauthorized || self->snapshot->complete()) return;
      self->refused = table.error();
      if (!self->started) return;
      const SnapshotPtr before = self->snapshot;
      self->snapshot = failed(*before, table.error());
      self->listener(before, self->snapshot);
    });
  }

  void fetch() {
    auto round = std::make_shared<Round>();
    round->number = rounds();
    round->started = last_started = now();
    round->whole = !snapshot->complete() || all_next || now() - last_whole >= options.whole;
    all_next = false;
    const bool known = !round->whole;
    if (known) {
      round->confirmed = true;
    } else {
      client.confirm_cluster([weak = weak_from_this(), round](const core::Result<void>& ours) {
        const auto self = weak.lock();
        if (!self || round->over) return;
        if (!ours) {
          round->over = true;
          return self->fail(ours.error());
        }
        round->confirmed = true;
        self->have_nodes(round);
      });
    }
    ask_partitions(round);
    client.nodes(known ? nodes_update : std::nullopt, take(round, &Round::nodes, &Impl::have_nodes));
  }

  /// Reads the partitions. slurmrestd needs slurmdbd to list partitions, but only slurmctld to report that they are unchanged.
  /// So if the list cannot be read, asks whether the partitions are still those of the snapshot.
  void ask_partitions(const RoundPtr& round) {
    auto store = take(round, &Round::partitions, &Impl::have_nodes);
    if (!round->whole) return client.partitions(partitions_update, std::move(store));
    client.partitions({}, [weak = weak_from_this(), round, store = std::move(store)](core::Result<Table<Partition>> table) {
      const auto self = weak.lock();
      if (!self || round->over) return;
      if (table || !self->read_partitions) return store(std::move(table));
      self->client.partitions(self->read_partitions, store);
    });
  }

  /// Returns a callback that stores a table in the round and continues, or ends the round with the error.
  template <class T>
  Client::Done<Table<T>> take(RoundPtr round, std::optional<Table<T>> Round::*place, void (Impl::*next)(const RoundPtr&)) {
    return [weak = weak_from_this(), round = std::move(round), place, next](core::Result<Table<T>> table) {
      const auto self = weak.lock();
      if (!self || round->over) return;
      if (!table) {
        round->over = true;
        return self->fail(table.error());
      }
      (*round).*place = std::move(*table);
      ((*self).*next)(round);
    };
  }

  void have_nodes(const RoundPtr& round) {
    if (!round->confirmed || !round->partitions || !round->nodes) return;
    if (!round->partitions->unchanged && round->nodes->unchanged) {
      // Nodes name their partitions, but slurmctld does not report the nodes of a changed partition as changed. So read all
      // nodes.
      round->nodes.reset();
      client.nodes({}, take(round, &Round::nodes, &Impl::have_nodes_again));
      return;
    }
    have_nodes_again(round);
  }

  void have_nodes_again(const RoundPtr& round) {
    round->asked_for_jobs = now();
    client.jobs(round->whole ? std::nullopt : jobs_update, take(round, &Round::jobs, &Impl::finish));
  }

  void finish(const RoundPtr& round) {
    round->over = true;
    const SnapshotPtr before = snapshot;
    if (!before->complete() && round->started <= settled) {
      return fail({core::ErrorCode::kUnavailable, "the answer is older than the last write", 0, {}, {}});
    }
    auto made = std::make_shared<Snapshot>(*before);
    made->health = Snapshot::Health::kComplete;
    made->error.clear();
    made->failures = 0;
    made->other_cluster = false;
    made->requested_at = round->started;
    cost = now() - round->started;
    made->cost = cost;
    made->round = round->number;
    if (const Capabilities* capabilities = client.capabilities()) made->capabilities = *capabilities;
    if (!round->partitions->unchanged) made->partitions = merge_partitions(before->partitions, round->partitions->rows);
    if (!round->nodes->unchanged) {
      made->nodes = merge(before->nodes, round->nodes->rows, [](const Node& node) -> const std::string& { return node.name; });
    }
    if (!round->jobs->unchanged) {
      // If a job has changed, last_update is slurmctld's current time. If no job has changed, last_update is the time of an
      // earlier answer.
      if (const std::int64_t time = round->jobs->last_update; time != 0) {
        made->clock = core::WallTime{std::chrono::seconds{time}};
        made->clock_at = round->asked_for_jobs;
      }
      made->jobs = merge(before->jobs, round->jobs->rows, [](const Job& job) { return job.id; });
    }
    if (!made->job_index || !made->jobs.same(before->jobs)) made->job_index = JobIndex::of(made->jobs);
    partitions_update = round->partitions->last_update;
    nodes_update = round->nodes->last_update;
    jobs_update = round->jobs->last_update;
    // Zero means that slurmctld does not report when this table last changed.
    for (auto* time : {&partitions_update, &nodes_update, &jobs_update}) {
      if (*time == 0) time->reset();
    }
    if (!before->complete()) log.info("Slurm answers", {{"nodes", made->nodes.size()}, {"jobs", made->jobs.size()}});
    refused.reset();
    read_partitions = all_next ? std::nullopt : partitions_update;
    if (round->whole) last_whole = round->started;
    backoff = core::Duration{0};
    end_round(before, std::move(made));
  }

  /// Returns the previous snapshot marked as stale, with the error.
  static std::shared_ptr<Snapshot> failed(const Snapshot& before, const core::Error& error) {
    auto made = std::make_shared<Snapshot>(before);
    if (made->health == Snapshot::Health::kComplete) made->health = Snapshot::Health::kStale;
    made->failures = before.failures > 0 && before.error_code == error.code ? before.failures + 1 : 1;
    made->error = error.message;
    made->error_code = error.code;
    made->from_server = error.http_status != 0;
    made->other_cluster = error.reason == kOtherCluster;
    // Remove the name of the request that reported the other cluster, so that all requests give the same error.
    if (const std::size_t colon = made->error.rfind(": "); made->other_cluster && colon != std::string::npos)
      made->error.erase(0, colon + 2);
    return made;
  }

  void fail(const core::Error& error) {
    const SnapshotPtr before = snapshot;
    if (error.code == core::ErrorCode::kUnauthorized) refused = error;
    if (before->complete()) log.warn("Slurm does not answer", {core::error_field(error)});
    partitions_update.reset();
    nodes_update.reset();
    jobs_update.reset();
    const core::Duration longest = often() ? options.often_backoff : options.last_backoff;
    backoff = backoff == core::Duration{0} ? options.first_backoff : std::min(backoff * 2, options.last_backoff);
    pause = std::min(backoff, longest);
    // Adds jitter, so that requests of several operators or clusters are not sent at the same moments.
    pause += core::Duration{static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(pause.count() / 4 + 1)))};
    end_round(before, failed(*before, error));
  }

  void mark_stale() {
    read_partitions.reset();
    settled = std::max(settled, now());
    if (!started || !snapshot->complete()) return;
    const SnapshotPtr before = snapshot;
    snapshot = failed(*before, {core::ErrorCode::kUnavailable, "its last answer may be older than the last write", 0, {}, {}});
    pause = core::Duration{0};
    schedule();
    listener(before, snapshot);
  }

  // --- Glances: reads of only the states of jobs, between expensive rounds --------------------------------------------

  /// Reports whether the job of a pod has another state than in the snapshot. Only these jobs are urgent, because pods wait
  /// until Slurm starts or ends their external jobs. Changes of all other jobs can wait for the next round.
  [[nodiscard]] bool pods_job_changed(const std::vector<std::shared_ptr<const JobState>>& rows) const {
    std::map<std::int64_t, std::string_view> states;
    for (const auto& row : rows) states.emplace(row->id, row->state);
    return std::ranges::any_of(snapshot->jobs, [&](const auto& entry) {
      if (!is_of_a_pod(*entry.second)) return false;
      const auto found = states.find(entry.first);
      return found == states.end() || found->second != entry.second->state;
    });
  }
  static bool is_of_a_pod(const Job& job) { return job.details.get() != nullptr && job.details->external && job.in_queue(); }

  void glance() {
    glanced = now();
    glance_cost = core::Duration{0};
    const bool any = std::ranges::any_of(snapshot->jobs, [](const auto& entry) { return is_of_a_pod(*entry.second); });
    if (!any) return schedule_glance();
    glancing = true;
    client.job_states([weak = weak_from_this(),
                       round = snapshot->round](const core::Result<std::vector<std::shared_ptr<const JobState>>>& rows) {
      const auto self = weak.lock();
      if (!self) return;
      self->glancing = false;
      self->glance_cost = self->now() - self->glanced;
      // Ignores an error of the glance: if the error persists, the next round reports it.
      const bool current = !self->running && self->snapshot->round == round;
      if (current && rows && self->pods_job_changed(*rows)) self->soon = true;
      self->schedule();
    });
  }

  /// Schedules a glance if it can run before the next round.
  void schedule_glance() {
    glance_timer.cancel();
    if (glancing || soon || !client.job_details() || !snapshot->complete() || !snapshot->capabilities.job_states) return;
    const core::MonoTime affordable = glanced + std::min(glance_cost * options.cost_factor, kLongestPause);
    const core::MonoTime at = std::max(affordable, std::max(glanced, last_ended) + options.period);
    // A glance is only useful if a change that it finds can start the next round earlier.
    if (at < due() && affordable_with(options.often_cost_factor) < due())
      glance_timer.set(std::max(core::Duration{0}, at - now()), [this] { glance(); });
  }

  void end_round(const SnapshotPtr& before, std::shared_ptr<Snapshot> made) {
    if (!started) return;
    snapshot = std::move(made);
    running = false;
    last_ended = now();
    schedule();
    listener(before, snapshot);
  }

  // --- When the next round starts ---------------------------------------------------------------------------------

  [[nodiscard]] core::MonoTime affordable_with(int factor) const {
    return last_started + std::max(std::min(cost * factor, kLongestPause), cost * 2);
  }
  [[nodiscard]] core::MonoTime due() const {
    if (!snapshot->complete()) {
      const core::Duration wait = often() ? std::min(pause, options.often_backoff) : pause;
      return last_ended + wait;
    }
    const int factor = soon || often() ? options.often_cost_factor : options.cost_factor;
    const core::MonoTime affordable = affordable_with(factor);
    if (soon) return affordable;
    return std::max(affordable, last_started + (often() ? options.often_period : options.period));
  }

  void schedule() {
    if (running || !started) return;
    const core::Duration wait = std::max(core::Duration{0}, due() - now());
    timer.set(wait, [this] { begin_round(); });
    schedule_glance();
  }

  core::Loop& loop;
  core::Random& random;
  core::Logger& log;
  Client& client;
  Rounds rounds;
  Listener listener;
  PollerOptions options;
  core::Timer timer;
  core::Timer glance_timer;

  SnapshotPtr snapshot = std::make_shared<const Snapshot>();
  std::optional<std::int64_t> partitions_update, nodes_update, jobs_update;
  /// slurmctld's time stamp of the partitions in the snapshot, even if the snapshot is stale. nullopt: the partitions may have
  /// changed although slurmctld reports no change.
  std::optional<std::int64_t> read_partitions;
  bool started = false;
  bool running = false;
  bool soon = false;
  bool all_next = false;
  bool asking_why = false;
  core::MonoTime why_again;            ///< ask_why() sends no request before this time.
  std::optional<core::Error> refused;  ///< The error of the refusal if slurmctld is known to refuse our token.
  core::MonoTime last_started, last_ended, last_whole, often_until;
  core::MonoTime settled{core::Duration{-1}};  ///< When the outcome of the last write is final: see wrote().
  core::Duration cost{0};
  core::MonoTime glanced;         ///< When the last glance began.
  core::Duration glance_cost{0};  ///< How long the last glance took.
  bool glancing = false;          ///< A glance is under way.
  core::Duration backoff{0};      ///< The pause after the failures in a row, without jitter; 0 after a success.
  core::Duration pause{0};        ///< The pause after the last failure, with jitter.
};

Poller::Poller(core::Loop& loop, core::Random& random, core::Logger& log, Client& client, Rounds rounds, Listener listener,
               PollerOptions options)
    : impl_(std::make_shared<Impl>(loop, random, log, client, std::move(rounds), std::move(listener), options)) {}

Poller::~Poller() {
  stop();
}

void Poller::stop() {
  impl_->started = false;
  impl_->timer.cancel();
  impl_->glance_timer.cancel();
}

void Poller::start(SnapshotPtr last_known) {
  if (last_known) {
    auto stale = std::make_shared<Snapshot>(*last_known);
    if (stale->health == Snapshot::Health::kComplete) stale->health = Snapshot::Health::kStale;
    if (stale->error.empty()) stale->error = "not asked yet";
    impl_->snapshot = std::move(stale);
  } else {
    auto none = std::make_shared<Snapshot>();
    none->error = "not asked yet";
    impl_->snapshot = std::move(none);
  }
  impl_->started = true;
  impl_->last_ended = impl_->now();
  impl_->schedule();
}

void Poller::poll_soon() {
  impl_->soon = true;
  impl_->schedule();
}

void Poller::poll_all_next() {
  impl_->all_next = true;
  impl_->read_partitions.reset();
}

void Poller::mark_stale() {
  impl_->mark_stale();
}

void Poller::poll_often() {
  impl_->often_until = impl_->now() + impl_->options.often_for;
  impl_->schedule();
}

void Poller::wrote(core::MonoTime when) {
  impl_->settled = std::max(impl_->settled, when);
}

const SnapshotPtr& Poller::snapshot() const {
  return impl_->snapshot;
}

std::int64_t Poller::jobs_update() const {
  return impl_->jobs_update.value_or(0);
}

}  // namespace slurm
