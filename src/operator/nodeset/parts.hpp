// Declares the parts of a pass over a NodeSet, and the results that each part returns for later parts. plan.cpp calls the
// parts. Private to this folder.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "operator/nodeset/draft.hpp"
#include "operator/nodeset/view.hpp"

namespace op::nodeset {

/// The fate of a worker: whether the worker is kept, and if not, why the worker is deleted and what follows.
struct Fate {
  enum class Kind {
    kKeep,
    kScaleIn,  ///< The worker is not wanted any more.
    kReplace,  ///< The worker cannot serve. A new worker takes its place.
    kUpdate,   ///< The template has changed. A new worker takes the place. The Slurm record stays until then.
    kEnd,      ///< The cluster is being deleted. The worker is deleted at once, even if it runs jobs.
  };
  enum class Cause {
    kNone,
    kSurplus,   ///< There are more workers than wanted.
    kSilent,    ///< The worker is lost with its Kubernetes node.
    kOutdated,  ///< The worker's prospect is Prospect::kOutdated.
    kLost,      ///< The worker's prospect is Prospect::kLost.
    kUnplaced,  ///< The Kubernetes node must not have this worker any more.
    kRenamed,   ///< The Kubernetes node now gives its worker another name.
    kSwitched,  ///< The worker was created with the NodeSet's previous scalingMode.
    kEarlier,   ///< The worker has an earlier template.
  };
  Kind kind = Kind::kKeep;
  Cause cause = Cause::kNone;
  std::string reason;       ///< The reason for users. "" for a worker that is kept.
  bool place_taken = true;  ///< True if no other worker is created for the place while this worker exists.

  [[nodiscard]] bool goes() const { return kind != Kind::kKeep; }
};

struct Worker : Slot {
  Fate fate;
  bool in_place = false;  ///< The operator changes the worker's Slurm node to the newest template. The pod stays.

  [[nodiscard]] bool goes() const { return fate.goes(); }
  [[nodiscard]] bool updates() const { return fate.kind == Fate::Kind::kUpdate; }
  [[nodiscard]] bool silent() const { return fate.cause == Fate::Cause::kSilent; }
  [[nodiscard]] bool outdated() const { return prospect == Prospect::kOutdated; }
  /// True if the worker can only be replaced.
  [[nodiscard]] bool lost() const {
    return silent() || outdated() || prospect == Prospect::kLost || prospect == Prospect::kUnpinned;
  }
};
using Workers = std::vector<Worker>;  ///< Sorted by place.

/// Pending jobs that require a node by name (`sbatch -w`). Slurm ends such a job when Slurm no longer has the node.
struct WaitingJobs {
  std::vector<std::int64_t> first;  ///< The first few job ids.
  std::int64_t last = 0;
  std::size_t count = 0;
};
/// The waiting jobs by Slurm node.
using WaitingJobsByNode = std::unordered_map<std::string_view, WaitingJobs>;
/// Returns a text for users that lists the jobs that wait for the node: "7, 8 and 3 more". "": no job waits for the node.
[[nodiscard]] std::string waiting_text(const WaitingJobsByNode& jobs, const std::string& node);

/// The state of the workers with earlier templates, and what happens to them.
struct Rollout {
  enum class State {
    kByHand,  ///< The workers stay until somebody deletes their pods.
    kPaused,
    kScheduled,  ///< The workers stay until their maintenance window. No worker is in its window now.
    kBlocked,    ///< No update begins now, because no worker could be created, because Slurm does not answer, or because the
                 ///< ControllerRevision does not record yet that the newest template replaces workers.
    kRolls,
  };
  State state = State::kByHand;
  std::size_t earlier = 0;        ///< Number of workers with an earlier template.
  std::size_t below = 0;          ///< How many of `earlier` are held back by spec.updateStrategy.rollingUpdate.partition.
  std::size_t in_place = 0;       ///< How many of `earlier` are updated in place.
  std::size_t outside = 0;        ///< How many of `earlier` are outside of their window, with ScheduledUpdate.
  std::size_t under_way = 0;      ///< Workers that are being replaced, are missing, or are new and do not serve yet.
  std::size_t unavailable = 0;    ///< Number of all workers that do not serve, except those that somebody took out of service.
  std::size_t missing = 0;        ///< How many of `unavailable` do not exist.
  std::size_t most = 0;           ///< Limit for `unavailable`.
  bool withheld = false;          ///< Some workers would be deleted, but deletions are stopped or Slurm's answers are in doubt.
  std::vector<std::string> kept;  ///< Why some workers are not updated for now: "cpu-1 is in reservation r, ...".
  /// The API server is asked whether it would create the successor of this worker, with the newest template. Null: the API
  /// server is not asked.
  const Worker* asks_template = nullptr;
  bool unchecked = false;  ///< The API server has not answered. Until it does, no worker is deleted for the update.
  std::string unanswered;  ///< Why the API server gave no usable answer. "": it answered.
  /// Why the API server would refuse the new pod. In this case, the update does not begin. "": no refusal is known.
  std::string refusal;
  std::optional<Change> change{};  ///< When this result might change.
};

/// Workers of the NodeSet's previous scalingMode.
struct Switching {
  std::size_t left = 0;            ///< Number of workers that are still to be replaced.
  std::vector<std::string> kept;   ///< Why some workers are not replaced for now.
  bool waits = false;              ///< Some workers wait because of maxUnavailable.
  std::optional<Change> change{};  ///< When this result might change.
};

struct Fates {
  Workers workers;
  Rollout rollout;
  Switching switching;
  /// Set only if a worker is to be deleted for another reason than an update, or if a job waits for the node of a worker that
  /// might be replaced.
  WaitingJobsByNode waiting_jobs;
  std::vector<std::string> names_kept;  ///< Why workers do not get the names that their Kubernetes nodes now give them.
  bool asks_reservations = false;       ///< Records have to be deleted, but Slurm's reservations were not read recently.
  std::vector<Change> changes;          ///< The times after which the fate of a worker might change.
};

/// The known problems of spec.extraConf and of slurmd's options. "": there is none.
struct ExtraConf {
  std::string refusal;  ///< Why slurmd would exit, or might register under a wrong name. If set, no worker is created.
  std::string doubts;   ///< The items that slurmd might not understand.
};

struct Vacancies {
  std::set<SlotKey> places;                  ///< Places whose workers are to be created, now or later.
  std::map<std::string, std::string> taken;  ///< Maps the name of a worker to create to its present owner, as text for users.
};

using NodeNames = std::set<std::string, std::less<>>;

struct ScaleIn {
  /// The number of workers that still have to be deleted, including the workers that this pass deletes. Workers that are
  /// updated or renamed are not counted.
  int to_delete = 0;
  std::vector<std::string> held;      ///< What the workers that are scaled in wait for: "cpu-1 runs 1 job until ...".
  std::int64_t held_until = 0;        ///< The deadline_rank() of the worker in `held` whose jobs end last.
  std::vector<std::string> updating;  ///< What the workers that are to be updated wait for.
  std::vector<std::string> withheld;  ///< Pods that stay while deletions are stopped or Slurm's answers are in doubt.
};

/// The change that this pass makes to the NodeSet's finalizer. While a worker exists, the NodeSet must have the finalizer.
/// Otherwise a deletion of the NodeSet would not wait for the worker's jobs.
enum class Finalizer {
  kUnchanged,
  kChanged,  ///< A step of this pass adds or removes the finalizer, which changes the NodeSet's resourceVersion.
  kNotNow,   ///< The finalizer is missing and cannot be added in this pass.
};

/// Slurm records of workers that are gone for good.
struct StaleRecords {
  int count = 0;
  std::string answering;              ///< A node that looks stale but still answers; "": none.
  std::vector<std::string> withheld;  ///< Records that stay while deletions are stopped.
};

/// The result of keep_reservation(), for the reservation of ScheduledUpdate.
struct MaintenanceResult {
  struct Note {
    std::string_view reason;
    std::string message;
    bool made;
  };
  std::optional<Note> note{};  ///< The content of the condition ReservationCreated. Empty: the condition is not set.
  bool pending = false;        ///< The NodeSet's reservation might still exist.
  Finalizer finalizer = Finalizer::kUnchanged;
};

/// The results of the parts of a pass. write_status() reports them.
struct PassResult {
  const Fates& fates;
  const ExtraConf& extra_conf;
  const Vacancies& vacancies;
  const NodeNames& draining;
  const ScaleIn& scale_in;
  const api::StringMap& pins;
  const api::StringMap& drains;
  bool noted;  ///< True if note_drains writes the status in this pass.
  const MaintenanceResult& maintenance;
  const StaleRecords& stale;
  Finalizer finalizer;
};

// The parts, by file. plan.cpp says in which order they are called.

// plan.cpp
[[nodiscard]] Aim choose_goal(const Observed& observed);
[[nodiscard]] ExtraConf check_conf(const View& view, Draft& draft);

// fates.cpp
[[nodiscard]] Fates judge_fates(const View& view, const ExtraConf& extra_conf);

// update.cpp
/// Chooses the workers to update among the workers that are kept.
[[nodiscard]] Rollout judge_rollout(const View& view, const ExtraConf& extra_conf, Fates& fates);
/// Returns a text for users: which jobs or which reservation need the worker's record, or that Slurm's reservations were never
/// read. "": the record can go. `begun`: the drain for the replacement has begun, so unread reservations do not matter. Sets
/// `fates.asks_reservations` if Slurm's reservations were not read recently.
[[nodiscard]] std::string why_record_stays(const View& view, const Slot& worker, bool begun, Fates& fates);

// maintenance.cpp
[[nodiscard]] bool is_scheduled(const View& view);
/// True if the NodeSet's own reservation is active now and covers the worker's node.
[[nodiscard]] bool in_window(const View& view, const Slot& worker);
/// True if Slurm's reservations were read recently.
[[nodiscard]] bool reservations_are_recent(const View& view);
/// Returns the name of a reservation, other than the NodeSet's own, that covers the worker's node now or later. The reservation
/// would lose the node if the node's record were deleted. "": the name is unknown. nullopt: no such reservation is known.
[[nodiscard]] std::optional<std::string> other_reservation(const View& view, const Slot& worker);
/// Returns, for users, when the next window is, or why there is none.
[[nodiscard]] std::string window_text(const View& view);
[[nodiscard]] MaintenanceResult keep_reservation(const View& view, const Workers& workers, const Vacancies& vacancies,
                                                 Finalizer finalizer, Draft& draft);

// in_place.cpp
using RevisionHashes = std::set<std::string, std::less<>>;
/// Returns the revisions from which the newest template differs only in what Slurm can change while workers run.
[[nodiscard]] RevisionHashes find_in_place(const View& view);
/// True if Slurm's record of the worker can be changed in place. Requires that find_in_place() contains the worker's revision.
[[nodiscard]] bool can_change_in_place(const View& view, const Worker& worker);
/// True if the worker has the newest template but its Slurm node does not, because slurmd has registered again or because the
/// template was changed back.
[[nodiscard]] bool has_drifted(const View& view, const Worker& worker);
/// True if the worker's Slurm node was, or is about to be, changed to a newer template without a new pod. A restart of slurmd
/// undoes the change: slurmd registers with the --conf of the template with which its pod was created.
[[nodiscard]] bool was_changed_in_place(const Slot& worker);
struct TemplateFeatures {
  std::vector<std::string> wanted;    ///< Features of the newest template, including the NodeSet's own.
  std::vector<std::string> obsolete;  ///< Features that only other templates have.
};
[[nodiscard]] TemplateFeatures template_features(const View& view);
/// Returns the weight in spec.extraConf. When slurmctld is reconfigured, it resets a node's weight to the weight in the --conf
/// with which the node's record was made. So the operator might have to set the weight again.
[[nodiscard]] std::optional<std::int64_t> template_weight(const View& view);
/// Returns the comment for the worker's node when the node has the newest template. A comment of somebody else stays unchanged.
/// If it is unknown with which --conf the record was made, the comment names no --conf.
[[nodiscard]] std::string comment_in_place(const View& view, const Worker& worker);
/// Returns the plan::Need to ask the API server whether it would create the pod of the worker's successor.
[[nodiscard]] plan::Need need_template(const View& view, const Worker& worker);
/// Updates the pods of workers that are updated in place. Before the Slurm node changes, records on the pod the revision with
/// which the pod was created. Afterwards, records the new revision.
void update_in_place(const View& view, const Workers& workers, Draft& draft);
/// True if a successor of the worker can be created, as far as can be known in advance.
[[nodiscard]] bool can_create(const View& view, const ExtraConf& extra_conf);
/// True if the worker serves, so that its deletion would reduce the number of serving workers.
[[nodiscard]] bool is_available(const View& view, const Worker& worker);
/// Returns maxUnavailable as a number of workers, at least 1. A percentage refers to the wanted workers and is rounded up.
[[nodiscard]] std::size_t max_unavailable(const View& view);

// hosts.cpp
/// Chooses, with scalingMode DaemonSet, workers to delete because their Kubernetes nodes are not wanted or give them another
/// name.
void judge_places(const View& view, Fates& fates);
/// Chooses the workers to replace among the kept workers that were created with the other scalingMode.
[[nodiscard]] Switching switch_mode(const View& view, const ExtraConf& extra_conf, Fates& fates);
/// Returns the wanted Kubernetes nodes without a worker, for scalingMode DaemonSet.
[[nodiscard]] Vacancies find_free_hosts(const View& view, const Fates& fates, Draft& draft);
/// Returns, for scalingMode DaemonSet, the wanted places that have no worker, or only a worker that does not stay.
[[nodiscard]] std::set<SlotKey> hosts_to_fill(const View& view, const Workers& workers);
/// Returns why a new worker at this place could not get its name in Slurm. "": the name is available. Always "" with host
/// networking.
[[nodiscard]] std::string why_unnamed(const View& view, const SlotKey& place);
/// Returns the number of workers that are to be created. Does not count Kubernetes nodes that cannot have a worker until a user
/// acts.
[[nodiscard]] std::size_t places_missing(const View& view, const Workers& workers);
void tell_hosts(const View& view, Draft& draft);
void tell_switch(const View& view, const Fates& fates, Draft& draft);
void tell_renames(const View& view, const Workers& workers, Draft& draft);

// revision.cpp
void keep_revisions(const View& view, const Workers& workers, Draft& draft);

// workers.cpp
/// Returns the places for the missing workers: free ordinals or, with scalingMode DaemonSet, Kubernetes nodes.
[[nodiscard]] Vacancies find_vacancies(const View& view, const Fates& fates, Draft& draft);
[[nodiscard]] Finalizer adopt_orphans(const View& view, Draft& draft);
/// Reports conflicts of names in Slurm: another NodeSet also uses the name of a worker or of this NodeSet.
void tell_name_conflicts(const View& view, const Workers& workers, const Vacancies& vacancies, Draft& draft);
/// Creates the pods of vacant places. Call it only if there are no orphans to adopt.
[[nodiscard]] Finalizer create_workers(const View& view, const Vacancies& vacancies, const ExtraConf& extra_conf,
                                       const NodeNames& draining, Draft& draft);
/// Removes the finalizer of a NodeSet that is being deleted and has no pods left. Before that, waits until the stale records
/// that can be deleted are deleted. Also waits, for a limited time, until Slurm answers, has deleted the NodeSet's reservation,
/// and has noticed that the last slurmd is gone. Waits for none of this if the whole cluster ends, or with Goal::kHold.
[[nodiscard]] Finalizer remove_finalizer(const View& view, const StaleRecords& records, const MaintenanceResult& maintenance,
                                         Draft& draft);

// claims.cpp
/// Creates missing claims. Returns the vacant places whose workers cannot be created yet, because a claim is missing or
/// unusable.
[[nodiscard]] std::set<SlotKey> prepare_claims(const View& view, const Vacancies& vacancies, Draft& draft);
/// Marks the claims that are to be deleted with a worker that is scaled in. Returns true if all these claims are marked, so
/// that the pod is allowed to be deleted. After the deletion, only the marks show that the claims are not kept for a successor.
[[nodiscard]] bool give_up_claims(const View& view, const Worker& worker, Draft& draft);
/// Adds to the intent the remaining changes to the claims of a worker that is deleted.
void intend_for_claims(const View& view, const Worker& worker, plan::Intent& intent);
/// Deletes claims that were given up and are not used any more. Keeps claims that are wanted again.
void keep_claims(const View& view, const Workers& workers, const Vacancies& vacancies, Draft& draft);
/// Removes the owner reference from claims that must stay. Call it for a NodeSet that is being deleted and has no pods left.
/// Returns true if the finalizer may be removed: no such reference is left, and either deletions are allowed or no claim would
/// be deleted.
[[nodiscard]] bool release_claims(const View& view, Draft& draft);
/// Reports why pods wait for their claims.
void tell_claims(const View& view, const Workers& workers, Draft& draft);
/// Returns the plan::Need to read the events about a claim that gets no volume.
[[nodiscard]] plan::Need need_claim_events(const kube::ObjectMeta& claim);

// pins.cpp
/// Returns the new value of status.ordinalToNode.
[[nodiscard]] api::StringMap judge_pins(const View& view, const Workers& workers, Draft& draft);
/// True if this pass removes the pin of the place. The next worker of the place is created once the status lacks the pin.
[[nodiscard]] bool drops_pin(const View& view, const SlotKey& key);
/// True if status.ordinalToNode lacks the worker's Kubernetes node, so that a successor would not return to that node.
[[nodiscard]] bool awaits_pin(const View& view, const Worker& worker);

// drains.cpp
/// True if an administrator or Slurm has drained the node. False if Slurm drained the node because Slurm refused the slurmd.
[[nodiscard]] bool drained_by_others(const slurm::Node& record);
/// Tells whether the next worker of a place can register with the drain that others have set on the record.
enum class Restorable {
  kNo,
  kNoText,     ///< The reason of the drain cannot be restored byte for byte.
  kNotKept,    ///< The API server drops or refuses status.drainsToRestore.
  kToBeNoted,  ///< The worker can register with the drain, once the status has it.
  kNoted,
};
[[nodiscard]] Restorable judge_restorable(const View& view, const SlotKey& place, const slurm::Node& record);
/// Returns the entries of status.drainsToRestore that stay.
[[nodiscard]] api::StringMap judge_drains(const View& view);
/// True if the node's entry in status.drainsToRestore is to be removed. Until the entry is removed, the next worker would
/// register drained.
[[nodiscard]] bool forgets_drain(const View& view, const std::string& node);
/// Adds steps that write drains by others to status.drainsToRestore, for nodes whose next worker gets a new record. Returns
/// true if it added a step. Such a step changes the resourceVersion of the NodeSet.
[[nodiscard]] bool note_drains(const View& view, const Fates& fates, const Vacancies& vacancies, Draft& draft);
/// Reports the drains that have been restored, when their entries are removed from the status.
void tell_restored(const View& view, const Workers& workers, const api::StringMap& kept, Draft& draft);
/// Restores the reasons of drains once the next workers have registered.
void restore_drains(const View& view, Draft& draft);

// attributes.cpp
/// Sets the features and topology of the workers' Slurm nodes as their Kubernetes nodes require. Also sets the attributes that
/// the newest template changes without new pods.
void keep_attributes(const View& view, const Workers& workers, Draft& draft);
/// True if the worker is ready and stays, but its Slurm node has features of another Kubernetes node, or lacks features of the
/// worker's Kubernetes node. Jobs can require these features. False if setting the features has failed.
[[nodiscard]] bool lacks_features(const View& view, const Worker& worker);
/// Returns the features that a Kubernetes node's annotation and the node's `labels` name. Adds the prefix and skips invalid
/// values.
[[nodiscard]] std::set<std::string, std::less<>> node_features(const kube::ObjectMeta& node,
                                                               const std::vector<std::string>& labels);

// slurm_states.cpp
/// Returns the Slurm nodes that are drained in this pass.
[[nodiscard]] NodeNames drain_nodes(const View& view, const Workers& workers, const Vacancies& vacancies, Draft& draft);
/// Ends the jobs on the Slurm nodes of pods that are gone, if the pod or its Kubernetes node is certainly gone and Slurm has
/// not noticed that. Returns the Slurm nodes of these pods, even while the API server has not answered about a pod.
[[nodiscard]] NodeNames end_gone_nodes(const View& view, Draft& draft);
void resume_workers(const View& view, const Workers& workers, Draft& draft);
void keep_metadata(const View& view, const Workers& workers, Draft& draft);
void report_states(const View& view, const Workers& workers, Draft& draft);
/// True if the worker gets its place from the user's topology file only after a reconfigure of slurmctld: see
/// operator/controller/places.hpp.
[[nodiscard]] bool awaits_place(const View& view, const Worker& worker);
/// Returns the comment for the worker's Slurm node. The comment contains the pod and `conf`, which is the hash of the extraConf
/// and limits with which the record was made.
[[nodiscard]] std::string stamped_comment(const View& view, const Worker& worker, const std::string& conf);
/// Writes the comments of the workers' Slurm nodes. Call it only if nothing else is to do, because after a write to Slurm the
/// NodeSet waits for a new snapshot.
void stamp_comments(const View& view, const Workers& workers, Draft& draft);

// scale_in.cpp
[[nodiscard]] ScaleIn delete_workers(const View& view, const Fates& fates, Draft& draft);

// drain_policy.cpp
/// Requeues or cancels the jobs of workers that are to be deleted, once spec.drainPolicy requires it.
void end_overdue_jobs(const View& view, const Fates& fates, Draft& draft);

// stale_records.cpp
[[nodiscard]] StaleRecords delete_stale_records(const View& view, const Workers& workers, const Vacancies& vacancies,
                                                Draft& draft);

// protection.cpp
void keep_on_lost_hosts(const View& view, const Workers& workers, Draft& draft);

// ssh.cpp
/// Creates missing host keys before the workers of this pass. Returns false if this pass must create no worker, because it is
/// unknown whether the keys exist, or because they cannot be created now.
[[nodiscard]] bool keep_host_keys(const View& view, Draft& draft);
/// Reports why users cannot log in to workers with ssh.
void tell_ssh(const View& view, Draft& draft);

// status.cpp
void write_status(const View& view, const PassResult& result, Draft& draft);

// Used by several parts.

/// True if the orphan is adopted as a worker.
[[nodiscard]] inline bool to_be_adopted(const kube::PodPtr& orphan) {
  return !orphan->meta.terminating();
}
/// Returns the key of the worker's pod, for messages and step ids: "default/cpu-1".
[[nodiscard]] inline std::string pod_text(const Slot& worker) {
  return worker.pod->meta.key().str();
}
[[nodiscard]] inline std::string scale_in_reason(const View& view) {
  return scale_in_reason(view.in.meta());
}
[[nodiscard]] inline std::string update_reason(const View& view) {
  return update_reason(view.in.meta());
}
[[nodiscard]] inline std::string switch_reason(const View& view) {
  return switch_reason(view.in.meta(), view.in.nodeset.spec.scaling_mode);
}
/// Returns the reason for the drain of a worker that leaves its place.
[[nodiscard]] std::string leave_reason(const View& view, const Worker& worker);
/// True if the operator has drained the node with this reason.
[[nodiscard]] bool drained_for(const Slot& worker, std::string_view reason);
/// Returns when the last job of the worker ends, in milliseconds since the epoch: 0 if no job runs, INT64_MAX for a job without
/// a limit or a suspended job.
[[nodiscard]] std::int64_t deadline_rank(const Slot& worker);
/// Tells whether the newest template replaces workers that have earlier templates: see kAnnotationRolls.
enum class Rolls {
  kNo,
  kToBeRecorded,  ///< The newest template will replace workers, once its ControllerRevision records that.
  kYes,
};
[[nodiscard]] Rolls newest_revision_rolls(const View& view);
/// Returns when the newest template became the newest. Empty: the template has no ControllerRevision yet, or an earlier release
/// of the operator wrote the ControllerRevision without this time.
[[nodiscard]] std::optional<core::WallTime> newest_revision_since(const View& view);
/// Returns free ordinals in the order in which workers are created. First come the ordinals whose Slurm records are kept for
/// the next worker, as during an update. Then come the other ordinals from the lowest.
class FreeOrdinals {
 public:
  FreeOrdinals(const View& view, std::set<int> used);
  int next();
  /// Assumes that `ordinal` is free and has no record. True if a worker with another free ordinal would then be created
  /// earlier.
  [[nodiscard]] bool has_before(int ordinal);
  [[nodiscard]] bool has_awaited() const { return !awaited_.empty(); }

 private:
  int lowest();

  std::set<int> used_;
  int lowest_ = 0;
  std::vector<int> awaited_;  ///< Ordinals whose records are kept for the next worker. next() takes the last element first.
};
/// True if the worker has neither ended nor been deleted, and its template is known and is not the newest.
[[nodiscard]] bool is_earlier(const View& view, const Slot& worker);
/// Returns the time until the worker has been ready for minReadySeconds. Empty: it is not known to be ready.
[[nodiscard]] std::optional<core::Duration> available_in(const View& view, const Slot& worker);
/// True if somebody took the worker out of service and has to put it back. False while Slurm refuses its slurmd.
[[nodiscard]] bool set_aside(const Slot& worker);

/// Returns a text for users: what the workers that are scaled in wait for, and until when at the latest. "": nothing.
[[nodiscard]] std::string held_text(const ScaleIn& scale_in);
/// Returns a text for users: what to do about a worker that might have registered as the Slurm node Slot::suspect.
[[nodiscard]] std::string suspect_text(const Slot& worker);
/// Returns why a worker that Slurm knows is not deleted yet: "cpu-1 runs 2 jobs until 2026-01-02 03:04 UTC".
[[nodiscard]] std::string what_holds(const View& view, const Worker& worker);

/// True if the pod has the label that the PodDisruptionBudget selects, so that no eviction is allowed.
[[nodiscard]] bool is_protected(const kube::PodRecord& pod);
/// Returns whether jobs run on the worker. Empty: unknown. While Slurm does not answer, returns true if jobs ran on this worker
/// according to Slurm's last answer, and otherwise empty.
[[nodiscard]] std::optional<bool> runs_jobs(const View& view, const Slot& worker);
/// Whether a worker needs protection from evictions, and when this might change.
struct Protection {
  std::optional<bool> wanted{};  ///< Empty: unknown, so the protection stays as it is.
  std::optional<Change> change{};
};
[[nodiscard]] Protection judge_protection(const View& view, const Slot& worker);

/// The time until the next plan while deletions are stopped or Slurm's answers are in doubt. No event wakes the NodeSet when
/// this state ends.
inline constexpr core::Duration kDoubtAgain{1000};
/// The largest number of workers that one pass creates. The same limit applies to claims.
inline constexpr std::size_t kCreatesPerPass = 48;
/// The condition reason for workers that are ready but have no node of their name in Slurm.
inline constexpr const char* kNotRegistered = "SlurmNodeNotRegistered";
/// The end of a message about a reserved node.
inline constexpr std::string_view kReservedText =
    " is in a reservation in Slurm, and is kept until the reservation ends or no longer names it";

/// Asks the API server whether the object exists. Returns true while there is no answer.
bool ask(const View& view, const LiveObject& object, Draft& draft);

/// True if somebody deleted the record of a ready worker and no job needs the record. Such a worker must be replaced, unless it
/// registers again.
[[nodiscard]] bool lacks_record(const View& view, const Slot& worker);
/// True if the worker's slurmd might register at any moment and the record of its name is from an earlier worker. If that
/// record is drained, Slurm gives no jobs to the worker. Without that record, Slurm would use the worker as a new node.
[[nodiscard]] bool may_register(const Slot& worker);
/// True if slurmctld refuses to delete the idle node because the node is reserved. A repeated request would be refused as well.
[[nodiscard]] bool reserved(const slurm::Node& node);
/// True if the node's comment shows that its last worker was a worker of this NodeSet.
[[nodiscard]] bool stamped_by_us(const View& view, const slurm::Node& node);
/// True if Slurm refused the last slurmd of this node, and the node's reason is the reason that slurmctld sets for a refusal.
/// Each refused registration overwrites the reason. So a different reason is newer than the refusal. Before Slurm 26.05, a
/// different reason might also be older.
[[nodiscard]] bool tells_refusal(const slurm::Node& node);
/// True if an administrator's drain, fail or down also applies to the next worker of that name. While there is no worker, the
/// record must then stay. False if the goal is not Goal::kServe. Also false if Slurm refuses the slurmd, because nobody can end
/// that state.
[[nodiscard]] bool outlives_worker(const View& view, const slurm::Node& node);
/// A Slurm node's comment contains, under this key, the hash of the extraConf and limits with which the record was made.
inline constexpr std::string_view kStampedConf = "extraConfHash";
/// True if the record of one of our workers is known to have other extraConf or limits than pods of `revision`.
[[nodiscard]] bool has_other_conf(const View& view, const slurm::Node& record, std::string_view revision);
enum class OldRecord {
  kStays,
  kDeletedFirst,  ///< The record is deleted before the worker is created.
  kAwaitsDown,    ///< The record is deleted first, once slurmctld has noticed that the previous slurmd is gone.
  kAwaitsNote,    ///< The record is deleted first, once the status has the drain that others set on the node.
};
/// Returns what happens to an old record that has the name of a worker to be created. While Slurm has the record, it ignores
/// the --conf of the slurmd, so a record with another --conf must be deleted first.
[[nodiscard]] OldRecord judge_old_record(const View& view, const std::string& node);

}  // namespace op::nodeset
