// What can be done to Slurm, as steps of plans. Carried out by slurm::Target, which reads the node live just before it writes.
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
#include "slurm/reservation.hpp"

namespace slurm {

/// Drains nodes in the name of their owner, whose reason is given without prefix. Of a node that is draining already, a reason
/// of the owner stays as it is unless `renames`, and so does somebody else's; beside that of another program of ours the
/// owner's is added. Batched where the server can.
struct DrainNodes final : plan::Act {
  ClusterKey cluster;
  Owner owner{};
  std::vector<std::string> nodes;
  std::string reason;
  bool renames = false;  ///< Another reason of the owner's gives way to this one.
  [[nodiscard]] core::Json describe() const override;
};

/// Takes the owner's drain or down off a node, or a down of slurmctld's own: UNDRAIN when it is drained, RESUME when it is
/// down. While other programs of ours hold the node, it stays as it is, and only the owner's word goes. Refused (kConflict)
/// when the live node's reason is another, or when there is nothing to undo; with `seen`, also when the owner has given another
/// reason since, as the preStop of a worker does in its name. Leaves a reason that is nobody's: before 26.05
/// none goes by itself, and Slurm's next drain would keep it.
struct ResumeNode final : plan::Act {
  ClusterKey cluster;
  Owner owner{};
  std::string node;
  std::string seen;  ///< The reason that this was decided by; "": any.
  [[nodiscard]] core::Json describe() const override;
};

/// Sets comment, features, topology or weight; never state. With `own`, features are those that the live node has, but for what
/// it says. A change of features or weight carries the topology that the live node has: Slurm may drop it otherwise.
struct UpdateNode final : plan::Act {
  ClusterKey cluster;
  std::string node;
  NodeUpdate update;  ///< state and reason must be unset; so must features with `own`.
  std::optional<OwnFeatures> own{};
  [[nodiscard]] core::Json describe() const override;
};

/// Gives a node that drains with the reason `seen` the one that its drain has had before. Refused (kConflict) when the live
/// node does not drain, or when its reason is another by now. Never changes its state.
struct RestoreReason final : plan::Act {
  ClusterKey cluster;
  std::string node;
  std::string seen, reason;
  [[nodiscard]] core::Json describe() const override;
};

/// Deletes the record of a node that goes for good. slurmctld refuses while jobs hold it; suspended jobs are looked up live
/// first. An unknown node counts as done. Refused (kConflict) unless the live node is as expected, and when somebody other than
/// the owner has given it a reason since; and (kExpired) when its evidence is too old. That of a worker needs evidence, as it
/// is the fence before the deletion of its pod.
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
  std::string reason;  ///< That Slurm had of it when this was decided.
  std::string why;
  std::optional<NodeEvidence::Live> expected;
  std::optional<NodeEvidence> evidence;
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] bool destructive() const override { return true; }
};

/// Sets a node DOWN whose slurmd has ended, so that its jobs are requeued at once. Refused when the evidence is too old
/// (kExpired), and unless the live node is drained by the owner, and still that of the very slurmd (kConflict).
struct EndNode final : plan::Act {
  EndNode(Owner who, SlurmdEnded why) : owner(who), evidence(std::move(why)) {}
  Owner owner;
  SlurmdEnded evidence;
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] bool destructive() const override { return true; }
};

/// Requeues or cancels jobs on a drained node, those of the evidence, which names the owner, and no others. Refused when the
/// evidence is too old (kExpired), and unless the live node is still drained for the same purpose (kConflict). A job that no
/// longer runs there, or has started anew since, is left alone.
struct EndJobs final : plan::Act {
  explicit EndJobs(DrainTimedOut why) : evidence(std::move(why)) {}
  DrainTimedOut evidence;
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] bool destructive() const override { return true; }
};

/// The fence that keeps the record: fails (kConflict, kBusy) unless Slurm, asked live, has the node, keeps it from work, and no
/// job holds it; and when the evidence is too old (kExpired). Changes nothing.
struct ConfirmIdle final : plan::Act {
  explicit ConfirmIdle(Drained why) : evidence(std::move(why)) {}
  Drained evidence;
  [[nodiscard]] core::Json describe() const override;
};

/// Fails (kBusy) unless Slurm, asked live, has no job that runs or waits. Changes nothing.
struct ConfirmNoJobs final : plan::Act {
  ClusterKey cluster;
  [[nodiscard]] core::Json describe() const override;
};

/// Fails (kBusy) while Slurm, asked live, has a job that is starting: before 26.11 a reconfigure or restart loses its launch.
/// Changes nothing.
struct ConfirmNoneStarts final : plan::Act {
  ClusterKey cluster;
  [[nodiscard]] core::Json describe() const override;
};

/// `scontrol reconfigure`. A refused configuration is a failed outcome (kInvalid) with slurmctld's error.
struct Reconfigure final : plan::Act {
  ClusterKey cluster;
  [[nodiscard]] core::Json describe() const override;
};

/// Asks for all reservations: the outcome is a list of what to_json(Reservation) makes. Changes nothing.
struct ReadReservations final : plan::Act {
  ClusterKey cluster;
  [[nodiscard]] core::Json describe() const override;
};

/// Asks slurmdbd, over the slurmrestd of this cluster, for the clusters that it has: the outcome is a list of what
/// to_json(accounting::Cluster) makes. Needs no slurmctld. An error without an HTTP status tells that slurmrestd did not
/// answer, unless its reason is kSlurmdbdSilent. Changes nothing.
struct ReadAccountingClusters final : plan::Act {
  ClusterKey cluster;
  [[nodiscard]] core::Json describe() const override;
};
/// The reason of an error: slurmrestd answers, and slurmdbd does not.
inline constexpr std::string_view kSlurmdbdSilent = "SlurmdbdSilent";

/// Makes a reservation of the operator's. Refused (kConflict) when Slurm, asked live, has one of that name: it would be
/// changed.
struct MakeReservation final : plan::Act {
  ClusterKey cluster;
  ReservationWish wish;
  [[nodiscard]] core::Json describe() const override;
};

/// Gives a reservation of the operator's these nodes instead of its own. Refused when the evidence is too old (kExpired), and
/// unless Slurm, asked live, has the very one that was seen, whatever its nodes (kConflict).
struct SetReservationNodes final : plan::Act {
  SetReservationNodes(OwnReservation own, std::vector<std::string> names) : evidence(std::move(own)), nodes(std::move(names)) {}
  OwnReservation evidence;
  std::vector<std::string> nodes;  ///< Never none: Slurm would choose by itself.
  [[nodiscard]] core::Json describe() const override;
};

/// Deletes a reservation of the operator's. One that is gone counts as done. Refused as SetReservationNodes is.
struct DeleteReservation final : plan::Act {
  explicit DeleteReservation(OwnReservation own) : evidence(std::move(own)) {}
  OwnReservation evidence;
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] bool destructive() const override { return true; }
};

/// Submits an external job. Slurm is asked live first: a job with the same mark counts as this one, even if it has ended, so a
/// submission whose reply was lost is not repeated. Returns {"job": its number, "submitted": whether this act submitted it}.
/// Error: kUnsupported unless the program asks for details of jobs.
struct SubmitJob final : plan::Act {
  ClusterKey cluster;
  JobMark mark;
  JobWish wish;
  core::Json more;  ///< What the admin_comment says beside the mark.
  [[nodiscard]] core::Json describe() const override;
};

/// Changes a job of the owner's, of which Slurm is asked live first. Refused if the evidence is too old (kExpired), the job has
/// ended (kNotFound), or its number is another job's by now (kConflict). Slurm changes most of a wish only while the job waits.
struct UpdateJob final : plan::Act {
  UpdateJob(OwnJob own, JobWish to) : evidence(std::move(own)), wish(std::move(to)) {}
  OwnJob evidence;
  JobWish wish;
  [[nodiscard]] core::Json describe() const override;
};

/// Cancels a job of the owner's. Succeeds if the job has ended; else refused as UpdateJob is.
struct CancelJob final : plan::Act {
  explicit CancelJob(OwnJob own) : evidence(std::move(own)) {}
  OwnJob evidence;
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] bool destructive() const override { return true; }
};

plan::ActPtr drain_nodes(ClusterKey cluster, Owner owner, std::vector<std::string> nodes, std::string reason,
                         bool renames = false);
plan::ActPtr resume_node(ClusterKey cluster, Owner owner, std::string node, std::string seen = "");
plan::ActPtr update_node(ClusterKey cluster, std::string node, NodeUpdate update,
                         std::optional<OwnFeatures> own = std::nullopt);
plan::ActPtr restore_reason(ClusterKey cluster, const Node& seen, std::string reason);
/// Of a node that has no worker behind it, as it was `seen`.
plan::ActPtr delete_node(ClusterKey cluster, Owner owner, const Node& seen, std::string why,
                         std::optional<NodeEvidence::Live> expected = std::nullopt);
/// Of a worker's node.
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
plan::ActPtr cancel_job(OwnJob evidence);
plan::ActPtr reconfigure(ClusterKey cluster);

}  // namespace slurm
