#include "sim/programs/operator/oracles/abandoned.hpp"

#include <algorithm>

#include "api/well_known.hpp"
#include "cluster/names.hpp"
#include "kube/acts.hpp"
#include "sim/programs/operator/oracles/objects.hpp"

namespace sim {

using core::Json;

namespace {

/// The operator may not have told Slurm of a worker's end yet: Slurm, the API server and the operator itself may be away in
/// turn.
constexpr core::Duration kUnheardEnd{180000};

}  // namespace

AbandonedRecords::AbandonedRecords(core::Loop& loop, KubeApi& api, SlurmSite& site) : loop_(loop), api_(api), site_(site) {
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
    if (table == "nodes" && change->before && daemon_name_of(body) != daemon_name_of(change->before->body))
      abandon_renamed(daemon_name_of(change->before->body));
    if (table == "pods" && is_worker(body))
      abandoned_.erase({{change->key.ns, label(body, api::kLabelCluster)}, slurm_node_of(body)});
  });
}

/// Of a worker that goes. Its record was not stamped when nobody owned the worker; and while there is no Controller, nobody can
/// reach it.
void AbandonedRecords::abandon_record(const Json& pod) {
  const kube::Key controller{namespace_of(pod), label(pod, api::kLabelCluster)};
  gone_[{controller, slurm_node_of(pod)}] = loop_.clock().mono();
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

/// Of a worker that has just gone, with scalingMode DaemonSet: whose a record without a comment is, only the name of its
/// machine tells.
void AbandonedRecords::abandon_renamed(const std::string& was) {
  const core::MonoTime now = loop_.clock().mono();
  for (const auto& [host, cluster] : site_.clusters()) {
    const SimNode* node = cluster->slurm->node(was);
    const auto gone = gone_.find({cluster->controller, was});
    if (node == nullptr || !node->comment.empty() || gone == gone_.end()) continue;
    const core::MonoTime since = std::max(gone->second, cluster->slurm->up() ? cluster->slurm->up_since() : now);
    if (now - since <= kUnheardEnd) abandoned_.insert({cluster->controller, was});
  }
}

void AbandonedRecords::abandon_records(const kube::Key& controller) {
  const SlurmSite::Cluster* cluster = site_.find(controller);
  if (cluster == nullptr) return;
  for (const auto& [name, node] : cluster->slurm->nodes()) abandoned_.insert({controller, name});
}

}  // namespace sim
