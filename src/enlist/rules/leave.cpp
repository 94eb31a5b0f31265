#include "enlist/rules/leave.hpp"

#include <algorithm>
#include <utility>

#include "core/hostlist.hpp"
#include "enlist/rules/judge.hpp"
#include "slurm/holds.hpp"

namespace enlist {
namespace {

using slurm::Owner;

/// The largest number of jobs or steps that a message names.
constexpr std::size_t kNamed = 8;
constexpr const char* kAwaited = "awaited";  ///< Leaves::kept_by: pending jobs name the node.

/// Something that the leave of a node waits for.
struct Keeper {
  std::string kind;  ///< Leaves::kept_by.
  std::string text;
  bool fault = true;  ///< If it lasts for kStuckAfter, the node is kStuck.
};

std::string some_of(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), kNamed); ++i) out += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kNamed ? out + " and " + std::to_string(names.size() - kNamed) + " more" : out;
}

/// Judges the leave of one node.
class LeaveJudging {
 public:
  explicit LeaveJudging(const LeaveInput& input)
      : in_(input),
        node_(input.node),
        report_(input.node.report),
        leaves_(input.node.leaving.wanted),
        stop_(input.node.configuring.stop || (leaves_ && input.node.leaving.stop)),
        shown_(input.slurm ? input.slurm->node(input.node.name) : nullptr),
        record_(shown_ != nullptr && is_of(*shown_, node_) ? shown_ : nullptr) {}

  [[nodiscard]] Leaves judge() const {
    if (!in_.slurm || !in_.slurm->complete()) {
      const std::string why = in_.slurm && !in_.slurm->error.empty() ? ": " + in_.slurm->error : "";
      return stays("Slurm does not answer" + why);
    }
    if (!in_.asked_at || in_.slurm->requested_at < *in_.asked_at)
      return stays("Slurm has not reported the jobs on the node yet");
    const bool two_hosts = !in_.two_hosts.empty() && !node_.revoked;
    // slurmd was stopped before the phase became kGone, so the host is not checked again.
    if (!two_hosts && leaves_ && node_.phase == Phase::kGone && record_ == nullptr) return gone();
    if (leaves_ && node_.leaving.dead && !dead() && !stop_) {
      Leaves out = stays("its host has returned");
      out.cancel = true;
      return out;
    }
    if (record_ != nullptr && needs_drain()) {
      Leaves out = at(Phase::kDraining, {.kind = "drain", .text = "Slurm has not drained it yet"}, stop_);
      out.drain = true;
      return out;
    }
    // The steps in the report may be those of the other host.
    if (two_hosts) return {.phase = Phase::kStuck, .message = in_.two_hosts, .kept_by = "copy", .stop = stop_};
    const std::optional<Keeper> in_slurm = kept_in_slurm();
    const std::optional<Keeper> on_host = in_slurm ? std::nullopt : kept_on_host();
    // If somebody has resumed the node, a job may have started there. slurmd must run until the job has ended.
    if (in_slurm && is_work(*in_slurm)) return at(Phase::kDraining, *in_slurm, false);
    // A pending job names this node, which will register again with the other parameters. slurmd is not stopped meanwhile, so
    // the request can still be cancelled.
    if (in_slurm && !leaves_ && in_slurm->kind == kAwaited) return at(Phase::kDraining, *in_slurm, false);
    if (on_host && is_work(*on_host)) return at(Phase::kDraining, *on_host, false);
    if (in_slurm) return at(Phase::kDraining, *in_slurm, stop_);
    if (on_host) return at(Phase::kDraining, *on_host, stop_);
    if (!report_.stopped && !may_skip_host()) {
      const std::string error = report_.error.empty() ? "" : "; the agent reports: " + report_.error;
      return at(Phase::kStopping, {.kind = "stop", .text = "the agent stops slurmd" + error + unheard()}, true);
    }
    const bool may_register = shown_ == nullptr && !asked_while_stopped() && !may_skip_host();
    if (record_ != nullptr || may_register) {
      Leaves out = at(Phase::kDeleting, {.kind = "record", .text = "Slurm has not deleted its record yet"}, true);
      out.erase = record_ != nullptr;
      return out;
    }
    return leaves_ ? gone() : starts();
  }

 private:
  [[nodiscard]] Leaves stays(std::string why) const {
    return {
        .phase = leaves(node_.phase) ? node_.phase : Phase::kDraining, .message = std::move(why), .kept_by = {}, .stop = stop_};
  }
  [[nodiscard]] bool lasts(core::Duration limit) const { return in_.kept_since && in_.now - *in_.kept_since >= limit; }
  [[nodiscard]] Leaves at(Phase phase, const Keeper& keeper, bool stop) const {
    const bool stuck = keeper.fault && lasts(kStuckAfter);
    return {.phase = stuck ? Phase::kStuck : phase, .message = keeper.text, .kept_by = keeper.kind, .stop = stop};
  }
  /// Reports whether the keeper is a job or a step, which needs a running slurmd.
  static bool is_work(const Keeper& keeper) {
    return keeper.kind == "jobs" || keeper.kind == "suspended" || keeper.kind == "completing" || keeper.kind == "steps";
  }

  // --- The host ---

  [[nodiscard]] bool agent_silent() const { return in_.heard_at && in_.now - *in_.heard_at >= kSilentAfter; }
  [[nodiscard]] bool dead() const { return agent_silent() && (record_ == nullptr || record_->state.has("NOT_RESPONDING")); }
  [[nodiscard]] bool forced() const {
    return leaves_ && node_.leaving.force && in_.asked_at && in_.now - *in_.asked_at >= kForcedAfter;
  }
  /// Reports whether steps run on the host by a report that still counts. Leaving::force does not skip such steps.
  [[nodiscard]] bool reports_steps() const {
    return report_.steps_known && !report_.steps.empty() && !agent_silent() && !(leaves_ && node_.revoked);
  }
  /// Reports whether the leave goes on although the agent has not stopped slurmd. If that slurmd registers again, the node is
  /// behind the gate.
  [[nodiscard]] bool may_skip_host() const {
    // A node that gets other parameters needs its host.
    if (!leaves_) return false;
    if (node_.revoked || dead()) return true;
    const bool unheard = !in_.heard_at || in_.now - *in_.heard_at >= kForcedAfter;
    // The agent's error may be about something else. So the agent still gets kForcedAfter to stop slurmd.
    const bool unable = !report_.steps_known || (!report_.error.empty() && lasts(kForcedAfter));
    return forced() && !reports_steps() && (unheard || unable);
  }
  [[nodiscard]] std::string unheard() const {
    if (!agent_silent()) return "";
    return std::string("; its agent has not reported for two minutes: start it") +
           (leaves_ ? ", or remove the node with --force" : "");
  }

  [[nodiscard]] std::optional<Keeper> kept_on_host() const {
    if (!reports_steps() && (may_skip_host() || forced())) return std::nullopt;
    if (!report_.steps_known)
      return Keeper{.kind = "agent", .text = "its agent has not reported yet whether job steps run on the host" + unheard()};
    if (report_.steps.empty()) return std::nullopt;
    return Keeper{.kind = "steps", .text = "steps still run on the host: " + some_of(report_.steps)};
  }

  // --- Slurm ---

  [[nodiscard]] bool needs_drain() const {
    if (!record_->state.drains()) return true;
    const std::string_view why = !in_.why.empty() ? in_.why : leaves_ ? kLeaves : kConfigures;
    const bool renames = slurm::Holds::read(record_->reason).why(Owner::kEnlistment) != why;
    return (holds_itself(record_->reason) && renames) || slurm::drained_without(*record_, Owner::kEnlistment);
  }

  [[nodiscard]] std::optional<Keeper> kept_in_slurm() const {
    // The record is that of another host, and so are the jobs in it.
    if (shown_ != nullptr && record_ == nullptr) return std::nullopt;
    if (auto jobs = kept_by_jobs()) return jobs;
    if (record_ == nullptr) return std::nullopt;
    if (record_->state.has("COMPLETING"))
      return Keeper{.kind = "completing", .text = "Slurm still shows a job there that is completing, such as its epilog"};
    const std::string& base = record_->state.base;
    // If Slurm has refused every registration of the node, the state is UNKNOWN.
    const bool refused = base == "UNKNOWN" && record_->state.has("INVALID_REG");
    if (base != "IDLE" && base != "DOWN" && !refused)
      return Keeper{.kind = "state", .text = "Slurm shows it as " + record_->state.base};
    if (record_->state.has("RESERVED") || !record_->reservation.empty()) {
      return Keeper{.kind = "reservation",
                    .text = "it is in the active reservation " + record_->reservation +
                            ", whose nodes Slurm does not delete: change the reservation"};
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Keeper> kept_by_jobs() const {
    std::vector<std::string> running, suspended, completing;
    for (const auto& job : in_.slurm->jobs_on(node_.name)) {
      const bool unread = job->nodes_unknown || job->id < 0;
      const std::string id =
          job->id < 0 ? "a job that cannot be read" : job->full_id() + (unread ? " (its nodes cannot be read)" : "");
      (job->flags.contains("COMPLETING") ? completing : job->state == "SUSPENDED" ? suspended : running).push_back(id);
    }
    if (!running.empty())
      return Keeper{.kind = "jobs", .text = "jobs run there: " + some_of(running) + of_dead(), .fault = false};
    if (!suspended.empty()) return Keeper{.kind = "suspended", .text = "jobs are suspended there: " + some_of(suspended)};
    if (!completing.empty())
      return Keeper{.kind = "completing", .text = "jobs are completing there, such as their epilog: " + some_of(completing)};
    if (!in_.slurm->awaited(node_.name)) return std::nullopt;
    std::vector<std::string> waiting;
    for (const auto& [id, job] : in_.slurm->jobs) {
      if (!job->holds_nodes() && job->in_queue() && core::hostlist_names(job->required_nodes, node_.name))
        waiting.push_back(job->full_id());
    }
    return Keeper{.kind = kAwaited,
                  .text = "pending jobs request this node by name, and Slurm would end them: " + some_of(waiting)};
  }
  [[nodiscard]] std::string of_dead() const {
    return dead() ? "; the host is silent, and Slurm ends its jobs itself after SlurmdTimeout" : "";
  }

  // --- Afterwards ---

  /// True if the snapshot was requested after slurmd was seen stopped, so that it shows any registration that was under way.
  [[nodiscard]] bool asked_while_stopped() const { return in_.kept_since && in_.slurm->requested_at > *in_.kept_since; }

  [[nodiscard]] Leaves starts() const {
    Leaves out{.phase = Phase::kStarting, .message = "the agent starts slurmd with the new parameters", .kept_by = "record"};
    out.start = true;
    return out;
  }

  [[nodiscard]] Leaves gone() const {
    std::string text = "Slurm does not have the node any more";
    if (shown_ != nullptr) text = "Slurm has another slurmd under this name, and that record stays";
    Leaves out{.phase = Phase::kGone, .message = std::move(text), .kept_by = "clean", .stop = true};
    out.forget = node_.phase == Phase::kGone && (report_.left || agent_silent() || may_skip_host());
    if (!out.forget)
      out.message += "; the agent cleans up the host" + (report_.error.empty() ? "" : "; the agent reports: " + report_.error);
    return out;
  }

  const LeaveInput& in_;
  const Node& node_;
  const Report& report_;
  bool leaves_, stop_;
  const slurm::Node *shown_, *record_;
};

}  // namespace

Leaves judge_leave(const LeaveInput& input) {
  return LeaveJudging(input).judge();
}

bool holds_itself(std::string_view reason) {
  const std::string why = slurm::Holds::read(reason).why(Owner::kEnlistment).value_or("");
  return why == kGate || why == kLeaves || why == kConfigures || why == kUnheard;
}

bool is_of(const slurm::Node& record, const Node& node) {
  return !record.instance_id.empty() && (record.instance_id == node.report.instance_id || record.instance_id == node.confirmed);
}

std::string_view leave_of(const Node& node) {
  const bool restarts = node.configuring.restarts();
  if (!node.leaving.wanted && !restarts) return "";
  if (node.leaving.wanted && node.phase == Phase::kGone) return kLeaveClean;
  return node.leaving.stop || (restarts && node.configuring.stop) ? kLeaveStop : kLeaveSteps;
}

bool leaves(Phase phase) {
  return phase == Phase::kDraining || phase == Phase::kStopping || phase == Phase::kDeleting || phase == Phase::kGone ||
         phase == Phase::kStuck;
}

}  // namespace enlist
