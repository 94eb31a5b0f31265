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

  [[nodiscard]] bool goes() const { return fate.goes(); }
  [[nodiscard]] bool updates() const { return fate.kind == Fate::Kind::kUpdate; }
  [[nodiscard]] bool silent() const { return fate.cause == Fate::Cause::kSilent; }
  [[nodiscard]] bool outdated() const { return prospect == Prospect::kOutdated; }
  /// It can only be replaced.
  [[nodiscard]] bool lost() const { return silent() || outdated() || prospect == Prospect::kLost; }
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

/// Workers of earlier templates, and what becomes of them.
struct Rollout {
  enum class State {
    kByHand,  ///< They stay until somebody deletes their pods.
    kPaused,
    kBlocked,  ///< Nothing is begun now: no worker could be created, Slurm is silent, or the template is not recorded yet.
    kRolls,
  };
  State state = State::kByHand;
  std::size_t earlier = 0;         ///< How many there are.
  std::size_t under_way = 0;       ///< Workers that go, are missing, or are new and do not serve yet.
  std::size_t unavailable = 0;     ///< How many of all workers do not serve, and nobody took them from work,
  std::size_t most = 0;            ///< and how many may.
  bool withheld = false;           ///< Some would go, but for the stop switch or the doubt.
  std::vector<std::string> kept;   ///< Why some are left out for now: "cpu-1 is in a reservation, ...".
  std::optional<Change> change{};  ///< When that may be another.
};

struct Fates {
  Workers workers;
  Rollout rollout;
  WaitingJobsByNode waiting_jobs;  ///< Where any worker goes.
  std::vector<Change> changes;     ///< When a fate may be another.
};

/// What slurmd is known to make of spec.extraConf; "": nothing is wrong.
struct ExtraConf {
  std::string refusal;  ///< slurmd would end at it: no worker is made with it.
  std::string doubts;   ///< What slurmd may not know of it.
};

struct Vacancies {
  std::set<int> ordinals;                    ///< Their workers are to be created, now or later.
  std::map<std::string, std::string> taken;  ///< Names of workers to create that another NodeSet has, and which.
};

using NodeNames = std::set<std::string, std::less<>>;

struct ScaleIn {
  int to_delete = 0;                  ///< Workers still to be deleted, those of this pass included, but no updated ones.
  std::vector<std::string> updating;  ///< What workers that are to be updated wait for: "cpu-1 runs 1 job".
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
  std::string answering;  ///< One that looks like it, but answers still; "": none.
};

/// What status tells of.
struct PassResult {
  const Fates& fates;
  const ExtraConf& extra_conf;
  const Vacancies& vacancies;
  const NodeNames& draining;
  const ScaleIn& scale_in;
  Finalizer finalizer;
};

// The parts, by file. In which order they are called, plan.cpp says.

// plan.cpp
[[nodiscard]] Aim choose_goal(const Observed& observed);
[[nodiscard]] ExtraConf check_conf(const View& view, Draft& draft);

// fates.cpp
[[nodiscard]] Fates judge_fates(const View& view, const ExtraConf& extra_conf);

// update.cpp
/// Chooses among the workers that are kept.
[[nodiscard]] Rollout judge_rollout(const View& view, const ExtraConf& extra_conf, Workers& workers);

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
[[nodiscard]] Finalizer remove_finalizer(const View& view, const StaleRecords& records, Draft& draft);

// slurm_states.cpp
/// The Slurm nodes that are drained in this pass.
[[nodiscard]] NodeNames drain_nodes(const View& view, const Workers& workers, const Vacancies& vacancies, Draft& draft);
/// Ends the jobs of a pod that is known to have ended, and of which nothing told Slurm. The Slurm nodes of such pods.
[[nodiscard]] NodeNames end_gone_nodes(const View& view, Draft& draft);
void resume_workers(const View& view, const Workers& workers, Draft& draft);
void keep_metadata(const View& view, const Workers& workers, Draft& draft);
void report_states(const View& view, const Workers& workers, Draft& draft);
/// For quiet times: a write to Slurm makes the key wait for the next snapshot.
void stamp_comments(const View& view, const Workers& workers, Draft& draft);

// scale_in.cpp
[[nodiscard]] ScaleIn delete_workers(const View& view, const Fates& fates, Draft& draft);

// stale_records.cpp
[[nodiscard]] StaleRecords delete_stale_records(const View& view, const Workers& workers, const Vacancies& vacancies,
                                                Draft& draft);

// protection.cpp
void keep_on_lost_hosts(const View& view, const Workers& workers, Draft& draft);

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
/// The reason, without prefix, with which workers that go are drained; by it a victim stays a victim.
[[nodiscard]] std::string scale_in_reason(const View& view);
/// The same for one that is updated.
[[nodiscard]] std::string update_reason(const View& view);
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
/// What is said of a node that is reserved.
inline constexpr std::string_view kReservedText =
    " is in a reservation in Slurm, and stays until the reservation ends or no longer names it";

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
};
/// What becomes of the record that an earlier worker left under the Slurm node's name of one that is to be created. Slurm
/// ignores the --conf of a node that it knows.
[[nodiscard]] OldRecord judge_old_record(const View& view, const std::string& node);

}  // namespace op::nodeset
