// The registry of Slurm, in two scopes: clusters and accounting databases. It keeps the connections, what each last said, and
// the listeners.
//
//   slurm::Clusters clusters(loop, random, log, [&](const slurm::Endpoint& e) { return make_transport(e); });
//   clusters.set("default/slurm", {"slurm-restapi.default", 6820}, key_bytes);
//   clusters.listen([&](const slurm::Change& change) { wake(change.cluster, change.nodes); });
//   clusters.snapshot("default/slurm")->node("cpu-0");
//
//   clusters.set_accounting("db", {"default/slurm"});
//   clusters.lists("db")->qos();
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/log.hpp"
#include "core/loop.hpp"
#include "core/random.hpp"
#include "net/http.hpp"
#include "plan/executor.hpp"
#include "slurm/accounting/lists.hpp"
#include "slurm/rest/client.hpp"
#include "slurm/snapshot/poller.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace slurm {

/// Where a slurmrestd listens.
struct Endpoint {
  std::string host;
  std::uint16_t port = 6820;
  std::string cluster_name{};  ///< ClusterName of the cluster that it serves, if that is known: ClientOptions::cluster_name.
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

/// One step from a snapshot to the next. Comes for every poll that ended, also when nothing moved: gates wait for that.
struct Change {
  ClusterKey cluster;
  SnapshotPtr before, now;
  std::vector<std::string> nodes;  ///< Whose record, or whose holding jobs, came, changed or went. Sorted.
  std::vector<std::int64_t> jobs;  ///< That came, changed or went. Sorted; only with ClientOptions::job_details.
  bool partitions = false;         ///< Some partition came, changed or went.
  bool health = false;             ///< Completeness, error, capabilities, or who holds what cannot be told, changed.
};

/// A poll of a list of an accounting database has ended, also when nothing changed: gates wait for that.
struct ListChange {
  AccountingKey database;
  accounting::List list{};
  bool changed = false;  ///< Its rows, health or error changed.
};

class Clusters {
 public:
  using TransportFactory = std::function<std::unique_ptr<net::HttpTransport>(const Endpoint&)>;
  using Listener = std::function<void(const Change&)>;
  using ListListener = std::function<void(const ListChange&)>;
  using ListenerId = std::uint64_t;

  Clusters(core::Loop& loop, core::Random& random, core::Logger& log, TransportFactory factory, PollerOptions options = {},
           ClientOptions client = {});
  ~Clusters();
  Clusters(const Clusters&) = delete;
  Clusters& operator=(const Clusters&) = delete;

  /// Adds a cluster, or changes its endpoint or key; the same again does nothing. A new endpoint or key keeps the contents as
  /// kStale until the new connection has answered. `token_key`: bytes of the HS256 key. `user`: who writes (SlurmUser).
  void set(const ClusterKey& cluster, Endpoint endpoint, std::string token_key, std::string user = "slurm");
  /// Listeners get a last change, to kNone. Unknown clusters are ignored.
  void remove(const ClusterKey& cluster);
  [[nodiscard]] bool contains(const ClusterKey& cluster) const;

  /// Never null: Health::kNone for a cluster that is not known.
  [[nodiscard]] SnapshotPtr snapshot(const ClusterKey& cluster) const;
  /// Null for a cluster that is not known. Good until the loop runs on.
  [[nodiscard]] Client* client(const ClusterKey& cluster);

  /// Adds an accounting database, or changes the clusters over whose slurmrestds it is asked; the same again does nothing.
  void set_accounting(const AccountingKey& database, std::vector<ClusterKey> over);
  void remove_accounting(const AccountingKey& database);
  /// Returns what it last said, or null for a database that is not known. Good until the loop runs on.
  [[nodiscard]] const accounting::Lists* lists(const AccountingKey& database) const;
  /// Returns the client of the first of its clusters that answers and whose slurmrestd serves accounting, else of one that may.
  /// Null if none of the clusters is known. Good until the loop runs on.
  [[nodiscard]] AccountingClient* accounting(const AccountingKey& database);

  /// A plan waits on a cluster, or on an accounting database (Plan::waits_on): polls come faster for the next two seconds.
  void poll_often(const std::string& system);
  /// Something was written: polls as soon as the cost of the last poll allows.
  void poll_soon(const ClusterKey& cluster);
  void poll_soon(const AccountingKey& database, accounting::List list);
  /// What it says is not so, or may be so no more: the next poll asks for all there is, also for what is said to be unchanged.
  void poll_all_next(const ClusterKey& cluster);
  /// What was read until now of any cluster or database is stale, until a poll that begins from now on has brought it: another
  /// process may have written later.
  void mark_stale();

  /// All jobs as they are now: asked live, cheap when nothing changed since the snapshot. One request serves all who asked
  /// before it was sent; errors as Client::jobs.
  void live_jobs(const ClusterKey& cluster, Client::Done<std::vector<std::shared_ptr<const Job>>> done);

  /// Open once a snapshot is in whose requests started after now, or the cluster was removed, or Slurm is found away: what is
  /// known of it then is stale, from which nothing is concluded, and the next complete snapshot is a later one (Poller::wrote).
  /// A key must not be held by a Slurm that may never come back.
  [[nodiscard]] plan::GatePtr gate_from_now(const ClusterKey& cluster, std::string what);
  /// Open once a snapshot is in whose requests started after `when`, or the cluster was removed, or Slurm is away after `when`.
  [[nodiscard]] plan::GatePtr gate_after(const ClusterKey& cluster, core::MonoTime when, std::string what);

  /// The same for a list of an accounting database.
  [[nodiscard]] plan::GatePtr gate_from_now(const AccountingKey& database, accounting::List list, std::string what);
  [[nodiscard]] plan::GatePtr gate_after(const AccountingKey& database, accounting::List list, core::MonoTime when,
                                         std::string what);

  ListenerId listen(Listener listener);
  ListenerId listen_to_lists(ListListener listener);
  void unlisten(ListenerId id);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace slurm
