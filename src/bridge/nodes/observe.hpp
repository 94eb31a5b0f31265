// The nodes controller: registers Kubernetes nodes as external nodes of Slurm. If a node is taken out of service in Slurm or in
// Kubernetes, the controller takes it out of service in the other system too. A key is the name of a node in Slurm.
// declaration.cpp lists the changes that wake a key.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "bridge/common/caches.hpp"
#include "bridge/common/held.hpp"
#include "bridge/common/job_table.hpp"
#include "bridge/common/observer.hpp"
#include "bridge/nodes/observed.hpp"
#include "kube/cache/recorder.hpp"
#include "slinky/wiring.hpp"

namespace bridge::nodes {

class NodesController final : public kube::TypedController<Observed> {
 public:
  NodesController(slinky::Wiring& wiring, Settings settings);
  [[nodiscard]] std::string name() const override { return "nodes"; }
  [[nodiscard]] std::string share(const kube::Key&) const override { return settings_->cluster; }
  /// Returns the nodes for which a bridge that retires must keep running. "node NAME" is a Kubernetes node with the taint of
  /// managed nodes; an external node has the taint until it has left Slurm. "Slurm node NAME" is a Slurm node that the bridge
  /// created or drained, or for which it listed jobs for the prolog.
  [[nodiscard]] std::vector<std::string> left();

 protected:
  std::shared_ptr<const Observed> observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                const run::Observation& context) override;

 private:
  /// The history of a node, as this process has seen it.
  struct Memory {
    std::optional<core::MonoTime> absent_since, other_since, unanswered_since;
    std::string other;  ///< The resources that the Kubernetes node asked for in the last observation; "": none.
    /// For a node with a slurmd: the jobs of the bridge on the node, and since when each job is gone.
    std::map<std::int64_t, std::optional<core::MonoTime>> held;
    bool had_host = false;  ///< The bridge did not create the Slurm node, and this process has seen its Kubernetes node.
  };

  [[nodiscard]] const Hosts& hosts();
  /// Updates hosts_ after a change of a Kubernetes node.
  void follow_host(const HostPtr& before, const HostPtr& after);
  [[nodiscard]] std::string slurm_pod_on(const std::string& kube_node) const;
  void observe_absence(const run::Observation& context, Observed& out, Memory& memory) const;
  void observe_resources(const run::Observation& context, Observed& out, Memory& memory);
  void observe_held(const run::Observation& context, Observed& out, Memory& memory);
  /// Returns the jobs of the bridge that hold the node, and the jobs whose pods might still run on the node.
  [[nodiscard]] std::set<std::int64_t> jobs_there(const Observed& out, const HeldJobs& listed);
  /// Reports whether `extra` of the Slurm node lists jobs of this installation for the prolog. While the UID of this
  /// installation is not known, the jobs of any installation count.
  [[nodiscard]] bool lists_jobs(const slurm::Node& node);
  /// Reports whether the bridge created or drained the Slurm node, or the node lists jobs. Retirement waits for such nodes.
  [[nodiscard]] bool is_left(const slurm::Node& node);
  [[nodiscard]] bool another_is_made_again(const Observed& out, std::string_view why) const;
  [[nodiscard]] slinky::Keys all_keys();
  [[nodiscard]] slinky::Keys woken_by(const slurm::Change& change);

  slinky::Wiring& wiring_;
  Caches caches_;
  std::shared_ptr<const Settings> settings_;
  std::optional<Hosts> hosts_;  ///< Unset after a node was added, removed, or renamed in Slurm.
  std::map<kube::Key, Memory> memory_;
  JobTable table_;
  NeverPlaced never_placed_;
  std::string installation_;                     ///< Observed::installation, once it is known.
  std::map<std::string, kube::Key> made_again_;  ///< For each cause, the only node whose record may be recreated now.
};

}  // namespace bridge::nodes
