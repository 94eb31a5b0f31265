// Implements RollingUpdate and ScheduledUpdate: chooses which workers of an earlier template are replaced now. A worker of the
// same name replaces each of them.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <tuple>

#include "api/well_known.hpp"
#include "kube/acts.hpp"
#include "operator/common/slinky.hpp"
#include "operator/nodeset/build_worker.hpp"
#include "operator/nodeset/parts.hpp"
#include "slinky/worker_names.hpp"

namespace op::nodeset {
namespace {

/// The time until left-out workers are judged again. No event wakes the NodeSet when a job that waits for a node is cancelled,
/// or when a worker's time to register is over.
constexpr Change kKeptAgain{core::Duration{30000}, "workers that were left out of an update may be updated"};

/// How long an answer of the API server about a template is valid: kAcceptedFor if the API server accepts the template,
/// kRefusedFor if it refuses the template, kUnansweredFor if there was no answer. After a refusal, the API server is asked
/// again soon, because an administrator can remove the cause at any moment.
constexpr core::Duration kAcceptedFor{10 * 60 * 1000}, kRefusedFor{60000}, kUnansweredFor{5000};

/// Returns the ordinals that no worker and no other pod uses.
FreeOrdinals free_ordinals(const View& view, const Workers& workers) {
  std::set<int> used;
  for (const Worker& worker : workers) used.insert(worker.key.ordinal);
  for (const auto* pods : {&view.in.orphans, &view.in.unmanaged}) {
    for (const kube::PodPtr& pod : *pods) used.insert(ordinal_of(pod->meta.name, view.in.meta().name + "-").value_or(-1));
  }
  return {view, std::move(used)};
}

/// True if the next worker of the ordinal needs a new record in Slurm, because the --conf or the name of the Slurm node
/// differs.
bool needs_new_record(const View& view, const Worker& worker) {
  if (has_other_conf(view, *worker.record, view.in.hash)) return true;
  const bool on_host = uses_host_network(view.in.nodeset.spec);
  return on_host || worker.pod->host_network || view.node_name(worker.key) != worker.node;
}

/// Returns why the worker is not replaced: what its replacement would lose, or why a replacement is not possible. "": it can be
/// replaced.
std::string why_kept(const View& view, const Worker& worker, FreeOrdinals& free, Fates& fates) {
  if (worker.user_cordon) return "pod " + pod_text(worker) + " was cordoned, and its successor would not be";
  if (worker.kube_cordon()) {
    const KubeNode& host = *worker.kube_node;
    // A worker that is bound to a cordoned Kubernetes node can be replaced, because its successor starts on that node again.
    if (worker.key.numbered() || !host.goes.empty())
      return "the Kubernetes node of " + pod_text(worker) + (host.unschedulable ? " is cordoned" : " is about to be removed");
  }
  if (!worker.key.numbered()) {
    const auto host = view.in.hosts.find(worker.key.kube_node);
    if (host == view.in.hosts.end()) return "the Kubernetes node of " + pod_text(worker) + " is gone";
    if (!host->second.fit.starts)
      return "the Kubernetes node of " + pod_text(worker) + " has a taint that keeps its successor away";
  }
  // It can take long until Kubernetes reports the deleted pod as gone, so the worker is not replaced.
  if (worker.host_lost()) return "the Kubernetes node of " + pod_text(worker) + " does not respond";
  if (std::string why = why_unnamed(view, worker.key); !why.empty()) return why;
  const std::string name = view.node_name(worker.key);
  const bool renamed = !worker.key.numbered() && !uses_host_network(view.in.nodeset.spec) && name != worker.node;
  if (renamed && view.has_worker(name)) return name + " is another worker, so " + worker.node + " cannot have its name";
  if (worker.record == nullptr) return {};
  if (!worker.suspect.empty()) return worker.node + " may have registered as " + worker.suspect + " by now";
  const slurm::Node& record = *worker.record;
  const bool held = held_by_others(record) && !tells_refusal(record);
  if (record.state.has("FAIL") || (held && record.state.base == "DOWN" && !record.state.has("DRAIN")))
    return "somebody set " + worker.node + " down or failing";
  // The worker's record reserves the worker's number for the successor, unless somebody else holds the node or the record lacks
  // our stamp.
  if (worker.key.numbered() && (held || !stamped_by_us(view, record)) && free.has_before(worker.key.ordinal))
    return "the next worker would not get the number of " + worker.node;
  if (!needs_new_record(view, worker)) return {};
  if (std::string why = why_record_stays(view, worker, drained_for(worker, update_reason(view)), fates); !why.empty())
    return why;
  if (!held) return {};
  switch (judge_restorable(view, worker.key, record)) {
    case Restorable::kNo:
      break;
    case Restorable::kNoText:
      return "somebody drained " + worker.node + " with a reason that cannot be restored in a new record";
    case Restorable::kNotKept:
      return "somebody drained " + worker.node +
             ", and the API server does not keep status.drainsToRestore: update the CustomResourceDefinitions";
    case Restorable::kToBeNoted:
    case Restorable::kNoted:
      return {};
  }
  return "somebody drained " + worker.node + ", which would be lost with its record";
}

Rollout::State state_of(const View& view, const ExtraConf& extra_conf, const Rollout& rollout) {
  const Rolls rolls = newest_revision_rolls(view);
  if (rolls == Rolls::kNo) return Rollout::State::kByHand;
  if (view.in.nodeset.spec.update_strategy.paused) return Rollout::State::kPaused;
  if (is_scheduled(view) && view.slurm_known()) {
    if (!view.in.snapshot->capabilities.reservations) return Rollout::State::kByHand;
    if (rollout.outside > 0 && rollout.outside + rollout.below == rollout.earlier) return Rollout::State::kScheduled;
  }
  const bool now = rolls == Rolls::kYes && can_create(view, extra_conf) && view.slurm_known();
  return now ? Rollout::State::kRolls : Rollout::State::kBlocked;
}

/// True if the worker can be drained, or its slurmd never registered. Any other worker is about to register, or is replaced for
/// another reason.
bool can_go(const Worker& worker) {
  return worker.record != nullptr || worker.evidence.never_started || worker.evidence.never_registered;
}

void choose(const View& view, Worker& worker) {
  worker.fate = {Fate::Kind::kUpdate, Fate::Cause::kEarlier, update_reason(view)};
}

/// True if this pass must first write a drain by others to the status, so that the worker can be replaced later.
bool awaits_note(const View& view, const Worker& worker) {
  return worker.record != nullptr && needs_new_record(view, worker) &&
         judge_restorable(view, worker.key, *worker.record) == Restorable::kToBeNoted;
}

/// True if the worker is ready but Slurm has not pinged its node yet. This happens each time a drain ends.
bool is_about_to_answer(const Worker& worker) {
  return worker.ready() && worker.record != nullptr && worker.record->state.has("NOT_RESPONDING") &&
         worker.record->state.base != "DOWN";
}

/// Returns the rank of a worker. Workers with smaller ranks are updated first: workers that do not serve, then idle workers,
/// then workers whose jobs end soonest. A busy worker that was resumed in favour of idle workers must not be drained before
/// these idle workers again, only because Slurm has not pinged the node of the busy worker yet.
auto rank(const View& view, const Worker& worker) {
  const bool serves = is_available(view, worker) || (worker.busy() && is_about_to_answer(worker));
  return std::tuple(serves, worker.busy(), deadline_rank(worker), worker.record != nullptr && reserved(*worker.record),
                    -worker.key.ordinal);
}

/// The tolerance of gives_way(): creationTimestamp is in whole seconds, and a drain is noticed up to two seconds late.
constexpr core::Duration kCreated{3000};

/// True if the worker is busy and was drained for a previous template. Such a worker is resumed, and an idle worker is updated
/// instead, because the jobs of the busy worker can last for days. The next drain of the worker is newer than the template, so
/// this happens only once for each template.
bool gives_way(const View& view, const Worker& worker, const std::optional<core::WallTime>& template_since) {
  return template_since && worker.busy() && worker.ready() && worker.drained_for &&
         view.in.now - *worker.drained_for < *template_since + kCreated;
}

/// True if the API server would refuse the pod each time. False if the pod exceeds a quota, because the quota has room once the
/// worker is deleted.
bool refuses(const core::Error& error) {
  return error.code == core::ErrorCode::kInvalid ||
         (error.code == core::ErrorCode::kForbidden && error.message.find("exceeded quota") == std::string::npos);
}

/// True if the error only means that no dry run is possible: an admission webhook with side effects is not called in a dry run.
/// Such an error does not show that the API server would refuse the pod.
bool cannot_be_dry(const core::Error& error) {
  return error.message.find("does not support dry run") != std::string::npos;
}

/// Decides whether to ask the API server if it would create workers of the newest template. An update deletes no worker before
/// the API server has answered. Stores in `out` what the last answer means.
void check_template(const View& view, const Worker& first, Rollout& out) {
  const std::optional<SeenTemplate>& seen = view.in.seen.checked_template;
  const bool known = seen && seen->hash == view.in.hash;
  const bool failed = known && seen->error && !cannot_be_dry(*seen->error);
  const bool refused = failed && refuses(*seen->error);
  const bool unanswered = failed && !refused && seen->error->code != core::ErrorCode::kForbidden;
  if (out.state != Rollout::State::kRolls) {  // The API server is asked when the update continues.
    out.unchecked = !known || refused || unanswered;
    return;
  }
  const core::Duration holds = refused ? kRefusedFor : unanswered ? kUnansweredFor : kAcceptedFor;
  if (!known || view.in.mono - seen->asked_at >= holds) {
    out.asks_template = &first;
    out.unchecked = true;
    return;
  }
  if (refused) out.refusal = seen->error->message;
  out.unchecked = unanswered;
  if (unanswered) out.unanswered = seen->error->message;
  if (refused || unanswered)
    out.change = Change{holds - (view.in.mono - seen->asked_at), "the API server is asked again about the workers' template"};
}

}  // namespace

bool is_available(const View& view, const Worker& worker) {
  const std::optional<core::Duration> left = available_in(view, worker);
  return left && left->count() == 0 && worker.usable();
}

std::size_t max_unavailable(const View& view) {
  const auto& value = view.in.nodeset.spec.update_strategy.rolling_update.max_unavailable.value;
  std::int64_t most = 0;
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    most = *number;
  } else {
    const std::string& percent = std::get<std::string>(value);
    std::from_chars(percent.data(), percent.data() + percent.size(), most);
    most = (view.desired * most + 99) / 100;
  }
  return static_cast<std::size_t>(std::max<std::int64_t>(1, most));
}

bool can_create(const View& view, const ExtraConf& extra_conf) {
  const api::NodeSetSpec& spec = view.in.nodeset.spec;
  return extra_conf.refusal.empty() && view.in.missing.empty() && !view.in.newer && view.in.namesake.empty() &&
         view.in.controller->key == kube::Presence::kPresent &&
         (!has_sshd(spec) || view.in.host_keys == kube::Presence::kPresent) && view.name_problem(view.desired - 1).empty();
}

bool is_earlier(const View& view, const Slot& worker) {
  const std::string_view revision = worker.pod->meta.label(api::kLabelRevisionHash);
  return worker.life == Life::kLive && !view.in.hash.empty() && !revision.empty() && revision != view.in.hash;
}

plan::Need need_template(const View& view, const Worker& worker) {
  core::Result<core::Json> pod = worker_template(view.in, view.in.hash);
  core::Json one = pod ? worker_pod(*pod, view.in, worker.key) : core::Json::object();
  return {std::string(kAskTemplate) + view.in.hash, std::make_shared<kube::DryRun>(kube::resources::kPod, std::move(one))};
}

std::optional<core::Duration> available_in(const View& view, const Slot& worker) {
  if (!worker.pod->ready()) return std::nullopt;
  const core::Duration needed{1000LL * view.in.nodeset.spec.min_ready_seconds};
  if (needed.count() == 0) return needed;
  const std::optional<core::WallTime> since = worker.pod->ready_since;
  if (!since) return std::nullopt;
  return std::max(core::Duration{0}, needed - (view.in.now - *since));
}

bool set_aside(const Slot& worker) {
  if (worker.has_flag("INVALID_REG")) return false;
  return worker.user_cordon || worker.kube_cordon() || held_by_others(worker);
}

std::string why_record_stays(const View& view, const Slot& worker, bool begun, Fates& fates) {
  if (worker.record == nullptr) return {};
  if (!reservations_are_recent(view)) fates.asks_reservations = true;
  if (const auto reservation = other_reservation(view, worker))
    return fmt::format("{} is in {}, which would lose the node", worker.node,
                       reservation->empty() ? "a reservation" : "reservation " + *reservation);
  if (view.in.snapshot->awaited(worker.node))
    return fmt::format("{} is required by pending jobs ({}), which would be lost with its record", worker.node,
                       waiting_text(fates.waiting_jobs, worker.node));
  return begun || view.in.seen.reservations ? "" : "Slurm has not reported its reservations yet";
}

Rollout judge_rollout(const View& view, const ExtraConf& extra_conf, Fates& fates) {
  Workers& workers = fates.workers;
  Rollout out;
  if (view.goal != Goal::kServe) return out;
  std::optional<RevisionHashes> in_place;
  std::vector<Worker*> earlier;
  std::size_t unavailable = 0;
  for (Worker& worker : workers) {
    if (worker.life != Life::kLive || worker.goes()) continue;
    // A worker that somebody took out of service does not count towards maxUnavailable.
    const bool serves = is_available(view, worker) || set_aside(worker);
    if (!serves) ++unavailable;
    // Workers of the other scalingMode are replaced by the switch of the scalingMode.
    if (is_earlier(view, worker) && view.of_mode(worker.key)) {
      if (!in_place) in_place = find_in_place(view);
      if (view.in.below_partition(worker.key)) {
        ++out.below;
      } else if (is_scheduled(view) && !in_window(view, worker)) {
        ++out.outside;
      } else if (in_place->contains(worker.pod->meta.label(api::kLabelRevisionHash)) && can_change_in_place(view, worker)) {
        worker.in_place = true;
        ++out.in_place;
      } else {
        earlier.push_back(&worker);
      }
      continue;
    }
    worker.in_place = has_drifted(view, worker);
    if (!serves || !worker.ready()) ++out.under_way;
  }
  out.earlier = earlier.size() + out.below + out.in_place + out.outside;
  if (out.earlier == 0) return out;
  out.state = state_of(view, extra_conf, out);
  if (out.state != Rollout::State::kRolls) {
    for (Worker& worker : workers) worker.in_place = worker.in_place && !is_earlier(view, worker);
  }
  // A worker that was drained for an update stays drained while the update is blocked for a short time.
  const bool goes_on =
      out.state == Rollout::State::kRolls || (out.state == Rollout::State::kBlocked && can_create(view, extra_conf));
  if (!goes_on) return out;
  out.missing = places_missing(view, workers);
  out.unavailable = unavailable + out.missing;
  out.most = max_unavailable(view);
  out.under_way += out.missing;

  FreeOrdinals free = free_ordinals(view, workers);
  const std::string reason = update_reason(view);
  std::vector<std::pair<decltype(rank(view, workers.front())), Worker*>> ranked;
  std::vector<Worker*> drained;
  for (Worker* worker : earlier) {
    if (std::string why = why_kept(view, *worker, free, fates); !why.empty()) {
      out.kept.push_back(std::move(why));
    } else if (drained_for(*worker, reason)) {
      drained.push_back(worker);
    } else if (view.stops()) {
      out.withheld = true;  // No further worker is drained.
    } else if (can_go(*worker)) {
      ranked.emplace_back(rank(view, *worker), worker);
    } else {
      out.change = kKeptAgain;
    }
  }
  if (!out.kept.empty()) out.change = kKeptAgain;
  if (out.withheld) out.change = Change{kDoubtAgain, "the update is withheld"};
  std::sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  if (!drained.empty() || !ranked.empty()) {
    check_template(view, drained.empty() ? *ranked.front().second : *drained.front(), out);
    // If the API server would refuse the new pod, no worker is updated, and workers that were drained for the update are
    // resumed.
    if (!out.refusal.empty()) return out;
    if (out.unchecked) ranked.clear();
  }
  const auto busy = std::ranges::count_if(drained, [](const Worker* worker) { return worker->busy(); });
  const bool full = out.state == Rollout::State::kRolls && static_cast<std::size_t>(busy) >= out.most;
  auto idle = full ? std::ranges::count_if(ranked, [](const auto& item) { return !item.second->busy(); }) : 0;
  const std::optional<core::WallTime> template_since = newest_revision_since(view);
  for (Worker* worker : drained) {
    if (idle > 0 && gives_way(view, *worker, template_since)) {
      --idle;  // The worker is resumed. Once it serves, an idle worker is drained instead.
    } else {
      choose(view, *worker);
      ++out.under_way;
    }
  }
  if (out.state != Rollout::State::kRolls) return out;
  for (const auto& [order, worker] : ranked) {
    const bool serves = is_available(view, *worker);
    // While the record of a free number waits in Slurm for a successor, choose no further worker: the next new worker would get
    // that number, and the number of the chosen worker would stay free.
    const bool room = out.under_way < out.most && (view.by_host() || !free.has_awaited());
    if (!room || (serves && out.unavailable >= out.most)) break;
    // While its drain is written to the status, a worker counts as being updated. Otherwise another worker that serves would be
    // chosen instead.
    if (!awaits_note(view, *worker)) choose(view, *worker);
    ++out.under_way;
    if (serves) ++out.unavailable;
  }
  return out;
}

}  // namespace op::nodeset
