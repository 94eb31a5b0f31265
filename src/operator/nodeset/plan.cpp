#include "operator/nodeset/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/well_known.hpp"
#include "cluster/worker_names.hpp"
#include "core/hostlist.hpp"
#include "kube/acts.hpp"
#include "operator/nodeset/build_worker.hpp"
#include "operator/nodeset/pass.hpp"
#include "slurm/conf/conf.hpp"

namespace op::nodeset {
namespace {

/// `kubectl delete --cascade=orphan`: the workers are to stay.
bool orphans(const Pass& pass) {
  return pass.in.meta().terminating() && kube::has_finalizer(pass.in.meta(), "orphan");
}

void hold(Pass& pass, std::string_view reason, std::string message) {
  pass.goal = Goal::kHold;
  pass.wrong(reason, std::move(message));
}

}  // namespace

void choose_goal(Pass& pass) {
  const std::optional<ControllerView>& controller = pass.in.controller;
  const api::NodeSetSpec& spec = pass.in.nodeset.spec;
  const std::string absent =
      fmt::format("spec.controllerRef.name: Controller {}/{} does not exist", pass.in.meta().ns, spec.controller_ref.name);
  const bool cluster_goes = controller && controller->meta.terminating();
  pass.desired = std::max(0, spec.replicas);
  if (orphans(pass)) {
    pass.goal = Goal::kHold;
  } else if (cluster_goes && !controller->drain_on_deletion) {
    pass.goal = Goal::kEndAll;
    pass.waiting("ControllerDeleted", "Controller " + controller->meta.name + " is being deleted");
  } else if (pass.in.meta().terminating() || cluster_goes) {
    pass.goal = Goal::kDrainAll;
    pass.waiting("Deleting", "draining and deleting all workers");
    if (!pass.in.controller_error.empty()) {
      pass.wrong("ControllerInvalid", pass.in.controller_error);
    } else if (!controller && !pass.in.pods.empty()) {
      pass.wrong("ControllerNotFound",
                 absent + ", so the operator cannot tell whether workers run jobs: delete their pods by hand");
    }
  } else if (!pass.in.invalid.empty()) {
    hold(pass, "InvalidSpec", pass.in.invalid);
  } else if (!pass.in.controller_error.empty()) {
    hold(pass, "ControllerInvalid", pass.in.controller_error);
  } else if (!controller) {
    hold(pass, "ControllerNotFound", absent);
  } else if (spec.scaling_mode != api::ScalingMode::kStatefulSet) {
    hold(pass, "ScalingModeNotActedOn",
         "spec.scalingMode: DaemonSet is not supported in this release, so no workers are created");
  }
  if (pass.goal == Goal::kDrainAll || pass.goal == Goal::kEndAll) pass.desired = 0;
}

/// Workers of the Go operator with scalingMode DaemonSet: who looks at the rest of the status would take them for absent.
void tell_unnumbered(Pass& pass) {
  std::vector<std::string> names;
  for (const kube::PodPtr& pod : pass.in.pods) {
    if (!ordinal_of(pod->meta.name, pass.in.meta().name + "-")) names.push_back(pod->meta.name);
  }
  if (names.empty()) return;
  pass.wrong(
      "PodsWithoutOrdinal",
      fmt::format(
          "{} Pods of this NodeSet have no number at the end of their names, as another operator creates them with scalingMode "
          "DaemonSet: {}. This operator does not count, drain or protect them: drain their Slurm nodes, and delete the pods "
          "with kubectl when they run no jobs",
          names.size(), core::compress_hostlist(names)));
}

/// What slurmd would end at is told where users wrote it, also while no worker is to be created with it yet.
void check_conf(Pass& pass) {
  if (pass.goal != Goal::kServe) return;
  const core::Result<std::string> conf = slurmd_conf(pass.in.nodeset.spec, pass.in.meta().name);
  std::string wrong = conf ? "" : conf.error().message;
  if (conf) {
    for (const slurm::conf::Problem& problem : slurm::conf::parse_node_conf(*conf).problems) {
      std::string& text = problem.fatal ? wrong : pass.conf_doubts;
      text += (text.empty() ? "spec.extraConf: " : "; ") + problem.str();
    }
  }
  pass.conf_refused = !wrong.empty();
  if (pass.conf_refused) pass.wrong("InvalidSpec", std::move(wrong), "Create");
}

plan::Plan plan_nodeset(const Observed& observed) {
  Pass pass(observed);
  choose_goal(pass);
  tell_unnumbered(pass);
  check_conf(pass);
  judge_fates(pass);
  keep_revisions(pass);
  find_vacancies(pass);
  set_drains(pass);
  end_gone_nodes(pass);
  delete_workers(pass);
  keep_metadata(pass);
  keep_on_lost_hosts(pass);
  resume_workers(pass);
  adopt_orphans(pass);
  create_workers(pass);
  report_states(pass);
  delete_records(pass);
  delete_moved(pass);
  remove_finalizer(pass);
  stamp_comments(pass);
  write_status(pass);
  return std::move(pass.out);
}

}  // namespace op::nodeset
