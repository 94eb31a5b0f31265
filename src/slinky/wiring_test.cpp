#include "slinky/wiring.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "kube/testing/client_fixture.hpp"
#include "slinky/local_wiring.hpp"
#include "slinky/names.hpp"

namespace slinky {
namespace {

using core::Json;

class Some final : public run::Controller {
 public:
  [[nodiscard]] std::string name() const override { return "some"; }
  [[nodiscard]] std::shared_ptr<const void> observe(const kube::Key&, run::Recorder&, const plan::Context&) override {
    return nullptr;
  }
  [[nodiscard]] plan::Plan plan(const void*) const override { return {}; }
};

Json document(const char* kind, const char* name, const char* app = "", int generation = 1) {
  Json out{{"kind", kind}, {"metadata", {{"namespace", "ns"}, {"name", name}, {"uid", name}, {"generation", generation}}}};
  if (*app != '\0') out["metadata"]["labels"]["app.kubernetes.io/name"] = app;
  return out;
}

kube::ObjectPtr record(const Json& json) {
  return kube::record_from_json<kube::Object>(json).value();
}

TEST(Wiring, WhoAsksForTheSameCacheSharesIt) {
  LocalWiring wiring;
  kube::Cache<kube::Object>& restapis = wiring.cache(caches::kRestApis);
  EXPECT_EQ(&wiring.cache(caches::kRestApis), &restapis);
  EXPECT_NE(&wiring.cache(caches::kNodeSets), &restapis);
  Json restapi = document("RestApi", "r");
  restapi["spec"]["controllerRef"]["name"] = "x";
  restapis.upsert(record(restapi));
  EXPECT_EQ(restapis.by_index(kIndexController, "ns/x").size(), 1U);
}

TEST(Wiring, ACacheShowsWhatItSelects) {
  LocalWiring wiring;
  kube::Cache<kube::Object>& services = wiring.cache(caches::kServices);
  EXPECT_FALSE(services.synced());
  const Json own = document("Service", "a", "slurmd");
  const Json foreign = document("Service", "b", "nginx");
  const Json other = document("ConfigMap", "c", "slurmd");
  wiring.show({&own, &foreign, &other}, "1");
  ASSERT_EQ(services.all().size(), 1U);
  EXPECT_EQ(services.all().front()->meta.name, "a");
  EXPECT_TRUE(services.synced());
}

TEST(Wiring, AChangeWakesTheKeysOfTheOldAndOfTheNewRecord) {
  LocalWiring wiring;
  const Some some;
  kube::Cache<kube::Object>& cache = wiring.cache(caches::kNodeSets);
  wiring.wakes<kube::Object>(
      some, cache,
      [](const kube::Object& object) {
        return Keys{{object.meta.ns, std::to_string(object.meta.generation)}, {"elsewhere", "x"}};
      },
      intent_changed);
  wiring.elsewhere = {"elsewhere"};
  cache.upsert(record(document("NodeSet", "n")));
  EXPECT_EQ(std::exchange(wiring.woken, {}), std::vector<std::string>{"some ns/1"});
  Json relabelled = document("NodeSet", "n", "x");
  relabelled["metadata"]["resourceVersion"] = "2";
  cache.upsert(record(relabelled));
  EXPECT_TRUE(wiring.woken.empty()) << "the filter lets it not through";
  Json changed = document("NodeSet", "n", "x", 2);
  changed["metadata"]["resourceVersion"] = "3";
  cache.upsert(record(changed));
  EXPECT_EQ(std::exchange(wiring.woken, {}), (std::vector<std::string>{"some ns/1", "some ns/2"}));
  cache.erase({"ns", "n"});
  EXPECT_EQ(wiring.woken, std::vector<std::string>{"some ns/2"});
}

TEST(Wiring, KeysOfTheWholeClusterAreWokenWhateverNamespacesThereAre) {
  LocalWiring wiring;
  const Some some;
  kube::Cache<kube::NodeRecord>& nodes = wiring.cache(caches::kNodes);
  wiring.wakes<kube::NodeRecord>(some, nodes, [](const kube::NodeRecord& node) { return Keys{node.meta.key()}; });
  wiring.elsewhere = {"", "ns"};
  Json node = document("Node", "n");
  node["metadata"].erase("namespace");
  nodes.upsert(kube::record_from_json<kube::NodeRecord>(node).value());
  EXPECT_EQ(wiring.woken, std::vector<std::string>{"some n"});
}

TEST(Wiring, TwoRecordsOfOneKindAreTwoCaches) {
  LocalWiring wiring;
  static const CacheOf<kube::Object> objects{.resource = kube::resources::kPod};
  static const CacheOf<kube::PodRecord> pods{.resource = kube::resources::kPod, .label_selector = "a=b,c"};
  static const CacheOf<kube::PodRecord> all{.resource = kube::resources::kPod};
  kube::Cache<kube::Object>& documents = wiring.cache(objects);
  kube::Cache<kube::PodRecord>& records = wiring.cache(pods);
  kube::Cache<kube::PodRecord>& every = wiring.cache(all);
  Json selected = document("Pod", "a");
  selected["metadata"]["labels"] = {{"a", "b"}, {"c", ""}};
  const Json other = document("Pod", "b");
  wiring.show({&selected, &other}, "1");
  EXPECT_EQ(documents.all().size(), 2U);
  EXPECT_EQ(every.all().size(), 2U);
  ASSERT_EQ(records.all().size(), 1U);
  EXPECT_EQ(records.all().front()->meta.name, "a");
}

TEST(Wiring, ACacheMayBeReadAndChildrenMayBeDeleted) {
  LocalWiring wiring;
  wiring.cache(caches::kTokens);
  wiring.makes(kube::resources::kDeployment);
  EXPECT_EQ(wiring.rights.rules(), Json::parse(R"([
    {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list", "watch", "create", "patch", "delete"]},
    {"apiGroups": ["slinky.slurm.net"], "resources": ["tokens"], "verbs": ["get", "list", "watch"]}])"));
  LocalWiring another;
  another.reconciles(resources::kToken);
  EXPECT_EQ(another.rights.rules(), Json::parse(R"([
    {"apiGroups": ["slinky.slurm.net"], "resources": ["tokens"], "verbs": ["get", "list", "watch", "patch"]},
    {"apiGroups": ["slinky.slurm.net"], "resources": ["tokens/status"], "verbs": ["get", "patch"]},
    {"apiGroups": ["slinky.slurm.net"], "resources": ["tokens/finalizers"], "verbs": ["update"]}])"));
}

class ManagerWiringTest : public ::testing::Test {
 protected:
  std::vector<std::string> lists(std::vector<std::string> namespaces) {
    kube::ClientFixture fake;
    kube::Manager manager{fake.loop, fake.random, fake.log, fake.client};
    slurm::Clusters clusters{fake.loop, fake.random, fake.log,
                             [](const slurm::Endpoint&) { return std::make_unique<kube::FakeTransport>(); }};
    ManagerWiring wiring(manager, clusters, std::move(namespaces));
    wiring.cache(caches::kClaims);
    wiring.cache(caches::kNodes);
    manager.start();
    fake.loop.run_ready();
    std::vector<std::string> out;
    for (const auto& opened : fake.api.streams) out.push_back(opened.request.target.substr(0, opened.request.target.find('?')));
    return out;
  }
};

TEST_F(ManagerWiringTest, OfOneNamespaceOnlyThatIsRead) {
  EXPECT_EQ(lists({"a"}), (std::vector<std::string>{"/api/v1/namespaces/a/persistentvolumeclaims", "/api/v1/nodes"}));
  EXPECT_EQ(lists({"a", "b"}), (std::vector<std::string>{"/api/v1/nodes", "/api/v1/persistentvolumeclaims"}));
  EXPECT_EQ(lists({}), (std::vector<std::string>{"/api/v1/nodes", "/api/v1/persistentvolumeclaims"}));
}

}  // namespace
}  // namespace slinky
