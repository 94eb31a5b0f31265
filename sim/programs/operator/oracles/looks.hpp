// No promise by itself: what the operator saw of a Slurm node right before it wrote.
//
// Slurm has no conditional write, and Kubernetes none that depends on Slurm: what an admin does, or a slurmd that registers,
// between the live look and the write is not seen. So what goes must have been idle and held when it was looked at. A look is
// good for this pod, for a short while, and until the operator itself frees the node.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/loop.hpp"
#include "sim/kube/api.hpp"
#include "sim/site/slurm_site.hpp"

namespace sim {

/// From the live look of an act to its write: two reads of 12 s each, and the operator may stand still between them.
inline constexpr core::Duration kLookAndWrite{90000};

class Looks {
 public:
  Looks(core::Loop& loop, KubeApi& api, SlurmSite& site);
  Looks(const Looks&) = delete;
  Looks& operator=(const Looks&) = delete;

  /// An operator asks for one Slurm node.
  void look(const std::string& node);
  /// Somebody changes a node.
  void updated(const SlurmSite::Cluster& cluster, const SimNode& node, const SimNodeUpdate& update, const std::string& user);
  /// When an operator last asked for a Slurm node by itself.
  [[nodiscard]] std::optional<core::MonoTime> asked(const std::string& node) const;
  /// When an administrator last freed it.
  [[nodiscard]] std::optional<core::MonoTime> freed(const kube::Key& controller, const std::string& node) const;
  [[nodiscard]] bool was_idle_and_held(const std::string& node) const;
  /// It was idle and held, and then an administrator freed it: what has begun there since nobody could see.
  [[nodiscard]] bool was_freed_since(const kube::Key& controller, const std::string& node) const;

 private:
  /// An operator asks for one Slurm node.
  struct Look {
    core::MonoTime at;
    bool idle_and_held = false;  ///< See idle_and_held in objects.hpp.
  };
  void listen();

  core::Loop& loop_;
  KubeApi& api_;
  SlurmSite& site_;
  std::map<std::string, Look> asked_;                                  ///< By node.
  std::map<std::pair<kube::Key, std::string>, core::MonoTime> freed_;  ///< By Controller and node.
};

}  // namespace sim
