// The acts on Slurm for the steps of plans. slurm::Target carries
// them out and reads the node live just before each write.
//
// Folder src/slurm: the data that plans may use, which are the model of Slurm, acts, evidence, and the programs that drain
// nodes. Uses plan and core. Knows nothing of Kubernetes. Code that does I/O is in the subfolders.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/plan.hpp"
#include "slurm/evidence.hpp"
#include "slurm/holds.hpp"
#include "slurm/model.hpp"
#include "slurm/own_job.hpp"
#include "slurm/own_node.hpp"
#include "slurm/reservation.hpp"

namespace slurm {

/// Drains nodes for `holder`. Slurm's reason is the prefix of the holder's program, followed by `reason`. A node that somebody
/// else has set down or failing is drained and keeps its reason. A node that already drains stays as it is, with two
/// exceptions. If only other programs or installations of ours have drained it, the holder's reason is added to theirs. With
/// `renames`, the new reason replaces the holder's earlier reason, or an earlier reason of the holder's program that names no
/// installation. Fails with kNotFound if Slurm lacks one of the nodes, after draining the other nodes. Nodes that get the same
/// reason share a request if the server supports it.
struct DrainNodes final : plan::Act {
  ClusterKey cluster;
  Holder holder{Owner{}};
  std::vector<std::string> nodes;
  std::string reason;
  bool renames = false;  ///< Replaces an earlier reason of the holder.
  [[nodiscard]] core::Json describe() const override;
};

/// Returns to service a node that the holder drained or set down, or that slurmctld itself set down. Sends UNDRAIN for a
/// drained node, and RESUME for a node that is down. If other programs or installations of ours have drained the node too, only
/// removes the holder's part of the reason. Otherwise sets the reason "Not responding": before 26.05 Slurm never clears a
/// reason, and the next drain would keep the old one. Fails with kConflict if the live node is failing, is in service, or was
/// taken out of service by somebody else. Exception: slurm-enlist also removes its own reason from a node in service. With
/// `seen`, also fails if the holder's part of the reason differs from its part in `seen`: the preStop hook of a worker can
/// change it.
struct ResumeNode final : plan::Act {
  ClusterKey cluster;
  Holder holder{Owner{}};
  std::string node;
  std::string seen;  ///< The reason when the resume was decided; "": not checked.
  [[nodiscard]] core::Json describe() const override;
};

/// Sets comment, extra, features, topology or weight, never the state. With `own`, computes the features from the features of
/// the live node. A change of features or weight also sends the live topology, because Slurm can lose it otherwise. With
/// `mark`, fails with kConflict unless the live node has this mark.
struct UpdateNode final : plan::Act {
  ClusterKey cluster;
  std::string node;
  NodeUpdate update;  ///< Its state and reason must be unset; with `own`, its features too.
  std::optional<OwnFeatures> own{};
  std::optional<NodeMark> mark{};
  [[nodiscard]] core::Json describe() const override;
};

/// Sets the reason of a draining node back to `reason`, which it had earlier. Fails with kConflict unless the live node drains
/// with the reason `seen`. Never changes the state.
struct RestoreReason final : plan::Act {
  ClusterKey cluster;
  std::string node;
  std::string seen, reason;
  [[nodiscard]] core::Json describe() const override;
};

/// Deletes a node record. Succeeds if Slurm does not have the node. Fails with kBusy if a job holds the node, or, for
/// slurm-enlist, if a pending job names it. Reads the jobs live first, because slurmctld itself does not refuse the deletion if
/// all jobs on the node are suspended. Fails with kConflict if the live node is not in the expected state, or if somebody else
/// has since drained it, or set it down or failing, with another reason. Fails with kExpired if the evidence is too old. The
/// record of a worker needs evidence, because the worker's pod is deleted after this act has succeeded.
struct DeleteNode final : plan::Act {
  DeleteNode(ClusterKey in_cluster, Owner who, std::string name, std::string seen, std::string because,
             std::optional<NodeEvidence::Live> live)
      : cluster(std::move(in_cluster)),
        owner(who),
        node(std::move(name)),
        reason(std::move(seen)),
        why(std::move(because)),
        expected(live) {}
  ClusterKey cluster;
  Owner owner;
  std::string node;
  std::string reason;  ///< Slurm's reason for the node when the deletion was decided.
  std::string why;
  std::optional<NodeEvidence::Live> expected;
  std::optional<NodeEvidence> evidence;
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] bool destructive() const override { return true; }
};

/// Creates an external node with a mark. Asks Slurm live first, because before 26.05 the request deletes an idle node that has
/// this name already. Succeeds if Slurm already has a node of this name with this mark. Fails with kAlreadyExists if Slurm has
/// another node of this name.
struct CreateNode final : plan::Act {
  ClusterKey cluster;
  NodeWish wish;
  NodeMark mark;
  [[nodiscard]] core::Json describe() const override;
};

/// Deletes an external node that the owner created. Succeeds if Slurm does not have the node. Fails with kBusy if a job holds
/// the node, with kExpired if the evidence is too old, and with kConflict if the live node has another mark, or is not drained
/// by the owner alone.
struct RemoveNode final : plan::Act {
  explicit RemoveNode(OwnDrained own) : evidence(std::move(own)) {}
  OwnDrained evidence;
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] bool destructive() const override { return true; }
};

/// After the slurmd of a node has ended, sets the node DOWN, so that Slurm requeues its jobs at once. Succeeds if the node is
/// already down, or if Slurm does not have it. Fails with kExpired if the evidence is too old, and with kConflict if the live
/// node is not drained by the owner, is failing, or has another slurmd than the evidence.
struct EndNode final : plan::Act {
  EndNode(Owner who, SlurmdEnded why) : owner(who), evidence(std::move(why)) {}
  Owner owner;
  SlurmdEnded evidence;
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] bool destructive() const override { return true; }
};

/// Requeues or cancels the jobs that the evidence lists, and no others. Fails with kExpired if the evidence is too old, with
/// kConflict unless the live node is still drained for the same purpose, and with kUnsupported if the server cannot requeue
/// jobs. A job that has left the node or has been restarted is left alone.
struct EndJobs final : plan::Act {
  explicit EndJobs(DrainTimedOut why) : evidence(std::move(why)) {}
  DrainTimedOut evidence;
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] bool destructive() const override { return true; }
};

/// Checks that a pod may be deleted while its node record stays. Succeeds if a live read of Slurm shows the node drained,
/// failing or down, and no job that holds it. Fails otherwise (kConflict, kBusy), and if the evidence is too old (kExpired).
/// Changes nothing.
struct ConfirmIdle final : plan::Act {
  explicit ConfirmIdle(Drained why) : evidence(std::move(why)) {}
  Drained evidence;
  [[nodiscard]] core::Json describe() const override;
};

/// Fails with kBusy if a live read of Slurm shows a running or waiting job. Changes nothing.
struct ConfirmNoJobs final : plan::Act {
  ClusterKey cluster;
  [[nodiscard]] core::Json describe() const override;
};

/// Fails with kBusy if a live read of Slurm shows a job that is starting: before 26.11, a reconfigure or restart of slurmctld
/// loses the launch of such a job. Changes nothing.
struct ConfirmNoneStarts final : plan::Act {
  ClusterKey cluster;
  [[nodiscard]] core::Json describe() const override;
};

/// Reconfigures, like `scontrol reconfigure`. Fails with kInvalid and slurmctld's error if slurmctld refuses the configuration.
struct Reconfigure final : plan::Act {
  ClusterKey cluster;
  [[nodiscard]] core::Json describe() const override;
};

/// Reads all reservations. The outcome is a list of to_json(Reservation). Changes nothing.
struct ReadReservations final : plan::Act {
  ClusterKey cluster;
  [[nodiscard]] core::Json describe() const override;
};

/// Asks slurmdbd, through the slurmrestd of this cluster, for slurmdbd's clusters. The outcome is a list of
/// to_json(accounting::Cluster). slurmctld need not run. The error kUnavailable without an HTTP status means that slurmrestd
/// did not answer, unless the reason of the error is kSlurmdbdSilent. Changes nothing.
struct ReadAccountingClusters final : plan::Act {
  ClusterKey cluster;
  [[nodiscard]] core::Json describe() const override;
};
/// Reason of an error: slurmrestd answers, but slurmdbd does not.
inline constexpr std::string_view kSlurmdbdSilent = "SlurmdbdSilent";

/// Creates a reservation for the operator. Fails with kConflict if a live read of Slurm shows a reservation of that name,
/// because Slurm would change the existing reservation.
struct MakeReservation final : plan::Act {
  ClusterKey cluster;
  ReservationWish wish;
  [[nodiscard]] core::Json describe() const override;
};

/// Replaces the nodes of a reservation of the operator. Fails with kExpired if the evidence is too old, and with kConflict if
/// Slurm no longer has the reservation of the evidence. The present nodes of the reservation do not matter.
struct SetReservationNodes final : plan::Act {
  SetReservationNodes(OwnReservation own, std::vector<std::string> names) : evidence(std::move(own)), nodes(std::move(names)) {}
  OwnReservation evidence;
  std::vector<std::string> nodes;  ///< Never empty, because Slurm would then choose the nodes.
  [[nodiscard]] core::Json describe() const override;
};

/// Deletes a reservation of the operator. Succeeds if the reservation is gone. Fails with kExpired if the evidence is too old,
/// and with kConflict if the live reservation is not the one of the evidence.
struct DeleteReservation final : plan::Act {
  explicit DeleteReservation(OwnReservation own) : evidence(std::move(own)) {}
  OwnReservation evidence;
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] bool destructive() const override { return true; }
};

/// Submits an external job, unless a job already has this mark. A job that has ended counts too, so a submission whose reply
/// was lost is not repeated. Looks for the job in the last snapshot, or live if the snapshot can lack a submission. Returns
/// {"job": its number, "submitted": whether this act submitted it}. Error: kUnsupported unless the program asks for details of
/// jobs (ClientOptions::job_details).
struct SubmitJob final : plan::Act {
  ClusterKey cluster;
  JobMark mark;
  JobWish wish;
  core::Json more;  ///< Further members of the admin_comment.
  [[nodiscard]] core::Json describe() const override;
};

/// Changes a job that the owner submitted. Asks Slurm live for the job first. Fails with kExpired if the evidence is too old,
/// with kNotFound if the job has ended, and with kConflict if its number now belongs to another job. Slurm changes most members
/// of a JobWish only while the job waits.
struct UpdateJob final : plan::Act {
  UpdateJob(OwnJob own, JobWish to) : evidence(std::move(own)), wish(std::move(to)) {}
  OwnJob evidence;
  JobWish wish;
  [[nodiscard]] core::Json describe() const override;
};

/// Checks a job before something begins to run on its nodes. Succeeds if a live read of Slurm shows that the job of the
/// evidence is RUNNING after its prolog, and that it holds these nodes and no others. Fails with kExpired if the evidence is
/// too old, and with kConflict otherwise. Changes nothing.
struct ConfirmRuns final : plan::Act {
  ConfirmRuns(OwnJob own, std::vector<std::string> on) : evidence(std::move(own)), nodes(std::move(on)) {}
  OwnJob evidence;
  std::vector<std::string> nodes;
  [[nodiscard]] core::Json describe() const override;
};

/// Writes an exit code to the record of a job in slurmdbd, as its derived exit code, because Slurm ends every external job as
/// CANCELLED. Slurm keeps this code when the job ends. Fails with kExpired if the evidence is too old, and with kNotFound if
/// slurmdbd does not have the job yet. Fails with kUnsupported if there is no slurmdbd, or if slurmdbd serves several clusters:
/// the request names no cluster, so slurmdbd would change the jobs with this number in all clusters.
struct RecordExitCode final : plan::Act {
  RecordExitCode(OwnJob own, int of) : evidence(std::move(own)), exit_code(of) {}
  OwnJob evidence;
  int exit_code;
  [[nodiscard]] core::Json describe() const override;
};

/// Cancels a job that the owner submitted. Succeeds if the job has ended. Errors: kExpired and kConflict as for UpdateJob.
struct CancelJob final : plan::Act {
  explicit CancelJob(OwnJob own) : evidence(std::move(own)) {}
  OwnJob evidence;
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] bool destructive() const override { return true; }
};

plan::ActPtr drain_nodes(ClusterKey cluster, Holder holder, std::vector<std::string> nodes, std::string reason,
                         bool renames = false);
plan::ActPtr resume_node(ClusterKey cluster, Holder holder, std::string node, std::string seen = "");
plan::ActPtr update_node(ClusterKey cluster, std::string node, NodeUpdate update,
                         std::optional<OwnFeatures> own = std::nullopt);
/// Changes the features of a node that one of our programs created.
plan::ActPtr update_features(ClusterKey cluster, std::string node, NodeMark mark, OwnFeatures own);
plan::ActPtr create_node(ClusterKey cluster, NodeWish wish, NodeMark mark);
plan::ActPtr remove_node(OwnDrained evidence);
plan::ActPtr restore_reason(ClusterKey cluster, const Node& seen, std::string reason);
/// Deletes a node without a worker. `seen` is the node on which the decision was based.
plan::ActPtr delete_node(ClusterKey cluster, Owner owner, const Node& seen, std::string why,
                         std::optional<NodeEvidence::Live> expected = std::nullopt);
/// Deletes the node of a worker.
plan::ActPtr delete_node(Owner owner, NodeEvidence evidence, std::string why);
plan::ActPtr end_node(Owner owner, SlurmdEnded evidence);
plan::ActPtr end_jobs(DrainTimedOut evidence);
plan::ActPtr confirm_idle(Drained evidence);
plan::ActPtr confirm_no_jobs(ClusterKey cluster);
plan::ActPtr confirm_none_starts(ClusterKey cluster);
plan::ActPtr read_reservations(ClusterKey cluster);
plan::ActPtr read_accounting_clusters(ClusterKey cluster);
plan::ActPtr make_reservation(ClusterKey cluster, ReservationWish wish);
plan::ActPtr set_reservation_nodes(OwnReservation evidence, std::vector<std::string> nodes);
plan::ActPtr delete_reservation(OwnReservation evidence);
plan::ActPtr submit_job(ClusterKey cluster, JobMark mark, JobWish wish, core::Json more = nullptr);
plan::ActPtr update_job(OwnJob evidence, JobWish wish);
plan::ActPtr confirm_runs(OwnJob evidence, std::vector<std::string> nodes);
plan::ActPtr record_exit_code(OwnJob evidence, int exit_code);
plan::ActPtr cancel_job(OwnJob evidence);
plan::ActPtr reconfigure(ClusterKey cluster);

}  // namespace slurm
