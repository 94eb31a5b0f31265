#include "slinky/status.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "api/well_known.hpp"
#include "core/retry.hpp"
#include "kube/acts.hpp"

namespace slinky {
namespace {

/// The API server's limit for a condition's message.
constexpr std::size_t kMaxMessage = 32768;
/// Longer texts of pods and servers are cut, so that people can read the status.
constexpr std::size_t kMaxDetail = 600;
/// The limit for an event's note, below the API server's limit of 1024.
constexpr std::size_t kMaxNote = 1000;

std::string cut(std::string text, std::size_t limit) {
  if (text.size() <= limit) return text;
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80) --limit;
  return text.substr(0, limit) + "...";
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (const std::string& part : parts) {
    if (!out.empty()) out += separator;
    out += part;
  }
  return out;
}

bool waits_for_image(std::string_view reason) {
  constexpr std::array<std::string_view, 5> kReasons{"ErrImagePull", "ImagePullBackOff", "InvalidImageName",
                                                     "ErrImageNeverPull", "RegistryUnavailable"};
  return std::find(kReasons.begin(), kReasons.end(), reason) != kReasons.end();
}

/// Returns the cause of a failed image pull. The text stays the same while the kubelet alternates between ErrImagePull and
/// ImagePullBackOff.
std::string pull_failure(const kube::ContainerState& container) {
  constexpr std::string_view kCause = "ErrImagePull: ";
  const bool tries = container.waiting_reason == "ErrImagePull" || container.waiting_reason == "ImagePullBackOff";
  if (!tries || container.message.empty()) return container.waiting_reason + ": " + one_line(container.message);
  const std::size_t at = container.message.find(kCause);
  return one_line(at == std::string::npos ? container.message : container.message.substr(at + kCause.size()));
}

std::optional<Problem> container_problem(const kube::PodRecord& pod, const kube::ContainerState& container) {
  const std::string place = "pod " + pod.meta.name + ", container " + container.name + ": ";
  if (waits_for_image(container.waiting_reason)) {
    return Problem{"ImagePullFailed", place + pull_failure(container)};
  }
  if (container.crashed) {
    const std::string words = last_words(container.message);
    return Problem{"CrashLoop",
                   place + "ended " + std::to_string(container.restarts + 1) + " times" + (words.empty() ? "" : ": " + words)};
  }
  if (container.waiting_reason.starts_with("Create") || container.waiting_reason == "RunContainerError") {
    return Problem{"ContainerFailed", place + container.waiting_reason + ": " + one_line(container.message)};
  }
  return {};
}

std::string condition_changes(const core::Json& before, const core::Json& after) {
  std::vector<std::string> changed;
  for (const core::Json& condition : after) {
    const std::string type = core::get_string(condition, {"type"});
    const auto old = std::find_if(before.begin(), before.end(),
                                  [&](const core::Json& item) { return core::get_string(item, {"type"}) == type; });
    const std::string status = core::get_string(condition, {"status"});
    if (old == before.end() || core::get_string(*old, {"status"}) != status ||
        core::get_string(*old, {"reason"}) != core::get_string(condition, {"reason"})) {
      changed.push_back(type + "=" + status + " (" + core::get_string(condition, {"reason"}) + ")");
    }
  }
  return changed.empty() ? "status changed" : join(changed, ", ");
}

}  // namespace

std::string one_line(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char byte) { return byte < 0x20 || byte == 0x7f; }, ' ');
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return cut(std::move(text), kMaxDetail);
}

std::string last_words(std::string_view log) {
  std::vector<std::string> causes;
  std::string_view last;
  bool fatal = false;
  while (!log.empty() && !fatal) {
    const std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(log.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    last = line;
    // Errors after a fatal error are only consequences of the fatal error.
    const std::size_t end = line.find("fatal: ");
    fatal = end != std::string_view::npos;
    const std::size_t at = fatal ? end : line.find("error: ");
    if (at == std::string_view::npos) continue;
    std::string cause(line.substr(at));
    if (causes.empty() || causes.back() != cause) causes.push_back(std::move(cause));
  }
  // The last error is the most useful one.
  while (causes.size() > 1 && join(causes, "; ").size() > kMaxDetail) causes.erase(causes.begin());
  return one_line(causes.empty() ? std::string(last) : join(causes, "; "));
}

Conditions::Conditions(const std::vector<api::Condition>& previous, std::int64_t generation, core::WallTime now)
    : previous_(previous), generation_(generation), now_(now) {}

void Conditions::set(std::string_view type, api::ConditionStatus status, std::string_view reason, std::string message) {
  api::Condition condition;
  condition.type = type;
  condition.status = status;
  condition.reason = reason;
  condition.message = cut(std::move(message), kMaxMessage - 3);
  condition.observed_generation = generation_;
  const api::Condition* old = api::find_condition(previous_, type);
  const bool same = old != nullptr && old->status == status && old->last_transition_time;
  // Cuts the time to whole seconds, because the status stores whole seconds. Otherwise the time would differ from the stored
  // time.
  const core::WallTime now{core::Duration{now_.since_epoch.count() / 1000 * 1000}};
  condition.last_transition_time = same ? *old->last_transition_time : now;
  const auto place = std::find_if(conditions_.begin(), conditions_.end(), [&](const auto& c) { return c.type == type; });
  if (place != conditions_.end()) {
    *place = std::move(condition);
  } else {
    conditions_.push_back(std::move(condition));
  }
}

core::Json Conditions::json() const {
  std::vector<api::Condition> sorted = conditions_;
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.type < b.type; });
  core::Json out = core::Json::array();
  for (const api::Condition& condition : sorted) {
    out.push_back({{"type", condition.type},
                   {"status", api::to_string(condition.status)},
                   {"reason", condition.reason},
                   {"message", condition.message},
                   {"lastTransitionTime", core::format_rfc3339(*condition.last_transition_time)},
                   {"observedGeneration", condition.observed_generation}});
  }
  return out;
}

void set_summary(Conditions& conditions, bool ready, const std::vector<Problem>& problems, const std::string& waiting,
                 const std::vector<Problem>& up_to_users) {
  std::vector<std::string> wrong, slow, left;
  for (const Problem& item : up_to_users) left.push_back(item.message);
  std::string reason, slow_reason;
  for (const Problem& problem : problems) {
    auto& list = problem.wrong() ? wrong : slow;
    if (std::find(list.begin(), list.end(), problem.message) != list.end()) continue;
    list.push_back(problem.message);
    auto& word = problem.wrong() ? reason : slow_reason;
    if (word.empty()) word = problem.reason;
  }
  if (!waiting.empty()) slow.push_back(waiting);
  if (slow_reason.empty()) slow_reason = "Waiting";

  if (ready) {
    conditions.set(api::kConditionReady, true, "Ready", "");
  } else if (!wrong.empty()) {
    conditions.set(api::kConditionReady, false, reason, join(wrong, "; "));
  } else if (slow.empty() && !left.empty()) {
    conditions.set(api::kConditionReady, false, up_to_users.front().reason, join(left, "; "));
  } else {
    conditions.set(api::kConditionReady, false, slow_reason, join(slow, "; "));
  }
  if (!slow.empty()) {
    conditions.set(api::kConditionProgressing, true, slow_reason, join(slow, "; "));
  } else if (wrong.empty() && !left.empty()) {
    conditions.set(api::kConditionProgressing, false, up_to_users.front().reason, join(left, "; "));
  } else {
    conditions.set(api::kConditionProgressing, false, wrong.empty() ? "Done" : "Blocked", "");
  }
  conditions.set(api::kConditionDegraded, !wrong.empty(), wrong.empty() ? "AsExpected" : reason, join(wrong, "; "));
}

bool announces_end(const kube::Object& controller) {
  const core::Json* told = core::find(controller.body, {"status", "conditions"});
  return controller.meta.terminating() && told != nullptr && told->is_array() &&
         std::ranges::any_of(*told, [](const core::Json& condition) {
           return core::get_string(condition, {"type"}) == api::kConditionProgressing &&
                  core::get_string(condition, {"reason"}) == kReasonTerminating;
         });
}

void set_deletions_stopped(Conditions& conditions, bool stopped, const std::string& doubt) {
  if (stopped) {
    conditions.set(api::kConditionDeletionsStopped, true, "StopSwitch",
                   "nothing is deleted, and slurmctld is not changed, while the Controller has the annotation " +
                       std::string(api::kAnnotationStopDeletions));
  } else if (!doubt.empty()) {
    conditions.set(api::kConditionDeletionsStopped, true, "SlurmInDoubt",
                   doubt + ": no worker is deleted because of Slurm's answers until this is resolved");
  }
}

void set_fields_not_acted_on(Conditions& conditions, const std::vector<std::string>& paths) {
  if (paths.empty()) return;
  conditions.set(api::kConditionFieldsNotActedOn, true, "NotActedOn",
                 "these fields are set, but have no effect in this release: " + join(paths, ", "));
}

std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kNames = 5;
  if (names.size() <= kNames) return join(names, ", ");
  return join({names.begin(), names.begin() + kNames}, ", ") + " and " + std::to_string(names.size() - kNames) + " more";
}

std::optional<plan::Step> status_step(const kube::Resource& resource, const kube::Object& object, core::Json wanted) {
  const core::Json* found = core::find(object.body, {"status"});
  const core::Json before = found != nullptr && found->is_object() ? *found : core::Json::object();
  core::Json patch = core::Json::object();
  for (const auto& [name, value] : wanted.items()) {
    if (before.contains(name) && before[name] == value) continue;
    core::Json& changed = patch[name] = value;
    // A merge patch removes only the members that the patch sets to null.
    if (!value.is_object() || !before.contains(name) || !before[name].is_object()) continue;
    for (const auto& [member, unused] : before[name].items()) {
      if (!value.contains(member)) changed[member] = nullptr;
    }
  }
  for (const auto& [name, value] : before.items()) {
    if (!wanted.contains(name)) patch[name] = nullptr;
  }
  if (patch.empty()) return {};
  const core::Json none = core::Json::array();
  const std::string why =
      patch.contains("conditions") && patch["conditions"].is_array()
          ? condition_changes(before.contains("conditions") ? before["conditions"] : none, patch["conditions"])
          : "status changed";
  return plan::Step{{"status"}, why, kube::merge_patch(resource, object.meta, {{"status", std::move(patch)}}, "status")};
}

plan::Step event_step(const kube::Resource& kind, const kube::ObjectMeta& object, std::string type, std::string reason,
                      std::string action, std::string note) {
  kube::EventAct act;
  act.regarding = kind;
  act.object = object;
  act.type = std::move(type);
  act.reason = std::move(reason);
  act.action = std::move(action);
  act.note = cut(std::move(note), kMaxNote);
  plan::StepId id{"event", "", act.reason, act.note};
  std::string why = act.note;
  return {std::move(id), std::move(why), std::make_shared<kube::EventAct>(std::move(act))};
}

std::optional<plan::Step> degraded_event(const kube::Resource& kind, const kube::ObjectMeta& object,
                                         const std::vector<api::Condition>& before, const Conditions& after) {
  const api::Condition* now = api::find_condition(after.all(), api::kConditionDegraded);
  if (now == nullptr || now->status != api::ConditionStatus::kTrue) return {};
  const api::Condition* old = api::find_condition(before, api::kConditionDegraded);
  if (old != nullptr && old->status == now->status && old->message == now->message) return {};
  return event_step(kind, object, "Warning", now->reason, "Reconcile", now->message);
}

std::vector<Problem> pod_problems(const std::vector<kube::PodPtr>& pods) {
  std::vector<Problem> out;
  for (const kube::PodPtr& pod : pods) {
    if (pod->meta.terminating()) continue;
    // A pod that has ended starts no container any more. So the end of a container is no separate problem.
    const bool ended = pod->phase == "Failed" || pod->phase == "Succeeded";
    for (const kube::ContainerState& container : pod->containers) {
      if (ended) break;
      if (auto problem = container_problem(*pod, container)) out.push_back(std::move(*problem));
    }
    const kube::PodCondition* scheduled = pod->condition("PodScheduled");
    if (scheduled != nullptr && scheduled->status == "False" && scheduled->reason == "Unschedulable") {
      out.push_back({"Unschedulable", "pod " + pod->meta.name + ": " + one_line(scheduled->message)});
    }
    if (pod->phase == "Failed") {
      out.push_back(
          {"PodFailed", "pod " + pod->meta.name + ": " + pod->reason + " " + one_line(pod->message), Problem::Kind::kComing});
    }
  }
  return out;
}

std::optional<Problem> slurm_problem(const slurm::SnapshotPtr& snapshot) {
  if (snapshot && snapshot->other_cluster)
    return Problem{"OtherCluster",
                   "the operator ignores the answers of this Slurm, and changes nothing in it: " + one_line(snapshot->error)};
  if (!snapshot || !snapshot->unreadable()) return std::nullopt;
  return Problem{"SlurmUnreadable",
                 "Slurm's answers cannot be read, so its nodes and jobs are not known: " + one_line(snapshot->error)};
}

std::vector<Problem> step_problems(const plan::Outcomes& outcomes) {
  std::vector<Problem> out;
  for (const auto& [id, outcome] : outcomes) {
    if (outcome.state != plan::Outcome::State::kFailed || !outcome.error) continue;
    if (outcome.error->reason == "NamespaceTerminating") {
      out.push_back(
          {"NamespaceTerminating", "the namespace is being deleted, so nothing can be created in it", Problem::Kind::kComing});
      continue;
    }
    // The evidence expired because the pass took too long. Nothing is wrong.
    if (outcome.error->code == core::ErrorCode::kExpired) continue;
    // Races and transient faults resolve within a pass or two. A step that fails several times in a row is a problem.
    const core::Retry retry = core::retry_of(outcome.error->code);
    const bool passing = retry == core::Retry::kLater || retry == core::Retry::kSettle || retry == core::Retry::kDecideAnew;
    if (passing && outcome.count < 5) continue;
    out.push_back({"StepFailed", id.text() + ": " + one_line(outcome.error->message), Problem::Kind::kWrong, id});
  }
  return out;
}

std::vector<Problem> step_problems(plan::Outcomes outcomes, const plan::Plan& plan) {
  const plan::StepIds wished = plan.wished();
  std::erase_if(outcomes, [&](const auto& entry) { return !wished.contains(entry.first); });
  return step_problems(outcomes);
}

}  // namespace slinky
