#include "slurm/acts.hpp"

#include <utility>

namespace slurm {

core::Json DrainNodes::describe() const {
  return {{"act", "slurm.DrainNodes"}, {"cluster", cluster}, {"owner", to_string(owner)}, {"nodes", nodes}, {"reason", reason}};
}

core::Json ResumeNode::describe() const {
  return {{"act", "slurm.ResumeNode"}, {"cluster", cluster}, {"owner", to_string(owner)}, {"node", node}};
}

core::Json UpdateNode::describe() const {
  core::Json out{{"act", "slurm.UpdateNode"}, {"cluster", cluster}, {"node", node}};
  if (update.state) out["state"] = *update.state;
  if (update.reason) out["reason"] = *update.reason;
  if (update.comment) out["comment"] = *update.comment;
  if (update.features) out["features"] = *update.features;
  return out;
}

core::Json DeleteNode::describe() const {
  core::Json out{{"act", "slurm.DeleteNode"}, {"cluster", cluster}, {"node", node}, {"why", why}};
  if (expected == NodeEvidence::Live::kKept) out["expectDown"] = true;
  if (expected == NodeEvidence::Live::kSilent) out["expectSilent"] = true;
  if (evidence) out["evidence"] = {{"kind", evidence->kind()}, {"detail", evidence->detail()}};
  return out;
}

core::Json EndNode::describe() const {
  return {{"act", "slurm.EndNode"},
          {"cluster", evidence.node().cluster},
          {"node", evidence.node().name},
          {"slurmd", core::format_rfc3339(evidence.slurmd())}};
}

core::Json ConfirmIdle::describe() const {
  return {{"act", "slurm.ConfirmIdle"}, {"cluster", evidence.node().cluster}, {"node", evidence.node().name}};
}

core::Json ConfirmNoJobs::describe() const {
  return {{"act", "slurm.ConfirmNoJobs"}, {"cluster", cluster}};
}

core::Json Reconfigure::describe() const {
  return {{"act", "slurm.Reconfigure"}, {"cluster", cluster}};
}

plan::ActPtr drain_nodes(ClusterKey cluster, Owner owner, std::vector<std::string> nodes, std::string reason) {
  auto act = std::make_shared<DrainNodes>();
  act->cluster = std::move(cluster);
  act->owner = owner;
  act->nodes = std::move(nodes);
  act->reason = std::move(reason);
  return act;
}

plan::ActPtr resume_node(ClusterKey cluster, Owner owner, std::string node) {
  auto act = std::make_shared<ResumeNode>();
  act->cluster = std::move(cluster);
  act->owner = owner;
  act->node = std::move(node);
  return act;
}

plan::ActPtr update_node(ClusterKey cluster, std::string node, NodeUpdate update) {
  auto act = std::make_shared<UpdateNode>();
  act->cluster = std::move(cluster);
  act->node = std::move(node);
  act->update = std::move(update);
  return act;
}

plan::ActPtr delete_node(ClusterKey cluster, const Node& seen, std::string why, std::optional<NodeEvidence::Live> expected) {
  return std::make_shared<DeleteNode>(std::move(cluster), seen.name, seen.reason, std::move(why), expected);
}

plan::ActPtr delete_node(NodeEvidence evidence, std::string why) {
  auto act = std::make_shared<DeleteNode>(evidence.node().cluster, evidence.node().name, evidence.reason(), std::move(why),
                                          evidence.live());
  act->evidence = std::move(evidence);
  return act;
}

plan::ActPtr end_node(SlurmdEnded evidence) {
  return std::make_shared<EndNode>(std::move(evidence));
}

plan::ActPtr confirm_idle(Drained evidence) {
  return std::make_shared<ConfirmIdle>(std::move(evidence));
}

plan::ActPtr confirm_no_jobs(ClusterKey cluster) {
  auto act = std::make_shared<ConfirmNoJobs>();
  act->cluster = std::move(cluster);
  return act;
}

plan::ActPtr reconfigure(ClusterKey cluster) {
  auto act = std::make_shared<Reconfigure>();
  act->cluster = std::move(cluster);
  return act;
}

}  // namespace slurm
