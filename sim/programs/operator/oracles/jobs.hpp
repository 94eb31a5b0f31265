// The main oracle. Checks that no job is lost, requeued or stranded, except by what a user, an administrator or an accident has
// just done to that job, or to its worker, NodeSet, Controller or machine.
//
// SimSlurm reports every loss. The oracle traces the cause of the loss back to its originator, without relying on anything that
// the operator reports.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/loop.hpp"
#include "sim/kube/api.hpp"
#include "sim/kube/kubelet.hpp"
#include "sim/site/slurm_site.hpp"

namespace sim {

/// The cause of the end of a job.
enum class Blame {
  // Excused causes:
  kUser,         ///< A user deleted the job's worker, or a pending job's NodeSet, or chose to have no volume.
  kAdmin,        ///< An administrator set the node DOWN, deleted its record, or freed it while the operator deleted the worker.
  kAccident,     ///< The machine or pod had just failed or returned, a site's script failed, or a Pending worker was evicted.
  kPolicy,       ///< The operator ended the job in accordance with the NodeSet's drain policy.
  kClusterEnds,  ///< A user deleted the Controller, which is gone or does not drain.
  kLongProlog,   ///< slurmctld restarted or reconfigured after jobs had been in prologs for a minute.
  // Causes that are not excused:
  kNoPolicy,       ///< The operator ended the job without a drain policy that allows this.
  kOperator,       ///< The operator deleted the job's worker.
  kOperatorDown,   ///< The operator set the job's node DOWN.
  kNewWorker,      ///< The operator deleted a worker that had just registered.
  kDyingWorker,    ///< The job started on a worker that was already being deleted.
  kGoneWorker,     ///< The job started on the record of a worker that is deleted, or whose successor is not ready.
  kEviction,       ///< The job's worker was evicted.
  kTaint,          ///< The taint manager deleted the job's worker.
  kPreemption,     ///< The scheduler deleted the worker for a pod of a higher priority, though the job was not new.
  kCleaning,       ///< Kubernetes' own controllers deleted the job's worker.
  kProbe,          ///< A failed probe ended the worker's slurmd.
  kProcess,        ///< slurmd ended for an unknown reason.
  kNameTaken,      ///< Another worker registered under the name of the job's worker.
  kPartition,      ///< The job's partition disappeared from the configuration while the job ran.
  kPartitionWait,  ///< The job's partition disappeared while the job was pending.
  kLeftOut,        ///< The operator left out the job's partition, as it does if slurmctld refuses a partition.
  kSilence,        ///< slurmctld lost contact with the job's slurmd, which runs.
  kKey,            ///< slurmctld and slurmd had different keys.
  kState,          ///< slurmctld's volume was lost.
  kReconfigure,    ///< The operator reconfigured or restarted slurmctld during the job's prolog.
};
std::string_view to_string(Blame blame);
bool is_excused(Blame blame);

class JobOracle {
 public:
  using Tell = std::function<void(std::string)>;
  JobOracle(core::Loop& loop, KubeApi& api, SlurmSite& site, Tell violation, Tell note);
  ~JobOracle();
  JobOracle(const JobOracle&) = delete;
  JobOracle& operator=(const JobOracle&) = delete;

  void watch(SlurmSite::Cluster& cluster);
  /// Notes that the pod with this uid has an accident.
  void accident(const std::string& pod, Accident what);
  /// Notes that an operator's clock jumps by this much. The operator can then overestimate the age of a drain.
  void clocks_differ(core::Duration by) { clocks_differ_ = clocks_differ_ + by; }
  /// Notes that the operator asks to delete this pod, whose node an administrator has freed since the operator's last look.
  void overtaken(const kube::Key& pod) { asked_[pod] = Blame::kAdmin; }
  /// Notes that the operator deleted the record of a node without jobs.
  void fenced(const SimNode& record);
  /// Notes that an administrator removes the drain of a node, or brings it up again.
  void freed(const SimNode& record);
  /// True: there are no faults from now on, so the operator must soon know which jobs are starting.
  void set_fair(bool fair) { fair_ = fair; }
  /// Returns the number of losses by cause. Each run of a job counts once.
  [[nodiscard]] const std::map<Blame, int>& losses() const { return losses_; }

 private:
  /// A worker. Kept to the end of the history, because later losses may refer to it.
  struct Worker {
    std::string node{};     ///< The worker's node in Slurm.
    std::string machine{};  ///< The worker's Kubernetes node.
    std::string before{};   ///< The uid of the previous worker with this worker's name.
    std::optional<core::MonoTime> deleted{}, ended{}, gone{};
    std::optional<core::MonoTime> fenced{};                ///< When the operator deleted the record of the worker's slurmd.
    std::optional<core::MonoTime> off{}, cut{}, probed{};  ///< The worker last failed, was cut off, was ended by a probe.
    Blame by = Blame::kUser;                               ///< The cause of the worker's deletion.
    bool owned = true;                                     ///< A NodeSet owns the worker. Other workers are unmanaged.
    std::optional<core::MonoTime> adopted{}, left{};       ///< When the worker was last adopted, and last lost its owner.
    std::optional<core::MonoTime> open{};                  ///< Since when the worker lacks the budget's label.
    std::optional<core::MonoTime> freed{};                 ///< When an administrator last freed the worker's node.
  };
  using Place = std::pair<kube::Key, std::string>;  ///< The Controller, and the node in Slurm.

  void listen();
  [[nodiscard]] Blame deleter(const AdmissionRequest& request) const;
  void judge(const SlurmSite::Cluster& cluster, const SimJob& job, const JobLoss& loss);
  [[nodiscard]] Blame blame(const SlurmSite::Cluster& cluster, const SimJob& job, const JobLoss& loss) const;
  [[nodiscard]] Blame blame_for_end(const SlurmSite::Cluster& cluster, const SimJob& job, const std::string& node) const;
  [[nodiscard]] Blame blame_for_down(const SlurmSite::Cluster& cluster, const std::string& node) const;
  [[nodiscard]] Blame blame_for_start(const SlurmSite::Cluster& cluster, const std::string& node) const;
  [[nodiscard]] core::MonoTime starting_since(const SlurmSite::Cluster& cluster) const;
  [[nodiscard]] Blame blame_for_cut(const SlurmSite::Cluster& cluster, const SimJob& job) const;
  [[nodiscard]] bool untold(const SlurmSite::Cluster& cluster, const Worker& worker) const;
  [[nodiscard]] bool unseen(const SlurmSite::Cluster& cluster, const SimJob& job, const Worker& worker) const;
  [[nodiscard]] bool freed_unseen(const SimJob& job, const Worker& worker) const;
  [[nodiscard]] bool began_anew(const SlurmSite::Cluster& cluster, const Worker& worker) const;
  [[nodiscard]] bool policy_allows(const SlurmSite::Cluster& cluster, const SimJob& job, const JobLoss& loss) const;
  [[nodiscard]] bool cluster_ends(const kube::Key& controller) const;
  [[nodiscard]] bool has_restapi(const kube::Key& controller) const;
  [[nodiscard]] bool state_was_users(const kube::Key& controller, const SimJob& job) const;
  [[nodiscard]] bool left_out(const kube::Key& controller, const std::string& partition) const;
  [[nodiscard]] std::string annotation(const kube::Key& controller, std::string_view name) const;
  [[nodiscard]] bool lately(std::optional<core::MonoTime> at, core::Duration length) const;

  core::Loop& loop_;
  KubeApi& api_;
  SlurmSite& site_;
  Tell violation_, note_;
  std::map<std::string, Worker> workers_;          ///< The workers, by the uid of their pod.
  std::map<Place, std::string> last_;              ///< Maps a place to the uid of its newest worker.
  std::map<kube::Key, Blame> asked_;               ///< Maps a pod to who last asked to delete it.
  std::map<kube::Key, core::MonoTime> gone_;       ///< Maps a Controller to the time of its deletion.
  std::map<std::string, core::MonoTime> harmed_;   ///< Maps a namespace to when a user last changed a disruption budget.
  std::map<kube::Key, core::MonoTime> unwritten_;  ///< Maps a ConfigMap to when a user last changed or deleted it.
  std::map<kube::Key, Blame> restarted_;           ///< Maps a Controller to who last deleted its slurmctld pod.
  core::Duration clocks_differ_{0};
  /// Maps a NodeSet to its drain policies, each with the time of its start. An operator might not have seen the latest one yet.
  std::map<kube::Key, std::vector<std::pair<core::MonoTime, core::Json>>> policies_;
  std::map<Blame, int> losses_;
  bool fair_ = false;
};

}  // namespace sim
