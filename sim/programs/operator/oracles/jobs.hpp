// The first oracle: no job is lost, requeued or stranded, whoever does it, but by what a user, an administrator or an accident
// just did to that job, to its worker, NodeSet, Controller or machine.
//
// SimSlurm tells every loss; here its cause is followed back to whoever began it. Nothing of this is the operator's word.
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

/// Who ended a job, or what.
enum class Blame {
  // What is excused.
  kUser,         ///< Deleted its worker, its NodeSet (of a pending job), or did without a volume.
  kAdmin,        ///< Set its node DOWN, deleted the record, or freed the node while the operator deleted its worker.
  kAccident,     ///< Its machine or pod failed or came back just then, or a script of its site; or it was evicted Pending.
  kPolicy,       ///< The operator ended it as its NodeSet's drain policy says.
  kClusterEnds,  ///< Its Controller is gone, or goes at once, by its user.
  kLongProlog,   ///< Its prolog took longer than a change of the configuration waits for.
  // What is not.
  kNoPolicy,       ///< The operator ended it, and no drain policy says so.
  kOperator,       ///< Deleted its worker.
  kOperatorDown,   ///< Set its node DOWN.
  kNewWorker,      ///< The operator deleted a worker that had only just registered.
  kDyingWorker,    ///< It was started on a worker that was on its way out.
  kGoneWorker,     ///< It was started on the record of a worker that is no more, or whose successor is not there yet.
  kEviction,       ///< Its worker was evicted.
  kTaint,          ///< The taint manager deleted its worker.
  kPreemption,     ///< The scheduler did, for a pod of a higher priority, though the job was not new.
  kCleaning,       ///< Kubernetes' own cleaning did.
  kProbe,          ///< A probe ended slurmd.
  kProcess,        ///< slurmd ended, and nobody knows why.
  kNameTaken,      ///< Another worker came up under the name of the one that ran it.
  kPartition,      ///< Its partition went from the configuration while it ran.
  kPartitionWait,  ///< Its partition went while it waited.
  kLeftOut,        ///< Its partition was left out, as if slurmctld had refused it.
  kSilence,        ///< slurmctld lost a slurmd that is there.
  kKey,            ///< slurmctld has another key than its slurmd.
  kState,          ///< slurmctld's volume went.
  kReconfigure,    ///< The operator reconfigured or restarted slurmctld during its prolog.
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
  /// A pod (by its uid) has one.
  void accident(const std::string& pod, Accident what);
  /// An operator's clock is wrong by as much more: it may take a drain for older than it is.
  void clocks_differ(core::Duration by) { clocks_differ_ = clocks_differ_ + by; }
  /// Whose deletion the operator asks for: an administrator has freed its node since the operator's last look there.
  void overtaken(const kube::Key& pod) { asked_[pod] = Blame::kAdmin; }
  /// The operator had the record of a node deleted, which ran nothing.
  void fenced(const SimNode& record);
  /// An administrator takes the drain from a node, or sets it up again.
  void freed(const SimNode& record);
  /// Without faults the operator knows at once which jobs are starting.
  void set_fair(bool fair) { fair_ = fair; }
  /// Losses by who is to blame, each job's run counted once.
  [[nodiscard]] const std::map<Blame, int>& losses() const { return losses_; }

 private:
  /// A worker, as long as anybody may ask for it: to the end of the history.
  struct Worker {
    std::string node{};     ///< In Slurm.
    std::string machine{};  ///< Its Kubernetes node.
    std::string before{};   ///< The one before it of that name, by uid.
    std::optional<core::MonoTime> deleted{}, ended{}, gone{};
    std::optional<core::MonoTime> fenced{};                ///< When the operator deleted the record of its slurmd.
    std::optional<core::MonoTime> off{}, cut{}, probed{};  ///< Its last accidents.
    Blame by = Blame::kUser;                               ///< Who deleted it.
    bool owned = true;                                     ///< By a NodeSet; nobody looks after others.
    std::optional<core::MonoTime> adopted{}, left{};       ///< When one last took it over, or went and left it.
    std::optional<core::MonoTime> open{};                  ///< Since when it has no label for its budget.
    std::optional<core::MonoTime> freed{};                 ///< When an administrator last freed its node.
  };
  using Place = std::pair<kube::Key, std::string>;  ///< Controller, and node in Slurm.

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
  std::map<std::string, Worker> workers_;          ///< By uid.
  std::map<Place, std::string> last_;              ///< The newest worker of a node, by uid.
  std::map<kube::Key, Blame> asked_;               ///< Who last asked for a pod's deletion.
  std::map<kube::Key, core::MonoTime> gone_;       ///< When a Controller went.
  std::map<std::string, core::MonoTime> harmed_;   ///< When a user last changed a budget, by namespace.
  std::map<kube::Key, core::MonoTime> unwritten_;  ///< When a user last changed a ConfigMap.
  std::map<kube::Key, Blame> restarted_;           ///< Who last deleted a Controller's slurmctld.
  core::Duration clocks_differ_{0};
  /// What each NodeSet said of drains lately: who acts on it may not have seen the last edit.
  std::map<kube::Key, std::vector<std::pair<core::MonoTime, core::Json>>> policies_;
  std::map<Blame, int> losses_;
  bool fair_ = false;
};

}  // namespace sim
