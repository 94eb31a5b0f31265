#include "operator/nodeset/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/well_known.hpp"
#include "core/hostlist.hpp"
#include "operator/common/slinky.hpp"
#include "operator/nodeset/build_worker.hpp"
#include "operator/nodeset/daemon_nodes.hpp"
#include "operator/nodeset/parts.hpp"
#include "operator/nodeset/schedule.hpp"
#include "slinky/worker_names.hpp"
#include "slurm/conf/conf.hpp"

namespace op::nodeset {
namespace {

/// True if the NodeSet is deleted with `kubectl delete --cascade=orphan`. In this case, its workers stay.
bool orphans_workers(const kube::ObjectMeta& nodeset) {
  return nodeset.terminating() && kube::has_finalizer(nodeset, "orphan");
}

/// Reports pods that have neither an ordinal nor a Kubernetes node, so they are in no place. The rest of the status ignores
/// such pods.
void tell_placeless(const View& view, Draft& draft) {
  std::vector<std::string> names;
  for (const kube::PodPtr& pod : view.in.pods) {
    if (!place_of(*pod, view.in.meta().name)) names.push_back(pod->meta.name);
  }
  if (names.empty()) return;
  draft.wrong(
      "PodsWithoutOrdinal",
      fmt::format("{} Pods of this NodeSet have neither a number at the end of their names nor, with scalingMode DaemonSet, a "
                  "Kubernetes node that they are bound to: {}. This operator does not count, drain or protect them: drain "
                  "their Slurm nodes, and delete the pods with kubectl when they run no jobs",
                  names.size(), core::compress_hostlist(names)));
}

/// True if the operator has drained the node, and jobs or a reservation still need the node. This state can last for days.
/// Meanwhile, no other job starts on the node.
bool waits_for_jobs(const slurm::Snapshot& snapshot, const slurm::Node& node) {
  return node.state.has("DRAIN") && slurm::held_by(node.reason, slurm::Owner::kOperator) &&
         (node.state.has("RESERVED") || snapshot.work_on(node.name).jobs > 0);
}

/// True if Slurm will soon report something that this NodeSet waits for: the end of a drain, a registration, or stale records.
bool waits_for_slurm(const Observed& observed) {
  if (observed.seen.podless_since) return true;
  const bool all_go = observed.meta().terminating() || (observed.controller && observed.controller->meta.terminating());
  const auto wanted =
      observed.by_host()
          ? static_cast<int>(std::ranges::count_if(observed.hosts, [](const auto& host) { return host.second.wanted; }))
          : observed.nodeset.spec.replicas;
  int going = all_go ? 0 : -wanted;
  for (const kube::PodPtr& pod : observed.pods) {
    if (pod->meta.terminating()) continue;
    const slurm::Node* node = find_slurm_node(observed, *pod);
    if (node == nullptr && pod->ready() && observed.snapshot != nullptr) return true;
    if (node == nullptr || !waits_for_jobs(*observed.snapshot, *node)) ++going;
  }
  return going > 0;
}

}  // namespace

Aim choose_goal(const Observed& observed) {
  const std::optional<ControllerView>& controller = observed.controller;
  const api::NodeSetSpec& spec = observed.nodeset.spec;
  const std::string absent =
      fmt::format("spec.controllerRef.name: Controller {}/{} does not exist", observed.meta().ns, spec.controller_ref.name);
  const bool cluster_goes = controller && controller->meta.terminating();
  Aim out;
  out.desired = observed.by_host() ? observed.hosts_wanted() : std::max(0, spec.replicas);
  const auto wrong = [&](std::string reason, std::string message) {
    out.problems.push_back({std::move(reason), std::move(message)});
  };
  const auto waiting = [&](std::string reason, std::string message) {
    out.problems.push_back({std::move(reason), std::move(message), Problem::Kind::kComing});
  };
  const auto hold = [&](std::string reason, std::string message) {
    out.goal = Goal::kHold;
    wrong(std::move(reason), std::move(message));
  };
  if (orphans_workers(observed.meta())) {
    out.goal = Goal::kHold;
  } else if (cluster_goes && !controller->drain_on_deletion) {
    out.goal = Goal::kEndAll;
    waiting("ControllerDeleted", "Controller " + controller->meta.name + " is being deleted");
  } else if (observed.meta().terminating() || cluster_goes) {
    out.goal = Goal::kDrainAll;
    waiting("Deleting", observed.pods.empty() ? "no worker is left" : "draining and deleting all workers");
    if (!observed.controller_error.empty()) {
      wrong("ControllerInvalid", observed.controller_error);
    } else if (!controller && !observed.pods.empty()) {
      wrong("ControllerNotFound", absent + ", so the operator cannot tell whether workers run jobs: delete their pods by hand");
    }
  } else if (!observed.invalid.empty()) {
    hold("InvalidSpec", observed.invalid);
  } else if (!observed.controller_error.empty()) {
    hold("ControllerInvalid", observed.controller_error);
  } else if (!controller) {
    hold("ControllerNotFound", absent);
  } else if (observed.by_host() && !observed.reads_kube_nodes) {
    hold("KubernetesNodesNotReadable",
         "spec.scalingMode: DaemonSet needs the right to read Kubernetes nodes, which this installation of the operator does "
         "not have: the workers are not changed");
  } else if (observed.by_host() && observed.no_kube_nodes && !observed.pods.empty()) {
    // An empty list of Kubernetes nodes must be wrong, because pods are still bound to nodes. So change no worker.
    hold("NoKubernetesNodes",
         "spec.scalingMode: the API server lists no Kubernetes nodes, so the operator cannot tell where workers belong: they "
         "are not changed");
  }
  if (out.goal == Goal::kDrainAll || out.goal == Goal::kEndAll) out.desired = 0;
  return out;
}

/// Checks spec.extraConf and slurmd's options. Reports errors that would make slurmd exit. Reports these errors also when no
/// worker has to be created.
ExtraConf check_conf(const View& view, Draft& draft) {
  ExtraConf out;
  if (view.goal != Goal::kServe) return out;
  const core::Result<std::string> conf = slurmd_conf(view.in.nodeset.spec, view.in.meta().name);
  if (conf) {
    for (const slurm::conf::Problem& problem : slurm::conf::parse_node_conf(*conf).problems) {
      std::string& text = problem.fatal ? out.refusal : out.doubts;
      text += (text.empty() ? "spec.extraConf: " : "; ") + problem.str();
    }
  } else {
    out.refusal = conf.error().message;
  }
  if (out.refusal.empty()) out.refusal = name_option_problem(view.in.nodeset.spec, view.in.meta().name);
  if (!out.refusal.empty()) draft.wrong("InvalidSpec", out.refusal, "Create");
  return out;
}

plan::Plan plan_nodeset(const Observed& observed) {
  const Aim aim = choose_goal(observed);
  const View view(observed, aim);
  Draft draft(view);
  for (const Slot& slot : observed.slots) draft.wake(slot.change);
  for (const Problem& problem : aim.problems) {
    problem.wrong() ? draft.wrong(problem.reason, problem.message) : draft.waiting(problem.reason, problem.message);
  }
  tell_placeless(view, draft);
  tell_hosts(view, draft);
  tell_ssh(view, draft);
  const ExtraConf extra_conf = check_conf(view, draft);

  const Fates fates = judge_fates(view, extra_conf);
  const Workers& workers = fates.workers;
  for (const Change& change : fates.changes) draft.wake(change);
  if (fates.asks_reservations) draft.need(need_reservations(view.in));
  if (fates.rollout.asks_template != nullptr) draft.need(need_template(view, *fates.rollout.asks_template));
  keep_revisions(view, workers, draft);
  const Vacancies vacancies = find_vacancies(view, fates, draft);
  const api::StringMap pins = judge_pins(view, workers, draft);
  const api::StringMap drains = judge_drains(view);
  const bool noted = note_drains(view, fates, vacancies, draft);

  NodeNames draining = drain_nodes(view, workers, vacancies, draft);
  draining.merge(end_gone_nodes(view, draft));
  end_overdue_jobs(view, fates, draft);
  const ScaleIn scale_in = delete_workers(view, fates, draft);
  keep_metadata(view, workers, draft);
  keep_on_lost_hosts(view, workers, draft);
  keep_attributes(view, workers, draft);
  resume_workers(view, workers, draft);
  restore_drains(view, draft);
  update_in_place(view, workers, draft);
  const bool mountable = keep_host_keys(view, draft);
  Finalizer finalizer = adopt_orphans(view, draft);
  tell_name_conflicts(view, workers, vacancies, draft);
  // Create workers only after all orphans are adopted. The vacant places are chosen before the adoption is complete, because
  // the Slurm records of these places must be kept in the meantime.
  if (mountable && std::ranges::none_of(observed.orphans, to_be_adopted))
    finalizer = create_workers(view, vacancies, extra_conf, draining, draft);
  const MaintenanceResult maintenance = keep_reservation(view, workers, vacancies, finalizer, draft);
  finalizer = maintenance.finalizer;
  keep_claims(view, workers, vacancies, draft);
  report_states(view, workers, draft);
  const StaleRecords stale = delete_stale_records(view, workers, vacancies, draft);
  if (observed.meta().terminating() && observed.pods.empty()) finalizer = remove_finalizer(view, stale, maintenance, draft);
  if (vacancies.places.empty() && draft.empty()) stamp_comments(view, workers, draft);
  write_status(view, {fates, extra_conf, vacancies, draining, scale_in, pins, drains, noted, maintenance, stale, finalizer},
               draft);
  return std::move(draft).finish();
}

plan::Plan plan(const Observed& observed) {
  if (!observed.object) return {};
  plan::Plan plan = plan_nodeset(observed);
  if (waits_for_slurm(observed)) plan.waits_on(observed.cluster());
  return plan;
}

}  // namespace op::nodeset
