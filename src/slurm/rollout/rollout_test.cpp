#include "slurm/rollout/rollout.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "slurm/conf/loaded.hpp"

namespace slurm::rollout {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

Wanted content(int number) {
  const std::string text = std::to_string(number);
  return {{{"slurm.conf", "Content=" + text + "\n"}}, "hash" + text};
}

core::WallTime at(int seconds) {
  return core::WallTime{core::Duration{seconds * 1000}};
}

State offer(const State& now, int number) {
  return next_state(now, content(number), {});
}
State load(const State& now) {
  return next_state(now, {}, {.loaded = now.offered_hash});
}
/// Returns a state in which the first content is loaded and the second one is offered.
State offered_second() {
  return offer(load(offer({}, 1)), 2);
}
Slurmctld refusing(int seconds = 0) {
  return {.loaded = "hash1", .refusal = "no", .made_of = "26.05", .ready = true, .now = at(seconds)};
}
Slurmctld running(int seconds, std::string made_of = "26.05") {
  return {.loaded = "hash1", .made_of = std::move(made_of), .ready = true, .now = at(seconds)};
}

TEST(Rollout, OffersAndKeepsWhatWasAccepted) {
  const State first = offer({}, 1);
  EXPECT_EQ(first.offered, content(1).files);
  EXPECT_TRUE(first.accepted_files().empty());
  EXPECT_FALSE(first.can_roll_back());
  const State second = offered_second();
  EXPECT_EQ(second.offered, content(2).files);
  EXPECT_EQ(second.accepted_files(), content(1).files);
  EXPECT_EQ(offer(second, 3).accepted_files(), content(1).files) << "the second one was never loaded";
  EXPECT_EQ(load(second).accepted_files(), content(2).files);
  EXPECT_EQ(load(second).accepted_hash, "hash2");
}

TEST(Rollout, RollsBackWhatIsRefused) {
  const State refused = next_state(offered_second(), content(2), refusing());
  EXPECT_EQ(refused.offered, content(1).files);
  EXPECT_EQ(refused.refused_hash, "hash2");
  EXPECT_EQ(refused.refused_reason, "no");
  EXPECT_EQ(refused.refusals, 1);
  EXPECT_EQ(next_state(refused, content(2), running(1)), refused);
  const State other = next_state(refused, content(3), running(1));
  EXPECT_EQ(other.offered, content(3).files);
  EXPECT_EQ(other.refused_hash, "");
  EXPECT_EQ(other.refused_by, "");
}

TEST(Rollout, WithoutAWantedContentOnlyRollsBack) {
  const State now = offered_second();
  EXPECT_EQ(next_state(now, {}, running(0)), now);
  const State refused = next_state(now, {}, refusing());
  EXPECT_EQ(refused.offered, content(1).files);
  EXPECT_EQ(refused.refused_hash, "hash2");
  EXPECT_EQ(next_state(refused, content(2), running(1)), refused) << "it is known to be refused";
  EXPECT_EQ(next_state(offer({}, 1), {}, {.refusal = "no"}), offer({}, 1)) << "there is nothing to go back to";
}

TEST(Rollout, TriesAgainEverMoreRarely) {
  State state = next_state(offered_second(), content(2), refusing(100));
  int refused_at = 100;
  for (const int wait : {60, 120, 240, 480, 960, 1800, 1800}) {
    EXPECT_EQ(next_try(state), at(refused_at + wait));
    EXPECT_EQ(next_state(state, content(2), running(refused_at + wait - 1)), state);
    refused_at += wait;
    Slurmctld unknown = running(refused_at);
    unknown.loaded = {};
    EXPECT_EQ(next_state(state, content(2), unknown), state) << "only while it is known what slurmctld runs with";
    const State again = next_state(state, content(2), running(refused_at));
    EXPECT_EQ(again.offered, content(2).files);
    EXPECT_EQ(again.accepted, content(1).files);
    EXPECT_EQ(again.refused_reason, "no") << "it is reported meanwhile";
    EXPECT_EQ(next_try(again), std::nullopt);
    EXPECT_EQ(next_state(again, content(2), running(refused_at + 1)), again);
    Slurmctld down = running(refused_at + 1);
    down.ready = false;
    const State ended = next_state(again, content(2), down);
    EXPECT_EQ(ended.offered, content(1).files) << "a slurmctld that starts must find what it accepted";
    EXPECT_EQ(ended.refusals, state.refusals + 1);
    EXPECT_EQ(load(again).refused_hash, "");
    state = next_state(again, content(2), refusing(refused_at));
  }
  EXPECT_EQ(next_state(state, content(2), running(5)).offered, content(2).files) << "the clock was set back";
}

TEST(Rollout, TriesAgainWithAnotherSlurmctld) {
  const State refused = next_state(offered_second(), content(2), refusing());
  EXPECT_EQ(next_state(refused, content(2), running(1, "")), refused);
  EXPECT_EQ(next_state(refused, content(2), running(1, "26.11")).offered, content(2).files);
}

TEST(Rollout, DoesNotTryWhatTheCallerForbids) {
  State state = next_state(offered_second(), content(2), refusing());
  const State before = state;
  advance(state, content(2), running(3600), false);
  EXPECT_EQ(state, before);
  advance(state, content(2), running(3600));
  EXPECT_EQ(state.offered, content(2).files);
}

TEST(Rollout, TheSameRequestIsRefusedWhateverSlurmKeepsInIt) {
  const auto asks = [](std::string asked, int number) {
    Wanted out = content(number);
    out.asked = std::move(asked);
    return out;
  };
  const State now = next_state(load(offer({}, 1)), asks("a", 2), {});
  const State refused = next_state(now, asks("a", 3), refusing());
  EXPECT_EQ(refused.offered, content(1).files);
  EXPECT_EQ(next_state(refused, asks("a", 4), running(1)), refused);
  EXPECT_EQ(next_state(refused, asks("b", 4), running(1)).offered, content(4).files);
}

TEST(Rollout, WhatCrashesSlurmctldIsReplacedIfNothingWasAccepted) {
  Wanted first = content(1), second = content(2);
  first.asked = second.asked = "a";
  State now = next_state({}, first, {});
  now = next_state(now, first, {.refusal = "it ends"});
  EXPECT_EQ(next_state(now, second, {}), now);
  EXPECT_EQ(next_state(now, second, {.crashes = true}).offered, second.files);
}

TEST(Rollout, UndoesEdits) {
  State now = load(offer({}, 1));
  now.offered["slurm.conf"] = "edited";
  EXPECT_EQ(offer(now, 1).offered, content(1).files);
}

// Checks after any sequence of events that the last accepted content can be restored, that a refused content is not offered
// while there is another content to offer, and that a second pass over the same facts changes nothing.
RC_GTEST_PROP(Rollout, KeepsItsPromises, ()) {
  State state;
  Files accepted;
  int wanted = 1;
  for (int i = *rc::gen::inRange(1, 30); i > 0; --i) {
    if (*rc::gen::inRange(0, 3) == 0) wanted = *rc::gen::inRange(1, 4);
    Slurmctld slurmctld = running(0, *rc::gen::element<std::string>("24.11", "26.05"));
    slurmctld.loaded = *rc::gen::element<std::optional<std::string>>({}, state.offered_hash, state.accepted_hash);
    if (*rc::gen::inRange(0, 4) == 0) slurmctld.refusal = "no";
    if (state.is_loaded(slurmctld)) accepted = state.offered;
    const bool known = *rc::gen::inRange(0, 4) > 0;
    state = next_state(state, known ? std::optional(content(wanted)) : std::nullopt, slurmctld);
    if (!state.accepted_hash.empty()) RC_ASSERT(state.accepted_files() == accepted);
    if (!state.refused_hash.empty() && !accepted.empty()) RC_ASSERT(state.offered_hash != state.refused_hash);
    slurmctld.loaded = slurmctld.refusal = {};
    if (known) RC_ASSERT(next_state(state, content(wanted), slurmctld) == state);
  }
}

TEST(Loading, WaitsEverLonger) {
  EXPECT_EQ(wait_of_try(0, 500ms, 30s), 500ms);
  EXPECT_EQ(wait_of_try(1, 500ms, 30s), 500ms);
  EXPECT_EQ(wait_of_try(3, 500ms, 30s), 2s);
  EXPECT_EQ(wait_of_try(1000, 500ms, 30s), 30s);
  plan::Context context;
  context.mono = core::MonoTime{core::Duration{5000}};
  plan::Plan plan;
  EXPECT_TRUE(waited(context, core::MonoTime{core::Duration{4000}}, 1s, plan, "why"));
  EXPECT_EQ(plan.wake(), std::nullopt);
  EXPECT_FALSE(waited(context, core::MonoTime{core::Duration{4500}}, 1s, plan, "why"));
  EXPECT_EQ(plan.wake(), 500ms);
}

TEST(Loading, TellsARefusalFromAFailure) {
  using State = plan::Outcome::State;
  plan::Outcome done, failed, refusal;
  failed.state = refusal.state = State::kFailed;
  failed.error = core::Error{core::ErrorCode::kUnavailable, "away", 0, {}, {}};
  refusal.error = core::Error{core::ErrorCode::kInvalid, "bad line", 0, {}, {}};
  EXPECT_FALSE(refused(nullptr) || refused(&done) || refused(&failed));
  EXPECT_TRUE(refused(&refusal));
  EXPECT_FALSE(answered(nullptr) || answered(&failed));
  EXPECT_TRUE(answered(&done) && answered(&refusal));
  plan::Context context;
  EXPECT_EQ(outcome_of(context, kReconfigure), nullptr);
  context.outcomes[kLookForStarting] = done;
  EXPECT_EQ(looks_fail_since(context), std::nullopt);
  failed.since = core::MonoTime{core::Duration{7}};
  context.outcomes[kLookForStarting] = failed;
  EXPECT_EQ(looks_fail_since(context), failed.since);
}

TEST(Loading, ReadsSlurm) {
  auto snapshot = std::make_shared<Snapshot>();
  EXPECT_EQ(loaded(Owner::kEnlistment, nullptr), std::nullopt);
  EXPECT_EQ(loaded(Owner::kEnlistment, snapshot), std::nullopt);
  snapshot->health = Snapshot::Health::kComplete;
  EXPECT_EQ(loaded(Owner::kEnlistment, snapshot), "");
  for (const Owner owner : {Owner::kOperator, Owner::kEnlistment}) {
    const std::string name = conf::marker_name(owner, owner == Owner::kOperator ? "a1" : "b2");
    snapshot->partitions[name] = {name, "", "INACTIVE"};
  }
  EXPECT_EQ(loaded(Owner::kEnlistment, snapshot), "b2");
  EXPECT_EQ(loaded(Owner::kOperator, snapshot), "a1");
  const auto job = [&](std::int64_t id, bool prolog) {
    Job out;
    out.id = id;
    out.state = "RUNNING";
    out.prolog = prolog;
    snapshot->jobs[id] = std::make_shared<const Job>(out);
  };
  job(1, false);
  job(2, true);
  EXPECT_THAT(starting_jobs(snapshot), ElementsAre(2));
  EXPECT_THAT(starting_jobs(nullptr), IsEmpty());
}

}  // namespace
}  // namespace slurm::rollout
