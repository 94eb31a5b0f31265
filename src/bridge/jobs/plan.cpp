#include "bridge/jobs/plan.hpp"

#include <algorithm>

#include "bridge/common/held.hpp"
#include "bridge/common/names.hpp"
#include "bridge/common/states.hpp"
#include "bridge/common/wish.hpp"

namespace bridge::jobs {
namespace {

constexpr std::string_view kPodFact = "pod";

class Pass : Steps {
 public:
  explicit Pass(const Observed& observed) : Steps(observed), in_(observed) {}

  plan::Plan make() {
    if (in_.installation.empty()) return std::move(out_);
    watch_node(in_, in_.asks_for_node);
    release_jobs();
    if (in_.pod) follow_pod();
    return std::move(out_);
  }

 private:
  // --- Jobs that no pod needs ------------------------------------------------------------------------------------------------

  void release_jobs() {
    for (const PodJob& named : in_.jobs) {
      if (phase_of(*named.job) == JobPhase::kEnded) continue;
      if (named.unneeded) {
        const bool ended = in_.pod && phase_of(pod()) == PodPhase::kEnded &&
                           submission_of(named.unneeded->job().mark()).root_uid == pod().meta.uid;
        release(named, *named.unneeded, in_.pod, ended ? pod().exit_code : std::nullopt);
      } else if (named.seems_unneeded) {
        await_snapshot();
      } else if (named.asks_for_pod) {
        look_for_pod();
      }
    }
  }

  /// Asks the API server whether the pod of the job is gone. If another process submitted the job, the cache of this process
  /// might not have the pod yet.
  void look_for_pod() {
    if (in_.context.facts.contains(std::string(kPodFact))) {
      out_.wake_after(kRefusedAgain, "whether the pod is gone could not be read");
      return;
    }
    look_for(std::string(kPodFact), kube::resources::kPod, in_.key);
  }

  // --- The pod ---------------------------------------------------------------------------------------------------------------

  void follow_pod() {
    if (pod().meta.terminating()) return follow_terminating(in_);
    switch (phase_of(pod())) {
      case PodPhase::kWaiting:
        return follow_waiting();
      case PodPhase::kPlaced:
      case PodPhase::kBound:
        return follow_placed(in_, in_.current && !is_released() ? &*in_.current : nullptr);
      case PodPhase::kEnded:
        // A pod without the condition SlurmQueued does not concern the bridge.
        if (pod().condition(kConditionQueued) != nullptr && !is_told_to_end(pod()))
          report(pod(), false, "Ended", "the pod has " + pod().phase);
        return;
      case PodPhase::kForeign:
        return follow_foreign(in_);
    }
  }

  /// Reports whether this pass releases the job of the pod.
  [[nodiscard]] bool is_released() const {
    return std::ranges::any_of(in_.jobs, [&](const PodJob& named) { return named.job == in_.job && named.unneeded; });
  }

  void follow_waiting() {
    if ((!in_.managed && in_.job == nullptr) || !can_submit(in_)) return;
    if (in_.job == nullptr) return submit_job();
    switch (phase_of(*in_.job)) {
      case JobPhase::kWaits:
        return wait_for_job();
      case JobPhase::kRuns:
        return place_pod();
      case JobPhase::kEnded:
        return gets_another_job(pod(), *in_.job) ? submit_job() : end_unbound(in_);
      case JobPhase::kStarts:
      case JobPhase::kSuspended:
      case JobPhase::kUnclear:
        return report_state(*in_.current, waiting());
    }
  }

  void submit_job() {
    if (pod().gates.size() > 1)
      return report(pod(), false, "OtherGates", "the pod has other scheduling gates, which must be removed first");
    auto wish = wish_of(pod(), *in_.settings);
    if (!wish) return report(pod(), false, "Refused", wish.error().message);
    Candidates nodes = candidates(waiting(), *wish);
    const bool refused = in_.current && is_refused(*in_.current->job);
    submit({pod().meta.uid, in_.attempts, *std::move(wish), std::move(nodes), refused ? &*in_.current : nullptr,
            in_.refused_since},
           waiting());
  }

  void wait_for_job() {
    const auto wish = wish_of(pod(), *in_.settings);
    const auto nodes = wish ? std::optional(candidates(waiting(), *wish)) : std::nullopt;
    if (const std::string why = wait_in_queue(*in_.current, nodes, waiting()); !why.empty()) replace_job(why);
  }

  void replace_job(const std::string& why) { replace(*in_.current, in_.replaceable, why, waiting()); }

  void place_pod() {
    const std::vector<std::string> nodes = nodes_of(*in_.job);
    if (nodes.size() != 1) return replace_job("job " + std::to_string(in_.job->id) + " does not hold exactly one node");
    if (ends_soon(*in_.job, waiting())) return replace_job("job " + std::to_string(in_.job->id) + " ends soon");
    const Seat seat{in_.pod, nodes.front()};
    if (const std::string why = misplaced(seat); !why.empty()) return replace_job(why);
    if (waits_for(in_.leftovers, *in_.current, seat.node, waiting())) return;
    place(*in_.current, {seat});
  }

  [[nodiscard]] const Pod& pod() const { return *in_.pod; }
  [[nodiscard]] Pods waiting() const { return {in_.pod}; }

  const Observed& in_;
};

}  // namespace

plan::Plan plan(const Observed& observed) {
  return Pass(observed).make();
}

}  // namespace bridge::jobs
