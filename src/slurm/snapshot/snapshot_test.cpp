#include "slurm/snapshot/snapshot.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "slurm/testing/jobs.hpp"

namespace slurm {
namespace {

using testing::job;

TEST(SharedMap, CopiesShareUntilOneIsWritten) {
  SharedMap<std::string, int> a{{"x", 1}};
  SharedMap<std::string, int> b = a;
  EXPECT_TRUE(a.same(b));
  b["y"] = 2;
  EXPECT_FALSE(a.same(b));
  EXPECT_EQ(a.size(), 1U);
  EXPECT_EQ(b.size(), 2U);
  EXPECT_EQ(b.at("x"), 1);
  b.erase("x");
  EXPECT_TRUE(a.contains("x"));
  EXPECT_TRUE((SharedMap<std::string, int>{}.empty()));
}

TEST(Job, HoldsNodesInEveryStateInWhichSlurmKeepsThem) {
  EXPECT_TRUE(job(1, "RUNNING", {}, {})->holds_nodes());
  EXPECT_TRUE(job(1, "SUSPENDED", {}, {})->holds_nodes());
  EXPECT_TRUE(job(1, "RUNNING", {"CONFIGURING"}, {})->holds_nodes());
  EXPECT_TRUE(job(1, "FAILED", {"COMPLETING"}, {})->holds_nodes());
  EXPECT_TRUE(job(1, "PENDING", {"COMPLETING", "REQUEUED"}, {})->holds_nodes());
  EXPECT_FALSE(job(1, "PENDING", {}, {})->holds_nodes());
  EXPECT_FALSE(job(1, "COMPLETED", {}, {})->holds_nodes());
}

/// Calls `check` twice: without the index that the poller makes, and with it.
void look(Snapshot& snapshot, const std::function<void(const std::string& how)>& check) {
  check("not indexed");
  snapshot.job_index = JobIndex::of(snapshot.jobs);
  check("indexed");
}

TEST(Snapshot, TellsWhatHoldsANode) {
  const auto minute = [](int n) { return core::WallTime{core::Duration{n * 60'000}}; };
  const auto until = [&](std::int64_t id, std::vector<std::string> nodes, std::optional<core::WallTime> end) {
    auto out = std::make_shared<Job>(*job(id, "RUNNING", {}, std::move(nodes)));
    out->end = end;
    return out;
  };
  Snapshot snapshot;
  for (const char* name : {"n1", "n2", "n3", "n4"}) snapshot.nodes[name] = std::make_shared<Node>();
  snapshot.jobs[1] = until(1, {"n1", "n2", "new"}, minute(5));
  snapshot.jobs[2] = until(2, {"n1"}, minute(9));
  snapshot.jobs[3] = until(3, {"n2"}, std::nullopt);
  snapshot.jobs[4] = job(4, "SUSPENDED", {}, {"n1", "n3"});
  snapshot.jobs[5] = job(5, "COMPLETED", {"COMPLETING"}, {"n2"});
  snapshot.jobs[6] = job(6, "PENDING", {}, {"n4"});
  look(snapshot, [&](const std::string& how) {
    SCOPED_TRACE(how);
    const Work n1 = snapshot.work_on("n1");
    EXPECT_EQ(n1.jobs, 3);
    EXPECT_TRUE(n1.running && n1.suspended);
    EXPECT_EQ(n1.deadline, minute(9)) << "the last of them ends then";
    const Work n2 = snapshot.work_on("n2");
    EXPECT_EQ(n2.jobs, 3);
    EXPECT_FALSE(n2.suspended);
    EXPECT_FALSE(n2.deadline) << "one of them never has to end";
    const Work n3 = snapshot.work_on("n3");
    EXPECT_TRUE(n3.jobs == 1 && n3.suspended && !n3.running);
    EXPECT_EQ(snapshot.work_on("n4").jobs, 0);
    EXPECT_EQ(snapshot.work_on("new").jobs, 1) << "it registered after Slurm was asked for nodes";
    EXPECT_EQ(snapshot.work_on("none").jobs, 0);
  });
  auto unread = std::make_shared<Job>(*job(7, "RUNNING", {}, {}));
  unread->nodes_unknown = true;
  unread->end = minute(20);
  snapshot.jobs[7] = unread;
  snapshot.job_index = nullptr;
  look(snapshot, [&](const std::string& how) {
    SCOPED_TRACE(how);
    EXPECT_EQ(snapshot.work_on("n1").jobs, 4);
    EXPECT_EQ(snapshot.work_on("n1").deadline, minute(20));
    EXPECT_FALSE(snapshot.work_on("n2").deadline);
    EXPECT_EQ(snapshot.work_on("n3").deadline, minute(20));
    EXPECT_EQ(snapshot.work_on("n4").jobs, 1) << "it may be there";
    EXPECT_EQ(snapshot.work_on("new").jobs, 1);
    EXPECT_EQ(snapshot.work_on("none").jobs, 0) << "Slurm has no such node";
    EXPECT_EQ(snapshot.jobs_on("n4").size(), 1U);
    EXPECT_TRUE(snapshot.job_names("any"));
  });
}

TEST(Snapshot, TellsWhichNodesJobsName) {
  const auto waits_for = [](std::int64_t id, std::string state, std::string nodes) {
    auto out = std::make_shared<Job>(*job(id, std::move(state), {}, {}));
    out->required_nodes = std::move(nodes);
    return out;
  };
  Snapshot snapshot;
  snapshot.jobs[1] = job(1, "RUNNING", {}, {"a"});
  snapshot.jobs[2] = waits_for(2, "PENDING", "cpu-[0-3],login");
  snapshot.jobs[3] = waits_for(3, "PENDING", "cpu-[2-9]");
  snapshot.jobs[4] = waits_for(4, "COMPLETED", "b");
  look(snapshot, [&](const std::string& how) {
    for (const char* name : {"a", "cpu-0", "cpu-9", "login"}) EXPECT_TRUE(snapshot.job_names(name)) << name << ", " << how;
    for (const char* name : {"b", "cpu-10", "cpu-00", "cpu-"}) EXPECT_FALSE(snapshot.job_names(name)) << name << ", " << how;
  });
}

}  // namespace
}  // namespace slurm
