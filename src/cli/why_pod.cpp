#include "cli/why_pod.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/well_known.hpp"
#include "bridge/common/groups.hpp"
#include "bridge/common/names.hpp"
#include "bridge/common/states.hpp"
#include "cli/objects.hpp"
#include "cli/pod_reasons.hpp"
#include "slinky/names.hpp"

namespace cli {
namespace {

using bridge::PodPhase;
using core::Json;

/// A bridge reports on a new pod within this time, unless something is wrong.
constexpr core::Duration kReportTakes{30000};
constexpr std::size_t kMostEvents = 3;

// The document.

/// The state of a pod, and a sentence about it that begins with "it".
struct Standing {
  const char* state;
  std::string summary;
};

const kube::PodCondition* queued_of(const PodFacts& facts) {
  return facts.pod->condition(bridge::kConditionQueued);
}

/// Returns the node and the job of a placed pod: "node-2 for job 12".
std::string place_of(const PodFacts& facts) {
  const auto placed = bridge::placed_for(*facts.pod);
  const std::string node = facts.pod->node_name.empty() ? facts.pod->pinned_to : facts.pod->node_name;
  return placed.empty() ? node : node + " for job " + std::to_string(placed.front().number);
}

Standing standing_of_waiting(const PodFacts& facts) {
  const kube::PodCondition* queued = queued_of(facts);
  if (queued == nullptr)
    return {"Waits", "it has the scheduling gate of slurm-bridge, and slurm-bridge has not reported on it"};
  if (queued->status == "True") return {"Waits", "it waits for Slurm"};
  if (queued->reason == "Refused") return {"Waits", "it gets no job in Slurm, because what it asks for is refused"};
  return {"Waits", "it has no job in Slurm"};
}

Standing standing_of_bound(const PodFacts& facts) {
  const std::string place = place_of(facts);
  if (bridge::is_told_to_end(*facts.pod)) return {"Ends", "it has to end: slurm-bridge evicts it from node " + place};
  if (facts.pod->phase != "Running") return {"Starts", "it is on node " + place + ", and its containers do not run yet"};
  return {"Runs", "it runs on node " + place + (facts.pod->ready() ? "" : ", and is not ready")};
}

bool was_freed(const PodFacts& facts) {
  const kube::PodCondition* queued = queued_of(facts);
  return bridge::is_freed_unnoticed(*facts.pod) ||
         (queued != nullptr && (queued->reason == "Freed" || queued->reason == "Retired"));
}

Standing standing_of(const PodFacts& facts) {
  const PodPhase phase = bridge::phase_of(*facts.pod);
  if (phase == PodPhase::kEnded) return {"Ended", "it has ended"};
  if (facts.pod->meta.terminating()) return {"Deleted", "it is being deleted"};
  switch (phase) {
    case PodPhase::kWaiting:
      return standing_of_waiting(facts);
    case PodPhase::kPlaced:
      return {"Placed", "Slurm has chosen node " + place_of(facts) + ", and Kubernetes has not bound it yet"};
    case PodPhase::kBound:
      return standing_of_bound(facts);
    default:
      break;
  }
  if (was_freed(facts)) return {"Freed", "its gate was removed, so that Kubernetes alone schedules it"};
  return {"NotManaged", "it is no pod of slurm-bridge: it has no scheduling gate of slurm-bridge, and was not placed by it"};
}

std::string created_of(const PodFacts& facts) {
  return core::get_string(facts.object, {"metadata", "creationTimestamp"});
}

/// Returns the condition as part of the document.
Json condition_json(const Json& condition, const std::optional<Explanation>& text) {
  const auto part = [&](const char* name) { return core::get_string(condition, {name}); };
  const std::string since = part("lastTransitionTime");
  return {{"type", part("type")},
          {"status", part("status")},
          {"reason", part("reason")},
          {"message", part("message")},
          {"since", since.empty() ? Json() : Json(since)},
          {"meaning", text ? std::string(text->meaning) : ""},
          {"advice", text ? std::string(text->advice) : ""}};
}

/// Returns the conditions that say why the pod does not run.
Json telling_conditions(const PodFacts& facts, const std::string& state) {
  Json out = Json::array();
  const auto add = [&](std::string_view type, bool wanted, const auto& explained) {
    const Json* found = condition_of(facts.object, type);
    if (found != nullptr && wanted) out.push_back(condition_json(*found, explained(core::get_string(*found, {"reason"}))));
  };
  const auto plain = [](const std::string&) { return std::optional<Explanation>(); };
  const kube::PodCondition* queued = queued_of(facts);
  const bool places = state == "Waits" || state == "Freed";
  const bool settled = queued != nullptr && (queued->reason == "Allocated" || queued->reason == "Ended");
  add(bridge::kConditionQueued, places || !settled, explain_queued);
  add(bridge::kConditionEnded, bridge::is_told_to_end(*facts.pod), explain_pod_end);
  add(bridge::kConditionDisruptionTarget,
      is_true(facts.object, bridge::kConditionDisruptionTarget) && !bridge::is_told_to_end(*facts.pod), plain);
  // Kubernetes says of a pod with a gate only that it has one.
  const bool scheduled = is_true(facts.object, "PodScheduled") || state == "Waits" || state == "Ended";
  add("PodScheduled", !scheduled, plain);
  add("Ready", state == "Runs" && !facts.pod->ready(), plain);
  return out;
}

/// Returns the containers that do not run although they should.
Json waiting_containers(const PodFacts& facts, const std::string& state) {
  Json out = Json::array();
  for (const kube::ContainerState& container : facts.pod->containers) {
    const bool unfinished = container.init && container.started_once && !container.ready && !container.crashed;
    std::string reason = container.waiting_reason;
    if (reason.empty() && container.crashed) reason = "Failed";
    if (reason.empty() && unfinished && state == "Starts") reason = "Running";
    if (reason.empty() || state == "Ended") continue;
    out.push_back({{"name", container.name},
                   {"init", container.init},
                   {"reason", std::move(reason)},
                   {"message", container.message},
                   {"restarts", container.restarts}});
  }
  return out;
}

std::string time_of_event(const Json& event) {
  for (std::string found : {core::get_string(event, {"series", "lastObservedTime"}), core::get_string(event, {"lastTimestamp"}),
                            core::get_string(event, {"eventTime"})}) {
    if (!found.empty()) return found;
  }
  return core::get_string(event, {"metadata", "creationTimestamp"});
}

/// Returns the newest warnings of different reasons. Leaves out those of the scheduler, because the condition PodScheduled has
/// the same message.
Json newest_warnings(const PodFacts& facts, const std::string& state) {
  Json out = Json::array();
  if (state == "Waits" || state == "Ended" || (state == "Runs" && facts.pod->ready())) return out;
  std::vector<std::pair<std::string, const Json*>> events;
  for (const Json& event : facts.warnings) events.emplace_back(time_of_event(event), &event);
  std::ranges::stable_sort(events, std::greater<>(), &std::pair<std::string, const Json*>::first);
  std::vector<std::string> shown{"FailedScheduling"};
  for (const auto& [time, event] : events) {
    const std::string reason = core::get_string(*event, {"reason"});
    if (out.size() >= kMostEvents || std::ranges::find(shown, reason) != shown.end()) continue;
    shown.push_back(reason);
    out.push_back(
        {{"reason", reason}, {"message", core::get_string(*event, {"message"})}, {"time", time.empty() ? Json() : Json(time)}});
  }
  return out;
}

/// Returns what the settings of the bridges say about a pod that no bridge has reported on, or that has no gate.
std::vector<std::string> details_of_bridges(const PodFacts& facts, const std::string& state) {
  std::vector<std::string> out;
  const kube::SchedulingPodRecord& pod = *facts.pod;
  const auto its = facts.bridges.of(pod);
  if (!facts.bridges.unknown.empty())
    out.push_back("Whether a slurm-bridge manages namespace " + pod.meta.ns + " is not known: " + facts.bridges.unknown);
  for (const KnownBridge* one : its) {
    const std::string name = "slurm-bridge " + one->deployment.str();
    if (!one->ready) out.push_back("No pod of " + name + ", which manages it, is ready.");
    if (one->ready && state == "NotManaged")
      out.push_back("The pod would be managed by " + name +
                    ", but has no gate. Pods of DaemonSets get none, nor did pods that were created before the bridge managed "
                    "them, or while Slurm was too old. Create it again to let Slurm schedule it.");
    if (one->ready && state == "Waits" && queued_of(facts) == nullptr && facts.now - pod.meta.created > kReportTakes)
      out.push_back("Its log says why it has not: kubectl -n " + one->deployment.ns + " logs deployment/" +
                    one->deployment.name);
  }
  if (!its.empty() || !facts.bridges.unknown.empty()) return out;
  out.push_back(facts.bridges.known.empty()
                    ? "This Kubernetes cluster has no Deployment of slurm-bridge."
                    : "No slurm-bridge manages namespace " + pod.meta.ns + " (admission.managedNamespaces of its chart).");
  if (state == "Waits") out.push_back("Without a bridge, nothing removes the gate.");
  return out;
}

/// Returns what the pod has that keeps it from running, beside its conditions.
std::vector<std::string> details_of_pod(const PodFacts& facts, const std::string& state) {
  std::vector<std::string> out;
  const kube::SchedulingPodRecord& pod = *facts.pod;
  if (state == "Waits") {
    std::string gates;
    for (const std::string& gate : pod.gates) {
      if (gate != bridge::kGate) gates += (gates.empty() ? "" : ", ") + gate;
    }
    if (!gates.empty()) out.push_back("It also has other scheduling gates: " + gates + ".");
    if (const auto group = bridge::group_of(pod.meta)) {
      const bridge::GroupObject object = bridge::object_of(*group);
      out.push_back("It starts together with the other pods of " + object.resource.kind + " " + object.key.name +
                    ", which get one job.");
    }
  }
  if (state == "NotManaged" && pod.meta.label(api::kLabelName) == slinky::kAppWorker)
    out.push_back("It is a worker of a NodeSet, which `kubectl slurm status` explains.");
  if (state == "Placed")
    out.push_back("If Kubernetes does not bind it within two minutes, it ends as Failed, and its owner makes another pod.");
  if (state == "NotManaged" && pod.node_name.empty() && !pod.scheduler.empty() && pod.scheduler != "default-scheduler") {
    out.push_back("It asks for the scheduler " + pod.scheduler +
                  ". If that is the name of slurm-bridge, no scheduler has it: slurm-bridge replaces it when a pod is created. "
                  "Create the pod again.");
  }
  const kube::PodCondition* scheduled = pod.condition("PodScheduled");
  if (scheduled != nullptr && scheduled->status != "True" && scheduled->message.contains(bridge::kTaintManagedNode)) {
    out.push_back("Slurm has the nodes with the taint " + std::string(bridge::kTaintManagedNode) +
                  ": let Slurm schedule the pod, or give it a toleration of that taint.");
  }
  if (state == "Ended" && pod.exit_code.value_or(0) != 0)
    out.push_back("The greatest exit code of its containers was " + std::to_string(*pod.exit_code) + ".");
  return out;
}

/// Reports whether it matters which bridge manages the pod.
bool asks_for_bridge(const PodFacts& facts, const std::string& state) {
  if (state == "NotManaged") return true;
  if (state != "Waits") return false;
  return queued_of(facts) == nullptr || facts.bridges.unknown.empty();
}

// Text.

std::string capital(std::string text) {
  if (!text.empty() && text.front() >= 'a' && text.front() <= 'z') text.front() = static_cast<char>(text.front() - 'a' + 'A');
  return text;
}

std::string sentence(const Json& document, const std::string& part) {
  const std::string text = printable(core::get_string(document, {part}));
  return text.empty() ? "" : "  " + text + "\n";
}

std::string condition_text(const Json& condition, const Json& job, const Style& style, core::WallTime now) {
  const std::string reason = core::get_string(condition, {"reason"}), since = core::get_string(condition, {"since"});
  std::string out = core::get_string(condition, {"type"}) + " is " + core::get_string(condition, {"status"}) +
                    (since.empty() ? "" : " since " + moment_text(since, now)) + ": " +
                    style.paint(Tone::kWarn, printable(reason)) + "\n" + sentence(condition, "message");
  // Below, the job has the same reason, and its explanation.
  if (core::get_string(job, {"reason", "name"}) == reason) return out;
  return out + sentence(condition, "meaning") + sentence(condition, "advice");
}

std::string container_text(const Json& container, const Style& style) {
  const std::string reason = core::get_string(container, {"reason"});
  const std::string name =
      (core::get_bool(container, {"init"}) ? "Init container " : "Container ") + core::get_string(container, {"name"});
  if (reason == "Running") return name + " has not ended yet.\n";
  const auto restarts = core::get_int(container, {"restarts"});
  return name + (reason == "Failed" ? ": " : " waits: ") + style.paint(Tone::kWarn, printable(reason)) +
         (restarts > 0 ? fmt::format(", {} restarts", restarts) : "") + "\n" + sentence(container, "message");
}

}  // namespace

Json why_pod_document(const PodFacts& facts) {
  const kube::SchedulingPodRecord& pod = *facts.pod;
  const Standing standing = standing_of(facts);
  const std::string state = standing.state;
  const auto placed = bridge::placed_for(pod);
  const std::string created = created_of(facts);
  Json out{{"apiVersion", "cli.slinky.slurm.net/v1"},
           {"kind", "PodExplanation"},
           {"namespace", pod.meta.ns},
           {"pod", pod.meta.name},
           {"uid", pod.meta.uid},
           {"phase", pod.phase},
           {"created", created.empty() ? Json() : Json(created)},
           {"state", state},
           {"summary", standing.summary},
           {"kubernetesNode", pod.node_name},
           {"placedFor", placed.empty() ? Json() : Json(placed.front().number)}};
  out["conditions"] = telling_conditions(facts, state);
  out["details"] = details_of_pod(facts, state);
  if (asks_for_bridge(facts, state)) {
    for (std::string& line : details_of_bridges(facts, state)) out["details"].push_back(std::move(line));
  }
  if (state == "Ended" && !(pod.reason + pod.message).empty())
    out["details"].push_back(pod.reason.empty() || pod.message.empty() ? pod.reason + pod.message
                                                                       : pod.reason + ": " + pod.message);
  out["containers"] = waiting_containers(facts, state);
  out["warnings"] = newest_warnings(facts, state);
  out["controller"] = facts.controller ? Json(facts.controller->str()) : Json();
  out["job"] = facts.job ? why_document(*facts.job) : Json();
  out["jobUnknown"] = facts.no_job;
  return out;
}

std::string why_pod_text(const Json& document, const Style& style, core::WallTime now) {
  const auto text = [&](const char* part) { return core::get_string(document, {part}); };
  const std::string created = text("created");
  std::string out = style.paint(Tone::kStrong, "Pod " + text("namespace") + "/" + text("pod")) + " is " + text("phase") +
                    (created.empty() ? "" : ", created " + moment_text(created, now)) + "\n" +
                    capital(printable(text("summary"))) + ".\n";
  const Json& job = document["job"];
  for (const Json& condition : document["conditions"]) out += condition_text(condition, job, style, now);
  for (const Json& container : document["containers"]) out += container_text(container, style);
  for (const Json& warning : document["warnings"]) {
    const std::string time = core::get_string(warning, {"time"});
    out += "Warning " + style.paint(Tone::kWarn, printable(core::get_string(warning, {"reason"}))) +
           (time.empty() ? "" : ", " + moment_text(time, now)) + "\n" + sentence(warning, "message");
  }
  for (const Json& line : document["details"]) out += printable(line.get<std::string>()) + "\n";
  if (!job.is_null()) return out + "\n" + why_text(job, style, now);
  if (text("state") == "NotManaged" || text("state") == "Freed") return out;
  const std::string why = printable(text("jobUnknown"));
  return out + "\nIts job in Slurm is not shown: " + why + (why.ends_with('.') ? "\n" : ".\n");
}

}  // namespace cli
