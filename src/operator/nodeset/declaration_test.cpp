#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "api/well_known.hpp"
#include "operator/common/slinky.hpp"
#include "operator/nodeset/observe.hpp"
#include "slinky/local_wiring.hpp"

namespace op::nodeset {
namespace {

using core::Json;

Json nodeset(const char* name, const char* controller) {
  return {{"kind", "NodeSet"},
          {"metadata", {{"namespace", "ns"}, {"name", name}, {"uid", name}}},
          {"spec", {{"controllerRef", {{"name", controller}}}}}};
}

slurm::SnapshotPtr snapshot(std::vector<slurm::Node> nodes, const std::string& partition = "") {
  auto out = std::make_shared<slurm::Snapshot>();
  for (slurm::Node& node : nodes) out->nodes.insert_or_assign(node.name, std::make_shared<slurm::Node>(node));
  if (!partition.empty()) out->partitions.insert_or_assign(partition, slurm::Partition{partition, "", "UP"});
  return out;
}

slurm::Node node(const std::string& name, std::vector<std::string> features) {
  slurm::Node out;
  out.name = name;
  out.features = std::move(features);
  return out;
}

class NodeSetWakes : public ::testing::Test {
 protected:
  NodeSetWakes() {
    for (const Json& object : {nodeset("cpu", "x"), nodeset("gpu", "x"), nodeset("other", "y")}) {
      caches_.nodesets.upsert(kube::record_from_json<kube::Object>(object).value());
    }
    wiring_.woken.clear();
  }

  std::vector<std::string> woken_by_nodes(slurm::SnapshotPtr before, slurm::SnapshotPtr now) {
    return woken({"ns/x", std::move(before), std::move(now), {"cpu-0"}, {}, false, false});
  }
  std::vector<std::string> woken_by_partitions(slurm::SnapshotPtr before, slurm::SnapshotPtr now) {
    return woken({"ns/x", std::move(before), std::move(now), {}, {}, true, false});
  }
  std::vector<std::string> woken(const slurm::Change& change) {
    wiring_.woken.clear();
    wiring_.slurm_changed(change, {"ns", "x"});
    return wiring_.woken;
  }

  LocalWiring wiring_;
  NodeSetController controller_{wiring_};
  Caches caches_{wiring_};
  const std::vector<std::string> none_, cpu_{"nodeset ns/cpu"}, all_{"nodeset ns/cpu", "nodeset ns/gpu"};
};

TEST_F(NodeSetWakes, OnWhatSlurmSaysOfItsNodes) {
  EXPECT_EQ(woken_by_nodes(snapshot({}), snapshot({node("cpu-0", {"a", "cpu"})})), cpu_);
  EXPECT_EQ(woken_by_nodes(snapshot({node("cpu-0", {"cpu"})}), snapshot({})), cpu_);
  EXPECT_EQ(woken_by_nodes(snapshot({}), snapshot({node("cpu-0", {})})), all_) << "it may be anybody's";
}

TEST_F(NodeSetWakes, OnItsPartitionAndOnTheHealthOfItsCluster) {
  EXPECT_EQ(woken_by_partitions(snapshot({}, "cpu"), snapshot({})), cpu_);
  EXPECT_EQ(woken_by_partitions(snapshot({}), snapshot({}, "foreign")), none_);
  EXPECT_EQ(woken({"ns/x", snapshot({}), snapshot({}), {}, {}, false, true}), all_);
  EXPECT_EQ(woken({"ns/x", snapshot({}), snapshot({}), {}, {}, false, false}), none_);
}

TEST_F(NodeSetWakes, OnTheKubernetesNodesOfItsPods) {
  const Json owner{
      {"apiVersion", "slinky.slurm.net/v1beta1"}, {"kind", "NodeSet"}, {"name", "cpu"}, {"uid", "cpu"}, {"controller", true}};
  caches_.pods.upsert(kube::record_from_json<kube::PodRecord>(
                          {{"kind", "Pod"},
                           {"metadata", {{"namespace", "ns"}, {"name", "cpu-0"}, {"ownerReferences", Json::array({owner})}}},
                           {"spec", {{"nodeName", "host"}}}})
                          .value());
  wiring_.woken.clear();
  const auto hosted = [&](const char* name, const char* version, bool unschedulable) {
    caches_.nodes.upsert(
        kube::record_from_json<kube::NodeRecord>({{"kind", "Node"},
                                                  {"metadata", {{"name", name}, {"uid", name}, {"resourceVersion", version}}},
                                                  {"spec", {{"unschedulable", unschedulable}}}})
            .value());
    return std::exchange(wiring_.woken, {});
  };
  EXPECT_EQ(hosted("host", "1", false), cpu_);
  EXPECT_EQ(hosted("host", "2", false), none_) << "a kubelet reports every few seconds";
  EXPECT_EQ(hosted("host", "3", true), (std::vector<std::string>{"nodeset ns/cpu", "nodeset ns/cpu"}));
  EXPECT_EQ(hosted("another", "4", true), none_);
}

/// A worker has to be created within a second after its Kubernetes node matches.
TEST_F(NodeSetWakes, OnAnyKubernetesNodeWhereWorkersAreBoundToThem) {
  Json daemons = nodeset("all", "x");
  daemons["spec"]["scalingMode"] = "DaemonSet";
  caches_.nodesets.upsert(kube::record_from_json<kube::Object>(daemons).value());
  wiring_.woken.clear();
  int version = 0;
  const auto host = [&](const Json& change) {
    Json node{{"kind", "Node"}, {"metadata", {{"name", "host"}, {"uid", "host"}}}};
    node.merge_patch(change);
    node["metadata"]["resourceVersion"] = std::to_string(++version);
    caches_.nodes.upsert(kube::record_from_json<kube::NodeRecord>(node).value());
    // A change of an object wakes the NodeSet twice: for the old and for the new version of the object.
    std::vector<std::string> out = std::exchange(wiring_.woken, {});
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  };
  const std::vector<std::string> woken{"nodeset ns/all"};
  const Json labelled{{"metadata", {{"labels", {{"a", "b"}}}}}};
  EXPECT_EQ(host(Json::object()), woken) << "it is new";
  EXPECT_EQ(host(Json::object()), none_) << "a kubelet reports every few seconds";
  EXPECT_EQ(host(labelled), woken);
  EXPECT_EQ(host({{"metadata", {{"labels", {{"a", "b"}}}, {"annotations", {{"other", "x"}}}}}}), none_);
  EXPECT_EQ(host(labelled), none_);
  EXPECT_EQ(host({{"metadata", {{"labels", {{"a", "b"}}}, {"annotations", {{api::kAnnotationNodeHostnameOverride, "x"}}}}}}),
            woken);
  EXPECT_EQ(host(labelled), woken);
  Json tainted = labelled;
  tainted["spec"]["taints"] = Json::array({{{"key", "k"}, {"effect", "NoSchedule"}}});
  EXPECT_EQ(host(tainted), woken);
  caches_.nodes.erase({"", "host"});
  EXPECT_EQ(wiring_.woken, woken) << "it is gone";
}

}  // namespace
}  // namespace op::nodeset
