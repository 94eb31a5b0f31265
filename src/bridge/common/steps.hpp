// The steps of plans for jobs and their pods, for one pod as for a group. A controller derives its plan from this class, and
// decides which step is due.
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
  std::shared_ptr<const Settings> settings;  ///< With the defaults of the namespace.
  std::string installation;                  ///< The UID of the Kubernetes cluster; "": not known yet.
  slurm::SnapshotPtr snapshot;               ///< Null: no slurmrestd is known.
  core::WallTime slurm_now;                  ///< The time on slurmctld's clock; our own time while that is not known.
  Life life;                                 ///< How long slurmctld has certainly kept its state.
  std::shared_ptr<const Hosts> hosts;
  FitPtr fit;  ///< The fit of the pods that wait, if it is kept (bridge/common/fits.hpp). Null: none is.
};

/// A job of this installation that was submitted for the key.
struct NamedJob {
  std::shared_ptr<const slurm::Job> job;
  slurm::JobMark mark;
  std::optional<slurm::OwnJob> own;  ///< Unset if the snapshot is too old.
  std::string wish;                  ///< The digest of the wish that was submitted.
};

/// A pod of the key.
struct PodState {
  PodPtr pod;
  bool managed = false;  ///< Jobs are submitted for the pod.
  /// The job that the pod was placed for, or that it waits for. Null: none, or Slurm does not list it.
  std::shared_ptr<const slurm::Job> job;
  std::optional<PodOver> over;   ///< Set if the pod must not run.
  bool on_unready_node = false;  ///< The node of the bound pod is not ready, though perhaps only like most others.
  /// As far as this process has seen: since when the placed pod has no Kubernetes node, since when its end is due, since when
  /// it is being deleted with its present grace period, since when the node of the bound pod is not ready, and since when Slurm
  /// does not answer a pod that waits.
  std::optional<core::MonoTime> unbound_since, over_since, ending_since, silent_since, unanswered_since;
};

/// The pods that keep others off a node, because their own jobs hold it no more.
struct Leftovers {
  std::vector<std::string> pods;  ///< "ns/name".
  std::set<run::Key> unsure;      ///< Pods that wait in the cache, which may be behind: see was_placed().
};

/// Returns the name of the fact that is the Kubernetes node as the API server has it.
[[nodiscard]] std::string node_fact(const std::string& kube_node);
/// Returns the name of the fact that is a pod that is being deleted, as the API server has it.
[[nodiscard]] std::string ending_fact(const run::Key& pod);
/// Returns the name of the fact that is a pod of Leftovers::unsure as the API server has it.
[[nodiscard]] std::string unsure_fact(const run::Key& pod);

class Steps {
 public:
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

 protected:
  explicit Steps(const Facts& facts) : facts_(facts), name_(facts.key.str()) {}
  ~Steps() = default;

  /// The time between two tries of what Slurm or the API server refused, if nothing changes that could help.
  static constexpr core::Duration kRefusedAgain{30000};

  [[nodiscard]] bool slurm_known() const { return facts_.snapshot != nullptr && facts_.snapshot->complete(); }
  /// Asks for another pass with a newer snapshot. A new snapshot wakes a key only if something changed.
  void await_snapshot();

  // --- Jobs ---
  /// Ends a job that no pod needs. `pod`: the one that may still run, if there is such a pod; it is told. `exit_code`: what the
  /// pods of the job ended with, if they have.
  void release(const NamedJob& job, const Unneeded& evidence, const PodPtr& pod, std::optional<int> exit_code);
  /// Reports whether Slurm takes jobs; if not, tells the pod that waits. A bridge that retires submits none: it lets the pod
  /// go, even if Slurm does not answer.
  [[nodiscard]] bool can_submit(const PodState& state);
  /// Looks for nodes for the pods of a job.
  [[nodiscard]] Candidates candidates(const Pods& pods, const slurm::JobWish& wish) const;
  struct Request {
    std::string root_uid;  ///< The UID of the pod, or of the object that defines the group.
    int attempts = 0;      ///< The greatest number of a submission so far.
    slurm::JobWish wish;
    Candidates nodes;
    const NamedJob* refused = nullptr;  ///< The job that slurmctld refused last.
    std::optional<core::MonoTime> refused_since;
  };
  void submit(Request request, const Pods& waiting);
  /// Tells the pods why their job waits, and excludes other nodes if other ones can run the pods. Returns why the job must be
  /// replaced, or "".
  [[nodiscard]] std::string wait_in_queue(const NamedJob& job, const std::optional<Candidates>& nodes, const Pods& waiting);
  /// Cancels a job whose pods still have their gates. The pods note it first, so that this is not taken for their end.
  void replace(const NamedJob& job, const std::optional<Unneeded>& evidence, const std::string& why, const Pods& waiting);
  /// Tells the pods about a job that neither waits nor runs.
  void report_state(const NamedJob& job, const Pods& waiting);

  // --- Pods ---
  /// A pod, and the node of the job where it shall run.
  struct Seat {
    PodPtr pod;
    std::string node;  ///< Its name in Slurm.
  };
  /// Returns why the pod cannot run there, or "".
  [[nodiscard]] std::string misplaced(const Seat& seat) const;
  /// Reports whether one of the pods would have to leave already if it were placed for the running job now.
  [[nodiscard]] bool ends_soon(const slurm::Job& job, const Pods& pods) const;
  /// Removes the gates of the pods and pins them, after a live look at the job, once nodes with a slurmd list the job. A node
  /// that is no Kubernetes node gets the pod only if it becomes one.
  void place(const NamedJob& job, const std::vector<Seat>& seats);
  /// Reports whether the pods must wait because earlier ones may still run on the node, and tells them.
  [[nodiscard]] bool waits_for(const Leftovers& leftovers, const NamedJob& job, const std::string& node, const Pods& waiting);
  /// Does what is due for a pod that was placed. `job`: what is known of its job, unless this pass releases it.
  void follow_placed(const PodState& state, const NamedJob* job);
  /// Shortens the end of a pod that is being deleted and would outlive its job for too long.
  void follow_terminating(const PodState& state);
  /// Looks at the node of a bound pod, which may be silent. `asks`: it must be looked up live.
  void watch_node(const PodState& state, bool asks);
  /// Tells a pod without a gate that it waits for no job, if its condition still says so.
  void follow_foreign(const PodState& state);
  /// Reads an object live.
  void look_for(std::string fact, const kube::Resource& resource, const kube::Key& key);
  /// Ends a pod that has no Kubernetes node.
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
