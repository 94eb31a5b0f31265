#include "operator/controller/flow.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace op::controller {
namespace {

Rendered content(int number) {
  Rendered out;
  const std::string text = std::to_string(number);
  out.files = {{"slurm.conf", "Content=" + text + "\n"}};
  out.hash = "hash" + text;
  return out;
}

ConfigState offer(const ConfigState& now, int number) {
  return next_config_state(now, content(number), {});
}
ConfigState load(const ConfigState& now, int wanted) {
  return next_config_state(now, content(wanted), {now.offered_hash, {}, ""});
}

TEST(ConfigState, StandsInTheConfigMap) {
  ConfigState state = load(offer({}, 1), 1);
  state = offer(state, 2);
  state = next_config_state(state, content(2), {"hash1", "no", "image1"});
  state = offer(state, 3);
  core::Json map{{"metadata", {{"name", "x"}}}};
  write_config_state(state, map);
  kube::Object object;
  object.body = map;
  object.meta = kube::parse_meta(map);
  EXPECT_EQ(read_config_state(&object), state);
  EXPECT_EQ(read_config_state(nullptr), ConfigState{});
}

TEST(ConfigState, IsOfferedAcceptedAndReplaced) {
  const ConfigState first = offer({}, 1);
  EXPECT_EQ(first.offered_hash, "hash1");
  EXPECT_EQ(first.accepted_hash, "");
  EXPECT_FALSE(first.can_roll_back());
  const ConfigState accepted = load(first, 1);
  EXPECT_EQ(accepted.accepted_hash, "hash1");
  const ConfigState second = offer(accepted, 2);
  EXPECT_EQ(second.offered, content(2).files);
  EXPECT_EQ(second.accepted, content(1).files);
  EXPECT_TRUE(second.can_roll_back());
  const ConfigState third = offer(second, 3);
  EXPECT_EQ(third.accepted, content(1).files) << "what was never loaded is nothing to go back to";
  const ConfigState back = offer(third, 1);
  EXPECT_EQ(back.offered_hash, back.accepted_hash);
  EXPECT_TRUE(back.accepted.empty());
}

TEST(ConfigState, ARefusedOneIsRolledBackUntilTheInputChanges) {
  const ConfigState offered = offer(load(offer({}, 1), 1), 2);
  const ConfigState rolled_back = next_config_state(offered, content(2), {"hash1", "bad line", "image1"});
  EXPECT_EQ(rolled_back.offered, content(1).files);
  EXPECT_EQ(rolled_back.refused_hash, "hash2");
  EXPECT_EQ(rolled_back.refused_reason, "bad line");
  EXPECT_EQ(next_config_state(rolled_back, content(2), {"hash1", {}, "image1"}), rolled_back);
  const ConfigState changed = offer(rolled_back, 3);
  EXPECT_EQ(changed.offered, content(3).files);
  EXPECT_EQ(changed.refused_hash, "");
}

TEST(ConfigState, AnotherSlurmctldIsAskedOnceMore) {
  const ConfigState offered = offer(load(offer({}, 1), 1), 2);
  const ConfigState refused = next_config_state(offered, content(2), {"hash1", "no such plugin", "image1", true});
  const auto look = [&](const std::string& slurmctld, bool ready) {
    return next_config_state(refused, content(2), {"hash1", {}, slurmctld, ready});
  };
  EXPECT_EQ(look("image1", true), refused);
  EXPECT_EQ(look("image2", false), refused) << "it starts with what was accepted";
  EXPECT_EQ(look("", true), refused);
  const ConfigState again = look("image2", true);
  EXPECT_EQ(again.offered, content(2).files);
  EXPECT_EQ(again.refused_hash, "");
  const ConfigState refused_again = next_config_state(again, content(2), {"hash1", "no such plugin", "image2", true});
  EXPECT_EQ(refused_again.offered, content(1).files);
  EXPECT_EQ(next_config_state(refused_again, content(2), {"hash1", {}, "image2", true}), refused_again);
}

TEST(ConfigState, ARefusalOfWhatIsLoadedAfterAllIsNone) {
  const ConfigState offered = offer(load(offer({}, 1), 1), 2);
  const ConfigState loaded = next_config_state(offered, content(2), {"hash2", "a late answer", ""});
  EXPECT_EQ(loaded.offered_hash, "hash2");
  EXPECT_EQ(loaded.refused_hash, "");
}

TEST(ConfigState, WithNothingToGoBackToItStays) {
  const ConfigState refused = next_config_state(offer({}, 1), content(1), {"", "bad", ""});
  EXPECT_EQ(refused.offered_hash, "hash1");
  EXPECT_EQ(refused.refused_hash, "hash1");
}

TEST(ConfigState, BrokenInputChangesNothing) {
  const ConfigState state = load(offer({}, 1), 1);
  Rendered broken;
  broken.problems.push_back({"ExtraConfInvalid", "line 1"});
  EXPECT_EQ(next_config_state(state, broken, {}), state);
}

TEST(ConfigState, HandEditsAreUndone) {
  ConfigState state = load(offer({}, 1), 1);
  state.offered["slurm.conf"] = "tampered";
  const ConfigState mended = next_config_state(state, content(1), {"hash1", {}, ""});
  EXPECT_EQ(mended.offered, content(1).files);
  EXPECT_TRUE(mended.accepted.empty());
}

// Whatever happens in whatever order: what was last accepted can be had back, a refused content is never offered while there is
// something else to offer, and a second look at the same facts wants nothing more.
RC_GTEST_PROP(ConfigState, KeepsItsPromises, ()) {
  ConfigState state;
  int wanted = 1;
  std::map<std::string, std::string> accepted_files;
  const int steps = *rc::gen::inRange(1, 30);
  for (int i = 0; i < steps; ++i) {
    if (*rc::gen::inRange(0, 3) == 0) wanted = *rc::gen::inRange(1, 4);
    std::optional<std::string> loaded, refusal;
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        loaded = state.offered_hash;
        break;
      case 1:
        loaded = state.accepted_hash;
        break;
      case 2:
        refusal = "no";
        break;
      default:
        break;
    }
    if (loaded && *loaded == state.offered_hash && state.exists()) accepted_files = state.offered;
    const std::string slurmctld = "image" + std::to_string(*rc::gen::inRange(1, 3));
    state = next_config_state(state, content(wanted), {loaded, refusal, slurmctld, true});
    RC_ASSERT(state.exists());
    if (!state.accepted_hash.empty()) {
      const auto& kept = state.offered_hash == state.accepted_hash ? state.offered : state.accepted;
      RC_ASSERT(kept == accepted_files);
    }
    if (!state.refused_hash.empty() && !accepted_files.empty()) RC_ASSERT(state.offered_hash != state.refused_hash);
    RC_ASSERT(next_config_state(state, content(wanted), {{}, {}, slurmctld, true}) == state);
  }
}

}  // namespace
}  // namespace op::controller
