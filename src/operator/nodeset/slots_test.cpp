#include "operator/nodeset/slots.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "operator/nodeset/parts.hpp"
#include "operator/nodeset/plan.hpp"
#include "operator/nodeset/testing/world.hpp"
#include "slurm/acts.hpp"

namespace op::nodeset {
namespace {

using testing::World;

/// Returns a world with two workers. The operator has drained the second one.
World with_a_drained_worker() {
  World world(core::Json{{"replicas", 2}});
  world.add_pod(0);
  world.add_pod(1);
  world.node("cpu-1").state.flags.insert("DRAIN");
  world.node("cpu-1").reason = "slurm-operator: NodeSet default/cpu was scaled in";
  return world;
}

TEST(Slots, AreInTheOrderOfTheirPlaces) {
  World world(core::Json{{"replicas", 11}});
  for (const int ordinal : {10, 2, 0}) world.add_pod(ordinal);
  std::vector<int> keys;
  for (const Slot& slot : world.observe().slots) keys.push_back(slot.key.ordinal);
  EXPECT_EQ(keys, (std::vector<int>{0, 2, 10}));
}

TEST(Slots, KeepTheirSlurmNodesWhateverBecomesOfTheSpec) {
  World world(core::Json{{"replicas", 3}});
  world.settle();
  world.start_pods();
  world.settle();
  const std::vector<std::string> names{"cpu-0", "cpu-1", "cpu-2"};
  const auto nodes = [&] {
    std::vector<std::string> out;
    for (const Slot& slot : world.observe().slots) {
      EXPECT_NE(slot.record, nullptr) << slot.node;
      out.push_back(slot.node);
    }
    return out;
  };
  EXPECT_EQ(nodes(), names);
  world.edit("ordinalPadding", 4);
  world.edit("template", {{"spec", {{"hostname", "other-"}}}});
  EXPECT_EQ(nodes(), names);
  world.edit("template", {{"spec", {{"hostNetwork", true}}}});
  EXPECT_EQ(nodes(), names);
}

TEST(Slots, HaveTheEvidenceThatTheFactsAllow) {
  World world = with_a_drained_worker();
  const Observed seen = world.observe();
  ASSERT_EQ(seen.slots.size(), 2U);
  EXPECT_FALSE(seen.slots[0].evidence.drained) << "it takes jobs";
  ASSERT_TRUE(seen.slots[1].evidence.drained) << "also where nobody wants to delete it";
  EXPECT_EQ(seen.slots[1].evidence.drained->uid(), world.pod("cpu-1").meta.uid);
  EXPECT_EQ(seen.slots[1].evidence.drained->node().node().name, "cpu-1");
  EXPECT_EQ(seen.slots[1].evidence.drained->node().node().cluster, "default/demo");
  EXPECT_EQ(seen.slots[1].evidence.drained->good_until(), seen.snapshot->requested_at + seen.snapshot->good_for());
  EXPECT_FALSE(seen.slots[1].evidence.silent) << "its host is not lost";
  EXPECT_FALSE(seen.slots[1].evidence.owner_ends);
  world.snapshot_age = core::Duration{10000};
  EXPECT_FALSE(world.observe().slots[1].evidence.drained) << "Slurm said so long ago";
}

TEST(Slots, OfAControllerThatEndsTellSoUnlessItsWorkersAreDrained) {
  World world = with_a_drained_worker();
  world.end_cluster(false);
  EXPECT_TRUE(world.observe().slots[0].evidence.owner_ends);
  world.end_cluster(true);
  EXPECT_FALSE(world.observe().slots[0].evidence.owner_ends);
}

TEST(Slots, AreNotActedOnWhenTheirEvidenceHasGrownOld) {
  World world = with_a_drained_worker();
  world.edit("replicas", 1);
  const plan::Plan plan = plan_nodeset(world.observe());
  world.advance(core::Duration{5000});
  world.run(plan);
  EXPECT_TRUE(world.nodes.contains("cpu-1"));
  EXPECT_FALSE(world.pod("cpu-1").meta.terminating());
  world.settle();
  EXPECT_TRUE(world.pod("cpu-1").meta.terminating()) << "a later answer says the same";
}

}  // namespace
}  // namespace op::nodeset
