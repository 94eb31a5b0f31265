#include "slinky/accounting_connections.hpp"

#include <gtest/gtest.h>

#include "core/testing/manual_loop.hpp"
#include "kube/cache/record.hpp"
#include "kube/testing/client_fixture.hpp"
#include "slinky/local_wiring.hpp"
#include "slinky/names.hpp"

namespace slinky {
namespace {

using core::Json;
using Over = std::vector<slurm::ClusterKey>;

class AccountingConnectionsTest : public ::testing::Test, protected kube::ClientFixture {
 protected:
  AccountingConnectionsTest() { connections.start(); }

  void put(kube::Cache<kube::Object>& cache, const std::string& kind, const std::string& name, const Json& spec) {
    wiring.put(cache, {{"kind", kind}, {"metadata", {{"name", name}}}, {"spec", spec}});
    loop.run_ready();
  }
  /// Makes the slurm.conf of a Controller name the slurmdbd at `host`. "": the slurm.conf names no slurmdbd.
  void put_conf(const std::string& controller, const std::string& host) {
    const std::string text =
        host.empty() ? "" : "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=" + host + "\n";
    Json owner{{"apiVersion", "slinky.slurm.net/v1beta1"}, {"kind", "Controller"}, {"name", controller}, {"uid", controller}};
    owner["controller"] = true;
    wiring.put(config_maps, {{"kind", "ConfigMap"},
                             {"metadata", {{"name", config_map_name(controller)}, {"ownerReferences", Json::array({owner})}}},
                             {"data", {{"slurm.conf", text}}}});
    loop.run_ready();
  }
  void add_accounting() { put(accountings, "Accounting", "db", Json::object()); }
  void add_qos() { put(qos, "SlurmQos", "gpu", ref); }
  [[nodiscard]] Over asked() const { return clusters.clusters_of(accounting_key("ns", "db")); }

  slurm::Clusters clusters{loop, random, log, [](const slurm::Endpoint&) { return nullptr; }};
  LocalWiring wiring;
  kube::Cache<kube::Object>& accountings = wiring.cache(caches::kAccountings);
  kube::Cache<kube::Object>& controllers = wiring.cache(caches::kControllers);
  kube::Cache<kube::Object>& config_maps = wiring.cache(caches::kConfigMaps);
  kube::Cache<kube::Object>& qos = wiring.cache(caches::kSlurmQos);
  const Json ref{{"accountingRef", {{"name", "db"}}}};
  const std::string slurmdbd = "db-accounting.ns";
  AccountingConnections connections{loop, clusters, wiring, [] {}};
};

TEST_F(AccountingConnectionsTest, AsksAllClustersThatHaveJoined) {
  add_accounting();
  put(controllers, "Controller", "a", ref);
  put(controllers, "Controller", "b", ref);
  put_conf("a", slurmdbd);
  EXPECT_EQ(clusters.lists(accounting_key("ns", "db")), nullptr) << "no resource needs it";
  add_qos();
  EXPECT_EQ(asked(), (Over{"ns/a"}));
  put_conf("b", "elsewhere");
  EXPECT_EQ(asked(), (Over{"ns/a"})) << "it has joined another slurmdbd";
  put_conf("b", slurmdbd);
  EXPECT_EQ(asked(), (Over{"ns/a", "ns/b"}));
  put_conf("a", "");
  EXPECT_EQ(asked(), (Over{"ns/b"})) << "it has left";
}

TEST_F(AccountingConnectionsTest, BelievesAnExternalSlurmctld) {
  add_accounting();
  add_qos();
  EXPECT_EQ(asked(), Over{});
  Json spec = ref;
  spec["external"] = true;
  put(controllers, "Controller", "a", spec);
  EXPECT_EQ(asked(), (Over{"ns/a"}));
}

TEST_F(AccountingConnectionsTest, OtherNamespacesAreNotAsked) {
  wiring.elsewhere = {"ns"};
  add_accounting();
  put(controllers, "Controller", "a", ref);
  put_conf("a", slurmdbd);
  add_qos();
  EXPECT_EQ(clusters.lists(accounting_key("ns", "db")), nullptr);
}

}  // namespace
}  // namespace slinky
