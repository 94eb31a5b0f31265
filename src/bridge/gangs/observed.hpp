// The facts for the plan of a group of pods and its jobs, copied from the caches at one moment.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bridge/common/steps.hpp"

namespace bridge::gangs {

/// A pod of the group. `job`: the job that the pod was placed for. For a pod that waits, `job` is a job that was submitted for
/// the pod: a job that has started, or else the oldest that has not ended. If all have ended, `job` is the youngest, or null if
/// the pod gets another job.
struct Member : PodState {
  bool asks_for_node = false;  ///< The node of the pod must be read live, because it might be ready again.
};

struct GangJob : NamedJob {
  std::set<std::string> uids;  ///< The UIDs of the pods that the job was submitted for. Their number is the size of the group.
  std::vector<const Member*> placed;   ///< The pods that were placed for the job and have not ended.
  std::vector<const Member*> waiting;  ///< The pods that the job was submitted for and that wait.
  std::vector<const Member*> ended;    ///< The pods that were placed for the job and have ended.
  /// Set if no pod runs for the job. Requires the live list of pods, fact(), which is read only if the plan asks for it.
  std::optional<Unneeded> unused;
  std::optional<Unneeded> broken;  ///< Set if the job must end although some of its pods might run.
  PodPtr broken_by;                ///< The pod whose node has not been ready for too long, if the job must end for this cause.
  std::map<std::string, Leftovers> leftovers;  ///< By node.

  [[nodiscard]] bool ended_already() const;
  /// Reports whether a pod was placed for the job, as far as the cache shows. If so, the other pods are placed one by one.
  [[nodiscard]] bool started() const { return !placed.empty() || !ended.empty(); }
  [[nodiscard]] bool needed() const { return !placed.empty() || !waiting.empty(); }
  [[nodiscard]] std::string fact() const { return "pods of job " + std::to_string(job->id); }
};

struct Observed : Facts {
  std::vector<Member> members;  ///< In the order of the group.
  std::vector<GangJob> jobs;    ///< By number.
  /// The greatest attempt number of the submissions, by the UID of the group's object.
  std::map<std::string, int> attempts;
  std::optional<core::MonoTime> short_since;    ///< Since when pods are missing for a job that has not started.
  std::optional<core::MonoTime> refused_since;  ///< Since when it is known that slurmctld refused the youngest job.

  Observed() = default;
  Observed(const Observed&) = delete;  // Jobs point to members.
  Observed& operator=(const Observed&) = delete;
};

}  // namespace bridge::gangs
