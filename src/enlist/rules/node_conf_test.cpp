#include "enlist/rules/node_conf.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "slurm/conf/conf.hpp"

namespace enlist {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kDetected = "CPUs=8 Boards=1 SocketsPerBoard=1 CoresPerSocket=4 ThreadsPerCore=2 RealMemory=64000";

std::string detected(std::string_view slurmd_c) {
  const auto result = detected_conf(slurmd_c);
  return result ? *result : "error: " + result.error().message;
}
std::string merged(std::string_view base, std::string_view over) {
  const auto result = merged_conf(base, over);
  return result ? *result : "error: " + result.error().message;
}

TEST(DetectedConf, IsTheLineOfTheNodeWithoutItsName) {
  EXPECT_EQ(detected("NodeName=h " + std::string(kDetected) + "\nUpTime=3-02:11:49\n"), kDetected);
  EXPECT_EQ(
      detected_conf("Found gpu:tesla:2 with Autodetect=nvml\nNodeName=h CPUs=2 RealMemory=9 Gres=gpu:tesla:2 \nUpTime=0\n"),
      "CPUs=2 RealMemory=9 Gres=gpu:tesla:2");
  EXPECT_EQ(detected("NodeName=h CPUs=2 RealMemory=9 UpTime=3-02:11:49"), "CPUs=2 RealMemory=9");
}

TEST(DetectedConf, WithoutCpusOrMemoryIsAnError) {
  EXPECT_EQ(detected("NodeName=h CPUs=8\nUpTime=0\n"), "error: slurmd -C reports no RealMemory");
  for (const char* bad :
       {"", "\n", "slurmd: error", "NodeName=h CPUs=0 RealMemory=5", "NodeName=h RealMemory=5 CPUs=x", "UpTime=0\n"})
    EXPECT_EQ(detected_conf(bad).error().code, core::ErrorCode::kInvalid) << bad;
}

// Requirement 35
TEST(MergedConf, TheAdministratorWins) {
  EXPECT_EQ(merged("CPUs=8 RealMemory=64000 Weight=1", "realmemory=60000 Gres=gpu:2"),
            "CPUs=8 Weight=1 RealMemory=60000 Gres=gpu:2");
  EXPECT_EQ(merged(kDetected, ""), kDetected);
  EXPECT_EQ(merged("", "Weight=5"), "Weight=5");
}

TEST(MergedConf, AWordOfTheTopologyReplacesTheWholeTopology) {
  for (const char* word :
       {"CPUs=4", "Procs=4", "Boards=1", "Sockets=2", "SocketsPerBoard=2", "CoresPerSocket=2", "ThreadsPerCore=1"})
    EXPECT_EQ(merged(kDetected, word), "RealMemory=64000 " + std::string(word)) << "Slurm would combine them";
}

TEST(MergedConf, FeaturesAreUnited) {
  EXPECT_EQ(merged("Feature=a,b CPUs=1", "features=\"b, c\" Weight=2"), "CPUs=1 Weight=2 Features=a,b,c");
}

TEST(MergedConf, ADetectedGresConfGoesWithItsGres) {
  EXPECT_EQ(merged("Gres=gpu:2 GresConf=\"name=gpu count=2\"", "Gres=gpu:1"), "Gres=gpu:1");
  EXPECT_EQ(merged("Gres=gpu:2", "GresConf=\"name=gpu count=2\""), "Gres=gpu:2 GresConf=\"name=gpu count=2\"");
}

TEST(MergedConf, RefusesWhatEnlistmentDecides) {
  for (const std::string word : {"State", "reason", "NodeName", "NodeAddr", "NODEHOSTNAME", "Port"}) {
    const auto result = merged_conf(kDetected, "Weight=1 " + word + "=1");
    ASSERT_FALSE(result) << word;
    EXPECT_EQ(result.error().code, core::ErrorCode::kInvalid);
    EXPECT_THAT(result.error().message, HasSubstr(": set by slurm-enlist; remove it"));
  }
}

TEST(MergedConf, RefusesWordsWithWhichSlurmdWouldNotStart) {
  EXPECT_THAT(merged("", "Weight=heavy"), HasSubstr("Weight: \"heavy\" is not a whole number"));
  EXPECT_THAT(merged("", "Wieght=1"), HasSubstr("did you mean Weight?"));
  EXPECT_THAT(merged("", "Weight=1 Weight=2"), HasSubstr("set more than once"));
  EXPECT_THAT(merged("", "Gres='gpu:1'"), HasSubstr("only double quotes"));
  EXPECT_THAT(merged("", "Weight=1\nCPUs=1"), HasSubstr("line break"));
  EXPECT_THAT(merged("", "Weight"), HasSubstr("Weight=VALUE"));
  EXPECT_THAT(merged("", "Weight=x CPUs=y"), HasSubstr("; CPUs:")) << "all at once";
  EXPECT_EQ(merged("", "SomethingNew=1"), "SomethingNew=1") << "a newer slurmd may know it";
}

// Requirement 35
TEST(GatedConf, HasThePoolFirstAndTheGateLast) {
  EXPECT_EQ(gated_conf("CPUs=8 Features=fast,gpu", "gpu"),
            "CPUs=8 Features=gpu,fast State=DRAIN Reason=\"slurm-enlist: joining\"");
  EXPECT_EQ(gated_conf("", "gpu"), "Features=gpu State=DRAIN Reason=\"slurm-enlist: joining\"");
  EXPECT_EQ(gated_conf("State=IDLE Weight=2", "gpu"), "Weight=2 Features=gpu State=DRAIN Reason=\"slurm-enlist: joining\"")
      << "nobody opens the gate from here";
  const auto read = slurm::conf::parse_node_conf(gated_conf(kDetected, "gpu"));
  EXPECT_TRUE(read.problems.empty()) << "slurmd starts with it";
}

RC_GTEST_PROP(MergedConf, WhatIsMergedIsReadAgain, ()) {
  const auto words = [] {
    std::string out;
    for (const char* key : {"Weight", "CPUs", "RealMemory"}) {
      if (*rc::gen::arbitrary<bool>()) out += std::string(key) + "=" + std::to_string(*rc::gen::inRange(1, 9)) + " ";
    }
    for (const char* key : {"Gres", "Features", "Topology", "GresConf"}) {
      if (!*rc::gen::arbitrary<bool>()) continue;
      const auto pieces =
          *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>("a", ",", " ", "=", "#", "\\", "$"));
      out += std::string(key) + "=\"";
      for (const std::string& piece : pieces) out += piece;
      out += "\" ";
    }
    return out;
  };
  const std::string base = words(), over = words();
  const std::string words_of_both = merged(base, over);
  RC_ASSERT(!words_of_both.starts_with("error"));
  RC_ASSERT(merged(words_of_both, over) == words_of_both);
  RC_ASSERT(merged(words_of_both, "") == words_of_both);
  const auto now = slurm::conf::parse_node_conf(words_of_both).settings;
  for (const auto& setting : slurm::conf::parse_node_conf(over).settings) {
    if (setting.key == "Features") continue;
    RC_ASSERT(std::ranges::any_of(now, [&](const auto& s) { return s.key == setting.key && s.value == setting.value; }));
  }
}

std::string problem_of(std::string_view words, const std::vector<std::string>& releases = {"26.05.1", "26.05.1"}) {
  const auto good = check_node_words(words, releases);
  return good ? "" : good.error().message;
}

TEST(NodeWords, AreCheckedForTheReleasesThatMustKnowThem) {
  EXPECT_EQ(problem_of("RealMemory=500 Weight=5 Features=ssd Topology=default:s1"), "");
  EXPECT_THAT(problem_of("Bogus=1"), HasSubstr("Bogus"));
  EXPECT_THAT(problem_of("RealMemory=lots"), HasSubstr("RealMemory"));
  EXPECT_THAT(problem_of("State=IDLE"), HasSubstr("State: set by slurm-enlist"));
  EXPECT_THAT(problem_of("Gres='gpu:1'"), HasSubstr("single quote"));
  EXPECT_EQ(problem_of("Topology=default:s1", {"26.05.1", "24.11.5"}),
            "Topology: Slurm has this parameter since 25.05, but the release here is 24.11.5; remove it");
  EXPECT_EQ(problem_of("Topology=default:s1", {""}), "") << "not known";
}

TEST(NodeWords, OnlyWeightAndFeaturesChangeLive) {
  EXPECT_TRUE(differ_live("", "Weight=5 Features=ssd"));
  EXPECT_TRUE(differ_live("RealMemory=5 Weight=5", "weight=6 realmemory=5"));
  EXPECT_FALSE(differ_live("", "RealMemory=5"));
  EXPECT_FALSE(differ_live("Gres=gpu:1 Weight=5", "Gres=gpu:2 Weight=5"));
  EXPECT_EQ(weight_in("RealMemory=5 weight=7"), 7);
  EXPECT_EQ(weight_in("RealMemory=5"), 1);
  EXPECT_THAT(features_in("Features=a,b Feature=c"), ElementsAre("a", "b", "c"));
}

// Requirement 34
// Requirement 36
// Requirement 44
TEST(SlurmdArguments, StandInOneOrder) {
  EXPECT_THAT(slurmd_arguments("gpu-1", "CPUs=8", {"ctld:6817", "[fe80::1]:6817"}, "abc"),
              ElementsAre("-Z", "-N", "gpu-1", "--conf", "CPUs=8", "--conf-server", "ctld:6817,[fe80::1]:6817", "--instance-id",
                          "abc"));
  EXPECT_THAT(slurmd_arguments("gpu-1", "CPUs=8", {}, "abc"),
              ElementsAre("-Z", "-N", "gpu-1", "--conf", "CPUs=8", "--instance-id", "abc"));
}

}  // namespace
}  // namespace enlist
