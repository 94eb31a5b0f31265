// The decisions about one node: what to write to its record, and whether to open the gate. Pure.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "enlist/rules/judge.hpp"
#include "enlist/rules/model.hpp"
#include "plan/plan.hpp"
#include "slurm/acts.hpp"

namespace enlist {

/// Writes what the coordinator has judged to the record of a node. Fails with kConflict if the node is gone, has another key,
/// or if its report is about another process by now.
struct RecordPhase final : plan::Act {
  RecordPhase(const Node& seen, Phase judged, std::string because)
      : node(seen.name),
        key(seen.key),
        instance_id(seen.report.instance_id),
        phase(judged),
        message(std::move(because)),
        registrations(seen.registrations),
        confirmed(seen.confirmed),
        gate_boot(seen.gate_boot) {}
  std::string node;
  std::string key, instance_id;  ///< As they were seen.
  Phase phase;
  std::string message;
  std::uint64_t registrations;
  std::string confirmed;
  std::string gate_boot;
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] Withhold withhold() const override { return Withhold::kNever; }
};

struct NodeObserved {
  plan::Context context;
  slurm::ClusterKey cluster;
  std::optional<Node> node{};  ///< nullopt: there is no such record any more.
  slurm::SnapshotPtr slurm{};
  /// As in JudgeInput.
  std::optional<core::MonoTime> running_since{}, registered_at{}, started_at{};
  int registered = 0;
  std::optional<core::MonoTime> heard_at{};
  std::optional<std::size_t> max_node_count{};
};

[[nodiscard]] plan::Plan plan_node(const NodeObserved& observed);

/// The reason of a node that only our gate keeps drained: "slurm-enlist: joining".
[[nodiscard]] std::string gate_reason();

}  // namespace enlist
