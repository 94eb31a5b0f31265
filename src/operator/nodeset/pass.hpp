// The working state of one pass over a NodeSet: workers with what Slurm says of them, the steps so far, and what keeps
// the declared state from being reached. Private to this folder.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cluster/status.hpp"
#include "operator/nodeset/observe.hpp"
#include "plan/executor.hpp"
#include "plan/plan.hpp"

namespace op::nodeset {

/// What the pass is for.
enum class Goal {
  kServe,     ///< Run spec.replicas workers.
  kDrainAll,  ///< No workers; none is taken from its jobs.
  kEndAll,    ///< No workers; the user ended the cluster, so none is waited for.
  kHold,      ///< Change no worker: what is wanted cannot be told, or cannot be done.
};

/// What is to become of a worker.
struct Fate {
  enum class Kind {
    kKeep,
    kScaleIn,  ///< It is not wanted any more.
    kReplace,  ///< It cannot serve: another one comes in its place.
    kEnd,      ///< Its cluster ends: it goes at once, whatever it runs.
  };
  enum class Cause {
    kNone,
    kSurplus,   ///< There are more than are wanted.
    kSilent,    ///< It is lost with its host.
    kOutdated,  ///< Prospect::kOutdated.
    kLost,      ///< Prospect::kLost.
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
  [[nodiscard]] bool silent() const { return fate.cause == Fate::Cause::kSilent; }
  [[nodiscard]] bool outdated() const { return prospect == Prospect::kOutdated; }
  /// It can only be replaced.
  [[nodiscard]] bool lost() const { return silent() || outdated() || prospect == Prospect::kLost; }
};

class Pass {
 public:
  explicit Pass(const Observed& observed);

  const Observed& in;
  plan::Plan out;
  Goal goal = Goal::kServe;
  int desired = 0;                                              ///< How many workers there are to be.
  std::map<std::string, std::string, std::less<>> conf_hashes;  ///< Of extraConf and limits, by revision.
  std::vector<Worker> workers;                                  ///< By ordinal.
  std::vector<Problem> problems;                                ///< What is wrong, or takes time.
  std::vector<Problem> up_to_users;                             ///< What is neither, and stays until somebody changes it.
  int to_create = 0;                                            ///< Workers still to be created, those of this pass included.
  int to_delete = 0;                                            ///< Workers still to be deleted, likewise.
  bool patches_nodeset = false;                                 ///< A step of this pass writes the NodeSet itself.
  int records_left = 0;                                         ///< Slurm records of workers that are gone for good.
  std::string doubtful_record;                                  ///< One that looks like it, but answers still; "": none.
  std::map<std::string, std::string> taken;                     ///< Names of workers to create that a rival has, and which.
  std::set<int> vacant;                                         ///< Ordinals whose workers are to be created, now or later.
  std::set<std::string, std::less<>> draining;                  ///< Slurm nodes that a step of this pass drains or ends.
  bool conf_refused = false;          ///< slurmd would end at spec.extraConf: no worker is made with it.
  std::string conf_doubts;            ///< What slurmd may not know in spec.extraConf; "": nothing.
  std::vector<std::string> withheld;  ///< Workers that would go, but for the stop switch or the doubt.

  /// Slurm answered completely, and lately enough to conclude from what is missing.
  [[nodiscard]] bool slurm_fresh() const { return slurm_fresh_; }
  /// The same, asked where there is something to do: when Slurm answered too long ago, the key is planned again soon. A later
  /// answer that says the same wakes nobody.
  [[nodiscard]] bool slurm_fresh_or_again();
  /// Slurm answered completely once; good enough for showing, and for acts that are checked live.
  [[nodiscard]] bool slurm_known() const { return slurm_known_; }
  /// What Slurm last said may still be shown: a restart of slurmctld does not change what workers are.
  [[nodiscard]] bool slurm_shows();
  [[nodiscard]] slurm::ClusterKey cluster() const { return in.cluster(); }
  [[nodiscard]] slurm::Work work_on(std::string_view node) const;
  struct Waiting {
    std::vector<std::int64_t> first;  ///< The first few of them.
    std::int64_t last = 0;
    std::size_t count = 0;
  };
  /// Jobs that wait for the node by its name (`sbatch -w`): Slurm ends them once it has no such node.
  [[nodiscard]] const Waiting& jobs_waiting_for(std::string_view node) const;
  /// Nothing is deleted now but what has nothing to do with Slurm's word, or nothing at all.
  [[nodiscard]] bool stops() const { return in.stopped || !in.doubt.empty(); }
  /// A pod has that Slurm node's name, or will have it.
  [[nodiscard]] bool keeps(std::string_view node, int ordinal) const {
    return nodes_.contains(node) || vacant.contains(ordinal);
  }

  /// What Slurm calls the worker of an ordinal; not with host networking.
  [[nodiscard]] std::string node_name(int ordinal) const;
  /// Whose in Slurm the name is that a worker would have. Slurm lets no node in that has a NodeSet's name; one that it has
  /// keeps it, and the NodeSet waits. kUnknown: another NodeSet is called so, and Slurm has not answered yet. kRivals: a worker
  /// of another NodeSet has it, or is to have it, and two slurmd of one name would take each other's jobs.
  enum class Name { kOurs, kNodeSets, kRivals, kUnknown };
  [[nodiscard]] Name name_of(int ordinal) const;
  /// The NodeSet whose worker has the name, or is to have it; null: none.
  [[nodiscard]] const Rival* rival_of(std::string_view node) const;

  /// Adds a step to the current group of a lane, unless it failed lately and must wait, or the pass is full. False: not added.
  bool step(plan::Lane& lane, plan::Step step);
  bool step(plan::Lane& lane, plan::StepId id, std::string reason, plan::ActPtr act) {
    return step(lane, {std::move(id), std::move(reason), std::move(act)});
  }
  /// Whether a step that failed before may be tried again now; when not, wakes the key when it may.
  bool due(const plan::StepId& id);
  /// Room for n more steps in this pass; when there is none, the key is planned again at once after it.
  bool room(std::size_t n);
  /// Notes that a step is still wished for, though it is not in this pass: a failure of it still counts.
  void wish(const plan::StepId& id);
  [[nodiscard]] const std::vector<plan::StepId>& wishes() const { return wishes_; }
  /// The failed outcome of a step, or null.
  [[nodiscard]] const plan::Outcome* failure(const plan::StepId& id) const;
  /// The spec has changed since the status was last written: what failed before may work now.
  [[nodiscard]] bool spec_changed() const { return in.meta().generation != in.nodeset.status.observed_generation; }

  /// A problem that users must mend. An event tells the first of each reason: it stands for all of them.
  void wrong(std::string_view reason, std::string message, std::string_view action = "Sync");
  void waiting(std::string_view reason, std::string message) {
    problems.push_back({std::string(reason), std::move(message), false});
  }

  /// A step that reports an event about the NodeSet.
  [[nodiscard]] plan::Step event_step(std::string_view type, std::string_view reason, std::string_view action,
                                      std::string note) const;
  /// Reports an event in the lane "event".
  void event(std::string_view type, std::string_view reason, std::string_view action, std::string note);
  /// The same for a state that lasts: once, and again after ten minutes.
  void lasting_event(std::string_view type, std::string_view reason, std::string_view action, std::string note);

  /// Waits for what may never come, and tells so; false when it has waited for `limit` without a break.
  bool wait_at_most(core::Duration limit, std::string_view reason, const std::string& note);

 private:
  mutable std::optional<std::unordered_map<std::string_view, Waiting>> waiting_;  ///< Found out when it is first asked for.
  std::unordered_set<std::string_view> nodes_;                                    ///< Slurm node names of all workers.
  bool slurm_fresh_ = false;
  bool slurm_known_ = false;
  std::size_t room_ = plan::PassLimits{}.max_steps - 16;  ///< The rest of a pass is for status and events.
  std::vector<plan::StepId> wishes_;
};

// What steps do, to be named by `of`: some stand in intents before their turn comes.
inline const plan::StepId kCreatePod{"create", "Pod"};
inline const plan::StepId kDeletePod{"delete", "Pod"};
inline const plan::StepId kClear{"clear", "Pod"};
inline const plan::StepId kDeleteRecord{"delete", "Slurm node"};
inline const plan::StepId kDrain{"drain"};
inline const plan::StepId kConfirm{"confirm", "Slurm node"};
inline const plan::StepId kResume{"resume"};
inline const plan::StepId kReport{"report Slurm state on", "Pod"};
inline const plan::StepId kAddFinalizer{"add", "finalizer"};
inline const plan::StepId kRemoveFinalizer{"remove", "finalizer"};
inline const plan::StepId kStatus{"status"};
inline const plan::StepId kEvent{"event"};

/// An orphan that becomes a worker, for it does not end.
[[nodiscard]] inline bool to_be_adopted(const kube::PodPtr& orphan) {
  return !orphan->meta.terminating();
}

/// The budget counts it: no eviction is allowed.
[[nodiscard]] bool is_protected(const kube::PodRecord& pod);
/// Whether jobs run on it; empty: that cannot be told now. A Slurm that has fallen silent ends none: those that it last told of
/// still count, but not that there was none.
[[nodiscard]] std::optional<bool> runs_jobs(const Pass& pass, const Worker& worker);
/// Whether it is to be protected from eviction; empty: that cannot be told now, and it stays as it is.
[[nodiscard]] std::optional<bool> wants_protection(Pass& pass, const Worker& worker);

/// How long to wait for the n-th try after n failures of this kind.
core::Duration backoff(const plan::Outcome& outcome);

// The parts of a pass, in the order in which plan.cpp calls them.
void choose_goal(Pass& pass);     // plan.cpp
void check_conf(Pass& pass);      // plan.cpp
void keep_revisions(Pass& pass);  // revision.cpp
void judge_fates(Pass& pass);     // fates.cpp
/// The lowest free ordinals, as many as workers are missing.
void find_vacancies(Pass& pass);  // workers.cpp
void set_drains(Pass& pass);      // slurm_states.cpp
/// Jobs of a pod that is known to have ended, and of which nothing told Slurm.
void end_gone_nodes(Pass& pass);      // slurm_states.cpp
void delete_workers(Pass& pass);      // scale_in.cpp
void keep_metadata(Pass& pass);       // slurm_states.cpp
void keep_on_lost_hosts(Pass& pass);  // protection.cpp
void resume_workers(Pass& pass);      // slurm_states.cpp
void adopt_orphans(Pass& pass);       // workers.cpp
void create_workers(Pass& pass);      // workers.cpp
void report_states(Pass& pass);       // slurm_states.cpp
void delete_records(Pass& pass);      // scale_in.cpp
void delete_moved(Pass& pass);        // left_records.cpp
void stamp_comments(Pass& pass);      // slurm_states.cpp
void remove_finalizer(Pass& pass);    // workers.cpp
void write_status(Pass& pass);        // status.cpp

/// Somebody deleted its record, and no job goes with it: unless it registers again, it can only be replaced.
[[nodiscard]] bool missed(const Pass& pass, const Worker& worker);
/// slurmctld refuses to delete it, however idle: to ask again and again would say nothing new.
[[nodiscard]] bool reserved(const slurm::Node& node);
/// Our worker was the last behind the node.
[[nodiscard]] bool stamped_by_us(const Pass& pass, const slurm::Node& node);
/// Slurm took no slurmd like the last one, and its reason is slurmctld's own for that, which each such registration writes over
/// what stood there. Any other is later, or (before 26.05) was left over.
[[nodiscard]] bool tells_refusal(const slurm::Node& node);
/// An administrator's drain, fail or down is meant for the next worker of the name too: its record stays, however long there is
/// none. Not where the NodeSet goes, nor where Slurm itself refuses the slurmd, which nobody can end.
[[nodiscard]] bool outlives_worker(const Pass& pass, const slurm::Node& node);
/// A worker that is to be adopted, or that was left to somebody on purpose, is behind the record, or may be.
[[nodiscard]] bool is_orphans(const Pass& pass, std::string_view node);
/// In the comment of a Slurm node: the hash of the extraConf and the limits with which its record was made.
inline constexpr std::string_view kStampedConf = "extraConfHash";
/// The record is known to come from a pod of another extraConf, or with other limits, than pods of `revision` have.
[[nodiscard]] bool has_other_conf(const Pass& pass, const slurm::Node& record, std::string_view revision);
enum class OldRecord { kStays, kGoesFirst, kSettles };
/// What becomes of the record that an earlier worker left under the Slurm node's name of one that is to be created. Slurm
/// ignores the --conf of a node that it knows.
[[nodiscard]] OldRecord judge_old_record(const Pass& pass, const std::string& node);
/// "default/cpu-1" for a worker.
[[nodiscard]] inline std::string pod_text(const Worker& worker) {
  return worker.pod->meta.key().str();
}
/// "NodeSet default/cpu".
[[nodiscard]] std::string self_text(const Pass& pass);
/// The reason, without prefix, with which workers that go are drained; by it a victim stays a victim.
[[nodiscard]] std::string scale_in_reason(const Pass& pass);

}  // namespace op::nodeset
