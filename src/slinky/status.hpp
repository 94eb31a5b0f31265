// Conditions and status patches for all kinds.
//
//   Conditions conditions(controller.status.conditions, meta.generation, observed.context.now);
//   conditions.set("Ready", api::ConditionStatus::kFalse, "SecretMissing", "Secret default/key does not exist");
//   plan.lane("status").add(status_step(resources::kController, object, {{"conditions", conditions.json()}}));
//
// A condition keeps its lastTransitionTime until its status changes. A status that equals the stored one is not written.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/common.hpp"
#include "api/field.hpp"
#include "core/clock.hpp"
#include "core/json.hpp"
#include "kube/object.hpp"
#include "plan/plan.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace slinky {

class Conditions {
 public:
  Conditions(const std::vector<api::Condition>& previous, std::int64_t generation, core::WallTime now);
  /// `reason` is one CamelCase word, `message` one line that a user can act on.
  void set(std::string_view type, api::ConditionStatus status, std::string_view reason, std::string message);
  void set(std::string_view type, bool status, std::string_view reason, std::string message) {
    set(type, status ? api::ConditionStatus::kTrue : api::ConditionStatus::kFalse, reason, std::move(message));
  }
  [[nodiscard]] const std::vector<api::Condition>& all() const { return conditions_; }
  /// Returns the conditions sorted by type. Omits previous conditions for which set() was not called.
  [[nodiscard]] core::Json json() const;

 private:
  std::vector<api::Condition> previous_;
  std::vector<api::Condition> conditions_;
  std::int64_t generation_;
  core::WallTime now_;
};

/// Parses one of our objects. Returns the error, or "". After an error, parses only the status, so that conditions keep their
/// lastTransitionTime and events are not repeated.
template <class T>
std::string read_object(const kube::Object& object, T& to) {
  auto whole = api::from_json<T>(object.body);
  if (whole) {
    to = std::move(*whole);
    return {};
  }
  if (auto told = api::from_json<decltype(T::status)>(object.body.value("status", core::Json::object()))) {
    to.status = std::move(*told);
  }
  return whole.error().message;
}

/// A reason why an object is not ready.
struct Problem {
  enum class Kind {
    kWrong,   ///< The problem needs a fix. The object is Degraded.
    kComing,  ///< The problem passes with time.
  };
  std::string reason;   ///< CamelCase: "SecretMissing".
  std::string message;  ///< What is wrong, and where.
  Kind kind = Kind::kWrong;
  plan::StepId step{};  ///< The step that failed, if the problem is about a step.
  [[nodiscard]] bool wrong() const { return kind == Kind::kWrong; }
};

/// Sets Ready, Progressing and Degraded. `waiting`: what the object still waits for, or "". `up_to_users`: tasks that are no
/// errors and that only users can do. Ready (if false) and Progressing name them if `problems` and `waiting` are empty.
void set_summary(Conditions& conditions, bool ready, const std::vector<Problem>& problems, const std::string& waiting,
                 const std::vector<Problem>& up_to_users = {});

/// Reports whether the status of a terminating Controller announces the end of the cluster. The operator writes this status
/// once it is certain that Kubernetes also deletes the Controller's children (no `kubectl delete --cascade=orphan`).
bool announces_end(const kube::Object& controller);
/// The reason of the condition Progressing of a Controller that announces its end.
inline constexpr const char* kReasonTerminating = "Terminating";

/// Sets FieldsNotActedOn to True with the paths; does nothing if there are none.
void set_fields_not_acted_on(Conditions& conditions, const std::vector<std::string>& paths);

/// Sets DeletionsStopped to True if `stopped` (the Controller's stop switch) is true or `doubt` (see doubt_of()) is not empty.
void set_deletions_stopped(Conditions& conditions, bool stopped, const std::string& doubt);

/// Returns the names as "a, b". If there are more than five names, lists the first five and the number of remaining names.
std::string some_of(const std::vector<std::string>& names);

/// Returns a step that makes the object's status equal to `wanted`; nothing if the status already is equal. The step removes
/// members of the old status that `wanted` lacks. The step's reason names the conditions that change.
std::optional<plan::Step> status_step(const kube::Resource& resource, const kube::Object& object, core::Json wanted);

/// Returns a step that writes an event about one of our objects. `reason` and `action` are CamelCase words.
plan::Step event_step(const kube::Resource& kind, const kube::ObjectMeta& object, std::string type, std::string reason,
                      std::string action, std::string note);

/// Returns a warning event if Degraded has become True, or is still True with a new message; else nothing.
std::optional<plan::Step> degraded_event(const kube::Resource& kind, const kube::ObjectMeta& object,
                                         const std::vector<api::Condition>& before, const Conditions& after);

/// Makes a foreign text safe for our messages: replaces control characters, including line ends, and cuts the text after 600
/// bytes. A text that was cut ends with "...".
std::string one_line(std::string text);
/// Returns the cause of a daemon's end, taken from the last lines of its log: the errors up to the first fatal error, or else
/// the last line. The text is made safe and cut as by one_line().
std::string last_words(std::string_view log);
/// Returns the problems in the status of pods: images that cannot be pulled, crash loops with their message, unschedulable and
/// failed pods, and containers that cannot be created.
std::vector<Problem> pod_problems(const std::vector<kube::PodPtr>& pods);

/// Returns a problem if Slurm's answers are unreadable or come from another cluster; nothing if there is no answer.
std::optional<Problem> slurm_problem(const slurm::SnapshotPtr& snapshot);

/// Returns the problems of earlier attempts at the steps of a key (a quota, a refused template, a conflict), with the API
/// server's messages. An error that usually passes, such as a conflict, counts only after five failures in a row.
std::vector<Problem> step_problems(const plan::Outcomes& outcomes);
/// Returns the problems of the steps that `plan` contains or remembers. Other steps are no longer wanted.
std::vector<Problem> step_problems(plan::Outcomes outcomes, const plan::Plan& plan);

}  // namespace slinky
