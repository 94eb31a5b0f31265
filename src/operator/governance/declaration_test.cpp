#include <gtest/gtest.h>

#include "operator/governance/observe.hpp"
#include "slinky/local_wiring.hpp"

namespace op::governance {
namespace {

using core::Json;

class GovernanceWakes : public ::testing::Test {
 protected:
  Json qos(const Json& spec, int generation) {
    return {{"kind", "SlurmQos"}, {"metadata", {{"name", "gpu"}, {"generation", generation}}}, {"spec", spec}};
  }

  LocalWiring wiring_;
  GovernanceController controller_{wiring_};
  Caches caches_{wiring_};
  const std::vector<std::string> none_, itself_{"governance ns/db"};
};

TEST_F(GovernanceWakes, ForTheAccountingOfAQos) {
  EXPECT_EQ(wiring_.put(caches_.qos, qos({{"accountingRef", {{"name", "db"}}}}, 1)), itself_);
  EXPECT_EQ(wiring_.put(caches_.qos, qos(Json::object(), 2)), itself_) << "it is named no more";
  EXPECT_EQ(wiring_.put(caches_.qos, qos(Json::object(), 3)), none_);
  EXPECT_EQ(wiring_.put(caches_.accountings, {{"kind", "Accounting"}, {"metadata", {{"name", "db"}, {"generation", 1}}}}),
            itself_);
}

TEST_F(GovernanceWakes, OnNodesOnlyIfALimitFollowsThem) {
  const auto snapshot_of = [](const std::string& state) {
    slurm::Node node;
    node.name = "n";
    node.state.base = state;
    auto out = std::make_shared<slurm::Snapshot>();
    out->nodes["n"] = std::make_shared<const slurm::Node>(std::move(node));
    return out;
  };
  const auto woken = [&](const std::string& before, const std::string& now, bool health = false) {
    wiring_.woken.clear();
    wiring_.slurm_changed({"ns/site", snapshot_of(before), snapshot_of(now), {"n"}, {}, false, health}, {"ns", "site"});
    return wiring_.woken;
  };
  const Json ref = {{"accountingRef", {{"name", "db"}}}};
  wiring_.put(caches_.controllers,
              {{"kind", "Controller"}, {"metadata", {{"name", "site"}, {"generation", 1}}}, {"spec", ref}});
  wiring_.put(caches_.qos, qos(ref, 1));
  EXPECT_EQ(woken("IDLE", "DOWN"), none_);
  Json follows = ref;
  follows["limits"] = {{"grpTRES", {{"cpu", "50%"}, {"mem", 4}}}};
  wiring_.put(caches_.qos, qos(follows, 2));
  EXPECT_EQ(woken("IDLE", "DOWN"), itself_);
  EXPECT_EQ(woken("IDLE", "ALLOCATED"), none_);
  EXPECT_EQ(woken("IDLE", "IDLE", true), itself_);
}

TEST_F(GovernanceWakes, OnPartitionsOnlyIfAnAssociationIsForOne) {
  const auto woken = [&](bool partitions) {
    wiring_.woken.clear();
    const auto snapshot = std::make_shared<slurm::Snapshot>();
    wiring_.slurm_changed({"ns/site", snapshot, snapshot, {}, {}, partitions, false}, {"ns", "site"});
    return wiring_.woken;
  };
  const Json ref = {{"accountingRef", {{"name", "db"}}}};
  const auto user = [&](const Json& associations, int generation) {
    Json spec = ref;
    spec["associations"] = associations;
    wiring_.put(caches_.users,
                {{"kind", "SlurmUser"}, {"metadata", {{"name", "ann"}, {"generation", generation}}}, {"spec", spec}});
  };
  wiring_.put(caches_.controllers,
              {{"kind", "Controller"}, {"metadata", {{"name", "site"}, {"generation", 1}}}, {"spec", ref}});
  user(Json::array({{{"account", "physics"}}}), 1);
  EXPECT_EQ(woken(true), none_);
  user(Json::array({{{"account", "physics"}}, {{"account", "physics"}, {"partition", "gpu"}}}), 2);
  EXPECT_EQ(woken(true), itself_);
  EXPECT_EQ(woken(false), none_);
}

TEST_F(GovernanceWakes, OnListsThatChanged) {
  wiring_.woken.clear();
  wiring_.list_changed({accounting_key("ns", "db"), slurm::accounting::List::kQos, false}, {"ns", "db"});
  EXPECT_EQ(wiring_.woken, none_);
  wiring_.list_changed({accounting_key("ns", "db"), slurm::accounting::List::kQos, true}, {"ns", "db"});
  EXPECT_EQ(wiring_.woken, itself_);
}

TEST_F(GovernanceWakes, NoClusterHasTheKeyOfAnAccounting) {
  EXPECT_NE(accounting_key("ns", "db"), cluster_key("ns", "db"));
  EXPECT_NE(accounting_key("ns", "db"), cluster_key("accounting", "ns"));
}

}  // namespace
}  // namespace op::governance
