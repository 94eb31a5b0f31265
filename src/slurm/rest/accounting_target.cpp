#include "slurm/rest/accounting_target.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/retry.hpp"
#include "slurm/accounting/acts.hpp"

namespace slurm {
namespace {

using core::ErrorCode;
using plan::ActResult;

/// slurmrestd does not notice that the client is gone. A write may take effect until slurmrestd's own timeout ends, which is a
/// little longer than the client's.
constexpr core::Duration kWriteSettled{3000};
constexpr core::Duration kLongestAccountingWrite{11000};

using QosRows = std::vector<std::shared_ptr<const accounting::Qos>>;

/// Reports whether slurmdbd has refused a request, rather than not answered.
bool is_refusal(const core::Error& error) {
  const core::Retry retry = core::retry_of(error.code);
  return retry != core::Retry::kLater && retry != core::Retry::kSettle;
}

/// Returns the QOS of this name, or nullopt.
std::optional<accounting::Qos> find_qos(const QosRows& rows, std::string_view name) {
  const auto it =
      std::ranges::find_if(rows, [&](const auto& row) { return accounting::folded(row->name) == accounting::folded(name); });
  return it == rows.end() ? std::nullopt : std::optional(**it);
}

}  // namespace

struct AccountingTarget::Impl : std::enable_shared_from_this<AccountingTarget::Impl> {
  Impl(core::Loop& in_loop, Clusters& in_clusters) : loop(in_loop), clusters(in_clusters) {}

  /// An act under way.
  struct Work {
    AccountingKey database;
    std::string what;  ///< For gates: "write QOS gpu".
    Done done;
    std::optional<core::MonoTime> wrote{};  ///< When a write was sent.
  };
  using WorkPtr = std::shared_ptr<Work>;
  static constexpr accounting::List kList = accounting::List::kQos;

  void fail(const WorkPtr& work, core::Error error) {
    ActResult result{std::unexpected(std::move(error)), {}};
    if (core::retry_of(error.code) == core::Retry::kSettle) {
      const core::MonoTime now = loop.clock().mono();
      const core::MonoTime settled = std::max(now + kWriteSettled, work->wrote.value_or(now) + kLongestAccountingWrite);
      result.gates.push_back(clusters.gate_after(work->database, kList, settled, work->what + " (reply lost)"));
    } else if (work->wrote) {
      result.gates.push_back(clusters.gate_from_now(work->database, kList, work->what));
    }
    if (work->wrote) clusters.poll_soon(work->database, kList);
    work->done(std::move(result));
  }

  /// The gate waits for the next list, because the current one may be older than the result.
  void succeed(const WorkPtr& work, core::Json value) {
    ActResult result{std::move(value), {clusters.gate_from_now(work->database, kList, work->what)}};
    clusters.poll_soon(work->database, kList);
    work->done(std::move(result));
  }

  /// Returns the database's client. Without one, fails the act and returns null.
  AccountingClient* client(const WorkPtr& work) {
    AccountingClient* found = clusters.accounting(work->database);
    if (found == nullptr) fail(work, no_client());
    return found;
  }
  static core::Error no_client() {
    return {ErrorCode::kUnavailable, "no slurmrestd of a cluster with this Accounting is known", 0, {}, {}};
  }

  /// Calls `then` on the loop, unless the list of QOS is incomplete.
  void begin(const AccountingKey& database, std::string what, Done done, std::function<void(Impl&, const WorkPtr&)> then) {
    auto work = std::make_shared<Work>(Work{database, std::move(what), std::move(done)});
    loop.after(core::Duration{0}, [weak = weak_from_this(), work, then = std::move(then)] {
      const auto self = weak.lock();
      if (!self) return;
      const accounting::Lists* lists = self->clusters.lists(work->database);
      if (lists == nullptr || !lists->qos().complete()) {
        const std::string why = lists == nullptr ? "it is not known" : lists->qos().error;
        return self->fail(work, {ErrorCode::kUnavailable, "slurmdbd does not answer: " + why, 0, {}, {}});
      }
      then(*self, work);
    });
  }

  /// Reads the QOS and calls `then` with it, or with nullopt if there is none. Other errors fail the act.
  void with_qos(const WorkPtr& work, const std::string& name,
                std::function<void(Impl&, const std::optional<accounting::Qos>&)> then) {
    AccountingClient* to = client(work);
    if (to == nullptr) return;
    to->qos(name, [weak = weak_from_this(), work, then = std::move(then)](core::Result<accounting::Qos> qos) {
      const auto self = weak.lock();
      if (!self) return;
      if (qos) return then(*self, *qos);
      if (qos.error().code == ErrorCode::kNotFound) return then(*self, std::nullopt);
      self->fail(work, qos.error());
    });
  }

  // --- Write ---

  struct Write {
    WorkPtr work;
    std::shared_ptr<const WriteQos> act;
    accounting::Settings found{};  ///< What slurmdbd had before.
  };
  /// Writes of one database that are carried out together.
  struct Batch {
    AccountingKey database;
    std::vector<Write> writes;
    std::size_t open = 0;  ///< Requests under way.
  };
  using BatchPtr = std::shared_ptr<Batch>;

  /// Writes that come while a batch of their database is under way form the next batch. The writes of a batch share its reads,
  /// and its new QOS share a request.
  void write(const std::shared_ptr<const WriteQos>& act, Done done) {
    begin(act->database, "write QOS " + act->name, std::move(done), [act](Impl& self, const WorkPtr& work) {
      const auto [waiting, idle] = self.waiting_writes.try_emplace(act->database);
      waiting->second.push_back({work, act});
      if (!idle) return;
      self.loop.after(core::Duration{0}, [weak = self.weak_from_this(), database = act->database] {
        if (const auto me = weak.lock()) me->next_batch(database);
      });
    });
  }

  void next_batch(const AccountingKey& database) {
    const auto waiting = waiting_writes.find(database);
    if (waiting->second.empty()) {
      waiting_writes.erase(waiting);
      return;
    }
    const auto batch = std::make_shared<Batch>(Batch{database, std::exchange(waiting->second, {})});
    read(batch, &Impl::send);
  }

  /// Reads the QOS of the batch, and calls `then`. If that fails, the batch ends.
  void read(const BatchPtr& batch, void (Impl::*then)(const BatchPtr&, const QosRows&)) {
    const auto on_rows = [weak = weak_from_this(), batch, then](const core::Result<QosRows>& rows) {
      const auto self = weak.lock();
      if (!self) return;
      if (rows) return (self.get()->*then)(batch, *rows);
      self->end(batch, rows.error());
    };
    AccountingClient* to = clusters.accounting(batch->database);
    if (to == nullptr) return end(batch, no_client());
    if (batch->writes.size() > 1) return to->qos(on_rows);
    to->qos(batch->writes.front().act->name, [on_rows](core::Result<accounting::Qos> qos) {
      if (qos) return on_rows(QosRows{std::make_shared<accounting::Qos>(*std::move(qos))});
      if (qos.error().code == ErrorCode::kNotFound) return on_rows(QosRows{});
      on_rows(std::unexpected(qos.error()));
    });
  }

  /// Fails all writes that are left in the batch, and begins with the next batch.
  void end(const BatchPtr& batch, const core::Error& error) {
    for (const Write& each : std::exchange(batch->writes, {})) fail(each.work, error);
    next_batch(batch->database);
  }

  void send(const BatchPtr& batch, const QosRows& rows) {
    std::vector<Write> created, changed;
    for (Write& each : std::exchange(batch->writes, {})) {
      const std::optional<accounting::Qos> live = find_qos(rows, each.act->name);
      if (each.act->id == 0 && live) {
        fail(each.work, {ErrorCode::kConflict, "slurmdbd has one of that name by now", 0, {}, {}});
      } else if (each.act->id != 0 && !live) {
        fail(each.work, {ErrorCode::kConflict, "it is gone", 0, {}, {}});
      } else if (live && live->id != each.act->id) {
        fail(each.work, {ErrorCode::kConflict, "it is another one by now", 0, {}, {}});
      } else if (live) {
        each.found = accounting::settings_of(*live);
        if (accounting::differences(each.act->settings, each.found).empty()) {
          succeed(each.work, {{"written", false}});
        } else {
          changed.push_back(std::move(each));
        }
      } else {
        // sacctmgr makes the name the description of a new QOS.
        each.found = {{"Description", each.act->name}};
        created.push_back(std::move(each));
      }
    }
    // This keeps the batch open until all requests are on their way.
    batch->open = 1;
    if (!created.empty()) post(batch, std::move(created));
    for (Write& each : changed) post(batch, {std::move(each)});
    answered(batch);
  }

  /// Sends one request.
  void post(const BatchPtr& batch, std::vector<Write> writes) {
    AccountingClient* to = clusters.accounting(batch->database);
    if (to == nullptr) {
      for (const Write& each : writes) fail(each.work, no_client());
      return;
    }
    std::vector<AccountingClient::QosWrite> rows;
    for (const Write& each : writes) {
      each.work->wrote = loop.clock().mono();
      rows.push_back({each.act->name, each.found, each.act->settings});
    }
    ++batch->open;
    to->write_qos(std::move(rows), [weak = weak_from_this(), batch, writes = std::move(writes)](core::Result<void> result) {
      const auto self = weak.lock();
      if (!self) return;
      if (result) {
        batch->writes.insert(batch->writes.end(), writes.begin(), writes.end());
      } else if (writes.size() > 1 && is_refusal(result.error())) {
        // slurmdbd has rolled back all writes because of one of them. Send each write alone.
        for (const Write& each : writes) self->post(batch, {each});
      } else {
        for (const Write& each : writes) self->fail(each.work, result.error());
      }
      self->answered(batch);
    });
  }

  /// Reads back what was written, after the last reply.
  void answered(const BatchPtr& batch) {
    if (--batch->open > 0) return;
    if (batch->writes.empty()) return next_batch(batch->database);
    read(batch, &Impl::compare);
  }

  /// Compares the stored QOS, because slurmdbd reports success for some writes that it drops in whole or in part.
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

  void remove(const std::shared_ptr<const DeleteQos>& act, Done done) {
    const std::string name = act->evidence.name();
    begin(act->evidence.database(), "delete QOS " + name, std::move(done), [act, name](Impl& self, const WorkPtr& work) {
      if (!act->evidence.good_at(self.loop.clock().mono()))
        return self.fail(work, {ErrorCode::kExpired, "what slurmdbd said of it is too old by now", 0, {}, {}});
      AccountingClient* to = self.client(work);
      if (to == nullptr) return;
      to->qos([weak = self.weak_from_this(), act, work](const core::Result<QosRows>& rows) {
        const auto me = weak.lock();
        if (!me) return;
        if (!rows) return me->fail(work, rows.error());
        const std::optional<accounting::Qos> live = find_qos(*rows, act->evidence.name());
        if (!live) return me->succeed(work, {{"deleted", false}});
        if (live->id != act->evidence.id())
          return me->fail(work, {ErrorCode::kConflict, "it is another one by now", 0, {}, {}});
        me->look_at_lists(work, *live, *rows);
      });
    });
  }

  void look_at_lists(const WorkPtr& work, const accounting::Qos& qos, const QosRows& all) {
    AccountingClient* to = client(work);
    if (to == nullptr) return;
    to->associations([weak = weak_from_this(), work, qos,
                      all](const core::Result<std::vector<std::shared_ptr<const accounting::Association>>>& rows) {
      const auto self = weak.lock();
      if (!self) return;
      if (!rows) return self->fail(work, rows.error());
      std::map<std::string, std::shared_ptr<const accounting::Qos>> by_name;
      for (const auto& row : all) by_name.emplace(row->name, row);
      std::map<std::string, std::shared_ptr<const accounting::Association>> by_key;
      for (const auto& row : *rows) by_key.emplace(row->key(), row);
      accounting::View view;
      view.qos.rows = std::make_shared<const decltype(by_name)>(std::move(by_name));
      view.associations.rows = std::make_shared<const decltype(by_key)>(std::move(by_key));
      if (std::string use = use_of_qos(qos.name, view); !use.empty())
        return self->fail(work, {ErrorCode::kBusy, std::move(use), 0, {}, {}});
      self->look_at_jobs(work, qos.name, qos.id, self->clusters.clusters_of(work->database));
    });
  }

  /// Asks each slurmctld for jobs with the QOS, and then slurmdbd. slurmdbd also knows the jobs of clusters that the operator
  /// does not know, but no jobs that never were eligible.
  void look_at_jobs(const WorkPtr& work, const std::string& name, std::int64_t id, std::vector<ClusterKey> left) {
    if (left.empty()) return look_at_records(work, name, id, {"suspended", "pending", "running"});
    const ClusterKey cluster = std::move(left.back());
    left.pop_back();
    Client* to = clusters.client(cluster);
    if (to == nullptr) return look_at_jobs(work, name, id, std::move(left));
    to->jobs_of_qos([weak = weak_from_this(), work, name, id, left = std::move(left), cluster](const JobsOfQos& rows) {
      const auto self = weak.lock();
      if (!self) return;
      if (!rows) return self->fail(work, rows.error().with("jobs of cluster " + cluster));
      if (!self->used(work, name, *rows)) self->look_at_jobs(work, name, id, left);
    });
  }

  void look_at_records(const WorkPtr& work, const std::string& name, std::int64_t id, std::vector<std::string> states) {
    if (states.empty()) return send_deletion(work, name);
    AccountingClient* to = client(work);
    if (to == nullptr) return;
    const std::string state = std::move(states.back());
    states.pop_back();
    to->jobs_in_qos(id, state, [weak = weak_from_this(), work, name, id, states = std::move(states)](const JobsOfQos& rows) {
      const auto self = weak.lock();
      if (!self) return;
      if (!rows) return self->fail(work, rows.error());
      if (!self->used(work, name, *rows)) self->look_at_records(work, name, id, states);
    });
  }

  using JobsOfQos = core::Result<std::vector<std::shared_ptr<const accounting::JobOfQos>>>;

  /// Fails the act and returns true if an unfinished job uses the QOS.
  bool used(const WorkPtr& work, const std::string& name,
            const std::vector<std::shared_ptr<const accounting::JobOfQos>>& jobs) {
    std::vector<std::string> holders;
    for (const auto& row : jobs) {
      const bool waits_or_runs =
          row->states.contains("PENDING") || row->states.contains("RUNNING") || row->states.contains("SUSPENDED");
      if (waits_or_runs && accounting::folded(row->qos) == accounting::folded(name))
        holders.push_back("job " + std::to_string(row->id) + " of cluster " + row->cluster);
    }
    if (holders.empty()) return false;
    fail(work, {ErrorCode::kBusy, "it is used by " + some_users(holders), 0, {}, {}});
    return true;
  }

  void send_deletion(const WorkPtr& work, const std::string& name) {
    AccountingClient* to = client(work);
    if (to == nullptr) return;
    work->wrote = loop.clock().mono();
    to->delete_qos(name, [weak = weak_from_this(), work, name](core::Result<void> result) {
      const auto self = weak.lock();
      if (!self) return;
      if (!result) return self->fail(work, result.error());
      self->with_qos(work, name, [work](Impl& me, const std::optional<accounting::Qos>& live) {
        if (live) return me.fail(work, {ErrorCode::kInvalid, "slurmdbd reported success, and still has it", 0, {}, {}});
        me.succeed(work, {{"deleted", true}});
      });
    });
  }

  core::Loop& loop;
  Clusters& clusters;
  /// Writes that wait for the batch under way, by database. No entry: no batch is under way.
  std::map<AccountingKey, std::vector<Write>> waiting_writes;
};

AccountingTarget::AccountingTarget(core::Loop& loop, Clusters& clusters) : impl_(std::make_shared<Impl>(loop, clusters)) {
  Impl* impl = impl_.get();
  carries_out<WriteQos>([impl](const auto& act, Done done) { impl->write(act, std::move(done)); });
  carries_out<DeleteQos>([impl](const auto& act, Done done) { impl->remove(act, std::move(done)); });
}

AccountingTarget::~AccountingTarget() = default;

}  // namespace slurm
