#include "operator/common/evidence.hpp"

#include <gtest/gtest.h>

#include "plan/testing/observing.hpp"

namespace op {
namespace {

TEST(OwnerEnds, TheUserEndedTheCluster) {
  kube::PodRecord pod;
  pod.meta.ns = "ns";
  pod.meta.uid = "u";
  kube::ObjectMeta controller;
  controller.ns = "ns";
  controller.name = "c";
  const auto ends = [&] { return OwnerEnds::of(plan::testing::Observer::at({}), controller, pod); };
  EXPECT_FALSE(ends());
  controller.deletion_timestamp = core::WallTime{};
  ASSERT_TRUE(ends());
  EXPECT_EQ(ends()->uid(), "u");
  EXPECT_FALSE(ends()->good_until()) << "a deletion is not taken back";
  controller.ns = "other";
  EXPECT_FALSE(ends()) << "another namespace's";
}

}  // namespace
}  // namespace op
