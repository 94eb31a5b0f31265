#include "operator/nodeset/view.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/well_known.hpp"
#include "core/hash.hpp"
#include "core/retry.hpp"
#include "operator/common/slinky.hpp"
#include "operator/nodeset/build_worker.hpp"
#include "operator/nodeset/daemon_nodes.hpp"
#include "slinky/worker_names.hpp"

namespace op::nodeset {
namespace {

/// How long conditions show Slurm's last answer while Slurm does not answer.
constexpr core::Duration kShown{30000};

/// Returns the hash of the values from which slurmd's --conf is made.
std::string hash_of_conf(const std::string& extra_conf, const PodLimits& limits) {
  if (limits.cpus == 0 && limits.memory_mib == 0) return core::short_hash(extra_conf, 10);
  return core::short_hash(fmt::format("{}\n{} {}", extra_conf, limits.cpus, limits.memory_mib), 10);
}

std::string hash_of_conf(const kube::Object& revision) {
  const core::Json none;
  const auto part = [&](std::initializer_list<std::string_view> path) -> const core::Json& {
    const core::Json* found = core::find(revision.body, path);
    return found == nullptr ? none : *found;
  };
  return hash_of_conf(core::get_string(revision.body, {"data", "spec", "extraConf"}),
                      pod_limits(part({"data", "spec", "slurmd"}), part({"data", "spec", "template", "spec"})));
}

}  // namespace

core::Duration backoff(const plan::Outcome& outcome) {
  const core::Retry retry = core::retry_of(outcome.error ? outcome.error->code : core::ErrorCode::kInternal);
  const bool soon = retry == core::Retry::kHeld || retry == core::Retry::kDecideAnew;
  const core::Duration first{soon ? 250 : 1000};
  const core::Duration longest{soon ? 4000 : 60000};
  const core::Duration wait = first * (1 << std::clamp(outcome.count - 1, 0, 10));
  core::Duration asked{0};
  if (outcome.error && outcome.error->retry_after) asked = *outcome.error->retry_after;
  return std::max(std::min(wait, longest), asked);
}

View::View(const Observed& observed, const Aim& aim) : in(observed), goal(aim.goal), desired(aim.desired) {
  slurm_known_ = in.snapshot != nullptr && in.snapshot->complete();
  slurm_fresh_ = slurm_known_ && in.snapshot->fresh(in.mono);
  for (const kube::ObjectPtr& revision : in.revisions) {
    conf_hashes_.emplace(revision->meta.label(api::kLabelRevisionHash), hash_of_conf(*revision));
  }
  if (!in.hash.empty()) {
    const api::NodeSetSpec& spec = in.nodeset.spec;
    conf_hashes_.emplace(in.hash, hash_of_conf(spec.extra_conf, pod_limits(spec.slurmd, spec.pod_template.spec)));
  }
  for (const Slot& slot : in.slots) worker_nodes_.insert(slot.node);
  // If several hosts give their workers the same name, a host that matches the NodeSet takes precedence. Such hosts are added
  // first, because emplace does not replace an entry.
  for (const bool matches : {true, false}) {
    for (const auto& [name, host] : in.hosts) {
      if (host.twin.empty() && (host.fit.any() || host.wanted) == matches) hosts_by_node_.emplace(host.slurm_node, name);
    }
  }
}

std::string View::self_text() const {
  return "NodeSet " + in.meta().key().str();
}

std::optional<core::Duration> View::slurm_shown_for() const {
  if (slurm_known_) return std::nullopt;
  if (!slurm::has_answered(in.snapshot)) return core::Duration{0};
  return kShown - (in.mono - in.snapshot->requested_at);
}

bool View::slurm_shows() const {
  const std::optional<core::Duration> left = slurm_shown_for();
  return !left || left->count() > 0;
}

const slurm::Node* View::known_record(std::string_view node) const {
  return slurm_known_ ? in.snapshot->node(node) : nullptr;
}

slurm::Work View::work_on(std::string_view node) const {
  return in.snapshot == nullptr ? slurm::Work{} : in.snapshot->work_on(node);
}

bool View::is_of_other_pod(std::string_view node) const {
  const auto named = [&](const kube::PodPtr& pod) { return slurm_node_name(*pod) == node; };
  return std::ranges::any_of(in.orphans, named) || std::ranges::any_of(in.unmanaged, named);
}

std::string View::node_prefix() const {
  return host_prefix(*in.object);
}

std::string View::pod_name(const SlotKey& place) const {
  if (!place.numbered()) return daemon_pod_name(in.meta().name, place.kube_node);
  return op::pod_name(in.meta().name, place.ordinal, in.nodeset.spec.ordinal_padding);
}

std::string View::node_name(const SlotKey& place) const {
  if (!place.numbered()) {
    const auto host = in.hosts.find(place.kube_node);
    return host == in.hosts.end() ? "" : host->second.slurm_node;
  }
  return node_prefix() + padded_ordinal(place.ordinal, in.nodeset.spec.ordinal_padding);
}

std::string View::name_problem(int ordinal) const {
  if (by_host() || ordinal < 0) return {};
  const auto problem_of = [&](int each) {
    std::string out = hostname_problem(node_prefix(), each, in.nodeset.spec.ordinal_padding);
    return out.empty() ? pod_name_problem(pod_name(SlotKey{each})) : out;
  };
  std::string out = problem_of(ordinal);
  if (out.empty()) return out;
  out += "; neither can be changed: create another NodeSet, with a name and a template.spec.hostname that fit";
  // Higher ordinals make longer names, so the names of workers with lower ordinals can be valid.
  int fit = 0;
  while (fit < ordinal && problem_of(fit).empty()) ++fit;
  if (fit > 0) out += fmt::format(", or scale this one to {} at most", fit);
  return out;
}

std::optional<SlotKey> View::place_of(std::string_view node) const {
  if (const auto host = hosts_by_node_.find(node); host != hosts_by_node_.end()) return SlotKey{-1, std::string(host->second)};
  const std::optional<int> ordinal = ordinal_of(node, node_prefix());
  return ordinal ? std::optional(SlotKey{*ordinal}) : std::nullopt;
}

const Rival* View::rival_of(std::string_view node) const {
  const auto found = std::ranges::find_if(in.rivals, [&](const Rival& rival) { return rival.takes(node); });
  return found == in.rivals.end() ? nullptr : &*found;
}

NameOwner View::owner_of_name(const SlotKey& place) const {
  if (uses_host_network(in.nodeset.spec)) return NameOwner::kUs;
  const std::string node = node_name(place);
  if (rival_of(node) != nullptr) return NameOwner::kOtherWorker;
  const bool names_nodeset = in.nodeset_names.contains(node) || node == slurm_node_set_name(in.nodeset.spec, in.meta().name);
  if (!slurm::has_answered(in.snapshot)) {
    // An external slurmctld might have a node of that name, so wait for its answer. A slurmctld that the operator runs has only
    // workers as nodes, so workers can be created before slurmctld answers.
    return names_nodeset || (in.controller && in.controller->external) ? NameOwner::kUnknown : NameOwner::kUs;
  }
  const slurm::Node* record = in.snapshot->node(node);
  if (record == nullptr) return names_nodeset ? NameOwner::kOtherNodeSet : NameOwner::kUs;
  return is_own_record(*record) ? NameOwner::kUs : NameOwner::kOtherNode;
}

bool View::is_own_record(const slurm::Node& record) const {
  // Searching the comment is cheaper than parsing it.
  if (record.comment.find(in.meta().uid) != std::string::npos) return true;
  if (const auto comment = worker_comment(record.comment)) {
    const std::string nodeset = core::get_string(*comment, {"nodeSetName"});
    return core::get_string(*comment, {"namespace"}) == in.meta().ns && (nodeset.empty() || nodeset == in.meta().name);
  }
  return std::ranges::find(record.features, slurm_node_set_name(in.nodeset.spec, in.meta().name)) != record.features.end();
}

const std::string* View::conf_hash(std::string_view revision) const {
  const auto found = conf_hashes_.find(revision);
  return found == conf_hashes_.end() ? nullptr : &found->second;
}

const plan::Outcome* View::failure(const plan::StepId& id) const {
  const auto it = in.outcomes.find(id);
  return it != in.outcomes.end() && it->second.state == plan::Outcome::State::kFailed ? &it->second : nullptr;
}

core::Duration View::retry_in(const plan::StepId& id) const {
  const plan::Outcome* failed = failure(id);
  if (failed == nullptr || spec_changed()) return core::Duration{0};
  return backoff(*failed) - (in.mono - failed->last);
}

Wait View::wait_at_most(core::Duration limit, std::string_view reason, std::string note) const {
  const auto told = in.outcomes.find(event_step("Normal", reason, "Wait", note).id);
  const core::Duration waited = told == in.outcomes.end() ? core::Duration{0} : in.mono - told->second.since;
  return {reason, std::move(note), limit - waited};
}

plan::Step View::event_step(std::string_view type, std::string_view reason, std::string_view action, std::string note) const {
  return op::event_step(resources::kNodeSet, in.meta(), std::string(type), std::string(reason), std::string(action),
                        std::move(note));
}

}  // namespace op::nodeset
