#include "slurm/holds.hpp"

#include <algorithm>
#include <array>

namespace slurm {
namespace {

constexpr std::array kOwners{Owner::kOperator, Owner::kBridge, Owner::kEnlistment};
constexpr std::string_view kBetween = "; ";
constexpr std::string_view kOfCluster = ", cluster ";
/// slurmctld appends this to a reason when the node stops responding (before 26.05).
constexpr std::string_view kAdded = " : Not responding";

std::string prefix_of(Owner owner) {
  return std::string(to_string(owner)) + ": ";
}

/// Changes each separator in the text that would seem to be followed by another hold.
std::string without_prefixes(std::string_view why) {
  std::string out(why);
  for (const Owner owner : kOwners) {
    const std::string begin = std::string(kBetween) + prefix_of(owner);
    for (std::size_t at = out.find(begin); at != std::string::npos; at = out.find(begin, at)) out[at] = ',';
  }
  return out;
}

std::optional<Owner> owner_at(std::string_view reason) {
  const auto it = std::ranges::find_if(kOwners, [&](Owner owner) { return reason.starts_with(prefix_of(owner)); });
  return it == kOwners.end() ? std::nullopt : std::optional(*it);
}

/// Returns the end of the hold with which the text begins: the position before the next hold, or the end of the text. Two holds
/// of one program can only follow each other if the program is slurm-bridge.
std::size_t end_of_hold(std::string_view text, Owner owner) {
  std::size_t out = text.size();
  for (const Owner next : kOwners) {
    if (next < owner || (next == owner && next != Owner::kBridge)) continue;
    out = std::min(out, text.find(std::string(kBetween) + prefix_of(next)));
  }
  return out;
}

/// Reads one hold without its prefix.
std::pair<Holder, std::string_view> read_hold(Owner owner, std::string_view text) {
  const std::size_t at = owner == Owner::kBridge ? text.rfind(kOfCluster) : std::string_view::npos;
  if (at == std::string_view::npos) return {owner, text};
  const std::string_view instance = text.substr(at + kOfCluster.size());
  if (instance.empty() || instance.contains(' ')) return {owner, text};
  return {{owner, std::string(instance)}, text.substr(0, at)};
}

}  // namespace

std::string_view to_string(Owner owner) {
  switch (owner) {
    case Owner::kOperator:
      return "slurm-operator";
    case Owner::kBridge:
      return "slurm-bridge";
    case Owner::kEnlistment:
      return "slurm-enlist";
  }
  return "";
}

Holds Holds::read(std::string_view reason) {
  Holds out;
  if (reason.ends_with(kAdded)) reason.remove_suffix(kAdded.size());
  for (auto owner = owner_at(reason); owner; owner = owner_at(reason)) {
    reason.remove_prefix(prefix_of(*owner).size());
    const std::size_t end = end_of_hold(reason, *owner);
    auto [holder, why] = read_hold(*owner, reason.substr(0, end));
    out.why_.insert_or_assign(std::move(holder), why);
    if (end == reason.size()) break;
    reason.remove_prefix(end + kBetween.size());
  }
  return out;
}

std::optional<std::string> Holds::why(const Holder& holder) const {
  const auto it = why_.find(holder);
  return it == why_.end() ? std::nullopt : std::optional(it->second);
}

Holds& Holds::hold(const Holder& holder, std::string_view because) {
  why_[holder] = without_prefixes(because);
  return *this;
}

Holds& Holds::release(const Holder& holder) {
  why_.erase(holder);
  return *this;
}

std::string Holds::reason() const {
  std::string out;
  for (const auto& [holder, why] : why_) {
    out += (out.empty() ? "" : std::string(kBetween)) + prefix_of(holder.owner) + why;
    if (!holder.instance.empty()) out += std::string(kOfCluster) + holder.instance;
  }
  return out;
}

bool held_by(std::string_view reason, const Holder& holder) {
  return Holds::read(reason).has(holder);
}

bool slurms_own(std::string_view reason) {
  return reason == kNotResponding || reason == "Not responding : Not responding" || reason == "Node unexpectedly rebooted";
}

bool down_by_slurm(const Node& node) {
  if (node.state.base != "DOWN" || node.state.has("DRAIN") || node.state.has("FAIL")) return false;
  return slurms_own(node.reason) || node.reason.ends_with(kAdded);
}

bool given_by_others(std::string_view reason, const Holder& than) {
  if (reason.empty() || slurms_own(reason)) return false;
  const Holds holds = Holds::read(reason);
  return holds.none() || holds.others_than(than);
}

std::string said_by_others(std::string_view reason, const Holder& than) {
  if (!given_by_others(reason, than)) return {};
  if (Holds holds = Holds::read(reason); !holds.none()) return holds.release(than).reason();
  if (reason.ends_with(kAdded)) reason.remove_suffix(kAdded.size());
  return std::string(reason);
}

bool drained_without(const Node& node, const Holder& holder) {
  if (!node.state.drains()) return false;
  const Holds holds = Holds::read(node.reason);
  return !holds.none() && !holds.has(holder);
}

}  // namespace slurm
