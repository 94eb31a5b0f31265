// Updates the records of nodes from what Slurm shows, opens the gates of confirmed nodes, and takes nodes that leave out of
// Slurm. Has a run::Key for each node.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/loop.hpp"
#include "enlist/coordinator/plan.hpp"
#include "enlist/rules/boots.hpp"
#include "enlist/store/store.hpp"
#include "run/controller.hpp"
#include "slurm/snapshot/registry.hpp"

namespace enlist {

class NodesController final : public run::TypedController<NodeObserved> {
 public:
  /// `wake` starts a pass for a key. `max_node_count` returns MaxNodeCount, or nullopt if it is unknown. `forget_dead_after`:
  /// see NodeObserved.
  NodesController(core::Loop& loop, Store& store, slurm::Clusters& clusters, slurm::ClusterKey cluster,
                  std::function<void(const run::Key&)> wake, std::function<std::optional<std::size_t>()> max_node_count,
                  std::optional<core::Duration> forget_dead_after = {});

  [[nodiscard]] std::string name() const override { return "nodes"; }
  [[nodiscard]] std::string share(const run::Key&) const override { return cluster_; }

  void start();  ///< Wakes the keys of all nodes.
  /// Call it with each report, before it is stored. Returns false if the report must not be stored, because two hosts use the
  /// key of the node.
  bool reports(const Node& node, const Report& report);
  void heard(const std::string& node);  ///< Call it when the agent of the node has reported.
  /// Returns when the agent of the node last reported to this process; nullopt: never.
  [[nodiscard]] std::optional<core::MonoTime> heard_at(const std::string& node) const;
  void changed(const Changes& changes);  ///< Call it after each change of the store.
  void changed(const slurm::Change& change);

 private:
  /// What this process has seen of a node. It is not stored, because the times are those of this process.
  struct Seen {
    core::MonoTime since{};  ///< When this process first saw the node: at its own start, or when the host joined.
    std::string instance_id{};
    core::WallTime started{};
    std::uint64_t registrations = 0;
    std::optional<core::MonoTime> running_since{}, registered_at{}, started_at{}, heard_at{};
    int registered = 0;
    std::optional<core::MonoTime> leave_asked_at{}, kept_since{};
    std::optional<core::MonoTime> absent_since{};  ///< NodeObserved::absent_since.
    std::string leave_asked{};                     ///< The request: "leave", or "words " and the other parameters. "": none.
    std::string kept_by{};                         ///< Leaves::kept_by.
    Boots boots{};
  };
  Seen& seen_of(const std::string& node);
  /// Updates `seen` with what the node's report says about slurmd.
  static void follow(Seen& seen, const Node& node, core::MonoTime now);
  static void observe_leave(Seen& seen, NodeObserved& out);
  void observe_departed(const std::string& node, NodeObserved& out);
  [[nodiscard]] std::shared_ptr<const NodeObserved> observe_typed(const run::Key& key, run::Recorder& recorder,
                                                                  const run::Observation& context) override;

  core::Loop& loop_;
  Store& store_;
  slurm::Clusters& clusters_;
  slurm::ClusterKey cluster_;
  std::function<void(const run::Key&)> wake_;
  std::function<std::optional<std::size_t>()> max_node_count_;
  std::optional<core::Duration> forget_dead_after_;
  std::map<std::string, Seen> seen_;
};

}  // namespace enlist
