#include "operator/nodeset/revision.hpp"

#include <algorithm>
#include <set>

#include "api/well_known.hpp"
#include "core/hash.hpp"
#include "kube/acts.hpp"
#include "operator/common/children.hpp"
#include "operator/nodeset/parts.hpp"

namespace op::nodeset {
namespace {

constexpr std::string_view kTrue = "true";
constexpr std::string_view kFalse = "false";

std::string revision_name(const View& view) {
  return view.in.meta().name + "-" + view.in.hash;
}

std::int64_t number(const kube::Object& revision) {
  return core::get_int(revision.body, {"revision"});
}

struct Revisions {
  kube::ObjectPtr current;  ///< Of the template as it is now; null: there is none yet.
  std::int64_t newest = 0;  ///< The highest number of the others.
};

Revisions read_revisions(const View& view) {
  Revisions out;
  const std::string name = revision_name(view);
  for (const kube::ObjectPtr& revision : view.in.revisions) {
    if (revision->meta.name == name) {
      out.current = revision;
    } else {
      out.newest = std::max(out.newest, number(*revision));
    }
  }
  return out;
}

/// It was recorded by an operator that rolls.
bool recorded(const kube::Object& revision) {
  return !revision.meta.annotation(api::kAnnotationRolls).empty();
}

/// Whether workers of other templates are replaced when this one becomes the newest. What was there before the first that we
/// recorded (an earlier release, another operator) never is: nobody has changed the template since.
std::string_view rolls_text(const View& view, const kube::Object* current) {
  const bool by_itself = view.in.nodeset.spec.update_strategy.type == api::UpdateStrategyType::kRollingUpdate;
  const bool has_earlier = std::ranges::any_of(
      view.in.revisions, [&](const kube::ObjectPtr& revision) { return revision.get() != current && recorded(*revision); });
  return by_itself && has_earlier ? kTrue : kFalse;
}

core::Json new_revision(const View& view, const std::string& name, std::int64_t revision) {
  const kube::ObjectMeta& self = view.in.meta();
  kube::StringMap labels = worker_labels(self.name, view.in.nodeset.spec.controller_ref.name);
  labels.emplace(api::kLabelRevisionHash, view.in.hash);
  core::Json out = child_json(kube::resources::kControllerRevision, {self.ns, name}, resources::kNodeSet, self, labels);
  out["metadata"]["annotations"][std::string(api::kAnnotationRolls)] = rolls_text(view, nullptr);
  out["revision"] = revision;
  out["data"] = revision_data(view.in.nodeset.spec);
  return out;
}

plan::Step adoption(const View& view, const kube::Object& revision) {
  auto act = std::make_shared<kube::Patch>();
  act->resource = kube::resources::kControllerRevision;
  act->key = revision.meta.key();
  act->type = kube::PatchType::kStrategic;
  act->uid = revision.meta.uid;
  act->patch = {{"metadata",
                 {{"ownerReferences", core::Json::array({kube::owner_reference_json(resources::kNodeSet, view.in.meta())})}}}};
  return {{"adopt", "ControllerRevision", revision.meta.name}, "a NodeSet of our name left it behind", std::move(act)};
}

/// Drops the oldest of those that no worker is of, down to revisionHistoryLimit.
void truncate_history(const View& view, const Workers& workers, std::vector<kube::ObjectPtr> revisions,
                      const std::string& current, Draft& draft) {
  std::set<std::string, std::less<>> used{view.in.hash};
  for (const Worker& worker : workers) used.emplace(worker.pod->meta.label(api::kLabelRevisionHash));
  std::erase_if(revisions, [&](const kube::ObjectPtr& revision) {
    return revision->meta.name == current || revision->meta.terminating() ||
           used.contains(revision->meta.label(api::kLabelRevisionHash));
  });
  const auto limit = static_cast<std::size_t>(std::max(0, view.in.nodeset.spec.revision_history_limit));
  if (revisions.size() <= limit || view.in.stopped) return;
  std::sort(revisions.begin(), revisions.end(), [](const auto& a, const auto& b) { return number(*a) < number(*b); });
  revisions.resize(revisions.size() - limit);
  for (const kube::ObjectPtr& revision : revisions) {
    draft.step(draft.lane("revision"), {"delete", "ControllerRevision", revision->meta.name},
               "no worker is of it, and revisionHistoryLimit is " + std::to_string(limit),
               kube::delete_object(kube::resources::kControllerRevision, revision->meta));
  }
}

}  // namespace

core::Json revision_data(const api::NodeSetSpec& spec) {
  core::Json data = core::Json::object();
  data["template"] = api::to_json(spec.pod_template);
  data["slurmd"] = spec.slurmd;
  data["logfile"] = spec.logfile;
  data["ssh"] = spec.ssh ? api::to_json(*spec.ssh) : core::Json::object();
  data["extraConf"] = spec.extra_conf;
  data["ordinalPadding"] = spec.ordinal_padding;
  data["oversubscribeNode"] = spec.oversubscribe_node;
  return {{"spec", std::move(data)}};
}

std::string revision_hash(const api::NodeSetSpec& spec) {
  return core::short_hash(core::canonical(revision_data(spec)), 10);
}

Rolls newest_revision_rolls(const View& view) {
  if (view.in.nodeset.spec.update_strategy.type != api::UpdateStrategyType::kRollingUpdate) return Rolls::kNo;
  const auto [current, newest] = read_revisions(view);
  if (current != nullptr && number(*current) > newest)
    return current->meta.annotation(api::kAnnotationRolls) == kTrue ? Rolls::kYes : Rolls::kNo;
  return rolls_text(view, current.get()) == kTrue ? Rolls::kToBeRecorded : Rolls::kNo;
}

void keep_revisions(const View& view, const Workers& workers, Draft& draft) {
  if (view.goal == Goal::kDrainAll || view.goal == Goal::kEndAll || view.in.meta().terminating() || !view.in.invalid.empty())
    return;
  const std::string name = revision_name(view);
  const auto [current, newest] = read_revisions(view);
  plan::Lane& lane = draft.lane("revision");
  for (const kube::ObjectPtr& revision : view.in.revisions) {
    if (revision->meta.controller_owner() == nullptr && !revision->meta.terminating())
      draft.step(lane, adoption(view, *revision));
  }
  lane.then();
  if (current == nullptr) {
    draft.step(lane, {"create", "ControllerRevision", name}, "the workers' template is new",
               kube::create(kube::resources::kControllerRevision, new_revision(view, name, newest + 1)));
  } else if (number(*current) <= newest) {
    draft.step(lane, {"renew", "ControllerRevision", name}, "the workers' template is again what it was",
               kube::merge_patch(
                   kube::resources::kControllerRevision, current->meta,
                   {{"revision", newest + 1},
                    {"metadata", {{"annotations", {{std::string(api::kAnnotationRolls), rolls_text(view, current.get())}}}}}}));
  } else if (!recorded(*current)) {
    draft.step(lane, {"record", "ControllerRevision", name}, "an earlier release made it",
               kube::merge_patch(kube::resources::kControllerRevision, current->meta,
                                 {{"metadata", {{"annotations", {{std::string(api::kAnnotationRolls), kFalse}}}}}}));
  }
  lane.then();
  truncate_history(view, workers, view.in.revisions, name, draft);
}

}  // namespace op::nodeset
