#include "slurm/rest/target.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "core/hostlist.hpp"
#include "core/retry.hpp"
#include "slurm/acts.hpp"

namespace slurm {
namespace {

using core::ErrorCode;
using plan::ActResult;

/// Up to so many nodes are read one by one before a drain; for more the whole table is asked for.
constexpr std::size_t kReadSingly = 8;
/// slurmrestd may try for as long as its own timeout, a little longer than ours; and it does not notice that nobody waits.
constexpr core::Duration kSettled{3000};
constexpr core::Duration kLongestWrite{11000};

/// Whose word keeps the node from work. A reason on a node that works is left over from an earlier drain (before 26.05).
bool kept_from_work(const Node& node) {
  return node.state.has("DRAIN") || node.state.has("FAIL") || node.state.base == "DOWN";
}

}  // namespace

struct Target::Impl : std::enable_shared_from_this<Target::Impl> {
  Impl(core::Loop& in_loop, Clusters& in_clusters) : loop(in_loop), clusters(in_clusters) {}

  /// What an act is about, and whom to tell how it went.
  struct Job {
    ClusterKey cluster;
    std::string what;  ///< For gates and errors: "drain cpu-[0-3]".
    Done done;
    std::optional<core::MonoTime> wrote{};  ///< When a write was sent, if one was.
  };
  using JobPtr = std::shared_ptr<Job>;

  void fail(const JobPtr& job, core::Error error) {
    ActResult result{std::unexpected(error.with(job->what)), {}};
    if (core::retry_of(error.code) == core::Retry::kSettle) {
      const core::MonoTime now = loop.clock().mono();
      const core::MonoTime settled = std::max(now + kSettled, job->wrote.value_or(now) + kLongestWrite);
      result.gates.push_back(clusters.gate_after(job->cluster, settled, job->what + " (reply lost)"));
    } else if (job->wrote) {
      result.gates.push_back(clusters.gate_from_now(job->cluster, job->what));
    }
    if (job->wrote) clusters.poll_soon(job->cluster);
    job->done(std::move(result));
  }

  /// Done. When the snapshot may be of an earlier time than what was found or made, a gate waits for the next one.
  void succeed(const JobPtr& job, core::Json value) {
    ActResult result{std::move(value), {clusters.gate_from_now(job->cluster, job->what)}};
    clusters.poll_soon(job->cluster);
    job->done(std::move(result));
  }

  /// The cluster's client, or the end of the job.
  Client* client(const JobPtr& job) {
    Client* found = clusters.client(job->cluster);
    if (found == nullptr) fail(job, {ErrorCode::kUnavailable, clusters.snapshot(job->cluster)->error, 0, {}, {}});
    return found;
  }

  /// Calls `then` when an act may begin, on the loop.
  void begin(const ClusterKey& cluster, std::string what, Done done, std::function<void(const JobPtr&)> then) {
    auto job = std::make_shared<Job>(Job{cluster, std::move(what), std::move(done)});
    loop.after(core::Duration{0}, [weak = weak_from_this(), job, then = std::move(then)] {
      const auto self = weak.lock();
      if (!self) return;
      const SnapshotPtr snapshot = self->clusters.snapshot(job->cluster);
      if (!snapshot->complete()) {
        return self->fail(job, {ErrorCode::kUnavailable, "Slurm does not answer: " + snapshot->error, 0, {}, {}});
      }
      then(job);
    });
  }

  /// Guards a callback of the client: called only while this target lives.
  template <class T>
  Client::Done<T> guard(std::function<void(Impl&, core::Result<T>)> then) {
    return [weak = weak_from_this(), then = std::move(then)](core::Result<T> result) {
      if (const auto self = weak.lock()) then(*self, std::move(result));
    };
  }

  Client::Done<void> finish_write(const JobPtr& job, core::Json value) {
    job->wrote = loop.clock().mono();
    return guard<void>([job, value = std::move(value)](Impl& self, core::Result<void> result) {
      if (!result) return self.fail(job, result.error());
      self.succeed(job, value);
    });
  }

  // --- Drain ------------------------------------------------------------------------------------------------------

  struct Found {
    std::vector<Node> nodes;
    std::vector<std::string> unknown;
    std::optional<core::Error> error;
    std::size_t open = 0;
  };

  void drain(const DrainNodes& act, Done done) {
    if (act.nodes.empty()) {
      return refuse(std::move(done), {ErrorCode::kInvalid, "drain without nodes", 0, {}, {}});
    }
    begin(act.cluster, "drain " + core::compress_hostlist(act.nodes), std::move(done),
          [this, nodes = act.nodes, owner = act.owner, reason = act.reason](const JobPtr& job) {
            read_live(job, nodes,
                      [this, job, owner, reason](Found found) { drain_found(job, owner, reason, std::move(found)); });
          });
  }

  void read_live(const JobPtr& job, const std::vector<std::string>& names, std::function<void(Found)> then) {
    Client* to = client(job);
    if (to == nullptr) return;
    if (names.size() > kReadSingly) {
      to->nodes({}, guard<Table<Node>>([job, names, then](Impl& self, core::Result<Table<Node>> table) {
                  if (!table) return self.fail(job, table.error());
                  Found found;
                  std::map<std::string_view, const Node*> by_name;
                  for (const auto& row : table->rows) by_name.emplace(row->name, row.get());
                  for (const std::string& name : names) {
                    if (const auto it = by_name.find(name); it != by_name.end()) {
                      found.nodes.push_back(*it->second);
                    } else {
                      found.unknown.push_back(name);
                    }
                  }
                  then(std::move(found));
                }));
      return;
    }
    const auto found = std::make_shared<Found>();
    found->open = names.size();
    for (const std::string& name : names) {
      to->node(name, guard<Node>([job, name, found, then](Impl& self, core::Result<Node> node) {
                 if (node) {
                   found->nodes.push_back(*std::move(node));
                 } else if (node.error().code == ErrorCode::kNotFound) {
                   found->unknown.push_back(name);
                 } else {
                   found->error = node.error();
                 }
                 if (--found->open != 0) return;
                 if (found->error) return self.fail(job, *found->error);
                 then(std::move(*found));
               }));
    }
  }

  /// What a node is to be told when it is to be drained.
  struct DrainWish {
    bool write = true;  ///< False: it drains already, and the owner's word has no place there, or stands there.
    std::optional<std::string> reason{};  ///< Absent: the reason that it has stays.
  };

  /// Nodes that nobody keeps from work, or that only went silent, are drained with the owner's reason. A down or fail of
  /// somebody else's keeps its reason, and with it its owner. What drains already is left alone, unless only other programs of
  /// ours hold it.
  static DrainWish drain_wish(const Node& node, Owner owner, const std::string& reason) {
    if (drained_without(node, owner)) return {true, Holds::read(node.reason).hold(owner, reason).reason()};
    if (node.state.has("DRAIN") && !node.state.has("UNDRAIN")) return {.write = false};
    Holds holds = Holds::read(node.reason);
    const bool kept = node.state.base == "DOWN" || node.state.has("FAIL");
    if (kept && holds.none() && (node.state.has("FAIL") || given_by_others(node.reason, owner)) && !down_by_slurm(node))
      return {};
    if (!kept || down_by_slurm(node)) holds = {};  // Left over.
    return {true, holds.hold(owner, reason).reason()};
  }

  void drain_found(const JobPtr& job, Owner owner, const std::string& reason, Found found) {
    std::vector<std::string> drained, kept;
    std::map<std::optional<std::string>, std::vector<std::string>> by_reason;
    for (const Node& node : found.nodes) {
      DrainWish wish = drain_wish(node, owner, reason);
      if (wish.write) {
        drained.push_back(node.name);
        by_reason[std::move(wish.reason)].push_back(node.name);
        continue;
      }
      kept.push_back(node.name);
      const Node* seen = clusters.snapshot(job->cluster)->node(node.name);
      if (seen != nullptr && !seen->state.has("DRAIN")) clusters.poll_all_next(job->cluster);
    }
    std::ranges::sort(drained);
    std::ranges::sort(kept);
    std::vector<DrainWrite> writes;
    for (auto& [with, nodes] : by_reason) writes.push_back({std::move(nodes), with});
    // The many that only get our word go first, and what keeps its reason goes last.
    std::ranges::stable_partition(writes, [](const DrainWrite& write) { return write.reason.has_value(); });
    write_drains(job, std::move(writes), {{"drained", drained}, {"kept", kept}}, std::move(found.unknown));
  }

  struct DrainWrite {
    std::vector<std::string> nodes;
    std::optional<std::string> reason;
  };

  /// One after the other; the first that fails is told.
  void write_drains(const JobPtr& job, std::vector<DrainWrite> writes, core::Json value, std::vector<std::string> unknown) {
    if (writes.empty()) {
      if (!unknown.empty())
        return fail(job, {ErrorCode::kNotFound, "node " + unknown.front() + " is not known to Slurm", 0, {}, {}});
      return succeed(job, std::move(value));
    }
    Client* to = client(job);
    if (to == nullptr) return;
    const DrainWrite next = std::move(writes.front());
    writes.erase(writes.begin());
    NodeUpdate update;
    update.state = "DRAIN";
    update.reason = next.reason;
    job->wrote = loop.clock().mono();
    to->update_nodes(next.nodes, update,
                     guard<void>([job, writes = std::move(writes), value = std::move(value), unknown = std::move(unknown)](
                                     Impl& self, core::Result<void> result) {
                       if (!result) return self.fail(job, result.error());
                       self.write_drains(job, writes, value, unknown);
                     }));
  }

  // --- Resume, update, delete, reconfigure ------------------------------------------------------------------------

  /// Without the owner's word the node is to be told this; an error where there is nothing of its to undo.
  static core::Result<NodeUpdate> release(const Node& node, Owner owner) {
    if (!kept_from_work(node)) return core::fail(ErrorCode::kConflict, "it is neither drained, nor failing, nor down");
    Holds holds = Holds::read(node.reason);
    if (!holds.has(owner) && !down_by_slurm(node))
      return core::fail(ErrorCode::kConflict, "its reason is not ours: \"" + node.reason + "\"");
    if (node.state.has("FAIL")) return core::fail(ErrorCode::kConflict, "somebody set it failing");
    NodeUpdate update;
    // What a DOWN of slurmctld's own says of holds is left over.
    if (holds.others_than(owner) && !down_by_slurm(node)) {
      // A drain would bring a node that is down back.
      if (node.state.has("DRAIN") && node.state.base != "DOWN") update.state = "DRAIN";
      update.reason = holds.release(owner).reason();
      return update;
    }
    update.state = node.state.base == "DOWN" ? "RESUME" : "UNDRAIN";
    update.reason = kNotResponding;  // An empty one changes nothing.
    return update;
  }

  void resume(const ResumeNode& act, Done done) {
    begin(act.cluster, "resume " + act.node, std::move(done), [this, name = act.node, owner = act.owner](const JobPtr& job) {
      Client* to = client(job);
      if (to == nullptr) return;
      to->node(name, guard<Node>([job, name, owner](Impl& self, core::Result<Node> node) {
                 if (!node) return self.fail(job, node.error());
                 const core::Result<NodeUpdate> update = release(*node, owner);
                 if (!update) return self.fail(job, update.error());
                 core::Json value{{"resumed", name}, {"by", update->state.value_or("")}};
                 if (Client* again = self.client(job))
                   again->update_node(name, *update, self.finish_write(job, std::move(value)));
               }));
    });
  }

  void update(const UpdateNode& act, Done done) {
    if (act.update.state || act.update.reason) {
      return refuse(std::move(done),
                    {ErrorCode::kInvalid, "update " + act.node + ": state and reason are not for this act", 0, {}, {}});
    }
    begin(act.cluster, "update " + act.node, std::move(done), [this, name = act.node, wish = act.update](const JobPtr& job) {
      Client* to = client(job);
      if (to == nullptr) return;
      to->node(name, guard<Node>([job, name, wish](Impl& self, core::Result<Node> node) {
                 if (!node) return self.fail(job, node.error());
                 const bool as_wished =
                     (!wish.comment || *wish.comment == node->comment) && (!wish.features || *wish.features == node->features);
                 if (as_wished) return self.succeed(job, {{"updated", false}});
                 if (Client* again = self.client(job))
                   again->update_node(name, wish, self.finish_write(job, {{"updated", true}}));
               }));
    });
  }

  /// As begin(), unless the evidence is too old by now.
  void begin_by(const NodeEvidence& evidence, std::string what, Done done, std::function<void(const JobPtr&)> then) {
    begin(evidence.node().cluster, std::move(what), std::move(done),
          [this, evidence, then = std::move(then)](const JobPtr& job) {
            if (evidence.good_at(loop.clock().mono())) return then(job);
            fail(job, {ErrorCode::kExpired, "the evidence for it is too old by now: " + evidence.detail(), 0, {}, {}});
          });
  }

  using Live = NodeEvidence::Live;

  void remove(const DeleteNode& act, Done done) {
    const auto start = [&](std::string what, std::function<void(const JobPtr&)> then) {
      if (!act.evidence) return begin(act.cluster, std::move(what), std::move(done), std::move(then));
      begin_by(*act.evidence, std::move(what), std::move(done), std::move(then));
    };
    start("delete " + act.node, [this, name = act.node, seen = act.reason, expected = act.expected](const JobPtr& job) {
      // slurmctld refuses to delete a node with running jobs, but not one whose jobs are all suspended, or which somebody has
      // drained meanwhile. So the node is asked last.
      unless_held(job, name, [this, job, name, seen, expected] {
        if_kept(job, name, expected, &Impl::found_none, [job, seen](Impl& self, const Node& node) {
          if (node.reason != seen && kept_from_work(node) && given_by_others(node.reason, Owner::kOperator)) {
            return self.fail(job,
                             {ErrorCode::kConflict, "somebody keeps it from work since: \"" + node.reason + "\"", 0, {}, {}});
          }
          self.write_deletion(job, node.name);
        });
      });
    });
  }

  void write_deletion(const JobPtr& job, const std::string& name) {
    Client* to = client(job);
    if (to == nullptr) return;
    job->wrote = loop.clock().mono();
    to->delete_node(name, guard<void>([job, name](Impl& self, core::Result<void> result) {
                      if (result) return self.succeed(job, {{"deleted", true}});
                      if (result.error().code == ErrorCode::kNotFound) return self.found_none(job, name);
                      self.fail(job, result.error());
                    }));
  }

  void end(const EndNode& act, Done done) {
    const std::string& name = act.evidence.node().name;
    begin_by(act.evidence, "end " + name, std::move(done), [this, name, slurmd = act.evidence.slurmd()](const JobPtr& job) {
      Client* to = client(job);
      if (to == nullptr) return;
      to->node(name, guard<Node>([job, name, slurmd](Impl& self, core::Result<Node> node) {
                 if (!node && node.error().code == ErrorCode::kNotFound) return self.found_none(job, name);
                 if (!node) return self.fail(job, node.error());
                 if (node->state.base == "DOWN") return self.succeed(job, {{"down", name}});
                 if (!node->state.has("DRAIN") || !held_by(node->reason, Owner::kOperator) || node->state.has("FAIL"))
                   return self.fail(job, {ErrorCode::kConflict, "it is not drained by the operator", 0, {}, {}});
                 if (node->slurmd_start_time != slurmd)
                   return self.fail(job, {ErrorCode::kConflict, "another slurmd has registered since", 0, {}, {}});
                 NodeUpdate update;
                 update.state = "DOWN";
                 update.reason = node->reason;
                 if (Client* again = self.client(job))
                   again->update_node(name, update, self.finish_write(job, {{"down", name}}));
               }));
    });
  }

  void confirm(const ConfirmIdle& act, Done done) {
    const std::string& name = act.evidence.node().name;
    begin_by(act.evidence, "look at " + name, std::move(done), [this, name](const JobPtr& job) {
      // Nothing refuses the deletion of a pod. So the node is asked last: it shows a job that began meanwhile.
      unless_held(job, name, [this, job, name] {
        if_kept(job, name, Live::kKept, &Impl::miss, [job](Impl& self, const Node& node) {
          if (node.state.base != "IDLE" && node.state.base != "DOWN")
            return self.fail(job, {ErrorCode::kBusy, "it is " + node.state.base, 0, {}, {}});
          if (node.state.has("COMPLETING")) return self.fail(job, {ErrorCode::kBusy, "a job is completing there", 0, {}, {}});
          self.succeed(job, {{"idle", true}});
        });
      });
    });
  }

  void confirm_none(const ConfirmNoJobs& act, Done done) {
    begin(act.cluster, "look for jobs", std::move(done), [this](const JobPtr& job) {
      unless_any(job, &slurm::Job::in_queue, " is in the queue", [this, job] { succeed(job, {{"jobs", false}}); });
    });
  }

  /// A snapshot that has a node which is gone is behind, or was told of no change.
  void ask_for_all_if_known(const JobPtr& job, const std::string& name) {
    if (clusters.snapshot(job->cluster)->node(name) != nullptr) clusters.poll_all_next(job->cluster);
  }

  /// It is gone already.
  void found_none(const JobPtr& job, const std::string& name) {
    ask_for_all_if_known(job, name);
    succeed(job, {{"deleted", false}});
  }

  /// The record that was to keep its slurmd from work is gone.
  void miss(const JobPtr& job, const std::string& name) {
    ask_for_all_if_known(job, name);
    fail(job, {ErrorCode::kConflict, "Slurm no longer has node " + name, 0, {}, {}});
  }

  using None = void (Impl::*)(const JobPtr&, const std::string& name);

  /// Calls `then` when the live node is as expected, and `none` when there is no such node.
  void if_kept(const JobPtr& job, const std::string& name, std::optional<Live> expected, None none,
               std::function<void(Impl&, const Node&)> then) {
    Client* to = client(job);
    if (to == nullptr) return;
    to->node(name, guard<Node>([job, name, expected, none, then = std::move(then)](Impl& self, core::Result<Node> node) {
               if (!node && node.error().code == ErrorCode::kNotFound) return (self.*none)(job, name);
               if (!node) return self.fail(job, node.error());
               if (expected == Live::kSilent && !is_silent(*node))
                 return self.fail(job, {ErrorCode::kConflict, "it is not down, or responds", 0, {}, {}});
               if (expected == Live::kKept && !kept_from_work(*node)) {
                 return self.fail(job, {ErrorCode::kConflict, "it is neither drained, nor failing, nor down", 0, {}, {}});
               }
               then(self, *node);
             }));
  }

  /// Calls `then` when no job holds it.
  void unless_held(const JobPtr& job, const std::string& name, std::function<void()> then) {
    unless_any(
        job, [name](const slurm::Job& row) { return row.holds(name); }, " holds it", std::move(then));
  }

  /// Calls `then` when Slurm, asked live, has no such job.
  void unless_any(const JobPtr& job, std::function<bool(const slurm::Job&)> such, std::string what,
                  std::function<void()> then) {
    using Jobs = std::vector<std::shared_ptr<const slurm::Job>>;
    clusters.live_jobs(
        job->cluster, guard<Jobs>([job, such = std::move(such), what = std::move(what), then = std::move(then)](
                                      Impl& self, core::Result<Jobs> jobs) {
          if (!jobs) return self.fail(job, jobs.error());
          const auto one = std::ranges::find_if(*jobs, [&](const auto& row) { return such(*row); });
          if (one == jobs->end()) return then();
          self.fail(job,
                    {ErrorCode::kBusy, "job " + std::to_string((*one)->id) + " (" + (*one)->state + ")" + what, 0, {}, {}});
        }));
  }

  void reconfigure(const Reconfigure& act, Done done) {
    begin(act.cluster, "reconfigure", std::move(done), [this](const JobPtr& job) {
      Client* to = client(job);
      if (to == nullptr) return;
      job->wrote = loop.clock().mono();
      to->reconfigure(guard<void>([job](Impl& self, core::Result<void> result) {
        // Partitions may have come and gone, also where slurmctld says that nothing has changed since.
        self.clusters.poll_all_next(job->cluster);
        if (result) return self.succeed(job, {{"reconfigured", true}});
        core::Error error = result.error();
        // slurmctld refuses a configuration with nothing but -1, "Unspecified error".
        if (error.code == ErrorCode::kInternal && !error.reason.empty()) {
          error.code = ErrorCode::kInvalid;
          error = error.with("slurmctld refused the configuration (its log says why)");
        }
        if (error.code == ErrorCode::kBusy) error.code = ErrorCode::kUnavailable;
        self.fail(job, std::move(error));
      }));
    });
  }

  void refuse(Done done, core::Error error) {
    loop.after(core::Duration{0}, [done = std::move(done), error = std::move(error)] { done({std::unexpected(error), {}}); });
  }

  core::Loop& loop;
  Clusters& clusters;
};

Target::Target(core::Loop& loop, Clusters& clusters) : impl_(std::make_shared<Impl>(loop, clusters)) {
  Impl* impl = impl_.get();
  carries_out<DrainNodes>([impl](const auto& act, Done done) { impl->drain(*act, std::move(done)); });
  carries_out<ResumeNode>([impl](const auto& act, Done done) { impl->resume(*act, std::move(done)); });
  carries_out<UpdateNode>([impl](const auto& act, Done done) { impl->update(*act, std::move(done)); });
  carries_out<DeleteNode>([impl](const auto& act, Done done) { impl->remove(*act, std::move(done)); });
  carries_out<EndNode>([impl](const auto& act, Done done) { impl->end(*act, std::move(done)); });
  carries_out<ConfirmIdle>([impl](const auto& act, Done done) { impl->confirm(*act, std::move(done)); });
  carries_out<ConfirmNoJobs>([impl](const auto& act, Done done) { impl->confirm_none(*act, std::move(done)); });
  carries_out<Reconfigure>([impl](const auto& act, Done done) { impl->reconfigure(*act, std::move(done)); });
}

Target::~Target() = default;

}  // namespace slurm
