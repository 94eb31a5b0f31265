// Tests accounts, users and associations against a real slurmdbd with a real MariaDB. Each rule of slurmdbd that
// slurm/accounting/entities.hpp and slurm/rest/entity_acts.hpp rely on has a test, which fails if a release changes the rule.
#include "slurm/accounting/entities.hpp"

#include "slurmdbd.hpp"

namespace conformance {
namespace {

using core::Json;
using slurm::AccountingClient;
using slurm::accounting::Association;
using slurm::accounting::EntityKind;
using slurm::accounting::Place;
using slurm::accounting::Settings;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr EntityKind kAccount = EntityKind::kAccount;
constexpr EntityKind kUser = EntityKind::kUser;

class EntitiesOfSlurmdbd : public Slurmdbd {
 protected:
  void SetUp() override {
    Slurmdbd::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    // Remove what an interrupted test has left.
    local("exec", "scancel --user=root,user");
    ASSERT_TRUE(until([&] { return local("exec", "squeue --noheader").empty(); }));
    for (int i = 0; i < 3 && !empty(); ++i) {
      const auto lists = view();
      for (const auto& [name, row] : *lists.users.rows) {
        if (name != "root") sacctmgr("delete user " + name);
      }
      for (const auto& [key, row] : *lists.associations.rows) {
        if (row->user == "root" && row->account != "root") sacctmgr("delete user root account=" + row->account);
      }
      for (const auto& [name, row] : *lists.accounts.rows) {
        if (name != "root") sacctmgr("delete account " + name);
      }
      for (const auto& [name, row] : *lists.qos.rows) {
        if (name != "normal") sacctmgr("delete qos " + name);
      }
      ASSERT_TRUE(fresh());
    }
    ASSERT_TRUE(empty()) << "something of an earlier test is in use";
  }
  [[nodiscard]] bool empty() const {
    const auto lists = view();
    return lists.users.rows->size() == 1 && lists.accounts.rows->size() == 1 && lists.qos.rows->size() == 1;
  }

  /// Returns the associations of an account or user with their own settings, as sacctmgr shows them.
  [[nodiscard]] std::string show(const std::string& where, const std::string& fields) const {
    return local("exec", "sacctmgr --noheader --parsable2 show assoc wopl where " + where + " format=" + fields);
  }
  [[nodiscard]] bool exists(EntityKind kind, const std::string& name) const {
    return slurm::accounting::find_entity(kind, name, view()).has_value();
  }
  [[nodiscard]] Settings found(EntityKind kind, const std::string& name) const {
    const auto entity = slurm::accounting::find_entity(kind, name, view());
    return entity ? entity->settings : Settings{};
  }
  std::string write(EntityKind kind, const std::string& name, const Settings& settings) {
    return outcome(slurm::write_entity("db", kind, name, !exists(kind, name), settings));
  }
  std::string account(const std::string& name, const std::string& parent = "root") {
    return write(kAccount, name, {{"local: Association", true}, {"local: Parent", parent}});
  }
  std::string user(const std::string& name, const std::string& in) {
    return write(kUser, name, {{in + "@local: Association", true}, {in + "@local: Default", true}});
  }
  std::string remove(EntityKind kind, const std::string& name, std::set<Place> known = {}) {
    if (kind == kAccount) known.insert({"", "", "local"});
    const auto evidence =
        slurm::UnusedEntity::of(plan::testing::Observer::at(loop.clock().mono()), "db", kind, name, known, view());
    return evidence ? outcome(slurm::delete_entity(*evidence)) : "no evidence";
  }
  AccountingClient& rest() { return *clusters->accounting("db"); }
  core::Result<void> post(std::vector<AccountingClient::AssociationWrite> rows) {
    return ask<void>([&](auto done) { rest().write_associations(rows, std::move(done)); });
  }
};

const std::vector<Shown>& all() {
  static const std::vector<Shown> kAll{
      {"QOS", Json::array({"gpu", "normal"}), "QOS", "gpu,normal"},
      {"DefaultQOS", "gpu", "DefaultQOS", "gpu"},
      {"FairShare", 7, "Share", "7"},
      {"Priority", 8, "Priority", "8"},
      {"GrpJobs", 11, "GrpJobs", "11"},
      {"GrpJobsAccrue", 12, "GrpJobsAccrue", "12"},
      {"GrpSubmitJobs", 13, "GrpSubmit", "13"},
      {"GrpTRES/cpu", 14, "GrpTRES", "cpu=14"},
      {"GrpTRESMins/cpu", 15, "GrpTRESMins", "cpu=15"},
      {"GrpTRESRunMins/cpu", 16, "GrpTRESRunMins", "cpu=16"},
      {"GrpWall", 17, "GrpWall", "00:17:00"},
      {"MaxJobs", 18, "MaxJobs", "18"},
      {"MaxJobsAccrue", 19, "MaxJobsAccrue", "19"},
      {"MaxSubmitJobs", 20, "MaxSubmit", "20"},
      {"MaxTRESMinsPerJob/cpu", 21, "MaxTRESMins", "cpu=21"},
      {"MaxTRESPerJob/cpu", 22, "MaxTRES", "cpu=22"},
      {"MaxTRESPerNode/cpu", 23, "MaxTRESPerNode", "cpu=23"},
      {"MaxWallDurationPerJob", 24, "MaxWall", "00:24:00"},
      {"MinPrioThreshold", 25, "MinPrioThresh", "25"},
  };
  return kAll;
}

TEST_F(EntitiesOfSlurmdbd, EveryFieldIsWhatSacctmgrShowsAndIsResetAlone) {
  // all() leaves out Association, Parent and Default, which other tests cover.
  ASSERT_EQ(all().size() + 3, slurm::accounting::kAssociationFields.size());
  sacctmgr("add qos gpu");
  ASSERT_EQ(account("science"), "");
  // A limit of the parent must not become a limit of the child.
  sacctmgr("modify account science set MaxTRES=mem=100 MaxJobs=99");
  ASSERT_EQ(account("physics", "science"), "");
  ASSERT_EQ(user("ann", "physics"), "");
  for (const EntityKind kind : {kAccount, kUser}) {
    SCOPED_TRACE(name_of(kind));
    const std::string name = kind == kAccount ? "physics" : "ann";
    const Place place{kind == kAccount ? "" : "physics", "", "local"};
    const std::string where = kind == kAccount ? "account=physics user=" : "account=physics user=ann";
    Settings wanted;
    std::string formats, texts;
    for (const Shown& each : all()) {
      wanted[place.setting(each.setting)] = each.value;
      formats += (formats.empty() ? "" : ",") + std::string(each.format);
      texts += (texts.empty() ? "" : "|") + std::string(each.text);
    }
    ASSERT_EQ(write(kind, name, wanted), "");
    EXPECT_TRUE(slurm::accounting::differences(wanted, found(kind, name)).empty());
    const std::string shown = show(where, formats);
    EXPECT_EQ(shown.substr(0, shown.find('\n')), texts);
    for (const Shown& each : all()) {
      const std::string setting = place.setting(each.setting);
      SCOPED_TRACE(setting);
      if (each.setting == std::string("QOS")) continue;  // Tested below.
      const Json none = slurm::accounting::default_of(setting);
      ASSERT_EQ(write(kind, name, {{setting, none}}), "");
      wanted[setting] = none;
      EXPECT_TRUE(slurm::accounting::differences(wanted, found(kind, name)).empty());
    }
    sacctmgr("modify " + std::string(name_of(kind)) + " where name=" + name + " account=physics set qos=");
  }
  ASSERT_EQ(write(kUser, "ann", {{"physics@local: FairShare", "parent"}}), "");
  EXPECT_EQ(show("user=ann", "Share"), "parent");
}

TEST_F(EntitiesOfSlurmdbd, WhatARequestOmitsIsClearedOrBecomesOwn) {
  sacctmgr("add qos gpu");
  ASSERT_EQ(account("physics"), "");
  ASSERT_EQ(user("ann", "physics"), "");
  sacctmgr("modify account physics set qos=gpu,normal");
  ASSERT_EQ(write(kUser, "ann", {{"physics@local: GrpTRES/cpu", 4}, {"physics@local: MaxJobs", 3}}), "");
  EXPECT_EQ(show("user=ann", "GrpTRES,MaxJobs,QOS"), "cpu=4|3|");
  ASSERT_EQ(write(kUser, "ann", {{"physics@local: GrpJobs", 5}}), "");
  EXPECT_EQ(show("user=ann", "GrpTRES,MaxJobs,QOS,GrpJobs"), "cpu=4|3||5") << "ours sends them";
  // Sends a request that contains only the names of user, account and cluster.
  EXPECT_TRUE(post({{kUser, "ann", {"physics", "", "local"}, {}, {}}}));
  EXPECT_EQ(show("user=ann", "GrpTRES,MaxJobs,GrpJobs"), "|3|5") << "TRES are cleared, and numbers stay";
}

TEST_F(EntitiesOfSlurmdbd, AListOfQosCannotBeEmptied) {
  sacctmgr("add qos gpu");
  ASSERT_EQ(account("physics"), "");
  ASSERT_EQ(write(kAccount, "physics", {{"local: QOS", Json::array({"gpu"})}}), "");
  const std::string said = write(kAccount, "physics", {{"local: QOS", Json::array()}});
  const std::string command = "sacctmgr modify account where name=physics cluster=local set qos=\"\"";
  EXPECT_THAT(said, HasSubstr("Unsupported local: QOS: slurmrestd cannot empty the list. Run " + command));
  EXPECT_TRUE(post({{kAccount, "physics", {"", "", "local"}, {}, {{"Parent", "root"}}}}));
  EXPECT_EQ(show("account=physics", "QOS"), "gpu") << "slurmrestd ignores an empty list";
  sacctmgr("modify account where name=physics cluster=local set qos=");
  EXPECT_EQ(show("account=physics", "QOS"), "");
  EXPECT_TRUE(until([&] { return found(kAccount, "physics")["local: QOS"].empty(); }));
}

TEST_F(EntitiesOfSlurmdbd, AnUnchangedParentMakesItSkipTheRest) {
  ASSERT_EQ(account("science"), "");
  ASSERT_EQ(account("physics", "science"), "");
  const Settings elsewhere{{"Association", true}, {"Parent", "other"}};
  (void)post({{kAccount, "physics", {"", "", "local"}, elsewhere, {{"Parent", "science"}, {"GrpJobs", 4}}}});
  RecordProperty("skipped", show("account=physics", "GrpJobs") == "4" ? "no" : "yes");
  ASSERT_EQ(write(kAccount, "physics", {{"local: Parent", "science"}, {"local: GrpJobs", 5}}), "");
  EXPECT_EQ(show("account=physics", "GrpJobs,ParentName"), "5|science");
  ASSERT_EQ(write(kAccount, "physics", {{"local: Parent", "root"}, {"local: GrpJobs", 6}}), "");
  EXPECT_EQ(show("account=physics", "GrpJobs,ParentName"), "6|root");
}

TEST_F(EntitiesOfSlurmdbd, ADefaultAccountIsSetAndMoved) {
  ASSERT_EQ(account("physics"), "");
  ASSERT_EQ(account("chemistry"), "");
  ASSERT_EQ(write(kUser, "ann", {{"physics@local: Association", true}, {"physics@local: MaxJobs", 3}}), "");
  ASSERT_EQ(write(kUser, "ann", {{"physics@local: Default", true}}), "");
  EXPECT_EQ(local("exec", "sacctmgr --noheader --parsable2 show user ann format=defaultaccount"), "physics");
  ASSERT_EQ(write(kUser, "ann", {{"chemistry@local: Association", true}, {"chemistry@local: Default", true}}), "");
  EXPECT_EQ(local("exec", "sacctmgr --noheader --parsable2 show user ann format=defaultaccount"), "chemistry");

  // The association with the default account cannot be deleted while the user has others.
  EXPECT_THAT(write(kUser, "ann", {{"chemistry@local: Association", false}}), HasSubstr("Busy chemistry@local: "));
  ASSERT_EQ(write(kUser, "ann", {{"chemistry@local: Association", false}, {"physics@local: Default", true}}), "");
  EXPECT_EQ(show("user=ann", "Account"), "physics");
  ASSERT_EQ(write(kUser, "ann", {{"physics@local: Association", false}}), "") << "the last one";
  EXPECT_EQ(show("user=ann", "Account"), "");
}

TEST_F(EntitiesOfSlurmdbd, AChildBeforeItsParentIsRefused) {
  EXPECT_THAT(account("physics", "science"), Not(""));
  EXPECT_EQ(show("account=physics", "Account"), "");
  EXPECT_TRUE(until([&] { return exists(kAccount, "physics"); })) << "the account itself was created";
  ASSERT_EQ(account("science"), "");
  ASSERT_EQ(account("physics", "science"), "");
  EXPECT_EQ(show("account=physics", "ParentName"), "science");
  const std::string circle = write(kAccount, "science", {{"local: Parent", "physics"}});
  if (release < "25.05") {
    EXPECT_EQ(circle, "") << "slurmdbd moves the child up first";
    EXPECT_EQ(show("account=physics", "ParentName"), "root");
  } else {
    EXPECT_NE(circle, "") << "no circles";
  }
}

TEST_F(EntitiesOfSlurmdbd, TogetherTheyAreCreatedInTheOrderOfTheTree) {
  const auto settings = [](const std::string& parent) {
    return Settings{{"local: Association", true}, {"local: Parent", parent}};
  };
  std::vector<plan::ActResult> results;
  for (const auto& act :
       {slurm::write_entity("db", kUser, "ann", true, {{"optics@local: Association", true}, {"optics@local: Default", true}}),
        slurm::write_entity("db", kAccount, "optics", true, settings("physics")),
        slurm::write_entity("db", kAccount, "bad", true, settings("nosuch")),
        slurm::write_entity("db", kAccount, "physics", true, settings("root"))})
    target->execute(act, [&](plan::ActResult result) { results.push_back(std::move(result)); });
  ASSERT_TRUE(until([&] { return results.size() == 4; }));
  int failed = 0;
  for (const auto& each : results) failed += each.value ? 0 : 1;
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(show("account=optics", "User,ParentName"), "|physics\nann|");
}

TEST_F(EntitiesOfSlurmdbd, AnUnknownClusterIsRefused) {
  EXPECT_THAT(write(kAccount, "physics", {{"nosuch: Association", true}}),
              HasSubstr("Invalid slurmdb_accounts_add_cond() failed: Invalid cluster name"));
}

TEST_F(EntitiesOfSlurmdbd, AnUnderscoreInANameTakesOthersAlong) {
  ASSERT_EQ(account("a_b"), "");
  ASSERT_EQ(account("axb"), "");
  ASSERT_TRUE(fresh());
  EXPECT_EQ(remove(kAccount, "a_b"), "no evidence");
  EXPECT_THAT(slurm::use_of_entity(kAccount, "a_b", {{"", "", "local"}}, view()), HasSubstr("also delete axb@local"));
  EXPECT_THAT(write(kAccount, "a_b", {{"local: Association", false}}),
              HasSubstr("Busy local: slurmdbd would also delete axb@local"));
  EXPECT_EQ(show("account=a_b,axb", "Account"), "a_b\naxb");
  EXPECT_TRUE(ask<void>([&](auto done) { rest().delete_entity(kAccount, "a_b", std::move(done)); }));
  EXPECT_EQ(show("account=a_b,axb", "Account"), "") << "slurmdbd takes it for a wildcard";
  ASSERT_TRUE(fresh());
  ASSERT_EQ(account("axb"), "") << "the account is still there without an association";

  ASSERT_EQ(user("j_d", "axb"), "");
  ASSERT_EQ(user("jid", "axb"), "");
  ASSERT_TRUE(fresh());
  EXPECT_EQ(remove(kUser, "j_d", {{"axb", "", "local"}}), "no evidence");
  EXPECT_EQ(remove(kUser, "jid", {{"axb", "", "local"}}), "");
  EXPECT_EQ(remove(kUser, "j_d", {{"axb", "", "local"}}), "");
  EXPECT_EQ(show("account=axb", "Account,User"), "axb|");
}

TEST_F(EntitiesOfSlurmdbd, ADefaultQosMustBeAllowed) {
  sacctmgr("add qos gpu");
  ASSERT_EQ(account("physics"), "");
  EXPECT_THAT(write(kAccount, "physics", {{"local: QOS", Json::array({"normal"})}, {"local: DefaultQOS", "gpu"}}), Not(""));
  ASSERT_EQ(write(kAccount, "physics", {{"local: QOS", Json::array({"gpu", "normal"})}, {"local: DefaultQOS", "gpu"}}), "");
  EXPECT_EQ(show("account=physics", "QOS,DefaultQOS"), "gpu,normal|gpu");
  ASSERT_EQ(write(kAccount, "physics", {{"local: DefaultQOS", ""}}), "");
  EXPECT_THAT(write(kAccount, "physics", {{"local: QOS", Json::array({"nosuch"})}}), HasSubstr("nosuch"));
}

// slurmdbd may store an association of which slurmctld never learns. slurmctld then refuses jobs of that association.
TEST_F(EntitiesOfSlurmdbd, NewAssociationsReachSlurmctld) {
  const auto shown = [&](const std::string& name) {
    return local("exec", "scontrol --oneliner show assoc_mgr flags=assoc,users users=" + name);
  };
  // slurmctld records the default account only of users that exist on its machine.
  const Json gpu = Json::array({"gpu"});
  sacctmgr("add qos gpu");
  ASSERT_EQ(account("chemistry"), "");
  ASSERT_EQ(account("physics"), "");
  ASSERT_EQ(write(kAccount, "physics", {{"local: QOS", Json::array({"gpu", "normal"})}, {"local: DefaultQOS", "normal"}}), "");
  const Settings both{{"chemistry@local: Association", true},
                      {"physics@local: Association", true},
                      {"physics@local: Default", true},
                      {"physics@local: QOS", gpu},
                      {"physics@local: DefaultQOS", "gpu"}};
  ASSERT_EQ(write(kUser, "user", both), "");
  EXPECT_EQ(show("account=physics user=user", "QOS,DefaultQOS"), "gpu|gpu");
  EXPECT_TRUE(until([&] { return shown("user").find("Account=physics UserName=user") != std::string::npos; })) << shown("user");
  EXPECT_TRUE(until([&] { return shown("user").find("DefAccount=physics") != std::string::npos; })) << shown("user");
  EXPECT_EQ(local("exec", "sacctmgr --noheader --parsable2 show user user format=defaultaccount"), "physics");
  // slurmdbd refuses a list of QOS without the default QOS that the user inherits from the account.
  const Settings inherits{{"physics@local: Association", true}, {"physics@local: Default", true}, {"physics@local: QOS", gpu}};
  EXPECT_NE(write(kUser, "bob", inherits), "");
  EXPECT_EQ(show("user=bob", "Account"), "");
}

TEST_F(EntitiesOfSlurmdbd, CoordinatorsAreAddedAndRemoved) {
  const auto shown = [&](const std::string& name) {
    return local("exec", "sacctmgr --noheader --parsable2 show account " + name + " withcoord format=Coordinators");
  };
  ASSERT_EQ(account("science"), "");
  ASSERT_EQ(account("physics", "science"), "");
  for (const char* name : {"ann", "bob", "boss"}) ASSERT_EQ(user(name, "science"), "");
  ASSERT_EQ(write(kAccount, "science", {{"Coordinators", Json::array({"boss"})}}), "");
  ASSERT_EQ(write(kAccount, "physics", {{"Coordinators", Json::array({"ann", "bob"})}}), "");
  EXPECT_EQ(found(kAccount, "physics")["Coordinators"], Json::array({"ann", "bob"})) << "without those above";
  ASSERT_EQ(write(kAccount, "physics", {{"Coordinators", Json::array({"bob"})}}), "");
  EXPECT_THAT(shown("physics"), Not(HasSubstr("ann")));
  ASSERT_EQ(write(kAccount, "physics", {{"Description", "Lasers"}, {"Organization", "uni"}}), "");
  EXPECT_EQ(found(kAccount, "physics")["Coordinators"], Json::array({"bob"}));
  ASSERT_EQ(write(kAccount, "physics", {{"Coordinators", Json::array()}, {"Description", ""}}), "");
  EXPECT_EQ(found(kAccount, "physics")["Description"], "physics");
  EXPECT_EQ(shown("science"), "boss");
  EXPECT_THAT(write(kAccount, "physics", {{"Coordinators", Json::array({"nobody-knows"})}}), Not(""));
}

TEST_F(EntitiesOfSlurmdbd, UsersHaveLevelsAndPartitions) {
  ASSERT_EQ(account("physics"), "");
  ASSERT_EQ(user("ann", "physics"), "");
  ASSERT_EQ(write(kUser, "ann", {{"AdminLevel", "Operator"}, {"physics/all@local: Association", true}}), "");
  EXPECT_EQ(local("exec", "sacctmgr --noheader --parsable2 show user ann format=adminlevel"), "Operator");
  EXPECT_EQ(show("user=ann partition=all", "Account,Partition"), "physics|all");
  EXPECT_THAT(write(kUser, "ann", {{"physics@local: Association", false}}),
              HasSubstr("also delete physics/all@local of user ann"));
  Association base;
  base.cluster = "local";
  base.account = "physics";
  base.user = "ann";
  EXPECT_FALSE(ask<void>([&](auto done) { rest().delete_association(base, std::move(done)); })) << "more than one";
  EXPECT_EQ(show("user=ann", "Account").size(), std::string("physics\nphysics").size());
  ASSERT_EQ(write(kUser, "ann", {{"physics/all@local: Association", false}, {"AdminLevel", "None"}}), "");
  EXPECT_EQ(show("user=ann", "Account,Partition"), "physics|");
  EXPECT_EQ(local("exec", "sacctmgr --noheader --parsable2 show user ann format=adminlevel"), "None");
}

TEST_F(EntitiesOfSlurmdbd, OneWithAnUnfinishedJobIsNotDeletedAndComesBackAfterItsDeletion) {
  ASSERT_EQ(account("physics"), "");
  ASSERT_EQ(user("user", "physics"), "");
  const std::set<Place> known{{"physics", "", "local"}};
  std::string job;
  EXPECT_TRUE(until([&] {
    job = local("exec", "sbatch --uid=user --parsable -D /tmp -o /dev/null -A physics --mem=10 --hold --wrap true");
    return !job.empty() && job.find_first_not_of("0123456789") == std::string::npos;
  })) << job;
  ASSERT_TRUE(fresh());
  EXPECT_THAT(remove(kUser, "user", known), HasSubstr("Busy it is used by job " + job + " of cluster local"));
  EXPECT_THAT(write(kUser, "user", {{"physics@local: Association", false}}),
              HasSubstr("Busy physics@local: it is used by job " + job + " of cluster local"));
  local("exec", "scontrol release " + job);
  EXPECT_TRUE(until([&] { return local("exec", "squeue --noheader").empty(); }));
  EXPECT_TRUE(
      until([&] { return local("exec", "sacct --noheader -X -u user -o state").find("COMPLETED") != std::string::npos; }));
  ASSERT_EQ(remove(kUser, "user", known), "");
  EXPECT_EQ(show("user=user", "User"), "");
  // slurmdbd keeps the record of a user with jobs, and slurmrestd would change the deleted record.
  EXPECT_TRUE(ask<void>([&](auto done) { rest().write_users({{"user", "None"}}, std::move(done)); }));
  EXPECT_EQ(local("exec", "sacctmgr --noheader --parsable2 show user user format=user"), "");
  ASSERT_EQ(write(kUser, "user",
                  {{"physics@local: Association", true}, {"physics@local: Default", true}, {"physics@local: MaxJobs", 3}}),
            "");
  EXPECT_EQ(show("user=user", "User,MaxJobs"), "user|3");
  ASSERT_EQ(remove(kUser, "user", known), "");
  EXPECT_EQ(remove(kAccount, "physics"), "");
  EXPECT_EQ(show("account=physics", "Account"), "");
}

TEST_F(EntitiesOfSlurmdbd, ASlurmdbdThatDiesLeavesNothingThatCannotBeRepeated) {
  const Settings wanted{{"local: Association", true}, {"local: GrpJobs", 4}, {"local: GrpTRES/cpu", 8}, {"Description", "x"}};
  for (int i = 0; i < 5; ++i) {
    SCOPED_TRACE(i);
    const std::string name = "kill" + std::to_string(i);
    const auto out = std::make_shared<std::optional<plan::ActResult>>();
    target->execute(slurm::write_entity("db", kAccount, name, true, wanted),
                    [out](plan::ActResult result) { *out = std::move(result); });
    const core::MonoTime strike = loop.clock().mono() + core::Duration{i * 8};
    until([&] { return loop.clock().mono() >= strike; });
    local("slurmdbd", "stop");
    local("slurmdbd", "start");
    ASSERT_TRUE(until([&] { return out->has_value(); }));
    EXPECT_TRUE(until([&] { return std::ranges::all_of((*out)->gates, [](const auto& gate) { return gate->open(); }); }));
    ASSERT_TRUE(fresh());
    EXPECT_EQ(write(kAccount, name, wanted), "");
    EXPECT_EQ(show("account=" + name, "GrpJobs,GrpTRES"), "4|cpu=8");
  }
}

}  // namespace
}  // namespace conformance
