#include "sim/programs/operator/oracles/jobs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/field.hpp"
#include "api/well_known.hpp"
#include "sim/programs/operator/oracles/agents.hpp"
#include "sim/programs/operator/oracles/objects.hpp"
#include "slinky/names.hpp"

namespace sim {
namespace {

using core::Json;
namespace kinds = kube::resources;

/// The time from the deletion of a pod to the moment when the kubelet runs its preStop.
constexpr core::Duration kPreStop{5000};
/// The operator may not know of an event that is more recent than this: a watch can be late, Slurm slow, the operator paused.
constexpr core::Duration kNews{90000};
/// The operator is allowed to learn of a worker's end this late, because Slurm, the API server and the operator can be down one
/// after the other.
constexpr core::Duration kGoneNews{180000};
/// The effect of a Controller's deletion possibly shows only after SlurmdTimeout.
constexpr core::Duration kAfterEnd{600000};

bool disrupted(const Json& pod, std::string_view reason) {
  const Json* conditions = core::find(pod, {"status", "conditions"});
  return conditions != nullptr && std::ranges::any_of(*conditions, [&](const Json& c) {
           return core::get_string(c, {"type"}) == "DisruptionTarget" && core::get_string(c, {"reason"}) == reason;
         });
}

}  // namespace

std::string_view to_string(Blame blame) {
  switch (blame) {
    case Blame::kUser:
      return "its user";
    case Blame::kAdmin:
      return "an administrator";
    case Blame::kAccident:
      return "an accident";
    case Blame::kPolicy:
      return "the drain policy of its NodeSet";
    case Blame::kNoPolicy:
      return "the operator ended it without a policy";
    case Blame::kClusterEnds:
      return "the end of its cluster";
    case Blame::kLongProlog:
      return "its long prolog";
    case Blame::kOperator:
      return "the operator deleted its worker";
    case Blame::kOperatorDown:
      return "the operator set its node DOWN";
    case Blame::kNewWorker:
      return "the operator deleted its worker, which had just registered";
    case Blame::kDyingWorker:
      return "it was started on a worker that was being deleted";
    case Blame::kGoneWorker:
      return "it was started on the record of a worker that was gone";
    case Blame::kEviction:
      return "its worker was evicted";
    case Blame::kTaint:
      return "the taint manager deleted its worker";
    case Blame::kPreemption:
      return "its worker was preempted";
    case Blame::kCleaning:
      return "Kubernetes' cleaning deleted its worker";
    case Blame::kProbe:
      return "a probe ended its slurmd";
    case Blame::kProcess:
      return "its slurmd ended";
    case Blame::kNameTaken:
      return "another worker took the name of its node";
    case Blame::kPartition:
      return "its partition went while it ran";
    case Blame::kPartitionWait:
      return "its partition went while it waited";
    case Blame::kLeftOut:
      return "its partition was left out of a configuration that was refused";
    case Blame::kSilence:
      return "slurmctld lost a slurmd that runs";
    case Blame::kKey:
      return "slurmctld has another key than its slurmd";
    case Blame::kState:
      return "slurmctld's volume went";
    case Blame::kReconfigure:
      return "the operator reconfigured or restarted slurmctld during its prolog";
  }
  return "";
}

bool is_excused(Blame blame) {
  return blame == Blame::kUser || blame == Blame::kAdmin || blame == Blame::kAccident || blame == Blame::kPolicy ||
         blame == Blame::kClusterEnds || blame == Blame::kLongProlog;
}

JobOracle::JobOracle(core::Loop& loop, KubeApi& api, SlurmSite& site, Tell violation, Tell note)
    : loop_(loop), api_(api), site_(site), violation_(std::move(violation)), note_(std::move(note)) {
  listen();
}

/// The simulated slurmds outlive the oracle. So the jobs that they lose must not be reported to the destroyed oracle.
JobOracle::~JobOracle() {
  for (const auto& [host, cluster] : site_.clusters()) cluster->slurm->on_job_loss = nullptr;
}

void JobOracle::watch(SlurmSite::Cluster& cluster) {
  cluster.slurm->on_job_loss = [this, &cluster](const SimJob& job, const JobLoss& loss) { judge(cluster, job, loss); };
}

void JobOracle::accident(const std::string& pod, Accident what) {
  Worker& worker = workers_[pod];
  const core::MonoTime now = loop_.clock().mono();
  (what == Accident::kMachineCut ? worker.cut : what == Accident::kProbe ? worker.probed : worker.off) = now;
}

void JobOracle::fenced(const SimNode& record) {
  if (const auto worker = workers_.find(record.instance_id); worker != workers_.end())
    worker->second.fenced = loop_.clock().mono();
}

void JobOracle::freed(const SimNode& record) {
  if (const auto worker = workers_.find(record.instance_id); worker != workers_.end())
    worker->second.freed = loop_.clock().mono();
}

// --- The ends of workers ----------------------------------------------------------------------------------------------

Blame JobOracle::deleter(const AdmissionRequest& request) const {
  const std::string& user = request.user;
  if (user == kOperatorAgent) return Blame::kOperator;
  if (disrupted(*request.before, "EvictionByEvictionAPI")) {
    // A disruption budget does not count a pod whose slurmd has just started, until the kubelet has reported the start.
    if (core::get_string(*request.before, {"status", "phase"}) == "Pending") return Blame::kAccident;
    const auto harmed = harmed_.find(request.key.ns);
    return harmed != harmed_.end() && lately(harmed->second, kNews) ? Blame::kUser : Blame::kEviction;
  }
  if (user.ends_with(":taint-eviction-controller")) {
    const Json* node = api_.peek(kinds::kNode, {"", core::get_string(*request.before, {"spec", "nodeName"})});
    const Json* taints = node == nullptr ? nullptr : core::find(*node, {"spec", "taints"});
    const bool users = taints != nullptr && std::ranges::any_of(*taints, [](const Json& taint) {
                         return core::get_string(taint, {"effect"}) == "NoExecute" &&
                                !core::get_string(taint, {"key"}).starts_with("node.kubernetes.io/");
                       });
    return users ? Blame::kUser : Blame::kTaint;
  }
  if (user == "system:kube-scheduler") return Blame::kPreemption;
  if (user.ends_with(":pod-garbage-collector")) return Blame::kAccident;
  // The StatefulSet controller carries out the operator's StatefulSet, so the operator is to blame, unless a user changed the
  // replicas.
  if (user.ends_with(":statefulset-controller")) {
    const std::string& pod = request.key.name;
    const Json* set = api_.peek(kinds::kStatefulSet, {request.key.ns, pod.substr(0, pod.rfind('-'))});
    return set == nullptr || core::get_int(*set, {"spec", "replicas"}, 1) == 0 ? Blame::kUser : Blame::kOperator;
  }
  return user.starts_with("system:") ? Blame::kCleaning : Blame::kUser;
}

void JobOracle::listen() {
  api_.add_admission([this](const AdmissionRequest& request) -> std::optional<Refusal> {
    if (request.operation == "DELETE" && request.resource == kinds::kPod && request.before != nullptr &&
        !terminating(*request.before)) {
      asked_[request.key] = deleter(request);
    }
    if (request.resource == kinds::kPodDisruptionBudget && request.subresource.empty() &&
        !request.user.starts_with("system:") && request.user != kOperatorAgent)
      harmed_[request.key.ns] = loop_.clock().mono();
    if (request.resource == kinds::kConfigMap && request.operation != "CREATE" && !request.user.starts_with("system:") &&
        request.user != kOperatorAgent)
      unwritten_[request.key] = loop_.clock().mono();
    return {};
  });
  api_.store().listen([this](const std::string& table, const ChangePtr& change) {
    const core::MonoTime now = loop_.clock().mono();
    const bool gone = change->type == Change::Type::kDeleted;
    if (table == table_name(slinky::resources::kController) && gone) gone_[change->key] = now;
    const Json& pod = change->object->body;
    if (table == table_name(slinky::resources::kNodeSet)) {
      const Json* policy = core::find(pod, {"spec", "drainPolicy"});
      auto& said = policies_[change->key];
      const Json is = policy == nullptr ? Json::object() : *policy;
      if (said.empty() || said.back().second != is) said.emplace_back(now, is);
    }
    if (table != "pods") return;
    // If the slurmctld of a pod never ran, the pod had no state to lose.
    if (label(pod, api::kLabelName) == "slurmctld" && core::get_string(pod, {"status", "phase"}) == "Running" &&
        terminating(pod) && !terminating(change->before ? change->before->body : pod))
      restarted_[{change->key.ns, label(pod, api::kLabelInstance)}] =
          asked_.contains(change->key) ? asked_[change->key] : Blame::kUser;
    if (!is_worker(pod)) return;
    const std::string uid = core::get_string(pod, {"metadata", "uid"});
    Worker& worker = workers_[uid];
    const bool owned = core::find(pod, {"metadata", "ownerReferences"}) != nullptr;
    if (owned != worker.owned) (owned ? worker.adopted : worker.left) = now;
    worker.owned = owned;
    const std::string node = slurm_node_of(pod);
    if (change->type == Change::Type::kAdded || worker.node != node) {
      worker.node = node;
      std::string& last = last_[{{change->key.ns, label(pod, api::kLabelCluster)}, node}];
      if (last != uid) worker.before = std::exchange(last, uid);
    }
    const bool kept = label(pod, api::kLabelPodProtect) == "true";
    worker.open = kept ? std::nullopt : std::optional(worker.open.value_or(now));
    if (worker.machine.empty()) worker.machine = core::get_string(pod, {"spec", "nodeName"});
    if (!worker.deleted && (gone || terminating(pod))) {
      worker.deleted = now;
      const auto asked = asked_.find(change->key);
      worker.by = asked == asked_.end() ? Blame::kUser : asked->second;
    }
    if (!worker.ended && (gone || ended(pod))) worker.ended = now;
    if (gone) worker.gone = now;
  });
}

// --- Who is to blame --------------------------------------------------------------------------------------------------

bool JobOracle::lately(std::optional<core::MonoTime> at, core::Duration length) const {
  return at && loop_.clock().mono() - *at <= length;
}

bool JobOracle::cluster_ends(const kube::Key& controller) const {
  const Json* object = api_.peek(slinky::resources::kController, controller);
  const auto gone = gone_.find(controller);
  if (object == nullptr || (gone != gone_.end() && lately(gone->second, kAfterEnd))) return true;
  const Json* space = api_.peek(kinds::kNamespace, {"", controller.ns});
  const bool goes = terminating(*object) || space == nullptr || terminating(*space);
  return goes && core::get_string(*object, {"spec", "deletionPolicy"}) != "Drain";
}

/// Reports whether the cluster has a RestApi. Without a RestApi, the operator cannot see the jobs.
bool JobOracle::has_restapi(const kube::Key& controller) const {
  return std::ranges::any_of(api_.store().all(table_name(slinky::resources::kRestApi)), [&](const auto& entry) {
    return entry.first.ns == controller.ns && !terminating(entry.second->body) &&
           core::get_string(entry.second->body, {"spec", "controllerRef", "name"}) == controller.name;
  });
}

/// Reports whether the user accepted the risk that slurmctld's state is lost. Without a volume, the state ends with slurmctld's
/// pod, no matter who deletes the pod. But the operator must not delete the pod for a change while there are jobs that the
/// operator can have seen.
bool JobOracle::state_was_users(const kube::Key& controller, const SimJob& job) const {
  const Json* object = api_.peek(slinky::resources::kController, controller);
  if (object == nullptr || core::get_bool(*object, {"spec", "persistence", "enabled"}, true)) return false;
  // Without a RestApi, nobody can see jobs, so there may be jobs whenever there are workers.
  const bool seen = has_restapi(controller);
  const bool workers = std::ranges::any_of(api_.store().all("pods"), [&](const auto& entry) {
    return entry.first.ns == controller.ns && is_worker(entry.second->body) &&
           label(entry.second->body, api::kLabelCluster) == controller.name;
  });
  if (!seen && !workers) return true;
  const auto by = restarted_.find(controller);
  if (by == restarted_.end() || by->second != Blame::kOperator) return true;
  return annotation(controller, api::kAnnotationLoseJobs) == "true" || lately(job.submitted, kNews);
}

bool JobOracle::left_out(const kube::Key& controller, const std::string& partition) const {
  const Json* map = api_.peek(kinds::kConfigMap, {controller.ns, slinky::config_map_name(controller.name)});
  return map != nullptr &&
         core::get_string(*map, {"metadata", "annotations", api::kAnnotationLeftOut}).find(fmt::format("\"{}\"", partition)) !=
             std::string::npos;
}

/// Returns an annotation of the Controller.
std::string JobOracle::annotation(const kube::Key& controller, std::string_view name) const {
  const Json* object = api_.peek(slinky::resources::kController, controller);
  return object == nullptr ? "" : sim::annotation(*object, name);
}

/// Reports whether the operator possibly had not seen the job when the worker was deleted. Once the operator has seen the jobs
/// of a worker, it sets a label on the worker. It does so only for workers of NodeSets.
bool JobOracle::unseen(const SlurmSite::Cluster& cluster, const SimJob& job, const Worker& worker) const {
  if (!cluster.slurm->up() || !has_restapi(cluster.controller)) return true;
  core::MonoTime from = std::max(job.started, cluster.slurm->up_since());
  if (worker.adopted) from = std::max(from, *worker.adopted);
  core::MonoTime to = *worker.deleted;
  if (!worker.owned && worker.left) to = std::min(to, *worker.left);
  return from + kGoneNews > to;
}

/// Reports whether the worker was evicted before the operator could have seen that an administrator had freed its node
/// (docs/reference/limits.md). Until then, the worker was drained and idle, so the eviction was allowed.
bool JobOracle::freed_unseen(const SimJob& job, const Worker& worker) const {
  return worker.open && worker.freed && *worker.open <= *worker.freed && *worker.freed <= job.started &&
         *worker.deleted - *worker.freed <= kNews;
}

/// Reports whether the operator deleted the record and right after it the pod, but a restart of the machine made slurmd
/// register in between. That registration made a new record, which nobody had drained.
bool JobOracle::began_anew(const SlurmSite::Cluster& cluster, const Worker& worker) const {
  const SimNode* record = cluster.slurm->node(worker.node);
  return worker.by == Blame::kOperator && worker.off && worker.fenced && *worker.off <= *worker.fenced && record != nullptr &&
         record->made >= *worker.fenced && *worker.deleted <= *worker.fenced + kPreStop;
}

/// Returns who is to blame if the slurmd ended while the job ran.
Blame JobOracle::blame_for_end(const SlurmSite::Cluster& cluster, const SimJob& job, const std::string& node) const {
  const auto runs = cluster.slurmds.find(node);
  const auto newest = last_.find({cluster.controller, node});
  const std::string uid = runs != cluster.slurmds.end() ? runs->second : newest != last_.end() ? newest->second : "";
  const auto found = workers_.find(uid);
  if (found == workers_.end()) return Blame::kProcess;
  const Worker& worker = found->second;
  if (lately(worker.off, core::Duration{0})) return Blame::kAccident;
  if (!worker.deleted) return worker.probed ? Blame::kProbe : Blame::kProcess;
  if (job.started > *worker.deleted + kPreStop) return worker.cut ? Blame::kAccident : Blame::kDyingWorker;
  if (worker.by == Blame::kPreemption && unseen(cluster, job, worker)) return Blame::kAccident;
  if (worker.by == Blame::kEviction && freed_unseen(job, worker)) return Blame::kAdmin;
  if (began_anew(cluster, worker)) return Blame::kAccident;
  const SimNode* record = cluster.slurm->node(node);
  const std::int64_t age = record == nullptr ? 0 : cluster.slurm->now_seconds() - record->registered_at;
  return worker.by == Blame::kOperator && age * 1000 < kNews.count() ? Blame::kNewWorker : worker.by;
}

/// Returns who is to blame for a DOWN by the operator. A DOWN is excused if the pod is deleted and its machine is no longer
/// part of the cluster.
Blame JobOracle::blame_for_down(const SlurmSite::Cluster& cluster, const std::string& node) const {
  const auto newest = last_.find({cluster.controller, node});
  if (newest == last_.end()) return Blame::kOperatorDown;
  const Worker& worker = workers_.at(newest->second);
  const bool host_gone = !worker.machine.empty() && api_.peek(kinds::kNode, {"", worker.machine}) == nullptr;
  return worker.gone && host_gone ? Blame::kAccident : Blame::kOperatorDown;
}

/// Returns the time since which some job has always been in its prolog, without a gap that the operator would have seen.
core::MonoTime JobOracle::starting_since(const SlurmSite::Cluster& cluster) const {
  /// The operator polls, so it can miss a gap that is shorter than this.
  constexpr core::Duration kUnseen{2000};
  core::MonoTime since = loop_.clock().mono();
  for (bool before = true; before;) {
    before = false;
    for (const auto& [id, job] : cluster.slurm->jobs()) {
      // A job that ended in another way possibly had a shorter prolog.
      const bool began = job.state == SimJob::State::kRunning || job.state == SimJob::State::kCompleted;
      const bool had = began && job.request.prolog > core::Duration{0} && job.prolog_until == job.started + job.request.prolog;
      if (!had || job.started >= since || job.prolog_until + kUnseen < since) continue;
      since = job.started;
      before = true;
    }
  }
  return since;
}

/// Returns who is to blame if slurmctld was reconfigured or restarted during the prolog. The operator waits one minute for all
/// jobs together, because on a busy cluster possibly some job is always starting.
Blame JobOracle::blame_for_cut(const SlurmSite::Cluster& cluster, const SimJob& job) const {
  constexpr core::Duration kWaited{58000};
  /// The longest time from the operator's last read of the jobs to the write that loses a job's launch, or to the end of
  /// slurmctld's pod.
  constexpr core::Duration kLook{8000};
  if (!lately(starting_since(cluster), kWaited)) return Blame::kLongProlog;
  return lately(job.started, fair_ ? kLook : kNews) ? Blame::kAccident : Blame::kReconfigure;
}

/// Reports whether the operator possibly has not reported the worker's end to slurmctld, because the end was recent, or because
/// slurmctld was down and has only just returned.
bool JobOracle::untold(const SlurmSite::Cluster& cluster, const Worker& worker) const {
  const core::MonoTime up = cluster.slurm->up_since();
  return lately(worker.gone, kGoneNews) || (worker.gone && *worker.gone <= up && lately(up, kNews));
}

/// Returns who is to blame if no slurmd had registered on the node when the job started.
Blame JobOracle::blame_for_start(const SlurmSite::Cluster& cluster, const std::string& node) const {
  const auto newest = last_.find({cluster.controller, node});
  if (newest == last_.end()) return Blame::kGoneWorker;
  const Worker& worker = workers_.at(newest->second);
  if (!worker.owned) return Blame::kUser;
  // While slurmctld was down, nobody could report the worker's end.
  if (worker.ended && lately(cluster.slurm->up_since(), kNews)) return Blame::kAccident;
  if (worker.off) return !worker.ended || lately(worker.ended, kGoneNews) ? Blame::kAccident : Blame::kGoneWorker;
  // A successor of the worker already exists. If the successor's slurmd has not registered, the record belongs to the latest
  // earlier worker whose slurmd ever ran.
  auto was = workers_.find(worker.before);
  while (was != workers_.end() && !site_.slurmd_ever_ran(was->first)) was = workers_.find(was->second.before);
  const SimNode* record = cluster.slurm->node(node);
  const bool own = record != nullptr && record->instance_id == newest->second;
  if (!own && was != workers_.end() && untold(cluster, was->second))
    return was->second.off || was->second.by == Blame::kPreemption ? Blame::kAccident : was->second.by;
  if (!worker.deleted) return Blame::kGoneWorker;
  const Blame by = worker.by == Blame::kPreemption ? Blame::kAccident : worker.by;
  if (worker.gone) return lately(worker.gone, kGoneNews) ? by : Blame::kGoneWorker;
  if (lately(worker.deleted, kPreStop)) return by;
  return worker.cut ? Blame::kAccident : Blame::kDyingWorker;
}

/// Reports whether the NodeSet's policy allowed the operator to end the job. The operator must have drained the node in order
/// to delete its worker, and the job must have run there for as long as the policy requires (docs/how-to/scale.md lists the
/// causes that the policy covers). The NodeSet must have this policy, or have had it recently.
bool JobOracle::policy_allows(const SlurmSite::Cluster& cluster, const SimJob& job, const JobLoss& loss) const {
  const std::string wanted = loss.cause == JobLoss::Cause::kRequeued ? "Requeue" : "Cancel";
  if (loss.pending) return false;
  return std::ranges::any_of(job.nodes, [&](const std::string& name) {
    const SimNode* node = cluster.slurm->node(name);
    if (node == nullptr || !node->drain || !node->reason.starts_with("slurm-operator: NodeSet ")) return false;
    constexpr std::string_view kGoes[] = {" was scaled in", " is being updated",        " has scalingMode ",
                                          " is gone",       " does not match any more", " gives its worker the name "};
    if (std::ranges::none_of(kGoes, [&](std::string_view why) { return node->reason.find(why) != std::string::npos; }))
      return false;
    const core::Duration drained{(cluster.slurm->now_seconds() - node->reason_at + 1) * 1000};
    return std::ranges::any_of(policies_, [&](const auto& entry) {
      const auto& [key, said] = entry;
      if (key.ns != cluster.controller.ns || (node->reason.find(" " + key.str() + " ") == std::string::npos &&
                                              node->reason.find(" " + key.str() + ": ") == std::string::npos))
        return false;
      for (auto it = said.rbegin(); it != said.rend(); ++it) {
        const auto timeout = api::parse_duration(core::get_string(it->second, {"timeout"}));
        if (core::get_string(it->second, {"onTimeout"}) == wanted && timeout && drained + clocks_differ_ >= *timeout)
          return true;
        if (!lately(it->first, kNews)) break;
      }
      return false;
    });
  });
}

Blame JobOracle::blame(const SlurmSite::Cluster& cluster, const SimJob& job, const JobLoss& loss) const {
  using Cause = JobLoss::Cause;
  const kube::Key& controller = cluster.controller;
  if (loss.by == kSlurmAdmin) return Blame::kAdmin;
  // This check comes before the check for the end of the cluster, because the policy also applies to drained workers of a
  // cluster that ends.
  if (loss.cause == Cause::kRequeued || loss.cause == Cause::kCancelled)
    return policy_allows(cluster, job, loss) ? Blame::kPolicy : Blame::kNoPolicy;
  if (cluster_ends(controller)) return Blame::kClusterEnds;
  switch (loss.cause) {
    case Cause::kDown:
      // The user "root" means that the preStop script set the node DOWN.
      return loss.by == "root" ? blame_for_end(cluster, job, loss.node) : blame_for_down(cluster, loss.node);
    case Cause::kSlurmdEnded:
      return blame_for_end(cluster, job, loss.node);
    case Cause::kNoSlurmd:
      return blame_for_start(cluster, loss.node);
    case Cause::kSlurmdBegan:
      return Blame::kNameTaken;
    case Cause::kSilence:
      return Blame::kSilence;
    case Cause::kOtherKey:
      return Blame::kKey;
    case Cause::kPartitionGone:
      if (annotation(controller, api::kAnnotationRemoveNow).find("partition/" + job.request.partition) != std::string::npos)
        return Blame::kUser;
      if (left_out(controller, job.request.partition)) return Blame::kLeftOut;
      // While slurmctld does not answer, only the ConfigMap records which partitions are withheld.
      for (const std::string& map : {slinky::config_map_name(controller.name), slinky::config_files_name(controller.name),
                                     slinky::accepted_files_name(controller.name)}) {
        const auto at = unwritten_.find({controller.ns, map});
        if (at != unwritten_.end() && (lately(at->second, kNews) || !has_restapi(controller))) return Blame::kUser;
      }
      return loss.pending ? Blame::kPartitionWait : Blame::kPartition;
    case Cause::kNodeGone:
    case Cause::kPreempted:
      return Blame::kUser;
    case Cause::kStateLost:
      return state_was_users(controller, job) ? Blame::kUser : Blame::kState;
    case Cause::kRecordGone:
      return Blame::kOperator;
    case Cause::kRequeued:
    case Cause::kCancelled:
      break;
    case Cause::kProlog:
      return Blame::kAccident;
    case Cause::kReconfigured:
      return blame_for_cut(cluster, job);
    case Cause::kRestarted: {
      // The operator is to blame only if it deleted the pod, because slurmctld may end by itself.
      const Json* pod = api_.peek(kinds::kPod, {controller.ns, slinky::controller_object_name(controller.name) + "-0"});
      const auto by = restarted_.find(controller);
      const bool ours = pod != nullptr && terminating(*pod) && by != restarted_.end() && by->second == Blame::kOperator;
      return ours ? blame_for_cut(cluster, job) : Blame::kAccident;
    }
  }
  return Blame::kProcess;
}

void JobOracle::judge(const SlurmSite::Cluster& cluster, const SimJob& job, const JobLoss& loss) {
  if (loss.told) return;
  const Blame whose = blame(cluster, job, loss);
  ++losses_[whose];
  const std::string text = fmt::format("job {} was {} ({}, on \"{}\"): {}", job.id, to_string(loss.what), to_string(loss.cause),
                                       loss.node, to_string(whose));
  is_excused(whose) ? note_(text) : violation_(text);
}

}  // namespace sim
