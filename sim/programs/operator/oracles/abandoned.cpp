#include "sim/programs/operator/oracles/abandoned.hpp"

#include <algorithm>

#include "api/well_known.hpp"
#include "kube/acts.hpp"
#include "sim/programs/operator/oracles/objects.hpp"
#include "slinky/names.hpp"

namespace sim {

using core::Json;

namespace {

/// The operator is allowed to report a worker's end to Slurm this late, because Slurm, the API server and the operator can be
/// down one after the other.
constexpr core::Duration kUnheardEnd{180000};

}  // namespace

AbandonedRecords::AbandonedRecords(core::Loop& loop, KubeApi& api, SlurmSite& site) : loop_(loop), api_(api), site_(site) {
  listen();
}

void AbandonedRecords::listen() {
  api_.store().listen([this](const std::string& table, const ChangePtr& change) {
    const Json& body = change->object->body;
    if (change->type == Change::Type::kDeleted) {
      if (table == table_name(slinky::resources::kController)) abandon_records(change->key);
      if (table == table_name(slinky::resources::kNodeSet)) abandon_left(body);
      if (table == "pods" && is_worker(body)) abandon_record(body);
      return;
    }
    if (table == table_name(slinky::resources::kNodeSet) && terminating(body) && kube::has_finalizer(body, "orphan"))
      alone_.insert(text_at(body, {"metadata", "uid"}));
    if (table == "nodes" && change->before && daemon_name_of(body) != daemon_name_of(change->before->body))
      abandon_renamed(daemon_name_of(change->before->body));
    if (table == "pods" && is_worker(body))
      abandoned_.erase({{change->key.ns, label(body, api::kLabelCluster)}, slurm_node_of(body)});
  });
}

/// Notes the record of a worker that is gone, if the worker had no owner or there is no Controller. If there was no owner,
/// nobody gave the record a comment. If there is no Controller, nobody can reach the record.
void AbandonedRecords::abandon_record(const Json& pod) {
  const kube::Key controller{namespace_of(pod), label(pod, api::kLabelCluster)};
  gone_[{controller, slurm_node_of(pod)}] = loop_.clock().mono();
  if (!owner_uid(pod, "NodeSet").empty() && api_.peek(slinky::resources::kController, controller) != nullptr) return;
  abandoned_.insert({controller, slurm_node_of(pod)});
}

/// Notes the records of a NodeSet that was deleted while slurmctld was down, because a NodeSet does not wait for slurmctld
/// forever. Also notes the records of a NodeSet that was deleted with --cascade=orphan. Such a NodeSet does not wait at all,
/// and leaves its records to the next NodeSet of its name.
void AbandonedRecords::abandon_left(const Json& nodeset) {
  const kube::Key controller{namespace_of(nodeset), text_at(nodeset, {"spec", "controllerRef", "name"})};
  const SlurmSite::Cluster* cluster = site_.find(controller);
  const bool alone = alone_.contains(text_at(nodeset, {"metadata", "uid"}));
  if (cluster != nullptr && (alone || !cluster->slurm->up())) abandon_records(controller);
}

/// Notes the record of a recently deleted worker with scalingMode DaemonSet, when the worker's machine is renamed. If the
/// record has no comment, only the machine's name shows whose record it is.
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
