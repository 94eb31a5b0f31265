#include "bridge/gangs/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bridge/gangs/testing/world.hpp"

namespace bridge::gangs {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Json;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;
using testing::World;

const auto kSubmit = StartsWith("submit Slurm job ns/podgroup/train: g ");
const Json kSucceeded{{"status", {{"phase", "Succeeded"}}}};
const Json kFailed{{"status", {{"phase", "Failed"}}}};
const Json kTerminating{{"metadata", {{"deletionTimestamp", "2026-01-01T00:00:00Z"}}}};
const std::vector<std::string> kThree{"a", "b", "c"};
const std::vector<std::string> kLive{"PENDING", "RUNNING", "RUNNING+CONFIGURING", "SUSPENDED", "STRANGE"};
const std::vector<std::string> kEnds{"COMPLETED", "CANCELLED", "FAILED",   "TIMEOUT",       "NODE_FAIL",
                                     "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY", "REVOKED"};

/// Three pods that wait.
void three_wait(World& world, const Json& more = Json::object()) {
  for (const std::string& name : kThree) world.waits(name, more);
}
/// Three pods that were placed for job 7.
void three_placed(World& world, bool bound = true, const Json& more = Json::object()) {
  world.placed("a", 7, "node-1", bound, more);
  world.placed("b", 7, "node-2", bound, more);
  world.placed("c", 7, "node-3", bound, more);
}
/// Three pods that run for job 7.
void three_run(World& world) {
  three_placed(world);
  world.gang(7, "RUNNING", kThree);
}
/// Three pods whose gate somebody else has removed.
void three_freed(World& world) {
  for (const std::string& name : kThree)
    world.pod({{"metadata", {{"name", name}, {"uid", "u-" + name}, {"labels", {{std::string(kLabelPodGroup), "train"}}}}}});
}
Json comment(const Json& submit) {
  return Json::parse(submit.at("comment").get<std::string>());
}

// --- Submitting ---------------------------------------------------------------------------------------------------------

TEST(GangsPlan, OneJobForAllPods) {
  World world;
  three_wait(world);
  EXPECT_THAT(world.steps(), ElementsAre(kSubmit));
  const Json act = world.act("submit");
  EXPECT_EQ(act.at("wish").at("nodes"), 3);
  EXPECT_EQ(act.at("wish").at("tasks_per_node"), 1);
  EXPECT_EQ(act.at("wish").at("name"), "train");
  Json said = comment(act);
  said.erase("wish");
  EXPECT_EQ(said, Json::parse(R"({"owner": "slurm-bridge", "instance": "cluster-a", "key": "g/1",
    "group": {"ns": "ns", "name": "podgroup/train"}, "pods": [{"ns": "ns", "name": "a", "uid": "u-a"},
      {"ns": "ns", "name": "b", "uid": "u-b"}, {"ns": "ns", "name": "c", "uid": "u-c"}]})"));
  world.gang(7, "PENDING", kThree);
  EXPECT_THAT(world.steps(), Not(Contains(kSubmit)));
  EXPECT_THAT(world.told(), Contains(Pair("b", "Resources: job 7 waits in partition batch: Resources")));
}

/// The size of the group comes from the spec of the PodGroup, not from the number of existing pods.
TEST(GangsPlan, PodsWaitUntilTheGroupIsComplete) {
  World world;
  world.waits("a");
  world.waits("b");
  EXPECT_THAT(world.steps(), Not(Contains(kSubmit)));
  EXPECT_THAT(world.told(), Contains(Pair("a", "GroupIncomplete: podgroup/train has 2 of the 3 pods that it needs")));
  world.waits("d", kTerminating);
  world.placed("e", 6, "node-1", true, kSucceeded);
  EXPECT_THAT(world.steps(), Not(Contains(kSubmit)));
  world.pod(Json::parse(R"({"metadata": {"name": "c", "uid": "u-c", "labels": {"scheduling.x-k8s.io/pod-group": "train"}},
    "spec": {"schedulingGates": [{"name": "other"}, {"name": "scheduler.slinky.slurm.net/slurm-bridge"}]}})"));
  EXPECT_THAT(world.steps(), Not(Contains(kSubmit)));
  EXPECT_THAT(world.told(), Contains(Pair("c", HasSubstr("OtherGates"))));
  world.waits("c");
  EXPECT_THAT(world.steps(), Contains(kSubmit));
}

TEST(GangsPlan, FurtherPodsWait) {
  World world;
  three_wait(world);
  world.waits("d");
  EXPECT_THAT(comment(world.act("submit")).at("pods"), SizeIs(3));
  EXPECT_THAT(world.told(), ElementsAre(Pair("d", HasSubstr("GroupFull"))));
  three_run(world);
  EXPECT_THAT(world.seats(), IsEmpty());
  EXPECT_THAT(world.told(), Contains(Pair("d", "GroupFull: job 7 of the group has no node for the pod")));
}

TEST(GangsPlan, TheGroupIsReadLiveAndWhatIsWrongIsTold) {
  World world;
  three_wait(world);
  world.facts.clear();
  EXPECT_THAT(world.needs(), ElementsAre("group"));
  const auto answer = [&](core::Result<Json> value) {
    world.facts.insert_or_assign("group", plan::Fact{std::move(value), world.mono});
  };
  answer(core::fail(core::ErrorCode::kNotFound, "no such PodGroup"));
  EXPECT_THAT(world.told(), Contains(Pair("a", "NoGroup: PodGroup train does not exist")));
  EXPECT_EQ(world.plan().wake(), core::Duration{5000});
  world.group(0);
  EXPECT_THAT(world.told(), Contains(Pair("a", "Refused: podgroup/train: spec.minMember: 0, must be 1 or more")));
  EXPECT_THAT(world.steps(), Not(Contains(kSubmit)));
}

/// Fault 2 of the Go bridge: pods of other namespaces joined a group.
TEST(GangsPlan, PodsOfOtherNamespacesAreNotInTheGroup) {
  World world;
  world.waits("a");
  world.waits("b");
  Json pod = Json::parse(R"({"metadata": {"name": "c", "namespace": "bob", "uid": "u-c", "resourceVersion": "1",
    "labels": {"scheduling.x-k8s.io/pod-group": "train"}}, "status": {"phase": "Pending"},
    "spec": {"schedulingGates": [{"name": "scheduler.slinky.slurm.net/slurm-bridge"}]}})");
  world.caches().pods.upsert(kube::record_from_json<Pod>(pod).value());
  EXPECT_THAT(world.steps(), Not(Contains(kSubmit)));
  EXPECT_THAT(world.told(), Contains(Pair("a", HasSubstr("2 of the 3 pods"))));
  // The pod is not in the group even if it has the toleration for the job. A user can write this toleration into a pod of
  // another namespace.
  three_run(world);
  pod["spec"].erase("schedulingGates");
  pod["spec"]["tolerations"].push_back({{"key", kTolerationPlacedFor}, {"value", placed_for_value({7, World::submitted(7)})}});
  world.caches().pods.upsert(kube::record_from_json<Pod>(pod).value());
  world.jobs.at(7).state = "CANCELLED";
  EXPECT_THAT(world.steps(), Not(Contains(HasSubstr("bob"))));
}

TEST(GangsPlan, UnequalPodsGetWhatTheLargestNeeds) {
  World world;
  world.waits("a");
  world.waits(
      "b",
      Json::parse(R"({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "4", "memory": "1Gi"}}}]}})"));
  world.waits("c");
  EXPECT_EQ(world.act("submit").at("wish").at("cpus_per_task"), 4);
  EXPECT_EQ(world.act("submit").at("wish").at("memory_per_node"), 1024);
  world.waits("c", Json::parse(R"({"metadata": {"annotations": {"slurmjob.slinky.slurm.net/partition": "batch"}}})"));
  EXPECT_THAT(
      world.told(),
      Contains(Pair("a", "Refused: pods a and c of one group ask for different jobs: partition must be equal in all pods")));
  EXPECT_THAT(world.steps(), Not(Contains(kSubmit)));
}

TEST(GangsPlan, EachPodNeedsANode) {
  World world;
  three_wait(world);
  world.node("node-3", {{"spec", {{"unschedulable", true}}}});
  EXPECT_THAT(world.told(),
              Contains(Pair("a", "NoNode: only 2 of the 3 nodes that the group needs in Slurm can run its pods: 1 cordoned")));
  world.slurm_node("node-4");
  world.node("node-4");
  EXPECT_EQ(world.act("submit").at("wish").at("excluded_nodes"), Json::array({"node-3"}));
}

// --- Placing ------------------------------------------------------------------------------------------------------------

/// Fault 5 of the Go bridge: pods got nodes at random, and two pods could get the same node.
TEST(GangsPlan, PodsAreInTheOrderOfTheNodesAndEachHasItsOwn) {
  World world;
  world.group(3);
  for (const char* name : {"p-10", "p-9", "p-100"}) world.waits(name);
  world.gang(7, "RUNNING", {"p-10", "p-9", "p-100"}, {"node-3", "node-1", "node-2"});
  EXPECT_THAT(world.needs(), ElementsAre("pods of job 7"));
  world.live(7);
  EXPECT_THAT(world.seats(), ElementsAre(Pair("p-10", "node-1"), Pair("p-100", "node-2"), Pair("p-9", "node-3")));
  EXPECT_EQ(world.act("confirm").at("nodes"), (Json{"node-3", "node-1", "node-2"}));
  EXPECT_EQ(world.plan().lanes().at("place").groups().size(), 2U) << "the job is looked at before";
  world.waits("p-9", Json::parse(R"({"metadata": {"labels": {"batch.kubernetes.io/job-completion-index": "2"}}})"));
  world.waits("p-10", Json::parse(R"({"metadata": {"labels": {"batch.kubernetes.io/job-completion-index": "0"}}})"));
  world.waits("p-100", Json::parse(R"({"metadata": {"labels": {"apps.kubernetes.io/pod-index": "1"}}})"));
  EXPECT_THAT(world.seats(), ElementsAre(Pair("p-10", "node-3"), Pair("p-100", "node-1"), Pair("p-9", "node-2")));
}

TEST(GangsPlan, AllPodsOrNone) {
  World world;
  three_wait(world);
  world.gang(7, "RUNNING", kThree);
  world.live(7);
  EXPECT_THAT(world.seats(), SizeIs(3));
  world.delete_pod("c");
  EXPECT_THAT(world.seats(), IsEmpty()) << "one has gone";
  EXPECT_THAT(world.told(), Contains(Pair("a", "GroupIncomplete: job 7 runs, and has 2 of its 3 pods")));
  world.waits("d");
  EXPECT_THAT(world.seats(), SizeIs(3)) << "another one took its place";
  world.node("node-3", {{"spec", {{"unschedulable", true}}}});
  EXPECT_THAT(world.steps(), Contains("replace Slurm job ns/podgroup/train: 7"));
  EXPECT_THAT(world.seats(), IsEmpty()) << "one node cannot run a pod";
}

/// The bridge can crash between the patches of two pods.
TEST(GangsPlan, PlacingIsCompletedAfterACrash) {
  World world;
  three_wait(world);
  world.gang(7, "RUNNING", kThree);
  world.placed("b", 7, "node-2", false);
  world.live(7, {{"u-b", "Pending"}});
  EXPECT_THAT(world.seats(), ElementsAre(Pair("a", "node-1"), Pair("c", "node-3")));
  world.node("node-3", {{"spec", {{"unschedulable", true}}}});
  EXPECT_THAT(world.seats(), SizeIs(2)) << "all or none: Kubernetes may not bind it, and then the job ends";
  world.placed("b", 7, "node-2", true, kSucceeded);
  world.live(7, {{"u-b", "Succeeded"}});
  EXPECT_THAT(world.seats(), SizeIs(2)) << "it has even ended";
  world.delete_pod("b");
  world.live(7, {{"u-x", "Running"}});
  world.waits("b");
  world.node("node-3");
  EXPECT_THAT(world.seats(), IsEmpty()) << "the cache is behind";
  EXPECT_TRUE(world.plan().wake().has_value());
}

TEST(GangsPlan, PodsWaitForEarlierPodsOnAnyOfTheirNodes) {
  World world;
  three_wait(world);
  world.gang(7, "RUNNING", kThree);
  world.live(7);
  world.placed("old", 6, "node-2", true, Json::parse(R"({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})"));
  EXPECT_THAT(world.seats(), IsEmpty());
  EXPECT_THAT(world.told(), Contains(Pair("a", "NodeInUse: job 7 holds node-2, where pod ns/old is still terminating")));
}

/// The cache might still show the gate of an earlier pod that was placed.
TEST(GangsPlan, PodsWaitForPodsThatMayHaveBeenPlacedBeforeTheirJobEnded) {
  World world;
  three_wait(world);
  world.key = {"ns", "podgroup/before"};
  slurm::Job& ended = world.gang(6, "CANCELLED", {"old"});
  ended.nodes = {"node-2"};
  ended.end = world.now - core::Duration{60000};
  world.key = {"ns", "podgroup/train"};
  world.gang(7, "RUNNING", kThree);
  world.live(7);
  const Json labels{{std::string(kLabelPodGroup), "before"}};
  world.waiting_pod({{"metadata", {{"name", "new"}, {"uid", "u-new"}, {"labels", labels}}}});
  EXPECT_THAT(world.seats(), IsEmpty()) << "it may have taken the place of the other pod";
  EXPECT_THAT(world.plan().needs(), Contains(Field(&plan::Need::id, "unsure ns/new")));
  world.facts.insert_or_assign("unsure ns/new", plan::Fact{core::fail(core::ErrorCode::kUnavailable, "away"), world.mono});
  EXPECT_THAT(world.seats(), IsEmpty()) << "not known";
  EXPECT_THAT(world.told(), Contains(Pair("a", "NodeInUse: job 7 holds node-2, where pod ns/new is still terminating")));
  world.delete_pod("new");
  EXPECT_THAT(world.seats(), SizeIs(3));
}

TEST(GangsPlan, BesideASlurmdPodsWaitUntilEachNodeListsTheirJob) {
  World world;
  world.settings.holds_native_jobs = true;
  three_wait(world);
  world.gang(7, "RUNNING", kThree);
  world.live(7);
  for (const char* name : {"node-1", "node-3"}) world.nodes[name].state.flags = {"EXTERNAL"};
  EXPECT_THAT(world.seats(), IsEmpty());
  world.nodes["node-2"].extra = R"({"slurm-bridge":"7"})";
  EXPECT_THAT(world.seats(), SizeIs(3));
}

TEST(GangsPlan, AGroupThatStaysIncompleteGivesItsJobBack) {
  World world;
  three_wait(world);
  world.delete_pod("c");
  world.gang(7, "RUNNING", kThree);
  (void)world.plan();
  world.mono = world.mono + world.settings.bind_limit;
  EXPECT_THAT(world.needs(), ElementsAre("pods of job 7"));
  world.live(7);
  EXPECT_THAT(world.steps(), ElementsAre("note Pod ns/a: 7", "note Pod ns/b: 7", "replace Slurm job ns/podgroup/train: 7"));
  EXPECT_EQ(world.plan().lanes().at("replace").groups().size(), 2U) << "the pods say so before";
  for (const char* name : {"a", "b"})
    world.waits(name, {{"metadata", {{"annotations", {{std::string(kAnnotationReplacedJob), "7"}}}}}});
  world.gang(7, "CANCELLED", kThree);
  EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/a: queue", "report Pod ns/b: queue")) << "this is no end of the pods";
  world.waits("d");
  EXPECT_EQ(comment(world.act("submit")).at("key"), "g/2");
}

// --- Replacing ----------------------------------------------------------------------------------------------------------

/// Fault 6 of the Go bridge: a pod that was created again waited for ever.
TEST(GangsPlan, APodThatEndsEarlyIsReplacedInTheRunningJob) {
  World world;
  three_run(world);
  world.placed("b", 7, "node-2", true, kFailed);
  EXPECT_THAT(world.steps(), Not(Contains(HasSubstr("Slurm job")))) << "the others run on";
  world.waits("b2");
  world.live(7, {{"u-a", "Running"}, {"u-b", "Failed"}, {"u-c", "Running"}});
  EXPECT_THAT(world.seats(), ElementsAre(Pair("b2", "node-2")));
  world.delete_pod("b");
  EXPECT_THAT(world.seats(), ElementsAre(Pair("b2", "node-2")));
  world.placed("b", 7, "node-2", true, kTerminating);
  EXPECT_THAT(world.seats(), IsEmpty()) << "the earlier one still ends there";
  world.delete_pod("b");
  world.group(3, "another");
  EXPECT_THAT(world.seats(), IsEmpty()) << "it belongs to another PodGroup of the name";
}

TEST(GangsPlan, AReplacementGetsTheNodeOfItsIndex) {
  World world;
  three_run(world);
  world.delete_pod("a");
  world.delete_pod("b");
  world.waits("b2", Json::parse(R"({"metadata": {"labels": {"batch.kubernetes.io/job-completion-index": "1"}}})"));
  world.live(7, {{"u-c", "Running"}});
  EXPECT_THAT(world.seats(), ElementsAre(Pair("b2", "node-2")));
}

/// Somebody drained the node of the pod, so the pod was evicted. The new pod cannot run on that node yet.
TEST(GangsPlan, AReplacementWaitsUntilItsNodeCanRunIt) {
  World world;
  three_run(world);
  world.delete_pod("b");
  world.waits("b2");
  world.live(7, {{"u-a", "Running"}});
  world.node("node-2", {{"spec", {{"unschedulable", true}}}});
  EXPECT_THAT(world.seats(), IsEmpty());
  EXPECT_THAT(world.told(), Contains(Pair("b2", "NoNode: job 7 has no node that can run the pod: node-2 is cordoned")));
  EXPECT_THAT(world.steps(), Not(Contains(HasSubstr("Slurm job")))) << "the others run on";
  world.delete_pod("c");
  world.waits("c2");
  EXPECT_THAT(world.seats(), ElementsAre(Pair("c2", "node-3"))) << "another one does not wait for it";
  world.delete_pod("c2");
  world.placed("c", 7, "node-3");
  world.node("node-2");
  EXPECT_THAT(world.seats(), ElementsAre(Pair("b2", "node-2")));
}

/// The pods need not be in the order of the nodes: this order is only a preference.
TEST(GangsPlan, AReplacementTakesAnotherFreeNodeThatCanRunIt) {
  const auto indexed = [](const std::string& index) {
    return Json{{"metadata", {{"labels", {{"batch.kubernetes.io/job-completion-index", index}}}}}};
  };
  World world;
  three_run(world);
  for (const char* name : {"b", "c"}) world.delete_pod(name);
  world.live(7, {{"u-a", "Running"}});
  world.node("node-2", {{"spec", {{"unschedulable", true}}}});
  world.waits("b2", indexed("1"));
  EXPECT_THAT(world.seats(), ElementsAre(Pair("b2", "node-3")));
  world.waits("c2", indexed("2"));
  EXPECT_THAT(world.seats(), ElementsAre(Pair("c2", "node-3"))) << "it has the node of its index";
  EXPECT_THAT(world.told(), Contains(Pair("b2", "NoNode: job 7 has no node that can run the pod: node-2 is cordoned")));
  world.delete_pod("c2");
  world.placed("b2", 7, "node-3", true, indexed("1"));
  world.live(7, {{"u-a", "Running"}, {"u-b2", "Running"}});
  world.waits("c2", indexed("2"));
  EXPECT_THAT(world.seats(), IsEmpty()) << "never two pods on one node";
  world.node("node-2");
  EXPECT_THAT(world.seats(), ElementsAre(Pair("c2", "node-2")));
}

TEST(GangsPlan, ReplacementsExchangeTheirNodes) {
  World world;
  three_run(world);
  for (const char* name : {"b", "c"}) world.delete_pod(name);
  world.live(7, {{"u-a", "Running"}});
  world.node("node-2", {{"metadata", {{"labels", {{"disk", "slow"}}}}}});
  world.node("node-3", {{"metadata", {{"labels", {{"disk", "fast"}}}}}});
  world.waits("b2", {{"spec", {{"nodeSelector", {{"disk", "fast"}}}}}});
  world.waits("c2", {{"spec", {{"nodeSelector", {{"disk", "slow"}}}}}});
  EXPECT_THAT(world.seats(), ElementsAre(Pair("b2", "node-3"), Pair("c2", "node-2")));
}

TEST(GangsPlan, AReplacementThatIsNotBoundEndsAlone) {
  World world;
  three_run(world);
  world.delete_pod("b");
  world.placed("b2", 7, "node-2", false);
  (void)world.plan();
  world.mono = world.mono + world.settings.bind_limit;
  EXPECT_THAT(world.steps(), Contains("fail Pod ns/b2"));
  world.placed("b2", 7, "node-2", false, Json::parse(R"({"status": {"phase": "Failed", "reason": "SlurmNotBound"}})"));
  EXPECT_THAT(world.steps(), Not(Contains(HasSubstr("Slurm job")))) << "the others run on";
  world.waits("b3");
  world.live(7, {{"u-a", "Running"}, {"u-b2", "Failed"}, {"u-c", "Running"}});
  EXPECT_THAT(world.seats(), ElementsAre(Pair("b3", "node-2")));
}

TEST(GangsPlan, NoReplacementForAJobThatEndsSoon) {
  World world;
  three_run(world);
  world.delete_pod("b");
  world.waits("b2");
  world.live(7, {{"u-a", "Running"}, {"u-c", "Running"}});
  slurm::Job& job = world.jobs.at(7);
  job.start = world.now - core::Duration{3600000};
  job.end = world.now + core::Duration{1000};
  EXPECT_THAT(world.seats(), IsEmpty());
  EXPECT_THAT(world.told(), Contains(Pair("b2", HasSubstr("JobEndsSoon"))));
}

TEST(GangsPlan, AJobThatEndsSoonIsReplacedIfNoPodWasPlaced) {
  World world;
  three_wait(world);
  world.live(7);
  slurm::Job& job = world.gang(7, "RUNNING", kThree);
  job.start = world.now - core::Duration{3600000};
  job.end = world.now + core::Duration{1000};
  EXPECT_THAT(world.steps(), ElementsAre("note Pod ns/a: 7", "note Pod ns/b: 7", "note Pod ns/c: 7",
                                         "replace Slurm job ns/podgroup/train: 7"));
}

// --- Ends ---------------------------------------------------------------------------------------------------------------

TEST(GangsPlan, TheJobEndsWithTheLastPod) {
  World world;
  world.capabilities.slurmdb = true;
  three_run(world);
  world.placed("a", 7, "node-1", true, kSucceeded);
  world.delete_pod("b");
  EXPECT_THAT(world.needs(), IsEmpty());
  world.placed("c", 7, "node-3", true, Json::parse(R"({"status": {"phase": "Failed", "containerStatuses": [
    {"name": "c", "state": {"terminated": {"exitCode": 3}}}]}})"));
  EXPECT_THAT(world.needs(), ElementsAre("pods of job 7"));
  world.live(7, {{"u-x", "Running"}});
  EXPECT_THAT(world.steps(), IsEmpty()) << "the cache is behind";
  world.live(7, {{"u-a", "Succeeded"}, {"u-c", "Failed"}});
  EXPECT_THAT(world.steps(), ElementsAre("record Slurm job 7", "comment Slurm job 7", "cancel Slurm job 7"));
  EXPECT_EQ(world.act("record").at("exitCode"), 3);
  EXPECT_EQ(world.act("comment").at("wish").at("comment"), "all of its pods have ended");
  // The next pods of the group get another job.
  three_wait(world);
  for (const std::string& name : kThree) world.waits(name, {{"metadata", {{"uid", "new-" + name}}}});
  world.live(7);
  EXPECT_THAT(world.steps(), Contains("cancel Slurm job 7"));
  EXPECT_EQ(comment(world.act("submit")).at("key"), "g/2");
}

TEST(GangsPlan, TheEndOfTheJobEndsAllPods) {
  World world;
  three_run(world);
  world.placed("c", 7, "node-3", false);
  world.gang(7, "PREEMPTED", kThree);
  world.waits("d");
  world.group(1);
  EXPECT_THAT(world.steps(), UnorderedElementsAre("fail Pod ns/c", "report Pod ns/a: end", "evict Pod ns/a",
                                                  "report Pod ns/b: end", "evict Pod ns/b", kSubmit));
  EXPECT_EQ(comment(world.act("submit")).at("pods"), Json::parse(R"([{"ns": "ns", "name": "d", "uid": "u-d"}])"));
}

TEST(GangsPlan, TheEndOfAJobThatWaitsEndsThePodsThatItWasFor) {
  World world;
  three_wait(world);
  world.waits("d");
  world.gang(7, "CANCELLED", kThree);
  EXPECT_THAT(world.steps(), UnorderedElementsAre("fail Pod ns/a", "fail Pod ns/b", "fail Pod ns/c", "report Pod ns/d: queue"));
}

TEST(GangsPlan, APodThatIsNotBoundEndsTheJob) {
  World world;
  three_run(world);
  world.placed("c", 7, "node-3", false);
  (void)world.plan();
  world.mono = world.mono + world.settings.bind_limit;
  EXPECT_THAT(world.steps(), Contains("fail Pod ns/c"));
  EXPECT_EQ(world.act("fail").at("patch").at("status").at("reason"), "SlurmNotBound");
  world.placed("c", 7, "node-3", false, Json::parse(R"({"status": {"phase": "Failed", "reason": "SlurmNotBound"}})"));
  EXPECT_THAT(world.steps(), Contains("cancel Slurm job 7"));
  EXPECT_EQ(world.act("comment").at("wish").at("comment"), "pod c could not be bound");
  world.placed("c", 7, "node-3", true, kFailed);
  EXPECT_THAT(world.steps(), Not(Contains("cancel Slurm job 7"))) << "it ended by itself";
}

TEST(GangsPlan, APodOnASilentNodeLooksAgainWhileMostNodesAreSilent) {
  World world;
  three_run(world);
  const Json silent{{"status", {{"conditions", World::ready("Unknown")}}}};
  for (const char* name : {"node-2", "node-3"}) world.node(name, silent);
  EXPECT_EQ(world.plan().wake(), core::Duration{30000});
  world.node("node-3");
  EXPECT_EQ(world.plan().wake(), world.settings.silence_limit);
}

TEST(GangsPlan, ARefusedJobIsNoEnd) {
  World world;
  three_wait(world);
  const std::string said = world.act("submit").at("comment");
  slurm::Job& job = world.gang(7, "FAILED", kThree);
  job.start = job.end = core::WallTime{core::Duration{1000}};
  world.change_details(job, [&](slurm::JobDetails& details) {
    details.reason = "BadConstraints";
    details.admin_comment = said;
  });
  EXPECT_THAT(world.told(), Contains(Pair("a", HasSubstr("Refused: Slurm refused job 7"))));
  EXPECT_THAT(world.steps(), SizeIs(3));
  world.mono = world.mono + core::Duration{5 * 60 * 1000};
  EXPECT_EQ(comment(world.act("submit")).at("key"), "g/2");
}

TEST(GangsPlan, ASecondJobIsCancelled) {
  World world;
  three_wait(world);
  world.gang(7, "PENDING", kThree);
  world.gang(8, "RUNNING", kThree);
  EXPECT_THAT(world.needs(), ElementsAre("pods of job 8"));
  world.live(8);
  EXPECT_THAT(world.steps(), Contains("cancel Slurm job 8"));
  EXPECT_THAT(world.steps(), Not(Contains("cancel Slurm job 7")));
  world.placed("a", 8, "node-1");
  world.live(7);
  world.live(8, {{"u-a", "Running"}});
  EXPECT_THAT(world.steps(), Contains("cancel Slurm job 7")) << "a pod was placed for the other";
  EXPECT_THAT(world.seats(), SizeIs(2));
}

TEST(GangsPlan, UsersCannotTakeAPodOutOfItsJob) {
  World world;
  three_run(world);
  for (const char* name : {"a", "c"}) world.delete_pod(name);
  const auto pod = std::make_shared<Pod>(*world.caches().pods.find({"ns", "b"}));
  pod->meta.labels.clear();
  pod->meta.resource_version = "1000";
  world.caches().pods.upsert(pod);
  EXPECT_THAT(world.needs(), IsEmpty()) << "the job still has a pod";
  world.jobs.at(7).state = "CANCELLED";
  EXPECT_THAT(world.steps(), Contains("evict Pod ns/b"));
}

// --- Every state of a job against every state of its pods ---------------------------------------------------------------

TEST(GangsPlan, EveryLiveStateOfAJob) {
  const std::vector<std::string> told{"report Pod ns/a: queue", "report Pod ns/b: queue", "report Pod ns/c: queue"};
  for (const std::string& state : kLive) {
    SCOPED_TRACE(state);
    const bool runs = state == "RUNNING";
    World world;
    world.gang(7, state, kThree);
    three_wait(world);
    world.live(7);
    EXPECT_EQ(
        world.steps(),
        runs ? (std::vector<std::string>{"confirm Slurm job 7", "place Pod ns/a", "place Pod ns/b", "place Pod ns/c"}) : told);
    for (const bool bound : {false, true}) {
      three_placed(world, bound);
      EXPECT_EQ(world.steps(), runs ? told : std::vector<std::string>{});
      world.placed("c", 7, "node-3", bound, kTerminating);
      EXPECT_THAT(world.steps(), Not(Contains(HasSubstr("Pod ns/c"))));
      EXPECT_THAT(world.steps(), Not(Contains(HasSubstr("Slurm job"))));
      three_placed(world, bound, kTerminating);
      EXPECT_THAT(world.steps(), IsEmpty()) << "the job lasts until the last pod is gone";
    }
    three_placed(world);
    world.placed("c", 7, "node-3", true, kSucceeded);
    EXPECT_THAT(world.steps(), Not(Contains(HasSubstr("Slurm job")))) << "the others run on";
    three_placed(world, true, kSucceeded);
    EXPECT_THAT(world.steps(), Contains("cancel Slurm job 7"));
    three_freed(world);
    EXPECT_THAT(world.steps(), Contains("cancel Slurm job 7")) << "somebody removed the gates";
    three_wait(world, kTerminating);
    EXPECT_THAT(world.steps(), Contains("cancel Slurm job 7")) << "deleted before they started";
    for (const std::string& name : kThree) world.delete_pod(name);
    EXPECT_THAT(world.steps(), Contains("cancel Slurm job 7"));
  }
}

/// Fault 3 of the Go bridge: it took only COMPLETED and CANCELLED for the end of a job, and placed pods after any other end.
TEST(GangsPlan, EveryEndOfAJob) {
  for (const std::string& state : kEnds) {
    SCOPED_TRACE(state);
    World world;
    world.gang(7, state, kThree);
    three_wait(world);
    if (state == "TIMEOUT") {
      EXPECT_THAT(world.steps(), ElementsAre(kSubmit)) << "the pods have had none of the time";
    } else {
      EXPECT_THAT(world.steps(), UnorderedElementsAre("fail Pod ns/a", "fail Pod ns/b", "fail Pod ns/c"));
    }
    three_placed(world, false);
    EXPECT_THAT(world.steps(), UnorderedElementsAre("fail Pod ns/a", "fail Pod ns/b", "fail Pod ns/c"));
    three_placed(world);
    EXPECT_THAT(world.steps(), UnorderedElementsAre("report Pod ns/a: end", "evict Pod ns/a", "report Pod ns/b: end",
                                                    "evict Pod ns/b", "report Pod ns/c: end", "evict Pod ns/c"));
    world.placed("b", 7, "node-2", true, kSucceeded);
    world.placed("c", 7, "node-3", false);
    EXPECT_THAT(world.steps(), UnorderedElementsAre("report Pod ns/a: end", "evict Pod ns/a", "fail Pod ns/c"));
    three_placed(world, true, kTerminating);
    EXPECT_THAT(world.steps(), IsEmpty());
    three_placed(world, true, kSucceeded);
    EXPECT_THAT(world.steps(), IsEmpty());
    three_freed(world);
    EXPECT_THAT(world.steps(), IsEmpty());
    three_wait(world, kTerminating);
    EXPECT_THAT(world.steps(), IsEmpty());
    for (const std::string& name : kThree) world.delete_pod(name);
    EXPECT_THAT(world.steps(), IsEmpty());
    EXPECT_THAT(world.needs(), IsEmpty());
  }
}

TEST(GangsPlan, PodsOutliveTheirJobOnlyForSoLong) {
  World world;
  three_placed(world, true, {{"spec", {{"terminationGracePeriodSeconds", 31536000}}}});
  world.placed("b", 7, "node-2", true, Json::parse(R"({"metadata": {"deletionTimestamp": "2026-12-31T00:00:00Z"}})"));
  world.gang(7, "CANCELLED", kThree);
  world.fact("ending ns/b", {{"metadata", {{"uid", "u-b"}, {"deletionGracePeriodSeconds", 31536000}}}});
  EXPECT_EQ(world.act("evict Pod ns/a").at("graceSeconds"), 300);
  EXPECT_EQ(world.act("evict Pod ns/b").at("graceSeconds"), 300) << "it is being deleted already";
}

/// Only slurmctld's clock determines when a job ends.
TEST(GangsPlan, AWrongClockOfTheBridgeEndsNoPod) {
  World world;
  three_run(world);
  world.slurm_clock = world.now - std::chrono::hours(1);
  slurm::Job& job = world.jobs.at(7);
  job.start = *world.slurm_clock - std::chrono::minutes(10);
  job.end = *world.slurm_clock + std::chrono::minutes(10);
  EXPECT_THAT(world.steps(), Not(Contains(HasSubstr("evict"))));
  world.delete_pod("b");
  world.waits("b2");
  world.live(7, {{"u-a", "Running"}, {"u-c", "Running"}});
  EXPECT_THAT(world.seats(), ElementsAre(Pair("b2", "node-2"))) << "it does not end soon";
}

TEST(GangsPlan, APodThatSomebodyElseFreedIsToldThatItWaitsNoMore) {
  World world;
  world.pod(Json::parse(R"({"metadata": {"name": "a", "uid": "u-a", "labels": {"scheduling.x-k8s.io/pod-group": "train"}},
    "status": {"conditions": [{"type": "SlurmQueued", "status": "True", "reason": "Priority"}]}})"));
  EXPECT_THAT(world.told(), ElementsAre(Pair("a", HasSubstr("Freed: somebody removed the gate"))));
}

// --- Retiring -----------------------------------------------------------------------------------------------------------

TEST(GangsPlan, ABridgeThatRetiresLetsPodsGoThoughSlurmDoesNotAnswer) {
  World world;
  world.settings.retires = true;
  three_wait(world);
  world.gang(7, "PENDING", kThree);
  EXPECT_THAT(world.steps(), Contains("let go Pod ns/b"));
  world.health = slurm::Snapshot::Health::kStale;
  for (const char* state : {"PENDING", "RUNNING", "CANCELLED"}) {
    world.gang(7, state, kThree);
    (void)world.steps();
    world.mono = world.mono + core::Duration{5000};
    EXPECT_THAT(world.steps(), AllOf(Contains("let go Pod ns/a"), Contains("let go Pod ns/b"), Contains("let go Pod ns/c"),
                                     Not(Contains(HasSubstr("Slurm job")))));
  }
}

// --- Doubt --------------------------------------------------------------------------------------------------------------

TEST(GangsPlan, NothingEndsOnDoubt) {
  World world;
  world.health = slurm::Snapshot::Health::kStale;
  for (const char* state : {"RUNNING", "CANCELLED"}) {
    three_run(world);
    world.gang(7, state, kThree);
    EXPECT_THAT(world.steps(), IsEmpty()) << state;
    for (const std::string& name : kThree) world.delete_pod(name);
    EXPECT_THAT(world.needs(), IsEmpty()) << state;
    EXPECT_THAT(world.steps(), IsEmpty()) << state;
  }
  world.health = slurm::Snapshot::Health::kComplete;
  world.gang(7, "RUNNING", kThree);
  EXPECT_THAT(world.needs(), ElementsAre("pods of job 7"));
  world.facts.insert_or_assign("pods of job 7", plan::Fact{core::fail(core::ErrorCode::kUnavailable, "away"), world.mono});
  EXPECT_THAT(world.steps(), IsEmpty());
}

TEST(GangsPlan, JobsOfOthersAreNoneOfOurs) {
  World world;
  three_wait(world);
  world.change_details(world.gang(7, "RUNNING", kThree), [](slurm::JobDetails& details) {
    Json said = Json::parse(details.admin_comment);
    said["instance"] = "cluster-b";
    details.admin_comment = said.dump();
  });
  world.live(7);
  EXPECT_THAT(world.steps(), ElementsAre(kSubmit));
}

// --- Jobs of Kubernetes -------------------------------------------------------------------------------------------------

TEST(GangsPlan, TheJobOfAllPodsOfAJob) {
  World world;
  world.key = {"ns", "job/sweep"};
  world.facts.clear();
  const auto of_job = [](const std::string& uid) {
    return Json{
        {"metadata",
         {{"annotations", {{std::string(kAnnotationGang), "true"}}},
          {"labels", {{std::string(kLabelPodGroup), nullptr}}},
          {"ownerReferences",
           Json::array(
               {{{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"name", "sweep"}, {"uid", uid}, {"controller", true}}})}}}};
  };
  const auto waits = [&](const std::string& name, const std::string& job) {
    Json more = of_job(job);
    more["metadata"]["name"] = name;
    more["metadata"]["uid"] = "u-" + name;
    world.waiting_pod(more);
  };
  waits("a", "j");
  waits("b", "j");
  waits("old", "i");
  EXPECT_THAT(world.needs(), ElementsAre("group"));
  const auto answer = [&](const Json& spec, int succeeded) {
    const Json job{{"metadata", {{"uid", "j"}}}, {"spec", spec}, {"status", {{"succeeded", succeeded}}}};
    world.fact("group", job);
  };
  answer({{"parallelism", 4}, {"completions", 3}}, 0);
  EXPECT_THAT(world.told(), Contains(Pair("a", "GroupIncomplete: job/sweep has 2 of the 3 pods that it needs")));
  answer({{"parallelism", 4}, {"completions", 3}}, 1);
  EXPECT_EQ(world.act("submit").at("wish").at("nodes"), 2);
  EXPECT_EQ(comment(world.act("submit")).at("key"), "j/1");
  answer({{"parallelism", 2}}, 0);
  EXPECT_EQ(world.act("submit").at("wish").at("nodes"), 2);
}

}  // namespace
}  // namespace bridge::gangs
