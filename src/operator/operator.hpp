// The operator as a whole: its controllers, wired to a manager according to their declarations (slinky/wiring.hpp), and its
// connections to Slurm. The binary and the simulator use it alike; only the loop, the transports, the clock and the random
// source differ.
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
  std::vector<std::string> namespaces;  ///< Empty: all. With exactly one, only Kubernetes nodes are read outside of it.
  std::string cluster_domain = "cluster.local";
  std::string worker_priority_class = {};  ///< Default priority class of workers; "": the cluster's default.
  /// True if Kubernetes nodes may be read. If not, and with exactly one namespace, a Role in that namespace is sufficient.
  bool kubernetes_nodes = true;
  /// Keys of taints that announce the end of a Kubernetes node, and types of node conditions to add to drain reasons.
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

/// Returns the file with the rules of the ClusterRole in the chart: the rights that all controllers declare.
[[nodiscard]] api::GeneratedFile cluster_role_file();

}  // namespace op
