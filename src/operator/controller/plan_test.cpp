#include "operator/controller/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "api/well_known.hpp"
#include "kube/apply_helper.hpp"
#include "operator/common/partition.hpp"
#include "operator/controller/build.hpp"
#include "operator/controller/config.hpp"
#include "operator/controller/keyring.hpp"
#include "operator/controller/observe.hpp"
#include "operator/controller/rollout.hpp"
#include "operator/controller/testing/observed.hpp"
#include "operator/controller/withhold.hpp"
#include "plan/testing/observing.hpp"
#include "slurm/acts.hpp"
#include "slurm/conf/loaded.hpp"

namespace op::controller {
namespace {

using core::Json;
using testing::observed_of;

constexpr core::MonoTime kNow{core::Duration{1000000}};

/// Returns facts with `count` node records of workers whose NodeSet is gone. `age`: the age of Slurm's answer.
Observed with_records(int count, core::Duration age) {
  Observed out = observed_of(Json::object());
  out.context.mono = kNow;
  auto snapshot = std::make_shared<slurm::Snapshot>();
  snapshot->health = slurm::Snapshot::Health::kComplete;
  snapshot->requested_at = kNow - age;
  for (int i = 0; i < count; ++i) {
    auto node = std::make_shared<slurm::Node>();
    node->name = "gone-" + std::to_string(i);
    node->state.base = "DOWN";
    node->reason = "slurm-operator: NodeSet ns/gone was scaled in";
    snapshot->nodes.insert_or_assign(node->name, node);
  }
  out.snapshot = snapshot;
  out.stale_records = find_stale_records(out, plan::testing::Observer::at(kNow));
  return out;
}

std::size_t deleted_records(const plan::Plan& plan) {
  const auto lane = plan.lanes().find("records");
  return lane == plan.lanes().end() ? 0 : lane->second.groups().front().size();
}

/// Returns a Controller that is being deleted, and that has a worker whose NodeSet is gone. No cache shows whether the
/// deletion has --cascade=orphan.
Observed ending() {
  Observed out = observed_of(Json::object());
  auto object = std::make_shared<kube::Object>(*out.object);
  object->meta.deletion_timestamp = core::WallTime{};
  object->meta.finalizers = {std::string(api::kFinalizerController)};
  out.object = object;
  auto pod = std::make_shared<kube::PodRecord>();
  pod->meta.ns = "ns";
  pod->meta.name = "cpu-0";
  pod->meta.uid = "p";
  out.workers = {"cpu-0"};
  out.left_workers = {{pod, OwnerEnds::of(plan::testing::Observer::at({}), object->meta, *pod)}};
  return out;
}

void answer(Observed& observed, core::Result<Json> stateful_set) {
  observed.context.facts.emplace("StatefulSet x-controller", plan::Fact{std::move(stateful_set), {}});
}

kube::ContainerState slurmctld(bool ready, bool started, bool crashed = false) {
  kube::ContainerState out;
  out.name = "slurmctld";
  out.ready = ready;
  out.started_once = started;
  out.crashed = crashed;
  return out;
}

/// Returns a serving slurmctld whose template has changed. `jobs`: the states of slurmctld's jobs. nullopt: Slurm does not
/// answer.
Observed changed(bool persistent, std::optional<std::vector<std::string>> jobs) {
  Observed out = observed_of({{"persistence", {{"enabled", persistent}}}});
  out.stateful_set = *kube::record_from_json<kube::Object>(
      {{"kind", "StatefulSet"}, {"metadata", {{"namespace", "ns"}, {"name", "x-controller"}, {"uid", "s"}}}});
  out.restapis = {{"x", false}};
  auto object = std::make_shared<kube::Object>(*out.object);
  object->meta.finalizers = {std::string(api::kFinalizerController)};
  out.object = object;
  auto pod = std::make_shared<kube::PodRecord>();
  pod->meta.name = "x-controller-0";
  pod->phase = "Running";
  pod->conditions.push_back({"Ready", "True", "", ""});
  pod->containers = {slurmctld(true, true)};
  out.pods = {pod};
  auto snapshot = std::make_shared<slurm::Snapshot>();
  snapshot->health = jobs ? slurm::Snapshot::Health::kComplete : slurm::Snapshot::Health::kStale;
  for (const std::string& state : jobs.value_or(std::vector<std::string>{})) {
    auto job = std::make_shared<slurm::Job>();
    job->id = static_cast<std::int64_t>(snapshot->jobs.size()) + 1;
    job->state = state;
    snapshot->jobs.insert_or_assign(job->id, job);
  }
  out.snapshot = snapshot;
  return out;
}

bool replaces(const Observed& observed) {
  return plan(observed).describe().dump().find("apply StatefulSet x-controller") != std::string::npos;
}

/// Returns a slurmctld outside of Kubernetes that runs another user's job. `age`: the age of slurmctld's last answer.
Observed outside(core::Duration age) {
  Observed out = observed_of({{"external", true},
                              {"externalConfig", {{"host", "h"}, {"port", 6817}}},
                              {"slurmKeyRef", {{"name", "k"}, {"key", "slurm"}}},
                              {"jwtKeyRef", {{"name", "k"}, {"key", "jwt"}}}});
  auto object = std::make_shared<kube::Object>(*out.object);
  object->meta.finalizers = {std::string(api::kFinalizerController)};
  out.object = object;
  out.context.mono = kNow;
  out.restapis = {{"x", false}};
  auto snapshot = std::make_shared<slurm::Snapshot>();
  snapshot->health = slurm::Snapshot::Health::kStale;
  snapshot->requested_at = kNow - age;
  auto job = std::make_shared<slurm::Job>();
  job->id = 7;
  job->state = "RUNNING";
  snapshot->jobs.insert_or_assign(7, job);
  out.snapshot = snapshot;
  return out;
}

TEST(External, AnAnswerThatFailsOnceIsNoNews) {
  const auto silent = [](int seconds) {
    return plan(outside(std::chrono::seconds{seconds})).describe().dump().find("no longer answers") != std::string::npos;
  };
  EXPECT_FALSE(silent(29));
  EXPECT_TRUE(plan(outside(std::chrono::seconds{29})).wake());
  EXPECT_TRUE(silent(30));
}

TEST(External, AnotherKeyWaitsForWorkersButNotForTheJobsOfTheSite) {
  Observed observed = outside(core::Duration{0});
  observed.slurm_key.content = "another";
  observed.slurm_key.digest = "another";
  observed.slurm_key.meta = kube::ObjectMeta{};
  EXPECT_TRUE(plan_keyring(observed, false).renew);
  observed.workers = {"cpu-0"};
  EXPECT_FALSE(plan_keyring(observed, false).renew);
}

TEST(StateInMemory, IsNotTakenFromJobs) {
  EXPECT_TRUE(replaces(changed(true, {{"RUNNING"}}))) << "it is on a volume";
  EXPECT_TRUE(replaces(changed(false, {{"COMPLETED"}})));
  for (const char* state : {"RUNNING", "SUSPENDED", "PENDING"}) {
    const Observed observed = changed(false, {{state, "COMPLETED"}});
    EXPECT_FALSE(replaces(observed)) << state;
    EXPECT_NE(plan(observed).describe().dump().find("RestartWithheld"), std::string::npos);
  }
  // A job may have been submitted since the snapshot, so the plan asks Slurm again before it deletes anything.
  const std::string steps = plan(changed(false, {{"COMPLETED"}})).describe().at("lanes").at("pod").dump();
  EXPECT_LT(steps.find("look for jobs"), steps.find("apply StatefulSet x-controller"));
  EXPECT_EQ(plan(changed(true, {{"COMPLETED"}})).describe().dump().find("look for jobs"), std::string::npos);
  Observed silent = changed(false, {});
  EXPECT_FALSE(replaces(silent)) << "unknown is not none";
  silent.pods.clear();
  EXPECT_TRUE(replaces(silent)) << "there is no state";
  Observed blind = changed(false, {});
  blind.restapis.clear();
  EXPECT_TRUE(replaces(blind)) << "there is no worker";
  blind.workers.push_back("cpu-0");
  EXPECT_FALSE(replaces(blind)) << "nobody can look what runs there";
  EXPECT_NE(plan(blind).describe().dump().find("when a RestApi shows that there are no jobs"), std::string::npos);
  Observed told = changed(false, {{"RUNNING"}});
  auto object = std::make_shared<kube::Object>(*told.object);
  object->meta.annotations[std::string(api::kAnnotationLoseJobs)] = "true";
  told.object = object;
  EXPECT_TRUE(replaces(told));
}

TEST(StateInMemory, IsThoughtToBeThereWhileSlurmctldIsNotReady) {
  const auto unready = [](const kube::ContainerState& container) {
    Observed out = changed(false, {});
    auto pod = std::make_shared<kube::PodRecord>(*out.pods.front());
    pod->conditions = {{"Ready", "False", "", ""}};
    pod->containers = {container};
    out.pods = {pod};
    return out;
  };
  EXPECT_FALSE(replaces(unready(slurmctld(true, true)))) << "its node does not answer";
  EXPECT_FALSE(replaces(unready(slurmctld(false, true)))) << "it is busy";
  EXPECT_TRUE(replaces(unready(slurmctld(false, false)))) << "it has never run";
  EXPECT_TRUE(replaces(unready(slurmctld(false, true, true)))) << "that may mend it";
  Observed served = unready(slurmctld(false, true, true));
  auto pod = std::make_shared<kube::PodRecord>(*served.pods.front());
  pod->meta.uid = "u";
  served.pods = {pod};
  auto map = std::make_shared<kube::Object>();
  map->meta.annotations[std::string(api::kAnnotationServedBy)] = "u";
  served.config_map = map;
  EXPECT_FALSE(replaces(served)) << "it was up in this pod, and has that state still";
}

/// Returns a slurmctld that runs without its ConfigMap. It has the partition gpu, which no NodeSet requests any more, and the
/// partition site.
Observed without_map(const std::vector<std::string>& jobs) {
  Observed out = changed(true, jobs);
  auto snapshot = std::make_shared<slurm::Snapshot>(*out.snapshot);
  snapshot->requested_at = out.context.mono;
  snapshot->partitions.insert_or_assign("gpu", slurm::Partition{"gpu", "gpu-0", "DRAIN"});
  snapshot->partitions.insert_or_assign("site", slurm::Partition{"site", "gpu-0", "UP"});
  auto node = std::make_shared<slurm::Node>();
  node->name = "gpu-0";
  node->features = {"gpu"};
  snapshot->nodes.insert_or_assign(node->name, node);
  for (std::size_t id = 1; id <= jobs.size(); ++id) {
    auto job = std::make_shared<slurm::Job>();
    job->id = static_cast<std::int64_t>(id);
    job->state = jobs[id - 1];
    job->partition = "gpu";
    snapshot->jobs.insert_or_assign(job->id, job);
  }
  out.snapshot = snapshot;
  return out;
}

TEST(Withheld, IsTakenFromSlurmsAnswerWhereTheConfigMapIsGone) {
  const auto conf = [](const Observed& observed) { return render_config(observed, ConfigState{}).files.at("slurm.conf"); };
  const std::string partition = "\nPartitionName=gpu Nodes=gpu State=DRAIN\n";
  for (const char* state : {"RUNNING", "PENDING"}) {
    const std::string text = conf(without_map({state}));
    EXPECT_NE(text.find("\nNodeSet=gpu Feature=gpu\n"), std::string::npos) << text;
    EXPECT_NE(text.find(partition), std::string::npos) << text;
    EXPECT_EQ(text.find("PartitionName=site"), std::string::npos) << "nobody knows how it was configured";
  }
  EXPECT_EQ(conf(without_map({"COMPLETED"})).find(partition), std::string::npos);
  Observed founded = without_map({"RUNNING"});
  founded.stateful_set.reset();
  EXPECT_EQ(conf(founded).find(partition), std::string::npos) << "that is another cluster's answer";
}

TEST(Withheld, IsTakenFromSlurmsAnswerWhereTheConfigMapWasWrittenAnewBeforeThat) {
  ConfigState state;
  state.offered["slurm.conf"] = "GresTypes=nic\n";
  state.offered_hash = "new";
  const auto conf = [&](const Observed& observed) { return render_config(observed, state).files.at("slurm.conf"); };
  const std::string partition = "\nPartitionName=gpu Nodes=gpu State=DRAIN\n";
  Observed observed = without_map({"PENDING"});
  auto snapshot = std::make_shared<slurm::Snapshot>(*observed.snapshot);
  auto job = std::make_shared<slurm::Job>(*snapshot->jobs.at(1));
  job->gres = {"shard"};
  snapshot->jobs.insert_or_assign(job->id, job);
  observed.snapshot = snapshot;
  EXPECT_NE(conf(observed).find("\nNodeSet=gpu Feature=gpu\n"), std::string::npos) << conf(observed);
  EXPECT_NE(conf(observed).find(partition), std::string::npos) << "slurmctld has it yet, with a job that waits";
  EXPECT_NE(conf(observed).find("\nGresTypes=shard\n"), std::string::npos) << conf(observed);
  EXPECT_EQ(conf(without_map({"COMPLETED"})).find(partition), std::string::npos);
  state.accepted_hash = "new";
  EXPECT_EQ(conf(observed).find(partition), std::string::npos) << "it has loaded what was written";
}

TEST(Withheld, WhatJobsNeedIsOfferedThoughSlurmctldsPodIsNotReady) {
  const auto next_of = [](const std::vector<std::string>& jobs) {
    const Observed observed = without_map(jobs);
    ConfigState state;
    state.offered["slurm.conf"] = "GresTypes=nic\n";
    state.offered_hash = "new";
    state.offered_asked = render_config(observed, state).asked;
    // slurmctld's machine is cut off from Kubernetes but not from slurmrestd.
    return next_config_state(state, [&](const ConfigState& of) { return render_config(observed, of); }, {});
  };
  const auto offers = [&](const ConfigState& state) {
    return state.offered.at("slurm.conf").find("\nPartitionName=gpu Nodes=gpu State=DRAIN\n") != std::string::npos;
  };
  EXPECT_TRUE(offers(next_of({"PENDING"})));
  EXPECT_EQ(next_of({"COMPLETED"}).offered_hash, "new") << "while it starts, that is not touched";
}

TEST(Withheld, WhatSlurmctldFailsWithIsNotKeptForItsSilence) {
  ConfigState state;
  // The content has a partition that users have removed. slurmctld does not start with this partition.
  state.offered["slurm.conf"] = "PartitionName=extra Nodes=nosuch\n";
  state.offered_hash = "old";
  const auto offered_to = [&](const SlurmctldFacts& slurmctld) {
    const Observed observed = without_map({"COMPLETED"});
    const Render render = [&](const ConfigState& of) { return render_config(observed, of); };
    state.offered_asked = render(state).asked;
    if (!state.refused_hash.empty()) state.refused_asked = state.offered_asked;
    return next_config_state(state, render, slurmctld).offered_hash;
  };
  SlurmctldFacts fails, failed_before;
  fails.fails = failed_before.failed_before = true;
  EXPECT_EQ(offered_to({}), "old") << "while it starts, that is not touched";
  EXPECT_NE(offered_to(failed_before), "old");
  state.refused_hash = "old";
  EXPECT_EQ(offered_to({}), "old") << "it is refused, and there is nothing to go back to";
  EXPECT_NE(offered_to(fails), "old") << "it was refused with what was kept in it";
}

TEST(Withheld, ACrashProvesNothingWhereNobodyCanAsk) {
  Observed observed = changed(true, std::nullopt);
  auto pod = std::make_shared<kube::PodRecord>(*observed.pods.at(0));
  pod->conditions.clear();
  pod->containers = {slurmctld(false, true, true)};
  observed.pods = {pod};
  ConfigState state;
  state.offered["slurm.conf"] = "PartitionName=extra Nodes=a\n";
  state.offered_hash = "old";
  state.served_key = "it has run";
  const auto keeps = [&] {
    return render_config(observed, state).files.at("slurm.conf").contains("\nPartitionName=extra Nodes=a State=DRAIN\n");
  };
  EXPECT_FALSE(keeps()) << "what slurmctld does not start with is not kept for its silence";
  observed.restapis.clear();
  EXPECT_TRUE(keeps());
}

TEST(Withheld, NothingIsLoadedThatLacksThePartitionOfAJob) {
  ConfigState state;
  state.offered["slurm.conf"] = "MessageTimeout=10\n";
  state.offered_hash = state.accepted_hash = "former";
  Rendered wanted;
  wanted.files["slurm.conf"] = "NodeSet=gpu Feature=gpu\nPartitionName=gpu Nodes=gpu State=UP\n";
  EXPECT_THAT(load_ends_jobs(without_map({"RUNNING"}), state, wanted), ::testing::ElementsAre("gpu"));
  EXPECT_THAT(load_ends_jobs(without_map({"COMPLETED"}), state, wanted), ::testing::IsEmpty());
  state.offered["slurm.conf"] += "NodeSet=gpu Feature=gpu\nPartitionName=gpu Nodes=gpu State=DRAIN\n";
  EXPECT_THAT(load_ends_jobs(without_map({"RUNNING"}), state, wanted), ::testing::IsEmpty()) << "it has it, though otherwise";
  state.offered["slurm.conf"] = "MessageTimeout=10\n";
  wanted.files["slurm.conf"] = "MessageTimeout=20\n";
  EXPECT_THAT(load_ends_jobs(without_map({"RUNNING"}), state, wanted), ::testing::IsEmpty())
      << "its user gives it up, or it is of no file";
  wanted.partitions["gpu"] = "";
  EXPECT_THAT(load_ends_jobs(without_map({"RUNNING"}), state, wanted), ::testing::ElementsAre("gpu"))
      << "it is only left out, and is loaded all the same";
}

TEST(Withheld, OfEachNodeSetWhereTheConfigMapIsGoneAndNobodyCanAsk) {
  Observed observed = changed(true, std::nullopt);
  observed.snapshot.reset();
  observed.nodesets = {{"gpu", "gpu", false, "", false, "", "gpu-"}};
  const auto text = [&] { return render_config(observed, ConfigState{}).files.at("slurm.conf"); };
  const auto stays = [&] { return text().find("\nPartitionName=gpu Nodes=gpu State=DRAIN\n") != std::string::npos; };
  EXPECT_TRUE(stays()) << "jobs may wait there, though no worker is left: " << text();
  observed.pods.clear();
  EXPECT_TRUE(stays()) << "slurmctld's pod waits for the ConfigMap: " << text();
  observed.stateful_set.reset();
  EXPECT_FALSE(stays()) << "there has been no slurmctld";
}

TEST(Withheld, UntilAnAnswerThatWasAskedForWhenItTookNoMoreJobs) {
  Observed observed = without_map({"COMPLETED"});
  auto pod = std::make_shared<kube::PodRecord>(*observed.pods.front());
  pod->meta.annotations[std::string(api::kAnnotationConfigRefresh)] = "h.1";
  observed.pods = {pod};
  const auto stays = [&] {
    return render_config(observed, ConfigState{}).files.at("slurm.conf").find("PartitionName=gpu ") != std::string::npos;
  };
  plan::Outcome& reconfigured = observed.context.outcomes[{"reconfigure", "", "h.1"}];
  reconfigured.state = plan::Outcome::State::kDone;
  reconfigured.last = observed.context.mono;
  EXPECT_FALSE(stays());
  reconfigured.last = observed.context.mono + core::Duration{1};
  EXPECT_TRUE(stays()) << "a job may have come in between";
}

TEST(Withheld, IsLookedAtWhileWhatASlowSlurmSaysIsFresh) {
  Observed observed = without_map({"COMPLETED"});
  observed.context.mono = kNow;
  auto snapshot = std::make_shared<slurm::Snapshot>(*observed.snapshot);
  observed.snapshot = snapshot;
  const auto looks_again = [&] {
    plan::Plan plan;
    watch_withheld(observed, render_config(observed, ConfigState{}).withheld, plan);
    return plan.wake();
  };
  for (const core::Duration cost : {core::Duration{0}, core::Duration{1475}, core::Duration{29000}, core::Duration{90000}}) {
    snapshot->cost = cost;
    snapshot->requested_at = kNow - cost;
    EXPECT_EQ(looks_again(), std::nullopt) << "it goes";
    snapshot->requested_at = kNow - snapshot->good_for() - core::Duration{1};
    ASSERT_TRUE(looks_again());
    // When the next answer arrives, its age will be `cost`.
    EXPECT_LT(*looks_again(), snapshot->good_for() - cost) << "or each look may miss it: " << cost.count();
  }
}

TEST(Withheld, ThoughSlurmctldCrashesAndNobodyHeardIt) {
  ConfigState state;
  state.offered["slurm.conf"] = "NodeSet=gpu Feature=gpu\nPartitionName=gpu Nodes=gpu Odd=1\nPartitionName=site Nodes=nosuch\n";
  Observed observed = changed(true, std::nullopt);
  const auto text = [&] { return render_config(observed, state).files.at("slurm.conf"); };
  const auto stays = [&] { return text().find("\nPartitionName=gpu Nodes=gpu State=DRAIN\n") != std::string::npos; };
  auto pod = std::make_shared<kube::PodRecord>(*observed.pods.front());
  pod->containers = {slurmctld(false, true, true)};
  observed.pods = {pod};
  observed.snapshot.reset();
  EXPECT_FALSE(stays()) << "its first configuration, which it cannot read";
  observed.workers_registered = true;
  EXPECT_TRUE(stays()) << text();
  EXPECT_EQ(text().find("site"), std::string::npos) << "what may be the cause";
  observed.workers_registered = false;
  state.served_key = "slurm";
  EXPECT_TRUE(stays()) << "it was up with that key, and jobs may wait where no worker is left: " << text();
  EXPECT_EQ(text().find("site"), std::string::npos) << "what may be the cause";
  state.served_key.clear();
  state.ran = true;
  EXPECT_TRUE(stays()) << "a worker had registered, or Slurm had answered: " << text();
}

TEST(Withheld, ThatSlurmctldHasRunIsRememberedWhereNothingElseTellsOfIt) {
  const auto notes = [](const Observed& observed, const ConfigState& now) {
    const auto render = [&](const ConfigState& state) { return render_config(observed, state); };
    const ConfigState next = next_config_state(now, render, read_slurmctld(observed, now));
    const auto written = kube::record_from_json<kube::Object>(build_config_map(observed, next));
    EXPECT_EQ(read_config_state(written->get(), nullptr, nullptr), next);
    return next.ran;
  };
  ConfigState state;
  state.offered["slurm.conf"] = "NodeSet=gpu Feature=gpu\nPartitionName=gpu Nodes=gpu\n";
  state.offered_hash = "one";
  Observed observed = changed(true, std::nullopt);
  observed.snapshot.reset();
  EXPECT_FALSE(notes(observed, state));
  observed.workers_registered = true;
  EXPECT_TRUE(notes(observed, state)) << "the last worker may go";
  observed = changed(true, std::vector<std::string>{});
  EXPECT_TRUE(notes(observed, state)) << "it answers, with another configuration: this process may end";
  observed.stateful_set.reset();
  EXPECT_FALSE(notes(observed, state)) << "another cluster answers";
  state.ran = true;
  EXPECT_TRUE(notes(observed, state)) << "for good";
  state.ran = false;
  observed = changed(true, std::vector<std::string>{});
  state.served_key = "slurm";
  EXPECT_FALSE(notes(observed, state)) << "the key that it was up with tells of it";
}

TEST(Withheld, WhatWasOfferedAndMayBeLoadedWhileNobodyAnswers) {
  ConfigState state;
  state.accepted_hash = "one";
  state.offered_hash = "two";
  state.accepted["slurm.conf"] = "SchedulerType=sched/backfill\n";
  state.offered["slurm.conf"] = "NodeSet=gpu Feature=gpu\nPartitionName=gpu Nodes=gpu\n";
  Observed observed = changed(true, std::nullopt);
  const auto stays = [&] {
    return render_config(observed, state).files.at("slurm.conf").find("\nPartitionName=gpu Nodes=gpu State=DRAIN\n") !=
           std::string::npos;
  };
  observed.snapshot.reset();
  EXPECT_TRUE(stays());
}

TEST(Withheld, WhatWasOfferedUntilThatIsLoaded) {
  ConfigState state;
  state.accepted_hash = "one";
  state.offered_hash = "two";
  state.accepted["slurm.conf"] = "SchedulerType=sched/backfill\n";
  state.offered["slurm.conf"] = "NodeSet=gpu Feature=gpu\nPartitionName=gpu Nodes=gpu Odd=1\nPartitionName=site Nodes=nosuch\n";
  // Slurm answers that slurmctld runs the configuration `loaded` and has the partition gpu in the state `gpu`.
  const auto text = [&](const std::string& loaded, const char* gpu) {
    Observed observed = changed(true, std::vector<std::string>{});
    auto snapshot = std::make_shared<slurm::Snapshot>(*observed.snapshot);
    snapshot->requested_at = observed.context.mono;
    const std::string marker = "slurm-operator-" + loaded;
    snapshot->partitions.insert_or_assign(marker, slurm::Partition{marker, "", "INACTIVE", true});
    if (gpu != nullptr) snapshot->partitions.insert_or_assign("gpu", slurm::Partition{"gpu", "", gpu});
    observed.snapshot = snapshot;
    return render_config(observed, state).files.at("slurm.conf");
  };
  const auto stays = [](const std::string& conf) {
    return conf.find("\nPartitionName=gpu Nodes=gpu State=DRAIN\n") != std::string::npos;
  };
  EXPECT_TRUE(stays(text("one", nullptr))) << "the volume may bring it yet: " << text("one", nullptr);
  EXPECT_NE(text("one", nullptr).find("\nNodeSet=gpu Feature=gpu\n"), std::string::npos);
  EXPECT_EQ(text("one", nullptr).find("site"), std::string::npos) << "a user takes back what slurmctld may not read";
  EXPECT_EQ(text("two", "DRAIN").find("PartitionName=gpu"), std::string::npos) << "it takes no jobs, and has none";
  state.left_out["gpu"] = LeftOut{};
  EXPECT_EQ(text("one", nullptr).find("PartitionName=gpu"), std::string::npos) << "slurmctld refused it";
  state.left_out.clear();
  state.accepted["slurm.conf"] = "NodeSet=gpu Feature=gpu\nPartitionName=gpu Nodes=gpu State=DRAIN\n";
  EXPECT_TRUE(stays(text("one", "DRAIN"))) << "it was asked for once more meanwhile, and may be UP yet";
  state.accepted.clear();
  state.accepted_hash.clear();
  state.refused_hash = "two";
  EXPECT_EQ(text("one", nullptr).find("PartitionName=gpu"), std::string::npos) << "and nobody can go back";
}

TEST(Withheld, WhatMayHaveBeenLoadedBetweenTheAcceptedAndTheOneThatSlurmctldCrashesWith) {
  ConfigState state;
  state.accepted_hash = "one";
  state.offered_hash = "three";
  state.accepted["slurm.conf"] = "NodeSet=cpu Feature=cpu\nPartitionName=cpu Nodes=cpu MaxTime=5\n";
  // The second content also had the partition gpu. slurmctld loaded the second content, but this load was never recorded.
  state.offered["slurm.conf"] =
      "NodeSet=cpu Feature=cpu\nNodeSet=gpu Feature=gpu\nPartitionName=cpu Nodes=cpu MaxTime=9\n"
      "PartitionName=gpu Nodes=gpu Odd=1\nPartitionName=site Nodes=nosuch\n";
  Observed observed = changed(true, std::nullopt);
  observed.snapshot.reset();
  auto pod = std::make_shared<kube::PodRecord>(*observed.pods.front());
  pod->containers = {slurmctld(false, true, true)};
  observed.pods = {pod};
  const auto text = [&] { return render_config(observed, state).files.at("slurm.conf"); };
  EXPECT_NE(text().find("\nNodeSet=gpu Feature=gpu\n"), std::string::npos) << text();
  EXPECT_NE(text().find("\nPartitionName=gpu Nodes=gpu State=DRAIN\n"), std::string::npos) << "its jobs would end: " << text();
  EXPECT_NE(text().find("\nPartitionName=cpu Nodes=cpu MaxTime=5 State=DRAIN\n"), std::string::npos) << "as it was accepted";
  EXPECT_EQ(text().find("site"), std::string::npos) << "it may be what slurmctld ends with";
  auto object = std::make_shared<kube::Object>(*observed.object);
  object->meta.annotations[std::string(api::kAnnotationRemoveNow)] = "partition/gpu";
  observed.object = object;
  EXPECT_EQ(text().find("PartitionName=gpu"), std::string::npos) << "its user gives it up";
}

TEST(Withheld, FromAJobThatCannotBeRead) {
  Observed observed = without_map({"COMPLETED"});
  auto snapshot = std::make_shared<slurm::Snapshot>(*observed.snapshot);
  auto job = std::make_shared<slurm::Job>();
  job->id = -1;
  job->state = "RUNNING";
  snapshot->jobs.insert_or_assign(job->id, job);
  observed.snapshot = snapshot;
  const std::string text = render_config(observed, ConfigState{}).files.at("slurm.conf");
  EXPECT_NE(text.find("PartitionName=gpu "), std::string::npos) << "it may be of any partition";
}

TEST(Withheld, KindsOfGresAreTakenFromJobsWhereTheConfigMapIsGone) {
  Observed observed = without_map({"RUNNING", "PENDING", "COMPLETED"});
  auto snapshot = std::make_shared<slurm::Snapshot>(*observed.snapshot);
  const std::vector<std::vector<std::string>> gres{{"gpu", "shard"}, {"gpu"}, {"nic"}};
  for (std::size_t id = 1; id <= gres.size(); ++id) {
    auto job = std::make_shared<slurm::Job>(*snapshot->jobs.at(static_cast<std::int64_t>(id)));
    job->gres = gres[id - 1];
    snapshot->jobs.insert_or_assign(job->id, job);
  }
  observed.snapshot = snapshot;
  const auto conf = [&] { return render_config(observed, ConfigState{}).files.at("slurm.conf"); };
  EXPECT_NE(conf().find("\nGresTypes=gpu,shard\n"), std::string::npos) << conf();
  observed.controller.spec.extra_conf = "GresTypes=shard\n";
  EXPECT_NE(conf().find("\nGresTypes=shard,gpu\n"), std::string::npos) << conf();
}

/// Returns the condition that the plan writes, as "status reason: message".
std::string condition(const plan::Plan& plan, std::string_view type) {
  const Json written = plan.describe();
  for (const Json& item : written["lanes"]["status"][0][0]["do"]["patch"]["status"]["conditions"]) {
    if (item["type"] != type) continue;
    return core::get_string(item, {"status"}) + " " + core::get_string(item, {"reason"}) + ": " +
           core::get_string(item, {"message"});
  }
  return "none";
}

/// Returns a cluster without workers. The user's Secret has data that differ from the keyring. `jobs`: the states of the jobs
/// in Slurm's last answer. nullopt: no jobs.
Observed key_changed(std::optional<std::vector<std::string>> jobs, slurm::Snapshot::Health health) {
  Observed out = changed(true, jobs.value_or(std::vector<std::string>{}));
  auto snapshot = std::make_shared<slurm::Snapshot>(*out.snapshot);
  snapshot->health = health;
  out.snapshot = snapshot;
  auto set = std::make_shared<kube::Object>(*out.stateful_set);
  set->meta.annotations[std::string(kube::kIntentHash)] = "h";
  set->body["spec"]["template"]["metadata"]["annotations"][std::string(api::kAnnotationSlurmKeyHash)] = "slurm";
  out.stateful_set = set;
  out.slurm_key.meta = kube::ObjectMeta{};
  out.slurm_key.digest = "other";
  out.slurm_key.content = "other content";
  return out;
}

/// Records in the ConfigMap that slurmctld loaded the configuration `accepted` and was last up with the key `served`.
void remember(Observed& observed, const std::string& accepted, const std::string& served) {
  ConfigState state;
  state.offered["slurm.conf"] = "x";
  state.offered_hash = "c";
  state.accepted_hash = accepted;
  state.served_key = served;
  observed.config_map = *kube::record_from_json<kube::Object>(build_config_map(observed, state));
}

bool renews(const Observed& observed) {
  return plan(observed).describe().dump().find("update Secret x-keyring") != std::string::npos;
}

TEST(KeyChanged, WaitsForJobsThatSlurmToldOfLast) {
  using Health = slurm::Snapshot::Health;
  EXPECT_TRUE(renews(key_changed({{"COMPLETED", "PENDING"}}, Health::kComplete)));
  EXPECT_FALSE(renews(key_changed({{"RUNNING"}}, Health::kComplete)));
  Observed stale = key_changed({{"RUNNING"}}, Health::kStale);
  EXPECT_FALSE(renews(stale)) << "after a change of leaders";
  stale.pods.clear();
  EXPECT_FALSE(renews(stale)) << "slurmctld is being replaced";
  Observed told = stale;
  auto object = std::make_shared<kube::Object>(*told.object);
  object->meta.annotations[std::string(api::kAnnotationLoseJobs)] = "true";
  told.object = object;
  EXPECT_TRUE(renews(told)) << "a user knows better than a Slurm that does not answer";
  told.snapshot = key_changed({{"RUNNING"}}, Health::kComplete).snapshot;
  EXPECT_FALSE(renews(told)) << "but not than one that does";
  stale.restapis.clear();
  EXPECT_FALSE(renews(stale)) << "nobody can look any more";
}

TEST(KeyChanged, WaitsWhileNobodyKnows) {
  using Health = slurm::Snapshot::Health;
  for (const Health health : {Health::kStale, Health::kNone}) {
    Observed observed = key_changed({}, health);
    EXPECT_FALSE(renews(observed)) << "it runs";
    EXPECT_NE(condition(plan(observed), "KeyChanged").find("Slurm to answer"), std::string::npos);
    observed.pods.clear();
    remember(observed, "c", "slurm");
    EXPECT_FALSE(renews(observed)) << "it has served";
    remember(observed, "c", "");
    EXPECT_FALSE(renews(observed)) << "so it has, by a build that did not note the key";
    auto object = std::make_shared<kube::Object>(*observed.object);
    object->meta.annotations[std::string(api::kAnnotationLoseJobs)] = "true";
    observed.object = object;
    EXPECT_TRUE(renews(observed)) << "a user wants it";
  }
  Observed blind = key_changed({}, Health::kNone);
  blind.restapis.clear();
  blind.snapshot.reset();
  EXPECT_TRUE(renews(blind)) << "nobody can ever look";
  blind.workers.push_back("cpu-0");
  EXPECT_FALSE(renews(blind));
}

TEST(KeyChanged, DoesNotWaitForASlurmctldThatNeverWasUpWithTheKey) {
  for (const bool crashes : {false, true}) {
    Observed observed = key_changed({}, slurm::Snapshot::Health::kNone);
    auto pod = std::make_shared<kube::PodRecord>(*observed.pods.front());
    pod->conditions = {{"Ready", "False", "", ""}};
    pod->containers = {slurmctld(false, crashes, crashes)};
    observed.pods = {pod};
    EXPECT_TRUE(renews(observed)) << "the first key";
    remember(observed, "c", "the one before");
    EXPECT_TRUE(renews(observed)) << "a later key";
    remember(observed, "c", "slurm");
    EXPECT_FALSE(renews(observed)) << "it was up with this one";
  }
}

TEST(KeyChanged, TheKeyOfASlurmctldThatIsUpIsRemembered) {
  Observed observed = key_changed({{"RUNNING"}}, slurm::Snapshot::Health::kComplete);
  remember(observed, "c", "the one before");
  const auto pod = [&](const char* ready) {
    auto out = std::make_shared<kube::PodRecord>(*observed.pods.front());
    out->meta.annotations[std::string(api::kAnnotationSlurmKeyHash)] = "slurm";
    out->conditions = {{"Ready", ready, "", ""}};
    observed.pods = {out};
    return read_slurmctld(observed, read_config_state(observed.config_map.get())).key;
  };
  EXPECT_EQ(pod("False"), "");
  EXPECT_EQ(pod("True"), "slurm");
  const ConfigState now = read_config_state(observed.config_map.get());
  const auto render = [&](const ConfigState& state) { return render_config(observed, state); };
  const ConfigState next = next_config_state(now, render, read_slurmctld(observed, now));
  EXPECT_EQ(next.served_key, "slurm");
  const auto written = kube::record_from_json<kube::Object>(build_config_map(observed, next));
  EXPECT_EQ(read_config_state(written->get()).served_key, "slurm");
}

TEST(Keyring, WhatCannotBeReadMayBeEdited) {
  Observed observed = key_changed({{"RUNNING"}}, slurm::Snapshot::Health::kComplete);
  remember(observed, "c", "slurm");
  const auto writes = [&] { return plan(observed).describe().dump().find("apply ConfigMap") != std::string::npos; };
  EXPECT_TRUE(writes());
  observed.keyring.presence = kube::Presence::kUnknown;
  EXPECT_FALSE(writes());
}

TEST(Keyring, WhatCannotBeReadMayHaveTheKeyThatIsGone) {
  Observed observed = observed_of(Json::object());
  auto object = std::make_shared<kube::Object>(*observed.object);
  object->meta.finalizers = {std::string(api::kFinalizerController)};
  observed.object = object;
  observed.slurm_key = {observed.slurm_key.ref, kube::Presence::kAbsent, false, "", {}, ""};
  const auto makes = [&](const char* recipe) {
    const std::string text = plan(observed).describe().dump();
    return text.find("create Secret x-slurm-key") != std::string::npos && text.find(recipe) != std::string::npos;
  };
  EXPECT_TRUE(makes("$copy"));
  observed.keyring.presence = kube::Presence::kAbsent;
  EXPECT_TRUE(makes("$generate"));
  observed.keyring.presence = kube::Presence::kUnknown;
  EXPECT_FALSE(makes("")) << "another one than daemons mount would wait until there is no worker";
  observed.workers = {"cpu-0"};
  EXPECT_FALSE(makes(""));
  EXPECT_EQ(condition(plan(observed), "SecretsReady"), "False Waiting: Secret ns/x-slurm-key does not exist yet");
}

TEST(StateInMemory, IsToldBeforeItIsLost) {
  EXPECT_NE(plan(changed(false, {})).describe().dump().find("StateInMemory"), std::string::npos);
  EXPECT_EQ(plan(changed(true, {})).describe().dump().find("StateInMemory"), std::string::npos);
}

TEST(End, NothingIsDoneBeforeTheStatefulSetWasRead) {
  Observed observed = ending();
  EXPECT_EQ(plan(observed).step_count(), 0U);
  EXPECT_EQ(plan(observed).needs().size(), 1U);
  answer(observed, core::fail(core::ErrorCode::kUnavailable, "away"));
  EXPECT_EQ(plan(observed).step_count(), 0U);
  EXPECT_GT(plan(observed).wake(), core::Duration{0});
}

TEST(End, OfAControllerThatGoesAlone) {
  Observed observed = ending();
  answer(observed, Json{{"metadata", {{"name", "x-controller"}}}});
  const plan::Plan alone = plan(observed);
  EXPECT_TRUE(alone.lanes().contains("tidy"));
  EXPECT_FALSE(alone.lanes().contains("workers"));
  EXPECT_FALSE(alone.lanes().contains("status")) << "workers go once it is told";
}

TEST(End, IsToldBeforeAnybodyActsOnIt) {
  Observed observed = ending();
  answer(observed,
         Json{{"metadata", {{"name", "x-controller"}, {"ownerReferences", {{{"kind", "Controller"}, {"uid", "u"}}}}}}});
  const plan::Plan first = plan(observed);
  EXPECT_FALSE(first.lanes().contains("workers"));
  ASSERT_TRUE(first.lanes().contains("status"));
  auto told = std::make_shared<kube::Object>(*observed.object);
  told->body["status"]["conditions"] = {{{"type", "Progressing"}, {"status", "True"}, {"reason", "Terminating"}}};
  observed.object = told;
  observed.context.facts.clear();
  EXPECT_TRUE(plan(observed).lanes().contains("workers"));
  EXPECT_TRUE(plan(observed).needs().empty());
}

TEST(Records, AreDeletedAFewInAPass) {
  const plan::Plan few = plan(with_records(3, core::Duration{0}));
  EXPECT_EQ(deleted_records(few), 3U);
  EXPECT_NE(few.wake_reason(), "Slurm still has node records of workers");
  const plan::Plan many = plan(with_records(100, core::Duration{0}));
  EXPECT_GT(deleted_records(many), 20U);
  EXPECT_LE(deleted_records(many), 32U);
  EXPECT_EQ(many.wake(), core::Duration{1000});
  EXPECT_EQ(many.wake_reason(), "Slurm still has node records of workers");
}

TEST(Records, AreDeletedOnEvidenceThatAges) {
  const plan::Plan some = plan(with_records(3, core::Duration{0}));
  for (const plan::Step& step : some.lanes().find("records")->second.groups().front()) {
    const auto* act = dynamic_cast<const slurm::DeleteNode*>(step.act.get());
    ASSERT_NE(act, nullptr);
    ASSERT_TRUE(act->evidence);
    EXPECT_EQ(act->evidence->kind(), "LeftBehind");
    EXPECT_FALSE(act->evidence->good_at(kNow + core::Duration{60000}));
  }
}

TEST(Records, StayWhereSlurmIsDoubted) {
  Observed observed = with_records(3, core::Duration{0});
  observed.doubt = "Slurm does not know 3 of 4 workers";
  EXPECT_EQ(deleted_records(plan(observed)), 0U);
}

TEST(Records, OfAnOldSnapshotWaitForAFreshOne) {
  const plan::Plan old = plan(with_records(3, core::Duration{60000}));
  EXPECT_EQ(deleted_records(old), 0U);
  EXPECT_EQ(old.wake(), core::Duration{1000});
  EXPECT_EQ(old.wake_reason(), "Slurm still has node records of workers");
}

plan::Plan with_finalizer_and_claim(const char* phase) {
  Observed observed = observed_of(Json::object());
  auto object = std::make_shared<kube::Object>(*observed.object);
  object->meta.finalizers = {std::string(api::kFinalizerController)};
  observed.object = object;
  observed.claim = *kube::record_from_json<kube::Object>({{"kind", "PersistentVolumeClaim"},
                                                          {"metadata", {{"namespace", "ns"}, {"name", "state"}}},
                                                          {"status", {{"phase", phase}}}});
  return plan(observed);
}

TEST(Claim, ALostOneDoesNotMendItself) {
  EXPECT_EQ(condition(with_finalizer_and_claim("Lost"), "Degraded"), "True ClaimPending: PersistentVolumeClaim state is Lost");
  EXPECT_EQ(condition(with_finalizer_and_claim("Pending"), "Degraded"), "False AsExpected: ");
  EXPECT_EQ(condition(with_finalizer_and_claim("Pending"), "Progressing"),
            "True ClaimPending: PersistentVolumeClaim state is Pending; slurmctld is starting");
}

/// Returns a cluster that runs without the partition of NodeSet a, which slurmctld refused at second 0. `trying`: the partition
/// is being offered once more.
Observed without_partition(bool trying, int seconds) {
  Observed out = observed_of(Json::object());
  auto object = std::make_shared<kube::Object>(*out.object);
  object->meta.finalizers = {std::string(api::kFinalizerController)};
  out.object = object;
  out.context.mono = kNow;
  out.context.now = core::WallTime{core::Duration{seconds * 1000}};
  out.restapis = {{"r"}};
  out.nodesets = {{"a", "a", true, "QOS=later", false, "", "a-"}};
  out.pods = {*kube::record_from_json<kube::PodRecord>(
      {{"kind", "Pod"},
       {"metadata", {{"namespace", "ns"}, {"name", "x-controller-0"}}},
       {"status", {{"phase", "Running"}, {"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})}}}})};
  ConfigState state;
  state.left_out["a"] = {"QOS=later", "no", core::WallTime{}, 1};
  const Rendered accepted = render_config(out, state);
  state.offered = accepted.files;
  state.offered_hash = state.accepted_hash = accepted.hash;
  if (trying) {
    state.left_out["a"].trying = true;
    const Rendered tried = render_config(out, state);
    state.accepted = accepted.files;
    state.offered = tried.files;
    state.offered_hash = tried.hash;
  }
  out.config_map = *kube::record_from_json<kube::Object>(build_config_map(out, state));
  auto snapshot = std::make_shared<slurm::Snapshot>();
  snapshot->health = slurm::Snapshot::Health::kComplete;
  snapshot->requested_at = kNow;
  const std::string line = slurm::conf::marker_partition(slurm::Owner::kOperator, accepted.hash);
  const std::string name = line.substr(line.find('=') + 1, line.find(' ') - line.find('=') - 1);
  snapshot->partitions.insert_or_assign(name, slurm::Partition{name, "", "INACTIVE", true});
  out.snapshot = snapshot;
  return out;
}

TEST(PartitionRetry, IsDueByTime) {
  const plan::Plan waits = plan(without_partition(false, 30));
  EXPECT_EQ(waits.wake(), core::Duration{30000});
  EXPECT_EQ(waits.wake_reason(), "what slurmctld refused is tried again");
}

TEST(PartitionRetry, WhatIsToldStaysMeanwhile) {
  const Observed trying = without_partition(true, 30);
  ASSERT_NE(read_config_state(trying.config_map.get()).offered_hash, read_config_state(trying.config_map.get()).accepted_hash);
  const plan::Plan rests = plan(without_partition(false, 30)), tries = plan(trying);
  EXPECT_TRUE(condition(rests, "ConfigAccepted").starts_with("False PartitionInvalid: ")) << condition(rests, "ConfigAccepted");
  EXPECT_TRUE(condition(rests, "Degraded").starts_with("True PartitionInvalid: ")) << condition(rests, "Degraded");
  for (const char* type : {"Ready", "Progressing", "Degraded", "ConfigAccepted", "Reconfigured"})
    EXPECT_EQ(condition(tries, type), condition(rests, type));
}

TEST(Files, OfAllThatTheSpecNamesFitIntoOneConfigMap) {
  Observed observed = observed_of(Json::object());
  const auto files = [](const char* map, const char* file, std::size_t size) {
    return NamedFiles{map, kube::Presence::kPresent, {{file, std::string(size, 'x')}}};
  };
  observed.config_files = {files("small", "a.conf", 24), files("big", "job_submit.lua", 900 * 1024)};
  observed.prolog = {files("scripts", "prolog.sh", 100 * 1024)};
  // The file of ConfigMap big replaces this file, because both have the same name and big sorts after as-well.
  observed.epilog = {files("as-well", "job_submit.lua", 900 * 1024)};
  observed.prolog_slurmctld = {files("more", "ctld.sh", 24 * 1024 - 24)};
  EXPECT_TRUE(render_config(observed, ConfigState{}).ok());
  observed.epilog_slurmctld = {{"one-byte", kube::Presence::kPresent, {{"end.sh", "x"}}}};
  const Rendered large = render_config(observed, ConfigState{});
  ASSERT_EQ(large.problems.size(), 1U);
  EXPECT_EQ(large.problems.front().reason, "FilesTooLarge");
  EXPECT_EQ(
      large.problems.front().message,
      "the files and scripts that the spec names have 1025 KiB together, and the operator keeps copies of 1024 KiB at most: "
      "the largest one is job_submit.lua of ConfigMap ns/big, with 900 KiB");
  EXPECT_TRUE(large.files.empty());
  // A binary file counts with its decoded size.
  observed.epilog_slurmctld = {{"one-byte", kube::Presence::kPresent, {}, {{"plugin.so", std::string(1024, 'A')}}}};
  observed.prolog_slurmctld = {files("more", "ctld.sh", 23 * 1024 + 256 - 24)};
  EXPECT_TRUE(render_config(observed, ConfigState{}).ok());
}

TEST(Files, OfTwoConfigMapsTheLaterOneHides) {
  Observed observed = observed_of(Json::object());
  observed.config_files = {
      {"b", kube::Presence::kPresent, {{"x", "of b"}, {"slurm.conf", "no"}, {"accepted.x", "too"}}, {{"y", "AAAA"}}},
      {"a", kube::Presence::kPresent, {{"x", "of a"}, {"y", "text"}}, {{"slurm.key", "AAAA"}}}};
  Rendered rendered = render_config(observed, ConfigState{});
  for (const char* ours : {"slurm.conf", "cgroup.conf"}) EXPECT_EQ(rendered.files.erase(ours), 1U);
  EXPECT_EQ(rendered.files,
            (std::map<std::string, std::string>{{"/", ""}, {"/x", "of b"}, {"//y", "AAAA"}, {"/accepted.x", "too"}}));
  std::vector<std::string> told;
  for (const Problem& warning : rendered.warnings) told.push_back(warning.reason + ": " + warning.message);
  EXPECT_EQ(told,
            (std::vector<std::string>{
                "FileReserved: ConfigMap a: its file slurm.key is ignored, because the operator writes that file itself",
                "FileReserved: ConfigMap b: its file slurm.conf is ignored, because the operator writes that file itself",
                "FileHidden: ConfigMaps a and b both have a file x: in /etc/slurm the one of b hides the other, so rename "
                "one of them",
                "FileHidden: ConfigMaps a and b both have a file y: in /etc/slurm the one of b hides the other, so rename "
                "one of them"}));
}

/// slurmctld reports the cause of a refusal only in its log.
TEST(Refusal, NamesWhatSlurmMayNotKnow) {
  EXPECT_EQ(partition_doubts("a", "State=UP MaxTime=60"), "");
  EXPECT_NE(partition_doubts("a", "State=UP Nosuch=60").find("Nosuch"), std::string::npos);

  Observed observed = without_partition(false, 30);
  observed.config_files = {{"files",
                            kube::Presence::kPresent,
                            {{"topology.yaml",
                              "- topology: t\n  block:\n    blocks:\n      - block: b\n        nodes: a-[0-3]\n      - nodes: "
                              "'b-7'\n        block: c\n"}}}};
  auto snapshot = std::make_shared<slurm::Snapshot>(*observed.snapshot);
  for (const char* name : {"a-0", "a-2"}) {
    slurm::Node node;
    node.name = name;
    snapshot->nodes.emplace(name, std::make_shared<slurm::Node>(node));
  }
  observed.snapshot = snapshot;
  EXPECT_EQ(topology_hint(observed), "; topology.yaml names nodes that Slurm does not know: a-[1,3],b-7");
  observed.snapshot = nullptr;
  EXPECT_EQ(topology_hint(observed), "") << "nothing is known";
}

}  // namespace
}  // namespace op::controller
