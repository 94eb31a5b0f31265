#include "cli/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/testing/cluster.hpp"

namespace cli {
namespace {

using core::Json;
using testing::HasSubstr;
using testing::Not;

TreeFacts tree() {
  const TestCluster cluster;
  TreeFacts out;
  out.ns = "hpc";
  out.accounting = "slurm";
  out.own = cluster.facts.associations;
  cluster.science->limits.tres["GrpTRES"] = {{"cpu", 64}, {"mem", 2048}};
  cluster.physics->limits.counts = {{"MaxJobs", 5}, {"MaxWallDurationPerJob", 1440}, {"GrpJobs", slurm::Infinite{}}};
  // Adds the same associations in the form in which slurmdbd returns them with inherited settings.
  for (const auto& row : out.own) {
    auto all = std::make_shared<slurm::accounting::Association>(*row);
    all->qos = {"normal", "gpu"};
    all->default_qos = row->user.empty() ? "" : "normal";
    all->limits.counts["MaxJobs"] = 5;
    all->is_default = row->user == "ann";
    if (row->user == "bob") all->shares = 0x7FFFFFFF;
    out.in_force.push_back(all);
  }
  out.accounts = {std::make_shared<slurm::accounting::Account>(slurm::accounting::Account{"physics", "Physics", "uni"})};
  out.users = {std::make_shared<slurm::accounting::User>(slurm::accounting::User{"ann", "physics", {"Operator"}}),
               std::make_shared<slurm::accounting::User>(slurm::accounting::User{"bob", "physics", {"None"}})};
  slurm::accounting::Share share{"local", true, "ann", "physics",
                                 "",      0.25, 0.5,   {{"cpu", 7230.0}, {"gres/gpu", 600.0}, {"mem", 1e6}}};
  slurm::accounting::Share account{"local", false, "physics", "science", "", 1.0, 0.0, {{"cpu", 30.0}}};
  out.clusters = {{"slurm",
                   "local",
                   "",
                   {std::make_shared<slurm::accounting::Share>(share), std::make_shared<slurm::accounting::Share>(account)}}};
  return out;
}

TEST(Tree, AsText) {
  EXPECT_EQ(tree_text(tree_document(tree()), Style(false)), R"(Cluster local (Controller slurm)
  ACCOUNT        USER  OWN LIMITS                                  DEFAULT QOS  QOS         SHARES  USED MINUTES         OF PARENT  FAIR SHARE
  root                                                                          gpu,normal  1
    science            GrpTRES=cpu=64,mem=2G                                    gpu,normal  1
      physics          MaxJobs=5 MaxWallDurationPerJob=1-00:00:00               gpu,normal  1       0                    100.0%
        physics  ann                                               normal       gpu,normal  1       cpu=120,gres/gpu=10  25.0%      0.500
        physics  bob                                               normal       gpu,normal  parent
)");
}

TEST(Tree, AsDocument) {
  const Json document = tree_document(tree());
  EXPECT_EQ(document["kind"], "AccountTree");
  EXPECT_EQ(document["accounting"], "slurm");
  const Json& rows = document["items"][0]["associations"];
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows[2], (Json{{"account", "physics"},
                           {"user", ""},
                           {"partition", ""},
                           {"level", 2},
                           {"parent", "science"},
                           {"limits", {{"MaxJobs", 5}, {"MaxWallDurationPerJob", 1440}}},
                           {"fairShare", 1},
                           {"defaultQos", ""},
                           {"qos", {"gpu", "normal"}},
                           {"usage", {{"tresMinutes", Json::object()}, {"ofParent", 1.0}, {"fairShareFactor", nullptr}}},
                           {"description", "Physics"},
                           {"organization", "uni"}}));
  EXPECT_EQ(rows[3]["limits"], Json::object()) << "inherited ones are not its own";
  EXPECT_EQ(rows[3]["adminLevels"], Json::array({"Operator"}));
  EXPECT_EQ(rows[3]["isDefault"], true);
  EXPECT_EQ(rows[3]["usage"]["fairShareFactor"], 0.5);
  EXPECT_EQ(rows[4]["fairShare"], "parent");
  EXPECT_EQ(rows[4]["adminLevels"], Json::array());
  EXPECT_TRUE(rows[4]["usage"].is_null()) << "unknown is not zero";
}

TEST(Tree, UsageThatIsMissingIsTold) {
  TreeFacts facts = tree();
  facts.clusters[0].shares.clear();
  facts.clusters[0].why_not = "Slurm does not answer: no";
  const std::string text = tree_text(tree_document(facts), Style(false));
  EXPECT_THAT(text, HasSubstr("  Usage is not shown: Slurm does not answer: no\n"));
  EXPECT_THAT(text, Not(HasSubstr("100.0%")));
}

TEST(Tree, ClustersOfOthers) {
  TreeFacts facts = tree();
  auto other = association("root");
  other->cluster = "Other";
  facts.in_force.push_back(other);
  facts.own.clear();
  std::string text = tree_text(tree_document(facts), Style(false));
  EXPECT_THAT(text, HasSubstr("Cluster Other\n"));
  EXPECT_THAT(text, HasSubstr("no Controller of this namespace is of this cluster"));
  EXPECT_THAT(text, HasSubstr(" ?  ")) << "its own limits are not known";
  facts.only_these = true;
  text = tree_text(tree_document(facts), Style(false));
  EXPECT_THAT(text, Not(HasSubstr("Other")));
  EXPECT_THAT(text, HasSubstr("Cluster local"));
}

TEST(Tree, NamesAreComparedAsSlurmDoes) {
  TreeFacts facts = tree();
  facts.clusters[0].name = "LOCAL";
  auto biology = association("biology", "", "SCIENCE");
  auto user = association("Biology", "eve");
  facts.in_force.insert(facts.in_force.end(), {biology, user});
  const Json document = tree_document(facts);
  ASSERT_EQ(document["items"].size(), 1U);
  const Json& rows = document["items"][0]["associations"];
  EXPECT_EQ(rows[2]["account"], "biology");
  EXPECT_EQ(rows[3]["user"], "eve");
}

TEST(Tree, WithoutATopOrAccountsItStillEnds) {
  TreeFacts facts = tree();
  facts.in_force = {association("a", "", "b"), association("b", "", "a"), association("c", "", "gone")};
  EXPECT_EQ(tree_document(facts)["items"][0]["associations"].size(), 3U);
  facts.in_force.clear();
  EXPECT_THAT(tree_text(tree_document(facts), Style(false)), HasSubstr("It has no accounts."));
}

}  // namespace
}  // namespace cli
