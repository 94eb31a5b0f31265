#include "operator/governance/capacity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace op::governance {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr core::WallTime kStart{core::Duration{1'000'000'000}};
constexpr core::MonoTime kNow{core::Duration{10'000}};
constexpr core::Duration kSecond{1000};

Capacity some_capacity() {
  return {.all = {{"cpu", 100}, {"gres/gpu", 7}, {"mem", 1000}, {"node", 4}},
          .partitions = {{"gpu", {{"cpu", 30}, {"gres/gpu", 7}}}, {"empty", {}}}};
}

TEST(Capacity, ValuesOfExpressions) {
  const std::vector<std::pair<const char*, std::int64_t>> all{
      {"50%", 50},
      {"12.5%", 12},
      {"29%", 29},
      {"all * 0.29", 29},
      {"all", 100},
      {"all - 8", 92},
      {"all-8-2", 90},
      {"all - (8 - 2)", 94},
      {"all - 200", 0},
      {"10 + all * 2", 210},
      {"(10 + all) * 2", 220},
      {"partition(gpu) * 0.25", 7},
      {"ceil(partition( gpu ) * 0.25)", 8},
      {"floor(partition(gpu) * 0.25)", 7},
      {"round(partition(gpu)*0.25)", 8},
      {"partition(empty)", 0},
      {"min(50%, 20)", 20},
      {"max(min(all, 20), partition(gpu))", 30},
      {"50% + partition(gpu)", 80},
      {"all * 1440", 144000},
  };
  for (const auto& [text, value] : all) {
    const auto expression = read_expression(text);
    ASSERT_TRUE(expression) << expression.error().message;
    const auto out = evaluate(*expression, "cpu", some_capacity());
    ASSERT_TRUE(out) << text << ": " << out.error().message;
    EXPECT_EQ(out->value, value) << text;
    EXPECT_TRUE(is_expression(text)) << text;
  }
}

TEST(Capacity, PlainValuesAreNoExpressions) {
  for (const char* text : {"8", "100G", "unlimited", "default", "8 + 8"}) EXPECT_FALSE(is_expression(text)) << text;
}

TEST(Capacity, ErrorsNameThePosition) {
  const std::vector<std::pair<const char*, const char*>> all{
      {"", "expected a number"},
      {"all -", "expected a number"},
      {"all - - 8", "at position 7"},
      {"all 8", "expected +, - or *, or the end of the expression at position 5"},
      {"all / 2", "at position 5"},
      {"partition gpu", "expected ( at position 11"},
      {"partition()", "expected the name of a partition"},
      {"min(all)", "expected , at position 8"},
      {"floor(all, 2)", "expected ) at position 10"},
      {"(all", "expected )"},
      {"most", "expected a number"},
      {"8 + 8", "has no %, all or partition(NAME)"},
  };
  for (const auto& [text, error] : all) {
    const auto expression = read_expression(text);
    ASSERT_FALSE(expression) << text;
    EXPECT_EQ(expression.error().code, core::ErrorCode::kInvalid);
    EXPECT_THAT(expression.error().message, HasSubstr(error)) << text;
  }
  EXPECT_FALSE(read_expression(std::string(129, '(')));
  EXPECT_FALSE(read_expression("all * 1" + std::string(100, '0')));
}

TEST(Capacity, EvaluationNamesWhatIsMissingAndItsInputs) {
  const auto expression = read_expression("all - partition(gpu) - partition(gpu)").value();
  EXPECT_THAT(evaluate(expression, "cpu", some_capacity())->inputs, ElementsAre(Pair("all", 100), Pair("partition(gpu)", 30)));
  const auto reason = [](const char* text, const char* tres) {
    return evaluate(read_expression(text).value(), tres, some_capacity()).error().message;
  };
  EXPECT_THAT(reason("partition(cpu)", "cpu"), HasSubstr("no partition cpu"));
  EXPECT_THAT(reason("all", "gres/gpu:h100"), HasSubstr("gres/gpu:h100"));
  EXPECT_THAT(reason("all", "billing"), HasSubstr("only cpu, mem, node, gres/gpu"));
  EXPECT_THAT(reason("all * 9007199254740991", "cpu"), HasSubstr("too large"));
}

slurm::Node make_node(const char* name, std::vector<std::string> partitions, const char* base,
                      std::set<std::string, std::less<>> flags = {}, std::string gres = "") {
  slurm::Node out;
  out.name = name;
  out.partitions = std::move(partitions);
  out.state = {base, std::move(flags)};
  out.gres = std::move(gres);
  out.cpus = 10;
  out.real_memory_mib = 1000;
  return out;
}

TEST(Capacity, CountsTheNodesThatCanRunJobs) {
  slurm::Snapshot snapshot;
  snapshot.health = slurm::Snapshot::Health::kComplete;
  snapshot.requested_at = kNow;
  for (const char* name : {"a", "b", "empty"}) snapshot.partitions[name] = {.name = name, .nodes = "", .state = "UP"};
  for (const slurm::Node& node : {
           make_node("idle", {"a", "b"}, "IDLE", {}, "gpu:h100:8(S:0,1),gpu:2,shard:64"),
           make_node("off", {"a"}, "IDLE", {"POWERED_DOWN"}),
           make_node("undrained", {"b"}, "MIXED", {"DRAIN", "UNDRAIN"}),
           make_node("draining", {"a"}, "ALLOCATED", {"DRAIN"}, "gpu:a100:4"),
           make_node("drained", {"a"}, "IDLE", {"DRAIN"}),
           make_node("down", {"a"}, "DOWN"),
           make_node("silent", {"b"}, "IDLE", {"NOT_RESPONDING"}),
           make_node("reboots", {"b"}, "IDLE", {"REBOOT_ISSUED"}),
           make_node("fails", {"b"}, "IDLE", {"FAIL"}),
           make_node("future", {}, "FUTURE"),
       })
    snapshot.nodes[node.name] = std::make_shared<const slurm::Node>(node);

  const auto capacity = capacity_of(snapshot, kNow);
  ASSERT_TRUE(capacity);
  EXPECT_THAT(capacity->all, ElementsAre(Pair("cpu", 30), Pair("gres/gpu", 10), Pair("gres/gpu:a100", 0),
                                         Pair("gres/gpu:h100", 8), Pair("mem", 3000), Pair("node", 3)));
  EXPECT_EQ(capacity->partitions.at("a").at("cpu"), 20);
  EXPECT_EQ(capacity->partitions.at("b").at("node"), 2);
  EXPECT_TRUE(capacity->partitions.at("empty").empty());

  EXPECT_FALSE(capacity_of(snapshot, kNow + 100 * kSecond)) << "old";
  snapshot.health = slurm::Snapshot::Health::kStale;
  EXPECT_FALSE(capacity_of(snapshot, kNow)) << "incomplete";
}

TEST(Capacity, ChangesWithNodesAndNotWithTheirJobs) {
  const auto changed = [](const slurm::Node& before, const slurm::Node& now) {
    slurm::Snapshot then, later;
    then.nodes[before.name] = std::make_shared<const slurm::Node>(before);
    later.nodes[now.name] = std::make_shared<const slurm::Node>(now);
    return capacity_changed({before.name, now.name}, then, later);
  };
  const slurm::Node idle = make_node("n", {"a"}, "IDLE", {}, "gpu:2");
  EXPECT_FALSE(changed(idle, make_node("n", {"a"}, "ALLOCATED", {}, "gpu:2")));
  EXPECT_TRUE(changed(idle, make_node("n", {"a"}, "IDLE", {"DRAIN"}, "gpu:2")));
  EXPECT_TRUE(changed(idle, make_node("n", {"a"}, "IDLE", {}, "gpu:3")));
  EXPECT_TRUE(changed(idle, make_node("n", {"b"}, "IDLE", {}, "gpu:2")));
  EXPECT_TRUE(changed(idle, make_node("other", {"a"}, "IDLE", {}, "gpu:2")));
}

TEST(Capacity, RisesAtOnceAndFallsAfterADelay) {
  auto now = damp(8, std::nullopt, kStart);
  EXPECT_EQ(now->next, (Damped{8, std::nullopt}));
  now = damp(12, now->next, kStart + kSecond);
  EXPECT_EQ(now->next, (Damped{12, std::nullopt}));
  now = damp(10, now->next, kStart + 2 * kSecond);
  EXPECT_EQ(now->next, (Damped{12, kStart + 2 * kSecond}));
  EXPECT_EQ(now->look_again, kStart + 32 * kSecond);
  now = damp(6, now->next, kStart + 20 * kSecond);
  EXPECT_EQ(now->next, (Damped{12, kStart + 2 * kSecond})) << "still lower";
  now = damp(7, now->next, kStart + 32 * kSecond);
  EXPECT_EQ(now->next, (Damped{7, std::nullopt}));
  EXPECT_FALSE(now->look_again);
}

TEST(Capacity, TheDelayStartsAgainWhenTheValueWasNotLowerOrUnknown) {
  const Damped lower{12, kStart};
  EXPECT_EQ(damp(12, lower, kStart + kSecond)->next, (Damped{12, std::nullopt}));
  EXPECT_EQ(damp(std::nullopt, lower, kStart + 60 * kSecond)->next, (Damped{12, std::nullopt}));
  EXPECT_FALSE(damp(std::nullopt, std::nullopt, kStart));
  EXPECT_EQ(damp(10, lower, kStart - kSecond)->next, (Damped{12, kStart - kSecond})) << "the clock was set back";
}

}  // namespace
}  // namespace op::governance
