// The plan of a pass over a NodeSet while it is written, and what users are to be told. Private to this folder.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/status.hpp"
#include "operator/nodeset/view.hpp"
#include "plan/executor.hpp"
#include "plan/plan.hpp"

namespace op::nodeset {

/// The rest is for a later pass, which follows at once.
inline constexpr Change kPassFull{core::Duration{10}, "more steps than one pass takes"};

/// Parts of a pass add to it and do not read it; status does, when all is there.
class Draft {
 public:
  /// `view` must stay.
  explicit Draft(const View& view) : view_(view) {}

  plan::Lane& lane(std::string_view name) { return plan_.lane(name); }
  plan::Intent& intent() { return plan_.intent; }
  void need(plan::Need need) { plan_.need(std::move(need)); }
  void remember(plan::StepId id) { plan_.remember(std::move(id)); }
  void wake_after(core::Duration in, std::string why) { plan_.wake_after(in, std::move(why)); }
  void wake(const Change& change) { plan_.wake_after(change.in, std::string(change.why)); }
  void wake(const std::optional<Change>& change) {
    if (change) wake(*change);
  }

  /// Adds a step to the current group of a lane, unless it failed lately and must wait, or the pass is full. False: not added.
  bool step(plan::Lane& lane, plan::Step step);
  bool step(plan::Lane& lane, plan::StepId id, std::string reason, plan::ActPtr act) {
    return step(lane, {std::move(id), std::move(reason), std::move(act)});
  }
  /// Notes that a step is still wished for, though it is not in this pass: a failure of it still counts.
  void wish(const plan::StepId& id);
  /// The same for one that is to be in this pass. False: it failed lately, and a later pass tries it.
  [[nodiscard]] bool wish_now(const plan::StepId& id);
  /// The pod is deleted in this pass, so nothing else is written to it: such a write would change the version on which the
  /// deletion depends, or come too late.
  void deletes(const kube::PodRecord& pod) { deleted_.insert(pod.meta.uid); }
  [[nodiscard]] bool is_deleted(const kube::PodRecord& pod) const { return deleted_.contains(pod.meta.uid); }
  /// Steps of status and events have room of their own.
  [[nodiscard]] bool has_room(std::size_t steps) const { return room_ >= steps; }

  /// Reports an event in the lane "event".
  void event(std::string_view type, std::string_view reason, std::string_view action, std::string note);
  /// The same for a state that lasts: once, and again after ten minutes.
  void lasting_event(std::string_view type, std::string_view reason, std::string_view action, std::string note);
  /// A problem that users must mend. An event tells the first of each reason: it stands for all of them.
  void wrong(std::string_view reason, std::string message, std::string_view action = "Sync");
  /// What takes time.
  void waiting(std::string_view reason, std::string message);
  void waiting(const Wait& wait);
  /// A problem of which an event tells elsewhere, or none.
  void problem(Problem problem) { problems_.push_back(std::move(problem)); }
  /// What is neither wrong nor takes time, and stays until somebody changes it.
  void up_to_users(std::string_view reason, std::string message);

  [[nodiscard]] const std::vector<plan::StepId>& wishes() const { return wishes_; }
  [[nodiscard]] const std::vector<Problem>& problems() const { return problems_; }
  [[nodiscard]] const std::vector<Problem>& up_to_users() const { return up_to_users_; }
  /// Nothing is to be done so far.
  [[nodiscard]] bool empty() const { return plan_.empty(); }
  [[nodiscard]] plan::Plan finish() && { return std::move(plan_); }

 private:
  const View& view_;
  plan::Plan plan_;
  std::vector<plan::StepId> wishes_;
  std::vector<Problem> problems_;
  std::vector<Problem> up_to_users_;
  std::set<std::string_view> deleted_;  ///< UIDs of pods.
  std::size_t room_ = plan::PassLimits{}.max_steps - 16;
};

// What steps do, to be named by `of`: some stand in intents before their turn comes.
inline const plan::StepId kCreatePod{"create", "Pod"};
inline const plan::StepId kDeletePod{"delete", "Pod"};
inline const plan::StepId kClear{"clear", "Pod"};
inline const plan::StepId kCreateClaim{"create", "PersistentVolumeClaim"};
inline const plan::StepId kGiveUpClaim{"give up", "PersistentVolumeClaim"};
inline const plan::StepId kDeleteClaim{"delete", "PersistentVolumeClaim"};
inline const plan::StepId kDeleteRecord{"delete", "Slurm node"};
inline const plan::StepId kSetAttributes{"set features and topology of", "Slurm node"};
inline const plan::StepId kNoteDrain{"note the drain of", "Slurm node"};
inline const plan::StepId kDrain{"drain"};
inline const plan::StepId kRequeueJobs{"requeue", "jobs of"};
inline const plan::StepId kCancelJobs{"cancel", "jobs of"};
inline const plan::StepId kConfirm{"confirm", "Slurm node"};
inline const plan::StepId kResume{"resume"};
inline const plan::StepId kReport{"report Slurm state on", "Pod"};
inline const plan::StepId kAddFinalizer{"add", "finalizer"};
inline const plan::StepId kRemoveFinalizer{"remove", "finalizer"};
inline const plan::StepId kStatus{"status"};
inline const plan::StepId kEvent{"event"};

}  // namespace op::nodeset
