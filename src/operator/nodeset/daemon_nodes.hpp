// scalingMode DaemonSet: selects the Kubernetes nodes that should have a worker, and names the workers.
//
//   const NodeSelection selection(spec.pod_template.spec);
//   if (selection.judge(node).starts) ...
//
// As in Kubernetes' own DaemonSet controller, nodeSelector, required node affinity and taints decide. Workers also tolerate the
// taint of slurm-bridge, because it marks the nodes that have workers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/nodeset.hpp"
#include "core/json.hpp"
#include "kube/object.hpp"
#include "operator/nodeset/slots.hpp"

namespace op::nodeset {

/// What a pod requires of its Kubernetes node. The requirements are parsed once and then applied to many nodes. A requirement
/// that the API server would refuse matches no node.
class NodeSelection {
 public:
  /// `pod_spec`: spec.template.spec of a NodeSet.
  explicit NodeSelection(const core::Json& pod_spec);
  [[nodiscard]] Fit judge(const kube::NodeRecord& node) const;

 private:
  enum class Operator { kIn, kNotIn, kExists, kDoesNotExist, kGt, kLt, kUnknown };
  struct Requirement {
    std::string key;
    Operator op = Operator::kUnknown;
    std::vector<std::string> values;
    [[nodiscard]] bool met(const std::string* value) const;
  };
  struct Term {
    std::vector<Requirement> labels, fields;
    [[nodiscard]] bool met(const kube::NodeRecord& node) const;
  };
  static Requirement read_requirement(const core::Json& json);
  [[nodiscard]] bool tolerates(const kube::Taint& taint) const;

  kube::StringMap labels_;
  std::optional<std::vector<Term>> terms_;  ///< A node has to match one of the terms. Empty: any node matches.
  std::vector<kube::Toleration> tolerations_;
};

/// Returns, as items of spec.tolerations, the tolerations with effect NoSchedule that Kubernetes adds to the pods of
/// DaemonSets.
[[nodiscard]] core::Json daemon_tolerations(bool host_network);

/// Returns the name of the worker on a Kubernetes node, which is the worker's Slurm node name and hostname. The name is the
/// node's annotation hostname-override. Without the annotation: the part of the node's name before the first dot, or "10-0-0-5"
/// if the node is named by its IP address.
[[nodiscard]] std::string daemon_hostname(const kube::NodeRecord& node);

/// The name of each pod of a NodeSet begins with the NodeSet's name, cut to at most this many characters and then stripped of
/// '-' and '.' at the end.
inline constexpr std::size_t kPodNamePrefix = 52;
/// Returns the name of the NodeSet's pod on a Kubernetes node. Each pair of NodeSet and Kubernetes node has a different pod
/// name, even if both names are long.
[[nodiscard]] std::string daemon_pod_name(std::string_view nodeset, std::string_view kube_node);

/// Returns the place of a pod of the NodeSet. Another program might have created the pod. nullopt: the pod is not a worker.
[[nodiscard]] std::optional<SlotKey> place_of(const kube::PodRecord& pod, std::string_view nodeset);

using KubeNodes = std::vector<std::shared_ptr<const kube::NodeRecord>>;
/// Returns all `nodes` as hosts. Host::fit tells whether workers of the NodeSet fit the Kubernetes node.
[[nodiscard]] Hosts find_hosts(const api::NodeSetSpec& spec, const KubeNodes& nodes);

/// Decides which Kubernetes nodes (hosts) should have a worker. If several hosts would give their workers the same name, one
/// host takes precedence: the host whose existing worker (in `pods`) has that name, or else the oldest host. The other hosts
/// get no new worker.
void settle_hosts(Hosts& hosts, const std::vector<kube::PodPtr>& pods, std::string_view nodeset, bool named_after_hosts);

/// True if a change of a Kubernetes node might change whether a worker belongs on the node, or how that worker is named.
[[nodiscard]] bool matters_to_daemons(const kube::NodeRecord& before, const kube::NodeRecord& after);

}  // namespace op::nodeset
