#include "enlist/coordinator/slurm_facts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace enlist {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

TEST(SlurmFactsTest, AreWhatSlurmConfSays) {
  const auto facts = facts_of(R"(ClusterName=site
SlurmctldHost=one(10.0.0.1)
SlurmctldHost=two
SlurmctldHost=three(fd00::3)
SlurmctldHost=two
SlurmctldPort=6820-6823
SlurmUser=slurm(401)
MaxNodeCount=100
AuthAltParameters=disable_token_creation,jwt_key=/etc/slurm/jwt.key
Include other.conf
NodeSet=gpus Feature=gpu
nodeset=old Nodes=n[1-2]
PartitionName=DEFAULT MaxTime=60
partitionname=batch Nodes=ALL)",
                              "NodeSet=cpu Feature=cpu\nPartitionName=cpu Nodes=cpu\n");
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts->cluster_name, "site");
  EXPECT_THAT(facts->controllers, ElementsAre("10.0.0.1:6820", "two:6820", "[fd00::3]:6820"));
  EXPECT_EQ(facts->slurm_user, "slurm");
  EXPECT_EQ(facts->jwt_key, "/etc/slurm/jwt.key");
  EXPECT_EQ(facts->max_node_count, 100U);
  EXPECT_THAT(facts->node_sets, UnorderedElementsAre("gpus", "old", "cpu"));
  EXPECT_THAT(facts->partitions, ElementsAre("batch")) << "without those of the pool file";
}

TEST(SlurmFactsTest, HaveSlurmsDefaults) {
  const auto facts = facts_of("ClusterName=c\nSlurmctldHost=h\nStateSaveLocation=/var/spool/slurmctld\n");
  ASSERT_TRUE(facts);
  EXPECT_THAT(facts->controllers, ElementsAre("h:6817"));
  EXPECT_EQ(facts->slurm_user, "root");
  EXPECT_EQ(facts->jwt_key, "/var/spool/slurmctld/jwt_hs256.key");
  EXPECT_EQ(facts->max_node_count, std::nullopt);
}

TEST(SlurmFactsTest, MaxNodeCountIsReadAsSlurmReadsIt) {
  const auto count = [](const std::string& value) {
    return facts_of("ClusterName=c\nSlurmctldHost=h\nMaxNodeCount=" + value + "\n")->max_node_count;
  };
  EXPECT_EQ(count("1k"), 1024U);
  EXPECT_EQ(count("64"), 64U);
  for (const char* none : {"UNLIMITED", "12x", "-1"}) EXPECT_EQ(count(none), std::nullopt) << none;
}

TEST(SlurmFactsTest, AFileWithoutAClusterIsAnError) {
  EXPECT_EQ(facts_of("SlurmctldHost=h").error().message, "ClusterName is not set");
  EXPECT_EQ(facts_of("ClusterName=c").error().message, "SlurmctldHost is not set");
}

}  // namespace
}  // namespace enlist
