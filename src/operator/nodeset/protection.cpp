// Protects workers from evictions and deletions by others. Decides which workers need the labels that a PodDisruptionBudget and
// admission policies select. Makes workers tolerate a kubelet that does not respond.
#include <algorithm>

#include "api/well_known.hpp"
#include "kube/acts.hpp"
#include "operator/nodeset/build_worker.hpp"
#include "operator/nodeset/parts.hpp"

namespace op::nodeset {
namespace {

/// True if no job runs on the worker's node and Slurm starts no new job on this node.
bool at_rest(const Slot& worker) {
  if (worker.record == nullptr || worker.busy()) return false;
  return worker.record->state.drains() || worker.has_flag("FAIL") || worker.record->state.base == "DOWN";
}

bool slurmd_runs(const kube::PodRecord& pod) {
  return std::ranges::any_of(pod.containers, [](const kube::ContainerState& container) {
    return container.name == kAppWorker && container.started_once && container.waiting_reason.empty() && !container.crashed;
  });
}

/// Judges the protection of a worker that has no node in Slurm. If the slurmd of the worker does not run, or if its time to
/// register is over, the worker cannot get a node, so it needs no protection.
Protection judge_unregistered(const View& view, const Slot& worker) {
  const auto since = slurmd_runs(*worker.pod) ? worker.may_register_since : std::nullopt;
  const core::Duration left = since ? slurm::kRegistration - (view.in.mono - *since) : core::Duration{0};
  Protection out;
  out.wanted = !slurm::absent_for_good(*view.in.snapshot, worker.node, worker.stamped, since, view.in.mono);
  if (left.count() > 0) out.change = Change{left, "a cordoned worker that does not register may be deleted"};
  return out;
}

/// Adds JSON patch operations that make the pod tolerate the taint forever. In an existing toleration, Kubernetes allows only a
/// change of tolerationSeconds.
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
  // Slurm does not answer. Slurm's last answer counts only if Slurm has had the node of this pod. Otherwise the last answer
  // might be about an earlier pod of the same name.
  return worker.stamped && worker.busy() ? std::optional(true) : std::nullopt;
}

Protection judge_protection(const View& view, const Slot& worker) {
  if (!view.in.nodeset.spec.workload_disruption_protection || worker.released) return {false};
  if (!always_protected(view.in.nodeset.spec)) return {runs_jobs(view, worker)};
  // Without a cordon, the protection stays, because somebody might resume the drained node in Slurm at any moment. The operator
  // deletes pods without an eviction, so the protection does not prevent the operator's own deletions.
  if (!worker.kube_cordon() && !worker.user_cordon) return {true};
  // While Slurm does not answer, the operator does not learn that jobs have ended. So Slurm's last answer still protects the
  // worker, unless that answer might be about an earlier pod.
  if (worker.record != nullptr && (view.slurm_known() || worker.stamped) && !at_rest(worker)) return {true};
  if (!view.slurm_known() || (worker.cleared_for_deletion && worker.record == nullptr)) return {};
  // Only a fresh answer of Slurm can end the protection. If the pod is not protected any more, no fresh answer is needed.
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
               "a kubelet that does not respond must not end the worker: Slurm's SlurmdTimeout decides",
               kube::patch_any_version(kube::resources::kPod, worker.pod->meta, std::move(operations), kube::PatchType::kJson));
  }
}

}  // namespace op::nodeset
