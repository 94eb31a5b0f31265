// Plans for a slurmctld outside of Kubernetes, which the operator does not run. The operator sends requests to this slurmctld
// and creates the Kubernetes objects that workers need. It does not change the configuration, keys or state of this slurmctld.
#include <fmt/format.h>

#include <algorithm>

#include "api/well_known.hpp"
#include "operator/common/children.hpp"
#include "operator/common/partition.hpp"
#include "operator/common/slinky.hpp"
#include "operator/controller/build.hpp"
#include "operator/controller/config.hpp"
#include "operator/controller/draft.hpp"
#include "operator/controller/rollout.hpp"
#include "slinky/names.hpp"
#include "slurm/conf/conf.hpp"

namespace op::controller {
namespace {

namespace conf = slurm::conf;

std::string address(const Observed& observed) {
  return controller_endpoint(observed.controller.spec, observed.object->meta.ns, observed.object->meta.name).str();
}

/// Returns the problems of the keys. The user must provide the keys of the external slurmctld, because this slurmctld would not
/// accept generated keys.
std::vector<Problem> external_key_problems(const Observed& observed) {
  std::vector<Problem> out;
  const char* jwt_field = observed.controller.spec.jwt_hs256_key_ref && !observed.controller.spec.jwt_key_ref
                              ? "spec.jwtHs256KeyRef"
                              : "spec.jwtKeyRef";
  for (const auto& [key, field] : {std::pair(&observed.slurm_key, "spec.slurmKeyRef"), {&observed.jwt_key, jwt_field}}) {
    if (key->ref.generated) {
      out.push_back({"KeyNotNamed", fmt::format("{}: required when spec.external is true: name a Secret that holds the key of "
                                                "the slurmctld at {}",
                                                field, address(observed))});
    } else if (auto problem = key_problem(*key, observed.object->meta.ns, field)) {
      out.push_back(std::move(*problem));
    }
  }
  return out;
}

/// Returns the spec fields that have no effect for an external slurmctld, such as those for running slurmctld.
std::vector<std::string> ignored_fields(const Observed& observed) {
  const api::ControllerSpec& spec = observed.controller.spec;
  const core::Json none = core::Json::object();
  std::vector<std::string> out = api::fields_not_acted_on(spec);
  const auto note = [&](bool set, const char* field) {
    if (set) out.emplace_back(field);
  };
  note(spec.sssd_conf_ref.has_value(), "spec.sssdConfRef");
  note(spec.slurmctld != none, "spec.slurmctld");
  note(spec.reconfigure != none, "spec.reconfigure");
  note(spec.inplace_reconfigure, "spec.inplaceReconfigure");
  note(spec.logfile != none, "spec.logfile");
  note(!spec.config_file_refs.empty(), "spec.configFileRefs");
  note(spec.topology.has_value(), "spec.topology");
  note(!spec.prolog_script_refs.empty(), "spec.prologScriptRefs");
  note(!spec.epilog_script_refs.empty(), "spec.epilogScriptRefs");
  note(!spec.prolog_slurmctld_script_refs.empty(), "spec.prologSlurmctldScriptRefs");
  note(!spec.epilog_slurmctld_script_refs.empty(), "spec.epilogSlurmctldScriptRefs");
  note(spec.jwks_key_ref.has_value(), "spec.jwksKeyRef");
  note(spec.metrics.enabled, "spec.metrics.enabled");
  note(spec.ha.enabled, "spec.ha.enabled");
  const core::Json said = api::to_json(spec), unsaid = api::to_json(api::ControllerSpec{});
  for (const char* field : {"persistence", "service", "template"}) {
    if (said.value(field, core::Json()) != unsaid.value(field, core::Json())) out.push_back(std::string("spec.") + field);
  }
  return out;
}

/// Reports missing partitions of NodeSets. The operator does not write an external slurm.conf, so a person has to add them.
void find_missing_partitions(Draft& draft) {
  const Observed& observed = draft.observed;
  if (!observed.snapshot || !observed.snapshot->complete()) return;
  std::string lines;
  for (const NodeSetFacts& nodeset : observed.nodesets) {
    const std::string& name = nodeset.slurm_name;
    if (!nodeset.partition || nodeset.ending || observed.snapshot->partitions.contains(name)) continue;
    conf::Conf wanted;
    wanted.add_record("NodeSet", name, "Feature=" + name);
    if (const auto line = partition_line(name, nodeset.partition_config)) {
      wanted.add(*line);
    } else {
      wanted.add_record("PartitionName", name, "Nodes=" + name);
    }
    lines += wanted.render();
  }
  if (lines.empty()) return;
  std::ranges::replace(lines, '\n', ';');
  draft.problems.push_back(
      {"PartitionMissing", "the slurmctld at " + address(observed) +
                               " lacks partitions of NodeSets, and the operator does not write its slurm.conf: add these "
                               "lines, and reconfigure, or set spec.partition.enabled of the NodeSets to false: " +
                               lines});
}

/// True if slurmctld answers or answered recently. So a single failed request does not count as silence.
bool answers(Draft& draft) {
  constexpr core::Duration kPatience{30000};
  const plan::Context& context = draft.observed.context;
  const slurm::SnapshotPtr& snapshot = draft.observed.snapshot;
  if (!slurm::has_answered(snapshot)) return false;
  if (snapshot->complete()) return true;
  const core::Duration left = kPatience - (context.mono - snapshot->requested_at);
  if (left.count() <= 0) return false;
  draft.plan.wake_after(left, "slurmctld counts as silent then");
  return true;
}

/// Reports that slurmctld's StatefulSet or pod of an earlier Controller of this name still exists.
void tell_own_slurmctld(Draft& draft) {
  const std::string name = controller_object_name(draft.observed.object->meta.name);
  draft.problems.push_back({"SlurmctldExists", "spec.external is true, but StatefulSet " + name +
                                                   " or its pod still exists, and its files would be overwritten: delete the "
                                                   "StatefulSet, or give this Controller another name"});
  draft.blocked = true;
  plan_status(draft, conditions_of(draft.observed), false);
}

}  // namespace

void plan_external(Draft& draft) {
  const Observed& observed = draft.observed;
  if (observed.stateful_set || !observed.pods.empty()) return tell_own_slurmctld(draft);
  plan_guard(draft);
  plan_workers_objects(draft);

  Keyring keyring;
  if (!observed.slurm_key.ref.generated) keyring = plan_copy(draft);
  const Rendered wanted = render_external(observed);
  plan::Lane& lane = draft.plan.lane("pod");
  if (wanted.ok() && !(observed.stopped && observed.config_map)) {
    ConfigState state;
    state.offered = wanted.files;
    state.offered_hash = wanted.hash;
    lane.add(apply_step(kube::resources::kConfigMap, build_config_map(observed, state), observed.config_map.get(),
                        kManagerController));
  }
  lane.add(std::move(keyring.renew));

  Conditions conditions = conditions_of(observed);
  std::vector<Problem> keys = external_key_problems(observed);
  conditions.set("SecretsReady", keys.empty(), keys.empty() ? "Ready" : keys.front().reason,
                 keys.empty() ? "" : keys.front().message);
  const bool usable = keys.empty();
  append(draft.problems, std::move(keys));
  set_key_condition(conditions, draft, keyring);
  set_fields_not_acted_on(conditions, ignored_fields(observed));
  set_deletions_stopped(conditions, observed.stopped, observed.doubt);
  append(draft.problems, wanted.problems);
  append(draft.problems, wanted.warnings);
  append(draft.problems, step_problems(observed.context.outcomes, draft.plan));
  if (usable) append(draft.problems, token_problems(observed));
  if (const auto problem = slurm_problem(observed.snapshot)) draft.problems.push_back(*problem);
  find_missing_partitions(draft);

  const bool ready = answers(draft);
  if (!ready) {
    draft.waiting =
        observed.restapis.empty()
            ? "no RestApi refers to this Controller, so the operator cannot reach the slurmctld at " + address(observed)
            : "the slurmctld at " + address(observed) +
                  (slurm::has_answered(observed.snapshot) ? " no longer answers" : " has not answered yet");
  }
  plan_status(draft, std::move(conditions), ready);
}

}  // namespace op::controller
