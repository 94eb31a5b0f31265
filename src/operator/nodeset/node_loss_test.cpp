#include "operator/nodeset/node_loss.hpp"

#include <gtest/gtest.h>

#include "api/well_known.hpp"

namespace op::nodeset {
namespace {

TEST(NodeLoss, FewNodesThatGoAreNoLoss) {
  EXPECT_FALSE(implausible_loss(0, 0));
  EXPECT_FALSE(implausible_loss(1, 0));
  EXPECT_FALSE(implausible_loss(3, 1)) << "two among others";
  EXPECT_FALSE(implausible_loss(6, 3)) << "half of them";
  EXPECT_FALSE(implausible_loss(2, 5));
  EXPECT_TRUE(implausible_loss(2, 0));
  EXPECT_TRUE(implausible_loss(4, 1));
  EXPECT_TRUE(implausible_loss(100, 49));
}

TEST(NodeLoss, IsReadAgainFromTheCondition) {
  const auto told = [](const std::string& message) {
    api::Condition condition;
    condition.type = api::kConditionDeletionsStopped;
    condition.message = message;
    return told_loss({condition});
  };
  const NodeLoss loss{6, 1, "2026-01-02T03:04:05Z", false};
  for (const char* rest : {"", ": no worker goes", ", and that is confirmed: workers go", "; the stop switch"}) {
    const NodeLoss again = told(loss.text() + rest);
    EXPECT_EQ(again.before, 6) << rest;
    EXPECT_EQ(again.now, 1) << rest;
    EXPECT_EQ(again.since, loss.since) << rest;
  }
  EXPECT_FALSE(told("nothing is deleted").any());
  EXPECT_FALSE(told("only x").any());
  EXPECT_FALSE(told_loss({}).any());
  EXPECT_FALSE(NodeLoss{}.holds());
}

}  // namespace
}  // namespace op::nodeset
