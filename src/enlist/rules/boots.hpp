// Detects that two hosts use the key of one node, for example after the disk of a host was copied.
//
// Folder src/enlist/rules: the rules of enlistment, shared by the coordinator, the agent and the Juju charms. No I/O. Uses
// slurm_plan and core.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/clock.hpp"

namespace enlist {

/// How long a node counts as used by two hosts after the last report that shows it. Each agent reports at least every 30 s.
inline constexpr core::Duration kTwoHostsFor{120'000};

/// The boots that agents have reported with the key of one node. A host gets a new boot id at each boot, and never gets an
/// earlier one again. So if an earlier boot id is reported again after another one, two hosts use the key.
class Boots {
 public:
  /// Records a report of an agent. Ignores a report with an empty boot id.
  void heard(const std::string& boot_id, const std::string& hostname, core::MonoTime at);
  /// True if no report was recorded yet.
  [[nodiscard]] bool empty() const { return boots_.empty(); }
  /// Returns which two hosts use the key, and what to do about it, in one line. "": there is no sign of two hosts.
  [[nodiscard]] std::string two_hosts(core::MonoTime now) const;

 private:
  struct Boot {
    std::string id, hostname;
  };
  std::vector<Boot> boots_;  ///< In the order of their last reports, the latest at the end.
  std::optional<core::MonoTime> returned_at_;
};

}  // namespace enlist
