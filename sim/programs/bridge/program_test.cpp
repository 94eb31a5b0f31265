#include "sim/programs/bridge/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "bridge/common/groups.hpp"
#include "bridge/common/names.hpp"
#include "sim/histories/trials.hpp"

namespace sim {
namespace {

using core::Json;
using namespace std::chrono_literals;
using testing::IsEmpty;
namespace res = kube::resources;

/// A world with the bridge alone.
struct BridgeOnly : World {
  explicit BridgeOnly(std::uint64_t seed) : World({.seed = seed}, only()) {}
  static std::vector<std::unique_ptr<Program>> only() {
    std::vector<std::unique_ptr<Program>> out;
    out.push_back(std::make_unique<BridgeProgram>());
    return out;
  }
  BridgeProgram& program() { return static_cast<BridgeProgram&>(*programs().front()); }
  SimSlurm& slurm() { return program().slurm(); }
  void begin() {
    program().add_nodes(*this);
    start(program());
    loop().run_for(10s);
  }
  void make_pod(const std::string& name, const char* cpu = "1", const char* memory = "1000Mi", Json annotations = nullptr) {
    Json pod = bridge_pod(name, cpu, memory);
    pod["metadata"]["namespace"] = kNamespace;
    if (annotations.is_object()) pod["metadata"]["annotations"] = std::move(annotations);
    ASSERT_TRUE(api().create(res::kPod, pod));
  }
  void make_member(const std::string& name, const std::string& gang) {
    Json pod = bridge_pod(name, "1", "1000Mi");
    pod["metadata"]["namespace"] = kNamespace;
    pod["metadata"]["labels"][std::string(bridge::kLabelPodGroup)] = gang;
    (void)api().create(res::kPod, pod);
  }
  void make_group(const std::string& name, int size) {
    Json group{{"apiVersion", "scheduling.x-k8s.io/v1alpha1"}, {"kind", "PodGroup"}};
    group["metadata"] = {{"name", name}, {"namespace", kNamespace}};
    group["spec"]["minMember"] = size;
    (void)api().create(bridge::object_of({kNamespace, "podgroup/" + name}).resource, group);
  }
  /// Returns how many jobs of the gang have not ended.
  int jobs_of(const std::string& gang) {
    int out = 0;
    for (const auto& [id, job] : slurm().jobs())
      out += !job.ended() && job.request.admin_comment.find("podgroup/" + gang + "\"") != std::string::npos ? 1 : 0;
    return out;
  }
  std::string node_of(const std::string& pod) {
    const Json* found = find(res::kPod, pod);
    return found == nullptr ? "" : core::get_string(*found, {"spec", "nodeName"});
  }
  std::string phase(const std::string& pod) {
    const Json* found = find(res::kPod, pod);
    return found == nullptr ? "absent" : core::get_string(*found, {"status", "phase"});
  }
  std::string condition(const std::string& pod, std::string_view type) {
    const Json* found = find(res::kPod, pod);
    for (const Json& one : found == nullptr ? Json::array() : (*found)["status"].value("conditions", Json::array())) {
      if (one["type"] == type) return one["status"].get<std::string>() + " " + one.value("reason", "");
    }
    return "none";
  }
};

/// Returns the latest events, for the report of a failing seed.
std::string notes_of(World& world) {
  std::string out;
  for (const std::string& note : world.oracles().notes()) out += "\n  " + note;
  return out;
}

/// Reports whether to run the long tests (make test-long): more histories, and each fault at each write. They take hours.
bool runs_whole() {
  return std::getenv("SIM_WHOLE") != nullptr;
}

/// Runs the story with each fault at every `step`-th write, or at every write in the long tests. The story must end as it does
/// without faults.
void at_some_writes(void (*story)(BridgeOnly&), std::uint64_t step) {
  BridgeOnly plain(7);
  story(plain);
  EXPECT_THAT(plain.oracles().violations(), IsEmpty());
  const std::uint64_t writes = plain.faults().writes();
  EXPECT_GE(writes, 6U);
  if (runs_whole()) step = 1;
  std::uint64_t first = 0;
  for (const Trial& trial : all_trials()) {
    if (trial.processes != 1) continue;
    // Each fault begins at a different write, so that all faults together cover all writes.
    for (std::uint64_t write = first++ % step; write < writes; write += step) {
      SCOPED_TRACE(trial.name + " at write " + std::to_string(write));
      BridgeOnly world(7);
      trial.arm(world, write);
      story(world);
      EXPECT_THAT(world.oracles().violations(), IsEmpty());
    }
  }
}

TEST(BridgeProgram, KeepsItsPromisesInEveryHistory) {
  for (std::uint64_t seed = 1; seed <= (runs_whole() ? 200 : 4); ++seed) {
    BridgeOnly world(seed);
    EXPECT_THAT(History(world).run(), IsEmpty()) << "seed " << seed << notes_of(world);
  }
}

/// One pod lives until it is deleted, another pod ends because its job is cancelled.
void two_pods(BridgeOnly& world) {
  world.begin();
  world.make_pod("p");
  world.make_pod("q");
  EXPECT_THAT(world.settle(5min), IsEmpty());
  world.loop().run_for(30s);
  world.remove(res::kPod, "p");
  for (const auto& [id, job] : world.slurm().jobs()) {
    if (job.request.admin_comment.find("\"q\"") != std::string::npos) world.slurm().cancel(id);
  }
  EXPECT_THAT(world.settle(10min), IsEmpty());
  EXPECT_EQ(world.phase("p"), "absent");
  EXPECT_NE(world.phase("q"), "Running");
}

TEST(BridgeProgram, EndsAsWithoutTheFaultAtSomeWrites) {
  at_some_writes(two_pods, 24);
}

/// A gang starts, one of its pods is replaced, and its job is cancelled.
void a_gang(BridgeOnly& world) {
  world.begin();
  world.make_group("g", 2);
  world.make_member("g-0", "g");
  world.make_member("g-1", "g");
  EXPECT_THAT(world.settle(5min), IsEmpty());
  world.loop().run_for(30s);
  world.remove(res::kPod, "g-0");
  EXPECT_THAT(world.settle(5min), IsEmpty());
  world.loop().run_for(1min);
  world.make_member("g-0", "g");
  const auto runs = [&] { return world.phase("g-0") == "Running" && world.phase("g-1") == "Running"; };
  for (int i = 0; i < 90 && !runs(); ++i) world.loop().run_for(10s);
  EXPECT_TRUE(runs()) << world.phase("g-0") << " and " << world.phase("g-1");
  EXPECT_NE(world.node_of("g-0"), world.node_of("g-1"));
  for (const auto& [id, job] : world.slurm().jobs()) world.slurm().cancel(id);
  EXPECT_THAT(world.settle(10min), IsEmpty());
  EXPECT_NE(world.phase("g-0"), "Running");
  EXPECT_NE(world.phase("g-1"), "Running");
  EXPECT_EQ(world.jobs_of("g"), 0);
}

TEST(BridgeProgram, AGangHasOneJob) {
  BridgeOnly world(7);
  world.begin();
  world.make_member("g-0", "g");
  world.make_member("g-1", "g");
  world.loop().run_for(10s);
  EXPECT_EQ(world.condition("g-0", bridge::kConditionQueued), "False NoGroup");
  world.make_group("g", 3);
  world.loop().run_for(10s);
  EXPECT_EQ(world.condition("g-0", bridge::kConditionQueued), "False GroupIncomplete");
  EXPECT_EQ(world.jobs_of("g"), 0);
  world.make_member("g-2", "g");
  world.loop().run_for(30s);
  EXPECT_EQ(world.jobs_of("g"), 1);
  for (const char* name : {"g-0", "g-1", "g-2"}) EXPECT_EQ(world.phase(name), "Running") << name;
  for (const char* name : {"g-0", "g-1", "g-2"}) world.remove(res::kPod, name);
  EXPECT_THAT(world.settle(5min), IsEmpty());
  EXPECT_EQ(world.jobs_of("g"), 0);
  EXPECT_THAT(world.oracles().violations(), IsEmpty());
}

TEST(BridgeProgram, AGangEndsAsWithoutTheFaultAtSomeWrites) {
  at_some_writes(a_gang, 40);
}

TEST(BridgeProgram, APodThatNoNodeCanRunIsToldAndStays) {
  BridgeOnly world(1);
  world.begin();
  world.make_pod("too-big", "1", "90Gi");
  world.make_pod("nowhere", "1", "1Gi", {{std::string(bridge::kAnnotationPrefix) + "partition", "nowhere"}});
  world.loop().run_for(2s);
  EXPECT_EQ(world.condition("too-big", bridge::kConditionQueued).substr(0, 5), "False");
  EXPECT_EQ(world.condition("nowhere", bridge::kConditionQueued), "False Refused");
  world.loop().run_for(10min);
  EXPECT_EQ(world.phase("too-big"), "Pending");
  EXPECT_EQ(world.phase("nowhere"), "Pending");
  EXPECT_THAT(world.oracles().violations(), IsEmpty());
}

/// slurmctld refuses a job that the bridge considers possible, because slurmctld knows more about the nodes. The refused job
/// stays in Slurm's list of jobs.
TEST(BridgeProgram, APodWhoseJobSlurmRefusesIsNotLost) {
  BridgeOnly world(1);
  world.begin();
  world.make_pod("p", "1", "1Gi", {{std::string(bridge::kAnnotationPrefix) + "mem-per-node", "50Gi"}});
  world.loop().run_for(10min);
  EXPECT_EQ(world.phase("p"), "Pending");
  EXPECT_EQ(world.condition("p", bridge::kConditionEnded), "none");
  EXPECT_THAT(world.oracles().violations(), IsEmpty());
}

/// Slurm loses the excluded nodes of a waiting job if one of them is deleted and the job is changed.
TEST(BridgeProgram, APodRunsOnlyWhereItMayThoughSlurmForgetsItsExcludedNodes) {
  BridgeOnly world(1);
  world.begin();
  SimNodeUpdate drain;
  drain.state = "DRAIN";
  drain.reason = "maintenance";
  (void)world.slurm().update_node("kube-0", drain, "admin");
  Json pod = bridge_pod("p", "1", "1Gi");
  pod["metadata"]["namespace"] = World::kNamespace;
  pod["spec"]["nodeSelector"]["kubernetes.io/hostname"] = "kube-0";
  ASSERT_TRUE(world.api().create(res::kPod, pod));
  world.loop().run_for(10s);
  ASSERT_EQ(world.slurm().delete_node("kube-2", "admin"), SlurmErrno::kSuccess);
  world.loop().run_for(5min);
  SimNodeUpdate resume;
  resume.state = "RESUME";
  (void)world.slurm().update_node("kube-0", resume, "admin");
  EXPECT_THAT(world.settle(10min), IsEmpty());
  world.loop().run_for(1min);
  EXPECT_EQ(world.phase("p"), "Running");
  const Json* found = world.find(res::kPod, "p");
  EXPECT_EQ(core::get_string(*found, {"spec", "nodeName"}), "kube-0");
  EXPECT_THAT(world.oracles().violations(), IsEmpty());
}

TEST(BridgeProgram, AJobWhosePodGoesWhileSlurmIsAwayIsReleased) {
  BridgeOnly world(1);
  world.begin();
  for (const char* name : {"kube-0", "kube-1", "kube-2", "kube-3"}) {
    SimNodeUpdate drain;
    drain.state = "DRAIN";
    drain.reason = "maintenance";
    (void)world.slurm().update_node(name, drain, "admin");
  }
  world.make_pod("p");
  world.loop().run_for(10s);
  world.slurm_rates.refused = 1;
  world.loop().run_for(20s);
  world.remove(res::kPod, "p");
  world.loop().run_for(20s);
  world.slurm_rates.refused = 0;
  EXPECT_THAT(world.settle(1min), IsEmpty());
  for (const auto& [id, job] : world.slurm().jobs()) EXPECT_TRUE(job.ended()) << id;
}

/// The job of a pod can end in slurmctld before the pod ends.
TEST(BridgeProgram, TheNextPodWaitsUntilTheEarlierOneIsGone) {
  BridgeOnly world(1);
  world.begin();
  for (const char* name : {"kube-1", "kube-2", "kube-3"}) {
    SimNodeUpdate drain;
    drain.state = "DRAIN";
    drain.reason = "maintenance";
    (void)world.slurm().update_node(name, drain, "admin");
  }
  world.make_pod("first", "4", "7000Mi");
  world.loop().run_for(30s);
  world.make_pod("second", "4", "7000Mi");
  world.loop().run_for(30s);
  ASSERT_EQ(world.phase("first"), "Running");
  ASSERT_EQ(world.phase("second"), "Pending");
  for (const auto& [id, job] : world.slurm().jobs()) {
    if (job.state == SimJob::State::kRunning) {
      world.slurm().cancel(id);
      break;
    }
  }
  EXPECT_THAT(world.settle(5min), IsEmpty());
  world.loop().run_for(1min);
  EXPECT_EQ(world.phase("second"), "Running");
  EXPECT_THAT(world.oracles().violations(), IsEmpty());
}

/// Users can change labels and annotations. Such a change must not end the job of a running pod.
TEST(BridgeProgram, ARunningPodThatLosesItsWordsKeepsItsJob) {
  BridgeOnly world(1);
  world.begin();
  world.make_pod("p");
  world.loop().run_for(30s);
  ASSERT_EQ(world.phase("p"), "Running");
  const std::string label(bridge::kLabelJobId), annotation(bridge::kAnnotationNode);
  const auto words = [&] {
    const Json* pod = world.find(res::kPod, "p");
    return core::get_string(*pod, {"metadata", "labels", label}) + " " +
           core::get_string(*pod, {"metadata", "annotations", annotation});
  };
  const std::string before = words();
  for (const Json& other : {Json(nullptr), Json("99")}) {
    world.merge(res::kPod, "p", {{"metadata", {{"labels", {{label, other}}}, {"annotations", {{annotation, nullptr}}}}}});
    world.loop().run_for(5min);
    EXPECT_EQ(words(), before);
  }
  EXPECT_EQ(world.phase("p"), "Running");
  for (const auto& [id, job] : world.slurm().jobs()) EXPECT_EQ(job.state, SimJob::State::kRunning) << id;
  EXPECT_THAT(world.oracles().violations(), IsEmpty());
}

/// After the loss of its state, slurmctld counts jobs from 1 again, so another job gets the number of the pod's lost job.
TEST(BridgeProgram, APodOutlivesTheStateOfSlurmctld) {
  BridgeOnly world(1);
  world.begin();
  world.make_pod("p");
  world.loop().run_for(30s);
  ASSERT_EQ(world.phase("p"), "Running");
  world.slurm().stop();
  world.program().oracle().state_lost();
  world.slurm().lose_state();
  world.loop().run_for(5s);
  ASSERT_TRUE(world.slurm().start());
  world.program().add_nodes(world);
  for (const char* name : {"q", "r", "s"}) world.make_pod(name, "500m", "500Mi");
  world.loop().run_for(10min);
  EXPECT_EQ(world.phase("p"), "Running");
  EXPECT_EQ(world.condition("p", bridge::kConditionQueued), "False JobMissing");
  EXPECT_GE(world.slurm().jobs().size(), 3U);
  EXPECT_THAT(world.oracles().violations(), IsEmpty());
}

/// slurmctld forgets an ended job after MinJobAge. Newer jobs show that slurmctld has not lost its state.
TEST(BridgeProgram, APodWhoseJobEndedLongAgoEndsWhenTheBridgeIsBack) {
  BridgeOnly world(1);
  world.begin();
  world.make_pod("p");
  world.loop().run_for(30s);
  world.make_pod("q");
  world.loop().run_for(30s);
  ASSERT_EQ(world.phase("p"), "Running");
  ASSERT_EQ(world.phase("q"), "Running");
  world.crash(0, 10min);
  const std::int64_t job = world.slurm().jobs().begin()->first;
  world.slurm().cancel(job);
  world.loop().run_for(9min);
  world.slurm().submit({.user = "alice"});
  world.loop().run_for(10s);
  ASSERT_FALSE(world.slurm().jobs().contains(job));
  EXPECT_EQ(world.phase("p"), "Running");
  world.loop().run_for(5min);
  EXPECT_NE(world.phase("p"), "Running");
  EXPECT_EQ(world.phase("q"), "Running");
}

/// The pod's kubelet does not answer, so nobody can end the pod. After a limit, the bridge cancels the job anyway.
TEST(BridgeProgram, ASilentNodeLosesTheJobsOfItsPods) {
  BridgeOnly world(1);
  world.begin();
  world.make_pod("p");
  world.loop().run_for(30s);
  ASSERT_EQ(world.phase("p"), "Running");
  const std::string node = core::get_string(*world.find(res::kPod, "p"), {"spec", "nodeName"});
  const std::int64_t job = world.slurm().jobs().begin()->first;
  world.kube().nodes().cut_node(node);
  world.loop().run_for(9min);
  EXPECT_EQ(world.slurm().jobs().at(job).state, SimJob::State::kRunning);
  world.loop().run_for(3min);
  EXPECT_EQ(world.slurm().jobs().at(job).state, SimJob::State::kCancelled);
  EXPECT_EQ(world.condition("p", bridge::kConditionEnded), "True NodeNotReady");
  world.kube().nodes().heal_node(node);
  world.loop().run_for(3min);
  EXPECT_EQ(world.phase("p"), "absent") << "it may not run without its job";
  EXPECT_THAT(world.oracles().violations(), IsEmpty());
}

/// The clock of the bridge can differ from that of slurmctld.
TEST(BridgeProgram, APodIsGoneBeforeItsJobReachesItsEndAndNotEarlier) {
  for (const core::Duration ahead : {core::Duration{0}, core::Duration{5min}, core::Duration{-5min}}) {
    BridgeOnly world(1);
    world.begin();
    world.make_pod("p", "1", "1Gi", {{std::string(bridge::kAnnotationPrefix) + "timelimit", "3"}});
    world.loop().run_for(30s);
    ASSERT_EQ(world.phase("p"), "Running");
    world.jump_clock(0, ahead);
    const std::int64_t end = world.slurm().jobs().begin()->second.end;
    world.loop().run_for(core::Duration{1000 * (end - world.slurm().now_seconds() - 40)});
    EXPECT_EQ(world.phase("p"), "Running") << ahead.count();
    world.loop().run_for(30s);
    EXPECT_EQ(world.phase("p"), "absent") << ahead.count();
    EXPECT_LT(world.slurm().now_seconds(), end) << ahead.count();
    EXPECT_THAT(world.oracles().violations(), IsEmpty()) << ahead.count();
  }
}

// --- Nodes ------------------------------------------------------------------------------------------------------------

/// The labelled nodes are registered. One node gets another partition, and another leaves Slurm because it loses its label.
void a_node_comes_and_goes(BridgeOnly& world) {
  world.begin();
  EXPECT_THAT(world.settle(5min), IsEmpty());
  world.make_pod("p");
  EXPECT_THAT(world.settle(5min), IsEmpty());
  world.merge(res::kNode, "kube-0", {{"metadata", {{"annotations", {{std::string(bridge::kAnnotationPartitions), "all"}}}}}});
  world.merge(res::kNode, "kube-1", {{"metadata", {{"labels", {{std::string(bridge::kLabelExternalNode), nullptr}}}}}});
  world.loop().run_for(30s);
  world.remove(res::kPod, "p");
  EXPECT_THAT(world.settle(5min), IsEmpty());
  world.loop().run_for(2min);
  EXPECT_EQ(world.slurm().node("kube-1"), nullptr);
  EXPECT_NE(world.slurm().node("kube-0"), nullptr);
}

TEST(BridgeNodes, EndAsWithoutTheFaultAtSomeWrites) {
  at_some_writes(a_node_comes_and_goes, 48);
}

TEST(BridgeNodes, ALabelledNodeIsRegisteredWithItsPartitionsAndTainted) {
  BridgeOnly world(1);
  world.begin();
  EXPECT_THAT(world.settle(1min), IsEmpty());
  const SimNode* node = world.slurm().node("kube-0");
  ASSERT_NE(node, nullptr);
  EXPECT_TRUE(node->external);
  EXPECT_EQ(node->address, "10.0.0.1");
  EXPECT_EQ(node->cpus, 4);
  EXPECT_EQ(node->real_memory, 8000);
  EXPECT_TRUE(node->partitions.contains("blue"));
  for (const char* name : {"kube-0", "kube-2", "kube-3"})
    EXPECT_NE(world.find(res::kNode, name)->dump().find(std::string(bridge::kTaintManagedNode)), std::string::npos) << name;
}

TEST(BridgeNodes, AChangedNodeIsMadeAgainWithoutItsPod) {
  BridgeOnly world(1);
  world.begin();
  Json pod = bridge_pod("p", "1", "1Gi");
  pod["metadata"]["namespace"] = World::kNamespace;
  pod["spec"]["nodeSelector"]["kubernetes.io/hostname"] = "kube-0";
  ASSERT_TRUE(world.api().create(res::kPod, pod));
  world.loop().run_for(20s);
  ASSERT_EQ(world.phase("p"), "Running");
  world.api().modify(
      res::kNode, {"", "kube-0"}, [](Json& node) { node["status"]["allocatable"]["memory"] = "7000Mi"; }, {}, "status");
  world.loop().run_for(10min);
  ASSERT_NE(world.slurm().node("kube-0"), nullptr);
  EXPECT_TRUE(world.slurm().node("kube-0")->drain);
  EXPECT_EQ(world.slurm().node("kube-0")->real_memory, 8000) << "its pod still runs";
  EXPECT_EQ(world.phase("p"), "Running");
  world.remove(res::kPod, "p");
  EXPECT_THAT(world.settle(5min), IsEmpty());
  world.loop().run_for(1min);
  EXPECT_EQ(world.slurm().node("kube-0")->real_memory, 7000);
  EXPECT_FALSE(world.slurm().node("kube-0")->drain);
  EXPECT_THAT(world.oracles().violations(), IsEmpty());
}

/// slurmctld sends the message that suspends the job to the node, where no slurmd answers.
TEST(BridgeNodes, AnExternalNodeGetsJobsAgainAfterASuspension) {
  BridgeOnly world(1);
  world.begin();
  const auto pod_on_it = [&](const std::string& name) {
    Json pod = bridge_pod(name, "1", "1Gi");
    pod["metadata"]["namespace"] = World::kNamespace;
    pod["spec"]["nodeSelector"]["kubernetes.io/hostname"] = "kube-0";
    ASSERT_TRUE(world.api().create(res::kPod, pod));
  };
  pod_on_it("p");
  world.loop().run_for(20s);
  ASSERT_EQ(world.phase("p"), "Running");
  const auto jobs = world.slurm().jobs_on("kube-0");
  ASSERT_EQ(jobs.size(), 1U);
  const std::int64_t job = jobs.front()->id;
  ASSERT_TRUE(world.slurm().suspend(job));
  ASSERT_TRUE(world.slurm().resume(job));
  world.loop().run_for(2min);
  EXPECT_EQ(world.phase("p"), "Running");
  EXPECT_EQ(world.slurm().jobs_on("kube-0").size(), 1U);
  EXPECT_FALSE(world.slurm().node("kube-0")->drain);
  world.remove(res::kPod, "p");
  pod_on_it("q");
  EXPECT_THAT(world.settle(5min), IsEmpty());
  EXPECT_EQ(world.node_of("q"), "kube-0");
  EXPECT_THAT(world.oracles().violations(), IsEmpty());
}

/// A busy external node that loses its label is drained once and stays drained. (The Go bridge drained and freed such a node
/// alternately.)
TEST(BridgeNodes, ABusyNodeThatLeavesIsDrainedOnce) {
  BridgeOnly world(1);
  world.begin();
  Json pod = bridge_pod("p", "1", "1Gi");
  pod["metadata"]["namespace"] = World::kNamespace;
  pod["spec"]["nodeSelector"]["kubernetes.io/hostname"] = "kube-0";
  ASSERT_TRUE(world.api().create(res::kPod, pod));
  world.loop().run_for(20s);
  ASSERT_EQ(world.phase("p"), "Running");
  world.merge(res::kNode, "kube-0", {{"metadata", {{"labels", {{std::string(bridge::kLabelExternalNode), nullptr}}}}}});
  world.loop().run_for(10s);
  for (int i = 0; i < 60; ++i) {
    world.loop().run_for(1s);
    ASSERT_NE(world.slurm().node("kube-0"), nullptr);
    EXPECT_TRUE(world.slurm().node("kube-0")->drain);
  }
  EXPECT_EQ(world.phase("p"), "Running");
}

/// If a Kubernetes node is deleted, the bridge deletes the Slurm node that it created. (The Go bridge left that node for ever.)
TEST(BridgeNodes, WithTheKubernetesNodeTheSlurmNodeGoes) {
  BridgeOnly world(1);
  world.begin();
  world.kube().nodes().delete_node("kube-0");
  EXPECT_THAT(world.settle(5min), IsEmpty());
  EXPECT_EQ(world.slurm().node("kube-0"), nullptr);
  world.kube().nodes().delete_node("kube-2");
  EXPECT_THAT(world.settle(5min), IsEmpty());
  world.loop().run_for(1min);
  ASSERT_NE(world.slurm().node("kube-2"), nullptr) << "an administrator made it";
  EXPECT_TRUE(world.slurm().node("kube-2")->drain);
}

TEST(BridgeNodes, WhatSomebodyElseDrainedStaysDrainedAndInSlurm) {
  BridgeOnly world(1);
  world.begin();
  SimNodeUpdate drain;
  drain.state = "DRAIN";
  drain.reason = "maintenance";
  (void)world.slurm().update_node("kube-0", drain, "admin");
  world.merge(res::kNode, "kube-0", {{"spec", {{"unschedulable", true}}}});
  world.loop().run_for(30s);
  world.merge(res::kNode, "kube-0", {{"spec", {{"unschedulable", false}}}});
  world.loop().run_for(30s);
  EXPECT_EQ(world.slurm().node("kube-0")->reason, "maintenance");
  EXPECT_TRUE(world.slurm().node("kube-0")->drain);
  EXPECT_NE(world.find(res::kNode, "kube-0")->dump().find("\"value\":\"maintenance\""), std::string::npos)
      << "it is the taint's value";
  world.merge(res::kNode, "kube-0", {{"metadata", {{"labels", {{std::string(bridge::kLabelExternalNode), "false"}}}}}});
  world.loop().run_for(5min);
  ASSERT_NE(world.slurm().node("kube-0"), nullptr);
  EXPECT_EQ(world.slurm().node("kube-0")->reason, "maintenance");
  SimNodeUpdate resume;
  resume.state = "RESUME";
  (void)world.slurm().update_node("kube-0", resume, "admin");
  EXPECT_THAT(world.settle(5min), IsEmpty());
  EXPECT_EQ(world.slurm().node("kube-0"), nullptr);
  EXPECT_THAT(world.oracles().violations(), IsEmpty());
}

}  // namespace
}  // namespace sim
