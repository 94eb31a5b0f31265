// A small Kubernetes and a small Slurm for tests of NodeSet plans. Observations are made from their state, and plans change it.
//
//   World world({{"replicas", 3}});
//   world.run(plan_nodeset(world.observe()));   // creates pods
//   world.start_pods();                          // they run and register
//
// It refuses what the real ones refuse, as far as plans depend on it, and fails the test if a worker with a running job is
// deleted. Unlike the simulator it has no faults, no delays and only one NodeSet.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "kube/acts.hpp"
#include "kube/object.hpp"
#include "operator/nodeset/observed.hpp"
#include "plan/ledger.hpp"
#include "slurm/acts.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace op::nodeset::testing {

class World {
 public:
  explicit World(core::Json spec = core::Json::object());

  /// What a pass would observe now.
  [[nodiscard]] Observed observe();
  /// Carries out a plan as the executor does: lanes in turn; a failed step stops its lane. Returns the number of completed
  /// steps.
  int run(const plan::Plan& plan);
  /// Plans and carries out until nothing is left to do, at most `passes` times, and advances the clock in between. Returns the
  /// passes.
  int settle(int passes = 50);

  /// Makes all pending pods run, become ready, and register with Slurm.
  void start_pods();
  /// A user deletes a pod: its jobs end, and its preStop hook sets its node down.
  void user_deletes(const std::string& name);
  /// A user deletes a pod whose kubelet is dead, so that its preStop hook does not run.
  void deleted_without_pre_stop(const std::string& name);
  /// Removes terminating pods.
  void finish_pods();
  /// Restarts the operator.
  void restart() {
    ledger = {};
    seen_ = {};
  }
  void advance(core::Duration by) {
    now = now + by;
    mono = mono + by;
  }

  kube::PodRecord& add_pod(int ordinal);  ///< Running, ready and registered as IDLE.
  /// Adds a Kubernetes node that is younger than those before it.
  kube::NodeRecord& add_host(const std::string& name, kube::StringMap labels = {});
  void remove_host(const std::string& name);
  slurm::Node& add_node(const std::string& name);
  std::int64_t add_job(std::vector<std::string> nodes, std::string state = "RUNNING");
  void end_job(std::int64_t id);
  [[nodiscard]] core::Json& spec() { return nodeset["spec"]; }
  /// Changes the spec as a user does: the generation increases.
  void edit(const std::string& field, core::Json value);
  [[nodiscard]] kube::PodRecord& pod(const std::string& name) { return pods.at(name); }
  [[nodiscard]] slurm::Node& node(const std::string& name) { return nodes.at(name); }
  [[nodiscard]] core::Json status() const { return nodeset.value("status", core::Json::object()); }
  /// "True Reason" of a condition of the NodeSet's status, or "".
  [[nodiscard]] std::string condition(std::string_view type) const;
  [[nodiscard]] std::string message(std::string_view type) const;

  core::WallTime now{core::Duration{1'767'323'045'000}};  // 2026-01-02T03:04:05Z
  core::MonoTime mono{core::Duration{1'000'000}};
  core::Json nodeset;
  std::map<std::string, kube::PodRecord> pods;
  std::map<std::string, std::string> images;  ///< Images of slurmd, by pod.
  std::map<std::string, int> conf_weights;    ///< The weight in slurmd's --conf, by pod.
  /// Unexpected names under which slurmd registers, by pod.
  std::map<std::string, std::string> registers;
  std::map<std::string, core::Json> revisions;
  std::map<std::string, core::Json> claims;
  std::string claim_event;                                  ///< The text of the events about each claim.
  std::map<std::string, KubeNode, std::less<>> kube_nodes;  ///< All others are in their default state.
  std::set<std::string, std::less<>> gone_kube_nodes;
  std::map<std::string, kube::NodeRecord> hosts;  ///< All Kubernetes nodes, for scalingMode DaemonSet.
  std::map<std::string, slurm::Node> nodes;
  std::map<std::int64_t, slurm::Job> jobs;
  std::optional<ControllerView> controller;
  bool old_definitions = false;     ///< The API server does not keep status.drainsToRestore.
  bool stopped = false;             ///< By the Controller's annotation.
  std::string controller_error;     ///< Why the Controller cannot be read although it exists.
  std::set<std::string> orphans;    ///< Pods without an owner.
  std::set<std::string> unmanaged;  ///< Pods of another cluster without an owner.
  std::string namesake;
  std::vector<Rival> rivals;
  std::string partition_refusal;
  std::set<std::string> partitions;  ///< Those that slurmctld has loaded.
  std::optional<Problem> newer;      ///< The image is of a later release than slurmctld.
  std::vector<Problem> missing;      ///< Missing objects that the template names.
  bool host_keys = false;            ///< A Secret with host keys exists.
  std::map<std::string, slurm::Reservation> reservations;
  slurm::Snapshot::Health health = slurm::Snapshot::Health::kComplete;
  slurm::Capabilities capabilities;
  bool slurm_readable = true;
  bool slurm_is_ours = true;  ///< The answers are from this cluster.
  core::Duration snapshot_age{100};
  plan::Ledger ledger;
  /// Errors of steps, by the beginning of their ids.
  std::map<std::string, core::Error> refuse;

  std::vector<std::string> done;        ///< Ids of all steps carried out.
  plan::Intent did;                     ///< `done` as an intent, without events and status.
  std::vector<std::string> events;      ///< "Normal ScalingUp: note"
  std::vector<std::string> violations;  ///< Acts that must never happen, but did.

 private:
  core::Result<void> carry_out(const plan::Act& act);
  core::Result<void> create(const kube::Create& act);
  core::Result<void> patch(const kube::Patch& act);
  core::Result<void> remove(const kube::Delete& act);
  core::Result<void> patch_claim(const kube::Patch& act);
  core::Result<void> remove_claim(const kube::Delete& act);
  [[nodiscard]] bool pod_uses(const std::string& claim) const;
  core::Result<void> patch_tolerations(kube::PodRecord& pod, const core::Json& operations);
  core::Result<void> slurm_act(const plan::Act& act);
  void check_intent(const plan::Intent& whole, const plan::Step& step);
  /// Lanes run in parallel: if one writes to a pod that another deletes, the deletion fails with Conflict.
  void note_conflicts(const plan::Plan& plan);
  core::Result<void> reservation_act(const plan::Act& act);
  /// Begins and ends reservations according to the clock.
  void tend_reservations();
  [[nodiscard]] bool job_on(const std::string& node) const;
  /// The Slurm node of the pod's slurmd.
  [[nodiscard]] std::string node_of(const kube::PodRecord& pod) const;
  std::string next_version();

  Seen seen_;
  plan::Facts facts_;  ///< For the next observation.
  int version_ = 100;
  int uid_ = 0;
  std::int64_t job_ = 0;
};

}  // namespace op::nodeset::testing
