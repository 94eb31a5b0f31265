#include "sim/slurm/text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/hostlist.hpp"
#include "slurm/acts.hpp"

namespace sim {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(SlurmTextTest, LinesAndWords) {
  const auto lines = read_slurm_conf(
      "# made by hand\nClusterName=c  SlurmctldHost=a(b)\n\nNodeSet=cpu "
      "Feature=cpu # all\nPartitionName=p Nodes=\"a b\"\n");
  ASSERT_TRUE(lines) << lines.error().message;
  ASSERT_EQ(lines->size(), 3U);
  EXPECT_THAT(lines->at(0), ElementsAre(Pair("clustername", "c"), Pair("slurmctldhost", "a(b)")));
  EXPECT_EQ(word(lines->at(1), "feature"), "cpu");
  EXPECT_EQ(word(lines->at(2), "nodes"), "a b");
  EXPECT_EQ(word(lines->at(2), "state"), "");
}

TEST(SlurmTextTest, WhatEndsADaemon) {
  for (const char* bad : {"NoSuchKey=1", "MaxNodeCount=abc", "SlurmdTimeout=", "PartitionName=p\nPartitionName=p", "nothing",
                          "ClusterName=\"c"}) {
    EXPECT_FALSE(read_slurm_conf(bad)) << bad;
  }
  for (const char* bad : {"NodeName=a", "Features='x'", "NoSuchKey=1", "CPUs=2\nState=DOWN"}) {
    EXPECT_FALSE(read_node_conf(bad)) << bad;
  }
  EXPECT_TRUE(read_node_conf("Features=cpu,x CPUs=2 RealMemory=1000 Reason=\"a b\""));
}

/// The parsers of the model and of the operator return the same names for valid texts.
TEST(SlurmTextTest, HostlistsAreReadAsTheOperatorReadsThem) {
  for (const char* text : {"", "a", "a,b", "cpu-[0-3,7],login", "gpu-[01-03,9-11]", "ALL", "n[5]"}) {
    const auto here = read_hostlist(text), there = core::expand_hostlist(text);
    ASSERT_TRUE(here && there) << text;
    EXPECT_EQ(*here, *there) << text;
  }
  for (const char* bad : {"a[", "a[x]", "a[3-1]", "a[1]b"}) EXPECT_FALSE(read_hostlist(bad)) << bad;
}

TEST(SlurmTextTest, WhatIsWrittenIsRead) {
  EXPECT_EQ(write_hostlist({"b", "cpu-2", "cpu-1", "cpu-1", "cpu-4", "cpu-01", "7"}), "7,b,cpu-[1-2,4],cpu-01");
  EXPECT_EQ(write_hostlist({}), "");
  std::vector<std::string> names;
  for (int i = 0; i < 120; i += i % 7 == 0 ? 2 : 1) names.push_back("n-" + std::to_string(i));
  auto read = read_hostlist(write_hostlist(names));
  ASSERT_TRUE(read);
  EXPECT_THAT(*read, testing::UnorderedElementsAreArray(names));
}

TEST(SlurmTextTest, WhoseReasonItIs) {
  for (const char* reason : {"slurm-operator: scale-in", "slurm-operator:x", "disk is failing", "", "Not responding"}) {
    EXPECT_EQ(given_by_operator(reason), slurm::held_by(reason, slurm::Owner::kOperator)) << reason;
  }
}

}  // namespace
}  // namespace sim
