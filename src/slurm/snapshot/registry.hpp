// The registry of Slurm's clusters and accounting databases. Owns the connections to them, their last contents, and the
// listeners.
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
#include <set>
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

/// The address of a slurmrestd.
struct Endpoint {
  std::string host;
  std::uint16_t port = 6820;
  std::string cluster_name{};  ///< ClusterName of the cluster behind the slurmrestd, if known.
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

/// The difference between two snapshots. Sent after every poll, even if nothing changed, because gates wait for a poll.
struct Change {
  ClusterKey cluster;
  SnapshotPtr before, now;
  std::vector<std::string> nodes;  ///< Nodes that were added, changed or removed, or whose jobs changed. Sorted.
  std::vector<std::int64_t> jobs;  ///< Jobs that were added, changed or removed. Sorted; only with ClientOptions::job_details.
  bool partitions = false;         ///< A partition was added, changed or removed.
  bool health = false;             ///< Completeness, error, capabilities, or the jobs with unreadable nodes have changed.
};

/// A poll of a list of an accounting database has ended. Sent even if nothing changed, because gates wait for a poll.
struct ListChange {
  AccountingKey database;
  accounting::List list{};
  bool changed = false;  ///< The rows, the health or the error of the list changed.
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

  /// Adds a cluster, or changes its endpoint, key or user. Does nothing if none of them differs. After a change, the contents
  /// stay as kStale until the new connection has answered. `token_key` has the bytes of the HS256 key. `user` is the user for
  /// writes (SlurmUser).
  void set(const ClusterKey& cluster, Endpoint endpoint, std::string token_key, std::string user = "slurm");
  /// Removes a cluster, and sends listeners a last Change, whose `now` has Health::kNone. Ignores unknown clusters.
  void remove(const ClusterKey& cluster);
  [[nodiscard]] bool contains(const ClusterKey& cluster) const;

  /// Returns the last snapshot. It is never null: an unknown cluster has Health::kNone.
  [[nodiscard]] SnapshotPtr snapshot(const ClusterKey& cluster) const;
  /// Returns the client of the cluster, or null for an unknown cluster. Valid in the current loop iteration.
  [[nodiscard]] Client* client(const ClusterKey& cluster);

  /// Adds or changes an accounting database. `over`: the clusters whose slurmrestds are asked. `lists`: the lists that are
  /// polled (empty: all lists). Does nothing if neither differs.
  void set_accounting(const AccountingKey& database, std::vector<ClusterKey> over, std::set<accounting::List> lists = {});
  void remove_accounting(const AccountingKey& database);
  /// Returns the last contents of the database, or null if it is unknown. Valid in the current loop iteration.
  [[nodiscard]] const accounting::Lists* lists(const AccountingKey& database) const;
  /// Returns the clusters whose slurmrestds are asked about the database.
  [[nodiscard]] std::vector<ClusterKey> clusters_of(const AccountingKey& database) const;
  /// Returns the client of the first cluster of the database that answers and whose slurmrestd serves accounting. If there is
  /// none, prefers a slurmrestd that serves accounting, then one that might, then any. Returns null if none of the clusters is
  /// known. Valid in the current loop iteration.
  [[nodiscard]] AccountingClient* accounting(const AccountingKey& database);

  /// Makes polls more frequent for two seconds. Call it when a plan waits on the cluster or accounting database
  /// (Plan::waits_on).
  void poll_often(const std::string& system);
  /// Polls as soon as PollerOptions::often_cost_factor allows, or, after a failure, when the pause ends. Call it after a write.
  void poll_soon(const ClusterKey& cluster);
  void poll_soon(const AccountingKey& database, accounting::List list);
  /// Makes the next poll read all tables, even those that slurmctld reports as unchanged. Call it when the contents are wrong,
  /// or might be.
  void poll_all_next(const ClusterKey& cluster);
  /// Makes the contents of all clusters and databases stale until a later poll has read them. Call it when another process
  /// might have written.
  void mark_stale();

  /// Reads all jobs live. Takes little time if nothing changed since the snapshot. One request serves all callers that asked
  /// before it was sent. Errors are those of Client::jobs.
  void live_jobs(const ClusterKey& cluster, Client::Done<std::vector<std::shared_ptr<const Job>>> done);

  /// Returns a gate that opens in one of three cases: a snapshot exists whose requests started after now, the cluster was
  /// removed, or Slurm does not answer (a key must not wait forever). In the last case the contents are stale and prove
  /// nothing, and they stay stale until a snapshot that was requested after now is complete (Poller::wrote).
  [[nodiscard]] plan::GatePtr gate_from_now(const ClusterKey& cluster, std::string what);
  /// Returns a gate as gate_from_now does, with `when` in place of now. Before `when`, the gate stays closed even if Slurm does
  /// not answer.
  [[nodiscard]] plan::GatePtr gate_after(const ClusterKey& cluster, core::MonoTime when, std::string what);

  /// Return gates for a list of an accounting database. They open under the same conditions as the gates of a cluster.
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
