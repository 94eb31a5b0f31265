#include "slurm/rest/target.hpp"

#include <fmt/format.h>

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

/// Before a drain, up to this many nodes are read one by one. For more nodes the whole table is read.
constexpr std::size_t kReadSingly = 8;
/// If the reply of a write was lost, slurmrestd may still carry the write out, because its timeout is longer than ours. The
/// outcome is final at the later of two times: kSettled after we gave up, and kLongestWrite after the write was sent.
constexpr core::Duration kSettled{3000};
constexpr core::Duration kLongestWrite{11000};

/// Reports whether the node is draining, failing or down. If not, its reason is from an earlier drain (before 26.05).
bool kept_from_work(const Node& node) {
  return node.state.has("DRAIN") || node.state.has("FAIL") || node.state.base == "DOWN";
}

}  // namespace

struct Target::Impl : std::enable_shared_from_this<Target::Impl> {
  Impl(core::Loop& in_loop, Clusters& in_clusters) : loop(in_loop), clusters(in_clusters) {
    lose_submission(loop.clock().mono());
  }

  /// One act under way, and its callback.
  struct Job {
    ClusterKey cluster;
    std::string what;  ///< For gates and errors: "drain cpu-[0-3]".
    Done done;
    std::optional<core::MonoTime> wrote{};  ///< When a write was sent, if one was.
  };
  using JobPtr = std::shared_ptr<Job>;
  using LiveJobs = std::vector<std::shared_ptr<const slurm::Job>>;

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

  /// Ends the act with `value`. The act's gate waits for the next snapshot: the current snapshot can be older than the act.
  void succeed(const JobPtr& job, core::Json value) {
    ActResult result{std::move(value), {clusters.gate_from_now(job->cluster, job->what)}};
    clusters.poll_soon(job->cluster);
    job->done(std::move(result));
  }

  /// Returns the cluster's client. If there is none, fails the act and returns null.
  Client* client(const JobPtr& job) {
    Client* found = clusters.client(job->cluster);
    if (found == nullptr) fail(job, {ErrorCode::kUnavailable, clusters.snapshot(job->cluster)->error, 0, {}, {}});
    return found;
  }

  /// Calls `then` in a later loop iteration, or fails the act with kUnavailable if the snapshot is not complete by then.
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

  /// Makes a callback, to be passed to the client, that does nothing once this target is destroyed.
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
          [this, nodes = act.nodes, how = How{act.holder, act.reason, act.renames}](const JobPtr& job) {
            read_live(job, nodes, [this, job, how](Found found) { drain_found(job, how, std::move(found)); });
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

  struct How {
    Holder holder;
    std::string reason;
    bool renames;
  };

  /// The write that drains a node.
  struct DrainWish {
    /// False: the node already drains, and the holder's hold is in its reason already or must not be added.
    bool write = true;
    std::optional<std::string> reason{};  ///< Absent: the node keeps its reason.
  };

  /// Drains schedulable nodes, and nodes that only stopped responding, with the holder's reason. A node that somebody else set
  /// down or failing is drained and keeps its reason. A node that already drains is not changed, with two exceptions. If only
  /// other programs or installations of ours hold it, the holder's hold is added. With `renames`, it gets a new reason.
  static DrainWish drain_wish(const Node& node, const How& how) {
    const auto& [holder, reason, renames] = how;
    Holds holds = Holds::read(node.reason);
    if (node.state.drains()) {
      const Holder unnamed = holder.owner;
      if (renames && !holds.has(holder) && holds.has(unnamed))
        return {true, holds.release(unnamed).hold(holder, reason).reason()};
      const bool renamed = renames && holds.has(holder) && holds.why(holder) != reason;
      if (renamed || drained_without(node, holder)) return {true, holds.hold(holder, reason).reason()};
      return {.write = false};
    }
    const bool kept = node.state.base == "DOWN" || node.state.has("FAIL");
    if (kept && holds.none() && (node.state.has("FAIL") || given_by_others(node.reason, holder)) && !down_by_slurm(node))
      return {};
    if (!kept || down_by_slurm(node)) holds = {};  // These holds are left over from an earlier drain.
    return {true, holds.hold(holder, reason).reason()};
  }

  void drain_found(const JobPtr& job, const How& how, Found found) {
    std::vector<std::string> drained, kept;
    std::map<std::optional<std::string>, std::vector<std::string>> by_reason;
    for (const Node& node : found.nodes) {
      DrainWish wish = drain_wish(node, how);
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
    // Nodes that get our reason are drained first, because they are many. Nodes that keep their reason are drained last.
    std::ranges::stable_partition(writes, [](const DrainWrite& write) { return write.reason.has_value(); });
    write_drains(job, std::move(writes), {{"drained", drained}, {"kept", kept}}, std::move(found.unknown));
  }

  struct DrainWrite {
    std::vector<std::string> nodes;
    std::optional<std::string> reason;
  };

  /// Sends the writes one after the other. Stops at the first error and fails with it.
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

  /// Returns the update that removes the holder's hold, or that resumes a node that slurmctld itself set down. Fails with
  /// kConflict if the node must not be resumed: see ResumeNode.
  static core::Result<NodeUpdate> release(const Node& node, const Holder& holder, const std::string& seen) {
    Holds holds = Holds::read(node.reason);
    const bool left_over =
        holder.owner == Owner::kEnlistment && !kept_from_work(node) && holds.has(holder) && !holds.others_than(holder);
    if (!kept_from_work(node) && !left_over)
      return core::fail(ErrorCode::kConflict, "it is neither drained, nor failing, nor down");
    if (!holds.has(holder) && !down_by_slurm(node))
      return core::fail(ErrorCode::kConflict, "its reason is not ours: \"" + node.reason + "\"");
    if (node.state.has("FAIL")) return core::fail(ErrorCode::kConflict, "somebody set it failing");
    if (!seen.empty() && holds.has(holder) && holds.why(holder) != Holds::read(seen).why(holder))
      return core::fail(ErrorCode::kConflict, "its reason has changed: \"" + node.reason + "\"");
    NodeUpdate update;
    // If slurmctld itself set the node down, the holds in the reason are left over.
    if (holds.others_than(holder) && !down_by_slurm(node)) {
      // If the node is down, DRAIN would end the down state.
      if (node.state.has("DRAIN") && node.state.base != "DOWN") update.state = "DRAIN";
      update.reason = holds.release(holder).reason();
      return update;
    }
    // Before 26.05, Slurm keeps the reason of a node after the node is resumed. slurm-enlist clears such a left-over reason
    // without changing the state. Our other programs do not clear it.
    if (!left_over) update.state = node.state.base == "DOWN" ? "RESUME" : "UNDRAIN";
    update.reason = kNotResponding;  // An empty reason would change nothing.
    return update;
  }

  void resume(const ResumeNode& act, Done done) {
    begin(act.cluster, "resume " + act.node, std::move(done),
          [this, name = act.node, holder = act.holder, seen = act.seen](const JobPtr& job) {
            Client* to = client(job);
            if (to == nullptr) return;
            to->node(name, guard<Node>([job, name, holder, seen](Impl& self, core::Result<Node> node) {
                       if (!node) return self.fail(job, node.error());
                       const core::Result<NodeUpdate> update = release(*node, holder, seen);
                       if (!update) return self.fail(job, update.error());
                       core::Json value{{"resumed", name}, {"by", update->state.value_or("")}};
                       if (Client* again = self.client(job))
                         again->update_node(name, *update, self.finish_write(job, std::move(value)));
                     }));
          });
  }

  /// Removes from an update the values that the live node already has.
  static NodeUpdate as_needed(const Node& node, NodeUpdate wish, const std::optional<OwnFeatures>& own,
                              const Capabilities* server) {
    if (own) {
      wish.features = replace_own(node.features, *own);
      wish.active_features = replace_own(node.active_features, *own);
    }
    if (wish.comment == node.comment) wish.comment.reset();
    if (wish.extra == node.extra) wish.extra.reset();
    if (wish.features == node.features && (!wish.active_features || wish.active_features == node.active_features)) {
      wish.features.reset();
      wish.active_features.reset();
    }
    const bool can = server != nullptr && server->topology_update;
    if (!can || wish.topology == node.topology) wish.topology.reset();
    if (wish.weight == node.weight) wish.weight.reset();
    if (can && (wish.features || wish.weight) && !wish.topology && !node.topology.empty()) wish.topology = node.topology;
    return wish;
  }

  void update(const UpdateNode& act, Done done) {
    if (act.update.state || act.update.reason) {
      return refuse(std::move(done),
                    {ErrorCode::kInvalid, "update " + act.node + ": state and reason are not for this act", 0, {}, {}});
    }
    begin(act.cluster, "update " + act.node, std::move(done),
          [this, name = act.node, wish = act.update, own = act.own, mark = act.mark](const JobPtr& job) {
            Client* to = client(job);
            if (to == nullptr) return;
            to->node(name, guard<Node>([job, name, wish, own, mark](Impl& self, core::Result<Node> node) {
                       if (!node) return self.fail(job, node.error());
                       if (mark && mark_of(*node) != mark) return self.fail(job, another_node());
                       Client* again = self.client(job);
                       if (again == nullptr) return;
                       const NodeUpdate update = as_needed(*node, wish, own, again->capabilities());
                       if (!update.comment && !update.extra && !update.features && !update.topology && !update.weight)
                         return self.succeed(job, {{"updated", false}});
                       again->update_node(name, update, self.finish_write(job, {{"updated", true}}));
                     }));
          });
  }

  void restore(const RestoreReason& act, Done done) {
    begin(act.cluster, "restore the reason of " + act.node, std::move(done),
          [this, name = act.node, seen = act.seen, reason = act.reason](const JobPtr& job) {
            Client* to = client(job);
            if (to == nullptr) return;
            to->node(name, guard<Node>([job, name, seen, reason](Impl& self, core::Result<Node> node) {
                       if (!node) return self.fail(job, node.error());
                       if (!node->state.has("DRAIN") || node->reason != seen)
                         return self.fail(job, {ErrorCode::kConflict, "somebody changed it since", 0, {}, {}});
                       NodeUpdate update;
                       update.reason = reason;
                       if (Client* again = self.client(job))
                         again->update_node(name, update, self.finish_write(job, {{"restored", true}}));
                     }));
          });
  }

  /// Begins the act as begin() does, unless the evidence is too old now.
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
    start("delete " + act.node, [this, owner = act.owner, name = act.node, seen = act.reason,
                                 expected = act.expected](const JobPtr& job) {
      // slurmctld refuses to delete a node with running jobs. It does not refuse if all jobs of the node are suspended,
      // or if somebody has meanwhile drained the node. Therefore the node is read last, after the jobs.
      unless_needed(job, owner, name, [this, job, owner, name, seen, expected] {
        if_kept(job, name, expected, &Impl::found_none, [job, owner, seen](Impl& self, const Node& node) {
          if (node.reason != seen && kept_from_work(node) && given_by_others(node.reason, owner)) {
            return self.fail(
                job, {ErrorCode::kConflict, "somebody else has taken it out of service: \"" + node.reason + "\"", 0, {}, {}});
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

  // --- Nodes that our programs create -----------------------------------------------------------------------------

  static core::Error another_node() { return {ErrorCode::kConflict, "another node has replaced it", 0, {}, {}}; }

  void create(const CreateNode& act, Done done) {
    begin(act.cluster, "create " + act.wish.name, std::move(done), [this, wish = act.wish, mark = act.mark](const JobPtr& job) {
      Client* to = client(job);
      if (to == nullptr) return;
      to->node(wish.name, guard<Node>([job, wish, mark](Impl& self, core::Result<Node> node) {
                 if (node && mark_of(*node) == mark) return self.succeed(job, {{"created", false}});
                 if (node) return self.fail(job, {ErrorCode::kAlreadyExists, "Slurm has a node of this name", 0, {}, {}});
                 if (node.error().code != ErrorCode::kNotFound) return self.fail(job, node.error());
                 if (Client* again = self.client(job))
                   again->create_node(node_line(wish, mark), self.finish_write(job, {{"created", true}}));
               }));
    });
  }

  void remove_own(const RemoveNode& act, Done done) {
    const std::string& name = act.evidence.node().name;
    begin_by(act.evidence, "delete " + name, std::move(done), [this, name, mark = act.evidence.mark()](const JobPtr& job) {
      unless_held(job, name, [this, job, name, mark] {
        if_kept(job, name, Live::kDrained, &Impl::found_none, [job, mark](Impl& self, const Node& node) {
          const Holds holds = Holds::read(node.reason);
          if (mark_of(node) != mark) return self.fail(job, another_node());
          if (!holds.has(mark.owner) || holds.others_than(mark.owner) || node.state.has("FAIL") || node.state.base == "DOWN")
            return self.fail(
                job, {ErrorCode::kConflict, "somebody else has taken it out of service: \"" + node.reason + "\"", 0, {}, {}});
          self.write_deletion(job, node.name);
        });
      });
    });
  }

  void end(const EndNode& act, Done done) {
    const std::string& name = act.evidence.node().name;
    begin_by(act.evidence, "end " + name, std::move(done),
             [this, owner = act.owner, name, slurmd = act.evidence.slurmd()](const JobPtr& job) {
               Client* to = client(job);
               if (to == nullptr) return;
               to->node(name, guard<Node>([job, owner, name, slurmd](Impl& self, core::Result<Node> node) {
                          if (!node && node.error().code == ErrorCode::kNotFound) return self.found_none(job, name);
                          if (!node) return self.fail(job, node.error());
                          if (node->state.base == "DOWN") return self.succeed(job, {{"down", name}});
                          if (!node->state.has("DRAIN") || !held_by(node->reason, owner) || node->state.has("FAIL"))
                            return self.fail(
                                job,
                                {ErrorCode::kConflict, "it is not drained by " + std::string(to_string(owner)), 0, {}, {}});
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

  using EndingJobs = std::vector<DrainTimedOut::OneJob>;

  /// Reads the jobs first and the node last. So the read of the node shows whether somebody has undrained the node meanwhile.
  void end_jobs(const EndJobs& act, Done done) {
    const DrainTimedOut& evidence = act.evidence;
    begin_by(evidence, fmt::format("{} the jobs of {}", to_string(evidence.how()), evidence.node().name), std::move(done),
             [this, evidence](const JobPtr& job) {
               with_live_jobs(job, [job, evidence](Impl& self, const LiveJobs& jobs) {
                 self.end_found(job, evidence, left_of(evidence, jobs));
               });
             });
  }

  /// Returns the jobs of the evidence that still run on the node and that the evidence still allows to end.
  static EndingJobs left_of(const DrainTimedOut& evidence, const LiveJobs& live) {
    EndingJobs out;
    for (const DrainTimedOut::OneJob& one : evidence.jobs()) {
      const auto still = [&](const std::shared_ptr<const slurm::Job>& row) {
        return row->id == one.id && row->start == one.start && may_be_ended(*row, evidence.node().name, evidence.how());
      };
      if (std::ranges::any_of(live, still)) out.push_back(one);
    }
    return out;
  }

  void end_found(const JobPtr& job, const DrainTimedOut& evidence, EndingJobs jobs) {
    if (jobs.empty()) return succeed(job, {{"ended", core::Json::array()}});
    Client* to = client(job);
    if (to == nullptr) return;
    to->node(evidence.node().name, guard<Node>([job, owner = evidence.owner(), why = evidence.why(), how = evidence.how(),
                                                jobs = std::move(jobs)](Impl& self, core::Result<Node> node) {
               if (!node) return self.fail(job, node.error());
               if (!drained_only_for(*node, owner, why))
                 return self.fail(job, {ErrorCode::kConflict, "it is not drained for that any more", 0, {}, {}});
               self.end_each(job, how, jobs, core::Json::array());
             }));
  }

  /// Ends one job after another. Ignores jobs that have ended meanwhile, and stops at the first other error.
  void end_each(const JobPtr& job, EndOfJobs how, EndingJobs left, core::Json ended) {
    if (left.empty()) return succeed(job, {{"ended", std::move(ended)}});
    Client* to = client(job);
    if (to == nullptr) return;
    const std::string id = std::move(left.back().full_id);
    left.pop_back();
    job->wrote = loop.clock().mono();
    auto next = guard<void>(
        [job, how, id, left = std::move(left), ended = std::move(ended)](Impl& self, core::Result<void> result) mutable {
          if (!result && result.error().code != ErrorCode::kNotFound) return self.fail(job, result.error().with("job " + id));
          if (result) ended.push_back(id);
          self.end_each(job, how, std::move(left), std::move(ended));
        });
    how == EndOfJobs::kCancel ? to->cancel_job(id, std::move(next)) : to->requeue_job(id, std::move(next));
  }

  void confirm(const ConfirmIdle& act, Done done) {
    const std::string& name = act.evidence.node().name;
    begin_by(act.evidence, "look at " + name, std::move(done), [this, name](const JobPtr& job) {
      // Kubernetes does not check for jobs when a pod is deleted. So read the node last: it shows a job that began meanwhile.
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

  void confirm_none_starts(const ConfirmNoneStarts& act, Done done) {
    begin(act.cluster, "look for jobs that start", std::move(done), [this](const JobPtr& job) {
      unless_any(job, &slurm::Job::starting, " is starting", [this, job] { succeed(job, {{"starting", false}}); });
    });
  }

  /// Call it if a live read has shown that a node is gone. If the snapshot still has the node, makes the next poll read all
  /// tables: either the snapshot is old, or slurmctld reported no change.
  void ask_for_all_if_known(const JobPtr& job, const std::string& name) {
    if (clusters.snapshot(job->cluster)->node(name) != nullptr) clusters.poll_all_next(job->cluster);
  }

  /// Succeeds without a deletion, because the node is already gone.
  void found_none(const JobPtr& job, const std::string& name) {
    ask_for_all_if_known(job, name);
    succeed(job, {{"deleted", false}});
  }

  /// Fails the act: the node record that kept the slurmd drained is gone.
  void miss(const JobPtr& job, const std::string& name) {
    ask_for_all_if_known(job, name);
    fail(job, {ErrorCode::kConflict, "Slurm no longer has node " + name, 0, {}, {}});
  }

  using None = void (Impl::*)(const JobPtr&, const std::string& name);

  /// Calls `then` if the live node has the expected state, and `none` if there is no such node.
  void if_kept(const JobPtr& job, const std::string& name, std::optional<Live> expected, None none,
               std::function<void(Impl&, const Node&)> then) {
    Client* to = client(job);
    if (to == nullptr) return;
    to->node(name, guard<Node>([job, name, expected, none, then = std::move(then)](Impl& self, core::Result<Node> node) {
               if (!node && node.error().code == ErrorCode::kNotFound) return (self.*none)(job, name);
               if (!node) return self.fail(job, node.error());
               if (expected == Live::kSilent && !is_silent(*node))
                 return self.fail(job, {ErrorCode::kConflict, "it is not down, or responds", 0, {}, {}});
               if (expected == Live::kDrained && !node->state.drains())
                 return self.fail(job, {ErrorCode::kConflict, "it is not drained any more", 0, {}, {}});
               if (expected == Live::kKept && !kept_from_work(*node)) {
                 return self.fail(job, {ErrorCode::kConflict, "it is neither drained, nor failing, nor down", 0, {}, {}});
               }
               then(self, *node);
             }));
  }

  /// Calls `then` if no job holds the node.
  void unless_held(const JobPtr& job, const std::string& name, std::function<void()> then) {
    unless_any(
        job, [name](const slurm::Job& row) { return row.holds(name); }, " holds it", std::move(then));
  }

  /// Calls `then` if no job holds the node. For slurm-enlist, requires also that no pending job names the node, because Slurm
  /// would end such a job.
  void unless_needed(const JobPtr& job, Owner owner, const std::string& name, std::function<void()> then) {
    if (owner != Owner::kEnlistment) return unless_held(job, name, std::move(then));
    unless_any(
        job,
        [name](const slurm::Job& row) {
          return row.holds(name) || (row.state == "PENDING" && core::hostlist_names(row.required_nodes, name));
        },
        " holds it, or waits for it by its name", std::move(then));
  }

  /// Reads all jobs live. Calls `then` if `such` is true for no job. Otherwise fails the act; `what` is the end of the message.
  void unless_any(const JobPtr& job, std::function<bool(const slurm::Job&)> such, std::string what,
                  std::function<void()> then) {
    with_live_jobs(job, [job, such = std::move(such), what = std::move(what), then = std::move(then)](Impl& self,
                                                                                                      const LiveJobs& jobs) {
      const auto one = std::ranges::find_if(jobs, [&](const auto& row) { return such(*row); });
      if (one == jobs.end()) return then();
      self.fail(job, {ErrorCode::kBusy, "job " + std::to_string((*one)->id) + " (" + (*one)->state + ")" + what, 0, {}, {}});
    });
  }

  /// Reads the live jobs and calls `then` with them.
  void with_live_jobs(const JobPtr& job, std::function<void(Impl&, const LiveJobs&)> then) {
    clusters.live_jobs(job->cluster, guard<LiveJobs>([job, then = std::move(then)](Impl& self, core::Result<LiveJobs> jobs) {
                         jobs ? then(self, *jobs) : self.fail(job, jobs.error());
                       }));
  }

  // --- Jobs of ours -----------------------------------------------------------------------------------------------

  void submit_job(const SubmitJob& act, Done done) {
    begin(act.cluster, "submit job", std::move(done),
          [this, mark = act.mark, wish = act.wish, comment = admin_comment(act.mark, act.more)](const JobPtr& job) {
            Client* to = client(job);
            if (to == nullptr) return;
            if (!to->job_details())
              return fail(job, {ErrorCode::kUnsupported,
                                "the job could not be found again, because slurmrestd gives no details of jobs",
                                0,
                                {},
                                {}});
            const auto write = [job, mark, wish, comment](Impl& self, const LiveJobs& jobs) {
              const auto same = [&](const auto& row) {
                return row->details && row->details->admin_comment.contains(mark.key) && mark_of(*row) == mark;
              };
              if (const auto one = std::ranges::find_if(jobs, same); one != jobs.end())
                return self.succeed(job, {{"job", (*one)->id}, {"submitted", false}});
              self.write_job(job, wish, comment);
            };
            const SnapshotPtr snapshot = clusters.snapshot(job->cluster);
            if (snapshot->requested_at <= unsure_until) return with_live_jobs(job, write);
            LiveJobs seen;
            for (const auto& [id, one] : snapshot->jobs) seen.push_back(one);
            write(*this, seen);
          });
  }

  /// Records that the submission sent at `sent`, or its reply, was lost. slurmctld may still carry it out for a while.
  void lose_submission(core::MonoTime sent) {
    unsure_until = std::max({unsure_until, loop.clock().mono() + kSettled, sent + kLongestWrite});
  }

  void write_job(const JobPtr& job, const JobWish& wish, const std::string& comment) {
    Client* to = client(job);
    if (to == nullptr) return;
    job->wrote = loop.clock().mono();
    to->submit_job(wish, comment, guard<std::int64_t>([job](Impl& self, core::Result<std::int64_t> id) {
                     if (id) return self.succeed(job, {{"job", *id}, {"submitted", true}});
                     if (core::retry_of(id.error().code) == core::Retry::kSettle) self.lose_submission(*job->wrote);
                     self.fail(job, id.error());
                   }));
  }

  /// Calls `then` with the live job of the evidence, or with null if that job has ended.
  void with_own_job(const OwnJob& evidence, const std::string& what, Done done,
                    std::function<void(Impl&, const JobPtr&, const slurm::Job*)> then) {
    begin(evidence.cluster(), what + " job " + std::to_string(evidence.id()), std::move(done),
          [this, evidence, then = std::move(then)](const JobPtr& job) {
            if (!evidence.good_at(loop.clock().mono()))
              return fail(job, {ErrorCode::kExpired, "Slurm's answer about it is too old", 0, {}, {}});
            Client* to = client(job);
            if (to == nullptr) return;
            const auto found = [job, evidence, then](Impl& self, const core::Result<std::shared_ptr<const slurm::Job>>& live) {
              if (!live && live.error().code == ErrorCode::kNotFound) return then(self, job, nullptr);
              if (!live) return self.fail(job, live.error());
              if (mark_of(**live) != evidence.mark())
                return self.fail(job, {ErrorCode::kConflict, "another one has replaced it", 0, {}, {}});
              then(self, job, (*live)->in_queue() ? live->get() : nullptr);
            };
            to->job(evidence.id(), guard<std::shared_ptr<const slurm::Job>>(found));
          });
  }

  void update_job(const UpdateJob& act, Done done) {
    with_own_job(act.evidence, "update", std::move(done),
                 [wish = act.wish](Impl& self, const JobPtr& job, const slurm::Job* live) {
                   if (live == nullptr) return self.fail(job, {ErrorCode::kNotFound, "it has ended", 0, {}, {}});
                   if (Client* to = self.client(job))
                     to->update_job(live->id, wish, self.finish_write(job, {{"updated", true}}));
                 });
  }

  void confirm_runs(const ConfirmRuns& act, Done done) {
    with_own_job(
        act.evidence, "look at", std::move(done), [nodes = act.nodes](Impl& self, const JobPtr& job, const slurm::Job* live) {
          const auto conflict = [&](std::string what) { self.fail(job, {ErrorCode::kConflict, std::move(what), 0, {}, {}}); };
          if (live == nullptr) return conflict("it has ended");
          if (live->state != "RUNNING" || live->starting()) return conflict("it is " + live->state);
          const auto held = [&](const std::string& node) { return live->runs_on(node); };
          if (live->nodes.size() != nodes.size() + live->only_named || !std::ranges::all_of(nodes, held))
            return conflict("it does not run on " + core::compress_hostlist(nodes));
          job->done({core::Json{{"runs", true}}, {}});
        });
  }

  void record_exit_code(const RecordExitCode& act, Done done) {
    begin(act.evidence.cluster(), "record the exit code of job " + std::to_string(act.evidence.id()), std::move(done),
          [this, evidence = act.evidence, code = act.exit_code](const JobPtr& job) {
            if (!evidence.good_at(loop.clock().mono()))
              return fail(job, {ErrorCode::kExpired, "Slurm's answer about it is too old", 0, {}, {}});
            Client* to = client(job);
            if (to == nullptr) return;
            to->accounting().clusters(guard<std::vector<std::shared_ptr<const accounting::Cluster>>>(
                [job, id = evidence.id(), code](Impl& self, const auto& rows) {
                  if (!rows) return self.fail(job, rows.error());
                  if (rows->size() != 1)
                    return self.fail(job, {ErrorCode::kUnsupported, "slurmdbd does not serve exactly one cluster", 0, {}, {}});
                  Client* slurm = self.client(job);
                  if (slurm == nullptr) return;
                  slurm->accounting().set_exit_code(id, code, self.guard<void>([job](Impl&, core::Result<void> result) {
                    if (!result) return job->done({std::unexpected(result.error().with(job->what)), {}});
                    job->done({core::Json{{"recorded", true}}, {}});
                  }));
                }));
          });
  }

  void cancel_job(const CancelJob& act, Done done) {
    with_own_job(act.evidence, "cancel", std::move(done), [](Impl& self, const JobPtr& job, const slurm::Job* live) {
      if (live == nullptr) return self.succeed(job, {{"cancelled", false}});
      if (Client* to = self.client(job))
        to->cancel_job(std::to_string(live->id), self.finish_write(job, {{"cancelled", true}}));
    });
  }

  // --- Reservations -----------------------------------------------------------------------------------------------

  void read_reservations(const ReadReservations& act, Done done) {
    begin(act.cluster, "read reservations", std::move(done), [this](const JobPtr& job) {
      with_reservations(job, [job](Impl&, const Table<Reservation>& table) {
        core::Json all = core::Json::array();
        for (const auto& row : table.rows) all.push_back(to_json(*row));
        job->done({std::move(all), {}});
      });
    });
  }

  // --- Accounting -------------------------------------------------------------------------------------------------

  void read_accounting_clusters(const ReadAccountingClusters& act, const Done& done) {
    const auto job = std::make_shared<Job>(Job{act.cluster, "ask slurmdbd for its clusters", done});
    loop.after(core::Duration{0}, [weak = weak_from_this(), job] {
      const auto self = weak.lock();
      if (!self) return;
      Client* to = self->client(job);
      if (to == nullptr) return;
      to->accounting().clusters([weak, job](const core::Result<std::vector<std::shared_ptr<const accounting::Cluster>>>& rows) {
        const auto target = weak.lock();
        if (!target) return;
        if (!rows) return target->tell_silence(job, rows.error());
        core::Json all = core::Json::array();
        for (const auto& row : *rows) all.push_back(accounting::to_json(*row));
        job->done({std::move(all), {}});
      });
    });
  }

  /// Fails the act with the error. If a ping shows that slurmrestd answers, the error gets the reason kSlurmdbdSilent, because
  /// then only slurmdbd did not answer.
  void tell_silence(const JobPtr& job, const core::Error& error) {
    Client* rest = clusters.client(job->cluster);
    if (error.http_status != 0 || error.code != ErrorCode::kUnavailable || rest == nullptr) return fail(job, error);
    rest->ping(guard<std::vector<Ping>>([job, error](Impl& self, const core::Result<std::vector<Ping>>& answer) {
      core::Error told = error;
      if (answer) told.reason = std::string(kSlurmdbdSilent);
      self.fail(job, told);
    }));
  }

  void with_reservations(const JobPtr& job, std::function<void(Impl&, const Table<Reservation>&)> then) {
    Client* to = client(job);
    if (to == nullptr) return;
    to->reservations(
        guard<Table<Reservation>>([job, then = std::move(then)](Impl& self, core::Result<Table<Reservation>> table) {
          table ? then(self, *table) : self.fail(job, table.error());
        }));
  }

  /// Calls `then` with the live reservation of that name, or null.
  void with_reservation(const JobPtr& job, const std::string& name, std::function<void(Impl&, const Reservation*)> then) {
    with_reservations(job, [name, then = std::move(then)](Impl& self, const Table<Reservation>& table) {
      const auto found = std::ranges::find_if(table.rows, [&](const auto& row) { return row->name == name; });
      then(self, found == table.rows.end() ? nullptr : found->get());
    });
  }

  void make_reservation(const MakeReservation& act, Done done) {
    if (act.wish.nodes.empty()) return refuse(std::move(done), {ErrorCode::kInvalid, "a reservation without nodes", 0, {}, {}});
    begin(act.cluster, "make reservation " + act.wish.name, std::move(done), [this, wish = act.wish](const JobPtr& job) {
      with_reservation(job, wish.name, [job, wish](Impl& self, const Reservation* live) {
        if (live != nullptr) return self.fail(job, {ErrorCode::kConflict, "Slurm has one of that name", 0, {}, {}});
        if (Client* to = self.client(job)) to->make_reservation(wish, self.finish_write(job, {{"made", wish.name}}));
      });
    });
  }

  /// Calls `then` with the live reservation of the evidence, or with null if that reservation is gone.
  void with_own(const OwnReservation& evidence, std::string what, Done done,
                std::function<void(Impl&, const JobPtr&, const Reservation*)> then) {
    begin(evidence.cluster(), std::move(what), std::move(done), [this, evidence, then = std::move(then)](const JobPtr& job) {
      if (!evidence.good_at(loop.clock().mono()))
        return fail(job, {ErrorCode::kExpired, "Slurm's answer about it is too old", 0, {}, {}});
      with_reservation(job, evidence.seen().name, [job, evidence, then](Impl& self, const Reservation* live) {
        const Reservation& seen = evidence.seen();
        if (live != nullptr &&
            (live->users != seen.users || live->flags != seen.flags || live->start != seen.start || live->end != seen.end))
          return self.fail(job, {ErrorCode::kConflict, "another one has replaced it", 0, {}, {}});
        then(self, job, live);
      });
    });
  }

  void set_reservation_nodes(const SetReservationNodes& act, Done done) {
    if (act.nodes.empty()) return refuse(std::move(done), {ErrorCode::kInvalid, "a reservation without nodes", 0, {}, {}});
    with_own(act.evidence, "set nodes of reservation " + act.evidence.seen().name, std::move(done),
             [nodes = act.nodes](Impl& self, const JobPtr& job, const Reservation* live) {
               if (live == nullptr) return self.fail(job, {ErrorCode::kConflict, "it is gone", 0, {}, {}});
               if (Client* to = self.client(job))
                 to->set_reservation_nodes(live->name, nodes, self.finish_write(job, {{"nodes", nodes}}));
             });
  }

  void delete_reservation(const DeleteReservation& act, Done done) {
    with_own(act.evidence, "delete reservation " + act.evidence.seen().name, std::move(done),
             [](Impl& self, const JobPtr& job, const Reservation* live) {
               if (live == nullptr) return self.succeed(job, {{"deleted", false}});
               if (Client* to = self.client(job))
                 to->delete_reservation(live->name, self.finish_write(job, {{"deleted", true}}));
             });
  }

  void reconfigure(const Reconfigure& act, Done done) {
    begin(act.cluster, "reconfigure", std::move(done), [this](const JobPtr& job) {
      Client* to = client(job);
      if (to == nullptr) return;
      job->wrote = loop.clock().mono();
      to->reconfigure(guard<void>([job](Impl& self, core::Result<void> result) {
        // slurmctld may report no change although partitions have changed.
        self.clusters.poll_all_next(job->cluster);
        if (result) return self.succeed(job, {{"reconfigured", true}});
        core::Error error = result.error();
        // If slurmctld refuses a configuration, its only answer is the error -1, "Unspecified error".
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
  core::MonoTime unsure_until;  ///< Snapshots that were requested up to this time may lack submissions.
};

void Target::others_wrote() {
  impl_->lose_submission(impl_->loop.clock().mono());
}

Target::Target(core::Loop& loop, Clusters& clusters) : impl_(std::make_shared<Impl>(loop, clusters)) {
  Impl* impl = impl_.get();
  carries_out<DrainNodes>([impl](const auto& act, Done done) { impl->drain(*act, std::move(done)); });
  carries_out<ResumeNode>([impl](const auto& act, Done done) { impl->resume(*act, std::move(done)); });
  carries_out<RestoreReason>([impl](const auto& act, Done done) { impl->restore(*act, std::move(done)); });
  carries_out<UpdateNode>([impl](const auto& act, Done done) { impl->update(*act, std::move(done)); });
  carries_out<DeleteNode>([impl](const auto& act, Done done) { impl->remove(*act, std::move(done)); });
  carries_out<CreateNode>([impl](const auto& act, Done done) { impl->create(*act, std::move(done)); });
  carries_out<RemoveNode>([impl](const auto& act, Done done) { impl->remove_own(*act, std::move(done)); });
  carries_out<EndNode>([impl](const auto& act, Done done) { impl->end(*act, std::move(done)); });
  carries_out<EndJobs>([impl](const auto& act, Done done) { impl->end_jobs(*act, std::move(done)); });
  carries_out<ConfirmIdle>([impl](const auto& act, Done done) { impl->confirm(*act, std::move(done)); });
  carries_out<ConfirmNoneStarts>([impl](const auto& act, Done done) { impl->confirm_none_starts(*act, std::move(done)); });
  carries_out<ConfirmNoJobs>([impl](const auto& act, Done done) { impl->confirm_none(*act, std::move(done)); });
  carries_out<ReadReservations>([impl](const auto& act, Done done) { impl->read_reservations(*act, std::move(done)); });
  carries_out<ReadAccountingClusters>(
      [impl](const auto& act, const Done& done) { impl->read_accounting_clusters(*act, done); });
  carries_out<MakeReservation>([impl](const auto& act, Done done) { impl->make_reservation(*act, std::move(done)); });
  carries_out<SetReservationNodes>([impl](const auto& act, Done done) { impl->set_reservation_nodes(*act, std::move(done)); });
  carries_out<DeleteReservation>([impl](const auto& act, Done done) { impl->delete_reservation(*act, std::move(done)); });
  carries_out<SubmitJob>([impl](const auto& act, Done done) { impl->submit_job(*act, std::move(done)); });
  carries_out<UpdateJob>([impl](const auto& act, Done done) { impl->update_job(*act, std::move(done)); });
  carries_out<ConfirmRuns>([impl](const auto& act, Done done) { impl->confirm_runs(*act, std::move(done)); });
  carries_out<RecordExitCode>([impl](const auto& act, Done done) { impl->record_exit_code(*act, std::move(done)); });
  carries_out<CancelJob>([impl](const auto& act, Done done) { impl->cancel_job(*act, std::move(done)); });
  carries_out<Reconfigure>([impl](const auto& act, Done done) { impl->reconfigure(*act, std::move(done)); });
}

Target::~Target() = default;

}  // namespace slurm
