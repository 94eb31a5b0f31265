#include "slurm/snapshot/registry.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "slurm/rest/token.hpp"

namespace slurm {
namespace {

/// Calls `found` in order for each key that was added, changed or removed. `same` compares two values.
template <class Map, class Same, class Found>
void for_differences(const Map& before, const Map& now, Same same, Found found) {
  auto a = before.begin();
  auto b = now.begin();
  while (a != before.end() || b != now.end()) {
    if (b == now.end() || (a != before.end() && a->first < b->first)) {
      found(a->first);
      ++a;
    } else if (a == before.end() || b->first < a->first) {
      found(b->first);
      ++b;
    } else {
      if (!same(a->second, b->second)) found(a->first);
      ++a;
      ++b;
    }
  }
}

Change difference(ClusterKey cluster, SnapshotPtr before, SnapshotPtr now, bool with_jobs) {
  Change change;
  change.cluster = std::move(cluster);
  const auto equal = [](const auto& a, const auto& b) { return a == b; };
  const auto add = [&](const std::string& name) { change.nodes.push_back(name); };
  if (!before->nodes.same(now->nodes)) for_differences(before->nodes, now->nodes, equal, add);
  static const JobIndex kNoJobs;
  const JobIndex& held_before = before->job_index ? *before->job_index : kNoJobs;
  const JobIndex& held_now = now->job_index ? *now->job_index : kNoJobs;
  if (before->job_index != now->job_index) {
    const auto same_jobs = [](const JobIndex::Held& a, const JobIndex::Held& b) { return a.jobs == b.jobs; };
    for_differences(held_before.by_node, held_now.by_node, same_jobs, add);
  }
  if (with_jobs && !before->jobs.same(now->jobs))
    for_differences(before->jobs, now->jobs, equal, [&](std::int64_t id) { change.jobs.push_back(id); });
  std::ranges::sort(change.nodes);
  change.nodes.erase(std::ranges::unique(change.nodes).begin(), change.nodes.end());
  change.partitions = !before->partitions.same(now->partitions);
  change.health = before->health != now->health || before->error != now->error || before->unreadable() != now->unreadable() ||
                  before->silent() != now->silent() || held_before.of_any.jobs != held_now.of_any.jobs ||
                  before->capabilities.release != now->capabilities.release ||
                  before->capabilities.data_parser != now->capabilities.data_parser;
  change.before = std::move(before);
  change.now = std::move(now);
  return change;
}

SnapshotPtr nothing() {
  static const SnapshotPtr kNothing = [] {
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->error = "no slurmrestd of this cluster is known";
    return snapshot;
  }();
  return kNothing;
}

/// The listeners for one kind of change.
template <class What>
class Listeners {
 public:
  using Listener = std::function<void(const What&)>;
  void add(Clusters::ListenerId id, Listener listener) { all_.emplace(id, std::make_shared<Listener>(std::move(listener))); }
  void remove(Clusters::ListenerId id) { all_.erase(id); }
  void clear() { all_.clear(); }
  void tell(const What& what) {
    // Calls can add or remove listeners, so iterate over a copy of the ids.
    std::vector<Clusters::ListenerId> ids;
    for (const auto& [id, listener] : all_) ids.push_back(id);
    for (const Clusters::ListenerId id : ids) {
      const auto it = all_.find(id);
      if (it == all_.end()) continue;
      const auto listener = it->second;
      (*listener)(what);
    }
  }

 private:
  std::map<Clusters::ListenerId, std::shared_ptr<Listener>> all_;
};

/// Live reads of all jobs. Requests that arrive during a read wait for the next read. One read serves all requests that wait.
class JobReads {
 public:
  using Jobs = std::vector<std::shared_ptr<const Job>>;
  using Done = Client::Done<Jobs>;

  JobReads(Client& client, Poller& poller) : client_(client), poller_(poller) {}
  ~JobReads() { tell(waiting_, core::fail(core::ErrorCode::kCancelled, "the connection was given up")); }
  JobReads(const JobReads&) = delete;
  JobReads& operator=(const JobReads&) = delete;

  void ask(Done done) {
    waiting_.push_back(std::move(done));
    if (!under_way_) send();
  }

 private:
  static void tell(const std::vector<Done>& asked, const core::Result<Jobs>& jobs) {
    for (const Done& done : asked) done(jobs);
  }

  void send() {
    under_way_ = true;
    const SnapshotPtr snapshot = poller_.snapshot();
    const std::int64_t update = poller_.jobs_update();
    const auto since = snapshot->complete() && update != 0 ? std::optional(update) : std::nullopt;
    client_.jobs(since, [this, alive = std::weak_ptr(alive_), snapshot,
                         asked = std::exchange(waiting_, {})](const core::Result<Table<Job>>& table) {
      if (alive.lock()) {
        under_way_ = false;
        if (!waiting_.empty()) send();
      }
      if (!table) return tell(asked, std::unexpected(table.error()));
      if (!table->unchanged) return tell(asked, table->rows);
      Jobs rows;
      rows.reserve(snapshot->jobs.size());
      for (const auto& [id, job] : snapshot->jobs) rows.push_back(job);
      tell(asked, rows);
    });
  }

  Client& client_;
  Poller& poller_;
  bool under_way_ = false;
  std::vector<Done> waiting_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

/// A gate that is open if its test returns true.
class ReadGate final : public plan::Gate {
 public:
  using Test = std::function<bool()>;
  ReadGate(Test test, std::string what) : test_(std::move(test)), what_(std::move(what)) {}
  [[nodiscard]] bool open() const override { return test_(); }
  [[nodiscard]] std::string describe() const override { return what_; }

 private:
  Test test_;
  std::string what_;
};

}  // namespace

struct Clusters::Impl : std::enable_shared_from_this<Clusters::Impl> {
  Impl(core::Loop& in_loop, core::Random& in_random, core::Logger& in_log, TransportFactory in_factory,
       PollerOptions in_options, ClientOptions in_client)
      : loop(in_loop),
        random(in_random),
        log(in_log),
        factory(std::move(in_factory)),
        options(in_options),
        client_options(std::move(in_client)) {}

  struct Connection {
    Connection(Impl& home, const ClusterKey& cluster, Endpoint to, std::string token_key, std::string as)
        : endpoint(std::move(to)),
          key(std::move(token_key)),
          user(std::move(as)),
          transport(home.factory(endpoint)),
          tokens(home.loop.clock(), key, user),
          client(home.loop, *transport, tokens, home.log, home.client_options_of(endpoint)),
          random(home.random.stream("polls of " + cluster)),
          poller(
              home.loop, *random, home.log, client, [&home] { return ++home.last_round; },
              [&home, cluster](const SnapshotPtr& before, const SnapshotPtr& now) { home.tell(cluster, before, now); },
              home.options),
          job_reads(client, poller) {}

    Endpoint endpoint;
    std::string key;
    std::string user;
    std::unique_ptr<net::HttpTransport> transport;
    Hs256Tokens tokens;
    Client client;
    std::unique_ptr<core::Random> random;
    Poller poller;
    JobReads job_reads;
  };

  [[nodiscard]] ClientOptions client_options_of(const Endpoint& endpoint) const {
    ClientOptions out = client_options;
    out.cluster_name = endpoint.cluster_name;
    return out;
  }

  void tell(const ClusterKey& cluster, const SnapshotPtr& before, const SnapshotPtr& now) {
    const auto self = shared_from_this();
    listeners.tell(difference(cluster, before, now, client_options.job_details));
  }

  /// An accounting database, and the clusters through which it is read.
  struct Database {
    Database(Impl& home, const AccountingKey& key, std::vector<ClusterKey> clusters)
        : over(std::move(clusters)),
          random(home.random.stream("polls of " + key)),
          lists(
              home.loop, *random, [&home, key] { return home.way_to(key); }, [&home] { return ++home.last_round; },
              [&home, key](accounting::List list, bool changed) {
                home.tell_of_list({key, list, changed});
              }) {}

    std::vector<ClusterKey> over;
    std::unique_ptr<core::Random> random;
    accounting::Lists lists;
  };

  void tell_of_list(const ListChange& change) {
    const auto self = shared_from_this();
    list_listeners.tell(change);
  }

  [[nodiscard]] Database* find_database(const AccountingKey& database) const {
    const auto it = databases.find(database);
    return it == databases.end() ? nullptr : it->second.get();
  }

  [[nodiscard]] AccountingClient* way_to(const AccountingKey& database) const {
    const auto rank = [](Connection& connection) {
      const Capabilities* server = connection.client.capabilities();
      if (server == nullptr) return 1;  // slurmrestd is away, or was never asked.
      if (!server->slurmdb) return 0;
      return connection.poller.snapshot()->complete() ? 3 : 2;
    };
    const Database* found = find_database(database);
    if (found == nullptr) return nullptr;
    Connection* best = nullptr;
    for (const ClusterKey& cluster : found->over) {
      Connection* one = find(cluster);
      if (one != nullptr && (best == nullptr || rank(*one) > rank(*best))) best = one;
    }
    return best == nullptr ? nullptr : &best->client.accounting();
  }

  [[nodiscard]] Connection* find(const ClusterKey& cluster) const {
    const auto it = connections.find(cluster);
    return it == connections.end() ? nullptr : it->second.get();
  }

  // --- Gates of clusters and accounting databases --------------------------------------------------------------------

  using Progress = std::optional<accounting::Lists::Progress>;  // nullopt: the cluster or database is not known any more
  using Look = std::function<Progress(const Impl&)>;

  [[nodiscard]] Progress progress(const ClusterKey& cluster) const {
    const Connection* connection = find(cluster);
    if (connection == nullptr) return {};
    const SnapshotPtr& snapshot = connection->poller.snapshot();
    return accounting::Lists::Progress{snapshot->complete(), snapshot->round, snapshot->requested_at};
  }
  [[nodiscard]] Progress progress(const AccountingKey& database, accounting::List list) const {
    const Database* found = find_database(database);
    return found == nullptr ? Progress() : found->lists.progress(list);
  }

  [[nodiscard]] plan::GatePtr from_now(Look look, std::string what) {
    const auto test = [weak = weak_from_this(), look = std::move(look), round = last_round] {
      const auto self = weak.lock();
      const Progress now = self ? look(*self) : Progress();
      return !now || !now->complete || now->round > round;
    };
    return std::make_shared<ReadGate>(test, std::move(what));
  }
  [[nodiscard]] plan::GatePtr after(Look look, core::MonoTime when, std::string what) {
    const auto test = [weak = weak_from_this(), look = std::move(look), when] {
      const auto self = weak.lock();
      const Progress now = self ? look(*self) : Progress();
      if (!now) return true;
      return now->complete ? now->requested_at > when : self->loop.clock().mono() > when;
    };
    return std::make_shared<ReadGate>(test, std::move(what));
  }

  /// Destroys a connection in a later loop iteration, because one of its callbacks may be running.
  void retire(std::unique_ptr<Connection> connection) {
    connection->poller.stop();
    loop.after(core::Duration{0}, [gone = std::shared_ptr<Connection>(std::move(connection))] {});
  }

  core::Loop& loop;
  core::Random& random;
  core::Logger& log;
  TransportFactory factory;
  PollerOptions options;
  ClientOptions client_options;
  std::uint64_t last_round = 0;
  std::map<ClusterKey, std::unique_ptr<Connection>> connections;
  ListenerId last_listener = 0;
  Listeners<Change> listeners;
  Listeners<ListChange> list_listeners;
  std::map<AccountingKey, std::unique_ptr<Database>> databases;
};

Clusters::Clusters(core::Loop& loop, core::Random& random, core::Logger& log, TransportFactory factory, PollerOptions options,
                   ClientOptions client)
    : impl_(std::make_shared<Impl>(loop, random, log, std::move(factory), options, std::move(client))) {}

Clusters::~Clusters() {
  impl_->databases.clear();
  // Callbacks that run while the connections are destroyed must find no connection and no listener.
  const auto connections = std::move(impl_->connections);
  impl_->connections.clear();
  impl_->listeners.clear();
  impl_->list_listeners.clear();
}

void Clusters::set(const ClusterKey& cluster, Endpoint endpoint, std::string token_key, std::string user) {
  SnapshotPtr last_known;
  auto& place = impl_->connections[cluster];
  if (place) {
    if (place->endpoint == endpoint && place->key == token_key && place->user == user) return;
    last_known = place->poller.snapshot();
    impl_->retire(std::move(place));
  }
  place = std::make_unique<Impl::Connection>(*impl_, cluster, std::move(endpoint), std::move(token_key), std::move(user));
  place->poller.start(last_known);
  if (last_known) impl_->tell(cluster, last_known, place->poller.snapshot());
}

void Clusters::remove(const ClusterKey& cluster) {
  const auto it = impl_->connections.find(cluster);
  if (it == impl_->connections.end()) return;
  const SnapshotPtr before = it->second->poller.snapshot();
  impl_->retire(std::move(it->second));
  impl_->connections.erase(it);
  impl_->tell(cluster, before, nothing());
}

bool Clusters::contains(const ClusterKey& cluster) const {
  return impl_->find(cluster) != nullptr;
}

SnapshotPtr Clusters::snapshot(const ClusterKey& cluster) const {
  const auto* connection = impl_->find(cluster);
  return connection == nullptr ? nothing() : connection->poller.snapshot();
}

Client* Clusters::client(const ClusterKey& cluster) {
  auto* connection = impl_->find(cluster);
  return connection == nullptr ? nullptr : &connection->client;
}

void Clusters::set_accounting(const AccountingKey& database, std::vector<ClusterKey> over, std::set<accounting::List> lists) {
  if (lists.empty()) lists = accounting::all_lists();
  auto& place = impl_->databases[database];
  if (place) {
    place->over = std::move(over);
    place->lists.want(std::move(lists));
    return;
  }
  place = std::make_unique<Impl::Database>(*impl_, database, std::move(over));
  place->lists.want(std::move(lists));
  place->lists.start();
}

void Clusters::remove_accounting(const AccountingKey& database) {
  impl_->databases.erase(database);
}

const accounting::Lists* Clusters::lists(const AccountingKey& database) const {
  const auto* found = impl_->find_database(database);
  return found == nullptr ? nullptr : &found->lists;
}

std::vector<ClusterKey> Clusters::clusters_of(const AccountingKey& database) const {
  const auto* found = impl_->find_database(database);
  return found == nullptr ? std::vector<ClusterKey>{} : found->over;
}

AccountingClient* Clusters::accounting(const AccountingKey& database) {
  return impl_->way_to(database);
}

void Clusters::poll_often(const std::string& system) {
  if (auto* connection = impl_->find(system)) connection->poller.poll_often();
  if (auto* database = impl_->find_database(system)) database->lists.poll_often();
}

void Clusters::poll_soon(const ClusterKey& cluster) {
  if (auto* connection = impl_->find(cluster)) connection->poller.poll_soon();
}

void Clusters::poll_soon(const AccountingKey& database, accounting::List list) {
  if (auto* found = impl_->find_database(database)) found->lists.poll_soon(list);
}

void Clusters::poll_all_next(const ClusterKey& cluster) {
  if (auto* connection = impl_->find(cluster)) connection->poller.poll_all_next();
}

void Clusters::mark_stale() {
  // Calls of listeners can remove clusters, so iterate over a copy of the keys.
  std::vector<ClusterKey> known;
  for (const auto& [cluster, connection] : impl_->connections) known.push_back(cluster);
  for (const ClusterKey& cluster : known) {
    if (auto* connection = impl_->find(cluster)) connection->poller.mark_stale();
  }
  known.clear();
  for (const auto& [database, lists] : impl_->databases) known.push_back(database);
  for (const AccountingKey& database : known) {
    if (auto* found = impl_->find_database(database)) found->lists.mark_stale();
  }
}

void Clusters::live_jobs(const ClusterKey& cluster, Client::Done<std::vector<std::shared_ptr<const Job>>> done) {
  auto* connection = impl_->find(cluster);
  if (connection == nullptr) {
    impl_->loop.after(core::Duration{0},
                      [done = std::move(done)] { done(core::fail(core::ErrorCode::kUnavailable, nothing()->error)); });
    return;
  }
  connection->job_reads.ask(std::move(done));
}

plan::GatePtr Clusters::gate_from_now(const ClusterKey& cluster, std::string what) {
  if (auto* connection = impl_->find(cluster)) connection->poller.wrote(impl_->loop.clock().mono());
  return impl_->from_now([cluster](const Impl& impl) { return impl.progress(cluster); }, std::move(what));
}

plan::GatePtr Clusters::gate_after(const ClusterKey& cluster, core::MonoTime when, std::string what) {
  if (auto* connection = impl_->find(cluster)) connection->poller.wrote(when);
  return impl_->after([cluster](const Impl& impl) { return impl.progress(cluster); }, when, std::move(what));
}

plan::GatePtr Clusters::gate_from_now(const AccountingKey& database, accounting::List list, std::string what) {
  if (auto* found = impl_->find_database(database)) found->lists.wrote(list, impl_->loop.clock().mono());
  return impl_->from_now([database, list](const Impl& impl) { return impl.progress(database, list); }, std::move(what));
}

plan::GatePtr Clusters::gate_after(const AccountingKey& database, accounting::List list, core::MonoTime when,
                                   std::string what) {
  if (auto* found = impl_->find_database(database)) found->lists.wrote(list, when);
  return impl_->after([database, list](const Impl& impl) { return impl.progress(database, list); }, when, std::move(what));
}

Clusters::ListenerId Clusters::listen(Listener listener) {
  const ListenerId id = ++impl_->last_listener;
  impl_->listeners.add(id, std::move(listener));
  return id;
}

Clusters::ListenerId Clusters::listen_to_lists(ListListener listener) {
  const ListenerId id = ++impl_->last_listener;
  impl_->list_listeners.add(id, std::move(listener));
  return id;
}

void Clusters::unlisten(ListenerId id) {
  impl_->listeners.remove(id);
  impl_->list_listeners.remove(id);
}

}  // namespace slurm
