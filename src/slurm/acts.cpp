#include "slurm/acts.hpp"

#include <utility>

namespace slurm {

core::Json DrainNodes::describe() const {
  core::Json out{{"act", "slurm.DrainNodes"},
                 {"cluster", cluster},
                 {"owner", to_string(holder.owner)},
                 {"nodes", nodes},
                 {"reason", reason}};
  if (!holder.instance.empty()) out["instance"] = holder.instance;
  if (renames) out["renames"] = true;
  return out;
}

core::Json ResumeNode::describe() const {
  core::Json out{{"act", "slurm.ResumeNode"}, {"cluster", cluster}, {"owner", to_string(holder.owner)}, {"node", node}};
  if (!holder.instance.empty()) out["instance"] = holder.instance;
  return out;
}

core::Json UpdateNode::describe() const {
  core::Json out{{"act", "slurm.UpdateNode"}, {"cluster", cluster}, {"node", node}};
  if (update.state) out["state"] = *update.state;
  if (update.reason) out["reason"] = *update.reason;
  if (update.comment) out["comment"] = *update.comment;
  if (update.extra) out["extra"] = *update.extra;
  if (update.features) out["features"] = *update.features;
  if (update.topology) out["topology"] = *update.topology;
  if (update.weight) out["weight"] = *update.weight;
  if (own) {
    out["features"] = {
        {"prefix", own->prefix}, {"values", own->values}, {"besides", own->besides}, {"obsolete", own->obsolete}};
  }
  if (mark) out["mark"] = mark->feature();
  return out;
}

core::Json CreateNode::describe() const {
  return {{"act", "slurm.CreateNode"}, {"cluster", cluster}, {"line", node_line(wish, mark)}};
}

core::Json RemoveNode::describe() const {
  return {{"act", "slurm.RemoveNode"},
          {"cluster", evidence.node().cluster},
          {"node", evidence.node().name},
          {"mark", evidence.mark().feature()},
          {"evidence", evidence.detail()}};
}

core::Json RestoreReason::describe() const {
  return {{"act", "slurm.RestoreReason"}, {"cluster", cluster}, {"node", node}, {"seen", seen}, {"reason", reason}};
}

core::Json DeleteNode::describe() const {
  core::Json out{{"act", "slurm.DeleteNode"}, {"cluster", cluster}, {"owner", to_string(owner)}, {"node", node}, {"why", why}};
  if (expected == NodeEvidence::Live::kKept) out["expectDown"] = true;
  if (expected == NodeEvidence::Live::kDrained) out["expectDrained"] = true;
  if (expected == NodeEvidence::Live::kSilent) out["expectSilent"] = true;
  if (evidence) out["evidence"] = {{"kind", evidence->kind()}, {"detail", evidence->detail()}};
  return out;
}

core::Json EndNode::describe() const {
  return {{"act", "slurm.EndNode"},
          {"cluster", evidence.node().cluster},
          {"owner", to_string(owner)},
          {"node", evidence.node().name},
          {"slurmd", core::format_rfc3339(evidence.slurmd())}};
}

core::Json EndJobs::describe() const {
  core::Json jobs = core::Json::array();
  for (const DrainTimedOut::OneJob& job : evidence.jobs()) jobs.push_back(job.full_id);
  return {{"act", "slurm.EndJobs"},
          {"cluster", evidence.node().cluster},
          {"owner", to_string(evidence.owner())},
          {"node", evidence.node().name},
          {"how", to_string(evidence.how())},
          {"jobs", std::move(jobs)},
          {"evidence", {{"kind", evidence.kind()}, {"detail", evidence.detail()}}}};
}

core::Json ConfirmIdle::describe() const {
  return {{"act", "slurm.ConfirmIdle"}, {"cluster", evidence.node().cluster}, {"node", evidence.node().name}};
}

core::Json ConfirmNoJobs::describe() const {
  return {{"act", "slurm.ConfirmNoJobs"}, {"cluster", cluster}};
}

core::Json ConfirmNoneStarts::describe() const {
  return {{"act", "slurm.ConfirmNoneStarts"}, {"cluster", cluster}};
}

core::Json ReadReservations::describe() const {
  return {{"act", "slurm.ReadReservations"}, {"cluster", cluster}};
}

core::Json ReadAccountingClusters::describe() const {
  return {{"act", "slurm.ReadAccountingClusters"}, {"cluster", cluster}};
}

core::Json MakeReservation::describe() const {
  return {{"act", "slurm.MakeReservation"},
          {"cluster", cluster},
          {"reservation", wish.name},
          {"nodes", wish.nodes},
          {"flags", wish.flags},
          {"start", core::format_rfc3339(wish.start)},
          {"minutes", wish.duration.count()}};
}

core::Json SetReservationNodes::describe() const {
  return {{"act", "slurm.SetReservationNodes"},
          {"cluster", evidence.cluster()},
          {"reservation", evidence.seen().name},
          {"nodes", nodes}};
}

core::Json DeleteReservation::describe() const {
  return {{"act", "slurm.DeleteReservation"}, {"cluster", evidence.cluster()}, {"reservation", evidence.seen().name}};
}

core::Json SubmitJob::describe() const {
  return {{"act", "slurm.SubmitJob"}, {"cluster", cluster}, {"comment", admin_comment(mark, more)}, {"wish", to_json(wish)}};
}

core::Json UpdateJob::describe() const {
  return {{"act", "slurm.UpdateJob"},
          {"cluster", evidence.cluster()},
          {"owner", to_string(evidence.mark().owner)},
          {"job", evidence.id()},
          {"wish", to_json(wish)}};
}

core::Json ConfirmRuns::describe() const {
  return {{"act", "slurm.ConfirmRuns"}, {"cluster", evidence.cluster()}, {"job", evidence.id()}, {"nodes", nodes}};
}

core::Json RecordExitCode::describe() const {
  return {{"act", "slurm.RecordExitCode"}, {"cluster", evidence.cluster()}, {"job", evidence.id()}, {"exitCode", exit_code}};
}

core::Json CancelJob::describe() const {
  return {{"act", "slurm.CancelJob"},
          {"cluster", evidence.cluster()},
          {"owner", to_string(evidence.mark().owner)},
          {"job", evidence.id()}};
}

core::Json Reconfigure::describe() const {
  return {{"act", "slurm.Reconfigure"}, {"cluster", cluster}};
}

plan::ActPtr drain_nodes(ClusterKey cluster, Holder holder, std::vector<std::string> nodes, std::string reason, bool renames) {
  auto act = std::make_shared<DrainNodes>();
  act->cluster = std::move(cluster);
  act->holder = std::move(holder);
  act->nodes = std::move(nodes);
  act->reason = std::move(reason);
  act->renames = renames;
  return act;
}

plan::ActPtr resume_node(ClusterKey cluster, Holder holder, std::string node, std::string seen) {
  auto act = std::make_shared<ResumeNode>();
  act->cluster = std::move(cluster);
  act->holder = std::move(holder);
  act->node = std::move(node);
  act->seen = std::move(seen);
  return act;
}

plan::ActPtr update_node(ClusterKey cluster, std::string node, NodeUpdate update, std::optional<OwnFeatures> own) {
  auto act = std::make_shared<UpdateNode>();
  act->cluster = std::move(cluster);
  act->node = std::move(node);
  act->update = std::move(update);
  act->own = std::move(own);
  return act;
}

plan::ActPtr update_features(ClusterKey cluster, std::string node, NodeMark mark, OwnFeatures own) {
  auto act = std::make_shared<UpdateNode>();
  act->cluster = std::move(cluster);
  act->node = std::move(node);
  act->own = std::move(own);
  act->mark = std::move(mark);
  return act;
}

plan::ActPtr create_node(ClusterKey cluster, NodeWish wish, NodeMark mark) {
  auto act = std::make_shared<CreateNode>();
  act->cluster = std::move(cluster);
  act->wish = std::move(wish);
  act->mark = std::move(mark);
  return act;
}

plan::ActPtr remove_node(OwnDrained evidence) {
  return std::make_shared<RemoveNode>(std::move(evidence));
}

plan::ActPtr restore_reason(ClusterKey cluster, const Node& seen, std::string reason) {
  auto act = std::make_shared<RestoreReason>();
  act->cluster = std::move(cluster);
  act->node = seen.name;
  act->seen = seen.reason;
  act->reason = std::move(reason);
  return act;
}

plan::ActPtr delete_node(ClusterKey cluster, Owner owner, const Node& seen, std::string why,
                         std::optional<NodeEvidence::Live> expected) {
  return std::make_shared<DeleteNode>(std::move(cluster), owner, seen.name, seen.reason, std::move(why), expected);
}

plan::ActPtr delete_node(Owner owner, NodeEvidence evidence, std::string why) {
  auto act = std::make_shared<DeleteNode>(evidence.node().cluster, owner, evidence.node().name, evidence.reason(),
                                          std::move(why), evidence.live());
  act->evidence = std::move(evidence);
  return act;
}

plan::ActPtr end_node(Owner owner, SlurmdEnded evidence) {
  return std::make_shared<EndNode>(owner, std::move(evidence));
}

plan::ActPtr end_jobs(DrainTimedOut evidence) {
  return std::make_shared<EndJobs>(std::move(evidence));
}

plan::ActPtr confirm_idle(Drained evidence) {
  return std::make_shared<ConfirmIdle>(std::move(evidence));
}

plan::ActPtr confirm_none_starts(ClusterKey cluster) {
  auto act = std::make_shared<ConfirmNoneStarts>();
  act->cluster = std::move(cluster);
  return act;
}

plan::ActPtr confirm_no_jobs(ClusterKey cluster) {
  auto act = std::make_shared<ConfirmNoJobs>();
  act->cluster = std::move(cluster);
  return act;
}

plan::ActPtr read_reservations(ClusterKey cluster) {
  auto act = std::make_shared<ReadReservations>();
  act->cluster = std::move(cluster);
  return act;
}

plan::ActPtr read_accounting_clusters(ClusterKey cluster) {
  auto act = std::make_shared<ReadAccountingClusters>();
  act->cluster = std::move(cluster);
  return act;
}

plan::ActPtr make_reservation(ClusterKey cluster, ReservationWish wish) {
  auto act = std::make_shared<MakeReservation>();
  act->cluster = std::move(cluster);
  act->wish = std::move(wish);
  return act;
}

plan::ActPtr set_reservation_nodes(OwnReservation evidence, std::vector<std::string> nodes) {
  return std::make_shared<SetReservationNodes>(std::move(evidence), std::move(nodes));
}

plan::ActPtr delete_reservation(OwnReservation evidence) {
  return std::make_shared<DeleteReservation>(std::move(evidence));
}

plan::ActPtr submit_job(ClusterKey cluster, JobMark mark, JobWish wish, core::Json more) {
  auto act = std::make_shared<SubmitJob>();
  act->cluster = std::move(cluster);
  act->mark = std::move(mark);
  act->wish = std::move(wish);
  act->more = std::move(more);
  return act;
}

plan::ActPtr update_job(OwnJob evidence, JobWish wish) {
  return std::make_shared<UpdateJob>(std::move(evidence), std::move(wish));
}

plan::ActPtr confirm_runs(OwnJob evidence, std::vector<std::string> nodes) {
  return std::make_shared<ConfirmRuns>(std::move(evidence), std::move(nodes));
}

plan::ActPtr record_exit_code(OwnJob evidence, int exit_code) {
  return std::make_shared<RecordExitCode>(std::move(evidence), exit_code);
}

plan::ActPtr cancel_job(OwnJob evidence) {
  return std::make_shared<CancelJob>(std::move(evidence));
}

plan::ActPtr reconfigure(ClusterKey cluster) {
  auto act = std::make_shared<Reconfigure>();
  act->cluster = std::move(cluster);
  return act;
}

}  // namespace slurm
