// Tests the whole operator in fixed histories: actions of users that must not cost a job.
#include "sim/programs/operator/world.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "slinky/names.hpp"

namespace sim {
namespace {

using core::Json;
using testing::IsEmpty;
using namespace std::chrono_literals;
namespace kinds = kube::resources;

/// Two busy workers, whose jobs last longer than the test.
class WorldTest : public testing::Test {
 protected:
  void SetUp() override {
    world.found_cluster(2);
    ASSERT_THAT(world.settle(core::Duration{180000}), IsEmpty());
    JobRequest job;
    job.partition = "cpu";
    job.nodes = 2;
    job.duration = 24h;
    job.exclusive = true;
    id = world.slurm()->submit(job);
    ASSERT_TRUE(world.loop().run_until([&] { return running(); }, 60s));
    world.loop().run_for(30s);
  }
  void TearDown() override { EXPECT_THAT(world.oracles().violations(), IsEmpty()); }

  [[nodiscard]] bool running() const {
    const SimSlurm* slurm = world.slurm();
    return slurm != nullptr && slurm->jobs().at(id).state == SimJob::State::kRunning;
  }
  [[nodiscard]] std::set<std::string> worker_uids() const {
    std::set<std::string> out;
    for (const std::string& name : world.workers())
      out.insert(core::get_string(*world.find(kinds::kPod, name), {"metadata", "uid"}));
    return out;
  }
  [[nodiscard]] bool has_partition() const { return world.slurm()->partitions().contains("cpu"); }

  OperatorWorld world;
  std::int64_t id = 0;
};

TEST_F(WorldTest, BusyWorkersAreNotEvictedWhileTheirNodeSetIsScaledIn) {
  world.merge(slinky::resources::kNodeSet, "cpu", {{"spec", {{"replicas", 1}}}});
  world.loop().run_for(30s);
  for (const char* name : {"cpu-0", "cpu-1"}) EXPECT_FALSE(world.api().evict({World::kNamespace, name}, {})) << name;
  EXPECT_TRUE(running());
}

TEST_F(WorldTest, AJobThatHasJustStartedIsNotEvicted) {
  world.slurm()->cancel(id);
  ASSERT_TRUE(world.settle(core::Duration{60000}).empty());
  for (int i = 0; i < 5; ++i) {
    JobRequest job;
    job.partition = "cpu";
    job.nodes = 2;
    job.duration = 5s;
    job.exclusive = true;
    id = world.slurm()->submit(job);
    ASSERT_TRUE(world.loop().run_until([&] { return running(); }, 60s));
    for (const char* name : {"cpu-0", "cpu-1"}) EXPECT_FALSE(world.api().evict({World::kNamespace, name}, {})) << name;
    world.loop().run_for(20s);
    EXPECT_EQ(world.slurm()->jobs().at(id).state, SimJob::State::kCompleted);
  }
}

TEST_F(WorldTest, AWorkerThatRunsJobsIsNotPreempted) {
  world.loop().run_for(20s);
  for (const char* name : {"cpu-0", "cpu-1"}) world.kube().nodes().preempt({World::kNamespace, name});
  world.loop().run_for(20s);
  EXPECT_TRUE(running());
  world.slurm()->cancel(id);
  world.loop().run_for(20s);
  const std::set<std::string> before = worker_uids();
  for (const char* name : {"cpu-0", "cpu-1"}) world.kube().nodes().preempt({World::kNamespace, name});
  EXPECT_THAT(world.settle(core::Duration{180000}), IsEmpty());
  EXPECT_NE(worker_uids(), before) << "an idle one is";
}

TEST_F(WorldTest, KubeletsThatAreAwayTakeNoWorkersWithThem) {
  const std::set<std::string> before = worker_uids();
  const auto hosts = world.names(kinds::kNode);
  for (const std::string& host : hosts) world.kube().nodes().cut_node(host);
  world.loop().run_for(10min);
  for (const std::string& host : hosts) world.kube().nodes().heal_node(host);
  world.loop().run_for(60s);
  EXPECT_EQ(worker_uids(), before);
  EXPECT_TRUE(running());
}

TEST_F(WorldTest, AWorkerThatIsLostWithItsHostIsReplaced) {
  world.slurm()->cancel(id);
  const auto host = [&](const std::string& name) {
    return core::get_string(*world.find(kinds::kPod, name), {"spec", "nodeName"});
  };
  // Moves cpu-1 to a host without other pods, so that everything else continues to run when that host crashes.
  const std::string lost = "cpu-1";
  std::set<std::string> homes;
  for (const std::string& name : world.names(kinds::kPod)) {
    if (name != lost) homes.insert(host(name));
  }
  const auto cordon = [&](bool cordoned) {
    for (const std::string& home : homes) world.merge(kinds::kNode, home, {{"spec", {{"unschedulable", cordoned}}}});
  };
  cordon(true);
  world.remove(kinds::kPod, lost);
  ASSERT_TRUE(world.loop().run_until([&] { return world.find(kinds::kPod, lost) == nullptr; }, 2min));
  ASSERT_TRUE(world.loop().run_until([&] { return world.find(kinds::kPod, lost) != nullptr && !host(lost).empty(); }, 2min));
  cordon(false);
  ASSERT_THAT(world.settle(core::Duration{180000}), IsEmpty());
  ASSERT_FALSE(homes.contains(host(lost)));
  world.kube().nodes().crash_node(host(lost));
  world.loop().run_for(4min);
  EXPECT_THAT(world.workers(), testing::ElementsAre("cpu-0", "cpu-1")) << "it may come back";
  const auto usable = [&] { return world.slurm()->nodes().contains("cpu-2") && world.workers().size() == 2; };
  EXPECT_TRUE(world.loop().run_until(usable, 10min));
  EXPECT_FALSE(world.slurm()->nodes().contains(lost)) << "its record went";
  EXPECT_NE(world.find(kinds::kPod, lost), nullptr) << "nobody can say that it has ended";
}

TEST_F(WorldTest, AGeneratedKeyThatIsLostIsMadeAgainFromItsCopy) {
  const std::string name = slinky::generated_slurm_key_name(World::kCluster);
  const Json secret = *world.find(kinds::kSecret, name);
  world.remove(kinds::kSecret, name);
  world.loop().run_for(120s);
  ASSERT_NE(world.find(kinds::kSecret, name), nullptr);
  EXPECT_EQ((*world.find(kinds::kSecret, name))["data"], secret["data"]);
  EXPECT_THAT(world.settle(core::Duration{180000}), IsEmpty());
  EXPECT_TRUE(running());
}

TEST_F(WorldTest, TheNodeSetThatGoesAloneKeepsItsPartition) {
  world.remove(slinky::resources::kNodeSet, "cpu", "Orphan");
  world.loop().run_for(120s);
  ASSERT_EQ(world.find(slinky::resources::kNodeSet, "cpu"), nullptr);
  EXPECT_TRUE(has_partition());
  EXPECT_TRUE(running());
  // Only the pods show that the workers are being deleted: Slurm is not polled any more, and no budget counts them.
  world.remove(slinky::resources::kRestApi, World::kCluster);
  for (const std::string& name : world.workers())
    world.merge(kinds::kPod, name, {{"metadata", {{"labels", {{api::kLabelPodProtect, nullptr}}}}}});
  world.loop().run_for(30s);
  const auto written = [&] {
    const Json& map = *world.find(kinds::kConfigMap, slinky::config_map_name(World::kCluster));
    return core::get_string(map, {"data", "slurm.conf"}).find("PartitionName=cpu") != std::string::npos;
  };
  EXPECT_TRUE(written());
  for (const std::string& name : world.workers()) world.remove(kinds::kPod, name);
  world.loop().run_for(30s);
  EXPECT_TRUE(written()) << "nobody tells whether jobs wait for it";
  world.apply(restapi_json());
  world.loop().run_for(60s);
  EXPECT_TRUE(written()) << "one does";
  world.slurm()->cancel(id);
  EXPECT_TRUE(world.loop().run_until([&] { return !written(); }, 180s));
}

TEST_F(WorldTest, TheControllerThatGoesAloneKeepsItsCluster) {
  const std::set<std::string> before = worker_uids();
  world.remove(slinky::resources::kController, World::kCluster, "Orphan");
  world.loop().run_for(120s);
  ASSERT_EQ(world.find(slinky::resources::kController, World::kCluster), nullptr);
  EXPECT_EQ(worker_uids(), before);
  EXPECT_TRUE(running());
  world.apply(controller_json());
  EXPECT_THAT(world.settle(core::Duration{180000}), IsEmpty());
  EXPECT_EQ(worker_uids(), before);
  EXPECT_TRUE(running());
}

}  // namespace
}  // namespace sim
