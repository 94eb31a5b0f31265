// The steps of plans for jobs and their pods, both for single pods and for groups. Each controller derives a class from Steps.
// The derived class decides which step is due.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "bridge/common/evidence.hpp"
#include "bridge/common/hosts.hpp"
#include "bridge/common/job_table.hpp"
#include "bridge/common/placing.hpp"
#include "bridge/common/settings.hpp"
#include "plan/plan.hpp"
#include "run/key.hpp"
#include "slurm/own_job.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace bridge {

/// The facts that every plan for jobs has.
struct Facts {
  plan::Context context;
  run::Key key;
  std::shared_ptr<const Settings> settings;  ///< The settings, with the default annotations of the namespace.
  std::string installation;                  ///< The UID of the Kubernetes cluster; "": not known yet.
  slurm::SnapshotPtr snapshot;               ///< Null: no slurmrestd is known.
  core::WallTime slurm_now;                  ///< The time on slurmctld's clock; our own time while that is not known.
  Life life;                                 ///< The present life of slurmctld, as far as it is known.
  std::shared_ptr<const Hosts> hosts;
  FitPtr fit;  ///< The cached fit of the pods that wait (bridge/common/fits.hpp). Null: none is cached.
};

/// A job of this installation that was submitted for the key.
struct NamedJob {
  std::shared_ptr<const slurm::Job> job;
  slurm::JobMark mark;
  std::optional<slurm::OwnJob> own;  ///< Unset if the snapshot is too old.
  std::string wish;                  ///< The digest of the JobWish that was submitted.
};

/// A pod of the key.
struct PodState {
  PodPtr pod;
  bool managed = false;  ///< Jobs are submitted for the pod.
  /// The job that the pod was placed for, or that it waits for. Null: none, or Slurm does not list it.
  std::shared_ptr<const slurm::Job> job;
  std::optional<PodOver> over;  ///< Set if the pod must not run.
  /// The node of the bound pod is not ready. Unlike `silent_since`, this is also set if most nodes are not ready.
  bool on_unready_node = false;
  /// Since when, as far as this process has seen, a placed pod is not bound; a bound pod has the condition SlurmEnded, is being
  /// deleted with its present grace period, or has a node that is not ready; and a waiting pod gets no answer from Slurm.
  std::optional<core::MonoTime> unbound_since, over_since, ending_since, silent_since, unanswered_since;
};

/// The pods that might still run on a node that their jobs no longer hold. No other pod is placed on the node before they end.
struct Leftovers {
  std::vector<std::string> pods;  ///< "ns/name".
  std::set<run::Key> unsure;      ///< Pods that have the gate in the cache, but might be placed by now: see was_placed().
};

/// Returns the name of the fact that contains the Kubernetes node, read live from the API server.
[[nodiscard]] std::string node_fact(const std::string& kube_node);
/// Returns the name of the fact that contains a pod that is being deleted, read live from the API server.
[[nodiscard]] std::string ending_fact(const run::Key& pod);
/// Returns the name of the fact that contains a pod of Leftovers::unsure, read live from the API server.
[[nodiscard]] std::string unsure_fact(const run::Key& pod);

class Steps {
 public:
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

 protected:
  explicit Steps(const Facts& facts) : facts_(facts), name_(facts.key.str()) {}
  ~Steps() = default;

  /// The delay before a request that Slurm or the API server refused is sent again, if nothing changes that could help.
  static constexpr core::Duration kRefusedAgain{30000};

  [[nodiscard]] bool slurm_known() const { return facts_.snapshot != nullptr && facts_.snapshot->complete(); }
  /// Asks for another pass with a newer snapshot. A new snapshot wakes a key only if something changed.
  void await_snapshot();

  // --- Jobs ---
  /// Cancels a job that no pod needs. `pod` can be null. If the evidence says that the pod might still run, first sets the
  /// pod's condition SlurmEnded. `exit_code`: the exit code of the job's pods, if they have ended.
  void release(const NamedJob& job, const Unneeded& evidence, const PodPtr& pod, std::optional<int> exit_code);
  /// Reports whether Slurm accepts jobs. If not, reports the reason in the condition of the pod that waits. A bridge that
  /// retires submits no jobs: it removes the gate of the pod, even if Slurm does not answer.
  [[nodiscard]] bool can_submit(const PodState& state);
  /// Returns the nodes that can run the pods of a job.
  [[nodiscard]] Candidates candidates(const Pods& pods, const slurm::JobWish& wish) const;
  struct Request {
    std::string root_uid;  ///< The UID of the pod, or of the object that defines the group.
    int attempts = 0;      ///< The greatest attempt number of the submissions so far.
    slurm::JobWish wish;
    Candidates nodes;
    const NamedJob* refused = nullptr;  ///< The last job, if slurmctld refused it.
    std::optional<core::MonoTime> refused_since;
  };
  void submit(Request request, const Pods& waiting);
  /// Reports in the conditions of the pods why their job waits. Updates the excluded nodes of the job if the nodes that can run
  /// the pods have changed. Returns why the job must be replaced, or "".
  [[nodiscard]] std::string wait_in_queue(const NamedJob& job, const std::optional<Candidates>& nodes, const Pods& waiting);
  /// Cancels a job whose pods still have their gates, so that the pods get another job. First writes kAnnotationReplacedJob to
  /// the pods, so that the end of the job does not end the pods.
  void replace(const NamedJob& job, const std::optional<Unneeded>& evidence, const std::string& why, const Pods& waiting);
  /// Reports, in the conditions of the pods, the state of a job that neither waits nor runs.
  void report_state(const NamedJob& job, const Pods& waiting);

  // --- Pods ---
  /// A pod, and the node of the job where it shall run.
  struct Seat {
    PodPtr pod;
    std::string node;  ///< The name of the node in Slurm.
  };
  /// Returns why the pod of the seat cannot run on its node, or "".
  [[nodiscard]] std::string misplaced(const Seat& seat) const;
  /// Reports whether the running job ends so soon that one of the pods would have to end at once if it were placed now.
  [[nodiscard]] bool ends_soon(const slurm::Job& job, const Pods& pods) const;
  /// Pins the pods to their nodes and removes their gates, after a live look at the job. Waits until the nodes with a slurmd
  /// list the job in `extra`. If Kubernetes lacks a node, the pod of this node is bound only once Kubernetes has the node.
  void place(const NamedJob& job, const std::vector<Seat>& seats);
  /// Reports whether the pods must wait because earlier pods might still run on the node. Updates the conditions of `waiting`.
  [[nodiscard]] bool waits_for(const Leftovers& leftovers, const NamedJob& job, const std::string& node, const Pods& waiting);
  /// Adds the steps that are due for a placed pod. `job`: its job; null if Slurm does not list the job or this pass releases
  /// it.
  void follow_placed(const PodState& state, const NamedJob* job);
  /// Shortens the grace period of a pod that is being deleted and would outlive its job for too long.
  void follow_terminating(const PodState& state);
  /// Schedules the next check of the node of a bound pod if the node is not ready. `asks`: the node must be read live.
  void watch_node(const PodState& state, bool asks);
  /// Sets SlurmQueued to False if it is still True although somebody else has removed the gate of the pod.
  void follow_foreign(const PodState& state);
  /// Requests an object as a fact, read live from the API server.
  void look_for(std::string fact, const kube::Resource& resource, const kube::Key& key);
  /// Sets the phase Failed on a pod that Kubernetes has not bound.
  void end_unbound(const PodState& state);
  void report(const Pod& pod, bool queued, std::string reason, std::string message);
  void report(const Pod& pod, const std::vector<Condition>& wanted);
  void report(const Pods& pods, bool queued, const std::string& reason, const std::string& message);

  plan::Plan out_;

 private:
  [[nodiscard]] bool is_held(const std::string& node, std::int64_t job) const;
  [[nodiscard]] bool has_failed(const plan::StepId& id) const;
  [[nodiscard]] bool may_update(const slurm::Job& job) const;
  void let_pod_go(const Pod& pod);
  [[nodiscard]] core::Duration longest_end(const PodState& state) const;
  [[nodiscard]] plan::ActPtr evict(const PodState& state) const;
  void record_exit_code(const NamedJob& job, const Unneeded& evidence, int exit_code);
  [[nodiscard]] bool waits_after_error(const plan::StepId& id, const Pods& waiting);
  [[nodiscard]] bool waits_after_refusal(const Request& request, const std::string& digest, const Pods& waiting);
  [[nodiscard]] bool partitions_exist(std::string_view names) const;
  [[nodiscard]] std::string update_candidates(const NamedJob& job, const Candidates& nodes);
  [[nodiscard]] bool wakes_held(const slurm::Job& job, const plan::StepId& id);
  [[nodiscard]] std::string expected_start(const slurm::Job& job) const;
  void end_bound(const PodState& state);
  void follow_running(const PodState& state, const NamedJob& job);
  void restore_lost_words(const PodState& state);
  void report_allocated(const PodState& state, const NamedJob& job);
  void report_missing(const PodState& state);

  const Facts& facts_;
  std::string name_;
};

}  // namespace bridge
