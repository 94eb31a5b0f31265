// A tiny Kubernetes and a tiny Slurm for tests of NodeSet plans: what is in it is observed through the real caches and the real
// observer, and plans are applied to it.
//
//   World world({{"replicas", 3}});
//   world.run(plan_nodeset(world.observe()));   // creates pods
//   world.start_pods();                          // they run and register
//
// It refuses what the real ones refuse as far as plans depend on it, and fails the test when a worker is deleted that runs a
// job. Not the simulator: no faults, no delays, one NodeSet.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/names.hpp"
#include "core/result.hpp"
#include "kube/acts.hpp"
#include "kube/object.hpp"
#include "operator/nodeset/observe.hpp"
#include "operator/testing/world.hpp"
#include "slurm/acts.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace op::nodeset::testing {

class World : public op::testing::World {
 public:
  explicit World(core::Json spec = core::Json::object());

  /// What a pass would see now.
  [[nodiscard]] Observed observe();
  /// Carries out a plan as the executor does: lanes in turn, a failed step stops its lane. Returns how many steps were done.
  int run(const plan::Plan& plan);
  /// Plans and carries out until nothing is left to do, at most `passes` times; the clock moves in between. Returns the passes.
  int settle(int passes = 50);

  /// All pending pods run, are ready, and register with Slurm.
  void start_pods();
  /// Terminating pods go.
  /// A user deletes a pod: its jobs die, and its node is set down by its own preStop.
  void user_deletes(const std::string& name);
  /// The same, and its preStop does not run: its kubelet is dead.
  void deleted_without_pre_stop(const std::string& name);
  void finish_pods();
  /// A new process of the operator.
  void restart() override {
    op::testing::World::restart();
    process_.reset();
  }

  kube::PodRecord& add_pod(int ordinal);  ///< Running, ready and registered as IDLE.
  /// A Kubernetes node; younger than those before it.
  kube::NodeRecord& add_host(const std::string& name, kube::StringMap labels = {});
  void remove_host(const std::string& name);
  slurm::Node& add_node(const std::string& name);
  std::int64_t add_job(std::vector<std::string> nodes, std::string state = "RUNNING");
  void end_job(std::int64_t id);
  /// Nobody owns the pod any more.
  void orphan(const std::string& pod) { pods.at(pod).meta.owners.clear(); }
  /// Replaces what was added to the slurm.conf before.
  void add_to_conf(const std::string& line) { config_map()["data"]["slurm.conf"] = "PrologFlags=Contain\n" + line + "\n"; }
  /// By the Controller's annotation.
  void stop_deletions(bool stopped) {
    controller()["metadata"]["annotations"][std::string(api::kAnnotationStopDeletions)] = stopped ? "true" : "false";
  }
  void remove_controller() { remove("Controller", {"default", "demo"}); }
  /// Its user deletes the Controller, which tells that its cluster ends.
  void end_cluster(bool drain);
  [[nodiscard]] core::Json& nodeset() { return document("NodeSet", name_); }
  [[nodiscard]] const core::Json& nodeset() const { return *find("NodeSet", {"default", name_}); }
  [[nodiscard]] core::Json& controller() { return document("Controller", "demo"); }
  [[nodiscard]] core::Json& config_map() { return document("ConfigMap", "demo-config"); }
  [[nodiscard]] core::Json& spec() { return nodeset()["spec"]; }
  [[nodiscard]] std::map<std::string, core::Json> revisions() const { return documents("ControllerRevision"); }
  [[nodiscard]] bool has_host_keys() const { return find("Secret", host_keys_key()) != nullptr; }
  void remove_host_keys() { op::testing::World::remove("Secret", host_keys_key()); }
  void rename(const std::string& name);
  /// Changes the spec as a user does: the generation moves.
  void edit(const std::string& field, core::Json value);
  [[nodiscard]] kube::PodRecord& pod(const std::string& name) { return pods.at(name); }
  [[nodiscard]] slurm::Node& node(const std::string& name) { return nodes.at(name); }
  [[nodiscard]] core::Json status() const { return nodeset().value("status", core::Json::object()); }
  /// "True Reason" of a condition of the NodeSet's status, or "".
  [[nodiscard]] std::string condition(std::string_view type) const;
  [[nodiscard]] std::string message(std::string_view type) const;

  std::map<std::string, kube::PodRecord> pods;
  std::map<std::string, std::string> images;  ///< Of slurmd, by pod.
  std::map<std::string, int> conf_weights;    ///< As slurmd says it, by pod.
  /// Where slurmd registers under another name than is expected: which, by pod.
  std::map<std::string, std::string> registers;
  std::string claim_event;                                  ///< What events say of each claim.
  std::map<std::string, KubeNode, std::less<>> kube_nodes;  ///< Others that pods run on are as new.
  std::set<std::string, std::less<>> gone_kube_nodes;
  std::map<std::string, kube::NodeRecord> hosts;  ///< All Kubernetes nodes, for scalingMode DaemonSet.
  kube::PodRecord slurmctld;                      ///< Its pod.
  /// What a test says otherwise of what was observed.
  std::function<void(Observed&)> amend;
  bool old_definitions = false;      ///< The API server does not keep status.drainsToRestore.
  std::set<std::string> partitions;  ///< That slurmctld has loaded.
  std::map<std::string, slurm::Reservation> reservations;
  slurm::Snapshot::Health health = slurm::Snapshot::Health::kComplete;
  bool slurm_readable = true;
  bool slurm_is_ours = true;  ///< What answers there is of this cluster.
  core::Duration snapshot_age{100};
  /// Errors with which steps fail, by the beginning of their id.
  std::map<std::string, core::Error> refuse;

  std::vector<std::string> done;        ///< Ids of all steps carried out.
  plan::Intent did;                     ///< The same as an intent tells them, without events and status.
  std::vector<std::string> violations;  ///< What must never be done, and was.

 private:
  core::Result<void> execute(const plan::Act& act) override;
  core::Result<void> create_pod(const kube::Create& act);
  core::Result<void> patch_pod(const kube::Patch& act);
  core::Result<void> remove_pod(const kube::Delete& act);
  [[nodiscard]] bool pod_uses(const std::string& claim) const;
  core::Result<void> patch_tolerations(kube::PodRecord& pod, const core::Json& operations);
  core::Result<void> slurm_act(const plan::Act& act);
  void check_intent(const plan::Intent& whole, const plan::Step& step);
  /// Lanes run side by side: what one writes to a pod that another deletes makes the deletion a Conflict.
  void note_conflicts(const plan::Plan& plan);
  core::Result<void> reservation_act(const plan::Act& act);
  /// Reservations begin and end with the clock.
  void tend_reservations();
  [[nodiscard]] bool job_on(const std::string& node) const;
  /// The Slurm node that its slurmd is.
  [[nodiscard]] std::string node_of(const kube::PodRecord& pod) const;
  [[nodiscard]] slurm::SnapshotPtr snapshot() const;
  [[nodiscard]] kube::Key host_keys_key() const { return {"default", worker_ssh_host_keys_name(name_)}; }
  /// Kubernetes nodes as the API server has them.
  [[nodiscard]] std::vector<std::shared_ptr<const kube::NodeRecord>> host_records() const;

  struct Process;
  std::shared_ptr<Process> process_;  ///< Of the operator.
  std::string name_ = "cpu";
  plan::Facts facts_;  ///< For the next observation.
  int uid_ = 0;
  std::int64_t job_ = 0;
};

}  // namespace op::nodeset::testing
