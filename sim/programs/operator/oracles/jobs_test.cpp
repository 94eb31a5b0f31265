#include "sim/programs/operator/oracles/jobs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/well_known.hpp"
#include "sim/programs/operator/oracles/agents.hpp"
#include "sim/programs/operator/world.hpp"
#include "slinky/names.hpp"

namespace sim {
namespace {

using core::Duration;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
namespace kinds = kube::resources;

/// Two workers, and a long job on both of them.
class JobOracleTest : public testing::Test {
 protected:
  void SetUp() override {
    world.start(world.program());
    world.apply(controller_json());
    world.apply(restapi_json());
    ASSERT_THAT(world.settle(Duration{180000}), IsEmpty());
    // slurmctld has its own machine.
    world.merge(kinds::kNode, machine_of("demo-controller-0"), {{"spec", {{"unschedulable", true}}}});
    world.apply(nodeset_json("cpu", 2));
    ASSERT_THAT(world.settle(Duration{180000}), IsEmpty());
    job = submit(2);
    // Waits until the start of new workers is over, because a start is another cause of losses.
    world.loop().run_for(Duration{120000});
    ASSERT_EQ(state(), SimJob::State::kRunning);
    ASSERT_THAT(losses(), IsEmpty());
  }
  std::int64_t submit(int nodes) {
    JobRequest request;
    request.partition = "cpu";
    request.nodes = nodes;
    request.duration = Duration{3600000};
    return world.slurm()->submit(request);
  }
  [[nodiscard]] SimJob::State state() const { return world.slurm()->jobs().at(job).state; }
  [[nodiscard]] const std::map<Blame, int>& losses() { return world.judges().jobs().losses(); }
  [[nodiscard]] std::string machine_of(const std::string& pod) {
    return core::get_string(*world.find(kinds::kPod, pod), {"spec", "nodeName"});
  }
  void delete_worker(const std::string& name, const std::string& user) {
    Caller caller;
    caller.user = user;
    ASSERT_TRUE(world.api().remove(kinds::kPod, {World::kNamespace, name}, {}, caller));
    world.loop().run_for(Duration{1000});
  }
  void preempt_worker() {
    world.kube().nodes().preempt({World::kNamespace, "cpu-0"});
    world.loop().run_for(Duration{1000});
  }
  /// Deletes the NodeSet with --cascade=orphan, so that its workers continue.
  void leave_workers() {
    world.remove(slinky::resources::kNodeSet, "cpu", "Orphan");
    world.loop().run_for(Duration{1000});
    ASSERT_EQ(core::find(*world.find(kinds::kPod, "cpu-0"), {"metadata", "ownerReferences"}), nullptr);
  }
  /// Starts a job on workers that a just deleted NodeSet left behind. Then runs the world for a long time.
  void start_job_on_left_workers() {
    world.slurm()->cancel(job);
    world.loop().run_for(Duration{10000});
    world.pause(0, Duration{5000});  // otherwise, the operator would close the partition
    leave_workers();
    job = submit(2);
    world.loop().run_for(Duration{240000});
    ASSERT_EQ(world.find(slinky::resources::kNodeSet, "cpu"), nullptr);
    ASSERT_EQ(state(), SimJob::State::kRunning);
    ASSERT_THAT(losses(), IsEmpty());
  }
  /// Restarts the machine of cpu-0. Deletes the node's record when slurmd runs, and starts a job on the new record. The
  /// operator is paused, so it cannot know about the job.
  void start_job_on_one_that_began_anew() {
    world.slurm()->cancel(job);
    world.loop().run_for(Duration{10000});
    world.pause(0, std::chrono::hours{1});
    const std::string machine = machine_of("cpu-0");
    world.kube().nodes().crash_node(machine);
    world.loop().run_for(Duration{1000});
    set_state("cpu-0", "DRAIN", "slurm");
    world.kube().nodes().restart_node(machine);
    ASSERT_TRUE(world.loop().run_until([&] { return world.slurm()->slurmd_runs("cpu-0"); }, Duration{60000}));
    ASSERT_EQ(world.slurm()->delete_node("cpu-0"), SlurmErrno::kSuccess);
    JobRequest request;
    request.partition = "cpu";
    request.duration = Duration{3600000};
    request.required_nodes = {"cpu-0"};
    ASSERT_TRUE(world.loop().run_until([&] { return world.slurm()->node("cpu-0") != nullptr; }, Duration{2000}));
    job = world.slurm()->submit(request);
    ASSERT_TRUE(world.loop().run_until([&] { return state() == SimJob::State::kRunning; }, Duration{2000}));
  }
  void set_state(const std::string& node, const char* state, std::string_view user) {
    SimNodeUpdate change;
    change.state = state;
    ASSERT_EQ(world.slurm()->update_node(node, change, std::string(user)), SlurmErrno::kSuccess);
  }
  void drain_for_scale_in() {
    SimNodeUpdate change;
    change.state = "DRAIN";
    change.reason = "slurm-operator: NodeSet default/cpu was scaled in";
    ASSERT_EQ(world.slurm()->update_node("cpu-0", change, "slurm"), SlurmErrno::kSuccess);
  }

  OperatorWorld world;
  std::int64_t job = 0;
};

TEST_F(JobOracleTest, AWorkerThatItsUserDeletesIsTheUsers) {
  delete_worker("cpu-0", "user");
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kUser, 1)));
  EXPECT_THAT(world.oracles().violations(), IsEmpty());
}

TEST_F(JobOracleTest, OneThatTheOperatorDeletesIsNot) {
  delete_worker("cpu-0", std::string(kOperatorAgent));
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kOperator, 1)));
  EXPECT_THAT(world.oracles().violations(), testing::Contains(testing::HasSubstr("the operator deleted its worker")));
}

TEST_F(JobOracleTest, NoJobIsCancelledWithoutAPolicy) {
  world.pause(0, std::chrono::hours{1});
  drain_for_scale_in();
  world.merge(slinky::resources::kNodeSet, "cpu", {{"spec", {{"drainPolicy", {{"timeout", "1m"}, {"onTimeout", "Cancel"}}}}}});
  ASSERT_EQ(world.slurm()->cancel_by(job, "slurm"), SlurmErrno::kSuccess);
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kNoPolicy, 1))) << "it has not lasted for so long";
}

TEST_F(JobOracleTest, WhatAPolicyCancelsIsItsUsers) {
  world.merge(slinky::resources::kNodeSet, "cpu",
              {{"spec", {{"drainPolicy", {{"timeout", "1m"}, {"onTimeout", "Cancel"}}}, {"replicas", 0}}}});
  ASSERT_TRUE(world.loop().run_until([&] { return state() == SimJob::State::kCancelled; }, Duration{90000}));
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kPolicy, 1)));
  EXPECT_THAT(world.oracles().violations(), IsEmpty());
}

TEST_F(JobOracleTest, APolicyToRequeueIsNoneToCancel) {
  world.pause(0, std::chrono::hours{1});
  drain_for_scale_in();
  world.merge(slinky::resources::kNodeSet, "cpu", {{"spec", {{"drainPolicy", {{"timeout", "0s"}, {"onTimeout", "Requeue"}}}}}});
  ASSERT_EQ(world.slurm()->cancel_by(job, "slurm"), SlurmErrno::kSuccess);
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kNoPolicy, 1)));
}

TEST_F(JobOracleTest, ButNobodyKnowsOfASlurmdThatBeginsAnewBetweenTheEndsOfItsRecordAndOfItsPod) {
  start_job_on_one_that_began_anew();
  delete_worker("cpu-0", std::string(kOperatorAgent));
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kAccident, 1)));
}

TEST_F(JobOracleTest, LongAfterItsRecordWentTheOperatorCanLookAgain) {
  start_job_on_one_that_began_anew();
  world.loop().run_for(Duration{10000});
  delete_worker("cpu-0", std::string(kOperatorAgent));
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kNewWorker, 1)));
}

TEST_F(JobOracleTest, NorOneThatIsPreemptedLongAfterItBegan) {
  world.loop().run_for(Duration{120000});
  for (const char* name : {"cpu-0", "cpu-1"})
    world.merge(kinds::kPod, name, {{"metadata", {{"labels", {{std::string(api::kLabelPodBusy), nullptr}}}}}});
  preempt_worker();
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kPreemption, 1)));
}

TEST_F(JobOracleTest, ButNobodyLooksForJobsOnOneThatItsNodeSetHadLeftBefore) {
  start_job_on_left_workers();
  preempt_worker();
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kAccident, 1)));
  EXPECT_THAT(world.oracles().violations(), IsEmpty());
}

TEST_F(JobOracleTest, NorDidItHaveTheTimeWhereTheJobBeganShortlyBeforeItsNodeSetLeft) {
  leave_workers();
  world.merge(kinds::kPod, "cpu-0", {{"metadata", {{"labels", {{std::string(api::kLabelPodBusy), nullptr}}}}}});
  world.loop().run_for(Duration{120000});
  preempt_worker();
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kAccident, 1)));
  EXPECT_THAT(world.oracles().violations(), IsEmpty());
}

TEST_F(JobOracleTest, NorIsItKnownWhatRunsThereWhenAnotherHasJustTakenItOver) {
  start_job_on_left_workers();
  world.apply(nodeset_json("cpu", 2));
  const auto adopted = [&] {
    return core::find(*world.find(kinds::kPod, "cpu-0"), {"metadata", "ownerReferences"}) != nullptr;
  };
  ASSERT_TRUE(world.loop().run_until(adopted, Duration{20000}));
  preempt_worker();
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kAccident, 1)));
  EXPECT_THAT(world.oracles().violations(), IsEmpty());
}

TEST_F(JobOracleTest, WhatRanThereLongBeforeItsNodeSetLeftItIsKnownByItsLabel) {
  world.loop().run_for(Duration{120000});
  leave_workers();
  preempt_worker();
  EXPECT_THAT(losses(), IsEmpty()) << "the label stays";
  world.merge(kinds::kPod, "cpu-0", {{"metadata", {{"labels", {{std::string(api::kLabelPodBusy), nullptr}}}}}});
  preempt_worker();
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kPreemption, 1)));
}

TEST_F(JobOracleTest, NorOneThatTheTaintManagerDeletes) {
  delete_worker("cpu-0", "system:serviceaccount:kube-system:taint-eviction-controller");
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kTaint, 1)));
}

TEST_F(JobOracleTest, NorOneThatIsEvictedPastItsBudget) {
  world.evict("cpu-0");
  EXPECT_THAT(losses(), IsEmpty()) << "its budget refuses that";
  ASSERT_TRUE(world.api().modify(
      kinds::kPodDisruptionBudget, {World::kNamespace, "slurm-workers-pdb-demo"},
      [](core::Json& budget) { budget["status"]["disruptionsAllowed"] = 1; }, {}, "status"));
  world.evict("cpu-0");
  world.loop().run_for(Duration{1000});
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kEviction, 1)));
}

TEST_F(JobOracleTest, ButNoBudgetCountsOneThatIsPendingThoughItsSlurmdHasStarted) {
  ASSERT_TRUE(world.api().modify(
      kinds::kPod, {World::kNamespace, "cpu-0"}, [](core::Json& pod) { pod["status"]["phase"] = "Pending"; }, {}, "status"));
  world.evict("cpu-0");
  world.loop().run_for(Duration{1000});
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kAccident, 1)));
  EXPECT_THAT(world.oracles().violations(), IsEmpty());
}

/// The worker is cordoned and idle. An administrator resumes its Slurm node. The worker is evicted after the time `since`.
class FreedWorkerTest : public JobOracleTest {
 protected:
  void evict_after(Duration since) {
    world.slurm()->cancel(job);
    world.merge(kinds::kPod, "cpu-0", {{"metadata", {{"annotations", {{std::string(api::kAnnotationPodCordon), "true"}}}}}});
    const auto open = [&] {
      return core::get_string(*world.find(kinds::kPod, "cpu-0"), {"metadata", "labels", api::kLabelPodProtect}).empty();
    };
    ASSERT_TRUE(world.loop().run_until(open, Duration{60000}));
    world.pause(0, std::chrono::hours{1});
    set_state("cpu-0", "RESUME", kSlurmAdmin);
    job = submit(2);
    world.loop().run_for(since);
    ASSERT_EQ(state(), SimJob::State::kRunning);
    world.evict("cpu-0");
    world.loop().run_for(Duration{1000});
  }
};

TEST_F(FreedWorkerTest, IsNotProtectedAtOnce) {
  evict_after(Duration{30000});
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kAdmin, 1)));
  EXPECT_THAT(world.oracles().violations(), IsEmpty());
}

TEST_F(FreedWorkerTest, ButIsWhenTheOperatorCouldHaveSeenIt) {
  evict_after(Duration{120000});
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kEviction, 1)));
}

TEST_F(JobOracleTest, WhatAnAdministratorSetsDownIsHis) {
  set_state("cpu-0", "DOWN", kSlurmAdmin);
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kAdmin, 1)));
}

TEST_F(JobOracleTest, WhatTheOperatorSetsDownIsItsBlame) {
  set_state("cpu-0", "DOWN", "slurm");
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kOperatorDown, 1)));
  EXPECT_THAT(world.oracles().violations(), testing::Contains(testing::HasSubstr("the operator set its node DOWN")));
}

TEST_F(JobOracleTest, AMachineThatStopsIsAnAccidentAndAJobIsCountedOnce) {
  world.kube().nodes().crash_node(machine_of("cpu-0"));
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kAccident, 1)));
  EXPECT_EQ(state(), SimJob::State::kRunning);
  world.loop().run_for(std::chrono::minutes{10});
  EXPECT_EQ(world.slurm()->jobs().at(job).restarts, 1);
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kAccident, 1)));
}

TEST_F(JobOracleTest, TheJobsOfAMachineThatIsDeletedStartAnewAtOnce) {
  world.kube().nodes().delete_node(machine_of("cpu-0"));
  world.loop().run_for(std::chrono::minutes{2});
  EXPECT_EQ(world.slurm()->jobs().at(job).restarts, 1) << "SlurmdTimeout is five minutes";
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kAccident, 1)));
  EXPECT_THAT(world.oracles().violations(), IsEmpty());
}

TEST_F(JobOracleTest, AndThoughItsSlurmdRuns) {
  const std::string machine = machine_of("cpu-0");
  world.kube().nodes().cut_node(machine);
  Caller collector;
  collector.user = "system:serviceaccount:kube-system:pod-garbage-collector";
  ASSERT_TRUE(world.api().remove(kinds::kNode, {"", machine}));
  Deletion at_once;
  at_once.grace_seconds = 0;
  ASSERT_TRUE(world.api().remove(kinds::kPod, {World::kNamespace, "cpu-0"}, at_once, collector));
  world.loop().run_for(Duration{20000});
  EXPECT_EQ(world.slurm()->jobs().at(job).restarts, 1);
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kAccident, 1)));
  EXPECT_THAT(world.oracles().violations(), IsEmpty());
}

TEST_F(JobOracleTest, APodThatFailsIsAnAccident) {
  world.kube().nodes().fail_pod({World::kNamespace, "cpu-0"});
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kAccident, 1)));
}

TEST_F(JobOracleTest, SlurmdThatEndsForNoReasonIsNone) {
  world.slurm()->stop_slurmd("cpu-0");
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kProcess, 1)));
  EXPECT_THAT(world.oracles().violations(), testing::Contains(testing::HasSubstr("the slurmd of its node ended")));
}

TEST_F(JobOracleTest, WhatIsStartedAfterASlurmdEndedIsLostToo) {
  world.slurm()->cancel(job);
  world.loop().run_for(Duration{3000});
  for (const char* node : {"cpu-0", "cpu-1"}) world.slurm()->stop_slurmd(node);
  job = submit(1);
  world.loop().run_for(Duration{2000});
  EXPECT_EQ(state(), SimJob::State::kRunning);
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kGoneWorker, 1)));
}

TEST_F(JobOracleTest, OrAfterAnAccidentWhoeverDeletesASuccessorThatNeverBegan) {
  world.slurm_rates.refused = 1.0;
  world.merge(slinky::resources::kNodeSet, "cpu", {{"spec", {{"slurmd", {{"image", "local/nonesuch:1"}}}}}});
  world.loop().run_for(Duration{15000});
  const auto uid = [&] {
    const core::Json* pod = world.find(kinds::kPod, "cpu-0");
    return pod == nullptr ? "" : core::get_string(*pod, {"metadata", "uid"});
  };
  const auto replaced = [&](const std::string& before) {
    return world.loop().run_until([&] { return !uid().empty() && uid() != before; }, Duration{30000});
  };
  const std::string first = uid();
  world.kube().nodes().fail_pod({World::kNamespace, "cpu-0"});
  ASSERT_TRUE(replaced(first));
  world.loop().run_for(Duration{5000});
  const std::string second = uid();
  delete_worker("cpu-0", "system:serviceaccount:kube-system:taint-eviction-controller");
  ASSERT_TRUE(replaced(second));
  job = submit(1);
  world.loop().run_for(Duration{2000});
  ASSERT_THAT(world.slurm()->jobs().at(job).nodes, ElementsAre("cpu-0")) << "nobody could tell slurmctld";
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kAccident, 2)));
  EXPECT_THAT(world.oracles().violations(), IsEmpty());
}

TEST_F(JobOracleTest, OrAfterItsWorkerIsGoneWhoeverDeletedTheOneBefore) {
  world.slurm()->cancel(job);
  world.loop().run_for(Duration{3000});
  for (const int replicas : {1, 2}) {
    world.merge(slinky::resources::kNodeSet, "cpu", {{"spec", {{"replicas", replicas}}}});
    ASSERT_THAT(world.settle(Duration{60000}), IsEmpty());
  }
  world.pause(0, std::chrono::hours{1});  // otherwise, the operator would drain the node
  Caller scheduler;
  scheduler.user = "system:kube-scheduler";
  Deletion at_once;
  at_once.grace_seconds = 0;
  ASSERT_TRUE(world.api().remove(kinds::kPod, {World::kNamespace, "cpu-1"}, at_once, scheduler));
  world.loop().run_for(Duration{1000});
  job = submit(2);
  world.loop().run_for(Duration{2000});
  ASSERT_EQ(state(), SimJob::State::kRunning) << "nobody could tell slurmctld";
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kAccident, 1)));
  EXPECT_THAT(world.oracles().violations(), IsEmpty());
}

TEST_F(JobOracleTest, OrWhenSlurmctldIsBackAfterLongThoughTheSuccessorIsThere) {
  world.slurm()->cancel(job);
  world.loop().run_for(Duration{10000});
  world.slurm_rates.refused = 1.0;  // otherwise, the operator would drain the node
  world.merge(slinky::resources::kNodeSet, "cpu", {{"spec", {{"slurmd", {{"image", "local/nonesuch:1"}}}}}});
  const std::string machine = machine_of("demo-controller-0");
  world.kube().nodes().crash_node(machine);
  delete_worker("cpu-0", "user");
  world.loop().run_for(Duration{200000});
  ASSERT_NE(world.find(kinds::kPod, "cpu-0"), nullptr) << "its successor";
  world.kube().nodes().restart_node(machine);
  ASSERT_TRUE(world.loop().run_until([&] { return world.slurm() != nullptr; }, Duration{60000}));
  job = submit(1);
  world.loop().run_for(Duration{2000});
  ASSERT_THAT(world.slurm()->jobs().at(job).nodes, ElementsAre("cpu-0")) << "nobody could tell slurmctld";
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kUser, 1)));
  EXPECT_THAT(world.oracles().violations(), IsEmpty());
  // After this time, the operator must have reported the end of the worker.
  world.loop().run_for(Duration{91000});
  job = submit(1);
  world.loop().run_for(Duration{2000});
  ASSERT_THAT(world.slurm()->jobs().at(job).nodes, ElementsAre("cpu-0"));
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kUser, 1), Pair(Blame::kGoneWorker, 1)));
}

TEST_F(JobOracleTest, TheStateOfASlurmctldWithAVolumeIsNobodysToLose) {
  SimSlurm& slurm = *world.slurm();
  slurm.stop();
  slurm.lose_state();
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kState, 1)));
}

TEST_F(JobOracleTest, ItIsLostWithoutOneAndWithTheController) {
  SimSlurm& slurm = *world.slurm();
  world.remove(slinky::resources::kController, World::kCluster);
  slurm.stop();
  slurm.lose_state();
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kClusterEnds, 1)));
}

TEST_F(JobOracleTest, APartitionThatGoesAtOnceTakesItsJobs) {
  world.merge(slinky::resources::kNodeSet, "cpu", {{"spec", {{"partition", {{"enabled", false}}}}}});
  world.loop().run_for(Duration{60000});
  EXPECT_THAT(losses(), IsEmpty()) << "it is withheld";
  world.merge(slinky::resources::kController, World::kCluster,
              {{"metadata", {{"annotations", {{std::string(api::kAnnotationRemoveNow), "partition/cpu"}}}}}});
  world.loop().run_for(Duration{60000});
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kUser, 1)));
}

TEST(BlameTest, EachHasItsWords) {
  for (int i = 0; i <= static_cast<int>(Blame::kState); ++i) {
    const Blame blame = static_cast<Blame>(i);
    EXPECT_FALSE(to_string(blame).empty()) << i;
  }
}

TEST_F(JobOracleTest, APrologThatIsCutShortIsTheOperatorsBlameUnlessItIsNewOrLong) {
  world.judges().jobs().set_fair(true);
  const auto blame_after = [&](int prolog, int seconds) {
    world.slurm()->cancel_all();
    world.loop().run_for(Duration{3000});
    const auto before = losses();
    JobRequest request;
    request.partition = "cpu";
    request.prolog = Duration{prolog * 1000};
    (void)world.slurm()->submit(request);
    world.loop().run_for(Duration{seconds * 1000});
    EXPECT_EQ(world.slurm()->reconfigure(), SlurmErrno::kSuccess);
    std::map<Blame, int> out;
    for (const auto& [whose, count] : losses()) {
      if (const auto was = before.find(whose); was == before.end() || was->second != count) out[whose] = 1;
    }
    return out;
  };
  EXPECT_THAT(blame_after(40, 50), IsEmpty()) << "it has ended";
  EXPECT_THAT(blame_after(40, 3), ElementsAre(Pair(Blame::kAccident, 1)));
  EXPECT_THAT(blame_after(90, 70), ElementsAre(Pair(Blame::kLongProlog, 1)));
  EXPECT_TRUE(world.oracles().ok());
  EXPECT_THAT(blame_after(40, 30), ElementsAre(Pair(Blame::kReconfigure, 1)));
  EXPECT_FALSE(world.oracles().ok());
}

/// The operator waits a minute for all prologs together, not for each job.
TEST_F(JobOracleTest, NeitherIsOneOfManyPrologsThatFollowEachOther) {
  world.judges().jobs().set_fair(true);
  world.slurm()->cancel_all();
  world.loop().run_for(Duration{3000});
  JobRequest request;
  request.partition = "cpu";
  request.prolog = Duration{40000};
  (void)world.slurm()->submit(request);
  world.loop().run_for(Duration{30000});
  (void)world.slurm()->submit(request);
  world.loop().run_for(Duration{33000});
  EXPECT_EQ(world.slurm()->reconfigure(), SlurmErrno::kSuccess);
  EXPECT_THAT(losses(), ElementsAre(Pair(Blame::kLongProlog, 1)));
}

}  // namespace
}  // namespace sim
