#include "enlist/rules/names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace enlist {
namespace {

TEST(PoolNames, MayHaveLettersDigitsAndDashes) {
  for (const std::string& good :
       {std::string("gpu"), std::string("a"), std::string("gpu-a"), std::string("gpu1"), std::string("gpu-1a"),
        std::string(40, 'a'), std::string("defaults"), std::string("slurm-enlist")})
    EXPECT_TRUE(check_pool_name(good)) << good;
}

TEST(PoolNames, AreRefusedWithTheNameAndWhatIsAllowed) {
  for (const std::string& bad :
       {std::string(), std::string("GPU"), std::string("1gpu"), std::string("gpu-"), std::string("-gpu"), std::string("gpu_a"),
        std::string("gpu a"), std::string("gpu[1-2]"), std::string("gpu\n"), std::string(41, 'a')}) {
    const auto checked = check_pool_name(bad);
    ASSERT_FALSE(checked) << bad;
    EXPECT_EQ(checked.error().code, core::ErrorCode::kInvalid);
    EXPECT_THAT(checked.error().message, testing::HasSubstr("1 to 40 of a-z"));
    EXPECT_EQ(checked.error().message.find('\n'), std::string::npos);
  }
  EXPECT_THAT(check_pool_name("GPU").error().message, testing::HasSubstr("\"GPU\""));
}

TEST(PoolNames, CannotBeTheNameOfANode) {
  for (const char* bad : {"gpu-1", "gpu-a-007", "gpu-0"})
    EXPECT_THAT(check_pool_name(bad).error().message, testing::HasSubstr("like the name of a node")) << bad;
  EXPECT_FALSE(check_pool_name(node_name("gpu", 12)));
}

TEST(PoolNames, CannotBeAWordOfSlurmNorAMarker) {
  for (const char* bad : {"default", "all"})
    EXPECT_THAT(check_pool_name(bad).error().message, testing::HasSubstr("slurm.conf")) << bad;
  for (const char* bad : {"slurm-enlist-a", "slurm-operator-a", "slurm-bridge-a"})
    EXPECT_THAT(check_pool_name(bad).error().message, testing::HasSubstr("marks a configuration")) << bad;
}

TEST(NodeNames, AreThePoolAndANumber) {
  EXPECT_EQ(node_name("gpu", 12), "gpu-12");
}

}  // namespace
}  // namespace enlist
