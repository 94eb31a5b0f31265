// Finds out from the reason of a Slurm node who keeps the node out of service (drained, failing or down). After a restart of
// our program, no other record shows this.
//
// Several of our programs can keep a node out of service, each for its own cause, called a hold. No program may undo the hold
// of another program or of a person. The node's reason contains all holds, each behind the name of its program:
//
//   slurm-operator: Node (a) was cordoned; slurm-bridge: pods run there
//
// The bridges of several Kubernetes clusters can hold one node. Their holds name the cluster by its UID:
//
//   slurm-bridge: Kubernetes node (a) is not ready, cluster UID; slurm-bridge: Kubernetes node (b) was cordoned, cluster UID
//
// A reason that does not begin with one of our prefixes, such as "slurm-bridge: ", comes from somebody else and has no hold.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "slurm/model.hpp"

namespace slurm {

/// A program of ours that drains nodes. The order is that of the holds in a reason.
enum class Owner { kOperator, kBridge, kEnlistment };

/// Returns the name of the program, which precedes its hold: "slurm-operator".
[[nodiscard]] std::string_view to_string(Owner owner);

/// A program that can hold nodes, and its installation if several installations can hold one node.
struct Holder {
  Owner owner{};
  std::string instance;  ///< The UID of a bridge's Kubernetes cluster; "": the hold names no cluster.
  Holder(Owner by, std::string of = {}) : owner(by), instance(std::move(of)) {}  // NOLINT(google-explicit-constructor)
  friend auto operator<=>(const Holder&, const Holder&) = default;
};

class Holds {
 public:
  /// Parses a reason. Returns no holds if the reason is somebody else's or slurmctld's own.
  [[nodiscard]] static Holds read(std::string_view reason);

  [[nodiscard]] bool none() const { return why_.empty(); }
  [[nodiscard]] bool has(const Holder& holder) const { return why_.contains(holder); }
  /// Returns why the holder holds the node, or nullopt.
  [[nodiscard]] std::optional<std::string> why(const Holder& holder) const;
  /// True if another program of ours, or another installation of the holder's program, holds the node.
  [[nodiscard]] bool others_than(const Holder& holder) const { return why_.size() > (has(holder) ? 1U : 0U); }
  /// Returns all holds, in the order of the reason.
  [[nodiscard]] const std::map<Holder, std::string>& all() const { return why_; }

  /// Sets the holder's hold. Replaces an earlier hold of the holder.
  Holds& hold(const Holder& holder, std::string_view because);
  Holds& release(const Holder& holder);
  /// Renders all holds; "" if there are none.
  [[nodiscard]] std::string reason() const;

 private:
  std::map<Holder, std::string> why_;
};

/// True if the reason contains a hold of the holder, alone or beside other holds.
[[nodiscard]] bool held_by(std::string_view reason, const Holder& holder);

/// slurmctld's reason for a node whose slurmd does not respond. It is the only reason that slurmctld later overwrites with
/// another reason of its own.
inline constexpr std::string_view kNotResponding = "Not responding";
/// True for slurmctld's own reasons: the slurmd does not respond, or its machine has rebooted.
[[nodiscard]] bool slurms_own(std::string_view reason);
/// True if slurmctld set the node down because its slurmd did not respond or its machine had rebooted. False if the node also
/// drains or fails, because then somebody wants it out of service. A reason that ends with " : Not responding" also counts:
/// before 26.05, slurmctld adds this to a left-over reason when it sets a node down, but not if the node is already down.
[[nodiscard]] bool down_by_slurm(const Node& node);

/// True if the reason comes from somebody other than slurmctld and the holder `than`: a person, another program of ours, or
/// another installation of the holder's program.
[[nodiscard]] bool given_by_others(std::string_view reason, const Holder& than);
/// Returns the reason without the hold of `than` and without slurmctld's " : Not responding"; "" unless given_by_others().
[[nodiscard]] std::string said_by_others(std::string_view reason, const Holder& than);
/// True if the node drains, and it is held by other programs or installations of ours but not by `holder`. Then the hold of
/// `holder` can be added.
[[nodiscard]] bool drained_without(const Node& node, const Holder& holder);

}  // namespace slurm
