#include "operator/common/policies.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "api/well_known.hpp"
#include "kube/acts.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/names.hpp"

namespace op {
namespace {

using core::Json;

std::string literal(std::string_view text) {
  return "'" + std::string(text) + "'";
}

bool terminating(const Json& object) {
  return core::find(object, {"metadata", "deletionTimestamp"}) != nullptr;
}

std::string label(const Json& object, std::string_view name) {
  return core::get_string(object, {"metadata", "labels", name});
}

// --- Terms of the object ---

/// The object is already being deleted, for example because the user or the operator has deleted it.
Clause ending() {
  return {"ending", "has(oldObject.metadata.deletionTimestamp)", [](const Deletion& d) { return terminating(d.object); }};
}

Clause ended() {
  return {"ended", "oldObject.?status.?phase.orValue('') in ['Failed', 'Succeeded']", [](const Deletion& d) {
            const std::string phase = core::get_string(d.object, {"status", "phase"});
            return phase == "Failed" || phase == "Succeeded";
          }};
}

/// The pod is not bound to a node, so nothing runs in the pod. On a node, slurmd can already run jobs before the kubelet has
/// reported any container.
Clause never_started() {
  return {"neverStarted", "oldObject.spec.?nodeName.orValue('') == ''", [](const Deletion& d) {
            return core::get_string(d.object, {"spec", "nodeName"}).empty();
          }};
}

/// The operator has recorded why the deletion of the pod is allowed.
Clause evidence() {
  return {"evidence", literal(api::kAnnotationDeletionEvidence) + " in oldObject.metadata.?annotations.orValue({})",
          [](const Deletion& d) {
            return core::find(d.object, {"metadata", "annotations", api::kAnnotationDeletionEvidence}) != nullptr;
          }};
}

/// A user has allowed the deletion.
Clause released() {
  return {"released", "oldObject.metadata.?annotations[?" + literal(api::kAnnotationPodRelease) + "].orValue('') == 'true'",
          [](const Deletion& d) {
            return core::get_string(d.object, {"metadata", "annotations", api::kAnnotationPodRelease}) == "true";
          }};
}

/// The object is not a worker. Workers have their own policy.
Clause no_worker() {
  return {"no-worker",
          "request.resource.resource != 'pods' || oldObject.metadata.labels[" + literal(api::kLabelName) +
              "] != " + literal(kAppWorker),
          [](const Deletion& d) { return d.resource.plural != "pods" || label(d.object, api::kLabelName) != kAppWorker; }};
}

// --- Terms of the object's namespace, and of the parameter ---

/// The object's namespace is being deleted.
Clause namespace_ends() {
  return {"namespaceEnds",
          "(has(namespaceObject.metadata.deletionTimestamp) || request.userInfo.username.endsWith(':namespace-controller'))",
          [](const Deletion& d) {
            return (d.space != nullptr && terminating(*d.space)) || d.user.ends_with(":namespace-controller");
          }};
}

Clause drains() {
  return {"drains", "params.spec.?deletionPolicy.orValue('Immediate') == 'Drain'", [](const Deletion& d) {
            return core::get_string(*d.params, {"spec", "deletionPolicy"}) == "Drain";
          }};
}

/// The parameter is being deleted, and still has the operator's finalizer.
Clause ends(std::string_view finalizer) {
  return {"ends",
          "has(params.metadata.deletionTimestamp) && has(params.metadata.finalizers) && params.metadata.finalizers.exists(f, f "
          "== " +
              literal(finalizer) + ")",
          [finalizer](const Deletion& d) { return terminating(*d.params) && kube::has_finalizer(*d.params, finalizer); }};
}

/// The parameter is an owner of the object.
Clause owned() {
  return {"owned", "oldObject.metadata.?ownerReferences.orValue([]).exists(o, o.uid == params.metadata.uid)",
          [](const Deletion& d) {
            const Json* owners = core::find(d.object, {"metadata", "ownerReferences"});
            const std::string uid = core::get_string(*d.params, {"metadata", "uid"});
            return owners != nullptr &&
                   std::ranges::any_of(*owners, [&](const Json& owner) { return core::get_string(owner, {"uid"}) == uid; });
          }};
}

// --- Combinations of terms ---

std::string joined(const std::vector<Clause>& clauses, std::string_view between) {
  std::string out;
  for (const Clause& clause : clauses) out += (out.empty() ? "" : std::string(between)) + clause.cel;
  return out;
}

bool any_holds(const std::vector<Clause>& clauses, const Deletion& deletion) {
  return std::ranges::any_of(clauses, [&](const Clause& clause) { return clause.holds(deletion); });
}

bool all_hold(const std::vector<Clause>& clauses, const Deletion& deletion) {
  return std::ranges::all_of(clauses, [&](const Clause& clause) { return clause.holds(deletion); });
}

Clause either(std::vector<Clause> clauses) {
  const std::string cel = "(" + joined(clauses, " || ") + ")";
  return {"either", cel, [clauses = std::move(clauses)](const Deletion& d) { return any_holds(clauses, d); }};
}

/// Returns the negation of the clause. If the clause's CEL is a compound expression, it must be in parentheses.
Clause no(Clause clause) {
  const std::string cel = "!" + clause.cel;
  return {"no", cel, [clause = std::move(clause)](const Deletion& d) { return !clause.holds(d); }};
}

/// True unless all clauses in `needed` hold.
Clause unneeded(std::vector<Clause> needed) {
  const std::string cel = "!(" + joined(needed, " && ") + ")";
  return {"unneeded", cel, [needed = std::move(needed)](const Deletion& d) { return !all_hold(needed, d); }};
}

// --- The policies ---

/// If a NodeSet, a Controller or a namespace is deleted, Kubernetes' controllers delete the pods, even while jobs run in the
/// pods. This policy refuses these deletions until the operator has recorded, in an annotation of the pod, why the deletion is
/// allowed. The operator itself deletes drained workers.
AdmissionPolicy workers() {
  return {.name = "workers",
          .deleters = Deleters::kCleaners,
          .labels = {.equal = {{std::string(api::kLabelName), std::string(kAppWorker)}},
                     .exist = {std::string(api::kLabelCluster)}},
          .groups = {""},
          .versions = {"v1"},
          .resources = {"pods"},
          .passes = {evidence(), ending(), ended(), never_started()},
          .variables = true,
          .subject = "worker",
          .message = " may run jobs: slurm-operator has not released it (annotation " +
                     std::string(api::kAnnotationDeletionEvidence) + ")"};
}

/// Refuses deletions of workers that run jobs. The operator marks these workers with a label.
AdmissionPolicy busy(std::string name, Deleters deleters) {
  return {
      .name = std::move(name),
      .deleters = deleters,
      .labels = {.equal = {{std::string(api::kLabelName), std::string(kAppWorker)}, {std::string(api::kLabelPodBusy), "true"}}},
      .groups = {""},
      .versions = {"v1"},
      .resources = {"pods"},
      .passes = {ending(), ended(), released(), evidence()},
      .subject = "worker",
      .message = " runs jobs. Drain it first with the annotation " + std::string(api::kAnnotationPodCordon) +
                 "=true, or allow its deletion, which ends its jobs, with the annotation " +
                 std::string(api::kAnnotationPodRelease) + "=true"};
}

/// Returns the common part of the policies below. These policies refuse deletions of objects that are needed to drain workers,
/// while a Controller with deletionPolicy Drain, a RestApi, or their namespace is being deleted. The policies fail open,
/// because without the custom resource definitions nothing is left to drain.
AdmissionPolicy kept(std::string name, const kube::Resource& params, std::vector<std::string> apps) {
  AdmissionPolicy out{.name = std::move(name),
                      .deleters = Deleters::kCleaners,
                      .fails_open = true,
                      .groups = {},
                      .versions = {"*"},
                      .resources = {},
                      .params = &params,
                      .passes = {ending()},
                      .subject = params.kind,
                      .message = " has deletionPolicy: Drain, and its workers still exist"};
  if (apps.empty()) return out;
  out.labels.in = {{std::string(api::kLabelName), std::move(apps)}};
  out.conditions = {no_worker()};
  return out;
}

/// Refuses deletions of the children of a Controller that drains. The policy selects children by label, so other objects cost
/// no evaluation.
AdmissionPolicy clusters() {
  AdmissionPolicy out = kept("clusters", resources::kController,
                             {std::string(kAppController), std::string(kAppBackup), std::string(kAppRestApi),
                              std::string(kAppWorker), std::string(kAppAccounting), std::string(kAppDatabase)});
  out.groups = {"", "apps", "discovery.k8s.io"};
  out.resources = {"pods",    "services",     "endpoints",   "endpointslices", "configmaps",
                   "secrets", "statefulsets", "deployments", "replicasets"};
  out.passes.push_back(unneeded({drains(), either({namespace_ends(), ends(api::kFinalizerController)})}));
  return out;
}

/// Refuses deletions of the RestApis of a Controller that drains. The policy does not select RestApis by label, because users
/// choose the labels.
AdmissionPolicy restapis() {
  AdmissionPolicy out = kept("restapis", resources::kController, {});
  out.groups = {std::string(api::kGroup)};
  out.resources = {"restapis"};
  out.passes.push_back(unneeded({drains(), namespace_ends()}));
  return out;
}

AdmissionPolicy slurmrestd() {
  AdmissionPolicy out = kept("slurmrestd", resources::kRestApi, {std::string(kAppRestApi)});
  out.groups = {"", "apps"};
  out.resources = {"services", "deployments"};
  out.passes.push_back(unneeded({no(namespace_ends()), ends(api::kFinalizerRestApi), owned()}));
  out.message = " serves NodeSets that are being drained";
  return out;
}

// --- Output for the chart ---

Json selector(const LabelSelector& labels) {
  Json out = Json::object();
  Json expressions = Json::array();
  if (!labels.equal.empty()) out["matchLabels"] = labels.equal;
  for (const std::string& key : labels.exist) expressions.push_back({{"key", key}, {"operator", "Exists"}});
  for (const auto& [key, values] : labels.in) expressions.push_back({{"key", key}, {"operator", "In"}, {"values", values}});
  if (!expressions.empty()) out["matchExpressions"] = std::move(expressions);
  return out;
}

Json expressions(const std::vector<Clause>& clauses) {
  Json out = Json::array();
  for (const Clause& clause : clauses) out.push_back({{"name", clause.name}, {"expression", clause.cel}});
  return out;
}

std::string_view to_string(Deleters deleters) {
  switch (deleters) {
    case Deleters::kCleaners:
      return "cleaners";
    case Deleters::kSchedulers:
      return "schedulers";
    case Deleters::kUsers:
      break;
  }
  return "users";
}

Json document(const AdmissionPolicy& policy) {
  const std::string subject = policy.params == nullptr ? "oldObject" : "params";
  std::vector<Clause> terms = policy.passes;
  Json out{{"deleters", to_string(policy.deleters)},
           {"failsOpen", policy.fails_open},
           {"objectSelector", selector(policy.labels)},
           {"rule", {{"apiGroups", policy.groups}, {"apiVersions", policy.versions}, {"resources", policy.resources}}},
           {"conditions", expressions(policy.conditions)},
           {"variables", policy.variables ? expressions(terms) : Json::array()},
           {"message", "'" + policy.subject + " ' + " + subject + ".metadata.namespace + '/' + " + subject +
                           ".metadata.name + " + literal(policy.message)}};
  if (policy.params != nullptr)
    out["paramKind"] = {{"apiVersion", policy.params->api_version()}, {"kind", policy.params->kind}};
  if (policy.variables) {
    for (Clause& term : terms) term.cel = "variables." + term.name;
  }
  out["allowed"] = joined(terms, " || ");
  return out;
}

bool contains(const std::vector<std::string>& list, const std::string& text) {
  return std::ranges::find(list, text) != list.end();
}

bool selects(const LabelSelector& labels, const Json& object) {
  const auto has = [&](const std::string& key) { return core::find(object, {"metadata", "labels", key}) != nullptr; };
  return std::ranges::all_of(labels.equal, [&](const auto& want) { return label(object, want.first) == want.second; }) &&
         std::ranges::all_of(labels.exist, has) &&
         std::ranges::all_of(labels.in, [&](const auto& want) { return contains(want.second, label(object, want.first)); });
}

}  // namespace

bool AdmissionPolicy::concerns(const Deletion& deletion) const {
  return contains(groups, deletion.resource.group) && contains(resources, deletion.resource.plural) &&
         selects(labels, deletion.object) && all_hold(conditions, deletion);
}

bool AdmissionPolicy::allows(const Deletion& deletion) const {
  return any_holds(passes, deletion);
}

std::string AdmissionPolicy::refusal(const Deletion& deletion) const {
  const Json& object = params == nullptr ? deletion.object : *deletion.params;
  return subject + " " + core::get_string(object, {"metadata", "namespace"}) + "/" +
         core::get_string(object, {"metadata", "name"}) + message;
}

const std::vector<AdmissionPolicy>& admission_policies() {
  static const std::vector<AdmissionPolicy> kAll{
      workers(),   busy("preemption", Deleters::kSchedulers), busy("deletion", Deleters::kUsers), clusters(), restapis(),
      slurmrestd()};
  return kAll;
}

api::GeneratedFile admission_policies_file() {
  Json all = Json::object();
  for (const AdmissionPolicy& policy : admission_policies()) all[policy.name] = document(policy);
  return {"charts/slurm-operator/files/admission-policies.yaml",
          "# Generated by slurm-operator-gen from src/operator/common/policies.cpp.\n" + api::to_yaml(all)};
}

}  // namespace op
