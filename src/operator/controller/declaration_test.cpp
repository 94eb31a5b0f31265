#include <gtest/gtest.h>

#include <functional>

#include "cluster/local_wiring.hpp"
#include "operator/controller/observe.hpp"

namespace op::controller {
namespace {

using core::Json;

class ControllerWakes : public ::testing::Test {
 protected:
  template <class Record>
  void put(kube::Cache<Record>& cache, Json document) {
    document["metadata"]["namespace"] = "ns";
    document["metadata"]["resourceVersion"] = std::to_string(++version_);
    wiring_.woken.clear();
    cache.upsert(kube::record_from_json<Record>(document).value());
  }
  void put_worker(const char* nodeset) {
    put(caches_.pods, {{"kind", "Pod"},
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
  int version_ = 0;
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

TEST_F(ControllerWakes, OnWhatSlurmSaysOfNobodysNodes) {
  const auto woken = [&](const std::function<void(slurm::Change&)>& what) {
    slurm::Change change;
    change.cluster = "ns/x";
    change.before = change.now = std::make_shared<slurm::Snapshot>();
    what(change);
    wiring_.woken.clear();
    wiring_.slurm_changed(change);
    return wiring_.woken;
  };
  EXPECT_EQ(woken([](slurm::Change&) {}), none_);
  EXPECT_EQ(woken([](slurm::Change& change) { change.health = true; }), itself_);
  EXPECT_EQ(woken([](slurm::Change& change) { change.partitions = true; }), itself_);
  EXPECT_EQ(woken([](slurm::Change& change) { change.nodes = {"left-0"}; }), itself_);
}

}  // namespace
}  // namespace op::controller
