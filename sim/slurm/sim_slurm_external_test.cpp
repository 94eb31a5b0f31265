// Tests what tests/conformance/slurm/slurm_external_test.cpp does not test: accounting, preemption, nodes with slurmd,
// releases.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/loop.hpp"
#include "sim/base/random.hpp"
#include "sim/slurm/sim_slurm.hpp"

namespace sim {
namespace {

using namespace std::chrono_literals;
using State = SimJob::State;

constexpr const char* kConf =
    "ClusterName=c\nSlurmctldHost=ctld(127.0.0.1)\nMaxNodeCount=4\nSlurmUser=slurm\nGresTypes=gpu\nReturnToService=2\n"
    "PartitionName=all Nodes=ALL Default=YES\n";

struct ExternalJobTest : testing::Test {
  SimLoop loop{1};
  SlurmOptions options;
  std::unique_ptr<SimSlurm> slurm;

  void begin() {
    slurm = std::make_unique<SimSlurm>(
        loop, loop.random(), [] { return std::string(kConf); }, options);
    ASSERT_TRUE(slurm->start());
  }
  SlurmErrno make(const std::string& more = "") {
    return slurm->create_nodes("NodeName=x CPUs=4 RealMemory=8000 State=External" + more);
  }
  SimSlurm::Submission submit(const std::function<void(JobRequest&)>& change = {}) {
    JobRequest request;
    request.memory = 100;
    if (change) change(request);
    const auto made = slurm->submit_external(request);
    loop.run_for(1s);
    return made;
  }
  State state(std::int64_t job) { return slurm->jobs().at(job).state; }
};

TEST_F(ExternalJobTest, OlderReleasesHaveNone) {
  options.release = "24.11.5";
  begin();
  EXPECT_EQ(make(), SlurmErrno::kInvalidState);
}

TEST_F(ExternalJobTest, AnUnknownAccountOrQosIsRefusedIfTheyAreEnforced) {
  options.accounts = {{"physics"}};
  options.qos = {{"high"}};
  begin();
  ASSERT_EQ(make(), SlurmErrno::kSuccess);
  const auto with = [&](const char* account, const char* qos) {
    return submit([&](JobRequest& request) {
             request.account = account;
             request.qos = qos;
           })
        .error;
  };
  EXPECT_EQ(with("physics", ""), SlurmErrno::kSuccess);
  EXPECT_EQ(with("physics", "high"), SlurmErrno::kSuccess);
  EXPECT_EQ(with("chemistry", ""), SlurmErrno::kInvalidAccount);
  EXPECT_EQ(with("physics", "low"), SlurmErrno::kInvalidQos);
}

TEST_F(ExternalJobTest, AGresIsShared) {
  begin();
  ASSERT_EQ(make(" Gres=gpu:a100:2,nic:1 GresConf=\"count=2,name=gpu,type=a100\""), SlurmErrno::kSuccess);
  EXPECT_EQ(slurm->node("x")->gres, "gpu:a100:2") << "GresTypes has no nic";
  const auto with = [&](const char* gres) { return submit([&](JobRequest& request) { request.tres_per_node = gres; }); };
  EXPECT_EQ(with("gres/nic:1").error, SlurmErrno::kInvalidGres);
  EXPECT_EQ(with("gres/gpu:3").error, SlurmErrno::kNodeConfiguration);
  const std::int64_t first = with("gres/gpu:1").id, second = with("gres/gpu:2").id, third = with("gres/gpu").id;
  EXPECT_EQ(state(first), State::kRunning);
  EXPECT_EQ(state(second), State::kPending);
  EXPECT_EQ(state(third), State::kRunning);
  slurm->cancel(first);
  slurm->cancel(third);
  loop.run_for(1s);
  EXPECT_EQ(state(second), State::kRunning);
}

TEST_F(ExternalJobTest, APreemptedJobHasItsGrace) {
  begin();
  ASSERT_EQ(make(), SlurmErrno::kSuccess);
  std::vector<JobLoss> losses;
  slurm->on_job_loss = [&](const SimJob&, const JobLoss& loss) { losses.push_back(loss); };
  const std::int64_t at_once = submit().id;
  EXPECT_TRUE(slurm->preempt(at_once));
  EXPECT_EQ(state(at_once), State::kPreempted);
  EXPECT_FALSE(slurm->preempt(at_once));
  const std::int64_t later = submit().id;
  ASSERT_TRUE(slurm->preempt(later, 30s));
  EXPECT_EQ(state(later), State::kRunning);
  EXPECT_EQ(slurm->jobs().at(later).end - slurm->jobs().at(later).preempted, 30);
  loop.run_for(60s);
  EXPECT_EQ(state(later), State::kPreempted);
  EXPECT_FALSE(slurm->busy("x"));
  ASSERT_EQ(losses.size(), 2U);
  EXPECT_EQ(losses[1].cause, JobLoss::Cause::kPreempted);
}

TEST_F(ExternalJobTest, BesideASlurmdItOutlivesTheSlurmdButNotADown) {
  begin();
  slurm->start_slurmd("n", "CPUs=4 RealMemory=1000");
  loop.run_for(2s);
  const std::int64_t job = submit().id;
  ASSERT_EQ(state(job), State::kRunning);
  slurm->stop_slurmd("n");
  slurm->start_slurmd("n", "CPUs=4 RealMemory=1000");
  loop.run_for(10s);
  EXPECT_EQ(state(job), State::kRunning);
  EXPECT_FALSE(slurm->jobs().at(job).doomed);
  // The job ends once its slurmd has been silent for SlurmdTimeout.
  slurm->stop_slurmd("n");
  loop.run_for(10min);
  EXPECT_EQ(state(job), State::kNodeFail);
  EXPECT_EQ(slurm->jobs().at(job).reason, "NodeDown");
}

TEST_F(ExternalJobTest, ANativeJobWaitsForAnExternalOne) {
  begin();
  slurm->start_slurmd("n", "CPUs=4 RealMemory=1000");
  loop.run_for(2s);
  const std::int64_t external = submit([](JobRequest& request) { request.tasks_per_node = 4; }).id;
  const std::int64_t native = slurm->submit({.user = "u", .duration = 5s});
  loop.run_for(2s);
  EXPECT_EQ(state(native), State::kPending);
  slurm->cancel(external);
  loop.run_for(2s);
  EXPECT_EQ(state(native), State::kRunning);
}

TEST_F(ExternalJobTest, AFullTableTakesNoExternalNode) {
  begin();
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(slurm->create_nodes("NodeName=y" + std::to_string(i) + " State=EXTERNAL"), SlurmErrno::kSuccess);
  EXPECT_EQ(make(), SlurmErrno::kNodeTableFull);
}

}  // namespace
}  // namespace sim
