#include "operator/nodeset/pass.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "api/well_known.hpp"
#include "cluster/worker_names.hpp"
#include "core/hash.hpp"
#include "core/hostlist.hpp"
#include "kube/acts.hpp"
#include "operator/nodeset/build_worker.hpp"
#include "operator/nodeset/revision.hpp"
#include "slurm/acts.hpp"

namespace op::nodeset {
namespace {

/// How long conditions rest on the last answer of a Slurm that does not answer.
constexpr core::Duration kShown{30000};
constexpr core::Duration kFreshAgain{1000};
constexpr core::Duration kEventAgain{10 * 60 * 1000};
/// How long a kubelet may take to start the first container of a worker whose template has changed since.
constexpr core::Duration kStart{60 * 1000};

Life life_of(const kube::PodRecord& pod) {
  if (pod.meta.terminating()) return Life::kTerminating;
  if (pod.phase == "Failed" || pod.phase == "Succeeded") return Life::kEnded;
  return Life::kLive;
}

/// Its kubelet says why it does not start slurmd, or what comes before it.
bool held_back(const kube::PodRecord& pod) {
  return std::ranges::any_of(pod.containers, [](const kube::ContainerState& container) {
    const std::string& why = container.waiting_reason;
    return (container.init || container.name == kAppWorker) && !container.started_once && !why.empty() &&
           why != "ContainerCreating" && why != "PodInitializing";
  });
}

/// Of what slurmd makes --conf of.
std::string conf_hash(const std::string& extra_conf, const PodLimits& limits) {
  if (limits.cpus == 0 && limits.memory_mib == 0) return core::short_hash(extra_conf, 10);
  return core::short_hash(fmt::format("{}\n{} {}", extra_conf, limits.cpus, limits.memory_mib), 10);
}

std::string conf_hash(const kube::Object& revision) {
  const core::Json none;
  const auto part = [&](std::initializer_list<std::string_view> path) -> const core::Json& {
    const core::Json* found = core::find(revision.body, path);
    return found == nullptr ? none : *found;
  };
  return conf_hash(core::get_string(revision.body, {"data", "spec", "extraConf"}),
                   pod_limits(part({"data", "spec", "slurmd"}), part({"data", "spec", "template", "spec"})));
}

}  // namespace

bool Worker::drained_by_us() const {
  return record != nullptr && slurm::ours(record->reason) && (record->state.has("DRAIN") || record->state.base == "DOWN");
}

bool Worker::busy() const {
  if (work.jobs > 0) return true;
  return record != nullptr &&
         (record->state.base == "ALLOCATED" || record->state.base == "MIXED" || record->state.has("COMPLETING"));
}

bool Worker::usable() const {
  if (record == nullptr) return false;
  const slurm::NodeState& state = record->state;
  if (state.base != "IDLE" && state.base != "ALLOCATED" && state.base != "MIXED") return false;
  for (std::string_view flag : {"DRAIN", "FAIL", "INVALID", "INVALID_REG", "NOT_RESPONDING", "POWERED_DOWN", "POWERING_DOWN"}) {
    if (state.has(flag)) return false;
  }
  return true;
}

core::Duration backoff(const plan::Outcome& outcome) {
  const bool soon =
      outcome.error && (outcome.error->code == core::ErrorCode::kBusy || outcome.error->code == core::ErrorCode::kConflict);
  const core::Duration first{soon ? 250 : 1000};
  const core::Duration longest{soon ? 4000 : 60000};
  const core::Duration wait = first * (1 << std::clamp(outcome.count - 1, 0, 10));
  core::Duration asked{0};
  if (outcome.error && outcome.error->retry_after) asked = *outcome.error->retry_after;
  return std::max(std::min(wait, longest), asked);
}

Pass::Pass(const Observed& observed) : in(observed) {
  slurm_known_ = in.snapshot != nullptr && in.snapshot->complete();
  slurm_fresh_ = slurm_known_ && in.snapshot->fresh(in.mono);
  for (const kube::ObjectPtr& revision : in.revisions) {
    conf_hashes.emplace(revision->meta.label(api::kLabelRevisionHash), conf_hash(*revision));
  }
  if (in.invalid.empty()) {
    hash = revision_hash(in.nodeset.spec);
    const api::NodeSetSpec& spec = in.nodeset.spec;
    conf_hashes.emplace(hash, conf_hash(spec.extra_conf, pod_limits(spec.slurmd, spec.pod_template.spec)));
  }
  read_work();
  read_workers();
}

void Pass::read_work() {
  if (in.snapshot == nullptr) return;
  for (const auto& [id, job] : in.snapshot->jobs) {
    if (!job->holds_nodes()) continue;
    for (const std::string& node : job->nodes) add_work(node, *job);
    if (!job->nodes_unknown) continue;
    for (const auto& [node, record] : in.snapshot->nodes) add_work(node, *job);
  }
}

void Pass::add_work(std::string_view node, const slurm::Job& job) {
  Work& work = work_[node];
  ++work.jobs;
  work.suspended = work.suspended || job.state == "SUSPENDED";
  if (job.state != "RUNNING") return;
  if (!job.end) {
    work.deadline.reset();
  } else if (!work.running || (work.deadline && *work.deadline < *job.end)) {
    work.deadline = job.end;
  }
  work.running = true;
}

Work Pass::work_on(std::string_view node) const {
  const auto it = work_.find(node);
  return it == work_.end() ? Work{} : it->second;
}

const Pass::Waiting& Pass::jobs_waiting_for(std::string_view node) const {
  constexpr std::size_t kFirst = 10;
  static const Waiting kNone;
  if (!waiting_) {
    waiting_.emplace();
    const core::HostIndex index({nodes_.begin(), nodes_.end()});
    for (const auto& [id, job] : in.snapshot ? in.snapshot->jobs : decltype(in.snapshot->jobs){}) {
      if (job->state != "PENDING" || job->required_nodes.empty()) continue;
      index.look_up(job->required_nodes, [&, number = id](std::string_view name) {
        Waiting& waiting = (*waiting_)[name];
        if (!waiting.first.empty() && waiting.last == number) return;
        waiting.last = number;
        ++waiting.count;
        if (waiting.first.size() < kFirst) waiting.first.push_back(number);
      });
    }
  }
  const auto it = waiting_->find(node);
  return it == waiting_->end() ? kNone : it->second;
}

void Pass::read_workers() {
  workers.reserve(in.pods.size());
  const std::string prefix = in.meta().name + "-";
  for (const kube::PodPtr& pod : in.pods) {
    const std::optional<int> ordinal = ordinal_of(pod->meta.name, prefix);
    if (!ordinal) continue;
    Worker worker;
    worker.pod = pod;
    worker.ordinal = *ordinal;
    worker.record = find_slurm_node(in, *pod);
    worker.node = worker.record == nullptr ? slurm_node_name(*pod) : worker.record->name;
    worker.life = life_of(*pod);
    worker.work = work_on(worker.node);
    worker.stamped = seen_in_slurm(*pod);
    worker.user_cordon = is_true(pod->meta.annotation(api::kAnnotationPodCordon));
    worker.released = is_true(pod->meta.annotation(api::kAnnotationPodRelease));
    const std::string_view cleared_for = pod->meta.annotation(api::kAnnotationDeletionEvidence);
    worker.cleared = !cleared_for.empty();
    worker.let_go = worker.cleared && !cleared_for.starts_with(plan::to_string(plan::Evidence::Kind::kNeverRegistered));
    const auto node = in.nodes.find(pod->node_name);
    worker.kube_cordon = node != in.nodes.end() && node->second.unschedulable;
    worker.unplaced = !pod->node_name.empty() && node == in.nodes.end();
    if (worker.record == nullptr && worker.stamped && !worker.cleared && pod->ready() && pod->ready_since) {
      // An earlier time may be of the slurmd before this one.
      if (const auto since = missing_since(*pod)) worker.missing_since = std::max(*since, *pod->ready_since);
    }
    worker.outdated = stuck_outdated(worker);
    worker.lost = worker.outdated || will_not_register(worker);
    workers.push_back(std::move(worker));
  }
  std::sort(workers.begin(), workers.end(), [](const Worker& a, const Worker& b) {
    return std::tie(a.ordinal, a.pod->meta.name) < std::tie(b.ordinal, b.pod->meta.name);
  });
  for (const Worker& worker : workers) nodes_.insert(worker.node);
}

core::Duration Pass::registration_left(const Worker& worker) const {
  const auto since = in.seen.unknown_since.find(worker.pod->meta.uid);
  return slurm::kRegistration - (since == in.seen.unknown_since.end() ? core::Duration{0} : in.mono - since->second);
}

std::optional<core::MonoTime> Pass::may_register_since(const Worker& worker) const {
  if (worker.cleared || worker.outdated || held_back(*worker.pod)) return {};
  const auto& seen = slurmd_started(*worker.pod) ? in.seen.started_since : in.seen.placed_since;
  const auto since = seen.find(worker.pod->meta.uid);
  return since == seen.end() ? in.mono : since->second;
}

bool Pass::will_not_register(const Worker& worker) {
  if (worker.life != Life::kLive || worker.record != nullptr) return false;
  if (worker.stamped && !worker.cleared && !worker.missing_since) return false;
  if (!worker.cleared && (!worker.pod->ready() || !worker.pod->ready_since)) return false;
  if (!slurm_fresh_or_again()) return false;
  if (worker.cleared) return true;
  // Another pod in its place would have no place either.
  if (in.controller && in.controller->max_nodes && in.snapshot->nodes.size() >= *in.controller->max_nodes) {
    no_room = true;
    out.wake_after(slurm::kRegistration, "Slurm may have room for a worker");
    return false;
  }
  const core::Duration left = registration_left(worker);
  if (left.count() > 0) {
    out.wake_after(left, "a worker that does not register is replaced");
    return false;
  }
  if (!worker.stamped) return true;
  // Where the state was lost, what runs on the workers, nobody can tell.
  if (!in.doubt.empty()) {
    state_lost = true;
    return false;
  }
  return !in.snapshot->job_names(worker.node);
}

std::string Pass::node_name(int ordinal) const {
  return host_prefix(*in.object) + padded_ordinal(ordinal, in.nodeset.spec.ordinal_padding);
}

const Rival* Pass::rival_of(std::string_view node) const {
  const auto found = std::ranges::find_if(in.rivals, [&](const Rival& rival) { return rival.takes(node); });
  return found == in.rivals.end() ? nullptr : &*found;
}

Pass::Name Pass::name_of(int ordinal) const {
  if (uses_host_network(in.nodeset.spec)) return Name::kOurs;
  const std::string node = node_name(ordinal);
  if (rival_of(node) != nullptr) return Name::kRivals;
  if (!in.nodeset_names.contains(node)) return Name::kOurs;
  if (!slurm::has_answered(in.snapshot)) return Name::kUnknown;
  return in.snapshot->node(node) != nullptr ? Name::kOurs : Name::kNodeSets;
}

bool Pass::stuck_outdated(const Worker& worker) {
  const kube::PodRecord& pod = *worker.pod;
  if (worker.life != Life::kLive || worker.cleared || pod.ready() || worker.busy()) return false;
  if (hash.empty() || pod.meta.label(api::kLabelRevisionHash) == hash) return false;
  if (worker.record == nullptr) {
    // What was seen may have been the record of an earlier pod of the same name.
    if (worker.stamped && slurmd_started(pod)) return false;
  } else if (keeps_others_word(worker)) {
    // Said of an earlier pod of the name, for this one never ran slurmd.
    if (slurmd_started(pod)) return false;
  } else if (worker.record->state.base != "DOWN") {
    return false;
  }
  // A kubelet that has it may start slurmd at any moment, unless it says why it cannot, or has not for long.
  return pod.node_name.empty() || ((!pod_problems({worker.pod}).empty() || hangs(pod)) && slurm_fresh_or_again());
}

bool Pass::hangs(const kube::PodRecord& pod) {
  const auto since = in.seen.unstarted_since.find(pod.meta.uid);
  if (since == in.seen.unstarted_since.end()) return false;
  const core::Duration left = kStart - (in.mono - since->second);
  if (left.count() > 0) out.wake_after(left, "a worker of an earlier template that does not start is replaced");
  return left.count() <= 0;
}

void Pass::wish(const plan::StepId& id) {
  wishes_.push_back(id);
  if (in.outcomes.contains(id)) out.remember(id);
}

const plan::Outcome* Pass::failure(const plan::StepId& id) const {
  const auto it = in.outcomes.find(id);
  return it != in.outcomes.end() && it->second.state == plan::Outcome::State::kFailed ? &it->second : nullptr;
}

bool Pass::due(const plan::StepId& id) {
  const plan::Outcome* failed = failure(id);
  if (failed == nullptr || spec_changed()) return true;
  const core::Duration waited = in.mono - failed->last;
  const core::Duration wait = backoff(*failed);
  if (waited >= wait) return true;
  out.wake_after(wait - waited, "trying again: " + id.text());
  return false;
}

bool Pass::room(std::size_t n) {
  if (room_ >= n) return true;
  out.wake_after(core::Duration{10}, "more steps than one pass takes");
  return false;
}

bool Pass::step(plan::Lane& lane, plan::Step step) {
  wish(step.id);
  if (!due(step.id) || !room(1)) return false;
  --room_;
  lane.add(std::move(step));
  return true;
}

bool Pass::slurm_fresh_or_again() {
  if (slurm_fresh_) return true;
  if (slurm_known_) out.wake_after(kFreshAgain, "what Slurm last said is too old to act on");
  return false;
}

bool Pass::slurm_shows() {
  if (slurm_known_) return true;
  if (!slurm::has_answered(in.snapshot)) return false;
  const core::Duration left = kShown - (in.mono - in.snapshot->requested_at);
  if (left.count() <= 0) return false;
  out.wake_after(left, "what Slurm last said grows old");
  return true;
}

plan::Step Pass::event_step(std::string_view type, std::string_view reason, std::string_view action,
                            const std::string& note) const {
  auto act = std::make_shared<kube::EventAct>();
  act->regarding = resources::kNodeSet;
  act->object = in.meta();
  act->type = type;
  act->reason = reason;
  act->action = action;
  act->note = note;
  return {kEvent.of(act->reason, note), note, std::move(act)};
}

void Pass::event(std::string_view type, std::string_view reason, std::string_view action, std::string note) {
  out.lane("event").add(event_step(type, reason, action, note));
}

void Pass::lasting_event(std::string_view type, std::string_view reason, std::string_view action, std::string note) {
  const auto before = in.outcomes.find(kEvent.of(std::string(reason), note));
  if (before != in.outcomes.end() && in.mono - before->second.last < kEventAgain) return out.remember(before->first);
  event(type, reason, action, std::move(note));
}

void Pass::wrong(std::string_view reason, std::string message, std::string_view action) {
  if (std::ranges::none_of(problems, [&](const Problem& problem) { return problem.reason == reason; }))
    lasting_event("Warning", reason, action, message);
  problems.push_back({std::string(reason), std::move(message), true});
}

bool Pass::wait_at_most(core::Duration limit, std::string_view reason, const std::string& note) {
  lasting_event("Normal", reason, "Wait", note);
  const auto told = in.outcomes.find(kEvent.of(std::string(reason), note));
  const core::Duration waited = told == in.outcomes.end() ? core::Duration{0} : in.mono - told->second.since;
  if (waited >= limit) return false;
  waiting(reason, note);
  out.wake_after(std::min(limit - waited, core::Duration{1000}), note);
  return true;
}

bool keeps_others_word(const slurm::Node& node) {
  // Who gave no reason was not us.
  if (node.state.has("DRAIN") || node.state.has("FAIL")) return !slurm::ours(node.reason);
  return node.state.base == "DOWN" && slurm::given_by_others(node.reason) && !slurm::down_by_slurm(node);
}

bool keeps_others_word(const Worker& worker) {
  return worker.record != nullptr && keeps_others_word(*worker.record);
}

bool outlives_worker(const Pass& pass, const slurm::Node& node) {
  return pass.goal == Goal::kServe && keeps_others_word(node) && !tells_refusal(node);
}

std::string self_text(const Pass& pass) {
  return "NodeSet " + pass.in.meta().key().str();
}

std::string scale_in_reason(const Pass& pass) {
  return self_text(pass) + " was scaled in";
}

}  // namespace op::nodeset
