// The unfinished plan of a pass over a NodeSet, and the problems to report. Private to this folder.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "operator/common/slinky.hpp"
#include "operator/nodeset/view.hpp"
#include "plan/executor.hpp"
#include "plan/plan.hpp"
#include "slinky/status.hpp"

namespace op::nodeset {

/// The time until the next pass if a pass had no room for all its steps.
inline constexpr Change kPassFull{core::Duration{10}, "more steps than one pass takes"};

/// Collects the steps and problems that the parts of a pass add. At the end, write_status reads the problems.
class Draft {
 public:
  /// Keeps a reference to `view`.
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

  /// Adds a step to the current group of a lane. Returns false if the step was not added, because it failed recently and has to
  /// wait or because the pass is full.
  bool step(plan::Lane& lane, plan::Step step);
  bool step(plan::Lane& lane, plan::StepId id, std::string reason, plan::ActPtr act) {
    return step(lane, {std::move(id), std::move(reason), std::move(act)});
  }
  /// Marks a step as still wanted although this pass does not contain the step, so that its earlier failure is not forgotten.
  void wish(const plan::StepId& id);
  /// Marks a step as wanted in this pass. Returns false if it failed recently and has to wait for a later pass.
  [[nodiscard]] bool wish_now(const plan::StepId& id);
  /// Notes that the pod is deleted in this pass. Nothing else must be written to the pod: a write would change the
  /// resourceVersion that the deletion depends on, or come too late.
  void deletes(const kube::PodRecord& pod) { deleted_.insert(pod.meta.uid); }
  [[nodiscard]] bool is_deleted(const kube::PodRecord& pod) const { return deleted_.contains(pod.meta.uid); }
  /// True if this many steps still fit into the pass. Steps for status and events do not count.
  [[nodiscard]] bool has_room(std::size_t steps) const { return room_ >= steps; }

  /// Reports an event in the lane "event".
  void event(std::string_view type, std::string_view reason, std::string_view action, std::string note);
  /// Reports an event about a state that lasts. Repeats the event every ten minutes.
  void lasting_event(std::string_view type, std::string_view reason, std::string_view action, std::string note);
  /// Reports a problem that users have to solve. If several problems have the same reason, only the first gets an event.
  void wrong(std::string_view reason, std::string message, std::string_view action = "Sync");
  /// Reports something that takes time, but will be done without a user's help.
  void waiting(std::string_view reason, std::string message);
  void waiting(const Wait& wait);
  /// Adds a problem without an event.
  void problem(Problem problem) { problems_.push_back(std::move(problem)); }
  /// Reports a state that is neither a problem nor progress, and lasts until a user changes it.
  void up_to_users(std::string_view reason, std::string message);

  [[nodiscard]] const std::vector<plan::StepId>& wishes() const { return wishes_; }
  [[nodiscard]] const std::vector<Problem>& problems() const { return problems_; }
  [[nodiscard]] const std::vector<Problem>& up_to_users() const { return up_to_users_; }
  /// True if the plan is still empty.
  [[nodiscard]] bool empty() const { return plan_.empty(); }
  [[nodiscard]] plan::Plan finish() && { return std::move(plan_); }

 private:
  const View& view_;
  plan::Plan plan_;
  std::vector<plan::StepId> wishes_;
  std::vector<Problem> problems_;
  std::vector<Problem> up_to_users_;
  std::set<std::string_view> deleted_;  ///< UIDs of the pods that are deleted in this pass.
  std::size_t room_ = plan::PassLimits{}.max_steps - 16;
};

// The verb and kind of each step. StepId::of() adds the object. An Intent lists steps of later passes by the same ids.
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
