// Not an oracle by itself: records the state of a Slurm node at the operator's last read before a write.
//
// Slurm has no conditional writes, and Kubernetes has none that depend on Slurm. So the operator cannot see a change by others
// between its live read (the look) and its write. A deleted worker must have been idle and out of service (held) at the look. A
// look counts only for the pod of that time, for a short time, and until the operator frees the node.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/loop.hpp"
#include "sim/kube/api.hpp"
#include "sim/site/slurm_site.hpp"

namespace sim {

/// The longest time from the operator's live look to its write: two reads of 12 s each, and a pause of the operator.
inline constexpr core::Duration kLookAndWrite{90000};

class Looks {
 public:
  Looks(core::Loop& loop, KubeApi& api, SlurmSite& site);
  Looks(const Looks&) = delete;
  Looks& operator=(const Looks&) = delete;

  /// Notes that an operator reads one Slurm node.
  void look(const std::string& node);
  /// Notes a change that frees a node, and who makes it.
  void updated(const SlurmSite::Cluster& cluster, const SimNode& node, const SimNodeUpdate& update, const std::string& user);
  /// Returns when an operator last read this Slurm node alone.
  [[nodiscard]] std::optional<core::MonoTime> asked(const std::string& node) const;
  /// Returns when an administrator last freed the node.
  [[nodiscard]] std::optional<core::MonoTime> freed(const kube::Key& controller, const std::string& node) const;
  [[nodiscard]] bool was_idle_and_held(const std::string& node) const;
  /// Reports whether the node was idle and held at the look, and an administrator freed it later, so that the operator could
  /// not see what started since.
  [[nodiscard]] bool was_freed_since(const kube::Key& controller, const std::string& node) const;

 private:
  /// One read of a Slurm node by an operator.
  struct Look {
    core::MonoTime at;
    bool idle_and_held = false;  ///< See idle_and_held in objects.hpp.
  };
  void listen();

  core::Loop& loop_;
  KubeApi& api_;
  SlurmSite& site_;
  std::map<std::string, Look> asked_;                                  ///< Maps a node to the last look.
  std::map<std::pair<kube::Key, std::string>, core::MonoTime> freed_;  ///< By Controller and node: when an admin freed it.
};

}  // namespace sim
