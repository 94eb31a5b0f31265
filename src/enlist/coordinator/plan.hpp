// The decisions about one node: what to write to its record, and whether to open the gate. Pure.
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

/// Writes what the coordinator has judged to the record of a node. Fails with kConflict if the node is gone, has another key,
/// if its report is about another process by now, or if the wish that it leaves, or that it gets other words, has changed. The
/// leave of a dead host also fails if its agent was heard of since.
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
  std::string key, instance_id;  ///< As they were seen.
  Leaving seen_leaving;          ///< As it was seen.
  Configuring seen_configuring;  ///< As it was seen.
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
  std::optional<core::MonoTime> heard_at{};  ///< NodeObserved::heard_at, if the host is given up because it is silent.
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] Withhold withhold() const override { return Withhold::kNever; }
};

/// Deletes the record of a node that has left, so that its key is not known any more, and makes it a departed node
/// (departed.hpp). Fails with kConflict if the node has changed since, or if its host is not clean and its agent was heard of
/// since.
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

/// Returns a node that has left as it is remembered: it leaves, and no host speaks for it.
[[nodiscard]] Node departed(const Node& left);

struct NodeObserved {
  plan::Context context;
  slurm::ClusterKey cluster;
  std::optional<Node> node{};  ///< nullopt: there is no such record any more.
  std::string pool_conf{};     ///< Pool::node_conf of its pool.
  slurm::SnapshotPtr slurm{};
  /// As in JudgeInput.
  std::optional<core::MonoTime> running_since{}, registered_at{}, started_at{};
  int registered = 0;
  std::optional<core::MonoTime> heard_at{};
  std::optional<std::size_t> max_node_count{};
  std::optional<core::MonoTime> leave_asked_at{};  ///< LeaveInput::asked_at.
  std::optional<core::MonoTime> kept_since{};      ///< LeaveInput::kept_since.
  /// A node that has been silent for this long leaves. nullopt: it stays.
  std::optional<core::Duration> forget_dead_after{};
  std::string two_hosts{};  ///< Boots::two_hosts.
  // If there is no such node any more, and it has left a moment ago:
  std::optional<Node> departed{};
  std::optional<core::MonoTime> absent_since{};  ///< Since when Slurm lacks its record; nullopt: Slurm has it, or is not known.
};

/// Returns what judge_leave needs of a node that leaves or is restarted with other words. The node must be there, and must
/// outlive the result.
[[nodiscard]] LeaveInput leave_input(const NodeObserved& observed);

[[nodiscard]] plan::Plan plan_node(const NodeObserved& observed);

/// The reason of a node that only our gate keeps drained: "slurm-enlist: joining".
[[nodiscard]] std::string gate_reason();

}  // namespace enlist
