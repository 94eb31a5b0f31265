#include "cli/limits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/testing/cluster.hpp"

namespace cli {
namespace {

using slurm::Number;
using testing::ElementsAre;

std::vector<JobLimit> found(const TestCluster& cluster) {
  return limits_of(*cluster.job, cluster.facts);
}

/// Returns the only limit. Fails the test if there is none, or more.
JobLimit only(const TestCluster& cluster) {
  const auto limits = found(cluster);
  EXPECT_EQ(limits.size(), 1U);
  return limits.empty() ? JobLimit{} : limits.front();
}

std::vector<std::int64_t> numbers(const JobLimit& limit) {
  return {limit.limit, limit.in_use.value_or(-1), limit.asks.value_or(-1), limit.over.value_or(-1)};
}

std::vector<std::int64_t> ids(const JobLimit& limit) {
  std::vector<std::int64_t> out;
  for (const auto* job : limit.counted) out.push_back(job->id);
  return out;
}

TEST(Limits, NoneIsNone) {
  TestCluster cluster;
  cluster.normal->limits.counts["GrpJobs"] = slurm::Infinite{};
  cluster.ann->limits.counts["Priority"] = 5;
  cluster.ann->limits.tres["MaxTRESPerJob"] = {{"cpu", -1}};
  EXPECT_TRUE(found(cluster).empty());
}

TEST(Limits, OfAQosCountAllItsJobsOrThoseOfAUserOrAccount) {
  TestCluster cluster;
  cluster.normal->limits.counts["GrpJobs"] = 2;
  JobLimit limit = only(cluster);
  EXPECT_THAT(numbers(limit), ElementsAre(2, 2, 1, 1));
  EXPECT_THAT(ids(limit), ElementsAre(1, 2));
  EXPECT_EQ(limit.holder_kind, "QOS");
  EXPECT_EQ(limit.holder, "normal");
  EXPECT_EQ(limit.whose, "QOS normal");
  EXPECT_TRUE(limit.holds());
  EXPECT_FALSE(limit.never());

  cluster.normal->limits.counts = {{"MaxJobsPerUser", 2}};
  limit = only(cluster);
  EXPECT_THAT(numbers(limit), ElementsAre(2, 1, 1, 0));
  EXPECT_FALSE(limit.holds());
  EXPECT_EQ(limit.whose, "user ann in QOS normal");

  cluster.normal->limits.counts = {{"MaxJobsPerAccount", 2}};
  auto other = queued_job(3, "RUNNING", "eve");
  other->account = "Biology";
  cluster.facts.jobs.push_back(other);
  limit = only(cluster);
  EXPECT_THAT(numbers(limit), ElementsAre(2, 2, 1, 1));
  EXPECT_EQ(limit.whose, "account physics in QOS normal");
}

TEST(Limits, CountTasksOfArraysThatWait) {
  TestCluster cluster;
  auto array = queued_job(5, "PENDING", "ann");
  array->array = 5;
  array->tasks = "1-4";
  cluster.facts.jobs.push_back(array);
  cluster.normal->limits.counts = {{"MaxSubmitJobsPerUser", 6}};
  EXPECT_THAT(numbers(only(cluster)), ElementsAre(6, 5, 1, 0));
}

TEST(Limits, OfTres) {
  TestCluster cluster;
  cluster.normal->limits.tres["GrpTRES"] = {{"cpu", 6}};
  EXPECT_THAT(numbers(only(cluster)), ElementsAre(6, 5, 2, 1));
  cluster.normal->limits.tres = {{"MaxTRESPerUser", {{"cpu", 6}}}};
  EXPECT_THAT(numbers(only(cluster)), ElementsAre(6, 2, 2, -2));
  cluster.normal->limits.tres = {{"MaxTRESPerUser", {{"mem", 2560}}}};
  EXPECT_THAT(numbers(only(cluster)), ElementsAre(2560, 2048, 1024, 512));
  // The job requests no license/idl.
  cluster.normal->limits.tres = {{"GrpTRES", {{"license/idl", 0}}}};
  EXPECT_THAT(numbers(only(cluster)), ElementsAre(0, 0, 0, 0));
  EXPECT_FALSE(only(cluster).holds());
  cluster.normal->limits.tres = {{"GrpTRES", {{"gres/gpu", 0}}}};
  EXPECT_TRUE(only(cluster).never()) << "the job alone is over it";
}

TEST(Limits, JobsOnOneNodeHaveOneNode) {
  TestCluster cluster;
  auto beside = queued_job(3, "RUNNING", "bob");
  beside->nodes = "n[1-2]";
  cluster.facts.jobs.push_back(beside);
  cluster.normal->limits.tres["GrpTRES"] = {{"node", 2}};
  const JobLimit limit = only(cluster);
  EXPECT_THAT(numbers(limit), ElementsAre(2, 2, 1, 1));
  EXPECT_FALSE(free_by(limit)) << "which nodes they leave is not known";
}

TEST(Limits, OfMinutes) {
  TestCluster cluster;
  cluster.normal->limits.tres["GrpTRESRunMins"] = {{"cpu", 150}};
  EXPECT_THAT(numbers(only(cluster)), ElementsAre(150, 100, 60, 10));
  cluster.normal->limits.tres = {{"MaxTRESMinsPerJob", {{"cpu", 50}}}};
  EXPECT_THAT(numbers(only(cluster)), ElementsAre(50, -1, 60, 10));
  EXPECT_TRUE(only(cluster).never());
  // No list contains the past usage of a QOS.
  cluster.normal->limits.tres = {{"GrpTRESMins", {{"cpu", 50}}}};
  EXPECT_THAT(numbers(only(cluster)), ElementsAre(50, -1, 60, -1));
  EXPECT_FALSE(only(cluster).over);
  cluster.normal->limits = {};
  cluster.normal->limits.counts["GrpWall"] = 100;
  EXPECT_FALSE(only(cluster).over);
}

TEST(Limits, WithoutATimeLimitThatOfThePartitionCounts) {
  TestCluster cluster;
  cluster.normal->limits.counts["MaxWallDurationPerJob"] = 60;
  EXPECT_THAT(numbers(only(cluster)), ElementsAre(60, -1, 30, -30));
  cluster.job->time_limit = slurm::Unset{};
  EXPECT_FALSE(only(cluster).asks);
  cluster.all->max_minutes = 90;
  EXPECT_THAT(numbers(only(cluster)), ElementsAre(60, -1, 90, 30));
  cluster.all->default_minutes = 61;
  EXPECT_THAT(numbers(only(cluster)), ElementsAre(60, -1, 61, 1));
  cluster.job->time_limit = slurm::Infinite{};
  EXPECT_FALSE(only(cluster).asks);
  cluster.normal->limits = {};
  cluster.normal->limits.tres["GrpTRESRunMins"] = {{"cpu", 150}};
  EXPECT_FALSE(only(cluster).over);
  cluster.job->time_limit = 1;
  auto endless = queued_job(3, "RUNNING", "bob");
  endless->time_limit = slurm::Infinite{};
  cluster.facts.jobs.push_back(endless);
  EXPECT_FALSE(only(cluster).in_use) << "what it may use has no end";
}

TEST(Limits, OfOneJob) {
  TestCluster cluster;
  cluster.job->asks["node"] = 2;
  cluster.normal->limits.tres = {{"MaxTRESPerNode", {{"mem", 500}}}};
  EXPECT_THAT(numbers(only(cluster)), ElementsAre(500, -1, 512, 12));
  cluster.normal->limits.tres = {{"MaxTRESPerJob", {{"mem", 1024}}}};
  EXPECT_THAT(numbers(only(cluster)), ElementsAre(1024, -1, 1024, 0));
  EXPECT_FALSE(only(cluster).holds());
  EXPECT_EQ(only(cluster).whose, "");
  cluster.normal->limits.tres = {{"MinTRESPerJob", {{"cpu", 4}}}};
  EXPECT_THAT(numbers(only(cluster)), ElementsAre(4, -1, 2, 2));
  EXPECT_TRUE(only(cluster).never());
}

TEST(Limits, OfARelativeQosArePercent) {
  TestCluster cluster;
  cluster.normal->flags = {"RELATIVE"};
  cluster.normal->limits.tres["GrpTRES"] = {{"cpu", 50}};
  EXPECT_TRUE(only(cluster).percent);
  EXPECT_FALSE(only(cluster).over);
}

TEST(Limits, ThePartitionsQosComesFirst) {
  TestCluster cluster;
  auto part = std::make_shared<slurm::accounting::Qos>();
  part->name = "part";
  part->limits.counts = {{"GrpJobs", 10}};
  cluster.normal->limits.counts = {{"GrpJobs", 2}, {"MaxJobsPerUser", 1}};
  cluster.facts.qos.push_back(part);
  cluster.all->qos = "PART";
  auto elsewhere = queued_job(3, "RUNNING", "bob");
  elsewhere->qos = "other";
  cluster.facts.jobs.push_back(elsewhere);
  auto limits = found(cluster);
  ASSERT_EQ(limits.size(), 2U);
  EXPECT_EQ(limits[0].holder, "part");
  EXPECT_THAT(numbers(limits[0]), ElementsAre(10, 3, 1, -6)) << "it counts all jobs of the partition";
  EXPECT_EQ(limits[1].kind->name, "MaxJobsPerUser");
  cluster.normal->flags = {"OVERRIDE_PARTITION_QOS"};
  limits = found(cluster);
  ASSERT_EQ(limits.size(), 2U);
  EXPECT_EQ(limits[0].holder, "normal");
  cluster.all->qos = "normal";
  EXPECT_EQ(found(cluster).size(), 2U) << "the same one once";
}

TEST(Limits, OfAccountsCountAllBelow) {
  TestCluster cluster;
  cluster.science->limits.tres["GrpTRES"] = {{"cpu", 6}};
  auto above = queued_job(3, "RUNNING", "eve");
  above->account = "science";
  auto beside = queued_job(4, "RUNNING", "eve");
  beside->account = "root";
  cluster.facts.jobs.insert(cluster.facts.jobs.end(), {above, beside});
  const JobLimit limit = only(cluster);
  EXPECT_THAT(numbers(limit), ElementsAre(6, 6, 2, 2));
  EXPECT_THAT(ids(limit), ElementsAre(1, 2, 3));
  EXPECT_EQ(limit.holder_kind, "account");
  EXPECT_EQ(limit.holder, "science");
  EXPECT_EQ(limit.whose, "account science");
}

TEST(Limits, NamesOfAccountsAreComparedAsSlurmDoes) {
  TestCluster cluster;
  cluster.job->account = "Physics";
  cluster.physics->parent_account = "SCIENCE";
  cluster.science->limits.counts["GrpJobs"] = 2;
  cluster.ann->limits.counts["GrpJobs"] = 1;
  EXPECT_EQ(found(cluster).size(), 2U);
}

TEST(Limits, InheritedOnesAreOfTheNearest) {
  TestCluster cluster;
  cluster.science->limits.counts["MaxJobs"] = 5;
  cluster.physics->limits.counts["MaxJobs"] = 1;
  const JobLimit limit = only(cluster);
  EXPECT_EQ(limit.holder, "physics");
  EXPECT_EQ(limit.whose, "user ann in account physics") << "each user has it for themselves";
  EXPECT_THAT(numbers(limit), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(ids(limit), ElementsAre(1));
}

TEST(Limits, OneForThePartitionComesBeforeOneForAll) {
  TestCluster cluster;
  auto here = association("physics", "ann");
  here->partition = "all";
  here->limits.counts["MaxJobs"] = 1;
  cluster.ann->limits.counts["MaxJobs"] = 7;
  cluster.facts.associations.push_back(here);
  EXPECT_EQ(only(cluster).limit, 1);
  EXPECT_EQ(only(cluster).holder, "ann in account physics, partition all");
  here->partition = "other";
  EXPECT_EQ(only(cluster).limit, 7);
}

TEST(Limits, AQosThatSetsOneTakesThePlaceOfTheAssociations) {
  TestCluster cluster;
  cluster.ann->limits.counts["MaxJobs"] = 1;
  cluster.ann->limits.counts["MaxSubmitJobs"] = 2;
  cluster.ann->limits.counts["MaxWallDurationPerJob"] = 2;
  cluster.normal->limits.counts = {{"MaxJobsPerUser", 5}, {"MaxSubmitJobsPerAccount", 5}, {"MaxWallDurationPerJob", 50}};
  const auto limits = found(cluster);
  EXPECT_EQ(limits.size(), 3U);
  for (const auto& limit : limits) EXPECT_TRUE(limit.of_qos());
}

TEST(Limits, LimitFactorMultipliesThoseOfAssociations) {
  TestCluster cluster;
  cluster.normal->limit_factor = 2.0;
  cluster.ann->limits.tres = {{"GrpTRES", {{"cpu", 3}}}, {"MaxTRESMinsPerJob", {{"cpu", 100}}}};
  const auto limits = found(cluster);
  ASSERT_EQ(limits.size(), 2U);
  EXPECT_EQ(limits[0].limit, 6);
  EXPECT_EQ(limits[1].limit, 100);
}

TEST(Limits, PastUsageOfAssociationsIsKnown) {
  TestCluster cluster;
  cluster.ann->limits.tres["GrpTRESMins"] = {{"cpu", 1000}};
  EXPECT_FALSE(only(cluster).over);
  cluster.past_usage("physics", "science", false, 5000);
  cluster.past_usage("ann", "physics", true, 999.5);
  EXPECT_THAT(numbers(only(cluster)), ElementsAre(1000, 999, 60, -1));
  EXPECT_FALSE(only(cluster).holds());
  cluster.facts.shares.pop_back();
  cluster.past_usage("ann", "Physics", true, 1000);
  EXPECT_TRUE(only(cluster).holds()) << "at the limit is enough";
  EXPECT_FALSE(only(cluster).never());
  cluster.job->asks.erase("cpu");
  EXPECT_FALSE(only(cluster).over);
}

TEST(Limits, ARingOfParentsEnds) {
  TestCluster cluster;
  cluster.science->parent_account = "physics";
  cluster.science->limits.counts["GrpJobs"] = 1;
  EXPECT_TRUE(only(cluster).holds());
}

TEST(Limits, AreFreeWhenEnoughJobsHaveEnded) {
  TestCluster cluster;
  cluster.normal->limits.tres["GrpTRES"] = {{"cpu", 5}};
  auto first = queued_job(3, "RUNNING", "bob", "cpu=1,node=1");
  first->end = kTestNow + std::chrono::minutes{1};
  cluster.facts.jobs.push_back(first);
  // 6 CPUs are in use, the limit is 5, and the job asks for 2: 3 CPUs must become free.
  EXPECT_EQ(free_by(only(cluster)), kTestNow + std::chrono::minutes{20});
  cluster.normal->limits.tres["GrpTRES"] = {{"cpu", 7}};
  EXPECT_EQ(free_by(only(cluster)), kTestNow + std::chrono::minutes{1});
  first->time_limit = slurm::Infinite{};
  EXPECT_EQ(free_by(only(cluster)), kTestNow + std::chrono::minutes{20}) << "it may never end";
  cluster.normal->limits.tres["GrpTRES"] = {{"cpu", 1}};
  EXPECT_FALSE(free_by(only(cluster))) << "it asks for more than there ever is";
  cluster.normal->limits.tres["GrpTRES"] = {{"cpu", 100}};
  EXPECT_FALSE(free_by(only(cluster))) << "it does not hold";
}

}  // namespace
}  // namespace cli
