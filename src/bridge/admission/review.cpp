#include "bridge/admission/review.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "bridge/common/names.hpp"
#include "bridge/common/patches.hpp"
#include "bridge/common/wish.hpp"

namespace bridge::admission {
namespace {

using core::Json;

constexpr std::string_view kDefaultScheduler = "default-scheduler";
constexpr std::string_view kAnnotationMirror = "kubernetes.io/config.mirror";
constexpr std::string_view kNodesGroup = "system:nodes";
/// The users that create the pods of DaemonSets: the DaemonSet controller, or the kube-controller-manager if all of its
/// controllers share one account.
constexpr std::array<std::string_view, 2> kDaemonSetControllers{"system:serviceaccount:kube-system:daemon-set-controller",
                                                                "system:kube-controller-manager"};
/// The API server truncates longer warnings.
constexpr std::size_t kLongestWarning = 256;

const Json& object_of(const Observed& in) {
  return in.request.object;
}

/// Reports whether the kubelet has already started the pod, or the DaemonSet controller has chosen its node. Any user can write
/// the mirror annotation or the owner reference, so the user of the request is checked too.
bool is_exempt(const Observed& in) {
  const bool of_kubelet = std::ranges::find(in.request.groups, kNodesGroup) != in.request.groups.end();
  if (of_kubelet && in.pod.meta.annotations.contains(kAnnotationMirror)) return true;
  if (std::ranges::find(kDaemonSetControllers, in.request.user) == kDaemonSetControllers.end()) return false;
  const kube::OwnerReference* owner = in.pod.meta.controller_owner();
  return owner != nullptr && owner->kind == "DaemonSet" && owner->api_version.starts_with("apps/");
}

bool in_managed_namespace(const Observed& in) {
  return std::ranges::find(in.settings.managed_namespaces, in.request.key.ns) != in.settings.managed_namespaces.end();
}

bool asks_by_scheduler(const Observed& in) {
  return !in.settings.scheduler_name.empty() && in.pod.scheduler == in.settings.scheduler_name;
}

/// Reports whether the pod has the annotation that replaces the schedulerName. Either an earlier call of admission or the user
/// wrote the annotation.
bool asks_by_annotation(const Observed& in) {
  return !in.settings.scheduler_name.empty() && in.pod.meta.annotation(kAnnotationManagedBy) == in.settings.cluster;
}

bool is_managed(const Observed& in) {
  return in_managed_namespace(in) || asks_by_scheduler(in) || asks_by_annotation(in);
}

bool is_new_pod(const kube::AdmissionRequest& request) {
  return request.operation == "CREATE" && request.group.empty() && request.resource == "pods" && request.subresource.empty();
}

bool has_entries(const Json& pod, std::initializer_list<std::string_view> path) {
  const Json* list = core::find(pod, path);
  return list != nullptr && !list->empty();
}

/// Reports whether the pod preempts other pods. Kubernetes fills in preemptionPolicy from the PriorityClass before it calls
/// webhooks. Without this field, the pod preempts.
bool preempts(const Observed& in) {
  return core::get_string(object_of(in), {"spec", "preemptionPolicy"}, "PreemptLowerPriority") != "Never";
}

/// Reports whether the user has chosen the PriorityClass of the pod.
bool has_own_class(const Observed& in) {
  return !in.pod.priority_class.empty() && !in.default_class;
}

// --- Refusals ----------------------------------------------------------------------------------------------------------------

void refuse_own_words(const Observed& in, std::vector<std::string>& out) {
  const auto refuse = [&](std::string_view kind, std::string_view name, const kube::StringMap& have) {
    if (have.contains(name))
      out.push_back(std::string(kind) + " " + std::string(name) + ": must be absent, because slurm-bridge sets it");
  };
  refuse("label", kLabelJobId, in.pod.meta.labels);
  refuse("annotation", kAnnotationNode, in.pod.meta.annotations);
  refuse("annotation", kAnnotationReplacedJob, in.pod.meta.annotations);
}

void refuse_spread(const Observed& in, std::vector<std::string>& out) {
  const Json* rules = core::find(object_of(in), {"spec", "topologySpreadConstraints"});
  if (rules == nullptr || !rules->is_array()) return;
  const auto required = [](const Json& rule) { return core::get_string(rule, {"whenUnsatisfiable"}) != "ScheduleAnyway"; };
  if (std::ranges::any_of(*rules, required))
    out.emplace_back(
        "spec.topologySpreadConstraints: whenUnsatisfiable must be ScheduleAnyway, because Slurm chooses the node");
}

std::vector<std::string> refusals(const Observed& in) {
  std::vector<std::string> out;
  if (!in.pod.node_name.empty()) out.emplace_back("spec.nodeName: must be absent, because Slurm chooses the node");
  refuse_own_words(in, out);
  refuse_spread(in, out);
  if (has_entries(object_of(in), {"spec", "resourceClaims"}))
    out.emplace_back("spec.resourceClaims: must be absent, because Slurm does not know these devices");
  if (has_own_class(in) && preempts(in)) {
    out.push_back("spec.priorityClassName: \"" + in.pod.priority_class +
                  "\" preempts pods, which would take nodes that Slurm has given to others: must be absent, or a PriorityClass "
                  "with preemptionPolicy Never");
  }
  if (const auto checked = check_wish(in.pod, in.settings); !checked) out.push_back(checked.error().message);
  return out;
}

// --- Warnings ----------------------------------------------------------------------------------------------------------------

void warn_of_prefixes(const Observed& in, std::vector<std::string>& out) {
  for (const auto& [name, value] : in.pod.meta.annotations) {
    const std::size_t slash = name.find('/');
    if (slash == std::string::npos || name.starts_with(kAnnotationPrefix)) continue;
    const std::string_view prefix = std::string_view(name).substr(0, slash), word = std::string_view(name).substr(slash + 1);
    const bool about_slurm = prefix.contains("slurm") || prefix.contains("slinky");
    if (about_slurm && is_setting(word))
      out.push_back("annotation " + name + " has no effect: did you mean " + std::string(kAnnotationPrefix) +
                    std::string(word) + "?");
  }
}

void warn_of_tolerations(const Observed& in, std::vector<std::string>& out) {
  const auto all = [](const kube::Toleration& one) { return one.key.empty() && one.op == "Exists" && one.effect.empty(); };
  if (std::ranges::any_of(in.pod.tolerations, all))
    out.emplace_back(
        "spec.tolerations: the pod tolerates every taint, so it may get a node with a taint that keeps other pods away, and is "
        "not evicted from a node that fails");
}

void warn_of_scheduler(const Observed& in, std::vector<std::string>& out) {
  const std::string& name = in.pod.scheduler;
  if (!name.empty() && name != kDefaultScheduler && !asks_by_scheduler(in))
    out.push_back("spec.schedulerName: " + name + " is replaced by " + std::string(kDefaultScheduler) +
                  ", because Slurm chooses the node");
}

std::vector<std::string> warnings(const Observed& in) {
  std::vector<std::string> out;
  warn_of_prefixes(in, out);
  warn_of_tolerations(in, out);
  warn_of_scheduler(in, out);
  for (std::string& text : out) text.resize(std::min(text.size(), kLongestWarning));
  return out;
}

// --- The patch ---------------------------------------------------------------------------------------------------------------

void patch_class(const Observed& in, Json& patch) {
  if (in.pod.priority_class == kPriorityClass || (has_own_class(in) && !preempts(in))) return;
  patch.push_back(add_op("/spec/priorityClassName", kPriorityClass));
  // Kubernetes fills in these fields again from the new PriorityClass, and refuses other values.
  for (const char* field : {"priority", "preemptionPolicy"}) {
    if (core::find(object_of(in), {"spec", field}) != nullptr)
      patch.push_back({{"op", "remove"}, {"path", std::string("/spec/") + field}});
  }
}

/// Adds the annotation kAnnotationManagedBy to a pod that is managed for another reason than its namespace.
void patch_mark(const Observed& in, Json& patch) {
  if (in_managed_namespace(in) || asks_by_annotation(in)) return;
  const bool annotated = has_entries(object_of(in), {"metadata", "annotations"});
  add_entry(patch, "/metadata/annotations", annotated, kAnnotationManagedBy, in.settings.cluster);
}

Json patch_of(const Observed& in) {
  Json patch = Json::array();
  const Json gate{{"name", kGate}};
  if (!has_entries(object_of(in), {"spec", "schedulingGates"})) {
    patch.push_back(add_op("/spec/schedulingGates", Json::array({gate})));
  } else if (std::ranges::find(in.pod.gates, kGate) == in.pod.gates.end()) {
    patch.push_back(add_op("/spec/schedulingGates/-", gate));
  }
  patch_mark(in, patch);
  if (in.pod.scheduler != kDefaultScheduler) patch.push_back(add_op("/spec/schedulerName", kDefaultScheduler));
  patch_class(in, patch);
  return patch;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : "; ") + text;
  return out;
}

}  // namespace

kube::AdmissionVerdict review(const Observed& in) {
  if (!is_new_pod(in.request) || is_exempt(in) || !is_managed(in)) return kube::admit();
  if (!in.too_old.empty()) {
    kube::AdmissionVerdict out = kube::admit();
    out.warnings = {"slurm-bridge does not manage the pod: Slurm " + in.too_old +
                    " has no external jobs. slurm-bridge needs 25.11 or newer"};
    return out;
  }
  const std::vector<std::string> refused = refusals(in);
  kube::AdmissionVerdict out = refused.empty() ? kube::admit() : kube::refuse(joined(refused));
  out.warnings = warnings(in);
  if (refused.empty()) out.patch = patch_of(in);
  return out;
}

}  // namespace bridge::admission
