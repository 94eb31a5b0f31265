#include "enlist/coordinator/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/manual_loop.hpp"

namespace enlist {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A node whose slurmd runs. Slurm shows it behind the gate, with the requested values.
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
  [[nodiscard]] slurm::SnapshotPtr slurm_now(bool in_slurm) const {
    auto slurm = std::make_shared<slurm::Snapshot>();
    slurm->health = slurm::Snapshot::Health::kComplete;
    slurm->requested_at = now;
    if (in_slurm) slurm->nodes.emplace(record.name, std::make_shared<slurm::Node>(record));
    slurm->partitions.emplace("gpu", slurm::Partition{"gpu", "gpu-1", "UP", false});
    return slurm;
  }
  [[nodiscard]] plan::Plan plan(bool in_slurm = true) const {
    NodeObserved observed{.context = {}, .cluster = "c", .node = node, .slurm = slurm_now(in_slurm)};
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
  EXPECT_EQ(slurm::Holds().hold(drains.holder, drains.reason).reason(), gate_reason());

  record.state = {"IDLE", {"DRAIN"}};
  record.reason = gate_reason();
  EXPECT_EQ(recorded(plan()).gate_boot, "b");
  node.report.check_passed = true;
  EXPECT_THAT(steps(plan()), ElementsAre("record phase gpu-1: Enlisted", "open the gate of Slurm node gpu-1"));
}

TEST_F(NodePlanTest, AReportThatDoesNotKnowTheBootIsNoBoot) {
  node.phase = Phase::kReady;
  node.confirmed = "i1";
  node.gate_boot = "b";
  node.report.boot_id = "";
  node.report.check_passed = false;
  record.state = {"IDLE", {}};
  record.reason = "";
  EXPECT_THAT(steps(plan()), IsEmpty());
  node.report.check_passed = true;
  EXPECT_THAT(steps(plan()), IsEmpty()) << "the boot for which the gate was decided is not forgotten";
  record.state = {"IDLE", {"DRAIN"}};
  record.reason = gate_reason();
  EXPECT_EQ(recorded(plan()).gate_boot, "b");
}

TEST_F(NodePlanTest, AReasonOfOursThatIsLeftOverIsTakenAway) {
  node.phase = Phase::kReady;
  node.confirmed = "i1";
  node.gate_boot = "b";
  record.state = {"MIXED", {}};
  EXPECT_THAT(steps(plan()), ElementsAre("take our reason from Slurm node gpu-1"));
  record.reason = "slurm-enlist: joining; slurm-bridge: pods run there";
  EXPECT_THAT(steps(plan()), IsEmpty());
  record.reason = "bad fan";
  EXPECT_THAT(steps(plan()), IsEmpty());
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

/// A node that leaves. No job runs on it.
struct LeavePlanTest : NodePlanTest {
  LeavePlanTest() {
    node.phase = Phase::kDraining;
    node.confirmed = "i1";
    node.leaving = {.wanted = true};
    node.report.steps_known = true;
    record.reason = "slurm-enlist: leaving";
  }
  [[nodiscard]] plan::Plan leave(bool in_slurm = true) const {
    NodeObserved observed{.context = {}, .cluster = "c", .node = node, .slurm = slurm_now(in_slurm)};
    observed.context.mono = now;
    observed.context.outcomes = outcomes;
    observed.heard_at = observed.leave_asked_at = now;
    observed.kept_since = now - 1s;
    return plan_node(observed);
  }
  plan::Outcomes outcomes;
};

TEST_F(LeavePlanTest, TheStopIsWrittenDownBeforeAnythingIsDeleted) {
  plan::Plan made = leave();
  EXPECT_THAT(steps(made), ElementsAre("record phase gpu-1: Stopping"));
  EXPECT_TRUE(recorded(made).leaving.stop);
  node.phase = Phase::kStopping;
  node.leaving.stop = true;
  node.report.stopped = true;
  node.report.running = false;
  made = leave();
  EXPECT_THAT(steps(made), ElementsAre("record phase gpu-1: Deleting", "delete Slurm node gpu-1"));
  const auto& erase = dynamic_cast<const slurm::DeleteNode&>(*made.lanes().at("node").groups().at(1).at(0).act);
  EXPECT_EQ(erase.expected, slurm::NodeEvidence::Live::kDrained);
  node.leaving.stop = false;
  EXPECT_THAT(steps(leave()), ElementsAre("record phase gpu-1: Deleting")) << "the wish may be taken back until it is stored";
}

TEST_F(LeavePlanTest, SlurmsErrorIsTold) {
  node.leaving.stop = node.report.stopped = true;
  node.report.running = false;
  outcomes[{"delete", "Slurm node", "gpu-1"}] = {plan::Outcome::State::kFailed, 1, now, now,
                                                 core::Error{core::ErrorCode::kBusy, "Requested nodes are busy", 0, {}, {}}};
  EXPECT_THAT(recorded(leave()).message, ::testing::HasSubstr("Requested nodes are busy"));
}

TEST_F(LeavePlanTest, TheLastStepForgetsIt) {
  node.leaving.stop = node.report.stopped = node.report.left = true;
  node.report.running = false;
  node.phase = Phase::kDeleting;
  EXPECT_THAT(steps(leave(false)), ElementsAre("record phase gpu-1: Gone")) << "the host learns of it first";
  node.phase = Phase::kGone;
  node.message = recorded(leave(false)).message;
  EXPECT_THAT(steps(leave(false)), ElementsAre("forget node gpu-1"));
}

TEST_F(LeavePlanTest, ADepartedNodeIsForgottenWhenTheDeletionIsSaved) {
  NodeObserved observed{.context = {}, .cluster = "c", .slurm = slurm_now(false)};
  observed.departed = departed(node);
  observed.absent_since = now - kSavedAfter + 1ms;
  EXPECT_THAT(steps(plan_node(observed)), IsEmpty());
  observed.absent_since = now - kSavedAfter;
  EXPECT_THAT(steps(plan_node(observed)), ElementsAre("forget departed node gpu-1"));
  observed.slurm = slurm_now(true);
  EXPECT_THAT(steps(plan_node(observed)), ElementsAre("return node gpu-1"));
  record.instance_id = "i2";
  observed.slurm = slurm_now(true);
  EXPECT_THAT(steps(plan_node(observed)), ElementsAre("forget departed node gpu-1")) << "the record of another slurmd";
}

TEST_F(LeavePlanTest, ANodeThatIsKeptIsOpenedAsAtTheGate) {
  node.leaving = {};
  node.phase = Phase::kConfirming;
  EXPECT_THAT(steps(plan()), ElementsAre("record phase gpu-1: Enlisted", "open the gate of Slurm node gpu-1"));
  node.report.check_passed = false;
  EXPECT_THAT(steps(plan()), ElementsAre("record phase gpu-1: Enlisted"));
}

TEST_F(NodePlanTest, ADeadHostLeavesOnlyIfItIsToldTo) {
  node.phase = Phase::kSilent;
  node.confirmed = "i1";
  record.state = {"DOWN", {"DRAIN", "NOT_RESPONDING"}};
  record.reason = "slurm-enlist: silent";
  const core::WallTime today{core::Duration{1'767'323'045'000}};
  core::Duration missed = 10min;
  const auto silent = [&](std::optional<core::Duration> limit, core::Duration ago) {
    node.silent_since = today - ago;
    NodeObserved observed{.context = {}, .cluster = "c", .node = node, .slurm = slurm_now(true)};
    observed.context.mono = now;
    observed.context.now = today;
    observed.heard_at = now - missed;
    observed.forget_dead_after = limit;
    const plan::Plan made = plan_node(observed);
    const bool leaves = !steps(made).empty() && recorded(made).leaving.wanted;
    if (leaves) EXPECT_EQ(recorded(made).heard_at, observed.heard_at) << "it must not have been heard of since";
    return leaves;
  };
  EXPECT_FALSE(silent({}, 1000h));
  EXPECT_FALSE(silent(2h, 1h));
  EXPECT_TRUE(silent(2h, 2h));
  missed = kSilentAfter;
  EXPECT_FALSE(silent(2h, 1000h)) << "the clock was set, or the coordinator has just started";
  EXPECT_TRUE(silent(2min, 2min));
}

TEST_F(NodePlanTest, TheTimeOfADeadHostGoesOnAfterAStartOfTheCoordinator) {
  node.phase = Phase::kSilent;
  node.confirmed = "i1";
  node.silent_since = core::WallTime{core::Duration{1'767'323'045'000}};
  record.state = {"DOWN", {"DRAIN", "NOT_RESPONDING"}};
  record.reason = "slurm-enlist: silent";
  NodeObserved observed{.context = {}, .cluster = "c", .node = node, .slurm = slurm_now(true)};
  observed.context.mono = now;
  EXPECT_EQ(recorded(plan_node(observed)).silent_since, node.silent_since) << "nobody was heard yet";
  observed.heard_at = now;
  EXPECT_EQ(recorded(plan_node(observed)).silent_since, core::WallTime{});
  observed.heard_at.reset();
  record.state = {"IDLE", {"DRAIN"}};
  observed.slurm = slurm_now(true);
  EXPECT_EQ(recorded(plan_node(observed)).silent_since, core::WallTime{}) << "slurmd responds";
}

TEST_F(LeavePlanTest, ADrainThatItsAuthorHasUndoneIsNotRestored) {
  node.marks = {.reason = "bad fan", .comment = "rack 4"};
  record.state = {"IDLE", {}};
  record.reason = "";
  record.comment = "rack 5";
  const plan::Plan made = leave();
  EXPECT_EQ(recorded(made).marks, (Marks{.reason = "", .comment = "rack 5"}));
  EXPECT_THAT(steps(made), ::testing::Contains("drain Slurm node gpu-1: leaving"));
  node.marks = recorded(made).marks;
  record.state = {"IDLE", {"DRAIN"}};
  record.reason = "slurm-enlist: leaving";
  EXPECT_EQ(recorded(leave()).marks, node.marks);
}

/// A node that is restarted with other parameters. No job runs on it.
struct WordsPlanTest : LeavePlanTest {
  WordsPlanTest() {
    node.leaving = {};
    node.configuring = {.wanted = true, .conf = "RealMemory=500"};
    node.silent_since = core::WallTime{1s};
    record.reason = "slurm-enlist: configuring";
  }
};

// Requirement 38
TEST_F(WordsPlanTest, NothingIsWrittenBeforeTheRecordIsGone) {
  plan::Plan made = leave();
  EXPECT_THAT(steps(made), ElementsAre("record phase gpu-1: Stopping"));
  EXPECT_TRUE(recorded(made).configuring.stop);
  EXPECT_EQ(recorded(made).node_conf, "");
  EXPECT_EQ(recorded(made).silent_since, core::WallTime{}) << "the host has returned";
  node.phase = Phase::kStopping;
  node.configuring.stop = node.report.stopped = true;
  node.report.running = false;
  made = leave();
  EXPECT_THAT(steps(made), ElementsAre("record phase gpu-1: Deleting", "delete Slurm node gpu-1"));
  EXPECT_EQ(recorded(made).node_conf, "");
  now = now + 1s;
  NodeObserved observed{.context = {}, .cluster = "c", .node = node, .slurm = slurm_now(false)};
  observed.context.mono = observed.heard_at.emplace(now);
  observed.leave_asked_at = observed.kept_since = now - 1s;
  made = plan_node(observed);
  EXPECT_THAT(steps(made), ElementsAre("record phase gpu-1: Starting"));
  EXPECT_EQ(recorded(made).node_conf, "RealMemory=500");
  EXPECT_FALSE(recorded(made).configuring.wanted);
  EXPECT_EQ(recorded(made).confirmed, "") << "a record with other values is not taken for the new one";
}

// Requirement 2
TEST_F(WordsPlanTest, WhatPeopleHaveSetIsWrittenDownBeforeTheRecordIsDeleted) {
  node.phase = Phase::kStopping;
  node.configuring.stop = node.report.stopped = true;
  node.report.running = false;
  record.reason = "bad fan";
  record.comment = "rack 4";
  const plan::Plan made = leave();
  EXPECT_THAT(steps(made), ElementsAre("record phase gpu-1: Deleting"));
  EXPECT_EQ(recorded(made).marks, (Marks{.reason = "bad fan", .comment = "rack 4"}));
  node.marks = recorded(made).marks;
  EXPECT_THAT(steps(leave()), ElementsAre("record phase gpu-1: Deleting", "delete Slurm node gpu-1"));
}

TEST_F(WordsPlanTest, AWishThatIsTakenBackOpensTheNode) {
  node.configuring = {.taken_back = true};
  node.phase = Phase::kConfirming;
  EXPECT_THAT(steps(plan()), ElementsAre("record phase gpu-1: Enlisted", "open the gate of Slurm node gpu-1"));
}

TEST_F(WordsPlanTest, ARecordFromBeforeTheWordsIsDeletedAgain) {
  node.configuring = {};
  node.node_conf = "CPUs=2";
  node.phase = Phase::kStarting;
  for (const bool invalid : {false, true}) {
    if (invalid) record.state.flags.insert("INVALID_REG");
    EXPECT_THAT(steps(plan()), ElementsAre("record phase gpu-1: Draining")) << "the gate stays closed";
    EXPECT_TRUE(recorded(plan()).configuring.restarts());
    EXPECT_EQ(recorded(plan()).configuring.conf, "CPUs=2");
  }
  record.reason = gate_reason();
  EXPECT_FALSE(recorded(plan()).configuring.wanted) << "a new record is invalid by itself";
}

TEST_F(WordsPlanTest, ADrainIsNotForgottenWhenSlurmRefusesTheWords) {
  node.configuring = {};
  node.phase = Phase::kStarting;
  node.marks = {.reason = "bad fan"};
  record.state.flags.insert("INVALID_REG");
  record.reason = "Low RealMemory (reported:400 < 100.00% of configured:500)";
  EXPECT_EQ(recorded(plan()).phase, Phase::kInvalid);
  EXPECT_EQ(recorded(plan()).marks.reason, "bad fan");
  record.reason = "broken disk";
  EXPECT_EQ(recorded(plan()).marks.reason, "broken disk");
}

/// A node in service. Slurm can change all of the node's own parameters while slurmd runs.
struct LiveWordsTest : NodePlanTest {
  LiveWordsTest() {
    record.state = {"MIXED", {}};
    record.reason = "";
    record.active_features = record.features;
    record.weight = 1;
    node.confirmed = "i1";
    node.gate_boot = "b";
    node.phase = Phase::kReady;
  }
  [[nodiscard]] const slurm::UpdateNode& set() const {
    made = plan();
    const auto& groups = made.lanes().at("node").groups();
    return dynamic_cast<const slurm::UpdateNode&>(*groups.back().back().act);
  }
  mutable plan::Plan made;
};

TEST_F(LiveWordsTest, AreSaidUntilSlurmShowsThemAndAgainAfterEachReconfigure) {
  node.node_conf = "Weight=5 Features=ssd";
  node.configuring = {.wanted = true, .live = true, .conf = node.node_conf};
  node.live.weight = true;
  EXPECT_THAT(steps(plan()), ElementsAre("set parameters of Slurm node gpu-1"));
  EXPECT_EQ(set().update.weight, 5);
  EXPECT_THAT(set().own->besides, ElementsAre("ssd"));
  record.weight = 5;
  record.features = record.active_features = {"gpu", "ssd", "of-an-admin"};
  EXPECT_THAT(steps(plan()), ElementsAre("record phase gpu-1: Ready"));
  EXPECT_FALSE(recorded(plan()).configuring.wanted);
  node.configuring = {};
  EXPECT_THAT(steps(plan()), IsEmpty());
  record.weight = 1;
  EXPECT_THAT(steps(plan()), ElementsAre("set parameters of Slurm node gpu-1"));
}

TEST_F(LiveWordsTest, SlurmsErrorIsTold) {
  node.node_conf = "Weight=5";
  NodeObserved observed{.context = {}, .cluster = "c", .node = node, .slurm = slurm_now(true)};
  observed.context.mono = observed.heard_at.emplace(now);
  observed.context.outcomes[{"set", "parameters of Slurm node", "gpu-1"}] = {
      plan::Outcome::State::kFailed, 1, now, now, core::Error{core::ErrorCode::kInvalid, "Invalid weight", 0, {}, {}}};
  made = plan_node(observed);
  EXPECT_EQ(recorded(made).message, "Slurm does not accept its parameters: Invalid weight");
  EXPECT_EQ(recorded(made).phase, Phase::kReady);
}

TEST_F(LiveWordsTest, WhatTheWordsDoNotNameIsForOthers) {
  record.weight = 77;
  record.features = record.active_features = {"gpu", "of-an-admin"};
  EXPECT_THAT(steps(plan()), IsEmpty());
}

TEST_F(LiveWordsTest, WordsThatAreTakenAwayAreUndone) {
  node.live = {.weight = true, .dropped = {"ssd", "gpu"}};
  record.weight = 5;
  record.features = record.active_features = {"gpu", "ssd"};
  EXPECT_EQ(set().update.weight, 1);
  EXPECT_THAT(set().own->obsolete, ElementsAre("ssd")) << "the feature of the pool stays";
}

TEST_F(NodePlanTest, NothingIsDoneForARevokedNode) {
  node.revoked = true;
  EXPECT_THAT(steps(plan()), IsEmpty());
}

}  // namespace
}  // namespace enlist
