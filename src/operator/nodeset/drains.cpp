// Preserves drains by others when a drained node needs a new record. A changed --conf needs a new record, because Slurm does
// not apply it to an existing one. Before the worker is deleted, status.drainsToRestore records the drain. The next worker
// registers drained. After that, the operator restores the reason of the drain.
//
// slurmd itself sends State=DRAIN, so that its node never accepts a job. slurmd does not send the reason, which can be any
// text: images split --conf in different ways, and slurmd exits if it cannot parse a part of --conf.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/well_known.hpp"
#include "kube/acts.hpp"
#include "operator/common/slinky.hpp"
#include "operator/nodeset/build_worker.hpp"
#include "operator/nodeset/parts.hpp"
#include "slinky/worker_names.hpp"
#include "slurm/acts.hpp"

namespace op::nodeset {
namespace {

constexpr std::string_view kNoReason = "drained without a reason";
/// Slurm's answers replace bytes of a reason that are not UTF-8 by this text. The original bytes are unknown.
constexpr std::string_view kRepaired = "\xEF\xBF\xBD";
/// A longer reason is not written to the status.
constexpr std::size_t kLongest = 4096;
/// If the CustomResourceDefinition lacks status.drainsToRestore: the time until the next try to write the field. An
/// administrator might update the definition in the meantime.
constexpr core::Duration kNoteAgain{10 * 60 * 1000};

/// True if the node is drained with the reason that its slurmd sent. Slurm 24.11 appends text to this reason when the node
/// stops responding.
bool awaits_reason(const slurm::Node& node) {
  return node.state.drains() && node.reason.starts_with(kDrainedBefore);
}

/// Returns the reason that others gave, without the operator's and slurmctld's parts.
std::string reason_of_others(const Observed& in, const slurm::Node& node) {
  // The node's reason is only the placeholder that our slurmd sent. The real reason is in status.drainsToRestore.
  if (awaits_reason(node)) return recorded_drain(in, node.name).value_or(std::string(kNoReason));
  std::string out = slurm::said_by_others(node.reason, slurm::Owner::kOperator);
  return out.empty() ? std::string(kNoReason) : out;
}

plan::StepId note_id(const std::string& node, const std::string& reason) {
  plan::StepId id = kNoteDrain.of(node);
  id.variant = reason;
  return id;
}

/// True if the next worker of the place needs another record.
bool record_is_to_go(const View& view, const SlotKey& place, const slurm::Node& record) {
  return view.node_name(place) == record.name && has_other_conf(view, record, view.in.wanted_hash(place));
}

/// True if it is unknown which entries of status.drainsToRestore can be removed. All entries then stay.
bool undecided(const View& view) {
  return !view.in.invalid.empty() || view.goal == Goal::kHold || !view.slurm_known();
}

/// True if the node's entry in status.drainsToRestore stays.
bool stays_noted(const View& view, const std::string& node) {
  if (undecided(view)) return true;
  if (view.goal != Goal::kServe) return false;
  const slurm::Node* record = view.known_record(node);
  // Without a record, the entry is needed until the next worker creates one, even if the worker's Kubernetes node is away for a
  // while. While Slurm refuses the slurmd, the record's reason is about the refusal, so the entry is needed as well.
  if (record == nullptr || tells_refusal(*record)) return true;
  // Somebody has resumed the node, so there is no drain to restore.
  if (!record->state.drains()) return false;
  if (awaits_reason(*record)) return true;
  const std::optional<SlotKey> place = view.place_of(node);
  return place && record_is_to_go(view, *place, *record) && drained_by_others(*record);
}

}  // namespace

std::optional<std::string> recorded_drain(const Observed& in, std::string_view node) {
  const api::StringMap& drains = in.nodeset.status.drains_to_restore;
  const auto found = drains.find(node);
  return found == drains.end() ? std::nullopt : std::optional(found->second);
}

bool drained_by_others(const slurm::Node& record) {
  return held_by_others(record) && record.state.drains() && !tells_refusal(record);
}

Restorable judge_restorable(const View& view, const SlotKey& place, const slurm::Node& record) {
  if (!drained_by_others(record) || record.state.has("FAIL")) return Restorable::kNo;
  if (uses_host_network(view.in.nodeset.spec) || view.node_name(place) != record.name) return Restorable::kNo;
  if (view.in.wanted_hash(place) != view.in.hash || !leaves_state_open(view.in.nodeset.spec, view.in.meta().name))
    return Restorable::kNo;
  const std::string reason = reason_of_others(view.in, record);
  if (reason.size() > kLongest || reason.find(kRepaired) != std::string::npos) return Restorable::kNoText;
  if (recorded_drain(view.in, record.name) == reason) return Restorable::kNoted;
  const auto tried = view.in.outcomes.find(note_id(record.name, reason));
  if (tried == view.in.outcomes.end()) return Restorable::kToBeNoted;
  // An earlier pass tried to write the entry, but the status does not contain the entry.
  const bool lately = view.in.mono - tried->second.last < kNoteAgain;
  return tried->second.state == plan::Outcome::State::kFailed || lately ? Restorable::kNotKept : Restorable::kToBeNoted;
}

api::StringMap judge_drains(const View& view) {
  api::StringMap out = view.in.nodeset.status.drains_to_restore;
  std::erase_if(out, [&](const auto& entry) { return !stays_noted(view, entry.first); });
  return out;
}

bool forgets_drain(const View& view, const std::string& node) {
  return recorded_drain(view.in, node) && !stays_noted(view, node);
}

bool note_drains(const View& view, const Fates& fates, const Vacancies& vacancies, Draft& draft) {
  if (view.goal != Goal::kServe || !view.slurm_known()) return false;
  bool noted = false;
  const auto note = [&](const SlotKey& place, const slurm::Node* record) {
    if (record == nullptr || !record->state.drains() || !record_is_to_go(view, place, *record)) return;
    const Restorable now = judge_restorable(view, place, *record);
    if (now != Restorable::kToBeNoted && now != Restorable::kNotKept) return;
    const std::string reason = reason_of_others(view.in, *record);
    const plan::StepId id = note_id(record->name, reason);
    if (now == Restorable::kNotKept && view.failure(id) == nullptr) {
      draft.remember(id);
      draft.wake_after(kNoteAgain, "the definition of NodeSets may be of this release");
      return;
    }
    // Patch only this entry, so that the patch succeeds even if other parts of the status have changed.
    auto act = std::make_shared<kube::Patch>();
    act->resource = resources::kNodeSet;
    act->key = view.in.meta().key();
    act->subresource = "status";
    act->uid = view.in.meta().uid;
    act->patch["status"]["drainsToRestore"][record->name] = reason;
    noted |= draft.step(draft.lane("note the drain of " + record->name), id,
                        "somebody drained it, and its record must be recreated", std::move(act));
  };
  for (const Worker& worker : fates.workers) {
    const bool updates = fates.rollout.state == Rollout::State::kRolls && !worker.in_place;
    if (updates || worker.goes() || worker.life != Life::kLive) note(worker.key, worker.record);
  }
  for (const SlotKey& place : vacancies.places) note(place, view.known_record(view.node_name(place)));
  return noted;
}

void tell_restored(const View& view, const Workers& workers, const api::StringMap& kept, Draft& draft) {
  for (const auto& [node, reason] : view.in.nodeset.status.drains_to_restore) {
    if (kept.contains(node)) continue;
    const slurm::Node* record = view.known_record(node);
    // Report the drain as restored only if the node's slurmd sent State=DRAIN. Otherwise Slurm still has the old record.
    const bool said = std::ranges::any_of(workers, [&](const Worker& worker) {
      return worker.node == node && !worker.pod->meta.annotation(api::kAnnotationFirstConf).empty();
    });
    if (!said || record == nullptr || !record->state.drains() || !record->reason.starts_with(reason)) continue;
    draft.event("Normal", "DrainRestored", "Drain",
                fmt::format("Node {} has a new record in Slurm, and is drained again as before: {}", node, reason));
  }
}

void restore_drains(const View& view, Draft& draft) {
  if (!view.slurm_known() || view.goal != Goal::kServe) return;
  for (const auto& [name, reason] : view.in.nodeset.status.drains_to_restore) {
    const slurm::Node* record = view.known_record(name);
    if (record == nullptr || !awaits_reason(*record) || tells_refusal(*record)) continue;
    draft.step(draft.lane("restore the drain of " + name), {"restore the drain of", "Slurm node", name},
               "its record had to be recreated", slurm::restore_reason(view.cluster(), *record, reason));
  }
}

}  // namespace op::nodeset
