// Updates pods and their Slurm nodes to match each other: drains for cordons, resumes, pod conditions, labels and annotations,
// and the node's comment.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "api/well_known.hpp"
#include "core/hash.hpp"
#include "core/hostlist.hpp"
#include "kube/acts.hpp"
#include "operator/common/slinky.hpp"
#include "operator/nodeset/build_worker.hpp"
#include "operator/nodeset/parts.hpp"
#include "slinky/worker_names.hpp"
#include "slinky/worker_states.hpp"
#include "slurm/acts.hpp"

namespace op::nodeset {
namespace {

using core::Json;

/// The largest number of pods whose conditions one pass writes. The limit prevents reports from delaying important writes.
constexpr int kReportsPerPass = 20;
/// After this time, a ready worker is resumed even if nothing shows that it registered again.
constexpr core::Duration kRegistrationGrace{15000};
/// If the operator has not seen the deletion of a pod this long after its preStop hook ran, only its container was restarted.
constexpr core::Duration kDeletionTold{60000};
/// A slurmd that starts within this time after its pod's preStop hook is not a new slurmd: a reconfigure made the old slurmd
/// execute itself again, and the old slurmd ends with the pod. Slurm reports the times of the drain and of slurmd's start in
/// whole seconds.
constexpr core::Duration kEnding{2000};
/// The drain reason, without its prefix, of a node whose pod ended unobserved or was removed while the pod ran.
constexpr std::string_view kPodGone = "Pod is gone";
/// A worker that is younger than this will soon be ready and registered. An older worker may need much longer for that.
constexpr core::Duration kStarting{60000};
/// The minimum time between two writes of a worker's deadline while jobs start and end on the worker.
constexpr core::Duration kDeadlineEvery{60000};
/// The worker's deadline if a job has no time limit.
constexpr std::string_view kNever = "9999-12-31T23:59:59Z";

/// True if the record with the worker's name belongs to an earlier worker whose end was not observed. Without a drain, Slurm
/// would start jobs on this node, which has no slurmd.
bool has_anothers_record(const View& view, const Worker& worker) {
  if (worker.record == nullptr || uses_host_network(view.in.nodeset.spec) || slurmd_started(*worker.pod)) return false;
  return view.is_own_record(*worker.record) && began_before(*worker.record, *worker.pod);
}

/// Returns why the worker's node must not accept jobs, or "".
std::string drain_reason(const View& view, const Worker& worker) {
  // The worker's preStop hook drains the node with the same reason, if the hook runs and slurmctld answers in time.
  if (worker.life != Life::kLive) return terminating_reason(worker.pod->meta.uid);
  // A silent worker needs no drain, unless its record belongs to an earlier slurmd. In that case, the drain of the record
  // prevents jobs on the new slurmd.
  if (worker.silent() && !may_register(worker)) return {};
  if (worker.goes() && !view.stops()) return worker.updates() ? update_reason(view) : leave_reason(view, worker);
  if (worker.kube_cordon()) {
    const KubeNode& host = *worker.kube_node;
    std::string given = clean_reason(host.cordon_reason.empty() ? host.troubles : host.cordon_reason);
    if (!given.empty()) return given;
    return "Node (" + worker.pod->node_name + ") " + (host.unschedulable ? "was cordoned" : "has the taint " + host.goes);
  }
  if (worker.user_cordon) return pod_cordon_reason(*worker.pod);
  return has_anothers_record(view, worker) ? std::string(kPodGone) : "";
}

/// True if the node accepts jobs: it is not drained, down or failing.
bool takes_jobs(const slurm::Node& node) {
  return !node.state.has("DRAIN") && node.state.base != "DOWN" && !node.state.has("FAIL");
}

/// True if the operator's drain of the node needs another reason. If the worker is to be deleted, the timeout of
/// spec.drainPolicy starts when the drain gets the deletion's reason. If the worker is only cordoned, its drain must not keep
/// the reason of a deletion.
bool renames(const View& view, const Worker& worker) {
  if (worker.life != Life::kLive || view.stops()) return false;
  if (worker.record == nullptr || !worker.record->state.drains() || !worker.drained_by_us()) return false;
  const std::string why = *slurm::Holds::read(worker.record->reason).why(slurm::Owner::kOperator);
  if (!worker.goes()) return (worker.user_cordon || worker.kube_cordon()) && is_purpose(view.in.meta(), why);
  if (!view.in.nodeset.spec.drain_policy) return false;
  // Keep a reason that begins with "Pod is ", because only this reason shows how the pod ended.
  return !is_purpose(view.in.meta(), why) && !why.starts_with("Pod is ");
}

bool needs_drain(const View& view, const Worker& worker) {
  if (worker.record == nullptr) return false;
  if (renames(view, worker)) return true;
  if (slurm::drained_without(*worker.record, slurm::Owner::kOperator)) return true;
  return worker.goes() ? !worker.has_flag("DRAIN") : takes_jobs(*worker.record);
}

/// True if the record is not deleted at once, because a successor is created, or because Slurm keeps the record for jobs or a
/// reservation.
bool record_stays(const View& view, const Vacancies& vacancies, const slurm::Node& node) {
  const std::optional<SlotKey> place = view.place_of(node.name);
  return !place || !place->numbered() || vacancies.places.contains(*place) || view.work_on(node.name).jobs > 0 ||
         node.state.base != "IDLE" || node.state.has("COMPLETING") || node.state.has("RESERVED");
}

/// True if another pod uses, or might use, the Slurm node of a pod that is gone.
bool may_be_anothers(const View& view, const std::string& node) {
  return !view.in.namesake.empty() || view.has_worker(node) || view.rival_of(node) != nullptr ||
         view.in.other_workers.contains(node) || view.is_of_other_pod(node);
}

/// Returns the Slurm nodes of pods that are gone. These nodes have no slurmd, but Slurm starts jobs on them until it notices
/// that slurmd is gone.
std::vector<std::string> nodes_of_gone_pods(const View& view, const Vacancies& vacancies) {
  std::set<std::string> out;
  const std::string prefix = view.node_prefix();
  const auto look = [&](const slurm::Node& node) {
    if (may_be_anothers(view, node.name)) return;
    if (takes_jobs(node) && record_stays(view, vacancies, node)) out.insert(node.name);
  };
  const auto& nodes = view.in.snapshot->nodes;
  for (const auto& [name, uid] : view.in.seen.gone) {
    if (const slurm::Node* node = view.in.snapshot->node(name)) look(*node);
  }
  // Without host networking, include pods that were gone before the first observation. With host networking, the machine may
  // run a slurmd of its own, so do not include them.
  if (!uses_host_network(view.in.nodeset.spec)) {
    for (auto it = nodes.lower_bound(prefix); it != nodes.end() && it->first.starts_with(prefix); ++it) {
      if (view.place_of(it->first) && stamped_by_us(view, *it->second)) look(*it->second);
    }
    for (const auto& [name, host] : view.in.hosts) {
      const slurm::Node* node = view.in.snapshot->node(host.slurm_node);
      if (node != nullptr && host.twin.empty() && stamped_by_us(view, *node)) look(*node);
    }
  }
  return {out.begin(), out.end()};
}

/// True if the node's slurmd ended with its pod or Kubernetes node, but Slurm has not noticed that and still has jobs on the
/// node.
bool must_end(const View& view, const std::string& name, const SeenPod& pod) {
  const slurm::Node* node = view.in.snapshot->node(name);
  if (node == nullptr || view.work_on(name).jobs == 0 || may_be_anothers(view, name)) return false;
  const bool drained_by_us =
      node->state.has("DRAIN") && slurm::held_by(node->reason, slurm::Owner::kOperator) && !node->state.has("FAIL");
  return drained_by_us && node->state.base != "DOWN" && pod.slurmd && (pod.ended || pod.host_gone);
}

/// True if the slurmd that runs now has registered with Slurm. If only an earlier slurmd has registered, Slurm would send jobs
/// to an address where no slurmd listens.
bool registered_anew(const View& view, const Worker& worker) {
  const slurm::Node& node = *worker.record;
  const auto lasts = [&](const ToldOf& told, core::Duration time) {
    const auto found = told.find(worker.pod->meta.uid);
    return found != told.end() && view.in.mono - found->second.since >= time;
  };
  const auto& pre_stops = view.in.seen.pre_stops;
  if (const auto stop = pre_stops.find(worker.pod->meta.uid); stop != pre_stops.end()) {
    return (node.slurmd_start_time && *node.slurmd_start_time > stop->second.at + kEnding) || lasts(pre_stops, kDeletionTold);
  }
  if (node.slurmd_start_time && !began_before(node, *worker.pod)) return true;
  if (!node.address.empty() && node.address == worker.pod->pod_ip) return true;
  return lasts(view.in.seen.ready, kRegistrationGrace);
}

/// True if slurmctld set the node down and its slurmd answers again. With ReturnToService=1, such a node returns by itself only
/// if it has no old reason and the machine has not rebooted.
bool down_though_back(const Worker& worker) {
  return worker.record != nullptr && slurm::down_by_slurm(*worker.record) && !worker.has_flag("NOT_RESPONDING");
}

/// True if the worker should accept jobs, but its node has a hold of the operator, or a DOWN that slurmctld set before slurmd
/// returned.
bool wants_resume(const Worker& worker) {
  if (worker.goes() || worker.user_cordon || worker.kube_cordon() || worker.unplaced() || worker.life != Life::kLive)
    return false;
  // Slurm itself sets INVALID_REG and refuses to clear it, even if the node still has an old reason of ours. FAIL is always set
  // by others, and a resume would clear it.
  return (worker.drained_by_us() || down_though_back(worker)) && !worker.has_flag("INVALID_REG") && !worker.has_flag("FAIL");
}

bool must_resume(const View& view, const Worker& worker) {
  // Jobs may start after the resume, so the pod must be protected before the resume.
  if (always_protected(view.in.nodeset.spec) && !worker.released && !is_protected(*worker.pod)) return false;
  return wants_resume(worker) && worker.ready() && registered_anew(view, worker) && !lacks_features(view, worker);
}

plan::StepId protect_id(const Worker& worker) {
  return {"mark", "Pod", pod_text(worker)};
}

/// Returns how long to wait before the worker's deadline is written again. On a node that many jobs share, the deadline changes
/// with each job.
core::Duration deadline_waits(const View& view, const Worker& worker) {
  const auto marked = view.in.outcomes.find(protect_id(worker));
  if (marked == view.in.outcomes.end() || marked->second.state != plan::Outcome::State::kDone) return core::Duration{0};
  return kDeadlineEvery - (view.in.mono - marked->second.last);
}

/// Returns the new value of the deadline annotation. null: the annotation is removed. nullopt: the annotation stays as it is.
std::optional<Json> new_deadline(const View& view, const Worker& worker, Draft& draft) {
  std::string deadline;
  if (worker.work.running) deadline = worker.work.deadline ? core::format_rfc3339(*worker.work.deadline) : std::string(kNever);
  const std::string_view told = worker.pod->meta.annotation(api::kAnnotationPodDeadline);
  // The first deadline is written at once, and so is the removal of a deadline.
  const bool waits = !deadline.empty() && !told.empty() && deadline_waits(view, worker).count() > 0;
  if (waits) draft.remember(protect_id(worker));
  if (deadline == told) return std::nullopt;
  if (!waits) return deadline.empty() ? Json(nullptr) : Json(deadline);
  draft.wake_after(kDeadlineEvery, "the deadlines of workers");
  return std::nullopt;
}

/// Returns a patch of labels and annotations. Empty: nothing changes.
Json metadata_changes(const View& view, const Worker& worker, Draft& draft) {
  const kube::ObjectMeta& meta = worker.pod->meta;
  Json labels = Json::object(), annotations = Json::object();
  const auto label = [&](std::string_view name, std::optional<bool> wanted) {
    if (wanted && *wanted != (meta.label(name) == "true")) labels[std::string(name)] = *wanted ? Json("true") : Json(nullptr);
  };
  const Protection protection = judge_protection(view, worker);
  draft.wake(protection.change);
  label(api::kLabelPodProtect, protection.wanted);
  label(api::kLabelPodBusy, runs_jobs(view, worker));
  if (view.slurm_known()) {
    if (std::optional<Json> deadline = new_deadline(view, worker, draft))
      annotations[std::string(api::kAnnotationPodDeadline)] = *std::move(deadline);
  }
  // Remove the evidence annotation if the worker is wanted again, or if a job runs on the worker because somebody resumed
  // its node.
  if (worker.cleared_for_deletion && (!worker.goes() || worker.busy()) && worker.record != nullptr && view.slurm_known())
    annotations[std::string(api::kAnnotationDeletionEvidence)] = nullptr;
  const bool says_drain = !meta.annotation(api::kAnnotationFirstConf).empty();
  if (says_drain && worker.record != nullptr && !recorded_drain(view.in, worker.node) && registered_anew(view, worker))
    annotations[std::string(api::kAnnotationFirstConf)] = nullptr;
  Json out = Json::object();
  // The pod must record the name of its Slurm node. An unusual name is written at once. The usual name is written with the next
  // change of the pod's metadata. Until then, the pod's conditions show that Slurm has had the node, but somebody might remove
  // the conditions.
  const bool stamps = worker.record != nullptr && view.slurm_known() && stamped_node_name(*worker.pod).empty();
  if (labels.empty() && annotations.empty() && !(stamps && worker.node != slurm_node_name(*worker.pod))) return out;
  if (stamps) annotations[std::string(api::kAnnotationRegistered)] = worker.node;
  if (!labels.empty()) out["metadata"]["labels"] = std::move(labels);
  if (!annotations.empty()) out["metadata"]["annotations"] = std::move(annotations);
  return out;
}

/// Returns the pod conditions that show Slurm's state of the node: the message of each condition, by type.
std::map<std::string, std::string, std::less<>> wanted_conditions(const View& view, const Worker& worker) {
  std::map<std::string, std::string, std::less<>> out;
  const auto add = [&](std::string_view name, std::string_view message) {
    out.emplace(std::string(api::kPodConditionPrefix) + std::string(name), message);
  };
  if (worker.record == nullptr) {
    // This condition records that Slurm has had the node. Without this condition, the missing node could count as evidence that
    // the worker never registered.
    if (worker.stamped) add("Unknown", missing_text(missing_since(*worker.pod).value_or(view.in.now)));
    return out;
  }
  for (const StateName& base : kBaseStates) {
    if (worker.record->state.base == base.slurm) add(base.condition, worker.record->reason);
  }
  for (const StateName& flag : kStateFlags) {
    if (worker.record->state.has(flag.slurm)) add(flag.condition, worker.record->reason);
  }
  return out;
}

/// True if Slurm has the worker's node now and did not have it before. A record of an earlier slurmd does not count before the
/// pod's own slurmd has started.
bool appears(const Worker& worker) {
  if (worker.record == nullptr) return false;
  if (worker.stamped) return missing_since(*worker.pod).has_value();
  return slurmd_started(*worker.pod) || !began_before(*worker.record, *worker.pod);
}

/// Returns the present time, or the latest time in `places` if that is later: a process with another clock may have written
/// `places`.
core::WallTime registration_time(const View& view, const Places& places) {
  const core::WallTime now = core::whole_seconds(view.in.now);
  return std::max({now, places.given_until.value_or(now), places.due.value_or(now)});
}

/// Returns the entries of a strategic merge patch for the pod's conditions. The patch changes only conditions whose types it
/// contains.
Json condition_changes(const View& view, const Worker& worker) {
  const auto wanted = wanted_conditions(view, worker);
  Json out = Json::array();
  for (const auto& [type, message] : wanted) {
    const kube::PodCondition* have = worker.pod->condition(type);
    if (have != nullptr && have->status == "True" && have->message == message) continue;
    Json entry{{"type", type}, {"status", "True"}, {"message", message}};
    if (have == nullptr || have->status != "True") entry["lastTransitionTime"] = core::format_rfc3339(view.in.now);
    out.push_back(std::move(entry));
  }
  if (view.in.controller && view.in.controller->places && appears(worker)) {
    out.push_back({{"type", api::kPodConditionRegistered},
                   {"status", "True"},
                   {"message", registered_text(registration_time(view, *view.in.controller->places))},
                   {"lastTransitionTime", core::format_rfc3339(view.in.now)}});
  }
  for (const kube::PodCondition& have : worker.pod->conditions) {
    if (have.type.starts_with(api::kPodConditionPrefix) && !wanted.contains(have.type)) {
      out.push_back({{"$patch", "delete"}, {"type", have.type}});
    }
  }
  return out;
}

std::string state_text(const slurm::Node& node) {
  std::string out = node.state.base;
  for (const std::string& flag : node.state.flags) out += "+" + flag;
  return out;
}

void report(const Worker& worker, Json changes, Draft& draft) {
  const std::string why = worker.record == nullptr ? "its Slurm node is gone" : "Slurm reports " + state_text(*worker.record);
  draft.step(
      draft.lane("report"), kReport.of(pod_text(worker)), why,
      kube::patch_any_version(kube::resources::kPod, worker.pod->meta, {{"status", {{"conditions", std::move(changes)}}}},
                              kube::PatchType::kStrategic, "status"));
}

/// Returns the comment without the hash of the record's configuration.
Json comment_json(const View& view, const Worker& worker) {
  return {{"namespace", view.in.meta().ns},
          {"podName", worker.pod->meta.name},
          {"node", worker.pod->node_name},
          {"nodeSetName", view.in.meta().name},
          {"nodeSetUID", view.in.meta().uid}};
}

/// Returns the new comment of the worker's node. "": the comment stays.
std::string wanted_comment(const View& view, const Worker& worker) {
  const std::string& have = worker.record->comment;
  // A comment of an earlier release has no hash. A missing hash alone is no reason to write the comment.
  if (have == stamped_comment(view, worker, "")) return {};
  const std::string* conf = view.conf_hash(worker.pod->meta.label(api::kLabelRevisionHash));
  std::string stamp = conf == nullptr ? "" : *conf;
  if (!have.empty()) {
    const auto comment = worker_comment(have);
    if (!comment) return {};
    // Slurm keeps the --conf with which the record was made, even if another worker uses the record now. So keep the hash of
    // that --conf.
    const std::string recorded = core::get_string(*comment, {kStampedConf});
    if (!recorded.empty()) stamp = recorded;
  }
  std::string out = stamped_comment(view, worker, stamp);
  return out == have ? "" : out;
}

/// True if the worker was created recently and is about to register.
bool starting(const View& view, const Worker& worker) {
  return worker.life == Life::kLive && (worker.record == nullptr || !worker.ready()) &&
         view.in.now - worker.pod->meta.created < kStarting;
}

}  // namespace

std::string stamped_comment(const View& view, const Worker& worker, const std::string& conf) {
  Json out = comment_json(view, worker);
  if (!conf.empty()) out[std::string(kStampedConf)] = conf;
  return core::canonical(out);
}

bool ask(const View& view, const LiveObject& object, Draft& draft) {
  if (view.in.live.contains(object)) return false;
  auto get = std::make_shared<kube::Get>();
  get->resource = object.resource;
  get->key = object.key;
  draft.need({object.id(), std::move(get)});
  return true;
}

NodeNames drain_nodes(const View& view, const Workers& workers, const Vacancies& vacancies, Draft& draft) {
  NodeNames out;
  if (!view.slurm_known() || view.goal == Goal::kHold || view.goal == Goal::kEndAll) return out;
  std::map<std::string, std::vector<std::string>> nodes;
  std::set<std::string> cordoned, renaming;
  for (const Worker& worker : workers) {
    const std::string reason = drain_reason(view, worker);
    if (reason.empty() || !needs_drain(view, worker)) continue;
    nodes[reason].push_back(worker.node);
    if (renames(view, worker)) renaming.insert(reason);
    if (worker.life == Life::kLive && !worker.goes() && reason != kPodGone) cordoned.insert(reason);
  }
  if (auto gone = nodes_of_gone_pods(view, vacancies); !gone.empty())
    std::ranges::move(gone, std::back_inserter(nodes[std::string(kPodGone)]));
  for (auto& [reason, names] : nodes) {
    for (const std::string& name : names) draft.intent().add(kDrain.of(name));
    const std::string list = core::compress_hostlist(names);
    const std::set<std::string> drained(names.begin(), names.end());
    const bool added = draft.step(
        draft.lane("drain"), {"drain", "with reason", reason}, "drain " + list,
        slurm::drain_nodes(view.cluster(), slurm::Owner::kOperator, std::move(names), reason, renaming.contains(reason)));
    if (!added) continue;
    out.insert(drained.begin(), drained.end());
    if (cordoned.contains(reason)) draft.event("Normal", "NodeCordon", "Cordon", fmt::format("Draining {}: {}", list, reason));
  }
  return out;
}

NodeNames end_gone_nodes(const View& view, Draft& draft) {
  NodeNames out;
  if (!view.slurm_known() || view.goal == Goal::kHold || view.goal == Goal::kEndAll || view.stops()) return out;
  for (const auto& [name, pod] : view.in.seen.gone) {
    const plan::StepId id{"end", "", name};
    if (!must_end(view, name, pod) || !draft.wish_now(id)) continue;
    const bool asks_pod = ask(view, live_pod(view.in.meta(), pod), draft);
    const bool asking = (!pod.ended && ask(view, live_host(pod.kube_node), draft)) || asks_pod;
    const auto ended = view.in.ended.find(name);
    const bool ends =
        !asking && ended != view.in.ended.end() &&
        draft.step(draft.lane("end"), id,
                   pod.ended ? "its pod has ended, and with it the processes of its jobs" : "its Kubernetes node is gone",
                   slurm::end_node(slurm::Owner::kOperator, ended->second));
    if (asking || ends) out.insert(name);
  }
  return out;
}

void resume_workers(const View& view, const Workers& workers, Draft& draft) {
  if (!view.slurm_known() || view.goal != Goal::kServe) return;
  for (const Worker& worker : workers) {
    if (wants_resume(worker)) draft.intent().add(kResume.of(worker.node));
    if (!must_resume(view, worker)) {
      if (!worker.goes() && worker.drained_by_us() && worker.ready())
        draft.wake_after(core::Duration{1000}, "waiting for slurmd");
      continue;
    }
    const std::string why =
        fmt::format("it is wanted and ready, and {} by {}: {}", worker.has_flag("DRAIN") ? "drained" : "down",
                    worker.drained_by_us() ? "us" : "slurmctld", worker.record->reason);
    draft.step(draft.lane("resume"), kResume.of(worker.node), why,
               slurm::resume_node(view.cluster(), slurm::Owner::kOperator, worker.node, worker.record->reason));
  }
}

void keep_metadata(const View& view, const Workers& workers, Draft& draft) {
  if (view.goal == Goal::kEndAll) return;
  for (const Worker& worker : workers) {
    if (worker.life != Life::kLive || draft.is_deleted(*worker.pod)) continue;
    Json patch = metadata_changes(view, worker, draft);
    if (patch.empty()) continue;
    draft.step(draft.lane("protect"), protect_id(worker), worker.busy() ? "it runs jobs" : "it runs no job",
               kube::patch_any_version(kube::resources::kPod, worker.pod->meta, std::move(patch)));
  }
}

bool awaits_place(const View& view, const Worker& worker) {
  if (!view.in.controller || !view.in.controller->places || worker.record == nullptr) return false;
  if (appears(worker)) return true;
  const std::optional<core::WallTime> since = registered_since(*worker.pod), &given = view.in.controller->places->given_until;
  return since && (!given || *since >= *given);
}

void report_states(const View& view, const Workers& workers, Draft& draft) {
  if (!view.slurm_known()) return;
  int left = kReportsPerPass;
  // Report first on workers that were not recorded as seen in Slurm, because later decisions depend on the conditions that
  // record this.
  for (const bool first : {true, false}) {
    for (const Worker& worker : workers) {
      if (worker.life != Life::kLive || (first != !worker.stamped) || draft.is_deleted(*worker.pod)) continue;
      Json changes = condition_changes(view, worker);
      if (changes.empty()) continue;
      if (!view.slurm_fresh()) return draft.wake(kFreshAgain);
      draft.intent().add(kReport.of(pod_text(worker)));
      if (left-- > 0) {
        report(worker, std::move(changes), draft);
      } else {
        draft.wake_after(core::Duration{50}, "more pods to report on");
      }
    }
  }
}

void stamp_comments(const View& view, const Workers& workers, Draft& draft) {
  if (!view.slurm_known() || view.goal != Goal::kServe) return;
  if (std::ranges::any_of(workers, [&](const Worker& worker) { return starting(view, worker); })) return;
  for (const Worker& worker : workers) {
    if (worker.record == nullptr || !worker.ready()) continue;
    if (worker.goes() && !worker.updates()) continue;  // The record is deleted with the worker.
    std::string wanted = wanted_comment(view, worker);
    const plan::StepId id{"comment", "Slurm node", worker.node};
    if (wanted.empty()) continue;
    if (!view.slurm_fresh()) return draft.wake(kFreshAgain);
    slurm::NodeUpdate update;
    update.comment = std::move(wanted);
    draft.step(draft.lane("comment"), id, "it names the pod of the node",
               slurm::update_node(view.cluster(), worker.node, std::move(update)));
  }
}

}  // namespace op::nodeset
