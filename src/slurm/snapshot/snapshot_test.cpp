#include "slurm/snapshot/snapshot.hpp"

#include <gtest/gtest.h>

namespace slurm {
namespace {

std::shared_ptr<const Job> job(std::int64_t id, std::string state, std::set<std::string, std::less<>> flags,
                               std::vector<std::string> nodes) {
  auto out = std::make_shared<Job>();
  out->id = id;
  out->state = std::move(state);
  out->flags = std::move(flags);
  out->nodes = std::move(nodes);
  return out;
}

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

}  // namespace
}  // namespace slurm
