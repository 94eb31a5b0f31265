#include "sim/kube/kinds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "api/field.hpp"
#include "api/kinds.hpp"
#include "core/base64.hpp"
#include "core/hash.hpp"

namespace sim {
namespace {

using core::Json;
using Problems = std::vector<FieldProblem>;
using Names = std::set<std::string, std::less<>>;

void fill(Json& object, const char* name, Json value) {
  if (!object.contains(name) || object[name].is_null()) object[name] = std::move(value);
}

/// Calls `call` for each object in a list, if the list exists.
template <class Call>
void each(Json& object, const char* list, Call call) {
  if (!object.contains(list) || !object[list].is_array()) return;
  for (Json& item : object[list]) {
    if (item.is_object()) call(item);
  }
}
template <class Call>
void each(const Json& object, const char* list, Call call) {
  if (!object.contains(list) || !object[list].is_array()) return;
  std::size_t index = 0;
  for (const Json& item : object[list]) call(item, index++);
}

void default_probe(Json& container, const char* name) {
  if (!container.contains(name)) return;
  Json& probe = container[name];
  fill(probe, "timeoutSeconds", 1);
  fill(probe, "periodSeconds", 10);
  fill(probe, "successThreshold", 1);
  fill(probe, "failureThreshold", 3);
  if (probe.contains("httpGet")) {
    fill(probe["httpGet"], "scheme", "HTTP");
    fill(probe["httpGet"], "path", "/");
  }
}

void default_container(Json& container) {
  fill(container, "terminationMessagePath", "/dev/termination-log");
  fill(container, "terminationMessagePolicy", "File");
  fill(container, "resources", Json::object());
  const std::string image = core::get_string(container, {"image"});
  const bool latest = image.find(':', image.rfind('/') == std::string::npos ? 0 : image.rfind('/')) == std::string::npos ||
                      image.ends_with(":latest");
  fill(container, "imagePullPolicy", latest ? "Always" : "IfNotPresent");
  each(container, "ports", [](Json& port) { fill(port, "protocol", "TCP"); });
  each(container, "env", [](Json& env) {
    if (env.contains("valueFrom") && env["valueFrom"].contains("fieldRef"))
      fill(env["valueFrom"]["fieldRef"], "apiVersion", "v1");
  });
  for (const char* probe : {"livenessProbe", "readinessProbe", "startupProbe"}) default_probe(container, probe);
}

void default_volume(Json& volume) {
  for (const char* kind : {"configMap", "secret", "projected", "downwardAPI"}) {
    if (volume.contains(kind)) fill(volume[kind], "defaultMode", 420);
  }
}

void default_template(Json& spec) {
  if (!spec.contains("template")) return;
  Json& pod = spec["template"];
  fill(pod, "metadata", Json::object());
  if (pod.contains("spec")) default_pod_spec(pod["spec"]);
}

void default_pod(Json& object) {
  default_pod_spec(object["spec"]);
  Json& spec = object["spec"];
  if (spec.contains("schedulingGates") && spec["schedulingGates"].empty()) spec.erase("schedulingGates");
  fill(spec, "enableServiceLinks", true);
  fill(spec, "serviceAccountName", "default");
  fill(spec, "serviceAccount", spec["serviceAccountName"]);
  fill(spec, "priority", 0);
  fill(spec, "preemptionPolicy", "PreemptLowerPriority");
  fill(spec, "tolerations", Json::array());
  for (const char* key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
    bool found = false;
    for (const Json& toleration : spec["tolerations"]) {
      const std::string has = core::get_string(toleration, {"key"});
      const std::string effect = core::get_string(toleration, {"effect"});
      found = found || ((has == key || has.empty()) && (effect.empty() || effect == "NoExecute"));
    }
    if (!found) {
      spec["tolerations"].push_back(
          {{"key", key}, {"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", 300}});
    }
  }
  fill(object, "status", Json::object());
  fill(object["status"], "phase", "Pending");
  fill(object["status"], "qosClass", "BestEffort");
}

void default_stateful_set(Json& object) {
  Json& spec = object["spec"];
  fill(spec, "replicas", 1);
  fill(spec, "podManagementPolicy", "OrderedReady");
  fill(spec, "revisionHistoryLimit", 10);
  fill(spec, "updateStrategy", {{"type", "RollingUpdate"}});
  if (core::get_string(spec, {"updateStrategy", "type"}) == "RollingUpdate") {
    fill(spec["updateStrategy"], "rollingUpdate", Json::object());
    fill(spec["updateStrategy"]["rollingUpdate"], "partition", 0);
  }
  fill(spec, "persistentVolumeClaimRetentionPolicy", {{"whenDeleted", "Retain"}, {"whenScaled", "Retain"}});
  default_template(spec);
  each(spec, "volumeClaimTemplates", [](Json& claim) {
    fill(claim, "apiVersion", "v1");
    fill(claim, "kind", "PersistentVolumeClaim");
    fill(claim["spec"], "volumeMode", "Filesystem");
    fill(claim, "status", {{"phase", "Pending"}});
  });
  fill(object, "status", {{"replicas", 0}, {"availableReplicas", 0}});
}

void default_deployment(Json& object) {
  Json& spec = object["spec"];
  fill(spec, "replicas", 1);
  fill(spec, "revisionHistoryLimit", 10);
  fill(spec, "progressDeadlineSeconds", 600);
  fill(spec, "strategy", {{"type", "RollingUpdate"}});
  if (core::get_string(spec, {"strategy", "type"}) == "RollingUpdate") {
    fill(spec["strategy"], "rollingUpdate", Json::object());
    fill(spec["strategy"]["rollingUpdate"], "maxSurge", "25%");
    fill(spec["strategy"]["rollingUpdate"], "maxUnavailable", "25%");
  }
  default_template(spec);
  fill(object, "status", Json::object());
}

void default_replica_set(Json& object) {
  fill(object["spec"], "replicas", 1);
  default_template(object["spec"]);
  fill(object, "status", {{"replicas", 0}});
}

void default_service(Json& object) {
  Json& spec = object["spec"];
  fill(spec, "type", "ClusterIP");
  fill(spec, "sessionAffinity", "None");
  fill(spec, "internalTrafficPolicy", "Cluster");
  fill(spec, "ipFamilies", Json::array({"IPv4"}));
  fill(spec, "ipFamilyPolicy", "SingleStack");
  if (!spec.contains("clusterIP") && core::get_string(spec, {"type"}) != "ExternalName") {
    // The address depends only on the name, so that histories do not depend on the order of creation.
    const std::string hash =
        core::sha256_hex(object["metadata"].value("namespace", "") + "/" + object["metadata"].value("name", ""));
    spec["clusterIP"] =
        fmt::format("10.96.{}.{}", std::stoi(hash.substr(0, 2), nullptr, 16), std::stoi(hash.substr(2, 2), nullptr, 16));
  }
  if (spec.contains("clusterIP")) fill(spec, "clusterIPs", Json::array({spec["clusterIP"]}));
  each(spec, "ports", [](Json& port) {
    fill(port, "protocol", "TCP");
    fill(port, "targetPort", port.value("port", Json(0)));
  });
  fill(object, "status", {{"loadBalancer", Json::object()}});
}

void default_claim(Json& object) {
  fill(object["spec"], "volumeMode", "Filesystem");
  fill(object["spec"], "storageClassName", "standard");
  fill(object, "status", {{"phase", "Pending"}});
}

void default_secret(Json& object) {
  fill(object, "type", "Opaque");
  if (object.contains("stringData")) {
    for (const auto& [key, value] : object["stringData"].items()) {
      object["data"][key] = core::base64_encode(value.is_string() ? value.get<std::string>() : "");
    }
    object.erase("stringData");
  }
}

void default_namespace(Json& object) {
  const std::string name = object["metadata"].value("name", "");
  object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
  fill(object, "spec", {{"finalizers", Json::array({"kubernetes"})}});
  fill(object, "status", {{"phase", "Active"}});
}

FieldProblem required(std::string field) {
  return {std::move(field), "FieldValueRequired", "Required value"};
}

Problems validate_pod_spec(const Json& spec, const std::string& at) {
  Problems problems;
  if (!spec.contains("containers") || spec["containers"].empty()) problems.push_back(required(at + ".containers"));
  std::set<std::string> volumes;
  each(spec, "volumes", [&](const Json& volume, std::size_t) { volumes.insert(core::get_string(volume, {"name"})); });
  std::set<std::string> names;
  for (const char* list : {"initContainers", "containers"}) {
    each(spec, list, [&](const Json& container, std::size_t i) {
      const std::string where = fmt::format("{}.{}[{}]", at, list, i);
      const std::string name = core::get_string(container, {"name"});
      if (name.empty()) problems.push_back(required(where + ".name"));
      if (core::get_string(container, {"image"}).empty()) problems.push_back(required(where + ".image"));
      if (!name.empty() && !names.insert(name).second) {
        problems.push_back({where + ".name", "FieldValueDuplicate", fmt::format("Duplicate value: \"{}\"", name)});
      }
      each(container, "volumeMounts", [&](const Json& mount, std::size_t m) {
        const std::string volume = core::get_string(mount, {"name"});
        if (!volumes.contains(volume)) {
          problems.push_back({fmt::format("{}.volumeMounts[{}].name", where, m), "FieldValueNotFound",
                              fmt::format("Not found: \"{}\"", volume)});
        }
      });
    });
  }
  return problems;
}

Problems validate_pod(const Json& object) {
  const Json spec = object.value("spec", Json::object());
  Problems problems = validate_pod_spec(spec, "spec");
  if (!spec.value("schedulingGates", Json::array()).empty() && !core::get_string(spec, {"nodeName"}).empty()) {
    problems.push_back(
        {"spec.nodeName", "FieldValueForbidden", "Forbidden: cannot be set until all schedulingGates have been cleared"});
  }
  const Json* terms =
      core::find(spec, {"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
  for (std::size_t i = 0; terms != nullptr && i < terms->size(); ++i) {
    each((*terms)[i], "matchFields", [&](const Json& field, std::size_t f) {
      if (field.value("values", Json::array()).size() == 1) return;
      problems.push_back(
          {fmt::format("spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[{}]."
                       "matchFields[{}].values",
                       i, f),
           "FieldValueRequired",
           "Required value: must be only one value when `operator` is 'In' or 'NotIn' for node field selector"});
    });
  }
  return problems;
}

Problems validate_workload(const Json& object) {
  Problems problems;
  const Json* selector = core::find(object, {"spec", "selector"});
  if (selector == nullptr) problems.push_back(required("spec.selector"));
  const Json* labels = core::find(object, {"spec", "template", "metadata", "labels"});
  const Json* match = core::find(object, {"spec", "selector", "matchLabels"});
  if (match != nullptr) {
    for (const auto& [key, value] : match->items()) {
      if (labels == nullptr || !labels->contains(key) || (*labels)[key] != value) {
        problems.push_back(
            {"spec.template.metadata.labels", "FieldValueInvalid",
             fmt::format("Invalid value: {}: `selector` does not match template `labels`", labels ? labels->dump() : "null")});
        break;
      }
    }
  }
  const Json* spec = core::find(object, {"spec", "template", "spec"});
  Json pod_spec = spec != nullptr ? *spec : Json::object();
  // Each claim template is a volume of the pods.
  if (const Json* claims = core::find(object, {"spec", "volumeClaimTemplates"})) {
    for (const Json& claim : *claims) pod_spec["volumes"].push_back({{"name", core::get_string(claim, {"metadata", "name"})}});
  }
  const Problems pod = validate_pod_spec(pod_spec, "spec.template.spec");
  problems.insert(problems.end(), pod.begin(), pod.end());
  return problems;
}

Problems immutable(const Json& before, const Json& after, std::initializer_list<const char*> fields) {
  Problems problems;
  for (const char* field : fields) {
    const Json* was = core::find(before, {"spec", field});
    const Json* is = core::find(after, {"spec", field});
    if ((was == nullptr) != (is == nullptr) || (was != nullptr && *was != *is)) {
      problems.push_back({std::string("spec.") + field, "FieldValueInvalid",
                          fmt::format("Invalid value: {}: field is immutable", is != nullptr ? is->dump() : "null")});
    }
  }
  return problems;
}

Problems stateful_set_update(const Json& before, const Json& after) {
  Json was = before.value("spec", Json::object());
  Json is = after.value("spec", Json::object());
  for (const char* field : {"replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
                            "persistentVolumeClaimRetentionPolicy", "minReadySeconds"}) {
    was.erase(field);
    is.erase(field);
  }
  if (was == is) return {};
  return {{"spec", "FieldValueForbidden",
           "Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
           "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"}};
}

/// Reports whether the change only adds tolerations, or changes how long they last.
bool only_adds_tolerations(const Json& before, const Json& after) {
  const auto list = [](const Json& pod) {
    Json out = pod["spec"].value("tolerations", Json::array());
    for (Json& toleration : out) toleration.erase("tolerationSeconds");
    return out;
  };
  const Json is = list(after);
  return std::ranges::all_of(list(before), [&](const Json& was) { return std::ranges::find(is, was) != is.end(); });
}

/// Reports whether the change of a node selector term only appends requirements.
bool only_adds_requirements(const Json& before, const Json& after) {
  const auto list = [](const Json& term, const char* name) { return term.value(name, Json::array()); };
  bool had_any = false, has_any = false;
  for (const char* name : {"matchExpressions", "matchFields"}) {
    const Json was = list(before, name), is = list(after, name);
    had_any = had_any || !was.empty();
    has_any = has_any || !is.empty();
    if (is.size() < was.size() || !std::equal(was.begin(), was.end(), is.begin())) return false;
  }
  return had_any || !has_any;  // an empty term matches no node
}

/// Checks the changes of the nodeSelector and the node affinity of a gated pod: it may get more labels in the nodeSelector, any
/// node affinity if it had none, and more requirements in each term. Then removes both fields from `was` and `is`.
Problems gated_update(Json& was, Json& is) {
  Problems problems;
  if (!was.contains("schedulingGates") || was["schedulingGates"].empty()) return problems;
  const Json old_selector = was.value("nodeSelector", Json::object()), selector = is.value("nodeSelector", Json::object());
  for (const auto& [key, value] : old_selector.items()) {
    if (selector.contains(key) && selector[key] == value) continue;
    problems.push_back(
        {"spec.nodeSelector", "FieldValueInvalid",
         fmt::format("Invalid value: {}: only additions to spec.nodeSelector are allowed (no mutations or deletions)",
                     selector.dump())});
    break;
  }
  const std::string at = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
  const auto terms = [](const Json& spec) {
    const Json* found =
        core::find(spec, {"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
    return found == nullptr ? Json::array() : *found;
  };
  const Json old_terms = terms(was), new_terms = terms(is);
  if (!old_terms.empty() && old_terms.size() != new_terms.size()) {
    problems.push_back({at, "FieldValueInvalid",
                        fmt::format("Invalid value: {}: no additions/deletions to non-empty NodeSelectorTerms list are allowed",
                                    new_terms.dump())});
  } else {
    for (std::size_t i = 0; i < old_terms.size(); ++i) {
      if (only_adds_requirements(old_terms[i], new_terms[i])) continue;
      problems.push_back(
          {fmt::format("{}[{}]", at, i), "FieldValueInvalid",
           fmt::format("Invalid value: {}: only additions are allowed (no mutations or deletions)", new_terms[i].dump())});
    }
  }
  for (Json* spec : {&was, &is}) {
    spec->erase("nodeSelector");
    if (!spec->contains("affinity")) continue;
    (*spec)["affinity"].erase("nodeAffinity");
    if ((*spec)["affinity"].empty()) spec->erase("affinity");
  }
  return problems;
}

/// Gates can only be removed.
Problems gates_update(const Json& was, const Json& is) {
  Problems problems;
  const Json old_gates = was.value("schedulingGates", Json::array());
  each(is, "schedulingGates", [&](const Json& gate, std::size_t i) {
    const std::string name = core::get_string(gate, {"name"});
    const auto same = [&](const Json& old) { return core::get_string(old, {"name"}) == name; };
    if (std::ranges::any_of(old_gates, same)) return;
    problems.push_back({fmt::format("spec.schedulingGates[{}].name", i), "FieldValueForbidden",
                        fmt::format("Forbidden: only deletion is allowed, but found new scheduling gate '{}'", name)});
  });
  return problems;
}

/// Sets the condition PodScheduled of a new pod with gates to False, as the API server does.
void tell_gates(Json& pod) {
  if (pod["spec"].value("schedulingGates", Json::array()).empty()) return;
  pod["status"]["conditions"] = Json::array({{{"type", "PodScheduled"},
                                              {"status", "False"},
                                              {"reason", "SchedulingGated"},
                                              {"message", "Scheduling is blocked due to non-empty scheduling gates"},
                                              {"lastProbeTime", nullptr},
                                              {"lastTransitionTime", nullptr}}});
}

Problems pod_update(const Json& before, const Json& after) {
  if (!only_adds_tolerations(before, after)) {
    return {{"spec.tolerations", "FieldValueForbidden",
             "Forbidden: existing toleration can not be modified except its tolerationSeconds"}};
  }
  Json was = before.value("spec", Json::object());
  Json is = after.value("spec", Json::object());
  Problems problems = gates_update(was, is);
  for (FieldProblem& problem : gated_update(was, is)) problems.push_back(std::move(problem));
  if (!problems.empty()) return problems;
  for (const char* field : {"activeDeadlineSeconds", "schedulingGates", "tolerations", "terminationGracePeriodSeconds"}) {
    was.erase(field);
    is.erase(field);
  }
  if (!was.contains("nodeName")) is.erase("nodeName");
  for (Json* spec : {&was, &is}) {
    for (const char* list : {"containers", "initContainers"})
      each(*spec, list, [](Json& container) { container.erase("image"); });
  }
  if (was == is) return {};
  return {{"spec", "FieldValueForbidden",
           "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
           "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
           "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"}};
}

Problems frozen_data(const Json& before, const Json& after) {
  if (!before.value("immutable", false)) return {};
  Problems problems;
  if (!after.value("immutable", false)) {
    problems.push_back({"immutable", "FieldValueForbidden", "Forbidden: field is immutable when `immutable` is set"});
  }
  if (before.value("data", Json()) != after.value("data", Json())) {
    problems.push_back({"data", "FieldValueForbidden", "Forbidden: field is immutable when `immutable` is set"});
  }
  return problems;
}

void unknown_in(const Json& object, const Names& known, const std::string& at, std::vector<std::string>& out) {
  if (!object.is_object()) return;
  for (const auto& [name, value] : object.items()) {
    if (!known.contains(name)) out.push_back(at + name);
  }
}

// clang-format off
const Names kPodSpecFields{
    "activeDeadlineSeconds", "affinity", "automountServiceAccountToken", "containers", "dnsConfig", "dnsPolicy",
    "enableServiceLinks", "ephemeralContainers", "hostAliases", "hostIPC", "hostNetwork", "hostPID", "hostUsers", "hostname",
    "hostnameOverride", "imagePullSecrets", "initContainers", "nodeName", "nodeSelector", "os", "overhead",
    "preemptionPolicy", "priority", "priorityClassName", "readinessGates", "resourceClaims", "resources", "restartPolicy",
    "runtimeClassName", "schedulerName", "schedulingGates", "securityContext", "serviceAccount", "serviceAccountName",
    "setHostnameAsFQDN", "shareProcessNamespace", "subdomain", "terminationGracePeriodSeconds", "tolerations",
    "topologySpreadConstraints", "volumes"};
const Names kContainerFields{
    "args", "command", "env", "envFrom", "image", "imagePullPolicy", "lifecycle", "livenessProbe", "name", "ports",
    "readinessProbe", "resizePolicy", "resources", "restartPolicy", "restartPolicyRules", "securityContext", "startupProbe",
    "stdin", "stdinOnce", "terminationMessagePath", "terminationMessagePolicy", "tty", "volumeDevices", "volumeMounts",
    "workingDir"};
const Names kMetaFields{
    "annotations", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "generateName",
    "generation", "labels", "managedFields", "name", "namespace", "ownerReferences", "resourceVersion", "selfLink", "uid"};
// clang-format on

void unknown_in_pod_spec(const Json& spec, const std::string& at, std::vector<std::string>& out) {
  unknown_in(spec, kPodSpecFields, at, out);
  for (const char* list : {"initContainers", "containers"}) {
    each(spec, list, [&](const Json& container, std::size_t i) {
      unknown_in(container, kContainerFields, fmt::format("{}{}[{}].", at, list, i), out);
    });
  }
}

std::function<std::vector<std::string>(const Json&)> unknown_fields(Names top, Names spec, std::string template_at) {
  return [top = std::move(top), spec = std::move(spec), template_at = std::move(template_at)](const Json& object) {
    std::vector<std::string> out;
    Names all = top;
    all.insert({"apiVersion", "kind", "metadata"});
    unknown_in(object, all, "", out);
    if (object.contains("metadata")) unknown_in(object["metadata"], kMetaFields, "metadata.", out);
    if (!spec.empty() && object.contains("spec")) unknown_in(object["spec"], spec, "spec.", out);
    if (template_at == "spec" && object.contains("spec")) unknown_in_pod_spec(object["spec"], "spec.", out);
    const Json* pod = core::find(object, {"spec", "template", "spec"});
    if (template_at == "template" && pod != nullptr) unknown_in_pod_spec(*pod, "spec.template.spec.", out);
    return out;
  };
}

KubeKind kind(std::string group, std::string version, std::string name, std::string plural, bool namespaced = true) {
  KubeKind out;
  out.singular = name;
  for (char& c : out.singular) c = static_cast<char>(std::tolower(c));
  out.resource = {std::move(group), std::move(version), std::move(name), std::move(plural), namespaced};
  return out;
}

KubeKind plain(KubeKind k) {
  k.status = false;
  k.generation = false;
  return k;
}

}  // namespace

void default_pod_spec(Json& spec) {
  fill(spec, "restartPolicy", "Always");
  fill(spec, "dnsPolicy", "ClusterFirst");
  fill(spec, "schedulerName", "default-scheduler");
  fill(spec, "securityContext", Json::object());
  fill(spec, "terminationGracePeriodSeconds", 30);
  for (const char* list : {"initContainers", "containers"}) each(spec, list, default_container);
  each(spec, "volumes", default_volume);
}

std::vector<KubeKind> builtin_kinds() {
  std::vector<KubeKind> kinds;

  KubeKind pod = kind("", "v1", "Pod", "pods");
  pod.graceful = true;
  pod.returns_object_on_delete = true;
  pod.defaults = default_pod;
  pod.on_create = tell_gates;
  pod.validate = validate_pod;
  pod.validate_update = pod_update;
  pod.unknown_fields = unknown_fields({"spec", "status"}, {}, "spec");
  kinds.push_back(pod);

  KubeKind service = kind("", "v1", "Service", "services");
  service.generation = false;
  service.returns_object_on_delete = true;
  service.defaults = default_service;
  service.validate = [](const Json& object) {
    Problems problems;
    const Json* ports = core::find(object, {"spec", "ports"});
    const bool headless = core::get_string(object, {"spec", "clusterIP"}) == "None";
    const bool external = core::get_string(object, {"spec", "type"}) == "ExternalName";
    if (!headless && !external && (ports == nullptr || ports->empty())) problems.push_back(required("spec.ports"));
    std::set<std::string> names;
    each(object.value("spec", Json::object()), "ports", [&](const Json& port, std::size_t i) {
      const std::string name = core::get_string(port, {"name"});
      if (!names.insert(name).second)
        problems.push_back(
            {fmt::format("spec.ports[{}].name", i), "FieldValueDuplicate", fmt::format("Duplicate value: \"{}\"", name)});
    });
    return problems;
  };
  service.validate_update = [](const Json& before, const Json& after) { return immutable(before, after, {"clusterIP"}); };
  service.unknown_fields = unknown_fields({"spec", "status"}, {}, "");
  kinds.push_back(service);

  KubeKind config_map = plain(kind("", "v1", "ConfigMap", "configmaps"));
  config_map.validate_update = frozen_data;
  config_map.unknown_fields = unknown_fields({"data", "binaryData", "immutable"}, {}, "");
  kinds.push_back(config_map);

  KubeKind secret = plain(kind("", "v1", "Secret", "secrets"));
  secret.defaults = default_secret;
  secret.validate_update = frozen_data;
  secret.unknown_fields = unknown_fields({"data", "stringData", "immutable", "type"}, {}, "");
  kinds.push_back(secret);

  KubeKind node = kind("", "v1", "Node", "nodes", false);
  node.generation = false;
  node.defaults = [](Json& object) { fill(object, "spec", Json::object()); };
  kinds.push_back(node);

  KubeKind space = kind("", "v1", "Namespace", "namespaces", false);
  space.generation = false;
  space.defaults = default_namespace;
  kinds.push_back(space);

  KubeKind claim = kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims");
  claim.generation = false;
  claim.returns_object_on_delete = true;
  claim.defaults = default_claim;
  claim.on_create = [](Json& object) { object["metadata"]["finalizers"].push_back("kubernetes.io/pvc-protection"); };
  claim.validate_update = [](const Json& before, const Json& after) {
    return immutable(before, after, {"accessModes", "storageClassName", "volumeMode"});
  };
  kinds.push_back(claim);

  kinds.push_back(plain(kind("", "v1", "Event", "events")));
  kinds.push_back(plain(kind("", "v1", "ServiceAccount", "serviceaccounts")));
  kinds.push_back(plain(kind("events.k8s.io", "v1", "Event", "events")));
  kinds.push_back(plain(kind("coordination.k8s.io", "v1", "Lease", "leases")));
  kinds.push_back(plain(kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")));
  kinds.back().generation = true;

  KubeKind revision = plain(kind("apps", "v1", "ControllerRevision", "controllerrevisions"));
  revision.validate_update = [](const Json& before, const Json& after) -> Problems {
    if (before.value("data", Json()) == after.value("data", Json())) return {};
    return {{"data", "FieldValueInvalid", "Invalid value: field is immutable"}};
  };
  revision.unknown_fields = unknown_fields({"data", "revision"}, {}, "");
  kinds.push_back(revision);

  KubeKind stateful_set = kind("apps", "v1", "StatefulSet", "statefulsets");
  stateful_set.scale = true;
  stateful_set.defaults = default_stateful_set;
  stateful_set.validate = validate_workload;
  stateful_set.validate_update = stateful_set_update;
  stateful_set.unknown_fields =
      unknown_fields({"spec", "status"},
                     {"minReadySeconds", "ordinals", "persistentVolumeClaimRetentionPolicy", "podManagementPolicy", "replicas",
                      "revisionHistoryLimit", "selector", "serviceName", "template", "updateStrategy", "volumeClaimTemplates"},
                     "template");
  kinds.push_back(stateful_set);

  KubeKind deployment = kind("apps", "v1", "Deployment", "deployments");
  deployment.scale = true;
  deployment.defaults = default_deployment;
  deployment.validate = validate_workload;
  deployment.validate_update = [](const Json& before, const Json& after) { return immutable(before, after, {"selector"}); };
  deployment.unknown_fields = unknown_fields({"spec", "status"},
                                             {"minReadySeconds", "paused", "progressDeadlineSeconds", "replicas",
                                              "revisionHistoryLimit", "selector", "strategy", "template"},
                                             "template");
  kinds.push_back(deployment);

  KubeKind replica_set = kind("apps", "v1", "ReplicaSet", "replicasets");
  replica_set.scale = true;
  replica_set.defaults = default_replica_set;
  replica_set.validate = validate_workload;
  kinds.push_back(replica_set);

  KubeKind budget = kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets");
  budget.defaults = [](Json& object) {
    fill(object, "status", {{"currentHealthy", 0}, {"desiredHealthy", 0}, {"disruptionsAllowed", 0}, {"expectedPods", 0}});
  };
  budget.validate = [](const Json& object) -> Problems {
    const Json& spec = object["spec"];
    if (!spec.contains("minAvailable") || !spec.contains("maxUnavailable")) return {};
    return {{"spec", "FieldValueInvalid", "Invalid value: minAvailable and maxUnavailable cannot be both set"}};
  };
  budget.unknown_fields =
      unknown_fields({"spec", "status"}, {"maxUnavailable", "minAvailable", "selector", "unhealthyPodEvictionPolicy"}, "");
  kinds.push_back(budget);

  // A kind of scheduler-plugins, whose controller is not modelled.
  kinds.push_back(kind("scheduling.x-k8s.io", "v1alpha1", "PodGroup", "podgroups"));
  kinds.back().custom = true;

  return kinds;
}

KubeKind custom_kind(kube::Resource resource, Json schema, bool scale) {
  KubeKind out;
  out.singular = resource.kind;
  for (char& c : out.singular) c = static_cast<char>(std::tolower(c));
  out.resource = std::move(resource);
  out.custom = true;
  out.scale = scale;
  out.defaults = [schema](Json& object) { api::apply_defaults(schema, object); };
  out.validate = [schema](const Json& object) {
    Problems problems;
    for (const std::string& problem : api::validate(schema, object, "")) {
      const std::size_t colon = problem.find(':');
      problems.push_back({problem.substr(0, colon), "FieldValueInvalid",
                          "Invalid value" + (colon == std::string::npos ? "" : problem.substr(colon))});
    }
    return problems;
  };
  return out;
}

std::vector<KubeKind> project_kinds() {
  std::vector<KubeKind> out;
  for (const api::Kind& k : api::kinds()) {
    out.push_back(custom_kind({"slinky.slurm.net", "v1beta1", k.kind, k.plural, true}, api::object_schema(k), k.scale));
  }
  return out;
}

bool terminating(const core::Json& object) {
  return core::find(object, {"metadata", "deletionTimestamp"}) != nullptr;
}

bool ended(const core::Json& pod) {
  const std::string phase = core::get_string(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed";
}

}  // namespace sim
