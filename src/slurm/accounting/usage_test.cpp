#include "slurm/accounting/usage.hpp"

#include <gtest/gtest.h>

namespace slurm::accounting {
namespace {

TEST(Usage, ReadsTresAsSlurmWritesThem) {
  EXPECT_EQ(read_tres("cpu=2,mem=100M,node=1,billing=2"), (TresCounts{{"cpu", 2}, {"mem", 100}, {"node", 1}, {"billing", 2}}));
  EXPECT_EQ(read_tres("mem=1.50G,gres/gpu=2,gres/gpu:tesla=1,bb/x=2K"),
            (TresCounts{{"mem", 1536}, {"gres/gpu", 2}, {"gres/gpu:tesla", 1}, {"bb/x", 2048}}));
  EXPECT_EQ(read_tres("mem=512K"), (TresCounts{{"mem", 1}})) << "rounded to MiB";
  EXPECT_EQ(read_tres(""), TresCounts{});
  EXPECT_EQ(read_tres("cpu,=3,node=x,mem=1Q,mem=4MM,cpu=4"), (TresCounts{{"cpu", 4}}));
  EXPECT_EQ(read_tres("cpu=9E"), TresCounts{}) << "too many";
}

TEST(Usage, AJobIsNamedAsSlurmDoes) {
  QueuedJob job;
  job.id = 12;
  EXPECT_EQ(job.full_id(), "12");
  EXPECT_EQ(job.count(), 1);
  EXPECT_FALSE(job.has_task(0));
  job.array = 10;
  job.tasks = "1-3,7,10-20:5%2";
  EXPECT_EQ(job.full_id(), "10_[1-3,7,10-20:5%2]");
  EXPECT_EQ(job.count(), 7);
  for (const int task : {1, 2, 3, 7, 10, 15, 20}) EXPECT_TRUE(job.has_task(task)) << task;
  for (const int task : {0, 4, 11, 21}) EXPECT_FALSE(job.has_task(task)) << task;
  job.task = 3;
  EXPECT_EQ(job.full_id(), "10_3");
  EXPECT_EQ(job.count(), 1);
  EXPECT_TRUE(job.has_task(3));
  EXPECT_FALSE(job.has_task(1));
}

TEST(Usage, WhatRuns) {
  QueuedJob job;
  for (const char* state : {"RUNNING", "SUSPENDED"}) {
    job.state = state;
    EXPECT_TRUE(job.running() && !job.pending());
  }
  job.state = "PENDING";
  EXPECT_TRUE(job.pending() && !job.running());
  job.state = "COMPLETED";
  EXPECT_FALSE(job.pending() || job.running());
}

}  // namespace
}  // namespace slurm::accounting
