#include "bridge/jobs/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bridge/common/held.hpp"
#include "bridge/jobs/testing/world.hpp"

namespace bridge::jobs {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Json;
using ::testing::Not;
using ::testing::StartsWith;
using testing::World;

const std::vector<std::string> kLive{"PENDING", "RUNNING", "RUNNING+CONFIGURING", "SUSPENDED", "STRANGE"};
const std::vector<std::string> kEnds{"COMPLETED", "CANCELLED", "FAILED",   "TIMEOUT",       "NODE_FAIL",
                                     "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY", "REVOKED"};
const auto kSubmit = StartsWith("submit Slurm job ns/p: u ");
const Json kSucceeded{{"status", {{"phase", "Succeeded"}}}};
const Json kTerminating{{"metadata", {{"deletionTimestamp", "2026-01-01T00:00:00Z"}}}};

/// Returns the condition in the patch of a step; null if there is none.
Json condition(const Json& act, std::string_view type) {
  const Json* conditions = core::find(act, {"patch", "status", "conditions"});
  if (conditions == nullptr) return nullptr;
  for (const Json& one : *conditions) {
    if (one.at("type") == type) return one;
  }
  return nullptr;
}

// --- A pod that waits -------------------------------------------------------------------------------------------------------

/// Fault 4 of the Go bridge: it submitted a job and then wrote a label on the pod. If it crashed in between, it submitted
/// another job, and the first job was left behind. In this bridge, the job itself names the pod, and nothing has to be written
/// on the pod.
TEST(JobsPlan, APodWithTheGateIsSubmittedOnce) {
  World world;
  world.waiting_pod();
  const Json act = world.act("submit");
  EXPECT_THAT(world.steps(), ElementsAre(kSubmit));
  EXPECT_EQ(act.at("cluster"), "slurm/demo");
  Json comment = Json::parse(act.at("comment").get<std::string>());
  EXPECT_FALSE(comment.at("wish").get<std::string>().empty());
  comment.erase("wish");
  EXPECT_EQ(comment, Json::parse(R"({"owner": "slurm-bridge", "instance": "cluster-a", "key": "u/1",
                                     "pods": [{"ns": "ns", "name": "p", "uid": "u"}]})"));
  EXPECT_EQ(act.at("wish"), Json::parse(R"({"name": "p", "nodes": 1, "tasks_per_node": 1, "cpus_per_task": 2,
                                            "memory_per_node": 100, "shared": ["none"]})"));
  world.job(7, "PENDING");
  EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: queue"));
  const Json told = condition(world.act("report"), kConditionQueued);
  world.waiting_pod({{"status", {{"conditions", Json::array({told})}}}});
  EXPECT_THAT(world.steps(), IsEmpty()) << "nothing is written again and again";
}

TEST(JobsPlan, ABridgeThatRetiresLetsPodsGoAndSubmitsNothing) {
  World world;
  world.settings.retires = true;
  world.waiting_pod();
  EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: queue", "let go Pod ns/p"));
  EXPECT_EQ(condition(world.act("report"), kConditionQueued)["reason"], "Retired");
  const Json patch = world.act("let go")["patch"];
  EXPECT_THAT(patch.dump(), HasSubstr(R"({"op":"remove","path":"/spec/schedulingGates/0"})"));
  EXPECT_THAT(patch.dump(), Not(HasSubstr("affinity")));
  world.job(7, "PENDING");
  EXPECT_THAT(world.steps(), Contains("let go Pod ns/p")) << "the job is cancelled when the pod is free";
  world.job(7, "RUNNING");
  EXPECT_THAT(world.steps(), Not(Contains(StartsWith("place"))));
}

/// Pods must not wait for a Slurm cluster that might never answer again.
TEST(JobsPlan, ABridgeThatRetiresLetsPodsGoThoughSlurmDoesNotAnswer) {
  for (const auto health : {slurm::Snapshot::Health::kStale, slurm::Snapshot::Health::kNone}) {
    World world;
    world.settings.retires = true;
    world.health = health;
    world.job(7, "RUNNING");
    world.waiting_pod({{"status", {{"conditions", Json::parse(R"([{"type": "SlurmQueued", "status": "True"}])")}}}});
    EXPECT_THAT(world.steps(), IsEmpty()) << "Slurm may only be slow";
    EXPECT_EQ(world.plan().wake(), core::Duration{5000});
    world.mono = world.mono + core::Duration{5000};
    EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: queue", "let go Pod ns/p"));
    EXPECT_THAT(condition(world.act("report"), kConditionQueued).at("message").get<std::string>(),
                HasSubstr("Slurm does not answer, and may still have a job of the pod"));
    EXPECT_FALSE(world.act("let go").at("resourceVersion").get<std::string>().empty()) << "it may be placed meanwhile";
    world.placed_pod(7, "node-2");
    EXPECT_THAT(world.steps(), IsEmpty()) << "it was placed";
    world.pod();
    world.health = slurm::Snapshot::Health::kComplete;
    EXPECT_THAT(world.steps(), ElementsAre("comment Slurm job 7", "cancel Slurm job 7")) << "Slurm is back";
  }
}

TEST(JobsPlan, ABridgeThatRetiresStillServesPodsThatRun) {
  World world;
  world.settings.retires = true;
  world.job(7, "CANCELLED");
  world.placed_pod(7, "node-2");
  EXPECT_THAT(world.steps(), Contains(StartsWith("evict")));
}

TEST(JobsPlan, ABridgeThatRetiresStaysForPodsAndJobs) {
  World world;
  (void)world.steps();
  const auto left = [&] { return world.controller().left(); };
  EXPECT_THAT(left(), IsEmpty());
  world.waiting_pod();
  EXPECT_THAT(left(), ElementsAre("pod ns/p"));
  world.placed_pod(7, "node-2");
  EXPECT_THAT(left(), ElementsAre("pod ns/p"));
  world.placed_pod(7, "node-2", kSucceeded);
  EXPECT_THAT(left(), IsEmpty());
  world.job(7, "RUNNING");
  (void)world.steps();
  EXPECT_THAT(left(), ElementsAre("job 7"));
  world.job(7, "CANCELLED");
  (void)world.steps();
  EXPECT_THAT(left(), IsEmpty());
}

TEST(JobsPlan, AJobOfAnotherInstallationIsNoneOfOurs) {
  World world;
  world.waiting_pod();
  world.job(7, "RUNNING", "u", "cluster-b");
  EXPECT_THAT(world.steps(), ElementsAre(kSubmit));
  world.delete_pod();
  EXPECT_THAT(world.steps(), IsEmpty());
  EXPECT_TRUE(world.plan().needs().empty());
}

/// Fault 1 of the Go bridge: it cancelled jobs of others, because it took any job whose admin_comment was a JSON object or
/// `null` for its own.
TEST(JobsPlan, AForeignJobIsNeverTouched) {
  World world;
  for (const char* comment :
       {"{}", "null", R"({"jobstats": 1})", R"({"pods": ["ns/p"]})", R"({"pods": [{"ns": "ns", "name": "p", "uid": "u"}]})"}) {
    world.change_details(world.job(7, "RUNNING"), [&](slurm::JobDetails& details) { details.admin_comment = comment; });
    EXPECT_THAT(world.steps(), IsEmpty()) << comment;
    EXPECT_TRUE(world.plan().needs().empty()) << comment;
  }
  world.change_details(world.job(7, "RUNNING"), [&](slurm::JobDetails& details) { details.external = false; });
  EXPECT_TRUE(world.plan().needs().empty());
}

TEST(JobsPlan, NothingIsSubmittedElsewhere) {
  World world;
  world.settings.managed_namespaces = {"other"};
  world.waiting_pod();
  EXPECT_THAT(world.steps(), IsEmpty());
  world.pod();
  EXPECT_THAT(world.steps(), IsEmpty()) << "it has no gate";
}

TEST(JobsPlan, ASlurmThatIsTooOldIsToldAndNothingIsDone) {
  World world;
  world.capabilities = {.release = "25.05.9", .data_parser = "v0.0.43"};
  world.waiting_pod();
  EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: queue"));
  const Json told = condition(world.act("report"), kConditionQueued);
  EXPECT_EQ(told.at("reason"), "Unsupported");
  EXPECT_THAT(told.at("message").get<std::string>(), HasSubstr("25.05.9"));
}

TEST(JobsPlan, NodesThatCannotRunThePodAreExcluded) {
  World world;
  world.slurm_node("compute-1");
  world.slurm_node("elsewhere", {"other"});
  world.node("node-1", Json::parse(R"({"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"},
                                       {"key": "slinky.slurm.net/managed-node", "effect": "NoSchedule"}]}})"));
  world.node("node-2",
             Json::parse(R"({"spec": {"taints": [{"key": "slinky.slurm.net/managed-node", "effect": "NoExecute"}]}})"));
  world.waiting_pod({{"metadata", {{"annotations", {{"slurmjob.slinky.slurm.net/partition", "batch"}}}}}});
  EXPECT_EQ(world.act("submit").at("wish").at("excluded_nodes"), (Json{"compute-1", "node-1"}));
  world.node("node-2", {{"status", {{"allocatable", {{"cpu", "1"}, {"memory", "16Gi"}}}}}});
  EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: queue"));
  const Json told = condition(world.act("report"), kConditionQueued);
  EXPECT_EQ(told.at("reason"), "NoNode");
  EXPECT_EQ(told.at("message"),
            "no node of partition batch can run the pod: 1 outside of this Kubernetes cluster, 1 short of cpu, "
            "1 tainted with gpu");
}

TEST(JobsPlan, ANodeOfAnotherKubernetesClusterIsExcluded) {
  World world;
  world.node("node-1");
  world.slurm_node("node-1");
  world.waiting_pod();
  EXPECT_FALSE(world.act("submit").at("wish").contains("excluded_nodes"));
  slurm::Node& node = world.nodes["node-1"];
  node.state.flags = {"EXTERNAL"};
  node.features = {"slurm-bridge/cluster-b/12345678"};
  EXPECT_EQ(world.act("submit").at("wish").at("excluded_nodes"), Json{"node-1"});
  node.features = {"slurm-bridge/" + std::string(testing::kInstallation) + "/12345678"};
  EXPECT_FALSE(world.act("submit").at("wish").contains("excluded_nodes"));
  // A node with a slurmd has no mark: the list of jobs in `extra` shows which cluster uses the node.
  node.state.flags.clear();
  node.features.clear();
  node.extra = extra_of({{12}, "cluster-b"});
  EXPECT_EQ(world.act("submit").at("wish").at("excluded_nodes"), Json{"node-1"});
  world.job(7, "RUNNING").nodes = {"node-1"};
  EXPECT_THAT(world.steps(), ElementsAre("note Pod ns/p: 7", "replace Slurm job ns/p: 7"));
}

TEST(JobsPlan, OtherCandidatesAreSentWhileTheJobWaits) {
  World world;
  world.waiting_pod();
  slurm::Job& job = world.job(7, "PENDING");
  EXPECT_THAT(world.steps(), Not(Contains("update Slurm job 7")));
  world.slurm_node("compute-1");
  EXPECT_THAT(world.steps(), Contains("update Slurm job 7"));
  EXPECT_EQ(world.act("update").at("wish"), (Json{{"excluded_nodes", Json::array({"compute-1"})}}));
  world.change_details(job, [](slurm::JobDetails& details) { details.excluded_nodes = "compute-[1]"; });
  EXPECT_THAT(world.steps(), Not(Contains("update Slurm job 7")));
}

TEST(JobsPlan, WhyAPodWaitsIsTold) {
  World world;
  world.waiting_pod();
  slurm::Job& job = world.job(7, "PENDING");
  job.start = core::parse_rfc3339("2026-01-01T10:01:00Z").value();
  const Json told = condition(world.act("report"), kConditionQueued);
  EXPECT_EQ(told.at("status"), "True");
  EXPECT_EQ(told.at("reason"), "Resources");
  EXPECT_EQ(told.at("message"), "job 7 waits in partition batch: Resources, expected start 2026-01-01T10:10:00Z");
  world.waiting_pod({{"status", {{"conditions", Json::array({told})}}}});
  EXPECT_THAT(world.steps(), IsEmpty()) << "it is told already";
  job.start = world.now + core::Duration{365LL * 24 * 60 * 60 * 1000};
  EXPECT_EQ(condition(world.act("report"), kConditionQueued).at("message"), "job 7 waits in partition batch: Resources");
}

TEST(JobsPlan, WhatSlurmRefusesIsTold) {
  World world;
  world.waiting_pod();
  plan::Outcome failed;
  failed.state = plan::Outcome::State::kFailed;
  failed.error = core::fail(core::ErrorCode::kInvalid, "submit job: Invalid qos specification").error();
  failed.last = world.mono;
  world.outcomes[World::steps_of(world.plan()).front().id] = failed;
  EXPECT_EQ(condition(world.act("report"), kConditionQueued).at("message"), "submit job: Invalid qos specification");
  EXPECT_THAT(world.steps(), Not(Contains(kSubmit))) << "each attempt uses up the number of a job";
  EXPECT_EQ(world.plan().wake(), core::Duration{30000});
  const core::MonoTime before = std::exchange(world.mono, world.mono + core::Duration{30000});
  EXPECT_THAT(world.steps(), Contains(kSubmit)) << "it is tried again";
  world.mono = before;
  world.waiting_pod({{"metadata", {{"annotations", {{"slurmjob.slinky.slurm.net/qos", "normal"}}}}}});
  EXPECT_THAT(world.steps(), ElementsAre(kSubmit)) << "the pod asks for something else";
  world.waiting_pod();
  world.outcomes.begin()->second.error->code = core::ErrorCode::kUnavailable;
  EXPECT_THAT(world.steps(), ElementsAre(kSubmit));
}

/// A process that has just started has not asked Slurm yet.
TEST(JobsPlan, APodIsToldThatSlurmDoesNotAnswerOnlyAfterAWhile) {
  World world;
  world.health = slurm::Snapshot::Health::kNone;
  world.waiting_pod();
  EXPECT_THAT(world.steps(), IsEmpty());
  EXPECT_EQ(world.plan().wake(), core::Duration{5000});
  world.mono = world.mono + core::Duration{5000};
  EXPECT_EQ(condition(world.act("report"), kConditionQueued).at("reason"), "SlurmUnavailable");
  world.health = slurm::Snapshot::Health::kComplete;
  EXPECT_THAT(world.steps(), ElementsAre(kSubmit));
}

/// slurmctld still lists a job that it refused. A pod whose job was only refused has not ended.
TEST(JobsPlan, ARefusedJobIsSubmittedAgainIfSomethingElseIsAskedForOrAfterAWhile) {
  World world;
  world.waiting_pod();
  const std::string comment = world.act("submit").at("comment");
  slurm::Job& job = world.job(7, "FAILED");
  job.start = job.end = core::WallTime{core::Duration{1000}};
  world.change_details(job, [&](slurm::JobDetails& details) {
    details.reason = "BadConstraints";
    details.admin_comment = comment;
  });
  EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: queue"));
  EXPECT_EQ(condition(world.act("report"), kConditionQueued).at("reason"), "Refused");
  world.mono = world.mono + core::Duration{5 * 60 * 1000};
  EXPECT_THAT(world.steps(), ElementsAre(kSubmit));
  world.mono = world.mono - core::Duration{60000};
  EXPECT_THAT(world.steps(), Not(Contains(kSubmit)));
  world.waiting_pod({{"metadata", {{"annotations", {{"slurmjob.slinky.slurm.net/cpu-per-task", "1"}}}}}});
  EXPECT_THAT(world.steps(), ElementsAre(kSubmit));
  EXPECT_EQ(Json::parse(world.act("submit").at("comment").get<std::string>()).at("key"), "u/2");
}

TEST(JobsPlan, WhatCannotBeHonouredIsRefusedByName) {
  const auto refused = [](const Json& more) {
    World world;
    world.waiting_pod(more);
    EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: queue")) << more;
    return condition(world.act("report"), kConditionQueued).value("message", "");
  };
  const auto annotated = [&](const std::string& name, const char* value) {
    return refused({{"metadata", {{"annotations", {{std::string(kAnnotationPrefix) + name, value}}}}}});
  };
  EXPECT_EQ(annotated("timelimit", "1h"),
            "annotation slurmjob.slinky.slurm.net/timelimit: \"1h\", must be a whole number of minutes, 1 or more");
  EXPECT_THAT(annotated("user-id", "0"), HasSubstr("--trust-identities"));
  EXPECT_THAT(annotated("priority", "9"), HasSubstr("--trust-identities"));
  EXPECT_THAT(annotated("cpu-per-task", "0"), HasSubstr("must be a quantity of CPUs above 0 and at most 65533"));
  EXPECT_THAT(annotated("mem-per-node", "much"), HasSubstr("must be a quantity of memory above 0"));
  EXPECT_THAT(annotated("max-nodes", "2"), HasSubstr("1 for a single pod"));
  EXPECT_THAT(annotated("gres", "gpu:2,"), HasSubstr("must be GRES as of sbatch --gres, such as gpu:2"));
  EXPECT_THAT(annotated("exclusive", "maybe"), HasSubstr("true, false, user, mcs or topo"));
  EXPECT_THAT(annotated("time-limit", "5"), HasSubstr("does not know it"));
  EXPECT_THAT(annotated("gang", "true"), HasSubstr("belongs to no Job"));
  EXPECT_THAT(refused(Json::parse(R"({"spec": {"affinity": {"podAntiAffinity":
                {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "a"}]}}}})")),
              HasSubstr("podAntiAffinity"));
  EXPECT_THAT(refused(Json::parse(R"({"spec": {"affinity": {"nodeAffinity":
                {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}}}})")),
              HasSubstr("matches no node"));
}

TEST(JobsPlan, AnnotationsBecomeFieldsOfTheJob) {
  World world;
  world.settings.trusts_identities = true;
  world.settings.partition = "batch";
  world.settings.mcs_label = "kubernetes";
  const Json annotations{
      {"account", "physics"},         {"qos", "high"},        {"timelimit", "90"},     {"cpu-per-task", "4"},
      {"gres", "gpu:2,gres/shard:4"}, {"exclusive", "false"}, {"mem-per-node", "1Gi"}, {"wckey", "w"},
      {"job-name", "train"},          {"user-id", "alice"},   {"priority", "10"},      {"constraints", "a&b"}};
  Json more;
  for (const auto& [name, value] : annotations.items())
    more["metadata"]["annotations"][std::string(kAnnotationPrefix) + name] = value;
  world.waiting_pod(more);
  EXPECT_EQ(world.act("submit").at("wish"),
            Json::parse(R"({"name": "train", "nodes": 1, "tasks_per_node": 1, "cpus_per_task": 4, "memory_per_node": 1024,
                            "partition": "batch", "mcs_label": "kubernetes", "account": "physics", "qos": "high",
                            "time_limit": 90, "tres_per_node": "gres/gpu:2,gres/shard:4", "wckey": "w", "user_id": "alice", "priority": 10,
                            "constraints": "a&b"})"));
}

TEST(JobsPlan, APodWaitsForOtherGates) {
  World world;
  world.pod(
      {{"spec",
        {{"schedulingGates", Json::parse(R"([{"name": "other"}, {"name": "scheduler.slinky.slurm.net/slurm-bridge"}])")}}}});
  EXPECT_EQ(condition(world.act("report"), kConditionQueued).at("reason"), "OtherGates");
  EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: queue"));
}

// --- Placing ----------------------------------------------------------------------------------------------------------------

TEST(JobsPlan, ThePatchRemovesTheGateAndPinsEveryTerm) {
  World world;
  world.waiting_pod(Json::parse(R"({"spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
    {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]},
                           {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["x"]}]}]}}}}})"));
  world.job(7, "RUNNING");
  EXPECT_THAT(world.steps(), ElementsAre("confirm Slurm job 7", "place Pod ns/p"));
  const plan::Plan made = world.plan();
  EXPECT_EQ(made.lanes().at("place").groups().size(), 2U) << "the job is looked at before";
  const Json act = world.act("place");
  EXPECT_EQ(act.at("type"), "json");
  EXPECT_FALSE(act.at("resourceVersion").get<std::string>().empty());
  EXPECT_EQ(act.at("patch"), Json::parse(R"([
    {"op": "test", "path": "/spec/schedulingGates/0", "value": {"name": "scheduler.slinky.slurm.net/slurm-bridge"}},
    {"op": "remove", "path": "/spec/schedulingGates/0"},
    {"op": "add", "path": "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields",
     "value": [{"key": "metadata.name", "operator": "In", "values": ["node-2"]}]},
    {"op": "add", "path": "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/1/matchFields/-",
     "value": {"key": "metadata.name", "operator": "In", "values": ["node-2"]}},
    {"op": "add", "path": "/spec/tolerations/-",
     "value": {"key": "scheduler.slinky.slurm.net/placed-for", "operator": "Equal", "value": "7.1767200007"}},
    {"op": "add", "path": "/spec/tolerations/-", "value": {"key": "slinky.slurm.net/managed-node", "operator": "Exists"}},
    {"op": "add", "path": "/metadata/labels", "value": {"scheduler.slinky.slurm.net/slurm-jobid": "7"}},
    {"op": "add", "path": "/metadata/annotations", "value": {"slinky.slurm.net/slurm-node": "node-2"}}])"));
}

TEST(JobsPlan, AnnotationsOfKubectlAreNotLost) {
  World world;
  world.waiting_pod({{"metadata", {{"annotations", {{"kubectl.kubernetes.io/last-applied-configuration", "{}"}}}}}});
  world.job(7, "RUNNING");
  EXPECT_EQ(world.act("place").at("patch").back().at("path"), "/metadata/annotations/slinky.slurm.net~1slurm-node");
}

TEST(JobsPlan, ANodeMayHaveAnotherNameInSlurm) {
  World world;
  world.node("node-1", {{"metadata", {{"labels", {{std::string(kLabelSlurmNodeName), "s-1"}}}}}});
  world.slurm_node("s-1");
  world.waiting_pod();
  world.job(7, "RUNNING").nodes = {"s-1"};
  const Json patch = world.act("place").at("patch");
  EXPECT_THAT(patch.dump(), AllOf(HasSubstr(R"("values":["node-1"])"), HasSubstr(R"({"slinky.slurm.net/slurm-node":"s-1"})")));
}

/// Fault 7 of the Go bridge: if the chosen node could not run the pod, the pod waited for ever, and its job held the node for
/// ever.
TEST(JobsPlan, AJobOnANodeThatCannotRunThePodIsReplaced) {
  World world;
  world.waiting_pod();
  for (const std::vector<std::string>& nodes : std::vector<std::vector<std::string>>{{"compute-1"}, {"node-1", "node-2"}, {}}) {
    world.job(7, "RUNNING").nodes = nodes;
    EXPECT_THAT(world.steps(), ElementsAre("note Pod ns/p: 7", "replace Slurm job ns/p: 7"));
  }
  world.node("node-2", {{"spec", {{"unschedulable", true}}}});
  world.job(7, "RUNNING");
  EXPECT_THAT(world.steps(), ElementsAre("note Pod ns/p: 7", "replace Slurm job ns/p: 7"));
  EXPECT_EQ(world.plan().lanes().at("replace").groups().size(), 2U) << "the pod says so before";
  world.waiting_pod({{"metadata", {{"annotations", {{std::string(kAnnotationReplacedJob), "7"}}}}}});
  EXPECT_THAT(world.steps(), ElementsAre("replace Slurm job ns/p: 7"));
  world.job(7, "CANCELLED");
  EXPECT_THAT(world.steps(), ElementsAre(kSubmit)) << "this is no end of the pod";
  EXPECT_EQ(Json::parse(world.act("submit").at("comment").get<std::string>()).at("key"), "u/2");
  world.job(8, "CANCELLED");
  EXPECT_THAT(world.steps(), ElementsAre("fail Pod ns/p")) << "another job is";
}

/// If one of the excluded nodes of a job is gone, slurmctld refuses every change of the job, and forgets which nodes are
/// excluded.
TEST(JobsPlan, AJobThatSlurmCannotChangeIsReplacedWhenItMustBe) {
  World world;
  world.waiting_pod();
  slurm::Job& job = world.job(7, "PENDING");
  world.change_details(job, [](slurm::JobDetails& details) { details.excluded_nodes = "gone"; });
  EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: queue"));
  world.slurm_node("compute-1");
  EXPECT_THAT(world.steps(), ElementsAre("note Pod ns/p: 7", "replace Slurm job ns/p: 7"));
  world.placed_pod(7, "node-2", kSucceeded);
  slurm::Job& running = world.job(7, "RUNNING");
  world.change_details(running, [](slurm::JobDetails& details) { details.excluded_nodes = "gone"; });
  EXPECT_THAT(world.steps(), ElementsAre("cancel Slurm job 7")) << "not even its comment can change";
}

TEST(JobsPlan, AJobThatSlurmHoldsForBadConstraintsIsChangedFromTimeToTime) {
  World world;
  world.waiting_pod();
  slurm::Job& job = world.job(7, "PENDING");
  world.change_details(job, [](slurm::JobDetails& details) { details.reason = "BadConstraints"; });
  EXPECT_THAT(world.steps(), ElementsAre("update Slurm job 7", "report Pod ns/p: queue"));
  plan::Outcome done;
  done.last = world.mono;
  world.outcomes[{"update", "Slurm job", "7"}] = done;
  EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: queue"));
  world.mono = world.mono + core::Duration{30000};
  EXPECT_THAT(world.steps(), Contains("update Slurm job 7"));
}

/// Fault 8 of the Go bridge: it started a pod on a node while a pod whose job had ended was still ending there. The cache might
/// still show the gate of the earlier pod.
TEST(JobsPlan, APodWaitsForAPodThatMayHaveBeenPlacedBeforeItsJobEnded) {
  World world;
  const Json before = Json::parse(R"({"kind": "Pod", "metadata": {"name": "p", "uid": "b"},
    "spec": {"schedulingGates": [{"name": "scheduler.slinky.slurm.net/slurm-bridge"}]}, "status": {"phase": "Pending"}})");
  const auto put = [&](const Json& more) {
    Json pod = before;
    pod.merge_patch(more);
    world.wiring().put(world.caches().pods, pod);
  };
  const auto is_unsure = [&] {
    world.facts.clear();
    const plan::Plan plan = world.plan();
    EXPECT_EQ(plan.needs().empty(), !World::steps_of(plan).empty());
    return !plan.needs().empty() && plan.needs().front().id == "unsure ns/p";
  };
  const auto waits = [&](core::Result<Json> live) {
    world.facts.insert_or_assign("unsure ns/p", plan::Fact{std::move(live), world.mono});
    const Json report = world.act("report");
    return !report.is_null() && condition(report, kConditionQueued).at("reason") == "NodeInUse";
  };
  const auto placed = [](std::int64_t job) {
    Json out = Json::object();
    out["spec"]["tolerations"] =
        Json::array({{{"key", kTolerationPlacedFor}, {"value", placed_for_value({job, World::submitted(job)})}}});
    return out;
  };
  const auto end = [&](const std::string& state) -> slurm::Job& {
    slurm::Job& job = world.job(3, state, "b");
    job.nodes = {"node-2"};
    job.start = job.details->submitted;
    job.end = *job.start + core::Duration{60000};
    return job;
  };
  world.key = {"ns", "q"};
  world.waiting_pod({{"metadata", {{"name", "q"}, {"uid", "v"}}}});
  slurm::Job& own = world.job(7, "RUNNING", "v");
  world.change_details(own, [](slurm::JobDetails& details) {
    const Json pods = Json::array({{{"ns", "ns"}, {"name", "q"}, {"uid", "v"}}});
    details.admin_comment =
        slurm::admin_comment({slurm::Owner::kBridge, testing::kInstallation, key_of("v", 1)}, {{"pods", pods}});
  });
  put(Json::object());
  for (const char* state : {"CANCELLED", "PREEMPTED", "TIMEOUT"}) {
    end(state);
    EXPECT_TRUE(is_unsure()) << state;
  }
  end("CANCELLED").nodes = {"node-1"};
  EXPECT_FALSE(is_unsure()) << "elsewhere";
  end("CANCELLED").nodes = {};
  EXPECT_FALSE(is_unsure()) << "the job was cancelled before it began";
  end("CANCELLED").end = world.now - std::chrono::seconds{19};
  EXPECT_TRUE(world.plan().needs().empty()) << "the patch that places it may be under way, whatever a read says";
  EXPECT_TRUE(waits(Json{{"spec", Json::object()}}));
  end("TIMEOUT");
  put({{"metadata", {{"deletionTimestamp", "2026-01-01T10:00:00Z"}}}});
  EXPECT_FALSE(is_unsure()) << "no pod that is being deleted is placed";
  put({{"status", {{"phase", "Failed"}}}});
  EXPECT_FALSE(is_unsure()) << "it never runs";
  put({{"metadata", {{"annotations", {{std::string(kAnnotationReplacedJob), "3"}}}}}});
  EXPECT_TRUE(is_unsure()) << "the bridge may have placed it before it replaced the job, or after it noted that it does";
  slurm::Job& next = world.job(5, "PENDING", "b");
  world.change_details(next, [&](slurm::JobDetails& details) { details.submitted = *world.jobs[3].end; });
  EXPECT_TRUE(is_unsure()) << "the later job may have been submitted by the same old cache";
  world.jobs.erase(5);
  EXPECT_TRUE(waits(placed(3)));
  EXPECT_TRUE(waits(core::fail(core::ErrorCode::kUnavailable, "away"))) << "not known";
  EXPECT_FALSE(waits(placed(5))) << "for another job";
  EXPECT_FALSE(waits(Json{{"spec", Json::object()}})) << "it still waits";
  Json ended = placed(3);
  ended["status"]["phase"] = "Failed";
  EXPECT_FALSE(waits(ended));
  EXPECT_FALSE(waits(core::fail(core::ErrorCode::kNotFound, "no such pod")));
  world.facts.clear();
  world.delete_pod();
  EXPECT_THAT(world.steps(), Contains("place Pod ns/q")) << "it is gone";
}

TEST(JobsPlan, APodWaitsForThePodBeforeItOnTheNode) {
  World world;
  Json before = Json::parse(R"({"kind": "Pod", "metadata": {"name": "before", "uid": "b",
    "labels": {"scheduler.slinky.slurm.net/slurm-jobid": "3"}, "annotations": {"slinky.slurm.net/slurm-node": "node-2"}},
    "spec": {"nodeName": "node-2", "tolerations": [{"key": "scheduler.slinky.slurm.net/placed-for", "value": "3.1767200003"}], "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
      {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-2"]}]}]}}}},
    "status": {"phase": "Running"}})");
  world.wiring().put(world.caches().pods, before);
  world.job(3, "CANCELLED", "b");
  world.waiting_pod();
  world.job(7, "RUNNING");
  EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: queue"));
  EXPECT_EQ(condition(world.act("report"), kConditionQueued).at("reason"), "NodeInUse");
  world.job(3, "RUNNING", "b");
  EXPECT_THAT(world.steps(), Contains("place Pod ns/p")) << "the two share the node";
  world.job(3, "CANCELLED", "b");
  before["spec"].erase("nodeName");
  world.wiring().put(world.caches().pods, before);
  EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: queue")) << "it may be bound at any moment";
  before["status"]["phase"] = "Succeeded";
  world.wiring().put(world.caches().pods, before);
  world.job(3, "CANCELLED", "b");
  EXPECT_THAT(world.steps(), Contains("place Pod ns/p"));
}

/// Anybody can create a pod with the toleration kTolerationPlacedFor in a namespace that is not managed.
TEST(JobsPlan, AForgedRecordDoesNotKeepTheNodeFromOthers) {
  World world;
  const Json forged = Json::parse(
      R"({"kind": "Pod", "metadata": {"name": "forged", "namespace": "elsewhere", "uid": "f", "resourceVersion": "1"},
    "spec": {"nodeName": "node-2", "tolerations": [{"key": "scheduler.slinky.slurm.net/placed-for", "value": "3.1767200003"}], "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
      {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-2"]}]}]}}}},
    "status": {"phase": "Running"}})");
  world.caches().pods.upsert(kube::record_from_json<kube::SchedulingPodRecord>(forged).value());
  world.waiting_pod();
  world.job(7, "RUNNING");
  EXPECT_THAT(world.steps(), Contains("place Pod ns/p")) << "there is no job 3";
  world.job(3, "CANCELLED", "another");
  EXPECT_THAT(world.steps(), Contains("place Pod ns/p")) << "job 3 is that of another pod";
  world.job(3, "CANCELLED", "f");
  EXPECT_THAT(world.steps(), Not(Contains("place Pod ns/p"))) << "the record is true";
}

/// Also fault 7 of the Go bridge. In this case, only Kubernetes knows that the node cannot run the pod.
TEST(JobsPlan, APodThatIsNotBoundInTimeFailsAndItsJobEnds) {
  World world;
  world.placed_pod(7);
  world.job(7, "RUNNING");
  EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: queue"));
  world.mono = world.mono + world.settings.bind_limit;
  world.placed_pod(7, "", {{"status", {{"conditions", Json::parse(R"([{"type": "PodScheduled", "status": "False",
                           "message": "0/2 nodes are available"}])")}}}});
  EXPECT_THAT(world.steps(), ElementsAre("fail Pod ns/p"));
  const Json act = world.act("fail");
  EXPECT_FALSE(act.at("resourceVersion").get<std::string>().empty()) << "it may be bound meanwhile";
  EXPECT_EQ(act.at("patch").at("status").at("phase"), "Failed");
  EXPECT_EQ(act.at("patch").at("status").at("reason"), "SlurmNotBound");
  EXPECT_THAT(act.at("patch").at("status").at("message").get<std::string>(), HasSubstr("0/2 nodes are available"));
  world.placed_pod(7, "", {{"status", {{"phase", "Failed"}}}});
  EXPECT_THAT(world.steps(), ElementsAre("comment Slurm job 7", "cancel Slurm job 7"));
  world.jobs.clear();
  world.placed_pod(7);
  (void)world.steps();
  world.mono = world.mono + world.settings.bind_limit;
  EXPECT_THAT(world.steps(), ElementsAre("fail Pod ns/p")) << "it never ran, even if Slurm has lost its job";
}

// --- Users change what they can ---------------------------------------------------------------------------------------------

/// Users can remove the label, the annotation, or both, or write another job number.
TEST(JobsPlan, APlacedPodWithoutItsWordsKeepsItsJob) {
  for (const Json& label : {Json(nullptr), Json("9")}) {
    for (const char* node : {"", "node-2"}) {
      World world;
      world.job(7, "RUNNING");
      Json more;
      if (!label.is_null()) more["metadata"]["labels"][std::string(kLabelJobId)] = label;
      world.bare_placed_pod(7, node, more);
      EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: queue", "restore Pod ns/p"));
      EXPECT_EQ(world.act("restore").at("patch").at("metadata"),
                Json::parse(R"({"labels": {"scheduler.slinky.slurm.net/slurm-jobid": "7"},
                                "annotations": {"slinky.slurm.net/slurm-node": "node-2"}})"));
      world.health = slurm::Snapshot::Health::kStale;
      EXPECT_THAT(world.steps(), IsEmpty());
      world.health = slurm::Snapshot::Health::kComplete;
      world.job(7, "CANCELLED");
      EXPECT_THAT(world.steps(), Contains(*node == 0 ? "fail Pod ns/p" : "evict Pod ns/p"));
    }
  }
}

/// Nobody can remove the toleration that records the job of a placed pod. Users can add more such tolerations.
TEST(JobsPlan, AnotherRecordOfAUserDoesNotHideTheRightOne) {
  World world;
  world.job(6, "RUNNING", "other");
  const Json other{{"key", kTolerationPlacedFor}, {"operator", "Equal"}, {"value", "99.1767200099"}};
  const Json more{{"spec", {{"tolerations", Json::array({other})}}}};
  world.placed_pod(7, "node-2", more);
  world.job(7, "CANCELLED");
  EXPECT_THAT(world.steps(), Contains("evict Pod ns/p"));
  world.job(9, "RUNNING", "other");
  world.jobs.erase(7);
  EXPECT_THAT(world.steps(), Not(Contains("evict Pod ns/p"))) << "on doubt, nothing ends";
  world.waiting_pod(more);
  EXPECT_EQ(condition(world.act("report"), kConditionQueued).at("reason"), "Refused");
}

/// Users can add labels at any time. A pod with a job of its own does not become a member of a group.
TEST(JobsPlan, APodThatGetsTheLabelOfAGroupLaterKeepsItsJob) {
  const Json label{{"metadata", {{"labels", {{std::string(kLabelPodGroup), "x"}}}}}};
  World world;
  world.waiting_pod(label);
  world.job(7, "RUNNING");
  EXPECT_THAT(world.steps(), Contains("place Pod ns/p"));
  world.placed_pod(7, "node-2", label);
  world.job(7, "CANCELLED");
  EXPECT_THAT(world.steps(), Contains("evict Pod ns/p"));
}

/// Without the toleration kTolerationPlacedFor, the bridge has not placed the pod, whatever its labels and its node are.
TEST(JobsPlan, APodThatSomebodyElseFreedGivesItsJobBack) {
  World world;
  Json more{{"spec", {{"nodeName", "node-2"}}}};
  more["spec"]["affinity"] = Json::parse(R"({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
    {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-2"]}]}]}}})");
  more["metadata"]["labels"][std::string(kLabelJobId)] = "7";
  more["metadata"]["annotations"][std::string(kAnnotationNode)] = "node-2";
  world.pod(more);
  world.job(7, "RUNNING");
  EXPECT_THAT(world.steps(), ElementsAre("comment Slurm job 7", "cancel Slurm job 7"));
  world.job(7, "CANCELLED");
  EXPECT_THAT(world.steps(), IsEmpty()) << "the pod is not the bridge's";
}

TEST(JobsPlan, APodThatSomebodyElseFreedIsToldThatItWaitsNoMore) {
  World world;
  Json more = Json::parse(R"({"status": {"conditions": [{"type": "SlurmQueued", "status": "True", "reason": "Priority"}]}})");
  world.pod(more);
  EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: queue"));
  const Json told = condition(world.act("report"), kConditionQueued);
  EXPECT_EQ(told.at("status"), "False");
  EXPECT_EQ(told.at("reason"), "Freed");
  for (const Json& other : {told, Json::parse(R"({"type": "SlurmQueued", "status": "False", "reason": "Retired"})")}) {
    world.pod({{"status", {{"conditions", Json::array({other})}}}});
    EXPECT_THAT(world.steps(), IsEmpty()) << other;
  }
  World elsewhere;
  elsewhere.settings.managed_namespaces = {"other"};
  elsewhere.pod(more);
  EXPECT_THAT(elsewhere.steps(), IsEmpty()) << "another bridge tells it";
}

// --- A node that is not ready -----------------------------------------------------------------------------------------------

/// The kubelet no longer reports to the API server, but the pods of its node might still run.
TEST(JobsPlan, APodOnASilentNodeLosesItsJobAfterTheLimitAndIsToldBefore) {
  for (const Json& more : {Json::object(), kTerminating}) {
    World world;
    world.job(7, "RUNNING");
    world.placed_pod(7, "node-2", more);
    world.node("node-2", {{"status", {{"conditions", World::ready("Unknown")}}}});
    EXPECT_EQ(world.plan().wake(), world.settings.silence_limit);
    world.mono = world.mono + world.settings.silence_limit - core::Duration{1};
    EXPECT_THAT(world.steps(), Not(Contains("cancel Slurm job 7")));
    EXPECT_TRUE(world.plan().needs().empty());
    world.mono = world.mono + core::Duration{1};
    ASSERT_EQ(world.plan().needs().size(), 1U);
    EXPECT_EQ(world.plan().needs().front().query->describe().at("name"), "node-2");
    EXPECT_THAT(world.steps(), Not(Contains("cancel Slurm job 7")));
    const auto answer = [&](core::Result<Json> value) {
      world.facts.insert_or_assign("node node-2", plan::Fact{std::move(value), world.mono});
    };
    Json node{{"metadata", {{"name", "node-2"}}}, {"status", {{"conditions", World::ready("True")}}}};
    answer(node);
    EXPECT_THAT(world.steps(), Not(Contains("cancel Slurm job 7"))) << "the cache is behind";
    answer(core::fail(core::ErrorCode::kUnavailable, "the API server is away"));
    EXPECT_THAT(world.steps(), Not(Contains("cancel Slurm job 7")));
    node["status"]["conditions"] = World::ready("Unknown");
    answer(node);
    EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: end", "comment Slurm job 7", "cancel Slurm job 7"));
    const plan::Plan made = world.plan();
    EXPECT_EQ(made.lanes().at("release job 7").groups().front().size(), 1U) << "the pod is told before";
    const Json told = condition(world.act("report"), kConditionEnded);
    EXPECT_EQ(told.at("reason"), "NodeNotReady");
    EXPECT_EQ(told.at("message"),
              "node node-2 has not been ready for 10 min: the job of the pod is released, and the pod may still run there");
  }
}

/// If most nodes are silent, the network between them and the API server might have failed, while their pods continue to run.
TEST(JobsPlan, NoJobIsReleasedWhileMostNodesAreSilent) {
  World world;
  world.job(7, "RUNNING");
  world.placed_pod(7, "node-2");
  for (const char* name : {"node-2", "node-3", "node-4"})
    world.node(name, {{"status", {{"conditions", World::ready("Unknown")}}}});
  (void)world.plan();
  world.mono = world.mono + 2 * world.settings.silence_limit;
  EXPECT_TRUE(world.plan().needs().empty());
  EXPECT_THAT(world.steps(), Not(Contains("cancel Slurm job 7")));
  // Changes of other nodes do not wake the pod.
  EXPECT_EQ(world.plan().wake(), core::Duration{30000});
  world.node("node-3");
  world.node("node-4");
  EXPECT_EQ(world.plan().wake(), world.settings.silence_limit) << "it counts from now on";
}

TEST(JobsPlan, ANodeThatIsReadyAgainInTimeKeepsTheJobsOfItsPods) {
  World world;
  world.job(7, "RUNNING");
  world.placed_pod(7, "node-2");
  world.node("node-2", {{"status", {{"conditions", World::ready("False")}}}});
  EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: queue"));
  world.node("node-2");
  EXPECT_FALSE(world.plan().wake().has_value());
  world.node("node-2", {{"status", {{"conditions", World::ready("False")}}}});
  world.mono = world.mono + world.settings.silence_limit;
  EXPECT_EQ(world.plan().wake(), world.settings.silence_limit) << "it counts from the beginning";
}

// --- The end of a job approaches --------------------------------------------------------------------------------------------

/// Fault 8 of the Go bridge: it ignored the time limit of a job. After the job's end, the next job started on the node while
/// the pod still ran.
TEST(JobsPlan, APodLeavesBeforeItsJobReachesItsEnd) {
  World world;
  world.placed_pod(7, "node-2");
  slurm::Job& job = world.job(7, "RUNNING");
  job.start = world.now - std::chrono::minutes(50);
  job.end = world.now + std::chrono::seconds(60);
  EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: queue"));
  EXPECT_EQ(world.plan().wake(), core::Duration{25000}) << "30 s of grace, and a margin";
  world.now = world.now + core::Duration{25000};
  EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: end", "evict Pod ns/p"));
  const Json told = condition(world.act("report"), kConditionEnded);
  EXPECT_EQ(told.at("reason"), "TimedOut");
  EXPECT_EQ(told.at("message"), "job 7 ends at 2026-01-01T10:01:00Z, and the pod may take 30 s to end");
  EXPECT_EQ(world.act("evict").at("evidence").at("kind"), "JobEndsSoon");
  world.change_details(job, [&](slurm::JobDetails& details) { details.preempted = world.now; });
  EXPECT_EQ(condition(world.act("report"), kConditionEnded).at("reason"), "Preempted");
  world.placed_pod(7, "node-2", {{"status", {{"conditions", Json::array({told})}}}});
  EXPECT_THAT(world.steps(), ElementsAre("evict Pod ns/p"));
  world.age = core::Duration{60000};
  EXPECT_THAT(world.steps(), IsEmpty());
  world.age = core::Duration{0};
  job.end = world.now + std::chrono::minutes(10);
  EXPECT_EQ(condition(world.act("report"), kConditionEnded).at("reason"), "JobRuns") << "somebody moved the end";
}

/// Only slurmctld's clock determines when a job ends.
TEST(JobsPlan, AWrongClockOfTheBridgeEndsNoPod) {
  for (const int hours : {-1, 1}) {
    World world;
    world.placed_pod(7, "node-2");
    slurm::Job& job = world.job(7, "RUNNING");
    world.slurm_clock = world.now - std::chrono::hours(hours);
    job.start = *world.slurm_clock - std::chrono::minutes(10);
    job.end = *world.slurm_clock + std::chrono::seconds(60);
    EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: queue"));
    EXPECT_EQ(world.plan().wake(), core::Duration{25000});
    world.slurm_clock = *world.slurm_clock + core::Duration{25000};
    EXPECT_THAT(world.steps(), Contains("evict Pod ns/p"));
  }
}

/// An earlier pod occupied the node for most of the job's time.
TEST(JobsPlan, AJobThatEndsSoonIsReplaced) {
  World world;
  world.waiting_pod();
  slurm::Job& job = world.job(7, "RUNNING");
  job.start = world.now - std::chrono::minutes(50);
  job.end = world.now + std::chrono::seconds(36);
  EXPECT_THAT(world.steps(), Contains("place Pod ns/p"));
  job.end = world.now + std::chrono::seconds(35);
  EXPECT_THAT(world.steps(), ElementsAre("note Pod ns/p: 7", "replace Slurm job ns/p: 7"));
  world.job(7, "TIMEOUT");
  EXPECT_THAT(world.steps(), ElementsAre(kSubmit)) << "the time ran out before";
  EXPECT_EQ(Json::parse(world.act("submit").at("comment").get<std::string>()).at("key"), "u/2");
}

TEST(JobsPlan, AJobWithLittleTimeGivesHalfOfItToThePod) {
  World world;
  world.placed_pod(7, "node-2", {{"spec", {{"terminationGracePeriodSeconds", 300}}}});
  slurm::Job& job = world.job(7, "RUNNING");
  job.start = world.now;
  job.end = world.now + std::chrono::seconds(60);
  EXPECT_EQ(world.plan().wake(), core::Duration{30000});
  job.end.reset();
  EXPECT_FALSE(world.plan().wake().has_value()) << "it has no limit";
  world.placed_pod(7);
  job.end = world.now;
  EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: queue")) << "it is not bound yet";
}

// --- Every state of a job against every state of a pod ----------------------------------------------------------------------

TEST(JobsPlan, EveryLiveStateOfAJob) {
  for (const std::string& state : kLive) {
    SCOPED_TRACE(state);
    const bool runs = state == "RUNNING";
    World world;
    world.job(7, state);
    world.waiting_pod();
    EXPECT_EQ(world.steps(), runs ? (std::vector<std::string>{"confirm Slurm job 7", "place Pod ns/p"})
                                  : std::vector<std::string>{"report Pod ns/p: queue"});
    for (const char* node : {"", "node-2"}) {
      world.placed_pod(7, node);
      EXPECT_EQ(world.steps(), runs ? std::vector<std::string>{"report Pod ns/p: queue"} : std::vector<std::string>{});
      world.placed_pod(7, node, kTerminating);
      EXPECT_THAT(world.steps(), IsEmpty()) << "the job lasts until the pod is gone";
    }
    world.placed_pod(7, "node-2", kSucceeded);
    EXPECT_THAT(world.steps(), Contains("cancel Slurm job 7"));
    world.pod();
    EXPECT_THAT(world.steps(), Contains("cancel Slurm job 7")) << "somebody removed the gate";
    world.waiting_pod(kTerminating);
    EXPECT_THAT(world.steps(), Contains("cancel Slurm job 7")) << "deleted before it started";
  }
}

/// Fault 3 of the Go bridge: it took only COMPLETED and CANCELLED for the end of a job. After any other end, it placed pods on
/// nodes that Slurm had given to others.
TEST(JobsPlan, EveryEndOfAJob) {
  for (const std::string& state : kEnds) {
    SCOPED_TRACE(state);
    World world;
    world.job(7, state);
    world.waiting_pod();
    if (state == "TIMEOUT") {
      EXPECT_THAT(world.steps(), ElementsAre(kSubmit)) << "the pod has had none of the time";
    } else {
      EXPECT_THAT(world.steps(), ElementsAre("fail Pod ns/p"));
    }
    world.placed_pod(7);
    EXPECT_THAT(world.steps(), ElementsAre("fail Pod ns/p"));
    world.placed_pod(7, "node-2");
    EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: end", "evict Pod ns/p"));
    world.placed_pod(7, "node-2", kTerminating);
    EXPECT_THAT(world.steps(), IsEmpty());
    world.placed_pod(7, "node-2", kSucceeded);
    EXPECT_THAT(world.steps(), IsEmpty());
    world.pod();
    EXPECT_THAT(world.steps(), IsEmpty());
    world.delete_pod();
    EXPECT_THAT(world.steps(), IsEmpty());
    EXPECT_TRUE(world.plan().needs().empty());
  }
}

TEST(JobsPlan, APodThatHasEndedHasNoJobAnyMore) {
  World world;
  Json more = kSucceeded;
  more["status"]["conditions"] = Json::parse(R"([{"type": "SlurmQueued", "status": "False", "reason": "Allocated"}])");
  world.placed_pod(7, "node-2", more);
  EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: queue"));
  const Json told = condition(world.act("report"), kConditionQueued);
  EXPECT_EQ(told.at("reason"), "Ended");
  EXPECT_EQ(told.at("message"), "the pod has Succeeded");
  more["status"]["conditions"] = Json::array({told});
  world.placed_pod(7, "node-2", more);
  EXPECT_THAT(world.steps(), IsEmpty());
}

TEST(JobsPlan, WhySlurmEndedAPodIsTold) {
  World world;
  world.placed_pod(7, "node-2");
  world.job(7, "PREEMPTED");
  const Json act = world.act("report");
  EXPECT_EQ(condition(act, kConditionEnded).at("reason"), "Preempted");
  EXPECT_EQ(condition(act, kConditionEnded).at("message"), "job 7 is PREEMPTED");
  EXPECT_EQ(condition(act, kConditionDisruptionTarget).at("reason"), "SlurmPreempted");
  EXPECT_EQ(world.act("evict").at("evidence").at("kind"), "JobEnded");
}

TEST(JobsPlan, ABudgetKeepsAPodOnlyForSoLong) {
  World world;
  world.job(7, "CANCELLED");
  world.placed_pod(7, "node-2", {{"status", {{"conditions", Json::parse(R"([{"type": "SlurmEnded", "status": "True"}])")}}}});
  EXPECT_THAT(world.steps(), ElementsAre("evict Pod ns/p"));
  world.mono = world.mono + world.settings.evict_limit;
  EXPECT_THAT(world.steps(), ElementsAre("delete Pod ns/p"));
  EXPECT_EQ(world.act("delete").at("uid"), "u");
  world.placed_pod(7, "node-2", Json::parse(R"({"spec": {"terminationGracePeriodSeconds": 31},
                                   "status": {"conditions": [{"type": "SlurmEnded", "status": "True"}]}})"));
  EXPECT_THAT(world.steps(), ElementsAre("delete Pod ns/p", "evict Pod ns/p"));
  EXPECT_EQ(world.act("evict").at("graceSeconds"), 30);
  EXPECT_EQ(world.plan().lanes().at("end ns/p").groups().size(), 2U) << "then the budget does not count";
}

/// Users can set grace periods of any length.
TEST(JobsPlan, APodOutlivesItsJobOnlyForSoLong) {
  const auto grace = [](World& world) { return world.act("evict").value("graceSeconds", Json()); };
  World world;
  world.job(7, "CANCELLED");
  world.placed_pod(7, "node-2", {{"spec", {{"terminationGracePeriodSeconds", 300}}}});
  EXPECT_TRUE(grace(world).is_null()) << "the pod's own";
  world.placed_pod(7, "node-2", {{"spec", {{"terminationGracePeriodSeconds", 31536000}}}});
  EXPECT_EQ(grace(world), 300);
  slurm::Job& job = world.job(7, "RUNNING");
  job.start = world.now - std::chrono::hours(24);
  job.end = world.now + std::chrono::hours(1);
  EXPECT_EQ(grace(world), 3900) << "the job still holds the node for an hour";
  World patient;
  patient.settings.outlive_limit = std::chrono::minutes{30};
  patient.job(7, "CANCELLED");
  patient.placed_pod(7, "node-2", {{"spec", {{"terminationGracePeriodSeconds", 31536000}}}});
  EXPECT_EQ(grace(patient), 1800);
}

/// A user has deleted the pod, or a budget has refused the eviction for too long.
TEST(JobsPlan, ThePodThatIsBeingDeletedOutlivesItsJobOnlyForSoLong) {
  World world;
  const auto live = [&](int grace) {
    world.fact("ending ns/p", {{"metadata", {{"uid", "u"}, {"deletionGracePeriodSeconds", grace}}}});
  };
  Json more{{"spec", {{"terminationGracePeriodSeconds", 31536000}}}};
  more["metadata"]["deletionTimestamp"] = "2026-12-31T00:00:00Z";
  world.placed_pod(7, "node-2", more);
  world.job(7, "RUNNING");
  EXPECT_THAT(world.steps(), IsEmpty()) << "the job lasts as long as the pod";
  EXPECT_TRUE(world.plan().needs().empty());
  world.job(7, "CANCELLED");
  live(31536000);
  EXPECT_THAT(world.steps(), ElementsAre("evict Pod ns/p"));
  EXPECT_EQ(world.act("evict").at("graceSeconds"), 300);
  more["metadata"]["deletionTimestamp"] = "2026-01-01T10:05:00Z";
  world.placed_pod(7, "node-2", more);
  live(300);
  EXPECT_THAT(world.steps(), IsEmpty()) << "it ends in time";
  // A PodDisruptionBudget blocked the eviction until evict_limit had passed.
  const Json told = Json::parse(R"([{"type": "SlurmEnded", "status": "True"}])");
  const Json grace{{"spec", {{"terminationGracePeriodSeconds", 31536000}}}, {"status", {{"conditions", told}}}};
  world.placed_pod(7, "node-2", grace);
  (void)world.steps();
  world.mono = world.mono + world.settings.evict_limit;
  EXPECT_THAT(world.steps(), ElementsAre("delete Pod ns/p", "evict Pod ns/p"));
  more["status"]["conditions"] = told;
  more["metadata"]["deletionTimestamp"] = "2026-12-31T00:00:00Z";
  world.placed_pod(7, "node-2", more);
  live(31536000);
  EXPECT_EQ(world.act("evict").at("graceSeconds"), 30);
}

/// The deletionTimestamp is from the API server's clock, which can differ from the bridge's clock.
TEST(JobsPlan, AWrongClockOfTheBridgeShortensNoEnd) {
  World world;
  const auto live = [&](int grace, const char* uid = "u") {
    world.fact("ending ns/p", {{"metadata", {{"uid", uid}, {"deletionGracePeriodSeconds", grace}}}});
  };
  world.job(7, "CANCELLED");
  world.placed_pod(7, "node-2", {{"metadata", {{"deletionTimestamp", "2026-01-01T10:20:00Z"}}}});
  EXPECT_THAT(world.steps(), IsEmpty());
  const plan::Plan asks = world.plan();
  ASSERT_EQ(asks.needs().size(), 1U);
  EXPECT_EQ(asks.needs().front().id, "ending ns/p");
  live(30);
  EXPECT_THAT(world.steps(), IsEmpty()) << "the clock of the API server is ahead";
  live(400, "another");
  EXPECT_THAT(world.steps(), IsEmpty());
  live(400);
  EXPECT_THAT(world.steps(), ElementsAre("evict Pod ns/p"));
  world.mono = world.mono + std::chrono::seconds{100};
  EXPECT_THAT(world.steps(), IsEmpty()) << "it has 300 s left";
  world.facts.insert_or_assign("ending ns/p", plan::Fact{core::fail(core::ErrorCode::kUnavailable, "away"), world.mono});
  EXPECT_THAT(world.steps(), IsEmpty());
}

TEST(JobsPlan, AJobThatIsGoneEndsThePodOnlyIfSlurmKnowsOlderAndYoungerOnes) {
  World world;
  world.placed_pod(7, "node-2");
  EXPECT_EQ(condition(world.act("report"), kConditionQueued).at("reason"), "JobMissing");
  EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: queue"));
  world.job(6, "RUNNING", "other");
  EXPECT_THAT(world.steps(), Not(Contains("evict Pod ns/p"))) << "slurmctld may have lost what is younger";
  world.job(8, "RUNNING", "other", "cluster-b");
  EXPECT_THAT(world.steps(), Not(Contains("evict Pod ns/p"))) << "it is somebody else's";
  world.job(9, "COMPLETED", "other");
  EXPECT_THAT(world.steps(), Contains("evict Pod ns/p"));
  EXPECT_EQ(world.act("evict").at("evidence").at("kind"), "JobGone");
}

/// A slurmctld that lost its state numbers its jobs from 1 again, and can reach the number of the pod's job.
TEST(JobsPlan, ASlurmctldThatLostItsStateEndsNoPod) {
  World world;
  world.placed_pod(7, "node-2");
  world.job(6, "RUNNING", "other");
  world.job(7, "RUNNING");
  EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: queue"));
  world.jobs.clear();
  for (const std::int64_t number : {1, 8, 9}) {
    world.change_details(world.job(number, "RUNNING", "other"), [&](slurm::JobDetails& details) {
      details.submitted = core::WallTime{std::chrono::seconds{World::submitted(100 + number)}};
    });
    EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: queue")) << number;
    EXPECT_EQ(condition(world.act("report"), kConditionQueued).at("reason"), "JobMissing");
  }
  world.jobs.erase(1);
  EXPECT_THAT(world.steps(), Not(Contains("evict Pod ns/p"))) << "the first job of the new life has ended";
}

/// When a job is submitted, its admin_comment records since when slurmctld had not lost its state.
TEST(JobsPlan, ASubmissionSaysWhatIsKnownOfTheLifeOfSlurmctld) {
  World world;
  world.job(6, "RUNNING", "other");
  world.waiting_pod();
  const Json comment = Json::parse(world.act("submit").at("comment").get<std::string>());
  EXPECT_EQ(comment.at("life"), (Json{{"since", World::submitted(6)}, {"last", 6}}));
}

/// Another bridge of the same Kubernetes cluster placed the pod, for a job of another Slurm.
TEST(JobsPlan, PodsOfAnotherBridgeAreLeftAlone) {
  World world;
  world.settings.managed_namespaces = {"other"};
  world.job(9, "RUNNING", "other");
  for (const char* node : {"", "node-2"}) {
    world.placed_pod(7, node);
    EXPECT_THAT(world.steps(), Not(Contains(HasSubstr("Pod ns/p"))));
  }
  world.job(7, "CANCELLED");
  EXPECT_THAT(world.steps(), Contains("evict Pod ns/p")) << "the job is known here, so it is not another bridge's";
}

// --- Doubt ------------------------------------------------------------------------------------------------------------------

TEST(JobsPlan, NothingEndsWhileSlurmDoesNotAnswer) {
  for (const char* state : {"CANCELLED", "RUNNING"}) {
    World world;
    world.health = slurm::Snapshot::Health::kStale;
    world.job(7, state);
    world.waiting_pod({{"status", {{"conditions", Json::parse(R"([{"type": "SlurmQueued", "status": "True"}])")}}}});
    EXPECT_THAT(world.steps(), IsEmpty());
    world.placed_pod(7, "node-2");
    EXPECT_THAT(world.steps(), IsEmpty());
    world.placed_pod(7, "node-2", kSucceeded);
    EXPECT_THAT(world.steps(), IsEmpty());
    world.delete_pod();
    EXPECT_THAT(world.steps(), IsEmpty());
    EXPECT_TRUE(world.plan().needs().empty());
  }
}

/// Fault 10 of the Go bridge: it crashed when an answer of Slurm lacked the number or the nodes of a job.
TEST(JobsPlan, AnAnswerThatLacksFieldsEndsNothing) {
  World world;
  world.placed_pod(7, "node-2");
  slurm::Job& job = world.job(7, "RUNNING");
  job.nodes.clear();
  job.nodes_unknown = true;
  world.job(-1, "RUNNING").details = {};
  EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: queue"));
  EXPECT_EQ(condition(world.act("report"), kConditionQueued).at("reason"), "Allocated");
  world.waiting_pod();
  EXPECT_THAT(world.steps(), Not(Contains(StartsWith("place")))) << "its node is not known";
  world.placed_pod(7, "node-2");
  job.details = {};
  EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: queue"));
  EXPECT_EQ(condition(world.act("report"), kConditionQueued).at("reason"), "JobMissing");
  world.jobs.clear();
  EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: queue"));
}

TEST(JobsPlan, AnOldAnswerIsEvidenceOfAnEnd) {
  World world;
  world.age = core::Duration{60000};
  world.job(7, "CANCELLED");
  world.placed_pod(7, "node-2");
  EXPECT_THAT(world.steps(), Contains("evict Pod ns/p")) << "an ended job never runs again";
}

TEST(JobsPlan, AnOldAnswerIsNoEvidence) {
  World world;
  world.age = core::Duration{60000};
  const auto waits = [&] {
    const plan::Plan plan = world.plan();
    return plan.step_count() == 0 && plan.needs().empty() && plan.wake().has_value() && plan.waits_on().contains("slurm/demo");
  };
  world.job(7, "RUNNING");
  world.waiting_pod();
  EXPECT_TRUE(waits()) << "the job may have ended";
  world.placed_pod(7, "node-2", kSucceeded);
  EXPECT_TRUE(waits());
  world.waiting_pod(kTerminating);
  EXPECT_TRUE(waits());
  world.delete_pod();
  EXPECT_TRUE(waits());
  world.placed_pod(7, "node-2");
  EXPECT_FALSE(world.plan().wake().has_value()) << "the pod needs its job";
}

TEST(JobsPlan, TheJobOfAPodThatIsGoneIsCancelledAfterALiveLook) {
  World world;
  world.job(7, "RUNNING");
  ASSERT_EQ(world.plan().needs().size(), 1U);
  EXPECT_EQ(world.plan().needs().front().query->describe().at("act"), "kube.Get");
  EXPECT_THAT(world.steps(), IsEmpty());
  const auto answer = [&](core::Result<Json> value) {
    world.facts.insert_or_assign("pod", plan::Fact{std::move(value), world.mono});
  };
  answer(core::fail(core::ErrorCode::kUnavailable, "the API server is away"));
  EXPECT_THAT(world.steps(), IsEmpty());
  answer(Json{{"metadata", {{"uid", "u"}}}});
  EXPECT_THAT(world.steps(), IsEmpty()) << "the cache is behind";
  answer(Json{{"metadata", {{"uid", "v"}}}});
  EXPECT_THAT(world.steps(), ElementsAre("comment Slurm job 7", "cancel Slurm job 7"));
  answer(core::fail(core::ErrorCode::kNotFound, "no such pod"));
  EXPECT_THAT(world.steps(), ElementsAre("comment Slurm job 7", "cancel Slurm job 7"));
}

/// Fault 9 of the Go bridge: it gave a pod that was deleted and created again under the same name the job of its predecessor.
TEST(JobsPlan, APodMadeAnewUnderItsNameGetsAJobOfItsOwn) {
  World world;
  world.job(7, "RUNNING", "old");
  world.waiting_pod();
  world.fact("pod", Json::object({{"metadata", {{"uid", "u"}}}}));
  EXPECT_THAT(world.steps(), ElementsAre(kSubmit, "comment Slurm job 7", "cancel Slurm job 7"));
}

TEST(JobsPlan, ASecondJobOfAPodIsCancelled) {
  World world;
  world.waiting_pod();
  world.job(7, "RUNNING");
  world.job(8, "PENDING");
  EXPECT_THAT(world.steps(), ElementsAre("confirm Slurm job 7", "place Pod ns/p", "cancel Slurm job 8"));
  world.job(7, "CANCELLED");
  EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: queue")) << "the job that has not ended counts";
  world.placed_pod(8, "node-2");
  world.job(8, "RUNNING");
  EXPECT_THAT(world.steps(), ElementsAre("report Pod ns/p: queue"));
}

TEST(JobsPlan, TheExitCodeOfAPodIsRecorded) {
  World world;
  world.capabilities.slurmdb = true;
  world.job(7, "RUNNING");
  const Json failed = Json::parse(R"({"status": {"phase": "Failed", "containerStatuses": [
    {"name": "a", "state": {"terminated": {"exitCode": 0}}}, {"name": "b", "state": {"terminated": {"exitCode": 3}}}]}})");
  world.placed_pod(7, "node-2", failed);
  EXPECT_THAT(world.steps(), ElementsAre("record Slurm job 7", "comment Slurm job 7", "cancel Slurm job 7"));
  EXPECT_EQ(world.act("record").at("exitCode"), 3);
  EXPECT_EQ(world.act("comment").at("wish").at("comment"), "the pod has Failed with exit code 3");
  world.capabilities.slurmdb = false;
  EXPECT_THAT(world.steps(), ElementsAre("comment Slurm job 7", "cancel Slurm job 7"));
  world.job(7, "CANCELLED");
  EXPECT_THAT(world.steps(), IsEmpty());
}

TEST(JobsPlan, TheCommentOfTheUserStays) {
  World world;
  world.placed_pod(7, "node-2", kSucceeded);
  slurm::Job& job = world.job(7, "RUNNING");
  world.change_details(job, [](slurm::JobDetails& details) { details.comment = "mine"; });
  EXPECT_EQ(world.act("comment").at("wish").at("comment"), "mine; the pod has Succeeded");
  world.change_details(job, [](slurm::JobDetails& details) { details.comment = "mine; the pod has Succeeded"; });
  EXPECT_THAT(world.steps(), ElementsAre("cancel Slurm job 7"));
}

TEST(JobsPlan, BesideASlurmdAPodWaitsUntilTheNodeListsItsJob) {
  World world;
  world.settings.holds_native_jobs = true;
  world.waiting_pod();
  world.job(7, "RUNNING");
  EXPECT_THAT(world.steps(), Not(Contains("place Pod ns/p")));
  world.nodes["node-2"].extra = R"({"slurm-bridge":"6"})";
  EXPECT_THAT(world.steps(), Not(Contains("place Pod ns/p")));
  world.nodes["node-2"].extra = R"({"slurm-bridge":"6 7"})";
  EXPECT_THAT(world.steps(), Contains("place Pod ns/p"));
  world.nodes["node-2"].extra = "of somebody else";
  EXPECT_THAT(world.steps(), Contains("place Pod ns/p")) << "it cannot be listed";
  world.nodes["node-2"].extra = "";
  world.nodes["node-2"].state.flags = {"EXTERNAL"};
  EXPECT_THAT(world.steps(), Contains("place Pod ns/p")) << "no native job runs there";
}

// --- Groups ------------------------------------------------------------------------------------------------------------

TEST(JobsPlan, PodsOfGroupsAreLeftToTheirController) {
  World world;
  world.waiting_pod(Json::parse(R"({"metadata": {"labels": {"scheduling.x-k8s.io/pod-group": "train"}}})"));
  EXPECT_THAT(world.steps(), IsEmpty());
  slurm::Job& job = world.job(7, "RUNNING");
  const Json more{{"pods", Json::parse(R"([{"ns": "ns", "name": "p", "uid": "u"}])")},
                  {"group", {{"ns", "ns"}, {"name", "podgroup/train"}}}};
  world.change_details(job, [&](slurm::JobDetails& details) {
    details.admin_comment = slurm::admin_comment({slurm::Owner::kBridge, testing::kInstallation, "g/1"}, more);
  });
  EXPECT_THAT(world.steps(), IsEmpty());
  EXPECT_TRUE(world.plan().needs().empty()) << "the job is not that of the pod alone";
  world.placed_pod(7, "node-2");
  EXPECT_THAT(world.steps(), IsEmpty()) << "though it has lost its label";
  world.delete_pod();
  EXPECT_TRUE(world.plan().needs().empty());
}

TEST(JobsPlan, ThePodOfAGroupEndsTheJobOfAnEarlierPodOfItsName) {
  World world;
  world.job(7, "RUNNING", "old");
  world.waiting_pod(Json::parse(R"({"metadata": {"labels": {"scheduling.x-k8s.io/pod-group": "train"}}})"));
  world.fact("pod", Json::object({{"metadata", {{"uid", "u"}}}}));
  EXPECT_THAT(world.steps(), ElementsAre("comment Slurm job 7", "cancel Slurm job 7"));
}

}  // namespace
}  // namespace bridge::jobs
