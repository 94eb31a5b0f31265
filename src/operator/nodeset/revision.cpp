// Manages the NodeSet's ControllerRevisions: finds the newest template, decides whether that template replaces workers, and
// deletes old revisions.
#include "api/revision.hpp"

#include <algorithm>
#include <set>

#include "api/well_known.hpp"
#include "kube/acts.hpp"
#include "operator/common/children.hpp"
#include "operator/nodeset/parts.hpp"

namespace op::nodeset {
namespace {

constexpr std::string_view kTrue = "true";
constexpr std::string_view kFalse = "false";

std::string revision_name(const Observed& in) {
  return in.meta().name + "-" + in.hash;
}

std::int64_t number(const kube::Object& revision) {
  return core::get_int(revision.body, {"revision"});
}

struct Revisions {
  kube::ObjectPtr current;  ///< The revision of the present template. Null: there is none yet.
  kube::ObjectPtr before;   ///< The newest revision except `current`. Null: there is none.
  std::int64_t newest = 0;  ///< The number of the revision `before`. 0: there is none.

  /// True if the API server shows the revision of the present template as the newest revision.
  [[nodiscard]] bool up_to_date() const { return current != nullptr && number(*current) > newest; }
};

Revisions read_revisions(const Observed& in) {
  Revisions out;
  const std::string name = revision_name(in);
  for (const kube::ObjectPtr& revision : in.revisions) {
    if (revision->meta.name == name) {
      out.current = revision;
    } else if (out.before == nullptr || number(*revision) > out.newest) {
      out.before = revision;
      out.newest = number(*revision);
    }
  }
  return out;
}

/// Returns when the revision last became the newest.
core::WallTime newest_since(const kube::Object& revision) {
  const auto again = core::parse_rfc3339(revision.meta.annotation(api::kAnnotationNewestSince));
  return again ? *again : revision.meta.created;
}

/// True if the revision was recorded by a release of the operator that can roll out templates.
bool recorded(const kube::Object& revision) {
  return !revision.meta.annotation(api::kAnnotationRolls).empty();
}

/// Returns "true" if the present template replaces workers of other templates when it becomes the newest, otherwise "false".
/// The first revision that this operator records replaces no workers. These workers come from an earlier release or another
/// operator, and nobody has changed the template since.
std::string_view rolls_text(const Observed& in, const kube::Object* current) {
  const bool by_itself = in.nodeset.spec.update_strategy.type != api::UpdateStrategyType::kOnDelete;
  const bool has_earlier = std::ranges::any_of(
      in.revisions, [&](const kube::ObjectPtr& revision) { return revision.get() != current && recorded(*revision); });
  return by_itself && has_earlier ? kTrue : kFalse;
}

/// Returns the hash of the template that workers below the partition use once the present template is the newest. "": these
/// workers use the present template. If all workers had the previous template, the result is that template. Otherwise it is the
/// template that the previous revision recorded for workers below the partition.
std::string base_of_new(const Observed& in, const kube::Object& before) {
  std::string its(before.meta.label(api::kLabelRevisionHash));
  const std::string_view base = before.meta.annotation(api::kAnnotationBaseRevision);
  const bool complete = base.empty() || std::ranges::none_of(in.pods, [&](const kube::PodPtr& pod) {
                          const std::string_view hash = pod->meta.label(api::kLabelRevisionHash);
                          return !hash.empty() && hash != its && hash != in.hash;
                        });
  if (!complete) its = base;
  return its == in.hash ? "" : its;
}

/// Returns the annotations for a revision that becomes the newest.
core::Json notes(const View& view, const Revisions& revisions) {
  const std::string_view rolls = rolls_text(view.in, revisions.current.get());
  const std::string base = rolls == kTrue ? base_of_new(view.in, *revisions.before) : "";
  return {{std::string(api::kAnnotationRolls), rolls},
          {std::string(api::kAnnotationBaseRevision), base.empty() ? core::Json(nullptr) : core::Json(base)}};
}

/// True if all wanted workers exist and have the newest template, and spec.updateStrategy.rollingUpdate.partition is 0.
bool is_complete(const View& view, const Workers& workers) {
  const api::UpdateStrategy& strategy = view.in.nodeset.spec.update_strategy;
  return view.goal == Goal::kServe && strategy.rolling_update.partition == 0 &&
         workers.size() == static_cast<std::size_t>(view.desired) && std::ranges::all_of(workers, [&](const Worker& worker) {
           return worker.life == Life::kLive && !is_earlier(view, worker);
         });
}

core::Json new_revision(const View& view, const std::string& name, const Revisions& revisions) {
  const kube::ObjectMeta& self = view.in.meta();
  kube::StringMap labels = worker_labels(self.name, view.in.nodeset.spec.controller_ref.name);
  labels.emplace(api::kLabelRevisionHash, view.in.hash);
  core::Json out = child_json(kube::resources::kControllerRevision, {self.ns, name}, resources::kNodeSet, self, labels);
  core::Json& annotations = out["metadata"]["annotations"];
  annotations.merge_patch(notes(view, revisions));
  out["revision"] = revisions.newest + 1;
  out["data"] = api::recorded_data(view.in.nodeset.spec);
  return out;
}

plan::Step adoption(const View& view, const kube::Object& revision) {
  core::Json owners = core::Json::array({kube::owner_reference_json(resources::kNodeSet, view.in.meta())});
  return {{"adopt", "ControllerRevision", revision.meta.name},
          "a former NodeSet of the same name has left it behind",
          kube::patch_any_version(kube::resources::kControllerRevision, revision.meta,
                                  {{"metadata", {{"ownerReferences", std::move(owners)}}}}, kube::PatchType::kStrategic)};
}

/// Deletes the oldest revisions that no worker uses, so that at most revisionHistoryLimit unused revisions are left.
void truncate_history(const View& view, const Workers& workers, std::vector<kube::ObjectPtr> revisions,
                      const std::string& current, Draft& draft) {
  std::set<std::string, std::less<>> used{view.in.hash, base_revision(view.in)};
  for (const kube::PodPtr& orphan : view.in.orphans) used.emplace(orphan->meta.label(api::kLabelRevisionHash));
  for (const Worker& worker : workers) {
    used.emplace(worker.pod->meta.label(api::kLabelRevisionHash));
    // Keep the revision with which the pod was created, because it shows which features must be removed from the Slurm node.
    used.emplace(worker.pod->meta.annotation(api::kAnnotationCreatedRevision));
  }
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
               "no worker uses it, and revisionHistoryLimit is " + std::to_string(limit),
               kube::delete_object(kube::resources::kControllerRevision, revision->meta));
  }
}

}  // namespace

std::string base_revision(const Observed& in) {
  if (in.hash.empty()) return {};
  const Revisions revisions = read_revisions(in);
  std::string base;
  if (revisions.up_to_date()) {
    base = revisions.current->meta.annotation(api::kAnnotationBaseRevision);
  } else if (rolls_text(in, revisions.current.get()) == kTrue) {
    base = base_of_new(in, *revisions.before);
  }
  const bool there = std::ranges::any_of(
      in.revisions, [&](const kube::ObjectPtr& revision) { return revision->meta.label(api::kLabelRevisionHash) == base; });
  return there ? base : "";
}

Rolls newest_revision_rolls(const View& view) {
  if (view.in.nodeset.spec.update_strategy.type == api::UpdateStrategyType::kOnDelete) return Rolls::kNo;
  const Revisions revisions = read_revisions(view.in);
  const kube::ObjectPtr& current = revisions.current;
  if (revisions.up_to_date()) return current->meta.annotation(api::kAnnotationRolls) == kTrue ? Rolls::kYes : Rolls::kNo;
  return rolls_text(view.in, current.get()) == kTrue ? Rolls::kToBeRecorded : Rolls::kNo;
}

std::optional<core::WallTime> newest_revision_since(const View& view) {
  const Revisions revisions = read_revisions(view.in);
  if (!revisions.up_to_date()) return std::nullopt;
  const core::WallTime since = newest_since(*revisions.current);
  return revisions.before == nullptr || newest_since(*revisions.before) <= since ? std::optional(since) : std::nullopt;
}

void keep_revisions(const View& view, const Workers& workers, Draft& draft) {
  if (view.goal == Goal::kDrainAll || view.goal == Goal::kEndAll || view.in.meta().terminating() || !view.in.invalid.empty())
    return;
  const std::string name = revision_name(view.in);
  const Revisions revisions = read_revisions(view.in);
  const kube::ObjectPtr& current = revisions.current;
  plan::Lane& lane = draft.lane("revision");
  for (const kube::ObjectPtr& revision : view.in.revisions) {
    if (revision->meta.controller_owner() != nullptr || revision->meta.terminating()) continue;
    if (!view.in.stays) draft.need(need_nodeset(view.in));
    if (view.in.stays.value_or(false)) draft.step(lane, adoption(view, *revision));
  }
  lane.then();
  if (current == nullptr) {
    draft.step(lane, {"create", "ControllerRevision", name}, "the workers' template is new",
               kube::create(kube::resources::kControllerRevision, new_revision(view, name, revisions)));
  } else if (!revisions.up_to_date()) {
    core::Json annotations = notes(view, revisions);
    annotations[std::string(api::kAnnotationNewestSince)] = core::format_rfc3339(view.in.now);
    draft.step(
        lane, {"renew", "ControllerRevision", name}, "the workers' template is again what it was",
        kube::merge_patch(kube::resources::kControllerRevision, current->meta,
                          {{"revision", revisions.newest + 1}, {"metadata", {{"annotations", std::move(annotations)}}}}));
  } else if (!recorded(*current)) {
    draft.step(lane, {"record", "ControllerRevision", name}, "an earlier release made it",
               kube::merge_patch(kube::resources::kControllerRevision, current->meta,
                                 {{"metadata", {{"annotations", {{std::string(api::kAnnotationRolls), kFalse}}}}}}));
  } else if (!current->meta.annotation(api::kAnnotationBaseRevision).empty() && is_complete(view, workers)) {
    draft.step(lane, {"complete", "ControllerRevision", name}, "all workers use it",
               kube::merge_patch(kube::resources::kControllerRevision, current->meta,
                                 {{"metadata", {{"annotations", {{std::string(api::kAnnotationBaseRevision), nullptr}}}}}}));
  }
  lane.then();
  truncate_history(view, workers, view.in.revisions, name, draft);
}

}  // namespace op::nodeset
