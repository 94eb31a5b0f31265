#include "operator/common/topology.hpp"

#include <gtest/gtest.h>

namespace op {
namespace {

using api::TopologyType;

const api::Topology kTree{TopologyType::kTree, {"zone", "leaf"}, {}};
const api::Topology kBlocks{TopologyType::kBlock, {"zone", "rack"}, {4, 16}};

std::string place(const api::Topology& spec, kube::StringMap labels) {
  kube::ObjectMeta node;
  node.labels = std::move(labels);
  return topology_of(spec, node);
}

TopologyUnits units_of(const api::Topology& spec, const std::vector<std::string>& topologies,
                       const TopologyUnits& before = {}) {
  TopologyUnits out;
  if (spec.type == TopologyType::kTree) out.emplace(kTopologyRoot, "");
  for (const std::string& topology : topologies) add_units(out, spec.type, topology, before);
  return out;
}

TEST(Topology, IsToldByAllLabelsDownToTheLeaf) {
  EXPECT_EQ(place(kTree, {{"zone", "a"}, {"leaf", "1"}}), "default:k8s:k8s/a:k8s/a/1");
  EXPECT_EQ(place(kBlocks, {{"zone", "a"}, {"rack", "1"}}), "default:k8s/a/1");
  EXPECT_EQ(place(kTree, {{"zone", "a"}}), "") << "it lacks a label";
  EXPECT_EQ(place(kTree, {{"zone", "a"}, {"leaf", ""}}), "");
}

TEST(Topology, NamesFitIntoSlurmsLimitAndStayDifferent) {
  const std::string zone(40, 'z'), leaf(40, 'l');
  const std::string one = place(kTree, {{"zone", zone}, {"leaf", leaf + "1"}}),
                    two = place(kTree, {{"zone", zone}, {"leaf", leaf + "2"}});
  EXPECT_NE(one, two);
  EXPECT_EQ(one.size() - one.rfind(':') - 1, 64U);
  EXPECT_TRUE(is_of(kTree, one));
}

TEST(Topology, ATreeIsWrittenInOrderWithTheSameLeafBelowTwoSpines) {
  const TopologyUnits units =
      units_of(kTree, {"default:k8s:k8s/b:k8s/b/1", "default:k8s:k8s/a:k8s/a/2", "default:k8s:k8s/a:k8s/a/1"});
  const std::string text = render_topology(kTree, units);
  EXPECT_EQ(text,
            "# Made from labels of Kubernetes nodes: spec.topology of the Controller.\n"
            "- topology: default\n"
            "  cluster_default: true\n"
            "  tree:\n"
            "    switches:\n"
            "      - switch: \"k8s\"\n"
            "        children: \"k8s/a,k8s/b\"\n"
            "      - switch: \"k8s/a\"\n"
            "        children: \"k8s/a/1,k8s/a/2\"\n"
            "      - switch: \"k8s/a/1\"\n"
            "      - switch: \"k8s/a/2\"\n"
            "      - switch: \"k8s/b\"\n"
            "        children: \"k8s/b/1\"\n"
            "      - switch: \"k8s/b/1\"\n");
  EXPECT_EQ(read_topology(text), units);
}

TEST(Topology, BlocksAreWrittenInOrder) {
  const TopologyUnits units = units_of(kBlocks, {"default:k8s/b/1", "default:k8s/a/1"});
  const std::string text = render_topology(kBlocks, units);
  EXPECT_EQ(text,
            "# Made from labels of Kubernetes nodes: spec.topology of the Controller.\n"
            "- topology: default\n"
            "  cluster_default: true\n"
            "  block:\n"
            "    block_sizes:\n"
            "      - 4\n"
            "      - 16\n"
            "    blocks:\n"
            "      - block: \"k8s/a/1\"\n"
            "      - block: \"k8s/b/1\"\n");
  EXPECT_EQ(read_topology(text), units);
}

TEST(Topology, WhatSlurmNodesNameIsKnownByItsWayOrByTheFileBefore) {
  const TopologyUnits before = units_of(kTree, {"default:k8s:k8s/a:k8s/a/1"});
  const TopologyUnits now = units_of(kTree, {"default:k8s:k8s/b:k8s/b/1", "default:k8s/a/1", "default:mine"}, before);
  EXPECT_EQ(now.at("k8s/a/1"), "k8s/a") << "an annotation names the leaf alone";
  EXPECT_EQ(now.at("k8s/a"), "k8s");
  EXPECT_EQ(now.at("mine"), "k8s");
  for (const char* topology : {"default:k8s:k8s/b:k8s/b/1", "default:k8s/a/1", "default:mine"})
    EXPECT_TRUE(has_place(now, TopologyType::kTree, topology)) << topology;
}

TEST(Topology, WhatSlurmWouldRefuseHasNoPlace) {
  const TopologyUnits tree = units_of(kTree, {"default:k8s:k8s/a:k8s/a/1", "other:x", "default:a,other:b", "default:a[1-2]"});
  for (const char* topology : {"default:k8s:k8s/a", "other:x", "default:a,other:b", "default:a[1-2]", "default:nowhere"})
    EXPECT_FALSE(has_place(tree, TopologyType::kTree, topology)) << topology;
  const TopologyUnits blocks = units_of(kBlocks, {"default:k8s/a/1", "default:k8s:k8s/a:k8s/a/1"});
  EXPECT_TRUE(has_place(blocks, TopologyType::kBlock, "default:k8s/a/1"));
  EXPECT_FALSE(has_place(blocks, TopologyType::kBlock, "default:k8s:k8s/a:k8s/a/1")) << "it is of a tree";
}

TEST(Topology, OnesFromLabelsAreToldByTheirRoot) {
  for (const char* topology : {"default:k8s:k8s/a", "default:k8s/a/1", "default:k8s"})
    EXPECT_TRUE(is_from_labels(topology)) << topology;
  for (const char* topology : {"", "default:", "default:k8s-2", "default:mine", "default:mine:k8s/a", "other:k8s/a"})
    EXPECT_FALSE(is_from_labels(topology)) << topology;
}

TEST(Topology, OnesOfAnotherSpecAreTold) {
  EXPECT_TRUE(is_of(kTree, "default:k8s:k8s/a:k8s/a/1"));
  EXPECT_FALSE(is_of(kTree, "default:k8s:k8s/a")) << "of fewer labels";
  EXPECT_FALSE(is_of(kTree, "default:k8s/a/1"));
  EXPECT_TRUE(is_of(kBlocks, "default:k8s/a/1"));
  EXPECT_FALSE(is_of(kBlocks, "default:k8s:k8s/a:k8s/a/1"));
}

}  // namespace
}  // namespace op
