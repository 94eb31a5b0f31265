#include "cli/why.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/testing/cluster.hpp"

namespace cli {
namespace {

using core::Json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Why : testing::Test {
  TestCluster cluster;
  std::string reason(const std::string& name) {
    cluster.job->reason = name;
    return text();
  }
  [[nodiscard]] Json document() const { return why_document({"hpc", "slurm", cluster.job, cluster.facts}); }
  [[nodiscard]] std::string text() const { return why_text(document(), Style(false), kTestNow); }
};

TEST_F(Why, ALimitOfAQos) {
  cluster.normal->limits.counts["MaxJobsPerUser"] = 1;
  EXPECT_EQ(
      reason("QOSMaxJobsPerUserLimit"),
      "Job 9 is pending, of user ann, account physics, QOS normal, partition all, submitted 2026-01-02T02:55:00Z (5m ago)\n"
      "Reason: QOSMaxJobsPerUserLimit\n"
      "  As many jobs run at once as this limit allows.\n"
      "  Wait until one of them ends, or ask an administrator for a higher limit.\n"
      "\n"
      "LIMIT           SET ON      COUNTS                  LIMIT IS  IN USE  JOB ASKS  OVER BY  RUNNING JOBS  NOTE\n"
      "MaxJobsPerUser  QOS normal  user ann in QOS normal  1         1       1         1        1             Slurm's reason\n"
      "\n"
      "Slurm gives no time at which it may start.\n"
      "Enough of the running jobs that count reach their time limits by 2026-01-02T03:20:00Z (in 20m). If no other job takes "
      "their place, the limit lets it start then at the latest.\n");
}

TEST_F(Why, TheDocument) {
  cluster.normal->limits.counts["MaxJobsPerUser"] = 1;
  cluster.job->reason = "QOSMaxJobsPerUserLimit";
  const Json found = document();
  EXPECT_EQ(found["kind"], "JobExplanation");
  EXPECT_EQ(found["cluster"], "slurm");
  EXPECT_EQ(found["job"]["id"], "9");
  EXPECT_EQ(found["job"]["asks"], (Json{{"cpu", 2}, {"mem", 1024}, {"node", 1}, {"gres/gpu", 1}}));
  EXPECT_EQ(found["job"]["timeLimitMinutes"], 30);
  EXPECT_TRUE(found["job"]["started"].is_null());
  EXPECT_EQ(found["limits"], Json::array({{{"name", "MaxJobsPerUser"},
                                           {"holderKind", "QOS"},
                                           {"holder", "normal"},
                                           {"counts", "user ann in QOS normal"},
                                           {"limit", 1},
                                           {"percent", false},
                                           {"inUse", 1},
                                           {"asks", 1},
                                           {"overBy", 1},
                                           {"holds", true},
                                           {"named", true},
                                           {"jobs", Json::array({"1"})}}}));
  EXPECT_TRUE(found["expectedStart"].is_null());
  EXPECT_EQ(found["limitFreeBy"], "2026-01-02T03:20:00Z");
}

TEST_F(Why, OfSeveralAccountsTheOneThatHoldsIt) {
  cluster.physics->limits.tres["GrpTRES"] = {{"cpu", 100}};
  cluster.science->limits.tres["GrpTRES"] = {{"cpu", 6}, {"mem", 10}};
  const std::string text = reason("AssocGrpCpuLimit");
  EXPECT_THAT(text,
              HasSubstr("GrpTRES/cpu  account science  account science  6         5       2         1        1,2           "
                        "Slurm's reason\n"));
  EXPECT_THAT(text, HasSubstr("GrpTRES/mem  account science  account science  10M       2148M   1G        3162M    1,2         "
                              "  holds it as well\n"));
  EXPECT_THAT(text, Not(HasSubstr("account physics  account")));
}

TEST_F(Why, AnotherReasonDoesNotProveThatLimitsAreEnforced) {
  cluster.normal->limits.counts["MaxJobsPerUser"] = 1;
  EXPECT_THAT(reason("Priority"), HasSubstr("1             holds it if slurm.conf enforces limits\n"));
  cluster.normal->limits.counts["MaxJobsPerUser"] = 2;
  EXPECT_THAT(reason("Priority"), Not(HasSubstr("MaxJobsPerUser")));
}

TEST_F(Why, AJobThatIsBeyondALimitAloneNeverStarts) {
  cluster.normal->limits.counts["MaxWallDurationPerJob"] = 20;
  const std::string text = reason("QOSMaxWallDurationPerJobLimit");
  EXPECT_THAT(text, HasSubstr("as it is, it never starts"));
  EXPECT_THAT(text, HasSubstr("00:20:00  -       00:30:00  00:10:00"));
  EXPECT_THAT(text, HasSubstr("Waiting does not help"));
}

TEST_F(Why, WhatSlurmDoesNotTellStaysUnknown) {
  cluster.normal->limits.tres["GrpTRESMins"] = {{"cpu", 500}};
  const std::string text = reason("QOSGrpCPUMinutesLimit");
  EXPECT_THAT(text, HasSubstr("500 min   ?       60 min    ?"));
  EXPECT_THAT(text, HasSubstr("slurmrestd does not report"));
}

TEST_F(Why, PastUsageOfAUser) {
  cluster.ann->limits.tres["GrpTRESMins"] = {{"cpu", 500}};
  cluster.past_usage("ann", "physics", true, 600);
  EXPECT_THAT(reason("AssocGrpCPUMinutesLimit"), HasSubstr("500 min   600 min  60 min    100 min"));
}

TEST_F(Why, ALimitThatIsNotReachedAnyMore) {
  cluster.normal->limits.counts["MaxJobsPerUser"] = 5;
  EXPECT_THAT(reason("QOSMaxJobsPerUserLimit"), HasSubstr("the limit is not reached. Slurm will consider the job again soon"));
  cluster.normal->limits = {};
  EXPECT_THAT(reason("QOSMaxJobsPerUserLimit"), HasSubstr("No such limit is set any more"));
}

TEST_F(Why, PercentOfTheCluster) {
  cluster.normal->flags = {"RELATIVE"};
  cluster.normal->limits.tres["GrpTRES"] = {{"cpu", 50}};
  EXPECT_THAT(reason("QOSGrpCpuLimit"), HasSubstr("50%       5       2         ?"));
}

TEST_F(Why, WithoutListsOfLimitsTheReasonStands) {
  cluster.facts.qos.clear();
  cluster.facts.associations.clear();
  cluster.facts.no_limits = "the cluster has no accounting";
  const std::string text = reason("AssocGrpCpuLimit");
  EXPECT_THAT(text, HasSubstr("Limits are not shown: the cluster has no accounting\n"));
  EXPECT_THAT(text, Not(HasSubstr("No such limit")));
  EXPECT_THAT(text, HasSubstr("Together with the jobs that run"));
}

TEST_F(Why, OtherReasonsWithTheirDetails) {
  cluster.job->dependency = "afterok:2(unfulfilled)";
  EXPECT_THAT(reason("Dependency"), HasSubstr("It depends on afterok:2(unfulfilled).\n"));
  cluster.job->eligible = kTestNow + std::chrono::hours{1};
  EXPECT_THAT(reason("BeginTime"), HasSubstr("The time is 2026-01-02T04:00:00Z.\n"));
  cluster.job->reservation = "maint";
  EXPECT_THAT(reason("Reservation"), HasSubstr("It asks for reservation maint.\n"));
  cluster.job->licenses = "idl:2";
  EXPECT_THAT(reason("Licenses"), HasSubstr("It asks for idl:2.\n"));
  cluster.job->required_nodes = "n7";
  cluster.job->description = "ReqNodeNotAvail, UnavailableNodes:n7";
  EXPECT_THAT(reason("ReqNodeNotAvail"), AllOf(HasSubstr("Slurm adds: ReqNodeNotAvail, UnavailableNodes:n7\n"),
                                               HasSubstr("It asks for nodes n7.\n"), HasSubstr("sinfo -R")));
  cluster.job->description.clear();
  cluster.all->state = "DOWN";
  EXPECT_THAT(reason("PartitionDown"), HasSubstr("Partition all is DOWN.\n"));
  cluster.all->max_minutes = 10;
  EXPECT_THAT(reason("PartitionTimeLimit"), HasSubstr("Its time limit is 00:30:00, and partition all allows 00:10:00.\n"));
  cluster.all->max_nodes = 0;
  EXPECT_THAT(reason("PartitionNodeLimit"), HasSubstr("It asks for 1 node, and partition all allows at most 0 (MaxNodes).\n"));
  cluster.all->max_nodes = 4;
  cluster.all->min_nodes = 2;
  EXPECT_THAT(reason("PartitionNodeLimit"), HasSubstr("It asks for 1 node, and partition all needs at least 2 (MinNodes).\n"));
  cluster.job->asks["node"] = 3;
  EXPECT_THAT(
      reason("PartitionNodeLimit"),
      AllOf(HasSubstr("It asks for 3 nodes, and partition all allows that: too many of its nodes are down or drained.\n"),
            HasSubstr("sinfo -R")));
  cluster.all->max_nodes = slurm::Infinite{};
  cluster.all->max_minutes = slurm::Infinite{};
  cluster.job->time_limit = slurm::Infinite{};
  EXPECT_THAT(reason("PartitionTimeLimit"), HasSubstr("Its time limit is infinite, and partition all allows any.\n"));
  EXPECT_THAT(reason("PartitionNodeLimit"), HasSubstr("allows that: too many"));
}

TEST_F(Why, JobsWithAHigherPriority) {
  cluster.job->priority = 10;
  for (const int priority : {5, 11, 12}) {
    auto other = queued_job(100 + priority, "PENDING", "bob");
    other->priority = priority;
    cluster.facts.jobs.push_back(other);
  }
  EXPECT_THAT(reason("Priority"), HasSubstr("Its priority is 10; 2 pending jobs of partition all have a higher one.\n"));
}

TEST_F(Why, TheStartThatSlurmExpects) {
  cluster.job->start = kTestNow + std::chrono::hours{2};
  EXPECT_THAT(reason("Resources"), HasSubstr("Slurm expects it to start at 2026-01-02T05:00:00Z (in 2h)."));
  EXPECT_THAT(reason("JobHeldUser"), AllOf(HasSubstr("Slurm gives no time"), HasSubstr("scontrol release")));
  cluster.job->start = kTestNow - std::chrono::hours{2};
  EXPECT_THAT(reason("Resources"), HasSubstr("Slurm gives no time"));
}

TEST_F(Why, AReasonThatNobodyKnowsIsSlurmsWord) {
  EXPECT_THAT(reason("Some\033thing"), HasSubstr("Reason: Some thing\n\nSlurm gives no time"));
}

TEST_F(Why, AJobThatRuns) {
  cluster.job = queued_job(1, "RUNNING", "ann");
  EXPECT_EQ(text(),
            "Job 1 is not pending: it is RUNNING, of user ann, account physics, QOS normal, partition all, since "
            "2026-01-02T02:50:00Z (10m ago) on n1\nIts time limit ends it at 2026-01-02T03:20:00Z (in 20m).\n");
  cluster.job->time_limit = slurm::Infinite{};
  EXPECT_THAT(text(), HasSubstr("It has no time limit.\n"));
}

TEST_F(Why, AJobThatEnded) {
  cluster.job = queued_job(1, "RUNNING", "ann");
  cluster.job->state = "FAILED";
  cluster.job->reason = "NonZeroExitCode";
  cluster.job->exit_code = 3;
  cluster.job->end = kTestNow - std::chrono::minutes{1};
  EXPECT_EQ(text(),
            "Job 1 is not pending: it has ended, of user ann, account physics, QOS normal, partition all: FAILED at "
            "2026-01-02T02:59:00Z (1m ago)\nReason: NonZeroExitCode\n  Its script ended with an error.\nIt began at "
            "2026-01-02T02:50:00Z (10m ago) on n1.\nIts exit code was 3.\n");
  EXPECT_EQ(document()["job"]["exitCode"], 3);
}

TEST(JobName, IsANumberOrATask) {
  EXPECT_EQ(JobName::read("12")->text(), "12");
  EXPECT_EQ(JobName::read("12_3")->text(), "12_3");
  for (const char* wrong : {"", "x", "0", "-1", "12_", "12_x", "12+1", "12 ", "12_[1-3]", "99999999999999999999"})
    EXPECT_FALSE(JobName::read(wrong)) << wrong;
}

TEST(RecordedJob, AnErrorOfSlurmdbdDoesNotMeanThatTheJobIsUnknown) {
  const auto job = recorded_job("hpc", {9, {}}, core::fail(core::ErrorCode::kUnavailable, "Connection refused\nby the host"));
  ASSERT_FALSE(job);
  // The code is not kUnavailable, which would mean that the API server does not answer.
  EXPECT_EQ(job.error().code, core::ErrorCode::kInternal);
  EXPECT_THAT(job.error().message, AllOf(HasSubstr("slurmdbd did not answer"), HasSubstr("Connection refused")));
  EXPECT_THAT(job.error().message, AllOf(Not(HasSubstr("never existed")), Not(HasSubstr("forgot"))));
  const auto proxy = recorded_job("hpc", {9, {}}, core::fail(core::ErrorCode::kNotFound, "404: no such Service"));
  ASSERT_FALSE(proxy);
  EXPECT_EQ(proxy.error().code, core::ErrorCode::kInternal);
  EXPECT_THAT(proxy.error().message, HasSubstr("slurmdbd did not answer"));
  const auto interrupted = recorded_job("hpc", {9, {}}, core::fail(core::ErrorCode::kCancelled, "interrupted"));
  ASSERT_FALSE(interrupted);
  EXPECT_EQ(interrupted.error().message, "interrupted");
}

TEST(RecordedJob, AnEmptyAnswerMeansThatTheJobIsUnknown) {
  using Rows = ClusterFacts::Rows<slurm::accounting::QueuedJob>;
  const core::Result<Rows> nothing_found =
      std::unexpected(core::Error{core::ErrorCode::kNotFound, "Nothing found", 500, "9003", {}});
  for (const core::Result<Rows>& none : {core::Result<Rows>(Rows{}), nothing_found}) {
    const auto job = recorded_job("hpc", {9, {}}, none);
    ASSERT_FALSE(job);
    EXPECT_EQ(job.error().code, core::ErrorCode::kNotFound);
    EXPECT_THAT(job.error().message, HasSubstr("cluster hpc knows no job 9: it never existed"));
  }
  const auto older = queued_job(9, "COMPLETED", "bob"), newer = queued_job(9, "COMPLETED", "ann");
  const auto job = recorded_job("hpc", {9, {}}, Rows{older, newer});
  ASSERT_TRUE(job);
  EXPECT_EQ(*job, newer);
}

TEST(FindJob, OfAnArrayTheTasksThatWait) {
  const auto task = [](std::int64_t id, const char* state, std::optional<std::int64_t> index, const char* tasks = "") {
    auto out = queued_job(id, state, "ann");
    out->array = 10;
    out->task = index;
    out->tasks = tasks;
    return out;
  };
  ClusterFacts::Rows<slurm::accounting::QueuedJob> jobs{task(11, "RUNNING", 1), task(12, "PENDING", 2),
                                                        task(10, "PENDING", {}, "3-5")};
  EXPECT_EQ(find_job({10, {}}, jobs)->id, 10);
  EXPECT_EQ(find_job({10, 1}, jobs)->id, 11);
  EXPECT_EQ(find_job({10, 4}, jobs)->id, 10);
  EXPECT_EQ(find_job({10, 9}, jobs), nullptr);
  EXPECT_EQ(find_job({12, {}}, jobs)->id, 12);
  EXPECT_EQ(find_job({7, {}}, jobs), nullptr);
  jobs.pop_back();
  EXPECT_EQ(find_job({10, {}}, jobs)->id, 12);
  jobs.pop_back();
  EXPECT_EQ(find_job({10, {}}, jobs)->id, 11);
}

}  // namespace
}  // namespace cli
