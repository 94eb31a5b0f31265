#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "bridge/gangs/testing/world.hpp"

namespace bridge::gangs {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Json;
using testing::World;

struct GangWakes : ::testing::Test {
  GangWakes() {
    (void)world.controller();
    woken();
  }

  std::vector<std::string> woken() { return std::exchange(world.wiring().woken, {}); }
  /// Simulates a poll of Slurm after which these jobs have changed, and returns the keys that it wakes.
  std::vector<std::string> poll(std::vector<std::int64_t> jobs, bool health = false) {
    slurm::Change change;
    change.cluster = "slurm/demo";
    change.before = std::exchange(last, world.snapshot());
    change.now = last;
    change.jobs = std::move(jobs);
    change.health = health;
    woken();
    world.wiring().slurm_changed(change, {});
    return woken();
  }

  World world;
  slurm::SnapshotPtr last = world.snapshot();
};

TEST_F(GangWakes, TheGroupOfAPod) {
  world.waits("a");
  EXPECT_THAT(woken(), ElementsAre("gangs ns/podgroup/train"));
  world.delete_pod("a");
  EXPECT_THAT(woken(), ElementsAre("gangs ns/podgroup/train"));
  world.waiting_pod();
  EXPECT_THAT(woken(), IsEmpty()) << "it is in no group";
  world.pod(Json::parse(R"({"metadata": {"name": "b", "labels": {"scheduling.x-k8s.io/pod-group": "train"}},
    "status": {"conditions": [{"type": "SlurmQueued", "status": "True"}]}})"));
  EXPECT_THAT(woken(), ElementsAre("gangs ns/podgroup/train")) << "it was freed while no bridge ran";
}

TEST_F(GangWakes, TheGroupOfAJob) {
  world.gang(7, "PENDING", {"a"});
  EXPECT_THAT(poll({7}), ElementsAre("gangs ns/podgroup/train"));
  world.jobs.clear();
  EXPECT_THAT(poll({7}), ElementsAre("gangs ns/podgroup/train")) << "the job is gone";
  world.job(8, "RUNNING");
  EXPECT_THAT(poll({8}), IsEmpty()) << "it is that of a single pod";
  world.gang(9, "RUNNING", {"a"});
  poll({9});
  EXPECT_THAT(poll({}, true), ElementsAre("gangs ns/podgroup/train")) << "Slurm answers again";
}

TEST_F(GangWakes, GroupsThatWaitWhenOtherNodesCanRunThem) {
  world.waits("a");
  woken();
  world.node("node-1", {{"spec", {{"unschedulable", true}}}});
  EXPECT_THAT(woken(), Contains("gangs ns/podgroup/train"));
}

TEST_F(GangWakes, RightsAreThoseThatItNeeds) {
  EXPECT_EQ(world.wiring().rights.rules(), Json::parse(R"([
    {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
    {"apiGroups": [""], "resources": ["namespaces", "nodes"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "patch", "delete"]},
    {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]},
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get"]},
    {"apiGroups": ["scheduling.x-k8s.io"], "resources": ["podgroups"], "verbs": ["get"]}])"));
}

}  // namespace
}  // namespace bridge::gangs
