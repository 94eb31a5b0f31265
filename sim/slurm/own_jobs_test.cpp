// Tests the acts on our programs' own jobs against the simulated slurmrestd, with faults.
// tests/conformance/slurm/slurm_client_test.cpp tests these acts without faults, against the model and a real slurmrestd.
#include <gtest/gtest.h>

#include "core/log.hpp"
#include "plan/testing/observing.hpp"
#include "sim/base/loop.hpp"
#include "sim/base/random.hpp"
#include "sim/slurm/rest.hpp"
#include "sim/slurm/sim_slurm.hpp"
#include "slurm/acts.hpp"
#include "slurm/rest/target.hpp"

namespace sim {
namespace {

using namespace std::chrono_literals;
using core::ErrorCode;
using slurm::JobMark;
using slurm::Owner;

const JobMark kMark{Owner::kBridge, "cluster-a", "root/1"};

struct OwnJobsTest : testing::Test {
  OwnJobsTest() {
    EXPECT_TRUE(slurmctld.start());
    clusters.set("c", {"restapi", 6820}, "key");
    EXPECT_TRUE(loop.run_until([&] { return clusters.snapshot("c")->complete(); }, 10s));
  }
  plan::ActResult run(plan::ActPtr act) {
    std::optional<plan::ActResult> out;
    target.execute(std::move(act), [&](plan::ActResult result) { out = std::move(result); });
    EXPECT_TRUE(loop.run_until([&] { return out.has_value(); }, 60s));
    EXPECT_TRUE(
        loop.run_until([&] { return std::ranges::all_of(out->gates, [](const auto& gate) { return gate->open(); }); }, 60s));
    return *std::move(out);
  }
  /// Returns the number of the job; 0 if it is refused.
  std::int64_t submit(const JobMark& mark) {
    slurm::JobWish wish;
    wish.nodes = 1;
    const auto result = run(slurm::submit_job("c", mark, wish));
    return result.value ? result.value->at("job").get<std::int64_t>() : 0;
  }
  std::optional<slurm::OwnJob> own(const JobMark& mark, std::int64_t id) {
    return slurm::OwnJob::of(plan::testing::Observer::at(loop.clock().mono()), *clusters.snapshot("c"), "c", mark.owner,
                             mark.instance, id);
  }

  SimLoop loop{1};
  SimSlurm slurmctld{loop,
                     loop.random(),
                     [] {
                       return std::string(
                           "ClusterName=c\nSlurmctldHost=ctld(127.0.0.1)\nMaxNodeCount=4\n"
                           "SlurmUser=slurm\nPartitionName=all Nodes=ALL Default=YES\n");
                     },
                     {.release = "26.05.5"}};
  SlurmRest rest{loop, slurmctld, [] { return std::string("key"); }};
  SlurmFault fault;
  std::vector<std::string> requests;
  core::NullLogger log;
  slurm::Clusters clusters{loop,
                           loop.random(),
                           log,
                           [this](const slurm::Endpoint&) {
                             return slurm_transport(
                                 loop, loop, loop.random(), [this] { return &rest; },
                                 [this](const net::HttpRequest& request) {
                                   requests.push_back(request.method + " " + request.target);
                                   return request.method == "POST" ? fault : SlurmFault{};
                                 });
                           },
                           {},
                           {.job_details = true}};
  slurm::Target target{loop, clusters};
};

TEST_F(OwnJobsTest, ASubmissionWhoseReplyWasLostIsNotRepeated) {
  fault.kind = SlurmFault::Kind::kLost;
  const auto lost = run(slurm::submit_job("c", kMark, {}));
  ASSERT_FALSE(lost.value);
  EXPECT_EQ(lost.value.error().code, ErrorCode::kUnknownOutcome);
  EXPECT_FALSE(lost.gates.empty());
  fault = {};
  EXPECT_GT(submit(kMark), 0);
  EXPECT_EQ(slurmctld.jobs().size(), 1U);
}

/// A snapshot can lack an earlier submission in three cases: this process has just started, another process has possibly
/// submitted a job, or the answer to a submission was lost.
TEST_F(OwnJobsTest, AllJobsAreReadLiveBeforeASubmissionOnlyOnDoubt) {
  const auto reads_first = [&](const char* key) {
    requests.clear();
    EXPECT_GT(submit({Owner::kBridge, "cluster-a", key}), 0);
    return !requests.empty() && requests.front().starts_with("GET") && requests.front().find("/jobs") != std::string::npos;
  };
  EXPECT_TRUE(reads_first("a/1")) << "this process has just started";
  loop.run_for(20s);
  EXPECT_FALSE(reads_first("b/1"));
  target.others_wrote();
  EXPECT_TRUE(reads_first("c/1"));
  loop.run_for(20s);
  EXPECT_FALSE(reads_first("d/1"));
  EXPECT_FALSE(reads_first("d/1")) << "the snapshot has it";
  fault.kind = SlurmFault::Kind::kLost;
  ASSERT_FALSE(run(slurm::submit_job("c", kMark, {})).value);
  fault = {};
  EXPECT_GT(submit(kMark), 0);
  EXPECT_EQ(slurmctld.jobs().size(), 5U);
}

TEST_F(OwnJobsTest, AJobBelongsToOneInstallationOfOneProgram) {
  const std::int64_t id = submit(kMark);
  ASSERT_GT(id, 0);
  const JobMark other_cluster{Owner::kBridge, "cluster-b", "root/1"}, other_program{Owner::kEnlistment, "cluster-a", "root/1"};
  EXPECT_TRUE(own(kMark, id));
  EXPECT_FALSE(own(other_cluster, id));
  EXPECT_FALSE(own(other_program, id));
  EXPECT_NE(submit(other_cluster), id);
  EXPECT_NE(submit(other_program), id);
  EXPECT_EQ(submit(kMark), id);
  JobRequest users;
  users.admin_comment = slurm::admin_comment(kMark, nullptr);
  const std::int64_t of_user = slurmctld.submit(users);
  loop.run_for(2s);
  ASSERT_TRUE(clusters.snapshot("c")->jobs.contains(of_user));
  EXPECT_FALSE(own(kMark, of_user)) << "it has a script";
}

TEST_F(OwnJobsTest, AJobIsLookedAtBeforeAnythingRunsOnItsNode) {
  const slurm::OwnJob job = *own(kMark, submit(kMark));
  const auto refused = run(slurm::confirm_runs(job, {"elsewhere"}));
  ASSERT_FALSE(refused.value);
  EXPECT_EQ(refused.value.error().code, ErrorCode::kConflict);
  slurmctld.cancel(job.id());
  const auto ended = run(slurm::confirm_runs(*own(kMark, job.id()), {"elsewhere"}));
  ASSERT_FALSE(ended.value);
  EXPECT_NE(ended.value.error().message.find("it has ended"), std::string::npos) << ended.value.error().message;
}

/// If there are thousands of jobs, slurmrestd takes seconds to list all of them.
TEST_F(OwnJobsTest, OneJobIsReadToLookAtIt) {
  const slurm::OwnJob job = *own(kMark, submit(kMark));
  requests.clear();
  (void)run(slurm::confirm_runs(job, {"n"}));
  ASSERT_FALSE(requests.empty());
  EXPECT_TRUE(requests.front().ends_with("/job/" + std::to_string(job.id()))) << requests.front();
}

TEST_F(OwnJobsTest, OldEvidenceIsNotActedOn) {
  const slurm::OwnJob old = *own(kMark, submit(kMark));
  loop.run_for(10s);
  for (const auto& act :
       {slurm::update_job(old, {}), slurm::cancel_job(old), slurm::confirm_runs(old, {"n"}), slurm::record_exit_code(old, 1)}) {
    const auto refused = run(act);
    ASSERT_FALSE(refused.value);
    EXPECT_EQ(refused.value.error().code, ErrorCode::kExpired);
  }
}

TEST_F(OwnJobsTest, NothingIsSubmittedThatCouldNotBeFoundAgain) {
  slurm::Clusters blind(loop, loop.random(), log, [this](const slurm::Endpoint&) {
    return slurm_transport(loop, loop, loop.random(), [this] { return &rest; });
  });
  slurm::Target without_details(loop, blind);
  blind.set("c", {"restapi", 6820}, "key");
  ASSERT_TRUE(loop.run_until([&] { return blind.snapshot("c")->complete(); }, 10s));
  std::optional<plan::ActResult> out;
  without_details.execute(slurm::submit_job("c", kMark, {}), [&](plan::ActResult result) { out = std::move(result); });
  ASSERT_TRUE(loop.run_until([&] { return out.has_value(); }, 60s));
  EXPECT_EQ(out->value.error().code, ErrorCode::kUnsupported);
  EXPECT_TRUE(slurmctld.jobs().empty());
}

}  // namespace
}  // namespace sim
