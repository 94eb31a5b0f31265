#include "slurm/acts.hpp"

#include <gtest/gtest.h>

namespace slurm {
namespace {

Node seen() {
  Node out;
  out.name = "n";
  return out;
}

TEST(Acts, DescribeThemselves) {
  EXPECT_EQ(drain_nodes("default/c", Owner::kOperator, {"cpu-0", "cpu-1"}, "scale in")->describe(),
            (core::Json{{"act", "slurm.DrainNodes"},
                        {"cluster", "default/c"},
                        {"owner", "slurm-operator"},
                        {"nodes", {"cpu-0", "cpu-1"}},
                        {"reason", "scale in"}}));
  EXPECT_EQ(resume_node("c", Owner::kOperator, "n")->describe(),
            (core::Json{{"act", "slurm.ResumeNode"}, {"cluster", "c"}, {"owner", "slurm-operator"}, {"node", "n"}}));
  EXPECT_EQ(resume_node("c", {Owner::kBridge, "u1"}, "n")->describe()["instance"], "u1");
  EXPECT_EQ(drain_nodes("c", {Owner::kBridge, "u1"}, {"n"}, "r")->describe()["instance"], "u1");
  EXPECT_EQ(
      delete_node("c", Owner::kOperator, seen(), "gone")->describe(),
      (core::Json{{"act", "slurm.DeleteNode"}, {"cluster", "c"}, {"owner", "slurm-operator"}, {"node", "n"}, {"why", "gone"}}));
  EXPECT_EQ(delete_node("c", Owner::kOperator, seen(), "gone", NodeEvidence::Live::kKept)->describe()["expectDown"], true);
  EXPECT_EQ(reconfigure("c")->describe(), (core::Json{{"act", "slurm.Reconfigure"}, {"cluster", "c"}}));
  NodeUpdate update;
  update.comment = "x";
  update.features = {"a", "b"};
  EXPECT_EQ(
      update_node("c", "n", update)->describe(),
      (core::Json{{"act", "slurm.UpdateNode"}, {"cluster", "c"}, {"node", "n"}, {"comment", "x"}, {"features", {"a", "b"}}}));
}

TEST(Acts, OnlyDeletionTakesAway) {
  EXPECT_TRUE(delete_node("c", Owner::kOperator, seen(), "gone")->destructive());
  EXPECT_FALSE(drain_nodes("c", Owner::kOperator, {"n"}, "r")->destructive());
  EXPECT_FALSE(resume_node("c", Owner::kOperator, "n")->destructive());
  EXPECT_EQ(drain_nodes("c", Owner::kOperator, {"n"}, "r", true)->describe()["renames"], true);
}

}  // namespace
}  // namespace slurm
