// The parts of a pass over a NodeSet, and what each returns for the parts after it. plan.cpp calls them. Private to this
// folder.
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

/// What happens to a worker.
struct Fate {
  enum class Kind {
    kKeep,
    kScaleIn,  ///< It is not wanted any more.
    kReplace,  ///< It cannot serve. A new worker takes its place.
    kUpdate,   ///< Its template has changed. A new worker of the same place follows. Its Slurm record stays until then.
    kEnd,      ///< Its cluster is being deleted. It is deleted at once, whatever it runs.
  };
  enum class Cause {
    kNone,
    kSurplus,   ///< There are more workers than wanted.
    kSilent,    ///< It is lost with its host.
    kOutdated,  ///< Prospect::kOutdated.
    kLost,      ///< Prospect::kLost.
    kUnplaced,  ///< Its Kubernetes node must not have this worker any more.
    kRenamed,   ///< Its Kubernetes node now gives its worker another name.
    kSwitched,  ///< It belongs to the other scalingMode.
    kEarlier,   ///< It has an earlier template.
  };
  Kind kind = Kind::kKeep;
  Cause cause = Cause::kNone;
  std::string reason;       ///< For users; "" for a worker that is kept.
  bool place_taken = true;  ///< While it exists, no other worker is created for its place.

  [[nodiscard]] bool goes() const { return kind != Kind::kKeep; }
};

struct Worker : Slot {
  Fate fate;
  bool in_place = false;  ///< Its Slurm node is updated to the newest template without a new pod.

  [[nodiscard]] bool goes() const { return fate.goes(); }
  [[nodiscard]] bool updates() const { return fate.kind == Fate::Kind::kUpdate; }
  [[nodiscard]] bool silent() const { return fate.cause == Fate::Cause::kSilent; }
  [[nodiscard]] bool outdated() const { return prospect == Prospect::kOutdated; }
  /// The worker can only be replaced.
  [[nodiscard]] bool lost() const {
    return silent() || outdated() || prospect == Prospect::kLost || prospect == Prospect::kUnpinned;
  }
};
using Workers = std::vector<Worker>;  ///< Sorted by place.

/// Pending jobs that require a node by name (`sbatch -w`). Slurm ends them when it no longer has the node.
struct WaitingJobs {
  std::vector<std::int64_t> first;  ///< The first few job ids.
  std::int64_t last = 0;
  std::size_t count = 0;
};
/// By Slurm node.
using WaitingJobsByNode = std::unordered_map<std::string_view, WaitingJobs>;
/// "7, 8 and 3 more"; "" if no job waits for the node.
[[nodiscard]] std::string waiting_text(const WaitingJobsByNode& jobs, const std::string& node);

/// The workers of earlier templates and what happens to them.
struct Rollout {
  enum class State {
    kByHand,  ///< They stay until somebody deletes their pods.
    kPaused,
    kScheduled,  ///< They stay until their maintenance window: none of them is in it now.
    kBlocked,  ///< Nothing begins now: no worker could be created, Slurm does not answer, or the template is not recorded yet.
    kRolls,
  };
  State state = State::kByHand;
  std::size_t earlier = 0;        ///< Number of workers with an earlier template.
  std::size_t below = 0;          ///< How many of `earlier` the partition holds back.
  std::size_t in_place = 0;       ///< How many of `earlier` are updated in place.
  std::size_t outside = 0;        ///< With ScheduledUpdate: how many of `earlier` are outside of their window.
  std::size_t under_way = 0;      ///< Workers that are going, missing, or new and not serving yet.
  std::size_t unavailable = 0;    ///< Number of all workers that do not serve, except those that somebody took out of service.
  std::size_t missing = 0;        ///< How many of `unavailable` do not exist.
  std::size_t most = 0;           ///< Limit for `unavailable`.
  bool withheld = false;          ///< Some workers would be deleted, but deletions are stopped or Slurm is in doubt.
  std::vector<std::string> kept;  ///< Why some are left out for now: "cpu-1 is in reservation r, ...".
  /// The API server is asked whether it would create a worker of the newest template in the place of this one.
  const Worker* asks_template = nullptr;
  bool unchecked = false;  ///< The answer is missing. Until it is known, no worker is deleted for the update.
  std::string unanswered;  ///< Why the API server could not answer.
  std::string refusal;  ///< Why the API server would refuse the new pod, so that the update does not begin; "": it would not.
  std::optional<Change> change{};  ///< When this result may change.
};

/// Workers of the NodeSet's previous scalingMode.
struct Switching {
  std::size_t left = 0;            ///< Number of workers that are still to be replaced.
  std::vector<std::string> kept;   ///< Why some are left out for now.
  bool waits = false;              ///< Some wait because of maxUnavailable.
  std::optional<Change> change{};  ///< When this result may change.
};

struct Fates {
  Workers workers;
  Rollout rollout;
  Switching switching;
  WaitingJobsByNode waiting_jobs;       ///< Filled in if a worker is going, or if a job waits for one whose record is to go.
  std::vector<std::string> names_kept;  ///< Why workers do not get the names that their Kubernetes nodes give them now.
  bool asks_reservations = false;       ///< Records have to be deleted, but Slurm's reservations were not read recently.
  std::vector<Change> changes;          ///< When a fate may change.
};

/// Known problems of spec.extraConf and of slurmd's options; "": none.
struct ExtraConf {
  std::string refusal;  ///< slurmd would exit, or could not be found in Slurm. No worker is created with it.
  std::string doubts;   ///< What slurmd may not understand.
};

struct Vacancies {
  std::set<SlotKey> places;                  ///< Places whose workers are to be created, now or later.
  std::map<std::string, std::string> taken;  ///< Names of workers to create that belong to another NodeSet, and to which.
};

using NodeNames = std::set<std::string, std::less<>>;

struct ScaleIn {
  /// Workers still to be deleted, including those of this pass but not those that are updated or get another name.
  int to_delete = 0;
  std::vector<std::string> held;      ///< What workers that are scaled in wait for: "cpu-1 runs 1 job until ...".
  std::int64_t held_until = 0;        ///< The greatest deadline_rank of `held`.
  std::vector<std::string> updating;  ///< What workers that are to be updated wait for.
  std::vector<std::string> withheld;  ///< Pods that would be deleted, but deletions are stopped or Slurm is in doubt.
};

/// The NodeSet's finalizer. No worker may exist without it, or a deletion of the NodeSet would not wait for its jobs.
enum class Finalizer {
  kUnchanged,
  kChanged,  ///< A step of this pass adds or removes it, and so changes the NodeSet's resourceVersion.
  kNotNow,   ///< It is missing, and cannot be added in this pass.
};

/// Slurm records of workers that are gone for good.
struct StaleRecords {
  int count = 0;
  std::string answering;              ///< A node that looks stale but still answers; "": none.
  std::vector<std::string> withheld;  ///< Records that stay while deletions are stopped.
};

/// ScheduledUpdate's reservation.
struct MaintenanceResult {
  struct Note {
    std::string_view reason;
    std::string message;
    bool made;
  };
  std::optional<Note> note{};  ///< For the condition ReservationCreated; empty: the condition is not set.
  bool pending = false;        ///< A reservation that is not wanted may still exist.
  Finalizer finalizer = Finalizer::kUnchanged;
};

/// What write_status reports on.
struct PassResult {
  const Fates& fates;
  const ExtraConf& extra_conf;
  const Vacancies& vacancies;
  const NodeNames& draining;
  const ScaleIn& scale_in;
  const api::StringMap& pins;
  const api::StringMap& drains;
  bool noted;  ///< note_drains writes the status in this pass.
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
/// Chooses among the workers that are kept.
[[nodiscard]] Rollout judge_rollout(const View& view, const ExtraConf& extra_conf, Fates& fates);
/// Returns which jobs or reservation would lose the node if the worker's record were deleted, or "". `begun`: the worker is
/// drained for that already. Asks for Slurm's reservations if they were not read recently.
[[nodiscard]] std::string why_record_stays(const View& view, const Slot& worker, bool begun, Fates& fates);

// maintenance.cpp
[[nodiscard]] bool is_scheduled(const View& view);
/// True if the reservation of this NodeSet has the worker's node in maintenance.
[[nodiscard]] bool in_window(const View& view, const Slot& worker);
/// True if Slurm's reservations were read recently.
[[nodiscard]] bool reservations_are_recent(const View& view);
/// A reservation of others that covers the worker's node now or later and would lose the node with its record; nullopt: none.
[[nodiscard]] std::optional<std::string> other_reservation(const View& view, const Slot& worker);
/// When the next window is, for users.
[[nodiscard]] std::string window_text(const View& view);
[[nodiscard]] MaintenanceResult keep_reservation(const View& view, const Workers& workers, const Vacancies& vacancies,
                                                 Finalizer finalizer, Draft& draft);

// in_place.cpp
using RevisionHashes = std::set<std::string, std::less<>>;
/// Revisions from which the newest template differs only in what Slurm can change while workers run.
[[nodiscard]] RevisionHashes find_in_place(const View& view);
/// True if the record of a worker of such a revision can be changed in place.
[[nodiscard]] bool can_change_in_place(const View& view, const Worker& worker);
/// True if the worker has the newest template but its record does not: slurmd has registered anew, or the template was changed
/// back.
[[nodiscard]] bool has_drifted(const View& view, const Worker& worker);
/// True if the node has, or had, features of another template than the one its slurmd would give a new record.
[[nodiscard]] bool was_changed_in_place(const Slot& worker);
struct TemplateFeatures {
  std::vector<std::string> wanted;    ///< Features of the newest template, including the NodeSet's own.
  std::vector<std::string> obsolete;  ///< Features that only other templates have.
};
[[nodiscard]] TemplateFeatures template_features(const View& view);
/// The weight in spec.extraConf. A reconfigure of slurmctld resets it to that of the record's own --conf.
[[nodiscard]] std::optional<std::int64_t> template_weight(const View& view);
/// The comment of the worker's node once it has the newest template. A comment of somebody else stays as it is. If the --conf
/// of the record is unknown, the comment does not name one.
[[nodiscard]] std::string comment_in_place(const View& view, const Worker& worker);
/// Asks the API server whether it would create the successor's pod.
[[nodiscard]] plan::Need need_template(const View& view, const Worker& worker);
/// Updates the pods: notes the revision they were created with before their nodes change, and the new revision afterwards.
void update_in_place(const View& view, const Workers& workers, Draft& draft);
/// True if the next worker can be created, as far as can be known in advance.
[[nodiscard]] bool can_create(const View& view, const ExtraConf& extra_conf);
/// True if the worker serves, so that deleting it would leave one less.
[[nodiscard]] bool is_available(const View& view, const Worker& worker);
/// spec.updateStrategy.rollingUpdate.maxUnavailable of the wanted workers: 1 or more.
[[nodiscard]] std::size_t max_unavailable(const View& view);

// hosts.cpp
/// With scalingMode DaemonSet: chooses workers to delete because their Kubernetes nodes are not wanted or give them another
/// name.
void judge_places(const View& view, Fates& fates);
/// Chooses among the kept workers of the other scalingMode.
[[nodiscard]] Switching switch_mode(const View& view, const ExtraConf& extra_conf, Fates& fates);
/// find_vacancies for scalingMode DaemonSet.
[[nodiscard]] Vacancies find_free_hosts(const View& view, const Fates& fates, Draft& draft);
/// The wanted places without a worker that stays.
[[nodiscard]] std::set<SlotKey> hosts_to_fill(const View& view, const Workers& workers);
/// Returns why no worker can have the name of the place, or "".
[[nodiscard]] std::string why_unnamed(const View& view, const SlotKey& place);
/// Number of workers that are to be created. Kubernetes nodes that cannot have one until somebody acts do not count.
[[nodiscard]] std::size_t places_missing(const View& view, const Workers& workers);
void tell_hosts(const View& view, Draft& draft);
void tell_switch(const View& view, const Fates& fates, Draft& draft);
void tell_renames(const View& view, const Workers& workers, Draft& draft);

// revision.cpp
void keep_revisions(const View& view, const Workers& workers, Draft& draft);

// workers.cpp
/// Returns free ordinals, as many as workers are missing.
[[nodiscard]] Vacancies find_vacancies(const View& view, const Fates& fates, Draft& draft);
[[nodiscard]] Finalizer adopt_orphans(const View& view, Draft& draft);
/// Reports names in Slurm that other NodeSets have as well.
void tell_name_conflicts(const View& view, const Workers& workers, const Vacancies& vacancies, Draft& draft);
/// Call it only if there are no orphans to adopt.
[[nodiscard]] Finalizer create_workers(const View& view, const Vacancies& vacancies, const ExtraConf& extra_conf,
                                       const NodeNames& draining, Draft& draft);
/// For a NodeSet that is being deleted and has no pods left.
[[nodiscard]] Finalizer remove_finalizer(const View& view, const StaleRecords& records, const MaintenanceResult& maintenance,
                                         Draft& draft);

// claims.cpp
/// Creates missing claims. Returns the vacant places whose workers cannot be created yet, because a claim is missing or
/// unusable.
[[nodiscard]] std::set<SlotKey> prepare_claims(const View& view, const Vacancies& vacancies, Draft& draft);
/// Marks the claims that are to be deleted with a worker that is scaled in. True if all are marked, so that its pod may be
/// deleted: afterwards nothing else shows that the worker did not merely make room for a successor.
[[nodiscard]] bool give_up_claims(const View& view, const Worker& worker, Draft& draft);
/// Adds to the intent what remains to be done to the claims of a worker that is deleted.
void intend_for_claims(const View& view, const Worker& worker, plan::Intent& intent);
/// Deletes claims that were given up and are not used any more. Keeps those that are wanted again.
void keep_claims(const View& view, const Workers& workers, const Vacancies& vacancies, Draft& draft);
/// For a NodeSet that is being deleted and has no pods left. True if only the claims that should be deleted with it would be.
[[nodiscard]] bool release_claims(const View& view, Draft& draft);
/// Reports why pods wait for their claims.
void tell_claims(const View& view, const Workers& workers, Draft& draft);
/// Reads the events about a claim that gets no volume.
[[nodiscard]] plan::Need need_claim_events(const kube::ObjectMeta& claim);

// pins.cpp
/// The new value of status.ordinalToNode.
[[nodiscard]] api::StringMap judge_pins(const View& view, const Workers& workers, Draft& draft);
/// True if the pin of the place is removed in this pass. Its next worker is created once the status shows that.
[[nodiscard]] bool drops_pin(const View& view, const SlotKey& key);
/// True if status.ordinalToNode does not have the worker's Kubernetes node yet, so that its successor would not return there.
[[nodiscard]] bool awaits_pin(const View& view, const Worker& worker);

// drains.cpp
/// True if an administrator or Slurm has drained the node, other than because Slurm refuses its slurmd.
[[nodiscard]] bool drained_by_others(const slurm::Node& record);
/// Whether the next worker of a place can register with the drain that others have set on the record.
enum class Restorable {
  kNo,
  kNoText,     ///< Its reason cannot be restored byte for byte.
  kNotKept,    ///< The API server does not keep status.drainsToRestore, or refuses it.
  kToBeNoted,  ///< It can, once the status has the drain.
  kNoted,
};
[[nodiscard]] Restorable judge_restorable(const View& view, const SlotKey& place, const slurm::Node& record);
/// The entries of status.drainsToRestore that stay.
[[nodiscard]] api::StringMap judge_drains(const View& view);
/// True if the node's entry is to be removed. Until it is gone, the next worker would be drained because of it.
[[nodiscard]] bool forgets_drain(const View& view, const std::string& node);
/// Writes new entries: drains of records that are deleted with the next worker. True if there were any: the status then has
/// another resourceVersion after this pass.
[[nodiscard]] bool note_drains(const View& view, const Fates& fates, const Vacancies& vacancies, Draft& draft);
/// Reports drains that are restored when their entries are removed from the status.
void tell_restored(const View& view, const Workers& workers, const api::StringMap& kept, Draft& draft);
/// Restores the reasons of drains once the next workers have registered.
void restore_drains(const View& view, Draft& draft);

// attributes.cpp
/// Sets features and topology of the workers' Slurm nodes from their Kubernetes nodes, and what the newest template changes in
/// place.
void keep_attributes(const View& view, const Workers& workers, Draft& draft);
/// True if the worker's Slurm node has features of another Kubernetes node or lacks some. Jobs may ask for them.
[[nodiscard]] bool lacks_features(const View& view, const Worker& worker);
/// The features that a Kubernetes node has by its annotation and by these labels, with their prefix.
[[nodiscard]] std::set<std::string, std::less<>> node_features(const kube::ObjectMeta& node,
                                                               const std::vector<std::string>& labels);

// slurm_states.cpp
/// Returns the Slurm nodes that are drained in this pass.
[[nodiscard]] NodeNames drain_nodes(const View& view, const Workers& workers, const Vacancies& vacancies, Draft& draft);
/// Ends the jobs of pods that are known to have ended unnoticed by Slurm. Returns the Slurm nodes of these pods.
[[nodiscard]] NodeNames end_gone_nodes(const View& view, Draft& draft);
void resume_workers(const View& view, const Workers& workers, Draft& draft);
void keep_metadata(const View& view, const Workers& workers, Draft& draft);
void report_states(const View& view, const Workers& workers, Draft& draft);
/// True if slurmctld has to be reconfigured before the worker gets its place from the user's topology file: see
/// operator/controller/places.hpp.
[[nodiscard]] bool awaits_place(const View& view, const Worker& worker);
/// The comment for the worker's Slurm node. It names the pod, and `conf`, the hash of the record's extraConf and limits.
[[nodiscard]] std::string stamped_comment(const View& view, const Worker& worker, const std::string& conf);
/// Call it only if nothing else is to be done: a write to Slurm makes the key wait for the next snapshot.
void stamp_comments(const View& view, const Workers& workers, Draft& draft);

// scale_in.cpp
[[nodiscard]] ScaleIn delete_workers(const View& view, const Fates& fates, Draft& draft);

// drain_policy.cpp
/// Requeues or cancels the jobs of workers that are going, once spec.drainPolicy says so.
void end_overdue_jobs(const View& view, const Fates& fates, Draft& draft);

// stale_records.cpp
[[nodiscard]] StaleRecords delete_stale_records(const View& view, const Workers& workers, const Vacancies& vacancies,
                                                Draft& draft);

// protection.cpp
void keep_on_lost_hosts(const View& view, const Workers& workers, Draft& draft);

// ssh.cpp
/// Creates missing host keys. False if they are missing, so that workers must not be created in this pass.
[[nodiscard]] bool keep_host_keys(const View& view, Draft& draft);
/// Reports what keeps users from logging in to workers.
void tell_ssh(const View& view, Draft& draft);

// status.cpp
void write_status(const View& view, const PassResult& result, Draft& draft);

// Used by several parts.

/// True if the orphan is adopted as a worker.
[[nodiscard]] inline bool to_be_adopted(const kube::PodPtr& orphan) {
  return !orphan->meta.terminating();
}
/// "default/cpu-1" for a worker.
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
/// The reason for a worker that leaves its place.
[[nodiscard]] std::string leave_reason(const View& view, const Worker& worker);
/// True if the operator has drained the node with this reason.
[[nodiscard]] bool drained_for(const Slot& worker, std::string_view reason);
/// In milliseconds since the epoch: 0 if it runs nothing, INT64_MAX for a job without a limit or a suspended one.
[[nodiscard]] std::int64_t deadline_rank(const Slot& worker);
/// Whether the newest template replaces workers of earlier ones; see kAnnotationRolls.
enum class Rolls {
  kNo,
  kToBeRecorded,  ///< It will, once its ControllerRevision records that.
  kYes,
};
[[nodiscard]] Rolls newest_revision_rolls(const View& view);
/// When the newest template became the newest. Empty: it has no ControllerRevision yet, or an earlier release of the operator
/// made it the newest again.
[[nodiscard]] std::optional<core::WallTime> newest_revision_since(const View& view);
/// Free ordinals in the order in which workers are created: first those whose Slurm record waits for a next worker, as in an
/// update, then the lowest.
class FreeOrdinals {
 public:
  FreeOrdinals(const View& view, std::set<int> used);
  int next();
  /// True if another ordinal would come before `ordinal`, were that one free.
  [[nodiscard]] bool has_before(int ordinal);
  [[nodiscard]] bool has_awaited() const { return !awaited_.empty(); }

 private:
  int lowest();

  std::set<int> used_;
  int lowest_ = 0;
  std::vector<int> awaited_;  ///< The next one is last.
};
/// True if the worker is live and its template is known and not the newest.
[[nodiscard]] bool is_earlier(const View& view, const Slot& worker);
/// How long until the worker has been ready for minReadySeconds; empty: it is not ready.
[[nodiscard]] std::optional<core::Duration> available_in(const View& view, const Slot& worker);
/// True if somebody took the worker out of service and has to put it back.
[[nodiscard]] bool set_aside(const Slot& worker);

/// Returns what workers that are scaled in wait for, and until when at the latest, or "".
[[nodiscard]] std::string held_text(const ScaleIn& scale_in);
/// For a worker that may be the Slurm node Slot::suspect: what to do about it.
[[nodiscard]] std::string suspect_text(const Slot& worker);
/// "cpu-1 runs 2 jobs until 2026-01-02 03:04 UTC": why a worker that Slurm knows is not deleted yet.
[[nodiscard]] std::string what_holds(const View& view, const Worker& worker);

/// True if the pod has the label that the PodDisruptionBudget selects, so that no eviction is allowed.
[[nodiscard]] bool is_protected(const kube::PodRecord& pod);
/// Whether jobs run on the worker; empty: unknown. While Slurm does not answer, jobs that it reported last still count, but
/// their absence does not.
[[nodiscard]] std::optional<bool> runs_jobs(const View& view, const Slot& worker);
/// Whether a worker is to be protected from eviction, and when that may change.
struct Protection {
  std::optional<bool> wanted{};  ///< Empty: unknown, so the protection stays as it is.
  std::optional<Change> change{};
};
[[nodiscard]] Protection judge_protection(const View& view, const Slot& worker);

/// How often to look again while deletions are stopped or Slurm is in doubt: nothing wakes the key when that ends.
inline constexpr core::Duration kDoubtAgain{1000};
/// Limit for the workers, and for the claims, that a pass creates.
inline constexpr std::size_t kCreatesPerPass = 48;
/// Reason for workers that are ready but have no node of their name in Slurm.
inline constexpr const char* kNotRegistered = "SlurmNodeNotRegistered";
/// Ends a message about a reserved node.
inline constexpr std::string_view kReservedText =
    " is in a reservation in Slurm, and stays until the reservation ends or no longer names it";

/// Asks the API server whether the object exists. False: the answer is there.
bool ask(const View& view, const LiveObject& object, Draft& draft);

/// True if somebody deleted the worker's record and no job needs it. Unless it registers again, it can only be replaced.
[[nodiscard]] bool lacks_record(const View& view, const Slot& worker);
/// True if the worker's slurmd may register at any moment, and the record of its name is an earlier worker's. That record keeps
/// it drained: without it, Slurm would take it for a new node and give it jobs.
[[nodiscard]] bool may_register(const Slot& worker);
/// True if slurmctld refuses to delete the idle node because it is reserved, so that asking again is of no use.
[[nodiscard]] bool reserved(const slurm::Node& node);
/// True if the node's comment shows that a worker of this NodeSet was the last one behind it.
[[nodiscard]] bool stamped_by_us(const View& view, const slurm::Node& node);
/// True if Slurm refused the last slurmd of this node and the reason is slurmctld's own for that. Each such registration
/// overwrites the reason, so any other reason is newer, or (before 26.05) left over.
[[nodiscard]] bool tells_refusal(const slurm::Node& node);
/// True if an administrator's drain, fail or down also applies to the next worker of the name, so that the record must stay
/// while there is none. Not if the NodeSet is being deleted, nor if Slurm refuses the slurmd, which nobody can end.
[[nodiscard]] bool outlives_worker(const View& view, const slurm::Node& node);
/// Key in the comment of a Slurm node: hash of the extraConf and limits with which its record was made.
inline constexpr std::string_view kStampedConf = "extraConfHash";
/// True if the record is known to come from another extraConf or other limits than those of pods of `revision`.
[[nodiscard]] bool has_other_conf(const View& view, const slurm::Node& record, std::string_view revision);
enum class OldRecord {
  kStays,
  kDeletedFirst,  ///< It is deleted before the worker is created.
  kAwaitsDown,    ///< As kDeletedFirst, once slurmctld has noticed that the previous slurmd is gone.
  kAwaitsNote,    ///< As kDeletedFirst, once the status has the drain that others set on it.
};
/// What happens to the record that an earlier worker left under the name of a worker to be created. Slurm ignores --conf for a
/// node that it knows.
[[nodiscard]] OldRecord judge_old_record(const View& view, const std::string& node);

}  // namespace op::nodeset
