// The parts of a pass over a NodeSet, and what each finds out for those after it. plan.cpp puts them together. Private to this
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

/// What is to become of a worker.
struct Fate {
  enum class Kind {
    kKeep,
    kScaleIn,  ///< It is not wanted any more.
    kReplace,  ///< It cannot serve: another one comes in its place.
    kUpdate,   ///< Its template has changed: another one of its number comes. Its record in Slurm stays until then.
    kEnd,      ///< Its cluster ends: it goes at once, whatever it runs.
  };
  enum class Cause {
    kNone,
    kSurplus,   ///< There are more than are wanted.
    kSilent,    ///< It is lost with its host.
    kOutdated,  ///< Prospect::kOutdated.
    kLost,      ///< Prospect::kLost.
    kUnplaced,  ///< Its Kubernetes node is not to have a worker any more.
    kRenamed,   ///< Its Kubernetes node gives its worker another name.
    kSwitched,  ///< It is of the other scalingMode.
    kEarlier,   ///< It is of an earlier template.
  };
  Kind kind = Kind::kKeep;
  Cause cause = Cause::kNone;
  std::string reason;       ///< For people; "" for one that is kept.
  bool place_taken = true;  ///< Nobody else is created for it as long as it is there.

  [[nodiscard]] bool goes() const { return kind != Kind::kKeep; }
};

struct Worker : Slot {
  Fate fate;
  bool in_place = false;  ///< Its node gets what the newest template says of it, without another pod.

  [[nodiscard]] bool goes() const { return fate.goes(); }
  [[nodiscard]] bool updates() const { return fate.kind == Fate::Kind::kUpdate; }
  [[nodiscard]] bool silent() const { return fate.cause == Fate::Cause::kSilent; }
  [[nodiscard]] bool outdated() const { return prospect == Prospect::kOutdated; }
  /// It can only be replaced.
  [[nodiscard]] bool lost() const {
    return silent() || outdated() || prospect == Prospect::kLost || prospect == Prospect::kUnpinned;
  }
};
using Workers = std::vector<Worker>;  ///< By place.

/// Jobs that wait for a node by its name (`sbatch -w`): Slurm ends them once it has no such node.
struct WaitingJobs {
  std::vector<std::int64_t> first;  ///< The first few of them.
  std::int64_t last = 0;
  std::size_t count = 0;
};
/// By Slurm node.
using WaitingJobsByNode = std::unordered_map<std::string_view, WaitingJobs>;
/// "7, 8 and 3 more"; "": none waits for the node.
[[nodiscard]] std::string waiting_text(const WaitingJobsByNode& jobs, const std::string& node);

/// Workers of earlier templates, and what becomes of them.
struct Rollout {
  enum class State {
    kByHand,  ///< They stay until somebody deletes their pods.
    kPaused,
    kScheduled,  ///< They stay until their window: none of them is in it now.
    kBlocked,    ///< Nothing is begun now: no worker could be created, Slurm is silent, or the template is not recorded yet.
    kRolls,
  };
  State state = State::kByHand;
  std::size_t earlier = 0;         ///< How many there are.
  std::size_t below = 0;           ///< How many of them the partition holds,
  std::size_t in_place = 0;        ///< and how many are updated as they are.
  std::size_t outside = 0;         ///< With ScheduledUpdate: how many of them are in no window now.
  std::size_t under_way = 0;       ///< Workers that go, are missing, or are new and do not serve yet.
  std::size_t unavailable = 0;     ///< How many of all workers do not serve, and nobody took them from work,
  std::size_t missing = 0;         ///< how many of these do not exist,
  std::size_t most = 0;            ///< and how many may.
  bool withheld = false;           ///< Some would go, but for the stop switch or the doubt.
  std::vector<std::string> kept;   ///< Why some are left out for now: "cpu-1 is in reservation r, ...".
  bool asks_reservations = false;  ///< Records are to go, and what is reserved for later is not known, or was asked long ago.
  /// The API server has yet to say whether it would create a worker of the newest template in the place of this one ...
  const Worker* asks_template = nullptr;
  bool unchecked = false;          ///< ... or cannot be asked: nobody goes for the update meanwhile,
  std::string unanswered;          ///< and why not.
  std::string refusal;             ///< Why it would not: the update does not begin; "": it would.
  std::optional<Change> change{};  ///< When that may be another.
};

/// Workers of the scalingMode that the NodeSet had before.
struct Switching {
  std::size_t left = 0;            ///< How many there are whose places others are to take.
  std::vector<std::string> kept;   ///< Why some are left out for now.
  bool waits = false;              ///< Others go first, for no more than maxUnavailable go at once.
  std::optional<Change> change{};  ///< When that may be another.
};

struct Fates {
  Workers workers;
  Rollout rollout;
  Switching switching;
  WaitingJobsByNode waiting_jobs;  ///< Where any worker goes, or one waits that is to be updated.
  std::vector<Change> changes;     ///< When a fate may be another.
};

/// What slurmd is known to make of spec.extraConf, and of its options; "": nothing is wrong.
struct ExtraConf {
  std::string refusal;  ///< slurmd would end at it, or not be found in Slurm: no worker is made with it.
  std::string doubts;   ///< What slurmd may not know of it.
};

struct Vacancies {
  std::set<SlotKey> places;                  ///< Their workers are to be created, now or later.
  std::map<std::string, std::string> taken;  ///< Names of workers to create that another NodeSet has, and which.
};

using NodeNames = std::set<std::string, std::less<>>;

struct ScaleIn {
  int to_delete = 0;                  ///< Workers still to be deleted, those of this pass included, but no updated ones.
  std::vector<std::string> held;      ///< What workers that are scaled in wait for: "cpu-1 runs 1 job until ...".
  std::int64_t held_until = 0;        ///< The greatest deadline_rank of these.
  std::vector<std::string> updating;  ///< The same of workers that are to be updated.
  std::vector<std::string> withheld;  ///< Pods that would go, but for the stop switch or the doubt.
};

/// The NodeSet's finalizer, without which no worker may be there: a deletion would not wait for its jobs.
enum class Finalizer {
  kUnchanged,
  kChanged,  ///< A step of this pass adds or removes it, and with that writes the NodeSet itself.
  kNotNow,   ///< It is missing, and cannot be added in this pass.
};

/// Slurm's records of workers that are gone for good.
struct StaleRecords {
  int count = 0;
  std::string answering;              ///< One that looks like it, but answers still; "": none.
  std::vector<std::string> withheld;  ///< Those that stay while deletions are stopped.
};

/// ScheduledUpdate's reservation.
struct MaintenanceResult {
  struct Note {
    std::string_view reason;
    std::string message;
    bool made;
  };
  std::optional<Note> note{};  ///< For its condition; empty: none is wanted.
  bool pending = false;        ///< One that is not wanted may be there.
  Finalizer finalizer = Finalizer::kUnchanged;
};

/// What status tells of.
struct PassResult {
  const Fates& fates;
  const ExtraConf& extra_conf;
  const Vacancies& vacancies;
  const NodeNames& draining;
  const ScaleIn& scale_in;
  const api::StringMap& pins;
  const api::StringMap& drains;
  bool noted;  ///< note_drains writes the status.
  const MaintenanceResult& maintenance;
  const StaleRecords& stale;
  Finalizer finalizer;
};

// The parts, by file. In which order they are called, plan.cpp says.

// plan.cpp
[[nodiscard]] Aim choose_goal(const Observed& observed);
[[nodiscard]] ExtraConf check_conf(const View& view, Draft& draft);

// fates.cpp
[[nodiscard]] Fates judge_fates(const View& view, const ExtraConf& extra_conf);

// update.cpp
/// Chooses among the workers that are kept. Of `waiting_jobs` only those count that wait for workers of earlier templates.
[[nodiscard]] Rollout judge_rollout(const View& view, const ExtraConf& extra_conf, const WaitingJobsByNode& waiting_jobs,
                                    Workers& workers);

// maintenance.cpp
[[nodiscard]] bool is_scheduled(const View& view);
/// Slurm has the worker's node in maintenance, by the reservation of this NodeSet.
[[nodiscard]] bool in_window(const View& view, const Slot& worker);
/// What Slurm said of its reservations holds still.
[[nodiscard]] bool reservations_are_recent(const View& view);
/// The reservation of others in which the worker's node is, or is to be, and which would lose it with its record; empty: none.
[[nodiscard]] std::optional<std::string> other_reservation(const View& view, const Slot& worker);
/// When the next window is, for people.
[[nodiscard]] std::string window_text(const View& view);
[[nodiscard]] MaintenanceResult keep_reservation(const View& view, const Workers& workers, const Vacancies& vacancies,
                                                 Finalizer finalizer, Draft& draft);

// in_place.cpp
using RevisionHashes = std::set<std::string, std::less<>>;
/// Of whose workers the newest template changes only what Slurm takes while they run.
[[nodiscard]] RevisionHashes find_in_place(const View& view);
/// So it is with the record of one of these.
[[nodiscard]] bool can_change_in_place(const View& view, const Worker& worker);
/// It is of the newest template, but its record is not: its slurmd made that anew, or the template is again what it was.
[[nodiscard]] bool has_drifted(const View& view, const Worker& worker);
/// Its node had, or has, the features of another template than those that its slurmd would give a new record.
[[nodiscard]] bool was_changed_in_place(const Slot& worker);
struct TemplateFeatures {
  std::vector<std::string> wanted;    ///< Of the newest template, with the NodeSet's own.
  std::vector<std::string> obsolete;  ///< Of others only.
};
[[nodiscard]] TemplateFeatures template_features(const View& view);
/// What spec.extraConf says of it. slurmctld goes back to that of the record's own --conf whenever it reconfigures.
[[nodiscard]] std::optional<std::int64_t> template_weight(const View& view);
/// What the comment of a node says once it is of the newest template. It stays as it is where it is somebody else's; and of a
/// record of which we do not know the --conf, nothing is told.
[[nodiscard]] std::string comment_in_place(const View& view, const Worker& worker);
/// Asks the API server about the pod that is to take the worker's place.
[[nodiscard]] plan::Need need_template(const View& view, const Worker& worker);
/// The pods: what they were created with stands there before their nodes are changed, and what they are of once these are.
void update_in_place(const View& view, const Workers& workers, Draft& draft);
/// The next worker can be created, as far as can be told beforehand.
[[nodiscard]] bool can_create(const View& view, const ExtraConf& extra_conf);
/// It serves: taken away, one less would.
[[nodiscard]] bool is_available(const View& view, const Worker& worker);
/// spec.updateStrategy.rollingUpdate.maxUnavailable of the workers that are wanted: 1 or more.
[[nodiscard]] std::size_t max_unavailable(const View& view);

// hosts.cpp
/// With scalingMode DaemonSet: chooses those that go, for their Kubernetes nodes are not wanted, or give them another name.
void judge_places(const View& view, Workers& workers);
/// Chooses among the workers of the other scalingMode that are kept.
[[nodiscard]] Switching switch_mode(const View& view, const ExtraConf& extra_conf, Workers& workers);
/// What find_vacancies finds with DaemonSet.
[[nodiscard]] Vacancies find_free_hosts(const View& view, const Workers& workers, Draft& draft);
/// The wanted places that no worker keeps.
[[nodiscard]] std::set<SlotKey> hosts_to_fill(const View& view, const Workers& workers);
void tell_hosts(const View& view, Draft& draft);
void tell_switch(const View& view, const Fates& fates, Draft& draft);

// revision.cpp
void keep_revisions(const View& view, const Workers& workers, Draft& draft);

// workers.cpp
/// Free ordinals, as many as workers are missing.
[[nodiscard]] Vacancies find_vacancies(const View& view, const Workers& workers, Draft& draft);
[[nodiscard]] Finalizer adopt_orphans(const View& view, Draft& draft);
/// Names in Slurm that other NodeSets have, too.
void tell_name_conflicts(const View& view, const Workers& workers, const Vacancies& vacancies, Draft& draft);
/// Not while there are orphans to be adopted.
[[nodiscard]] Finalizer create_workers(const View& view, const Vacancies& vacancies, const ExtraConf& extra_conf,
                                       const NodeNames& draining, Draft& draft);
/// For a NodeSet that is being deleted, and has no pods any more.
[[nodiscard]] Finalizer remove_finalizer(const View& view, const StaleRecords& records, const MaintenanceResult& maintenance,
                                         Draft& draft);

// claims.cpp
/// The vacant places whose workers cannot be created yet: a claim of theirs is missing, and is created, or cannot be used.
[[nodiscard]] std::set<SlotKey> prepare_claims(const View& view, const Vacancies& vacancies, Draft& draft);
/// For a worker that is scaled in: whether its claims say that they go with it, where they are to. That comes before its pod is
/// deleted: who sees the claims later knows no other way that the worker did not only make room for its successor.
[[nodiscard]] bool give_up_claims(const View& view, const Worker& worker, Draft& draft);
/// What is still to be done to the claims of a worker that goes.
void intend_for_claims(const View& view, const Worker& worker, plan::Intent& intent);
/// Deletes what was given up and is used no more. What is wanted again is kept.
void keep_claims(const View& view, const Workers& workers, const Vacancies& vacancies, Draft& draft);
/// For a NodeSet that is being deleted, and has no pods any more: true when only those claims would go with it that are to.
[[nodiscard]] bool release_claims(const View& view, Draft& draft);
/// Why pods wait for their claims.
void tell_claims(const View& view, const Workers& workers, Draft& draft);
/// Why a claim gets no volume, as events tell it.
[[nodiscard]] plan::Need need_claim_events(const kube::ObjectMeta& claim);

// pins.cpp
/// What status.ordinalToNode is to be.
[[nodiscard]] api::StringMap judge_pins(const View& view, const Workers& workers, Draft& draft);
/// The pin of the place is dropped in this pass: its next worker is created when the status says so.
[[nodiscard]] bool drops_pin(const View& view, const SlotKey& key);
/// The worker's Kubernetes node does not stand there yet: its successor would not know of it.
[[nodiscard]] bool awaits_pin(const View& view, const Worker& worker);

// drains.cpp
/// An administrator, or Slurm itself, has drained it, and not for a slurmd that does not fit.
[[nodiscard]] bool drained_by_others(const slurm::Node& record);
/// Whether the next worker of a place can register as drained as others have drained the record.
enum class Restorable {
  kNo,
  kNoText,     ///< Its reason cannot be put back byte for byte.
  kNotKept,    ///< The API server does not keep status.drainsToRestore, or refuses it.
  kToBeNoted,  ///< It can once it stands in the status.
  kNoted,
};
[[nodiscard]] Restorable judge_restorable(const View& view, const SlotKey& place, const slurm::Node& record);
/// What stays in status.drainsToRestore.
[[nodiscard]] api::StringMap judge_drains(const View& view);
/// The node has an entry there that is to go: until it has, its next worker would be drained by it.
[[nodiscard]] bool forgets_drain(const View& view, const std::string& node);
/// Writes what is to come in there: drains of records that go with the next worker. True: there was any, and the status has
/// another version after this pass.
[[nodiscard]] bool note_drains(const View& view, const Fates& fates, const Vacancies& vacancies, Draft& draft);
/// Events about drains that are as they were, once they go from the status.
void tell_restored(const View& view, const Workers& workers, const api::StringMap& kept, Draft& draft);
/// Gives drains back their reasons once the next workers have registered.
void restore_drains(const View& view, Draft& draft);

// attributes.cpp
/// Features and topology of the workers' Slurm nodes, as their Kubernetes nodes say, and the newest template of those that it
/// updates in place.
void keep_attributes(const View& view, const Workers& workers, Draft& draft);
/// The worker's Slurm node has features of another Kubernetes node, or lacks some: jobs may ask for them.
[[nodiscard]] bool lacks_features(const View& view, const Worker& worker);
/// What a Kubernetes node says of features, in its annotation and in these labels; with their prefix.
[[nodiscard]] std::set<std::string, std::less<>> node_features(const kube::ObjectMeta& node,
                                                               const std::vector<std::string>& labels);

// slurm_states.cpp
/// The Slurm nodes that are drained in this pass.
[[nodiscard]] NodeNames drain_nodes(const View& view, const Workers& workers, const Vacancies& vacancies, Draft& draft);
/// Ends the jobs of a pod that is known to have ended, and of which nothing told Slurm. The Slurm nodes of such pods.
[[nodiscard]] NodeNames end_gone_nodes(const View& view, Draft& draft);
void resume_workers(const View& view, const Workers& workers, Draft& draft);
void keep_metadata(const View& view, const Workers& workers, Draft& draft);
void report_states(const View& view, const Workers& workers, Draft& draft);
/// slurmctld is to be reconfigured for the place that a topology file of the user's gives the worker: see
/// operator/controller/places.hpp.
[[nodiscard]] bool awaits_place(const View& view, const Worker& worker);
/// What we write to the node: which pod is behind it, and of which extraConf and limits its record is.
[[nodiscard]] std::string stamped_comment(const View& view, const Worker& worker, const std::string& conf);
/// For quiet times: a write to Slurm makes the key wait for the next snapshot.
void stamp_comments(const View& view, const Workers& workers, Draft& draft);

// scale_in.cpp
[[nodiscard]] ScaleIn delete_workers(const View& view, const Fates& fates, Draft& draft);

// drain_policy.cpp
/// Requeues or cancels the jobs of workers that go, where spec.drainPolicy says so by now.
void end_overdue_jobs(const View& view, const Fates& fates, Draft& draft);

// stale_records.cpp
[[nodiscard]] StaleRecords delete_stale_records(const View& view, const Workers& workers, const Vacancies& vacancies,
                                                Draft& draft);

// protection.cpp
void keep_on_lost_hosts(const View& view, const Workers& workers, Draft& draft);

// ssh.cpp
/// Makes the host keys, where there are none. False: workers must not be created in this pass, for want of them.
[[nodiscard]] bool keep_host_keys(const View& view, Draft& draft);
/// What keeps users from logging in to workers.
void tell_ssh(const View& view, Draft& draft);

// status.cpp
void write_status(const View& view, const PassResult& result, Draft& draft);

// What several parts ask.

/// An orphan that becomes a worker, for it does not end.
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
/// That of a worker which leaves its place.
[[nodiscard]] std::string leave_reason(const View& view, const Worker& worker);
/// It is drained with that reason of ours.
[[nodiscard]] bool drained_for(const Slot& worker, std::string_view reason);
/// Milliseconds: 0 for a worker that runs nothing, the largest number for a job without limit, or one that is suspended.
[[nodiscard]] std::int64_t deadline_rank(const Slot& worker);
/// Whether the newest template replaces the workers of others; see kAnnotationRolls.
enum class Rolls {
  kNo,
  kToBeRecorded,  ///< It will, once that stands in its ControllerRevision.
  kYes,
};
[[nodiscard]] Rolls newest_revision_rolls(const View& view);
/// When the newest template became that. Empty: it has no ControllerRevision yet, or an earlier release made it the newest
/// again.
[[nodiscard]] std::optional<core::WallTime> newest_revision_since(const View& view);
/// Free ordinals, in the order in which workers are created: first those whose record in Slurm waits for its next worker, as in
/// an update, then the lowest.
class FreeOrdinals {
 public:
  FreeOrdinals(const View& view, std::set<int> used);
  int next();
  /// There is another one than `ordinal` to come first, if that were free as well.
  [[nodiscard]] bool has_before(int ordinal);
  [[nodiscard]] bool has_awaited() const { return !awaited_.empty(); }

 private:
  int lowest();

  std::set<int> used_;
  int lowest_ = 0;
  std::vector<int> awaited_;  ///< The next one last.
};
/// It is live, of a template that is known, and not of the newest.
[[nodiscard]] bool is_earlier(const View& view, const Slot& worker);
/// How long until a worker is available: it was ready for minReadySeconds then. Empty: it is not ready.
[[nodiscard]] std::optional<core::Duration> available_in(const View& view, const Slot& worker);
/// Somebody took it from work, and it is theirs to give it back.
[[nodiscard]] bool set_aside(const Slot& worker);

/// What workers that are scaled in wait for, and until when at the latest; "": none waits.
[[nodiscard]] std::string held_text(const ScaleIn& scale_in);
/// Of a worker that may be the Slurm node Slot::suspect: what to do about it.
[[nodiscard]] std::string suspect_text(const Slot& worker);
/// "cpu-1 runs 2 jobs until 2026-01-02 03:04 UTC": why a worker that Slurm has does not go yet.
[[nodiscard]] std::string what_holds(const View& view, const Worker& worker);

/// The budget counts it: no eviction is allowed.
[[nodiscard]] bool is_protected(const kube::PodRecord& pod);
/// Whether jobs run on it; empty: that cannot be told now. A Slurm that has fallen silent ends none: those that it last told of
/// still count, but not that there was none.
[[nodiscard]] std::optional<bool> runs_jobs(const View& view, const Slot& worker);
/// Whether a worker is to be protected from eviction, and when that may be another.
struct Protection {
  std::optional<bool> wanted{};  ///< Empty: that cannot be told now, and it stays as it is.
  std::optional<Change> change{};
};
[[nodiscard]] Protection judge_protection(const View& view, const Slot& worker);

/// A Slurm whose word is sound again says nothing new of most nodes, and wakes nobody.
inline constexpr core::Duration kDoubtAgain{1000};
/// How many workers, or claims, a pass creates at most.
inline constexpr std::size_t kCreatesPerPass = 48;
/// The reason of what is told of workers that are ready, but have no node of their name in Slurm.
inline constexpr const char* kNotRegistered = "SlurmNodeNotRegistered";
/// What is said of a node that is reserved.
inline constexpr std::string_view kReservedText =
    " is in a reservation in Slurm, and stays until the reservation ends or no longer names it";

/// Asks the API server whether it has such an object. False: it has answered.
bool ask(const View& view, const LiveObject& object, Draft& draft);

/// Somebody deleted its record, and no job goes with it: unless it registers again, it can only be replaced.
[[nodiscard]] bool lacks_record(const View& view, const Slot& worker);
/// Its slurmd may register at any moment, and what Slurm has under its name is an earlier worker's. That record keeps it from
/// work: without it Slurm would take it for a new node, and give it jobs.
[[nodiscard]] bool may_register(const Slot& worker);
/// slurmctld refuses to delete it, however idle: to ask again and again would say nothing new.
[[nodiscard]] bool reserved(const slurm::Node& node);
/// Our worker was the last behind the node.
[[nodiscard]] bool stamped_by_us(const View& view, const slurm::Node& node);
/// Slurm took no slurmd like the last one, and its reason is slurmctld's own for that, which each such registration writes over
/// what stood there. Any other is later, or (before 26.05) was left over.
[[nodiscard]] bool tells_refusal(const slurm::Node& node);
/// An administrator's drain, fail or down is meant for the next worker of the name too: its record stays, however long there is
/// none. Not where the NodeSet goes, nor where Slurm itself refuses the slurmd, which nobody can end.
[[nodiscard]] bool outlives_worker(const View& view, const slurm::Node& node);
/// In the comment of a Slurm node: the hash of the extraConf and the limits with which its record was made.
inline constexpr std::string_view kStampedConf = "extraConfHash";
/// The record is known to come from a pod of another extraConf, or with other limits, than pods of `revision` have.
[[nodiscard]] bool has_other_conf(const View& view, const slurm::Node& record, std::string_view revision);
enum class OldRecord {
  kStays,
  kDeletedFirst,  ///< It is deleted before the worker is created.
  kAwaitsDown,    ///< The same once slurmctld has missed the slurmd before.
  kAwaitsNote,    ///< The same once the drain of others that it carries stands in the status.
};
/// What becomes of the record that an earlier worker left under the Slurm node's name of one that is to be created. Slurm
/// ignores the --conf of a node that it knows.
[[nodiscard]] OldRecord judge_old_record(const View& view, const std::string& node);

}  // namespace op::nodeset
