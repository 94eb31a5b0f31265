#include "operator/nodeset/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/well_known.hpp"
#include "cluster/worker_names.hpp"
#include "core/hostlist.hpp"
#include "operator/nodeset/build_worker.hpp"
#include "operator/nodeset/parts.hpp"
#include "slurm/conf/conf.hpp"

namespace op::nodeset {
namespace {

/// `kubectl delete --cascade=orphan`: the workers are to stay.
bool orphans_workers(const kube::ObjectMeta& nodeset) {
  return nodeset.terminating() && kube::has_finalizer(nodeset, "orphan");
}

/// Workers of the Go operator with scalingMode DaemonSet: who looks at the rest of the status would take them for absent.
void tell_unnumbered(const View& view, Draft& draft) {
  std::vector<std::string> names;
  for (const kube::PodPtr& pod : view.in.pods) {
    if (!ordinal_of(pod->meta.name, view.in.meta().name + "-")) names.push_back(pod->meta.name);
  }
  if (names.empty()) return;
  draft.wrong(
      "PodsWithoutOrdinal",
      fmt::format(
          "{} Pods of this NodeSet have no number at the end of their names, as another operator creates them with scalingMode "
          "DaemonSet: {}. This operator does not count, drain or protect them: drain their Slurm nodes, and delete the pods "
          "with kubectl when they run no jobs",
          names.size(), core::compress_hostlist(names)));
}

}  // namespace

Aim choose_goal(const Observed& observed) {
  const std::optional<ControllerView>& controller = observed.controller;
  const api::NodeSetSpec& spec = observed.nodeset.spec;
  const std::string absent =
      fmt::format("spec.controllerRef.name: Controller {}/{} does not exist", observed.meta().ns, spec.controller_ref.name);
  const bool cluster_goes = controller && controller->meta.terminating();
  Aim out;
  out.desired = std::max(0, spec.replicas);
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
    waiting("Deleting", "draining and deleting all workers");
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
  } else if (spec.scaling_mode != api::ScalingMode::kStatefulSet) {
    hold("ScalingModeNotActedOn", "spec.scalingMode: DaemonSet is not supported in this release, so no workers are created");
  }
  if (out.goal == Goal::kDrainAll || out.goal == Goal::kEndAll) out.desired = 0;
  return out;
}

/// What slurmd would end at is told where users wrote it, also while no worker is to be created with it yet.
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
  tell_unnumbered(view, draft);
  const ExtraConf extra_conf = check_conf(view, draft);

  const Fates fates = judge_fates(view, extra_conf);
  const Workers& workers = fates.workers;
  for (const Change& change : fates.changes) draft.wake(change);
  keep_revisions(view, workers, draft);
  const Vacancies vacancies = find_vacancies(view, workers, draft);

  NodeNames draining = drain_nodes(view, workers, vacancies, draft);
  draining.merge(end_gone_nodes(view, draft));
  const ScaleIn scale_in = delete_workers(view, fates, draft);
  keep_metadata(view, workers, draft);
  keep_on_lost_hosts(view, workers, draft);
  resume_workers(view, workers, draft);
  Finalizer finalizer = adopt_orphans(view, draft);
  tell_name_conflicts(view, workers, vacancies, draft);
  // Orphans come first. What is vacant is known before: their records are kept.
  if (std::ranges::none_of(observed.orphans, to_be_adopted))
    finalizer = create_workers(view, vacancies, extra_conf, draining, draft);
  report_states(view, workers, draft);
  const StaleRecords stale = delete_stale_records(view, workers, vacancies, draft);
  if (observed.meta().terminating() && observed.pods.empty()) finalizer = remove_finalizer(view, stale, draft);
  if (vacancies.ordinals.empty() && scale_in.to_delete == 0 && draft.empty()) stamp_comments(view, workers, draft);
  write_status(view, {fates, extra_conf, vacancies, draining, scale_in, finalizer}, draft);
  return std::move(draft).finish();
}

}  // namespace op::nodeset
