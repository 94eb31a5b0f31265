#include "sim/programs/operator/oracles/workers.hpp"

#include <fmt/format.h>

#include <vector>

#include "api/well_known.hpp"
#include "sim/programs/operator/oracles/agents.hpp"
#include "sim/programs/operator/oracles/objects.hpp"
#include "slinky/names.hpp"

namespace sim {
namespace {

using core::Json;
namespace kinds = kube::resources;

/// A little more than the time from a worker's preStop to the end of its slurmd.
constexpr core::Duration kSlurmdEnd{1000};

}  // namespace

WorkerOracle::WorkerOracle(core::Loop& loop, KubeApi& api, SlurmSite& site, const Looks& looks, JobOracle& jobs, Tell violation)
    : loop_(loop), api_(api), site_(site), looks_(looks), jobs_(jobs), violation_(std::move(violation)) {
  listen();
}

void WorkerOracle::listen() {
  api_.add_admission([this](const AdmissionRequest& request) -> std::optional<Refusal> {
    if (request.operation == "DELETE" && request.resource == kinds::kPod && request.before != nullptr &&
        is_worker(*request.before) && request.user == kOperatorAgent) {
      worker_deletion(*request.before);
    }
    return {};
  });
  api_.store().listen([this](const std::string& table, const ChangePtr& change) {
    if (change->type == Change::Type::kDeleted && table == table_name(slinky::resources::kController))
      gone_[change->key] = loop_.clock().mono();
  });
}

/// Checks the operator's deletion of a worker against the state of Slurm at that moment.
void WorkerOracle::worker_deletion(const Json& pod) {
  if (terminating(pod)) return;
  const kube::Key controller{namespace_of(pod), label(pod, api::kLabelCluster)};
  const SlurmSite::Cluster* cluster = site_.find(controller);
  if (cluster == nullptr) return;
  const std::string node = slurm_node_of(pod);
  const std::vector<const SimJob*> jobs = cluster->slurm->jobs_on(node);
  // The model of Slurm knows whether the pod runs slurmd; a kubelet's report can be old.
  const bool runs = runs_slurmd(*cluster, node, pod);
  if (ended(pod) && (jobs.empty() || !runs)) return;
  // A pod that never started has no jobs. Jobs on its node belong to an earlier pod of its name.
  if (never_started(pod)) return;
  const Json* owner = api_.peek(slinky::resources::kController, controller);
  const Json* space = api_.peek(kinds::kNamespace, {"", controller.ns});
  const bool space_goes = space == nullptr || terminating(*space);
  if (owner == nullptr && space_goes) return;
  // While there is no Controller, the operator waits for a Controller and deletes nothing.
  if (owner == nullptr && loop_.clock().mono() - gone_.at(controller) > kLookAndWrite) {
    return violation_(fmt::format("worker {} was deleted while there was no Controller {}", key_of(pod), controller.str()));
  }
  const bool goes = owner != nullptr && (terminating(*owner) || space_goes);
  if (goes && text_at(*owner, {"spec", "deletionPolicy"}) != "Drain") return;
  const bool overtaken = looks_.was_freed_since(controller, node);
  if (overtaken) jobs_.overtaken({namespace_of(pod), name_of(pod)});
  if (!jobs.empty() && !overtaken) {
    violation_(fmt::format("worker {} was deleted while job {} ({}) was on {}, its slurmd {}", key_of(pod), jobs.front()->id,
                           to_string(jobs.front()->state), node, runs ? "running" : "not running"));
    return;
  }
  if (!site_.slurmd_ever_ran(text_at(pod, {"metadata", "uid"}))) return;
  if (idle_and_held(*cluster->slurm, node) || looks_.was_idle_and_held(node)) return;
  violation_(fmt::format("worker {} was deleted while Slurm could give it jobs: {} is {}", key_of(pod), node,
                         shown(*cluster->slurm, *cluster->slurm->node(node))));
}

void WorkerOracle::record_deletion_under(const SimNode& node, const SimJob& job) {
  violation_(fmt::format("the record of node {} was deleted under job {} ({})", node.name, job.id, to_string(job.state)));
}

void WorkerOracle::record_deletion(const SlurmSite::Cluster& cluster, const SimNode& node) {
  if (idle_and_held(*cluster.slurm, node.name) || looks_.was_idle_and_held(node.name)) return;
  for (const auto& [key, stored] : api_.store().all(table_name(kinds::kPod))) {
    const Json& pod = stored->body;
    const bool behind = is_worker(pod) && kube::Key{key.ns, label(pod, api::kLabelCluster)} == cluster.controller &&
                        slurm_node_of(pod) == node.name && !ended(pod);
    if (!behind) continue;
    violation_(fmt::format("the record of node {} was deleted under worker {}, while Slurm could give it jobs: {}", node.name,
                           key.str(), shown(*cluster.slurm, node)));
    return;
  }
}

/// After preStop, the node must be down or drained, unless slurmctld was down or an administrator freed the node.
void WorkerOracle::slurmd_ends(const SlurmSite::Cluster& cluster, const std::string& node) {
  const SimSlurm& slurm = *cluster.slurm;
  const SimNode* record = slurm.node(node);
  const core::MonoTime before = loop_.clock().mono() - kSlurmdEnd;
  if (!slurm.up() || slurm.up_since() >= before || record == nullptr || record->down || record->drain) return;
  if (record->made >= before) return;  // the record was deleted first, and slurmd registered after its preStop
  const auto freed = looks_.freed(cluster.controller, node);
  if (!freed || *freed < before)
    violation_("the slurmd of " + node + " was ended with its pod, and Slurm may start jobs there");
}

}  // namespace sim
