#include "bridge/jobs/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bridge/common/names.hpp"
#include "bridge/jobs/placing.hpp"
#include "bridge/jobs/states.hpp"
#include "bridge/jobs/wish.hpp"
#include "core/hostlist.hpp"
#include "kube/acts.hpp"
#include "slurm/acts.hpp"

namespace bridge::jobs {
namespace {

using core::Json;

/// The patch that removes the gate completes what the live look at the job began.
constexpr core::Duration kPlaceLate{5000};
/// How often a node is looked at again while earlier pods end there.
constexpr core::Duration kLeftoversAgain{1000};
/// How often what Slurm or the API server refused is tried again, without a change that could help.
constexpr core::Duration kRefusedAgain{30000};
/// Expected starts are rounded to this time, because Slurm changes its estimate often.
constexpr core::Duration kStartSteps{10 * 60 * 1000};
constexpr std::string_view kPodFact = "pod";

/// Reports whether a word may be the reason of a condition.
bool is_reason(std::string_view word) {
  const auto letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); };
  return !word.empty() && letter(word.front()) &&
         std::ranges::all_of(word, [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '_'; });
}

/// Reports whether a person must do something before the step can succeed.
bool is_refusal(core::ErrorCode code) {
  using enum core::ErrorCode;
  return code == kInvalid || code == kNotFound || code == kForbidden || code == kUnsupported || code == kInternal;
}

class Pass {
 public:
  explicit Pass(const Observed& observed) : in_(observed), name_(observed.key.str()) {}

  plan::Plan make() {
    if (in_.installation.empty()) return std::move(out_);
    release_jobs();
    if (in_.pod) follow_pod();
    return std::move(out_);
  }

 private:
  // --- Jobs that no pod needs ------------------------------------------------------------------------------------------------

  void release_jobs() {
    for (const NamedJob& named : in_.jobs) {
      if (phase_of(*named.job) == JobPhase::kEnded) continue;
      if (named.unneeded) {
        release(*named.unneeded);
      } else if (named.asks_for_pod) {
        look_for_pod();
      }
    }
  }

  void release(const Unneeded& evidence) {
    out_.lane("release").add({{"cancel", "Slurm job", std::to_string(evidence.job().id())},
                              evidence.detail(),
                              slurm::cancel_job(evidence.job())});
    out_.intent.jobs += 1;
  }

  /// The cache may be behind another process that submitted the job, so the API server is asked.
  void look_for_pod() {
    if (in_.context.facts.contains(std::string(kPodFact))) {
      out_.wake_after(kRefusedAgain, "whether the pod is gone could not be read");
      return;
    }
    auto get = std::make_shared<kube::Get>();
    get->resource = kube::resources::kPod;
    get->key = in_.key;
    out_.need({std::string(kPodFact), std::move(get)});
  }

  // --- The pod ---------------------------------------------------------------------------------------------------------------

  void follow_pod() {
    if (pod().meta.terminating()) return;
    switch (phase_of(pod())) {
      case PodPhase::kWaiting:
        return follow_waiting();
      case PodPhase::kPlaced:
        return follow_placed();
      case PodPhase::kBound:
        return follow_bound();
      case PodPhase::kEnded:
      case PodPhase::kForeign:
        return;
    }
  }

  void follow_waiting() {
    if (!in_.managed && in_.job == nullptr) return;
    if (!slurm_known()) {
      if (pod().condition(kConditionQueued) == nullptr)
        report_queued(false, "SlurmUnavailable", in_.snapshot == nullptr ? "no slurmrestd is known" : in_.snapshot->error);
      return;
    }
    if (!in_.snapshot->capabilities.external_jobs) {
      return report_queued(false, "Unsupported",
                           "Slurm " + in_.snapshot->capabilities.release + " has no external nodes and jobs, 25.11 and later have");
    }
    if (in_.job == nullptr) return submit();
    switch (phase_of(*in_.job)) {
      case JobPhase::kWaits:
        return wait_in_queue();
      case JobPhase::kRuns:
        return place_pod();
      case JobPhase::kEnded:
        return end_unbound();
      case JobPhase::kStarts:
      case JobPhase::kSuspended:
      case JobPhase::kUnclear:
        return report_queued(true, is_reason(in_.job->state) ? in_.job->state : "Unknown", job_text() + " is " + in_.job->state);
    }
  }

  void submit() {
    if (pod().gates.size() > 1)
      return report_queued(false, "OtherGates", "the pod has other scheduling gates, which must be removed first");
    auto wish = wish_of(pod(), *in_.settings);
    if (!wish) return report_queued(false, "Refused", wish.error().message);
    const Candidates nodes = candidates_for(pod(), *in_.hosts, *in_.snapshot, wish->partition.value_or(""));
    if (nodes.fitting == 0 && partitions_exist(wish->partition.value_or(""))) return report_queued(false, "NoNode", nodes.why);
    // Slurm itself says what it has against a partition that it does not know.
    if (nodes.fitting > 0 && !nodes.excluded.empty()) wish->excluded_nodes = nodes.excluded;
    const plan::StepId id{"submit", "Slurm job", name_, pod().meta.uid};
    const slurm::JobMark mark{slurm::Owner::kBridge, in_.installation, pod().meta.uid};
    const Json pods = Json::array({{{"ns", in_.key.ns}, {"name", in_.key.name}, {"uid", pod().meta.uid}}});
    out_.lane("job").add({id, "the pod waits for Slurm",
                          slurm::submit_job(in_.settings->cluster, mark, *std::move(wish), {{"pods", pods}})});
    out_.waits_on(in_.settings->cluster);
    const auto before = in_.context.outcomes.find(id);
    if (before == in_.context.outcomes.end() || !before->second.error || !is_refusal(before->second.error->code)) return;
    report_queued(false, "Refused", before->second.error->message);
    out_.wake_after(kRefusedAgain, "Slurm refused the job");
  }

  [[nodiscard]] bool partitions_exist(std::string_view names) const {
    if (names.empty()) return true;
    while (!names.empty()) {
      const std::size_t end = std::min(names.find(','), names.size());
      if (!in_.snapshot->partitions.contains(std::string(names.substr(0, end)))) return false;
      names.remove_prefix(std::min(end + 1, names.size()));
    }
    return true;
  }

  void wait_in_queue() {
    const slurm::Job& job = *in_.job;
    const std::string reason = job.details ? job.details->reason : "";
    // Slurm has not looked at a new job yet. It does so within a second.
    if (reason.empty() || reason == "None") out_.waits_on(in_.settings->cluster);
    update_candidates();
    std::string text = job_text() + " waits in partition " + job.partition + ": " + (reason.empty() ? "None" : reason);
    if (const auto start = expected_start(); !start.empty()) text += ", expected start " + start;
    report_queued(true, is_reason(reason) && reason != "None" ? reason : "Queued", std::move(text));
  }

  [[nodiscard]] std::string expected_start() const {
    const auto& start = in_.job->start;
    if (!start || start->since_epoch.count() == 0) return {};
    const auto steps = (start->since_epoch + kStartSteps - core::Duration{1}) / kStartSteps;
    return core::format_rfc3339(core::WallTime{kStartSteps * steps});
  }

  /// Nodes come and go while the job waits.
  void update_candidates() {
    if (!in_.own || !in_.job->details) return;
    const auto excluded = core::expand_hostlist(in_.job->details->excluded_nodes);
    if (!excluded) return;
    const Candidates nodes = candidates_for(pod(), *in_.hosts, *in_.snapshot, in_.job->partition);
    // A job that no node can run stays as it is: Slurm would refuse to exclude all nodes.
    if (nodes.fitting == 0) return;
    std::vector<std::string> have = *excluded;
    std::ranges::sort(have);
    if (have == nodes.excluded) return;
    slurm::JobWish wish;
    wish.excluded_nodes = nodes.excluded;
    out_.lane("job").add({{"update", "Slurm job", std::to_string(in_.job->id)},
                          "other nodes can run the pod",
                          slurm::update_job(*in_.own, std::move(wish))});
  }

  void place_pod() {
    if (in_.over) return end_unbound();
    wake_at_bind_limit();
    const std::string node = node_of(*in_.job);
    const auto host = in_.hosts->find(node);
    if (host == in_.hosts->end()) {
      return report_queued(true, "NoKubernetesNode",
                           job_text() + " holds " + (node.empty() ? "not exactly one node" : node + ", which is no Kubernetes node"));
    }
    if (!in_.leftovers.empty()) {
      out_.wake_after(kLeftoversAgain, "earlier pods end on the node");
      return report_queued(true, "NodeInUse", job_text() + " holds " + node + ", where pod " + in_.leftovers.front() + " still ends");
    }
    if (!in_.own) return out_.waits_on(in_.settings->cluster);
    const std::string why = job_text() + " runs on " + node;
    out_.lane("place").add({{"confirm", "Slurm job", std::to_string(in_.job->id)}, why, slurm::confirm_runs(*in_.own, node)});
    out_.lane("place").then().add({{"place", "Pod", name_},
                                   why,
                                   place(pod(), host->second->meta.name, node, in_.job->id),
                                   kPlaceLate});
    out_.intent.pods = 1;
  }

  void follow_placed() {
    if (in_.over) return end_unbound();
    if (!slurm_known() || in_.job == nullptr) return;
    wake_at_bind_limit();
    report_allocated();
  }

  void follow_bound() {
    if (in_.over) return end_bound();
    if (slurm_known() && in_.job != nullptr) report_allocated();
  }

  // --- The end of a pod ------------------------------------------------------------------------------------------------------

  [[nodiscard]] std::vector<Condition> end_conditions() const {
    const std::string message = in_.over->detail();
    return {{kConditionQueued, false, "Ended", message},
            {kConditionEnded, true, in_.over->reason(), message},
            {kConditionDisruptionTarget, true, "Slurm" + in_.over->reason(), message}};
  }

  void end_unbound() {
    if (!in_.over) return out_.waits_on(in_.settings->cluster);
    const PodOver& over = *in_.over;
    out_.lane("end").add({{"fail", "Pod", name_},
                          over.detail(),
                          fail_unbound(pod(), over, "Slurm" + over.reason(), over.detail(),
                                       condition_changes(pod(), end_conditions(), in_.context.now))});
    out_.intent.pods = 1;
  }

  void end_bound() {
    const PodOver& over = *in_.over;
    plan::Lane& lane = out_.lane("end");
    // The eviction replaces the reason of DisruptionTarget. Only the conditions of the bridge say what Slurm said.
    if (pod().condition(kConditionEnded) == nullptr) {
      Json changes = condition_changes(pod(), end_conditions(), in_.context.now);
      lane.add({{"report", "Pod", name_, "end"}, over.detail(), set_conditions(pod(), std::move(changes))}).then();
    }
    const core::Duration waited = in_.over_since ? in_.context.mono - *in_.over_since : core::Duration{0};
    if (waited < in_.settings->evict_limit) {
      auto evict = std::make_shared<kube::Evict>();
      evict->pod = in_.key;
      evict->uid = pod().meta.uid;
      evict->evidence = over;
      lane.add({{"evict", "Pod", name_}, over.detail(), std::move(evict)});
      out_.wake_after(in_.settings->evict_limit - waited, "a budget may keep the pod for so long");
    } else {
      lane.add({{"delete", "Pod", name_}, over.detail() + ", and it could not be evicted", kube::delete_pod(pod(), over)});
    }
    out_.intent.pods = 1;
  }

  // --- Reports ---------------------------------------------------------------------------------------------------------------

  void report_allocated() {
    report_queued(false, "Allocated", job_text() + " holds " + std::string(pod().meta.annotation(kAnnotationNode)));
  }

  void report_queued(bool status, std::string reason, std::string message) {
    Json changes =
        condition_changes(pod(), {{kConditionQueued, status, std::move(reason), std::move(message)}}, in_.context.now);
    if (changes.empty()) return;
    const std::string why = changes.front().at("message").get<std::string>();
    out_.lane("report").add({{"report", "Pod", name_, "queue"}, why, set_conditions(pod(), std::move(changes))});
  }

  void wake_at_bind_limit() {
    const core::Duration waited = in_.unbound_since ? in_.context.mono - *in_.unbound_since : core::Duration{0};
    out_.wake_after(std::max(in_.settings->bind_limit - waited, kLeftoversAgain), "Kubernetes has so long to bind the pod");
  }

  [[nodiscard]] const kube::SchedulingPodRecord& pod() const { return *in_.pod; }
  [[nodiscard]] bool slurm_known() const { return in_.snapshot != nullptr && in_.snapshot->complete(); }
  [[nodiscard]] std::string job_text() const { return "job " + std::to_string(in_.job->id); }

  const Observed& in_;
  std::string name_;
  plan::Plan out_;
};

}  // namespace

plan::Plan plan(const Observed& observed) {
  return Pass(observed).make();
}

}  // namespace bridge::jobs
