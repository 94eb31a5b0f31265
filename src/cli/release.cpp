#include "cli/release.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>

#include "api/well_known.hpp"
#include "cli/command.hpp"
#include "slinky/names.hpp"

namespace cli {
namespace {

using core::Json;

/// The possible difference between our clock and the API server's.
constexpr core::Duration kSkew{60000};
/// The operator's identity ends with this many hexadecimal digits. The Go operator's ends with a UUID.
constexpr std::size_t kIdentityDigits = 16;
constexpr std::string_view kNamespacesFlag = "--namespaces=";

std::string holder_of(const Json& lease) {
  return core::get_string(lease, {"spec", "holderIdentity"});
}

enum class Holder { kNobody, kUs, kGo };

Holder kind_of(const std::string& identity) {
  if (identity.empty()) return Holder::kNobody;
  const std::size_t at = identity.rfind('_');
  const std::string_view end = at == std::string::npos ? "" : std::string_view(identity).substr(at + 1);
  const bool hex = end.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  if (end.size() == kIdentityDigits && hex) return Holder::kUs;
  // Any other identity counts as this operator's, which is the safe assumption.
  return end.size() == 36 && std::ranges::count(end, '-') == 4 ? Holder::kGo : Holder::kUs;
}

bool renewed(const Json& lease, core::WallTime now) {
  const auto at = core::parse_rfc3339(core::get_string(lease, {"spec", "renewTime"}));
  if (!at) return false;
  return now - *at < std::chrono::seconds(core::get_int(lease, {"spec", "leaseDurationSeconds"}, 15)) + kSkew;
}

/// Reports whether the flags of an operator's pod limit the operator to namespaces other than this one.
bool acts_elsewhere(const Json& pod, const std::string& ns) {
  const Json* containers = core::find(pod, {"spec", "containers"});
  if (containers == nullptr || !containers->is_array()) return false;
  for (const Json& container : *containers) {
    for (const Json& arg : container.value("args", Json::array())) {
      if (!arg.is_string() || !arg.get_ref<const std::string&>().starts_with(kNamespacesFlag)) continue;
      const std::string list = "," + arg.get<std::string>().substr(kNamespacesFlag.size()) + ",";
      return list != ",," && list.find("," + ns + ",") == std::string::npos;
    }
  }
  return false;
}

/// Returns the finalizers without ours; null if ours is not among them.
Json other_finalizers(const kube::ObjectMeta& meta, std::string_view ours) {
  if (std::ranges::find(meta.finalizers, ours) == meta.finalizers.end()) return nullptr;
  Json out = Json::array();
  for (const std::string& finalizer : meta.finalizers) {
    if (finalizer != ours) out.push_back(finalizer);
  }
  return out;
}

void take_finalizer(const kube::Resource& resource, const Json& object, std::string_view finalizer, ReleasePlan& plan) {
  const kube::ObjectMeta meta = kube::parse_meta(object);
  Json rest = other_finalizers(meta, finalizer);
  if (rest.is_null()) return;
  plan.steps.push_back(
      {resource,
       meta,
       "remove the finalizer " + std::string(finalizer),
       {{"metadata", {{"uid", meta.uid}, {"resourceVersion", meta.resource_version}, {"finalizers", std::move(rest)}}}}});
}

void take_annotations(const kube::Resource& resource, const Json& object, const std::vector<std::string_view>& names,
                      ReleasePlan& plan) {
  const kube::ObjectMeta meta = kube::parse_meta(object);
  Json gone = Json::object();
  std::string list;
  for (const std::string_view name : names) {
    if (!meta.annotations.contains(name)) continue;
    gone[std::string(name)] = nullptr;
    list += (list.empty() ? "" : ", ") + std::string(name);
  }
  if (gone.empty()) return;
  plan.steps.push_back(
      {resource, meta, "remove the annotation " + list, {{"metadata", {{"uid", meta.uid}, {"annotations", std::move(gone)}}}}});
}

bool belongs(const Json& object, const std::string& controller) {
  return core::get_string(object, {"spec", "controllerRef", "name"}) == controller;
}

/// Returns why removing the finalizer would delete an object, with its jobs, at once; "" if no object would be deleted.
std::string what_ends(const ReleaseFacts& facts, const kube::ObjectMeta& controller) {
  std::vector<const Json*> objects{&facts.controller};
  for (const auto* list : {&facts.nodesets, &facts.restapis}) {
    for (const Json& object : *list) {
      if (belongs(object, controller.name)) objects.push_back(&object);
    }
  }
  for (const Json* object : objects) {
    if (kube::parse_meta(*object).terminating())
      return fmt::format(
          "{} {} is being deleted. Without its finalizer it would be removed at once, with the jobs that run there. Let the "
          "operator finish the deletion first, which waits for jobs.",
          core::get_string(*object, {"kind"}), kube::key_of(*object).name);
  }
  return "";
}

/// Adds notes about what the Go operator requires of the keys of a Controller.
void note_keys(const Json& controller, ReleasePlan& plan) {
  const auto read = api::from_json<api::ControllerSpec>(controller.value("spec", Json::object()));
  if (!read || read->external) return;
  const std::string name = kube::key_of(controller).name;
  for (const auto& [field, ref] : {std::pair{"slurmKeyRef", slinky::slurm_key_ref(*read, name)},
                                   std::pair{"jwtKeyRef", slinky::jwt_key_ref(*read, name)}}) {
    if (!ref.generated) continue;
    plan.notes.push_back(fmt::format(
        "The Go operator requires spec.{} of the Controller, and generates no keys. Name the generated Secret there once its "
        "definitions are installed: {{name: {}, key: {}}}.",
        field, ref.secret, ref.key));
  }
}

/// Adds a note that backups of the two operators must not stand by at the same time.
void note_backups(const Json& controller, ReleasePlan& plan) {
  const auto read = api::from_json<api::ControllerSpec>(controller.value("spec", Json::object()));
  if (!read || slinky::backups_of(*read) == 0) return;
  const kube::Key key = kube::key_of(controller);
  plan.notes.push_back(
      fmt::format("StatefulSet {0} is kept. The Go operator does not know it, and its slurmctlds take over by themselves. "
                  "Before that operator starts: kubectl -n {1} delete statefulset {0}",
                  slinky::backup_object_name(key.name), key.ns));
}

core::Result<ReleaseFacts> read_facts(Api& api, const kube::Key& key) {
  auto controller = api.get(slinky::resources::kController, key);
  if (!controller) return std::unexpected(controller.error());
  const std::string workers = fmt::format("{}={}", api::kLabelName, slinky::kAppWorker);
  const std::string of_cluster = fmt::format("{},{}={}", workers, api::kLabelCluster, key.name);
  auto lists = api.lists(
      {{slinky::resources::kNodeSet, key.ns},
       {slinky::resources::kRestApi, key.ns},
       {.resource = kube::resources::kPod, .ns = key.ns, .label_selector = of_cluster, .metadata_only = true},
       {.resource = kube::resources::kControllerRevision, .ns = key.ns, .label_selector = of_cluster, .metadata_only = true},
       {.resource = kube::resources::kPodDisruptionBudget, .ns = key.ns, .metadata_only = true},
       {.resource = slinky::resources::kAccounting, .ns = key.ns, .optional = true}});
  for (const auto& list : lists) {
    if (!list) return std::unexpected(list.error());
  }
  return ReleaseFacts{std::move(*controller), std::move(*lists[0]), std::move(*lists[1]), std::move(*lists[2]),
                      std::move(*lists[3]),   std::move(*lists[4]), std::move(*lists[5])};
}

/// Lists the pods and Leases of operators, and returns the result of operator_runs(). Error: the user may not list them.
core::Result<std::string> look_for_operator(Api& api, const std::string& ns) {
  const std::string name(api::kOperatorName);
  auto found = api.lists({{.resource = kube::resources::kPod, .label_selector = std::string(api::kLabelName) + "=" + name},
                          {.resource = kube::resources::kLease, .field_selector = "metadata.name=" + name}});
  for (const auto& list : found) {
    if (!list) return std::unexpected(list.error().with("cannot tell whether the operator runs"));
  }
  std::set<std::string> namespaces;
  for (const Json& pod : *found[0]) namespaces.insert(kube::key_of(pod).ns);
  std::vector<ListRequest> more;
  for (const std::string& space : namespaces) more.push_back({kube::resources::kLease, space});
  for (auto& list : api.lists(more)) {
    if (!list) return std::unexpected(list.error().with("cannot tell whether the operator runs"));
    std::ranges::move(*list, std::back_inserter(*found[1]));
  }
  return operator_runs(*found[0], *found[1], ns, api.clock().wall());
}

std::string line_of(const ReleaseStep& step) {
  return fmt::format("{} {}: {}", step.resource.kind, step.object.name, step.what);
}

int run_release(Context& context, const std::string& name, bool dry_run, bool yes, bool remove_budget) {
  const auto api = context.api();
  if (!api) return context.fail(api.error());
  const kube::Key key{context.one_ns(), name};
  const auto facts = read_facts(**api, key);
  if (!facts) return context.fail(facts.error());
  const ReleasePlan plan = plan_release(*facts, remove_budget);
  for (const ReleaseStep& step : plan.steps) context.out(line_of(step) + "\n");
  if (plan.steps.empty()) context.out("nothing of this operator is left to remove\n");
  for (const std::string& note : plan.notes) context.note("note: " + note);
  const auto runs = look_for_operator(**api, key.ns);
  if (!runs) return context.fail(runs.error());
  if (!runs->empty()) {
    return context.refuse(*runs +
                          ". It would restore what is removed. Stop it first, and wait until its pods are gone:\n  kubectl -n "
                          "NAMESPACE scale deployment/slurm-operator --replicas=0");
  }
  if (!plan.refusal.empty()) return context.refuse(plan.refusal);
  if (dry_run || plan.steps.empty()) return kDone;
  if (!yes && !context.confirm("Release cluster " + key.str() + "?"))
    return context.refuse("not confirmed. Confirm with --yes.");
  for (const ReleaseStep& step : plan.steps) {
    core::Result<void> done;
    if (step.patch.is_null()) {
      done = (*api)->remove(step.resource, step.object);
    } else {
      const auto written = (*api)->patch(step.resource, step.object.key(), kube::PatchType::kMerge, step.patch);
      // If the object is gone, there is nothing to remove from it, so NotFound is no error.
      if (!written && written.error().code != core::ErrorCode::kNotFound) done = std::unexpected(written.error());
    }
    if (!done) {
      context.note("not all steps were done. Run the same command again.");
      return context.fail(done.error().with(line_of(step)));
    }
  }
  context.note("Cluster " + key.str() + " is released. What runs keeps running.");
  return kDone;
}

}  // namespace

std::string operator_runs(const std::vector<Json>& pods, const std::vector<Json>& leases, const std::string& ns,
                          core::WallTime now) {
  std::set<std::string> elsewhere;  // Pods that act in other namespaces.
  std::set<std::string> go;         // Namespaces where the Go operator leads.
  for (const Json& pod : pods) {
    if (acts_elsewhere(pod, ns)) elsewhere.insert(kube::key_of(pod).str());
  }
  for (const Json& lease : leases) {
    const std::string holder = holder_of(lease);
    const kube::Key key = kube::key_of(lease);
    const bool fresh = renewed(lease, now);
    if (fresh && kind_of(holder) == Holder::kGo) go.insert(key.ns);
    if (!fresh || kind_of(holder) != Holder::kUs) continue;
    const std::string pod = holder.substr(0, holder.rfind('_'));
    // Skips the Leases of other programs in the operator's namespace.
    const bool known = std::ranges::any_of(pods, [&](const Json& one) { return kube::key_of(one) == kube::Key{key.ns, pod}; });
    if (!known && key.name != api::kOperatorName) continue;
    if (elsewhere.contains(key.ns + "/" + pod)) continue;
    return fmt::format("the operator is active: Lease {} is held by {}", key.str(), holder);
  }
  for (const Json& pod : pods) {
    const kube::Key key = kube::key_of(pod);
    const std::string phase = core::get_string(pod, {"status", "phase"});
    if (phase == "Succeeded" || phase == "Failed" || go.contains(key.ns) || elsewhere.contains(key.str())) continue;
    return fmt::format("pod {} of the operator exists", key.str());
  }
  return "";
}

ReleasePlan plan_release(const ReleaseFacts& facts, bool remove_budget) {
  ReleasePlan plan;
  const kube::ObjectMeta meta = kube::parse_meta(facts.controller);
  plan.refusal = what_ends(facts, meta);
  for (const Json& pod : facts.workers)
    take_annotations(kube::resources::kPod, pod, {api::kAnnotationRegistered, api::kAnnotationDeletionEvidence}, plan);
  for (const Json& revision : facts.revisions)
    take_annotations(kube::resources::kControllerRevision, revision, {api::kAnnotationRolls}, plan);
  for (const Json& budget : facts.budgets) {
    const kube::ObjectMeta its = kube::parse_meta(budget);
    if (its.name != slinky::workers_pdb_name(meta.name)) continue;
    if (remove_budget) {
      plan.steps.push_back(
          {kube::resources::kPodDisruptionBudget, its, "delete it: nothing protects workers from eviction any more", {}});
    } else {
      plan.notes.push_back(
          fmt::format("PodDisruptionBudget {} is kept: it protects workers that run jobs from eviction, and the Go operator "
                      "takes it over. If no operator follows, delete it, or use --remove-budget.",
                      its.name));
    }
  }
  for (const Json& nodeset : facts.nodesets) {
    if (belongs(nodeset, meta.name)) take_finalizer(slinky::resources::kNodeSet, nodeset, api::kFinalizerNodeSet, plan);
  }
  for (const Json& restapi : facts.restapis) {
    if (belongs(restapi, meta.name)) take_finalizer(slinky::resources::kRestApi, restapi, api::kFinalizerRestApi, plan);
  }
  take_finalizer(slinky::resources::kController, facts.controller, api::kFinalizerController, plan);
  const std::string named = core::get_string(facts.controller, {"spec", "accountingRef", "name"});
  for (const Json& accounting : facts.accountings) {
    if (kube::key_of(accounting).name == named)
      take_finalizer(slinky::resources::kAccounting, accounting, api::kFinalizerAccounting, plan);
  }
  note_keys(facts.controller, plan);
  note_backups(facts.controller, plan);
  plan.notes.push_back(
      fmt::format("Pods keep mounting Secret {}. Keep it until they have been replaced.", slinky::keyring_name(meta.name)));
  return plan;
}

Command release_command() {
  const auto declare = [](CLI::App& app) -> Run {
    struct Arguments {
      std::string name;
      bool dry_run = false, yes = false, remove_budget = false;
    };
    auto given = std::make_shared<Arguments>();
    app.add_option("CLUSTER", given->name, "The Controller")->required();
    app.add_flag("--dry-run", given->dry_run, "Print what would be done, and change nothing");
    app.add_flag("--yes,-y", given->yes, "Do not ask for confirmation");
    app.add_flag("--remove-budget", given->remove_budget,
                 "Also delete the workers' PodDisruptionBudget. Use it when no other operator follows");
    return [given](Context& context) -> int {
      return run_release(context, given->name, given->dry_run, given->yes, given->remove_budget);
    };
  };
  return {.path = "release",
          .about = "Release a cluster, to the Go operator or to none: remove the finalizers and annotations of this operator",
          .names = Names::kClusters,
          .declare = declare};
}

}  // namespace cli
