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

std::int64_t number(const kube::Object& revision) {
  return core::get_int(revision.body, {"revision"});
}

core::Json new_revision(const View& view, const std::string& name, std::int64_t revision) {
  const kube::ObjectMeta& self = view.in.meta();
  kube::StringMap labels = worker_labels(self.name, view.in.nodeset.spec.controller_ref.name);
  labels.emplace(api::kLabelRevisionHash, view.in.hash);
  core::Json out = child_json(kube::resources::kControllerRevision, {self.ns, name}, resources::kNodeSet, self, labels);
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

void keep_revisions(const View& view, const Workers& workers, Draft& draft) {
  if (view.goal == Goal::kDrainAll || view.goal == Goal::kEndAll || view.in.meta().terminating() || !view.in.invalid.empty())
    return;
  const std::string name = view.in.meta().name + "-" + view.in.hash;
  std::int64_t newest = 0;
  kube::ObjectPtr current;
  plan::Lane& lane = draft.lane("revision");
  for (const kube::ObjectPtr& revision : view.in.revisions) {
    if (revision->meta.controller_owner() == nullptr && !revision->meta.terminating())
      draft.step(lane, adoption(view, *revision));
    if (revision->meta.name == name) {
      current = revision;
    } else {
      newest = std::max(newest, number(*revision));
    }
  }
  lane.then();
  if (current == nullptr) {
    draft.step(lane, {"create", "ControllerRevision", name}, "the workers' template is new",
               kube::create(kube::resources::kControllerRevision, new_revision(view, name, newest + 1)));
  } else if (number(*current) <= newest) {
    draft.step(lane, {"renew", "ControllerRevision", name}, "the workers' template is again what it was",
               kube::merge_patch(kube::resources::kControllerRevision, current->meta, {{"revision", newest + 1}}));
  }
  lane.then();
  truncate_history(view, workers, view.in.revisions, name, draft);
}

}  // namespace op::nodeset
