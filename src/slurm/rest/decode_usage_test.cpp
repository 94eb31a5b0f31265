// Decodes replies of real slurmrestds in src/slurm/testdata, and short ones.
#include "slurm/rest/decode_usage.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace slurm {
namespace {

using accounting::QueuedJob;
using accounting::TresCounts;

std::string recorded(const std::string& which) {
  std::ifstream file("src/slurm/testdata/" + which + ".json");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << which;
  return text.str();
}

class Recorded : public testing::TestWithParam<const char*> {};

TEST_P(Recorded, Queue) {
  const auto decoded = decode_queue(recorded(std::string(GetParam()) + "-queue"));
  ASSERT_TRUE(decoded) << decoded.error().message;
  ASSERT_TRUE(decoded->present);
  std::map<std::int64_t, const QueuedJob*> jobs;
  for (const auto& row : decoded->rows) jobs[row->id] = row.get();
  const QueuedJob& runs = *jobs.at(2);
  EXPECT_TRUE(runs.running());
  EXPECT_EQ(runs.has, (TresCounts{{"cpu", 2}, {"mem", 100}, {"node", 1}, {"billing", 2}}));
  EXPECT_EQ(runs.nodes, "n1");
  EXPECT_EQ(*runs.end - *runs.start, core::Duration{std::chrono::minutes{30}});
  const QueuedJob& waits = *jobs.at(3);
  EXPECT_TRUE(waits.pending());
  EXPECT_EQ(waits.reason, "QOSMaxJobsPerUserLimit");
  EXPECT_EQ(waits.user, "user");
  EXPECT_EQ(waits.account, "physics");
  EXPECT_EQ(waits.qos, "gpu");
  EXPECT_EQ(waits.partition, "all");
  EXPECT_EQ(waits.cluster, "local");
  EXPECT_EQ(waits.asks, (TresCounts{{"cpu", 1}, {"mem", 100}, {"node", 1}, {"billing", 1}}));
  EXPECT_EQ(waits.has, TresCounts{});
  EXPECT_EQ(waits.time_limit, Number(30));
  EXPECT_EQ(waits.priority, Number(1));
  EXPECT_FALSE(waits.start);
  EXPECT_TRUE(waits.submitted);
  EXPECT_EQ(jobs.at(4)->time_limit, Number(Infinite{}));
  EXPECT_EQ(jobs.at(5)->reason, "JobHeldUser");
  EXPECT_EQ(jobs.at(6)->dependency, "afterok:2(unfulfilled)");
  const QueuedJob& array = *jobs.at(7);
  EXPECT_EQ(array.full_id(), "7_[1-3%1]");
  EXPECT_EQ(array.count(), 3);
  EXPECT_TRUE(array.start) << "its begin time";
}

TEST_P(Recorded, EndedJob) {
  const auto decoded = decode_ended_jobs(recorded(std::string(GetParam()) + "-ended"));
  ASSERT_TRUE(decoded) << decoded.error().message;
  ASSERT_EQ(decoded->rows.size(), 1U);
  const QueuedJob& job = *decoded->rows[0];
  EXPECT_EQ(job.full_id(), "1");
  EXPECT_EQ(job.state, "CANCELLED");
  EXPECT_EQ(job.user, "root");
  EXPECT_EQ(job.account, "physics");
  EXPECT_EQ(job.nodes, "n1");
  EXPECT_EQ(job.time_limit, Number(10));
  EXPECT_TRUE(job.start && job.end && *job.end >= *job.start);
}

TEST_P(Recorded, Shares) {
  const auto decoded = decode_shares(recorded(std::string(GetParam()) + "-shares"));
  ASSERT_TRUE(decoded) << decoded.error().message;
  ASSERT_TRUE(decoded->present);
  ASSERT_EQ(decoded->rows.size(), 6U);
  const auto& root = *decoded->rows[0];
  EXPECT_EQ(root.name, "root");
  EXPECT_EQ(root.parent, "");
  EXPECT_FALSE(root.is_user);
  EXPECT_EQ(root.usage, 1.0);
  const auto& user = *decoded->rows[5];
  EXPECT_TRUE(user.is_user);
  EXPECT_EQ(user.cluster, "local");
  EXPECT_EQ(user.name, "user");
  EXPECT_EQ(user.parent, "physics");
  EXPECT_TRUE(user.usage && user.factor);
  EXPECT_GT(user.tres_seconds.at("cpu"), 0);
}

TEST_P(Recorded, PartitionRules) {
  const auto decoded = decode_partition_rules(recorded(std::string(GetParam()) + "-partitions"));
  ASSERT_TRUE(decoded) << decoded.error().message;
  ASSERT_FALSE(decoded->rows.empty());
  for (const auto& row : decoded->rows) {
    EXPECT_FALSE(row->name.empty());
    EXPECT_FALSE(row->state.empty()) << row->name;
  }
}

INSTANTIATE_TEST_SUITE_P(DecodeUsage, Recorded, testing::Values("24.11-v0.0.42", "26.05-v0.0.45"),
                         [](const auto& info) { return std::string(info.param).substr(0, 2); });

TEST(DecodeUsage, APartitionWithRules) {
  const auto decoded = decode_partition_rules(R"({"partitions": [{"name": "p", "qos": {"allowed": "", "assigned": "part"},
    "maximums": {"time": {"set": true, "number": 60}, "nodes": {"infinite": true}}, "minimums": {"nodes": 2},
    "defaults": {"time": {"set": true, "number": 30}}, "partition": {"state": ["DOWN"]}}], "errors": []})");
  ASSERT_TRUE(decoded);
  const accounting::PartitionRules wanted{"p", "DOWN", "part", 60, 30, Infinite{}, 2};
  EXPECT_EQ(*decoded->rows.at(0), wanted);
}

TEST(DecodeUsage, ATaskWithItsReasonInWords) {
  const auto decoded = decode_queue(R"({"jobs": [{"job_id": 21, "array_job_id": {"set": true, "number": 20},
    "array_task_id": {"set": true, "number": 3}, "job_state": ["RUNNING", "COMPLETING"], "state_reason": "ReqNodeNotAvail",
    "state_description": "ReqNodeNotAvail, UnavailableNodes:n1", "required_nodes": "n1", "resv_name": "r", "licenses": "idl:1",
    "exit_code": {"status": ["ERROR"], "return_code": {"set": true, "number": 3}}}], "errors": []})");
  ASSERT_TRUE(decoded);
  const QueuedJob& job = *decoded->rows.at(0);
  EXPECT_EQ(job.full_id(), "20_3");
  EXPECT_TRUE(job.flags.contains("COMPLETING"));
  EXPECT_EQ(job.description, "ReqNodeNotAvail, UnavailableNodes:n1");
  EXPECT_EQ(job.required_nodes, "n1");
  EXPECT_EQ(job.reservation, "r");
  EXPECT_EQ(job.licenses, "idl:1");
  EXPECT_EQ(job.exit_code, 3);
}

TEST(DecodeUsage, ARowWithoutItsNameMakesTheListNoList) {
  for (const auto& error :
       {decode_queue(R"({"jobs": [{}]})").error(), decode_ended_jobs(R"({"jobs": [{}]})").error(),
        decode_shares(R"({"shares": {"shares": [{}]}})").error(), decode_partition_rules(R"({"partitions": [{}]})").error()}) {
    EXPECT_EQ(error.code, core::ErrorCode::kInternal);
    EXPECT_NE(error.message.find("without a n"), std::string::npos) << error.message;
  }
  const auto absent = decode_shares(R"({"shares": null, "errors": []})");
  ASSERT_TRUE(absent);
  EXPECT_FALSE(absent->present);
}

}  // namespace
}  // namespace slurm
