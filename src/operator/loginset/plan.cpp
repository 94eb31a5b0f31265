#include "operator/loginset/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/well_known.hpp"
#include "core/hash.hpp"
#include "kube/acts.hpp"
#include "operator/common/check.hpp"
#include "operator/common/children.hpp"
#include "operator/common/deployments.hpp"
#include "operator/common/slinky.hpp"
#include "operator/common/ssh.hpp"
#include "operator/loginset/hosts.hpp"
#include "operator/loginset/sessions.hpp"
#include "slinky/status.hpp"

namespace op::loginset {
namespace {

bool rolled_out(const Observed& observed) {
  return op::rolled_out(observed.deployment.get(), observed.loginset.spec.replicas);
}

/// True if everything that the pod mounts exists.
bool mountable(const Observed& observed) {
  const bool users_known = !observed.loginset.spec.sssd_conf_ref || observed.sssd_conf.usable();
  return observed.keyring.usable() && users_known && observed.config_map && !usable_host_keys(observed.host_keys).empty();
}

/// Adds problems of the Controller and of the Controller's key.
void add_controller_problems(const Observed& observed, std::vector<Problem>& out) {
  const std::string& ns = observed.object->meta.ns;
  const std::string controller = ns + "/" + observed.loginset.spec.controller_ref.name;
  if (!observed.controller_exists) {
    out.push_back({"ControllerMissing", "spec.controllerRef.name: Controller " + controller + " does not exist"});
  } else if (!observed.controller_error.empty()) {
    out.push_back({"ControllerInvalid", "Controller " + controller + ": " + observed.controller_error});
  } else if (!observed.keyring.usable()) {
    const std::string field = "Controller " + controller + ", spec.slurmKeyRef";
    std::optional<Problem> problem = key_problem(observed.slurm_key, ns, field);
    if (!problem) problem = key_problem(observed.keyring, ns, field);
    if (problem) out.push_back(std::move(*problem));
  }
}

std::vector<Problem> problems_of(const Observed& observed, plan::Plan& plan) {
  const std::string& ns = observed.object->meta.ns;
  std::vector<Problem> out = observed.missing;
  out.insert(out.end(), observed.keys_problems.begin(), observed.keys_problems.end());
  add_controller_problems(observed, out);
  if (observed.loginset.spec.sssd_conf_ref) {
    if (std::optional<Problem> problem = key_problem(observed.sssd_conf, ns, "spec.sssdConfRef"))
      out.push_back(std::move(*problem));
  }
  if (std::optional<Problem> problem =
          host_keys_problem(observed.host_keys, {ns, ssh_host_keys_name(observed.object->meta.name)}))
    out.push_back(std::move(*problem));
  if (observed.newer) out.push_back(*observed.newer);
  for (Problem& problem : pod_problems(pods_that_count(observed.pods, rolled_out(observed)))) out.push_back(std::move(problem));
  for (Problem& problem : refused_files(observed.pods)) out.push_back(std::move(problem));
  for (Problem& problem : step_problems(observed.context.outcomes, plan)) out.push_back(std::move(problem));
  if (std::optional<Problem> refused = pods_refused(observed.deployment.get())) out.push_back(std::move(*refused));
  for (Problem& problem : waits_for_sessions(observed, plan)) out.push_back(std::move(problem));
  return out;
}

void plan_status(const Observed& observed, const std::vector<Problem>& problems, bool ready, const std::string& waiting,
                 plan::Plan& plan) {
  const kube::Object& object = *observed.object;
  Conditions conditions(observed.loginset.status.conditions, object.meta.generation, observed.context.now);
  set_fields_not_acted_on(conditions, api::fields_not_acted_on(observed.loginset.spec));
  set_summary(conditions, ready, problems, ready ? "" : waiting);
  plan.lane("events").add(degraded_event(resources::kLoginSet, object.meta, observed.loginset.status.conditions, conditions));
  const auto count = [&](const char* which) {
    return observed.deployment ? core::get_int(observed.deployment->body, {"status", which}) : 0;
  };
  core::Json status{
      {"replicas", count("replicas")},
      {"readyReplicas", count("readyReplicas")},
      {"observedGeneration", object.meta.generation},
      {"conditions", conditions.json()},
      {"selector", fmt::format("{}={},{}={}", api::kLabelInstance, object.meta.name, api::kLabelName, kAppLogin)}};
  plan.lane("status").add(status_step(resources::kLoginSet, object, std::move(status)));
}

/// Makes kubelets refresh the authorized keys. A kubelet refreshes a pod's mounts at once if an annotation of the pod changes,
/// and otherwise within two minutes.
void plan_refresh(const Observed& observed, plan::Plan& plan) {
  const std::string digest = core::short_digest(observed.loginset.spec.root_ssh_authorized_keys + '\n' + observed.users_keys);
  for (const kube::PodPtr& pod : observed.pods) {
    if (pod->meta.terminating() || pod->phase != "Running") continue;
    if (pod->meta.annotation(api::kAnnotationConfigRefresh) == digest) continue;
    plan.lane("ssh").add(
        {{"refresh", "Pod", pod->meta.name, digest},
         "its kubelet is to refresh the authorized keys",
         kube::patch_any_version(kube::resources::kPod, pod->meta,
                                 {{"metadata", {{"annotations", {{std::string(api::kAnnotationConfigRefresh), digest}}}}}})});
  }
}

void plan_children(const Observed& observed, plan::Plan& plan) {
  const std::string& name = observed.object->meta.name;
  // If a user has created a Secret with this name, the operator uses the host keys in that Secret.
  if (observed.host_keys.presence == kube::Presence::kAbsent) {
    plan.lane("keys").add({{"create", "Secret", ssh_host_keys_name(name)},
                           "there are no host keys yet",
                           kube::create(kube::resources::kSecret, build_host_keys(observed))});
  }
  // sshd_config names the host keys, so the operator writes sshd_config only when the host keys exist.
  bool refreshed = !usable_host_keys(observed.host_keys).empty();
  if (refreshed) {
    std::optional<plan::Step> config =
        apply_step(kube::resources::kConfigMap, build_ssh_config(observed), observed.config_map.get(), kManagerLoginSet);
    refreshed = !config;
    plan.lane("ssh").add(std::move(config));
  }
  if (refreshed) plan_refresh(observed, plan);
  plan.lane("network").add(
      apply_step(kube::resources::kService, build_service(observed), observed.service.get(), kManagerLoginSet));
  // The Deployment is applied only after the ConfigMap, because new pods must find the sshd_config whose hash is in their
  // annotation.
  if (!refreshed || !observed.controller_exists || !observed.controller_error.empty() || !mountable(observed) || observed.newer)
    return;
  core::Json deployment = build_deployment(observed);
  std::optional<plan::Step> way =
      make_way_step(kube::resources::kDeployment, deployment, observed.deployment.get(), observed.context.outcomes);
  std::optional<plan::Step> apply =
      apply_step(kube::resources::kDeployment, std::move(deployment), observed.deployment.get(), kManagerLoginSet);
  // The Deployment changes in a later pass, once the operator's caches show the pods' deletion costs. Kubernetes' ReplicaSet
  // controller uses a cache as well, so it also needs time to see these costs.
  if (!rank_pods(observed, apply.has_value(), plan)) return;
  plan::Lane& lane = plan.lane("pod");
  lane.add(std::move(way));
  lane.then();
  lane.add(std::move(apply));
}

}  // namespace

plan::Plan plan(const Observed& observed) {
  plan::Plan out;
  if (!observed.object) return out;
  if (observed.object->meta.terminating()) {
    // Kubernetes deletes the children with the LoginSet, so the operator deletes no children. In a foreground deletion, the
    // LoginSet exists until its last pod is gone, and slurmctld must resolve the names of the pods until then.
    if (observed.parse_error.empty()) plan_hosts(observed, out);
    std::vector<Problem> problems = waits_for_sessions(observed, out);
    problems.insert(problems.begin(), Problem{kReasonTerminating, "the LoginSet is being deleted", Problem::Kind::kComing});
    plan_status(observed, problems, false, "", out);
    return out;
  }
  if (!observed.parse_error.empty()) {
    plan_status(observed, {{"Invalid", observed.parse_error}}, false, "", out);
    return out;
  }
  plan_children(observed, out);
  plan_hosts(observed, out);
  const std::vector<Problem> problems = problems_of(observed, out);
  // Login pods can be starting only if the Deployment exists or no error prevents its creation.
  const bool made = observed.deployment || std::ranges::none_of(problems, &Problem::wrong);
  plan_status(observed, problems, rolled_out(observed), made ? "login pods are starting" : "", out);
  return out;
}

}  // namespace op::loginset
