// The facts for the plan of a group of pods and its jobs, copied from the caches at one moment.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bridge/common/steps.hpp"

namespace bridge::gangs {

/// A pod of the group. `job` is the one that it was placed for. For a pod that waits: the oldest job that was submitted for it
/// and has not ended; else the youngest that has ended, unless the pod gets another one.
struct Member : PodState {
  bool asks_for_node = false;  ///< Whether its node is still not ready must be looked up live.
};

struct GangJob : NamedJob {
  std::set<std::string> uids;  ///< The UIDs of the pods that it was submitted for. Their number is the size of the group.
  std::vector<const Member*> placed;   ///< The pods that were placed for it and have not ended.
  std::vector<const Member*> waiting;  ///< The pods that it was submitted for, and that wait for it.
  std::vector<const Member*> ended;    ///< The pods that were placed for it and have ended.
  /// Set if no pod runs for it. The list of pods that shows this is read live only if it is asked for.
  std::optional<Unneeded> unused;
  std::optional<Unneeded> broken;  ///< Set if it must end though pods may run for it. `broken_by`: such a pod, or null.
  PodPtr broken_by;
  std::map<std::string, Leftovers> leftovers;  ///< By node.

  [[nodiscard]] bool ended_already() const;
  /// Reports whether a pod was placed for it, as far as that can be seen. Then the others follow one by one.
  [[nodiscard]] bool started() const { return !placed.empty() || !ended.empty(); }
  [[nodiscard]] bool needed() const { return !placed.empty() || !waiting.empty(); }
  [[nodiscard]] std::string fact() const { return "pods of job " + std::to_string(job->id); }
};

struct Observed : Facts {
  std::vector<Member> members;                  ///< In the order of the group.
  std::vector<GangJob> jobs;                    ///< By number.
  std::map<std::string, int> attempts;          ///< The greatest number of a submission, by the UID of the group's object.
  std::optional<core::MonoTime> short_since;    ///< Since when pods are missing for a job that has not started.
  std::optional<core::MonoTime> refused_since;  ///< Since when the youngest job is one that slurmctld refused.

  Observed() = default;
  Observed(const Observed&) = delete;  // Jobs point to members.
  Observed& operator=(const Observed&) = delete;
};

}  // namespace bridge::gangs
