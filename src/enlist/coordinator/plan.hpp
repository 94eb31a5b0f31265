// The decisions about one node: what to write to its record, and what to change in Slurm, such as its gate. Pure.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "enlist/rules/judge.hpp"
#include "enlist/rules/leave.hpp"
#include "enlist/rules/model.hpp"
#include "plan/plan.hpp"
#include "slurm/acts.hpp"

namespace enlist {

/// Writes the result of judge() or judge_leave() to the record of a node. Fails with kConflict if the node does not exist any
/// more, or if its key, its Report::instance_id, Node::leaving or Node::configuring has changed since it was seen. With
/// `heard_at`, also fails if the agent has reported since then.
struct RecordPhase final : plan::Act {
  RecordPhase(const Node& seen, Phase judged, std::string because)
      : node(seen.name),
        key(seen.key),
        instance_id(seen.report.instance_id),
        seen_leaving(seen.leaving),
        seen_configuring(seen.configuring),
        phase(judged),
        message(std::move(because)),
        registrations(seen.registrations),
        confirmed(seen.confirmed),
        gate_boot(seen.gate_boot),
        leaving(seen.leaving),
        configuring(seen.configuring),
        node_conf(seen.node_conf),
        live(seen.live),
        marks(seen.marks),
        silent_since(seen.silent_since) {}
  std::string node;
  std::string key, instance_id;  ///< Node::key and Report::instance_id when the plan was made.
  Leaving seen_leaving;          ///< Node::leaving when the plan was made.
  Configuring seen_configuring;  ///< Node::configuring when the plan was made.
  Phase phase;
  std::string message;
  std::uint64_t registrations;
  std::string confirmed;
  std::string gate_boot;
  Leaving leaving;
  Configuring configuring;
  std::string node_conf;
  LiveWords live;
  Marks marks;
  core::WallTime silent_since;
  std::optional<core::MonoTime> heard_at{};  ///< NodeObserved::heard_at, if the node leaves because its host is silent.
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] Withhold withhold() const override { return Withhold::kNever; }
};

/// Deletes the record of a node that has left, so that its key is not known any more, and adds a departed node (departed.hpp).
/// Fails with kConflict if the record has changed since it was seen. With `heard_at`, also fails if the agent has reported
/// since then.
struct ForgetNode final : plan::Act {
  explicit ForgetNode(const Node& node) : seen(node) {}
  Node seen;
  std::optional<core::MonoTime> heard_at{};  ///< NodeObserved::heard_at, unless the host has reported that it is clean.
  [[nodiscard]] core::Json describe() const override { return {{"act", "enlist.ForgetNode"}, {"node", seen.name}}; }
};

/// Puts a departed node, of which slurmctld has the record again, back among the nodes. Does nothing if it is not departed.
struct ReturnNode final : plan::Act {
  explicit ReturnNode(std::string name) : node(std::move(name)) {}
  [[nodiscard]] core::Json describe() const override { return {{"act", "enlist.ReturnNode"}, {"node", node}}; }
  [[nodiscard]] Withhold withhold() const override { return Withhold::kNever; }
  std::string node;
};

/// Forgets a departed node.
struct ForgetDeparted final : plan::Act {
  explicit ForgetDeparted(std::string name) : node(std::move(name)) {}
  [[nodiscard]] core::Json describe() const override { return {{"act", "enlist.ForgetDeparted"}, {"node", node}}; }
  std::string node;
};

/// Returns the record for a node that has left (departed.hpp). It has a request to leave, and kDepartedKey in place of the key.
[[nodiscard]] Node departed(const Node& left);

struct NodeObserved {
  plan::Context context;
  slurm::ClusterKey cluster;
  std::optional<Node> node{};  ///< nullopt: the store has no record of the node any more.
  std::string pool_conf{};     ///< Pool::node_conf of its pool.
  slurm::SnapshotPtr slurm{};
  /// See JudgeInput for these three, `registered` and `heard_at`.
  std::optional<core::MonoTime> running_since{}, registered_at{}, started_at{};
  int registered = 0;
  std::optional<core::MonoTime> heard_at{};
  std::optional<std::size_t> max_node_count{};
  std::optional<core::MonoTime> leave_asked_at{};  ///< LeaveInput::asked_at.
  std::optional<core::MonoTime> kept_since{};      ///< LeaveInput::kept_since.
  /// A node that has been silent for this long leaves. nullopt: silent nodes stay.
  std::optional<core::Duration> forget_dead_after{};
  std::string two_hosts{};  ///< Boots::two_hosts.
  // If `node` is nullopt and the node is a departed one (departed.hpp):
  std::optional<Node> departed{};
  std::optional<core::MonoTime> absent_since{};  ///< Since when Slurm lacks the record. nullopt: not missing, or unknown.
};

/// Returns the input of judge_leave() for a node that leaves or is restarted with other parameters. Requires `observed.node`.
/// `observed` must outlive the result.
[[nodiscard]] LeaveInput leave_input(const NodeObserved& observed);

[[nodiscard]] plan::Plan plan_node(const NodeObserved& observed);

/// Returns the reason of a node that only our gate drains: "slurm-enlist: joining".
[[nodiscard]] std::string gate_reason();

}  // namespace enlist
