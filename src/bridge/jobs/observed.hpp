// The facts for the plan of a pod and its jobs, copied from the caches at one moment.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bridge/common/settings.hpp"
#include "bridge/jobs/evidence.hpp"
#include "bridge/jobs/hosts.hpp"
#include "kube/object.hpp"
#include "plan/plan.hpp"
#include "run/key.hpp"
#include "slurm/own_job.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace bridge::jobs {

/// A job of this installation that names the key.
struct NamedJob {
  std::shared_ptr<const slurm::Job> job;
  slurm::JobMark mark;
  std::optional<slurm::OwnJob> own;  ///< Not if the snapshot is too old.
  std::string wish;                  ///< The digest of the wish that was submitted.
  std::optional<Unneeded> unneeded;  ///< Set if no pod needs the job.
  bool asks_for_pod = false;         ///< Whether its pod is gone must be looked up live.
  bool seems_unneeded = false;       ///< A newer snapshot may show that no pod needs the job.
};

struct Observed {
  plan::Context context;
  run::Key key;
  std::shared_ptr<const Settings> settings;
  std::string installation;                              ///< The UID of the Kubernetes cluster; "": not known yet.
  bool managed = false;                                  ///< Jobs are submitted for the pod.
  std::shared_ptr<const kube::SchedulingPodRecord> pod;  ///< Null: there is none.
  slurm::SnapshotPtr snapshot;                           ///< Null: no slurmrestd is known.
  Life life;                                             ///< Of slurmctld, as the snapshot shows.
  std::vector<NamedJob> jobs;                            ///< By number. Jobs of earlier pods of the name as well.
  /// The job of the pod: the one that it was placed for; else the oldest that has not ended; else the youngest. Null: none.
  std::shared_ptr<const slurm::Job> job;
  std::optional<slurm::OwnJob> own;     ///< Evidence for `job`.
  std::optional<Unneeded> replaceable;  ///< Set if `job` may be cancelled to submit another one.
  std::string wish;                     ///< The digest of the wish of `job`.
  int attempts = 0;                     ///< The greatest number of a submission for the pod.
  std::shared_ptr<const Hosts> hosts;
  std::optional<PodOver> over;         ///< Set if the pod must not run.
  std::vector<std::string> leftovers;  ///< Pods on the node of `job` whose own jobs hold it no more. "ns/name".
  /// As far as this process has seen: since when the placed pod has no Kubernetes node, since when its end is due, since when
  /// `job` is refused, since when the node of the bound pod is not ready, and since when Slurm does not answer a pod that
  /// waits.
  std::optional<core::MonoTime> unbound_since, over_since, refused_since, silent_since, unanswered_since;
  bool asks_for_node = false;  ///< Whether the node is still not ready must be looked up live.
};

}  // namespace bridge::jobs
