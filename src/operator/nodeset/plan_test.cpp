#include "operator/nodeset/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "operator/nodeset/parts.hpp"
#include "operator/nodeset/testing/world.hpp"
#include "plan/executor.hpp"

namespace op::nodeset {
namespace {

using core::Json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using testing::World;

/// Returns the ids of all steps of a plan, except status, events and revisions.
std::vector<std::string> ids(const plan::Plan& plan) {
  std::vector<std::string> out;
  for (const auto& [name, lane] : plan.lanes()) {
    if (name == "status" || name == "event" || name == "revision") continue;
    for (const auto& group : lane.groups()) {
      for (const plan::Step& step : group) {
        if (step.id.verb != "event") out.push_back(step.id.text());
      }
    }
  }
  return out;
}

/// Returns the ids of the steps of a lane, except events, by group. The steps of a group are sent at once.
std::vector<std::vector<std::string>> groups(const plan::Plan& plan, const std::string& lane) {
  std::vector<std::vector<std::string>> out;
  if (!plan.lanes().contains(lane)) return out;
  for (const auto& group : plan.lanes().at(lane).groups()) {
    std::vector<std::string> ids;
    for (const plan::Step& step : group) {
      if (step.id.verb != "event") ids.push_back(step.id.text());
    }
    if (!ids.empty()) out.push_back(std::move(ids));
  }
  return out;
}

World serving(int replicas) {
  World world(Json{{"replicas", replicas}});
  for (int i = 0; i < replicas; ++i) world.add_pod(i);
  world.settle();
  EXPECT_THAT(world.violations, IsEmpty());
  world.done.clear();
  return world;
}

TEST(NodeSetPlan, FillsTheLowestFreeOrdinals) {
  World world(Json{{"replicas", 5}});
  for (const int ordinal : {0, 2, 5}) world.add_pod(ordinal);
  EXPECT_THAT(ids(plan_nodeset(world.observe())), Contains("create Pod default/cpu-1"));
  EXPECT_THAT(ids(plan_nodeset(world.observe())), Contains("create Pod default/cpu-3"));
  EXPECT_THAT(ids(plan_nodeset(world.observe())), Not(Contains("create Pod default/cpu-4")));
}

TEST(NodeSetPlan, PodsWithoutAnOrdinalAreToldAndLeftAlone) {
  World world = serving(1);
  kube::PodRecord pod = world.pods.at("cpu-0");
  pod.meta.name = "cpu-x7k2p";
  pod.meta.uid = "another";
  world.pods.emplace(pod.meta.name, pod);
  world.settle();
  EXPECT_EQ(world.condition("Degraded"), "True PodsWithoutOrdinal");
  EXPECT_THAT(world.message("Degraded"), HasSubstr("cpu-x7k2p"));
  EXPECT_TRUE(world.pods.contains("cpu-x7k2p"));
}

TEST(NodeSetPlan, LeavesOutAnOrdinalWithTheNameOfANodeSet) {
  World world(Json{{"replicas", 2}});
  Observed observed = world.observe();
  observed.nodeset_names = {"cpu-0", "gpu"};
  EXPECT_THAT(ids(plan_nodeset(observed)),
              ::testing::ElementsAre("add finalizer", "create Pod default/cpu-1", "create Pod default/cpu-2"));
  world.add_node("cpu-0").state.base = "DOWN";
  observed = world.observe();
  observed.nodeset_names = {"cpu-0", "gpu"};
  EXPECT_THAT(ids(plan_nodeset(observed)), Contains("create Pod default/cpu-0")) << "Slurm has that node, and no such NodeSet";
}

/// If two slurmds had the same name, jobs of one could run on the other, and the end of one would end the jobs of the other.
TEST(NodeSetPlan, MakesNoWorkerWithTheNameOfAnothersWorker) {
  World world(Json{{"replicas", 4}});
  world.amend = [](Observed& seen) { seen.rivals = {{"older", {}, "cpu-", 0, 2}, {"later", {"cpu-3"}, "cpu-3", 0, 0}}; };
  const plan::Plan plan = plan_nodeset(world.observe());
  EXPECT_THAT(ids(plan), ::testing::ElementsAre("add finalizer", "create Pod default/cpu-2"));
  world.settle(3);
  EXPECT_EQ(world.pods.size(), 1U) << "the others are waited for: no further ordinals are used";
  EXPECT_EQ(world.condition("Degraded"), "True HostnameConflict");
  EXPECT_THAT(world.message("Degraded"), HasSubstr("NodeSet later, NodeSet older have the same names (cpu-[0-1,3])"));
  world.amend = nullptr;
  world.settle(3);
  EXPECT_EQ(world.pods.size(), 4U);
  EXPECT_EQ(world.condition("Degraded"), "False AsExpected");
}

TEST(NodeSetPlan, ANodeOfAnothersWorkerIsNotTakenForOneWhosePodIsGone) {
  World world = serving(2);
  world.add_job({"cpu-1"});
  world.pods.erase("cpu-1");
  EXPECT_THAT(ids(plan_nodeset(world.observe())), Contains("drain with reason Pod is gone"));
  world.amend = [](Observed& seen) { seen.rivals = {{"other", {"cpu-1"}, "cpu-", 0, 0}}; };
  EXPECT_THAT(ids(plan_nodeset(world.observe())), Not(Contains("drain with reason Pod is gone")));
}

TEST(NodeSetPlan, TellsTwinsThatAreThere) {
  World world(Json{{"replicas", 1}});
  world.add_pod(0);
  world.amend = [](Observed& seen) { seen.rivals = {{"other", {"cpu-0"}, "cpu-", 0, 0}}; };
  world.settle(3);
  EXPECT_EQ(world.condition("Degraded"), "True HostnameConflict");
  EXPECT_EQ(world.pods.size(), 1U) << "nothing is deleted for it";
}

TEST(NodeSetPlan, KeepsANameThatSlurmMayHaveWhileItIsSilent) {
  World world(Json{{"replicas", 2}});
  world.add_node("cpu-0").state.base = "DOWN";
  Observed observed = world.observe();
  observed.nodeset_names = {"cpu-0"};
  auto stale = std::make_shared<slurm::Snapshot>(*observed.snapshot);
  stale->health = slurm::Snapshot::Health::kStale;
  observed.snapshot = stale;
  EXPECT_THAT(ids(plan_nodeset(observed)), Contains("create Pod default/cpu-0")) << "it had that node when it last answered";
  stale->health = slurm::Snapshot::Health::kNone;
  EXPECT_THAT(ids(plan_nodeset(observed)), ::testing::ElementsAre("add finalizer", "create Pod default/cpu-1"))
      << "no other takes the place of cpu-0";
}

TEST(NodeSetPlan, AWorkerThatNeverRanSlurmdIsDeletedLateOnlyAsItWasSeen) {
  World world = serving(2);
  world.edit("replicas", 1);
  world.run(plan_nodeset(world.observe()));
  const auto deletion = [&](bool started, const char* cleared_for) {
    kube::PodRecord& pod = world.pod("cpu-1");
    kube::ContainerState slurmd;
    slurmd.name = "slurmd";
    slurmd.started_once = started;
    pod.containers = {slurmd};
    if (cleared_for != nullptr) pod.meta.annotations[std::string(api::kAnnotationDeletionEvidence)] = cleared_for;
    const plan::Plan plan = plan_nodeset(world.observe());
    for (const auto& group : plan.lanes().at("delete cpu-1").groups()) {
      for (const plan::Step& step : group) {
        if (step.id.is(kDeletePod)) return std::pair(step.late, step.act->describe().contains("resourceVersion"));
      }
    }
    return std::pair(core::Duration{-1}, false);
  };
  constexpr core::Duration kAlways = core::Duration::max();
  EXPECT_EQ(deletion(true, nullptr), std::pair(kAlways, false)) << "its slurmd does not register again by itself";
  world.nodes.erase("cpu-1");
  EXPECT_EQ(deletion(false, "Drained: x"), std::pair(kAlways, true));
}

TEST(NodeSetPlan, TheRecordOfAnEarlierWorkerKeepsASlurmdFromWorkThatMayRegister) {
  for (const bool started : {false, true}) {
    World world = serving(2);
    slurm::Node& record = world.node("cpu-1");
    record.state = {"DOWN", {"DRAIN"}};
    record.reason = "slurm-operator: Pod is terminating (earlier)";
    record.slurmd_start_time = world.now - core::Duration{2 * 3600 * 1000};
    world.pod("cpu-1").containers.front().started_once = started;
    world.edit("replicas", 1);
    const plan::Plan plan = plan_nodeset(world.observe());
    EXPECT_THAT(groups(plan, "delete cpu-1"),
                ElementsAre(ElementsAre("confirm Slurm node cpu-1"), ElementsAre("delete Pod default/cpu-1")))
        << "without the record, its slurmd would be a new node, and get jobs";
    world.run(plan);
    EXPECT_TRUE(world.nodes.contains("cpu-1"));
    world.finish_pods();
    world.settle(3);
    EXPECT_FALSE(world.pods.contains("cpu-1"));
    EXPECT_FALSE(world.nodes.contains("cpu-1")) << "it goes once the pod is gone";
    EXPECT_THAT(world.violations, IsEmpty());
  }
}

TEST(NodeSetPlan, TheRecordOfAnEarlierWorkerStaysWhereTheHostIsLost) {
  for (const bool drained : {false, true}) {
    World world = serving(5);
    slurm::Node& record = world.node("cpu-1");
    record.state = {"DOWN", {"NOT_RESPONDING"}};
    record.reason = drained ? "slurm-operator: Pod is terminating (earlier)" : "Not responding";
    if (drained) record.state.flags.insert("DRAIN");
    record.slurmd_start_time = world.now - core::Duration{2 * 3600 * 1000};
    kube::PodRecord& pod = world.pod("cpu-1");
    pod.containers.front().started_once = false;
    pod.node_name = "kube-9";
    world.add_host("kube-9").ready = false;
    world.slurmctld_pod.ready_since = world.now - core::Duration{3600 * 1000};
    world.settle(3);
    ASSERT_TRUE(pod.meta.terminating()) << "it is replaced";
    ASSERT_TRUE(world.nodes.contains("cpu-1")) << "its slurmd may register yet, and would be a new node";
    EXPECT_TRUE(world.node("cpu-1").state.has("DRAIN"));
    EXPECT_THAT(world.node("cpu-1").reason, StartsWith("slurm-operator: "));
    EXPECT_THAT(world.violations, IsEmpty());
  }
}

TEST(NodeSetPlan, ARecordWhoseSlurmdIsNotKnownToHaveStartedIsTakenForAnEarlierWorkers) {
  World world = serving(2);
  world.edit("replicas", 1);
  world.run(plan_nodeset(world.observe()));
  world.pod("cpu-1").containers.front().started_once = false;
  EXPECT_THAT(groups(plan_nodeset(world.observe()), "delete cpu-1"),
              ElementsAre(ElementsAre("confirm Slurm node cpu-1"), ElementsAre("delete Pod default/cpu-1")));
}

TEST(NodeSetPlan, TheDeadlineOfASharedWorkerIsWrittenOnceAMinute) {
  World world = serving(1);
  const auto writes = [&] {
    world.settle(2);
    return std::ranges::count(std::exchange(world.done, {}), "mark Pod default/cpu-0");
  };
  std::vector<std::int64_t> jobs;
  const auto start = [&](int minutes) {
    jobs.push_back(world.add_job({"cpu-0"}));
    world.jobs[jobs.back()].end = world.now + core::Duration{minutes * 60000};
  };
  start(10);
  EXPECT_EQ(writes(), 1);
  for (int i = 11; i < 20; ++i) {
    start(i);
    EXPECT_EQ(writes(), 0);
    EXPECT_EQ(writes(), 0) << "nor is it forgotten where nothing changed";
  }
  world.advance(core::Duration{61000});
  EXPECT_EQ(writes(), 1);
  EXPECT_EQ(world.pod("cpu-0").meta.annotation("nodeset.slinky.slurm.net/pod-deadline"),
            core::format_rfc3339(*world.jobs[jobs.back()].end));
  for (const auto job : jobs) world.end_job(job);
  EXPECT_EQ(writes(), 1) << "that nothing runs is told at once";
}

TEST(NodeSetPlan, VictimsStayVictimsWhenTheirRankChanges) {
  World world = serving(3);
  world.add_job({"cpu-0"});
  const auto job = world.add_job({"cpu-1"});
  world.jobs[job].end = world.now + core::Duration{60000};
  world.add_job({"cpu-2"});
  world.edit("replicas", 2);
  world.settle(3);
  ASSERT_TRUE(world.node("cpu-1").state.has("DRAIN"));  // cpu-1 has the earliest deadline.
  world.jobs[job].end = world.now + core::Duration{99 * 3600 * 1000};
  world.settle(3);
  EXPECT_FALSE(world.node("cpu-0").state.has("DRAIN"));
  EXPECT_FALSE(world.node("cpu-2").state.has("DRAIN"));
  EXPECT_TRUE(world.node("cpu-1").state.has("DRAIN"));
}

TEST(NodeSetPlan, ConcludesNothingFromAnOldSnapshot) {
  World world = serving(3);
  world.node("cpu-2").state.flags.insert("DRAIN");
  world.snapshot_age = core::Duration{3500};
  world.edit("replicas", 2);
  const plan::Plan plan = plan_nodeset(world.observe());
  EXPECT_THAT(ids(plan), Not(Contains(StartsWith("delete"))));
}

TEST(NodeSetPlan, AStampedWorkerThatSlurmForgotIsKept) {
  World world = serving(2);
  world.nodes.erase("cpu-1");
  world.settle(3);
  EXPECT_NE(world.pod("cpu-1").condition("SlurmNodeStateUnknown"), nullptr);  // The pod is still marked as seen in Slurm.
  EXPECT_EQ(world.condition("Ready"), "False NotUsable");
  world.edit("replicas", 0);
  world.settle(5);
  EXPECT_FALSE(world.pod("cpu-1").meta.terminating());
  EXPECT_EQ(world.condition("Degraded"), "False AsExpected") << "it may register again";
  EXPECT_THAT(world.message("Progressing"), HasSubstr("deletions are stopped, so these workers are not deleted: cpu-1"));
  world.advance(core::Duration{181000});
  world.settle(5);
  EXPECT_FALSE(world.pod("cpu-1").meta.terminating());
  EXPECT_THAT(world.message("Degraded"), HasSubstr("Slurm does not know 1 of 1 workers"));
  EXPECT_THAT(world.events, Contains(StartsWith("Warning SlurmStateLost: Slurm does not know 1 of 1 workers")));
  EXPECT_TRUE(world.pod("cpu-0").meta.terminating());
}

TEST(NodeSetPlan, AWorkerThatRanAJobIsKnownWithoutItsConditions) {
  World world = serving(1);
  const auto job = world.add_job({"cpu-0"});
  world.settle(2);
  world.end_job(job);
  world.settle(2);
  std::erase_if(world.pod("cpu-0").conditions, [](const auto& c) { return c.type.starts_with("SlurmNodeState"); });
  world.nodes.erase("cpu-0");
  world.edit("replicas", 0);
  EXPECT_THAT(ids(plan_nodeset(world.observe())), Not(Contains(HasSubstr("delet"))));
  world.settle(5);
  EXPECT_FALSE(world.pod("cpu-0").meta.terminating()) << "its slurmd may run jobs that Slurm has forgotten";
}

TEST(NodeSetPlan, OneEventTellsOfManyWorkersThatSlurmForgot) {
  World world = serving(100);
  world.nodes.clear();
  world.settle(10);
  world.advance(core::Duration{181000});
  world.settle(10);
  world.edit("replicas", 0);
  world.settle(10);
  EXPECT_EQ(std::ranges::count_if(world.events, [](const std::string& e) { return e.starts_with("Warning"); }), 1);
  EXPECT_THAT(world.violations, IsEmpty());
}

TEST(NodeSetPlan, AWorkerForWhichSlurmHasNoRoomIsToldAndNotReplaced) {
  World world(Json{{"replicas", 2}});
  world.add_to_conf("MaxNodeCount=1");
  world.add_pod(0);
  world.add_pod(1);
  world.nodes.erase("cpu-1");
  world.settle();
  for (int minute = 0; minute < 10; ++minute) {
    world.advance(core::Duration{60'000});
    world.settle();
  }
  EXPECT_TRUE(world.pods.contains("cpu-1"));
  EXPECT_THAT(world.done, Not(Contains(StartsWith("delete Pod"))));
  EXPECT_EQ(world.condition("Degraded"), "True TooManyNodes");
  EXPECT_THAT(world.message("Degraded"), HasSubstr("MaxNodeCount allows (1)"));
  // Once Slurm has room again, the worker is replaced: its slurmd assumes that it has registered, and does not try again.
  world.add_to_conf("MaxNodeCount=5");
  for (int minute = 0; minute < 5; ++minute) {
    world.settle();
    world.advance(core::Duration{60'000});
  }
  EXPECT_THAT(world.done, Contains(StartsWith("delete Pod default/cpu-1")));
}

TEST(NodeSetPlan, AnUnregisteredWorkerGoesAfterTheFence) {
  World world = serving(2);
  kube::PodRecord& pod = world.add_pod(2);
  std::erase_if(pod.conditions, [](const auto& c) { return c.type.starts_with("SlurmNodeState"); });
  world.nodes.erase("cpu-2");
  kube::ContainerState slurmd;
  slurmd.name = "slurmd";
  slurmd.started_once = true;
  pod.containers = {slurmd};
  EXPECT_THAT(ids(plan_nodeset(world.observe())), Not(Contains(HasSubstr("delet")))) << "it may register, and get a job";
  world.advance(slurm::kRegistration);
  const plan::Plan plan = plan_nodeset(world.observe());
  const auto& groups = plan.lanes().at("delete cpu-2").groups();
  ASSERT_EQ(groups.size(), 4U);
  EXPECT_EQ(groups[1][0].id.text(), "delete Slurm node cpu-2");
  EXPECT_EQ(groups[2][0].act->describe()["evidence"]["kind"], "NeverRegistered");
}

TEST(NodeSetPlan, FinishesADeletionThatWasCutShort) {
  World world = serving(3);
  world.refuse["delete Pod"] = {core::ErrorCode::kInternal, "etcd", 500, "", {}};
  world.edit("replicas", 2);
  world.settle(3);
  ASSERT_FALSE(world.nodes.contains("cpu-2"));
  ASSERT_FALSE(world.pod("cpu-2").meta.terminating());
  world.refuse.clear();
  world.edit("replicas", 3);  // The worker is wanted again. Its slurmd does not register again by itself, so it is replaced.
  world.settle(10);
  EXPECT_TRUE(world.pod("cpu-2").meta.terminating());
  world.finish_pods();
  world.settle(3);
  ASSERT_TRUE(world.pods.contains("cpu-2"));
  EXPECT_EQ(world.pod("cpu-2").phase, "Pending");
  EXPECT_THAT(world.violations, IsEmpty());
}

TEST(NodeSetPlan, ANodeThatTurnsBusyAtTheFenceIsKept) {
  World world = serving(2);
  world.edit("replicas", 1);
  world.run(plan_nodeset(world.observe()));
  const plan::Plan plan = plan_nodeset(world.observe());
  world.jobs[7] = {.id = 7,
                   .state = "RUNNING",
                   .flags = {},
                   .partition = "",
                   .nodes = {"cpu-1"},
                   .required_nodes = {},
                   .start = {},
                   .end = {}};
  world.run(plan);
  EXPECT_FALSE(world.pod("cpu-1").meta.terminating());
  EXPECT_THAT(world.violations, IsEmpty());
}

TEST(NodeSetPlan, ANodeThatIsResumedAtTheFenceIsKept) {
  World world = serving(2);
  world.edit("replicas", 1);
  world.run(plan_nodeset(world.observe()));
  const plan::Plan plan = plan_nodeset(world.observe());
  EXPECT_THAT(groups(plan, "delete cpu-1"),
              ElementsAre(ElementsAre("clear Pod default/cpu-1"), ElementsAre("delete Slurm node cpu-1"),
                          ElementsAre("delete Pod default/cpu-1")));
  world.node("cpu-1").state.flags.clear();
  world.run(plan);
  EXPECT_TRUE(world.nodes.contains("cpu-1"));
  EXPECT_FALSE(world.pod("cpu-1").meta.terminating());
}

TEST(NodeSetPlan, ARecordThatAnswersAgainIsNotDeletedForANextWorker) {
  World world(Json{{"replicas", 1}});
  world.settle(2);
  world.start_pods();
  world.settle();
  world.edit("extraConf", "TmpDisk=2");
  world.user_deletes("cpu-0");
  world.finish_pods();
  const plan::Plan plan = plan_nodeset(world.observe());
  EXPECT_THAT(groups(plan, "create cpu-0"),
              ElementsAre(ElementsAre("delete Slurm node cpu-0"), ElementsAre("create Pod default/cpu-0")))
      << "slurmd of the next worker must not register before the record is gone";
  world.node("cpu-0").state = {"IDLE", {}};
  world.run(plan);
  EXPECT_TRUE(world.nodes.contains("cpu-0"));
  EXPECT_THAT(world.pods, IsEmpty());
}

TEST(NodeSetPlan, ResumesWhatItsOwnPodSetDown) {
  World world = serving(2);
  slurm::Node& node = world.node("cpu-1");
  node.state.base = "DOWN";
  node.reason = "slurm-operator: Pod is terminating";
  node.slurmd_start_time = world.now - core::Duration{7200 * 1000};
  node.address = "10.9.9.9";
  world.pod("cpu-1").ready_since = world.now - core::Duration{2000};
  // The record is that of the previous pod. After a resume, jobs would be sent to an address where no slurmd listens.
  EXPECT_THAT(ids(plan_nodeset(world.observe())), Not(Contains("resume cpu-1")));
  node.slurmd_start_time = world.now;
  EXPECT_THAT(ids(plan_nodeset(world.observe())), Contains("resume cpu-1"));
}

TEST(NodeSetPlan, ResumesWhatSlurmItselfSetDown) {
  World world = serving(2);
  slurm::Node& node = world.node("cpu-1");
  node.state.base = "DOWN";
  for (const char* reason : {"Not responding", "left over : Not responding", "Node unexpectedly rebooted"}) {
    node.reason = reason;
    node.state.flags = {"NOT_RESPONDING"};
    EXPECT_THAT(ids(plan_nodeset(world.observe())), Not(Contains("resume cpu-1"))) << "its slurmd is still away";
    node.state.flags = {"DRAIN"};
    EXPECT_THAT(ids(plan_nodeset(world.observe())), Not(Contains("resume cpu-1"))) << "somebody drained it";
    node.state.flags = {};
    EXPECT_THAT(ids(plan_nodeset(world.observe())), Contains("resume cpu-1")) << reason;
  }
  for (const char* reason : {"", "Node unexpectedly rebooted, see ticket 7", "Not responding to IPMI"}) {
    node.reason = reason;
    EXPECT_THAT(ids(plan_nodeset(world.observe())), Not(Contains("resume cpu-1"))) << reason;
  }
}

TEST(NodeSetPlan, ThePreStopOfAPodIsUndoneForItsSuccessorOrForASlurmdThatStartsAnew) {
  World world = serving(2);
  slurm::Node& node = world.node("cpu-1");
  node.state = slurm::NodeState{"DOWN", {"DRAIN"}};
  node.reason = "slurm-operator: Pod is terminating (" + world.pod("cpu-1").meta.uid + ")";
  node.reason_time = world.now;
  node.slurmd_start_time = world.now - core::Duration{60000};
  EXPECT_THAT(ids(plan_nodeset(world.observe())), Not(Contains("resume cpu-1"))) << "its deletion is not heard of yet";
  node.slurmd_start_time = world.now + core::Duration{2000};
  EXPECT_THAT(ids(plan_nodeset(world.observe())), Not(Contains("resume cpu-1"))) << "it was reconfigured before it ends";
  node.slurmd_start_time = world.now + core::Duration{3000};
  EXPECT_THAT(ids(plan_nodeset(world.observe())), Contains("resume cpu-1")) << "only its container was started anew";
  node.slurmd_start_time = world.now - core::Duration{60000};
  world.advance(core::Duration{59999});
  EXPECT_THAT(ids(plan_nodeset(world.observe())), Not(Contains("resume cpu-1")));
  world.advance(core::Duration{1});
  EXPECT_THAT(ids(plan_nodeset(world.observe())), Contains("resume cpu-1")) << "the clocks of the machines differ";
  node.reason_time = world.now;
  EXPECT_THAT(ids(plan_nodeset(world.observe())), Not(Contains("resume cpu-1"))) << "it has run again";
  node.reason_time = world.now + core::Duration{1000};
  node.reason = "slurm-operator: Pod is terminating";
  EXPECT_THAT(ids(plan_nodeset(world.observe())), Not(Contains("resume cpu-1"))) << "as a release before wrote it";
  node.reason = "slurm-operator: Pod is terminating (another-uid)";
  EXPECT_THAT(ids(plan_nodeset(world.observe())), Contains("resume cpu-1"));
}

/// Our clock or slurmctld's may be wrong by minutes, so the difference between the two proves nothing.
TEST(NodeSetPlan, AWrongClockDoesNotUndoThePreStopOfAPodWhoseDeletionIsNotHeardOf) {
  for (const core::Duration ahead : {core::Duration{161518}, core::Duration{-300000}}) {
    World world = serving(2);
    slurm::Node& node = world.node("cpu-1");
    node.state = slurm::NodeState{"DOWN", {"DRAIN"}};
    node.reason = "slurm-operator: Pod is terminating (" + world.pod("cpu-1").meta.uid + ")";
    node.reason_time = world.now;
    node.slurmd_start_time = world.now - core::Duration{60000};
    world.now = world.now + ahead;
    EXPECT_THAT(ids(plan_nodeset(world.observe())), Not(Contains("resume cpu-1"))) << ahead.count();
    world.advance(core::Duration{60000});
    EXPECT_THAT(ids(plan_nodeset(world.observe())), Contains("resume cpu-1")) << ahead.count();
  }
}

TEST(NodeSetPlan, ReplacesEndedPodsWithBackoff) {
  World world = serving(2);
  int deletions = 0;
  for (int i = 0; i < 100; ++i) {
    world.settle(1);
    for (auto& [name, pod] : world.pods) {
      if (name == "cpu-1" && pod.phase != "Failed") pod.phase = "Failed";
    }
    deletions = static_cast<int>(std::count(world.done.begin(), world.done.end(), "delete Pod default/cpu-1"));
    world.finish_pods();
  }
  EXPECT_GE(deletions, 3);
  EXPECT_LE(deletions, 7);  // The loop takes about half a minute of simulated time.
}

TEST(NodeSetPlan, ATerminatingPodHoldsItsPlaceForItsGracePeriodAndHalfAMinute) {
  for (const auto& [pod_spec, seconds] : {std::pair(Json::object(), 60), {{{"terminationGracePeriodSeconds", 3600}}, 3630}}) {
    World world = serving(2);
    world.edit("template", {{"spec", pod_spec}});
    world.user_deletes("cpu-1");
    EXPECT_EQ(plan_nodeset(world.observe()).wake(), core::Duration{seconds * 1000});
    world.advance(core::Duration{seconds * 1000 - 1});
    EXPECT_THAT(ids(plan_nodeset(world.observe())), Not(Contains(StartsWith("create")))) << seconds;
    world.advance(core::Duration{1});
    EXPECT_THAT(ids(plan_nodeset(world.observe())), Contains("create Pod default/cpu-2")) << seconds;
  }
}

TEST(NodeSetPlan, DeletesRecordsOfWorkersThatAreGone) {
  World world = serving(1);
  world.add_node("cpu-1").state.base = "DOWN";
  world.add_node("cpu-2").comment = R"({"nodeSetUID":"set-uid","podName":"cpu-2","namespace":"default"})";
  world.add_node("cpu-3");  // This node answers and has no comment: a machine outside of Kubernetes with our feature.
  world.add_node("cpu-4").comment = R"({"nodeSetUID":"another","podName":"cpu-4","namespace":"default"})";
  world.add_node("cpu-x").state.base = "DOWN";
  world.add_node("cpu-5").state.base = "DOWN";
  world.node("cpu-5").features = {"gpu"};
  EXPECT_THAT(ids(plan_nodeset(world.observe())),
              ::testing::UnorderedElementsAre("delete Slurm node cpu-1", "delete Slurm node cpu-2"));
  world.snapshot_age = core::Duration{10000};
  EXPECT_THAT(ids(plan_nodeset(world.observe())), IsEmpty());
}

/// Returns a world with host networking whose worker has moved from kube-1 to kube-2 and has left the record kube-1.
World moved() {
  World world(Json{{"replicas", 1}, {"template", {{"spec", {{"hostNetwork", true}}}}}});
  world.settle(2);
  world.start_pods();
  world.settle();
  EXPECT_THAT(world.node("kube-1").comment, HasSubstr("set-uid"));
  world.user_deletes("cpu-0");
  world.finish_pods();
  world.settle(3);
  world.pod("cpu-0").node_name = "kube-2";
  return world;
}

TEST(NodeSetPlan, WithHostNetworkingDeletesTheRecordOfAWorkerThatMoved) {
  World world = moved();
  world.add_node("kube-3").state.base = "DOWN";  // This record has no comment.
  world.start_pods();
  const plan::Plan plan = plan_nodeset(world.observe());
  ASSERT_THAT(ids(plan), Contains("delete Slurm node kube-1"));
  EXPECT_EQ(plan.lanes().at("record kube-1").groups()[0][0].act->describe()["expectDown"], true);
  world.settle();
  EXPECT_FALSE(world.nodes.contains("kube-1"));
  EXPECT_EQ(world.node("kube-2").state.base, "IDLE");
  EXPECT_TRUE(world.nodes.contains("kube-3"));
  EXPECT_THAT(world.violations, IsEmpty());
}

TEST(NodeSetPlan, WithHostNetworkingKeepsRecordsThatMayBeNeeded) {
  const auto deletes = [](const Observed& observed) {
    const std::vector<std::string> all = ids(plan_nodeset(observed));
    return std::ranges::find(all, "delete Slurm node kube-1") != all.end();
  };
  ASSERT_TRUE(deletes(moved().observe()));
  World world = moved();
  world.pod("cpu-0").node_name.clear();
  EXPECT_FALSE(deletes(world.observe())) << "the worker may come back to kube-1";
  world = moved();
  world.pods.clear();
  EXPECT_FALSE(deletes(world.observe())) << "it is yet to be made";
  world = moved();
  world.node("kube-1").state.base = "IDLE";
  EXPECT_FALSE(deletes(world.observe())) << "something answers there";
  world = moved();
  world.node("kube-1").reason = "bad disk";
  EXPECT_FALSE(deletes(world.observe())) << "somebody said so of the machine";
  world = moved();
  world.node("kube-1").comment = R"({"nodeSetUID":"another-set-uid","podName":"gpu-0","namespace":"default"})";
  EXPECT_FALSE(deletes(world.observe())) << "the last worker there was another NodeSet's";
  world = moved();
  world.snapshot_age = core::Duration{10000};
  EXPECT_FALSE(deletes(world.observe())) << "Slurm said so long ago";
  world = moved();
  world.spec()["template"] = Json::object();
  EXPECT_FALSE(deletes(world.observe())) << "no host networking";
  Observed observed = moved().observe();
  observed.other_workers.insert("kube-1");
  EXPECT_FALSE(deletes(observed)) << "another NodeSet's worker starts there";
}

TEST(NodeSetPlan, WithHostNetworkingGoesWhenNoRecordIsLeft) {
  World world = moved();
  world.node("kube-1").state.base = "IDLE";
  world.nodeset()["metadata"]["deletionTimestamp"] = core::format_rfc3339(world.now);
  world.pods.clear();
  world.settle(3);
  EXPECT_FALSE(world.nodeset()["metadata"]["finalizers"].empty());
  EXPECT_THAT(world.message("Progressing"), HasSubstr("the slurmd of node kube-1"));
  world.node("kube-1").state.base = "DOWN";
  world.settle(3);
  EXPECT_FALSE(world.nodes.contains("kube-1"));
  EXPECT_TRUE(world.nodeset()["metadata"]["finalizers"].empty());
}

TEST(NodeSetPlan, KeepsTheRecordOfAWorkerThatComesBack) {
  World world(Json{{"replicas", 1}});
  world.add_node("cpu-0").state.base = "DOWN";
  EXPECT_THAT(ids(plan_nodeset(world.observe())), Not(Contains("delete Slurm node cpu-0")));
}

TEST(NodeSetPlan, WaitsForItsKey) {
  World world(Json{{"replicas", 1}});
  world.remove("Secret", {"default", keyring_name("demo")});
  world.settle(2);
  EXPECT_TRUE(world.pods.empty());
  EXPECT_EQ(world.condition("Progressing"), "True WaitingForKey");
  EXPECT_EQ(world.condition("Degraded"), "False AsExpected");
  world.controller()["spec"]["slurmKeyRef"] = {{"name", "demo-slurm-key"}, {"key", "slurm.key"}};
  world.settle(2);
  EXPECT_EQ(world.condition("Degraded"), "True SlurmKeyMissing");
  EXPECT_THAT(world.events,
              Contains(HasSubstr(
                  "Warning SlurmKeyMissing: Controller default/demo, spec.slurmKeyRef: Secret default/demo-slurm-key with ")));
}

TEST(NodeSetPlan, WhatIsSaidOfNoWorkerIsSaidOnce) {
  World world(Json{{"replicas", 3}});
  world.refuse["create Pod"] = {core::ErrorCode::kForbidden, "", 403, "NamespaceTerminating", {}};
  world.settle(2);
  EXPECT_THAT(world.message("Progressing"), HasSubstr("the namespace is being deleted"));
  EXPECT_THAT(world.message("Progressing"), Not(HasSubstr("more)")));
}

TEST(NodeSetPlan, AQuotaIsTriedByOneWorkerAndSaysSo) {
  World world(Json{{"replicas", 5}});
  world.refuse["create Pod"] = {core::ErrorCode::kForbidden, "exceeded quota: pods", 403, "Forbidden", {}};
  world.settle(2);
  EXPECT_EQ(world.condition("Degraded"), "True StepFailed");
  EXPECT_THAT(world.message("Degraded"), HasSubstr("exceeded quota: pods"));
  world.settle(200);  // This takes a minute of simulated time.
  EXPECT_LE(world.ledger.outcomes().at(kCreatePod.of("default/cpu-0")).count, 10);
  EXPECT_LE(world.ledger.outcomes().at(kCreatePod.of("default/cpu-4")).count, 2);
  world.refuse.clear();
  world.advance(core::Duration{61000});
  world.settle();
  EXPECT_EQ(world.pods.size(), 5U);
  EXPECT_EQ(world.condition("Degraded"), "False AsExpected");
}

TEST(NodeSetPlan, AMissingSecretIsToldOnceAndMends) {
  World world(Json{{"replicas", 2}});
  const Problem missing{"SecretMissing", "spec.template.spec.volumes[0].secret.secretName: Secret default/a does not exist"};
  world.amend = [&](Observed& seen) { seen.missing = {missing}; };
  world.settle(20);
  EXPECT_EQ(world.condition("Degraded"), "True SecretMissing");
  EXPECT_EQ(world.message("Degraded"), missing.message);
  EXPECT_EQ(std::ranges::count(world.events, "Warning SecretMissing: " + missing.message), 1);
  EXPECT_EQ(world.pods.size(), 2U) << "workers wait for it in their kubelets";
  world.amend = nullptr;
  world.settle(2);
  EXPECT_EQ(world.condition("Degraded"), "False AsExpected");
}

// Pod names are label values, so their length is limited even if hostnames are short.
TEST(NodeSetPlan, SaysWhichPodsCannotHaveTheirNames) {
  World world(Json{{"replicas", 10}, {"template", {{"spec", {{"hostname", "gpu-"}}}}}});
  world.rename(std::string(61, 'x'));
  world.settle(20);
  EXPECT_EQ(world.pods.size(), 10U);
  EXPECT_EQ(world.condition("Degraded"), "False AsExpected") << "63 characters are enough for 0 to 9";

  world.nodeset()["spec"]["replicas"] = 11;
  world.settle(20);
  EXPECT_EQ(world.pods.size(), 10U);
  EXPECT_EQ(world.condition("Degraded"), "True InvalidHostname");
  EXPECT_THAT(world.message("Degraded"), HasSubstr(std::string(61, 'x') + "-10 has a name of 64 characters"));

  // A name that is too long affects only workers with such a name.
  world.pods.erase(std::string(61, 'x') + "-3");
  world.nodes.erase("gpu-3");
  world.settle(20);
  EXPECT_EQ(world.pods.size(), 10U);
  EXPECT_THAT(world.message("Degraded"), HasSubstr("or scale this one to 10 at most"));

  // No worker is replaced if its successor cannot be created, and the status reports that.
  world.nodeset()["spec"]["replicas"] = 10;
  world.nodeset()["spec"]["ordinalPadding"] = 3;
  world.settle(20);
  EXPECT_EQ(world.pods.size(), 10U);
  EXPECT_EQ(world.condition("Degraded"), "True InvalidHostname");
  EXPECT_THAT(world.message("Degraded"), HasSubstr("-009 has a name of 65 characters"));
}

TEST(NodeSetPlan, SaysWhatIsWrongWithTheSpec) {
  World world(Json{{"replicas", 1}, {"extraConf", "Weight"}});
  world.settle(2);
  EXPECT_EQ(world.condition("Degraded"), "True InvalidSpec");
  EXPECT_THAT(world.message("Degraded"), HasSubstr("spec.extraConf: \"Weight\""));

  World host(Json{{"replicas", 1}, {"template", {{"spec", {{"hostname", std::string(60, 'a')}}}}}, {"ordinalPadding", 5}});
  host.settle(2);
  EXPECT_EQ(host.condition("Degraded"), "True InvalidHostname");

  World claims(Json{{"replicas", 1}, {"volumeClaimTemplates", Json::array({{{"metadata", {{"name", "My.Data"}}}}})}});
  claims.settle(2);
  EXPECT_EQ(claims.condition("Degraded"), "True InvalidSpec");
  EXPECT_THAT(claims.message("Degraded"), HasSubstr("spec.volumeClaimTemplates[0].metadata.name: My.Data must have"));

  World twin(Json{{"replicas", 1}});
  twin.amend = [](Observed& seen) { seen.namesake = "other"; };
  twin.partitions = {"cpu"};
  for (const char* name : {"cpu-0", "cpu-1"}) twin.add_node(name).state.base = "DOWN";
  twin.settle(2);
  EXPECT_EQ(twin.condition("Degraded"), "True HostnameConflict");
  EXPECT_THAT(twin.message("Degraded"), HasSubstr("create it again with a different spec.template.spec.hostname"));
  EXPECT_THAT(twin.events, Contains(StartsWith("Warning HostnameConflict: NodeSet other already uses the name")));
  twin.settle(100);
  EXPECT_EQ(std::ranges::count_if(twin.events, [](const std::string& e) { return e.starts_with("Warning"); }), 1);
  EXPECT_TRUE(twin.pods.empty());
  EXPECT_EQ(twin.nodes.size(), 2U) << "they are of the older one's workers, which may come back";
  twin.edit("replicas", 0);
  twin.settle(2);
  EXPECT_EQ(twin.condition("Ready"), "False HostnameConflict") << "its partition is the other's";
}

TEST(NodeSetPlan, AMisspeltFieldOfTheTemplateReachesTheApiServer) {
  World world(Json{{"replicas", 2}, {"template", {{"spec", {{"nodeSelectr", {{"disk", "fast"}}}}}}}});
  const plan::Plan plan = plan_nodeset(world.observe());
  const Json pod = plan.lanes().at("create").groups()[1][0].act->describe()["object"];
  ASSERT_EQ(pod["spec"]["nodeSelectr"], Json({{"disk", "fast"}})) << "which refuses it: scenario refused";
}

TEST(NodeSetPlan, AvailableAreWorkersThatAreReadyForMinReadySeconds) {
  World world(Json{{"replicas", 2}, {"minReadySeconds", 30}});
  world.settle(2);
  world.start_pods();
  world.settle(3);
  world.pod("cpu-0").ready_since = world.now - core::Duration{20000};
  world.pod("cpu-1").ready_since = world.now - core::Duration{5000};
  const auto counts = [&] {
    world.settle(2);
    return std::array<Json, 3>{world.status()["readyReplicas"], world.status()["availableReplicas"],
                               world.status()["unavailableReplicas"]};
  };
  EXPECT_EQ(counts(), (std::array<Json, 3>{2, 0, 2}));
  const std::optional<core::Duration> wake = plan_nodeset(world.observe()).wake();
  ASSERT_TRUE(wake);
  EXPECT_GT(wake->count(), 0);
  EXPECT_LE(wake->count(), 10000);
  world.advance(core::Duration{10000});
  EXPECT_EQ(counts(), (std::array<Json, 3>{2, 1, 1}));
  world.advance(core::Duration{15000});
  EXPECT_EQ(counts(), (std::array<Json, 3>{2, 2, 0}));
}

TEST(NodeSetPlan, ProtectsWorkersFromTheirCreation) {
  for (const bool always : {true, false}) {
    World world(Json{{"replicas", 1}, {"workloadDisruptionPolicy", always ? "Always" : "WhenBusy"}});
    world.run(plan_nodeset(world.observe()));
    EXPECT_EQ(is_protected(world.pod("cpu-0")), always);
  }
}

TEST(NodeSetPlan, WorkersStayOnHostsWhoseKubeletIsAway) {
  World world = serving(3);
  const auto seconds = [&](const char* name) {
    return std::pair(world.pod(name).not_ready.seconds, world.pod(name).unreachable.seconds);
  };
  const auto patience = [&](const char* name, std::optional<std::int64_t> not_ready, std::optional<std::int64_t> unreachable) {
    world.pod(name).not_ready = {3, not_ready};
    world.pod(name).unreachable = {4, unreachable};
  };
  patience("cpu-0", 300, 300);
  patience("cpu-1", 300, {});
  world.pod("cpu-2").not_ready = {};
  world.settle();
  EXPECT_THAT(world.done, ElementsAre("extend tolerations of Pod default/cpu-0", "extend tolerations of Pod default/cpu-1",
                                      "extend tolerations of Pod default/cpu-2"));
  const std::pair<std::optional<std::int64_t>, std::optional<std::int64_t>> always;
  EXPECT_EQ(seconds("cpu-0"), always);
  EXPECT_EQ(seconds("cpu-1"), always);
  EXPECT_GE(world.pod("cpu-2").not_ready.index, 0);
  // The user's toleration is kept.
  patience("cpu-0", 20, 300);
  world.edit("template", {{"spec",
                           {{"tolerations", Json::array({{{"key", kube::kTaintNotReady},
                                                          {"operator", "Exists"},
                                                          {"effect", "NoExecute"},
                                                          {"tolerationSeconds", 20}}})}}}});
  world.settle();
  EXPECT_EQ(seconds("cpu-0"), std::pair(std::optional<std::int64_t>(20), std::optional<std::int64_t>()));
}

TEST(NodeSetPlan, JobsStartAgainOnlyOnAProtectedWorker) {
  World world = serving(1);
  world.add_host("kube-0").unschedulable = true;
  world.settle();
  ASSERT_FALSE(is_protected(world.pod("cpu-0")));
  world.add_host("kube-0");
  world.refuse["mark Pod"] = {core::ErrorCode::kUnavailable, "away", 0, {}, {}};
  world.settle(10);
  EXPECT_TRUE(world.node("cpu-0").state.has("DRAIN"));
  world.refuse.clear();
  world.settle();
  EXPECT_TRUE(is_protected(world.pod("cpu-0")));
  EXPECT_FALSE(world.node("cpu-0").state.has("DRAIN"));
}

TEST(NodeSetPlan, ReleasesNothingOnAnOldAnswerOfSlurm) {
  World world = serving(1);
  world.add_host("kube-0").unschedulable = true;
  world.run(plan_nodeset(world.observe()));
  ASSERT_TRUE(world.node("cpu-0").state.has("DRAIN"));
  world.snapshot_age = core::Duration{10000};
  world.run(plan_nodeset(world.observe()));
  EXPECT_TRUE(is_protected(world.pod("cpu-0")));
  EXPECT_TRUE(plan_nodeset(world.observe()).wake());
  world.snapshot_age = core::Duration{100};
  world.health = slurm::Snapshot::Health::kStale;
  world.run(plan_nodeset(world.observe()));
  EXPECT_TRUE(is_protected(world.pod("cpu-0")));
  world.health = slurm::Snapshot::Health::kComplete;
  world.run(plan_nodeset(world.observe()));
  EXPECT_FALSE(is_protected(world.pod("cpu-0")));
}

TEST(NodeSetPlan, ProtectsABusyWorkerByAnOldAnswerToo) {
  World world = serving(1);
  world.add_host("kube-0").unschedulable = true;
  world.settle();
  ASSERT_FALSE(is_protected(world.pod("cpu-0")));
  world.node("cpu-0").state.flags.erase("DRAIN");  // An administrator resumes the node.
  world.add_job({"cpu-0"});
  world.snapshot_age = core::Duration{10000};
  world.run(plan_nodeset(world.observe()));
  EXPECT_TRUE(is_protected(world.pod("cpu-0")));
}

TEST(NodeSetPlan, ProtectsAResumedWorkerThoughSlurmIsSilentSince) {
  for (const bool busy : {true, false}) {
    World world = serving(1);
    world.add_host("kube-0").unschedulable = true;
    world.settle();
    ASSERT_FALSE(is_protected(world.pod("cpu-0")));
    world.health = slurm::Snapshot::Health::kStale;
    world.settle(2);
    ASSERT_FALSE(is_protected(world.pod("cpu-0"))) << "it was drained when Slurm fell silent";
    world.node("cpu-0").state.flags.erase("DRAIN");  // Slurm's last answer shows that an administrator resumed it.
    if (busy) world.add_job({"cpu-0"});
    world.run(plan_nodeset(world.observe()));
    EXPECT_TRUE(is_protected(world.pod("cpu-0"))) << busy;
  }
}

TEST(NodeSetPlan, ProtectsBusyWorkersUnlessToldNotTo) {
  const std::string label = "nodeset.slinky.slurm.net/pod-protect";
  World world = serving(2);
  world.add_job({"cpu-0"});
  world.settle(2);
  ASSERT_EQ(world.pod("cpu-0").meta.label(label), "true");
  // Admission policies for preemption and for deletion by users use this label.
  EXPECT_EQ(world.pod("cpu-0").meta.label("nodeset.slinky.slurm.net/pod-busy"), "true");
  EXPECT_EQ(world.pod("cpu-1").meta.label("nodeset.slinky.slurm.net/pod-busy"), "");
  world.edit("workloadDisruptionProtection", false);
  world.settle(2);
  EXPECT_FALSE(world.pod("cpu-0").meta.labels.contains(label));
  world.add_job({"cpu-1"});
  world.settle(2);
  EXPECT_FALSE(world.pod("cpu-1").meta.labels.contains(label));
}

TEST(NodeSetPlan, ABusyWorkerWhoseMarkWasRefusedIsMarkedThoughSlurmIsSilentSince) {
  World world = serving(1);
  world.edit("workloadDisruptionPolicy", "WhenBusy");
  world.settle();
  ASSERT_FALSE(is_protected(world.pod("cpu-0")));
  const auto marked = [&] { return world.pod("cpu-0").meta.label(api::kLabelPodBusy) == "true"; };
  const auto job = world.add_job({"cpu-0"});
  world.refuse["mark Pod"] = {core::ErrorCode::kForbidden, "no", 403, "Forbidden", {}};
  world.run(plan_nodeset(world.observe()));
  ASSERT_FALSE(marked());
  world.refuse.clear();
  world.health = slurm::Snapshot::Health::kStale;
  world.advance(core::Duration{10000});
  world.run(plan_nodeset(world.observe()));
  EXPECT_TRUE(marked());
  EXPECT_TRUE(is_protected(world.pod("cpu-0")));
  world.end_job(job);
  world.settle(2);
  EXPECT_TRUE(marked()) << "that none runs there is not concluded from an old answer";
  world.health = slurm::Snapshot::Health::kComplete;
  world.settle();
  EXPECT_FALSE(marked());
  EXPECT_FALSE(is_protected(world.pod("cpu-0")));
}

TEST(NodeSetPlan, WhatASilentSlurmLastToldOfAnotherPodMarksNone) {
  World world = serving(1);
  world.add_job({"cpu-0"});
  world.health = slurm::Snapshot::Health::kStale;
  kube::PodRecord& pod = world.pod("cpu-0");
  std::erase_if(pod.conditions, [](const kube::PodCondition& c) { return c.type.starts_with(api::kPodConditionPrefix); });
  pod.meta.annotations.erase(std::string(api::kAnnotationRegistered));
  world.settle(2);
  EXPECT_EQ(world.pod("cpu-0").meta.label(api::kLabelPodBusy), "");
}

TEST(NodeSetPlan, APodSaysWhenItsLastJobEnds) {
  const auto deadline = [](const World& world) {
    return world.pods.at("cpu-0").meta.annotation("nodeset.slinky.slurm.net/pod-deadline");
  };
  World world = serving(1);
  const auto longer = world.add_job({"cpu-0"});
  const auto shorter = world.add_job({"cpu-0"});
  world.jobs[longer].end = core::parse_rfc3339("2026-01-02T07:00:00Z").value();
  world.jobs[shorter].end = core::parse_rfc3339("2026-01-02T06:00:00Z").value();
  world.settle(2);
  EXPECT_EQ(deadline(world), "2026-01-02T07:00:00Z");
  const auto endless = world.add_job({"cpu-0"});
  world.jobs[endless].end.reset();
  world.advance(core::Duration{61000});
  world.settle(2);
  EXPECT_EQ(deadline(world), "9999-12-31T23:59:59Z");
  for (const auto job : {longer, shorter, endless}) world.end_job(job);
  world.settle(2);
  EXPECT_FALSE(world.pod("cpu-0").meta.annotations.contains("nodeset.slinky.slurm.net/pod-deadline"));
}

TEST(NodeSetPlan, WorkersWithSshWaitUntilItIsKnownWhetherThereAreHostKeys) {
  World world(Json{{"replicas", 1}, {"ssh", {{"enabled", true}}}});
  Observed observed = world.observe();
  observed.host_keys = kube::Presence::kUnknown;
  world.run(plan_nodeset(observed));
  EXPECT_THAT(world.pods, IsEmpty());
  EXPECT_FALSE(world.has_host_keys());
  world.settle(4);
  EXPECT_EQ(world.pods.size(), 1U);
  EXPECT_TRUE(world.has_host_keys());
}

TEST(NodeSetPlan, StampsCommentsButNotOverOthers) {
  World world(Json{{"replicas", 2}});
  world.settle(2);
  world.start_pods();
  world.node("cpu-1").comment = "rack 7";
  world.settle();
  const Json comment = Json::parse(world.node("cpu-0").comment);
  EXPECT_EQ(comment["podName"], "cpu-0");
  EXPECT_EQ(comment["nodeSetUID"], "set-uid");
  EXPECT_EQ(world.node("cpu-1").comment, "rack 7");
}

TEST(NodeSetPlan, CoalescesReports) {
  World world(Json{{"replicas", 100}});
  for (int i = 0; i < 5; ++i) world.run(plan_nodeset(world.observe()));
  ASSERT_EQ(world.pods.size(), 100U);
  world.start_pods();
  const plan::Plan plan = plan_nodeset(world.observe());
  EXPECT_EQ(plan.lanes().at("report").groups()[0].size(), 20U);
  world.settle();
  EXPECT_NE(world.pod("cpu-99").condition("SlurmNodeStateIdle"), nullptr);
  EXPECT_THAT(world.violations, IsEmpty());
}

/// Slurm's answer came late. The next answer will have the same content, so it does not wake the NodeSet. The plan must ask for
/// another pass.
TEST(NodeSetPlan, ComesAgainForWhatALateAnswerOfSlurmPutOff) {
  World world = serving(1);
  world.pod("cpu-0").conditions.pop_back();
  ASSERT_EQ(world.pod("cpu-0").condition("SlurmNodeStateIdle"), nullptr);
  world.snapshot_age = core::Duration{10000};
  const plan::Plan put_off = plan_nodeset(world.observe());
  EXPECT_THAT(ids(put_off), IsEmpty());
  ASSERT_TRUE(put_off.wake());
  world.snapshot_age = core::Duration{100};
  EXPECT_THAT(ids(plan_nodeset(world.observe())), Contains("report Slurm state on Pod default/cpu-0"));

  // A late answer also delays writes of comments and deletions of stale records. A plan that delays nothing asks for no other
  // pass.
  world = serving(1);
  world.snapshot_age = core::Duration{10000};
  EXPECT_FALSE(plan_nodeset(world.observe()).wake());
  world.node("cpu-0").comment.clear();
  EXPECT_TRUE(plan_nodeset(world.observe()).wake());
  world = serving(1);
  world.snapshot_age = core::Duration{10000};
  world.add_node("cpu-7").comment = world.node("cpu-0").comment;
  world.node("cpu-7").state = slurm::NodeState{"DOWN", {}};
  EXPECT_TRUE(plan_nodeset(world.observe()).wake());
}

TEST(NodeSetPlan, KeepsOldRevisionsWithinTheLimit) {
  World world = serving(1);
  ASSERT_EQ(world.revisions().size(), 1U);
  const Json first = world.revisions().begin()->second;
  EXPECT_EQ(first["revision"], 1);
  world.edit("extraConf", "TmpDisk=2");
  world.settle(3);
  ASSERT_EQ(world.revisions().size(), 1U);  // No worker has the label of the first revision: add_pod sets none.
  EXPECT_EQ(world.revisions().begin()->second["revision"], 2);
  world.edit("revisionHistoryLimit", 1);
  world.edit("extraConf", "Weight=3");
  world.settle(3);
  ASSERT_EQ(world.revisions().size(), 2U);
  world.edit("extraConf", "TmpDisk=2");
  world.settle(3);
  int newest = 0;
  for (const auto& [name, revision] : world.revisions()) newest = std::max(newest, revision["revision"].get<int>());
  EXPECT_EQ(newest, 4);
  EXPECT_EQ(world.revisions().at("cpu-" + world.status()["nodeSetHash"].get<std::string>())["revision"], 4);
}

Json template_of_chart(const char* version) {
  return {{"metadata", {{"labels", {{"helm.sh/chart", version}, {"app.kubernetes.io/version", version}, {"team", "a"}}}}}};
}

World serving_of_chart(const char* version) {
  World world(Json{{"replicas", 2}, {"template", template_of_chart(version)}});
  world.settle();
  world.start_pods();
  world.settle();
  return world;
}

TEST(NodeSetPlan, AnotherVersionOfAChartReplacesNoWorker) {
  World world = serving_of_chart("1");
  EXPECT_EQ(world.status()["updatedReplicas"], 2);
  const std::string uid = world.pod("cpu-0").meta.uid;
  world.edit("template", template_of_chart("2"));
  world.settle();
  ASSERT_EQ(world.revisions().size(), 1U);
  EXPECT_EQ(world.status()["updatedReplicas"], 2);
  EXPECT_EQ(world.pod("cpu-0").meta.uid, uid);
}

/// An earlier release included chart versions in the template. An upgrade of the operator or the chart must not count as a new
/// template.
TEST(NodeSetPlan, WhatAnEarlierReleaseRecordedIsNoEarlierTemplate) {
  World world = serving_of_chart("1");
  ASSERT_EQ(world.revisions().size(), 1U);
  Json recorded = world.revisions().begin()->second;
  recorded["metadata"]["name"] = "cpu-before";
  recorded["metadata"]["labels"]["controller-revision-hash"] = "before";
  recorded["data"]["spec"]["template"] = template_of_chart("1");
  world.remove("ControllerRevision", {"default", world.revisions().begin()->first});
  world.put(recorded);
  for (auto& [name, pod] : world.pods) pod.meta.labels["controller-revision-hash"] = "before";
  const std::string uid = world.pod("cpu-0").meta.uid;
  for (const char* version : {"1", "2"}) {
    world.edit("template", template_of_chart(version));
    world.settle();
    EXPECT_EQ(world.revisions().size(), 1U);
    EXPECT_EQ(world.status()["nodeSetHash"], "before");
    EXPECT_EQ(world.status()["updatedReplicas"], 2);
    EXPECT_EQ(world.pod("cpu-0").meta.uid, uid);
    EXPECT_EQ(world.pods.size(), 2U);
  }
  world.edit("extraConf", "TmpDisk=2");
  world.settle();
  EXPECT_EQ(world.revisions().size(), 2U);
  EXPECT_LT(world.status().value("updatedReplicas", 0), 2) << "what makes another worker updates them as ever";
}

/// After kubectl delete --cascade=orphan and a new NodeSet of the same name, a revision of that name exists already.
TEST(NodeSetPlan, AdoptsRevisionsThatWereLeftBehind) {
  World world = serving(1);
  Json& left = world.document("ControllerRevision", world.revisions().begin()->first);
  const Json owners = left["metadata"]["ownerReferences"];
  left["metadata"].erase("ownerReferences");
  world.settle(3);
  ASSERT_EQ(world.revisions().size(), 1U);
  EXPECT_EQ(left["metadata"]["ownerReferences"], owners);
  EXPECT_EQ(left["revision"], 1);
}

TEST(NodeSetPlan, WithHostNetworkingAWorkerIsKnownByItsAddressToo) {
  World world(Json{{"replicas", 2}, {"template", {{"spec", {{"hostNetwork", true}}}}}});
  world.settle(3);
  for (auto& [name, pod] : world.pods) pod.node_name = "kube-" + name;
  world.start_pods();
  ASSERT_TRUE(world.nodes.contains("kube-cpu-1"));
  for (auto& [name, pod] : world.pods) pod.pod_ip = "10.1.0." + name.substr(4);
  world.node("kube-cpu-0").address = "10.1.0.0";
  slurm::Node real = world.node("kube-cpu-1");
  world.nodes.erase("kube-cpu-1");
  real.name = "real-1";
  real.address = "10.1.0.1";
  world.nodes["real-1"] = real;
  world.add_job({"real-1"});
  world.settle(5);
  world.advance(core::Duration{181000});
  world.settle(5);
  EXPECT_FALSE(world.pod("cpu-1").meta.terminating()) << "it did register";
  EXPECT_EQ(world.condition("Ready"), "True Ready");
  EXPECT_THAT(world.node("real-1").comment, HasSubstr("\"podName\":\"cpu-1\""));
  world.edit("replicas", 0);
  world.settle(5);
  EXPECT_TRUE(world.node("real-1").state.has("DRAIN"));
  EXPECT_FALSE(world.pod("cpu-1").meta.terminating()) << "it runs a job";
  EXPECT_THAT(world.violations, IsEmpty());
  world.end_job(1);
  world.settle(5);
  EXPECT_TRUE(world.pod("cpu-1").meta.terminating());
  EXPECT_FALSE(world.nodes.contains("real-1"));

  World other(Json{{"replicas", 1}, {"template", {{"spec", {{"hostNetwork", true}}}}}});
  other.settle(3);
  other.start_pods();
  real.features = {"somebody-elses"};
  real.address = other.pod("cpu-0").pod_ip;
  real.slurmd_start_time = other.now;
  other.nodes = {{"real-1", real}};
  other.settle(3);
  EXPECT_THAT(other.message("Ready"), HasSubstr("is not registered in Slurm")) << "another NodeSet's";
  other.node("real-1").features = {"cpu"};
  other.node("real-1").slurmd_start_time = other.now - core::Duration{3600 * 1000};
  other.settle(3);
  EXPECT_THAT(other.message("Ready"), HasSubstr("is not registered in Slurm")) << "of a machine that had the address before";
}

TEST(NodeSetPlan, WithHostNetworkingAWorkerStaysTheNodeThatWasSeenFirst) {
  World world(
      Json{{"replicas", 1}, {"updateStrategy", {{"type", "OnDelete"}}}, {"template", {{"spec", {{"hostNetwork", true}}}}}});
  world.settle(3);
  world.start_pods();
  slurm::Node real = world.nodes.begin()->second;
  real.name = "real-0";
  real.address = world.pod("cpu-0").pod_ip = "10.1.0.0";
  world.nodes = {{"real-0", real}};
  world.add_job({"real-0"});
  world.settle(5);
  EXPECT_EQ(world.pod("cpu-0").meta.annotation("nodeset.slinky.slurm.net/registered"), "real-0");
  world.node("real-0").features = {"fast"};
  world.node("real-0").comment = "of an administrator";
  world.edit("template", Json::object());
  world.settle(5);
  world.advance(core::Duration{181000});
  world.settle(5);
  EXPECT_FALSE(world.pod("cpu-0").meta.terminating());
  EXPECT_EQ(world.condition("Ready"), "True Ready");
  EXPECT_TRUE(world.nodes.contains("real-0"));
  EXPECT_THAT(world.violations, IsEmpty());

  World two(Json{{"replicas", 1}, {"template", {{"spec", {{"hostNetwork", true}}}}}});
  two.settle(3);
  two.start_pods();
  real.features = {"cpu"};
  real.comment.clear();
  real.address = two.pod("cpu-0").pod_ip = "10.1.0.0";
  real.slurmd_start_time = two.now;
  slurm::Node twin = real;
  twin.name = "real-1";
  two.nodes = {{"real-0", real}, {"real-1", twin}};
  two.settle(3);
  EXPECT_EQ(two.pod("cpu-0").meta.annotation("nodeset.slinky.slurm.net/registered"), "") << "it may be either";
}

TEST(NodeSetPlan, LeavesACommentOfAnEarlierReleaseAsItIs) {
  World world(Json{{"replicas", 1}});
  world.settle(3);
  world.start_pods();
  world.settle(3);
  Json comment = Json::parse(world.node("cpu-0").comment);
  ASSERT_EQ(comment.erase("extraConfHash"), 1U);
  world.node("cpu-0").comment = comment.dump();
  world.settle(3);
  EXPECT_EQ(world.node("cpu-0").comment, comment.dump());
}

TEST(NodeSetPlan, GivesASlurmdThatStartedAgainItsTimeToRegister) {
  World world = serving(2);
  world.nodes.erase("cpu-1");
  world.settle(3);
  const kube::PodRecord ready = world.pod("cpu-1");
  world.pod("cpu-1").conditions.clear();
  world.advance(core::Duration{600000});
  world.settle(3);
  world.pod("cpu-1").conditions = ready.conditions;
  world.settle(3);
  EXPECT_FALSE(world.pod("cpu-1").meta.terminating());
  world.advance(core::Duration{181000});
  world.settle(3);
  EXPECT_TRUE(world.pod("cpu-1").meta.terminating());
}

TEST(NodeSetPlan, AdoptsOrphansBeforeItCreates) {
  World world(Json{{"replicas", 2}});
  Observed observed = world.observe();
  auto orphan = std::make_shared<kube::PodRecord>();
  orphan->meta.ns = "default";
  orphan->meta.name = "cpu-0";
  orphan->meta.uid = "orphan";
  observed.orphans.push_back(orphan);
  EXPECT_EQ(plan_nodeset(observed).needs().size(), 1U) << "whether the NodeSet is deleted alone just now";
  observed.stays = false;
  EXPECT_THAT(ids(plan_nodeset(observed)), ::testing::IsEmpty()) << "the garbage collector would delete what it takes back";
  observed.stays = true;
  EXPECT_THAT(ids(plan_nodeset(observed)), ::testing::ElementsAre("add finalizer", "adopt Pod default/cpu-0"));
  EXPECT_EQ(plan_nodeset(observed).lanes().at("adopt").groups().size(), 2U) << "a deletion waits for it from then on";
}

TEST(NodeSetPlan, AWorkerOfANodeSetThatIsGoneChangesItsOwner) {
  World world = serving(2);
  world.pod("cpu-1").meta.owners = {{"slinky.slurm.net/v1beta1", "NodeSet", "cpu", "old-uid", true}};
  Observed observed = world.observe();
  observed.stays = true;
  const plan::Plan plan = plan_nodeset(observed);
  ASSERT_EQ(ids(plan), std::vector<std::string>{"adopt Pod default/cpu-1"});
  const Json owners = plan.lanes().at("adopt").groups()[0][0].act->describe()["patch"]["metadata"]["ownerReferences"];
  ASSERT_EQ(owners.size(), 2U);
  EXPECT_EQ(owners[0]["uid"], "set-uid");
  EXPECT_EQ(owners[1], Json({{"$patch", "delete"}, {"uid", "old-uid"}})) << "two cannot both be its controller";
}

TEST(NodeSetPlan, TheRecordOfAVacancyStaysWhileOrphansAreAdopted) {
  World world(Json{{"replicas", 3}});
  for (int i = 0; i < 3; ++i) world.add_pod(i);
  world.settle();
  world.node("cpu-2").state.flags.insert("DRAIN");
  world.node("cpu-2").reason = "bad disk";
  world.user_deletes("cpu-2");
  world.finish_pods();
  for (const char* name : {"cpu-0", "cpu-1"}) world.orphan(name);
  world.nodeset()["metadata"]["uid"] = "next-uid";
  world.settle();
  world.start_pods();
  world.settle();
  EXPECT_TRUE(world.pods.contains("cpu-2"));
  EXPECT_THAT(world.done, ::testing::Not(::testing::Contains("delete Slurm node cpu-2")));
  EXPECT_EQ(world.node("cpu-2").reason, "bad disk");
}

TEST(NodeSetPlan, AnOrphanThatEndsHoldsItsPlaceUntilItIsOverdue) {
  World world(Json{{"replicas", 2}});
  world.add_pod(0);
  world.settle();
  world.add_pod(1);
  world.orphan("cpu-1");
  world.user_deletes("cpu-1");
  world.settle();
  EXPECT_EQ(world.pods.size(), 2U);
  world.advance(core::Duration{600000});
  world.settle();
  EXPECT_TRUE(world.pods.contains("cpu-2")) << "its Kubernetes node is lost";
}

TEST(NodeSetPlan, TheRecordOfAnOrphanStays) {
  World world(Json{{"replicas", 1}});
  world.add_pod(0);
  world.settle();
  ASSERT_NE(world.node("cpu-0").comment, "") << "it is known as ours";
  world.orphan("cpu-0");
  world.done.clear();
  world.settle();
  EXPECT_THAT(world.done, ::testing::Contains("adopt Pod default/cpu-0"));
  EXPECT_THAT(world.done, ::testing::Not(::testing::Contains("delete Slurm node cpu-0")));
}

TEST(NodeSetPlan, OneThatWentAloneDoesNotWaitForeverForADoubtAboutTheWorkersThatItLeft) {
  World world(Json{{"replicas", 2}});
  for (int i = 0; i < 2; ++i) world.add_pod(i);
  world.settle();
  world.pods.erase("cpu-1");
  world.node("cpu-1").state.base = "DOWN";
  world.orphan("cpu-0");
  world.nodes.erase("cpu-0");
  world.nodeset()["metadata"]["deletionTimestamp"] = core::format_rfc3339(world.now);
  world.done.clear();
  const auto removed = [&] {
    world.settle();
    return std::ranges::find(world.done, "remove finalizer") != world.done.end();
  };
  EXPECT_FALSE(removed()) << "it may pass";
  world.stop_deletions(true);
  world.advance(core::Duration{600000});
  EXPECT_FALSE(removed()) << "the stop switch is somebody's word";
  world.stop_deletions(false);
  EXPECT_FALSE(removed());
  world.advance(core::Duration{300000});
  EXPECT_TRUE(removed());
  EXPECT_TRUE(world.nodes.contains("cpu-1")) << "it is for the next NodeSet of the name";
}

TEST(NodeSetPlan, WorkersOfAnotherClusterAreLeftAlone) {
  World world(Json{{"replicas", 2}});
  world.add_pod(0);
  world.orphan("cpu-0");
  world.pod("cpu-0").meta.labels[std::string(api::kLabelCluster)] = "other";
  world.nodes.clear();
  EXPECT_THAT(ids(plan_nodeset(world.observe())), ::testing::Not(::testing::Contains("create Pod default/cpu-0")));
  world.settle();
  world.start_pods();
  world.settle();
  world.advance(core::Duration{600000});
  world.settle();
  EXPECT_THAT(world.pods,
              ::testing::UnorderedElementsAre(::testing::Key("cpu-0"), ::testing::Key("cpu-1"), ::testing::Key("cpu-2")));
  EXPECT_THAT(world.done, ::testing::Not(::testing::Contains("adopt Pod default/cpu-0")));
  EXPECT_FALSE(world.pod("cpu-0").meta.terminating());
  EXPECT_EQ(world.condition("Degraded"), "True NamesTaken");
  EXPECT_THAT(world.message("Degraded"), ::testing::HasSubstr("Pods cpu-0 have names of workers of this NodeSet"));
}

TEST(NodeSetPlan, AWorkerThatWasTakenApartIsReplacedUnderAnotherName) {
  World world = serving(2);
  world.pod("cpu-1").meta.labels[std::string(api::kLabelInstance)] = "other";
  EXPECT_THAT(ids(plan_nodeset(world.observe())), ::testing::Not(::testing::Contains("create Pod default/cpu-1")));
  world.settle();
  world.start_pods();
  world.settle();
  EXPECT_TRUE(world.pods.contains("cpu-2"));
  EXPECT_TRUE(world.nodes.contains("cpu-1")) << "its slurmd still answers";
  EXPECT_EQ(world.condition("Degraded"), "True NamesTaken");
  EXPECT_THAT(world.message("Degraded"), ::testing::HasSubstr("label app.kubernetes.io/instance is not cpu"));
}

TEST(NodeSetPlan, TheIntentTellsWhatComesInLaterPasses) {
  World world(Json{{"replicas", 30}});
  for (int i = 0; i < 30; ++i) world.add_pod(i);
  world.settle();
  for (auto& [name, node] : world.nodes) node.state.flags.insert("MAINTENANCE");
  world.node("cpu-3").state.flags.insert("DRAIN");
  world.node("cpu-3").reason = "slurm-operator: it was cordoned";
  std::erase_if(world.pod("cpu-3").conditions, [](const kube::PodCondition& condition) { return condition.type == "Ready"; });
  const plan::Plan plan = plan_nodeset(world.observe());
  EXPECT_EQ(plan.lanes().at("report").groups().front().size(), 20U);
  EXPECT_FALSE(plan.lanes().contains("resume"));
  EXPECT_EQ(plan.intent.text(), "report Slurm state on Pod default/cpu-[0-29] (30); resume cpu-3");
}

TEST(NodeSetPlan, CountsAloneWaitHalfASecondForTheNextWrite) {
  World world = serving(2);
  world.advance(core::Duration{60000});
  world.add_job({"cpu-0"});
  world.run(plan_nodeset(world.observe()));
  ASSERT_EQ(world.status()["slurmAllocated"], 1) << "nothing was written for long";
  world.advance(core::Duration{200});
  world.add_job({"cpu-1"});
  const plan::Plan early = plan_nodeset(world.observe());
  EXPECT_FALSE(early.lanes().contains("status"));
  EXPECT_EQ(early.wake(), core::Duration{300});
  world.run(early);
  world.advance(core::Duration{300});
  world.run(plan_nodeset(world.observe()));
  EXPECT_EQ(world.status()["slurmAllocated"], 2);
}

TEST(NodeSetPlan, AConditionOfSomebodyElseStays) {
  World world = serving(1);
  const Json other{{"type", "Other"},
                   {"status", "Unknown"},
                   {"reason", "Theirs"},
                   {"message", "words"},
                   {"lastTransitionTime", "2025-01-02T03:04:05Z"},
                   {"observedGeneration", 1}};
  world.nodeset()["status"]["conditions"].push_back(other);
  world.node("cpu-0").state.flags.insert("DRAIN");
  world.settle();
  ASSERT_EQ(world.condition("Ready"), "False NotUsable");
  EXPECT_THAT(world.status()["conditions"], Contains(other));
}

TEST(NodeSetPlan, ACordonIsWhatGoTakesForTrue) {
  const auto drains = [](const char* text) {
    World world(Json{{"replicas", 1}});
    world.add_pod(0).meta.annotations[std::string(api::kAnnotationPodCordon)] = text;
    return plan_nodeset(world.observe()).lanes().contains("drain");
  };
  for (const char* text : {"true", "True", "TRUE", "1", "t", "T"}) EXPECT_TRUE(drains(text)) << text;
  for (const char* text : {"", "false", "0", "yes", "tRUE", "true "}) EXPECT_FALSE(drains(text)) << text;
}

/// The plan for 2,000 workers must cost about eight times as much as the plan for 250. The test allows less than 16 times as
/// much. It compares the least CPU time of five runs, to exclude other load.
TEST(NodeSetPlan, ItsCostGrowsWithItsWorkersAndNotWithTheirSquare) {
  constexpr int kFactor = 8;
  const auto observe = [](int workers) {
    World world(Json{{"replicas", workers}});
    for (int i = 0; i < workers; ++i) world.add_pod(i);
    for (int i = 0; i < workers; i += 2) world.add_job({"cpu-" + std::to_string(i)});
    return world.observe();
  };
  const auto cost = [](const Observed& observed) {
    const std::clock_t begin = std::clock();
    EXPECT_LE(plan_nodeset(observed).step_count(), plan::PassLimits{}.max_steps);
    return std::clock() - begin;
  };
  const Observed some = observe(250), many = observe(250 * kFactor);
  std::clock_t some_cost = cost(some), many_cost = cost(many);
  for (int i = 1; i < 5; ++i) {
    some_cost = std::min(some_cost, cost(some));
    many_cost = std::min(many_cost, cost(many));
  }
  EXPECT_LT(many_cost, some_cost * kFactor * 2) << "their square would be eight times as much again";
}

/// Pods with generated names that another operator created count as workers of this NodeSet.
TEST(NodeSetPlan, KeepsPodsOfOthersThatAreBoundToKubernetesNodes) {
  World world(Json{{"scalingMode", "DaemonSet"}});
  for (const char* host : {"kube-1", "kube-2"}) world.add_host(host);
  kube::PodRecord pod = world.add_pod(1);
  world.pods.clear();
  world.nodes.clear();
  pod.meta.name = "cpu-x7k2p";
  pod.meta.labels["nodeset.slinky.slurm.net/scaling-mode"] = "DaemonSet";
  pod.hostname = pod.pinned_to = pod.node_name = "kube-1";
  pod.phase = "Pending";
  world.pods.emplace(pod.meta.name, pod);
  world.start_pods();
  world.settle();
  EXPECT_EQ(world.pods.size(), 2U);
  EXPECT_TRUE(world.pods.contains("cpu-x7k2p"));
  EXPECT_EQ(world.condition("Degraded"), "False AsExpected");
  EXPECT_EQ(world.status()["desired"], 2);
  world.remove_host("kube-2");
  world.settle();
  EXPECT_FALSE(world.pods.contains("cpu-x7k2p") && world.pods.at("cpu-x7k2p").meta.terminating());
  world.orphan("cpu-x7k2p");
  world.settle();
  EXPECT_FALSE(world.pod("cpu-x7k2p").meta.owners.empty()) << "adopted";
}

TEST(NodeSetPlan, MakesOneWorkerOnAHostThatHasOneOfTheOtherModeOnlyWhenThatIsGone) {
  World world = serving(1);
  world.add_host("kube-0");
  world.add_job({"cpu-0"});
  world.edit("scalingMode", "DaemonSet");
  world.settle(5);
  EXPECT_THAT(world.done, Not(Contains(StartsWith("create Pod"))));
  EXPECT_EQ(world.condition("Progressing"), "True SwitchingMode");
  world.edit("oversubscribeNode", true);
  world.settle(5);
  EXPECT_THAT(world.done, Contains(StartsWith("create Pod"))) << "there is room for both";
}

}  // namespace
}  // namespace op::nodeset
