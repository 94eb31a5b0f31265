#include "operator/nodeset/slots.hpp"

#include <algorithm>
#include <tuple>

#include "api/well_known.hpp"
#include "operator/common/slinky.hpp"
#include "operator/nodeset/build_worker.hpp"
#include "operator/nodeset/daemon_nodes.hpp"
#include "operator/nodeset/observed.hpp"
#include "slinky/worker_names.hpp"
#include "slurm/acts.hpp"

namespace op::nodeset {
namespace {

/// The time within which a kubelet should start the first container of a worker with an outdated template.
constexpr core::Duration kStart{60 * 1000};
/// How long the operator trusts the API server's answer that a Kubernetes node is gone. The node might come back.
constexpr core::Duration kHostGone{10000};

Life life_of(const kube::PodRecord& pod) {
  if (pod.meta.terminating()) return Life::kTerminating;
  if (pod.phase == "Failed" || pod.phase == "Succeeded") return Life::kEnded;
  return Life::kLive;
}

/// True if the pod's kubelet reports why it does not start slurmd or an init container.
bool held_back(const kube::PodRecord& pod) {
  return std::ranges::any_of(pod.containers, [](const kube::ContainerState& container) {
    const std::string& why = container.waiting_reason;
    return (container.init || container.name == kAppWorker) && !container.started_once && !why.empty() &&
           why != "ContainerCreating" && why != "PodInitializing";
  });
}

bool slurm_known(const Observed& in) {
  return in.snapshot != nullptr && in.snapshot->complete();
}

bool slurm_fresh(const Observed& in) {
  return slurm_known(in) && in.snapshot->fresh(in.mono);
}

/// A worker's prospect, and the time at which the prospect might change.
struct Judged {
  Prospect prospect = Prospect::kServes;
  std::optional<Change> change{};
};

/// Returns the judgment of a worker while Slurm's last answer is too old. The worker counts as serving, because nodes that are
/// missing in the answer might exist by now. If Slurm answers, the worker is judged again soon, because the next answer might
/// be recent enough.
Judged asks_again(const Observed& in) {
  return {Prospect::kServes, slurm_known(in) ? std::optional(kFreshAgain) : std::nullopt};
}

/// Returns how much time is left for the kubelet to start the first container. Zero or less: the start is overdue. nullopt: a
/// container has started, or the kubelet has reported no container yet. A missing volume shows only in an overdue start.
std::optional<core::Duration> start_left(const Observed& in, const kube::PodRecord& pod) {
  const auto since = in.seen.unstarted_since.find(pod.meta.uid);
  if (since == in.seen.unstarted_since.end()) return std::nullopt;
  return kStart - (in.mono - since->second);
}

/// Judges whether the worker is stuck with an outdated template. The slurmd of such a worker never ran, and a corrected
/// template helps only a successor of the worker.
Judged judge_start(const Observed& in, const Slot& slot) {
  const kube::PodRecord& pod = *slot.pod;
  if (slot.life != Life::kLive || slot.cleared_for_deletion || pod.ready() || slot.busy()) return {};
  if (in.hash.empty() || pod.meta.label(api::kLabelRevisionHash) == in.wanted_hash(slot.key)) return {};
  if (slot.record == nullptr) {
    // If this pod's slurmd never ran, the node that was seen in Slurm belonged to an earlier pod of the name.
    if ((slot.stamped || !slot.suspect.empty()) && slurmd_started(pod)) return {};
  } else if (held_by_others(slot)) {
    // If this pod's slurmd never ran, the drain was meant for an earlier pod of the name.
    if (slurmd_started(pod)) return {};
  } else if (slot.record->state.base != "DOWN") {
    return {};
  }
  if (pod.node_name.empty()) return {Prospect::kOutdated};
  // The kubelet might start slurmd at any moment, unless it reports a problem or has started nothing for a long time.
  if (pod_problems({slot.pod}).empty()) {
    const std::optional<core::Duration> left = start_left(in, pod);
    if (!left) return {};
    if (left->count() > 0)
      return {Prospect::kServes, Change{*left, "a worker of an earlier template that does not start is replaced"}};
  }
  return slurm_fresh(in) ? Judged{Prospect::kOutdated} : asks_again(in);
}

/// True if a user has confirmed that the worker's node is lost. The user's annotation contains a time and covers only nodes
/// that were missing at that time. If Slurm's answers come from another cluster, a node that is missing in the answers is not
/// lost.
bool loss_confirmed(const Observed& in, const Slot& slot) {
  if (!slot.missing_since || in.snapshot == nullptr || in.snapshot->other_cluster) return false;
  const auto until = core::parse_rfc3339(in.meta().annotation(api::kAnnotationConfirmStateLoss));
  constexpr core::Duration kClocksDiffer{60000};
  return until && *slot.missing_since <= *until && *until <= in.now + kClocksDiffer;
}

/// Judges whether Slurm lacks the worker's node, because the record was deleted or because the worker never registered.
Judged judge_registration(const Observed& in, const Slot& slot) {
  if (slot.life != Life::kLive) return {};
  if (slot.record != nullptr) return {slot.suspect.empty() ? Prospect::kServes : Prospect::kElsewhere};
  if (slot.stamped && !slot.cleared_for_deletion && !slot.missing_since) return {};
  if (!slot.cleared_for_deletion && (!slot.pod->ready() || !slot.pod->ready_since)) return {};
  if (!slurm_fresh(in)) return asks_again(in);
  if (slot.cleared_for_deletion) return {Prospect::kLost};
  // Slurm's node table is full, so a replacement of the worker could not register either.
  if (in.controller && in.controller->max_nodes && in.snapshot->nodes.size() >= *in.controller->max_nodes)
    return {Prospect::kNoRoom, Change{slurm::kRegistration, "Slurm may have room for a worker"}};
  if (slot.registration_left.count() > 0)
    return {Prospect::kServes, Change{slot.registration_left, "a worker that does not register is replaced"}};
  if (!slot.suspect.empty())
    return {Prospect::kElsewhere, Change{slurm::kRegistration, "a node that may belong to a worker may have another owner"}};
  if (!slot.stamped) return {Prospect::kLost};
  // If Slurm's state was lost, it is unknown which jobs run on the workers. So the worker is not replaced until a user confirms
  // the loss.
  if (!in.doubt.empty() && !slot.loss_confirmed) return {Prospect::kStateLost};
  return {in.snapshot->job_names(slot.node) ? Prospect::kServes : Prospect::kLost};
}

/// True if the pod waits for a Kubernetes node that is gone or to which its place is no longer pinned.
bool waits_in_vain(const Observed& in, const Slot& slot) {
  const std::string_view pin = slot.pod->meta.annotation(api::kAnnotationPinnedTo);
  return slot.life == Life::kLive && slot.pod->node_name.empty() && !pin.empty() && in.invalid.empty() &&
         recorded_pin(in, slot.key) != pin;
}

Judged judge(const Observed& in, const Slot& slot) {
  if (waits_in_vain(in, slot)) return {Prospect::kUnpinned};
  Judged start = judge_start(in, slot);
  if (start.prospect == Prospect::kOutdated) return start;
  Judged out = judge_registration(in, slot);
  if (!out.change || (start.change && start.change->in < out.change->in)) out.change = start.change;
  return out;
}

std::optional<core::MonoTime> may_register_since(const Observed& in, const Slot& slot) {
  if (slot.cleared_for_deletion || slot.prospect == Prospect::kOutdated || held_back(*slot.pod)) return {};
  const auto& seen = slurmd_started(*slot.pod) ? in.seen.started_since : in.seen.placed_since;
  const auto since = seen.find(slot.pod->meta.uid);
  return since == seen.end() ? in.mono : since->second;
}

std::string timeout_text(const api::DrainPolicy& policy, core::Duration drained_for) {
  return "drained for " + api::format_duration(std::chrono::floor<std::chrono::seconds>(drained_for)) +
         ", and spec.drainPolicy.timeout is " + api::format_duration(policy.timeout);
}

/// Returns evidence that spec.drainPolicy allows the operator to end the worker's jobs now. nullopt: there is no evidence now.
std::optional<slurm::DrainTimedOut> find_timeout(const Observed& in, const Slot& slot, const plan::Observing& observing) {
  const std::optional<api::DrainPolicy>& policy = in.nodeset.spec.drain_policy;
  if (!in.invalid.empty() || !policy || policy->on_timeout == api::OnDrainTimeout::kWait) return std::nullopt;
  if (!slot.drained_for || *slot.drained_for < policy->timeout || slot.life != Life::kLive) return std::nullopt;
  const auto how = policy->on_timeout == api::OnDrainTimeout::kCancel ? slurm::EndOfJobs::kCancel : slurm::EndOfJobs::kRequeue;
  return slurm::DrainTimedOut::of(observing, *in.snapshot, {in.cluster(), slot.node}, slurm::Owner::kOperator,
                                  purpose_of(in.meta(), *slot.record), how, timeout_text(*policy, *slot.drained_for));
}

SlotEvidence find_evidence(const Observed& in, const Slot& slot, const plan::Observing& observing) {
  SlotEvidence out;
  const kube::PodRecord& pod = *slot.pod;
  out.never_started = kube::NeverStarted::of(observing, pod);
  out.ended = kube::Ended::of(observing, pod);
  if (in.controller && !in.controller->drain_on_deletion) out.owner_ends = OwnerEnds::of(observing, in.controller->meta, pod);
  if (in.snapshot == nullptr) return out;
  const slurm::Snapshot& snapshot = *in.snapshot;
  const slurm::NodeId node{in.cluster(), slot.node};
  const auto attach = [&]<class Kind>(std::optional<WorkerEvidence<Kind>>& to, std::optional<Kind> found) {
    if (found) to.emplace(observing, pod, *std::move(found));
  };
  if (slot.record == nullptr) {
    // A worker that was cleared for deletion was drained before the operator deleted its record. No job can have started on the
    // worker since, so its stamp does not count. If the slurmd of a worker never ran, the stamp comes from an earlier pod.
    const bool started = slot.prospect != Prospect::kOutdated && (slurmd_started(pod) || !held_back(pod) || slot.host_lost());
    const bool stamped = slot.stamped && !slot.cleared_for_deletion && started;
    if (slot.suspect.empty() || !started)
      attach(out.never_registered, slurm::NeverRegistered::of(observing, snapshot, node, stamped, slot.may_register_since));
    if (slot.missing_since && slot.prospect == Prospect::kLost)
      attach(out.forgotten, slurm::Forgotten::of(observing, snapshot, node, *slot.missing_since));
    return out;
  }
  // The worker might have registered under the name of the suspect. Then the record of the worker's own name is no evidence
  // about the worker.
  if (!slot.suspect.empty()) return out;
  out.timed_out = find_timeout(in, slot, observing);
  attach(out.drained, slurm::Drained::of(observing, snapshot, node));
  if (slot.host_lost()) attach(out.silent, slurm::Silent::of(observing, snapshot, node, pod.node_name));
  return out;
}

Slot read_slot(const Observed& in, const kube::PodPtr& pod, SlotKey key, const plan::Observing& observing) {
  Slot out;
  out.key = std::move(key);
  out.pod = pod;
  out.record = find_slurm_node(in, *pod);
  out.node = out.record == nullptr ? slurm_node_name(*pod) : out.record->name;
  const slurm::Node* suspect = find_suspect(in, *pod, out.record);
  if (suspect != nullptr) out.suspect = suspect->name;
  if (const auto host = in.nodes.find(pod->node_name); host != in.nodes.end()) out.kube_node = host->second;
  out.life = life_of(*pod);
  if (in.snapshot != nullptr) out.work = in.snapshot->work_on(out.node);
  if (out.record != nullptr && suspect != nullptr && out.work.jobs == 0) out.work = in.snapshot->work_on(suspect->name);
  out.stamped = seen_in_slurm(*pod);
  out.user_cordon = is_true(pod->meta.annotation(api::kAnnotationPodCordon)) ||
                    is_true(pod->meta.annotation(api::kAnnotationPodCordonRequested));
  out.released = is_true(pod->meta.annotation(api::kAnnotationPodRelease));
  const std::string_view cleared_for = pod->meta.annotation(api::kAnnotationDeletionEvidence);
  out.cleared_for_deletion = !cleared_for.empty();
  out.deregistered = out.cleared_for_deletion && !cleared_for.starts_with(slurm::NeverRegistered::kKind);
  if (out.record == nullptr && out.stamped && !out.cleared_for_deletion && pod->ready() && pod->ready_since) {
    // The condition Unknown may have been set before the present slurmd started. So use the time at which the pod became ready
    // if that time is later.
    if (const auto since = missing_since(*pod)) out.missing_since = std::max(*since, *pod->ready_since);
  }
  out.loss_confirmed = loss_confirmed(in, out);
  const auto unknown = in.seen.unknown_since.find(pod->meta.uid);
  out.registration_left =
      slurm::kRegistration - (unknown == in.seen.unknown_since.end() ? core::Duration{0} : in.mono - unknown->second);
  const auto seen = in.seen.workers.find(pod->meta.uid);
  if (seen != in.seen.workers.end() && seen->second.drain && out.record != nullptr)
    out.drained_for = seen->second.drain->before + (in.mono - seen->second.drain->since);
  const Judged judged = judge(in, out);
  out.prospect = judged.prospect;
  out.change = judged.change;
  out.may_register_since = may_register_since(in, out);
  out.evidence = find_evidence(in, out, observing);
  return out;
}

}  // namespace

bool Slot::drained_by_us() const {
  return record != nullptr && slurm::held_by(record->reason, slurm::Owner::kOperator) &&
         (record->state.has("DRAIN") || record->state.base == "DOWN");
}

bool Slot::busy() const {
  if (work.jobs > 0) return true;
  return record != nullptr &&
         (record->state.base == "ALLOCATED" || record->state.base == "MIXED" || record->state.has("COMPLETING"));
}

bool Slot::usable() const {
  if (record == nullptr) return false;
  const slurm::NodeState& state = record->state;
  if (state.base != "IDLE" && state.base != "ALLOCATED" && state.base != "MIXED") return false;
  for (std::string_view flag : {"DRAIN", "FAIL", "INVALID", "INVALID_REG", "NOT_RESPONDING", "POWERED_DOWN", "POWERING_DOWN"}) {
    if (state.has(flag)) return false;
  }
  return true;
}

bool held_by_others(const slurm::Node& node) {
  // The operator always gives a reason, so a drain without a reason comes from somebody else.
  if (node.state.has("DRAIN") || node.state.has("FAIL"))
    return !slurm::held_by(node.reason, slurm::Owner::kOperator) ||
           slurm::given_by_others(node.reason, slurm::Owner::kOperator);
  return node.state.base == "DOWN" && slurm::given_by_others(node.reason, slurm::Owner::kOperator) &&
         !slurm::down_by_slurm(node);
}

bool held_by_others(const Slot& slot) {
  return slot.record != nullptr && held_by_others(*slot.record);
}

std::vector<Slot> read_slots(const Observed& observed, const plan::Observing& observing) {
  std::vector<Slot> out;
  out.reserve(observed.pods.size());
  for (const kube::PodPtr& pod : observed.pods) {
    if (std::optional<SlotKey> place = place_of(*pod, observed.meta().name))
      out.push_back(read_slot(observed, pod, *std::move(place), observing));
  }
  std::sort(out.begin(), out.end(),
            [](const Slot& a, const Slot& b) { return std::tie(a.key, a.pod->meta.name) < std::tie(b.key, b.pod->meta.name); });
  return out;
}

std::map<std::string, slurm::SlurmdEnded, std::less<>> read_ended(const Observed& observed, const plan::Observing& observing) {
  std::map<std::string, slurm::SlurmdEnded, std::less<>> out;
  for (const auto& [node, pod] : observed.seen.gone) {
    if (!pod.slurmd || (!pod.ended && !pod.host_gone)) continue;
    const auto absent = [&](const LiveObject& object) {
      const auto answer = observed.live.find(object);
      return answer != observed.live.end() && answer->second.presence == kube::Presence::kAbsent;
    };
    const LiveObject host = live_host(pod.kube_node);
    if (!absent(live_pod(observed.meta(), pod)) || (!pod.ended && !absent(host))) continue;
    // A pod that has ended does not start again, so the evidence stays valid. A Kubernetes node might come back, so evidence
    // about the Kubernetes node is valid only for kHostGone.
    const auto good_until = pod.ended ? std::nullopt : std::optional(observed.live.at(host).asked_at + kHostGone);
    out.emplace(node, slurm::SlurmdEnded(observing, {observed.cluster(), node}, *pod.slurmd,
                                         pod.ended ? "its pod has ended" : "its Kubernetes node is gone", good_until));
  }
  return out;
}

std::map<std::string, slurm::LeftBehind, std::less<>> read_left_behind(const Observed& observed,
                                                                       const plan::Observing& observing) {
  std::map<std::string, slurm::LeftBehind, std::less<>> out;
  for (const auto& [node, host] : observed.lost_hosts) {
    const auto answer = observed.live.find(live_host(host));
    if (answer == observed.live.end() || answer->second.presence != kube::Presence::kAbsent) continue;
    auto found = slurm::LeftBehind::of(observing, *observed.snapshot, {observed.cluster(), node},
                                       "its Kubernetes node " + host + " is gone");
    if (found) out.emplace(node, *std::move(found));
  }
  return out;
}

}  // namespace op::nodeset
