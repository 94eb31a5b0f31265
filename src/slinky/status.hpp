// Conditions and status patches, alike for every kind.
//
//   Conditions conditions(controller.status.conditions, meta.generation, observed.context.now);
//   conditions.set("Ready", api::ConditionStatus::kFalse, "SecretMissing", "Secret default/key does not exist");
//   plan.lane("status").add(status_step(resources::kController, object, {{"conditions", conditions.json()}}));
//
// A condition keeps its time for as long as its status does not change, and a status equal to what stands is not written.
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
  /// Sorted by type; what is not set any more is gone.
  [[nodiscard]] core::Json json() const;

 private:
  std::vector<api::Condition> previous_;
  std::vector<api::Condition> conditions_;
  std::int64_t generation_;
  core::WallTime now_;
};

/// Reads an object of ours, or says why it cannot be read; "" when it can. Then its status is read at least: what has been told
/// is known, so that an event comes once and conditions keep their time.
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

/// One thing that keeps an object from being ready.
struct Problem {
  enum class Kind {
    kWrong,   ///< It does not resolve itself: it is Degraded.
    kComing,  ///< It only takes time.
  };
  std::string reason;   ///< CamelCase: "SecretMissing".
  std::string message;  ///< What is wrong, and where.
  Kind kind = Kind::kWrong;
  plan::StepId step{};  ///< The step that failed, where one did.
  [[nodiscard]] bool wrong() const { return kind == Kind::kWrong; }
};

/// Sets Ready, Progressing and Degraded. `waiting` says what is still to come when nothing is wrong but it is not ready yet;
/// `up_to_users` what is neither wrong nor to come, for only people change it: Progressing tells it.
void set_summary(Conditions& conditions, bool ready, const std::vector<Problem>& problems, const std::string& waiting,
                 const std::vector<Problem>& up_to_users = {});

/// The cluster ends with its Controller: that has looked whether it goes alone (`kubectl delete --cascade=orphan`), and has
/// told.
bool announces_end(const kube::Object& controller);
/// The reason of its condition Progressing then.
inline constexpr const char* kReasonTerminating = "Terminating";

/// Sets FieldsNotActedOn: True with the paths, or nothing when there are none.
void set_fields_not_acted_on(Conditions& conditions, const std::vector<std::string>& paths);

/// Sets DeletionsStopped where the Controller's stop switch, or a doubt about Slurm's word, keeps from deletions.
void set_deletions_stopped(Conditions& conditions, bool stopped, const std::string& doubt);

/// "a, b": of more than five names, the first five, and how many more there are.
std::string some_of(const std::vector<std::string>& names);

/// A step that makes the object's status hold `wanted`, or nothing when it does. Members of the old status that `wanted` lacks
/// are removed. The step's reason names the conditions that change.
std::optional<plan::Step> status_step(const kube::Resource& resource, const kube::Object& object, core::Json wanted);

/// An event about an object of ours. `reason` and `action` are CamelCase words.
plan::Step event_step(const kube::Resource& kind, const kube::ObjectMeta& object, std::string type, std::string reason,
                      std::string action, std::string note);

/// A warning event when Degraded has become True or says something else than before; nothing when it says the same.
std::optional<plan::Step> degraded_event(const kube::Resource& kind, const kube::ObjectMeta& object,
                                         const std::vector<api::Condition>& before, const Conditions& after);

/// What somebody else wrote, for a message of ours: without line ends and other control characters, at most 600 bytes.
std::string one_line(std::string text);
/// Of the last lines that a daemon wrote, those that say why it ended: its errors up to the first fatal one; without any, its
/// last line. On one line, at most 600 bytes.
std::string last_words(std::string_view log);
/// Problems of pods as their status tells them: images that cannot be pulled, crash loops with their message, unschedulable
/// pods, missing mounts.
std::vector<Problem> pod_problems(const std::vector<kube::PodPtr>& pods);

/// Slurm answers what cannot be read; nothing while it can, or while Slurm does not answer.
std::optional<Problem> slurm_problem(const slurm::SnapshotPtr& snapshot);

/// Problems of earlier tries of this key's steps (a quota, a refused template, a conflict): the API server's own words.
std::vector<Problem> step_problems(const plan::Outcomes& outcomes);
/// The same of those steps alone that `plan` has so far, or remembers: for what is wished no more, nothing would end it.
std::vector<Problem> step_problems(plan::Outcomes outcomes, const plan::Plan& plan);

}  // namespace slinky
