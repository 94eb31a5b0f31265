// Compares names as Slurm does: names of clusters, of NodeSets of one Controller, and of the workers of these NodeSets.
#pragma once

#include <compare>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kube/object.hpp"

namespace op {

/// Reports whether both names mean the same cluster to Slurm, which writes cluster names in lower case.
[[nodiscard]] bool same_cluster_name(std::string_view a, std::string_view b);

/// Returns the workers of a NodeSet.
using WorkersOf = std::function<std::vector<kube::PodPtr>(const kube::Object& nodeset)>;

/// Orders NodeSets that have the same name in Slurm. The NodeSet that sorts first owns the name, and so the NodeSet= and
/// PartitionName= lines of the name. NodeSets with workers sort before NodeSets without workers, because slurmctld already
/// knows the workers under that name. Otherwise, older NodeSets sort first.
struct Precedence {
  bool without_workers = true;
  core::WallTime created;
  std::string name;
  friend auto operator<=>(const Precedence&, const Precedence&) = default;
};
Precedence precedence(const WorkersOf& workers_of, const kube::Object& nodeset);

/// Another NodeSet of the same Controller, whose workers might get the names of our workers. For example, the NodeSet "gpu"
/// with two-digit ordinals and the NodeSet "gpu0" can both have a worker gpu00.
struct Rival {
  std::string nodeset;
  std::set<std::string, std::less<>> nodes;  ///< The Slurm node names of the rival's workers.
  std::string prefix;
  int padding = 0;
  int reserved = 0;           ///< The rival takes precedence for its ordinals below this number, even without a worker.
  bool claims_hosts = false;  ///< The rival takes precedence for all names of Kubernetes nodes: its scalingMode is DaemonSet.
  [[nodiscard]] bool takes(std::string_view node) const;
};
/// Returns `other` as a Rival of `self`. If the names cannot collide, `nodes` is empty. If `self` takes precedence, or if
/// `other` is being deleted, the Rival reserves no names.
Rival rival(const WorkersOf& workers_of, const kube::Object& self, const kube::Object& other);

}  // namespace op
