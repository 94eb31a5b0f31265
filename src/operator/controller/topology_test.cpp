#include "operator/controller/topology.hpp"

#include <gtest/gtest.h>

#include "operator/common/slinky.hpp"
#include "operator/controller/rollout.hpp"
#include "operator/controller/testing/observed.hpp"
#include "slinky/config_map.hpp"

namespace op::controller {
namespace {

using core::Json;

class TopologyFileOf : public ::testing::Test {
 protected:
  TopologyFileOf() { observed_.restapis = {{"x", false}}; }

  /// Simulates an answer of Slurm with this node.
  void answer(const char* node, const char* topology, bool knows_places = true) {
    auto snapshot = std::make_shared<slurm::Snapshot>();
    snapshot->health = slurm::Snapshot::Health::kComplete;
    snapshot->capabilities.topology_update = knows_places;
    auto record = std::make_shared<slurm::Node>();
    record->name = node;
    record->topology = topology;
    snapshot->nodes.insert_or_assign(node, record);
    observed_.snapshot = snapshot;
  }
  std::string reason() {
    const TopologyFile file = topology_file(observed_, state_);
    return file.warnings.empty() ? "" : file.warnings.front().reason;
  }
  bool has(const char* unit) {
    return topology_file(observed_, state_).text.find('"' + std::string(unit) + '"') != std::string::npos;
  }

  Observed observed_ =
      testing::observed_of({{"topology", {{"type", "Block"}, {"nodeLabels", {"rack"}}, {"blockSizes", {2, 4}}}}});
  ConfigState state_;
};

TEST_F(TopologyFileOf, BlocksIsThereOnceThereIsOne) {
  EXPECT_EQ(reason(), "TopologyEmpty");
  EXPECT_EQ(topology_file(observed_, state_).text, "");
  observed_.places = {"default:k8s/1"};
  EXPECT_EQ(reason(), "");
  EXPECT_TRUE(has("k8s/1"));
}

TEST_F(TopologyFileOf, WhatSlurmNodesNameStays) {
  observed_.places = {"default:k8s/1"};
  answer("cpu-0", "default:k8s/2");
  EXPECT_TRUE(has("k8s/1") && has("k8s/2"));
  EXPECT_TRUE(topology_file(observed_, state_).may_change) << "cpu-0 may get another place";
  answer("cpu-0", "default:k8s/1");
  EXPECT_FALSE(has("k8s/2"));
  EXPECT_FALSE(topology_file(observed_, state_).may_change);
  answer("cpu-0", "default:k8s:k8s/2");
  EXPECT_EQ(reason(), "TopologyWaits") << "it is of a tree";
  EXPECT_EQ(topology_file(observed_, state_).text, "");
}

TEST_F(TopologyFileOf, NothingChangesByWhatIsNotKnown) {
  state_.offered = {{"slurm.conf", "x"}, {std::string(kTopologyYaml), "before"}};
  observed_.places = {"default:k8s/1"};
  EXPECT_EQ(topology_file(observed_, state_).text, "before") << "Slurm does not answer";
  answer("cpu-0", "");
  EXPECT_NE(topology_file(observed_, state_).text, "before");
  observed_.no_kube_nodes = true;
  EXPECT_EQ(topology_file(observed_, state_).text, "before");
  answer("cpu-0", "", false);
  EXPECT_EQ(topology_file(observed_, state_).text, "before") << "slurmrestd's release is not slurmctld's";
  EXPECT_EQ(reason(), "TopologyNotSupported");
  observed_.restapis.clear();
  EXPECT_EQ(topology_file(observed_, state_).text, "before");
  EXPECT_EQ(reason(), "TopologyWaits");
  EXPECT_TRUE(topology_file(observed_, state_).warnings.front().wrong()) << "only people can mend it";
  observed_.reads_kube_nodes = false;
  EXPECT_EQ(topology_file(observed_, state_).text, "before");
  EXPECT_EQ(reason(), "KubernetesNodesNotReadable");
}

TEST_F(TopologyFileOf, WithoutTheFieldStaysWhileNodesNeedIt) {
  observed_.controller.spec.topology.reset();
  answer("cpu-0", "default:k8s/1");
  EXPECT_EQ(topology_file(observed_, state_).text, "") << "there was none";
  state_.offered = {{"slurm.conf", "x"}, {std::string(kTopologyYaml), "before"}};
  EXPECT_EQ(topology_file(observed_, state_).text, "before");
  EXPECT_EQ(reason(), "TopologyWaits");
  EXPECT_TRUE(topology_file(observed_, state_).may_change);
  answer("cpu-0", "", false);
  EXPECT_EQ(topology_file(observed_, state_).text, "before") << "nobody tells of places";
  observed_.snapshot.reset();
  EXPECT_EQ(topology_file(observed_, state_).text, "before") << "Slurm does not answer";
  answer("cpu-0", "default:mine");
  EXPECT_EQ(topology_file(observed_, state_).text, "");
  EXPECT_EQ(reason(), "");
}

TEST_F(TopologyFileOf, DoesNotTakeThePlaceOfOneThatNodesNeed) {
  observed_.places = {"default:k8s/1"};
  answer("cpu-0", "default:a:b,default:c");
  EXPECT_FALSE(topology_file(observed_, state_).keeps_pod) << "without a file all of that is taken";
  answer("cpu-0", "default:a,other:b");
  EXPECT_TRUE(topology_file(observed_, state_).keeps_pod);
  EXPECT_FALSE(topology_file(observed_, state_).problems.empty());
  state_.offered = {{"slurm.conf", "x"}, {std::string(kTopologyYaml), "before"}};
  EXPECT_FALSE(topology_file(observed_, state_).keeps_pod) << "slurmctld runs with ours";
}

TEST_F(TopologyFileOf, AnImageThatIsTooOldHasNone) {
  observed_.controller.spec.slurmctld = {{"image", "slurmctld:24.11"}};
  observed_.places = {"default:k8s/1"};
  EXPECT_EQ(reason(), "TopologyNotSupported");
  EXPECT_EQ(topology_file(observed_, state_).text, "");
}

}  // namespace
}  // namespace op::controller
