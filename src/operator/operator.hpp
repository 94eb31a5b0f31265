// The operator as a whole: its controllers, wired to a manager according to their declarations (slinky/wiring.hpp), and its
// connections to Slurm. The binary and the simulator both use this class; only the loop, the transports, the clock and the
// random source differ.
//
//   kube::Manager manager(loop, random, log, client, options);
//   op::Operator slurm_operator(loop, random, log, manager, {slurm_transport, reach}, {});
//   manager.start();
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/kinds.hpp"
#include "api/well_known.hpp"
#include "core/log.hpp"
#include "core/loop.hpp"
#include "core/random.hpp"
#include "kube/app/manager.hpp"
#include "operator/common/port_target.hpp"
#include "slurm/snapshot/registry.hpp"

namespace op {

struct OperatorOptions {
  std::vector<std::string> namespaces;  ///< Empty: all. If there is exactly one, only Nodes are read outside of it.
  std::string cluster_domain = "cluster.local";
  std::string worker_priority_class = {};  ///< Default priority class of workers; "": the cluster's default.
  /// True if the operator has the right to read Kubernetes nodes. If this is false and `namespaces` has exactly one namespace,
  /// the operator needs only a Role in that namespace.
  bool kubernetes_nodes = true;
  /// `drain_taints`: keys of the taints that announce the end of a Kubernetes node. `propagated_node_conditions`: types of the
  /// node conditions that are added to drain reasons.
  std::vector<std::string> drain_taints{api::kDrainTaints.begin(), api::kDrainTaints.end()};
  std::vector<std::string> propagated_node_conditions = {};
};

/// The operator's connections to servers other than the API server.
struct Network {
  slurm::Clusters::TransportFactory slurm;  ///< Connects to the slurmrestd of a cluster.
  Reach reach;                              ///< Connects to the port of an external slurmdbd.
};

class Operator {
 public:
  /// Registers its controllers and targets with the manager, which must not be started yet. The operator must live until the
  /// manager has stopped, and the manager must outlive the operator.
  Operator(core::Loop& loop, core::Random& random, core::Logger& log, kube::Manager& manager, Network network,
           OperatorOptions options = {});
  ~Operator();
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  [[nodiscard]] slurm::Clusters& clusters();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Returns the chart's file with the rules of the ClusterRole. The rules grant the rights that all controllers declare.
[[nodiscard]] api::GeneratedFile cluster_role_file();

}  // namespace op
