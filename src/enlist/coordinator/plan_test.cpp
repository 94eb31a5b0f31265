#include "enlist/coordinator/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/manual_loop.hpp"

namespace enlist {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A node whose slurmd runs, and which Slurm shows as it should be, behind the gate.
struct NodePlanTest : ::testing::Test {
  NodePlanTest() {
    node.name = "gpu-1";
    node.pool = "gpu";
    node.key = "key";
    node.report = {.hostname = "h",
                   .boot_id = "b",
                   .slurm_version = "26.05.1",
                   .conf = "CPUs=4 RealMemory=1000",
                   .instance_id = "i1",
                   .running = true,
                   .check_passed = true};
    record.name = "gpu-1";
    record.instance_id = "i1";
    record.features = record.partitions = {"gpu"};
    record.cpus = 4;
    record.real_memory_mib = 1000;
    record.state = {"IDLE", {"DRAIN"}};
    record.reason = gate_reason();
  }
  [[nodiscard]] plan::Plan plan(bool in_slurm = true) const {
    auto slurm = std::make_shared<slurm::Snapshot>();
    slurm->health = slurm::Snapshot::Health::kComplete;
    slurm->requested_at = now;
    if (in_slurm) slurm->nodes.emplace(record.name, std::make_shared<slurm::Node>(record));
    slurm->partitions.emplace("gpu", slurm::Partition{"gpu", "gpu-1", "UP", false});
    NodeObserved observed{.context = {}, .cluster = "c", .node = node, .slurm = slurm};
    observed.context.mono = now;
    observed.heard_at = now;
    observed.running_since = running_since;
    return plan_node(observed);
  }
  static std::vector<std::string> steps(const plan::Plan& plan) {
    std::vector<std::string> out;
    for (const auto& [name, lane] : plan.lanes()) {
      for (const auto& group : lane.groups()) {
        for (const plan::Step& step : group) out.push_back(step.id.text());
      }
    }
    return out;
  }
  static const RecordPhase& recorded(const plan::Plan& plan) {
    return dynamic_cast<const RecordPhase&>(*plan.lanes().at("node").groups().at(0).at(0).act);
  }

  core::MonoTime now{core::Duration{1'000'000}};
  std::optional<core::MonoTime> running_since = now;
  Node node;
  slurm::Node record;
};

TEST_F(NodePlanTest, AConfirmedNodeIsRecordedBeforeItsGateOpens) {
  const plan::Plan made = plan();
  ASSERT_EQ(made.lanes().at("node").groups().size(), 2U);
  EXPECT_THAT(steps(made), ElementsAre("record phase gpu-1: Enlisted", "open the gate of Slurm node gpu-1"));
  EXPECT_EQ(recorded(made).confirmed, "i1");
  const auto& opens = dynamic_cast<const slurm::ResumeNode&>(*made.lanes().at("node").groups().at(1).at(0).act);
  EXPECT_EQ(opens.holder.owner, slurm::Owner::kEnlistment);
  EXPECT_EQ(opens.seen, "slurm-enlist: joining");
  EXPECT_THAT(made.waits_on(), ElementsAre("c"));
}

TEST_F(NodePlanTest, AnOpenNodeIsReadyAndAtRest) {
  record.state = {"IDLE", {}};
  record.reason = "";
  const plan::Plan made = plan();
  EXPECT_THAT(steps(made), ElementsAre("record phase gpu-1: Ready"));
  node.phase = Phase::kReady;
  node.message = recorded(made).message;
  node.confirmed = "i1";
  node.gate_boot = "b";
  EXPECT_THAT(steps(plan()), IsEmpty());
  EXPECT_THAT(plan().waits_on(), IsEmpty()) << "Slurm is not asked more often for a node at rest";
}

TEST_F(NodePlanTest, TheGateStaysClosedForWhatSlurmDoesNotConfirm) {
  for (const auto& [what, change] : std::vector<std::pair<const char*, std::function<void()>>>{
           {"another slurmd", [this] { record.instance_id = "i0"; }},
           {"another pool", [this] { record.features = {"cpu"}; }},
           {"less memory", [this] { record.real_memory_mib = 10; }},
           {"its check has not passed", [this] { node.report.check_passed = false; }},
           {"somebody else drains it", [this] { record.reason = "broken fan"; }},
       }) {
    const Node node_before = node;
    const slurm::Node record_before = record;
    change();
    for (const std::string& step : steps(plan())) EXPECT_THAT(step, Not(::testing::HasSubstr("gate"))) << what;
    node = node_before;
    record = record_before;
  }
}

TEST_F(NodePlanTest, TheGateClosesAfterABootUntilTheCheckPasses) {
  EXPECT_EQ(recorded(plan()).gate_boot, "b");
  node.phase = Phase::kReady;
  node.confirmed = "i1";
  node.gate_boot = "a";
  node.report.check_passed = false;
  record.state = {"IDLE", {}};
  record.reason = "";
  const plan::Plan made = plan();
  EXPECT_THAT(steps(made), ElementsAre("record phase gpu-1: Enlisted", "close the gate of Slurm node gpu-1"));
  EXPECT_EQ(recorded(made).gate_boot, "a") << "it is not closed yet";
  const auto& drains = dynamic_cast<const slurm::DrainNodes&>(*made.lanes().at("node").groups().at(1).at(0).act);
  EXPECT_EQ(drains.holder.owner, slurm::Owner::kEnlistment);
  EXPECT_THAT(drains.nodes, ElementsAre("gpu-1"));
  EXPECT_EQ(slurm::Holds().hold(drains.owner, drains.reason).reason(), gate_reason());

  record.state = {"IDLE", {"DRAIN"}};
  record.reason = gate_reason();
  EXPECT_EQ(recorded(plan()).gate_boot, "b");
  node.report.check_passed = true;
  EXPECT_THAT(steps(plan()), ElementsAre("record phase gpu-1: Enlisted", "open the gate of Slurm node gpu-1"));
}

TEST_F(NodePlanTest, ALostRecordIsRegisteredOnceAgain) {
  node.phase = Phase::kReady;
  node.confirmed = "i1";
  node.registrations = node.report.registrations = 4;
  const plan::Plan made = plan(false);
  EXPECT_EQ(recorded(made).phase, Phase::kLost);
  EXPECT_EQ(recorded(made).registrations, 5U);
  node.phase = Phase::kLost;
  node.message = recorded(made).message;
  node.registrations = 5;
  const plan::Plan next = plan(false);
  if (!steps(next).empty()) {
    EXPECT_EQ(recorded(next).registrations, 5U);
  }
}

TEST_F(NodePlanTest, ARefusalIsNamedAfterTheLimit) {
  EXPECT_EQ(recorded(plan(false)).phase, Phase::kConfirming);
  EXPECT_LE(plan(false).wake(), 1s);
  now = now + 11s;
  EXPECT_EQ(recorded(plan(false)).phase, Phase::kRefused);
}

TEST_F(NodePlanTest, NothingIsDoneForARevokedNode) {
  node.revoked = true;
  EXPECT_THAT(steps(plan()), IsEmpty());
}

}  // namespace
}  // namespace enlist
