#include "bridge/common/job_table.hpp"

#include <gtest/gtest.h>

#include <map>

namespace bridge {
namespace {

/// The jobs that slurmctld lists, in successive snapshots. The pod's job is 7, submitted at second 70.
struct Table : ::testing::Test {
  static constexpr JobId kPods{7, 70};

  /// Adds a job of the bridge. `life`: the Life that was known when the job was submitted.
  void job(std::int64_t number, std::int64_t submitted, core::Json life = nullptr, const std::string& instance = "here") {
    slurm::Job out;
    out.id = number;
    out.state = "RUNNING";
    slurm::JobDetails details;
    details.external = true;
    details.submitted = core::WallTime{std::chrono::seconds{submitted}};
    core::Json more = core::Json::object();
    if (!life.is_null()) more["life"] = std::move(life);
    details.admin_comment = slurm::admin_comment({slurm::Owner::kBridge, instance, "u/1"}, more);
    out.details = slurm::JobDetailsPtr(std::make_shared<slurm::JobDetails>(details));
    jobs[number] = std::make_shared<const slurm::Job>(out);
  }
  /// Reads the jobs, and returns the result of JobTable::younger() for the pod's job.
  std::int64_t younger() {
    auto snapshot = std::make_shared<slurm::Snapshot>();
    snapshot->health = slurm::Snapshot::Health::kComplete;
    for (const auto& [number, one] : jobs) snapshot->jobs.emplace(number, one);
    table.read(snapshot);
    return table.younger("here", kPods);
  }

  std::map<std::int64_t, std::shared_ptr<const slurm::Job>> jobs;
  JobTable table;
};

TEST_F(Table, AnOlderAndAYoungerJobShowThatAJobIsForgotten) {
  EXPECT_EQ(younger(), 0);
  job(9, 90);
  EXPECT_EQ(younger(), 0) << "slurmctld may have begun with it";
  job(5, 50, nullptr, "elsewhere");
  EXPECT_EQ(younger(), 9) << "the older one may be of anybody";
  jobs.erase(9);
  job(8, 80, nullptr, "elsewhere");
  EXPECT_EQ(younger(), 0) << "the younger one may not";
}

TEST_F(Table, WhatWasSeenBeforeCountsWhileOneJobStays) {
  job(5, 50);
  EXPECT_EQ(younger(), 0);
  job(9, 90);
  EXPECT_EQ(younger(), 9);
  jobs.erase(5);
  EXPECT_EQ(younger(), 9);
  jobs.clear();
  job(10, 100);
  EXPECT_EQ(younger(), 0) << "nothing connects the two";
}

TEST_F(Table, AJobKnowsHowLongSlurmctldHadKeptItsState) {
  job(9, 90, {{"since", 50}, {"last", 8}});
  EXPECT_EQ(younger(), 9);
  EXPECT_EQ(table.life().since, 50);
  EXPECT_EQ(table.life().last, 9);
}

TEST_F(Table, ANumberThatIsUsedAgainIsOfAnotherLife) {
  // Slurm lost its state after the snapshot was read and before the job was submitted.
  job(9, 190, {{"since", 50}, {"last", 20}});
  EXPECT_EQ(younger(), 0);
  job(5, 50);
  job(6, 160);
  EXPECT_EQ(younger(), 0) << "slurmctld went back to an older state";
}

TEST_F(Table, AJobOfTheSameNumberDoesNotConnectTwoLives) {
  job(5, 50);
  EXPECT_EQ(younger(), 0);
  jobs.clear();
  job(5, 150);
  job(9, 190);
  EXPECT_EQ(younger(), 0);
}

}  // namespace
}  // namespace bridge
