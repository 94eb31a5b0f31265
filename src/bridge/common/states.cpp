#include "bridge/common/states.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "bridge/common/names.hpp"

namespace bridge {
namespace {

/// The base states of a job that has ended, with the reasons of SlurmEnded.
constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kEnds{{{"COMPLETED", "Completed"},
                                                                               {"CANCELLED", "Cancelled"},
                                                                               {"FAILED", "Failed"},
                                                                               {"TIMEOUT", "TimedOut"},
                                                                               {"NODE_FAIL", "NodeFailed"},
                                                                               {"PREEMPTED", "Preempted"},
                                                                               {"BOOT_FAIL", "BootFailed"},
                                                                               {"DEADLINE", "DeadlinePassed"},
                                                                               {"OUT_OF_MEMORY", "OutOfMemory"},
                                                                               {"REVOKED", "Revoked"}}};

/// The time from the eviction of a pod to the moment when the kubelet begins to end the pod.
constexpr core::Duration kEndMargin{5000};

/// Returns a positive number, or 0.
std::int64_t number_of(std::string_view text) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && out > 0 ? out : 0;
}

auto end_of(std::string_view state) {
  return std::ranges::find(kEnds, state, [](const auto& end) { return end.first; });
}

}  // namespace

JobPhase phase_of(const slurm::Job& job) {
  if (end_of(job.state) != kEnds.end()) return JobPhase::kEnded;
  if (job.state == "PENDING") return JobPhase::kWaits;
  if (job.state == "SUSPENDED") return JobPhase::kSuspended;
  if (job.state == "RUNNING") return job.starting() ? JobPhase::kStarts : JobPhase::kRuns;
  return JobPhase::kUnclear;
}

bool is_refused(const slurm::Job& job) {
  return job.state == "FAILED" && job.details && job.details->reason == "BadConstraints" && job.start == job.end;
}

JobId id_of(const slurm::Job& job) {
  if (!job.details || !job.details->submitted) return {job.id, 0};
  return {job.id, std::chrono::duration_cast<std::chrono::seconds>(job.details->submitted->since_epoch).count()};
}

std::vector<std::string> nodes_of(const slurm::Job& job) {
  if (job.nodes_unknown) return {};
  return {job.nodes.begin(), job.nodes.end() - static_cast<std::ptrdiff_t>(job.only_named)};
}

std::string end_reason(const slurm::Job& job) {
  const auto end = end_of(job.state);
  return end == kEnds.end() ? "Ended" : std::string(end->second);
}

std::optional<core::WallTime> leaves_at(const kube::SchedulingPodRecord& pod, const slurm::Job& job) {
  if (phase_of(job) != JobPhase::kRuns || !job.start || !job.end || *job.end <= *job.start) return {};
  return *job.end - std::min(pod.grace + kEndMargin, (*job.end - *job.start) / 2);
}

std::string status_reason(std::string_view end_reason) {
  return "Slurm" + std::string(end_reason);
}

PodPhase phase_of(const kube::SchedulingPodRecord& pod) {
  if (pod.phase == "Succeeded" || pod.phase == "Failed") return PodPhase::kEnded;
  if (std::ranges::find(pod.gates, kGate) != pod.gates.end()) return PodPhase::kWaiting;
  if (placed_for(pod).empty()) return PodPhase::kForeign;
  return pod.node_name.empty() ? PodPhase::kPlaced : PodPhase::kBound;
}

bool is_freed_unnoticed(const kube::SchedulingPodRecord& pod) {
  const kube::PodCondition* queued = pod.condition(kConditionQueued);
  return phase_of(pod) == PodPhase::kForeign && queued != nullptr && queued->status == "True";
}

bool is_told_to_end(const kube::SchedulingPodRecord& pod) {
  const kube::PodCondition* ended = pod.condition(kConditionEnded);
  return ended != nullptr && ended->status == "True";
}

std::vector<JobId> placed_for(const kube::SchedulingPodRecord& pod) {
  std::vector<JobId> out;
  // The patch that places a pod also pins the pod and removes its gate. So a pod with a gate or without a pin was not placed.
  if (pod.pinned_to.empty() || std::ranges::find(pod.gates, kGate) != pod.gates.end()) return out;
  for (const kube::Toleration& toleration : pod.tolerations) {
    if (toleration.key != kTolerationPlacedFor) continue;
    const std::string_view value = toleration.value;
    const std::size_t dot = std::min(value.find('.'), value.size());
    const JobId job{number_of(value.substr(0, dot)), number_of(value.substr(std::min(dot + 1, value.size())))};
    if (job.number != 0) out.push_back(job);
  }
  return out;
}

std::string placed_for_value(const JobId& job) {
  return std::to_string(job.number) + "." + std::to_string(job.submitted);
}

std::int64_t replaced_job_of(const kube::ObjectMeta& pod) {
  return number_of(pod.annotation(kAnnotationReplacedJob));
}

bool gets_another_job(const kube::SchedulingPodRecord& pod, const slurm::Job& job) {
  if (phase_of(pod) != PodPhase::kWaiting || phase_of(job) != JobPhase::kEnded) return false;
  return is_refused(job) || job.state == "TIMEOUT" || replaced_job_of(pod.meta) == job.id;
}

std::string key_of(const std::string& root_uid, int attempt) {
  return root_uid + "/" + std::to_string(attempt);
}

Submission submission_of(const slurm::JobMark& mark) {
  const std::size_t slash = mark.key.rfind('/');
  if (slash == std::string::npos) return {};
  const std::int64_t attempt = number_of(std::string_view(mark.key).substr(slash + 1));
  return {mark.key.substr(0, slash), static_cast<int>(attempt)};
}

}  // namespace bridge
