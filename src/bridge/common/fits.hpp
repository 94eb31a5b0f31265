// Caches the fits of pods, so that all nodes are checked only once for the pods of one template.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "bridge/common/hosts.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace bridge {

class Fits {
 public:
  /// Sets the nodes that of() checks. Forgets all fits if a node has changed in a way that matters for fit_of(). Requires a new
  /// object `hosts` after such a change of a Kubernetes node.
  void follow(std::shared_ptr<const Hosts> hosts, slurm::SnapshotPtr snapshot, std::string_view installation);
  /// Returns the fit of the pod in `partitions` (names separated by commas), like fit_of(). Call follow() first.
  [[nodiscard]] FitPtr of(const PodPtr& pod, const std::string& partitions);
  [[nodiscard]] std::size_t size() const { return fits_.size(); }

  /// The largest number of cached fits. Each fit can list all nodes.
  static constexpr std::size_t kMost = 64;

 private:
  using Template = std::pair<PodPtr, std::string>;  ///< A pod of the template, and the partitions.
  struct Less {
    bool operator()(const Template& a, const Template& b) const;
  };

  std::shared_ptr<const Hosts> hosts_;
  slurm::SnapshotPtr snapshot_;
  std::string installation_;
  std::map<Template, FitPtr, Less> fits_;
};

}  // namespace bridge
