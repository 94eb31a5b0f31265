// Deletes the records of Slurm nodes whose workers are gone for good or have moved to another Slurm node. With host networking,
// the Slurm node is named after the Kubernetes node, so workers can move. Also judges whether a record must be deleted because
// its extraConf or limits do not fit the next worker of the name.
#include <algorithm>
#include <array>

#include "operator/common/slinky.hpp"
#include "operator/nodeset/daemon_nodes.hpp"
#include "operator/nodeset/parts.hpp"
#include "operator/nodeset/schedule.hpp"
#include "slinky/worker_names.hpp"
#include "slurm/acts.hpp"

namespace op::nodeset {
namespace {

/// True if no worker is missing and each worker has a Kubernetes node. A worker without a Kubernetes node might return to its
/// previous Kubernetes node and use its record again.
bool all_placed(const View& view, const Workers& workers, const Vacancies& vacancies) {
  return vacancies.places.empty() && view.in.orphans.empty() &&
         std::ranges::none_of(workers, [](const Worker& worker) { return worker.pod->node_name.empty(); });
}

/// The reasons that slurmctld gives when it refuses a slurmd with fewer resources than its record has. With a new record,
/// slurmctld would accept the slurmd.
constexpr std::array<std::string_view, 5> kDiffers{"CoreSpec differ", "Low CPUs", "Low RealMemory", "Low TmpDisk",
                                                   "Low socket*core*thread count"};

/// Other reasons that slurmctld gives when it refuses a slurmd.
constexpr std::array<std::string_view, 6> kRefuses{"gres/",
                                                   "Could not unpack gres data",
                                                   "Failed to parse dynamic_conf",
                                                   "Failed to set topology",
                                                   "Reported active features",
                                                   "RestrictedCoresPerGPU"};

bool starts_with_any(const auto& all, const std::string& reason) {
  return std::ranges::any_of(all, [&](std::string_view words) { return reason.starts_with(words); });
}

/// True if the record belongs to one of our workers, and Slurm refused the worker's last slurmd because it had fewer resources
/// than the record. Nobody can resume such a node.
bool refused_by_slurm(const View& view, const slurm::Node& node) {
  return node.state.has("INVALID_REG") && stamped_by_us(view, node) && starts_with_any(kDiffers, node.reason);
}

/// True if the comment names a NodeSet of our name. If the comment has another UID than ours, the NodeSet of that UID is gone,
/// because two NodeSets of one name cannot exist at once.
bool names_us(const View& view, const core::Json& comment) {
  return core::get_string(comment, {"nodeSetName"}) == view.in.meta().name &&
         core::get_string(comment, {"namespace"}) == view.in.meta().ns;
}

enum class Ours { kNo, kPerhaps, kYes };

/// Judges by the comment or the features of a record whether the record belongs to this NodeSet.
Ours is_ours(const View& view, const slurm::Node& node) {
  if (const auto comment = worker_comment(node.comment)) {
    const std::string uid = core::get_string(*comment, {"nodeSetUID"});
    if (uid == view.in.meta().uid) return Ours::kYes;
    if (!uid.empty() && !names_us(view, *comment)) return Ours::kNo;
  }
  // The comment does not show the owner. A record with our feature counts as ours only if no slurmd answers under the record's
  // name any more, or if the operator holds the node.
  const std::string feature = slurm_node_set_name(view.in.nodeset.spec, view.in.meta().name);
  const bool featured = std::find(node.features.begin(), node.features.end(), feature) != node.features.end();
  if (!featured) return Ours::kNo;
  const bool silent =
      node.state.base == "DOWN" || node.state.has("NOT_RESPONDING") || slurm::held_by(node.reason, slurm::Owner::kOperator);
  return silent ? Ours::kYes : Ours::kPerhaps;
}

/// True if the record is named after the Kubernetes node in its comment. A worker that was bound to that Kubernetes node made
/// the record. A later worker might use the record again.
bool named_after_host(const slurm::Node& node) {
  const auto comment = worker_comment(node.comment);
  const std::string host = comment ? core::get_string(*comment, {"node"}) : "";
  return !host.empty() && host.substr(0, host.find('.')) == node.name;
}

/// Deletes records with numbered names if the NodeSet has no worker of that number any more.
void delete_without_worker(const View& view, const Vacancies& vacancies, StaleRecords& found, Draft& draft) {
  if (!view.in.namesake.empty()) return;
  const std::string prefix = view.node_prefix();
  const auto& nodes = view.in.snapshot->nodes;
  for (auto it = nodes.lower_bound(prefix); it != nodes.end() && it->first.starts_with(prefix); ++it) {
    const auto& [name, node] = *it;
    const std::optional<SlotKey> place = view.place_of(name);
    if (!place || !place->numbered() || view.has_worker(name) || vacancies.places.contains(*place) ||
        view.is_of_other_pod(name))
      continue;
    if (view.by_host() && view.goal == Goal::kServe && named_after_host(*node)) continue;
    const Ours ours = is_ours(view, *node);
    if (outlives_worker(view, *node)) continue;
    if (ours == Ours::kPerhaps && found.answering.empty()) found.answering = name;
    if (ours != Ours::kYes) continue;
    if (view.stops()) found.withheld.push_back(name);
    if (!view.slurm_fresh()) return draft.wake(kFreshAgain);
    ++found.count;
    if (view.stops()) {
      if (!view.in.doubt.empty()) draft.wake_after(kDoubtAgain, view.in.doubt);
      continue;
    }
    if (reserved(*node)) {
      draft.intent().add(kDeleteRecord.of(name));
      draft.waiting(
          "RecordReserved",
          "the record of node " + name + std::string(kReservedText) +
              (view.goal == Goal::kServe ? "; the next worker would get its number, so no worker is updated until then" : ""));
      continue;
    }
    const std::string why = "its worker is gone for good";
    draft.step(draft.lane("record " + name), kDeleteRecord.of(name), why,
               slurm::delete_node(view.cluster(), slurm::Owner::kOperator, *node, why));
  }
}

/// True if the pod in the record's comment is a worker that has another Slurm node now. That worker will not use the record
/// again.
bool is_superseded(const Workers& workers, const slurm::Node& node) {
  const auto comment = worker_comment(node.comment);
  const std::string pod = comment ? core::get_string(*comment, {"podName"}) : "";
  return std::ranges::any_of(workers, [&](const Worker& worker) {
    return worker.record != nullptr && worker.pod->meta.name == pod && worker.node != node.name;
  });
}

/// True if the preStop hook of one of our workers drained the node before the operator wrote the comment of the node.
bool drained_by_pre_stop(const View& view, const slurm::Node& node) {
  return slurm::held_by(node.reason, slurm::Owner::kOperator) && !worker_comment(node.comment) &&
         is_ours(view, node) == Ours::kYes;
}

/// Deletes records of workers that have another name in Slurm now. With host networking, such a worker may have moved to
/// another Kubernetes node. Without host networking, the worker's slurmd had registered under a name that the user chose.
void delete_moved(const View& view, const Workers& workers, const Vacancies& vacancies, StaleRecords& found, Draft& draft) {
  const bool on_host = uses_host_network(view.in.nodeset.spec);
  // In this case, delete_of_hosts handles the records.
  if (!on_host && (view.by_host() || view.goal != Goal::kServe)) return;
  if (view.stops() || !all_placed(view, workers, vacancies)) return;
  const std::string prefix = view.node_prefix();
  for (const auto& [name, node] : view.in.snapshot->nodes) {
    if (ordinal_of(name, prefix)) continue;  // Handled by delete_without_worker.
    if (view.has_worker(name) || view.in.other_workers.contains(name)) continue;
    // Keep a record whose reason somebody else gave, because that reason is about the machine. If a worker returns to the
    // machine, the reason still applies.
    if (slurm::given_by_others(node->reason, slurm::Owner::kOperator) && !tells_refusal(*node)) continue;
    if (!stamped_by_us(view, *node) && !drained_by_pre_stop(view, *node)) continue;
    // Without host networking, or with scalingMode DaemonSet, the worker's place determines the name of the Slurm node. Then a
    // record is stale only if the pod in its comment has another Slurm node now.
    if ((!on_host || view.by_host()) && !is_superseded(workers, *node)) continue;
    // Keep the record while others hold the node, while a reservation contains the node, or while jobs wait for the node.
    if (view.goal == Goal::kServe && (outlives_worker(view, *node) || reserved(*node) || view.in.snapshot->job_names(name)))
      continue;
    // The machine might run a slurmd of its own, so a node that answers does not count as left by a worker.
    if (node->state.base != "DOWN") {
      if (found.answering.empty()) found.answering = name;
      continue;
    }
    if (!view.slurm_fresh()) return draft.wake(kFreshAgain);
    ++found.count;
    const std::string why = "its worker is another Slurm node now";
    draft.step(draft.lane("record " + name), kDeleteRecord.of(name), why,
               slurm::delete_node(view.cluster(), slurm::Owner::kOperator, *node, why, slurm::NodeEvidence::Live::kKept));
  }
}

/// If spec.pruneSlurmNodeRecords is NodeNotFound, deletes the records of workers whose Kubernetes nodes are gone. A direct read
/// from the API server must have shown that the Kubernetes node is gone.
void prune_lost(const View& view, StaleRecords& found, Draft& draft) {
  if (view.goal != Goal::kServe || view.stops()) return;
  for (const auto& [name, host] : view.in.lost_hosts) {
    const slurm::Node* node = view.known_record(name);
    if (node == nullptr || view.has_worker(name) || view.is_of_other_pod(name) || view.in.other_workers.contains(name))
      continue;
    if (view.rival_of(name) != nullptr || outlives_worker(view, *node)) continue;
    // Wait until Slurm has noticed the end of slurmd. Reservations, and jobs that wait for the node, still need its record.
    if (node->state.base != "DOWN" || reserved(*node) || view.in.snapshot->job_names(name)) continue;
    if (!view.slurm_fresh()) return draft.wake(kFreshAgain);
    ++found.count;
    const plan::StepId id = kDeleteRecord.of(name);
    if (!draft.wish_now(id) || ask(view, live_host(host), draft)) continue;
    const auto evidence = view.in.left_behind.find(name);
    if (evidence == view.in.left_behind.end()) continue;
    const std::string why = "its Kubernetes node " + host + " is gone";
    draft.step(draft.lane("record " + name), id, why, slurm::delete_node(slurm::Owner::kOperator, evidence->second, why));
  }
}

/// True if a worker that is bound to a Kubernetes node might use the record again.
bool awaits_bound_worker(const View& view, const slurm::Node& node) {
  if (view.goal != Goal::kServe || !view.by_host()) return false;
  if (const std::optional<SlotKey> place = view.place_of(node.name)) {
    const Host& host = view.in.hosts.at(place->kube_node);
    return host.fit.any() || host.wanted;
  }
  // No place has this name now. If the Kubernetes node in the comment exists, the worker of that Kubernetes node has another
  // name and does not need the record. If that Kubernetes node is gone, it might come back.
  const auto comment = worker_comment(node.comment);
  return comment && !view.in.hosts.contains(core::get_string(*comment, {"node"}));
}

/// True if the last slurmd of the node ran in one of our workers, or if the preStop hook of a worker drained the node before
/// the operator wrote the comment of the node.
bool left_by_ours(const View& view, const slurm::Node& node) {
  if (stamped_by_us(view, node)) {
    const core::Json comment = *worker_comment(node.comment);
    const std::string pod = core::get_string(comment, {"podName"});
    // While the NodeSet serves, do not count a record that a numbered worker left under another name, as with host networking.
    return view.goal != Goal::kServe || !ordinal_of(pod, view.in.meta().name + "-") ||
           pod == daemon_pod_name(view.in.meta().name, core::get_string(comment, {"node"}));
  }
  return drained_by_pre_stop(view, node);
}

/// Deletes records of workers that were bound to Kubernetes nodes and will not return.
void delete_of_hosts(const View& view, StaleRecords& found, Draft& draft) {
  if (view.stops() || uses_host_network(view.in.nodeset.spec) || !view.in.namesake.empty()) return;
  const bool serves = view.goal == Goal::kServe;
  for (const auto& [name, node] : view.in.snapshot->nodes) {
    const bool down = node->state.base == "DOWN";
    if (!down && serves) continue;
    const std::optional<SlotKey> place = view.place_of(name);
    if (place && place->numbered()) continue;  // Handled by delete_without_worker.
    if (view.has_worker(name) || view.is_of_other_pod(name) || view.rival_of(name) != nullptr) continue;
    if (!left_by_ours(view, *node) || outlives_worker(view, *node) || awaits_bound_worker(view, *node)) continue;
    // The operator does not manage pods of ours that have no place, so it does not delete the records of such pods.
    if (std::ranges::any_of(view.in.pods, [&](const kube::PodPtr& pod) { return slurm_node_name(*pod) == name; })) continue;
    // Jobs that wait for the node still need its record.
    if (serves && view.in.snapshot->job_names(name)) continue;
    if (!down) {
      if (found.answering.empty()) found.answering = name;
      continue;
    }
    if (!view.slurm_fresh()) return draft.wake(kFreshAgain);
    ++found.count;
    if (reserved(*node)) {
      draft.intent().add(kDeleteRecord.of(name));
      draft.waiting("RecordReserved", "the record of node " + name + std::string(kReservedText));
      continue;
    }
    const std::string why = "its worker is gone for good";
    draft.step(draft.lane("record " + name), kDeleteRecord.of(name), why,
               slurm::delete_node(view.cluster(), slurm::Owner::kOperator, *node, why, slurm::NodeEvidence::Live::kKept));
  }
}

}  // namespace

bool tells_refusal(const slurm::Node& node) {
  return node.state.has("INVALID_REG") && (starts_with_any(kDiffers, node.reason) || starts_with_any(kRefuses, node.reason));
}

bool stamped_by_us(const View& view, const slurm::Node& node) {
  const std::string& uid = view.in.meta().uid;
  // Most nodes do not belong to this NodeSet. Searching a comment for the UID is cheaper than parsing the comment.
  if (node.comment.find(uid) == std::string::npos) return false;
  const auto comment = worker_comment(node.comment);
  return comment && core::get_string(*comment, {"nodeSetUID"}) == uid;
}

bool has_other_conf(const View& view, const slurm::Node& record, std::string_view revision) {
  const std::string* hash = view.conf_hash(revision);
  // Most records have this hash. Searching the comment for the hash is cheaper than parsing the comment.
  if (hash == nullptr || record.comment.find(*hash) != std::string::npos) return false;
  const auto comment = worker_comment(record.comment);
  // Workers of a former NodeSet of our name are ours even before the comments of their nodes are updated. Comments of earlier
  // releases lack the hash.
  const bool ours = comment && (core::get_string(*comment, {"nodeSetUID"}) == view.in.meta().uid || names_us(view, *comment));
  return ours && !core::get_string(*comment, {kStampedConf}).empty();
}

OldRecord judge_old_record(const View& view, const std::string& name) {
  const slurm::Node* record = view.known_record(name);
  if (record == nullptr || view.has_worker(name) || view.stops()) return OldRecord::kStays;
  const slurm::NodeState& state = record->state;
  Restorable drain = Restorable::kNo;
  const bool refused = refused_by_slurm(view, *record);
  if (!refused) {
    const std::optional<SlotKey> place = view.place_of(name);
    if (!has_other_conf(view, *record, place ? view.in.wanted_hash(*place) : view.in.hash)) return OldRecord::kStays;
    // An administrator's drain also applies to the next worker, so the record stays unless that drain can be restored.
    const bool taken = state.has("DRAIN") || state.has("FAIL");
    if (slurm::given_by_others(record->reason, slurm::Owner::kOperator) ||
        (taken && !slurm::held_by(record->reason, slurm::Owner::kOperator))) {
      if (place) drain = judge_restorable(view, *place, *record);
      if (drain != Restorable::kNoted && drain != Restorable::kToBeNoted) return OldRecord::kStays;
    }
  }
  // Our own reservation is no reason to keep the record, because the operator removes the node from the reservation.
  const bool ours = is_scheduled(view) && record->reservation == reservation_name(view.in.meta());
  // Jobs that require the node would be lost if its record were deleted.
  if ((reserved(*record) && !ours) || state.has("COMPLETING") || state.base == "ALLOCATED" || state.base == "MIXED" ||
      view.in.snapshot->job_names(name)) {
    return OldRecord::kStays;
  }
  if (drain == Restorable::kToBeNoted) return OldRecord::kAwaitsNote;
  // Accept a node that stays IDLE: if a drain by somebody else or by slurmctld is complete, the preStop hook does not set the
  // node DOWN.
  const bool ended = state.base == "DOWN" || ((refused || drain == Restorable::kNoted) && state.base == "IDLE");
  return ended && view.slurm_fresh() && !reserved(*record) ? OldRecord::kDeletedFirst : OldRecord::kAwaitsDown;
}

StaleRecords delete_stale_records(const View& view, const Workers& workers, const Vacancies& vacancies, Draft& draft) {
  StaleRecords found;
  if (!view.slurm_known() || view.goal == Goal::kHold || view.goal == Goal::kEndAll) return found;
  delete_without_worker(view, vacancies, found, draft);
  delete_moved(view, workers, vacancies, found, draft);
  prune_lost(view, found, draft);
  delete_of_hosts(view, found, draft);
  return found;
}

}  // namespace op::nodeset
