// The parts that all acts on an accounting database share: their start, their end with gates, and the batches of writes.
//
// Folder src/slurm/rest: clients of slurmrestd, the code that depends on Slurm's release, and the targets that carry out acts.
// Uses net. The targets also use slurm/snapshot.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/loop.hpp"
#include "plan/executor.hpp"
#include "slurm/accounting/rows.hpp"
#include "slurm/snapshot/registry.hpp"

namespace slurm {

/// Reports whether slurmdbd answered the request and refused it. False if slurmdbd did not answer.
[[nodiscard]] bool is_refusal(const core::Error& error);

/// Groups the writes of each database into batches. One batch of a database is under way at a time. Writes that arrive
/// meanwhile form the next batch.
template <class Write>
class Batches {
 public:
  /// Returns true if no batch of the database is under way. The caller must then begin one.
  bool add(const AccountingKey& database, Write write) {
    const auto [waiting, idle] = waiting_.try_emplace(database);
    waiting->second.push_back(std::move(write));
    return idle;
  }
  /// Returns the next batch. An empty batch means that no batch of the database is under way any more.
  std::vector<Write> next(const AccountingKey& database) {
    const auto waiting = waiting_.find(database);
    std::vector<Write> out = std::exchange(waiting->second, {});
    if (out.empty()) waiting_.erase(waiting);
    return out;
  }

 private:
  std::map<AccountingKey, std::vector<Write>> waiting_;
};

class AccountingActs : public std::enable_shared_from_this<AccountingActs> {
 public:
  using Done = plan::Target::Done;
  template <class Row>
  using Found = std::vector<std::shared_ptr<const Row>>;

 protected:
  AccountingActs(core::Loop& in_loop, Clusters& in_clusters) : loop(in_loop), clusters(in_clusters) {}
  ~AccountingActs() = default;

  /// An act under way.
  struct Work {
    AccountingKey database;
    std::vector<accounting::List> lists;  ///< The lists that show the outcome of the act.
    std::string what;                     ///< Names the act in messages of gates: "write QOS gpu".
    Done done;
    std::optional<core::MonoTime> wrote{};  ///< When a write was sent; nullopt: none was.
  };
  using WorkPtr = std::shared_ptr<Work>;

  /// Wraps a callback, so that it does nothing once this object is gone.
  template <class F>
  auto while_here(F callback) {
    return [weak = weak_from_this(), callback = std::move(callback)](auto&&... values) {
      if (const auto self = weak.lock()) callback(std::forward<decltype(values)>(values)...);
    };
  }

  /// Calls `then` in a later loop iteration, or fails the act with kUnavailable if one of its lists is incomplete by then.
  void begin(Work work, std::function<void(const WorkPtr&)> then);
  void fail(const WorkPtr& work, core::Error error);
  /// Ends the act with `value`. The act's gates wait for the next polls of the lists, because the current lists can be older
  /// than the write.
  void succeed(const WorkPtr& work, core::Json value);
  /// Notes that a write is sent now.
  void note_write(const WorkPtr& work) { work->wrote = loop.clock().mono(); }
  /// Returns the database's client. If there is none, fails the act and returns null.
  AccountingClient* client(const WorkPtr& work);
  [[nodiscard]] static core::Error no_client();
  /// Returns the error kBusy for a cluster that might use an object but cannot be asked, because its slurmrestd is not known.
  [[nodiscard]] static core::Error unknown_use(const ClusterKey& cluster);

  using Jobs = Found<accounting::JobUse>;
  /// Reads the jobs of each slurmctld of the database. Error: unknown_use() if a slurmctld cannot be asked.
  void with_jobs(const AccountingKey& database, std::function<void(const core::Result<Jobs>&)> then);
  /// Returns the error kBusy, with the jobs, if `uses` is true for an unfinished job; otherwise nullopt.
  [[nodiscard]] static std::optional<core::Error> busy(const Jobs& jobs,
                                                       const std::function<bool(const accounting::JobUse&)>& uses);

  core::Loop& loop;
  Clusters& clusters;

 private:
  void add_jobs(std::vector<ClusterKey> left, Jobs found, std::function<void(const core::Result<Jobs>&)> then);
};

}  // namespace slurm
