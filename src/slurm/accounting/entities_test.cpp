#include "slurm/accounting/entities.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "slurm/accounting/acts.hpp"
#include "slurm/rest/decode_accounting.hpp"

namespace slurm::accounting {
namespace {

using core::Json;
using ::testing::HasSubstr;

const Place kInPhysics{"physics", "", "site"};

/// Stores `body` as a new association, and returns the association as slurmrestd would then report it.
std::shared_ptr<const Association> stored(const Json& body) {
  const auto decoded = decode_associations(Json{{"associations", Json::array({body})}, {"errors", Json::array()}}.dump());
  if (!decoded || decoded->rows.empty()) {
    ADD_FAILURE() << (decoded ? "no row" : decoded.error().message);
    return std::make_shared<Association>();
  }
  auto out = std::make_shared<Association>(*decoded->rows.front());
  if (!body.contains("shares_raw")) out->shares = 1;
  for (auto& [name, counts] : out->limits.tres) std::erase_if(counts, [](const auto& each) { return each.second == -1; });
  return out;
}

Settings of_user(const Association& row) {
  return settings_at(kInPhysics, user_settings({"ann", "", {}}, {std::make_shared<Association>(row)}));
}

Settings of_account(const Association& row) {
  return settings_at({"", "", "site"}, account_settings({"physics", "", ""}, {std::make_shared<Association>(row)}));
}

Json other_value(const QosField& field) {
  switch (field.form) {
    case FieldForm::kText:
      return "text";
    case FieldForm::kNames:
      return Json::array({"a", "b"});
    case FieldForm::kTruth:
      return true;
    case FieldForm::kShares:
      return "parent";
    default:
      return 30;
  }
}

TEST(Entities, EveryFieldIsWrittenReadAndReset) {
  for (const QosField& field : kAssociationFields) {
    if (field.name == kAssociation) continue;
    SCOPED_TRACE(field.name);
    const EntityKind kind = field.name == kParent ? EntityKind::kAccount : EntityKind::kUser;
    const Place place = kind == EntityKind::kUser ? kInPhysics : Place{"", "", "site"};
    const std::string name = kind == EntityKind::kUser ? "ann" : "physics";
    const auto read = [&](const Json& body) {
      return kind == EntityKind::kUser ? of_user(*stored(body)) : of_account(*stored(body));
    };
    const std::string setting = std::string(field.name) + (field.form == FieldForm::kTres ? "/gres/gpu" : "");
    const auto body = association_body(kind, name, place, {}, {{setting, other_value(field)}});
    ASSERT_TRUE(body) << body.error().message;
    const Settings found = read(*body);
    EXPECT_EQ(found.at(setting), other_value(field)) << body->dump();
    EXPECT_EQ(found.at(std::string(kAssociation)), true);

    const Json none = default_of(place.setting(setting));
    EXPECT_NE(found.at(setting), none);
    const auto reset = association_body(kind, name, place, found, {{setting, none}});
    if (field.name == kQosList) {
      EXPECT_THAT(reset.error().message,
                  HasSubstr("Run sacctmgr modify user where name=ann cluster=site account=physics set qos"));
      continue;
    }
    ASSERT_TRUE(reset);
    if (field.name == kDefaultAccount) {
      EXPECT_FALSE(reset->contains("is_default")) << "slurmdbd ignores it";
      continue;
    }
    const Settings after = read(*reset);
    const auto it = after.find(setting);
    EXPECT_TRUE(it == after.end() || it->second == none) << reset->dump();
  }
}

TEST(Entities, ABodyHasWhatSlurmWouldClearOrInherit) {
  const Settings found{{"Association", true}, {"Parent", "science"}, {"QOS", Json::array({"gpu"})}, {"GrpTRES/cpu", 8}};
  const auto body = association_body(EntityKind::kAccount, "physics", {"", "", "site"}, found,
                                     {{"Parent", "science"}, {"MaxJobs", 3}, {"Association", true}});
  ASSERT_TRUE(body);
  EXPECT_EQ((*body)["user"], "");
  EXPECT_EQ((*body)["qos"], Json::array()) << "which changes nothing";
  EXPECT_EQ((*body)["max"]["tres"]["total"][0]["count"], 8);
  EXPECT_FALSE(body->contains("parent_account")) << "slurmdbd would skip the rest";
  EXPECT_FALSE(body->contains("shares_raw"));

  const auto fresh = association_body(EntityKind::kUser, "ann", {"physics", "debug", "site"}, {}, {});
  ASSERT_TRUE(fresh);
  EXPECT_EQ(fresh->dump(), R"({"account":"physics","cluster":"site","partition":"debug","qos":[],"user":"ann"})");
  EXPECT_EQ((*association_body(EntityKind::kAccount, "physics", {"", "", "site"}, {}, {}))["parent_account"], "root");
  EXPECT_THAT(association_body(EntityKind::kUser, "ann", kInPhysics, {}, {{"Parent", "root"}}).error().message,
              HasSubstr("physics@site: Parent: no setting of users"));
}

TEST(Entities, SettingsHaveAPlace) {
  EXPECT_EQ(place_of("Description"), std::nullopt);
  EXPECT_EQ(place_of("site: GrpTRES/cpu"), (Place{"", "", "site"}));
  EXPECT_EQ(place_of("physics/debug@site: GrpJobs"), (Place{"physics", "debug", "site"}));
  EXPECT_EQ((Place{"physics", "debug", "site"}.setting("GrpJobs")), "physics/debug@site: GrpJobs");
  EXPECT_EQ(without_place("physics@site: GrpTRES/gres/gpu"), "GrpTRES/gres/gpu");
  EXPECT_EQ(tres_of("physics@site: GrpTRES/gres/gpu"), "gres/gpu");
  EXPECT_EQ(field_of("physics@site: MaxJobs")->form, FieldForm::kCount);
  for (const char* none : {"site: GrpTRES", "site: GrpJobs/cpu", "site: Description", "MaxJobs"})
    EXPECT_EQ(field_of(none), nullptr) << none;
  EXPECT_EQ(default_of("site: Priority"), "default");
  EXPECT_EQ(default_of("Priority"), 0) << "of a QOS";
  EXPECT_EQ(default_of("site: Parent"), "root");
  EXPECT_EQ(default_of("AdminLevel"), "None");
}

TEST(Entities, DifferencesAreTold) {
  const Settings found{{"physics@site: Association", true}, {"physics@site: GrpJobs", 20}, {"site: Parent", "root"}};
  const auto left = differences({{"physics@site: Association", false},
                                 {"chemistry@site: Association", true},
                                 {"physics@site: GrpJobs", 10},
                                 {"physics@site: QOS", Json::array()},
                                 {"site: Parent", "ROOT"},
                                 {"Coordinators", Json::array()}},
                                found);
  ASSERT_EQ(left.size(), 3U);
  EXPECT_EQ(left[0].text(), "chemistry@site: there is no association, wanted one");
  EXPECT_EQ(left[1].text(), "physics@site: there is an association, wanted none");
  EXPECT_EQ(left[2].text(), "physics@site: GrpJobs is 20, wanted 10");
}

TEST(Entities, NamesThatCannotBeAddressed) {
  for (const char* name : {"007", "on", "", "a/b", "a,b", "50%", "a b", "a'b", "m\xC3\xBCller"})
    EXPECT_NE(entity_name_problem(EntityKind::kUser, name), "") << name;
  for (const char* name : {"ann", "a_b", "ann@example.com", "team-1.x"})
    EXPECT_EQ(entity_name_problem(EntityKind::kAccount, name), "") << name;
}

/// Builds the associations of a database in memory, and asks what uses an account, a user or an association.
class InUse : public ::testing::Test {
 protected:
  void account(const std::string& name, const std::string& parent = "root", const std::string& cluster = "site") {
    add(cluster, name, "", "", parent);
  }
  void user(const std::string& name, const std::string& account, const std::string& partition = "") {
    add("site", account, name, partition, "");
  }
  View view() {
    View out;
    out.associations.rows = std::make_shared<const decltype(rows_)>(rows_);
    return out;
  }
  std::string use(EntityKind kind, const std::string& name, std::set<Place> known = {}) {
    if (kind == EntityKind::kAccount) known.insert({{"", "", "site"}, {"", "", "other"}});
    return use_of_entity(kind, name, known, view());
  }
  std::string alone(const std::string& key) { return use_of_association(*rows_.at(key), view()); }

 private:
  void add(const std::string& cluster, const std::string& account, const std::string& user, const std::string& partition,
           const std::string& parent) {
    auto row = std::make_shared<Association>();
    row->cluster = cluster;
    row->account = account;
    row->user = user;
    row->partition = partition;
    row->parent_account = parent;
    rows_[row->key()] = row;
  }
  std::map<std::string, std::shared_ptr<const Association>> rows_;
};

TEST_F(InUse, AnAccountWithUsersOrChildren) {
  account("root", "");
  account("science");
  account("physics", "Science");
  EXPECT_EQ(use(EntityKind::kAccount, "physics"), "");
  EXPECT_EQ(use(EntityKind::kAccount, "science"), "it is the parent of account physics");
  user("ann", "physics");
  user("bob", "physics", "debug");
  EXPECT_EQ(use(EntityKind::kAccount, "PHYSICS"), "it has the users ann, bob");
  EXPECT_EQ(alone("site/science//"),
            "slurmdbd would also delete physics@site, physics@site of user ann, "
            "physics/debug@site of user bob, which is below it");
}

TEST_F(InUse, AUserWithOtherAssociations) {
  account("physics");
  account("chemistry");
  user("ann", "physics");
  user("ann", "chemistry");
  const Place physics{"physics", "", "site"}, chemistry{"chemistry", "", "site"};
  EXPECT_EQ(use(EntityKind::kUser, "ann", {physics}), "it has associations that this object has not made: chemistry@site");
  EXPECT_EQ(use(EntityKind::kUser, "Ann", {physics, chemistry}), "");
  EXPECT_EQ(alone("site/physics/ann/"), "");
  user("ann", "physics", "debug");
  EXPECT_THAT(alone("site/physics/ann/"), HasSubstr("also delete physics/debug@site of user ann"));
  EXPECT_EQ(alone("site/physics/ann/debug"), "");
}

TEST_F(InUse, AnUnderscoreIsAWildcardOfSlurmdbd) {
  account("a_b");
  EXPECT_EQ(use(EntityKind::kAccount, "a_b"), "");
  account("axb", "root", "other");
  EXPECT_THAT(use(EntityKind::kAccount, "a_b"), HasSubstr("slurmdbd would also delete axb@other, because it takes \"_\""));
  EXPECT_EQ(use(EntityKind::kAccount, "axb"), "");
  EXPECT_EQ(alone("site/a_b//"), "") << "it is in another cluster";
  account("axb");
  EXPECT_THAT(alone("site/a_b//"), HasSubstr("also delete axb@site"));
  user("j_d", "science");
  user("jid", "axb");
  EXPECT_THAT(use(EntityKind::kUser, "j_d", {{"science", "", "site"}}), HasSubstr("axb@site of user jid"));
  EXPECT_EQ(alone("site/science/j_d/"), "");
  EXPECT_EQ(use(EntityKind::kUser, "jid", {{"axb", "", "site"}}), "");
}

TEST(Entities, AreFoundWithoutCase) {
  View view;
  view.users.rows = std::make_shared<const std::map<std::string, std::shared_ptr<const User>>>(
      std::map<std::string, std::shared_ptr<const User>>{
          {"Ann", std::make_shared<User>(User{"Ann", "physics", {"Operator"}})}});
  auto row = std::make_shared<Association>();
  row->cluster = "Site";
  row->account = "Physics";
  row->user = "Ann";
  row->default_qos = "GPU";
  row->shares = 0x7FFFFFFF;
  row->is_default = true;
  view.associations.rows = std::make_shared<const std::map<std::string, std::shared_ptr<const Association>>>(
      std::map<std::string, std::shared_ptr<const Association>>{{row->key(), row}});
  const auto found = find_entity(EntityKind::kUser, "ANN", view);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "Ann");
  EXPECT_EQ(found->settings.at("AdminLevel"), "Operator");
  EXPECT_EQ(found->settings.at("physics@site: DefaultQOS"), "gpu");
  EXPECT_EQ(found->settings.at("physics@site: FairShare"), "parent");
  EXPECT_EQ(found->settings.at("physics@site: Default"), true);
  EXPECT_EQ(entities(EntityKind::kUser, view).at("ann").settings, found->settings);
  EXPECT_FALSE(find_entity(EntityKind::kAccount, "ann", view));
}

}  // namespace
}  // namespace slurm::accounting
