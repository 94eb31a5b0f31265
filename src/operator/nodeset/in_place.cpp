// Handles changes of the template that need no new workers. These are changes of the features and the weight in spec.extraConf,
// which Slurm can change by a request. With DaemonSet, they are also changes of the selection of Kubernetes nodes.
// attributes.cpp updates the nodes in Slurm. After that, the pods count as workers of the new template.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/revision.hpp"
#include "api/well_known.hpp"
#include "kube/acts.hpp"
#include "operator/common/slinky.hpp"
#include "operator/nodeset/build_worker.hpp"
#include "operator/nodeset/parts.hpp"
#include "slinky/worker_names.hpp"
#include "slurm/conf/conf.hpp"

namespace op::nodeset {
namespace {

using core::Json;

/// The --conf of a worker in two parts: the settings that a request to Slurm can change, and `rest`, the settings that need a
/// new record.
struct Halves {
  std::vector<std::string> features;
  std::optional<std::int64_t> weight;
  std::multimap<std::string, std::string> rest;
};

std::vector<std::string> words_between_commas(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    std::string word = text.substr(at, end - at);
    if (!word.empty() && std::ranges::find(out, word) == out.end()) out.push_back(std::move(word));
    at = end + 1;
  }
  return out;
}

std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(out) : std::nullopt;
}

std::optional<Halves> halves_of(const api::NodeSetSpec& spec, const std::string& nodeset) {
  const core::Result<std::string> conf = slurmd_conf(spec, nodeset);
  if (!conf) return std::nullopt;
  Halves out;
  for (const slurm::conf::Setting& setting : slurm::conf::parse_node_conf(*conf).settings) {
    if (setting.key == "Features") {
      out.features = words_between_commas(setting.value);
    } else if (const auto weight = setting.key == "Weight" ? whole_number(setting.value) : std::nullopt) {
      out.weight = weight;
    } else {
      out.rest.emplace(setting.key, setting.value);
    }
  }
  return out;
}

/// Returns the template without extraConf. With DaemonSet, the result also lacks the fields that only select Kubernetes nodes.
Json other_inputs(const api::NodeSetSpec& spec) {
  Json out = api::revision_data(spec);
  out["spec"].erase("extraConf");
  Json& pod = out["spec"]["template"]["spec"];
  if (spec.scaling_mode != api::ScalingMode::kDaemonSet || !pod.is_object()) return out;
  pod.erase("nodeSelector");
  if (const auto affinity = pod.find("affinity"); affinity != pod.end() && affinity->is_object()) {
    affinity->erase("nodeAffinity");
    if (affinity->empty()) pod.erase(affinity);
  }
  return out;
}

bool takes_a_request_only(const View& view, const kube::Object& revision) {
  const api::NodeSetSpec& spec = view.in.nodeset.spec;
  const core::Result<api::NodeSetSpec> earlier = api::with_revision(spec, revision.body);
  if (!earlier || other_inputs(*earlier) != other_inputs(spec)) return false;
  const auto was = halves_of(*earlier, view.in.meta().name), is = halves_of(spec, view.in.meta().name);
  // If the newest template has no weight, slurm.conf might set the weight. That value is unknown here, so the removal of a
  // weight needs new workers.
  return was && is && was->rest == is->rest && (is->weight || !was->weight);
}

/// Returns the hash of the --conf in the node's comment. "": the comment is not ours or has no hash.
std::string stamp_of(const View& view, const slurm::Node& record) {
  return stamped_by_us(view, record) ? core::get_string(*worker_comment(record.comment), {kStampedConf}) : "";
}

bool has_features(const slurm::Node& record, const TemplateFeatures& features) {
  return slurm::has_own(record, {{}, {}, features.wanted, features.obsolete});
}

plan::ActPtr pod_patch(const Worker& worker, Json metadata) {
  auto act = std::make_shared<kube::Patch>();
  act->resource = kube::resources::kPod;
  act->key = worker.pod->meta.key();
  act->uid = worker.pod->meta.uid;
  act->patch = {{"metadata", std::move(metadata)}};
  return act;
}

}  // namespace

std::optional<std::int64_t> template_weight(const View& view) {
  const std::optional<Halves> halves = halves_of(view.in.nodeset.spec, view.in.meta().name);
  return halves ? halves->weight : std::nullopt;
}

TemplateFeatures template_features(const View& view) {
  TemplateFeatures out;
  const std::string& nodeset = view.in.meta().name;
  const auto add = [](const std::optional<Halves>& halves, std::vector<std::string>& to) {
    if (!halves) return;
    for (const std::string& feature : halves->features) {
      // Features with this prefix come from the Kubernetes node, not from templates.
      if (!feature.starts_with(api::kFeaturePrefix) && std::ranges::find(to, feature) == to.end()) to.push_back(feature);
    }
  };
  add(halves_of(view.in.nodeset.spec, nodeset), out.wanted);
  for (const kube::ObjectPtr& revision : view.in.revisions) {
    const core::Result<api::NodeSetSpec> earlier = api::with_revision(view.in.nodeset.spec, revision->body);
    if (earlier) add(halves_of(*earlier, nodeset), out.obsolete);
  }
  std::erase_if(out.obsolete,
                [&](const std::string& feature) { return std::ranges::find(out.wanted, feature) != out.wanted.end(); });
  return out;
}

bool was_changed_in_place(const Slot& worker) {
  return !worker.pod->meta.annotation(api::kAnnotationCreatedRevision).empty();
}

std::string comment_in_place(const View& view, const Worker& worker) {
  const std::string& have = worker.record->comment;
  if (!have.empty() && !worker_comment(have)) return have;
  const bool known = have.empty() || !stamp_of(view, *worker.record).empty();
  return stamped_comment(view, worker, known ? *view.conf_hash(view.in.hash) : "");
}

RevisionHashes find_in_place(const View& view) {
  RevisionHashes out;
  for (const kube::ObjectPtr& revision : view.in.revisions) {
    const std::string_view hash = revision->meta.label(api::kLabelRevisionHash);
    if (hash != view.in.hash && takes_a_request_only(view, *revision)) out.emplace(hash);
  }
  return out;
}

bool can_change_in_place(const View& view, const Worker& worker) {
  if (worker.record == nullptr) return false;
  // Changing features is impossible here: it might drop the node's topology unless the request also contains the topology.
  if (!worker.record->topology.empty() && !view.in.snapshot->capabilities.topology_update) return false;
  if (was_changed_in_place(worker)) return true;
  const std::string stamp = stamp_of(view, *worker.record);
  const std::string* earlier = view.conf_hash(worker.pod->meta.label(api::kLabelRevisionHash));
  return stamp.empty() || (earlier != nullptr && stamp == *earlier);
}

bool has_drifted(const View& view, const Worker& worker) {
  if (view.in.hash.empty() || !was_changed_in_place(worker) || !can_change_in_place(view, worker)) return false;
  // If the comment names the newest --conf, the node already had the features of that --conf, and an administrator has changed
  // the features since. Such changes stay.
  return stamp_of(view, *worker.record) != *view.conf_hash(view.in.hash) &&
         !has_features(*worker.record, template_features(view));
}

void update_in_place(const View& view, const Workers& workers, Draft& draft) {
  if (!view.slurm_known() || view.goal != Goal::kServe) return;
  plan::Lane& lane = draft.lane("in place");
  std::optional<TemplateFeatures> features;
  for (const Worker& worker : workers) {
    if (!worker.in_place || !worker.ready() || draft.is_deleted(*worker.pod)) continue;
    if (!view.slurm_fresh()) return draft.wake(kFreshAgain);
    const std::string_view revision = worker.pod->meta.label(api::kLabelRevisionHash);
    // Record the pod's revision before the Slurm node changes. After that change, Slurm's record can have another template than
    // the pod.
    if (!was_changed_in_place(worker)) {
      const core::Json note{{"annotations", {{std::string(api::kAnnotationCreatedRevision), revision}}}};
      draft.step(lane, {"note", "Pod", pod_text(worker)}, "its Slurm node is about to get the changes of its template",
                 pod_patch(worker, note));
      continue;
    }
    if (!features) features = template_features(view);
    const bool has_all = has_features(*worker.record, *features) &&
                         template_weight(view).value_or(worker.record->weight) == worker.record->weight &&
                         worker.record->comment == comment_in_place(view, worker);
    if (has_all && revision != view.in.hash) {
      const core::Json label{{"labels", {{std::string(api::kLabelRevisionHash), view.in.hash}}}};
      draft.step(lane, {"update", "Pod", pod_text(worker)}, "Slurm has all changes of its template", pod_patch(worker, label));
    }
  }
}

}  // namespace op::nodeset
