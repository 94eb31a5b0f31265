#include <gtest/gtest.h>

#include <functional>

#include "operator/common/slinky.hpp"
#include "operator/controller/observe.hpp"
#include "slinky/local_wiring.hpp"

namespace op::controller {
namespace {

using core::Json;

class ControllerWakes : public ::testing::Test {
 protected:
  template <class Record>
  void put(kube::Cache<Record>& cache, Json document) {
    wiring_.put(cache, std::move(document));
  }
  void put_worker(const char* nodeset, const Json& spec = Json::object()) {
    put(caches_.pods, {{"kind", "Pod"},
                       {"spec", spec},
                       {"metadata",
                        {{"name", "w"},
                         {"uid", "w"},
                         {"labels",
                          {{"app.kubernetes.io/name", "slurmd"},
                           {"app.kubernetes.io/instance", nodeset},
                           {"slinky.slurm.net/cluster", "x"}}}}}});
  }

  LocalWiring wiring_;
  ControllerController controller_{wiring_};
  Caches caches_{wiring_};
  const std::vector<std::string> none_, itself_{"controller ns/x"};
};

TEST_F(ControllerWakes, OnTheLastWorkers) {
  put(caches_.nodesets, {{"kind", "NodeSet"}, {"metadata", {{"name", "cpu"}}}, {"spec", {{"controllerRef", {{"name", "x"}}}}}});
  EXPECT_EQ(wiring_.woken, itself_);
  put_worker("cpu");
  EXPECT_EQ(wiring_.woken, none_) << "its NodeSet is there";
  put_worker("gone");
  wiring_.woken.clear();
  caches_.pods.erase({"ns", "w"});
  EXPECT_EQ(wiring_.woken, itself_) << "it kept the partition of a NodeSet that is gone";
  put(caches_.controllers,
      {{"kind", "Controller"}, {"metadata", {{"name", "x"}, {"deletionTimestamp", "2026-01-01T00:00:00Z"}}}});
  put_worker("cpu");
  EXPECT_EQ(wiring_.woken, itself_) << "the Controller waits for it";
}

TEST_F(ControllerWakes, OnTheAccountingThatItNames) {
  put(caches_.controllers,
      {{"kind", "Controller"}, {"metadata", {{"name", "x"}}}, {"spec", {{"accountingRef", {{"name", "db"}}}}}});
  const auto accounting = [&](int generation, const char* serving, const char* reason) {
    const Json told{{"type", "Serving"}, {"status", serving}, {"reason", reason}};
    put(caches_.accountings, {{"kind", "Accounting"},
                              {"metadata", {{"name", "db"}, {"generation", generation}}},
                              {"status", {{"conditions", Json::array({told})}}}});
    return wiring_.woken;
  };
  const auto slurmdbd = [&](const char* image, int replicas) {
    const Json owner{
        {"apiVersion", "slinky.slurm.net/v1beta1"}, {"kind", "Accounting"}, {"name", "db"}, {"uid", "d"}, {"controller", true}};
    const Json container{{"name", "slurmdbd"}, {"image", image}};
    put(caches_.stateful_sets,
        {{"kind", "StatefulSet"},
         {"metadata", {{"name", "db-accounting"}, {"ownerReferences", Json::array({owner})}}},
         {"spec", {{"replicas", replicas}, {"template", {{"spec", {{"containers", Json::array({container})}}}}}}}});
    return wiring_.woken;
  };
  const std::vector<std::string> for_both{"controller ns/x", "controller ns/x"};  // For the old and the new object.
  EXPECT_EQ(accounting(1, "False", "Waiting"), itself_);
  EXPECT_EQ(accounting(1, "True", "Serving"), for_both);
  EXPECT_EQ(accounting(1, "True", "Again"), none_);
  EXPECT_EQ(accounting(2, "True", "Again"), for_both);
  EXPECT_EQ(slurmdbd("a:24.11", 1), itself_);
  EXPECT_EQ(slurmdbd("a:24.11", 0), none_);
  EXPECT_EQ(slurmdbd("a:26.05", 0), for_both);
}

TEST_F(ControllerWakes, WhenAWorkerThatIsProbedByHttpGoes) {
  put(caches_.nodesets, {{"kind", "NodeSet"}, {"metadata", {{"name", "cpu"}}}, {"spec", {{"controllerRef", {{"name", "x"}}}}}});
  const Json slurmd{{"name", "slurmd"}, {"livenessProbe", {{"httpGet", {{"port", 6818}}}}}};
  put_worker("cpu", {{"containers", Json::array({slurmd})}});
  wiring_.woken.clear();
  caches_.pods.erase({"ns", "w"});
  EXPECT_EQ(wiring_.woken, itself_);
}

TEST_F(ControllerWakes, OnWhatSlurmSaysOfNobodysNodes) {
  const auto woken = [&](const std::function<void(slurm::Change&)>& what) {
    slurm::Change change;
    change.cluster = "ns/x";
    change.before = change.now = std::make_shared<slurm::Snapshot>();
    what(change);
    wiring_.woken.clear();
    wiring_.slurm_changed(change, {"ns", "x"});
    return wiring_.woken;
  };
  EXPECT_EQ(woken([](slurm::Change&) {}), none_);
  EXPECT_EQ(woken([](slurm::Change& change) { change.health = true; }), itself_);
  EXPECT_EQ(woken([](slurm::Change& change) { change.partitions = true; }), itself_);
  EXPECT_EQ(woken([](slurm::Change& change) { change.nodes = {"left-0"}; }), itself_);
}

TEST_F(ControllerWakes, OnLabelsOfKubernetesNodesWhereTheyAreAskedFor) {
  const auto node = [](const char* zone) {
    return Json{{"kind", "Node"}, {"metadata", {{"name", "n"}, {"labels", {{"zone", zone}}}}}};
  };
  put(caches_.controllers, {{"kind", "Controller"}, {"metadata", {{"name", "x"}}}, {"spec", Json::object()}});
  put(caches_.nodes, node("a"));
  EXPECT_EQ(wiring_.woken, none_);
  put(caches_.controllers,
      {{"kind", "Controller"}, {"metadata", {{"name", "x"}}}, {"spec", {{"topology", {{"nodeLabels", {"zone"}}}}}}});
  put(caches_.nodes, node("a"));
  EXPECT_EQ(wiring_.woken, none_) << "nothing has changed";
  put(caches_.nodes, node("b"));
  EXPECT_NE(wiring_.woken, none_);
  put(caches_.controllers, {{"kind", "Controller"}, {"metadata", {{"name", "x"}}}, {"spec", {{"topology", nullptr}}}});
  put(caches_.nodes, node("c"));
  EXPECT_EQ(wiring_.woken, none_) << "null is none";
  put(caches_.controllers, {{"kind", "Controller"},
                            {"metadata", {{"name", "x"}}},
                            {"spec", {{"external", true}, {"topology", {{"nodeLabels", {"zone"}}}}}}});
  put(caches_.nodes, node("d"));
  EXPECT_EQ(wiring_.woken, none_) << "the operator writes no topology.yaml for an external slurmctld";
}

TEST_F(ControllerWakes, OnWorkersThatMayBeGivenPlaces) {
  const auto worker = [](const char* since) {
    return Json{
        {"kind", "Pod"},
        {"metadata",
         {{"name", "w"},
          {"uid", "w"},
          {"labels",
           {{"app.kubernetes.io/name", "slurmd"}, {"app.kubernetes.io/instance", "cpu"}, {"slinky.slurm.net/cluster", "x"}}}}},
        {"status",
         {{"conditions", Json::array({{{"type", "SlurmNodeRegistered"},
                                       {"status", "True"},
                                       {"message", std::string("Slurm has had its node since ") + since}}})}}}};
  };
  const auto registers = [&](bool appears) {
    slurm::Change change;
    change.cluster = "ns/x";
    auto before = std::make_shared<slurm::Snapshot>(), now = std::make_shared<slurm::Snapshot>();
    auto node = std::make_shared<slurm::Node>();
    node->name = "cpu-0";
    node->features = {"cpu"};
    if (!appears) before->nodes.emplace("cpu-0", node);
    now->nodes.emplace("cpu-0", node);
    change.before = std::move(before);
    change.now = std::move(now);
    change.nodes = {"cpu-0"};
    wiring_.woken.clear();
    wiring_.slurm_changed(change, {"ns", "x"});
    return wiring_.woken;
  };
  put(caches_.nodesets, {{"kind", "NodeSet"}, {"metadata", {{"name", "cpu"}}}, {"spec", {{"controllerRef", {{"name", "x"}}}}}});
  put(caches_.pods, worker("2026-01-01T00:00:00Z"));
  EXPECT_EQ(registers(true), none_);
  put(caches_.pods, worker("2026-01-01T00:00:01Z"));
  EXPECT_EQ(wiring_.woken, none_) << "no file names nodes";
  put(caches_.config_maps,
      {{"kind", "ConfigMap"},
       {"metadata", {{"name", "x-config"}, {"annotations", {{"slinky.slurm.net/places-due", "2026-01-01T00:00:00Z"}}}}}});
  put(caches_.pods, worker("2026-01-01T00:00:01Z"));
  EXPECT_EQ(wiring_.woken, none_) << "nothing has changed";
  put(caches_.pods, worker("2026-01-01T00:00:02Z"));
  EXPECT_NE(wiring_.woken, none_);
  EXPECT_EQ(registers(true), itself_);
  EXPECT_EQ(registers(false), none_) << "Slurm had it before";
}

}  // namespace
}  // namespace op::controller
