#include "operator/controller/rollout.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>

#include "core/hash.hpp"

namespace op::controller {
namespace {

Rendered content(int number) {
  Rendered out;
  const std::string text = std::to_string(number);
  out.files = {{"slurm.conf", "Content=" + text + "\n"}};
  out.hash = "hash" + text;
  return out;
}

Render wants(int number) {
  return [number](const ConfigState&) { return content(number); };
}

ConfigState offer(const ConfigState& now, int number) {
  return next_config_state(now, wants(number), {});
}
ConfigState load(const ConfigState& now, int wanted) {
  return next_config_state(now, wants(wanted), {now.offered_hash, {}, ""});
}

TEST(ConfigState, StandsInTheConfigMap) {
  ConfigState state = load(offer({}, 1), 1);
  state = offer(state, 2);
  state = next_config_state(state, wants(2), {"hash1", "no", "image1"});
  state = offer(state, 3);
  state.refused_at = core::WallTime{core::Duration{5000}};
  state.refusals = 3;
  state.ran = true;
  state.places = Places{core::WallTime{core::Duration{1000}}, core::WallTime{core::Duration{2000}}};
  state.left_out = {{"a", {"State=\"U P\"", "no", core::WallTime{core::Duration{7000}}, 2, true}}, {"b", {"", ""}}};
  core::Json map{{"metadata", {{"name", "x"}}}};
  write_config_state(state, map);
  kube::Object object;
  object.body = map;
  object.meta = kube::parse_meta(map);
  EXPECT_EQ(read_config_state(&object), state);
  EXPECT_EQ(read_config_state(nullptr), ConfigState{});
}

TEST(ConfigState, WhatSomebodyEditedIsNeverOfferedNorGoneBackTo) {
  ConfigState state;
  state.offered = {{"slurm.conf", "ClusterName=a\n"}};
  state.accepted = {{"slurm.conf", "ClusterName=a # before\n"}};
  state.offered_hash = state.refused_hash = "1";
  state.accepted_hash = "2";
  state.scripts_hash = "s";
  state.left_out["cpu"] = LeftOut{};
  core::Json map{{"metadata", {{"name", "x-config"}}}};
  write_config_state(state, map);
  const auto read = [&] {
    const kube::Object object{kube::parse_meta(map), map};
    return read_config_state(&object);
  };
  ASSERT_EQ(read(), state);
  for (const char* file : {"slurm.conf", "accepted.slurm.conf", "cgroup.conf"}) {
    const core::Json before = map;
    map["data"][file] = "ClusterName=stray\n";
    ConfigState rest;
    rest.scripts_hash = "s";
    rest.left_out = state.left_out;
    EXPECT_EQ(read(), rest) << file;
    map = before;
  }
  map["data"]["notes.txt"] = "of somebody's, and no concern of ours";
  EXPECT_EQ(read(), state);
}

/// Writes the ConfigMaps of a state, and reads the state back from them.
struct Written {
  explicit Written(const ConfigState& state) {
    core::Json config{{"metadata", {{"name", "x-config"}}}}, offered{{"metadata", {{"name", "x-config-files"}}}},
        before{{"metadata", {{"name", "x-config-files-accepted"}}}};
    write_config_state(state, config);
    write_file_copies(state.offered, offered);
    write_file_copies(state.accepted, before);
    map = {kube::parse_meta(config), config};
    copies = {kube::parse_meta(offered), offered};
    accepted = {kube::parse_meta(before), before};
  }
  [[nodiscard]] ConfigState read() const { return read_config_state(&map, &copies, &accepted); }
  kube::Object map, copies, accepted;
};

/// A content with users' files: a configuration, a script, and a binary file.
std::map<std::string, std::string> with_files(const std::string& text) {
  return {{"slurm.conf", "# " + text}, {"/", ""}, {"/gres.conf", text}, {"/prolog.sh", "run " + text}, {"//plugin.so", "AAAA"}};
}

ConfigState with_two_contents() {
  ConfigState state;
  state.offered = with_files("new");
  state.offered.erase("//plugin.so");
  state.accepted = with_files("old");
  state.offered_hash = "hash-new";
  state.accepted_hash = "hash-old";
  return state;
}

TEST(ConfigState, HasTheFilesOfUsersInConfigMapsOfTheirOwn) {
  const ConfigState state = with_two_contents();
  const Written written(state);
  EXPECT_EQ(written.map.body["data"], (core::Json{{"slurm.conf", "# new"}, {"accepted.slurm.conf", "# old"}}));
  EXPECT_EQ(written.copies.body["data"], (core::Json{{"gres.conf", "new"}, {"prolog.sh", "run new"}}));
  EXPECT_FALSE(written.copies.body.contains("binaryData"));
  EXPECT_EQ(written.accepted.body["data"], (core::Json{{"gres.conf", "old"}, {"prolog.sh", "run old"}}));
  EXPECT_EQ(written.accepted.body["binaryData"], (core::Json{{"plugin.so", "AAAA"}}));
  EXPECT_EQ(written.read(), state);
  EXPECT_TRUE(knows_files(state));
  EXPECT_TRUE(has_file_copies(state));
  ASSERT_NE(file_copy(state, "gres.conf"), nullptr);
  EXPECT_EQ(*file_copy(state, "gres.conf"), "new");
  EXPECT_EQ(file_copy(state, "plugin.so"), nullptr);
}

/// The operator can be terminated between any two of the writes.
TEST(ConfigState, FindsTheFilesOfUsersWhateverWasWrittenLast) {
  const ConfigState both = with_two_contents();
  ConfigState old_one, new_one;
  old_one.offered = both.accepted;
  new_one.offered = both.offered;
  old_one.offered_hash = old_one.accepted_hash = both.accepted_hash;
  new_one.offered_hash = new_one.accepted_hash = both.offered_hash;
  const auto read = [](const ConfigState& map, const ConfigState& copies, const ConfigState& accepted) {
    const Written one(map), second(copies), third(accepted);
    return read_config_state(&one.map, &second.copies, &third.accepted);
  };
  EXPECT_EQ(read(old_one, old_one, both), old_one) << "another content is about to be offered: the former one has its copy";
  EXPECT_EQ(read(old_one, both, both), old_one) << "and the other one is there";
  EXPECT_EQ(read(new_one, both, both), new_one) << "it has been accepted, and the copy of the former one is about to go";
  const ConfigState back = read(both, old_one, both);
  EXPECT_EQ(back.accepted, both.accepted) << "it is about to be gone back to";
  EXPECT_FALSE(knows_files(back.offered)) << "and of the other one the files are not known";
  EXPECT_FALSE(knows_files(back));
  EXPECT_EQ(read(old_one, old_one, both), old_one) << "it has been gone back to";
}

TEST(ConfigState, HasTheSameFilesOfUsersOnce) {
  ConfigState state = with_two_contents();
  EXPECT_EQ(accepted_apart(state), state.accepted);
  state.accepted = state.offered;
  state.accepted["slurm.conf"] = "# old";
  EXPECT_TRUE(accepted_apart(state).empty());
  const Written written(state);
  EXPECT_EQ(read_config_state(&written.map, &written.copies, nullptr), state);
  state.accepted.erase("/");
  EXPECT_EQ(accepted_apart(state), state.accepted) << "not known is not the same";
}

TEST(ConfigState, WithoutCopiesOfAnEarlierReleaseIsNotKnown) {
  ConfigState state = with_two_contents();
  const auto without = [](std::map<std::string, std::string>& content) {
    std::erase_if(content, [](const auto& file) { return file.first.starts_with("/"); });
  };
  without(state.offered);
  without(state.accepted);
  const auto without_copies = [&] {
    const Written written(state);
    return read_config_state(&written.map, nullptr, nullptr);
  };
  EXPECT_EQ(without_copies(), state);
  EXPECT_FALSE(knows_files(state));
  // If both contents are known to have no users' files, no other ConfigMap is needed.
  state.offered["/"] = state.accepted["/"] = "";
  EXPECT_EQ(without_copies(), state);
  EXPECT_TRUE(knows_files(state));
  EXPECT_FALSE(has_file_copies(state));
}

TEST(ConfigState, WhatSomebodyDidToTheCopiesMakesNothingKnown) {
  ConfigState state = with_two_contents();
  state.refused_hash = state.offered_hash;
  state.scripts_hash = "s";
  ConfigState rest;
  rest.scripts_hash = "s";
  const auto edited = [&](const std::function<void(Written&)>& edit) {
    Written written(state);
    edit(written);
    return written.read();
  };
  EXPECT_EQ(edited([](Written& written) { written.copies.body["data"]["gres.conf"] = "edited"; }), rest);
  EXPECT_EQ(edited([](Written& written) { written.copies.body["data"]["stray"] = "x"; }), rest);
  EXPECT_EQ(edited([](Written& written) { written.copies.body["binaryData"]["stray"] = "AAAA"; }), rest);
  EXPECT_EQ(edited([](Written& written) { written.accepted.body.erase("binaryData"); }), rest);
  const Written written(state);
  EXPECT_EQ(read_config_state(&written.map, nullptr, &written.accepted), rest);
  EXPECT_EQ(read_config_state(&written.map, &written.copies, nullptr), rest);
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
  const ConfigState rolled_back = next_config_state(offered, wants(2), {"hash1", "bad line", "image1"});
  EXPECT_EQ(rolled_back.offered, content(1).files);
  EXPECT_EQ(rolled_back.refused_hash, "hash2");
  EXPECT_EQ(rolled_back.refused_reason, "bad line");
  EXPECT_EQ(next_config_state(rolled_back, wants(2), {"hash1", {}, "image1"}), rolled_back);
  const ConfigState changed = offer(rolled_back, 3);
  EXPECT_EQ(changed.offered, content(3).files);
  EXPECT_EQ(changed.refused_hash, "");
}

TEST(ConfigState, ARefusedOneIsTriedAgainEverMoreRarely) {
  const auto at = [](int seconds) { return core::WallTime{core::Duration{seconds * 1000}}; };
  ConfigState state = offer(load(offer({}, 1), 1), 2);
  state = next_config_state(state, wants(2), {"hash1", "no", "image1", true, at(100)});
  const auto look = [&](const ConfigState& now, int seconds, std::optional<std::string> loaded = "hash1") {
    return next_config_state(now, wants(2), {std::move(loaded), {}, "image1", true, at(seconds)});
  };
  int refused_at = 100;
  for (const int wait : {60, 120, 240, 480, 960, 1800, 1800}) {
    EXPECT_EQ(next_try(state), at(refused_at + wait));
    EXPECT_EQ(look(state, refused_at + wait - 1), state);
    EXPECT_EQ(look(state, refused_at + wait, std::nullopt), state) << "only while slurmctld runs";
    const ConfigState again = look(state, refused_at + wait);
    EXPECT_EQ(again.offered, content(2).files);
    EXPECT_EQ(again.accepted, content(1).files);
    EXPECT_EQ(again.refused_reason, "no") << "it is told meanwhile";
    EXPECT_EQ(look(again, refused_at + wait + 1), again);
    const ConfigState ended = next_config_state(again, wants(2), {{}, {}, "", false, at(refused_at + wait + 1)});
    EXPECT_EQ(ended.offered, content(1).files) << "a slurmctld that starts anew is to find what was accepted";
    EXPECT_EQ(ended.refusals, state.refusals + 1) << "and that was a try as well";
    EXPECT_EQ(ended.refused_at, at(refused_at + wait + 1));
    EXPECT_EQ(next_try(again), std::nullopt);
    EXPECT_EQ(look(again, refused_at + wait + 1, "hash2").refused_at, std::nullopt);
    refused_at += wait;
    state = next_config_state(again, wants(2), {"hash1", "no", "image1", true, at(refused_at)});
    EXPECT_EQ(state.offered, content(1).files);
  }
  EXPECT_EQ(look(state, 5).offered, content(2).files) << "the clock was set back";
  EXPECT_EQ(offer(state, 3).refusals, 0);
}

TEST(ConfigState, WhatSlurmSaysIsNoEdit) {
  const auto asks = [](const std::string& asked, int number) {
    return [=](const ConfigState&) {
      Rendered out = content(number);
      out.asked = asked;
      return out;
    };
  };
  const ConfigState offered = next_config_state(load(offer({}, 1), 1), asks("a", 2), {});
  // Slurm does not answer, so the wanted content again has an item that jobs might need.
  const ConfigState state = next_config_state(offered, asks("a", 3), {{}, "no", "image1"});
  EXPECT_EQ(state.refused_hash, "hash2");
  EXPECT_EQ(state.offered, content(1).files);
  for (const int number : {2, 3, 4}) {
    const ConfigState after = next_config_state(state, asks("a", number), {"hash1", {}, "image1", true});
    EXPECT_EQ(after, state) << number;
    EXPECT_TRUE(after.refuses(asks("a", number)(state)));
  }
  EXPECT_EQ(next_config_state(state, asks("b", 3), {}).offered, content(3).files) << "the user has changed something";
  EXPECT_EQ(next_config_state(state, asks("a", 3), {"hash1", {}, "image2", true}).offered, content(3).files)
      << "another slurmctld runs";
}

TEST(ConfigState, ABadEditDoesNotKeepARefusedContent) {
  const ConfigState offered = offer(load(offer({}, 1), 1), 2);
  const auto bad = [](const ConfigState&) {
    Rendered out;
    out.problems.push_back({"ExtraConfInvalid", "line 1"});
    return out;
  };
  EXPECT_EQ(next_config_state(offered, bad, {}), offered);
  const ConfigState state = next_config_state(offered, bad, {{}, "no", "image1"});
  EXPECT_EQ(state.offered, content(1).files);
  EXPECT_EQ(state.refused_hash, "hash2");
}

TEST(ConfigState, NothingIsRestartedToTryAgain) {
  const auto want = [](const std::string& text) {
    return [text](const ConfigState&) {
      Rendered out;
      out.files = {{"slurm.conf", text}};
      out.hash = core::short_digest(text);
      return out;
    };
  };
  const Render old = want("AuthType=auth/slurm\n"), other = want("AuthType=auth/munge\n");
  ASSERT_NE(restart_digest("AuthType=auth/slurm\n"), restart_digest("AuthType=auth/munge\n"));
  ConfigState state = next_config_state({}, old, {});
  const std::string hash = state.offered_hash;
  state = next_config_state(next_config_state(state, old, {hash, {}, ""}), other, {});
  state = next_config_state(state, other, {hash, "no", "image1", true});
  ASSERT_EQ(state.offered_hash, hash);
  EXPECT_EQ(next_config_state(state, other, {hash, {}, "image1", true, core::WallTime{core::Duration{86400000}}}), state);
}

TEST(ConfigState, AnotherSlurmctldIsAskedOnceMore) {
  const ConfigState offered = offer(load(offer({}, 1), 1), 2);
  const ConfigState refused = next_config_state(offered, wants(2), {"hash1", "no such plugin", "image1", true});
  const auto look = [&](const std::string& slurmctld, bool ready) {
    return next_config_state(refused, wants(2), {"hash1", {}, slurmctld, ready});
  };
  EXPECT_EQ(look("image1", true), refused);
  EXPECT_EQ(look("image2", false), refused) << "it starts with what was accepted";
  EXPECT_EQ(look("", true), refused);
  const ConfigState again = look("image2", true);
  EXPECT_EQ(again.offered, content(2).files);
  EXPECT_EQ(again.refused_hash, "");
  const ConfigState refused_again = next_config_state(again, wants(2), {"hash1", "no such plugin", "image2", true});
  EXPECT_EQ(refused_again.offered, content(1).files);
  EXPECT_EQ(next_config_state(refused_again, wants(2), {"hash1", {}, "image2", true}), refused_again);
}

TEST(ConfigState, ARefusalOfWhatIsLoadedAfterAllIsNone) {
  const ConfigState offered = offer(load(offer({}, 1), 1), 2);
  const ConfigState loaded = next_config_state(offered, wants(2), {"hash2", "a late answer", ""});
  EXPECT_EQ(loaded.offered_hash, "hash2");
  EXPECT_EQ(loaded.refused_hash, "");
}

TEST(ConfigState, WithNothingToGoBackToItStays) {
  const ConfigState refused = next_config_state(offer({}, 1), wants(1), {"", "bad", ""});
  EXPECT_EQ(refused.offered_hash, "hash1");
  EXPECT_EQ(refused.refused_hash, "hash1");
}

TEST(ConfigState, BrokenInputChangesNothing) {
  const ConfigState state = load(offer({}, 1), 1);
  Rendered broken;
  broken.problems.push_back({"ExtraConfInvalid", "line 1"});
  EXPECT_EQ(next_config_state(state, [&](const ConfigState&) { return broken; }, {}), state);
}

TEST(ConfigState, HandEditsAreUndone) {
  ConfigState state = load(offer({}, 1), 1);
  state.offered["slurm.conf"] = "tampered";
  const ConfigState mended = next_config_state(state, wants(1), {"hash1", {}, ""});
  EXPECT_EQ(mended.offered, content(1).files);
  EXPECT_TRUE(mended.accepted.empty());
}

using Partitions = std::map<std::string, std::string>;

/// Renders a slurm.conf with the partitions of NodeSets and one more line.
Render wants(Partitions partitions, const std::string& other = "") {
  return [partitions = std::move(partitions), other](const ConfigState& state) {
    Rendered out;
    out.partitions = partitions;
    std::string text = other;
    for (const auto& [name, config] : partitions) {
      const std::string line = "PartitionName=" + name + " " + config + "\n";
      if (!state.leaves_out(name, config)) {
        text += line;
        continue;
      }
      const auto files = state.accepted_files();
      const auto before = files.find("slurm.conf");
      const std::size_t at = before == files.end() ? std::string::npos : before->second.find("PartitionName=" + name + " ");
      if (at != std::string::npos) text += before->second.substr(at, before->second.find('\n', at) - at + 1);
    }
    out.hash = core::short_digest(text);
    out.files = {{"slurm.conf", text}};
    return out;
  };
}

/// Simulates a slurmctld that refuses every text with a word of `bad`. Counts the refusals. Returns the state at the end.
ConfigState settle(ConfigState state, const Render& render, const std::vector<std::string>& bad, int& refusals) {
  std::string runs = state.accepted_hash;
  for (int pass = 0; pass < 50; ++pass) {
    const std::string text = state.exists() ? state.offered.at("slurm.conf") : "";
    const bool refused =
        std::ranges::any_of(bad, [&](const std::string& word) { return text.find(word) != std::string::npos; });
    SlurmctldFacts slurmctld{runs, {}, "image1", true};
    if (state.exists() && state.offered_hash != runs) {
      if (refused) {
        slurmctld.refusal = "no";
        ++refusals;
      } else {
        slurmctld.loaded = runs = state.offered_hash;
      }
    }
    const ConfigState next = next_config_state(state, render, slurmctld);
    if (next == state && !slurmctld.refusal) return state;
    state = next;
  }
  ADD_FAILURE() << "it does not come to rest";
  return state;
}

TEST(LeftOut, AloneTheGuiltyPartitionStaysAsItWas) {
  int refusals = 0;
  const ConfigState before = settle({}, wants({{"a", "State=UP"}, {"b", "State=UP"}}), {}, refusals);
  const Render all = wants({{"a", "MaxTime=1"}, {"b", "MaxTime=soon"}, {"c", "MaxTime=2"}}, "SuspendTime=5\n");
  const ConfigState after = settle(before, all, {"soon"}, refusals);
  EXPECT_EQ(after.offered.at("slurm.conf"),
            "SuspendTime=5\nPartitionName=a MaxTime=1\nPartitionName=b State=UP\nPartitionName=c MaxTime=2\n");
  EXPECT_EQ(after.left_out, (LeftOuts{{"b", {"MaxTime=soon", "no", core::WallTime{}, 1}}}));
  EXPECT_EQ(after.refused_hash, "");
  EXPECT_EQ(refusals, 2) << "all at once, and the one alone";

  const ConfigState elsewhere =
      settle(after, wants({{"a", "MaxTime=1"}, {"b", "MaxTime=soon"}, {"c", "MaxTime=3"}}), {"soon"}, refusals);
  EXPECT_EQ(refusals, 2) << "it is not tried again with each change of another";
  EXPECT_EQ(elsewhere.left_out, after.left_out);

  const ConfigState mended = settle(elsewhere, wants({{"a", "MaxTime=1"}, {"b", "MaxTime=9"}}), {"soon"}, refusals);
  EXPECT_EQ(mended.offered.at("slurm.conf"), "PartitionName=a MaxTime=1\nPartitionName=b MaxTime=9\n");
  EXPECT_TRUE(mended.left_out.empty());
  EXPECT_EQ(mended.refused_by, "");
}

core::WallTime at(int seconds) {
  return core::WallTime{core::Duration{seconds * 1000}};
}

struct RefusedPartition : ::testing::Test {
  const Render render = wants({{"a", "State=UP"}, {"b", "QOS=later"}});
  int refused_times = 0;
  ConfigState state = settle({}, render, {"later"}, refused_times);

  [[nodiscard]] ConfigState look(const ConfigState& now, int seconds, std::optional<std::string> loaded,
                                 bool ready = true) const {
    return next_config_state(now, render, {std::move(loaded), {}, "image1", ready, at(seconds)});
  }
  [[nodiscard]] ConfigState refuse(const ConfigState& now, int seconds) const {
    return next_config_state(now, render, {now.accepted_hash, "no", "image1", true, at(seconds)});
  }
};

TEST_F(RefusedPartition, IsTriedAgainEverMoreRarely) {
  int refused_at = 0, refusals = 1;
  for (const int wait : {60, 120, 240, 480, 960, 1800, 1800}) {
    const std::string accepted = state.accepted_hash;
    EXPECT_EQ(state.offered_hash, accepted);
    EXPECT_EQ(state.left_out.at("b"), (LeftOut{"QOS=later", "no", at(refused_at), refusals}));
    EXPECT_EQ(next_try(state), at(refused_at + wait));
    EXPECT_EQ(look(state, refused_at + wait - 1, accepted), state);
    EXPECT_EQ(look(state, refused_at + wait, std::nullopt), state) << "only while slurmctld runs";
    EXPECT_EQ(look(state, refused_at + wait, accepted, false), state) << "and is up";
    const ConfigState again = look(state, refused_at + wait, accepted);
    EXPECT_EQ(again.offered.at("slurm.conf"), "PartitionName=a State=UP\nPartitionName=b QOS=later\n");
    EXPECT_EQ(again.left_out.at("b").refusal, "no") << "it is told meanwhile";
    EXPECT_EQ(restart_digest(again.offered.at("slurm.conf")), restart_digest(state.offered.at("slurm.conf")));
    EXPECT_EQ(next_try(again), std::nullopt);
    EXPECT_EQ(look(again, refused_at + wait + 1, accepted), again);
    EXPECT_TRUE(look(again, refused_at + wait + 1, again.offered_hash).left_out.empty()) << "it was taken";
    const ConfigState ended = look(again, refused_at + wait + 1, std::nullopt, false);
    EXPECT_EQ(ended.offered, state.offered) << "a slurmctld that starts anew is to find what was accepted";
    EXPECT_EQ(ended.left_out.at("b"), (LeftOut{"QOS=later", "no", at(refused_at + wait + 1), refusals + 1}));
    refused_at += wait;
    ++refusals;
    state = refuse(again, refused_at);
  }
  EXPECT_TRUE(look(state, 5, state.accepted_hash).tries_partition()) << "the clock was set back";
}

TEST_F(RefusedPartition, IsTriedAlone) {
  const ConfigState again = look(state, 60, state.accepted_hash);
  ASSERT_TRUE(again.tries_partition());
  const ConfigState edited = next_config_state(again, wants({{"a", "State=DOWN"}, {"b", "QOS=later"}}),
                                               {again.accepted_hash, {}, "image1", true, at(61)});
  EXPECT_EQ(edited.offered.at("slurm.conf"), "PartitionName=a State=DOWN\n");
  EXPECT_EQ(edited.left_out.at("b"), (LeftOut{"QOS=later", "no", at(61), 2}));
}

TEST(LeftOut, NoPartitionIsBlamedForTheRest) {
  int refusals = 0;
  const ConfigState before = settle({}, wants({{"a", "State=UP"}}), {}, refusals);
  const Partitions both{{"a", "State=UP"}, {"b", "State=UP"}};
  const ConfigState refused = settle(before, wants(both, "Plugin=no\n"), {"Plugin"}, refusals);
  EXPECT_EQ(refused.offered, before.offered);
  EXPECT_NE(refused.refused_hash, "");
  EXPECT_EQ(refused.left_out.at("b").refusal, "");
  const ConfigState mended = settle(refused, wants(both), {"Plugin"}, refusals);
  EXPECT_EQ(mended.offered.at("slurm.conf"), "PartitionName=a State=UP\nPartitionName=b State=UP\n");
  EXPECT_TRUE(mended.left_out.empty());
}

TEST(LeftOut, WithNothingAcceptedYetTheClusterStartsWithoutIt) {
  int refusals = 0;
  const ConfigState state = settle({}, wants({{"a", "State=UP"}, {"b", "State=BOGUS"}}), {"BOGUS"}, refusals);
  EXPECT_EQ(state.offered.at("slurm.conf"), "PartitionName=a State=UP\n");
  EXPECT_EQ(state.left_out.at("b").refusal, "no");
  EXPECT_EQ(state.offered_hash, state.accepted_hash);
}

// Holds for each sequence of events: the last accepted content can be restored. A refused content is never offered if there is
// other content to offer. A second pass over the same facts changes nothing.
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
    state = next_config_state(state, wants(wanted), {loaded, refusal, slurmctld, true});
    RC_ASSERT(state.exists());
    if (!state.accepted_hash.empty()) {
      const auto& kept = state.offered_hash == state.accepted_hash ? state.offered : state.accepted;
      RC_ASSERT(kept == accepted_files);
    }
    if (!state.refused_hash.empty() && !accepted_files.empty()) RC_ASSERT(state.offered_hash != state.refused_hash);
    RC_ASSERT(next_config_state(state, wants(wanted), {{}, {}, slurmctld, true}) == state);
  }
}

}  // namespace
}  // namespace op::controller
