#include "sim/programs/operator/workload.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/well_known.hpp"
#include "sim/programs/operator/fixed_history.hpp"
#include "sim/programs/operator/oracles/agents.hpp"
#include "sim/programs/operator/oracles/objects.hpp"
#include "sim/programs/operator/workload_parts.hpp"
#include "sim/slurm/text.hpp"
#include "slinky/names.hpp"

namespace sim {

using core::Duration;
using core::Json;
namespace kinds = kube::resources;

namespace {

constexpr std::uint64_t kDrainStream = 0x5d1a;
constexpr Duration kRest{std::chrono::minutes{3}};

}  // namespace

std::string first_few(const std::vector<std::string>& reasons) {
  std::string out;
  for (std::size_t i = 0; i < std::min<std::size_t>(reasons.size(), 6); ++i) out += (i == 0 ? "" : "; ") + reasons[i];
  return out;
}

OperatorWorkload::OperatorWorkload(World& world, History& history, OperatorProgram& program)
    : world_(world),
      history_(history),
      program_(program),
      random_(history.random()),
      logins_(world.options().seed ^ 0x6c6f67696e),
      with_logins_(logins_.chance(0.3)),
      accounting_(world.options().seed ^ 0x7361636374),
      with_accounting_(accounting_.chance(0.3)),
      more_(~world.options().seed),
      drains_(world.options().seed ^ kDrainStream),
      volumes_(world.options().seed * 3 + 1),
      with_volumes_(volumes_.chance(0.3)),
      updates_(~world.options().seed * 3),
      prologs_(world.options().seed ^ 0x70726f6c6f67U),
      has_prologs_(prologs_.chance(0.35)),
      modes_(world.options().seed * 31 + 7),
      own_keys_(random_.chance(0.4)),
      own_files_(random_.chance(0.5)),
      taken_key_(!own_keys_ && random_.chance(0.25)),
      // Without a volume, generated keys are lost with their Controller.
      volatile_(random_.chance(taken_key_ ? 0.6 : 0.1)) {
  for (const char* image : {kOtherSlurmd, kOtherSlurmctld}) world_.kube().nodes().add_image(image);
  if (more_.chance(0.5)) fill_more();
  if (drains_.chance(0.4)) fill_drains();
  if (updates_.chance(0.4)) fill_updates();
  if (modes_.chance(0.4)) fill_modes();
}

Json OperatorWorkload::retention() {
  const auto drawn = [this] { return volumes_.chance(0.6) ? "Delete" : "Retain"; };
  return {{"whenScaled", drawn()}, {"whenDeleted", drawn()}};
}

Json OperatorWorkload::nodeset(const std::string& name, int replicas) {
  Json out = nodeset_json(name, replicas);
  if (!with_volumes_) return out;
  out["spec"]["volumeClaimTemplates"] = Json::array({{{"metadata", {{"name", "scratch"}}},
                                                      {"spec",
                                                       {{"accessModes", {"ReadWriteOnce"}},
                                                        {"storageClassName", "standard"},
                                                        {"resources", {{"requests", {{"storage", "1Gi"}}}}}}}}});
  out["spec"]["persistentVolumeClaimRetentionPolicy"] = retention();
  return out;
}

std::string OperatorWorkload::some_node() {
  std::vector<std::string> out;
  if (const SimSlurm* slurm = world_.slurm()) {
    for (const auto& [name, node] : slurm->nodes()) out.push_back(name);
  }
  return some(out);
}

void OperatorWorkload::found() {
  std::vector<std::function<void()>> first{
      [&] { world_.apply(controller()); },
      [&] { world_.apply(restapi_json()); },
      [&] { world_.apply(nodeset("cpu", static_cast<int>(random_.between(1, 4)))); },
      [&] { world_.start(program_); },
  };
  if (random_.chance(0.5)) first.emplace_back([&] { world_.apply(nodeset("gpu", static_cast<int>(random_.between(0, 3)))); });
  if (!program_.options().namespaces.empty()) {
    first.emplace_back([&] {
      for (const Json& object : {controller(), restapi_json(), nodeset_json("cpu", 2)}) world_.apply(object, kOtherNamespace);
    });
  }
  if (taken_key_) {
    const std::string name = slinky::generated_jwt_key_name(World::kCluster);
    world_.apply(secret_json(name, {{std::string(api::kKeyJwt), random_.bytes(32)}}));
  }
  // Some inputs are created only in the storm.
  for (const std::string& name : inputs()) {
    if (random_.chance(0.8)) first.emplace_back([this, name] { put_input(name); });
  }
  // The order is random, so an object is sometimes created before the objects that it names.
  for (std::size_t i = first.size(); i > 1; --i) std::swap(first[i - 1], first[random_.below(i)]);
  for (const auto& act : first) {
    act();
    world_.loop().run_for(Duration{random_.between(0, 2000)});
  }
  if (with_logins_) world_.apply(loginset_json(static_cast<int>(logins_.between(0, 2))));
  world_.loop().run_for(Duration{random_.between(0, 40000)});
}

std::vector<Workload::Action> OperatorWorkload::actions() {
  fill_user_actions();
  fill_child_actions();
  fill_input_actions();
  fill_token_actions();
  fill_slurm_actions();
  return std::move(actions_);
}

void OperatorWorkload::act_apart() {
  if (with_logins_ && logins_.chance(0.1)) touch_logins();
  if (with_accounting_ && accounting_.chance(0.05)) touch_accounting();
  if (!extra_.empty() && more_.chance(0.15)) act_one(extra_, more_);
  if (!draining_.empty() && drains_.chance(0.12)) act_one(draining_, drains_);
  if (with_volumes_ && volumes_.chance(0.08)) {
    const std::string name = kNodeSets[volumes_.below(kNodeSets.size())];
    if (world_.find(slinky::resources::kNodeSet, name) != nullptr)
      world_.merge(slinky::resources::kNodeSet, name, {{"spec", {{"persistentVolumeClaimRetentionPolicy", retention()}}}});
  }
  if (!updating_.empty() && updates_.chance(0.15)) act_one(updating_, updates_);
  if (!mode_actions_.empty() && modes_.chance(0.2)) act_one(mode_actions_, modes_);
}

/// Does every 10 s what people would do by hand. Most of it needs slurmctld. Resumes suspended jobs, which would hold their
/// workers forever. Deletes workers that the operator does not replace: a worker that cannot start while an administrator holds
/// its Slurm node, workers that Slurm has forgotten, and workers with another key than slurmctld's.
void OperatorWorkload::help_by_hand() {
  world_.loop().after(Duration{10000}, [this] { help_by_hand(); });
  look_after_orphans();
  SimSlurm* slurm = world_.slurm();
  if (slurm == nullptr) return;
  for (const auto& [id, job] : slurm->jobs()) {
    slurm->resume(id);
    // Cancels a job that never ran, as its user would do.
    if (job.unlaunched) slurm->cancel(id);
    // A pending job in a partition that is to be removed can wait forever, and the partition then stays.
    const auto partition = slurm->partitions().find(job.request.partition);
    const bool goes = partition != slurm->partitions().end() && partition->second.state == "DRAIN";
    if (goes && job.state == SimJob::State::kPending) slurm->cancel(id);
  }
  slurm->end_reservation(kReservation);
  // Deletes the reservations of a NodeSet that was deleted while Slurm was down for long.
  std::vector<std::string> left;
  for (const auto& [name, reservation] : slurm->reservations()) {
    const std::string nodeset = name.substr(std::min(name.size(), name.find('-') + 1));
    const Json* its = world_.find(slinky::resources::kNodeSet, nodeset);
    if (its == nullptr || its->dump().find(api::kFinalizerReservation) == std::string::npos) left.push_back(name);
  }
  for (const std::string& name : left) (void)slurm->delete_reservation(name);
  give_memory_back(*slurm);
  const Json* controller = world_.find(slinky::resources::kController, World::kCluster);
  if (controller != nullptr && controller->dump().find("\"RestartWithheld\"") != std::string::npos) {
    std::vector<std::int64_t> jobs;
    for (const auto& [id, job] : slurm->jobs()) {
      if (!job.ended()) jobs.push_back(id);
    }
    for (const std::int64_t job : jobs) slurm->cancel(job);
    world_.merge(slinky::resources::kController, World::kCluster,
                 {{"metadata", {{"annotations", {{std::string(api::kAnnotationLoseJobs), "true"}}}}}});
  }
  // Looks at all NodeSets, including those that are being deleted.
  const bool blank = std::ranges::any_of(
      world_.api().store().all(table_name(slinky::resources::kNodeSet)),
      [](const auto& entry) { return entry.second->body.dump().find("\"SlurmStateLost\"") != std::string::npos; });
  for (const std::string& name : world_.workers()) {
    const std::string node_name = slurm_node_of(*world_.find(kinds::kPod, name));
    const SimNode* node = slurm->node(node_name);
    const bool held = node != nullptr && (node->drain || node->down) && !given_by_operator(node->reason);
    const bool cannot_start = world_.find(kinds::kPod, name)->dump().find(kNoImage) != std::string::npos;
    // A new Controller does not know the key with which the workers of the previous Controller run.
    const bool cut_off = rekeyed_ && slurm->slurmd_runs(node_name) && !slurm->hears(node_name);
    if (!(blank && node == nullptr) && !(held && cannot_start) && !cut_off) continue;
    helped_ = true;
    world_.remove(kinds::kPod, name);
  }
}

std::vector<std::string> OperatorWorkload::calm() {
  put_slurm_key_back();
  bring_inputs_back();
  remove_taken_secrets();
  if (world_.find(slinky::resources::kController, World::kCluster) == nullptr) world_.apply(controller());
  if (world_.find(slinky::resources::kRestApi, World::kCluster) == nullptr) world_.apply(restapi_json());
  // A refused configuration stays refused until its user fixes it.
  const Json* named = world_.find(slinky::resources::kController, World::kCluster);
  if (core::get_string(*named, {"spec", "extraConf"}) == kRefusedConf)
    world_.merge(slinky::resources::kController, World::kCluster, {{"spec", {{"extraConf", "MessageTimeout=99\n"}}}});
  // The operator does not restore a deleted Accounting either.
  if (with_accounting_ && world_.find(slinky::resources::kAccounting, kAccounting) == nullptr) world_.apply(accounting_json());
  for (const std::string& name : world_.names(slinky::resources::kNodeSet)) {
    world_.merge(slinky::resources::kNodeSet, name, {{"spec", {{"slurmd", {{"image", nullptr}}}}}});
    if (!updating_.empty()) world_.merge(slinky::resources::kNodeSet, name, {{"spec", {{"updateStrategy", nullptr}}}});
  }
  if (world_.find(slinky::resources::kLoginSet, kLogin) != nullptr)
    world_.merge(slinky::resources::kLoginSet, kLogin, {{"spec", {{"login", {{"image", nullptr}}}}}});
  for (int i = 0; i < world_.options().kube_nodes; ++i) {
    world_.merge(kinds::kNode, "kube-" + std::to_string(i), {{"spec", {{"unschedulable", false}}}});
    taint("kube-" + std::to_string(i), "");
    for (const std::string_view key : api::kDrainTaints) taint("kube-" + std::to_string(i), "", std::string(key));
    if (!mode_actions_.empty()) {
      world_.merge(kinds::kNode, "kube-" + std::to_string(i),
                   {{"metadata", {{"labels", {{kPool, i % 2 == 0 ? Json("slurm") : Json(nullptr)}}}}}});
    }
  }
  help_by_hand();
  // Objects that were deleted at the last moment are created again, because the cluster must exist at the end. This can take
  // several rounds: a RestApi whose deletion waits for workers possibly needs its Controller first.
  std::vector<std::string> unmet;
  for (int round = 0; round < 4; ++round) {
    unmet = world_.settle(kSettle);
    // A NodeSet that was deleted meanwhile possibly left its workers behind.
    const bool adopted = look_after_orphans();
    const bool whole = world_.find(slinky::resources::kController, World::kCluster) != nullptr &&
                       world_.find(slinky::resources::kRestApi, World::kCluster) != nullptr;
    if ((whole && !adopted) || !world_.oracles().ok()) break;
    if (whole) continue;
    world_.apply(controller());
    world_.apply(restapi_json());
  }
  const Json workers = worker_starts();
  // If the operator has stopped deletions because it doubts Slurm's answers, its pending actions run after the next event.
  // These actions can start workers.
  const bool withheld = std::ranges::any_of(world_.names(slinky::resources::kNodeSet), [this](const std::string& name) {
    const Json* nodeset = world_.find(slinky::resources::kNodeSet, name);
    return nodeset != nullptr && condition_true(*nodeset, api::kConditionDeletionsStopped);
  });
  helped_ = false;
  program_.oracles().service().expect(unmet.empty());
  program_.oracles().jobs().set_fair(true);
  if (unmet.empty()) unmet = edit_one_by_one();
  program_.oracles().jobs().set_fair(false);
  if (unmet.empty() && world_.oracles().ok()) unmet = harm_one_by_one();
  if (!unmet.empty()) {
    // A violation ends settle() at once. Then the reasons only describe the state at that moment.
    const bool waited = world_.oracles().ok();
    return {(waited ? "the declared state is not reached: " : "at the violation there lacked: ") + first_few(unmet)};
  }
  // Cancels all jobs now: the operator writes to a worker when its job ends, which would count as a write at rest.
  if (SimSlurm* slurm = world_.slurm()) slurm->cancel_all();
  std::vector<std::string> wrong = check_rest(world_, program_.oracles(), kRest);
  program_.oracles().service().expect(false);
  // The edits since the storm do not concern workers, so no worker may have been created or started since. Without a volume,
  // this does not hold, because workers then end with slurmctld's state.
  if (!volatile_ && !helped_ && !withheld) differences(workers, worker_starts(), "starts", wrong);
  if (const std::vector<std::string> later = world_.oracles().unmet(); !later.empty()) {
    wrong.push_back("the declared state did not last: " + first_few(later));
  }
  return wrong;
}

/// Returns how often workers were created and slurmds started.
Json OperatorWorkload::worker_starts() const {
  Json out = Json::object();
  const Json all = program_.oracles().starts();
  for (const auto& [name, count] : all.items()) {
    if (name.starts_with("slurmd ") || name.starts_with("pod ")) out[name] = count;
  }
  return out;
}

/// Deletes the namespace, or all resources of the cluster. With Drain, jobs end first: the oracles check each deletion of a
/// worker.
std::vector<std::string> OperatorWorkload::end() {
  const bool drain = random_.chance(0.6);
  // The deletion of a namespace also deletes the objects of users, whatever the policy is. A slurmctld that restarts meanwhile
  // would lack its keys or files.
  const bool whole = random_.chance(0.5) && (!drain || (inputs().empty() && !taken_key_));
  world_.oracles().note(
      fmt::format("--- the {} is deleted, {} ---", whole ? "namespace" : "cluster", drain ? "Drain" : "Immediate"));
  world_.merge(slinky::resources::kController, World::kCluster,
               {{"spec", {{"deletionPolicy", drain ? "Drain" : "Immediate"}}}});
  for (int i = 0; i < 4; ++i) submit_job(some(kNodeSets));
  world_.loop().run_for(Duration{random_.between(0, 5000)});
  history_.weather();
  const kube::Key space{"", World::kNamespace};
  if (whole) {
    (void)world_.api().remove(kinds::kNamespace, space, {}, {});
  } else {
    const std::string propagation = random_.chance(0.5) ? "Foreground" : "Background";
    for (const kube::Resource& kind : {slinky::resources::kController, slinky::resources::kRestApi, slinky::resources::kNodeSet,
                                       slinky::resources::kLoginSet, slinky::resources::kToken}) {
      for (const std::string& name : world_.names(kind)) world_.remove(kind, name, propagation);
      world_.loop().run_for(Duration{random_.between(0, 1000)});
    }
  }
  world_.loop().run_for(Duration{random_.between(0, 30000)});
  history_.clear_up();
  const std::vector<kube::Resource> ours{
      slinky::resources::kController, slinky::resources::kRestApi, slinky::resources::kNodeSet, slinky::resources::kLoginSet,
      slinky::resources::kToken,      kinds::kStatefulSet,         kinds::kDeployment,          kinds::kPod};
  const auto left = [&] {
    std::vector<std::string> out;
    for (const kube::Resource& kind : ours) {
      for (const std::string& name : world_.names(kind)) out.push_back(kind.plural + "/" + name);
    }
    for (const std::string& name : world_.names(kinds::kSecret)) {
      const Json labels = (*world_.find(kinds::kSecret, name))["metadata"].value("labels", Json::object());
      if (core::get_string(labels, {api::kLabelName}) == slinky::kAppToken) out.push_back("secrets/" + name);
    }
    if (whole && world_.api().peek(kinds::kNamespace, space) != nullptr) out.emplace_back("the namespace itself");
    return out;
  };
  if (!world_.loop().run_until([&] { return left().empty(); }, kSettle))
    return {"what was deleted does not go: " + first_few(left())};
  return {};
}

}  // namespace sim
