// The decisions of a controller. A Plan contains steps, in lanes, and a summary of all work that remains. Data only.
//
// A controller is `Plan plan(const Observed&)`. It does no I/O and reads no clock. It puts the acts that it wants into steps:
//   Plan p;
//   p.lane("create").add({{"create", "Pod", "default/cpu-0"}, "NodeSet cpu wants 3 workers, has 2", kube::create(pod)});
//   p.wake_after(500ms, "waiting for slurmctld to load the configuration");
//
// Lanes are independent. The groups of a lane run one after the other; the steps of one group run at once. A failed step stops
// only its own lane, and only for this pass. Steps contain recipes instead of random or secret values (kube/acts.hpp).
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "core/json.hpp"
#include "core/result.hpp"

namespace plan {

/// One effect on the outside world. kube/acts.hpp and slurm/acts.hpp define the kinds of acts.
class Act {
 public:
  virtual ~Act() = default;
  /// Returns the act as data, for logs and scenarios: {"act": "kube.Delete", ...}. Contains no secrets.
  [[nodiscard]] virtual core::Json describe() const = 0;
  /// Returns true if the act removes something that cannot be restored.
  [[nodiscard]] virtual bool destructive() const { return false; }
  /// Returns true if nothing depends on the act, as with an event. Such an act does not cause another pass of the key.
  [[nodiscard]] virtual bool incidental() const { return false; }
  /// The longest time for which the act is withheld when it repeats because something else undoes it.
  enum class Withhold {
    kNever,
    kBriefly,  ///< The act has an opposite (create and delete, drain and undrain), and users can request both alternately.
    kLong,
  };
  [[nodiscard]] virtual Withhold withhold() const { return Withhold::kBriefly; }
};
using ActPtr = std::shared_ptr<const Act>;

/// Identifies a step across passes: steps with the same purpose have the same id in every pass. Outcomes are stored by this id.
struct StepId {
  std::string verb;    ///< "create", "drain".
  std::string kind{};  ///< The kind of object: "Pod", "Slurm node"; "" if the verb implies the kind.
  /// The object: "default/cpu-0". For several objects, a name that they have in common. "" if only one such object exists.
  std::string name{};
  std::string variant{};  ///< A detail that changes: a status, the note of an event. run::Repeats ignores it.

  auto operator<=>(const StepId&) const = default;
  /// Reports whether both ids have the same verb and kind.
  [[nodiscard]] bool is(const StepId& other) const { return verb == other.verb && kind == other.kind; }
  /// Returns the id of a step with the same verb and kind for another object, or with another variant.
  [[nodiscard]] StepId of(std::string other_name, std::string other_variant = {}) const;
  /// Returns a text for people: "create Pod default/cpu-0", "event REASON: NOTE".
  [[nodiscard]] std::string text() const;
};

using StepIds = std::set<std::reference_wrapper<const StepId>, std::less<StepId>>;

struct Step {
  StepId id;
  std::string reason;  ///< Why the step is needed, as a text for users.
  ActPtr act;
  /// For this long after the start of the previous group, the step can begin even if the pass has used up its time.
  /// Set this only on the first step of a group, to complete what the previous group began.
  core::Duration late{0};
};

/// An ordered list of groups.
class Lane {
 public:
  /// Adds a step to the current group.
  Lane& add(Step step);
  /// Adds a step to the current group, or nothing for nullopt.
  Lane& add(std::optional<Step> step);
  /// Begins a new group. The steps of the new group wait for all steps that were added before.
  Lane& then();
  [[nodiscard]] const std::vector<std::vector<Step>>& groups() const { return groups_; }

 private:
  std::vector<std::vector<Step>> groups_{1};
};

/// A request for a fact that the caches cannot guarantee. The runtime reads the fact live and plans again with the answer.
struct Need {
  std::string id;  ///< The key of the answer in Facts.
  ActPtr query;    ///< An act that reads.
};

struct Fact {
  core::Result<core::Json> value;
  core::MonoTime asked_at;  ///< The time of the request. The answer is at least as recent.
};
using Facts = std::map<std::string, Fact>;  ///< The keys are Need::id.

/// The result of a step in earlier passes of this key.
struct Outcome {
  enum class State { kDone, kFailed };
  State state = State::kDone;
  int count = 0;                     ///< How many times in a row the step has ended in this state.
  core::MonoTime since;              ///< When the step ended in this state for the first of the `count` times.
  core::MonoTime last;               ///< When the step ended in this state for the last time.
  std::optional<core::Error> error;  ///< The last error, if the step failed.
};
using Outcomes = std::map<StepId, Outcome>;

/// The inputs of a plan that the engine provides. The Observed of each controller contains them.
struct Context {
  core::WallTime now;  ///< The time for timestamps in the status. Compute ages from `mono`.
  core::MonoTime mono;
  Outcomes outcomes;  ///< The outcomes of this key's steps so far.
  Facts facts;        ///< The answers to the needs of all earlier plans of this pass.
};

/// The whole difference between the actual and the desired state, as far as known. Several passes may be needed to remove it.
struct Intent {
  std::string summary;  ///< The purpose, if the steps alone do not show the purpose: "end the cluster".
  /// The work of this pass and of later passes: the objects ("default/cpu-0") by verb and kind. In the keys, `name` and
  /// `variant` are empty.
  std::map<StepId, std::set<std::string>> remaining;
  int pods = 0;  ///< The number of pods affected.
  int jobs = 0;  ///< The number of jobs affected.

  /// Adds a step to `remaining`, without its variant.
  void add(const StepId& id);
  /// Returns one line for each kind, at most some 250 characters long: "create Pod default/cpu-[0-2] (3)".
  [[nodiscard]] std::vector<std::string> lines() const;
  /// Returns the summary and the lines as one text.
  [[nodiscard]] std::string text() const;
};

class Plan {
 public:
  Lane& lane(std::string_view name);
  [[nodiscard]] const std::map<std::string, Lane, std::less<>>& lanes() const { return lanes_; }

  void need(Need need) { needs_.push_back(std::move(need)); }
  [[nodiscard]] const std::vector<Need>& needs() const { return needs_; }

  /// Returns the ids of all steps and of all remembered steps. The ids are references into the plan, which must outlive them.
  [[nodiscard]] StepIds wished() const;

  /// Keeps the outcome of a step that is not in this pass but is still wanted.
  void remember(StepId id) { remembered_.push_back(std::move(id)); }
  [[nodiscard]] const std::vector<StepId>& remembered() const { return remembered_; }

  /// Asks for another pass after `delay` at the latest. The shortest delay counts.
  void wake_after(core::Duration delay, std::string why);
  [[nodiscard]] const std::optional<core::Duration>& wake() const { return wake_; }
  [[nodiscard]] const std::string& wake_reason() const { return wake_reason_; }

  /// Records that the next step depends on what this external system (a Slurm cluster, by its key) reports soon. The runtime
  /// can poll the system more often for a while.
  void waits_on(std::string system) { waits_on_.insert(std::move(system)); }
  [[nodiscard]] const std::set<std::string>& waits_on() const { return waits_on_; }

  Intent intent;  ///< If `remaining` is empty, the steps of this pass are all there is to do.
  /// Returns the intent. If `remaining` is empty, adds the steps of this pass.
  [[nodiscard]] Intent whole_intent() const;

  [[nodiscard]] bool empty() const;
  [[nodiscard]] std::size_t step_count() const;
  /// Returns the plan as data, which scenario files compare.
  [[nodiscard]] core::Json describe() const;

 private:
  std::map<std::string, Lane, std::less<>> lanes_;
  std::vector<Need> needs_;
  std::vector<StepId> remembered_;
  std::optional<core::Duration> wake_;
  std::string wake_reason_;
  std::set<std::string> waits_on_;
};

}  // namespace plan
