// The operator as a whole: its controllers, wired to a manager by what each of them declares (cluster/wiring.hpp), and its
// connections to Slurm. The same for the binary and for the simulator; only the loop, the transports, the clock and the random
// source differ.
//
//   kube::Manager manager(loop, random, log, client, options);
//   op::Operator slurm_operator(loop, random, log, manager, slurm_transport, {});
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
#include "slurm/snapshot/registry.hpp"

namespace op {

struct OperatorOptions {
  std::vector<std::string> namespaces;  ///< Empty: all. With exactly one, nothing outside of it is read.
  std::string cluster_domain = "cluster.local";
  std::string worker_priority_class = {};  ///< Of workers whose NodeSet names none; "": the cluster's default.
  /// Whether Kubernetes nodes may be read. Without them, and with exactly one namespace, a Role in that is enough.
  bool kubernetes_nodes = true;
  /// Taints by which others announce that a Kubernetes node goes, and conditions that the reasons of drains for cordons quote.
  std::vector<std::string> drain_taints{api::kDrainTaints.begin(), api::kDrainTaints.end()};
  std::vector<std::string> propagated_node_conditions = {};
};

class Operator {
 public:
  /// Registers everything with the manager, which must not have been started; both must outlive its last callback.
  Operator(core::Loop& loop, core::Random& random, core::Logger& log, kube::Manager& manager,
           slurm::Clusters::TransportFactory slurm_transport, OperatorOptions options = {});
  ~Operator();
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  [[nodiscard]] slurm::Clusters& clusters();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The rules of the ClusterRole in the chart: what all controllers together declare.
[[nodiscard]] api::GeneratedFile cluster_role_file();

}  // namespace op
