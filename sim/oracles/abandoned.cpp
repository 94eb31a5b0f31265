#include "sim/oracles/abandoned.hpp"

#include "api/well_known.hpp"
#include "cluster/names.hpp"
#include "kube/acts.hpp"
#include "sim/oracles/objects.hpp"

namespace sim {

using core::Json;

AbandonedRecords::AbandonedRecords(KubeApi& api, SlurmSite& site) : api_(api), site_(site) {
  listen();
}

void AbandonedRecords::listen() {
  api_.store().listen([this](const std::string& table, const ChangePtr& change) {
    const Json& body = change->object->body;
    if (change->type == Change::Type::kDeleted) {
      if (table == table_name(op::resources::kController)) abandon_records(change->key);
      if (table == table_name(op::resources::kNodeSet)) abandon_left(body);
      if (table == "pods" && is_worker(body)) abandon_record(body);
      return;
    }
    if (table == table_name(op::resources::kNodeSet) && terminating(body) && kube::has_finalizer(body, "orphan"))
      alone_.insert(text_at(body, {"metadata", "uid"}));
    if (table == "pods" && is_worker(body))
      abandoned_.erase({{change->key.ns, label(body, api::kLabelCluster)}, slurm_node_of(body)});
  });
}

/// Of a worker that goes. Its record was not stamped when nobody owned the worker; and while there is no Controller, nobody can
/// reach it.
void AbandonedRecords::abandon_record(const Json& pod) {
  const kube::Key controller{namespace_of(pod), label(pod, api::kLabelCluster)};
  if (!owner_uid(pod, "NodeSet").empty() && api_.peek(op::resources::kController, controller) != nullptr) return;
  abandoned_.insert({controller, slurm_node_of(pod)});
}

/// Of a NodeSet that went while slurmctld was away: it waits for that, but not for ever. One that goes alone waits for nothing:
/// what it leaves is for the next of its name.
void AbandonedRecords::abandon_left(const Json& nodeset) {
  const kube::Key controller{namespace_of(nodeset), text_at(nodeset, {"spec", "controllerRef", "name"})};
  const SlurmSite::Cluster* cluster = site_.find(controller);
  const bool alone = alone_.contains(text_at(nodeset, {"metadata", "uid"}));
  if (cluster != nullptr && (alone || !cluster->slurm->up())) abandon_records(controller);
}

void AbandonedRecords::abandon_records(const kube::Key& controller) {
  const SlurmSite::Cluster* cluster = site_.find(controller);
  if (cluster == nullptr) return;
  for (const auto& [name, node] : cluster->slurm->nodes()) abandoned_.insert({controller, name});
}

}  // namespace sim
