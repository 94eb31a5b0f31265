#include "slurm/rest/accounting_target.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/testing/observing.hpp"
#include "slurm/accounting/acts.hpp"
#include "slurm/testing/accounting_fixture.hpp"

namespace slurm {
namespace {

using namespace std::chrono_literals;
using core::ErrorCode;
using core::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

/// A slurmdbd that stores what is posted.
class AccountingTargetTest : public testing::AccountingFixture {
 protected:
  AccountingTargetTest() {
    rows["normal"] = {{"id", 1}, {"name", "normal"}};
    http.on("GET", kDb + "/tres/", list("TRES", Json::array()));
    http.on("GET", kDb + "/qos/", [this](const net::HttpRequest& request) -> FakeTransport::Answer {
      Json all = Json::array();
      const std::string name = request.target.substr((kDb + "/qos/").size());
      for (const auto& [key, row] : rows) {
        if (name.empty() || key == name) all.push_back(row);
      }
      if (all.empty()) return testing::error(500, 9003, "nothing found");
      return list("qos", all);
    });
    http.on("POST", kDb + "/qos/", [this](const net::HttpRequest& request) -> FakeTransport::Answer {
      posted.push_back(Json::parse(request.body));
      // If slurmdbd refuses one QOS, it rolls back the whole request.
      for (const Json& row : posted.back()["qos"]) {
        if (row["name"] == refused) return testing::error(500, 9001, "refused");
      }
      for (Json row : posted.back()["qos"]) {
        const std::string name = row["name"];
        if (drops) continue;
        row["id"] = rows.contains(name) ? rows[name]["id"] : Json(rows.size() + 1);
        rows[name].merge_patch(row);
      }
      return testing::done();
    });
    http.on("DELETE", kDb + "/qos/", [this](const net::HttpRequest& request) -> FakeTransport::Answer {
      rows.erase(request.target.substr((kDb + "/qos/").size()));
      return testing::done();
    });
    http.on("GET", kDb + "/associations/",
            [this](const net::HttpRequest&) -> FakeTransport::Answer { return list("associations", associations); });
    http.on("GET", "/slurm/v0.0.45/jobs/", [this](const net::HttpRequest& request) -> FakeTransport::Answer {
      return request.target.find("update_time") == std::string::npos ? list("jobs", queue) : testing::no_job_changes();
    });
    http.on("GET", kDb + "/jobs/", [this](const net::HttpRequest&) -> FakeTransport::Answer { return list("jobs", jobs); });
    join();
  }
  std::optional<UnusedQos> unused(const std::string& name) {
    const auto view = clusters.lists("db")->view();
    return UnusedQos::of(plan::testing::Observer::at(loop.clock().mono()), "db", *view.qos.rows->at(name), view);
  }

  std::map<std::string, Json> rows;
  Json associations = Json::array(), jobs = Json::array(), queue = Json::array();
  std::vector<Json> posted;
  bool drops = false;
  std::string refused;  ///< The name of a QOS that slurmdbd refuses.
};

TEST_F(AccountingTargetTest, CreatesAndChangesAndReadsBack) {
  const plan::ActResult created = run(write_qos("db", "gpu", 0, {{"GrpJobs", 4}, {"Flags", Json::array({"NoDecay"})}}));
  ASSERT_TRUE(created.value) << created.value.error().message;
  EXPECT_EQ(*created.value, (Json{{"written", true}, {"id", 2}}));
  ASSERT_EQ(created.gates.size(), 1U);
  loop.advance(2s);
  EXPECT_TRUE(created.gates[0]->open());
  EXPECT_EQ(clusters.lists("db")->qos().rows->at("gpu")->flags, std::set<std::string>{"NO_DECAY"});

  EXPECT_EQ(outcome(write_qos("db", "gpu", 2, {{"GrpJobs", 5}})), R"({"id":2,"written":true})");
  EXPECT_EQ(posted.back()["qos"][0]["flags"], Json::array({"NO_DECAY"})) << "it is sent whole";
  EXPECT_EQ(outcome(write_qos("db", "gpu", 2, {{"GrpJobs", 5}})), R"({"written":false})");
  EXPECT_EQ(posted.size(), 2U);
}

TEST_F(AccountingTargetTest, NewQosShareARequestAndChangesDoNot) {
  rows["low"] = {{"id", 2}, {"name", "low"}};
  const int reads = http.asked("GET", kDb + "/qos/");
  EXPECT_THAT(outcomes({write_qos("db", "a", 0, {{"GrpJobs", 1}}), write_qos("db", "low", 2, {{"GrpJobs", 2}}),
                        write_qos("db", "b", 0, {{"GrpJobs", 3}}), write_qos("db", "normal", 1, {{"GrpJobs", 4}}),
                        write_qos("db", "low", 7, {{"GrpJobs", 5}})}),
              ElementsAre(HasSubstr("true"), HasSubstr("true"), HasSubstr("true"), HasSubstr("true"), HasSubstr("Conflict")));
  std::vector<std::size_t> sizes;
  for (const Json& each : posted) sizes.push_back(each["qos"].size());
  EXPECT_THAT(sizes, UnorderedElementsAre(2, 1, 1));
  // The writes read the list twice. Polls read it at most once a second.
  EXPECT_LE(http.asked("GET", kDb + "/qos/"), reads + 2 + 20);
}

TEST_F(AccountingTargetTest, OneThatIsRefusedDoesNotKeepOthersFromBeingCreated) {
  refused = "bad";
  EXPECT_THAT(outcomes({write_qos("db", "a", 0, {{"GrpJobs", 1}}), write_qos("db", "bad", 0, {{"GrpJobs", 2}}),
                        write_qos("db", "b", 0, {{"GrpJobs", 3}})}),
              ElementsAre(HasSubstr("true"), HasSubstr("refused"), HasSubstr("true")));
  EXPECT_EQ(posted.size(), 4U) << "all together, and then each alone";
}

TEST_F(AccountingTargetTest, OneThatIsAnotherByNowIsLeftAlone) {
  EXPECT_THAT(outcome(write_qos("db", "normal", 0, {{"GrpJobs", 4}})), HasSubstr("Conflict slurmdbd already has one"));
  EXPECT_THAT(outcome(write_qos("db", "gone", 3, {{"GrpJobs", 4}})), HasSubstr("Conflict it is gone"));
  EXPECT_THAT(outcome(write_qos("db", "normal", 3, {{"GrpJobs", 4}})), HasSubstr("another one has replaced it"));
  EXPECT_TRUE(posted.empty());
}

TEST_F(AccountingTargetTest, AConflictIsFollowedByNewerLists) {
  const plan::ActResult gone = run(write_qos("db", "gone", 3, {{"GrpJobs", 4}}));
  ASSERT_FALSE(gone.value);
  ASSERT_EQ(gone.gates.size(), 1U);
  loop.advance(100ms);
  EXPECT_TRUE(gone.gates[0]->open()) << "the list is read at once";
}

TEST_F(AccountingTargetTest, SuccessIsNotBelieved) {
  drops = true;
  EXPECT_THAT(outcome(write_qos("db", "gpu", 0, {{"GrpJobs", 4}})), HasSubstr("reported success, and has no such QOS"));
  EXPECT_THAT(outcome(write_qos("db", "normal", 1, {{"GrpJobs", 4}})),
              HasSubstr("stored something else: GrpJobs is unlimited, wanted 4"));
}

TEST_F(AccountingTargetTest, DeletesWhatNobodyUses) {
  rows["gpu"] = {{"id", 2}, {"name", "gpu"}};
  loop.advance(2s);
  EXPECT_FALSE(unused("normal"));
  const auto evidence = unused("gpu");
  ASSERT_TRUE(evidence);

  jobs = Json::parse(R"([{"job_id": 12, "cluster": "c", "user": "ann", "qos": "gpu", "state": {"current": ["RUNNING"]}},
                         {"job_id": 13, "cluster": "c", "user": "ann", "qos": "gpu", "state": {"current": ["COMPLETED"]}}])");
  EXPECT_EQ(outcome(delete_qos(*evidence)), "Busy it is used by job 12 of cluster c");
  jobs = Json::array();
  queue = Json::parse(R"([{"job_id": 14, "cluster": "c", "user": "ann", "qos": "normal,gpu", "job_state": ["PENDING"]}])");
  EXPECT_EQ(outcome(delete_qos(*evidence)), "Busy it is used by job 14 of cluster c");
  queue = Json::parse(R"([{"job_id": 15, "cluster": "c", "user": "ann", "qos": "gpu", "job_state": ["FAILED", "COMPLETING"]},
                          {"job_id": 16, "cluster": "c", "user": "ann", "qos": "gpu", "job_state": ["FAILED"]}])");
  EXPECT_EQ(outcome(delete_qos(*evidence)), "Busy it is used by job 15 of cluster c");
  queue = Json::array();
  clusters.set_accounting("db", {"c", "another"});
  EXPECT_EQ(outcome(delete_qos(*evidence)),
            "Busy cluster another may use it, and cannot be queried: no RestApi of this cluster is known");
  clusters.set_accounting("db", {"c"});
  const std::string partitions = "/slurm/v0.0.45/partitions/";
  http.on("GET", partitions, testing::partitions(R"({"name": "all", "qos": {"assigned": "GPU"}})"));
  EXPECT_EQ(outcome(delete_qos(*evidence)), "Busy it is the QOS of partition all of cluster c");
  http.on("GET", partitions, testing::error(500, 7000, "slurmdbd is away"));
  EXPECT_THAT(outcome(delete_qos(*evidence)), HasSubstr("Unavailable partitions of cluster c: "));
  http.on("GET", partitions, testing::partitions(R"({"name": "all"})"));
  associations = Json::parse(R"([{"id": 3, "cluster": "c", "account": "physics", "user": "ann", "default": {"qos": "gpu"}}])");
  EXPECT_EQ(outcome(delete_qos(*evidence)), "Busy it is the default of account physics, user ann, cluster c");
  loop.advance(2s);
  EXPECT_FALSE(unused("gpu"));
  EXPECT_EQ(http.asked("DELETE", kDb), 0);
  associations = Json::array();
  loop.advance(2s);
  const auto unused_once = unused("gpu");
  rows["big"] = {{"id", 3}, {"name", "big"}, {"preempt", {{"list", {"gpu"}}}}};
  EXPECT_EQ(outcome(delete_qos(*unused_once)), "Busy it is preempted by QOS big");
  loop.advance(2s);
  EXPECT_FALSE(unused("gpu"));
  rows.erase("big");
  loop.advance(2s);
  EXPECT_EQ(outcome(delete_qos(*unused("gpu"))), R"({"deleted":true})");
  EXPECT_FALSE(rows.contains("gpu"));
  EXPECT_EQ(outcome(delete_qos(*evidence)), R"({"deleted":false})");
  loop.advance(60s);
  EXPECT_THAT(outcome(delete_qos(*evidence)), HasSubstr("Expired"));
}

TEST_F(AccountingTargetTest, ALostReplyIsSettledByALaterList) {
  http.on("POST", kDb + "/qos/",
          [](const net::HttpRequest&) -> FakeTransport::Answer { return core::fail(ErrorCode::kUnknownOutcome, "lost"); });
  const plan::ActResult lost = run(write_qos("db", "gpu", 0, {{"GrpJobs", 4}}));
  ASSERT_FALSE(lost.value);
  EXPECT_EQ(lost.value.error().code, ErrorCode::kUnknownOutcome);
  ASSERT_EQ(lost.gates.size(), 1U);
  loop.advance(5s);
  EXPECT_FALSE(lost.gates[0]->open());
  loop.advance(15s);
  EXPECT_TRUE(lost.gates[0]->open());
}

TEST_F(AccountingTargetTest, NothingIsWrittenWhileSlurmdbdIsAway) {
  http.on("GET", kDb + "/qos/", testing::error(500, 7000, "slurmdbd is away"));
  loop.advance(3s);
  EXPECT_THAT(outcome(write_qos("db", "gpu", 0, {{"GrpJobs", 4}})), HasSubstr("slurmdbd does not answer"));
  EXPECT_THAT(outcome(write_qos("unknown", "gpu", 0, {})), HasSubstr("Unavailable"));
}

}  // namespace
}  // namespace slurm
