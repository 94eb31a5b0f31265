// Protects workers from evictions and deletions by others: decides which workers need the labels that a PodDisruptionBudget and
// admission policies select, and lets workers tolerate a kubelet that does not respond.
#include <algorithm>

#include "api/well_known.hpp"
#include "kube/acts.hpp"
#include "operator/nodeset/build_worker.hpp"
#include "operator/nodeset/parts.hpp"

namespace op::nodeset {
namespace {

/// True if Slurm starts no job on the worker's node, and no job runs there.
bool at_rest(const Slot& worker) {
  if (worker.record == nullptr || worker.busy()) return false;
  return worker.record->state.drains() || worker.has_flag("FAIL") || worker.record->state.base == "DOWN";
}

bool slurmd_runs(const kube::PodRecord& pod) {
  return std::ranges::any_of(pod.containers, [](const kube::ContainerState& container) {
    return container.name == kAppWorker && container.started_once && container.waiting_reason.empty() && !container.crashed;
  });
}

/// Judges a worker without a node in Slurm. It needs no protection if it cannot get a node, because its slurmd does not run or
/// its time to register is over.
Protection judge_unregistered(const View& view, const Slot& worker) {
  const auto since = slurmd_runs(*worker.pod) ? worker.may_register_since : std::nullopt;
  const core::Duration left = since ? slurm::kRegistration - (view.in.mono - *since) : core::Duration{0};
  Protection out;
  out.wanted = !slurm::absent_for_good(*view.in.snapshot, worker.node, worker.stamped, since, view.in.mono);
  if (left.count() > 0) out.change = Change{left, "a cordoned worker that does not register may go"};
  return out;
}

/// Adds JSON patch operations that make the pod tolerate the taint forever. In an existing toleration, Kubernetes only allows
/// the seconds to be changed.
void tolerate_for_ever(core::Json& operations, std::string_view taint, const kube::Patience& has) {
  if (has.index < 0) {
    operations.push_back({{"op", "add"}, {"path", "/spec/tolerations/-"}, {"value", toleration_of(taint)}});
  } else if (has.seconds) {
    const std::string path = "/spec/tolerations/" + std::to_string(has.index);
    operations.push_back({{"op", "test"}, {"path", path + "/key"}, {"value", taint}});
    operations.push_back({{"op", "remove"}, {"path", path + "/tolerationSeconds"}});
  }
}

}  // namespace

bool is_protected(const kube::PodRecord& pod) {
  return pod.meta.label(api::kLabelPodProtect) == "true";
}

std::optional<bool> runs_jobs(const View& view, const Slot& worker) {
  if (view.slurm_known()) return worker.busy();
  // Slurm does not answer. Its last answer counts only if Slurm has had the node of this pod: otherwise it may be about an
  // earlier pod of the same name.
  return worker.stamped && worker.busy() ? std::optional(true) : std::nullopt;
}

Protection judge_protection(const View& view, const Slot& worker) {
  if (!view.in.nodeset.spec.workload_disruption_protection || worker.released) return {false};
  if (!always_protected(view.in.nodeset.spec)) return {runs_jobs(view, worker)};
  // Without a cordon, the protection stays, because somebody may resume the drained node in Slurm at any moment. The operator's
  // own deletions are no evictions, so they need no end of the protection.
  if (!worker.kube_cordon() && !worker.user_cordon) return {true};
  // While Slurm does not answer, no job is known to have ended. So its last answer still protects the worker, unless it may be
  // about an earlier pod.
  if (worker.record != nullptr && (view.slurm_known() || worker.stamped) && !at_rest(worker)) return {true};
  if (!view.slurm_known() || (worker.cleared_for_deletion && worker.record == nullptr)) return {};
  // Only a fresh answer may end the protection. If the protection has ended already, ask for no fresh answer.
  if (!view.slurm_fresh()) return {{}, is_protected(*worker.pod) ? std::optional(kFreshAgain) : std::nullopt};
  if (worker.record == nullptr) return judge_unregistered(view, worker);
  return {!at_rest(worker)};
}

void keep_on_lost_hosts(const View& view, const Workers& workers, Draft& draft) {
  if (view.goal == Goal::kEndAll) return;
  const core::Json* users = core::find(view.in.nodeset.spec.pod_template.spec, {"tolerations"});
  const auto said = [&](std::string_view taint) { return users != nullptr && tolerates(*users, taint); };
  for (const Worker& worker : workers) {
    if (worker.life != Life::kLive || draft.is_deleted(*worker.pod)) continue;
    core::Json operations = core::Json::array();
    if (!said(kube::kTaintNotReady)) tolerate_for_ever(operations, kube::kTaintNotReady, worker.pod->not_ready);
    if (!said(kube::kTaintUnreachable)) tolerate_for_ever(operations, kube::kTaintUnreachable, worker.pod->unreachable);
    if (operations.empty()) continue;
    draft.step(draft.lane("protect"), {"extend tolerations of", "Pod", pod_text(worker)},
               "a kubelet that is away takes no worker with it: SlurmdTimeout decides",
               kube::patch_any_version(kube::resources::kPod, worker.pod->meta, std::move(operations), kube::PatchType::kJson));
  }
}

}  // namespace op::nodeset
