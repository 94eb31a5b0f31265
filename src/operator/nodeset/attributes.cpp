// Sets those attributes of a worker's Slurm node that slurmd does not set: the Kubernetes node's features (for --constraint),
// the Kubernetes node's topology, and the settings that a newer template changes in place. The Kubernetes node is known only
// after the pod is scheduled, so the operator sets the attributes after slurmd has registered.
#include <fmt/format.h>

#include <algorithm>

#include "api/well_known.hpp"
#include "operator/nodeset/parts.hpp"
#include "slurm/acts.hpp"

namespace op::nodeset {
namespace {

/// The largest number of Slurm nodes that one pass updates. Each node needs a request of its own, because the features that
/// others set can differ from node to node.
constexpr std::size_t kPerPass = 64;
constexpr std::string_view kFeaturesAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/";

using Words = std::set<std::string, std::less<>>;

/// True if the worker is ready and stays, and Slurm's record belongs to it.
bool is_settled(const Worker& worker) {
  return worker.life == Life::kLive && !worker.goes() && worker.record != nullptr && worker.ready() && !may_register(worker);
}

bool knows_host(const Worker& worker) {
  return worker.kube_node && worker.kube_node->known;
}

/// Returns the features that the worker's Slurm node gets from the worker's Kubernetes node.
slurm::OwnFeatures features_of_host(const Worker& worker) {
  if (!knows_host(worker)) return {};
  const Words& features = worker.kube_node->features;
  return {std::string(api::kFeaturePrefix), {features.begin(), features.end()}, {}, {}};
}

/// Returns the topology to set. "": the topology is to be removed. nullopt: nothing sets a topology, or it cannot be set yet.
std::optional<std::string> wanted_topology(const View& view, const Worker& worker) {
  if (!knows_host(worker) || !view.in.controller) return std::nullopt;
  const std::string& says = worker.kube_node->topology;
  const std::string& has = worker.record->topology;
  // The Controller removes its topology file once no Slurm node uses a unit of that file. Only after this removal, set units of
  // a user's own file.
  if (view.in.controller->topology_goes && !is_from_labels(says) && (has.empty() || is_from_labels(has))) return "";
  if (!says.empty()) return says;
  if (const std::string& place = worker.kube_node->place; !place.empty()) {
    const api::Topology& spec = *view.in.controller->topology;
    if (has == place || has_place(view.in.controller->loaded_units, spec.type, place)) return place;
    // slurmctld does not know the unit yet. The cause might be that this node still has a topology of an earlier spec, so
    // remove that topology. Recognize it by its form, because a new pod has no annotation about the topology that the previous
    // pod's node had.
    const bool ours = !has.empty() && (is_from_labels(has) || has == worker.pod->meta.annotation(api::kAnnotationTopologySpec));
    return ours && !is_of(spec, has) ? std::optional<std::string>("") : std::nullopt;
  }
  // Nothing sets a topology now. Remove a topology that came from this Kubernetes node or from a previous one.
  const bool ours = !worker.pod->meta.annotation(api::kAnnotationTopologySpec).empty() ||
                    (view.in.controller->topology && is_from_labels(has));
  return ours ? std::optional<std::string>("") : std::nullopt;
}

/// True if the Controller's spec.topology requires a topology, but the Kubernetes node has neither the topology annotation nor
/// all required labels.
bool lacks_place(const Worker& worker) {
  return knows_host(worker) && worker.kube_node->topology.empty() && !worker.kube_node->lacks.empty();
}

/// True if the weight can be changed without losing the topology. A request that changes the weight may drop the node's
/// topology, unless the request sends the topology along.
bool can_set_weight(const View& view, const Worker& worker) {
  return worker.record->topology.empty() || view.in.snapshot->capabilities.topology_update;
}

/// Records on the pod the topology that the operator sets in Slurm, so that a later pass knows that the operator may remove
/// it.
void note_topology(const Worker& worker, const std::string& topology, Draft& draft) {
  auto act = std::make_shared<kube::Patch>();
  act->resource = kube::resources::kPod;
  act->key = worker.pod->meta.key();
  act->uid = worker.pod->meta.uid;
  act->patch = {
      {"metadata",
       {{"annotations",
         {{std::string(api::kAnnotationTopologySpec), topology.empty() ? core::Json(nullptr) : core::Json(topology)}}}}}};
  draft.step(draft.lane("attributes"), {"note topology on", "Pod", pod_text(worker)}, "its Kubernetes node sets it",
             std::move(act));
}

}  // namespace

std::set<std::string, std::less<>> node_features(const kube::ObjectMeta& node, const std::vector<std::string>& labels) {
  Words out;
  const auto add = [&](std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) return;
    text = text.substr(first, text.find_last_not_of(" \t") - first + 1);
    // Slurm would treat any other character as a separator or operator, or refuse all features.
    if (text.find_first_not_of(kFeaturesAllowed) == std::string_view::npos)
      out.insert(std::string(api::kFeaturePrefix) + std::string(text));
  };
  std::string_view left = node.annotation(api::kAnnotationFeaturesSpec);
  while (!left.empty()) {
    const std::size_t comma = left.find(',');
    add(left.substr(0, comma));
    left = comma == std::string_view::npos ? std::string_view{} : left.substr(comma + 1);
  }
  for (const std::string& label : labels) add(node.label(label));
  return out;
}

bool lacks_features(const View& view, const Worker& worker) {
  return is_settled(worker) && !slurm::has_own(*worker.record, features_of_host(worker)) &&
         view.failure(kSetAttributes.of(worker.node)) == nullptr;
}

void keep_attributes(const View& view, const Workers& workers, Draft& draft) {
  if (!view.slurm_known() || view.goal != Goal::kServe) return;
  const bool topology_update = view.in.snapshot->capabilities.topology_update;
  std::size_t left = kPerPass;
  std::vector<std::string> unsupported;
  std::set<std::string> placeless;
  std::optional<TemplateFeatures> of_template;
  const std::optional<std::int64_t> weight = template_weight(view);
  for (const Worker& worker : workers) {
    if (!is_settled(worker)) continue;
    const std::optional<std::string> topology = wanted_topology(view, worker);
    if (lacks_place(worker)) placeless.insert(worker.pod->node_name + " (" + worker.kube_node->lacks + ")");
    if (topology && !topology->empty() && !topology_update) unsupported.push_back(worker.node);
    slurm::OwnFeatures own = features_of_host(worker);
    slurm::NodeUpdate update;
    const bool newest = !view.in.hash.empty() && worker.pod->meta.label(api::kLabelRevisionHash) == view.in.hash;
    if (weight && *weight != worker.record->weight && can_set_weight(view, worker) &&
        (newest || (worker.in_place && was_changed_in_place(worker))))
      update.weight = weight;
    if (worker.in_place && was_changed_in_place(worker)) {
      if (!of_template) of_template = template_features(view);
      own.besides = of_template->wanted;
      own.obsolete = of_template->obsolete;
      std::string comment = comment_in_place(view, worker);
      if (comment != worker.record->comment) update.comment = std::move(comment);
    }
    const bool other_features = !slurm::has_own(*worker.record, own);
    const bool other_topology = topology_update && topology && *topology != worker.record->topology;
    const bool noted = !topology || *topology == worker.pod->meta.annotation(api::kAnnotationTopologySpec);
    if (topology_update && !noted) {
      // Record a new topology in the pass that sets it, so that a later pass knows what to remove. Record the removal of a
      // topology only once Slurm has removed the topology.
      if (!topology->empty() || !other_topology) note_topology(worker, *topology, draft);
    }
    if (!other_features && !other_topology && !update.comment && !update.weight) continue;
    const plan::StepId id = kSetAttributes.of(worker.node);
    draft.intent().add(id);
    if (left == 0) {
      draft.wake_after(core::Duration{50}, "more Slurm nodes to give features and topology");
      continue;
    }
    if (other_topology) update.topology = *topology;
    if (own.besides.empty()) own.besides = {slurm_node_set_name(view.in.nodeset.spec, view.in.meta().name)};
    const std::string why =
        update.comment || update.weight ? "spec.extraConf sets it" : "Kubernetes node " + worker.pod->node_name + " sets it";
    const bool added = draft.step(draft.lane("attributes"), id, why,
                                  slurm::update_node(view.cluster(), worker.node, std::move(update),
                                                     other_features ? std::optional(std::move(own)) : std::nullopt));
    if (added) --left;
  }
  if (!placeless.empty()) {
    draft.up_to_users("TopologyLabelsMissing",
                      fmt::format("Kubernetes nodes lack a label of those that spec.topology of the Controller names, so the "
                                  "Slurm nodes there have no place in the topology: {}",
                                  some_of({placeless.begin(), placeless.end()})));
  }
  if (unsupported.empty()) return;
  draft.up_to_users(
      "TopologyNotSupported",
      fmt::format("Slurm {} cannot change the topology of nodes, which annotations of Kubernetes nodes ask for: use "
                  "25.05 or later, or a topology.conf of your own",
                  view.in.snapshot->capabilities.release));
}

}  // namespace op::nodeset
