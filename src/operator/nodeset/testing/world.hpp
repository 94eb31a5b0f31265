// A Kubernetes and a Slurm in memory, for tests of NodeSet plans. The real caches and the real observer read the state of both,
// and plans change that state.
//
//   World world({{"replicas", 3}});
//   world.run(plan_nodeset(world.observe()));   // creates pods
//   world.start_pods();                          // they run and register
//
// The world refuses requests that the real servers refuse, as far as plans depend on that. The world fails the test if a worker
// with a running job is deleted. Unlike the simulator, it has no faults, no delays and only one NodeSet.
#pragma once

#include <functional>
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
#include "operator/nodeset/observe.hpp"
#include "operator/testing/world.hpp"
#include "slinky/names.hpp"
#include "slurm/acts.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace op::nodeset::testing {

class World : public op::testing::World {
 public:
  explicit World(core::Json spec = core::Json::object());

  /// Returns what a pass would observe now.
  [[nodiscard]] Observed observe();
  /// Carries out the lanes of a plan one after the other. A failed step stops its lane. If the plan needs facts, reads these
  /// facts and carries out no step. Returns the number of steps tried, or 1 if the plan needed facts.
  int run(const plan::Plan& plan);
  /// Plans and carries out until nothing is left to do, at most `passes` times. Advances the clock after each pass. Returns the
  /// number of passes.
  int settle(int passes = 50);

  /// Makes all pending pods run, become ready, and register with Slurm.
  void start_pods();
  /// A user deletes a pod. The pod's jobs end, and its preStop hook sets its node down unless the node is idle and somebody
  /// else has drained it.
  void user_deletes(const std::string& name);
  /// A user deletes a pod whose kubelet is dead, so that its preStop hook does not run.
  void deleted_without_pre_stop(const std::string& name);
  /// Removes terminating pods that have no finalizers. The Slurm nodes of these pods go down.
  void finish_pods();
  /// Restarts the operator.
  void restart() override {
    op::testing::World::restart();
    process_.reset();
  }

  kube::PodRecord& add_pod(int ordinal);  ///< Adds a running, ready pod whose node is IDLE.
  /// Adds or replaces a Kubernetes node. The node is newer than all other Kubernetes nodes.
  kube::NodeRecord& add_host(const std::string& name, kube::StringMap labels = {});
  void remove_host(const std::string& name);
  slurm::Node& add_node(const std::string& name);
  std::int64_t add_job(std::vector<std::string> nodes, std::string state = "RUNNING");
  void end_job(std::int64_t id);
  /// Removes the owner references of the pod.
  void orphan(const std::string& pod) { pods.at(pod).meta.owners.clear(); }
  /// Adds a line to slurm.conf, in place of the line that an earlier call added.
  void add_to_conf(const std::string& line) { config_map()["data"]["slurm.conf"] = "PrologFlags=Contain\n" + line + "\n"; }
  /// Sets the Controller's annotation that stops deletions.
  void stop_deletions(bool stopped) {
    controller()["metadata"]["annotations"][std::string(api::kAnnotationStopDeletions)] = stopped ? "true" : "false";
  }
  void remove_controller() { remove("Controller", {"default", "demo"}); }
  /// A user deletes the Controller, and the Controller's status reports that its cluster ends.
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
  /// Changes the spec as a user does: the generation increases.
  void edit(const std::string& field, core::Json value);
  [[nodiscard]] kube::PodRecord& pod(const std::string& name) { return pods.at(name); }
  [[nodiscard]] slurm::Node& node(const std::string& name) { return nodes.at(name); }
  [[nodiscard]] core::Json status() const { return nodeset().value("status", core::Json::object()); }
  /// Returns "True Reason" for a condition of the NodeSet's status, or "" if the status lacks the condition.
  [[nodiscard]] std::string condition(std::string_view type) const;
  [[nodiscard]] std::string message(std::string_view type) const;

  std::map<std::string, kube::PodRecord> pods;
  std::map<std::string, std::string> images;  ///< Images of slurmd, by pod.
  std::map<std::string, int> conf_weights;    ///< The weight in slurmd's --conf, by pod.
  /// Unexpected names under which slurmd registers, by pod.
  std::map<std::string, std::string> registers;
  std::string claim_event;  ///< The note of the events about each claim.
  std::set<std::string, std::less<>> gone_kube_nodes;
  /// The Kubernetes nodes that were added. Nodes on which pods run exist as well.
  std::map<std::string, kube::NodeRecord> hosts;
  kube::PodRecord slurmctld_pod;
  /// If set, changes the facts after each observation.
  std::function<void(Observed&)> amend;
  bool old_definitions = false;      ///< The API server does not keep status.drainsToRestore.
  std::set<std::string> partitions;  ///< The partitions that slurmctld has loaded.
  std::map<std::string, slurm::Reservation> reservations;
  slurm::Snapshot::Health health = slurm::Snapshot::Health::kComplete;
  bool slurm_readable = true;
  bool slurm_is_ours = true;  ///< Slurm's answers come from this cluster, not from another.
  core::Duration snapshot_age{100};
  /// Errors of steps and of dry runs, by prefixes of their ids.
  std::map<std::string, core::Error> refuse;

  std::vector<std::string> done;        ///< Ids of all steps carried out.
  plan::Intent did;                     ///< `done` as an intent, without events and status.
  std::vector<std::string> violations;  ///< Acts that must never be carried out, but were.

 private:
  core::Result<void> execute(const plan::Act& act) override;
  core::Result<void> create_pod(const kube::Create& act);
  core::Result<void> patch_pod(const kube::Patch& act);
  core::Result<void> remove_pod(const kube::Delete& act);
  [[nodiscard]] bool pod_uses(const std::string& claim) const;
  core::Result<void> patch_tolerations(kube::PodRecord& pod, const core::Json& operations);
  core::Result<void> slurm_act(const plan::Act& act);
  void check_intent(const plan::Intent& whole, const plan::Step& step);
  /// Records the pods that one lane deletes and another writes to: lanes run in parallel, so the deletion fails with Conflict.
  void note_conflicts(const plan::Plan& plan);
  core::Result<void> reservation_act(const plan::Act& act);
  /// Begins and ends reservations according to the clock.
  void tend_reservations();
  [[nodiscard]] bool job_on(const std::string& node) const;
  /// Returns the name of the Slurm node of the pod's slurmd.
  [[nodiscard]] std::string node_of(const kube::PodRecord& pod) const;
  [[nodiscard]] slurm::SnapshotPtr snapshot() const;
  [[nodiscard]] kube::Key host_keys_key() const { return {"default", worker_ssh_host_keys_name(name_)}; }
  /// Returns all Kubernetes nodes as records.
  [[nodiscard]] std::vector<std::shared_ptr<const kube::NodeRecord>> host_records() const;

  struct Process;
  std::shared_ptr<Process> process_;  ///< The operator's process.
  std::string name_ = "cpu";
  plan::Facts facts_;  ///< The API server's direct answers for the next observation.
  int uid_ = 0;
  std::int64_t job_ = 0;
};

}  // namespace op::nodeset::testing
