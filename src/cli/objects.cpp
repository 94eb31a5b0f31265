#include "cli/objects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/well_known.hpp"
#include "cli/terminal.hpp"
#include "kube/cache/record.hpp"
#include "slinky/worker_states.hpp"
#include "slurm/holds.hpp"

namespace cli {
namespace {

/// Reports whether the reason only means that nothing is under way.
bool says_nothing(std::string_view reason) {
  return reason == "Done" || reason == "Blocked";
}

/// Further conditions to show. These conditions explain why a change does not take effect.
constexpr std::array<std::string_view, 3> kAlso{"DeletionsStopped", "ChangesWithheld", "KeyChanged"};

/// Further conditions to show unless they are True.
constexpr std::array<std::string_view, 1> kAlsoUnlessTrue{api::kConditionPlaced};

}  // namespace

const core::Json* condition_of(const core::Json& object, std::string_view type) {
  const core::Json* all = core::find(object, {"status", "conditions"});
  if (all == nullptr || !all->is_array()) return nullptr;
  for (const core::Json& condition : *all) {
    if (core::get_string(condition, {"type"}) == type) return &condition;
  }
  return nullptr;
}

bool is_true(const core::Json& object, std::string_view condition) {
  const core::Json* found = condition_of(object, condition);
  return found != nullptr && core::get_string(*found, {"status"}) == "True";
}

std::string told(const core::Json& condition) {
  const std::string reason = core::get_string(condition, {"reason"}), message = core::get_string(condition, {"message"});
  return reason.empty() || message.empty() ? reason + message : reason + ": " + message;
}

std::vector<std::string> waits_of(const core::Json& object) {
  std::vector<std::string> out;
  const auto add = [&](std::string text) {
    if (!text.empty() && std::ranges::find(out, text) == out.end()) out.push_back(std::move(text));
  };
  if (const core::Json* deleted = core::find(object, {"metadata", "deletionTimestamp"}); deleted != nullptr)
    add("it is being deleted");
  if (const core::Json* degraded = condition_of(object, api::kConditionDegraded);
      degraded != nullptr && is_true(object, api::kConditionDegraded))
    add(told(*degraded));
  if (const core::Json* progressing = condition_of(object, api::kConditionProgressing);
      progressing != nullptr && !says_nothing(core::get_string(*progressing, {"reason"})))
    add(told(*progressing));
  for (const std::string_view type : kAlso) {
    if (is_true(object, type)) add(std::string(type) + ": " + core::get_string(*condition_of(object, type), {"message"}));
  }
  for (const std::string_view type : kAlsoUnlessTrue) {
    const core::Json* condition = condition_of(object, type);
    if (condition != nullptr && core::get_string(*condition, {"status"}) == "False") add(told(*condition));
  }
  return out;
}

std::optional<SlurmWord> slurm_word(const kube::PodRecord& pod) {
  SlurmWord out;
  bool any = false;
  for (const kube::PodCondition& condition : pod.conditions) {
    if (!condition.type.starts_with(api::kPodConditionPrefix) || condition.status != "True") continue;
    any = true;
    const std::string_view word = std::string_view(condition.type).substr(api::kPodConditionPrefix.size());
    const auto base = std::ranges::find(slinky::kBaseStates, word, &slinky::StateName::condition);
    const auto flag = std::ranges::find(slinky::kStateFlags, word, &slinky::StateName::condition);
    if (base != slinky::kBaseStates.end()) out.state.base = base->slurm;
    if (flag != slinky::kStateFlags.end()) out.state.flags.emplace(flag->slurm);
    if (!condition.message.empty()) out.reason = condition.message;
  }
  return any ? std::optional(out) : std::nullopt;
}

std::string state_text(const slurm::NodeState& state) {
  std::string out = state.base;
  for (const std::string& flag : state.flags) {
    // Omits DYNAMIC_NORM, because the nodes of all workers have this flag.
    if (flag != "DYNAMIC_NORM") out += "+" + flag;
  }
  return out;
}

DrainOwner drain_owner(std::string_view reason) {
  DrainOwner out;
  const slurm::Holds holds = slurm::Holds::read(reason);
  if (holds.none()) {
    out.others = true;
    out.who = slurm::slurms_own(reason) ? "Slurm" : "somebody else";
    out.why = reason;
    return out;
  }
  out.ours = holds.has(slurm::Owner::kOperator);
  out.others = holds.others_than(slurm::Owner::kOperator);
  for (const auto& [holder, why] : holds.all()) {
    const std::string who(slurm::to_string(holder.owner));
    if (!out.who.ends_with(who)) out.who += (out.who.empty() ? "" : ", ") + who;
    out.why = why;
  }
  if (out.ours && out.others) out.why = reason;
  return out;
}

Deadline deadline_of(const kube::PodRecord& pod) {
  Deadline out;
  const std::string_view text = pod.meta.annotation(api::kAnnotationPodDeadline);
  out.busy = !text.empty() || pod.meta.label(api::kLabelPodBusy) == "true";
  // The operator writes the year 9999 for a job without a limit.
  if (text.starts_with("9999-")) return out;
  if (const auto at = core::parse_rfc3339(text)) out.at = *at;
  return out;
}

std::string deadline_text(const Deadline& deadline, core::WallTime now) {
  if (!deadline.busy) return "";
  if (!deadline.at) return "no limit";
  const core::Duration left = *deadline.at - now;
  return left.count() <= 0 ? "now" : "in " + short_duration(left);
}

std::vector<kube::PodPtr> pod_records(const std::vector<core::Json>& pods) {
  std::vector<kube::PodPtr> out;
  for (const core::Json& pod : pods) {
    if (auto record = kube::record_from_json<kube::PodRecord>(pod)) out.push_back(std::move(*record));
  }
  return out;
}

}  // namespace cli
