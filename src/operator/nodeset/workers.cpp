// Decides which ordinals should have workers, creates the workers, and adds and removes the NodeSet's finalizer.
#include <fmt/format.h>

#include <algorithm>

#include "api/revision.hpp"
#include "api/well_known.hpp"
#include "core/hostlist.hpp"
#include "kube/acts.hpp"
#include "operator/common/slinky.hpp"
#include "operator/nodeset/build_worker.hpp"
#include "operator/nodeset/parts.hpp"
#include "operator/nodeset/schedule.hpp"
#include "slinky/worker_names.hpp"
#include "slurm/acts.hpp"

namespace op::nodeset {
namespace {

/// The creation of a worker waits at most this long until slurmctld has noticed the end of the previous slurmd. This wait is
/// needed if the record of the previous slurmd has another --conf.
constexpr core::Duration kAwaitDown{10000};
/// A terminating pod holds its place for this long after its grace period. Later, its place is free, because the Kubernetes
/// node of the pod might be lost.
constexpr core::Duration kOverdue{30000};
/// The time until the operator tries a pod name again that another pod had.
constexpr core::Duration kTakenName{60000};
/// How long the deletion of a NodeSet waits for Slurm. The operator can delete the workers' records only if Slurm answers and
/// has noticed the end of the last slurmd. After this time, the Controller deletes the remaining records.
constexpr core::Duration kRecordsGrace{5 * 60 * 1000};
constexpr core::Duration kNextAnswer{300};
/// If some of the NodeSet's workers have no owner, the operator asks the API server after this time whether the NodeSet is
/// being deleted.
constexpr core::Duration kStaysAgain{5000};

plan::StepId create_id(const View& view, const SlotKey& place) {
  return kCreatePod.of(view.in.meta().ns + "/" + view.pod_name(place));
}

plan::StepId adopt_id(const kube::PodRecord& pod) {
  return {"adopt", "Pod", pod.meta.key().str()};
}

/// Returns how much longer a terminating pod holds its place.
core::Duration holds_for(const View& view, const kube::PodRecord& pod) {
  const auto grace =
      core::get_int(view.in.nodeset.spec.pod_template.spec, {"terminationGracePeriodSeconds"}, kWorkerGraceSeconds);
  return std::chrono::seconds{grace} + kOverdue - (view.in.mono - view.in.seen.terminating_since.at(pod.meta.uid));
}

/// True if the worker holds its place, so that no other worker is created for this place.
bool holds_place(const View& view, const Worker& worker) {
  if (worker.life != Life::kTerminating) return worker.fate.place_taken;
  // A job or reservation waits for the node, and only a worker of this name can serve that job or reservation.
  if (worker.record != nullptr && (reserved(*worker.record) || view.in.snapshot->awaited(worker.node))) return true;
  return holds_for(view, *worker.pod) > core::Duration{0};
}

/// True if the orphan holds its place, so that no worker is created for this place. The orphan is to be adopted, or it is
/// terminating and not overdue.
bool holds_place(const View& view, const kube::PodRecord& orphan) {
  return !orphan.meta.terminating() || holds_for(view, orphan) > core::Duration{0};
}

int ordinal_in(const View& view, const kube::PodRecord& pod) {
  return ordinal_of(pod.meta.name, view.in.meta().name + "-").value_or(-1);
}

/// True if the API server recently refused to create the worker's pod because another pod has its name.
bool name_taken(const View& view, const SlotKey& place) {
  const plan::Outcome* failed = view.failure(create_id(view, place));
  return failed != nullptr && failed->error && failed->error->code == core::ErrorCode::kAlreadyExists &&
         view.in.mono - failed->last < kTakenName;
}

constexpr std::string_view kNameConflict = "HostnameConflict";
/// The time until the operator checks again whether a name is free. No event wakes this NodeSet when the other NodeSet is
/// deleted.
constexpr core::Duration kNameMayBeFree{30000};

/// Reports another NodeSet that has the same name in Slurm. The feature of our workers would put them into the partition of
/// that NodeSet.
void tell_namesake(const View& view, Draft& draft) {
  if (view.in.namesake.empty()) return;
  draft.wrong(kNameConflict,
              fmt::format("NodeSet {} already uses the name {} in Slurm: delete this NodeSet, and create it again with a "
                          "different spec.template.spec.hostname",
                          view.in.namesake, slurm_node_set_name(*view.in.object)),
              "Create");
  draft.wake_after(kNameMayBeFree, "a NodeSet's name may be free");
}

void tell_taken_names(const View& view, const Workers& workers, const Vacancies& vacancies, Draft& draft) {
  std::map<std::string, std::string> taken = vacancies.taken;
  // Include conflicts between workers that exist already, because earlier releases created workers with conflicting names.
  for (const Worker& worker : workers) {
    const Rival* rival = view.rival_of(worker.node);
    if (rival != nullptr && rival->nodes.contains(worker.node)) taken.emplace(worker.node, "NodeSet " + rival->nodeset);
  }
  if (taken.empty()) return;
  std::vector<std::string> names;
  std::set<std::string> whose;
  for (const auto& [node, nodeset] : taken) {
    names.push_back(node);
    whose.insert(nodeset);
  }
  draft.wrong(
      kNameConflict,
      fmt::format(
          "workers of this NodeSet and of {} have the same names ({}), so this NodeSet creates no more workers with these "
          "names: {}",
          some_of({whose.begin(), whose.end()}), core::compress_hostlist(std::move(names)),
          view.by_host() ? "let them match different Kubernetes nodes, or set the annotation "
                           "nodeset.slinky.slurm.net/hostname-override of the Kubernetes nodes"
                         : "delete one of the two, and create it again with a different spec.template.spec.hostname"),
      "Create");
  draft.wake_after(kNameMayBeFree, "workers' names may be free");
}

/// True if the Slurm key that workers mount exists. Otherwise reports that the key is missing.
bool has_key(const View& view, Draft& draft) {
  const ControllerView& controller = *view.in.controller;
  if (controller.key == kube::Presence::kPresent) return true;
  const std::string key =
      fmt::format("Secret {}/{} with the key \"{}\"", view.in.meta().ns, controller.slurm_key.secret, controller.slurm_key.key);
  if (controller.key == kube::Presence::kAbsent && !controller.slurm_key.generated) {
    draft.wrong("SlurmKeyMissing",
                fmt::format("Controller {}, spec.slurmKeyRef: {} does not exist", controller.meta.key().str(), key), "Create");
  } else {
    draft.waiting("WaitingForKey", "waiting for " + key);
  }
  return false;
}

/// Returns how many pods this pass creates at most: kCreatesPerPass, or 1 to test whether creations succeed again, or 0.
std::size_t tries(const View& view, const Vacancies& vacancies, Draft& draft) {
  if (view.spec_changed()) return kCreatesPerPass;
  const plan::Outcome* latest = nullptr;
  for (const SlotKey& place : vacancies.places) {
    const plan::StepId id = create_id(view, place);
    draft.wish(id);
    const auto it = view.in.outcomes.find(id);
    if (it != view.in.outcomes.end() && (latest == nullptr || latest->last < it->second.last)) latest = &it->second;
  }
  if (latest == nullptr || latest->state == plan::Outcome::State::kDone) return kCreatesPerPass;
  if (latest->error) draft.lasting_event("Warning", "FailedCreate", "Create", latest->error->message);
  const core::Duration waited = view.in.mono - latest->last;
  const core::Duration wait = backoff(*latest);
  if (waited >= wait) return 1;
  draft.wake_after(wait - waited, "trying to create workers again");
  return 0;
}

plan::Step created_event(const View& view, std::vector<std::string> names) {
  return view.event_step("Normal", "SuccessfulCreate", "Create", "Created Pods " + core::compress_hostlist(std::move(names)));
}

/// True if the record of an earlier worker is deleted before the next worker is created. The deletion is tried only once,
/// because the creation of a worker must not wait for Slurm.
bool record_goes_first(const View& view, OldRecord old, Finalizer finalizer, const plan::StepId& id, Draft& draft) {
  // A NodeSet that gets its finalizer only in this pass has had no worker yet, so there is no record to delete.
  if (old != OldRecord::kDeletedFirst || finalizer == Finalizer::kChanged) return false;
  if (view.failure(id) == nullptr) return true;
  draft.remember(id);
  return false;
}

/// True if the next worker cannot be created yet, because its Slurm node must change first.
bool waits_for_node(const View& view, const std::string& node, OldRecord old, const NodeNames& draining, Draft& draft) {
  // Slurm has no conditional writes, so a drain that was sent for the previous pod could reach the slurmd of the next pod. Wait
  // until that drain is done.
  if (draining.contains(node)) {
    draft.wake_after(kNextAnswer, "waiting for the drain of " + node);
    return true;
  }
  // This pass adds the drain to status.drainsToRestore or removes the drain. The API server might refuse this write, so the
  // worker is created only after the status shows the change.
  if (old == OldRecord::kAwaitsNote || forgets_drain(view, node)) {
    draft.wake_after(kNextAnswer, "waiting until status.drainsToRestore lists node " + node);
    return true;
  }
  if (old != OldRecord::kAwaitsDown) return false;
  const Wait wait = view.wait_at_most(kAwaitDown, "WaitingForSlurm",
                                      "waiting for Slurm to notice that the previous slurmd of node " + node + " is gone");
  draft.waiting(wait);
  return !wait.over();
}

/// The facts and the pod template from which the workers of a revision are created.
struct Recipe {
  std::shared_ptr<const Observed> in;
  core::Json pod;
};
/// The recipes by revision. A revision is missing if no worker can be created from it now.
using Recipes = std::map<std::string, Recipe, std::less<>>;

/// Returns a copy of the facts whose spec is the one that the base revision recorded. The ordinal padding is the present one,
/// so the names of workers do not change.
core::Result<std::shared_ptr<const Observed>> with_base(const Observed& in) {
  const auto base = std::ranges::find_if(
      in.revisions, [&](const kube::ObjectPtr& revision) { return revision->meta.label(api::kLabelRevisionHash) == in.base; });
  core::Result<api::NodeSetSpec> spec = api::with_revision(in.nodeset.spec, (*base)->body);
  if (!spec) return std::unexpected(spec.error());
  spec->ordinal_padding = in.nodeset.spec.ordinal_padding;
  auto out = std::make_shared<Observed>(in);
  out->nodeset.spec = *std::move(spec);
  return out;
}

Recipes find_recipes(const View& view, const Vacancies& vacancies, const ExtraConf& extra_conf, Draft& draft) {
  Recipes out;
  for (const SlotKey& place : vacancies.places) {
    const std::string& revision = view.in.wanted_hash(place);
    const bool newest = revision == view.in.hash;
    // Other code reports the problems of the newest revision.
    if (out.contains(revision) || (newest && (!extra_conf.refusal.empty() || view.in.newer))) continue;
    core::Result<std::shared_ptr<const Observed>> in =
        newest ? std::shared_ptr<const Observed>(&view.in, [](const Observed*) {}) : with_base(view.in);
    core::Result<core::Json> pod = in ? worker_template(**in, revision) : std::unexpected(in.error());
    if (pod) {
      out.emplace(revision, Recipe{*std::move(in), *std::move(pod)});
    } else {
      draft.wrong("InvalidSpec", pod.error().message, "Create");
    }
  }
  return out;
}

/// For each pod name, the Slurm node that an earlier pod of the name left behind. A worker that has moved between hosts left a
/// Slurm node on each host. Of these nodes, a node whose record must be deleted before the next worker is created takes
/// precedence, otherwise the node whose slurmd started last.
using LeftNodes = std::map<std::string, const slurm::Node*, std::less<>>;

LeftNodes find_left_nodes(const View& view) {
  LeftNodes out;
  if (!view.slurm_known()) return out;
  for (const auto& [name, node] : view.in.snapshot->nodes) {
    if (view.has_worker(name) || !stamped_by_us(view, *node)) continue;
    const auto rank = [&](const slurm::Node& of) {
      return std::pair(judge_old_record(view, of.name) != OldRecord::kStays, of.slurmd_start_time);
    };
    const slurm::Node*& left = out[core::get_string(*worker_comment(node->comment), {"podName"})];
    if (left == nullptr || rank(*left) < rank(*node)) left = node.get();
  }
  return out;
}

/// Returns the name of the Slurm node that the pod to be created will have. "": the name is unknown. If Slurm has no node with
/// the pod's hostname, the result is the node that the previous pod of this name left. With host networking, the next pod may
/// run on the same Kubernetes node and use that Slurm node. A slurmd with a name that the user chose registers under that name
/// again.
std::string node_before(const View& view, const LeftNodes& left, const std::string& pod, const core::Json& body) {
  std::string hostname = core::get_string(body, {"spec", "hostname"});
  if (!hostname.empty() && view.known_record(hostname) != nullptr) return hostname;
  const auto found = left.find(pod);
  return found == left.end() ? hostname : found->second->name;
}

void create_pods(const View& view, const Vacancies& vacancies, const NodeNames& draining, Finalizer finalizer, plan::Lane& lane,
                 const Recipes& recipes, Draft& draft) {
  const std::set<SlotKey> without_claims = prepare_claims(view, vacancies, draft);
  const std::size_t limit = tries(view, vacancies, draft);
  if (limit == 0) return;
  const std::string why = fmt::format("{} wants {} workers", view.self_text(), view.desired);
  std::vector<std::string> created;
  std::size_t renewed = 0;
  const LeftNodes left = find_left_nodes(view);
  for (const SlotKey& place : vacancies.places) {
    if (without_claims.contains(place)) continue;
    if (drops_pin(view, place)) {
      draft.wake_after(kNextAnswer, "a pin is dropped");
      continue;
    }
    if (created.size() + renewed == limit) {
      draft.wake_after(core::Duration{10}, "more workers to create");
      break;
    }
    if (!draft.has_room(1)) {
      draft.wake(kPassFull);
      break;
    }
    const auto recipe = recipes.find(view.in.wanted_hash(place));
    if (recipe == recipes.end()) continue;
    core::Json one = worker_pod(recipe->second.pod, *recipe->second.in, place);
    std::string name = core::get_string(one, {"metadata", "name"});
    const std::string node = node_before(view, left, name, one);
    const plan::StepId record_id = kDeleteRecord.of(node);
    const OldRecord old = judge_old_record(view, node);
    if (waits_for_node(view, node, old, draining, draft)) continue;
    if (record_goes_first(view, old, finalizer, record_id, draft)) {
      if (!draft.has_room(3)) {
        draft.wake(kPassFull);
        break;
      }
      const std::string because =
          "Slurm ignores --conf of a node that it knows, and what it knows of this one does not fit the next worker";
      const slurm::Node* record = view.known_record(node);
      plan::Lane& own = draft.lane("create " + name);
      draft.step(own, record_id, because,
                 slurm::delete_node(
                     view.cluster(), slurm::Owner::kOperator, *record, because,
                     drained_by_others(*record) ? slurm::NodeEvidence::Live::kDrained : slurm::NodeEvidence::Live::kKept));
      own.then();
      if (!draft.step(own, create_id(view, place), why, kube::create(kube::resources::kPod, std::move(one)))) continue;
      own.then();
      draft.step(own, created_event(view, {name}));
      ++renewed;
      continue;
    }
    if (!draft.step(lane, create_id(view, place), why, kube::create(kube::resources::kPod, std::move(one)))) continue;
    created.push_back(std::move(name));
  }
  if (created.empty()) return;
  lane.then();
  lane.add(created_event(view, std::move(created)));
}

/// Adds the finalizer if it is missing.
Finalizer keep_finalizer(const View& view, plan::Lane& lane, Draft& draft) {
  auto act = kube::add_finalizer(resources::kNodeSet, view.in.meta(), api::kFinalizerNodeSet);
  if (act == nullptr) return Finalizer::kUnchanged;
  if (!draft.step(lane, kAddFinalizer, "its workers are drained before it is deleted", std::move(act)))
    return Finalizer::kNotNow;
  lane.then();
  return Finalizer::kChanged;
}

/// Reports pods that the operator does not manage although they have names of our workers.
void tell_unmanaged(const View& view, Draft& draft) {
  std::vector<std::string> of_others, relabelled;
  for (const kube::PodPtr& pod : view.in.unmanaged) {
    const kube::OwnerReference* owner = pod->meta.controller_owner();
    (owner == nullptr || owner->uid != view.in.meta().uid ? of_others : relabelled).push_back(pod->meta.name);
  }
  const auto tell = [&](std::vector<std::string> names, std::string_view label, std::string_view ours, std::string_view what) {
    if (names.empty()) return;
    draft.wrong(
        "NamesTaken",
        fmt::format(
            "Pods {} have names of workers of this NodeSet, but their label {} is not {}. They are not touched, and the "
            "workers are created with the next free names instead. {} when they run no jobs",
            core::compress_hostlist(std::move(names)), label, ours, what),
        "Create");
  };
  tell(std::move(of_others), api::kLabelCluster, view.in.nodeset.spec.controller_ref.name, "No NodeSet owns them: delete them");
  tell(std::move(relabelled), api::kLabelInstance, view.in.meta().name, "Set the label again, or delete the pods");
}

/// True if Slurm was asked after the last pod was gone. An earlier answer is not enough, because the pod's slurmd could still
/// have registered after that answer.
bool asked_since_podless(const View& view) {
  return view.in.seen.podless_since && view.in.snapshot->requested_at > *view.in.seen.podless_since;
}

}  // namespace

FreeOrdinals::FreeOrdinals(const View& view, std::set<int> used) : used_(std::move(used)) {
  // A worker that is bound to a Kubernetes node may have the Slurm name that a numbered worker would get. Then that number is
  // not free.
  for (const Slot& slot : view.in.slots) {
    const std::optional<int> same = slot.key.numbered() ? std::nullopt : ordinal_of(slot.node, view.node_prefix());
    if (same) used_.insert(*same);
  }
  // While Slurm does not answer, assume that it has the nodes of its last answer.
  if (!slurm::has_answered(view.in.snapshot) || uses_host_network(view.in.nodeset.spec)) return;
  const std::string prefix = view.node_prefix();
  const auto& nodes = view.in.snapshot->nodes;
  for (auto it = nodes.lower_bound(prefix); it != nodes.end() && it->first.starts_with(prefix); ++it) {
    const std::optional<int> ordinal = ordinal_of(it->first, prefix);
    if (!ordinal || used_.contains(*ordinal) || view.has_worker(it->first) || view.node_name({*ordinal}) != it->first) continue;
    // The number of a node that an administrator holds takes no precedence: a worker with this number is created only when the
    // number is needed.
    if (stamped_by_us(view, *it->second) && !held_by_others(*it->second)) awaited_.push_back(*ordinal);
  }
  std::ranges::sort(awaited_, std::greater{});
}

int FreeOrdinals::lowest() {
  while (used_.contains(lowest_)) ++lowest_;
  return lowest_;
}

bool FreeOrdinals::has_before(int ordinal) {
  return !awaited_.empty() || lowest() < ordinal;
}

int FreeOrdinals::next() {
  int out = lowest();
  if (!awaited_.empty()) {
    out = awaited_.back();
    awaited_.pop_back();
  }
  used_.insert(out);
  return out;
}

Vacancies find_vacancies(const View& view, const Fates& fates, Draft& draft) {
  const Workers& workers = fates.workers;
  Vacancies out;
  if (view.goal != Goal::kServe) return out;
  if (view.by_host()) {
    out = find_free_hosts(view, fates, draft);
    std::erase_if(out.places, [&](const SlotKey& place) {
      if (!name_taken(view, place)) return false;
      draft.wish(create_id(view, place));
      draft.wake_after(kTakenName, "a worker's name may be free");
      return true;
    });
    return out;
  }
  int held = 0, leaving = 0;
  std::optional<core::Duration> wait;
  std::set<int> used;
  const auto hold = [&](const kube::PodRecord& pod) {
    ++held;
    if (!pod.meta.terminating()) return;
    ++leaving;
    const core::Duration left = holds_for(view, pod);
    // The pod is overdue, but according to Slurm's last answer, a job or reservation waits for its node, so it holds its place.
    // Slurm's next answer wakes the NodeSet.
    if (left <= core::Duration{0}) return;
    wait = wait ? std::min(*wait, left) : left;
  };
  for (const Worker& worker : workers) {
    used.insert(worker.key.ordinal);
    if (holds_place(view, worker)) hold(*worker.pod);
  }
  for (const kube::PodPtr& pod : view.in.orphans) {
    used.insert(ordinal_in(view, *pod));
    if (holds_place(view, *pod)) hold(*pod);
  }
  for (const kube::PodPtr& pod : view.in.unmanaged) used.insert(ordinal_in(view, *pod));
  if (wait && held - leaving < view.desired) draft.wake_after(*wait, "a worker's end is overdue then");
  int missing = std::max(0, view.desired - held);
  if (missing == 0) return out;
  FreeOrdinals free(view, std::move(used));
  while (missing > 0) {
    const SlotKey place{free.next()};
    const NameOwner owner = view.owner_of_name(place);
    if (owner == NameOwner::kOtherNodeSet || owner == NameOwner::kOtherNode) continue;
    if (name_taken(view, place)) {
      draft.wish(create_id(view, place));
      continue;
    }
    if (owner == NameOwner::kUs) out.places.insert(place);
    if (owner == NameOwner::kOtherWorker) {
      const std::string node = view.node_name(place);
      out.taken.emplace(node, "NodeSet " + view.rival_of(node)->nodeset);
    }
    --missing;
  }
  return out;
}

Finalizer adopt_orphans(const View& view, Draft& draft) {
  if (view.goal != Goal::kServe) return Finalizer::kUnchanged;
  tell_unmanaged(view, draft);
  if (std::ranges::none_of(view.in.orphans, to_be_adopted)) return Finalizer::kUnchanged;
  // A NodeSet that is deleted with --cascade=orphan gives up its workers. If the NodeSet adopted these workers again, the
  // garbage collector would delete them. So ask the API server whether the NodeSet stays.
  if (!view.in.stays) draft.need(need_nodeset(view.in));
  if (!view.in.stays.value_or(false)) {
    for (const kube::PodPtr& pod : view.in.orphans) {
      if (to_be_adopted(pod)) draft.intent().add(adopt_id(*pod));
    }
    draft.wake_after(kStaysAgain, "whether the NodeSet is deleted is checked again");
    return Finalizer::kUnchanged;
  }
  plan::Lane& lane = draft.lane("adopt");
  const Finalizer finalizer = keep_finalizer(view, lane, draft);
  if (finalizer == Finalizer::kNotNow) return finalizer;
  for (const kube::PodPtr& pod : view.in.orphans) {
    if (!to_be_adopted(pod)) continue;
    core::Json owners = core::Json::array({kube::owner_reference_json(resources::kNodeSet, view.in.meta())});
    const kube::OwnerReference* gone = pod->meta.controller_owner();
    if (gone != nullptr) owners.push_back({{"$patch", "delete"}, {"uid", gone->uid}});
    draft.step(lane, adopt_id(*pod),
               gone == nullptr ? "it has the name and labels of this NodeSet, and no owner"
                               : "its owner, a former NodeSet of the same name, no longer exists",
               kube::patch_any_version(kube::resources::kPod, pod->meta,
                                       {{"metadata", {{"ownerReferences", std::move(owners)}}}}, kube::PatchType::kStrategic));
  }
  return finalizer;
}

void tell_name_conflicts(const View& view, const Workers& workers, const Vacancies& vacancies, Draft& draft) {
  if (view.goal != Goal::kServe) return;
  tell_taken_names(view, workers, vacancies, draft);
  tell_namesake(view, draft);
}

Finalizer create_workers(const View& view, const Vacancies& vacancies, const ExtraConf& extra_conf, const NodeNames& draining,
                         Draft& draft) {
  if (view.goal != Goal::kServe) return Finalizer::kUnchanged;
  plan::Lane& lane = draft.lane("create");
  const Finalizer finalizer = keep_finalizer(view, lane, draft);
  if (finalizer == Finalizer::kNotNow) return finalizer;
  // The names of workers that are bound to Kubernetes nodes were checked before.
  const int last = vacancies.places.empty() ? 0 : vacancies.places.rbegin()->ordinal;
  const std::string problem = view.name_problem(std::max(last, view.desired - 1));
  if (!problem.empty()) draft.wrong("InvalidHostname", problem, "Create");
  Vacancies valid = vacancies;
  std::erase_if(valid.places, [&](const SlotKey& place) { return !view.name_problem(place.ordinal).empty(); });
  const bool may_create =
      view.in.namesake.empty() && !valid.places.empty() && (extra_conf.refusal.empty() || !view.in.base.empty());
  if (!may_create || !has_key(view, draft)) return finalizer;
  const Recipes recipes = find_recipes(view, valid, extra_conf, draft);
  if (!recipes.empty()) create_pods(view, valid, draining, finalizer, lane, recipes, draft);
  return finalizer;
}

Finalizer remove_finalizer(const View& view, const StaleRecords& records, const MaintenanceResult& maintenance, Draft& draft) {
  const bool cluster_ends = view.goal == Goal::kEndAll || (!view.in.controller && view.in.controller_error.empty());
  if (!cluster_ends && view.goal != Goal::kHold) {
    // If a NodeSet of our name was deleted with --cascade=orphan, its workers remain unmanaged. If Slurm does not know these
    // workers, Slurm's answers stay in doubt. So wait at most kRecordsGrace: the next NodeSet of the name adopts the workers
    // and records.
    const bool in_doubt = !view.in.stopped && !records.withheld.empty() && !view.in.orphans.empty();
    if (records.count > 0 && !in_doubt) return Finalizer::kUnchanged;
    // While Slurm answers, wait for an answer that was requested after the last pod was gone.
    if (view.slurm_fresh() && !asked_since_podless(view)) {
      draft.wake_after(kNextAnswer, "waiting for the node records that Slurm still has");
      return Finalizer::kUnchanged;
    }
    const std::string what =
        in_doubt              ? "waiting until Slurm's answers are not in doubt, to delete the node records of deleted workers"
        : !view.slurm_fresh() ? "waiting for Slurm to answer, to delete the node records of deleted workers"
        : maintenance.pending ? "waiting for Slurm to delete reservation " + reservation_name(view.in.meta())
        : records.answering.empty() ? ""
                                    : "waiting for Slurm to notice that the slurmd of node " + records.answering + " is gone";
    if (!what.empty()) {
      const Wait wait = view.wait_at_most(kRecordsGrace, "WaitingForSlurm", what);
      draft.waiting(wait);
      if (!wait.over()) return Finalizer::kUnchanged;
    }
  }
  if (!release_claims(view, draft)) return Finalizer::kUnchanged;
  // Remove the reservation finalizer first: only the NodeSet's own finalizer ensures that there is another pass.
  auto act = kube::remove_finalizer(resources::kNodeSet, view.in.meta(), api::kFinalizerReservation);
  if (act == nullptr) act = kube::remove_finalizer(resources::kNodeSet, view.in.meta(), api::kFinalizerNodeSet);
  const bool removes =
      act != nullptr && draft.step(draft.lane("finalizer"), kRemoveFinalizer, "no worker is left", std::move(act));
  return removes ? Finalizer::kChanged : Finalizer::kUnchanged;
}

}  // namespace op::nodeset
