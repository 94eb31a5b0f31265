#include "enlist/rules/boots.hpp"

#include <algorithm>
#include <utility>

namespace enlist {
namespace {

/// The number of boots of a node that are remembered.
constexpr std::size_t kMost = 16;

}  // namespace

void Boots::heard(const std::string& boot_id, const std::string& hostname, core::MonoTime at) {
  if (boot_id.empty() || (!boots_.empty() && boots_.back().id == boot_id)) return;
  const auto found = std::ranges::find(boots_, boot_id, &Boot::id);
  if (found != boots_.end()) {
    returned_at_ = at;
    boots_.erase(found);
  } else if (boots_.size() == kMost) {
    boots_.erase(boots_.begin());
  }
  boots_.push_back({boot_id, hostname});
}

std::string Boots::two_hosts(core::MonoTime now) const {
  if (!returned_at_ || now - *returned_at_ >= kTwoHostsFor) return "";
  const auto text = [](const Boot& boot) { return boot.hostname + " (boot " + boot.id + ")"; };
  std::string one = text(boots_.back()), other = text(boots_.at(boots_.size() - 2));
  // The message must not depend on which host has reported last.
  if (other < one) std::swap(one, other);
  return "two hosts use the key of this node, as after a disk was copied: " + one + " and " + other +
         ". On the copy, stop slurm-enlist-agent and slurmd, remove /var/lib/slurm-enlist, and join with a new token";
}

}  // namespace enlist
