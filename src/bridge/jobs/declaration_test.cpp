#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "bridge/jobs/testing/world.hpp"

namespace bridge::jobs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Json;
using testing::World;

struct Wakes : ::testing::Test {
  Wakes() { (void)world.controller(); }

  std::vector<std::string> woken() { return std::exchange(world.wiring().woken, {}); }
  /// Simulates a poll of Slurm after which these jobs and nodes have changed, and returns the keys that it wakes.
  std::vector<std::string> poll(std::vector<std::int64_t> jobs, std::vector<std::string> nodes = {}, bool health = false) {
    slurm::Change change;
    change.cluster = "slurm/demo";
    change.before = std::exchange(last, world.snapshot());
    change.now = last;
    change.jobs = std::move(jobs);
    change.nodes = std::move(nodes);
    change.health = health;
    woken();
    world.wiring().slurm_changed(change, {});
    return woken();
  }

  World world;
  slurm::SnapshotPtr last = world.snapshot();
};

TEST_F(Wakes, PodsThatConcernTheBridge) {
  world.waiting_pod();
  EXPECT_THAT(woken(), ElementsAre("jobs ns/p"));
  world.placed_pod(7, "node-2");
  EXPECT_THAT(woken(), ElementsAre("jobs ns/p", "jobs ns/p"));
  world.delete_pod();
  EXPECT_THAT(woken(), ElementsAre("jobs ns/p"));
  world.pod();
  EXPECT_THAT(woken(), IsEmpty()) << "it is none of the bridge's";
  world.delete_pod();
  EXPECT_THAT(woken(), IsEmpty());
  world.pod(Json::parse(R"({"status": {"conditions": [{"type": "SlurmQueued", "status": "True"}]}})"));
  EXPECT_THAT(woken(), ElementsAre("jobs ns/p")) << "it was freed while no bridge ran";
}

TEST_F(Wakes, ThePodOfAJob) {
  world.job(7, "PENDING");
  EXPECT_THAT(poll({7}), ElementsAre("jobs ns/p"));
  EXPECT_THAT(poll({}), IsEmpty());
  world.jobs.clear();
  EXPECT_THAT(poll({7}), ElementsAre("jobs ns/p")) << "the job is gone";
  world.job(8, "RUNNING").details = nullptr;
  EXPECT_THAT(poll({8}), IsEmpty());
}

TEST_F(Wakes, WaitingPodsWhenOtherNodesCanRunThem) {
  world.waiting_pod();
  EXPECT_THAT(poll({}, {"node-1"}), IsEmpty()) << "only its state changed";
  world.slurm_node("node-3");
  EXPECT_THAT(poll({}, {"node-3"}), ElementsAre("jobs ns/p"));
  world.slurm_node("node-3", {"other"});
  EXPECT_THAT(poll({}, {"node-3"}), ElementsAre("jobs ns/p"));
  woken();
  world.node("node-1", {{"metadata", {{"annotations", {{"a", "b"}}}}}});
  EXPECT_THAT(woken(), IsEmpty());
  world.node("node-1", {{"spec", {{"unschedulable", true}}}});
  EXPECT_THAT(woken(), ::testing::Each("jobs ns/p"));
  world.placed_pod(7, "node-2");
  woken();
  world.node("node-1");
  EXPECT_THAT(woken(), IsEmpty()) << "it has its node";
}

TEST_F(Wakes, AllPodsWhenSlurmIsHeardAgain) {
  world.placed_pod(7, "node-2");
  EXPECT_THAT(poll({}, {}, true), ElementsAre("jobs ns/p"));
  world.job(7, "RUNNING");
  poll({7});
  world.delete_pod();
  EXPECT_THAT(poll({}, {}, true), ElementsAre("jobs ns/p")) << "its job could not be cancelled before";
}

/// If a pod is deleted while Slurm does not answer, the pass for the key of the pod has no effect. So the key is woken again
/// later.
TEST_F(Wakes, PodsThatAreGoneWhenSlurmIsHeardAgain) {
  world.job(7, "RUNNING");
  poll({7});
  EXPECT_THAT(poll({}, {}, true), ElementsAre("jobs ns/p"));
}

/// A slow Slurm must not delay the eviction of a pod.
TEST_F(Wakes, APodWhoseJobHasEndedWaitsForNoSlurm) {
  EXPECT_EQ(world.controller().share(world.key), "slurm/demo") << "there may be a job to cancel";
  world.waiting_pod();
  EXPECT_EQ(world.controller().share(world.key), "slurm/demo");
  world.placed_pod(7, "node-2");
  world.job(7, "RUNNING");
  poll({7});
  EXPECT_EQ(world.controller().share(world.key), "slurm/demo");
  world.job(7, "CANCELLED");
  poll({7});
  EXPECT_EQ(world.controller().share(world.key), "");
}

TEST_F(Wakes, RightsAreThoseThatItNeeds) {
  EXPECT_EQ(world.wiring().rights.rules(), Json::parse(R"([
    {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
    {"apiGroups": [""], "resources": ["namespaces", "nodes"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "patch", "delete"]},
    {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]}])"));
}

TEST_F(Wakes, PodsOnANodeThatIsReadyOrNotAnyMore) {
  world.placed_pod(7, "node-2");
  woken();
  world.node("node-1", {{"status", {{"conditions", World::ready("False")}}}});
  EXPECT_THAT(woken(), IsEmpty());
  world.node("node-2", {{"status", {{"conditions", World::ready("False")}}}});
  EXPECT_THAT(woken(), ::testing::Each("jobs ns/p"));
}

TEST(Counts, OfPodsAndJobs) {
  World world;
  JobsController& controller = world.controller();
  std::vector<std::string> seen;
  controller.on_placed = [&](const JobId& job) { seen.push_back("placed for " + std::to_string(job.number)); };
  controller.on_told_to_end = [&](const std::string& reason) { seen.push_back("ends: " + reason); };
  const core::WallTime now{std::chrono::seconds{World::submitted(7) + 90}};
  const auto counts = [&] {
    (void)world.plan();
    return controller.counts(now);
  };
  world.waiting_pod();
  world.job(7, "PENDING");
  EXPECT_EQ(counts().waiting, 1U);
  EXPECT_EQ(counts().oldest, core::Duration{90000});
  EXPECT_EQ(counts().orphans, 0U);
  world.placed_pod(7, "node-2");
  EXPECT_EQ(counts().placed, 1U);
  EXPECT_EQ(counts().missing, 0U);
  world.jobs.clear();
  EXPECT_EQ(counts().missing, 1U);
  world.health = slurm::Snapshot::Health::kStale;
  EXPECT_EQ(counts().missing, 0U) << "nothing is known";
  world.health = slurm::Snapshot::Health::kComplete;
  world.job(8, "RUNNING", "other");
  world.job(9, "RUNNING", "other", "cluster-b");
  world.job(10, "CANCELLED", "other");
  EXPECT_EQ(counts().orphans, 1U);
  world.placed_pod(7, "node-2", {{"status", {{"conditions", Json::parse(R"([{"type": "SlurmEnded", "status": "True",
                                                                             "reason": "Cancelled"}])")}}}});
  EXPECT_THAT(seen, ElementsAre("placed for 7", "ends: Cancelled"));
}

/// The jobs of another Slurm cluster can have the same numbers.
TEST(Counts, PodsOfAnotherBridgeAreNotCounted) {
  World world;
  world.settings.managed_namespaces = {"other"};
  JobsController& controller = world.controller();
  int told = 0;
  controller.on_placed = [&](const JobId&) { ++told; };
  controller.on_told_to_end = [&](const std::string&) { ++told; };
  const Json ended{{"status", {{"conditions", Json::parse(R"([{"type": "SlurmEnded", "status": "True"}])")}}}};
  const auto counts = [&] {
    (void)world.plan();
    return controller.counts(world.now);
  };
  world.job(7, "RUNNING", "another");
  world.waiting_pod();
  EXPECT_EQ(counts().waiting, 0U);
  world.placed_pod(7, "node-2", ended);
  EXPECT_EQ(counts().placed, 0U);
  EXPECT_EQ(counts().missing, 0U);
  EXPECT_EQ(counts().orphans, 1U) << "its pod is gone";
  EXPECT_EQ(told, 0);
  EXPECT_THAT(controller.left(), ElementsAre("job 7"));
  world.job(7, "RUNNING");
  EXPECT_EQ(counts().placed, 1U) << "the namespace was managed before";
  EXPECT_EQ(counts().orphans, 0U);
  EXPECT_THAT(controller.left(), ElementsAre("pod ns/p", "job 7"));
  world.waiting_pod();
  EXPECT_EQ(counts().waiting, 1U);
  world.placed_pod(7, "node-2", ended);
  EXPECT_EQ(told, 2);
}

}  // namespace
}  // namespace bridge::jobs
