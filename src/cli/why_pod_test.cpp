#include "cli/why_pod.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/pod_reasons.hpp"
#include "cli/testing/cluster.hpp"
#include "cli/testing/pods.hpp"
#include "kube/cache/record.hpp"

namespace cli {
namespace {

using core::Json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::shared_ptr<const kube::SchedulingPodRecord> record_of(const Json& pod) {
  return *kube::record_from_json<kube::SchedulingPodRecord>(pod);
}

using Words = std::set<std::string>;

/// The sources that write the condition SlurmQueued of pods.
const std::vector<std::string> kReporting{"jobs/plan.cpp", "gangs/plan.cpp", "common/steps.cpp"};

/// Returns what the group of the pattern matches in these files below src/bridge.
Words words_in(const std::vector<std::string>& files, const std::string& pattern) {
  Words out;
  const std::regex expression(pattern);
  for (const std::string& name : files) {
    std::ifstream file("src/bridge/" + name);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    EXPECT_FALSE(text.empty()) << name;
    for (std::sregex_iterator it(text.begin(), text.end(), expression); it != std::sregex_iterator(); ++it)
      out.insert((*it)[1].str());
  }
  return out;
}

struct WhyPod : testing::Test {
  Json pod = waiting_pod_object();
  PodFacts facts;
  TestCluster cluster;

  WhyPod() {
    facts.now = kTestNow;
    facts.bridges.known.push_back(bridge_of(bridge_deployment(usual_arguments())));
    facts.no_job = "cluster hpc/slurm has no job of the pod";
  }
  void has_job() {
    facts.job = WhyFacts{"hpc", "slurm", cluster.job, cluster.facts};
    facts.no_job.clear();
    facts.controller = kube::Key{"hpc", "slurm"};
  }
  void warning(const std::string& reason, const std::string& message, const std::string& time) {
    facts.warnings.push_back({{"reason", reason}, {"message", message}, {"lastTimestamp", time}, {"type", "Warning"}});
  }
  Json document() {
    facts.object = pod;
    facts.pod = record_of(pod);
    return why_pod_document(facts);
  }
  std::string text() { return why_pod_text(document(), Style(false), kTestNow); }
};

TEST_F(WhyPod, ItsJobWaits) {
  cluster.job->reason = "Priority";
  set_condition(pod, "SlurmQueued", "True", "Priority", "job 9 waits in partition all: Priority");
  has_job();
  EXPECT_EQ(
      text(),
      "Pod research/train-0 is Pending, created 2026-01-02T02:55:00Z (5m ago)\n"
      "It waits for Slurm.\n"
      "SlurmQueued is True since 2026-01-02T02:56:00Z (4m ago): Priority\n"
      "  job 9 waits in partition all: Priority\n"
      "\n"
      "Job 9 is pending, of user ann, account physics, QOS normal, partition all, submitted 2026-01-02T02:55:00Z (5m ago)\n"
      "Reason: Priority\n"
      "  Jobs with a higher priority wait for the same nodes and come first.\n"
      "  A shorter time limit or fewer nodes can let it start earlier, in a gap that they leave (backfill).\n"
      "\n"
      "Slurm gives no time at which it may start.\n");
}

TEST_F(WhyPod, TheDocument) {
  cluster.job->reason = "Resources";
  set_condition(pod, "SlurmQueued", "True", "Priority", "job 9 waits in partition all: Priority");
  has_job();
  const Json found = document();
  EXPECT_EQ(found["apiVersion"], "cli.slinky.slurm.net/v1");
  EXPECT_EQ(found["kind"], "PodExplanation");
  EXPECT_EQ(found["namespace"], "research");
  EXPECT_EQ(found["pod"], "train-0");
  EXPECT_EQ(found["state"], "Waits");
  EXPECT_EQ(found["conditions"][0]["type"], "SlurmQueued");
  EXPECT_EQ(found["conditions"][0]["since"], "2026-01-02T02:56:00Z");
  EXPECT_THAT(found["conditions"][0]["meaning"].get<std::string>(), HasSubstr("Jobs with a higher priority"));
  EXPECT_TRUE(found["placedFor"].is_null());
  EXPECT_EQ(found["controller"], "hpc/slurm");
  EXPECT_EQ(found["job"]["kind"], "JobExplanation");
  EXPECT_EQ(found["job"]["reason"]["name"], "Resources");
  EXPECT_EQ(found["jobUnknown"], "");
}

TEST_F(WhyPod, WithoutSlurmTheReasonIsExplainedAllTheSame) {
  set_condition(pod, "SlurmQueued", "True", "QOSMaxJobsPerUserLimit", "job 9 waits in partition all: QOSMaxJobsPerUserLimit");
  facts.no_job = "secrets is forbidden\nYour user lacks this right.";
  EXPECT_THAT(text(), AllOf(HasSubstr("  As many jobs run at once as this limit allows.\n"),
                            HasSubstr("\nIts job in Slurm is not shown: secrets is forbidden Your user lacks this right.\n")));
}

TEST_F(WhyPod, WhatIsRefusedIsNamed) {
  set_condition(pod, "SlurmQueued", "False", "Refused", "annotation slurmjob.slinky.slurm.net/qos: \"gold\", must exist");
  EXPECT_THAT(text(), AllOf(HasSubstr("It gets no job in Slurm, because what it asks for is refused.\n"),
                            HasSubstr("(4m ago): Refused\n  annotation slurmjob.slinky.slurm.net/qos: \"gold\", must exist\n"),
                            HasSubstr("Correct the annotation that the message names.")));
}

TEST_F(WhyPod, EachReasonOfTheBridgeIsExplained) {
  for (const char* reason : {"SUSPENDED", "Resources", "AssocGrpCpuLimit"}) EXPECT_TRUE(explain_queued(reason)) << reason;
  EXPECT_FALSE(explain_queued("Something"));
  Words queued = words_in(kReporting, R"re((?:report\([^";]*|kConditionQueued), (?:true|false),\s(?:[^;]* : )?"([A-Z]\w+)")re");
  for (const char* found : {"Queued", "Unknown", "GroupIncomplete"}) EXPECT_TRUE(queued.contains(found)) << found;
  // The pod is placed, or over.
  for (const char* settled : {"Allocated", "Ended"}) EXPECT_EQ(queued.erase(settled), 1U) << settled;
  for (const std::string& reason : queued) EXPECT_TRUE(explain_queued(reason)) << reason;
  const std::vector<std::pair<std::string, std::string>> ends{
      {"common/states.cpp", R"re(\{"[A-Z_]+", "([A-Z]\w+)"\})re"},
      {"common/states.cpp", R"re(end == kEnds\.end\(\) \? "(\w+)")re"},
      {"common/evidence.cpp", R"re(return PodOver\(observing, pod, "\w+", (?:\w+ \? "\w+" : )?"(\w+)")re"},
      {"common/evidence.cpp", R"re(return PodOver\(observing, pod, "\w+", \w+ \? "(\w+)")re"},
      {"common/evidence.hpp", R"re(kNotBound = "(\w+)")re"},
      {"common/steps.cpp", R"re(kConditionEnded, true, "(\w+)")re"}};
  Words ended;
  for (const auto& [file, pattern] : ends) ended.merge(words_in({file}, pattern));
  for (const char* found : {"Cancelled", "Ended", "Gone", "Preempted", "TimedOut", "NotBound", "NodeNotReady"})
    EXPECT_TRUE(ended.contains(found)) << found;
  for (const std::string& reason : ended) EXPECT_TRUE(explain_pod_end(reason)) << reason;
  // The table has no others, but for the state of a job.
  queued.merge(ended);
  queued.insert("SUSPENDED");
  EXPECT_EQ(words_in({"../cli/pod_reasons.cpp"}, R"re(\n    \{"(\w+)",)re"), queued);
}

TEST_F(WhyPod, NobodyHasReportedOnIt) {
  EXPECT_THAT(text(), AllOf(HasSubstr("It has the scheduling gate of slurm-bridge, and slurm-bridge has not reported on it.\n"),
                            HasSubstr("kubectl -n slurm-bridge logs deployment/slurm-bridge\n")));
  facts.now = kTestNow - std::chrono::minutes{5};
  EXPECT_THAT(text(), Not(HasSubstr("kubectl")));
  facts.bridges.known.front().ready = false;
  EXPECT_THAT(text(), HasSubstr("No pod of slurm-bridge slurm-bridge/slurm-bridge, which manages it, is ready.\n"));
  facts.bridges.known.front().settings.managed_namespaces = {"other"};
  EXPECT_THAT(text(), HasSubstr("No slurm-bridge manages namespace research (admission.managedNamespaces of its chart).\n"
                                "Without a bridge, nothing removes the gate.\n"));
  facts.bridges = {{}, "deployments is forbidden"};
  EXPECT_THAT(text(), HasSubstr("Whether a slurm-bridge manages namespace research is not known: deployments is forbidden\n"));
  facts.bridges = {};
  EXPECT_THAT(text(), HasSubstr("This Kubernetes cluster has no Deployment of slurm-bridge.\n"));
}

TEST_F(WhyPod, AnOldConditionOfANamespaceThatIsNotManagedAnyMore) {
  set_condition(pod, "SlurmQueued", "False", "SlurmUnavailable", "no slurmrestd is known");
  EXPECT_THAT(text(), Not(HasSubstr("No slurm-bridge manages")));
  facts.bridges.known.front().settings.managed_namespaces = {"other"};
  EXPECT_THAT(text(), HasSubstr("No slurm-bridge manages namespace research"));
}

TEST_F(WhyPod, GroupsAndOtherGates) {
  pod["metadata"]["labels"][std::string(bridge::kLabelPodGroup)] = "train";
  pod["spec"]["schedulingGates"].push_back({{"name", "example.com/quota"}});
  set_condition(pod, "SlurmQueued", "False", "GroupIncomplete", "podgroup/train has 1 of the 2 pods that it needs");
  EXPECT_THAT(text(), AllOf(HasSubstr("It also has other scheduling gates: example.com/quota.\n"),
                            HasSubstr("It starts together with the other pods of PodGroup train, which get one job.\n"),
                            HasSubstr("  podgroup/train has 1 of the 2 pods that it needs\n")));
}

TEST_F(WhyPod, KubernetesDoesNotBindIt) {
  place_pod(pod, 9, false);
  const std::string found = text();
  EXPECT_THAT(found, AllOf(HasSubstr("Slurm has chosen node node-2 for job 9, and Kubernetes has not bound it yet.\n"),
                           HasSubstr("PodScheduled is False since 2026-01-02T02:56:00Z (4m ago): Unschedulable\n"
                                     "  0/3 nodes are available: 1 Insufficient cpu\n"),
                           HasSubstr("it ends as Failed"), Not(HasSubstr("SlurmQueued"))));
  EXPECT_EQ(document()["placedFor"], 9);
  EXPECT_EQ(document()["state"], "Placed");
}

TEST_F(WhyPod, ItsContainersDoNotStart) {
  place_pod(pod, 9, true);
  pod["status"]["initContainerStatuses"].push_back(
      {{"name", "fetch"}, {"ready", false}, {"restartCount", 0}, {"state", {{"running", Json::object()}}}});
  pod["status"]["containerStatuses"].push_back(
      {{"name", "rank"},
       {"ready", false},
       {"restartCount", 0},
       {"state", {{"waiting", {{"reason", "ImagePullBackOff"}, {"message", "Back-off\033 pulling image"}}}}}});
  warning("FailedScheduling", "as the condition says", "2026-01-02T02:58:00Z");
  warning("FailedMount", "an older one", "2026-01-02T02:57:00Z");
  warning("FailedMount", "secret \"key\" not found", "2026-01-02T02:58:00Z");
  const std::string found = text();
  EXPECT_THAT(found, AllOf(HasSubstr("It is on node node-2 for job 9, and its containers do not run yet.\n"),
                           HasSubstr("Init container fetch has not ended yet.\n"),
                           HasSubstr("Container rank waits: ImagePullBackOff\n  Back-off  pulling image\n"),
                           HasSubstr("Warning FailedMount, 2026-01-02T02:58:00Z (2m ago)\n  secret \"key\" not found\n")));
  EXPECT_THAT(found, AllOf(Not(HasSubstr("an older one")), Not(HasSubstr("as the condition says"))));
}

TEST_F(WhyPod, ItRuns) {
  cluster.job = queued_job(9, "RUNNING", "ann");
  place_pod(pod, 9, true);
  pod["status"]["phase"] = "Running";
  set_condition(pod, "Ready", "True", "", "");
  warning("Unhealthy", "some time ago", "2026-01-02T02:57:00Z");
  has_job();
  EXPECT_THAT(text(), AllOf(HasSubstr("It runs on node node-2 for job 9.\n\nJob 9 is not pending: it is RUNNING"),
                            Not(HasSubstr("Unhealthy"))));
  set_condition(pod, "Ready", "False", "ContainersNotReady", "containers with unready status: [rank]");
  EXPECT_THAT(text(), AllOf(HasSubstr("for job 9, and is not ready.\n"), HasSubstr("unready status: [rank]"),
                            HasSubstr("Warning Unhealthy")));
}

TEST_F(WhyPod, ItEnds) {
  place_pod(pod, 9, true);
  pod["status"]["phase"] = "Running";
  set_condition(pod, "Ready", "True", "", "");
  set_condition(pod, "SlurmQueued", "False", "Ended", "job 9 is TIMEOUT");
  set_condition(pod, "SlurmEnded", "True", "TimedOut", "job 9 is TIMEOUT");
  set_condition(pod, "DisruptionTarget", "True", "SlurmTimedOut", "job 9 is TIMEOUT");
  EXPECT_THAT(text(), AllOf(HasSubstr("It has to end: slurm-bridge evicts it from node node-2 for job 9.\nSlurmEnded is True"),
                            HasSubstr("The time limit of its job ran out."), Not(HasSubstr("DisruptionTarget"))));
  pod["status"]["phase"] = "Failed";
  pod["status"]["reason"] = "SlurmTimedOut";
  pod["status"]["message"] = "job 9 is TIMEOUT";
  EXPECT_THAT(text(), AllOf(HasSubstr("It has ended.\nSlurmEnded is True"), HasSubstr("SlurmTimedOut: job 9 is TIMEOUT\n")));
}

TEST_F(WhyPod, ItIsBeingDeleted) {
  pod["metadata"]["deletionTimestamp"] = "2026-01-02T03:00:30Z";
  EXPECT_THAT(text(), HasSubstr("It is being deleted.\n"));
}

TEST_F(WhyPod, SlurmBridgeDoesNotManageIt) {
  pod["spec"].erase("schedulingGates");
  set_condition(pod, "PodScheduled", "False", "Unschedulable",
                "node(s) had untolerated taint {slinky.slurm.net/managed-node: }");
  facts.no_job = "slurm-bridge does not manage the pod";
  EXPECT_THAT(
      text(),
      AllOf(HasSubstr("It is no pod of slurm-bridge: it has no scheduling gate of slurm-bridge, and was not placed by it.\n"),
            HasSubstr("The pod would be managed by slurm-bridge slurm-bridge/slurm-bridge, but has no gate."),
            HasSubstr("Slurm has the nodes with the taint slinky.slurm.net/managed-node: let Slurm schedule"),
            HasSubstr("PodScheduled is False"), Not(HasSubstr("Its job in Slurm"))));
  pod["metadata"]["namespace"] = "elsewhere";
  pod["spec"]["schedulerName"] = "slurm-bridge-scheduler";
  EXPECT_THAT(text(),
              AllOf(HasSubstr("No slurm-bridge manages namespace elsewhere"),
                    HasSubstr("It asks for the scheduler slurm-bridge-scheduler."), Not(HasSubstr("removes the gate"))));
  pod["spec"]["nodeName"] = "node-1";
  pod["status"]["phase"] = "Running";
  EXPECT_THAT(text(), AllOf(HasSubstr("is Running"), Not(HasSubstr("It asks for the scheduler"))));
}

TEST_F(WhyPod, AWorkerOfANodeSetIsExplainedElsewhere) {
  pod["spec"].erase("schedulingGates");
  pod["metadata"]["labels"]["app.kubernetes.io/name"] = "slurmd";
  EXPECT_THAT(text(), HasSubstr("It is a worker of a NodeSet, which `kubectl slurm status` explains.\n"));
}

TEST_F(WhyPod, SomebodyRemovedItsGate) {
  pod["spec"].erase("schedulingGates");
  set_condition(pod, "SlurmQueued", "False", "Freed", "somebody removed the gate of the pod: Kubernetes alone schedules it");
  set_condition(pod, "PodScheduled", "False", "Unschedulable", "0/3 nodes are available");
  EXPECT_THAT(text(), AllOf(HasSubstr("Its gate was removed, so that Kubernetes alone schedules it.\nSlurmQueued is False"),
                            HasSubstr("0/3 nodes are available"), Not(HasSubstr("would be managed"))));
  EXPECT_EQ(document()["state"], "Freed");
}

// The job of a pod.

std::shared_ptr<slurm::Job> bridge_job(std::int64_t id, const std::string& state, const std::string& comment,
                                       bool external = true) {
  auto out = std::make_shared<slurm::Job>();
  out->id = id;
  out->state = state;
  slurm::JobDetails details;
  details.external = external;
  details.admin_comment = comment;
  details.submitted = core::WallTime{std::chrono::seconds{kTestSubmitted}};
  out->details = slurm::JobDetailsPtr(std::make_shared<slurm::JobDetails>(details));
  return out;
}

using Jobs = std::vector<std::shared_ptr<const slurm::Job>>;

std::int64_t number_of(const Json& pod, const std::string& installation, const Jobs& jobs) {
  const auto found = job_of_pod(*record_of(pod), installation, jobs);
  return found == nullptr ? 0 : found->id;
}

TEST(JobOfPod, HasTheUidOfThePodAndOfTheCluster) {
  const Json pod = waiting_pod_object();
  const Jobs jobs{bridge_job(3, "PENDING", bridge_comment("cluster-a", "uid-train-0"), false),
                  bridge_job(4, "PENDING", bridge_comment("cluster-a", "uid-of-an-earlier-pod")),
                  bridge_job(5, "PENDING", bridge_comment("cluster-b", "uid-train-0")),
                  bridge_job(6, "PENDING", slurm::admin_comment({slurm::Owner::kEnlistment, "cluster-a", "uid-train-0/1"}, {})),
                  bridge_job(7, "PENDING", "")};
  EXPECT_EQ(number_of(pod, "cluster-a", jobs), 0);
  EXPECT_EQ(number_of(pod, "cluster-b", jobs), 5);
  EXPECT_EQ(number_of(pod, "", jobs), 5) << "the UID of the pod is unique";
}

TEST(JobOfPod, IsTheNewestThatHasNotEnded) {
  const Json pod = waiting_pod_object();
  const std::string comment = bridge_comment("cluster-a", "uid-train-0");
  EXPECT_EQ(number_of(pod, "cluster-a", {bridge_job(4, "FAILED", comment), bridge_job(5, "FAILED", comment)}), 5);
  EXPECT_EQ(number_of(pod, "cluster-a", {bridge_job(4, "PENDING", comment), bridge_job(5, "FAILED", comment)}), 4);
  EXPECT_EQ(number_of(pod, "cluster-a", {bridge_job(4, "FAILED", comment), bridge_job(5, "PENDING", comment)}), 5);
}

TEST(JobOfPod, OfAPlacedPodIsTheOneThatItWasPlacedFor) {
  Json pod = waiting_pod_object();
  place_pod(pod, 9, true);
  // Users can change the label.
  pod["metadata"]["labels"][std::string(bridge::kLabelJobId)] = "8";
  const std::string comment = bridge_comment("cluster-a", "uid-train-0");
  const auto later = bridge_job(9, "RUNNING", comment);
  EXPECT_EQ(number_of(pod, "cluster-a", {bridge_job(8, "RUNNING", comment), later}), 9);
  slurm::JobDetails details = *later->details;
  details.submitted = core::WallTime{std::chrono::seconds{kTestSubmitted + 60}};
  later->details = slurm::JobDetailsPtr(std::make_shared<slurm::JobDetails>(details));
  EXPECT_EQ(number_of(pod, "cluster-a", {later}), 0) << "slurmctld has lost its state, and counts from 1 again";
}

TEST(JobOfPod, OfAGroupIsTheJobOfTheGroup) {
  Json pod = waiting_pod_object();
  pod["metadata"]["labels"][std::string(bridge::kLabelPodGroup)] = "train";
  const auto group_job = [](const std::string& uid, const std::string& group) {
    return Jobs{bridge_job(9, "PENDING", bridge_comment("cluster-a", uid, group))};
  };
  EXPECT_EQ(number_of(pod, "cluster-a", group_job("uid-train-0", "podgroup/train")), 9);
  EXPECT_EQ(number_of(pod, "", group_job("uid-train-0", "podgroup/train")), 9);
  // The pod took the place of another one.
  const Jobs jobs = group_job("uid-gone", "podgroup/train");
  EXPECT_EQ(number_of(pod, "cluster-a", jobs), 0);
  set_condition(pod, "SlurmQueued", "True", "Priority", "job 9 waits in partition all: Priority");
  EXPECT_EQ(number_of(pod, "cluster-a", jobs), 9);
  EXPECT_EQ(number_of(pod, "", jobs), 0) << "a group of another Kubernetes cluster can have the same name";
  EXPECT_EQ(number_of(pod, "cluster-a", group_job("uid-gone", "podgroup/other")), 0);
  set_condition(pod, "SlurmQueued", "True", "Priority", "job 99 waits in partition all: Priority");
  EXPECT_EQ(number_of(pod, "cluster-a", jobs), 0);
}

// The bridges.

PodCluster cluster_of_pod(const Json& pod, const Bridges& bridges) {
  return cluster_of(*record_of(pod), bridges);
}

TEST(BridgesOfACluster, TheirSettingsAreTheirArguments) {
  const KnownBridge found = bridge_of(bridge_deployment(usual_arguments()));
  EXPECT_EQ(found.deployment.str(), "slurm-bridge/slurm-bridge");
  EXPECT_TRUE(found.ready);
  EXPECT_EQ(found.controller, (kube::Key{"hpc", "slurm"}));
  EXPECT_EQ(found.settings.cluster, "hpc/slurm");
  EXPECT_EQ(found.settings.managed_namespaces, (std::vector<std::string>{"other", "research"}));
  EXPECT_EQ(found.settings.scheduler_name, "slurm-bridge-scheduler");
  const KnownBridge apart = bridge_of(bridge_deployment(Json::array({"--cluster", "hpc/a", "--cluster=hpc/b", "--cluster"})));
  EXPECT_EQ(apart.settings.cluster, "hpc/b") << "the last one counts";
  for (const char* wrong : {"--cluster=", "--cluster=x", "--cluster=/x", "--cluster=x/", "--cluster=x/y/z", "--clusters=x/y"})
    EXPECT_EQ(bridge_of(bridge_deployment(Json::array({wrong}))).settings.cluster, "") << wrong;
  EXPECT_EQ(bridge_of(Json::object()).settings.cluster, "");
}

TEST(BridgesOfACluster, TheOneThatManagesThePodNamesTheController) {
  Json pod = waiting_pod_object();
  Bridges bridges;
  EXPECT_THAT(cluster_of_pod(pod, bridges).unknown, HasSubstr("no Deployment of slurm-bridge; --cluster NAMESPACE/NAME"));
  bridges.known.push_back(bridge_of(bridge_deployment(usual_arguments())));
  EXPECT_EQ(cluster_of_pod(pod, bridges).controller, (kube::Key{"hpc", "slurm"}));
  bridges.known.push_back(bridge_of(bridge_deployment(Json::array({"--cluster=hpc/b", "--managed-namespaces=else"}))));
  EXPECT_EQ(cluster_of_pod(pod, bridges).controller, (kube::Key{"hpc", "slurm"}));
  bridges.known.back().settings.managed_namespaces = {"research"};
  EXPECT_THAT(cluster_of_pod(pod, bridges).unknown, HasSubstr("several slurm-bridges manage the pod"));
  pod["metadata"]["namespace"] = "nowhere";
  EXPECT_THAT(cluster_of_pod(pod, bridges).unknown, HasSubstr("none of the slurm-bridges manages the pod"));
  bridges.known.pop_back();
  EXPECT_EQ(cluster_of_pod(pod, bridges).controller, (kube::Key{"hpc", "slurm"})) << "there is no other one";
  bridges.known.front() = bridge_of(bridge_deployment(Json::array({"--slurmrestd=ctl:6820", "--managed-namespaces=nowhere"})));
  EXPECT_THAT(cluster_of_pod(pod, bridges).unknown, HasSubstr("uses the slurmrestd ctl:6820 without a Controller"));
}

TEST(BridgesOfACluster, AUserWhoMayNotReadThemHasTheAnnotation) {
  Json pod = waiting_pod_object();
  const Bridges bridges{{}, "deployments is forbidden"};
  EXPECT_THAT(cluster_of_pod(pod, bridges).unknown, AllOf(HasSubstr("deployments is forbidden"), HasSubstr("--cluster")));
  pod["metadata"]["annotations"][std::string(bridge::kAnnotationManagedBy)] = "hpc/slurm";
  EXPECT_EQ(cluster_of_pod(pod, bridges).controller, (kube::Key{"hpc", "slurm"}));
}

}  // namespace
}  // namespace cli
