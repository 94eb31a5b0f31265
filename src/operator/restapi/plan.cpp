#include "operator/restapi/plan.hpp"

#include "api/well_known.hpp"
#include "cluster/config_map.hpp"
#include "cluster/status.hpp"
#include "kube/acts.hpp"
#include "operator/common/check.hpp"
#include "operator/common/children.hpp"
#include "operator/common/deletions.hpp"
#include "operator/common/deployments.hpp"

namespace op::restapi {
namespace {

/// Everything that the pod mounts is there.
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
  // A finalizer that is added in this pass changes the resourceVersion, which a status is written under: it comes with the
  // next.
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
  // Nothing starts that was never made.
  const bool made = observed.deployment || std::ranges::none_of(problems, &Problem::wrong);
  plan_status(observed, std::move(problems), rolled_out(observed), made ? "slurmrestd is starting" : "", plan);
}

/// What still needs slurmrestd, in words, or "".
std::string needed_by(const Observed& observed, const std::vector<std::string>& ending, bool lasting, plan::Plan& plan) {
  if (!ending.empty()) return "waiting for NodeSets to be deleted: " + some_of(ending);
  if (!observed.ending_workers.empty()) return "waiting for workers to end: " + some_of(observed.ending_workers);
  const core::Duration left = lasting ? left_for_company(observed.object->meta, observed.context.now) : core::Duration{0};
  if (left <= core::Duration{0}) return "";
  std::string waiting = "waiting to see whether NodeSets are deleted as well";
  plan.wake_after(left, waiting);
  return waiting;
}

/// The same by the API server's own word: what a cache does not show whose watch is cut may be there all the same. nullopt
/// until it has been asked, which is done then.
std::optional<std::string> needed_live(const Observed& observed, plan::Plan& plan) {
  constexpr core::Duration kAskAgain{2000};
  const plan::Facts& facts = observed.context.facts;
  const auto found = facts.find("NodeSets");
  if (found == facts.end()) {
    auto list = std::make_shared<kube::List>();
    list->resource = resources::kNodeSet;
    list->ns = observed.object->meta.ns;
    plan.need({"NodeSets", std::move(list)});
    return std::nullopt;
  }
  const core::Result<core::Json>& nodesets = found->second.value;
  if (!nodesets) {
    plan.wake_after(kAskAgain, "the NodeSets are asked for again");
    return "waiting for the API server to list the NodeSets: " + one_line(nodesets.error().message);
  }
  const std::string controller = core::get_string(observed.object->body, {"spec", "controllerRef", "name"});
  std::vector<std::string> ending;
  bool lasting = false;
  for (const core::Json& nodeset : (*nodesets)["items"]) {
    if (core::get_string(nodeset, {"spec", "controllerRef", "name"}) != controller) continue;
    if (core::get_string(nodeset, {"metadata", "deletionTimestamp"}).empty()) {
      lasting = true;
    } else {
      ending.push_back(core::get_string(nodeset, {"metadata", "name"}));
    }
  }
  if (!ending.empty()) plan.wake_after(kAskAgain, "the NodeSets are asked for again");
  return needed_by(observed, ending, lasting, plan);
}

void plan_end(const Observed& observed, plan::Plan& plan) {
  plan.intent.summary = "end slurmrestd";
  std::string waiting = needed_by(observed, observed.ending_nodesets, observed.lasting_nodesets, plan);
  bool drains = !observed.ending_nodesets.empty() || !observed.ending_workers.empty();
  if (waiting.empty()) {
    const std::optional<std::string> live = needed_live(observed, plan);
    if (!live) return;
    waiting = *live;
    drains = true;
  }
  if (waiting.empty()) {
    if (auto act = kube::remove_finalizer(resources::kRestApi, observed.object->meta, api::kFinalizerRestApi)) {
      plan.lane("tidy").add({{"remove", "finalizer"}, "no NodeSet is drained through it any more", std::move(act)});
    }
    return;
  }
  plan.intent.summary += ": " + waiting;
  // What is drained through it may need one that was not made yet, or that must be made anew.
  if (observed.parse_error.empty() && drains) plan_children(observed, plan);
  plan_status(observed, {{"Terminating", "the RestApi is being deleted", Problem::Kind::kComing}}, false, waiting, plan);
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
