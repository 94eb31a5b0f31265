#include "cluster/config_map.hpp"

#include <gtest/gtest.h>

namespace op {
namespace {

TEST(RestartDigest, DiffersByWhatOnlyARestartBringsIntoForce) {
  EXPECT_EQ(restart_digest("KillWait=30"), restart_digest("killwait=30"));
  EXPECT_EQ(restart_digest("KillWait=30"), restart_digest("KillWait=31"));
  EXPECT_EQ(restart_digest("AuthType=auth/slurm\nKillWait=30"), restart_digest("KillWait=30\nauthtype=auth/slurm"));
  EXPECT_NE(restart_digest("SlurmctldPort=6817"), restart_digest("SlurmctldPort=6818"));
  EXPECT_NE(restart_digest("CredType=cred/slurm"), restart_digest(""));
}

TEST(SlurmdTimeout, IsSlurmsUnlessSaid) {
  EXPECT_EQ(slurmd_timeout("KillWait=30"), core::Duration{300000});
  EXPECT_EQ(slurmd_timeout("slurmdtimeout=1000"), core::Duration{1000000});
  EXPECT_EQ(slurmd_timeout("SlurmdTimeout=0"), core::Duration{0});
  EXPECT_EQ(slurmd_timeout("SlurmdTimeout=soon"), core::Duration{300000});
}

TEST(MaxNodeCount, IsNotThereUnlessSaid) {
  EXPECT_EQ(max_node_count("ClusterName=a\nmaxnodecount=12\nKillWait=30\n"), 12U);
  EXPECT_EQ(max_node_count("ClusterName=a\n"), std::nullopt);
  EXPECT_EQ(max_node_count("ClusterName=a\nMaxNodeCount=many\n"), std::nullopt);
}

}  // namespace
}  // namespace op
