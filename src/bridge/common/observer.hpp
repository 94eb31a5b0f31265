// Observes the facts that both the jobs controller and the gangs controller need.
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

/// Reports whether this bridge might have placed a pod that has the toleration kTolerationPlacedFor. True if the bridge manages
/// the pod, or if Slurm lists the pod's job. Outside of managed namespaces, anybody can create a pod with this toleration.
[[nodiscard]] bool vouches_for(const Settings& settings, const JobTable& table, const Pod& pod);
/// Returns the pods that might have been placed for this job, which has ended, although the cache still shows their gates: the
/// cache can be behind the API server. Leaves out pods that are being deleted, because the bridge does not place them.
[[nodiscard]] std::vector<PodPtr> maybe_placed(const Caches& caches, const JobTable::Row& row);
/// Remembers which pods were not placed for a job that has ended, and so cannot be placed for the job any more. Otherwise all
/// pods of a group, which can be hundreds, would be read again for each node that the job held.
class NeverPlaced {
 public:
  [[nodiscard]] bool contains(const Pod& pod, const slurm::Job& job) const { return known_.contains(key(pod, job)); }
  void add(const Pod& pod, const slurm::Job& job) {
    // If a pod is forgotten here, it is only read again.
    if (known_.size() >= kMost) known_.clear();
    known_.insert(key(pod, job));
  }

 private:
  static constexpr std::size_t kMost = 20000;
  static std::string key(const Pod& pod, const slurm::Job& job);
  std::set<std::string, std::less<>> known_;
};

/// The longest time from the live look at a job to the end of the patches that place pods for the job: a patch begins at most
/// five seconds after the look, and a request takes at most ten seconds.
inline constexpr core::Duration kPlacingTakes{20000};
/// Reports whether a pod of maybe_placed() might run for the job, according to a live read of the pod. Also true if the read
/// failed, and for kPlacingTakes after the end of the job, because the patch that places the pod might still be under way.
/// `now`: the time on slurmctld's clock. nullopt: the fact unsure_fact() is needed.
[[nodiscard]] std::optional<bool> was_placed(const plan::Facts& facts, const Pod& pod, const slurm::Job& job,
                                             core::WallTime now, NeverPlaced& known);

class Observer {
 public:
  Observer(slinky::Wiring& wiring, Settings settings);
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  [[nodiscard]] slurm::SnapshotPtr snapshot() const { return wiring_.snapshot(settings->cluster); }
  /// Fills the facts. Leaves `installation` empty while the UID of the Kubernetes cluster, or the Namespace of the key, has not
  /// been read. In this case, the caller must observe nothing else.
  void fill(Facts& out, const run::Key& key, kube::Recorder& recorder);
  /// Sets Facts::fit to the fit of a pod that waits. Requires a call of fill() for these facts.
  void fill_fit(Facts& out, const PodPtr& pod);
  [[nodiscard]] bool manages(const Pod& pod) const { return bridge::manages(*settings, pod); }
  /// Returns the NamedJob for a row of this installation.
  [[nodiscard]] NamedJob named(const plan::Observing& observing, const Facts& facts, const JobTable::Row& row) const;
  /// Returns the pods on a node that were placed for other jobs than `job` and whose jobs no longer hold nodes.
  [[nodiscard]] Leftovers leftovers(const Facts& facts, const std::string& slurm_node, const slurm::Job& job);
  /// Reports whether the pod's node is not ready.
  [[nodiscard]] bool on_unready_node(const Pod& pod) const;
  /// Reports whether the pod's node is not ready. False if most nodes are not ready, because their network has probably failed.
  [[nodiscard]] bool on_silent_node(const Pod& pod) const;
  /// Reads the new jobs. Returns the keys that the changed jobs had before the change, and those that they have now.
  [[nodiscard]] slinky::Keys changed(const slurm::Change& change);

  const std::shared_ptr<const Settings> settings;
  const Caches caches;
  JobTable table;
  std::string installation;  ///< Facts::installation, once it is known.

 private:
  slinky::Wiring& wiring_;
  NeverPlaced never_placed_;
  /// Null, to be rebuilt, after a change of a node that matters for hosts_of() or misfit().
  std::shared_ptr<const Hosts> hosts_;
  Fits fits_;
};

/// Reports whether this change of a node might change which pods fit on the node.
[[nodiscard]] bool fits_differently(const kube::SchedulingNodeRecord& before, const kube::SchedulingNodeRecord& after);
/// Reports whether a Slurm node was added, removed, or moved to other partitions, or whether the partitions have changed.
[[nodiscard]] bool places_changed(const slurm::Change& change);

/// Returns the text for Since while a bound pod is being deleted; "" otherwise. The text contains the deletionTimestamp, which
/// the API server moves when the grace period is shortened, so that Since counts anew.
[[nodiscard]] std::string ending(const Pod& pod);

/// Remembers since when conditions hold, as far as this process has seen. Each observation must name every condition that
/// holds.
class Since {
 public:
  /// Begins an observation. Forgets the conditions that the previous observation did not name.
  void begin(core::MonoTime now);
  std::optional<core::MonoTime> operator()(const std::string& what, bool holds);
  [[nodiscard]] bool empty() const { return now_.empty(); }

 private:
  core::MonoTime time_;
  std::map<std::string, core::MonoTime> before_, now_;
};

}  // namespace bridge
