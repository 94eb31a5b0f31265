#include "operator/controller/named_nodes.hpp"

#include <gtest/gtest.h>

namespace op::controller {
namespace {

using Lists = std::vector<std::string>;

TEST(NodesOfYaml, AreThoseOfEachTopology) {
  const auto found = nodes_of_yaml(
      "---\n"
      "- topology: fabric\n"
      "  cluster_default: true\n"
      "  tree:\n"
      "    switches:\n"
      "      - switch: root\n"
      "        children: s[1-2]\n"
      "      - switch: s1\n"
      "        nodes: cpu-[0-2]\n"
      "      - {switch: s2, nodes: \"gpu-0,gpu-1\"}\n"
      "- topology: blocks\n"
      "  block:\n"
      "    block_sizes: [4, 16]\n"
      "    blocks:\n"
      "      - block: b1\n"
      "        nodes:\n"
      "          - mem-0\n"
      "          - mem-1\n"
      "      - block: nodes\n"
      "        nodes:\n");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->lists, (Lists{"cpu-[0-2]", "gpu-0,gpu-1", "mem-0", "mem-1"}));
  EXPECT_FALSE(found->all);
  const auto flat = nodes_of_yaml("- topology: a\n  flat: true\n- topology: b\n  flat: false\n");
  ASSERT_TRUE(flat);
  EXPECT_TRUE(flat->all);
  EXPECT_EQ(flat->lists, Lists{});
  const auto none = nodes_of_yaml("# version 3\n");
  ASSERT_TRUE(none);
  EXPECT_EQ(none->lists, Lists{});
}

TEST(NodesOfYaml, WhatIsNoSuchFileIsNotRead) {
  std::string laughs = "a0: &a0 [lol]\n", deep, many = "- nodes: [";
  for (int i = 1; i < 30; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before + "," + before + "]\n";
  }
  for (int i = 0; i < 100000; ++i) deep += "[";
  for (int i = 0; i < 300000; ++i) many += "n,";
  for (const std::string& text : {laughs, std::string("&a [*a]\n"), deep, many + "n]\n", std::string("- nodes: [cpu-0\n"),
                                  std::string("\t- x: {\n"), std::string("a: *b\n")}) {
    const auto found = nodes_of_yaml(text);
    ASSERT_FALSE(found) << text.substr(0, 40);
    EXPECT_EQ(found.error().code, core::ErrorCode::kInvalid);
    EXPECT_NE(found.error().message, "");
  }
}

TEST(NodesOfConf, AreTheValuesOfNodes) {
  EXPECT_EQ(nodes_of_conf("# Nodes=no\n"
                          "SwitchName=s1 nodes=cpu-[0-2] # Nodes=no\n"
                          "SwitchName=s2 \\\n"
                          "  Nodes=gpu-0,\\\n"
                          "gpu-1\r\n"
                          "SwitchName=root Switches=s[1-2]\n"
                          "BlockName=b1 Nodes=\"mem-0\"")
                .lists,
            (Lists{"cpu-[0-2]", "gpu-0,gpu-1", "mem-0"}));
}

}  // namespace
}  // namespace op::controller
