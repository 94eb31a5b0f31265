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
constexpr core::Duration kEventAgain{10 * 60 * 1000};

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

core::Duration backoff(const plan::Outcome& outcome) {
  using enum core::ErrorCode;
  const core::ErrorCode code = outcome.error ? outcome.error->code : kInternal;
  const bool soon = code == kBusy || code == kConflict || code == kExpired;
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
  if (!in.hash.empty()) {
    const api::NodeSetSpec& spec = in.nodeset.spec;
    conf_hashes.emplace(in.hash, conf_hash(spec.extra_conf, pod_limits(spec.slurmd, spec.pod_template.spec)));
  }
  workers.reserve(in.slots.size());
  for (const Slot& slot : in.slots) {
    workers.push_back({slot, {}});
    nodes_.insert(workers.back().node);
    if (slot.change) out.wake_after(slot.change->in, std::string(slot.change->why));
  }
}

slurm::Work Pass::work_on(std::string_view node) const {
  return in.snapshot == nullptr ? slurm::Work{} : in.snapshot->work_on(node);
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
  if (slurm_known_) out.wake_after(kFreshAgain.in, std::string(kFreshAgain.why));
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

plan::Step Pass::event_step(std::string_view type, std::string_view reason, std::string_view action, std::string note) const {
  return op::event_step(resources::kNodeSet, in.meta(), std::string(type), std::string(reason), std::string(action),
                        std::move(note));
}

void Pass::event(std::string_view type, std::string_view reason, std::string_view action, std::string note) {
  out.lane("event").add(event_step(type, reason, action, std::move(note)));
}

void Pass::lasting_event(std::string_view type, std::string_view reason, std::string_view action, std::string note) {
  plan::Step step = event_step(type, reason, action, std::move(note));
  const auto before = in.outcomes.find(step.id);
  if (before != in.outcomes.end() && in.mono - before->second.last < kEventAgain) return out.remember(before->first);
  out.lane("event").add(std::move(step));
}

void Pass::wrong(std::string_view reason, std::string message, std::string_view action) {
  if (std::ranges::none_of(problems, [&](const Problem& problem) { return problem.reason == reason; }))
    lasting_event("Warning", reason, action, message);
  problems.push_back({std::string(reason), std::move(message), true});
}

bool Pass::wait_at_most(core::Duration limit, std::string_view reason, const std::string& note) {
  lasting_event("Normal", reason, "Wait", note);
  const auto told = in.outcomes.find(event_step("Normal", reason, "Wait", note).id);
  const core::Duration waited = told == in.outcomes.end() ? core::Duration{0} : in.mono - told->second.since;
  if (waited >= limit) return false;
  waiting(reason, note);
  out.wake_after(std::min(limit - waited, core::Duration{1000}), note);
  return true;
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
