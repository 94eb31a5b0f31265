#include "bridge/nodes/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bridge/common/held.hpp"
#include "bridge/nodes/taints.hpp"
#include "bridge/nodes/testing/world.hpp"

namespace bridge::nodes {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Json;
using testing::kInstallation;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kCordoned = "slurm-bridge: Kubernetes node (a) was cordoned";
const std::string kCordonedHere = kCordoned + ", cluster " + kInstallation;
const Json kCordon{{"spec", {{"unschedulable", true}}}};
const Json kNotReady{{"status", {{"conditions", Json::array({{{"type", "Ready"}, {"status", "Unknown"}}})}}}};

struct NodesPlanTest : ::testing::Test {
  testing::World world;

  static Json taint(const char* effect = "NoSchedule", const char* value = nullptr) {
    Json out{{"key", kTaintManagedNode}, {"effect", effect}};
    if (value != nullptr) out["value"] = value;
    return out;
  }
  static Json with_taints(Json taints) { return {{"spec", {{"taints", std::move(taints)}}}}; }
  /// Returns the JSON patch of the taints; null if the plan has no such step.
  Json taint_patch(const char* verb = "taint Node") {
    const Json act = world.act(verb);
    return act.is_null() ? Json() : act["patch"];
  }
};

// --- The bridge is removed --------------------------------------------------------------------------------------------

TEST_F(NodesPlanTest, ABridgeThatRetiresRegistersNoNodeAndRemovesItsOwn) {
  testing::World retiring(true);
  retiring.external_host("a");
  EXPECT_THAT(retiring.steps(), IsEmpty());
  retiring.external_host("a", with_taints(Json::array({taint()})));
  retiring.own_node("a");
  EXPECT_EQ(retiring.act("drain")["reason"], "slurm-bridge is being removed");
  EXPECT_THAT(retiring.steps(), Not(Contains("untaint Node a"))) << "pods may still run there for Slurm";
  retiring.own_node("a", "IDLE+DRAIN", "slurm-bridge: slurm-bridge is being removed");
  retiring.job_on("a");
  EXPECT_THAT(retiring.steps(), Not(Contains("remove Slurm node a")));
  retiring.jobs.clear();
  EXPECT_THAT(retiring.steps(), Contains("remove Slurm node a"));
  retiring.nodes.clear();
  (void)retiring.steps();
  retiring.mono = retiring.mono + 2min;
  EXPECT_THAT(retiring.steps(), Contains("untaint Node a"));
}

TEST_F(NodesPlanTest, ABridgeThatRetiresLeavesOtherNodesAsTheyWere) {
  testing::World retiring(true);
  retiring.host("a", {{"spec", {{"unschedulable", true}, {"taints", Json::array({taint()})}}}});
  retiring.slurm_node("a", "IDLE+DRAIN", kCordoned);
  EXPECT_THAT(retiring.steps(), ElementsAre("untaint Node a", "resume Slurm node a"));
  retiring.slurm_node("a", "IDLE+DRAIN", "maintenance");
  EXPECT_THAT(retiring.steps(), ElementsAre("untaint Node a"));
  retiring.own_node("a", "IDLE", "", "old", "cluster-b");
  EXPECT_THAT(retiring.steps(), ElementsAre("untaint Node a"));
}

TEST_F(NodesPlanTest, ABridgeThatRetiresTaintsANodeUntilItsPodsAreGone) {
  testing::World retiring(true);
  retiring.host("a", with_taints(Json::array({taint()})));
  retiring.slurm_node("a").extra = extra_of({{12}, kInstallation});
  retiring.bridge_job(12, "a");
  retiring.placed_pod("p", 12, "a");
  EXPECT_THAT(retiring.steps(), IsEmpty());
  EXPECT_THAT(retiring.controller().left(), ElementsAre("node a", "Slurm node a"));
  retiring.jobs.clear();
  EXPECT_THAT(retiring.steps(), IsEmpty()) << "the pod still ends";
  retiring.delete_pod("p");
  EXPECT_THAT(retiring.steps(), IsEmpty()) << "another pod of the job may come to light";
  retiring.mono = retiring.mono + 5s;
  EXPECT_THAT(retiring.steps(), ElementsAre("untaint Node a", "hold Slurm node a"));
  retiring.host("a");
  EXPECT_THAT(retiring.controller().left(), ElementsAre("Slurm node a")) << "the prolog would wait for ever";
  retiring.nodes["a"].extra = R"({"slurm-bridge":""})";
  (void)retiring.steps();
  EXPECT_THAT(retiring.controller().left(), IsEmpty());
  // A node that does not respond cannot be resumed yet, so retirement waits for it.
  retiring.slurm_node("a", "DOWN+DRAIN+NOT_RESPONDING", kCordoned);
  EXPECT_THAT(retiring.steps(), IsEmpty());
  EXPECT_THAT(retiring.controller().left(), ElementsAre("Slurm node a"));
  retiring.own_node("b", "IDLE+DRAIN", "bad DIMM");
  retiring.nodes.erase("a");
  (void)retiring.plan();
  EXPECT_THAT(retiring.controller().left(), ElementsAre("Slurm node b")) << "its Kubernetes node is gone";
  retiring.nodes.erase("b");
  // On an external node that somebody else registered, the taint stays while a pod of the bridge is there.
  retiring.host("a", with_taints(Json::array({taint()})));
  retiring.slurm_node("a", "IDLE+EXTERNAL");
  retiring.placed_pod("p", 12, "a");
  EXPECT_THAT(retiring.steps(), IsEmpty());
}

// --- Registration -----------------------------------------------------------------------------------------------------

TEST_F(NodesPlanTest, ALabelledNodeIsRegisteredWithWhatItCanGive) {
  world.external_host("a", {{"status", {{"allocatable", {{"nvidia.com/gpu", "2"}}}}}}, "batch, gpu,batch");
  EXPECT_THAT(world.steps(), ElementsAre("create Slurm node a"));
  const std::string line = world.act("create")["line"];
  EXPECT_THAT(line, StartsWith("NodeName=a NodeAddr=10.0.0.7 State=EXTERNAL CPUs=7 Sockets=1 CoresPerSocket=7 ThreadsPerCore=1 "
                               "RealMemory=16384 Features=slurm-bridge/cluster-a/"));
  EXPECT_TRUE(line.ends_with(",batch,gpu Gres=gpu:2 GresConf=\"count=2,name=gpu\"")) << line;
}

TEST_F(NodesPlanTest, TheLabelOfTheSeedWorksAsWellAndFalseCountsAsAbsent) {
  const auto labelled = [&](std::string_view label, const char* value) {
    world.host("a", {{"metadata", {{"labels", {{std::string(label), value}}}}}});
    return world.steps();
  };
  EXPECT_THAT(labelled(kLabelBridgeExternalNode, ""), ElementsAre("create Slurm node a"));
  EXPECT_THAT(labelled(kLabelBridgeExternalNode, "false"), IsEmpty());
  EXPECT_THAT(labelled(kLabelExternalNode, "false"), IsEmpty());
  EXPECT_THAT(labelled(kLabelExternalNode, "yes"), ElementsAre("create Slurm node a"));
}

TEST_F(NodesPlanTest, ItsNameInSlurmIsThatOfItsLabel) {
  world.external_host("a", {{"metadata", {{"labels", {{std::string(kLabelSlurmNodeName), "s"}}}}}});
  EXPECT_THAT(world.steps("a"), IsEmpty());
  EXPECT_THAT(world.act("create", "s")["line"].get<std::string>(), StartsWith("NodeName=s "));
}

TEST_F(NodesPlanTest, GpusOfTwoMakersAreNotRegisteredAndThatIsTold) {
  world.external_host("a", {{"status", {{"allocatable", {{"nvidia.com/gpu", "2"}, {"amd.com/gpu", "1"}}}}}});
  EXPECT_THAT(world.act("create")["line"].get<std::string>(), Not(HasSubstr("Gres")));
  world.own_node("a");
  EXPECT_EQ(world.condition(),
            "True InService: Slurm has the node a; its GPUs are not registered, because a job cannot choose "
            "between nvidia.com/gpu and amd.com/gpu");
}

TEST_F(NodesPlanTest, APartitionThatSlurmDoesNotHaveIsTold) {
  world.external_host("a", {}, "batch,nowhere");
  EXPECT_THAT(world.steps(), ElementsAre("report Node a"));
  EXPECT_THAT(world.condition(), StartsWith("False Invalid: annotation "));
  EXPECT_THAT(world.condition(), HasSubstr("Slurm has no partition \"nowhere\""));
}

TEST_F(NodesPlanTest, ANodeThatTakesNoPodsIsNotRegisteredYet) {
  world.external_host("a", kCordon);
  EXPECT_THAT(world.condition(), StartsWith("False NotReady: the Kubernetes node is cordoned"));
  world.external_host("a", kNotReady);
  EXPECT_THAT(world.condition(), StartsWith("False NotReady: the Kubernetes node is not ready"));
  world.external_host("a", {{"status", {{"addresses", Json::array()}}}});
  EXPECT_THAT(world.condition(), StartsWith("False Invalid: the Kubernetes node has no InternalIP"));
  world.external_host("a", {{"metadata", {{"deletionTimestamp", "2026-01-01T10:00:00Z"}}}});
  EXPECT_THAT(world.steps(), ElementsAre("report Node a"));
}

TEST_F(NodesPlanTest, WhatSlurmRefusesIsToldAndTriedAgainLater) {
  world.external_host("a");
  plan::Outcome& failed = world.outcomes[{"create", "Slurm node", "a"}];
  failed.state = plan::Outcome::State::kFailed;
  failed.error = core::Error{core::ErrorCode::kAlreadyExists, "Slurm has a node of this name", 0, {}, {}};
  failed.last = world.mono - 10s;
  EXPECT_THAT(world.steps(), ElementsAre("report Node a"));
  EXPECT_EQ(world.condition(), "False Refused: Slurm has a node of this name");
  EXPECT_EQ(world.plan().wake(), 20s);
  failed.last = world.mono - 31s;
  EXPECT_THAT(world.steps(), Contains("create Slurm node a"));
}

TEST_F(NodesPlanTest, NothingIsDoneWhileSlurmDoesNotAnswerOrIsTooOld) {
  world.external_host("a");
  world.health = slurm::Snapshot::Health::kStale;
  EXPECT_THAT(world.steps(), IsEmpty());
  world.health = slurm::Snapshot::Health::kComplete;
  world.capabilities.external_jobs = false;
  EXPECT_THAT(world.steps(), IsEmpty());
}

TEST_F(NodesPlanTest, ANodeThatSlurmHasAlreadyIsNotTakenOver) {
  world.external_host("a", {}, "batch");
  world.slurm_node("a", "IDLE+EXTERNAL");
  EXPECT_THAT(world.steps(), ElementsAre("taint Node a", "report Node a"));
  EXPECT_THAT(world.condition(), StartsWith("True RegisteredByOthers: "));
  // The Slurm node is not removed either if the label of the Kubernetes node is removed.
  world.host("a");
  EXPECT_THAT(world.steps(), ElementsAre("taint Node a", "report Node a"));
  world.delete_host("a");
  EXPECT_THAT(world.steps(), ElementsAre("drain Slurm node a")) << "its Kubernetes node is gone";
}

TEST_F(NodesPlanTest, ANodeOfAnotherKubernetesClusterIsLeftAlone) {
  const auto theirs = [&](const std::string& state, const std::string& reason = "") {
    world.own_node("a", state, reason, "old", "cluster-b");
  };
  world.external_host("a", kCordon);
  theirs("IDLE");
  EXPECT_THAT(world.steps(), ElementsAre("report Node a")) << "no drain, and no taint";
  EXPECT_EQ(world.condition(),
            "False NameInUse: in Slurm, a is a node of the Kubernetes cluster with the UID cluster-b: "
            "give this one another name with the label slinky.slurm.net/slurm-nodename");
  world.external_host("a", with_taints(Json::array({taint()})));
  theirs("IDLE+DRAIN", kCordoned);
  EXPECT_THAT(world.steps(), ElementsAre("untaint Node a", "report Node a")) << "their drain is not undone";
  world.age = 10min;
  EXPECT_THAT(world.steps(), IsEmpty()) << "an old answer";
  world.age = core::Duration{0};
  (void)world.plan();
  world.delete_host("a");
  theirs("IDLE");
  EXPECT_THAT(world.steps(), IsEmpty());
}

// --- Partitions -------------------------------------------------------------------------------------------------------

TEST_F(NodesPlanTest, FeaturesFollowThePartitions) {
  world.external_host("a", {}, "gpu");
  slurm::Node& node = world.own_node("a");
  node.features.insert(node.features.end(), {"batch", "rack-7"});
  node.active_features = node.features;
  EXPECT_THAT(world.steps(), Contains("update Slurm node a"));
  const Json act = world.act("update");
  EXPECT_EQ(act["mark"], node.features.front());
  EXPECT_EQ(act["features"]["values"], Json::array({"gpu"}));
  EXPECT_EQ(act["features"]["obsolete"], Json::array({"batch", "gpu"}));
  node.features[1] = node.active_features[1] = "gpu";
  EXPECT_THAT(world.steps(), Not(Contains("update Slurm node a"))) << "what somebody else added stays";
  EXPECT_THAT(world.condition(), HasSubstr("but not in partition gpu: slurm.conf needs a NodeSet"));
  node.partitions = {"gpu"};
  EXPECT_EQ(world.condition(), "True InService: Slurm has the node a");
}

TEST_F(NodesPlanTest, AnUnknownPartitionLeavesTheFeaturesAsTheyAre) {
  world.external_host("a", {}, "gpu");
  world.own_node("a").features.push_back("gpu");
  world.external_host("a", {}, "gpu,nowhere");
  EXPECT_THAT(world.steps(), ElementsAre("taint Node a", "report Node a"));
  EXPECT_THAT(world.condition(), StartsWith("True Invalid: "));
}

// --- Removal ----------------------------------------------------------------------------------------------------------

TEST_F(NodesPlanTest, WithItsLabelItLeavesSlurmOnceNoJobHoldsIt) {
  world.host("a", with_taints(Json::array({taint()})));
  world.own_node("a");
  const std::string why = "Kubernetes node (a) is not labelled as external any more";
  EXPECT_EQ(world.act("drain")["reason"], why);
  world.own_node("a", "MIXED+DRAIN", "slurm-bridge: " + why);
  world.job_on("a");
  EXPECT_THAT(world.steps(), ElementsAre("report Node a"));
  world.own_node("a", "IDLE+DRAIN", "slurm-bridge: " + why);
  EXPECT_THAT(world.steps(), ElementsAre("report Node a")) << "the job still holds it";
  world.jobs.clear();
  EXPECT_THAT(world.steps(), Contains("remove Slurm node a"));
  EXPECT_THAT(world.act("remove")["mark"].get<std::string>(), StartsWith("slurm-bridge/cluster-a/"));
}

TEST_F(NodesPlanTest, WithItsKubernetesNodeItLeavesSlurm) {
  world.own_node("a");
  EXPECT_THAT(world.steps(), ElementsAre("drain Slurm node a"));
  world.own_node("a", "IDLE+DRAIN", "slurm-bridge: no Kubernetes node has this name");
  EXPECT_THAT(world.steps(), ElementsAre("remove Slurm node a"));
}

TEST_F(NodesPlanTest, AnotherDrainOfOursIsRenamedBeforeItIsDeleted) {
  world.own_node("a", "IDLE+DRAIN", kCordoned);
  EXPECT_THAT(world.steps(), ElementsAre("drain Slurm node a"));
  EXPECT_EQ(world.act("drain")["renames"], true);
}

TEST_F(NodesPlanTest, ANodeThatSomebodyElseHoldsIsNotDeleted) {
  for (const char* reason : {"maintenance", "slurm-operator: Node (a) was cordoned"}) {
    world.own_node("a", "IDLE+DRAIN", reason);
    EXPECT_THAT(world.steps(), Not(Contains("remove Slurm node a"))) << reason;
  }
  world.own_node("a", "IDLE+DRAIN", "slurm-operator: x; slurm-bridge: no Kubernetes node has this name");
  EXPECT_THAT(world.steps(), IsEmpty());
  world.own_node("a", "DOWN+DRAIN", "slurm-bridge: no Kubernetes node has this name");
  EXPECT_THAT(world.steps(), IsEmpty());
}

TEST_F(NodesPlanTest, ANodeOfAnotherInstallationOrOwnerIsNeverDeleted) {
  const std::string reason = "slurm-bridge: no Kubernetes node has this name";
  world.own_node("a", "IDLE+DRAIN", reason, "old", "cluster-b");
  EXPECT_THAT(world.steps(), IsEmpty());
  world.slurm_node("a", "IDLE+DRAIN+EXTERNAL", reason).features = {"slurm-operator/cluster-a/old"};
  EXPECT_THAT(world.steps(), IsEmpty());
  world.slurm_node("a", "IDLE+DRAIN", reason).features = {"slurm-bridge/cluster-a/old"};
  EXPECT_THAT(world.steps(), IsEmpty()) << "it is not external";
}

TEST_F(NodesPlanTest, AnOldAnswerDeletesNothing) {
  world.own_node("a", "IDLE+DRAIN", "slurm-bridge: no Kubernetes node has this name");
  world.age = 10min;
  EXPECT_THAT(world.steps(), IsEmpty());
  EXPECT_EQ(world.plan().wake(), 1s);
}

TEST_F(NodesPlanTest, AChangeOfANodeCountsAfterARelist) {
  world.host("a");
  world.slurm_node("a");
  EXPECT_THAT(world.steps(), Not(Contains("drain Slurm node a")));
  world.relist_hosts();
  world.host("a", kCordon);
  EXPECT_THAT(world.steps(), Contains("drain Slurm node a"));
}

// --- Other resources --------------------------------------------------------------------------------------------------

TEST_F(NodesPlanTest, ANodeWithOtherResourcesIsMadeAgainAfterAWhile) {
  world.external_host("a");
  world.own_node("a", "IDLE", "", "old");
  EXPECT_THAT(world.steps(), Not(Contains("drain Slurm node a")));
  world.mono = world.mono + 4min;
  EXPECT_THAT(world.steps(), Not(Contains("drain Slurm node a")));
  world.mono = world.mono + 2min;
  EXPECT_EQ(world.act("drain")["reason"], kMadeAgain);
  world.own_node("a", "IDLE+DRAIN", "slurm-bridge: " + std::string(kMadeAgain), "old");
  EXPECT_THAT(world.steps(), Contains("remove Slurm node a"));
  world.nodes.clear();
  EXPECT_THAT(world.steps(), ElementsAre("create Slurm node a"));
}

TEST_F(NodesPlanTest, AChangeThatDoesNotLastMakesNothingAgain) {
  world.external_host("a");
  world.own_node("a");
  (void)world.plan();
  for (int i = 0; i < 5; ++i) {
    world.external_host("a", {{"status", {{"allocatable", {{"memory", i % 2 == 0 ? "8Gi" : "16Gi"}}}}}});
    EXPECT_THAT(world.steps(), Not(Contains("drain Slurm node a")));
    world.mono = world.mono + 4min;
  }
}

TEST_F(NodesPlanTest, OneNodeAtATimeIsMadeAgain) {
  world.external_host("a");
  world.external_host("b");
  world.own_node("a", "IDLE", "", "old");
  world.own_node("b", "IDLE", "", "old");
  (void)world.plan("a");
  (void)world.plan("b");
  world.mono = world.mono + 6min;
  EXPECT_THAT(world.steps("b"), Contains("drain Slurm node b"));
  EXPECT_THAT(world.steps("a"), Not(Contains("drain Slurm node a")));
  world.own_node("b");
  (void)world.plan("b");
  EXPECT_THAT(world.steps("a"), Contains("drain Slurm node a"));
}

/// Slurm sends the suspension of an external job to the nodes of the job. External nodes have no slurmd that answers, so Slurm
/// sets them NOT_RESPONDING. Only a new record ends that state.
TEST_F(NodesPlanTest, AnExternalNodeThatSlurmWaitsForIsMadeAgain) {
  world.external_host("a", with_taints(Json::array({taint()})));
  world.own_node("a", "MIXED+NOT_RESPONDING");
  world.job_on("a");
  EXPECT_EQ(
      world.condition(),
      "False NotResponding: Slurm waits for an answer of the node a (NOT_RESPONDING), and starts no job there; an external "
      "node never answers: it is registered again when no job holds it");
  world.mono = world.mono + 1h;
  EXPECT_THAT(world.steps(), ElementsAre("report Node a")) << "a job holds it";
  EXPECT_EQ(world.plan().wake(), 30s);
  world.jobs.clear();
  world.own_node("a", "IDLE+NOT_RESPONDING");
  EXPECT_EQ(world.act("drain")["reason"], kUnanswered);
  world.own_node("a", "IDLE+DRAIN+NOT_RESPONDING", "slurm-bridge: " + std::string(kUnanswered));
  world.job_on("a");
  EXPECT_THAT(world.steps(), Not(Contains("remove Slurm node a")));
  world.jobs.clear();
  EXPECT_THAT(world.steps(), Contains("remove Slurm node a"));
  world.nodes.clear();
  EXPECT_THAT(world.steps(), ElementsAre("create Slurm node a"));
  world.own_node("a");
  EXPECT_EQ(world.condition(), "True InService: Slurm has the node a");
}

TEST_F(NodesPlanTest, AnExternalNodeThatRespondsAgainIsNotMadeAgain) {
  world.external_host("a");
  world.own_node("a", "IDLE+NOT_RESPONDING");
  EXPECT_THAT(world.steps(), Not(Contains("drain Slurm node a")));
  EXPECT_EQ(world.plan().wake(), 15s);
  world.mono = world.mono + 14s;
  world.own_node("a");
  (void)world.plan();
  world.own_node("a", "IDLE+NOT_RESPONDING");
  world.mono = world.mono + 1s;
  EXPECT_THAT(world.steps(), Not(Contains("drain Slurm node a")));
  world.own_node("a", "IDLE+DRAIN", "slurm-bridge: " + std::string(kUnanswered));
  EXPECT_THAT(world.steps(), Contains("resume Slurm node a"));
}

TEST_F(NodesPlanTest, ASilentNodeOfSomebodyElseIsOnlyTold) {
  const auto left_alone = [&](const std::string& what) {
    (void)world.plan();
    world.mono = world.mono + 1h;
    EXPECT_THAT(world.steps(), ElementsAre("taint Node a", "report Node a")) << what;
  };
  world.external_host("a");
  world.slurm_node("a", "IDLE+EXTERNAL+NOT_RESPONDING");
  left_alone("not of the bridge");
  EXPECT_THAT(world.condition(), StartsWith("False NotResponding: "));
  world.slurm_node("a", "IDLE+NOT_RESPONDING");
  left_alone("it has a slurmd");
  EXPECT_EQ(world.condition(),
            "False NotResponding: Slurm waits for an answer of the node a (NOT_RESPONDING), and starts no job there");
  for (const char* reason : {"maintenance", ""}) {
    world.own_node("a", "IDLE+DRAIN+NOT_RESPONDING", reason);
    left_alone("drained");
    world.own_node("a", "DOWN+NOT_RESPONDING", reason);
    left_alone("down");
  }
  world.own_node("a", "IDLE+FAIL+NOT_RESPONDING");
  left_alone("failing");
  world.external_host("a", kNotReady);
  world.own_node("a", "IDLE+NOT_RESPONDING");
  world.mono = world.mono + 1h;
  EXPECT_EQ(world.act("drain")["reason"], "Kubernetes node (a) is not ready");
}

/// A node with other resources can wait for its jobs for days.
TEST_F(NodesPlanTest, ANodeThatSlurmWaitsForDoesNotWaitForOneWithOtherResources) {
  world.external_host("a");
  world.external_host("b");
  world.external_host("c");
  world.own_node("a", "MIXED+DRAIN", "slurm-bridge: " + std::string(kMadeAgain), "old");
  world.job_on("a");
  world.own_node("b", "IDLE+NOT_RESPONDING");
  world.own_node("c", "IDLE+NOT_RESPONDING");
  for (const char* name : {"a", "b", "c"}) (void)world.plan(name);
  world.mono = world.mono + 15s;
  EXPECT_THAT(world.steps("a"), Not(Contains("remove Slurm node a")));
  EXPECT_THAT(world.steps("b"), Contains("drain Slurm node b"));
  EXPECT_THAT(world.steps("c"), Not(Contains("drain Slurm node c"))) << "one at a time";
  EXPECT_EQ(world.plan("c").wake(), 5s);
  world.own_node("b");
  (void)world.plan("b");
  EXPECT_THAT(world.steps("c"), Contains("drain Slurm node c"));
}

TEST_F(NodesPlanTest, AfterARestartTheOneThatWasBegunComesFirst) {
  world.external_host("a");
  world.external_host("b");
  world.own_node("a", "IDLE", "", "old");
  world.own_node("b", "IDLE+DRAIN", "slurm-bridge: " + std::string(kMadeAgain), "old");
  (void)world.plan("a");
  world.mono = world.mono + 6min;
  EXPECT_THAT(world.steps("a"), Not(Contains("drain Slurm node a")));
  EXPECT_THAT(world.steps("b"), Contains("remove Slurm node b"));
}

TEST_F(NodesPlanTest, ANodeThatSomebodyElseDrainedIsNotMadeAgain) {
  world.external_host("a");
  world.own_node("a", "IDLE+DRAIN", "maintenance", "old");
  (void)world.plan();
  world.mono = world.mono + 6min;
  EXPECT_THAT(world.steps(), ElementsAre("taint Node a", "report Node a"));
}

// --- Drains -----------------------------------------------------------------------------------------------------------

TEST_F(NodesPlanTest, ANodeThatTakesNoPodsIsDrained) {
  world.host("a", kCordon);
  world.slurm_node("a");
  const Json act = world.act("drain");
  EXPECT_EQ(act["owner"], "slurm-bridge");
  EXPECT_EQ(act["instance"], kInstallation);
  EXPECT_EQ("slurm-bridge: " + act["reason"].get<std::string>(), kCordoned);
  world.host("a", kNotReady);
  EXPECT_EQ(world.act("drain")["reason"], "Kubernetes node (a) is not ready");
  world.host("a", {{"metadata", {{"deletionTimestamp", "2026-01-01T10:00:00Z"}}}});
  EXPECT_EQ(world.act("drain")["reason"], "Kubernetes node (a) is being deleted");
}

TEST_F(NodesPlanTest, OurDrainEndsWithItsCause) {
  world.host("a");
  for (const std::string& reason : {kCordonedHere, kCordoned}) {
    world.slurm_node("a", "IDLE+DRAIN", reason);
    EXPECT_THAT(world.steps(), Contains("resume Slurm node a")) << reason;
  }
  world.slurm_node("a", "IDLE+DRAIN", kCordonedHere);
  world.host("a", kCordon);
  EXPECT_THAT(world.steps(), Not(Contains("resume Slurm node a")));
  EXPECT_THAT(world.steps(), Not(Contains("drain Slurm node a")));
  world.host("a", kNotReady);
  EXPECT_THAT(world.steps(), Contains("drain Slurm node a")) << "for another cause";
}

/// Fault 10 of the Go bridge: it undid every drain without a reason, whoever had set it.
TEST_F(NodesPlanTest, TheDrainOfSomebodyElseStays) {
  world.host("a");
  for (const char* reason : {"maintenance", "slurm-operator: Node (a) was cordoned", ""}) {
    world.slurm_node("a", "IDLE+DRAIN", reason);
    EXPECT_THAT(world.steps(), ElementsAre("taint Node a", "report Node a")) << reason;
  }
  world.host("a", kCordon);
  world.slurm_node("a", "IDLE+DRAIN", "maintenance");
  EXPECT_THAT(world.steps(), ElementsAre("taint Node a", "report Node a")) << "it drains already";
}

/// A node with a slurmd has no mark. Two Kubernetes clusters can each have a node with the name of this Slurm node.
TEST_F(NodesPlanTest, TheDrainOfAnotherKubernetesClusterStays) {
  const std::string theirs = kCordoned + ", cluster cluster-b";
  world.host("a");
  world.slurm_node("a", "IDLE+DRAIN", theirs);
  EXPECT_THAT(world.steps(), ElementsAre("taint Node a", "report Node a"));
  EXPECT_THAT(world.condition(), HasSubstr(theirs));
  world.slurm_node("a", "IDLE", theirs);
  world.host("a", kCordon);
  EXPECT_THAT(world.steps(), Contains("drain Slurm node a")) << "the reason is left over";
  testing::World retiring(true);
  retiring.host("a");
  retiring.slurm_node("a", "IDLE+DRAIN", theirs);
  EXPECT_THAT(retiring.steps(), IsEmpty());
  EXPECT_THAT(retiring.controller().left(), IsEmpty());
}

/// Both bridges might have drained the node at the same moment, so that the reason of one replaced the reason of the other.
TEST_F(NodesPlanTest, BridgesOfTwoKubernetesClustersHoldOneNode) {
  const std::string theirs = "slurm-bridge: Kubernetes node (b) is not ready, cluster cluster-b";
  world.host("a", kCordon);
  world.slurm_node("a", "IDLE+DRAIN", theirs);
  EXPECT_EQ(world.act("drain")["instance"], kInstallation) << "their drain may end before ours";
  world.slurm_node("a", "IDLE+DRAIN", kCordonedHere + "; " + theirs);
  EXPECT_THAT(world.steps(), Not(Contains("drain Slurm node a")));
  EXPECT_EQ(taint_patch()[0]["value"][0]["value"], taint_value(theirs));
  world.host("a");
  EXPECT_EQ(world.act("resume")["instance"], kInstallation);
  world.slurm_node("a", "IDLE+DRAIN", theirs);
  EXPECT_THAT(world.steps(), Not(Contains("resume Slurm node a")));
}

/// Both clusters have a Kubernetes node with this name, and the other cluster might run pods on the Slurm node.
TEST_F(NodesPlanTest, AnOwnDrainIsUndoneOnANodeOfAnotherKubernetesCluster) {
  const std::string theirs = "slurm-bridge: Kubernetes node (b) is not ready, cluster cluster-b";
  const auto drained = [](testing::World& in, const std::string& reason) {
    in.slurm_node("a", "IDLE+DRAIN", reason).extra = extra_of({{12}, "cluster-b"});
    return in.steps();
  };
  world.host("a", kCordon);
  EXPECT_THAT(drained(world, kCordonedHere), Not(Contains("resume Slurm node a")));
  world.host("a");
  EXPECT_THAT(drained(world, kCordonedHere), Contains("resume Slurm node a"));
  EXPECT_THAT(drained(world, kCordoned), Not(Contains("resume Slurm node a"))) << "whose drain it is, is not known";
  testing::World retiring(true);
  retiring.host("a", kCordon);
  EXPECT_THAT(drained(retiring, kCordonedHere + "; " + theirs), ElementsAre("resume Slurm node a"));
  EXPECT_EQ(retiring.act("resume")["instance"], kInstallation);
  EXPECT_THAT(retiring.controller().left(), ElementsAre("Slurm node a"));
  EXPECT_THAT(drained(retiring, theirs), IsEmpty());
  EXPECT_THAT(retiring.controller().left(), IsEmpty());
}

TEST_F(NodesPlanTest, BothProgramsHoldAHybridNode) {
  world.host("a", kCordon);
  world.slurm_node("a", "IDLE+DRAIN", "slurm-operator: Node (a) was cordoned");
  EXPECT_THAT(world.steps(), Contains("drain Slurm node a"));
  world.slurm_node("a", "IDLE+DRAIN", "slurm-operator: Node (a) was cordoned; " + kCordonedHere);
  EXPECT_THAT(world.steps(), Not(Contains("drain Slurm node a")));
}

TEST_F(NodesPlanTest, WhatIsDownForAnotherReasonIsNotResumed) {
  world.host("a");
  world.slurm_node("a", "DOWN+DRAIN+EXTERNAL", kCordoned);
  EXPECT_THAT(world.steps(), Not(Contains("resume Slurm node a")));
  world.slurm_node("a", "DOWN+DRAIN+NOT_RESPONDING", kCordoned);
  EXPECT_THAT(world.steps(), Not(Contains("resume Slurm node a"))) << "its slurmd is away";
  world.slurm_node("a", "DOWN+DRAIN", kCordoned);
  EXPECT_THAT(world.steps(), Contains("resume Slurm node a")) << "its machine has rebooted";
  world.slurm_node("a", "IDLE+DRAIN+FAIL", kCordoned);
  EXPECT_THAT(world.steps(), Not(Contains("resume Slurm node a")));
}

TEST_F(NodesPlanTest, AKubernetesNodeThatGoesIsToldToSlurmOnce) {
  world.host("a");
  world.slurm_node("a");
  (void)world.plan();
  world.delete_host("a");
  EXPECT_EQ(world.act("drain")["reason"], "Kubernetes node is gone");
  world.slurm_node("a", "IDLE+DRAIN", "slurm-bridge: Kubernetes node is gone, cluster cluster-a");
  EXPECT_THAT(world.steps(), IsEmpty());
  world.slurm_node("a");
  EXPECT_THAT(world.steps(), IsEmpty()) << "somebody freed it";
}

TEST_F(NodesPlanTest, ANodeThatNeverWasKubernetesIsLeftAlone) {
  world.slurm_node("a");
  EXPECT_THAT(world.steps(), IsEmpty());
  world.slurm_node("a", "IDLE+DRAIN", kCordoned);
  EXPECT_THAT(world.steps(), IsEmpty()) << "whether its Kubernetes node is well is not known";
}

// --- The taint --------------------------------------------------------------------------------------------------------

TEST_F(NodesPlanTest, ANodeThatSlurmHasIsTainted) {
  world.host("a", with_taints(Json::array({{{"key", "other"}, {"effect", "NoExecute"}}})));
  world.slurm_node("a");
  EXPECT_EQ(taint_patch(), Json::array({{{"op", "add"}, {"path", "/spec/taints/-"}, {"value", taint()}}}));
  EXPECT_EQ(world.condition(), "True InService: Slurm has the node a");
  world.host("a");
  EXPECT_EQ(taint_patch(), Json::array({{{"op", "add"}, {"path", "/spec/taints"}, {"value", Json::array({taint()})}}}));
  world.host("a", with_taints(Json::array({taint()})));
  EXPECT_THAT(world.steps(), ElementsAre("report Node a"));
}

TEST_F(NodesPlanTest, AnOldAnswerTaintsNothing) {
  world.host("a");
  world.slurm_node("a");
  world.age = 10min;
  EXPECT_THAT(world.steps(), IsEmpty());
  EXPECT_EQ(world.plan().wake(), 1s);
}

TEST_F(NodesPlanTest, TheTaintGoesWhenSlurmHasLackedTheNodeForAWhile) {
  world.host("a", with_taints(Json::array({{{"key", "other"}, {"effect", "NoSchedule"}}, taint()})));
  EXPECT_THAT(world.steps(), IsEmpty());
  world.mono = world.mono + 30s;
  EXPECT_THAT(world.steps(), IsEmpty());
  world.slurm_node("a");
  (void)world.plan();
  world.nodes.clear();
  world.mono = world.mono + 31s;
  EXPECT_THAT(world.steps(), IsEmpty()) << "it was there meanwhile";
  world.mono = world.mono + 61s;
  world.age = 10min;
  EXPECT_THAT(world.steps(), IsEmpty()) << "an old answer";
  world.age = core::Duration{0};
  EXPECT_EQ(taint_patch("untaint"), Json::array({{{"op", "remove"}, {"path", "/spec/taints/1"}}}));
}

TEST_F(NodesPlanTest, ANodeThatIsRegisteredAgainKeepsItsTaint) {
  world.external_host("a", with_taints(Json::array({taint()})));
  (void)world.plan();
  world.mono = world.mono + 5min;
  EXPECT_THAT(world.steps(), ElementsAre("create Slurm node a"));
}

TEST_F(NodesPlanTest, TheWordOfSomebodyElseIsTheValueOfTheTaint) {
  world.host("a", with_taints(Json::array({taint()})));
  world.slurm_node("a", "IDLE+DRAIN", "bad DIMM (see #7)");
  EXPECT_EQ(taint_patch(),
            Json::array({{{"op", "remove"}, {"path", "/spec/taints/0"}},
                         {{"op", "add"}, {"path", "/spec/taints/-"}, {"value", taint("NoSchedule", "bad-DIMM-see-7")}}}));
  EXPECT_EQ(world.condition(), "False Drained: Slurm: bad DIMM (see #7)");
  world.slurm_node("a", "DOWN", "broken");
  EXPECT_EQ(world.condition(), "False Down: Slurm: broken");
  world.slurm_node("a", "IDLE+DRAIN", kCordoned);
  EXPECT_TRUE(taint_patch().is_null()) << "our own";
}

TEST_F(NodesPlanTest, PodsAreEvictedOnlyWhereThatIsAskedForAndSlurmsPodsDoNotRun) {
  const Json asks{{"metadata", {{"annotations", {{std::string(kAnnotationEffect), "NoExecute"}}}}}};
  world.host("a", asks);
  world.slurm_node("a", "IDLE+EXTERNAL");
  EXPECT_EQ(taint_patch(), Json::array({{{"op", "add"}, {"path", "/spec/taints"}, {"value", Json::array({taint("NoExecute")})}},
                                        {{"op", "add"}, {"path", "/spec/taints/-"}, {"value", taint()}}}));
  for (const char* app : {"slurmctld", "slurmd", "slurmrestd", "slurm-bridge"}) {
    testing::World other;
    other.host("a", asks);
    other.slurm_node("a", "IDLE+EXTERNAL");
    other.pod_on("a", app);
    EXPECT_EQ(other.act("taint")["patch"],
              Json::array({{{"op", "add"}, {"path", "/spec/taints"}, {"value", Json::array({taint()})}}}))
        << app;
  }
  world.host("a", with_taints(Json::array({taint("NoExecute"), taint()})));
  EXPECT_EQ(taint_patch(), Json::array({{{"op", "remove"}, {"path", "/spec/taints/0"}}})) << "it is not asked for any more";
  world.host("a", asks);
  world.slurm_node("a");
  EXPECT_EQ(taint_patch(), Json::array({{{"op", "add"}, {"path", "/spec/taints"}, {"value", Json::array({taint()})}}}))
      << "the pod of its worker may only be replaced";
  EXPECT_THAT(world.condition(), HasSubstr("not evicted, because a slurmd runs there"));
}

TEST_F(NodesPlanTest, ASecondNodeOfTheNameIsToldSo) {
  const auto named = [](const char* name) {
    return Json{{"metadata", {{"labels", {{std::string(kLabelSlurmNodeName), name}}}}}};
  };
  world.host("a");
  Json second = named("a");
  second.merge_patch(with_taints(Json::array({taint()})));
  world.host("b", second);
  world.slurm_node("a");
  EXPECT_THAT(world.steps(), ElementsAre("taint Node a", "report Node a", "untaint Node b", "report Node b"));
}

// --- Hybrid nodes -----------------------------------------------------------------------------------------------------

TEST_F(NodesPlanTest, JobsOfPodsOnANodeWithASlurmdAreHeldUntilThePodsAreGone) {
  world.host("a", with_taints(Json::array({taint()})));
  world.slurm_node("a");
  world.bridge_job(12, "a");
  world.bridge_job(13, "a", "cluster-b");
  EXPECT_EQ(world.act("hold")["extra"], R"({"slurm-bridge":"12","slurm-bridge-cluster":"cluster-a"})");
  world.nodes["a"].extra = R"({"slurm-bridge":"12"})";
  EXPECT_THAT(world.steps(), Contains("hold Slurm node a")) << "the list must say whose it is";
  world.nodes["a"].extra = extra_of({{12}, kInstallation});
  EXPECT_THAT(world.steps(), Not(Contains("hold Slurm node a")));
  // The job ends, and its pod is still on the node.
  world.jobs.clear();
  world.placed_pod("p", 12, "a");
  world.mono = world.mono + 1min;
  EXPECT_THAT(world.steps(), Not(Contains("hold Slurm node a")));
  world.mono = world.mono + 1min;
  EXPECT_THAT(world.steps(), Not(Contains("hold Slurm node a")));
  world.delete_pod("p");
  EXPECT_THAT(world.steps(), Not(Contains("hold Slurm node a"))) << "another pod of it may come to light";
  EXPECT_EQ(world.plan().wake(), 5s);
  world.mono = world.mono + 5s;
  world.age = 10min;
  EXPECT_THAT(world.steps(), Not(Contains("hold Slurm node a"))) << "an old answer";
  world.age = core::Duration{0};
  EXPECT_EQ(world.act("hold")["extra"], R"({"slurm-bridge":""})");
  world.nodes["a"].extra = R"({"slurm-bridge":""})";
  EXPECT_THAT(world.steps(), Not(Contains("hold Slurm node a")));
}

/// While the job of a group is cancelled, the patch that places a pod of the group might still be under way.
TEST_F(NodesPlanTest, AJobThatHasRunForLongStaysInTheListForAMomentToo) {
  world.host("a", with_taints(Json::array({taint()})));
  world.slurm_node("a").extra = extra_of({{12}, kInstallation});
  world.bridge_job(12, "a");
  EXPECT_THAT(world.steps(), Not(Contains("hold Slurm node a")));
  world.mono = world.mono + 1h;
  world.jobs.clear();
  EXPECT_THAT(world.steps(), Not(Contains("hold Slurm node a")));
  world.mono = world.mono + 5s;
  EXPECT_THAT(world.steps(), Contains("hold Slurm node a"));
}

TEST_F(NodesPlanTest, AJobWhosePodMayHaveBeenPlacedStaysInTheList) {
  world.host("a", with_taints(Json::array({taint()})));
  world.slurm_node("a").extra = extra_of({{12}, kInstallation});
  world.bridge_job(12, "a");
  world.waiting_pod("p");
  EXPECT_THAT(world.steps(), Not(Contains("hold Slurm node a")));
  world.jobs[12].state = "CANCELLED";
  world.jobs[12].end = world.now - 19s;
  EXPECT_THAT(world.plan().needs(), IsEmpty()) << "the patch that places it may be under way, whatever a read says";
  world.jobs[12].end = world.now - 1h;
  for (int i = 0; i < 3; ++i) {
    world.mono = world.mono + 1min;
    EXPECT_THAT(world.steps(), Not(Contains("hold Slurm node a"))) << "the cache may be behind";
    EXPECT_EQ(world.plan().wake(), 5s);
  }
  EXPECT_THAT(world.plan().needs(), ElementsAre(Field(&plan::Need::id, "unsure ns/p")));
  world.facts.insert_or_assign("unsure ns/p", plan::Fact{core::fail(core::ErrorCode::kUnavailable, "away"), world.mono});
  EXPECT_THAT(world.steps(), Not(Contains("hold Slurm node a"))) << "not known";
  world.mono = world.mono + 1min;
  EXPECT_THAT(world.steps(), Not(Contains("hold Slurm node a"))) << "not known";
  world.facts.insert_or_assign("unsure ns/p", plan::Fact{Json{{"spec", Json::object()}}, world.mono});
  EXPECT_THAT(world.steps(), Not(Contains("hold Slurm node a")));
  world.mono = world.mono + 5s;
  EXPECT_EQ(world.act("hold")["extra"], R"({"slurm-bridge":""})");
}

TEST_F(NodesPlanTest, WhatSomebodyElseWroteIntoExtraStays) {
  world.host("a");
  world.slurm_node("a").extra = "rack 7";
  world.bridge_job(12, "a");
  EXPECT_THAT(world.steps(), Not(Contains("hold Slurm node a")));
  EXPECT_THAT(world.condition(), HasSubstr("somebody else uses the field extra"));
}

TEST_F(NodesPlanTest, AForgedPodDoesNotHoldNativeJobs) {
  world.host("a", with_taints(Json::array({taint()})));
  world.slurm_node("a");
  world.placed_pod("forged", 12, "a", "other");
  EXPECT_THAT(world.steps(), Not(Contains("hold Slurm node a")));
  // The job is of another Kubernetes cluster, and for another pod.
  world.bridge_job(12, "a", "cluster-b");
  EXPECT_THAT(world.steps(), Not(Contains("hold Slurm node a")));
  // A pod that has a job counts even if its namespace is no longer managed.
  world.bridge_job(12, "elsewhere", kInstallation, "forged");
  EXPECT_EQ(world.act("hold")["extra"], extra_of({{12}, kInstallation}));
}

TEST_F(NodesPlanTest, WithoutAKubernetesNodeTheListIsClearedOnceItsPodsAreGone) {
  world.slurm_node("a").extra = extra_of({{12}, kInstallation});
  world.placed_pod("p", 12, "b");
  (void)world.plan();
  world.mono = world.mono + 1min;
  EXPECT_THAT(world.steps(), IsEmpty());
  EXPECT_EQ(world.plan().wake(), 30s);
  world.delete_pod("p");
  EXPECT_THAT(world.steps(), IsEmpty());
  EXPECT_EQ(world.plan().wake(), 5s);
  world.mono = world.mono + 5s;
  EXPECT_EQ(world.act("hold")["extra"], R"({"slurm-bridge":""})");
  world.nodes["a"].extra = R"({"slurm-bridge":"12"})";
  EXPECT_THAT(world.steps(), IsEmpty()) << "whose list it is, is not known";
}

TEST_F(NodesPlanTest, TheListOfAnotherKubernetesClusterStays) {
  world.host("a", kCordon);
  world.slurm_node("a").extra = extra_of({{12}, "cluster-b"});
  world.bridge_job(13, "a");
  EXPECT_THAT(world.steps(), ElementsAre("report Node a"));
  EXPECT_THAT(world.condition(), StartsWith("False NameInUse: in Slurm, a is a node of the Kubernetes cluster with the UID "));
  EXPECT_THAT(world.controller().left(), IsEmpty());
  world.delete_host("a");
  world.mono = world.mono + 1min;
  EXPECT_THAT(world.steps(), IsEmpty());
}

TEST_F(NodesPlanTest, OnExternalNodesNoNativeJobRuns) {
  world.external_host("a");
  world.own_node("a");
  world.bridge_job(12, "a");
  EXPECT_THAT(world.steps(), Not(Contains("hold Slurm node a")));
}

TEST(Held, TheFieldIsReadAsItIsWritten) {
  for (const HeldJobs& held : {HeldJobs{}, HeldJobs{{7}, "u"}, HeldJobs{{7, 12, 100}, "u"}})
    EXPECT_EQ(held_in(extra_of(held)), held);
  EXPECT_EQ(held_in(R"({"slurm-bridge":"7"})"), (HeldJobs{{7}, ""}));
  for (const char* other : {"x", "{}", R"({"slurm-bridge":"x"})", R"({"slurm-bridge":"1,2"})", R"({"slurm-bridge":"1","b":2})",
                            R"({"slurm-bridge-cluster":"u"})", R"({"slurm-bridge":"1","slurm-bridge-cluster":"u","b":2})"})
    EXPECT_FALSE(held_in(other)) << other;
}

// --- Changes that wake the controller ---------------------------------------------------------------------------------

TEST_F(NodesPlanTest, NodesAreWokenByTheirNamesInSlurm) {
  world.wiring().woken.clear();
  world.host("a", {{"metadata", {{"labels", {{std::string(kLabelSlurmNodeName), "s"}}}}}});
  EXPECT_THAT(world.wiring().woken, ElementsAre("nodes s"));
  world.wiring().woken.clear();
  world.host("a");
  EXPECT_THAT(world.wiring().woken, ::testing::UnorderedElementsAre("nodes a", "nodes s"));
  world.wiring().woken.clear();
  world.host("a");
  EXPECT_THAT(world.wiring().woken, IsEmpty());
}

TEST_F(NodesPlanTest, SlurmWakesWhatChanged) {
  world.host("a");
  world.host("hybrid");
  world.slurm_node("a", "IDLE+EXTERNAL");
  world.slurm_node("hybrid");
  world.own_node("gone");
  world.slurm_node("lists").extra = extra_of({{12}, kInstallation});
  const auto before = world.snapshot();
  const auto woken = [&](std::vector<std::string> nodes, bool partitions, bool health) {
    slurm::Change change;
    change.cluster = "slurm/demo";
    change.before = before;
    change.now = world.snapshot();
    change.nodes = std::move(nodes);
    change.partitions = partitions;
    change.health = health;
    world.wiring().woken.clear();
    world.wiring().slurm_changed(change, {});
    return world.wiring().woken;
  };
  EXPECT_THAT(woken({"a"}, false, false), IsEmpty()) << "only its jobs changed";
  world.slurm_node("a", "IDLE+EXTERNAL+NOT_RESPONDING");
  EXPECT_THAT(woken({"a"}, false, false), ElementsAre("nodes a"));
  world.slurm_node("a", "IDLE+EXTERNAL");
  EXPECT_THAT(woken({"hybrid"}, false, false), ElementsAre("nodes hybrid")) << "native jobs wait for the pods of its jobs";
  EXPECT_THAT(woken({"lists"}, false, false), ElementsAre("nodes lists")) << "without a Kubernetes node as well";
  EXPECT_THAT(woken({}, true, false), ElementsAre("nodes a", "nodes gone", "nodes hybrid", "nodes lists"));
  EXPECT_THAT(woken({}, false, true), ElementsAre("nodes a", "nodes gone", "nodes hybrid", "nodes lists"));
  world.slurm_node("a", "IDLE+DRAIN+EXTERNAL", "x");
  EXPECT_THAT(woken({"a"}, false, false), ElementsAre("nodes a"));
  world.nodes.erase("a");
  EXPECT_THAT(woken({"a"}, false, false), ElementsAre("nodes a"));
}

}  // namespace
}  // namespace bridge::nodes
