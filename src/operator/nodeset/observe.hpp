// The NodeSet controller. One key is one NodeSet. What wakes it is in declaration.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/well_known.hpp"
#include "cluster/wiring.hpp"
#include "kube/cache/recorder.hpp"
#include "operator/nodeset/observed.hpp"

namespace op::nodeset {

struct Options {
  std::string cluster_domain = "cluster.local";  ///< For the DNS search path of workers.
  std::string worker_priority_class = {};        ///< Of workers whose NodeSet names none; "": the cluster's default.
  /// Keys of taints by which others announce that a Kubernetes node goes.
  std::vector<std::string> drain_taints{api::kDrainTaints.begin(), api::kDrainTaints.end()};
  /// Types of conditions of Kubernetes nodes whose messages stand in the reasons of drains for cordons.
  std::vector<std::string> propagated_conditions = {};
};

/// What it reads.
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
  /// Its cluster's.
  [[nodiscard]] std::string share(const kube::Key& key) const override;

 protected:
  [[nodiscard]] std::shared_ptr<const Observed> observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                              const run::Observation& context) override;

 private:
  /// A kubelet says that a pod has ended, and deletes it, in one go: a pass may see neither.
  void note_end(const kube::PodRecord& gone);
  [[nodiscard]] std::string doubt(const slurm::ClusterKey& cluster, const Observed& observed);

  /// What is known of a Kubernetes node by name; nullopt when it is unknown or gone.
  [[nodiscard]] std::optional<KubeNode> kube_node(const std::string& name, const Observed& observed) const;

  Wiring& wiring_;
  Caches caches_;
  Options options_;
  std::map<kube::Key, Seen> seen_;
  /// What doubt_of said last of a cluster, and of which round of polls: its NodeSets share it.
  std::map<slurm::ClusterKey, std::pair<std::uint64_t, std::string>> doubts_;
};

}  // namespace op::nodeset
