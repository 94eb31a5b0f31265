#include "operator/controller/draft.hpp"

#include <algorithm>

#include "api/well_known.hpp"
#include "kube/acts.hpp"
#include "operator/common/children.hpp"
#include "operator/common/slinky.hpp"
#include "operator/controller/build.hpp"
#include "operator/controller/rollout.hpp"
#include "slinky/workers.hpp"
#include "slurm/acts.hpp"

namespace op::controller {
namespace {

/// Removes `maxUnavailable`, which the Go operator or an earlier release set. The API server refuses a budget with both
/// `maxUnavailable` and `minAvailable`, but server-side apply retains fields of other managers. With neither field, no eviction
/// is allowed.
std::optional<plan::Step> drop_max_unavailable(const kube::Object* budget) {
  constexpr const char* kField = "maxUnavailable";
  if (budget == nullptr || budget->meta.terminating() || core::find(budget->body, {"spec", kField}) == nullptr) return {};
  core::Json operations = core::Json::array({{{"op", "remove"}, {"path", std::string("/spec/") + kField}}});
  return plan::Step{{std::string("drop ") + kField + " of", "PodDisruptionBudget", budget->meta.name},
                    "it allows evictions while a NodeSet is scaled in",
                    kube::patch_any_version(kube::resources::kPodDisruptionBudget, budget->meta, std::move(operations),
                                            kube::PatchType::kJson)};
}

/// Returns the workers' PodDisruptionBudget. nullopt: not known yet. Null: it does not exist. If the cache does not have the
/// budget, reads it live, because a budget of the Go operator lacks the labels by which our cache selects.
std::optional<kube::ObjectPtr> find_budget(Draft& draft) {
  constexpr core::Duration kReadAgain{5000};
  const Observed& observed = draft.observed;
  if (observed.workers_pdb) return observed.workers_pdb;
  const std::string name = workers_pdb_name(observed.object->meta.name);
  const core::Result<core::Json>* budget = read_live(draft, kube::resources::kPodDisruptionBudget, name);
  if (budget == nullptr) return {};
  if (*budget) return std::make_shared<kube::Object>(kube::Object{kube::parse_meta(**budget), **budget});
  if (budget->error().code == core::ErrorCode::kNotFound) return nullptr;
  draft.plan.wake_after(kReadAgain, "fields of the workers' PodDisruptionBudget that others have set decide how it is applied");
  return {};
}

}  // namespace

Conditions conditions_of(const Observed& observed) {
  return {observed.controller.status.conditions, observed.object->meta.generation, observed.context.now};
}

void append(std::vector<Problem>& into, std::vector<Problem> more) {
  into.insert(into.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

const core::Result<core::Json>* read_live(Draft& draft, const kube::Resource& resource, const std::string& name) {
  const std::string id = resource.kind + " " + name;
  const plan::Facts& facts = draft.observed.context.facts;
  if (const auto found = facts.find(id); found != facts.end()) return &found->second.value;
  auto get = std::make_shared<kube::Get>();
  get->resource = resource;
  get->key = {draft.observed.object->meta.ns, name};
  draft.plan.need({id, std::move(get)});
  return nullptr;
}

bool claim_goes(const Observed& observed) {
  return observed.claim && observed.claim->meta.terminating();
}

bool state_at_stake(const Observed& observed) {
  if ((observed.controller.spec.persistence.enabled && !claim_goes(observed)) || !observed.stateful_set) return false;
  // A slurmctld that crashes repeatedly still has the state with which it served, because only the container is restarted.
  const kube::PodRecord* pod = running_pod(observed);
  const std::string served_by = read_config_state(observed.config_map.get()).served_by;
  const bool served = pod != nullptr && !served_by.empty() && served_by == pod->meta.uid;
  return (has_state(observed) || served) && !is_true(observed.object->meta.annotation(api::kAnnotationLoseJobs));
}

bool jobs_at_stake(const Observed& observed) {
  if (!state_at_stake(observed)) return false;
  if (observed.restapis.empty()) return !observed.workers.empty();
  if (!observed.snapshot || !observed.snapshot->complete()) return true;
  return std::ranges::any_of(observed.snapshot->jobs, [](const auto& entry) { return entry.second->in_queue(); });
}

void plan_guard(Draft& draft) {
  if (auto act = kube::add_finalizer(resources::kController, draft.observed.object->meta, api::kFinalizerController)) {
    draft.plan.lane("guard").add(
        {{"add", "finalizer"}, "workers and RestApis are deleted before their slurmctld", std::move(act)});
  }
}

Keyring plan_copy(Draft& draft) {
  constexpr core::Duration kLookAgain{5000};
  Keyring keyring = plan_keyring(draft.observed, jobs_at_stake(draft.observed));
  plan::Lane& lane = draft.plan.lane("keys");
  lane.add(std::move(keyring.mend));
  if (keyring.rotation) {
    for (plan::Step& step : keyring.rotation->witnesses) draft.plan.lane("witnesses").add(std::move(step));
  }
  // The deletion of a worker does not start a pass for the Controller.
  if (keyring.problem) draft.plan.wake_after(kLookAgain, "daemons that the new key would cut off may have ended");
  return keyring;
}

void plan_workers_objects(Draft& draft) {
  const Observed& observed = draft.observed;
  draft.plan.lane("network").add(apply_step(kube::resources::kService, build_workers_service(observed),
                                            observed.workers_service.get(), kManagerController));
  const std::optional<kube::ObjectPtr> budget = find_budget(draft);
  if (!budget) return;
  plan::Lane& lane = draft.plan.lane("pdb");
  lane.add(drop_max_unavailable(budget->get()));
  lane.then();
  lane.add(apply_step(kube::resources::kPodDisruptionBudget, build_workers_pdb(draft.observed),
                      draft.observed.workers_pdb.get(), kManagerController));
}

void plan_records(Draft& draft) {
  constexpr std::size_t kRecordsPerPass = 32;
  const Observed& observed = draft.observed;
  if (observed.stopped || !observed.doubt.empty()) return;
  plan::Lane& lane = draft.plan.lane("records");
  for (const StaleRecord& record : observed.stale_records) {
    if (!record.evidence || draft.plan.step_count() >= kRecordsPerPass)
      return draft.plan.wake_after(core::Duration{1000}, "Slurm still has node records of workers");
    const std::string& why = record.evidence->detail();
    lane.add({{"delete", "Slurm node", record.node}, why, slurm::delete_node(slurm::Owner::kOperator, *record.evidence, why)});
  }
}

void set_key_condition(Conditions& conditions, Draft& draft, const Keyring& keyring) {
  if (keyring.rotation) {
    conditions.set(api::kConditionKeyChanged, true, "Rotating",
                   "the key in Secret " + draft.observed.slurm_key.ref.secret +
                       " comes into force while daemons run: " + keyring.rotation->told);
  }
  const std::optional<Problem>& problem = keyring.problem;
  if (!problem) return;
  std::string text = problem->message;
  if (!keyring.cannot_rotate.empty())
    text += ". They cannot take effect without an interruption because of: " + keyring.cannot_rotate;
  if (!keyring.waits_for.empty()) {
    text += ". The data in Secret " + draft.observed.slurm_key.ref.secret + " take effect automatically" +
            (draft.observed.controller.spec.external ? "" : ", with a restart of slurmctld") +
            ", as soon as nothing prevents it. Waiting for: " + keyring.waits_for;
  }
  if (const std::vector<std::string>& old = draft.observed.old_mounts; !old.empty()) {
    text +=
        "; slurmctld is neither reconfigured nor replaced until the previous data are restored, or these pods are replaced, "
        "which an earlier version created and which mount that Secret directly: " +
        some_of(old);
  }
  conditions.set(api::kConditionKeyChanged, true, problem->reason, std::move(text));
  draft.problems.push_back(*problem);
}

std::vector<Problem> token_problems(const Observed& observed) {
  if (!observed.snapshot || observed.snapshot->complete() || observed.snapshot->error_code != core::ErrorCode::kUnauthorized)
    return {};
  return {{"TokenRefused", "Slurm refuses tokens signed with the key " + observed.jwt_key.ref.key + " of Secret " +
                               observed.object->meta.ns + "/" + observed.jwt_key.ref.secret + ": " + observed.snapshot->error}};
}

void plan_status(Draft& draft, Conditions conditions, bool ready) {
  // slurmctld can be starting only if the StatefulSet exists or no error prevents its creation.
  const bool made = draft.observed.stateful_set || std::ranges::none_of(draft.problems, &Problem::wrong);
  if (!ready && draft.waiting.empty() && !draft.blocked && made) draft.waiting = "slurmctld is starting";
  set_summary(conditions, ready, draft.problems, draft.waiting);
  const kube::Object& object = *draft.observed.object;
  // Adding the finalizer in this pass changes the resourceVersion on which the status write depends. So the status is written
  // in the next pass.
  if (draft.plan.lanes().contains("guard")) return;
  // A refused configuration has an event of its own, so it needs no event about the condition Degraded.
  const api::Condition* degraded = api::find_condition(conditions.all(), api::kConditionDegraded);
  const bool told = degraded != nullptr && degraded->reason == "ConfigRefused" && draft.plan.lanes().contains("events");
  if (!told) {
    draft.plan.lane("events").add(
        degraded_event(resources::kController, object.meta, draft.observed.controller.status.conditions, conditions));
  }
  core::Json status{{"observedGeneration", object.meta.generation}, {"conditions", conditions.json()}};
  draft.plan.lane("status").add(status_step(resources::kController, object, std::move(status)));
}

}  // namespace op::controller
