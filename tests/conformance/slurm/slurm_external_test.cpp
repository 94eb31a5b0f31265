// Tests what Slurm does with nodes that have no slurmd (State=EXTERNAL) and with jobs that have no script (EXTERNAL_JOB), on
// real releases and on our model. The requests are written here, so that their spelling is tested as well.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/json.hpp"
#include "fixture.hpp"
#include "plan/testing/observing.hpp"

namespace conformance {
namespace {

using core::Json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kNode = "Sockets=1 CoresPerSocket=4 ThreadsPerCore=1 CPUs=4 RealMemory=8000 State=External";

struct Answer {
  int status = 0;
  Json body;
  /// Returns the number of the first error; 0 if there is none.
  [[nodiscard]] std::int64_t error() const {
    const Json errors = body.value("errors", Json::array());
    return errors.empty() ? 0 : core::get_int(errors.front(), {"error_number"});
  }
  [[nodiscard]] std::string warnings() const { return body.value("warnings", Json::array()).dump(); }
};

/// Has n1 and n2, which have a slurmd, and the external nodes that a test makes: x1 and x2.
class ExternalTest : public SlurmTest {
 protected:
  void SetUp() override {
    SlurmTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (before_26_05()) GTEST_SKIP() << "24.11 has neither external nodes nor external jobs";
    clear();
  }
  void TearDown() override {
    if (client && !before_26_05()) clear();
    SlurmTest::TearDown();
  }

  Answer rest(const std::string& method, const std::string& path, const Json& body = nullptr) {
    net::HttpRequest request;
    request.method = method;
    request.target = "/slurm/v0.0.45/" + path;
    const slurm::Credentials who = tokens->current();
    request.headers = {{"x-slurm-user-name", who.user}, {"x-slurm-user-token", who.token}};
    if (!body.is_null()) {
      request.headers["content-type"] = "application/json";
      request.body = body.dump();
    }
    request.timeout = 40s;
    std::optional<core::Result<net::HttpResponse>> out;
    http->send(std::move(request), [&](core::Result<net::HttpResponse> reply) { out = std::move(reply); });
    world->until([&] { return out.has_value(); }, 40s);
    if (!out || !*out) return {};
    return {(*out)->status, core::parse_json((*out)->body).value_or(Json())};
  }
  Answer make(const std::string& name, const std::string& more = "") {
    return rest("POST", "new/node/", {{"node_conf", "NodeName=" + name + " " + kNode + more}});
  }
  Answer set(const std::string& name, const std::string& state, const std::string& reason = "") {
    Json body{{"state", Json::array({state})}};
    if (!reason.empty()) body["reason"] = reason;
    return rest("POST", "node/" + name, body);
  }
  /// Submits an external job that needs one external node and 100 MiB on it. `more` overrides fields of the request.
  Answer submit(Json more = Json::object()) {
    Json job{
        {"flags", {"EXTERNAL_JOB"}}, {"name", "x"}, {"nodes", "1"}, {"memory_per_node", 100}, {"excluded_nodes", {"n1", "n2"}}};
    job.update(more);
    return rest("POST", "job/submit", {{"job", job}});
  }
  std::int64_t submitted(const Json& more = Json::object()) {
    const Answer answer = submit(more);
    EXPECT_EQ(answer.status, 200) << answer.body.dump();
    return core::get_int(answer.body, {"job_id"});
  }
  Json job_row(std::int64_t id) {
    const Answer answer = rest("GET", "job/" + std::to_string(id));
    const Json rows = answer.body.value("jobs", Json::array());
    return rows.empty() ? Json::object() : rows.front();
  }
  Json node_row(const std::string& name) {
    (void)rest("GET", "nodes/");  // only a request for the whole table makes slurmctld count what is allocated
    const Json rows = rest("GET", "node/" + name).body.value("nodes", Json::array());
    return rows.empty() ? Json::object() : rows.front();
  }
  /// Returns the job's state and reason, such as "PENDING Resources"; "absent" if the job is not listed.
  std::string why(std::int64_t id) {
    const Json row = job_row(id);
    return row.empty() ? "absent" : row["job_state"].front().get<std::string>() + " " + row["state_reason"].get<std::string>();
  }
  bool comes(std::int64_t id, const std::string& wanted, core::Duration most = 30s) {
    const core::MonoTime end = world->loop().clock().mono() + 4 * most;
    std::string last = why(id);
    while (last != wanted && world->loop().clock().mono() < end) {
      pass(200ms);
      last = why(id);
    }
    EXPECT_EQ(last, wanted) << "job " << id;
    return last == wanted;
  }
  void clear() {
    const auto all = jobs();
    for (const auto& job : all ? all->rows : std::vector<std::shared_ptr<const slurm::Job>>{}) {
      if (job->in_queue()) world->cancel(job->id);
    }
    for (const char* name : {"x1", "x2"}) {
      if (state(name) != "absent") (void)rest("DELETE", std::string("node/") + name);
      ASSERT_TRUE(becomes(name, "absent"));
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Slurm, ExternalTest, kWorlds, [](const auto& which) { return which.param; });

// --- Nodes ------------------------------------------------------------------------------------------------------------

TEST_P(ExternalTest, AnExternalNodeIsInServiceWithoutASlurmd) {
  ASSERT_EQ(make("x1", " Feature=gold,blue").status, 200);
  const Json row = node_row("x1");
  EXPECT_EQ(row["state"], Json::array({"IDLE", "EXTERNAL", "DYNAMIC_NORM"}));
  EXPECT_EQ(row["cpus"], 4);
  EXPECT_EQ(row["real_memory"], 8000);
  EXPECT_EQ(row["features"], Json::array({"gold", "blue"}));
  EXPECT_EQ(row["active_features"], row["features"]);
  EXPECT_EQ(row["partitions"], Json::array({"all"}));
  EXPECT_EQ(row["address"], "x1");
  EXPECT_EQ(row["hostname"], "x1");
  EXPECT_EQ(row["version"], "");
  EXPECT_EQ(core::get_int(row, {"slurmd_start_time", "number"}), 0);
}

TEST_P(ExternalTest, ItIsDrainedAndResumedAtOnce) {
  ASSERT_EQ(make("x1").status, 200);
  EXPECT_EQ(set("x1", "DRAIN", "slurm-bridge: cordoned").status, 200);
  EXPECT_EQ(state("x1"), "IDLE+DRAIN+EXTERNAL");
  EXPECT_EQ(node_row("x1")["reason"], "slurm-bridge: cordoned");
  EXPECT_EQ(set("x1", "UNDRAIN").status, 200);
  EXPECT_EQ(state("x1"), "IDLE+EXTERNAL") << "nobody has to answer first";
  EXPECT_EQ(node_row("x1")["reason"], "");
  EXPECT_EQ(set("x1", "DOWN", "broken").status, 200);
  EXPECT_EQ(state("x1"), "DOWN+EXTERNAL");
  EXPECT_EQ(set("x1", "RESUME").status, 200);
  EXPECT_EQ(state("x1"), "IDLE+EXTERNAL");
  EXPECT_EQ(set("x1", "RESUME").error(), 2180);
  EXPECT_EQ(set("x1", "UNDRAIN").status, 200) << "nothing to do";
}

TEST_P(ExternalTest, WhatCannotBeCreatedIsRefused) {
  ASSERT_EQ(make("x1").status, 200);
  const Answer twice = make("x1");
  EXPECT_EQ(twice.status, 422);
  EXPECT_EQ(twice.error(), 2168);
  EXPECT_EQ(state("x1"), "IDLE+EXTERNAL") << "it stays";
  const auto refused = [&](const std::string& line) { return rest("POST", "new/node/", {{"node_conf", line}}).error(); };
  EXPECT_EQ(refused("NodeName=x2 CPUs=4 State=IDLE"), 2028);
  EXPECT_EQ(refused("NodeName=x2 CPUs=4 Nonsense=3 State=EXTERNAL"), -1);
  EXPECT_EQ(refused("CPUs=4 State=EXTERNAL"), -1);
  EXPECT_EQ(state("x2"), "absent");
}

TEST_P(ExternalTest, WithoutGresTypesItHasNoGres) {
  ASSERT_EQ(make("x1", " Gres=gpu:2").status, 200);
  EXPECT_EQ(node_row("x1")["gres"], "") << "dropped without an error";
  EXPECT_EQ(submit({{"tres_per_node", "gres/gpu:1"}}).error(), 2072);
}

TEST_P(ExternalTest, AFeaturePutsItIntoANodeSet) {
  world->configure("NodeSet=ext Feature=ext\nPartitionName=ext Nodes=ext\n");
  ASSERT_TRUE(ask<void>([&](auto done) { client->reconfigure(std::move(done)); }));
  pass(kApart);
  ASSERT_EQ(make("x1", " Feature=ext").status, 200);
  EXPECT_THAT(node_row("x1")["partitions"].get<std::vector<std::string>>(), Contains("ext"));
  EXPECT_EQ(rest("POST", "new/node/", {{"node_conf", std::string("NodeName=ext ") + kNode}}).error(), 2018)
      << "it is the name of a NodeSet";
  EXPECT_EQ(rest("POST", "node/x1", {{"features", {"blue"}}}).error(), 2031) << "ext is active still";
  EXPECT_EQ(rest("POST", "node/x1", {{"features", {"ext", "blue"}}}).error(), 0);
  EXPECT_EQ(node_row("x1")["active_features"], Json::array({"ext", "blue"})) << "they follow";
  EXPECT_EQ(rest("POST", "node/x1", {{"features", {"ext"}}, {"features_act", {"blue"}}}).error(), 2031);
  EXPECT_EQ(rest("POST", "node/x1", {{"features", {""}}, {"features_act", {""}}}).error(), 0);
  EXPECT_EQ(node_row("x1")["features"], Json::array());
}

TEST_P(ExternalTest, GpusNeedAGresConfInTheLine) {
  world->configure("GresTypes=gpu\n");
  ASSERT_TRUE(ask<void>([&](auto done) { client->reconfigure(std::move(done)); }));
  pass(kApart);
  EXPECT_EQ(make("x1", " Gres=gpu:2").error(), 22);
  EXPECT_EQ(state("x1"), "absent");
  ASSERT_EQ(make("x1", " Gres=gpu:2 GresConf=\"count=2,name=gpu\"").status, 200);
  EXPECT_EQ(node_row("x1")["gres"], "gpu:2");
  const std::int64_t both = submitted({{"tres_per_node", "gres/gpu:2"}}), next = submitted({{"tres_per_node", "gres/gpu:1"}});
  EXPECT_TRUE(comes(both, "RUNNING None"));
  EXPECT_THAT(why(next), testing::StartsWith("PENDING "));
  EXPECT_EQ(submit({{"tres_per_node", "gres/gpu:3"}}).error(), 2014);
  EXPECT_EQ(rest("DELETE", "job/" + std::to_string(both)).status, 200);
  EXPECT_TRUE(comes(next, "RUNNING None"));
  clear();
  world->configure("");
  ASSERT_TRUE(ask<void>([&](auto done) { client->reconfigure(std::move(done)); }));
  pass(kApart);
}

TEST_P(ExternalTest, TheFieldExtraIsSetAndEmptied) {
  ASSERT_EQ(make("x1").status, 200);
  for (const char* extra : {R"({"slurm-bridge":"12 13","slurm-bridge-cluster":"u"})", R"({"slurm-bridge":""})", ""}) {
    NodeUpdate update;
    update.extra = extra;
    EXPECT_TRUE(run(slurm::update_node(kCluster, "x1", update)).value);
    EXPECT_EQ(node("x1").value().extra, extra);
  }
}

TEST_P(ExternalTest, ANodeOfOursIsCreatedOnceChangedAndRemoved) {
  const slurm::NodeWish wish{
      .name = "x1", .address = "127.0.0.1", .cpus = 4, .real_memory_mib = 8000, .gpus = 0, .features = {"gold"}};
  const slurm::NodeMark mark{slurm::Owner::kBridge, "5f1c2c7e-0000-4000-8000-000000000001", slurm::made_of(wish)};
  EXPECT_EQ(run(slurm::create_node(kCluster, wish, mark)).value.value_or(nullptr), (Json{{"created", true}}));
  EXPECT_EQ(run(slurm::create_node(kCluster, wish, mark)).value.value_or(nullptr), (Json{{"created", false}}));
  EXPECT_EQ(state("x1"), "IDLE+EXTERNAL");
  EXPECT_EQ(slurm::mark_of(node("x1").value()), mark);
  const Json row = node_row("x1");
  EXPECT_EQ(row["address"], "127.0.0.1");
  EXPECT_EQ(row["cpus"], 4);
  EXPECT_EQ(row["real_memory"], 8000);
  const slurm::NodeMark other{slurm::Owner::kBridge, "another", mark.made};
  EXPECT_EQ(run(slurm::create_node(kCluster, wish, other)).value.error().code, ErrorCode::kAlreadyExists);

  const slurm::OwnFeatures own{"", {"blue"}, {}, {"gold", "blue"}};
  EXPECT_EQ(run(slurm::update_features(kCluster, "x1", other, own)).value.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(run(slurm::update_features(kCluster, "x1", mark, own)).value);
  EXPECT_EQ(node_row("x1")["features"], Json::array({mark.feature(), "blue"}));

  world->stop_slurmctld();
  world->start_slurmctld();
  const auto fresh = [&] { return clusters->snapshot(kCluster)->fresh(world->loop().clock().mono()); };
  ASSERT_TRUE(world->until(fresh, 60s));
  EXPECT_EQ(slurm::mark_of(node("x1").value()), mark) << "it outlives a restart";

  ASSERT_TRUE(run(slurm::drain_nodes(kCluster, slurm::Owner::kBridge, {"x1"}, "gone")).value);
  std::optional<slurm::OwnDrained> evidence;
  ASSERT_TRUE(world->until(
      [&] {
        const core::MonoTime now = world->loop().clock().mono();
        evidence = slurm::OwnDrained::of(plan::testing::Observer::at(now), *clusters->snapshot(kCluster), {kCluster, "x1"},
                                         slurm::Owner::kBridge, mark.instance);
        return evidence.has_value();
      },
      60s));
  EXPECT_EQ(run(slurm::remove_node(*evidence)).value.value_or(nullptr), (Json{{"deleted", true}}));
  EXPECT_EQ(state("x1"), "absent");
}

TEST_P(ExternalTest, ItOutlivesARestartWithItsJob) {
  ASSERT_EQ(make("x1", " Feature=gold").status, 200);
  const std::int64_t job = submitted({{"comment", "kept"}});
  ASSERT_TRUE(comes(job, "RUNNING None"));
  ASSERT_EQ(set("x1", "DRAIN", "slurm-bridge: x").status, 200);
  world->stop_slurmctld();
  world->start_slurmctld();
  ASSERT_TRUE(world->until([&] { return clusters->snapshot(kCluster)->fresh(world->loop().clock().mono()); }, 60s));
  EXPECT_EQ(why(job), "RUNNING None");
  EXPECT_EQ(job_row(job)["comment"], "kept");
  EXPECT_EQ(state("x1"), "MIXED+DRAIN+EXTERNAL");
  EXPECT_EQ(node_row("x1")["features"], Json::array({"gold"}));
}

// --- Jobs -------------------------------------------------------------------------------------------------------------

TEST_P(ExternalTest, OnlyExternalJobsRunOnAnExternalNode) {
  ASSERT_EQ(make("x1").status, 200);
  EXPECT_EQ(world->submit("x1", 10s), 0);
  const std::int64_t beside = submitted({{"excluded_nodes", {"n2", "x1"}}});
  EXPECT_TRUE(comes(beside, "RUNNING None")) << "an external job runs beside slurmd as well";
  EXPECT_EQ(job_row(beside)["nodes"], "n1");
}

TEST_P(ExternalTest, WhatAJobAsksForIsShown) {
  ASSERT_EQ(make("x1", " Feature=gold").status, 200);
  const std::int64_t id = submitted({{"name", "train"},
                                     {"admin_comment", R"({"owner":"o"})"},
                                     {"comment", "c"},
                                     {"tasks_per_node", 2},
                                     {"cpus_per_task", 1},
                                     {"memory_per_node", 200},
                                     {"time_limit", 30},
                                     {"constraints", "gold"}});
  ASSERT_TRUE(comes(id, "RUNNING None"));
  const Json row = job_row(id);
  EXPECT_EQ(row["name"], "train");
  EXPECT_EQ(row["admin_comment"], R"({"owner":"o"})");
  EXPECT_EQ(row["comment"], "c");
  EXPECT_EQ(row["nodes"], "x1");
  EXPECT_EQ(row["excluded_nodes"], "n[1-2]");
  EXPECT_EQ(row["features"], "gold");
  EXPECT_EQ(row["batch_flag"], false);
  EXPECT_EQ(row["user_name"], "slurm");
  EXPECT_EQ(row["partition"], "all");
  EXPECT_THAT(row["flags"].get<std::vector<std::string>>(), Contains("EXTERNAL_JOB"));
  const auto number_of = [&](const char* key) { return core::get_int(row, {key, "number"}); };
  EXPECT_EQ(number_of("tasks_per_node"), 2);
  EXPECT_EQ(number_of("cpus_per_task"), 1);
  EXPECT_EQ(number_of("memory_per_node"), 200);
  EXPECT_EQ(number_of("node_count"), 1);
  EXPECT_EQ(number_of("time_limit"), 30);
  EXPECT_EQ(number_of("end_time") - number_of("start_time"), 1800);
  EXPECT_EQ(number_of("preempt_time"), 0);
  EXPECT_EQ(row["derived_exit_code"]["status"], Json::array({"SUCCESS"}));
}

TEST_P(ExternalTest, ItsNodesAreFreeInTheCallThatEndsIt) {
  ASSERT_EQ(make("x1").status, 200);
  const std::int64_t first = submitted({{"memory_per_node", 8000}}), second = submitted();
  ASSERT_TRUE(comes(first, "RUNNING None"));
  ASSERT_TRUE(comes(second, "PENDING Resources"));
  EXPECT_EQ(rest("DELETE", "node/x1").error(), 2016);
  const Answer ended = rest("DELETE", "job/" + std::to_string(first));
  EXPECT_EQ(ended.status, 200);
  EXPECT_THAT(ended.body["status"], IsEmpty());
  EXPECT_EQ(job_row(first)["job_state"], Json::array({"CANCELLED"})) << "not COMPLETING";
  EXPECT_EQ(job_row(first)["nodes"], "x1");
  EXPECT_TRUE(comes(second, "RUNNING None"));
}

TEST_P(ExternalTest, AJobThatAsksForNoMemoryTakesAll) {
  ASSERT_EQ(make("x1").status, 200);
  const std::int64_t first = submitted({{"memory_per_node", nullptr}}), second = submitted();
  ASSERT_TRUE(comes(first, "RUNNING None"));
  EXPECT_TRUE(comes(second, "PENDING Resources"));
}

TEST_P(ExternalTest, ACancellationSaysWhatItDidNotCancel) {
  ASSERT_EQ(make("x1").status, 200);
  const std::int64_t one = submitted(), two = submitted();
  const Answer both = rest("DELETE", "jobs/", {{"jobs", {std::to_string(one), std::to_string(two), "99999"}}});
  EXPECT_EQ(both.status, 200);
  ASSERT_EQ(both.body["status"].size(), 1U) << both.body.dump();
  EXPECT_EQ(core::get_int(both.body["status"][0], {"error", "code"}), 2017);
  EXPECT_EQ(both.body["status"][0]["step_id"], "99999");
  EXPECT_EQ(job_row(two)["job_state"], Json::array({"CANCELLED"}));
  const Answer again = rest("DELETE", "job/" + std::to_string(one));
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(core::get_int(again.body["status"][0], {"error", "code"}), 2021);
}

TEST_P(ExternalTest, AnUnknownJobIsNotFound) {
  const Answer got = rest("GET", "job/99999");
  EXPECT_EQ(got.status, 404);
  EXPECT_EQ(got.error(), 2017);
  EXPECT_EQ(rest("POST", "job/99999", {{"comment", "x"}}).status, 404);
}

TEST_P(ExternalTest, CommentsAreChangedUntilTheJobEnds) {
  ASSERT_EQ(make("x1").status, 200);
  const std::int64_t id = submitted();
  ASSERT_TRUE(comes(id, "RUNNING None"));
  const std::string path = "job/" + std::to_string(id);
  EXPECT_EQ(rest("POST", path, {{"comment", "exit code 3"}, {"admin_comment", "ours"}}).status, 200);
  EXPECT_EQ(job_row(id)["comment"], "exit code 3");
  EXPECT_EQ(job_row(id)["admin_comment"], "ours");
  // slurmctld cannot set this field, which exists only in slurmdbd.
  const Answer code = rest("POST", path, {{"derived_exit_code", 3}});
  EXPECT_EQ(code.status, 200);
  EXPECT_THAT(code.warnings(), HasSubstr("unknown field"));
  EXPECT_EQ(job_row(id)["derived_exit_code"]["status"], Json::array({"SUCCESS"}));
  EXPECT_EQ(rest("POST", path, {{"excluded_nodes", {"x1"}}}).error(), 2073);
  EXPECT_EQ(rest("DELETE", path).status, 200);
  EXPECT_EQ(rest("POST", path, {{"comment", "late"}}).error(), 2084);
  EXPECT_EQ(job_row(id)["comment"], "exit code 3");
}

TEST_P(ExternalTest, AJobThatNoNodeCanRunIsRefusedAndListedAllTheSame) {
  ASSERT_EQ(make("x1").status, 200);
  const std::string mark = new_mark().key;
  const Answer refused = submit({{"excluded_nodes", {"n1", "n2", "x1"}}, {"admin_comment", mark}});
  EXPECT_EQ(refused.status, 422);
  EXPECT_EQ(refused.error(), 2014);
  const Json rows = rest("GET", "jobs/").body["jobs"];
  const auto row = std::ranges::find_if(rows, [&](const Json& one) { return one["admin_comment"] == mark; });
  ASSERT_NE(row, rows.end());
  EXPECT_EQ((*row)["job_state"], Json::array({"FAILED"}));
  EXPECT_EQ((*row)["state_reason"], "BadConstraints");
  EXPECT_EQ(submit({{"memory_per_node", 99999}}).error(), 2014);
  EXPECT_EQ(submit({{"tasks_per_node", 2}, {"cpus_per_task", 3}}).error(), 2014);
  EXPECT_EQ(submit({{"constraints", "nowhere"}}).error(), 2029);
  EXPECT_EQ(submit({{"script", "#!/bin/sh\n"}}).error(), 2189);
}

TEST_P(ExternalTest, AJobThatIsTooBigForItsPartitionWaits) {
  ASSERT_EQ(make("x1").status, 200);
  const Answer accepted = submit({{"nodes", "9"}});
  EXPECT_EQ(accepted.status, 200);
  EXPECT_THAT(accepted.warnings(), HasSubstr("Requested partition configuration not available now"));
  EXPECT_EQ(why(core::get_int(accepted.body, {"job_id"})), "PENDING PartitionConfig");
}

TEST_P(ExternalTest, AJobWhoseNodesAreDrainedWaitsForThem) {
  ASSERT_EQ(make("x1").status, 200);
  ASSERT_EQ(set("x1", "DRAIN", "slurm-bridge: x").status, 200);
  const Answer accepted = submit();
  EXPECT_EQ(accepted.status, 200);
  EXPECT_THAT(accepted.warnings(), HasSubstr("Required node not available"));
  const std::int64_t id = core::get_int(accepted.body, {"job_id"});
  EXPECT_EQ(why(id), "PENDING ReqNodeNotAvail");
  EXPECT_EQ(job_row(id)["state_description"], "ReqNodeNotAvail, May be reserved for other job");
  ASSERT_EQ(set("x1", "UNDRAIN").status, 200);
  EXPECT_TRUE(comes(id, "RUNNING None"));
}

TEST_P(ExternalTest, AJobThatLosesItsLastNodeIsHeldUntilItIsChanged) {
  ASSERT_EQ(make("x1").status, 200);
  ASSERT_EQ(make("x2").status, 200);
  ASSERT_EQ(set("x2", "DRAIN", "slurm-bridge: x").status, 200);
  const std::int64_t id = submitted({{"excluded_nodes", {"n1", "n2", "x1"}}});
  ASSERT_EQ(rest("DELETE", "node/x2").error(), 0);
  ASSERT_TRUE(comes(id, "PENDING BadConstraints"));
  EXPECT_EQ(core::get_int(job_row(id), {"priority", "number"}), 0);
  ASSERT_EQ(make("x2").status, 200);
  pass(5s);
  EXPECT_EQ(why(id), "PENDING BadConstraints") << "a new node does not help";
  EXPECT_EQ(rest("POST", "job/" + std::to_string(id), {{"comment", "look again"}}).error(), 0);
  EXPECT_TRUE(comes(id, "RUNNING None"));
}

TEST_P(ExternalTest, OnceAnExcludedNodeIsGoneTheJobCannotBeChangedAndForgetsItsList) {
  ASSERT_EQ(make("x1").status, 200);
  ASSERT_EQ(make("x2").status, 200);
  ASSERT_EQ(set("x1", "DRAIN", "slurm-bridge: x").status, 200);
  const std::int64_t id = submitted({{"excluded_nodes", {"n1", "n2", "x2"}}});
  ASSERT_EQ(rest("DELETE", "node/x2").error(), 0);
  pass(3s);
  EXPECT_EQ(why(id), "PENDING ReqNodeNotAvail");
  const std::string path = "job/" + std::to_string(id);
  EXPECT_EQ(rest("POST", path, {{"excluded_nodes", {"n1", "n2"}}}).error(), 2018);
  ASSERT_TRUE(comes(id, "RUNNING None"));
  EXPECT_THAT(job_row(id)["nodes"].get<std::string>(), testing::AnyOf("n1", "n2")) << "which it excludes";
  EXPECT_EQ(rest("POST", path, {{"comment", "x"}}).error(), 2018) << "its comment cannot be changed either";
  EXPECT_EQ(rest("DELETE", path).status, 200);
  EXPECT_EQ(job_row(id)["job_state"], Json::array({"CANCELLED"}));
}

TEST_P(ExternalTest, ItsLimitEndsIt) {
  ASSERT_EQ(make("x1").status, 200);
  const std::int64_t id = submitted({{"time_limit", 1}});
  ASSERT_TRUE(comes(id, "RUNNING None"));
  EXPECT_TRUE(comes(id, "TIMEOUT TimeLimit", 120s));
  EXPECT_EQ(state("x1"), "IDLE+EXTERNAL");
}

TEST_P(ExternalTest, ADownOfItsNodeEndsIt) {
  ASSERT_EQ(make("x1").status, 200);
  const std::int64_t id = submitted();
  ASSERT_TRUE(comes(id, "RUNNING None"));
  ASSERT_EQ(set("x1", "DOWN", "broken").status, 200);
  EXPECT_EQ(why(id), "NODE_FAIL NodeDown");
  EXPECT_EQ(job_row(id)["failed_node"], "x1");
  EXPECT_EQ(job_row(id)["nodes"], "x1");
}

/// slurmctld sends the suspension to the nodes of the job. An external node does not answer, so slurmctld treats it like a node
/// whose slurmd is silent.
TEST_P(ExternalTest, AfterASuspensionItsNodeGetsNoJobUntilItIsCreatedAgain) {
  ASSERT_EQ(make("x1", " NodeAddr=127.0.0.1").status, 200);
  const std::int64_t id = submitted();
  ASSERT_TRUE(comes(id, "RUNNING None"));
  world->suspend(id);
  world->resume(id);
  ASSERT_TRUE(becomes("x1", "MIXED+EXTERNAL+NOT_RESPONDING"));
  EXPECT_EQ(why(id), "RUNNING None");
  EXPECT_EQ(rest("DELETE", "job/" + std::to_string(id)).status, 200);
  const std::int64_t next = submitted();
  EXPECT_EQ(set("x1", "DRAIN", "slurm-bridge: x").status, 200);
  EXPECT_EQ(set("x1", "UNDRAIN").status, 200);
  EXPECT_EQ(set("x1", "DOWN", "slurm-bridge: x").status, 200);
  EXPECT_EQ(set("x1", "RESUME").status, 200);
  EXPECT_EQ(set("x1", "IDLE").status, 200);
  EXPECT_EQ(state("x1"), "IDLE+EXTERNAL+NOT_RESPONDING");
  EXPECT_THAT(why(next), testing::StartsWith("PENDING "));
  EXPECT_EQ(rest("DELETE", "job/" + std::to_string(next)).status, 200);
  EXPECT_EQ(rest("DELETE", "node/x1").status, 200);
  ASSERT_TRUE(becomes("x1", "absent"));
  ASSERT_EQ(make("x1").status, 200);
  EXPECT_EQ(state("x1"), "IDLE+EXTERNAL");
  EXPECT_TRUE(comes(submitted(), "RUNNING None"));
}

TEST_P(ExternalTest, ItIsSuspendedButNotRequeued) {
  ASSERT_EQ(make("x1").status, 200);
  const std::int64_t id = submitted();
  ASSERT_TRUE(comes(id, "RUNNING None"));
  world->suspend(id);
  EXPECT_EQ(why(id), "SUSPENDED None");
  world->resume(id);
  EXPECT_EQ(why(id), "RUNNING None");
  EXPECT_EQ(rest("POST", "jobs/requeue", {{"jobs", {std::to_string(id)}}, {"flags", {"Incomplete"}}}).error(), 2039);
  EXPECT_EQ(why(id), "RUNNING None");
}

TEST_P(ExternalTest, AHeldJobWaitsUntilItIsReleased) {
  ASSERT_EQ(make("x1").status, 200);
  const std::int64_t id = submitted({{"priority", 0}});
  EXPECT_EQ(why(id), "PENDING JobHeldUser");
  EXPECT_EQ(rest("POST", "job/" + std::to_string(id), {{"hold", false}}).error(), 0);
  EXPECT_TRUE(comes(id, "RUNNING None"));
}

}  // namespace
}  // namespace conformance
