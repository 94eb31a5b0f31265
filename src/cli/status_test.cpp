#include "cli/status.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/testing/objects.hpp"

namespace cli {
namespace {

using core::Json;
using testing::HasSubstr;
using testing::Not;

const core::WallTime kNow = *core::parse_rfc3339("2026-01-02T03:00:00Z");

StatusFacts facts() {
  StatusFacts out;
  out.controllers = {controller_object()};
  out.nodesets = {nodeset_object()};
  out.restapis = {restapi_object()};
  out.pods = {worker_object("cpu-0", {"Idle"}),
              worker_object("cpu-1", {"Mixed", "Drain"}, "slurm-operator: NodeSet hpc/cpu is being updated"),
              worker_object("cpu-2", {"Idle", "Drain", "NotResponding"}, "bad disk")};
  Json& busy = out.pods[1]["metadata"];
  busy["labels"]["nodeset.slinky.slurm.net/pod-busy"] = "true";
  busy["labels"]["controller-revision-hash"] = "old";
  busy["annotations"]["nodeset.slinky.slurm.net/pod-deadline"] = "2026-01-02T04:05:00Z";
  return out;
}

Json only_cluster(const StatusFacts& of, const StatusOptions& options = {}) {
  const Json document = status_document(of, options);
  EXPECT_EQ(document["items"].size(), 1U);
  return document["items"][0];
}

TEST(Status, ShowsWhatTheOperatorWroteWhereSlurmIsNotAsked) {
  const Json cluster = only_cluster(facts());
  EXPECT_EQ(cluster["slurmRelease"], "26.05");
  EXPECT_EQ(cluster["configuration"]["state"], "Loaded");
  EXPECT_TRUE(cluster["jobs"].is_null()) << "unknown is not zero";
  const Json& workers = cluster["nodeSets"][0]["workers"];
  EXPECT_EQ(workers[0]["slurmState"], "IDLE");
  EXPECT_TRUE(workers[0]["drain"].is_null());
  EXPECT_TRUE(workers[0]["jobs"].is_null());
  EXPECT_EQ(workers[1]["slurmState"], "MIXED+DRAIN");
  EXPECT_EQ(workers[1]["busyUntil"], "2026-01-02T04:05:00Z");
  EXPECT_EQ(workers[1]["drain"], (Json{{"by", "slurm-operator"}, {"reason", "NodeSet hpc/cpu is being updated"}}));
  EXPECT_EQ(workers[1]["earlierTemplate"], true);
  EXPECT_EQ(workers[2]["slurmState"], "IDLE+DRAIN+NOT_RESPONDING");
  EXPECT_EQ(workers[2]["drain"], (Json{{"by", "somebody else"}, {"reason", "bad disk"}}));
}

TEST(Status, TextTellsWhatEachWaitsFor) {
  const std::string text = status_text(status_document(facts()), Style(false), kNow);
  EXPECT_THAT(text, HasSubstr("Cluster hpc/slurm: Ready, Slurm 26.05, configuration Loaded\n"));
  EXPECT_THAT(text, HasSubstr("  NodeSet cpu: Updating: 1 of 3 workers still use an earlier template"));
  EXPECT_THAT(text, HasSubstr("  cpu      cpu        3        3      2        Ready\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "  cpu-1   cpu      MIXED+DRAIN                busy  in 1h5m        kube-1           drained by slurm-operator: "
          "NodeSet hpc/cpu is being updated; waits for its last job; earlier template\n"));
  EXPECT_THAT(text, HasSubstr("drained by somebody else: bad disk\n"));
  EXPECT_THAT(text, HasSubstr("Jobs are not shown: not asked\n"));
  EXPECT_THAT(text, Not(HasSubstr("\033")));
  EXPECT_THAT(status_text(status_document(facts()), Style(true), kNow), HasSubstr("\033[33mMIXED+DRAIN\033[0m"));
}

TEST(Status, TellsWhoDrainedAWorkerWithKubectlSlurm) {
  StatusFacts drained = facts();
  drained.pods[0] = worker_object("cpu-0", {"Idle", "Drain"}, "slurm-operator: drained by alice: bad disk");
  EXPECT_THAT(status_text(status_document(drained), Style(false), kNow),
              HasSubstr("kube-1           drained by alice: bad disk\n"));
}

TEST(Status, NamesSlurmNodesWhereTheyAreNotCalledAsTheirPods) {
  StatusFacts other = facts();
  other.pods[0]["metadata"]["annotations"]["nodeset.slinky.slurm.net/registered"] = "big-0";
  const std::string text = status_text(status_document(other), Style(false), kNow);
  EXPECT_THAT(text, HasSubstr("  WORKER  SLURM NODE  NODESET"));
  EXPECT_THAT(text, HasSubstr("  cpu-0   big-0       cpu"));
}

TEST(Status, SlurmsOwnWordComesFirst) {
  StatusFacts known = facts();
  SlurmFacts& slurm = known.slurm["hpc/slurm"];
  slurm.release = "26.05.5";
  const auto node = [&](const char* name, const char* base) {
    auto record = std::make_shared<slurm::Node>();
    record->name = name;
    record->state.base = base;
    record->state.flags = {"DYNAMIC_NORM"};
    slurm.nodes.push_back(record);
  };
  node("cpu-0", "ALLOCATED");
  node("cpu-1", "IDLE");
  const auto job = [&](std::int64_t id, const char* state, std::vector<std::string> nodes) {
    auto record = std::make_shared<slurm::Job>();
    record->id = id;
    const auto details = std::make_shared<slurm::JobDetails>();
    details->user = "alice";
    record->details = slurm::JobDetailsPtr(details);
    record->state = state;
    record->nodes = std::move(nodes);
    slurm.jobs.push_back(record);
  };
  job(7, "RUNNING", {"cpu-0"});
  job(8, "PENDING", {});
  job(9, "COMPLETED", {"cpu-1"});
  const Json cluster = only_cluster(known, {.jobs = true});
  EXPECT_EQ(cluster["slurmRelease"], "26.05.5");
  EXPECT_EQ(cluster["jobs"]["running"], 1);
  EXPECT_EQ(cluster["jobs"]["pending"], 1);
  EXPECT_EQ(cluster["jobs"]["list"].size(), 2U) << "job 9 has ended";
  const Json& workers = cluster["nodeSets"][0]["workers"];
  EXPECT_EQ(workers[0]["jobs"], Json::array({7}));
  EXPECT_EQ(workers[0]["busy"], true);
  EXPECT_TRUE(workers[0]["busyUntil"].is_null()) << "the job has no limit";
  EXPECT_EQ(workers[1]["jobs"], Json::array());
  EXPECT_EQ(workers[1]["slurmState"], "IDLE");
  EXPECT_EQ(workers[2]["slurmState"], "") << "Slurm has no such node";
  const std::string text = status_text(status_document(known, {.jobs = true}), Style(false), kNow);
  EXPECT_THAT(text, HasSubstr("Jobs: 1 running, 1 pending\n"));
  EXPECT_THAT(text, HasSubstr("no limit"));
  EXPECT_THAT(text, HasSubstr("its node is not in Slurm yet"));
}

TEST(Status, SaysWhyAPodDoesNotStart) {
  StatusFacts waiting = facts();
  Json& pod = waiting.pods[0];
  pod["status"] = json(R"({"phase": "Pending", "conditions": [
    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"}]})");
  pod["spec"].erase("nodeName");
  const Json worker = only_cluster(waiting)["nodeSets"][0]["workers"][0];
  EXPECT_EQ(worker["waitsFor"], Json::array({"Unschedulable: 0/3 nodes are available"}));
  EXPECT_EQ(worker["kubernetesNode"], "");
}

TEST(Status, ARefusedConfigurationIsTold) {
  StatusFacts refused = facts();
  for (Json& condition : refused.controllers[0]["status"]["conditions"]) {
    if (condition["type"] == "ConfigAccepted")
      condition.update(json(R"({"status": "False", "reason": "ConfigRefused", "message": "error: no such plugin"})"));
    if (condition["type"] == "Degraded")
      condition.update(json(R"({"status": "True", "reason": "ConfigRefused", "message": "error: no such plugin"})"));
  }
  const Json cluster = only_cluster(refused);
  EXPECT_EQ(cluster["configuration"]["state"], "ConfigRefused");
  EXPECT_EQ(cluster["waitsFor"], Json::array({"ConfigRefused: error: no such plugin"}));
}

TEST(Status, SaysWhichWorkersHaveNoPlace) {
  StatusFacts lacking = facts();
  Json& conditions = lacking.controllers[0]["status"]["conditions"];
  conditions.push_back(json(R"({"type": "WorkersPlaced", "status": "True", "reason": "Placed", "message": ""})"));
  EXPECT_EQ(only_cluster(lacking)["waitsFor"], Json::array());
  conditions.back().update(json(
      R"({"status": "False", "reason": "WorkersNotNamed", "message": "topology.yaml does not name these workers: cpu-3"})"));
  EXPECT_EQ(only_cluster(lacking)["waitsFor"],
            Json::array({"WorkersNotNamed: topology.yaml does not name these workers: cpu-3"}));
}

TEST(Status, OfAnExternalSlurmctldOnlySlurmTellsTheRelease) {
  StatusFacts external = facts();
  external.controllers[0]["spec"] = json(R"({"external": true, "externalConfig": {"host": "ctl.example.com"}})");
  external.controllers[0]["status"]["conditions"] = Json::array();
  const Json cluster = only_cluster(external);
  EXPECT_EQ(cluster["slurmRelease"], "");
  EXPECT_TRUE(cluster["configuration"].is_null());
  EXPECT_THAT(status_text(status_document(external), Style(false), kNow), HasSubstr("Cluster hpc/slurm: unknown\n"));
  external.slurm["hpc/slurm"].release = "26.05.5";
  EXPECT_EQ(only_cluster(external)["slurmRelease"], "26.05.5");
}

TEST(Status, AccountingsAreListedWithTheirClusters) {
  StatusFacts with = facts();
  with.controllers[0]["spec"]["accountingRef"] = {{"name", "records"}};
  const auto accounting = [](const char* name, const char* spec, const char* status, const char* message) {
    Json out{{"apiVersion", "slinky.slurm.net/v1beta1"},
             {"kind", "Accounting"},
             {"metadata", {{"name", name}, {"namespace", "hpc"}}},
             {"spec", json(spec)}};
    for (const char* type : {"Ready", "Progressing"}) {
      const bool waits = std::string_view(type) == "Progressing";
      out["status"]["conditions"].push_back({{"type", type},
                                             {"status", waits == (std::string_view(status) == "True") ? "False" : "True"},
                                             {"reason", *message == 0 ? "Done" : "Waiting"},
                                             {"message", message}});
    }
    return out;
  };
  with.accountings = {
      accounting("records", R"({"storageConfig": {"host": "db"}})", "False", "slurmdbd is starting"),
      accounting("own", R"({"storageConfig": {"managed": true}})", "True", ""),
      accounting("far", R"({"external": true, "externalConfig": {"host": "dbd.example.org", "port": 7000}})", "True", "")};
  const Json document = status_document(with);
  const Json& first = document["accountings"][0];
  EXPECT_EQ(first["namespace"], "hpc");
  EXPECT_EQ(first["name"], "records");
  EXPECT_EQ(first["ready"]["status"], "False");
  EXPECT_EQ(first["slurmdbd"], "records-accounting.hpc:6819");
  EXPECT_EQ(first["database"], "db:3306/slurm_acct_db");
  EXPECT_EQ(first["clusters"], Json::array({"slurm"}));
  EXPECT_EQ(document["accountings"][2]["external"], true);
  const std::string text = status_text(document, Style(false), kNow);
  EXPECT_THAT(text, HasSubstr("\nAccounting hpc/records: Waiting: slurmdbd is starting\n"
                              "ACCOUNTING   STATE      SLURMDBD                     DATABASE               CLUSTERS\n"
                              "hpc/records  not ready  records-accounting.hpc:6819  db:3306/slurm_acct_db  slurm\n"
                              "hpc/own      Ready      own-accounting.hpc:6819      managed                -\n"
                              "hpc/far      Ready      dbd.example.org:7000         external               -\n"));
}

TEST(Status, ObjectsOfOtherClustersAreNotMixedIn) {
  StatusFacts two = facts();
  two.controllers.push_back(controller_object());
  two.controllers[1]["metadata"]["namespace"] = "other";
  const Json document = status_document(two);
  EXPECT_EQ(document["items"][0]["nodeSets"].size(), 1U);
  EXPECT_EQ(document["items"][1]["nodeSets"].size(), 0U);
  EXPECT_EQ(document["items"][1]["restApis"].size(), 0U);
}

}  // namespace
}  // namespace cli
