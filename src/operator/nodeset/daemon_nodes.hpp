// scalingMode DaemonSet: which Kubernetes nodes are to have a worker, and what each worker is called.
//
//   const NodeSelection selection(spec.pod_template.spec);
//   if (selection.judge(node).starts) ...
//
// Nodes are judged as Kubernetes' own DaemonSet controller does: by nodeSelector, required node affinity, and taints.
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

/// What a pod asks of its node, read once for many nodes. What the API server would refuse in a pod matches no node.
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
  std::optional<std::vector<Term>> terms_;  ///< One of them; empty: any node will do.
  std::vector<kube::Toleration> tolerations_;
};

/// What the pods of a DaemonSet tolerate beside what their template says, as items of spec.tolerations.
[[nodiscard]] core::Json daemon_tolerations(bool host_network);

/// The Slurm node, and hostname, of the worker on a Kubernetes node: the Node's annotation hostname-override, or the first
/// label of its name; "10-0-0-5" of one that is named by its address.
[[nodiscard]] std::string daemon_hostname(const kube::NodeRecord& node);

/// So much of a NodeSet's name all names of its pods begin with.
inline constexpr std::size_t kPodNamePrefix = 52;
/// The name of the pod on a Kubernetes node: one for each, whatever the lengths of the two names.
[[nodiscard]] std::string daemon_pod_name(std::string_view nodeset, std::string_view kube_node);

/// The place of a pod of the NodeSet, whoever made it; empty: it has none, and is no worker.
[[nodiscard]] std::optional<SlotKey> place_of(const kube::PodRecord& pod, std::string_view nodeset);

using KubeNodes = std::vector<std::shared_ptr<const kube::NodeRecord>>;
/// The Kubernetes nodes, as the NodeSet's workers may run there.
[[nodiscard]] Hosts find_hosts(const api::NodeSetSpec& spec, const KubeNodes& nodes);

/// Which of the hosts are to have a worker: told once it is known which have one. Of those that give their workers one name,
/// the first is that which has its worker, then the oldest.
void settle_hosts(Hosts& hosts, const std::vector<kube::PodPtr>& pods, std::string_view nodeset, bool named_after_hosts);

/// What decides about workers on a node has changed.
[[nodiscard]] bool matters_to_daemons(const kube::NodeRecord& before, const kube::NodeRecord& after);

}  // namespace op::nodeset
