#include "operator/loginset/sessions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "kube/acts.hpp"
#include "operator/common/pod_template.hpp"

namespace op::loginset {
namespace {

using core::Json;

constexpr std::string_view kDirectory = "/run/slurm-sessions";
constexpr std::string_view kReport = "/run/slurm-sessions/now";
constexpr std::string_view kSaid = "sessions=";
/// Kubernetes' own annotation. Among ready pods, a ReplicaSet first deletes the pods with the lowest value.
constexpr const char* kDeletionCost = "controller.kubernetes.io/pod-deletion-cost";

/// The script of the sidecar. The script copies each report to the log once, so that missing reports are soon noticed. Before
/// the container `login` starts, the script makes the directory inaccessible to users. The script waits for a background sleep,
/// because a shell handles TERM at once only while the shell waits.
constexpr std::string_view kTell =
    "trap 'exit 0' TERM\n"
    "chmod 0700 /run/slurm-sessions || exit 1\n"
    "while true; do\n"
    "  n=; read -r n </run/slurm-sessions/now; true >/run/slurm-sessions/now\n"
    "  echo \"sessions=${n:-unknown}\"\n"
    "  sleep 5 & wait $!\n"
    "done 2>/dev/null\n";
/// The age up to which a line of the log counts. This age is longer than the interval between two reports.
constexpr std::chrono::seconds kFresh{15};
constexpr core::Duration kWhileTurning{5000};
constexpr core::Duration kWhileWaiting{10000};

std::string id_of(const kube::PodRecord& pod) {
  return "sessions of " + pod.meta.name;
}

/// True if the pod has run the sidecar, so that the log of the sidecar can have a report.
bool tells(const kube::PodRecord& pod) {
  return pod.phase == "Running" && std::ranges::any_of(pod.containers, [](const kube::ContainerState& container) {
           return container.name == kSessions && container.started_once;
         });
}

void ask(const kube::PodRecord& pod, plan::Plan& plan) {
  if (tells(pod)) plan.need({id_of(pod), std::make_shared<kube::Log>(pod.meta.key(), std::string(kSessions), kFresh)});
}

std::string cost_of(const Count& count) {
  return std::to_string(count.value_or(std::numeric_limits<std::int32_t>::max()));
}

/// True if no pod will be deleted: there are no more pods than wanted, and all pods have the newest template.
bool settled(const Observed& observed) {
  const kube::Object& deployment = *observed.deployment;
  const auto count = [&](const char* which) { return core::get_int(deployment.body, {"status", which}); };
  return count("observedGeneration") >= deployment.meta.generation && count("replicas") <= observed.loginset.spec.replicas &&
         count("updatedReplicas") == count("replicas");
}

}  // namespace

std::string report_script() {
  return fmt::format("{}{{ count && echo \"$n\" >{}; }} 2>/dev/null; ", kCount, kReport);
}

Json sessions_sidecar() {
  return {{"name", kSessions},
          {"command", {"sh", "-c", kTell}},
          {"restartPolicy", "Always"},
          {"volumeMounts", Json::array({sessions_mount()})}};
}

Json sessions_volume() {
  return {{"name", kSessions}, {"emptyDir", {{"medium", "Memory"}}}};
}

Json sessions_mount() {
  return {{"name", kSessions}, {"mountPath", kDirectory}};
}

Count read_count(const plan::Facts& facts, const kube::PodRecord& pod) {
  const auto fact = facts.find(id_of(pod));
  if (fact == facts.end() || !fact->second.value) return {};
  const std::string line = core::get_string(*fact->second.value, {"log"});
  if (!line.starts_with(kSaid)) return {};
  int count = 0;
  const char* from = line.data() + kSaid.size();
  const auto [end, error] = std::from_chars(from, line.data() + line.size(), count);
  const bool whole = end == line.data() + line.size() || *end == '\n';
  return error == std::errc{} && whole && count >= 0 ? Count(count) : Count();
}

bool rank_pods(const Observed& observed, bool changes, plan::Plan& plan) {
  // If users set the deletion cost in the pod template, the operator does not change the deletion cost.
  const bool theirs = observed.loginset.spec.pod_template.metadata.annotations.contains(kDeletionCost);
  if (!observed.deployment || theirs || (!changes && settled(observed))) return true;
  bool ranked = true;
  for (const kube::PodPtr& pod : observed.pods) {
    if (pod->meta.terminating() || pod->phase != "Running") continue;
    ask(*pod, plan);
    const std::string cost = cost_of(read_count(observed.context.facts, *pod));
    const std::string_view costs = pod->meta.annotation(kDeletionCost);
    if ((costs.empty() ? "0" : costs) == cost) continue;
    ranked = false;
    plan.lane("rank").add({{"rank", "Pod", pod->meta.name, cost},
                           "pods with fewer sessions are deleted first",
                           kube::patch_any_version(kube::resources::kPod, pod->meta,
                                                   {{"metadata", {{"annotations", {{kDeletionCost, cost}}}}}})});
  }
  plan.wake_after(kWhileTurning, "sessions on login pods may have begun or ended");
  return ranked;
}

std::vector<Problem> waits_for_sessions(const Observed& observed, plan::Plan& plan) {
  std::vector<Problem> out;
  for (const kube::PodPtr& pod : observed.pods) {
    if (!pod->meta.terminating() || pod->phase != "Running") continue;
    ask(*pod, plan);
    plan.wake_after(kWhileWaiting, "sessions on login pods may have ended");
    const Count count = read_count(observed.context.facts, *pod);
    if (count == 0) continue;
    const std::string what = !count        ? "its sessions, which cannot be counted"
                             : *count == 1 ? "1 session"
                                           : fmt::format("{} sessions", *count);
    out.push_back({"WaitingForSessions",
                   fmt::format("pod {} waits for {}, until {} at the latest", pod->meta.name, what,
                               core::format_rfc3339(*pod->meta.deletion_timestamp)),
                   Problem::Kind::kComing});
  }
  return out;
}

}  // namespace op::loginset
