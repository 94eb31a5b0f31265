#include "bridge/common/steps.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bridge/common/groups.hpp"
#include "bridge/common/held.hpp"
#include "bridge/common/names.hpp"
#include "bridge/common/placing.hpp"
#include "bridge/common/states.hpp"
#include "core/hash.hpp"
#include "core/hostlist.hpp"
#include "kube/acts.hpp"
#include "slurm/acts.hpp"

namespace bridge {
namespace {

using core::Json;

/// How long after the live look at a job, or after the first note on a pod, the next steps are allowed to begin, even if the
/// pass has used up its time. These steps complete what the pass has begun.
constexpr core::Duration kPlaceLate{5000};
/// The time between two checks of a node on which earlier pods are ending.
constexpr core::Duration kLeftoversAgain{1000};
/// The delay before a pass that needs a newer snapshot. A new snapshot wakes a key only if something changed.
constexpr core::Duration kSnapshotAgain{1000};
/// The delay before a job with the same JobWish is submitted again after slurmctld refused it. Each refusal leaves a record in
/// slurmctld and slurmdbd.
constexpr core::Duration kSubmitAgain{5 * 60 * 1000};
/// Expected starts are rounded to a multiple of this time, because Slurm often changes its estimate.
constexpr core::Duration kStartSteps{10 * 60 * 1000};
/// Slurm assumes that a job without a time limit runs for a year. So an expected start that is a year away is no useful
/// estimate.
constexpr core::Duration kStartAtMost{core::Duration{24 * 60 * 60 * 1000} * 360};
/// How long Slurm must be silent before the condition of a waiting pod reports it. A process that has just started has not
/// asked Slurm yet.
constexpr core::Duration kUnanswered{5000};
/// The shortest time that a pod gets to end.
constexpr core::Duration kShortestEnd{30000};
/// slurmdbd stores only 64 KiB of an admin_comment.
constexpr std::size_t kLongestComment = 64000;

/// Reports whether a text is valid as the reason of a condition.
bool is_reason(std::string_view word) {
  const auto letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); };
  return !word.empty() && letter(word.front()) &&
         std::ranges::all_of(word, [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '_'; });
}

/// Reports whether a person must do something before the step can succeed.
bool is_refusal(core::ErrorCode code) {
  using enum core::ErrorCode;
  return code == kInvalid || code == kNotFound || code == kForbidden || code == kUnsupported || code == kInternal;
}

std::string text_of(const slurm::Job& job) {
  return "job " + std::to_string(job.id);
}

std::string reason_of(const slurm::Job& job) {
  return job.details ? job.details->reason : "";
}

std::vector<Condition> end_conditions(const PodOver& over) {
  const std::string& message = over.detail();
  return {{kConditionQueued, false, "Ended", message},
          {kConditionEnded, true, over.reason(), message},
          {kConditionDisruptionTarget, true, status_reason(over.reason()), message}};
}

}  // namespace

std::string node_fact(const std::string& kube_node) {
  return "node " + kube_node;
}

std::string ending_fact(const run::Key& pod) {
  return "ending " + pod.str();
}

std::string unsure_fact(const run::Key& pod) {
  return "unsure " + pod.str();
}

void Steps::await_snapshot() {
  if (!slurm_known()) return;
  out_.waits_on(facts_.settings->cluster);
  out_.wake_after(kSnapshotAgain, "a newer answer of Slurm is needed");
}

// --- The end of a job -------------------------------------------------------------------------------------------------------

/// Slurm ends every external job as CANCELLED, so the comment of the job records why the job is released.
void Steps::release(const NamedJob& named, const Unneeded& evidence, const PodPtr& pod, std::optional<int> exit_code) {
  const slurm::Job& job = *named.job;
  const std::string number = std::to_string(job.id);
  plan::Lane& lane = out_.lane("release job " + number);
  if (evidence.pod_may_run() && pod && !is_told_to_end(*pod)) {
    Json changes = condition_changes(
        *pod,
        {{kConditionQueued, false, "Ended", evidence.detail()}, {kConditionEnded, true, "NodeNotReady", evidence.detail()}},
        facts_.context.now);
    lane.add({{"report", "Pod", pod->meta.key().str(), "end"}, evidence.detail(), set_conditions(*pod, std::move(changes))})
        .then();
  }
  const std::string comment = job.details ? job.details->comment : "";
  const plan::StepId id{"comment", "Slurm job", number};
  if (job.holds_nodes() && comment.find(evidence.detail()) == std::string::npos && !has_failed(id) && may_update(job)) {
    slurm::JobWish wish;
    wish.comment = comment.empty() ? evidence.detail() : comment + "; " + evidence.detail();
    lane.add({id, evidence.detail(), slurm::update_job(evidence.job(), std::move(wish))}).then();
  }
  if (exit_code.value_or(0) != 0) record_exit_code(named, evidence, *exit_code);
  lane.add({{"cancel", "Slurm job", number}, evidence.detail(), slurm::cancel_job(evidence.job())});
  out_.intent.jobs += 1;
}

bool Steps::has_failed(const plan::StepId& id) const {
  const auto before = facts_.context.outcomes.find(id);
  return before != facts_.context.outcomes.end() && before->second.state == plan::Outcome::State::kFailed;
}

/// True if the job can be changed. If an excluded node is gone, slurmctld refuses every change of the job, and then also
/// forgets which nodes are excluded (_update_job in job_mgr.c).
bool Steps::may_update(const slurm::Job& job) const {
  const auto excluded = core::expand_hostlist(job.details ? job.details->excluded_nodes : "");
  return excluded &&
         std::ranges::all_of(*excluded, [&](const std::string& name) { return facts_.snapshot->node(name) != nullptr; });
}

/// Records the exit code of the pod in slurmdbd. The job is cancelled whether the record succeeds or not.
void Steps::record_exit_code(const NamedJob& named, const Unneeded& evidence, int exit_code) {
  if (!facts_.snapshot->capabilities.slurmdb || !named.job->holds_nodes()) return;
  out_.lane("record").add({{"record", "Slurm job", std::to_string(named.job->id)},
                           evidence.detail(),
                           slurm::record_exit_code(evidence.job(), exit_code)});
}

void Steps::replace(const NamedJob& job, const std::optional<Unneeded>& evidence, const std::string& why, const Pods& waiting) {
  if (!evidence) return await_snapshot();
  plan::Lane& lane = out_.lane("replace");
  const std::string number = std::to_string(job.job->id);
  bool noted = false;
  for (const PodPtr& pod : waiting) {
    if (replaced_job_of(pod->meta) == job.job->id) continue;
    lane.add({{"note", "Pod", pod->meta.key().str(), number}, why, note_replaced(*pod, job.job->id)});
    noted = true;
  }
  if (noted) lane.then();
  lane.add({{"replace", "Slurm job", name_, number}, why, slurm::cancel_job(evidence->job()), kPlaceLate});
}

// --- A job that is submitted ------------------------------------------------------------------------------------------------

bool Steps::can_submit(const PodState& state) {
  const Pod& pod = *state.pod;
  if (!slurm_known()) {
    const bool retires = facts_.settings->retires;
    // Keeps a condition that the pod already has, because it reports the last known state.
    if (!retires && pod.condition(kConditionQueued) != nullptr) return false;
    const core::Duration waited = state.unanswered_since ? facts_.context.mono - *state.unanswered_since : core::Duration{0};
    if (waited < kUnanswered) {
      out_.wake_after(kUnanswered - waited, "Slurm may answer until then");
    } else if (retires) {
      let_pod_go(pod);
    } else {
      report(pod, false, "SlurmUnavailable", facts_.snapshot == nullptr ? "no slurmrestd is known" : facts_.snapshot->error);
    }
    return false;
  }
  if (facts_.settings->retires) {
    let_pod_go(pod);
    return false;
  }
  const slurm::Capabilities& slurm = facts_.snapshot->capabilities;
  if (!slurm.external_jobs)
    report(pod, false, "Unsupported",
           "Slurm " + slurm.release + " has no external nodes and jobs: slurm-bridge needs 25.11 or newer");
  return slurm.external_jobs;
}

/// Removes the gate, so that Kubernetes alone schedules the pod. Once the gate is gone and Slurm answers, the job of the pod is
/// cancelled.
void Steps::let_pod_go(const Pod& pod) {
  std::string why = "slurm-bridge is being removed: Kubernetes alone schedules the pod";
  if (!slurm_known()) why += "; Slurm does not answer, and may still have a job of the pod";
  report(pod, false, "Retired", why);
  out_.lane("report").then().add({{"let go", "Pod", pod.meta.key().str()}, why, let_go(pod)});
}

Candidates Steps::candidates(const Pods& pods, const slurm::JobWish& wish) const {
  const std::string partitions = wish.partition.value_or("");
  FitPtr fit = facts_.fit;
  if (fit == nullptr || !fit->is_of(pods, partitions))
    fit = std::make_shared<const Fit>(fit_of(pods, *facts_.hosts, *facts_.snapshot, facts_.installation, partitions));
  return candidates_of(std::move(fit), pods.size());
}

void Steps::submit(Request request, const Pods& waiting) {
  slurm::JobWish& wish = request.wish;
  const Candidates& nodes = request.nodes;
  // A job for an unknown partition is submitted nevertheless, because Slurm's error explains the mistake.
  if (!nodes.why.empty() && partitions_exist(wish.partition.value_or(""))) return report(waiting, false, "NoNode", nodes.why);
  if (nodes.why.empty() && !nodes.excluded().empty()) wish.excluded_nodes = nodes.excluded();
  const std::string digest = core::short_digest(slurm::to_json(wish).dump());
  const plan::StepId id{"submit", "Slurm job", name_, request.root_uid + " " + digest};
  if (waits_after_refusal(request, digest, waiting) || waits_after_error(id, waiting)) {
    out_.remember(id);
    return;
  }
  const slurm::JobMark mark{slurm::Owner::kBridge, facts_.installation, key_of(request.root_uid, request.attempts + 1)};
  Json more{{"pods", Json::array()}, {"wish", digest}};
  for (const PodPtr& pod : waiting)
    more["pods"].push_back({{"ns", pod->meta.ns}, {"name", pod->meta.name}, {"uid", pod->meta.uid}});
  if (is_group(facts_.key)) more["group"] = {{"ns", facts_.key.ns}, {"name", facts_.key.name}};
  if (facts_.life.since != 0) more["life"] = {{"since", facts_.life.since}, {"last", facts_.life.last}};
  if (more.dump().size() > kLongestComment) return report(waiting, false, "Refused", "the group has too many pods for one job");
  const std::string why = waiting.size() == 1 ? "the pod waits for Slurm" : "the pods wait for Slurm";
  out_.lane("job").add({id, why, slurm::submit_job(facts_.settings->cluster, mark, std::move(wish), std::move(more))});
  out_.waits_on(facts_.settings->cluster);
}

/// Reports whether Slurm recently refused to create a job for the same JobWish, so that the pods must wait. Sets their
/// conditions. Each submission uses up a job number.
bool Steps::waits_after_error(const plan::StepId& id, const Pods& waiting) {
  const auto before = facts_.context.outcomes.find(id);
  if (before == facts_.context.outcomes.end() || !before->second.error || !is_refusal(before->second.error->code)) return false;
  report(waiting, false, "Refused", before->second.error->message);
  const core::Duration waited = facts_.context.mono - before->second.last;
  if (waited >= kRefusedAgain) return false;
  out_.wake_after(kRefusedAgain - waited, "the job is submitted again then");
  return true;
}

/// Reports whether slurmctld recently refused a job with the same JobWish, so that the pods must wait. Sets their conditions.
bool Steps::waits_after_refusal(const Request& request, const std::string& digest, const Pods& waiting) {
  if (request.refused == nullptr || request.refused->wish != digest || !request.refused_since) return false;
  const core::Duration waited = facts_.context.mono - *request.refused_since;
  if (waited >= kSubmitAgain) return false;
  report(waiting, false, "Refused",
         "Slurm refused " + text_of(*request.refused->job) + ": BadConstraints, no node has what the pod asks for");
  out_.wake_after(kSubmitAgain - waited, "the job is submitted again then");
  return true;
}

bool Steps::partitions_exist(std::string_view names) const {
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(','), names.size());
    if (!facts_.snapshot->partitions.contains(std::string(names.substr(0, end)))) return false;
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return true;
}

// --- A job that waits -------------------------------------------------------------------------------------------------------

std::string Steps::wait_in_queue(const NamedJob& named, const std::optional<Candidates>& nodes, const Pods& waiting) {
  const slurm::Job& job = *named.job;
  const std::string reason = reason_of(job);
  // Slurm has not tried to start the new job yet, but will do so within a second.
  if (reason.empty() || reason == "None") out_.waits_on(facts_.settings->cluster);
  if (nodes) {
    if (std::string why = update_candidates(named, *nodes); !why.empty()) return why;
  }
  std::string text = text_of(job) + " waits in partition " + job.partition + ": " + (reason.empty() ? "None" : reason);
  if (const auto start = expected_start(job); !start.empty()) text += ", expected start " + start;
  report(waiting, true, is_reason(reason) && reason != "None" ? reason : "Queued", text);
  return {};
}

std::string Steps::expected_start(const slurm::Job& job) const {
  const auto& start = job.start;
  if (!start || start->since_epoch.count() == 0 || *start - facts_.context.now > kStartAtMost) return {};
  const auto steps = (start->since_epoch + kStartSteps - core::Duration{1}) / kStartSteps;
  return core::format_rfc3339(core::WallTime{kStartSteps * steps});
}

/// Updates the excluded nodes of a waiting job, because the nodes that can run the job's pods change. Returns why the job must
/// be replaced, or "".
std::string Steps::update_candidates(const NamedJob& named, const Candidates& nodes) {
  // A job that no node can run keeps its excluded nodes, because Slurm would refuse to exclude all nodes.
  if (!named.own || !named.job->details || !nodes.why.empty()) return {};
  auto have = core::expand_hostlist(named.job->details->excluded_nodes);
  if (!have) return {};
  // slurmctld refuses the update if an excluded node is gone: see may_update().
  const bool may = std::erase_if(*have, [&](const std::string& name) { return facts_.snapshot->node(name) == nullptr; }) == 0;
  std::ranges::sort(*have);
  const plan::StepId id{"update", "Slurm job", std::to_string(named.job->id)};
  if (*have == nodes.excluded() && !wakes_held(*named.job, id)) return {};
  if (!may) return "one of its excluded nodes no longer exists, and another node might get its name";
  slurm::JobWish wish;
  wish.excluded_nodes = nodes.excluded();
  out_.lane("job").add({id, "other nodes can run the pod", slurm::update_job(*named.own, std::move(wish))});
  return {};
}

/// Reports whether a job must be changed now only so that slurmctld tries the job again. slurmctld holds a job that no node can
/// run until somebody changes the job.
bool Steps::wakes_held(const slurm::Job& job, const plan::StepId& id) {
  if (reason_of(job) != "BadConstraints") return false;
  const auto before = facts_.context.outcomes.find(id);
  const core::Duration waited =
      before == facts_.context.outcomes.end() ? kRefusedAgain : facts_.context.mono - before->second.last;
  if (waited >= kRefusedAgain) return true;
  out_.remember(id);
  out_.wake_after(kRefusedAgain - waited, "Slurm tries to start the job again then");
  return false;
}

void Steps::report_state(const NamedJob& named, const Pods& waiting) {
  const std::string& state = named.job->state;
  report(waiting, true, is_reason(state) ? state : "Unknown", text_of(*named.job) + " is " + state);
}

// --- Placing ----------------------------------------------------------------------------------------------------------------

std::string Steps::misplaced(const Seat& seat) const {
  const auto host = facts_.hosts->find(seat.node);
  if (host == facts_.hosts->end()) return seat.node + " is not a Kubernetes node";
  const slurm::Node* node = facts_.snapshot->node(seat.node);
  if (node != nullptr && !other_cluster_of(*node, facts_.installation).empty())
    return seat.node + " is a node of another Kubernetes cluster";
  const std::string why = misfit(*seat.pod, *host->second);
  return why.empty() ? why : seat.node + " is " + why;
}

bool Steps::ends_soon(const slurm::Job& job, const Pods& pods) const {
  return std::ranges::any_of(pods, [&](const PodPtr& pod) {
    const auto leaves = leaves_at(*pod, job);
    return leaves && *leaves <= facts_.slurm_now;
  });
}

void Steps::place(const NamedJob& named, const std::vector<Seat>& seats) {
  const auto held = [&](const Seat& seat) { return is_held(seat.node, named.job->id); };
  if (!named.own || !std::ranges::all_of(seats, held)) return await_snapshot();
  const std::vector<std::string> nodes = nodes_of(*named.job);
  const std::string why = text_of(*named.job) + " runs on " + core::compress_hostlist(nodes);
  plan::Lane& lane = out_.lane("place");
  lane.add({{"confirm", "Slurm job", std::to_string(named.job->id)}, why, slurm::confirm_runs(*named.own, nodes)}).then();
  for (const Seat& seat : seats) {
    const auto host = facts_.hosts->find(seat.node);
    const std::string& kube_node = host == facts_.hosts->end() ? seat.node : host->second->meta.name;
    lane.add({{"place", "Pod", seat.pod->meta.key().str()},
              why,
              bridge::place(*seat.pod, kube_node, seat.node, id_of(*named.job)),
              kPlaceLate});
  }
  out_.intent.pods += static_cast<int>(seats.size());
}

/// Reports whether the node lists the job in `extra`, so that the node's prolog delays native jobs. Also true if no list is
/// needed (the node has no slurmd, or holds_native_jobs is off), and if somebody else uses `extra`, so that no list is
/// possible.
bool Steps::is_held(const std::string& name, std::int64_t job) const {
  const slurm::Node* node = facts_.snapshot->node(name);
  if (!facts_.settings->holds_native_jobs || node == nullptr || node->state.has("EXTERNAL")) return true;
  const auto held = held_in(node->extra);
  return !held || held->jobs.contains(job);
}

bool Steps::waits_for(const Leftovers& leftovers, const NamedJob& named, const std::string& node, const Pods& waiting) {
  for (const run::Key& pod : leftovers.unsure) look_for(unsure_fact(pod), kube::resources::kPod, pod);
  if (leftovers.pods.empty()) return !leftovers.unsure.empty();
  out_.wake_after(kLeftoversAgain, "earlier pods end on the node");
  report(waiting, true, "NodeInUse",
         text_of(*named.job) + " holds " + node + ", where pod " + leftovers.pods.front() + " is still terminating");
  return true;
}

// --- A pod that was placed --------------------------------------------------------------------------------------------------

void Steps::follow_placed(const PodState& state, const NamedJob* job) {
  const bool bound = phase_of(*state.pod) == PodPhase::kBound;
  const bool job_ended = state.job != nullptr && phase_of(*state.job) == JobPhase::kEnded;
  if (state.over) return bound ? end_bound(state) : end_unbound(state);
  if (job_ended) return await_snapshot();
  if (!slurm_known()) return;
  if (!bound) {
    const core::Duration waited = state.unbound_since ? facts_.context.mono - *state.unbound_since : core::Duration{0};
    out_.wake_after(std::max(facts_.settings->bind_limit - waited, kLeftoversAgain), "Kubernetes has so long to bind the pod");
  }
  if (state.job == nullptr) return report_missing(state);
  if (job == nullptr) return;
  if (const auto leaves = bound ? leaves_at(*state.pod, *state.job) : std::nullopt)
    out_.wake_after(std::max(*leaves - facts_.slurm_now, kSnapshotAgain), "the pod must end before its job ends");
  follow_running(state, *job);
}

/// The job of a pod on a node that is not ready is released after a limit (Settings::silence_limit).
void Steps::watch_node(const PodState& state, bool asks) {
  if (!state.silent_since) {
    // Changes of other nodes do not wake this key, so the plan asks for another check later.
    if (state.on_unready_node) out_.wake_after(kRefusedAgain, "other nodes may be ready again, and the node of the pod not");
    return;
  }
  const core::Duration waited = facts_.context.mono - *state.silent_since;
  const core::Duration limit = facts_.settings->silence_limit;
  out_.wake_after(waited < limit ? limit - waited : kRefusedAgain, "the node of the pod is not ready");
  if (asks) look_for(node_fact(state.pod->node_name), kube::resources::kNode, {"", state.pod->node_name});
}

void Steps::look_for(std::string fact, const kube::Resource& resource, const kube::Key& key) {
  auto get = std::make_shared<kube::Get>();
  get->resource = resource;
  get->key = key;
  out_.need({std::move(fact), std::move(get)});
}

void Steps::follow_running(const PodState& state, const NamedJob& job) {
  if (phase_of(*state.job) != JobPhase::kRuns) return;
  restore_lost_words(state);
  report_allocated(state, job);
}

void Steps::report_allocated(const PodState& state, const NamedJob& job) {
  const Pod& pod = *state.pod;
  const std::string text = text_of(*state.job);
  std::vector<Condition> wanted{{kConditionQueued, false, "Allocated", text + " holds " + pod.pinned_to}};
  if (is_told_to_end(pod)) {
    if (!job.own || state.silent_since) return;
    // Somebody has changed the end of the job, or the node is ready again.
    wanted.push_back({kConditionEnded, false, "JobRuns", text + " runs on"});
  }
  report(pod, wanted);
}

/// Restores the label and the annotation that users removed from the pod or changed. The bridge itself does not rely on them.
void Steps::restore_lost_words(const PodState& state) {
  const Pod& pod = *state.pod;
  const bool labelled = pod.meta.label(kLabelJobId) == std::to_string(state.job->id);
  if (labelled && !pod.meta.annotation(kAnnotationNode).empty()) return;
  const auto is_its = [&](const auto& host) { return host.second->meta.name == pod.pinned_to; };
  const auto host = std::ranges::find_if(*facts_.hosts, is_its);
  if (host == facts_.hosts->end()) return;
  out_.lane("words").add({{"restore", "Pod", pod.meta.key().str()},
                          "its label or its annotation was removed",
                          restore_words(pod, host->first, state.job->id)});
}

void Steps::end_unbound(const PodState& state) {
  if (!state.over) return await_snapshot();
  const Pod& pod = *state.pod;
  const PodOver& over = *state.over;
  out_.lane("end").add({{"fail", "Pod", pod.meta.key().str()},
                        over.detail(),
                        fail_unbound(pod, over, status_reason(over.reason()), over.detail(),
                                     condition_changes(pod, end_conditions(over), facts_.context.now))});
  out_.intent.pods += 1;
}

void Steps::end_bound(const PodState& state) {
  const Pod& pod = *state.pod;
  const PodOver& over = *state.over;
  const std::string name = pod.meta.key().str();
  plan::Lane& lane = out_.lane("end " + name);
  // The eviction replaces the reason of DisruptionTarget. After that, only the bridge's own conditions have the reason from
  // Slurm.
  if (!is_told_to_end(pod)) {
    Json changes = condition_changes(pod, end_conditions(over), facts_.context.now);
    lane.add({{"report", "Pod", name, "end"}, over.detail(), set_conditions(pod, std::move(changes))}).then();
  }
  const core::Duration waited = state.over_since ? facts_.context.mono - *state.over_since : core::Duration{0};
  const core::Duration limit = facts_.settings->evict_limit;
  if (waited < limit) {
    lane.add({{"evict", "Pod", name}, over.detail(), evict(state)});
    out_.wake_after(limit - waited, "a PodDisruptionBudget may prevent the eviction for so long");
  } else {
    lane.add({{"delete", "Pod", name}, over.detail() + ", and it could not be evicted", kube::delete_pod(pod, over)});
    // The deletion uses the grace period in the pod's spec, which is too long. So an eviction then shortens the grace period.
    // Budgets do not apply to the eviction of a pod that is being deleted.
    if (pod.grace > longest_end(state))
      lane.then().add({{"evict", "Pod", name}, over.detail() + ", and the pod would outlive it", evict(state)});
  }
  out_.intent.pods += 1;
}

/// Returns how long, from now on, the end of a pod that must not run is allowed to take. The time for which a
/// PodDisruptionBudget has protected the pod is subtracted.
core::Duration Steps::longest_end(const PodState& state) const {
  const core::Duration waited = state.over_since ? facts_.context.mono - *state.over_since : core::Duration{0};
  const core::Duration limit = std::max(facts_.settings->outlive_limit - waited, kShortestEnd);
  if (state.job == nullptr || phase_of(*state.job) == JobPhase::kEnded || !state.job->end) return limit;
  return limit + std::max(*state.job->end - facts_.slurm_now, core::Duration{0});
}

plan::ActPtr Steps::evict(const PodState& state) const {
  auto act = std::make_shared<kube::Evict>();
  act->pod = state.pod->meta.key();
  act->uid = state.pod->meta.uid;
  act->evidence = state.over;
  const core::Duration longest = longest_end(state);
  const bool shortens = state.pod->meta.terminating() || state.pod->grace > longest;
  if (shortens) act->grace_seconds = std::chrono::duration_cast<std::chrono::seconds>(longest).count();
  return act;
}

/// The eviction of a pod that is being deleted can only shorten its grace period, and ignores budgets. The deletionTimestamp is
/// from the API server's clock, which can differ from ours. So it only selects the pods that are worth a live read. The live
/// read shows the grace period with which the pod is being deleted.
void Steps::follow_terminating(const PodState& state) {
  if (!state.over || phase_of(*state.pod) != PodPhase::kBound) return;
  const Pod& pod = *state.pod;
  // Without the margin, a grace period that was already shortened might be shortened again and again.
  const core::Duration longest = longest_end(state) + kShortestEnd;
  const core::Duration passed = state.ending_since ? facts_.context.mono - *state.ending_since : core::Duration{0};
  if (*pod.meta.deletion_timestamp - facts_.context.now <= longest && pod.grace - passed <= longest) return;
  const std::string fact = ending_fact(pod.meta.key());
  const auto look = facts_.context.facts.find(fact);
  if (look == facts_.context.facts.end()) return look_for(fact, kube::resources::kPod, pod.meta.key());
  if (!look->second.value || core::get_string(*look->second.value, {"metadata", "uid"}) != pod.meta.uid) return;
  const std::chrono::seconds grace{core::get_int(*look->second.value, {"metadata", "deletionGracePeriodSeconds"})};
  if (grace - passed <= longest) return;
  const std::string name = pod.meta.key().str();
  out_.lane("end " + name).add({{"evict", "Pod", name}, state.over->detail() + ", and the pod would outlive it", evict(state)});
  out_.intent.pods += 1;
}

void Steps::follow_foreign(const PodState& state) {
  // Another bridge can be responsible for pods that this bridge does not manage.
  if (is_freed_unnoticed(*state.pod) && (state.managed || state.job != nullptr))
    report(*state.pod, false, "Freed", "somebody removed the gate of the pod: Kubernetes alone schedules it");
}

// --- Reports ----------------------------------------------------------------------------------------------------------------

/// Reports that Slurm does not have the job of the pod. The pod stays, because slurmctld might have lost its state. The job of
/// a pod that is not managed might be in another Slurm cluster, so such a pod gets no report.
void Steps::report_missing(const PodState& state) {
  if (!state.managed) return;
  const Pod& pod = *state.pod;
  report(pod, false, "JobMissing",
         "Slurm does not have job " + std::to_string(placed_for(pod).front().number) +
             ", and may have lost it; the pod is left alone");
  out_.wake_after(kRefusedAgain, "a younger job may show that Slurm has not lost its state");
}

void Steps::report(const Pod& pod, bool queued, std::string reason, std::string message) {
  report(pod, {{kConditionQueued, queued, std::move(reason), std::move(message)}});
}

void Steps::report(const Pod& pod, const std::vector<Condition>& wanted) {
  Json changes = condition_changes(pod, wanted, facts_.context.now);
  if (changes.empty()) return;
  const std::string why = changes.front().at("message").get<std::string>();
  out_.lane("report").add({{"report", "Pod", pod.meta.key().str(), "queue"}, why, set_conditions(pod, std::move(changes))});
}

void Steps::report(const Pods& pods, bool queued, const std::string& reason, const std::string& message) {
  for (const PodPtr& pod : pods) report(*pod, queued, reason, message);
}

}  // namespace bridge
