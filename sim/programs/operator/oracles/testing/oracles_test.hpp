// Helps to test oracles: a settled world, and functions for events that must not happen in that world.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/acts.hpp"
#include "plan/plan.hpp"
#include "sim/programs/operator/oracles/agents.hpp"
#include "sim/programs/operator/world.hpp"
#include "slinky/names.hpp"

namespace sim {

/// A world with two idle workers. The tests do, in the operator's name, what the operator must never do.
class OraclesTest : public testing::Test {
 protected:
  void SetUp() override {
    world.found_cluster(2);
    ASSERT_THAT(world.settle(core::Duration{180000}), testing::IsEmpty());
    ASSERT_THAT(violations(), testing::IsEmpty());
  }
  [[nodiscard]] const std::vector<std::string>& violations() { return world.oracles().violations(); }
  void delete_worker(const std::string& name) {
    Caller caller;
    caller.user = std::string(kOperatorAgent);
    ASSERT_TRUE(world.api().remove(kube::resources::kPod, {World::kNamespace, name}, {}, caller));
  }
  void set_state(const std::string& node, const char* state, std::string_view user) {
    SimNodeUpdate change;
    change.state = state;
    ASSERT_EQ(world.slurm()->update_node(node, change, std::string(user)), SlurmErrno::kSuccess);
  }
  /// Deletes both workers while the operator is down. Their records do not name their owner.
  void leave_unmarked_records() {
    world.crash(0, core::Duration{60000});
    world.loop().run_for(core::Duration{1});
    for (const char* name : {"cpu-0", "cpu-1"}) {
      SimNodeUpdate change;
      change.comment = "";
      ASSERT_EQ(world.slurm()->update_node(name, change, std::string(kSlurmAdmin)), SlurmErrno::kSuccess);
      world.kube().nodes().fail_pod({World::kNamespace, name});  // so that no preStop writes the operator's reason
      world.remove(kube::resources::kPod, name);
    }
    const auto gone = [&] {
      return world.find(kube::resources::kPod, "cpu-0") == nullptr && world.find(kube::resources::kPod, "cpu-1") == nullptr;
    };
    ASSERT_TRUE(world.loop().run_until(gone, core::Duration{30000}));
  }
  /// Reads the node, as the operator does right before a write.
  void look_at(const std::string& node) {
    world.judges().request({.method = "GET", .target = "/slurm/v0.0.42/node/" + node}, true, "");
  }
  /// Starts a job on both workers.
  bool start_job() {
    JobRequest request;
    request.partition = "cpu";
    request.nodes = 2;
    request.duration = core::Duration{3600000};
    world.slurm()->submit(request);
    return world.loop().run_until([&] { return world.slurm()->busy("cpu-0"); }, core::Duration{20000});
  }
  void delete_controller(const char* policy) {
    world.merge(slinky::resources::kController, World::kCluster, {{"spec", {{"deletionPolicy", policy}}}});
    world.remove(slinky::resources::kController, World::kCluster);
  }
  static plan::Plan plan_of(const kube::Resource& resource, core::Json object) {
    plan::Plan plan;
    plan.lane("test").add({{"create it"}, "test", kube::create(resource, std::move(object))});
    return plan;
  }

  OperatorWorld world;
};

}  // namespace sim
