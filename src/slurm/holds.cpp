#include "slurm/holds.hpp"

#include <array>

namespace slurm {
namespace {

constexpr std::array kOwners{Owner::kOperator, Owner::kBridge, Owner::kEnlistment};
constexpr std::string_view kBetween = "; ";
/// slurmctld appends this to a reason when the node stops responding (before 26.05).
constexpr std::string_view kAdded = " : Not responding";

std::string prefix_of(Owner owner) {
  return std::string(to_string(owner)) + ": ";
}

/// Changes each separator in the text after which another hold would seem to begin.
std::string without_prefixes(std::string_view why) {
  std::string out(why);
  for (const Owner owner : kOwners) {
    const std::string begin = std::string(kBetween) + prefix_of(owner);
    for (std::size_t at = out.find(begin); at != std::string::npos; at = out.find(begin, at)) out[at] = ',';
  }
  return out;
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
  std::optional<Owner> current;
  for (const Owner owner : kOwners) {
    const std::string prefix = prefix_of(owner);
    std::size_t at = 0;
    if (current) {
      at = reason.find(std::string(kBetween) + prefix);
      if (at == std::string_view::npos) continue;
      out.why_[*current] = reason.substr(0, at);
      at += kBetween.size();
    } else if (!reason.starts_with(prefix)) {
      continue;
    }
    reason.remove_prefix(at + prefix.size());
    current = owner;
  }
  if (current) out.why_[*current] = reason;
  return out;
}

std::optional<std::string> Holds::why(Owner owner) const {
  const auto it = why_.find(owner);
  return it == why_.end() ? std::nullopt : std::optional(it->second);
}

Holds& Holds::hold(Owner owner, std::string_view because) {
  why_[owner] = without_prefixes(because);
  return *this;
}

Holds& Holds::release(Owner owner) {
  why_.erase(owner);
  return *this;
}

std::string Holds::reason() const {
  std::string out;
  for (const auto& [owner, why] : why_) out += (out.empty() ? "" : std::string(kBetween)) + prefix_of(owner) + why;
  return out;
}

bool held_by(std::string_view reason, Owner owner) {
  return Holds::read(reason).has(owner);
}

bool slurms_own(std::string_view reason) {
  return reason == kNotResponding || reason == "Not responding : Not responding" || reason == "Node unexpectedly rebooted";
}

bool down_by_slurm(const Node& node) {
  if (node.state.base != "DOWN" || node.state.has("DRAIN") || node.state.has("FAIL")) return false;
  return slurms_own(node.reason) || node.reason.ends_with(kAdded);
}

bool given_by_others(std::string_view reason, Owner than) {
  if (reason.empty() || slurms_own(reason)) return false;
  const Holds holds = Holds::read(reason);
  return holds.none() || holds.others_than(than);
}

std::string said_by_others(std::string_view reason, Owner than) {
  if (!given_by_others(reason, than)) return {};
  if (Holds holds = Holds::read(reason); !holds.none()) return holds.release(than).reason();
  if (reason.ends_with(kAdded)) reason.remove_suffix(kAdded.size());
  return std::string(reason);
}

bool drained_without(const Node& node, Owner owner) {
  if (!node.state.drains()) return false;
  const Holds holds = Holds::read(node.reason);
  return !holds.none() && !holds.has(owner);
}

}  // namespace slurm
