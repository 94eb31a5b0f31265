#include "cli/release.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/testing/objects.hpp"

namespace cli {
namespace {

using core::Json;
using testing::HasSubstr;
using testing::Not;

const core::WallTime kNow = *core::parse_rfc3339("2026-01-02T03:00:00Z");

Json operator_pod(const std::string& name, const std::string& args = "[]") {
  Json pod = json(R"({"kind": "Pod", "metadata": {"namespace": "slurm-operator"}, "status": {"phase": "Running"}})");
  pod["metadata"]["name"] = name;
  pod["spec"]["containers"] = Json::array({Json{{"args", json(args)}}});
  return pod;
}

Json lease(const std::string& holder, const std::string& renewed, const std::string& ns = "slurm-operator") {
  return {{"kind", "Lease"},
          {"metadata", {{"namespace", ns}, {"name", "slurm-operator"}}},
          {"spec", {{"holderIdentity", holder}, {"renewTime", renewed}, {"leaseDurationSeconds", 15}}}};
}

constexpr const char* kUs = "op-1_0123456789abcdef";
constexpr const char* kGo = "op-1_7f1c2a1e-7a0b-4e0e-9a55-0123456789ab";

TEST(OperatorRuns, WhileItLeadsOrItsPodIsThere) {
  EXPECT_THAT(operator_runs({operator_pod("op-1")}, {lease(kUs, "2026-01-02T02:59:55.000000Z")}, "hpc", kNow),
              HasSubstr("the operator is active"));
  // The operator may run outside of the cluster.
  EXPECT_THAT(operator_runs({}, {lease("laptop_0123456789abcdef", "2026-01-02T02:59:55Z")}, "hpc", kNow),
              HasSubstr("is active"));
  // The clocks may differ a little.
  EXPECT_THAT(operator_runs({}, {lease(kUs, "2026-01-02T02:59:10Z")}, "hpc", kNow), HasSubstr("is active"));
  EXPECT_THAT(operator_runs({operator_pod("op-1")}, {}, "hpc", kNow), HasSubstr("pod slurm-operator/op-1"));
  EXPECT_THAT(operator_runs({operator_pod("op-1")}, {lease("what-is-this", "2026-01-02T03:00:00Z")}, "hpc", kNow), Not(""));
}

TEST(OperatorRuns, NoMoreWhenItHasStopped) {
  EXPECT_EQ(operator_runs({}, {}, "hpc", kNow), "");
  EXPECT_EQ(operator_runs({}, {lease(kUs, "2026-01-02T02:50:00Z")}, "hpc", kNow), "");
  EXPECT_EQ(operator_runs({}, {lease("", "2026-01-02T03:00:00Z")}, "hpc", kNow), "");
  Json ended = operator_pod("op-1");
  ended["status"]["phase"] = "Succeeded";
  EXPECT_EQ(operator_runs({ended}, {}, "hpc", kNow), "");
}

TEST(OperatorRuns, TheGoOperatorIsAnother) {
  EXPECT_EQ(operator_runs({operator_pod("op-1")}, {lease(kGo, "2026-01-02T03:00:00Z")}, "hpc", kNow), "");
}

TEST(OperatorRuns, OneOfOtherNamespacesDoesNotMatter) {
  const Json pod = operator_pod("op-1", R"(["--namespaces=a,b"])");
  const std::vector<Json> leases{lease(kUs, "2026-01-02T03:00:00Z")};
  EXPECT_EQ(operator_runs({pod}, leases, "hpc", kNow), "");
  EXPECT_THAT(operator_runs({pod}, leases, "b", kNow), HasSubstr("is active"));
  EXPECT_THAT(operator_runs({operator_pod("op-1", R"(["--namespaces="])")}, leases, "hpc", kNow), HasSubstr("is active"));
}

ReleaseFacts facts() {
  ReleaseFacts out;
  out.controller = controller_object();
  out.nodesets = {nodeset_object(), nodeset_object()};
  out.nodesets[1]["metadata"]["name"] = "of-another-cluster";
  out.nodesets[1]["spec"]["controllerRef"]["name"] = "other";
  out.restapis = {restapi_object()};
  out.workers = {worker_object("cpu-0", {"Idle"})};
  out.revisions = {json(R"({"kind": "ControllerRevision", "metadata": {"name": "cpu-x", "namespace": "hpc", "uid": "v",
    "annotations": {"nodeset.slinky.slurm.net/rolls": "true"}}})")};
  out.budgets = {json(R"({"metadata": {"name": "slurm-workers-pdb-slurm", "namespace": "hpc", "uid": "b"}})"),
                 json(R"({"metadata": {"name": "mine", "namespace": "hpc", "uid": "m"}})")};
  return out;
}

TEST(Release, TakesOffFinalizersAndStampsOfThisClusterAlone) {
  const ReleasePlan plan = plan_release(facts(), false);
  std::vector<std::string> lines;
  for (const ReleaseStep& step : plan.steps) lines.push_back(step.resource.kind + " " + step.object.name + " " + step.what);
  EXPECT_THAT(lines, testing::ElementsAre("Pod cpu-0 remove the annotation nodeset.slinky.slurm.net/registered",
                                          "ControllerRevision cpu-x remove the annotation nodeset.slinky.slurm.net/rolls",
                                          "NodeSet cpu remove the finalizer nodeset.slinky.slurm.net/drain",
                                          "RestApi slurm remove the finalizer restapi.slinky.slurm.net/serve",
                                          "Controller slurm remove the finalizer controller.slinky.slurm.net/teardown"));
  EXPECT_EQ(plan.steps[2].patch["metadata"]["finalizers"], Json::array({"example.com/other"})) << "another's stays";
  EXPECT_EQ(plan.steps[2].patch["metadata"]["uid"], "n-1");
  EXPECT_EQ(plan.refusal, "");
  EXPECT_THAT(plan.notes, testing::Contains(HasSubstr("PodDisruptionBudget slurm-workers-pdb-slurm is kept")));
  EXPECT_THAT(plan.notes, testing::Contains(HasSubstr("{name: slurm-slurm-key, key: slurm.key}")));
}

TEST(Release, TellsOfBackupsThatNoOtherOperatorKnows) {
  ReleaseFacts known = facts();
  const auto tells = testing::Contains(HasSubstr("kubectl -n hpc delete statefulset slurm-controller-backup"));
  EXPECT_THAT(plan_release(known, false).notes, Not(tells));
  known.controller["spec"]["ha"]["enabled"] = true;
  EXPECT_THAT(plan_release(known, false).notes, tells);
}

TEST(Release, TakesTheFinalizerOffTheAccountingThatItNames) {
  ReleaseFacts with = facts();
  with.controller["spec"]["accountingRef"]["name"] = "records";
  for (const char* name : {"others", "records"}) {
    with.accountings.push_back(
        {{"metadata",
          {{"name", name}, {"namespace", "hpc"}, {"uid", name}, {"finalizers", {"accounting.slinky.slurm.net/record"}}}}});
  }
  const ReleaseStep last = plan_release(with, false).steps.back();
  EXPECT_EQ(last.resource.kind + " " + last.object.name + " " + last.what,
            "Accounting records remove the finalizer accounting.slinky.slurm.net/record");
  EXPECT_EQ(std::ranges::count(plan_release(with, false).steps, "Accounting",
                               [](const ReleaseStep& step) { return step.resource.kind; }),
            1);
}

TEST(Release, TheBudgetGoesOnDemand) {
  const ReleasePlan plan = plan_release(facts(), true);
  const auto budget =
      std::ranges::find(plan.steps, "PodDisruptionBudget", [](const ReleaseStep& step) { return step.resource.kind; });
  ASSERT_NE(budget, plan.steps.end());
  EXPECT_EQ(budget->object.name, "slurm-workers-pdb-slurm");
  EXPECT_TRUE(budget->patch.is_null());
}

TEST(Release, IsRefusedWhereItWouldEndJobs) {
  for (const int which : {0, 1, 2}) {
    ReleaseFacts ending = facts();
    Json& object = which == 0 ? ending.controller : which == 1 ? ending.nodesets[0] : ending.restapis[0];
    object["metadata"]["deletionTimestamp"] = "2026-01-02T03:00:00Z";
    EXPECT_THAT(plan_release(ending, false).refusal,
                HasSubstr("is being deleted. Without its finalizer it would be removed at once"))
        << which;
  }
}

TEST(Release, OfOneThatWasGivenBackIsNothing) {
  ReleaseFacts back;
  back.controller = controller_object();
  back.controller["metadata"]["finalizers"] = Json::array();
  EXPECT_TRUE(plan_release(back, false).steps.empty());
}

}  // namespace
}  // namespace cli
