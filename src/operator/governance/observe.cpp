#include "operator/governance/observe.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "api/controller.hpp"
#include "operator/governance/following.hpp"
#include "slinky/status.hpp"

namespace op::governance {
namespace {

/// For each resource that is being deleted, adds the evidence that nobody uses the entity that the resource created in
/// slurmdbd.
void find_unused(const run::Observation& context, Observed& out) {
  for (const Claim& claim : out.claims) {
    if (!claim.object->meta.terminating()) continue;
    // An association is deleted by a change of its account or user, so this deletion needs no evidence.
    if (claim.subject == Subject::kAssociation) continue;
    if (claim.subject != Subject::kQos) {
      if (auto evidence = slurm::UnusedEntity::of(context.observing, out.database, entity_kind(claim.subject), claim.name,
                                                  made_places(claim), *out.view))
        out.unused_entities.emplace(std::pair(claim.subject, claim.name), *std::move(evidence));
      continue;
    }
    if (!out.view->qos.complete()) continue;
    for (const auto& [key, row] : *out.view->qos.rows) {
      if (slurm::accounting::folded(key) != claim.name) continue;
      if (auto evidence = slurm::UnusedQos::of(context.observing, out.database, *row, *out.view))
        out.unused.emplace(claim.name, *std::move(evidence));
    }
  }
}

bool any_follows(const Observed& observed) {
  return std::ranges::any_of(
      observed.claims, [](const Claim& claim) { return claim.subject == Subject::kQos && follows_capacity(*claim.object); });
}

std::set<std::string> partitions_of(const slurm::Snapshot& snapshot) {
  std::set<std::string> out;
  for (const auto& [name, partition] : snapshot.partitions) out.insert(name);
  for (const auto& [name, node] : snapshot.nodes) out.insert(node->partitions.begin(), node->partitions.end());
  return out;
}

}  // namespace

std::shared_ptr<const Observed> GovernanceController::observe_typed(const kube::Key& key, kube::Recorder& /*recorder*/,
                                                                    const run::Observation& context) {
  auto out = std::make_shared<Observed>();
  out->context = context;
  out->key = key;
  out->database = accounting_key(key.ns, key.name);
  for (const auto& [subject, cache] :
       {std::pair{Subject::kQos, &caches_.qos}, std::pair{Subject::kAccount, &caches_.accounts},
        std::pair{Subject::kUser, &caches_.users}, std::pair{Subject::kAssociation, &caches_.associations}}) {
    for (const kube::ObjectPtr& object : cache->by_index(kIndexAccounting, key.str()))
      out->claims.push_back(read_claim(subject, object));
  }
  if (out->claims.empty()) return out;
  out->accounting = caches_.accountings.find(key);
  std::ranges::sort(out->claims, {}, [](const Claim& each) {
    return std::tuple(each.object->meta.created, each.object->meta.name, each.subject);
  });
  out->view = wiring_.accounting(out->database);
  if (any_follows(*out)) {
    for (const kube::ObjectPtr& controller : caches_.controllers.by_index(kIndexAccounting, key.str())) {
      const slurm::SnapshotPtr snapshot = wiring_.snapshot(cluster_key(key.ns, controller->meta.name));
      auto& capacity = out->capacities[controller->meta.name];
      if (snapshot) capacity = capacity_of(*snapshot, context.mono);
      if (snapshot && snapshot->complete() && !capacity) out->outdated.insert(controller->meta.name);
    }
  }
  if (std::ranges::any_of(out->claims, [](const Claim& claim) { return names_partition(*claim.object); })) {
    for (const kube::ObjectPtr& object : caches_.controllers.by_index(kIndexAccounting, key.str())) {
      const slurm::SnapshotPtr snapshot = wiring_.snapshot(cluster_key(key.ns, object->meta.name));
      api::Controller controller;
      if (!slurm::has_answered(snapshot) || !read_object(*object, controller).empty()) continue;
      const std::string cluster = api::cluster_name(controller.spec, key.ns, object->meta.name);
      out->partitions[slurm::accounting::folded(cluster)] = partitions_of(*snapshot);
    }
  }
  if (out->view) find_unused(context, *out);
  return out;
}

}  // namespace op::governance
