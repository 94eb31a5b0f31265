// The controller of NodeSets. It reconciles each NodeSet by its "ns/name". declaration.cpp lists the changes that wake it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/well_known.hpp"
#include "kube/cache/recorder.hpp"
#include "operator/common/slinky.hpp"
#include "operator/nodeset/observed.hpp"
#include "slinky/wiring.hpp"

namespace op::nodeset {

struct Options {
  std::string cluster_domain = "cluster.local";  ///< For the DNS search path of workers.
  std::string worker_priority_class = {};        ///< Priority class if the NodeSet names none. "": the cluster's default.
  /// Keys of taints that announce the end of a Kubernetes node.
  std::vector<std::string> drain_taints{api::kDrainTaints.begin(), api::kDrainTaints.end()};
  /// Types of Kubernetes node conditions whose messages are added to the reason of a drain that a cordon causes.
  std::vector<std::string> propagated_conditions = {};
};

/// The caches that the controller reads.
struct Caches {
  explicit Caches(Wiring& wiring);
  kube::Cache<kube::Object>&nodesets, &controllers, &config_maps, &controller_revisions, &claims;
  kube::Cache<kube::PodRecord>& pods;
  kube::Cache<kube::NodeRecord>& nodes;
  bool reads_nodes;
};

class NodeSetController final : public kube::TypedController<Observed> {
 public:
  explicit NodeSetController(Wiring& wiring, Options options = {});
  [[nodiscard]] std::string name() const override { return "nodeset"; }
  /// Returns the key of the NodeSet's Slurm cluster.
  [[nodiscard]] std::string share(const kube::Key& key) const override;

 protected:
  [[nodiscard]] std::shared_ptr<const Observed> observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                              const run::Observation& context) override;

 private:
  /// Records that a pod has ended. A kubelet reports the end of a pod and deletes the pod so soon afterwards that a pass might
  /// never observe the ended pod.
  void note_end(const kube::PodRecord& gone);
  [[nodiscard]] std::string doubt(const slurm::ClusterKey& cluster, const Observed& observed);

  /// Returns the state of a Kubernetes node. nullopt: it is unknown or gone.
  [[nodiscard]] std::optional<KubeNode> kube_node(const std::string& name, const Observed& observed) const;

  Wiring& wiring_;
  Caches caches_;
  Options options_;
  std::map<kube::Key, Seen> seen_;
  /// For each cluster: the last result of doubt_of, and the Snapshot::round for which it was computed. All NodeSets of a
  /// cluster share this result.
  std::map<slurm::ClusterKey, std::pair<std::uint64_t, std::string>> doubts_;
};

}  // namespace op::nodeset
