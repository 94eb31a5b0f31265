// Keeps which nodes pods fit on, so that the pods of one template look at all nodes once.
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
  /// Sets the nodes that of() looks at. Forgets all fits if a node changed in a way that fit_of() can see. Requires that
  /// `hosts` is another object after such a change of a Kubernetes node.
  void follow(std::shared_ptr<const Hosts> hosts, slurm::SnapshotPtr snapshot, std::string_view installation);
  /// Returns the fit of a pod in partitions: fit_of(). Requires a call of follow().
  [[nodiscard]] FitPtr of(const PodPtr& pod, const std::string& partitions);
  [[nodiscard]] std::size_t size() const { return fits_.size(); }

  /// The most fits that are kept. Each may name all nodes.
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
