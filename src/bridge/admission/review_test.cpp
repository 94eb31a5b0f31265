#include "bridge/admission/review.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "bridge/common/names.hpp"
#include "kube/cache/record.hpp"

namespace bridge::admission {
namespace {

using core::Json;
using kube::AdmissionVerdict;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A pod as the API server shows it to webhooks: defaults and the PriorityClass are filled in.
struct Review : ::testing::Test {
  Json pod = Json::parse(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "research"},
    "spec": {"containers": [{"name": "c", "image": "i"}], "schedulerName": "default-scheduler", "priority": 0,
             "preemptionPolicy": "PreemptLowerPriority",
             "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
                              "tolerationSeconds": 300}]}})");
  kube::AdmissionRequest request;
  Settings settings{
      .cluster = "slurm/demo", .managed_namespaces = {"other", "research"}, .scheduler_name = "slurm-bridge-scheduler"};
  bool default_class = false;
  std::string too_old;

  Review() {
    request.operation = "CREATE";
    request.version = "v1";
    request.kind = "Pod";
    request.resource = "pods";
    request.key = {"research", "p"};
    request.user = "ada";
  }

  AdmissionVerdict ask() {
    request.object = pod;
    const auto record = kube::record_from_json<kube::SchedulingPodRecord>(pod).value();
    return review({request, *record, default_class, settings, too_old});
  }
  std::string refusal() {
    const AdmissionVerdict verdict = ask();
    EXPECT_EQ(verdict.allowed, verdict.message.empty());
    EXPECT_TRUE(verdict.allowed || verdict.patch.is_null());
    return verdict.message;
  }
  /// Returns the pod with the patch of the verdict.
  Json patched() {
    const AdmissionVerdict verdict = ask();
    EXPECT_EQ(verdict.message, "");
    return verdict.patch.is_null() ? pod : pod.patch(verdict.patch);
  }
  void annotate(const std::string& name, const std::string& value) { pod["metadata"]["annotations"][name] = value; }
  bool untouched() {
    const AdmissionVerdict verdict = ask();
    return verdict.allowed && verdict.patch.is_null() && verdict.warnings.empty();
  }
};

// --- Which pods --------------------------------------------------------------------------------------------------------------

TEST_F(Review, APodOfAManagedNamespaceWaitsForSlurm) {
  Json want = pod;
  want["spec"]["schedulingGates"] = Json::parse(R"([{"name": "scheduler.slinky.slurm.net/slurm-bridge"}])");
  want["spec"]["priorityClassName"] = "slurm-bridge";
  want["spec"].erase("priority");
  want["spec"].erase("preemptionPolicy");
  EXPECT_EQ(patched(), want);
  EXPECT_THAT(ask().warnings, IsEmpty());
}

TEST_F(Review, APodThatIsAsItShouldBeIsNotChanged) {
  pod = patched();
  pod["spec"]["priority"] = 0;
  pod["spec"]["preemptionPolicy"] = "Never";
  EXPECT_EQ(patched(), pod) << "the webhook is called again after others";
}

TEST_F(Review, OtherGatesStay) {
  pod["spec"]["schedulingGates"] = Json::parse(R"([{"name": "example.com/quota"}])");
  EXPECT_EQ(patched()["spec"]["schedulingGates"],
            Json::parse(R"([{"name": "example.com/quota"}, {"name": "scheduler.slinky.slurm.net/slurm-bridge"}])"));
}

TEST_F(Review, PodsOfOtherNamespacesAreNotTouched) {
  request.key.ns = "elsewhere";
  pod["spec"]["nodeName"] = "node-1";
  annotate("slurmjob.slinky.slurm.net/timelimit", "soon");
  EXPECT_TRUE(untouched());
}

TEST_F(Review, OtherRequestsAreNotTouched) {
  for (const auto& change : std::vector<std::function<void(kube::AdmissionRequest&)>>{
           [](auto& r) { r.operation = "UPDATE"; },
           [](auto& r) { r.operation = "DELETE"; },
           [](auto& r) { r.subresource = "binding"; },
           [](auto& r) { r.resource = "services"; },
           [](auto& r) { r.group = "metrics.k8s.io"; },
       }) {
    const kube::AdmissionRequest before = request;
    change(request);
    EXPECT_TRUE(untouched());
    request = before;
  }
}

/// With such a Slurm, the bridge does nothing, and only the bridge is allowed to remove a gate. So a gated pod would never run.
TEST_F(Review, WithASlurmThatIsTooOldNoPodIsGatedOrRefused) {
  too_old = "25.05.9";
  annotate("slurmjob.slinky.slurm.net/nonsense", "1");
  const AdmissionVerdict verdict = ask();
  EXPECT_TRUE(verdict.allowed);
  EXPECT_TRUE(verdict.patch.is_null());
  EXPECT_THAT(verdict.warnings, ElementsAre(HasSubstr("Slurm 25.05.9 has no external jobs")));
  settings.managed_namespaces = {"other"};
  EXPECT_TRUE(untouched()) << "it is not managed anyway";
}

TEST_F(Review, PodsOfDaemonSetsAreExempt) {
  pod["metadata"]["ownerReferences"] =
      Json::parse(R"([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": true}])");
  pod["spec"]["tolerations"] = Json::parse(R"([{"operator": "Exists"}])");
  EXPECT_FALSE(untouched()) << "anybody can write the owner";
  request.user = "system:serviceaccount:research:daemon-set-controller";
  EXPECT_FALSE(untouched());
  for (const char* controller : {"system:kube-controller-manager", "system:serviceaccount:kube-system:daemon-set-controller"}) {
    request.user = controller;
    EXPECT_TRUE(untouched()) << controller;
  }
  pod["metadata"]["ownerReferences"][0]["kind"] = "ReplicaSet";
  EXPECT_FALSE(untouched());
  pod["metadata"]["ownerReferences"][0] = {
      {"apiVersion", "example.com/v1"}, {"kind", "DaemonSet"}, {"name", "d"}, {"uid", "u"}, {"controller", true}};
  EXPECT_FALSE(untouched());
}

TEST_F(Review, MirrorPodsOfKubeletsAreExempt) {
  annotate("kubernetes.io/config.mirror", "hash");
  pod["spec"]["nodeName"] = "node-1";
  EXPECT_THAT(refusal(), HasSubstr("spec.nodeName")) << "anybody can write the annotation";
  request.groups = {"system:nodes", "system:authenticated"};
  EXPECT_TRUE(untouched());
}

// --- The scheduler -----------------------------------------------------------------------------------------------------------

TEST_F(Review, TheSchedulerOfTheGoBridgeAsksInAnyNamespace) {
  request.key.ns = "elsewhere";
  pod["spec"]["schedulerName"] = "slurm-bridge-scheduler";
  Json after = patched();
  EXPECT_EQ(after["spec"]["schedulerName"], "default-scheduler");
  EXPECT_EQ(after["spec"]["schedulingGates"].size(), 1U);
  EXPECT_EQ(after["metadata"]["annotations"], Json::parse(R"({"slinky.slurm.net/slurm-managed-by": "slurm/demo"})"));
  EXPECT_THAT(ask().warnings, IsEmpty());
  annotate("a", "b");
  after = patched();
  EXPECT_EQ(after["metadata"]["annotations"], Json::parse(R"({"a": "b", "slinky.slurm.net/slurm-managed-by": "slurm/demo"})"));
  pod = after;
  pod["spec"]["preemptionPolicy"] = "Never";  // The API server fills in this field from the PriorityClass.
  EXPECT_EQ(patched(), pod) << "the webhook is called again after others";
}

TEST_F(Review, TheAnnotationOfAdmissionAsksAsTheSchedulerDoes) {
  request.key.ns = "elsewhere";
  annotate("slinky.slurm.net/slurm-managed-by", "slurm/other");
  EXPECT_TRUE(untouched()) << "another bridge looks after it";
  annotate("slinky.slurm.net/slurm-managed-by", "slurm/demo");
  EXPECT_EQ(patched()["spec"]["schedulingGates"].size(), 1U);
  pod["spec"]["priorityClassName"] = "urgent";
  EXPECT_THAT(refusal(), HasSubstr("\"urgent\" preempts pods"));
  settings.scheduler_name.clear();
  EXPECT_TRUE(untouched()) << "the bridge does not look at it then";
}

TEST_F(Review, TheSchedulerOfTheGoBridgeInAManagedNamespace) {
  pod["spec"]["schedulerName"] = "slurm-bridge-scheduler";
  const Json after = patched();
  EXPECT_EQ(after["spec"]["schedulerName"], "default-scheduler");
  EXPECT_FALSE(after["metadata"].contains("annotations"));
  EXPECT_THAT(ask().warnings, IsEmpty());
}

TEST_F(Review, WithoutANameNoSchedulerAsks) {
  settings.scheduler_name.clear();
  request.key.ns = "elsewhere";
  pod["spec"]["schedulerName"] = "slurm-bridge-scheduler";
  EXPECT_TRUE(untouched());
  pod["spec"].erase("schedulerName");
  EXPECT_TRUE(untouched());
}

TEST_F(Review, AnotherSchedulerIsReplacedAndTold) {
  pod["spec"]["schedulerName"] = "volcano";
  EXPECT_EQ(patched()["spec"]["schedulerName"], "default-scheduler");
  EXPECT_THAT(ask().warnings, ElementsAre("spec.schedulerName: volcano is replaced by default-scheduler, because Slurm chooses "
                                          "the node"));
}

// --- The priority class ------------------------------------------------------------------------------------------------------

TEST_F(Review, AClassThatPreemptsIsRefused) {
  pod["spec"]["priorityClassName"] = "urgent";
  EXPECT_THAT(refusal(), AllOf(HasSubstr("spec.priorityClassName: \"urgent\" preempts pods"),
                               HasSubstr("must be absent, or a PriorityClass with preemptionPolicy Never")));
  pod["spec"].erase("preemptionPolicy");
  EXPECT_THAT(refusal(), HasSubstr("\"urgent\" preempts pods")) << "it is the default";
}

TEST_F(Review, AClassThatDoesNotPreemptStays) {
  pod["spec"]["priorityClassName"] = "patient";
  pod["spec"]["preemptionPolicy"] = "Never";
  pod["spec"]["priority"] = 7;
  const Json after = patched();
  EXPECT_EQ(after["spec"]["priorityClassName"], "patient");
  EXPECT_EQ(after["spec"]["priority"], 7);
}

TEST_F(Review, TheDefaultClassOfTheClusterIsReplaced) {
  default_class = true;
  pod["spec"]["priorityClassName"] = "normal";
  pod["spec"]["priority"] = 1000;
  const Json after = patched();
  EXPECT_EQ(after["spec"]["priorityClassName"], "slurm-bridge");
  EXPECT_FALSE(after["spec"].contains("priority"));
  EXPECT_FALSE(after["spec"].contains("preemptionPolicy"));
}

// --- Refusals ----------------------------------------------------------------------------------------------------------------

TEST_F(Review, WhatTheBridgeSetsIsRefused) {
  pod["spec"]["nodeName"] = "node-1";
  EXPECT_EQ(refusal(), "spec.nodeName: must be absent, because Slurm chooses the node");
  pod["spec"].erase("nodeName");
  pod["metadata"]["labels"]["scheduler.slinky.slurm.net/slurm-jobid"] = "7";
  EXPECT_EQ(refusal(), "label scheduler.slinky.slurm.net/slurm-jobid: must be absent, because slurm-bridge sets it");
  annotate("slinky.slurm.net/slurm-node", "node-1");
  annotate("slinky.slurm.net/slurm-replaced-job", "6");
  EXPECT_EQ(refusal(),
            "label scheduler.slinky.slurm.net/slurm-jobid: must be absent, because slurm-bridge sets it; annotation "
            "slinky.slurm.net/slurm-node: must be absent, because slurm-bridge sets it; annotation "
            "slinky.slurm.net/slurm-replaced-job: must be absent, because slurm-bridge sets it");
}

TEST_F(Review, RequiredSpreadIsRefused) {
  pod["spec"]["topologySpreadConstraints"] = Json::parse(R"([{"whenUnsatisfiable": "ScheduleAnyway", "topologyKey": "zone"}])");
  EXPECT_EQ(refusal(), "");
  pod["spec"]["topologySpreadConstraints"][1] = {{"whenUnsatisfiable", "DoNotSchedule"}, {"topologyKey", "zone"}};
  EXPECT_EQ(refusal(),
            "spec.topologySpreadConstraints: whenUnsatisfiable must be ScheduleAnyway, because Slurm chooses the node");
}

TEST_F(Review, ResourceClaimsAreRefused) {
  pod["spec"]["resourceClaims"] = Json::array();
  EXPECT_EQ(refusal(), "");
  pod["spec"]["resourceClaims"] = Json::parse(R"([{"name": "gpu", "resourceClaimName": "c"}])");
  EXPECT_EQ(refusal(), "spec.resourceClaims: must be absent, because Slurm does not know these devices");
}

TEST_F(Review, WhatSlurmCannotHonourIsRefused) {
  pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
      Json::parse(R"([{"topologyKey": "kubernetes.io/hostname"}])");
  EXPECT_THAT(refusal(), HasSubstr("spec.affinity.podAntiAffinity: required rules are not supported"));
  pod["spec"]["affinity"] = Json::parse(R"({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
    "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}, {}]}}})");
  EXPECT_THAT(refusal(), HasSubstr("spec.affinity.nodeAffinity: a required term is empty"));
  pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"].erase(1);
  EXPECT_EQ(refusal(), "");
  pod["spec"]["nodeSelector"]["zone"] = "b";
  EXPECT_THAT(refusal(), HasSubstr("contradicts the node selector about zone"));
}

TEST_F(Review, WrongAnnotationsAreRefused) {
  annotate("slurmjob.slinky.slurm.net/timelimit", "60");
  EXPECT_EQ(refusal(), "");
  annotate("slurmjob.slinky.slurm.net/timelimit", "soon");
  EXPECT_THAT(refusal(), HasSubstr("annotation slurmjob.slinky.slurm.net/timelimit: \"soon\", must be a whole number"));
  pod["metadata"].erase("annotations");
  annotate("slurmjob.slinky.slurm.net/walltime", "60");
  EXPECT_THAT(refusal(), HasSubstr("annotation slurmjob.slinky.slurm.net/walltime: \"60\", must be absent"));
}

/// The size of a group is unknown when its pods are created.
TEST_F(Review, PodsOfGroupsMayAskForMoreNodes) {
  annotate("slurmjob.slinky.slurm.net/min-nodes", "2");
  annotate("slurmjob.slinky.slurm.net/max-nodes", "8");
  EXPECT_THAT(refusal(), HasSubstr("must be 1 for a single pod"));
  pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = "train";
  EXPECT_EQ(refusal(), "");
  for (const char* name : {"min-nodes", "max-nodes"}) {
    annotate("slurmjob.slinky.slurm.net/" + std::string(name), "0");
    EXPECT_THAT(refusal(), HasSubstr(std::string(name) + ": \"0\", must be a whole number from 1"));
    annotate("slurmjob.slinky.slurm.net/" + std::string(name), "2");
  }
}

TEST_F(Review, OnlyPodsOfJobsAskForAGang) {
  annotate("slurmjob.slinky.slurm.net/gang", "true");
  EXPECT_THAT(refusal(), HasSubstr("must be false for a pod that belongs to no Job"));
  pod["metadata"]["ownerReferences"] =
      Json::parse(R"([{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": true}])");
  EXPECT_EQ(refusal(), "");
  annotate("slurmjob.slinky.slurm.net/gang", "maybe");
  EXPECT_THAT(refusal(), HasSubstr("must be true or false"));
}

TEST_F(Review, IdentitiesAreRefusedUnlessTrusted) {
  for (const char* name : {"user-id", "group-id", "priority"}) {
    pod["metadata"].erase("annotations");
    annotate("slurmjob.slinky.slurm.net/" + std::string(name), "1000");
    EXPECT_THAT(refusal(), HasSubstr("without --trust-identities"));
    settings.trusts_identities = true;
    EXPECT_EQ(refusal(), "");
    settings.trusts_identities = false;
  }
}

// --- Warnings ----------------------------------------------------------------------------------------------------------------

TEST_F(Review, AWordWithAnotherPrefixIsTold) {
  annotate("slinky.slurm.net/timelimit", "60");
  annotate("example.com/comment", "mine");
  annotate("slinky.slurm.net/walltime", "60");
  annotate("comment", "mine");
  EXPECT_THAT(
      ask().warnings,
      ElementsAre("annotation slinky.slurm.net/timelimit has no effect: did you mean slurmjob.slinky.slurm.net/timelimit?"));
  EXPECT_EQ(refusal(), "");
}

TEST_F(Review, APodThatToleratesAllIsTold) {
  pod["spec"]["tolerations"].push_back({{"operator", "Exists"}});
  EXPECT_THAT(ask().warnings, ElementsAre(HasSubstr("spec.tolerations: the pod tolerates every taint")));
  pod["spec"]["tolerations"].back()["effect"] = "NoSchedule";
  EXPECT_THAT(ask().warnings, IsEmpty());
}

TEST_F(Review, WarningsHaveTheLengthThatTheApiServerAllows) {
  annotate(std::string(240, 'x') + "slurm/timelimit", "60");
  ASSERT_EQ(ask().warnings.size(), 1U);
  EXPECT_EQ(ask().warnings[0].size(), 256U);
}

TEST_F(Review, ARefusalHasItsWarnings) {
  annotate("slinky.slurm.net/timelimit", "60");
  pod["spec"]["nodeName"] = "node-1";
  const AdmissionVerdict verdict = ask();
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(verdict.warnings.size(), 1U);
}

}  // namespace
}  // namespace bridge::admission
