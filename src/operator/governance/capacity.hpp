// Limits that follow capacity: expressions over the TRES of a cluster, their values, and the delay before a limit falls. Pure.
//
// Folder src/operator/governance: the controller of SlurmQos, SlurmAccount, SlurmUser and SlurmAssociation. Uses
// operator/common, and no other controller.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "core/result.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace op::governance {

/// A limit is lowered only after its expression has had a lower value for this long without interruption.
inline constexpr core::Duration kFallDelay{30000};

/// An expression over the capacity of a cluster, as a syntax tree:
///
///   expression = product (('+' | '-') product)*
///   product    = term ('*' term)*
///   term       = NUMBER | NUMBER'%' | 'all' | 'partition(' NAME ')' | '(' expression ')'
///              | ('min' | 'max') '(' expression ',' expression ')' | ('floor' | 'ceil' | 'round') '(' expression ')'
///
/// NUMBER can have a fraction. `50%` is `all * 0.5`.
struct Expression {
  enum class Kind { kNumber, kAll, kPartition, kAdd, kSubtract, kMultiply, kMin, kMax, kFloor, kCeil, kRound };
  Kind kind = Kind::kNumber;
  double number = 0;                                    ///< The value, for kNumber.
  std::string partition;                                ///< The name of the partition, for kPartition.
  std::vector<std::shared_ptr<const Expression>> args;  ///< The operands in the order of the text: none, one or two.
};

/// Reads an expression. Error: kInvalid, with the position of the mistake (from 1) and what is allowed at this position. A text
/// without `%`, `all` and `partition` is also an error.
[[nodiscard]] core::Result<Expression> read_expression(std::string_view text);

/// True if the text is meant as an expression, whether it is valid or not: it contains `%`, `all` or `partition`.
[[nodiscard]] bool is_expression(std::string_view text);

/// Returns an error (kInvalid) if this TRES has no capacity. Only cpu, mem, node, gres/gpu and gres/gpu:TYPE have one.
[[nodiscard]] core::Result<void> check_tres(std::string_view tres);

/// The capacity of the nodes of a cluster, by TRES, in the units of Slurm: CPUs, MB, nodes and GPUs.
struct Capacity {
  using Counts = std::map<std::string, std::int64_t, std::less<>>;
  Counts all;
  std::map<std::string, Counts, std::less<>> partitions;  ///< All partitions of the cluster, also those without nodes.
  friend bool operator==(const Capacity&, const Capacity&) = default;
};

/// True if Slurm can run jobs on the node, or can power it up for them. Nodes that are down, failing, draining, drained, being
/// rebooted or not responding do not count. Nodes that are powered down count.
[[nodiscard]] bool is_capacity(const slurm::Node& node);

/// Returns the capacity of a cluster, or nullopt unless the snapshot is complete and fresh.
[[nodiscard]] std::optional<Capacity> capacity_of(const slurm::Snapshot& snapshot, core::MonoTime now);

/// Reports whether any of these nodes contributes a different amount to the capacity in `now` than in `before`. Jobs on the
/// nodes make no difference.
[[nodiscard]] bool capacity_changed(const std::vector<std::string>& nodes, const slurm::Snapshot& before,
                                    const slurm::Snapshot& now);

struct Evaluation {
  std::int64_t value = 0;
  std::map<std::string, std::int64_t, std::less<>> inputs;  ///< The capacities used: {"all": 128, "partition(gpu)": 64}.
};

/// Evaluates an expression for a TRES. The value is rounded down, and is 0 or more. Errors: kInvalid if the TRES is not
/// supported; kNotFound if the cluster has no such partition or no such TRES.
[[nodiscard]] core::Result<Evaluation> evaluate(const Expression& expression, std::string_view tres, const Capacity& capacity);

/// The value in force of a limit, and since when the value of the limit's expression has been lower without interruption.
struct Damped {
  std::int64_t value = 0;
  std::optional<core::WallTime> lower_since;
  friend bool operator==(const Damped&, const Damped&) = default;
};

struct Damping {
  Damped next;
  std::optional<core::WallTime> look_again;  ///< The time at which the limit can be lowered.
};

/// Returns the value to put in force. A higher `now_value` is in force at once, a lower one only after kFallDelay. While
/// `now_value` is unknown, the last value stays in force, and the delay starts again. nullopt: there is no value yet.
[[nodiscard]] std::optional<Damping> damp(std::optional<std::int64_t> now_value, const std::optional<Damped>& last,
                                          core::WallTime now);

}  // namespace op::governance
