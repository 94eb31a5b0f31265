// Which workers there are to be: ordinals, creation, and the NodeSet's finalizer.
#include <fmt/format.h>

#include <algorithm>

#include "api/well_known.hpp"
#include "cluster/worker_names.hpp"
#include "core/hostlist.hpp"
#include "kube/acts.hpp"
#include "operator/nodeset/build_worker.hpp"
#include "operator/nodeset/pass.hpp"
#include "slurm/acts.hpp"

namespace op::nodeset {
namespace {

constexpr std::size_t kCreatesPerPass = 48;
/// How long a worker is not created because slurmctld has not missed the slurmd before it, whose record is of another --conf.
constexpr core::Duration kSettles{10000};
/// How long beyond its grace period a terminating pod still holds its place: its Kubernetes node may be lost.
constexpr core::Duration kOverdue{30000};
/// How long a name that somebody else's pod has is not tried again.
constexpr core::Duration kTakenName{60000};
/// How long a NodeSet that goes waits for a Slurm that does not answer, or that has not missed the last slurmd, to delete the
/// records of its workers. Controllers tidy up what is left.
constexpr core::Duration kRecordsGrace{5 * 60 * 1000};
constexpr core::Duration kNextAnswer{300};

plan::StepId create_id(const Pass& pass, int ordinal) {
  const api::NodeSetSpec& spec = pass.in.nodeset.spec;
  return kCreatePod.of(pass.in.meta().ns + "/" + pod_name(pass.in.meta().name, ordinal, spec.ordinal_padding));
}

/// How long a worker that terminates still holds its place.
core::Duration holds_for(const Pass& pass, const kube::PodRecord& pod) {
  const auto grace =
      core::get_int(pass.in.nodeset.spec.pod_template.spec, {"terminationGracePeriodSeconds"}, kWorkerGraceSeconds);
  return std::chrono::seconds{grace} + kOverdue - (pass.in.mono - pass.in.seen.terminating_since.at(pod.meta.uid));
}

/// Whether the worker's place is its own: nobody else is created for it.
bool holds_place(const Pass& pass, const Worker& worker) {
  if (worker.life != Life::kTerminating) return worker.fate.place_taken;
  return holds_for(pass, *worker.pod) > core::Duration{0};
}

/// The same for an orphan, which is a worker to be.
bool holds_place(const Pass& pass, const kube::PodRecord& orphan) {
  return !orphan.meta.terminating() || holds_for(pass, orphan) > core::Duration{0};
}

int ordinal_in(const Pass& pass, const kube::PodRecord& pod) {
  return ordinal_of(pod.meta.name, pass.in.meta().name + "-").value_or(-1);
}

bool name_taken(Pass& pass, int ordinal) {
  const plan::Outcome* failed = pass.failure(create_id(pass, ordinal));
  const bool taken = failed != nullptr && failed->error && failed->error->code == core::ErrorCode::kAlreadyExists &&
                     pass.in.mono - failed->last < kTakenName;
  if (taken) pass.wish(create_id(pass, ordinal));
  return taken;
}

constexpr std::string_view kNameConflict = "HostnameConflict";
/// The other NodeSet may go, which wakes only itself.
constexpr core::Duration kNameMayBeFree{30000};

/// Workers with our feature would be of the other's partition. True: another NodeSet has our name in Slurm.
bool tell_namesake(Pass& pass) {
  if (pass.in.namesake.empty()) return false;
  pass.wrong(kNameConflict,
             fmt::format("NodeSet {} already uses the name {} in Slurm: delete this NodeSet, and create it again with a "
                         "different spec.template.spec.hostname",
                         pass.in.namesake, slurm_node_set_name(*pass.in.object)),
             "Create");
  pass.out.wake_after(kNameMayBeFree, "a NodeSet's name may be free");
  return true;
}

void tell_taken(Pass& pass) {
  // Twins that earlier versions have made.
  for (const Worker& worker : pass.workers) {
    const Rival* rival = pass.rival_of(worker.node);
    if (rival != nullptr && rival->nodes.contains(worker.node)) pass.taken.emplace(worker.node, rival->nodeset);
  }
  if (pass.taken.empty()) return;
  std::vector<std::string> names;
  std::set<std::string> whose;
  for (const auto& [node, nodeset] : pass.taken) {
    names.push_back(node);
    whose.insert(nodeset);
  }
  pass.wrong(
      kNameConflict,
      fmt::format(
          "workers of this NodeSet and of NodeSet {} have the same names ({}), so this NodeSet creates no more workers with "
          "these names: delete one of the two, and create it again with a different spec.template.spec.hostname",
          some_of({whose.begin(), whose.end()}), core::compress_hostlist(std::move(names))),
      "Create");
  pass.out.wake_after(kNameMayBeFree, "workers' names may be free");
}

/// Says why no worker can be created, if so.
bool may_create(Pass& pass) {
  const ControllerView& controller = *pass.in.controller;
  if (controller.key == kube::Presence::kPresent) return true;
  const std::string key =
      fmt::format("Secret {}/{} with the key \"{}\"", pass.in.meta().ns, controller.slurm_key.secret, controller.slurm_key.key);
  if (controller.key == kube::Presence::kAbsent && !controller.slurm_key.generated) {
    pass.wrong("SlurmKeyMissing",
               fmt::format("Controller {}, spec.slurmKeyRef: {} does not exist", controller.meta.key().str(), key), "Create");
  } else {
    pass.waiting("WaitingForKey", "waiting for " + key);
  }
  return false;
}

/// How many creations to try: all, one to see whether it works again, or none yet.
std::size_t tries(Pass& pass) {
  if (pass.spec_changed()) return kCreatesPerPass;
  const plan::Outcome* latest = nullptr;
  for (const int ordinal : pass.vacant) {
    const plan::StepId id = create_id(pass, ordinal);
    pass.wish(id);
    const auto it = pass.in.outcomes.find(id);
    if (it != pass.in.outcomes.end() && (latest == nullptr || latest->last < it->second.last)) latest = &it->second;
  }
  if (latest == nullptr || latest->state == plan::Outcome::State::kDone) return kCreatesPerPass;
  if (latest->error) pass.lasting_event("Warning", "FailedCreate", "Create", latest->error->message);
  const core::Duration waited = pass.in.mono - latest->last;
  const core::Duration wait = backoff(*latest);
  if (waited >= wait) return 1;
  pass.out.wake_after(wait - waited, "trying to create workers again");
  return 0;
}

plan::Step created_event(const Pass& pass, std::vector<std::string> names) {
  return pass.event_step("Normal", "SuccessfulCreate", "Create", "Created Pods " + core::compress_hostlist(std::move(names)));
}

/// Whether the record of an earlier worker goes before this one is created. That is tried once: the worker is not to wait for
/// Slurm.
bool record_goes_first(Pass& pass, OldRecord old, const plan::StepId& id) {
  // A NodeSet that gets its finalizer now had no worker.
  if (old != OldRecord::kGoesFirst || pass.patches_nodeset) return false;
  if (pass.failure(id) == nullptr) return true;
  pass.out.remember(id);
  return false;
}

void create_pods(Pass& pass, plan::Lane& lane, const core::Json& pod) {
  const std::size_t limit = tries(pass);
  if (limit == 0) return;
  const std::string why = fmt::format("{} wants {} workers", self_text(pass), pass.desired);
  std::vector<std::string> created;
  std::size_t renewed = 0;
  for (const int ordinal : pass.vacant) {
    if (created.size() + renewed == limit) {
      pass.out.wake_after(core::Duration{10}, "more workers to create");
      break;
    }
    if (!pass.room(1)) break;
    core::Json one = worker_pod(pod, pass.in, ordinal);
    std::string name = core::get_string(one, {"metadata", "name"});
    const std::string node = core::get_string(one, {"spec", "hostname"});
    // Slurm has no conditional write: the drain of the last pod's node must not meet the slurmd of the next one.
    if (pass.draining.contains(node)) {
      pass.out.wake_after(kNextAnswer, "waiting for the drain of " + node);
      continue;
    }
    const plan::StepId record_id = kDeleteRecord.of(node);
    const OldRecord old = judge_old_record(pass, node);
    if (old == OldRecord::kSettles &&
        pass.wait_at_most(kSettles, "WaitingForSlurm",
                          "waiting for Slurm to notice that the previous slurmd of node " + node + " is gone")) {
      continue;
    }
    if (record_goes_first(pass, old, record_id)) {
      if (!pass.room(3)) break;
      const std::string because =
          "Slurm ignores --conf of a node that it knows, and what it knows of this one does not fit the next worker";
      plan::Lane& own = pass.out.lane("create " + name);
      pass.step(own, record_id, because, slurm::delete_node(pass.cluster(), node, because, slurm::NodeEvidence::Live::kKept));
      own.then();
      if (!pass.step(own, create_id(pass, ordinal), why, kube::create(kube::resources::kPod, std::move(one)))) continue;
      own.then();
      pass.step(own, created_event(pass, {name}));
      ++renewed;
      continue;
    }
    if (!pass.step(lane, create_id(pass, ordinal), why, kube::create(kube::resources::kPod, std::move(one)))) continue;
    created.push_back(std::move(name));
  }
  if (created.empty()) return;
  lane.then();
  lane.add(created_event(pass, std::move(created)));
}

/// Adds the finalizer, if it is not there: workers must not exist without it, for a deletion would not wait for their jobs.
/// False: it cannot be added now.
bool keep_finalizer(Pass& pass, plan::Lane& lane) {
  auto act = kube::add_finalizer(resources::kNodeSet, pass.in.meta(), api::kFinalizerNodeSet);
  if (act == nullptr) return true;
  if (!pass.step(lane, kAddFinalizer, "its workers are drained before it goes", std::move(act))) return false;
  pass.patches_nodeset = true;
  lane.then();
  return true;
}

/// Pods that are left alone, but have names of our workers.
void tell_strangers(Pass& pass) {
  std::vector<std::string> foreign, apart;
  for (const kube::PodPtr& pod : pass.in.strangers) {
    const kube::OwnerReference* owner = pod->meta.controller_owner();
    (owner == nullptr || owner->uid != pass.in.meta().uid ? foreign : apart).push_back(pod->meta.name);
  }
  const auto tell = [&](std::vector<std::string> names, std::string_view label, std::string_view ours, std::string_view what) {
    if (names.empty()) return;
    pass.wrong("NamesTaken",
               fmt::format(
                   "Pods {} have names of workers of this NodeSet, but their label {} is not {}. They are not touched, and the "
                   "workers are created with the next free names instead. {} when they run no jobs",
                   core::compress_hostlist(std::move(names)), label, ours, what),
               "Create");
  };
  tell(std::move(foreign), api::kLabelCluster, pass.in.nodeset.spec.controller_ref.name, "No NodeSet owns them: delete them");
  tell(std::move(apart), api::kLabelInstance, pass.in.meta().name, "Set the label again, or delete the pods");
}

/// Until it is gone, a pod's slurmd may register: of what is left, only a later answer tells.
bool asked_since_podless(const Pass& pass) {
  return pass.in.seen.podless_since && pass.in.snapshot->requested_at > *pass.in.seen.podless_since;
}

}  // namespace

void find_vacancies(Pass& pass) {
  if (pass.goal != Goal::kServe) return;
  int held = 0, leaving = 0;
  std::optional<core::Duration> wait;
  std::set<int> used;
  const auto hold = [&](const kube::PodRecord& pod) {
    ++held;
    if (!pod.meta.terminating()) return;
    ++leaving;
    const core::Duration left = holds_for(pass, pod);
    wait = wait ? std::min(*wait, left) : left;
  };
  for (const Worker& worker : pass.workers) {
    used.insert(worker.key.ordinal);
    if (holds_place(pass, worker)) hold(*worker.pod);
  }
  for (const kube::PodPtr& pod : pass.in.orphans) {
    used.insert(ordinal_in(pass, *pod));
    if (holds_place(pass, *pod)) hold(*pod);
  }
  for (const kube::PodPtr& pod : pass.in.strangers) used.insert(ordinal_in(pass, *pod));
  if (wait && held - leaving < pass.desired) pass.out.wake_after(*wait, "a worker's end is overdue then");
  int missing = std::max(0, pass.desired - held);
  for (int ordinal = 0; missing > 0; ++ordinal) {
    if (used.contains(ordinal)) continue;
    const Pass::Name name = pass.name_of(ordinal);
    if (name == Pass::Name::kNodeSets || name_taken(pass, ordinal)) continue;
    if (name == Pass::Name::kOurs) pass.vacant.insert(ordinal);
    if (name == Pass::Name::kRivals) {
      const std::string node = pass.node_name(ordinal);
      pass.taken.emplace(node, pass.rival_of(node)->nodeset);
    }
    --missing;
  }
  pass.to_create = static_cast<int>(pass.vacant.size());
}

void adopt_orphans(Pass& pass) {
  if (pass.goal != Goal::kServe) return;
  tell_strangers(pass);
  plan::Lane& lane = pass.out.lane("adopt");
  const bool any = std::ranges::any_of(pass.in.orphans, to_be_adopted);
  if (any && !keep_finalizer(pass, lane)) return;
  for (const kube::PodPtr& pod : pass.in.orphans) {
    if (!to_be_adopted(pod)) continue;
    core::Json owners = core::Json::array({kube::owner_reference_json(resources::kNodeSet, pass.in.meta())});
    const kube::OwnerReference* gone = pod->meta.controller_owner();
    if (gone != nullptr) owners.push_back({{"$patch", "delete"}, {"uid", gone->uid}});
    auto act = std::make_shared<kube::Patch>();
    act->resource = kube::resources::kPod;
    act->key = pod->meta.key();
    act->type = kube::PatchType::kStrategic;
    act->uid = pod->meta.uid;
    act->patch = {{"metadata", {{"ownerReferences", std::move(owners)}}}};
    pass.step(lane, {"adopt", "Pod", pod->meta.key().str()},
              gone == nullptr ? "it has our name and labels, and no owner" : "its owner, a NodeSet of our name, is gone",
              std::move(act));
  }
}

void create_workers(Pass& pass) {
  if (pass.goal != Goal::kServe) return;
  tell_taken(pass);
  const bool nameless = tell_namesake(pass);
  // Orphans come first. What is vacant is known before: their records are kept.
  if (std::ranges::any_of(pass.in.orphans, to_be_adopted)) return;
  plan::Lane& lane = pass.out.lane("create");
  if (!keep_finalizer(pass, lane)) return;
  if (nameless || pass.vacant.empty() || pass.conf_refused || !may_create(pass)) return;
  const std::string problem =
      hostname_problem(host_prefix(core::get_string(pass.in.nodeset.spec.pod_template.spec, {"hostname"}), pass.in.meta().name),
                       *pass.vacant.rbegin(), pass.in.nodeset.spec.ordinal_padding);
  if (!problem.empty()) {
    pass.wrong("InvalidHostname", problem, "Create");
    return;
  }
  const core::Result<core::Json> pod = worker_template(pass.in, pass.in.hash);
  if (!pod) {
    pass.wrong("InvalidSpec", pod.error().message, "Create");
    return;
  }
  create_pods(pass, lane, *pod);
}

void remove_finalizer(Pass& pass) {
  if (!pass.in.meta().terminating() || !pass.in.pods.empty()) return;
  const bool cluster_ends = pass.goal == Goal::kEndAll || (!pass.in.controller && pass.in.controller_error.empty());
  if (!cluster_ends && pass.goal != Goal::kHold) {
    if (pass.records_left > 0) return;
    // No longer than an answer is fresh.
    if (pass.slurm_fresh() && !asked_since_podless(pass))
      return pass.out.wake_after(kNextAnswer, "waiting for what Slurm has left");
    const std::string what = !pass.slurm_fresh()
                                 ? "waiting for Slurm to answer, to delete the node records of workers that are gone"
                             : pass.doubtful_record.empty()
                                 ? ""
                                 : "waiting for Slurm to notice that the slurmd of node " + pass.doubtful_record + " is gone";
    if (!what.empty() && pass.wait_at_most(kRecordsGrace, "WaitingForSlurm", what)) return;
  }
  if (auto act = kube::remove_finalizer(resources::kNodeSet, pass.in.meta(), api::kFinalizerNodeSet)) {
    pass.patches_nodeset = pass.step(pass.out.lane("finalizer"), kRemoveFinalizer, "no worker is left", std::move(act));
  }
}

}  // namespace op::nodeset
