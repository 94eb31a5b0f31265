#include "operator/nodeset/observed.hpp"

#include <algorithm>
#include <unordered_set>

#include "api/revision.hpp"
#include "operator/common/events.hpp"
#include "operator/common/slinky.hpp"
#include "operator/nodeset/build_worker.hpp"
#include "operator/nodeset/daemon_nodes.hpp"
#include "operator/nodeset/parts.hpp"
#include "operator/nodeset/schedule.hpp"
#include "slinky/worker_names.hpp"

namespace op::nodeset {
namespace {

/// The largest expected difference between the clocks of a machine and of the API server.
constexpr core::Duration kClocksDiffer{60000};

const std::string& hostname_of(const kube::PodRecord& pod) {
  return pod.hostname.empty() ? pod.meta.name : pod.hostname;
}

/// True if the Slurm node registered from this pod: it has the pod's hostname or, with host networking, the pod's IP address or
/// the name of the pod's Kubernetes node.
bool is_where(const slurm::Node& node, const kube::PodRecord& worker) {
  if (!worker.host_network) return node.hostname == hostname_of(worker);
  if (!worker.pod_ip.empty() && node.address == worker.pod_ip) return true;
  return !worker.node_name.empty() && node.name == worker.node_name.substr(0, worker.node_name.find('.'));
}

/// True if the node's slurmd started long before the pod was created, or if its start time is unknown. Such a slurmd belongs to
/// an earlier pod, or to a machine that is gone.
bool began_long_before(const slurm::Node& node, const kube::PodRecord& worker) {
  return !node.slurmd_start_time || *node.slurmd_start_time + kClocksDiffer < worker.meta.created;
}

/// True if the node has a comment of ours that names the pod. The features of the node do not matter.
bool names_pod(const slurm::Node& node, const kube::PodRecord& worker) {
  const auto comment = worker_comment(node.comment);
  return comment && core::get_string(*comment, {"podName"}) == worker.meta.name &&
         core::get_string(*comment, {"namespace"}) == worker.meta.ns;
}

bool slurmd_restarted(const kube::PodRecord& pod) {
  return std::ranges::any_of(pod.containers, [](const kube::ContainerState& container) {
    return container.name == kAppWorker && container.restarts > 0;
  });
}

/// True if the pod's own preStop hook has drained the node. The drain reasons of earlier releases lack the pod's UID. While the
/// operator has not seen the deletion of the pod, only a slurmd that started after this drain counts as a new one.
bool drained_by(const slurm::Node& node, const kube::PodRecord& pod) {
  const std::optional<std::string> why = slurm::Holds::read(node.reason).why(slurm::Owner::kOperator);
  return why && (why->starts_with(terminating_reason(pod.meta.uid)) || why == "Pod is terminating");
}

/// Records whether the objects that the API server was asked about exist. An object that cannot be read counts as present,
/// because it might exist.
void read_live(Observed& out, const plan::Facts& facts) {
  const auto read = [&](const LiveObject& object) {
    const auto fact = facts.find(object.id());
    if (fact == facts.end()) return;
    const bool absent = !fact->second.value && fact->second.value.error().code == core::ErrorCode::kNotFound;
    out.live[object] = {absent ? kube::Presence::kAbsent : kube::Presence::kPresent, fact->second.asked_at};
  };
  for (const auto& [node, pod] : out.seen.gone) {
    read(live_pod(out.meta(), pod));
    read(live_host(pod.kube_node));
  }
  for (const auto& [ordinal, node] : out.nodeset.status.ordinal_to_node) read(pinned_host(node));
  for (const auto& [node, host] : out.lost_hosts) read(live_host(host));
}

/// Records the drain of the pod's Slurm node. `before`: the earlier record of the pod, or null. slurmctld's clock may differ
/// from ours, so slurmctld's time of the drain is used only if the drain began before the first observation.
void note_drain(const Observed& observed, const slurm::Node* node, const SeenPod* before, SeenPod& seen) {
  if (observed.snapshot == nullptr || !observed.snapshot->complete()) {
    if (before == nullptr) return;
    seen.drain = before->drain;
    seen.not_drained = before->not_drained;
    return;
  }
  const std::string purpose = node == nullptr ? "" : purpose_of(observed.meta(), *node);
  if (purpose.empty() || !node->reason_time) {
    seen.not_drained = true;
  } else if (before != nullptr && before->drain && before->drain->at == *node->reason_time) {
    seen.drain = before->drain;
  } else {
    const bool began_now = before != nullptr && (before->not_drained || before->drain);
    const core::Duration lasted = began_now ? core::Duration{0} : observed.now - *node->reason_time;
    seen.drain = SeenPod::Drain{*node->reason_time, observed.mono, std::max(core::Duration{0}, lasted),
                                purpose == scale_in_reason(observed.meta())};
  }
}

std::string hash_in_force(const Observed& observed) {
  std::vector<const core::Json*> revisions;
  for (const kube::ObjectPtr& revision : observed.revisions) revisions.push_back(&revision->body);
  return api::hash_in_force(observed.nodeset.spec, std::move(revisions));
}

}  // namespace

bool has_ended(const kube::PodRecord& pod) {
  return pod.phase == "Failed" || pod.phase == "Succeeded";
}

bool Observed::below_partition(const SlotKey& place) const {
  const api::UpdateStrategy& strategy = nodeset.spec.update_strategy;
  return strategy.type == api::UpdateStrategyType::kRollingUpdate && place.numbered() &&
         place.ordinal < strategy.rolling_update.partition;
}

const std::string& Observed::wanted_hash(const SlotKey& place) const {
  return !base.empty() && below_partition(place) ? base : hash;
}

LiveObject live_pod(const kube::ObjectMeta& nodeset, const SeenPod& pod) {
  return {kube::resources::kPod, {nodeset.ns, pod.name}};
}

LiveObject live_host(const std::string& kube_node) {
  return {kube::resources::kNode, {"", kube_node}};
}

std::map<std::string, std::string, std::less<>> find_lost_hosts(const Observed& observed,
                                                                const std::function<bool(const std::string&)>& known) {
  std::map<std::string, std::string, std::less<>> out;
  if (observed.nodeset.spec.prune_slurm_node_records != api::PruneNodeRecords::kNodeNotFound) return out;
  if (!observed.by_host() || observed.snapshot == nullptr) return out;
  const std::string& uid = observed.meta().uid;
  for (const auto& [name, node] : observed.snapshot->nodes) {
    // Most nodes do not belong to this NodeSet. Searching a comment for the UID is cheaper than parsing the comment.
    if (node->comment.find(uid) == std::string::npos) continue;
    const auto comment = worker_comment(node->comment);
    if (!comment || core::get_string(*comment, {"nodeSetUID"}) != uid) continue;
    std::string host = core::get_string(*comment, {"node"});
    if (!host.empty() && !known(host)) out.emplace(name, std::move(host));
  }
  return out;
}

std::string scale_in_reason(const kube::ObjectMeta& nodeset) {
  return "NodeSet " + nodeset.key().str() + " was scaled in";
}

std::string update_reason(const kube::ObjectMeta& nodeset) {
  return "NodeSet " + nodeset.key().str() + " is being updated";
}

std::string switch_reason(const kube::ObjectMeta& nodeset, api::ScalingMode mode) {
  return "NodeSet " + nodeset.key().str() + " has scalingMode " + std::string(api::to_string(mode)) + " now";
}

std::string place_reason(const kube::ObjectMeta& nodeset, std::string_view what) {
  return "NodeSet " + nodeset.key().str() + ": " + std::string(what);
}

bool is_purpose(const kube::ObjectMeta& nodeset, std::string_view why) {
  return why == scale_in_reason(nodeset) || why == update_reason(nodeset) ||
         why == switch_reason(nodeset, api::ScalingMode::kDaemonSet) ||
         why == switch_reason(nodeset, api::ScalingMode::kStatefulSet) || why.starts_with(place_reason(nodeset, ""));
}

std::string purpose_of(const kube::ObjectMeta& nodeset, const slurm::Node& node) {
  if (!node.state.has("DRAIN")) return {};
  std::optional<std::string> why = slurm::Holds::read(node.reason).why(slurm::Owner::kOperator);
  const bool ours = why && is_purpose(nodeset, *why) && slurm::drained_only_for(node, slurm::Owner::kOperator, *why);
  return ours ? *std::move(why) : std::string();
}

LiveObject pinned_host(const std::string& node) {
  return {kube::resources::kNode, {"", node}};
}

int Observed::hosts_wanted() const {
  return static_cast<int>(std::ranges::count_if(hosts, [](const auto& host) { return host.second.wanted; }));
}

void conclude(Observed& observed, const plan::Facts& answers, const plan::Observing& observing) {
  read_live(observed, answers);
  observed.stays = nodeset_stays(observed, answers);
  observed.hash = observed.invalid.empty() ? hash_in_force(observed) : "";
  if (!observed.by_host() && observed.below_partition({0})) observed.base = base_revision(observed);
  settle_hosts(observed.hosts, observed.pods, observed.meta().name, uses_host_network(observed.nodeset.spec));
  observed.node_loss = find_node_loss(observed);
  if (observed.node_loss.holds()) observed.lost_hosts.clear();
  observed.slots = read_slots(observed, observing);
  observed.ended = read_ended(observed, observing);
  observed.left_behind = read_left_behind(observed, observing);
  // While the list of Kubernetes nodes is in doubt, the list of pods is in doubt too, because pods might have been lost for the
  // same reason. So discard the evidence that pods or Kubernetes nodes are gone.
  if (observed.node_loss.holds()) {
    observed.ended.clear();
    observed.left_behind.clear();
  }
  if (const slurm::Reservation* named = find_reservation(observed); named != nullptr && observed.snapshot != nullptr) {
    observed.own_reservation = slurm::OwnReservation::of(observing, observed.cluster(), *named,
                                                         observed.seen.reservations->asked_at + observed.snapshot->good_for());
  }
}

std::vector<const slurm::Node*> find_strays(const Observed& observed) {
  std::vector<const slurm::Node*> out;
  if (observed.snapshot == nullptr) return out;
  std::unordered_set<std::string> names, hostnames;
  bool all_known = true;
  for (const auto* pods : {&observed.pods, &observed.orphans, &observed.unmanaged}) {
    for (const kube::PodPtr& pod : *pods) {
      std::string name = slurm_node_name(*pod);
      all_known = all_known && observed.snapshot->node(name) != nullptr && !slurmd_restarted(*pod);
      names.insert(std::move(name));
      if (!pod->host_network) hostnames.insert(hostname_of(*pod));
    }
  }
  // If Slurm has the nodes of all workers and no slurmd was restarted, no slurmd can have registered under another name, so
  // there is no stray.
  if (all_known) return out;
  const std::string feature = slurm_node_set_name(observed.nodeset.spec, observed.meta().name);
  // The names of all pods of the NodeSet begin with this prefix.
  const std::string name_of_pods = observed.meta().name.substr(0, kPodNamePrefix);
  for (const auto& [name, node] : observed.snapshot->nodes) {
    if (names.contains(name) || observed.other_workers.contains(name)) continue;
    // Searching the comment is cheaper than parsing it.
    const bool like_ours = std::ranges::find(node->features, feature) != node->features.end() ||
                           node->comment.find(name_of_pods) != std::string::npos || hostnames.contains(node->hostname);
    if (like_ours) out.push_back(node.get());
  }
  return out;
}

const slurm::Node* find_slurm_node(const Observed& observed, const kube::PodRecord& worker) {
  if (observed.snapshot == nullptr) return nullptr;
  const slurm::Node* named = observed.snapshot->node(slurm_node_name(worker));
  if (named != nullptr || !stamped_node_name(worker).empty()) return named;
  const std::string feature = slurm_node_set_name(observed.nodeset.spec, observed.meta().name);
  const slurm::Node* found = nullptr;
  for (const slurm::Node* node : observed.strays) {
    // Skip a node that an earlier pod of the same name left behind. This pod's slurmd will register under another node name.
    if (!is_where(*node, worker) || !has_registered(worker, *node) || node->state.base == "DOWN") continue;
    if (std::ranges::find(node->features, feature) == node->features.end() && !names_pod(*node, worker)) continue;
    if (found != nullptr) return nullptr;
    found = node;
  }
  return found;
}

const slurm::Node* find_suspect(const Observed& observed, const kube::PodRecord& worker, const slurm::Node* known) {
  // If the worker's node name is known, the worker has no other node, unless its slurmd was restarted with other options.
  const bool has_name = known != nullptr || !stamped_node_name(worker).empty();
  if (has_name && (worker.host_network || !slurmd_restarted(worker))) return nullptr;
  for (const slurm::Node* node : observed.strays) {
    if (began_long_before(*node, worker)) continue;
    if (known != nullptr && node->slurmd_start_time <= known->slurmd_start_time) continue;
    // Without host networking, slurmd reports the hostname of its pod, whatever name its Slurm node has.
    if (!worker.host_network && !is_where(*node, worker)) continue;
    if (const auto comment = worker_comment(node->comment); comment && !names_pod(*node, worker)) continue;
    if (node->state.base == "DOWN" && observed.snapshot->work_on(node->name).jobs == 0) continue;
    return node;
  }
  return nullptr;
}

void Seen::note_gone(const Observed& observed) {
  std::map<std::string, SeenPod, std::less<>> now;
  std::set<std::string, std::less<>> held;
  for (const auto* pods : {&observed.pods, &observed.orphans, &observed.unmanaged}) {
    for (const kube::PodPtr& pod : *pods) {
      const slurm::Node* node = find_slurm_node(observed, *pod);
      SeenPod seen{pod->meta.name, pod->node_name, node == nullptr ? slurm_node_name(*pod) : node->name};
      held.insert(seen.slurm_node);
      if (pods != &observed.pods) continue;
      const auto before = workers.find(pod->meta.uid);
      const bool known = before != workers.end();
      const bool its = node != nullptr && has_registered(*pod, *node);
      seen.slurmd = its ? node->slurmd_start_time : known ? before->second.slurmd : std::nullopt;
      seen.ended = has_ended(*pod);
      seen.placed = observed.nodes.contains(pod->node_name) || (known && before->second.placed);
      note_drain(observed, node, known ? &before->second : nullptr, seen);
      now.emplace(pod->meta.uid, std::move(seen));
    }
  }
  for (const auto& [uid, pod] : workers) {
    if (!now.contains(uid)) gone.insert_or_assign(pod.slurm_node, pod);
  }
  const bool answers = observed.snapshot != nullptr && observed.snapshot->complete();
  std::erase_if(gone, [&](const auto& entry) {
    return held.contains(entry.first) || (answers && observed.snapshot->node(entry.first) == nullptr);
  });
  workers = std::move(now);
}

void Seen::note_scale_in() {
  std::vector<core::MonoTime> began;
  for (const auto& [uid, pod] : workers) {
    if (pod.drain && pod.drain->scale_in) began.push_back(pod.drain->since - pod.drain->before);
  }
  std::ranges::sort(began);
  for (const core::MonoTime at : began) {
    if (!scale_in || at - scale_in->last >= kJustDrained) scale_in = SeenScaleIn{at, at};
    scale_in->last = std::max(scale_in->last, at);
  }
}

void Seen::look(const Observed& observed) {
  if (!observed.meta().terminating() || !observed.pods.empty()) {
    podless_since.reset();
  } else if (!podless_since) {
    podless_since = observed.mono;
  }
  note_gone(observed);
  note_scale_in();
  const auto keep = [&](const std::map<std::string, core::MonoTime, std::less<>>& before, const auto& holds) {
    std::map<std::string, core::MonoTime, std::less<>> out;
    for (const auto* pods : {&observed.pods, &observed.orphans}) {
      for (const kube::PodPtr& pod : *pods) {
        if (!holds(*pod)) continue;
        const auto known = before.find(pod->meta.uid);
        out[pod->meta.uid] = known == before.end() ? observed.mono : known->second;
      }
    }
    return out;
  };
  const auto keep_told = [&](const ToldOf& before, const auto& told) {
    ToldOf out;
    for (const kube::PodPtr& pod : observed.pods) {
      const std::optional<core::WallTime> at = told(*pod);
      if (!at) continue;
      const auto known = before.find(pod->meta.uid);
      const bool same = known != before.end() && known->second.at == *at;
      out.emplace(pod->meta.uid, same ? known->second : Told{*at, observed.mono});
    }
    return out;
  };
  pre_stops = keep_told(pre_stops, [&](const kube::PodRecord& pod) {
    const slurm::Node* node = find_slurm_node(observed, pod);
    return node != nullptr && drained_by(*node, pod) ? node->reason_time : std::nullopt;
  });
  ready = keep_told(ready, [](const kube::PodRecord& pod) { return pod.ready() ? pod.ready_since : std::nullopt; });
  terminating_since = keep(terminating_since, [](const kube::PodRecord& pod) { return pod.meta.terminating(); });
  unstarted_since = keep(unstarted_since, [](const kube::PodRecord& pod) {
    return pod.phase == "Pending" && !pod.node_name.empty() && !pod.containers.empty() &&
           std::ranges::none_of(pod.containers, &kube::ContainerState::started_once);
  });
  // While Slurm does not answer, assume that the pods without a Slurm node are the same as before.
  const bool answers = observed.snapshot != nullptr && observed.snapshot->complete();
  const auto keep_unknown = [&](const std::map<std::string, core::MonoTime, std::less<>>& before, const auto& holds) {
    return keep(before, [&](const kube::PodRecord& pod) {
      if (!holds(pod)) return false;
      return answers ? find_slurm_node(observed, pod) == nullptr : before.contains(pod.meta.uid);
    });
  };
  unknown_since = keep_unknown(unknown_since, [](const kube::PodRecord& pod) { return pod.ready(); });
  placed_since = keep_unknown(placed_since, [](const kube::PodRecord& pod) { return !pod.node_name.empty(); });
  started_since = keep_unknown(started_since, slurmd_started);
}

void Seen::note_claims(const Observed& observed, const plan::Facts& answers) {
  std::erase_if(claim_notes, [&](const auto& note) { return !observed.claims.contains(note.first); });
  for (const auto& [name, claim] : observed.claims) {
    const auto events = answers.find(need_claim_events(claim->meta).id);
    if (events != answers.end()) claim_notes.insert_or_assign(name, ClaimNote{newest_note(events->second, {}), observed.mono});
  }
}

void Seen::note_reservations(const Observed& observed, const plan::Facts& answers) {
  const auto answer = answers.find(need_reservations(observed).id);
  if (answer == answers.end() || !answer->second.value) return;
  SeenReservations now{{}, answer->second.asked_at};
  for (const core::Json& one : *answer->second.value) now.all.push_back(slurm::reservation_from_json(one));
  reservations = std::move(now);
}

void Seen::note_template(const plan::Facts& answers) {
  const auto answer = answers.lower_bound(std::string(kAskTemplate));
  if (answer == answers.end() || !answer->first.starts_with(kAskTemplate)) return;
  const auto& [value, asked_at] = answer->second;
  checked_template = {answer->first.substr(kAskTemplate.size()), value ? std::nullopt : std::optional(value.error()), asked_at};
}

}  // namespace op::nodeset
