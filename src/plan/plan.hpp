// What a controller decides: a Plan is steps in lanes, plus what it would take to finish. Data only.
//
// A controller is `Plan plan(const Observed&)`. It does no I/O and reads no clock. What it wants done it puts into steps:
//
//   Plan p;
//   p.lane("create").add({{"create", "Pod", "default/cpu-0"}, "NodeSet cpu wants 3 workers, has 2", kube::create(pod)});
//   p.wake_after(500ms, "waiting for slurmctld to load the configuration");
//
// Lanes are independent. Groups of one lane are done in order; the steps of one group go out at once. A failed step stops its
// lane for this pass only. Steps carry recipes instead of random or secret values (kube/acts.hpp).
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

/// One thing to do to the outside. kube/acts.hpp and slurm/acts.hpp define the kinds; this room only carries them.
class Act {
 public:
  virtual ~Act() = default;
  /// The act as data, for logs and scenarios: {"act": "kube.Delete", ...}. No secret bytes.
  [[nodiscard]] virtual core::Json describe() const = 0;
  /// True when it takes something away that cannot be had back.
  [[nodiscard]] virtual bool destructive() const { return false; }
  /// True when nobody waits for it (an event): a key is not looked at again because of it.
  [[nodiscard]] virtual bool incidental() const { return false; }
  /// How long it is withheld at most when it is done again and again, because something else changes it back.
  enum class Withhold {
    kNever,
    kBriefly,  ///< It has its opposite (to create, to delete, to drain ...), and users may ask for both in turn.
    kLong,
  };
  [[nodiscard]] virtual Withhold withhold() const { return Withhold::kBriefly; }
};
using ActPtr = std::shared_ptr<const Act>;

/// The identity of a wish: the same wish has the same id in every pass. Outcomes, throttles and intents go by it.
struct StepId {
  std::string verb;    ///< "create", "drain".
  std::string kind{};  ///< Of what: "Pod", "Slurm node"; "" where the verb tells it.
  std::string name{};  ///< Which one: "default/cpu-0"; where the act takes many, what they share; "" where there is only one.
  std::string variant{};  ///< What comes and goes of the same thing: a status, an event's note. Throttles take them for one.

  auto operator<=>(const StepId&) const = default;
  /// It is of the same verb and kind.
  [[nodiscard]] bool is(const StepId& other) const { return verb == other.verb && kind == other.kind; }
  /// The same wish about another object, or another variant of it.
  [[nodiscard]] StepId of(std::string other_name, std::string other_variant = {}) const;
  /// For people: "create Pod default/cpu-0", "event REASON: NOTE".
  [[nodiscard]] std::string text() const;
};

using StepIds = std::set<std::reference_wrapper<const StepId>, std::less<StepId>>;

struct Step {
  StepId id;
  std::string reason;  ///< Why, for a person.
  ActPtr act;
  /// For the first step of a group, when it ends what the group before it began: it is begun also when the pass's time is over,
  /// until so long after that group was begun in this pass.
  core::Duration late{0};
};

/// An ordered list of groups.
class Lane {
 public:
  /// Adds to the current group.
  Lane& add(Step step);
  /// nullopt: there is nothing to do.
  Lane& add(std::optional<Step> step);
  /// What is added from now on waits for all that was added before.
  Lane& then();
  [[nodiscard]] const std::vector<std::vector<Step>>& groups() const { return groups_; }

 private:
  std::vector<std::vector<Step>> groups_{1};
};

/// A fact that the caches cannot vouch for; the runtime reads it live and plans again with Facts.
struct Need {
  std::string id;  ///< The key under which the answer stands in Facts.
  ActPtr query;    ///< A reading act.
};

struct Fact {
  core::Result<core::Json> value;
  core::MonoTime asked_at;  ///< The answer is no older than this.
};
using Facts = std::map<std::string, Fact>;

/// What became of a step in earlier passes of this key.
struct Outcome {
  enum class State { kDone, kFailed };
  State state = State::kDone;
  int count = 0;  ///< How many times in a row it ended like this.
  core::MonoTime since;
  core::MonoTime last;
  std::optional<core::Error> error;
};
using Outcomes = std::map<StepId, Outcome>;

/// What every Observed starts with.
struct Context {
  core::WallTime now;  ///< For timestamps in status; never for ages.
  core::MonoTime mono;
  Outcomes outcomes;  ///< Of this key's steps so far.
  Facts facts;        ///< Answers to the needs of the previous call in this pass.
};

/// The whole difference between what is and what is wanted, as far as it can be told now. The steps of all passes add up to it.
struct Intent {
  std::string summary;  ///< What it is for, where the steps alone do not tell: "end the cluster".
  /// What steps of this pass or of later ones are to do, by verb and kind, and to what ("default/cpu-0"). The names and
  /// variants of the keys are empty.
  std::map<StepId, std::set<std::string>> remaining;
  int pods = 0;  ///< Pods affected.
  int jobs = 0;  ///< Jobs affected.

  /// Adds a step to `remaining`, without its variant.
  void add(const StepId& id);
  /// One line for each kind, of some 250 characters at most: "create Pod default/cpu-[0-2] (3)".
  [[nodiscard]] std::vector<std::string> lines() const;
  /// Summary and lines, in one.
  [[nodiscard]] std::string text() const;
};

class Plan {
 public:
  Lane& lane(std::string_view name);
  [[nodiscard]] const std::map<std::string, Lane, std::less<>>& lanes() const { return lanes_; }

  void need(Need need) { needs_.push_back(std::move(need)); }
  [[nodiscard]] const std::vector<Need>& needs() const { return needs_; }

  /// The ids of all steps, and what is remembered. They are the plan's own: it must outlive them.
  [[nodiscard]] StepIds wished() const;

  /// A step that is still wished, though it is not in this pass: its outcome is kept for the next ones.
  void remember(StepId id) { remembered_.push_back(std::move(id)); }
  [[nodiscard]] const std::vector<StepId>& remembered() const { return remembered_; }

  /// Asks to be planned again after `delay` at the latest; the shortest wish wins.
  void wake_after(core::Duration delay, std::string why);
  [[nodiscard]] const std::optional<core::Duration>& wake() const { return wake_; }
  [[nodiscard]] const std::string& wake_reason() const { return wake_reason_; }

  /// The next step waits for what this outside system (a Slurm cluster, by its key) is about to say: the runtime may have it
  /// asked more often for a while.
  void waits_on(std::string system) { waits_on_.insert(std::move(system)); }
  [[nodiscard]] const std::set<std::string>& waits_on() const { return waits_on_; }

  Intent intent;  ///< With nothing in `remaining`: the steps of this pass are all there is to do.
  /// The intent, with the steps of this pass where the planner listed none.
  [[nodiscard]] Intent whole_intent() const;

  [[nodiscard]] bool empty() const;
  [[nodiscard]] std::size_t step_count() const;
  /// The plan as data: what scenario files compare.
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
