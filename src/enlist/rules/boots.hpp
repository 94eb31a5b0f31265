// Notices that two hosts use the key of one node, as after the disk of a host was copied.
//
// Folder src/enlist/rules: the rules of enlistment, shared by the coordinator, the agent and the Juju charms. No I/O. Uses
// slurm_plan and core.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/clock.hpp"

namespace enlist {

/// For how long a node counts as that of two hosts after the last sign. Their agents report every 30 s at least.
inline constexpr core::Duration kTwoHostsFor{120'000};

/// The boots of which agents have reported with the key of one node. A host has another boot id after each boot, and never an
/// earlier one again. So a boot id that comes back after another one is a sure sign of two hosts.
class Boots {
 public:
  /// Takes what a report says. An empty boot id says nothing.
  void heard(const std::string& boot_id, const std::string& hostname, core::MonoTime at);
  /// True if no boot was heard of yet.
  [[nodiscard]] bool empty() const { return boots_.empty(); }
  /// Returns that two hosts use the key, which ones, and what to do, in one line. "": there is no sign of it.
  [[nodiscard]] std::string two_hosts(core::MonoTime now) const;

 private:
  struct Boot {
    std::string id, hostname;
  };
  std::vector<Boot> boots_;  ///< The one that was heard of last is the last one.
  std::optional<core::MonoTime> returned_at_;
};

}  // namespace enlist
