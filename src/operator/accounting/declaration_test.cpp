#include <gtest/gtest.h>

#include "operator/accounting/observe.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/local_wiring.hpp"

namespace op::accounting {
namespace {

using core::Json;

class AccountingWakes : public ::testing::Test {
 protected:
  template <class Record>
  std::vector<std::string> put(kube::Cache<Record>& cache, Json document) {
    return wiring_.put(cache, std::move(document));
  }
  Json controller(const Json& spec, int generation) {
    return {{"kind", "Controller"}, {"metadata", {{"name", "c"}, {"generation", generation}}}, {"spec", spec}};
  }
  std::vector<std::string> put_conf(const std::string& text, const std::string& offered = "1") {
    const Json owner{
        {"apiVersion", "slinky.slurm.net/v1beta1"}, {"kind", "Controller"}, {"name", "c"}, {"uid", "c"}, {"controller", true}};
    const Json notes{{"slinky.slurm.net/slurm-config-hash", offered}, {"slinky.slurm.net/accepted-config-hash", "1"}};
    return put(caches_.config_maps,
               {{"kind", "ConfigMap"},
                {"metadata", {{"name", "c-config"}, {"annotations", notes}, {"ownerReferences", Json::array({owner})}}},
                {"data", {{"slurm.conf", text}, {"accepted.slurm.conf", "ClusterName=a\n"}}}});
  }

  LocalWiring wiring_;
  AccountingController controller_{wiring_};
  Caches caches_{wiring_};
  const std::vector<std::string> none_, itself_{"accounting ns/db"};
};

TEST_F(AccountingWakes, OnControllersThatNameIt) {
  EXPECT_EQ(put(caches_.controllers, controller({{"accountingRef", {{"name", "db"}}}}, 1)), itself_);
  Json told = controller({{"accountingRef", {{"name", "db"}}}}, 1);
  told["status"]["observedGeneration"] = 1;
  EXPECT_EQ(put(caches_.controllers, told), none_) << "a status alone does not count";
  EXPECT_EQ(put(caches_.controllers, controller(Json::object(), 2)), itself_) << "it is named no more";
  EXPECT_EQ(put(caches_.controllers, controller({{"clusterName", "a"}}, 3)), none_);
}

TEST_F(AccountingWakes, OnWhatTheirSlurmctldHasLoaded) {
  const std::string with = "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=h\n";
  put(caches_.controllers, controller({{"accountingRef", {{"name", "db"}}}}, 1));
  EXPECT_EQ(put_conf("ClusterName=a\n"), itself_);
  EXPECT_EQ(put_conf(with, "2").size(), 2U) << "before and after: a cluster that is offered it counts as joined";
  EXPECT_EQ(put_conf(with).size(), 2U) << "before and after";
  EXPECT_EQ(put_conf(with + "PartitionName=p\n"), none_);
}

TEST_F(AccountingWakes, OnWhoCanAskSlurmdbd) {
  put(caches_.controllers, controller({{"accountingRef", {{"name", "db"}}}}, 1));
  EXPECT_EQ(put(caches_.restapis, {{"kind", "RestApi"},
                                   {"metadata", {{"name", "r"}, {"generation", 1}}},
                                   {"spec", {{"controllerRef", {{"name", "c"}}}}}}),
            itself_);
  const auto of = [](slurm::Snapshot::Health health) {
    auto out = std::make_shared<slurm::Snapshot>();
    out->health = health;
    return out;
  };
  slurm::Change change;
  change.cluster = "ns/c";
  change.before = of(slurm::Snapshot::Health::kNone);
  change.now = of(slurm::Snapshot::Health::kComplete);
  wiring_.woken.clear();
  wiring_.slurm_changed(change, {"ns", "c"});
  EXPECT_EQ(wiring_.woken, itself_);
  change.before = change.now;
  wiring_.woken.clear();
  wiring_.slurm_changed(change, {"ns", "c"});
  EXPECT_EQ(wiring_.woken, none_);
}

TEST_F(AccountingWakes, OnItsPods) {
  const Json labels{{"app.kubernetes.io/name", "slurmdbd"}, {"app.kubernetes.io/instance", "db"}};
  EXPECT_EQ(put(caches_.pods, {{"kind", "Pod"}, {"metadata", {{"name", "db-accounting-0"}, {"labels", labels}}}}), itself_);
}

}  // namespace
}  // namespace op::accounting
