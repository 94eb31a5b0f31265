#include "operator/restapi/plan.hpp"

#include "api/well_known.hpp"
#include "kube/acts.hpp"
#include "operator/common/check.hpp"
#include "operator/common/children.hpp"
#include "operator/common/deletions.hpp"
#include "operator/common/deployments.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/config_map.hpp"
#include "slinky/status.hpp"

namespace op::restapi {
namespace {

/// True if all objects exist that the operator mounts in the pod. Volumes of the user's pod template are not checked.
bool mountable(const Observed& observed) {
  return observed.config_map && core::find(observed.config_map->body, {"data", kSlurmConf}) != nullptr &&
         (!observed.restapi.spec.sssd_conf_ref || observed.sssd_conf.usable());
}

bool rolled_out(const Observed& observed) {
  return op::rolled_out(observed.deployment.get(), observed.restapi.spec.replicas);
}

std::vector<Problem> problems_of(const Observed& observed, const plan::Plan& plan) {
  const std::string& ns = observed.object->meta.ns;
  const std::string controller = ns + "/" + observed.restapi.spec.controller_ref.name;
  std::vector<Problem> out = observed.missing;
  if (!observed.controller_exists) {
    out.push_back({"ControllerMissing", "spec.controllerRef.name: Controller " + controller + " does not exist"});
  } else if (!observed.controller_error.empty()) {
    out.push_back({"ControllerInvalid", "Controller " + controller + ": " + observed.controller_error});
  } else if (!observed.config_map) {
    out.push_back({"Waiting", "Controller " + controller + " has no configuration yet", Problem::Kind::kComing});
  }
  if (observed.newer) out.push_back(*observed.newer);
  if (observed.restapi.spec.sssd_conf_ref) {
    if (std::optional<Problem> problem = key_problem(observed.sssd_conf, ns, "spec.sssdConfRef"))
      out.push_back(std::move(*problem));
  }
  for (Problem& problem : pod_problems(pods_that_count(observed.pods, rolled_out(observed)))) out.push_back(std::move(problem));
  for (Problem& problem : refused_files(observed.pods)) out.push_back(std::move(problem));
  for (Problem& problem : step_problems(observed.context.outcomes, plan)) out.push_back(std::move(problem));
  if (std::optional<Problem> refused = pods_refused(observed.deployment.get())) out.push_back(std::move(*refused));
  return out;
}

void plan_status(const Observed& observed, std::vector<Problem> problems, bool ready, const std::string& waiting,
                 plan::Plan& plan) {
  // Adding the finalizer in this pass changes the resourceVersion on which the status write depends. So the next pass writes
  // the status.
  if (plan.lanes().contains("guard")) return;
  const kube::Object& object = *observed.object;
  Conditions conditions(observed.restapi.status.conditions, object.meta.generation, observed.context.now);
  set_fields_not_acted_on(conditions, api::fields_not_acted_on(observed.restapi.spec));
  set_summary(conditions, ready, problems, ready ? "" : waiting);
  plan.lane("events").add(degraded_event(resources::kRestApi, object.meta, observed.restapi.status.conditions, conditions));
  core::Json status{{"observedGeneration", object.meta.generation}, {"conditions", conditions.json()}};
  plan.lane("status").add(status_step(resources::kRestApi, object, std::move(status)));
}

void plan_children(const Observed& observed, plan::Plan& plan) {
  plan.lane("network").add(
      apply_step(kube::resources::kService, build_service(observed), observed.service.get(), kManagerRestApi));
  if (observed.controller_exists && mountable(observed) && !observed.newer && knows_address(observed)) {
    plan::Lane& lane = plan.lane("pod");
    core::Json deployment = build_deployment(observed);
    lane.add(make_way_step(kube::resources::kDeployment, deployment, observed.deployment.get(), observed.context.outcomes));
    lane.then();
    lane.add(apply_step(kube::resources::kDeployment, std::move(deployment), observed.deployment.get(), kManagerRestApi));
  }
}

void plan_running(const Observed& observed, plan::Plan& plan) {
  const kube::ObjectMeta& meta = observed.object->meta;
  if (auto act = kube::add_finalizer(resources::kRestApi, meta, api::kFinalizerRestApi)) {
    plan.lane("guard").add({{"add", "finalizer"}, "NodeSets that are deleted are drained through it", std::move(act)});
  }
  plan_children(observed, plan);
  std::vector<Problem> problems = problems_of(observed, plan);
  // slurmrestd can be starting only if the Deployment exists or no error prevents its creation.
  const bool made = observed.deployment || std::ranges::none_of(problems, &Problem::wrong);
  plan_status(observed, std::move(problems), rolled_out(observed), made ? "slurmrestd is starting" : "", plan);
}

void plan_end(const Observed& observed, plan::Plan& plan) {
  plan.intent.summary = "end slurmrestd";
  const std::vector<std::string>& workers = observed.ending_workers;
  const Referrers nodesets{.resource = resources::kNodeSet,
                           .field = "controllerRef",
                           .name = core::get_string(observed.object->body, {"spec", "controllerRef", "name"}),
                           .ending = observed.ending_nodesets,
                           .lasting = observed.lasting_nodesets,
                           .others = workers.empty() ? "" : "waiting for workers to end: " + some_of(workers)};
  const std::optional<Needed> needed = needed_by(observed.context, observed.object->meta, nodesets, plan);
  if (!needed) return;
  if (needed->waiting.empty()) {
    if (auto act = kube::remove_finalizer(resources::kRestApi, observed.object->meta, api::kFinalizerRestApi)) {
      plan.lane("tidy").add({{"remove", "finalizer"}, "no NodeSet is drained through it any more", std::move(act)});
    }
    return;
  }
  plan.intent.summary += ": " + needed->waiting;
  // Workers can be drained only through slurmrestd, so the children are still applied: slurmrestd might not exist yet, or its
  // pods might have to be replaced.
  if (observed.parse_error.empty() && needed->at_work) plan_children(observed, plan);
  plan_status(observed, {{"Terminating", "the RestApi is being deleted", Problem::Kind::kComing}}, false, needed->waiting,
              plan);
}

}  // namespace

plan::Plan plan(const Observed& observed) {
  plan::Plan out;
  if (!observed.object) return out;
  if (observed.object->meta.terminating()) {
    plan_end(observed, out);
  } else if (!observed.parse_error.empty()) {
    plan_status(observed, {{"Invalid", observed.parse_error}}, false, "", out);
  } else {
    plan_running(observed, out);
  }
  return out;
}

}  // namespace op::restapi
