#include "slurm/rest/accounting_target.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "slurm/accounting/acts.hpp"
#include "slurm/rest/accounting_acts.hpp"
#include "slurm/rest/entity_acts.hpp"

namespace slurm {
namespace {

using core::ErrorCode;

using QosRows = std::vector<std::shared_ptr<const accounting::Qos>>;

/// Returns the QOS of this name, or nullopt.
std::optional<accounting::Qos> find_qos(const QosRows& rows, std::string_view name) {
  const auto it =
      std::ranges::find_if(rows, [&](const auto& row) { return accounting::folded(row->name) == accounting::folded(name); });
  return it == rows.end() ? std::nullopt : std::optional(**it);
}

/// Writes and deletes QOS.
class QosActs final : public AccountingActs {
 public:
  QosActs(core::Loop& in_loop, Clusters& in_clusters) : AccountingActs(in_loop, in_clusters) {}

  void write(const std::shared_ptr<const WriteQos>& act, Done done) {
    begin({act->database, {accounting::List::kQos}, "write QOS " + act->name, std::move(done)},
          [this, act](const WorkPtr& work) {
            if (!batches_.add(act->database, {work, act})) return;
            loop.after(core::Duration{0}, while_here([this, database = act->database] { next_batch(database); }));
          });
  }

  /// `asked`: when the act arrived. The evidence must be valid at that time. It may expire while the act waits for earlier
  /// acts, because the act reads everything live when it runs.
  void remove(const std::shared_ptr<const DeleteQos>& act, core::MonoTime asked, Done done) {
    const std::string name = act->evidence.name();
    begin({act->evidence.database(), {accounting::List::kQos}, "delete QOS " + name, std::move(done)},
          [this, act, asked, name](const WorkPtr& work) {
            if (!act->evidence.good_at(asked))
              return fail(work, {ErrorCode::kExpired, "slurmdbd's answer about it is too old", 0, {}, {}});
            AccountingClient* to = client(work);
            if (to == nullptr) return;
            to->qos(while_here([this, act, work](const core::Result<QosRows>& rows) {
              if (!rows) return fail(work, rows.error());
              const std::optional<accounting::Qos> live = find_qos(*rows, act->evidence.name());
              if (!live) return succeed(work, {{"deleted", false}});
              if (live->id != act->evidence.id())
                return fail(work, {ErrorCode::kConflict, "another one has replaced it", 0, {}, {}});
              look_at_lists(work, *live, *rows);
            }));
          });
  }

 private:
  // --- Write ---

  struct Write {
    WorkPtr work;
    std::shared_ptr<const WriteQos> act;
    accounting::Settings found{};  ///< The settings in slurmdbd before the write.
  };
  /// Writes of one database that are carried out together. They share the reads, and the new QOS share a request.
  struct Batch {
    AccountingKey database;
    std::vector<Write> writes;
    std::size_t open = 0;  ///< Requests under way.
  };
  using BatchPtr = std::shared_ptr<Batch>;

  void next_batch(const AccountingKey& database) {
    const auto batch = std::make_shared<Batch>(Batch{database, batches_.next(database)});
    if (!batch->writes.empty()) read(batch, &QosActs::send);
  }

  /// Reads the QOS of the batch, and calls `then`. If reading fails, the batch ends.
  void read(const BatchPtr& batch, void (QosActs::*then)(const BatchPtr&, const QosRows&)) {
    const auto on_rows = while_here([this, batch, then](const core::Result<QosRows>& rows) {
      if (rows) return (this->*then)(batch, *rows);
      end(batch, rows.error());
    });
    AccountingClient* to = clusters.accounting(batch->database);
    if (to == nullptr) return end(batch, no_client());
    if (batch->writes.size() > 1) return to->qos(on_rows);
    to->qos(batch->writes.front().act->name, [on_rows](core::Result<accounting::Qos> qos) {
      if (qos) return on_rows(core::Result<QosRows>(QosRows{std::make_shared<accounting::Qos>(*std::move(qos))}));
      if (qos.error().code == ErrorCode::kNotFound) return on_rows(core::Result<QosRows>());
      on_rows(core::Result<QosRows>(std::unexpected(qos.error())));
    });
  }

  /// Fails the remaining writes of the batch, and begins the next batch.
  void end(const BatchPtr& batch, const core::Error& error) {
    for (const Write& each : std::exchange(batch->writes, {})) fail(each.work, error);
    next_batch(batch->database);
  }

  void send(const BatchPtr& batch, const QosRows& rows) {
    std::vector<Write> created, changed;
    for (Write& each : std::exchange(batch->writes, {})) {
      const std::optional<accounting::Qos> live = find_qos(rows, each.act->name);
      if (each.act->id == 0 && live) {
        fail(each.work, {ErrorCode::kConflict, "slurmdbd already has one of that name", 0, {}, {}});
      } else if (each.act->id != 0 && !live) {
        fail(each.work, {ErrorCode::kConflict, "it is gone", 0, {}, {}});
      } else if (live && live->id != each.act->id) {
        fail(each.work, {ErrorCode::kConflict, "another one has replaced it", 0, {}, {}});
      } else if (live) {
        each.found = accounting::settings_of(*live);
        if (accounting::differences(each.act->settings, each.found).empty()) {
          succeed(each.work, {{"written", false}});
        } else {
          changed.push_back(std::move(each));
        }
      } else {
        // As in sacctmgr, the name is the default description of a new QOS.
        each.found = {{"Description", each.act->name}};
        created.push_back(std::move(each));
      }
    }
    // This count keeps the batch open until all requests were sent.
    batch->open = 1;
    if (!created.empty()) post(batch, std::move(created));
    for (Write& each : changed) post(batch, {std::move(each)});
    answered(batch);
  }

  /// Sends one request with all these writes.
  void post(const BatchPtr& batch, std::vector<Write> writes) {
    AccountingClient* to = clusters.accounting(batch->database);
    if (to == nullptr) {
      for (const Write& each : writes) fail(each.work, no_client());
      return;
    }
    std::vector<AccountingClient::QosWrite> rows;
    for (const Write& each : writes) {
      note_write(each.work);
      rows.push_back({each.act->name, each.found, each.act->settings});
    }
    ++batch->open;
    to->write_qos(std::move(rows), while_here([this, batch, writes = std::move(writes)](const core::Result<void>& result) {
                    if (result) {
                      batch->writes.insert(batch->writes.end(), writes.begin(), writes.end());
                    } else if (writes.size() > 1 && is_refusal(result.error())) {
                      // slurmdbd has rolled back all writes because of one of them. Send each write alone.
                      for (const Write& each : writes) post(batch, {each});
                    } else {
                      for (const Write& each : writes) fail(each.work, result.error());
                    }
                    answered(batch);
                  }));
  }

  /// After the last reply, reads back what was written.
  void answered(const BatchPtr& batch) {
    if (--batch->open > 0) return;
    if (batch->writes.empty()) return next_batch(batch->database);
    read(batch, &QosActs::compare);
  }

  /// Compares the wanted with the stored QOS, because slurmdbd reports success for some writes that it drops wholly or partly.
  void compare(const BatchPtr& batch, const QosRows& rows) {
    for (const Write& each : std::exchange(batch->writes, {})) {
      const std::optional<accounting::Qos> live = find_qos(rows, each.act->name);
      if (!live) {
        fail(each.work, {ErrorCode::kInvalid, "slurmdbd reported success, and has no such QOS", 0, {}, {}});
        continue;
      }
      std::string lost;
      for (const accounting::Difference& difference :
           accounting::differences(each.act->settings, accounting::settings_of(*live)))
        lost += (lost.empty() ? "" : "; ") + difference.text();
      if (!lost.empty()) {
        fail(each.work, {ErrorCode::kInvalid, "slurmdbd reported success, and stored something else: " + lost, 0, {}, {}});
      } else {
        succeed(each.work, {{"written", true}, {"id", live->id}});
      }
    }
    next_batch(batch->database);
  }

  // --- Delete ---

  void look_at_lists(const WorkPtr& work, const accounting::Qos& qos, const QosRows& all) {
    AccountingClient* to = client(work);
    if (to == nullptr) return;
    to->own_associations(while_here([this, work, qos, all](const core::Result<Found<accounting::Association>>& rows) {
      if (!rows) return fail(work, rows.error());
      std::map<std::string, std::shared_ptr<const accounting::Qos>> by_name;
      for (const auto& row : all) by_name.emplace(row->name, row);
      std::map<std::string, std::shared_ptr<const accounting::Association>> by_key;
      for (const auto& row : *rows) by_key.emplace(row->key(), row);
      accounting::View view;
      view.qos.rows = std::make_shared<const decltype(by_name)>(std::move(by_name));
      view.associations.rows = std::make_shared<const decltype(by_key)>(std::move(by_key));
      if (std::string use = use_of_qos(qos.name, view); !use.empty())
        return fail(work, {ErrorCode::kBusy, std::move(use), 0, {}, {}});
      look_at_jobs(work, qos.name, qos.id);
    }));
  }

  /// Asks each slurmctld for jobs and partitions with the QOS, and then asks slurmdbd. slurmdbd also knows the jobs of clusters
  /// that the operator does not know, but has no record of a job that never became eligible.
  void look_at_jobs(const WorkPtr& work, const std::string& name, std::int64_t id) {
    with_jobs(work->database, [this, work, name, id](const core::Result<Jobs>& jobs) {
      if (!jobs) return fail(work, jobs.error());
      if (!used(work, name, *jobs)) look_at_partitions(work, name, id, clusters.clusters_of(work->database));
    });
  }

  /// Fails the act if a partition has the QOS, because slurmctld does not start if slurmdbd lacks the QOS of a partition
  /// (_build_single_partitionline_info() in slurmctld's read_config.c).
  void look_at_partitions(const WorkPtr& work, const std::string& name, std::int64_t id, std::vector<ClusterKey> left) {
    if (left.empty()) return look_at_records(work, name, id, {"suspended", "pending", "running"});
    const ClusterKey cluster = std::move(left.back());
    left.pop_back();
    Client* to = clusters.client(cluster);
    if (to == nullptr) return fail(work, unknown_use(cluster));
    to->partition_rules(while_here(
        [this, work, name, id, cluster, left = std::move(left)](const core::Result<Found<accounting::PartitionRules>>& rows) {
          if (!rows) return fail(work, rows.error().with("partitions of cluster " + cluster));
          for (const auto& row : *rows) {
            if (accounting::folded(row->qos) == accounting::folded(name))
              return fail(work,
                          {ErrorCode::kBusy, "it is the QOS of partition " + row->name + " of cluster " + cluster, 0, {}, {}});
          }
          look_at_partitions(work, name, id, left);
        }));
  }

  void look_at_records(const WorkPtr& work, const std::string& name, std::int64_t id, std::vector<std::string> states) {
    if (states.empty()) return send_deletion(work, name);
    AccountingClient* to = client(work);
    if (to == nullptr) return;
    const std::string state = std::move(states.back());
    states.pop_back();
    to->jobs_in_qos(id, state, while_here([this, work, name, id, states = std::move(states)](const core::Result<Jobs>& rows) {
                      if (!rows) return fail(work, rows.error());
                      if (!used(work, name, *rows)) look_at_records(work, name, id, states);
                    }));
  }

  /// Fails the act and returns true if an unfinished job uses the QOS.
  bool used(const WorkPtr& work, const std::string& name, const Jobs& jobs) {
    std::optional<core::Error> error =
        busy(jobs, [&](const accounting::JobUse& job) { return accounting::listed(job.qos, name); });
    if (error) fail(work, *error);
    return error.has_value();
  }

  void send_deletion(const WorkPtr& work, const std::string& name) {
    AccountingClient* to = client(work);
    if (to == nullptr) return;
    note_write(work);
    to->delete_qos(name, while_here([this, work, name](const core::Result<void>& result) {
                     if (!result) return fail(work, result.error());
                     look_back(work, name);
                   }));
  }

  void look_back(const WorkPtr& work, const std::string& name) {
    AccountingClient* to = client(work);
    if (to == nullptr) return;
    to->qos(name, while_here([this, work](const core::Result<accounting::Qos>& live) {
              if (live) return fail(work, {ErrorCode::kInvalid, "slurmdbd reported success, and still has it", 0, {}, {}});
              if (live.error().code != ErrorCode::kNotFound) return fail(work, live.error());
              succeed(work, {{"deleted", true}});
            }));
  }

  Batches<Write> batches_;
};

/// Runs the writes of a database together, but each deletion alone. A deletion checks who uses the object, and no write may
/// begin to use the object meanwhile. Two deletions at once could delete both QOS of an association that has only these two.
class Turns : public std::enable_shared_from_this<Turns> {
 public:
  using Done = plan::Target::Done;
  using Start = std::function<void(Done)>;

  /// Calls each `start` in the order of the take() calls, after earlier work. `alone`: no other write or deletion may run
  /// meanwhile.
  void take(const AccountingKey& database, bool alone, Done done, Start start) {
    lines_[database].waiting.push_back({alone, std::move(done), std::move(start)});
    next(database);
  }

 private:
  struct Turn {
    bool alone = false;
    Done done;
    Start start;
  };
  struct Line {
    std::deque<Turn> waiting;
    std::size_t running = 0;
    bool alone = false;  ///< A deletion is under way. No other act may run beside it.
  };

  void next(const AccountingKey& database) {
    Line& line = lines_[database];
    while (!line.waiting.empty() && !line.alone && (line.running == 0 || !line.waiting.front().alone)) {
      Turn turn = std::move(line.waiting.front());
      line.waiting.pop_front();
      ++line.running;
      line.alone = turn.alone;
      turn.start([weak = weak_from_this(), database, done = std::move(turn.done)](plan::ActResult result) {
        done(std::move(result));
        const auto self = weak.lock();
        if (!self) return;
        Line& of = self->lines_[database];
        --of.running;
        of.alone = false;
        self->next(database);
      });
    }
  }

  std::map<AccountingKey, Line> lines_;
};

}  // namespace

struct AccountingTarget::Impl {
  std::shared_ptr<QosActs> qos;
  std::shared_ptr<EntityActs> entities;
  std::shared_ptr<Turns> turns = std::make_shared<Turns>();
};

AccountingTarget::AccountingTarget(core::Loop& loop, Clusters& clusters)
    : impl_(std::make_unique<Impl>(std::make_shared<QosActs>(loop, clusters), std::make_shared<EntityActs>(loop, clusters))) {
  const Impl* impl = impl_.get();
  const core::Clock* clock = &loop.clock();
  carries_out<WriteQos>([impl](const auto& act, Done done) {
    impl->turns->take(act->database, false, std::move(done),
                      [qos = impl->qos, act](Done then) { qos->write(act, std::move(then)); });
  });
  carries_out<DeleteQos>([impl, clock](const auto& act, Done done) {
    impl->turns->take(act->evidence.database(), true, std::move(done),
                      [qos = impl->qos, act, asked = clock->mono()](Done then) { qos->remove(act, asked, std::move(then)); });
  });
  carries_out<WriteEntity>([impl](const auto& act, Done done) {
    impl->turns->take(act->database, false, std::move(done),
                      [entities = impl->entities, act](Done then) { entities->write(act, std::move(then)); });
  });
  carries_out<DeleteEntity>([impl, clock](const auto& act, Done done) {
    impl->turns->take(
        act->evidence.database(), true, std::move(done),
        [entities = impl->entities, act, asked = clock->mono()](Done then) { entities->remove(act, asked, std::move(then)); });
  });
}

AccountingTarget::~AccountingTarget() = default;

}  // namespace slurm
