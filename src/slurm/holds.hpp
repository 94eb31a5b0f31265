// Who keeps a node from work, told by the reason that Slurm has of it: after a restart there is nothing else to tell it by.
//
// Several of our programs may hold one node, each for a cause of its own. None undoes, or forgets, what another one or a person
// still wants. Slurm has one reason for each node, so that all holds stand in it, each behind the name of its program:
//
//   slurm-operator: Node (a) was cordoned; slurm-bridge: pods run there
//
// A reason that does not begin like this is somebody else's, and holds nothing of ours.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "slurm/model.hpp"

namespace slurm {

/// A program of ours that drains nodes. In the order in which their holds stand in a reason.
enum class Owner { kOperator, kBridge, kEnlistment };

/// "slurm-operator": what begins its holds.
[[nodiscard]] std::string_view to_string(Owner owner);

class Holds {
 public:
  /// What a reason says; none when it is somebody else's, or slurmctld's own.
  [[nodiscard]] static Holds read(std::string_view reason);

  [[nodiscard]] bool none() const { return why_.empty(); }
  [[nodiscard]] bool has(Owner owner) const { return why_.contains(owner); }
  /// Why the owner holds the node; nullopt: it does not.
  [[nodiscard]] std::optional<std::string> why(Owner owner) const;
  /// A program other than this one holds it too.
  [[nodiscard]] bool others_than(Owner owner) const { return why_.size() > (has(owner) ? 1U : 0U); }

  /// An owner has one hold; the last word counts.
  Holds& hold(Owner owner, std::string_view because);
  Holds& release(Owner owner);
  /// The reason that says all this; "" when nothing holds the node.
  [[nodiscard]] std::string reason() const;

 private:
  std::map<Owner, std::string> why_;
};

/// This program holds the node, be it together with others.
[[nodiscard]] bool held_by(std::string_view reason, Owner owner);

/// slurmctld's word for a node whose slurmd is silent. It writes its own reasons over this one, and over no other.
inline constexpr std::string_view kNotResponding = "Not responding";
/// slurmctld's own, for a slurmd that is silent, or whose machine has started anew.
[[nodiscard]] bool slurms_own(std::string_view reason);
/// slurmctld set it down for its silence, or when its machine had started anew. It adds the first to a reason that is left over
/// (before 26.05), never to one of a node that is down.
[[nodiscard]] bool down_by_slurm(const Node& node);

/// Somebody gave this reason who is neither slurmctld, for a slurmd that is away, nor this program alone: a person, or another
/// program of ours.
[[nodiscard]] bool given_by_others(std::string_view reason, Owner than);
/// The part of a reason that given_by_others is about, without what slurmctld adds to it for silence.
[[nodiscard]] std::string said_by_others(std::string_view reason, Owner than);
/// It drains, and only other programs of ours say why: the word of this one can stand beside theirs.
[[nodiscard]] bool drained_without(const Node& node, Owner owner);

}  // namespace slurm
