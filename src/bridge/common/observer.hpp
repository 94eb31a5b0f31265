// What the controllers of jobs share when they observe.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "bridge/common/caches.hpp"
#include "bridge/common/fits.hpp"
#include "bridge/common/job_table.hpp"
#include "bridge/common/steps.hpp"
#include "kube/cache/recorder.hpp"
#include "slinky/wiring.hpp"

namespace bridge {

/// Reports whether jobs are submitted for the pod, by its namespace or by what admission has noted on it.
[[nodiscard]] bool manages(const Settings& settings, const Pod& pod);
/// Reports whether a pod with the record of a placed pod may be one that the bridge placed: it manages the pod, or Slurm has
/// its job. Anybody can write the record into a pod of another namespace.
[[nodiscard]] bool vouches_for(const Settings& settings, const JobTable& table, const Pod& pod);
/// Returns the pods that may have been placed for this job, which has ended, although they still have their gates in the cache:
/// the cache may be behind. No pod that is being deleted is placed.
[[nodiscard]] std::vector<PodPtr> maybe_placed(const Caches& caches, const JobTable::Row& row);
/// Remembers which pods were not placed for jobs that have ended. None of them can be placed any more, and a group of hundreds
/// of pods would be read again for each of its former nodes.
class NeverPlaced {
 public:
  [[nodiscard]] bool contains(const Pod& pod, const slurm::Job& job) const { return known_.contains(key(pod, job)); }
  void add(const Pod& pod, const slurm::Job& job) {
    // What is forgotten is read again.
    if (known_.size() >= kMost) known_.clear();
    known_.insert(key(pod, job));
  }

 private:
  static constexpr std::size_t kMost = 20000;
  static std::string key(const Pod& pod, const slurm::Job& job);
  std::set<std::string, std::less<>> known_;
};

/// The time from the last look at a job until every patch has ended that places a pod for it: a pass begins no act after three
/// seconds, and a request may take ten.
inline constexpr core::Duration kPlacingTakes{20000};
/// Reports whether a pod of maybe_placed() may run for the job, as the API server has it. True as well if that could not be
/// read, and for kPlacingTakes after the end of the job, because the patch that places the pod may still be under way. `now`:
/// the time on slurmctld's clock. nullopt: the fact unsure_fact() is needed.
[[nodiscard]] std::optional<bool> was_placed(const plan::Facts& facts, const Pod& pod, const slurm::Job& job,
                                             core::WallTime now, NeverPlaced& known);

class Observer {
 public:
  Observer(slinky::Wiring& wiring, Settings settings);
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  [[nodiscard]] slurm::SnapshotPtr snapshot() const { return wiring_.snapshot(settings->cluster); }
  /// Fills the facts. Nothing else can be observed while the UID of the Kubernetes cluster or the namespace is not known: then
  /// `installation` is empty.
  void fill(Facts& out, const run::Key& key, kube::Recorder& recorder);
  /// Sets Facts::fit to that of a pod that waits. Requires facts of fill().
  void fill_fit(Facts& out, const PodPtr& pod);
  [[nodiscard]] bool manages(const Pod& pod) const { return bridge::manages(*settings, pod); }
  /// Returns what is known of the job of a row of this installation.
  [[nodiscard]] NamedJob named(const plan::Observing& observing, const Facts& facts, const JobTable::Row& row) const;
  /// Returns the pods on a node that were placed for other jobs than `job`, which hold the node no more.
  [[nodiscard]] Leftovers leftovers(const Facts& facts, const std::string& slurm_node, const slurm::Job& job);
  /// Reports whether the pod's node is not ready.
  [[nodiscard]] bool on_unready_node(const Pod& pod) const;
  /// Reports whether the kubelet of the pod's node does not report.
  [[nodiscard]] bool on_silent_node(const Pod& pod) const;
  /// Returns the keys of the jobs that changed, as they were before and as they are now. Reads the new jobs.
  [[nodiscard]] slinky::Keys changed(const slurm::Change& change);

  const std::shared_ptr<const Settings> settings;
  const Caches caches;
  JobTable table;
  std::string installation;  ///< Facts::installation, once it is known.

 private:
  slinky::Wiring& wiring_;
  NeverPlaced never_placed_;
  std::shared_ptr<const Hosts> hosts_;  ///< Null after a change of a node that hosts_of() or misfit() can see.
  Fits fits_;
};

/// Reports whether pods may fit differently on a node.
[[nodiscard]] bool fits_differently(const kube::SchedulingNodeRecord& before, const kube::SchedulingNodeRecord& after);
/// Reports whether a node of Slurm was added or removed, or is in other partitions.
[[nodiscard]] bool places_changed(const slurm::Change& change);

/// Returns what holds while a bound pod is being deleted with its present grace period, for Since. The API server moves the
/// timestamp of the deletion when the grace period is shortened.
[[nodiscard]] std::string ending(const Pod& pod);

/// Since when something holds, as far as this process has seen. Each observation says all that holds.
class Since {
 public:
  /// Begins an observation. What does not hold in it is forgotten.
  void begin(core::MonoTime now);
  std::optional<core::MonoTime> operator()(const std::string& what, bool holds);
  [[nodiscard]] bool empty() const { return now_.empty(); }

 private:
  core::MonoTime time_;
  std::map<std::string, core::MonoTime> before_, now_;
};

}  // namespace bridge
