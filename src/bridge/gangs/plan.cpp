#include "bridge/gangs/plan.hpp"

#include <algorithm>
#include <ranges>

#include "bridge/common/groups.hpp"
#include "bridge/common/names.hpp"
#include "bridge/common/states.hpp"
#include "bridge/common/wish.hpp"
#include "bridge/gangs/seating.hpp"
#include "kube/acts.hpp"

namespace bridge::gangs {
namespace {

using core::Json;

/// The delay before the missing object of a group is read again. Users can create the object after its pods.
constexpr core::Duration kMissingAgain{5000};
/// The delay before a pass that needs a newer cache. A change of a pod of the group wakes the key earlier.
constexpr core::Duration kCacheAgain{1000};
const std::string kGroupFact = "group";

std::string text_of(const GangJob& job) {
  return "job " + std::to_string(job.job->id);
}

class Pass : Steps {
 public:
  explicit Pass(const Observed& observed) : Steps(observed), in_(observed) {}

  plan::Plan make() {
    if (in_.installation.empty()) return std::move(out_);
    for (const Member& member : in_.members) watch_node(member, member.asks_for_node);
    for (const GangJob& job : in_.jobs) release_unneeded(job);
    for (const Member& member : in_.members) follow(member);
    follow_waiting();
    return std::move(out_);
  }

 private:
  // --- Jobs that no pod needs ------------------------------------------------------------------------------------------------

  void release_unneeded(const GangJob& job) {
    if (job.ended_already()) return;
    if (job.broken) return release(job, *job.broken, job.broken_by, std::nullopt);
    if (job.needed()) return;
    if (job.unused) return release(job, *job.unused, nullptr, exit_code(job));
    look_for_pods(job);
  }

  /// Returns the greatest exit code of the pods of the job.
  [[nodiscard]] static std::optional<int> exit_code(const GangJob& job) {
    std::optional<int> out;
    for (const Member* member : job.ended) out = std::max(out, member->pod->exit_code);
    return out;
  }

  /// Asks the API server which pods run for the job, because the cache might lack pods that another process placed for the job.
  void look_for_pods(const GangJob& job) {
    if (!job.own) return await_snapshot();
    if (in_.context.facts.contains(job.fact()))
      return out_.wake_after(kRefusedAgain, "whether pods run for the job could not be read");
    auto list = std::make_shared<kube::List>();
    list->resource = kube::resources::kPod;
    list->ns = in_.key.ns;
    list->label_selector = std::string(kLabelJobId) + "=" + std::to_string(job.job->id);
    out_.need({job.fact(), std::move(list)});
  }

  // --- Pods ------------------------------------------------------------------------------------------------------------------

  void follow(const Member& member) {
    const Pod& pod = *member.pod;
    if (pod.meta.terminating()) return follow_terminating(member);
    switch (phase_of(pod)) {
      case PodPhase::kWaiting:
        return wait(member);
      case PodPhase::kPlaced:
      case PodPhase::kBound:
        return follow_placed(member, job_of(member));
      case PodPhase::kEnded:
        // A pod without the condition SlurmQueued does not concern the bridge.
        if (pod.condition(kConditionQueued) != nullptr && !is_told_to_end(pod))
          report(pod, false, "Ended", "the pod has " + pod.phase);
        return;
      case PodPhase::kForeign:
        return follow_foreign(member);
    }
  }

  /// Returns the job of a placed pod; null if the job is not listed or this pass releases it.
  [[nodiscard]] const GangJob* job_of(const Member& member) const {
    const auto job = std::ranges::find(in_.jobs, member.job, &GangJob::job);
    return job == in_.jobs.end() || job->broken ? nullptr : &*job;
  }

  void wait(const Member& member) {
    if (!member.managed && member.job == nullptr) return;
    if (!can_submit(member)) return;
    const bool job_ended = member.job != nullptr && phase_of(*member.job) == JobPhase::kEnded;
    if (job_ended || member.over) return end_unbound(member);
    if (member.pod->gates.size() > 1)
      return report(*member.pod, false, "OtherGates", "the pod has other scheduling gates, which must be removed first");
    if (member.job == nullptr) free_.push_back(member.pod);
  }

  // --- Pods that wait for a job ----------------------------------------------------------------------------------------------

  void follow_waiting() {
    if (!slurm_known() || !in_.snapshot->capabilities.external_jobs || in_.settings->retires) return;
    const GangJob* last = nullptr;
    for (const GangJob& job : in_.jobs) {
      if (job.ended_already() || job.broken || !job.needed()) continue;
      last = &job;
      follow_job(job);
    }
    if (free_.empty()) return;
    if (last != nullptr) return report(free_, false, "GroupFull", text_of(*last) + " of the group has no node for the pod");
    submit_job();
  }

  /// Returns the size and the UID of the group; nullopt if they are unknown. If the object of the group is missing, unreadable
  /// or wrong, reports this in the conditions of the pods.
  [[nodiscard]] std::optional<GroupSpec> group(const Pods& pods) {
    const auto fact = in_.context.facts.find(kGroupFact);
    const GroupObject object = object_of(in_.key);
    if (fact == in_.context.facts.end()) {
      look_for(kGroupFact, object.resource, object.key);
      return std::nullopt;
    }
    if (!fact->second.value) {
      const core::Error& error = fact->second.value.error();
      const bool missing = error.code == core::ErrorCode::kNotFound;
      out_.wake_after(missing ? kMissingAgain : kRefusedAgain, "the object of the group is read again");
      if (missing)
        report(pods, false, "NoGroup", object.resource.kind + " " + object.key.name + " does not exist");
      else
        report(pods, false, "NoGroup", object.resource.kind + " " + object.key.name + " could not be read: " + error.message);
      return std::nullopt;
    }
    auto spec = read_group(in_.key, *fact->second.value);
    if (spec) return *std::move(spec);
    out_.wake_after(kRefusedAgain, "the object of the group is read again");
    report(pods, false, "Refused", spec.error().message);
    return std::nullopt;
  }

  /// Removes from `free_` the first pods that belong to the object with this UID, and returns them. `most`: the largest number.
  [[nodiscard]] Pods take(const std::string& uid, std::size_t most) {
    Pods out, rest;
    for (const PodPtr& pod : free_) {
      const bool taken = out.size() < most && belongs_to(pod->meta, in_.key, uid);
      (taken ? out : rest).push_back(pod);
    }
    free_ = std::move(rest);
    return out;
  }

  void submit_job() {
    const auto spec = group(free_);
    if (!spec) return;
    const auto size = static_cast<std::size_t>(spec->size);
    const Pods pods = take(spec->uid, size);
    if (pods.size() < size || size == 0) {
      const std::string there = std::to_string(pods.size()) + " of the " + std::to_string(size) + " pods";
      report(pods, false, "GroupIncomplete", in_.key.name + " has " + there + " that it needs");
      out_.wake_after(kRefusedAgain, "the size of the group may change");
    } else {
      submit_for(*spec, pods);
    }
    report(free_, false, "GroupFull", in_.key.name + " has the " + std::to_string(size) + " pods that it needs already");
  }

  void submit_for(const GroupSpec& spec, const Pods& pods) {
    auto wish = wish_of_group(object_of(in_.key).key.name, pods, *in_.settings);
    if (!wish) return report(pods, false, "Refused", wish.error().message);
    Candidates nodes = candidates(pods, *wish);
    const auto attempts = in_.attempts.find(spec.uid);
    const bool refused = !in_.jobs.empty() && is_refused(*in_.jobs.back().job);
    submit({spec.uid, attempts == in_.attempts.end() ? 0 : attempts->second, *std::move(wish), std::move(nodes),
            refused ? &in_.jobs.back() : nullptr, in_.refused_since},
           pods);
  }

  // --- A job that waits or runs ----------------------------------------------------------------------------------------------

  void follow_job(const GangJob& job) {
    const auto pods = pods_for(job);
    if (!pods || pods->empty()) return;
    const bool complete = job.placed.size() + pods->size() >= job.uids.size();
    if (!complete && !job.started() && is_short_for_long()) return replace_job(job, *pods, in_.key.name + " lacks pods");
    switch (phase_of(*job.job)) {
      case JobPhase::kWaits:
        return wait_for_job(job, *pods);
      case JobPhase::kRuns:
        if (complete || job.started()) return place_pods(job, *pods);
        return report(*pods, true, "GroupIncomplete",
                      text_of(job) + " runs, and has " + std::to_string(pods->size()) + " of its " +
                          std::to_string(job.uids.size()) + " pods");
      case JobPhase::kStarts:
      case JobPhase::kSuspended:
      case JobPhase::kUnclear:
        return report_state(job, *pods);
      case JobPhase::kEnded:
        return;
    }
  }

  /// Returns the pods that wait for the job, in the order of the group: pods for which the job was submitted, and other pods in
  /// place of pods that are gone. nullopt: the object of the group must be read first.
  [[nodiscard]] std::optional<Pods> pods_for(const GangJob& job) {
    Pods out;
    for (const Member* member : job.waiting) out.push_back(member->pod);
    const std::size_t there = job.placed.size() + out.size();
    if (there >= job.uids.size() || free_.empty()) return out;
    // No pods are passed here: follow_waiting() reports on the pods that get no place.
    const auto spec = group({});
    if (!spec) return out.empty() ? std::nullopt : std::optional(out);
    if (spec->uid == submission_of(job.mark).root_uid)
      std::ranges::copy(take(spec->uid, job.uids.size() - there), std::back_inserter(out));
    std::ranges::sort(out, [](const PodPtr& a, const PodPtr& b) { return comes_before(a->meta, b->meta); });
    return out;
  }

  [[nodiscard]] bool is_short_for_long() {
    if (!in_.short_since) return false;
    const core::Duration waited = in_.context.mono - *in_.short_since;
    const core::Duration limit = in_.settings->bind_limit;
    if (waited >= limit) return true;
    out_.wake_after(limit - waited, "the group has so long to get all of its pods");
    return false;
  }

  void wait_for_job(const GangJob& job, const Pods& pods) {
    const auto wish = wish_of_group(in_.key.name, pods, *in_.settings);
    std::optional<Candidates> nodes;
    if (wish && pods.size() == job.uids.size()) nodes = candidates(pods, *wish);
    if (const std::string why = wait_in_queue(job, nodes, pods); !why.empty()) replace_job(job, pods, why);
  }

  /// Replaces a job if no pod runs for it. If this is unknown, asks the API server.
  void replace_job(const GangJob& job, const Pods& pods, const std::string& why) {
    if (!job.unused) return look_for_pods(job);
    Pods noted;
    for (const PodPtr& pod : pods) {
      if (job.uids.contains(pod->meta.uid)) noted.push_back(pod);
    }
    replace(job, job.unused, why, noted);
  }

  void place_pods(const GangJob& job, Pods pods) {
    const std::vector<std::string> nodes = nodes_of(*job.job);
    if (nodes.size() != job.uids.size() && !job.started())
      return replace_job(job, pods, text_of(job) + " does not hold a node for each pod");
    std::vector<std::string> taken;
    for (const Member* member : job.placed) taken.push_back(slurm_node(*member->pod));
    std::vector<Seat> seats;
    for (auto& [pod, node] : seat(pods, nodes, taken)) seats.push_back({pod, node});
    for (const Seat& one : seats) taken.push_back(one.node);
    if (!job.started()) {
      if (ends_soon(*job.job, pods)) return replace_job(job, pods, text_of(job) + " ends soon");
      for (const Seat& one : seats) {
        if (const std::string why = misplaced(one); !why.empty()) return replace_job(job, pods, why);
      }
    } else if (ends_soon(*job.job, pods)) {
      return report(pods, true, "JobEndsSoon", text_of(job) + " ends soon, and takes no further pods");
    }
    if (seats.empty()) return report(pods, true, "NodeInUse", text_of(job) + " has no free node yet");
    std::vector<std::string> free = nodes;
    std::erase_if(free, [&](const std::string& node) { return std::ranges::find(taken, node) != taken.end(); });
    move_misplaced(job, seats, std::move(free), pods);
    bool asks = false;
    std::vector<Seat> ready;
    for (const Seat& one : seats) {
      const auto leftovers = job.leftovers.find(one.node);
      // The pods of a started job are placed one by one.
      const Pods waiting = job.started() ? Pods{one.pod} : pods;
      if (leftovers == job.leftovers.end() || !waits_for(leftovers->second, job, one.node, waiting)) {
        ready.push_back(one);
      } else if (leftovers->second.pods.empty()) {
        asks = true;
      } else if (!job.started()) {
        return;
      }
    }
    if (asks) return;
    seats = std::move(ready);
    if (!seats.empty() && knows_placed(job)) place(job, seats);
  }

  /// Moves pods that cannot run on their nodes to `free` nodes of the job, if the job was not submitted for these pods. If no
  /// free node can run such a pod, the pod waits. The pods that the job was submitted for are not moved: once one of them is
  /// placed, the others are placed too, and the job ends if Kubernetes does not bind them.
  void move_misplaced(const GangJob& job, std::vector<Seat>& seats, std::vector<std::string> free, Pods& pods) {
    const auto fits = [&](const Seat& one) { return job.uids.contains(one.pod->meta.uid) || misplaced(one).empty(); };
    const auto unfit = std::ranges::stable_partition(seats, fits);
    const std::vector<Seat> moved(unfit.begin(), unfit.end());
    seats.erase(unfit.begin(), unfit.end());
    for (const Seat& one : moved) free.push_back(one.node);
    for (const Seat& one : moved) {
      const auto node = std::ranges::find_if(free, [&](const std::string& name) { return misplaced({one.pod, name}).empty(); });
      if (node != free.end()) {
        seats.push_back({one.pod, *node});
        free.erase(node);
        continue;
      }
      report(*one.pod, false, "NoNode", text_of(job) + " has no node that can run the pod: " + misplaced(one));
      std::erase(pods, one.pod);
    }
  }

  /// Reports whether the cache has all pods that run for the job. The cache might lack pods that another process placed, and
  /// two pods must not get the same node.
  [[nodiscard]] bool knows_placed(const GangJob& job) {
    const auto fact = in_.context.facts.find(job.fact());
    if (fact == in_.context.facts.end() || !fact->second.value) {
      look_for_pods(job);
      return false;
    }
    for (const Json& pod : fact->second.value->value("items", Json::array())) {
      const std::string uid = core::get_string(pod, {"metadata", "uid"});
      const auto is_it = [&](const Member* member) { return member->pod->meta.uid == uid; };
      if (!runs_for(pod, id_of(*job.job)) || std::ranges::any_of(job.placed, is_it)) continue;
      out_.wake_after(kCacheAgain, "the cache does not have all pods of the job yet");
      return false;
    }
    return true;
  }

  /// Returns the name in Slurm of the node to which a pod is pinned. Does not use the annotation of the pod, because users can
  /// change the annotation.
  [[nodiscard]] std::string slurm_node(const Pod& pod) const {
    const auto is_its = [&](const auto& host) { return host.second->meta.name == pod.pinned_to; };
    const auto host = std::ranges::find_if(*in_.hosts, is_its);
    return host == in_.hosts->end() ? pod.pinned_to : host->first;
  }

  const Observed& in_;
  Pods free_;  ///< The pods that wait and for which no job was submitted.
};

}  // namespace

bool GangJob::ended_already() const {
  return phase_of(*job) == JobPhase::kEnded;
}

plan::Plan plan(const Observed& observed) {
  return Pass(observed).make();
}

}  // namespace bridge::gangs
