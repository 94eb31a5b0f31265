#include "slurm/rest/entity_acts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/testing/observing.hpp"
#include "slurm/testing/accounting_fixture.hpp"

namespace slurm {
namespace {

using namespace std::chrono_literals;
using accounting::EntityKind;
using accounting::Place;
using core::ErrorCode;
using core::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A slurmdbd that stores accounts, users and associations that are posted.
class EntityActsTest : public testing::AccountingFixture {
 protected:
  EntityActsTest() {
    http.on("GET", kDb + "/qos/", list("qos", Json::array()));
    http.on("GET", kDb + "/tres/", list("TRES", Json::array()));
    serve("accounts", accounts, [](const Json& row) { return row["name"].get<std::string>(); });
    serve("users", users, [](const Json& row) { return row["name"].get<std::string>(); });
    serve("associations", associations, key_of);
    http.on("POST", kDb + "/users_association/", [this](const net::HttpRequest& request) -> FakeTransport::Answer {
      posted.push_back(Json::parse(request.body));
      const Json& where = posted.back()["association_condition"];
      const std::string name = where["users"][0];
      const Json row{{"cluster", where["clusters"][0]}, {"account", where["accounts"][0]}, {"user", name}, {"shares_raw", 1}};
      // slurmdbd rolls back the restore if the association exists.
      if (associations.contains(key_of(row))) return net::HttpResponse{304, {}, ""};
      associations[key_of(row)] = row;
      users[name] = {{"name", name}, {"administrator_level", posted.back()["user"]["adminlevel"]}};
      deleted.clear();
      return testing::done();
    });
    http.on("POST", kDb + "/accounts_association/", [this](const net::HttpRequest& request) -> FakeTransport::Answer {
      const Json where = Json::parse(request.body)["association_condition"];
      posted.push_back({{"accounts_association", where["accounts"]}});
      const bool bad = std::ranges::any_of(where["accounts"], [&](const Json& account) {
        return !refused.empty() && ("site/" + account.get<std::string>()).find(refused) != std::string::npos;
      });
      if (bad) return testing::error(500, 2046, "refused");
      for (const Json& account : where["accounts"]) {
        for (const Json& cluster : where["clusters"]) {
          if (drops == "associations") continue;
          const Json row{{"cluster", cluster},
                         {"account", account},
                         {"user", ""},
                         {"shares_raw", 1},
                         {"parent_account", where["association"].value("parent", "root")}};
          associations[key_of(row)] = row;
        }
      }
      return testing::done();
    });
    http.on("DELETE", kDb + "/", [this](const net::HttpRequest& request) -> FakeTransport::Answer {
      removed.push_back(request.target.substr(kDb.size() + 1));
      accounts.erase(removed.back().substr(removed.back().find('/') + 1));
      users.erase(removed.back().substr(removed.back().find('/') + 1));
      std::erase_if(associations, [&](const auto& entry) {
        const auto has = [&](const std::string& name) {
          return entry.second.value(name, "").empty() == (removed.back().find(name + "=") == std::string::npos) &&
                 removed.back().find(entry.second.value(name, "")) != std::string::npos;
        };
        return removed.back().starts_with("association/") && has("account") && has("user") && has("partition");
      });
      return testing::done();
    });
    http.on("GET", "/slurm/v0.0.45/jobs/", [this](const net::HttpRequest& request) -> FakeTransport::Answer {
      return request.target.find("update_time") == std::string::npos ? list("jobs", queue) : testing::no_job_changes();
    });
    accounts["root"] = {{"name", "root"}, {"description", "x"}, {"organization", "x"}};
    add_association("root", "");
    join();
  }
  static std::string key_of(const Json& row) {
    return row["cluster"].get<std::string>() + "/" + row["account"].get<std::string>() + "/" + row.value("user", "") + "/" +
           row.value("partition", "");
  }
  void add_association(const std::string& account, const std::string& user, const std::string& partition = "") {
    const Json row{{"cluster", "site"}, {"account", account}, {"user", user}, {"partition", partition}, {"shares_raw", 1}};
    associations[key_of(row)] = row;
  }
  void serve(const std::string& name, std::map<std::string, Json>& rows, const std::function<std::string(const Json&)>& key) {
    http.on("GET", kDb + "/" + name + "/", [&rows, name](const net::HttpRequest&) -> FakeTransport::Answer {
      Json all = Json::array();
      for (const auto& [unused, row] : rows) all.push_back(row);
      return list(name, all);
    });
    http.on("POST", kDb + "/" + name + "/", [this, &rows, name, key](const net::HttpRequest& request) -> FakeTransport::Answer {
      posted.push_back(Json::parse(request.body));
      if (lost == name) return core::fail(ErrorCode::kUnknownOutcome, "lost");
      for (const Json& row : posted.back()[name]) {
        if (key(row).find(refused) != std::string::npos && !refused.empty()) return testing::error(500, 2046, "refused");
      }
      for (const Json& row : posted.back()[name]) {
        if (drops == name || deleted.contains(key(row))) continue;
        if (!rows.contains(key(row)) && name == "associations") rows[key(row)] = {{"shares_raw", 1}};
        rows[key(row)].merge_patch(row);
        if (name == "accounts") {
          for (Json& each : rows[key(row)]["coordinators"]) each["direct"] = each["name"] != "boss";
        }
      }
      return testing::done();
    });
  }
  static plan::ActPtr account(const std::string& name, bool create, accounting::Settings settings) {
    return write_entity("db", EntityKind::kAccount, name, create, std::move(settings));
  }
  static plan::ActPtr user(const std::string& name, bool create, accounting::Settings settings) {
    return write_entity("db", EntityKind::kUser, name, create, std::move(settings));
  }
  std::optional<UnusedEntity> unused(EntityKind kind, const std::string& name, std::set<Place> known = {}) {
    if (kind == EntityKind::kAccount) known.insert({"", "", "site"});
    return UnusedEntity::of(plan::testing::Observer::at(loop.clock().mono()), "db", kind, name, known,
                            clusters.lists("db")->view());
  }
  /// Returns the lists that were posted, in order, each with its number of rows.
  [[nodiscard]] std::vector<std::string> steps() const {
    std::vector<std::string> out;
    for (const Json& each : posted) {
      for (const auto& [name, rows] : each.items()) out.push_back(name + ":" + std::to_string(rows.size()));
    }
    return out;
  }

  std::map<std::string, Json> accounts, users, associations;
  Json queue = Json::array();
  std::vector<Json> posted;
  std::vector<std::string> removed;
  std::string drops, lost, refused;  ///< Lists whose writes are dropped, lists whose writes lose their replies, and a refused
                                     ///< name.
  std::set<std::string> deleted;     ///< Users that slurmdbd has as deleted.
};

TEST_F(EntityActsTest, AnAccountIsCreatedWithItsAssociationAndChanged) {
  const plan::ActResult created = run(
      account("physics", true, {{"Coordinators", Json::array({"ann"})}, {"site: Association", true}, {"site: GrpJobs", 4}}));
  ASSERT_TRUE(created.value) << created.value.error().message;
  EXPECT_EQ(posted[0]["accounts"][0]["description"], "physics") << "slurmdbd has no account without one";
  EXPECT_THAT(steps(), ElementsAre("accounts:1", "accounts_association:1", "associations:1", "accounts:1"));
  EXPECT_TRUE(posted[0]["accounts"][0]["coordinators"].empty()) << "they may be users who are created in this account";
  EXPECT_EQ(created.gates.size(), 2U);
  loop.advance(3s);
  for (const auto& gate : created.gates) EXPECT_TRUE(gate->open());

  EXPECT_EQ(outcome(account("Physics", false, {{"site: GrpJobs", 5}})), R"({"written":true})");
  EXPECT_EQ(posted.size(), 5U) << "only the association";
  EXPECT_EQ(posted.back()["associations"][0]["account"], "physics");
  EXPECT_EQ(outcome(account("physics", false, {{"site: GrpJobs", 5}})), R"({"written":false})");
  EXPECT_EQ(posted.size(), 5U);

  accounts["physics"]["coordinators"].push_back({{"name", "boss"}, {"direct", false}});
  EXPECT_EQ(outcome(account("physics", false, {{"Coordinators", Json::array()}, {"Description", ""}})), R"({"written":true})");
  EXPECT_EQ(posted.back()["accounts"][0]["coordinators"], Json::parse(R"([{"name":"boss"}])"))
      << "slurmrestd would try to remove one that the account has from above";
}

TEST_F(EntityActsTest, ListsAreReadAtOnce) {
  http.held = "GET " + kDb + "/associations/";
  const int before = http.asked("GET", kDb + "/users/");
  std::string out;
  target.execute(user("ann", true, {{"root@site: Association", true}}),
                 [&out](const plan::ActResult& result) { out = text_of(result); });
  loop.advance(10ms);
  EXPECT_EQ(http.asked("GET", kDb + "/users/"), before + 1);
  EXPECT_TRUE(posted.empty()) << "the associations are not known yet";
  http.release();
  loop.advance(1s);
  EXPECT_EQ(out, R"({"written":true})");
}

TEST_F(EntityActsTest, WritesShareRequestsInTheOrderOfTheTree) {
  const auto out = outcomes({user("ann", true, {{"optics@site: Association", true}, {"optics@site: Default", true}}),
                             account("optics", true, {{"site: Association", true}, {"site: Parent", "physics"}}),
                             account("physics", true, {{"site: Association", true}})});
  EXPECT_THAT(out, ElementsAre(HasSubstr("true"), HasSubstr("true"), HasSubstr("true")));
  EXPECT_THAT(steps(),
              ElementsAre("accounts:2", "users:1", "accounts_association:1", "accounts_association:1", "associations:1"));
  EXPECT_EQ(posted[2]["accounts_association"][0], "physics");
  EXPECT_EQ(associations.at("site/optics//")["parent_account"], "physics");
  EXPECT_EQ(posted.back()["associations"][0]["user"], "ann");
}

TEST_F(EntityActsTest, NewAssociationsBeginWithTheDefaultAccountAndGetTheirQosInASecondRow) {
  add_association("chemistry", "");
  add_association("physics", "");
  loop.advance(2000ms);
  EXPECT_THAT(outcome(user("ann", true,
                           {{"chemistry@site: Association", true},
                            {"physics@site: Association", true},
                            {"physics@site: Default", true},
                            {"physics@site: QOS", Json::array({"gpu"})},
                            {"physics@site: DefaultQOS", "gpu"}})),
              HasSubstr("true"));
  const Json& rows = posted.back()["associations"];
  ASSERT_EQ(rows.size(), 3u) << rows.dump();
  EXPECT_EQ(rows[0]["account"], "physics");
  EXPECT_EQ(rows[0]["is_default"], true);
  EXPECT_EQ(rows[0]["qos"], Json::array()) << "it changes nothing";
  EXPECT_EQ(rows[1]["account"], "physics");
  EXPECT_EQ(rows[1]["qos"], Json::array({"gpu"}));
  EXPECT_EQ(rows[2]["account"], "chemistry");
}

TEST_F(EntityActsTest, OneThatIsRefusedDoesNotKeepOthers) {
  refused = "site/bad";
  const auto out =
      outcomes({account("a", true, {{"site: Association", true}}), account("bad", true, {{"site: Association", true}}),
                account("b", true, {{"site: Association", true}})});
  EXPECT_THAT(out, ElementsAre(HasSubstr("true"), HasSubstr("Invalid refused"), HasSubstr("true")));
  EXPECT_THAT(steps(), ElementsAre("accounts:3", "accounts_association:3", "accounts_association:1", "accounts_association:1",
                                   "accounts_association:1"));
}

TEST_F(EntityActsTest, ConflictsAndDroppedWritesAreTold) {
  EXPECT_THAT(outcome(account("root", true, {})), HasSubstr("Conflict slurmdbd already has one"));
  EXPECT_THAT(outcome(account("gone", false, {{"site: GrpJobs", 4}})), HasSubstr("Conflict it is gone"));
  EXPECT_THAT(outcome(account("root", false, {{"other: GrpJobs", 4}})), HasSubstr("Conflict other: there is no association"));
  EXPECT_THAT(outcome(account("007", true, {})), HasSubstr("Unsupported"));
  EXPECT_TRUE(posted.empty());
  drops = "associations";
  EXPECT_THAT(outcome(account("physics", true, {{"nosuch: Association", true}})),
              HasSubstr("stored something else: nosuch: there is no association, wanted one"));
  drops = "accounts";
  EXPECT_THAT(outcome(account("chemistry", true, {})), HasSubstr("Invalid slurmdbd reported success, and has no such account"));
}

TEST_F(EntityActsTest, AUserThatWasDeletedComesBack) {
  deleted.insert("ann");
  accounts["physics"] = {{"name", "physics"}, {"description", "x"}, {"organization", "x"}};
  add_association("physics", "");
  EXPECT_EQ(outcome(user("ann", true,
                         {{"AdminLevel", "Operator"}, {"physics@site: Association", true}, {"physics@site: MaxJobs", 3}})),
            R"({"written":true})");
  EXPECT_EQ(users.at("ann")["administrator_level"], Json::array({"Operator"}));
  EXPECT_EQ(associations.at("site/physics/ann/")["max"]["jobs"]["active"]["number"], 3);
}

TEST_F(EntityActsTest, AssociationsAreDeletedLastAndOnlyIfNobodyUsesThem) {
  users["ann"] = {{"name", "ann"}};
  add_association("physics", "");
  add_association("physics", "ann");
  add_association("physics", "ann", "debug");
  const plan::ActPtr act = user("ann", false,
                                {{"physics@site: Association", false},
                                 {"physics/debug@site: Association", false},
                                 {"chemistry@site: Association", true}});
  queue = Json::parse(R"([{"job_id": 5, "cluster": "site", "account": "physics", "user_name": "ann", "partition": "debug,all",
                           "job_state": ["PENDING"]}])");
  EXPECT_EQ(outcome(act), "Busy physics/debug@site: it is used by job 5 of cluster site");
  EXPECT_TRUE(removed.empty());
  EXPECT_TRUE(associations.contains("site/chemistry/ann/"));
  clusters.set_accounting("db", {"c", "another"});
  const auto both = outcomes({act, user("bob", true, {{"physics@site: Association", true}})});
  EXPECT_THAT(both,
              ElementsAre(HasSubstr("Busy physics@site: cluster another may use it, and cannot be queried"), HasSubstr("true")))
      << "only deletions need to know the jobs";
  EXPECT_TRUE(removed.empty());
  clusters.set_accounting("db", {"c"});
  queue = Json::parse(R"([{"job_id": 8, "cluster": "site", "account": "physics", "user_name": "", "job_state": ["PENDING"]}])");
  EXPECT_THAT(outcome(act), HasSubstr("it is used by job 8 of cluster site (slurmrestd does not know the users of all these"))
      << "it may be the user's";
  queue =
      Json::parse(R"([{"job_id": 6, "cluster": "site", "account": "chemistry", "user_name": "ann", "job_state": ["RUNNING"]},
                          {"job_id": 7, "cluster": "site", "account": "physics", "user_name": "bob", "job_state": ["RUNNING"]},
                          {"job_id": 9, "cluster": "site", "account": "physics", "user_name": "", "job_state": ["RUNNING"]}])");
  EXPECT_EQ(outcome(act), R"({"written":true})");
  EXPECT_THAT(removed, ElementsAre("association/?account=physics&cluster=site&user=ann&partition=debug",
                                   "association/?account=physics&cluster=site&user=ann"));
  add_association("physics", "ann");
  add_association("physics", "ann", "debug");
  EXPECT_THAT(outcome(user("ann", false, {{"physics@site: Association", false}})),
              HasSubstr("Busy physics@site: slurmdbd would also delete physics/debug@site of user ann"));
}

TEST_F(EntityActsTest, DeletesWhatNobodyUses) {
  accounts["a_b"] = {{"name", "a_b"}, {"description", "x"}, {"organization", "x"}};
  add_association("a_b", "");
  loop.advance(3s);
  EXPECT_FALSE(unused(EntityKind::kAccount, "root"));
  const auto evidence = unused(EntityKind::kAccount, "a_b");
  ASSERT_TRUE(evidence);
  queue = Json::parse(R"([{"job_id": 5, "cluster": "site", "account": "a_b", "user_name": "ann", "job_state": ["PENDING"]}])");
  EXPECT_EQ(outcome(delete_entity(*evidence)), "Busy it is used by job 5 of cluster site");
  queue = Json::array();
  add_association("a_b", "ann");
  EXPECT_EQ(outcome(delete_entity(*evidence)), "Busy it has the users ann");
  associations.erase("site/a_b/ann/");
  add_association("axb", "");
  EXPECT_THAT(outcome(delete_entity(*evidence)), HasSubstr("Busy slurmdbd would also delete axb@site"));
  associations.erase("site/axb//");
  EXPECT_EQ(outcome(delete_entity(*evidence)), R"({"deleted":true})");
  EXPECT_THAT(removed, ElementsAre("account/a_b"));
  EXPECT_EQ(outcome(delete_entity(*evidence)), R"({"deleted":false})");
  loop.advance(60s);
  EXPECT_THAT(outcome(delete_entity(*evidence)), HasSubstr("Expired"));
}

TEST_F(EntityActsTest, ADeletionThatWaitsForItsTurnDoesNotExpire) {
  for (const char* name : {"a", "b"}) {
    accounts[name] = {{"name", name}, {"description", "x"}, {"organization", "x"}};
    add_association(name, "");
  }
  loop.advance(3s);
  const auto a = unused(EntityKind::kAccount, "a"), b = unused(EntityKind::kAccount, "b");
  ASSERT_TRUE(a && b);
  // The evidence is good for 15 s.
  loop.advance(13s);
  http.held = "/slurm/v0.0.45/jobs/";
  std::vector<std::string> said;
  for (const auto* evidence : {&a, &b})
    target.execute(delete_entity(**evidence), [&](const plan::ActResult& result) { said.push_back(text_of(result)); });
  loop.advance(6s);
  EXPECT_TRUE(said.empty());
  http.release();
  loop.advance(5s);
  EXPECT_THAT(said, ElementsAre(R"({"deleted":true})", R"({"deleted":true})"));
}

TEST_F(EntityActsTest, AJobOfAnUnknownUserHoldsThoseOfItsAccount) {
  for (const char* name : {"ann", "bob"}) {
    users[name] = {{"name", name}};
    add_association(name == std::string("ann") ? "physics" : "chemistry", name);
  }
  loop.advance(3s);
  const auto ann = unused(EntityKind::kUser, "ann", {{"physics", "", "site"}});
  const auto bob = unused(EntityKind::kUser, "bob", {{"chemistry", "", "site"}});
  ASSERT_TRUE(ann && bob);
  queue = Json::parse(R"([{"job_id": 5, "cluster": "site", "account": "physics", "user_name": "", "job_state": ["PENDING"]}])");
  EXPECT_THAT(outcome(delete_entity(*ann)), HasSubstr("Busy it is used by job 5 of cluster site (slurmrestd does not know"));
  EXPECT_EQ(outcome(delete_entity(*bob)), R"({"deleted":true})");
}

TEST_F(EntityActsTest, ALostReplyIsSettledByLaterLists) {
  lost = "accounts";
  const plan::ActResult result = run(account("physics", true, {{"site: Association", true}}));
  ASSERT_FALSE(result.value);
  EXPECT_EQ(result.value.error().code, ErrorCode::kUnknownOutcome);
  ASSERT_EQ(result.gates.size(), 2U);
  loop.advance(5s);
  EXPECT_FALSE(result.gates[0]->open() || result.gates[1]->open());
  loop.advance(15s);
  EXPECT_TRUE(result.gates[0]->open() && result.gates[1]->open());
}

}  // namespace
}  // namespace slurm
