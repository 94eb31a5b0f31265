#include "slurm/acts.hpp"

#include <gtest/gtest.h>

namespace slurm {
namespace {

TEST(Acts, DescribeThemselves) {
  EXPECT_EQ(drain_nodes("default/c", {"cpu-0", "cpu-1"}, "scale in")->describe(),
            (core::Json{
                {"act", "slurm.DrainNodes"}, {"cluster", "default/c"}, {"nodes", {"cpu-0", "cpu-1"}}, {"reason", "scale in"}}));
  EXPECT_EQ(resume_node("c", "n")->describe(), (core::Json{{"act", "slurm.ResumeNode"}, {"cluster", "c"}, {"node", "n"}}));
  EXPECT_EQ(delete_node("c", "n", "gone")->describe(),
            (core::Json{{"act", "slurm.DeleteNode"}, {"cluster", "c"}, {"node", "n"}, {"why", "gone"}}));
  EXPECT_EQ(delete_node("c", "n", "gone", NodeEvidence::Live::kKept)->describe()["expectDown"], true);
  EXPECT_EQ(reconfigure("c")->describe(), (core::Json{{"act", "slurm.Reconfigure"}, {"cluster", "c"}}));
  NodeUpdate update;
  update.comment = "x";
  update.features = {"a", "b"};
  EXPECT_EQ(
      update_node("c", "n", update)->describe(),
      (core::Json{{"act", "slurm.UpdateNode"}, {"cluster", "c"}, {"node", "n"}, {"comment", "x"}, {"features", {"a", "b"}}}));
}

TEST(Acts, OnlyDeletionTakesAway) {
  EXPECT_TRUE(delete_node("c", "n", "gone")->destructive());
  EXPECT_FALSE(drain_nodes("c", {"n"}, "r")->destructive());
  EXPECT_FALSE(resume_node("c", "n")->destructive());
}

TEST(Acts, OursIsToldByThePrefix) {
  EXPECT_TRUE(ours("slurm-operator: scale in"));
  EXPECT_FALSE(ours("slurm-operator"));
  EXPECT_FALSE(ours(""));
  EXPECT_FALSE(ours("bad disk; slurm-operator: x"));
}

}  // namespace
}  // namespace slurm
