// NodeSets of one Controller that ask for the same names in Slurm: who has them, and who waits.
#pragma once

#include <compare>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kube/object.hpp"

namespace op {

/// The workers of a NodeSet.
using WorkersOf = std::function<std::vector<kube::PodPtr>(const kube::Object& nodeset)>;

/// Of NodeSets with one name in Slurm, the first has it, with the NodeSet= and PartitionName= of that name. One that has
/// workers comes first, for slurmctld knows them by it; then the older one.
struct Precedence {
  bool without_workers = true;
  core::WallTime created;
  std::string name;
  friend auto operator<=>(const Precedence&, const Precedence&) = default;
};
Precedence precedence(const WorkersOf& workers_of, const kube::Object& nodeset);

/// A NodeSet of the same Controller whose workers may have names of ours: "gpu" with two digits, and "gpu0", both make gpu00.
struct Rival {
  std::string nodeset;
  std::set<std::string, std::less<>> nodes;  ///< Slurm names of its workers.
  std::string prefix;
  int padding = 0;
  int reserved = 0;           ///< So many ordinals are its own, though there is no worker yet: it comes before us.
  bool claims_hosts = false;  ///< The same of the names of Kubernetes nodes: its scalingMode is DaemonSet.
  [[nodiscard]] bool takes(std::string_view node) const;
};
/// `other` as a rival of `self`; without nodes and ordinals where their names cannot meet.
Rival rival(const WorkersOf& workers_of, const kube::Object& self, const kube::Object& other);

}  // namespace op
