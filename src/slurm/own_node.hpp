// External nodes that our programs create: their settings, the mark by which a program recognizes its nodes, and the evidence
// that a node may be deleted.
//
// An external node (State=EXTERNAL, Slurm 25.05 and later) has no slurmd. The request that creates a node can only set fields
// of slurm.conf. So the program's mark is a feature: the node has the mark even if the process ends right after the request.
//
//   slurm-bridge/UID of the Kubernetes cluster/digest of what the node was created with
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "slurm/evidence.hpp"

namespace slurm {

/// The settings of an external node to create.
struct NodeWish {
  std::string name;
  std::string address;  ///< If "", slurmctld looks up the node's name at each start of a job.
  std::int64_t cpus = 1, real_memory_mib = 1;
  std::int64_t gpus = 0;              ///< Slurm drops them without an error if GresTypes does not have gpu.
  std::vector<std::string> features;  ///< The features other than the mark.
  friend bool operator==(const NodeWish&, const NodeWish&) = default;
};
/// Reports whether the word is safe as a name or feature in node_line(): only ASCII letters, digits and - _ . / : (at least
/// one). Slurm expands brackets in names, and commas and blanks end a word.
[[nodiscard]] bool is_plain_word(std::string_view word);
/// Returns a digest of the settings that cannot be changed in an existing node record: address, CPUs, memory and GPUs.
[[nodiscard]] std::string made_of(const NodeWish& wish);

/// The program that created a node.
struct NodeMark {
  Owner owner{};
  std::string instance;  ///< The installation of the owner. Several installations can share one slurmctld.
  std::string made;      ///< The digest made_of() of the NodeWish.
  /// Returns the feature of the node.
  [[nodiscard]] std::string feature() const;
  friend bool operator==(const NodeMark&, const NodeMark&) = default;
};
/// Returns the mark of the node; nullopt if it is not external, or if none of our programs created it. A node with two marks
/// counts as having none.
[[nodiscard]] std::optional<NodeMark> mark_of(const Node& node);
/// Returns the line that describes the node in POST new/node.
[[nodiscard]] std::string node_line(const NodeWish& wish, const NodeMark& mark);

/// Proves that a fresh snapshot has the node with this mark, that only the owner drained it, and that it is idle (see Drained).
class OwnDrained final : public NodeEvidence {
 public:
  static std::optional<OwnDrained> of(const plan::Observing& observing, const Snapshot& snapshot, NodeId node, Owner owner,
                                      std::string_view instance);
  [[nodiscard]] const NodeMark& mark() const { return mark_; }

 private:
  OwnDrained(const plan::Observing& observing, const NodeEvidence& drained, NodeMark mark)
      : NodeEvidence(observing, drained.node(), "OwnDrained", drained.detail(), drained.good_until(), drained.reason(),
                     Live::kDrained),
        mark_(std::move(mark)) {}

  NodeMark mark_;
};

}  // namespace slurm
