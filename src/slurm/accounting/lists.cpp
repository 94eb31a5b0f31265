#include "slurm/accounting/lists.hpp"

#include <algorithm>
#include <utility>

namespace slurm::accounting {
namespace {

/// After a write or poll_often(), the time between the starts of two polls is at least the duration of a poll times this
/// factor. At other times, the factor is cost_factor.
constexpr int kSoonFactor = 4;

/// A poll counts as later than a write if it starts at least this long after the write.
constexpr core::Duration kAfter{1};

/// The rows of one list, and the state of its polls.
template <class Key, class Row>
struct Polled {
  Polled(core::Loop& loop, List in_list, void (AccountingClient::*in_get)(AccountingClient::Done<Row>),
         Key (*in_key_of)(const Row&))
      : list(in_list), get(in_get), key_of(in_key_of), timer(loop) {}

  List list;
  void (AccountingClient::*get)(AccountingClient::Done<Row>);
  Key (*key_of)(const Row&);
  Rows<Key, Row> now;
  core::Timer timer;
  std::uint64_t round = 0;                     ///< The number of the last poll.
  core::MonoTime started, ended;               ///< When the last poll started and ended.
  core::MonoTime settled{core::Duration{-1}};  ///< When the outcome of the last write is final. See Lists::wrote.
  core::Duration pause{0};                     ///< How long to wait after the last failure, with jitter.
  bool asking = false;
  bool soon = false;       ///< A write has requested another poll.
  std::uint64_t turn = 0;  ///< Counts how often polling was stopped. An answer to a request from before a stop is ignored.
  int failures = 0;        ///< The number of failures in a row.
};

template <class Row>
std::string name_of(const Row& row) {
  return row.name;
}
template <class Row>
std::int64_t id_of(const Row& row) {
  return row.id;
}

template <class Key, class Row>
Lists::Progress progress_of(const Polled<Key, Row>& polled) {
  const Rows<Key, Row>& now = polled.now;
  return {now.health == Rows<Key, Row>::Health::kComplete, now.round, now.requested_at};
}

}  // namespace

struct Lists::Impl : std::enable_shared_from_this<Lists::Impl> {
  Impl(core::Loop& in_loop, core::Random& in_random, Client in_client, Rounds in_rounds, Listener in_listener,
       ListsOptions in_options)
      : loop(in_loop),
        random(in_random),
        client(std::move(in_client)),
        rounds(std::move(in_rounds)),
        listener(std::move(in_listener)),
        options(in_options) {}

  template <class Each>
  void each(Each what) {
    what(tres);
    what(qos);
    what(accounts);
    what(users);
    what(associations);
    what(clusters);
  }

  template <class Key, class Row>
  void poll(Polled<Key, Row>& polled) {
    if (!running || polled.asking || !wanted.contains(polled.list)) return;
    polled.asking = true;
    polled.soon = false;
    polled.started = loop.clock().mono();
    polled.round = rounds();
    auto answered = [weak = weak_from_this(), &polled,
                     turn = polled.turn](const core::Result<std::vector<std::shared_ptr<const Row>>>& rows) {
      const auto self = weak.lock();
      if (!self || turn != polled.turn) return;
      polled.asking = false;
      polled.ended = self->loop.clock().mono();
      const bool older = !progress_of(polled).complete && polled.started <= polled.settled;
      static const core::Error kOlder{core::ErrorCode::kUnavailable, "the answer is older than the last write", 0, {}, {}};
      const bool changed = rows && !older ? self->came(polled, *rows) : self->failed(polled, rows ? kOlder : rows.error());
      // slurmdbd has answered, so the next poll does not wait for the backoff that failed() has set.
      if (rows && older) polled.pause = (polled.ended - polled.started) * kSoonFactor + kAfter;
      self->schedule(polled);
      self->listener(polled.list, changed);
    };
    if (AccountingClient* to = client()) return (to->*polled.get)(std::move(answered));
    loop.after(core::Duration{0}, [answered = std::move(answered)] {
      answered(core::fail(core::ErrorCode::kUnavailable, "no slurmrestd of this database is known"));
    });
  }

  /// Stores a list. Returns true if its contents or its health changed.
  template <class Key, class Row>
  bool came(Polled<Key, Row>& polled, const std::vector<std::shared_ptr<const Row>>& rows) {
    Rows<Key, Row>& now = polled.now;
    std::map<Key, std::shared_ptr<const Row>> fresh;
    bool changed = now.health != Rows<Key, Row>::Health::kComplete;
    bool other_rows = false;
    for (const auto& row : rows) {
      const Key key = polled.key_of(*row);
      const auto before = now.rows->find(key);
      const bool same = before != now.rows->end() && *before->second == *row;
      other_rows = other_rows || !same;
      fresh.emplace(key, same ? before->second : row);
    }
    other_rows = other_rows || fresh.size() != now.rows->size();
    if (other_rows) now.rows = std::make_shared<const std::map<Key, std::shared_ptr<const Row>>>(std::move(fresh));
    now.health = Rows<Key, Row>::Health::kComplete;
    now.error.clear();
    now.requested_at = polled.started;
    now.cost = polled.ended - polled.started;
    now.round = polled.round;
    polled.failures = 0;
    return changed || other_rows;
  }

  template <class Key, class Row>
  bool failed(Polled<Key, Row>& polled, const core::Error& error) {
    Rows<Key, Row>& now = polled.now;
    polled.pause = std::min(options.first_backoff * (1 << std::min(polled.failures++, 10)), options.last_backoff);
    polled.pause += polled.pause * static_cast<int>(random.below(21)) / 100;
    const bool changed = now.health == Rows<Key, Row>::Health::kComplete || now.error != error.message;
    if (now.health == Rows<Key, Row>::Health::kComplete) now.health = Rows<Key, Row>::Health::kStale;
    now.error = error.message;
    return changed;
  }

  template <class Key, class Row>
  [[nodiscard]] core::MonoTime due(const Polled<Key, Row>& polled) const {
    const bool often = loop.clock().mono() < often_until;
    if (polled.failures > 0) return polled.ended + (often ? std::min(polled.pause, options.often_period) : polled.pause);
    const core::Duration cost = polled.now.cost;
    if (polled.soon) return polled.started + cost * kSoonFactor;
    if (often) return polled.started + std::max(options.often_period, cost * kSoonFactor);
    return polled.started + std::max(period_of(polled.list), std::min(cost * options.cost_factor, options.longest_pause));
  }

  [[nodiscard]] core::Duration period_of(List list) const {
    if (list == List::kTres || list == List::kClusters) return options.seldom;
    return list == List::kAccounts || list == List::kUsers ? options.names_period : options.period;
  }

  template <class Key, class Row>
  void schedule(Polled<Key, Row>& polled) {
    if (!running || polled.asking || !wanted.contains(polled.list)) return;
    polled.timer.set(std::max(due(polled) - loop.clock().mono(), core::Duration{0}), [this, &polled] { poll(polled); });
  }

  core::Loop& loop;
  core::Random& random;
  Client client;
  Rounds rounds;
  Listener listener;
  ListsOptions options;
  bool running = false;
  core::MonoTime since;  ///< When start() was called.
  std::set<List> wanted = all_lists();
  core::MonoTime often_until;
  Polled<std::int64_t, Tres> tres{loop, List::kTres, &AccountingClient::tres, id_of<Tres>};
  Polled<std::string, Qos> qos{loop, List::kQos, &AccountingClient::qos, name_of<Qos>};
  Polled<std::string, Account> accounts{loop, List::kAccounts, &AccountingClient::accounts, name_of<Account>};
  Polled<std::string, User> users{loop, List::kUsers, &AccountingClient::users, name_of<User>};
  Polled<std::string, Association> associations{loop, List::kAssociations, &AccountingClient::own_associations,
                                                [](const Association& row) { return row.key(); }};
  Polled<std::string, Cluster> clusters{loop, List::kClusters, &AccountingClient::clusters, name_of<Cluster>};
};

Lists::Lists(core::Loop& loop, core::Random& random, Client client, Rounds rounds, Listener listener, ListsOptions options)
    : impl_(std::make_shared<Impl>(loop, random, std::move(client), std::move(rounds), std::move(listener), options)) {}

Lists::~Lists() {
  stop();
}

void Lists::start() {
  if (impl_->running) return;
  impl_->running = true;
  impl_->since = impl_->loop.clock().mono();
  impl_->each([this](auto& polled) { impl_->poll(polled); });
}

void Lists::stop() {
  impl_->running = false;
  impl_->each([](auto& polled) {
    polled.timer.cancel();
    polled.asking = false;
    ++polled.turn;
  });
}

void Lists::want(std::set<List> lists) {
  const std::set<List> before = std::exchange(impl_->wanted, std::move(lists));
  impl_->each([&](auto& polled) {
    const bool now = impl_->wanted.contains(polled.list);
    if (now == before.contains(polled.list)) return;
    if (now) return impl_->poll(polled);
    polled.timer.cancel();
    polled.asking = false;
    ++polled.turn;
    if (progress_of(polled).complete)
      impl_->failed(polled, {core::ErrorCode::kUnavailable, "it is not asked for any more", 0, {}, {}});
  });
}

void Lists::poll_soon(List list) {
  impl_->each([this, list](auto& polled) {
    if (polled.list != list) return;
    polled.soon = true;
    impl_->schedule(polled);
  });
}

void Lists::poll_often() {
  impl_->often_until = impl_->loop.clock().mono() + impl_->options.often_for;
  impl_->each([this](auto& polled) { impl_->schedule(polled); });
}

void Lists::mark_stale() {
  const auto self = impl_;  // A listener may remove the database.
  self->each([&](auto& polled) {
    polled.settled = std::max(polled.settled, self->loop.clock().mono());
    if (!self->running || !progress_of(polled).complete) return;
    self->failed(polled, {core::ErrorCode::kUnavailable, "its last answer may be older than the last write", 0, {}, {}});
    polled.ended = self->loop.clock().mono();
    polled.pause = kAfter;
    self->schedule(polled);
    self->listener(polled.list, true);
  });
}

void Lists::wrote(List list, core::MonoTime when) {
  impl_->each([&](auto& polled) {
    if (polled.list == list) polled.settled = std::max(polled.settled, when);
  });
}

Lists::Progress Lists::progress(List list) const {
  Progress out;
  impl_->each([&](const auto& polled) {
    if (polled.list == list) out = progress_of(polled);
  });
  return out;
}

View Lists::view() const {
  return {impl_->since, tres(), qos(), accounts(), users(), associations(), clusters()};
}
const Rows<std::int64_t, Tres>& Lists::tres() const {
  return impl_->tres.now;
}
const Rows<std::string, Qos>& Lists::qos() const {
  return impl_->qos.now;
}
const Rows<std::string, Account>& Lists::accounts() const {
  return impl_->accounts.now;
}
const Rows<std::string, User>& Lists::users() const {
  return impl_->users.now;
}
const Rows<std::string, Association>& Lists::associations() const {
  return impl_->associations.now;
}
const Rows<std::string, Cluster>& Lists::clusters() const {
  return impl_->clusters.now;
}

}  // namespace slurm::accounting
