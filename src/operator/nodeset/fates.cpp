// Decides what happens to each worker: it is kept, updated, scaled in, replaced, or ended with its cluster.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <tuple>
#include <utility>

#include "api/well_known.hpp"
#include "core/hostlist.hpp"
#include "operator/nodeset/parts.hpp"
#include "slurm/acts.hpp"

namespace op::nodeset {
namespace {

constexpr int kPercentAtOnce = 5;
/// If the deletion of a worker began longer ago than this, the worker counts as replaced.
constexpr core::Duration kReplaced{2 * 60 * 1000};

/// Returns the rank of the pod's phase. The deletion of a pod in phase Unknown ends no job, because the pod's kubelet does not
/// answer or does not know the state of slurmd.
int phase_rank(const Worker& worker) {
  if (worker.busy()) return 2;
  if (worker.pod->phase == "Pending") return 0;
  return worker.pod->phase == "Unknown" ? 1 : 2;
}

std::int64_t deletion_cost(const kube::PodRecord& pod) {
  const std::string_view text = pod.meta.annotation(api::kAnnotationPodDeletionCost);
  std::int64_t cost = 0;
  std::from_chars(text.data(), text.data() + text.size(), cost);
  return cost;
}

/// Returns the rank of a worker. Workers with smaller ranks are deleted first. Lost workers come first, because they are
/// deleted in any case. If they came later, other workers would be deleted in addition. Then come workers whose deletion has
/// begun, so that a later pass does not drain different workers. `chosen`: the worker counts as drained for the scale-in.
auto rank(const View& view, const WaitingJobsByNode& waiting_jobs, const Worker& worker, bool chosen) {
  const kube::PodRecord& pod = *worker.pod;
  const core::WallTime never{core::Duration{0}};
  return std::tuple(!worker.lost(), !worker.cleared_for_deletion, !lacks_record(view, worker), !chosen,
                    view.of_mode(worker.key), !pod.node_name.empty(), phase_rank(worker), pod.ready() || worker.busy(),
                    deletion_cost(pod), held_by_others(worker), waiting_jobs.contains(worker.node), deadline_rank(worker),
                    worker.record != nullptr && reserved(*worker.record), !(worker.user_cordon || worker.kube_cordon()),
                    !drained_for(worker, update_reason(view)), -worker.key.ordinal,
                    -pod.ready_since.value_or(never).since_epoch.count(), -pod.meta.created.since_epoch.count());
}

// A silent worker is lost with its host: neither the host's kubelet nor the slurmd responds, and Slurm has no job on the
// worker. Workers tolerate the absence of their kubelet, so Kubernetes does not evict them. If at least half of the cluster's
// other nodes are silent as well, no worker counts as lost, because slurmctld itself is probably cut off.

bool is_silent(const View& view, const Worker& worker) {
  // A worker that is bound to its host cannot be replaced on another host, so it never counts as silent.
  if (view.by_host() && !worker.key.numbered()) return false;
  return worker.life == Life::kLive && !worker.lost() && worker.evidence.silent && !reserved(*worker.record) &&
         !held_by_others(worker);
}

/// True if fewer than half of the cluster's other nodes, including those of other NodeSets, are silent.
bool most_others_answer(const View& view) {
  const auto& nodes = view.in.snapshot->nodes;
  const auto silent =
      std::count_if(nodes.begin(), nodes.end(), [](const auto& item) { return item.second->state.has("NOT_RESPONDING"); });
  const auto others = static_cast<std::ptrdiff_t>(nodes.size()) - 1;
  return others == 0 || 2 * (silent - 1) < others;
}

/// Returns how much longer slurmctld must run before it knows which slurmds answer. Negative: it knows. nullopt: slurmctld is
/// not ready.
std::optional<core::Duration> until_slurmctld_knows(const View& view) {
  const ControllerView& controller = *view.in.controller;
  if (!controller.ready_since) return std::nullopt;
  return controller.slurmd_timeout - (view.in.now - *controller.ready_since);
}

struct Silence {
  std::size_t budget = 0;       ///< How many silent workers may be replaced now.
  std::vector<Change> changes;  ///< When the budget may grow.
};

Silence judge_silence(const View& view, const Workers& workers) {
  Silence out;
  std::size_t under_way = 0;
  for (const Worker& worker : workers) {
    if (worker.life != Life::kTerminating || !worker.host_lost()) continue;
    const core::Duration left = kReplaced - (view.in.mono - view.in.seen.terminating_since.at(worker.pod->meta.uid));
    if (left.count() <= 0) continue;
    ++under_way;
    out.changes.push_back({left, "a worker whose host is lost is replaced by then"});
  }
  if (std::ranges::none_of(workers, [&](const Worker& worker) { return is_silent(view, worker); })) return out;
  const std::optional<core::Duration> left = until_slurmctld_knows(view);
  if (left && left->count() >= 0)
    out.changes.push_back({*left + core::Duration{1000}, "slurmctld has not run for SlurmdTimeout yet"});
  if (!left || left->count() >= 0 || !most_others_answer(view)) return out;
  const std::size_t at_once = std::max<std::size_t>(1, workers.size() * kPercentAtOnce / 100);
  out.budget = at_once - std::min(at_once, under_way);
  return out;
}

std::string why_lost(const Worker& worker) {
  if (worker.silent()) {
    return "its Kubernetes node " + worker.pod->node_name + " is lost, and its slurmd " +
           (began_before(*worker.record, *worker.pod) ? "has not registered with Slurm" : "does not respond to Slurm");
  }
  if (worker.prospect == Prospect::kUnpinned)
    return fmt::format("it waits for Kubernetes node {}, to which it is no longer pinned",
                       worker.pod->meta.annotation(api::kAnnotationPinnedTo));
  if (worker.outdated()) return "it never started, and its template has changed since";
  if (worker.missing_since) return "its Slurm node was deleted while it ran, and its slurmd does not register again by itself";
  return worker.deregistered ? "its Slurm node was deleted, and it does not register again" : "it never registered with Slurm";
}

std::string why_workers_go(const View& view) {
  switch (view.goal) {
    case Goal::kEndAll:
      return "Controller " + view.in.controller->meta.name + " is being deleted, and with it the cluster";
    case Goal::kDrainAll:
      return view.in.meta().terminating() ? view.self_text() + " is being deleted"
                                          : "Controller " + view.in.controller->meta.name + " is being deleted";
    default:
      return fmt::format("{} wants {} workers", view.self_text(), view.desired);
  }
}

/// Returns how many live workers are to be deleted: all lost workers, and more if too many others are left.
std::size_t count_to_go(const View& view, const std::vector<Worker*>& live) {
  if (view.goal != Goal::kServe) return live.size();
  const auto wanted = static_cast<std::size_t>(view.desired);
  const auto lost = static_cast<std::size_t>(std::ranges::count_if(live, [](const Worker* worker) { return worker->lost(); }));
  return live.size() - lost > wanted ? live.size() - wanted : lost;
}

WaitingJobsByNode find_waiting_jobs(const View& view) {
  constexpr std::size_t kFirst = 10;
  WaitingJobsByNode out;
  if (view.in.snapshot == nullptr) return out;
  std::vector<std::string_view> nodes;
  for (const Slot& slot : view.in.slots) nodes.push_back(slot.node);
  const core::HostIndex index(std::move(nodes));
  for (const auto& [id, job] : view.in.snapshot->jobs) {
    if (job->state != "PENDING" || job->required_nodes.empty()) continue;
    index.look_up(job->required_nodes, [&, number = id](std::string_view name) {
      WaitingJobs& waiting = out[name];
      if (!waiting.first.empty() && waiting.last == number) return;
      waiting.last = number;
      ++waiting.count;
      if (waiting.first.size() < kFirst) waiting.first.push_back(number);
    });
  }
  return out;
}

void replace_lost(const View& view, Worker& worker) {
  worker.fate = {view.goal == Goal::kEndAll ? Fate::Kind::kEnd : Fate::Kind::kReplace,
                 worker.silent()     ? Fate::Cause::kSilent
                 : worker.outdated() ? Fate::Cause::kOutdated
                                     : Fate::Cause::kLost,
                 why_lost(worker)};
}

/// The live workers, in the order in which they are deleted.
using Ranking =
    std::vector<std::pair<decltype(rank(std::declval<const View&>(), {}, std::declval<const Worker&>(), true)), Worker*>>;

/// True if the plan is allowed to resume a worker that is drained for the scale-in, and to drain an idle worker instead. The
/// idle worker might also get a job just before its drain. To end this chain, exchanges are allowed only for a short time after
/// the first drain.
bool may_choose_again(const View& view) {
  const std::optional<SeenScaleIn>& seen = view.in.seen.scale_in;
  return view.goal == Goal::kServe && view.slurm_known() && !view.stops() && seen && view.in.mono - seen->first < kJustDrained;
}

/// True if the worker is busy although it has just been drained for the scale-in, and would serve again if it were resumed.
bool raced(const View& view, const Worker& worker) {
  return drained_for(worker, scale_in_reason(view)) && worker.drained_for && *worker.drained_for < kJustDrained &&
         worker.busy() && worker.ready() && !worker.user_cordon && !worker.kube_cordon();
}

/// Replaces workers to delete that got a job just before their drain by idle workers, because such a job can run for days. The
/// first `going` workers in `ranked` are deleted. An exchange requires that the idle worker ranks before the busy worker if the
/// rank of the busy worker ignores its drain.
void spare_raced(const View& view, const WaitingJobsByNode& waiting_jobs, std::size_t going, Ranking& ranked) {
  if (!may_choose_again(view)) return;
  auto idle = ranked.begin() + static_cast<std::ptrdiff_t>(going);
  const auto is_idle = [](const auto& item) {
    const Worker& worker = *item.second;
    return worker.usable() && !worker.busy() && !reserved(*worker.record);
  };
  // Exchange the workers with the largest ranks first.
  for (std::size_t i = going; i-- > 0;) {
    const Worker& worker = *ranked[i].second;
    if (!raced(view, worker)) continue;
    idle = std::find_if(idle, ranked.end(), is_idle);
    if (idle == ranked.end()) return;
    if (idle->first < rank(view, waiting_jobs, worker, false)) std::swap(ranked[i], *idle++);
  }
}

/// Sets the fates of the workers to delete.
void choose_victims(const View& view, Fates& out) {
  std::vector<Worker*> live;
  for (Worker& worker : out.workers) {
    if (worker.life == Life::kLive) live.push_back(&worker);
  }
  if (live.empty()) return;
  const bool by_place = view.goal == Goal::kServe && view.by_host();
  const std::size_t going = by_place ? 0 : count_to_go(view, live);
  if (by_place) {
    for (Worker* worker : live) {
      if (worker->lost()) replace_lost(view, *worker);
    }
    judge_places(view, out);
  }
  if (going == 0) return;
  if (out.waiting_jobs.empty()) out.waiting_jobs = find_waiting_jobs(view);
  Ranking ranked;
  ranked.reserve(live.size());
  for (Worker* worker : live)
    ranked.emplace_back(rank(view, out.waiting_jobs, *worker, drained_for(*worker, scale_in_reason(view))), worker);
  std::sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  spare_raced(view, out.waiting_jobs, going, ranked);
  const std::string why = why_workers_go(view);
  for (std::size_t i = 0; i < going; ++i) {
    Worker& worker = *ranked[i].second;
    if (worker.lost()) {
      replace_lost(view, worker);
    } else {
      worker.fate = {view.goal == Goal::kEndAll ? Fate::Kind::kEnd : Fate::Kind::kScaleIn, Fate::Cause::kSurplus, why, false};
    }
  }
}

}  // namespace

std::string waiting_text(const WaitingJobsByNode& jobs, const std::string& node) {
  const auto found = jobs.find(node);
  if (found == jobs.end()) return {};
  const WaitingJobs& waiting = found->second;
  std::string out = fmt::format("{}", fmt::join(waiting.first, ", "));
  if (waiting.first.size() < waiting.count) out += fmt::format(" and {} more", waiting.count - waiting.first.size());
  return out;
}

bool drained_for(const Slot& worker, std::string_view reason) {
  return worker.drained_by_us() && slurm::Holds::read(worker.record->reason).why(slurm::Owner::kOperator) == reason;
}

std::int64_t deadline_rank(const Slot& worker) {
  if (!worker.work.running) return worker.work.suspended ? INT64_MAX : 0;
  return worker.work.deadline ? worker.work.deadline->since_epoch.count() : INT64_MAX;
}

bool lacks_record(const View& view, const Slot& worker) {
  return view.slurm_known() && worker.record == nullptr && worker.stamped && worker.ready() &&
         !view.in.snapshot->job_names(worker.node);
}

bool may_register(const Slot& worker) {
  return worker.record != nullptr && (!slurmd_started(*worker.pod) || began_before(*worker.record, *worker.pod));
}

bool reserved(const slurm::Node& node) {
  return node.state.has("RESERVED");
}

bool outlives_worker(const View& view, const slurm::Node& node) {
  return view.goal == Goal::kServe && held_by_others(node) && !tells_refusal(node);
}

Fates judge_fates(const View& view, const ExtraConf& extra_conf) {
  Fates out;
  out.workers.reserve(view.in.slots.size());
  for (const Slot& slot : view.in.slots) out.workers.push_back({slot, {}});
  if (view.goal == Goal::kHold) return out;
  if (view.goal == Goal::kServe && view.slurm_known()) {
    Silence silence = judge_silence(view, out.workers);
    out.changes = std::move(silence.changes);
    std::size_t left = silence.budget;
    for (Worker& worker : out.workers) {
      if (left == 0 || !is_silent(view, worker)) continue;
      worker.fate.cause = Fate::Cause::kSilent;
      --left;
    }
  }
  const auto waits = [&](const Worker& worker) {
    if (worker.record == nullptr || !view.in.snapshot->awaited(worker.node)) return false;
    return is_earlier(view, worker) || !view.of_mode(worker.key) || view.node_name(worker.key) != worker.node;
  };
  if (std::ranges::any_of(out.workers, waits)) out.waiting_jobs = find_waiting_jobs(view);
  choose_victims(view, out);
  out.switching = switch_mode(view, extra_conf, out);
  const auto leaves = [](const Worker& worker) { return worker.goes() && !worker.updates(); };
  if (out.waiting_jobs.empty() && std::ranges::any_of(out.workers, leaves)) out.waiting_jobs = find_waiting_jobs(view);
  out.rollout = judge_rollout(view, extra_conf, out);
  if (out.rollout.change) out.changes.push_back(*out.rollout.change);
  return out;
}

}  // namespace op::nodeset
