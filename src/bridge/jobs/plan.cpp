#include "bridge/jobs/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bridge/common/held.hpp"
#include "bridge/common/names.hpp"
#include "bridge/common/wish.hpp"
#include "bridge/jobs/placing.hpp"
#include "bridge/jobs/states.hpp"
#include "core/hash.hpp"
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
/// How soon a pass follows that needs a newer snapshot. A new snapshot wakes a key only if something changed.
constexpr core::Duration kSnapshotAgain{1000};
/// How often what Slurm or the API server refused is tried again, without a change that could help.
constexpr core::Duration kRefusedAgain{30000};
/// How often the same wish is submitted again that slurmctld refused. Each refusal leaves a record in slurmctld and slurmdbd.
constexpr core::Duration kSubmitAgain{5 * 60 * 1000};
/// Expected starts are rounded to this time, because Slurm changes its estimate often.
constexpr core::Duration kStartSteps{10 * 60 * 1000};
/// Slurm expects a job without a time limit to run for a year. A start so far away says nothing.
constexpr core::Duration kStartAtMost{core::Duration{24 * 60 * 60 * 1000} * 360};
/// How long Slurm may be silent before a pod that waits is told. A process has not asked it yet when it starts.
constexpr core::Duration kUnanswered{5000};
constexpr std::string_view kPodFact = "pod", kNodeFact = "node";

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
    watch_node();
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
        release(*named.job, *named.unneeded);
      } else if (named.seems_unneeded) {
        await_snapshot();
      } else if (named.asks_for_pod) {
        look_for_pod();
      }
    }
  }

  /// The node of the bound pod may be silent. After a limit, its job is released.
  void watch_node() {
    if (!in_.silent_since) return;
    const core::Duration waited = in_.context.mono - *in_.silent_since;
    const core::Duration limit = in_.settings->silence_limit;
    out_.wake_after(waited < limit ? limit - waited : kRefusedAgain, "the node of the pod is not ready");
    if (in_.asks_for_node) look_for(kNodeFact, kube::resources::kNode, {"", pod().node_name});
  }

  /// Slurm ends every external job as CANCELLED. Its comment says what became of the pod.
  void release(const slurm::Job& job, const Unneeded& evidence) {
    const std::string number = std::to_string(job.id);
    plan::Lane& lane = out_.lane("release job " + number);
    if (evidence.pod_may_run()) {
      Json changes = condition_changes(
          pod(),
          {{kConditionQueued, false, "Ended", evidence.detail()}, {kConditionEnded, true, "NodeNotReady", evidence.detail()}},
          in_.context.now);
      if (!is_told_to_end(pod()))
        lane.add({{"report", "Pod", name_, "end"}, evidence.detail(), set_conditions(pod(), std::move(changes))}).then();
    }
    const std::string comment = job.details ? job.details->comment : "";
    const plan::StepId id{"comment", "Slurm job", number};
    if (job.holds_nodes() && comment.find(evidence.detail()) == std::string::npos && !has_failed(id) && may_update(job)) {
      slurm::JobWish wish;
      wish.comment = comment.empty() ? evidence.detail() : comment + "; " + evidence.detail();
      lane.add({id, evidence.detail(), slurm::update_job(evidence.job(), std::move(wish))}).then();
    }
    record_exit_code(job, evidence);
    lane.add({{"cancel", "Slurm job", number}, evidence.detail(), slurm::cancel_job(evidence.job())});
    out_.intent.jobs += 1;
  }

  [[nodiscard]] bool has_failed(const plan::StepId& id) const {
    const auto before = in_.context.outcomes.find(id);
    return before != in_.context.outcomes.end() && before->second.state == plan::Outcome::State::kFailed;
  }

  /// If an excluded node is gone, slurmctld refuses every change of the job, and then forgets which nodes are excluded
  /// (_update_job in job_mgr.c).
  [[nodiscard]] bool may_update(const slurm::Job& job) const {
    const auto excluded = core::expand_hostlist(job.details ? job.details->excluded_nodes : "");
    return excluded &&
           std::ranges::all_of(*excluded, [&](const std::string& name) { return in_.snapshot->node(name) != nullptr; });
  }

  /// The job is cancelled whether this succeeds or not.
  void record_exit_code(const slurm::Job& job, const Unneeded& evidence) {
    const bool ended =
        in_.pod && phase_of(pod()) == PodPhase::kEnded && submission_of(evidence.job().mark()).pod_uid == pod().meta.uid;
    if (!ended || pod().exit_code.value_or(0) == 0 || !in_.snapshot->capabilities.slurmdb || !job.holds_nodes()) return;
    out_.lane("record").add({{"record", "Slurm job", std::to_string(job.id)},
                             evidence.detail(),
                             slurm::record_exit_code(evidence.job(), *pod().exit_code)});
  }

  void await_snapshot() {
    if (!slurm_known()) return;
    out_.waits_on(in_.settings->cluster);
    out_.wake_after(kSnapshotAgain, "a newer answer of Slurm is needed");
  }

  /// The cache may be behind another process that submitted the job, so the API server is asked.
  void look_for_pod() {
    if (in_.context.facts.contains(std::string(kPodFact))) {
      out_.wake_after(kRefusedAgain, "whether the pod is gone could not be read");
      return;
    }
    look_for(kPodFact, kube::resources::kPod, in_.key);
  }

  void look_for(std::string_view fact, const kube::Resource& resource, const kube::Key& key) {
    auto get = std::make_shared<kube::Get>();
    get->resource = resource;
    get->key = key;
    out_.need({std::string(fact), std::move(get)});
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
        // A pod without the condition does not concern the bridge.
        if (pod().condition(kConditionQueued) != nullptr && !is_told_to_end(pod()))
          report_queued(false, "Ended", "the pod has " + pod().phase);
        return;
      case PodPhase::kForeign:
        return;
    }
  }

  void follow_waiting() {
    if (!in_.managed && in_.job == nullptr) return;
    if (!slurm_known()) return report_unanswered();
    if (!in_.snapshot->capabilities.external_jobs) {
      return report_queued(
          false, "Unsupported",
          "Slurm " + in_.snapshot->capabilities.release + " has no external nodes and jobs, 25.11 and later have");
    }
    if (in_.job == nullptr) return submit();
    if (job_ended() && (is_refused(*in_.job) || replaced_job_of(pod().meta) == in_.job->id)) return submit();
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
        return report_queued(true, is_reason(in_.job->state) ? in_.job->state : "Unknown",
                             job_text() + " is " + in_.job->state);
    }
  }

  /// A condition that the pod has already is not lost: it says what was known last.
  void report_unanswered() {
    if (pod().condition(kConditionQueued) != nullptr) return;
    const core::Duration waited = in_.unanswered_since ? in_.context.mono - *in_.unanswered_since : core::Duration{0};
    if (waited < kUnanswered) return out_.wake_after(kUnanswered - waited, "Slurm may answer until then");
    report_queued(false, "SlurmUnavailable", in_.snapshot == nullptr ? "no slurmrestd is known" : in_.snapshot->error);
  }

  void submit() {
    if (pod().gates.size() > 1)
      return report_queued(false, "OtherGates", "the pod has other scheduling gates, which must be removed first");
    auto wish = wish_of(pod(), *in_.settings);
    if (!wish) return report_queued(false, "Refused", wish.error().message);
    const Candidates nodes = candidates(*wish);
    if (nodes.fitting == 0 && partitions_exist(wish->partition.value_or(""))) return report_queued(false, "NoNode", nodes.why);
    // Slurm itself says what it has against a partition that it does not know.
    if (nodes.fitting > 0 && !nodes.excluded.empty()) wish->excluded_nodes = nodes.excluded;
    const std::string digest = core::short_digest(slurm::to_json(*wish).dump());
    const plan::StepId id{"submit", "Slurm job", name_, pod().meta.uid + " " + digest};
    if (waits_after_refusal(digest) || waits_after_error(id)) {
      out_.remember(id);
      return;
    }
    const slurm::JobMark mark{slurm::Owner::kBridge, in_.installation, key_of(pod().meta.uid, in_.attempts + 1)};
    const Json pods = Json::array({{{"ns", in_.key.ns}, {"name", in_.key.name}, {"uid", pod().meta.uid}}});
    Json more{{"pods", pods}, {"wish", digest}};
    if (in_.life.since != 0) more["life"] = {{"since", in_.life.since}, {"last", in_.life.last}};
    out_.lane("job").add(
        {id, "the pod waits for Slurm", slurm::submit_job(in_.settings->cluster, mark, *std::move(wish), more)});
    out_.waits_on(in_.settings->cluster);
  }

  /// Reports whether Slurm took no job for the very same wish lately, and tells why. Each attempt uses up the number of a job.
  bool waits_after_error(const plan::StepId& id) {
    const auto before = in_.context.outcomes.find(id);
    if (before == in_.context.outcomes.end() || !before->second.error || !is_refusal(before->second.error->code)) return false;
    report_queued(false, "Refused", before->second.error->message);
    const core::Duration waited = in_.context.mono - before->second.last;
    if (waited >= kRefusedAgain) return false;
    out_.wake_after(kRefusedAgain - waited, "the job is submitted again then");
    return true;
  }

  /// Reports whether slurmctld refused the very same wish lately, and tells.
  bool waits_after_refusal(const std::string& digest) {
    if (in_.job == nullptr || !is_refused(*in_.job) || in_.wish != digest || !in_.refused_since) return false;
    const core::Duration waited = in_.context.mono - *in_.refused_since;
    if (waited >= kSubmitAgain) return false;
    report_queued(false, "Refused", "Slurm refused " + job_text() + ": BadConstraints, no node has what the pod asks for");
    out_.wake_after(kSubmitAgain - waited, "the job is submitted again then");
    return true;
  }

  [[nodiscard]] Candidates candidates(const slurm::JobWish& wish) const {
    return candidates_for(pod(), *in_.hosts, *in_.snapshot, wish.partition.value_or(""));
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
    if (const std::string why = update_candidates(); !why.empty()) return replace_job(why);
    std::string text = job_text() + " waits in partition " + job.partition + ": " + (reason.empty() ? "None" : reason);
    if (const auto start = expected_start(); !start.empty()) text += ", expected start " + start;
    report_queued(true, is_reason(reason) && reason != "None" ? reason : "Queued", std::move(text));
  }

  [[nodiscard]] std::string expected_start() const {
    const auto& start = in_.job->start;
    if (!start || start->since_epoch.count() == 0 || *start - in_.context.now > kStartAtMost) return {};
    const auto steps = (start->since_epoch + kStartSteps - core::Duration{1}) / kStartSteps;
    return core::format_rfc3339(core::WallTime{kStartSteps * steps});
  }

  /// Nodes come and go while the job waits. Returns why the job must be replaced, or "".
  std::string update_candidates() {
    if (!in_.own || !in_.job->details) return {};
    auto have = core::expand_hostlist(in_.job->details->excluded_nodes);
    const auto asked = wish_of(pod(), *in_.settings);
    if (!have || !asked) return {};
    const Candidates nodes = candidates(*asked);
    // A job that no node can run stays as it is: Slurm would refuse to exclude all nodes.
    if (nodes.fitting == 0) return {};
    const bool may = may_update(*in_.job);
    std::erase_if(*have, [&](const std::string& name) { return in_.snapshot->node(name) == nullptr; });
    std::ranges::sort(*have);
    const plan::StepId id{"update", "Slurm job", std::to_string(in_.job->id)};
    if (*have == nodes.excluded && !wakes_held(id)) return {};
    if (!may) return "one of its excluded nodes is gone, so that Slurm does not take other ones";
    slurm::JobWish wish;
    wish.excluded_nodes = nodes.excluded;
    out_.lane("job").add({id, "other nodes can run the pod", slurm::update_job(*in_.own, std::move(wish))});
    return {};
  }

  /// slurmctld holds a job that no node can run, until somebody changes the job. Reports whether that is due.
  bool wakes_held(const plan::StepId& id) {
    if (in_.job->details->reason != "BadConstraints") return false;
    const auto before = in_.context.outcomes.find(id);
    const core::Duration waited = before == in_.context.outcomes.end() ? kRefusedAgain : in_.context.mono - before->second.last;
    if (waited >= kRefusedAgain) return true;
    out_.remember(id);
    out_.wake_after(kRefusedAgain - waited, "Slurm looks at the job again then");
    return false;
  }

  /// Cancels the job of a pod that still has its gate. The pod notes it first, so that this is not taken for an end of the pod.
  void replace_job(const std::string& why) {
    if (!in_.replaceable) return await_snapshot();
    plan::Lane& lane = out_.lane("replace");
    const std::string number = std::to_string(in_.job->id);
    if (replaced_job_of(pod().meta) != in_.job->id)
      lane.add({{"note", "Pod", name_, number}, why, note_replaced(pod(), in_.job->id)}).then();
    lane.add({{"replace", "Slurm job", name_, number}, why, slurm::cancel_job(in_.replaceable->job()), kPlaceLate});
  }

  void place_pod() {
    const std::string node = node_of(*in_.job);
    const auto host = in_.hosts->find(node);
    if (node.empty()) return replace_job(job_text() + " does not hold exactly one node");
    if (host == in_.hosts->end()) return replace_job(node + " is no Kubernetes node");
    if (const std::string why = misfit(pod(), *host->second); !why.empty()) return replace_job(node + " " + why);
    if (!in_.leftovers.empty()) {
      out_.wake_after(kLeftoversAgain, "earlier pods end on the node");
      return report_queued(true, "NodeInUse",
                           job_text() + " holds " + node + ", where pod " + in_.leftovers.front() + " still ends");
    }
    if (!in_.own || !is_held(node)) return await_snapshot();
    const std::string why = job_text() + " runs on " + node;
    out_.lane("place").add({{"confirm", "Slurm job", std::to_string(in_.job->id)}, why, slurm::confirm_runs(*in_.own, node)});
    out_.lane("place").then().add(
        {{"place", "Pod", name_}, why, place(pod(), host->second->meta.name, node, id_of(*in_.job)), kPlaceLate});
    out_.intent.pods = 1;
  }

  /// Reports whether the prolog of the node would hold native jobs back for the pod. If somebody else uses the field, it
  /// cannot.
  [[nodiscard]] bool is_held(const std::string& name) const {
    const slurm::Node* node = in_.snapshot->node(name);
    if (!in_.settings->holds_native_jobs || node == nullptr || node->state.has("EXTERNAL")) return true;
    const auto jobs = jobs_in(node->extra);
    return !jobs || jobs->contains(in_.job->id);
  }

  void follow_placed() {
    if (in_.over || job_ended()) return end_unbound();
    if (!slurm_known()) return;
    if (in_.job == nullptr) return report_missing();
    wake_at_bind_limit();
    follow_running();
  }

  void follow_bound() {
    if (in_.over) return end_bound();
    if (!slurm_known()) return;
    if (in_.job == nullptr) return report_missing();
    if (is_released(*in_.job)) return;
    if (const auto leaves = leaves_at(pod(), *in_.job))
      out_.wake_after(std::max(*leaves - in_.context.now, kSnapshotAgain), "the pod must leave before its job ends");
    job_ended() ? await_snapshot() : follow_running();
  }

  /// Reports whether this pass releases the job.
  [[nodiscard]] bool is_released(const slurm::Job& job) const {
    return std::ranges::any_of(in_.jobs, [&](const NamedJob& named) { return named.job.get() == &job && named.unneeded; });
  }

  void follow_running() {
    if (phase_of(*in_.job) != JobPhase::kRuns) return;
    restore_lost_words();
    report_allocated();
  }

  /// Users may have removed or changed them. The bridge itself does not rely on them.
  void restore_lost_words() {
    const bool labelled = pod().meta.label(kLabelJobId) == std::to_string(in_.job->id);
    if (labelled && !pod().meta.annotation(kAnnotationNode).empty()) return;
    const auto is_its = [&](const auto& host) { return host.second->meta.name == pod().pinned_to; };
    const auto host = std::ranges::find_if(*in_.hosts, is_its);
    if (host == in_.hosts->end()) return;
    out_.lane("words").add(
        {{"restore", "Pod", name_}, "its label or its annotation was removed", restore_words(pod(), host->first, in_.job->id)});
  }

  [[nodiscard]] bool job_ended() const { return in_.job != nullptr && phase_of(*in_.job) == JobPhase::kEnded; }

  // --- The end of a pod ------------------------------------------------------------------------------------------------------

  [[nodiscard]] std::vector<Condition> end_conditions() const {
    const std::string message = in_.over->detail();
    return {{kConditionQueued, false, "Ended", message},
            {kConditionEnded, true, in_.over->reason(), message},
            {kConditionDisruptionTarget, true, "Slurm" + in_.over->reason(), message}};
  }

  void end_unbound() {
    if (!in_.over) return await_snapshot();
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
    if (!is_told_to_end(pod())) {
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
    std::vector<Condition> wanted{{kConditionQueued, false, "Allocated", job_text() + " holds " + pod().pinned_to}};
    if (is_told_to_end(pod())) {
      if (!in_.own || in_.silent_since) return;
      // Somebody has moved the end of the job, or the node is ready again.
      wanted.push_back({kConditionEnded, false, "JobRuns", job_text() + " runs on"});
    }
    report(wanted);
  }

  /// Nothing shows that slurmctld has not lost its state. In namespaces that are not managed, the job may be one of another
  /// Slurm.
  void report_missing() {
    if (!in_.managed) return;
    report_queued(false, "JobMissing",
                  "Slurm does not have job " + std::to_string(placed_for(pod()).front().number) +
                      ", and may have lost it; the pod is left alone");
    out_.wake_after(kRefusedAgain, "a younger job may show that Slurm has not lost its state");
  }

  void report_queued(bool status, std::string reason, std::string message) {
    report({{kConditionQueued, status, std::move(reason), std::move(message)}});
  }

  void report(const std::vector<Condition>& wanted) {
    Json changes = condition_changes(pod(), wanted, in_.context.now);
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
