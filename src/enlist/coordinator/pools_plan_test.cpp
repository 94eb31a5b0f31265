#include "enlist/coordinator/pools_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "slurm/acts.hpp"
#include "slurm/conf/loaded.hpp"

namespace enlist {
namespace {

using namespace std::chrono_literals;
using slurm::rollout::State;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using testing::Pair;

using Pools = std::map<std::string, Pool>;

Pool pool(const std::string& name, const std::string& conf = "") {
  return {.name = name, .partition_conf = conf};
}
Pools of(std::initializer_list<Pool> pools) {
  Pools out;
  for (const Pool& one : pools) out.emplace(one.name, one);
  return out;
}

/// A rollout with nothing to do: slurmctld runs with the pool file of the pool "cpu".
struct PoolsPlan : testing::Test {
  PoolsPlan() {
    observed.cluster = "c";
    observed.context.now = core::WallTime{core::Duration{1'767'323'045'000}};
    observed.context.mono = core::MonoTime{core::Duration{1'000'000}};
    observed.pools = of({pool("cpu")});
    store(state_of(observed.pools));
    observed.file = text(observed.pools);
    snapshot->health = slurm::Snapshot::Health::kComplete;
    snapshot->capabilities.release = "26.05.5";
    load(observed.pools);
  }

  static std::string text(const Pools& pools) { return pool_file(pools); }
  static std::string hash(const Pools& pools) { return hash_of(pool_file(pools)); }
  static slurm::rollout::Files files(const Pools& pools) { return {{std::string(kPoolFile), text(pools)}}; }
  static State state_of(const Pools& pools) {
    State out;
    out.offered = files(pools);
    out.offered_hash = out.accepted_hash = hash(pools);
    return out;
  }
  /// Returns the state in which `to` is offered and `from` was accepted.
  static State on_the_way(const Pools& from, const Pools& to) {
    State out = state_of(to);
    out.accepted = files(from);
    out.accepted_hash = hash(from);
    return out;
  }
  void store(const State& state) { observed.state = to_json(state); }
  void load(const Pools& pools) {
    snapshot->partitions.clear();
    const std::string name = slurm::conf::marker_name(slurm::Owner::kEnlistment, hash(pools));
    snapshot->partitions[name] = {name, "", "INACTIVE"};
    for (const auto& [own, pool] : pools) snapshot->partitions[own] = {own, "", "UP"};
    observed.slurm = snapshot;
  }
  void silence() {
    snapshot->health = slurm::Snapshot::Health::kStale;
    snapshot->error_code = core::ErrorCode::kUnavailable;
    snapshot->from_server = true;
    snapshot->failures = 3;
  }
  void add_job(const std::string& partition) {
    slurm::Job job;
    job.id = 7;
    job.state = "PENDING";
    job.partition = partition;
    snapshot->jobs[7] = std::make_shared<const slurm::Job>(job);
  }
  /// Records how the reconfigure to `state` ended.
  void ended(const State& state, std::optional<core::Error> error, core::Duration ago = 0ms, int count = 1) {
    ended(reconfigure_id(state), std::move(error), ago, count);
  }
  void ended(const plan::StepId& id, std::optional<core::Error> error, core::Duration ago = 0ms, int count = 1) {
    const auto state = error ? plan::Outcome::State::kFailed : plan::Outcome::State::kDone;
    observed.context.outcomes[id] = {state, count, observed.context.mono - ago, observed.context.mono - ago, std::move(error)};
  }
  static core::Error refusal() { return {core::ErrorCode::kInvalid, "bad line", 0, {}, {}}; }

  /// Returns the steps of the plan, in their order.
  std::vector<std::string> steps() {
    plan = plan_pools(observed);
    std::vector<std::string> out;
    for (const auto& [name, lane] : plan.lanes()) {
      for (const auto& group : lane.groups()) {
        EXPECT_LE(group.size(), 1U);
        for (const plan::Step& step : group) out.push_back(step.id.verb);
      }
    }
    return out;
  }
  template <class Kind>
  std::shared_ptr<const Kind> act() {
    for (const auto& [name, lane] : plan.lanes()) {
      for (const auto& group : lane.groups()) {
        for (const plan::Step& step : group) {
          if (auto found = std::dynamic_pointer_cast<const Kind>(step.act)) return found;
        }
      }
    }
    ADD_FAILURE() << "the plan has no such act";
    return nullptr;
  }
  /// Updates `observed` with what the plan's RecordRollout stores.
  void note_record() {
    const auto record = act<RecordRollout>();
    if (record->state) observed.state = *record->state;
    observed.problems = record->problems.empty() ? std::nullopt : std::optional(core::Json(record->problems));
    observed.found.insert(record->found.begin(), record->found.end());
  }
  State recorded() { return *rollout_from_json(act<RecordRollout>()->state.value()); }
  std::map<std::string, std::string> problems() { return act<RecordRollout>()->problems; }

  const Pools cpu = of({pool("cpu")});
  const Pools both = of({pool("cpu"), pool("gpu", "MaxTime=1-0")});
  PoolsObserved observed{};
  std::shared_ptr<slurm::Snapshot> snapshot = std::make_shared<slurm::Snapshot>();
  plan::Plan plan;
};

TEST_F(PoolsPlan, AtRestDoesNothing) {
  EXPECT_THAT(steps(), IsEmpty());
  EXPECT_EQ(plan.wake(), std::nullopt);
  observed.pools.at("cpu").next_number = 9;
  observed.pools.at("cpu").node_conf = "Weight=5";
  EXPECT_THAT(steps(), IsEmpty()) << "that is not in the file";
}

TEST_F(PoolsPlan, LoadsTheFileAgainWhenSlurmctldLacksAPartitionOfIt) {
  // Somebody has removed lines, but not the marker, and has reconfigured slurmctld.
  std::string edited = text(observed.pools);
  const std::size_t line = edited.find("PartitionName=cpu");
  observed.file = edited.erase(line, edited.find('\n', line) + 1 - line);
  snapshot->partitions.erase("cpu");
  EXPECT_THAT(steps(), ElementsAre("write", "look for", "reconfigure"));
  observed.file = text(observed.pools);
  EXPECT_THAT(steps(), ElementsAre("look for", "reconfigure"));
  ended(state_of(observed.pools), {}, 500ms);
  EXPECT_THAT(steps(), IsEmpty()) << "it is not tried again at once";
  EXPECT_TRUE(plan.wake());
  snapshot->partitions["cpu"] = {"cpu", "", "UP"};
  EXPECT_THAT(steps(), IsEmpty());
}

TEST_F(PoolsPlan, BeginsWithAFileWithoutPools) {
  observed.pools.clear();
  observed.state.reset();
  observed.file = std::optional<std::string>();
  observed.slurm.reset();
  EXPECT_THAT(steps(), ElementsAre("record", "write")) << "slurm.conf includes it, so it must exist when slurmctld starts";
  EXPECT_EQ(recorded(), state_of({}));
  EXPECT_EQ(act<WritePoolFile>()->text, text({}));
}

TEST_F(PoolsPlan, OffersAnotherPool) {
  observed.pools = both;
  EXPECT_THAT(steps(), ElementsAre("record", "write", "look for", "reconfigure"));
  EXPECT_EQ(recorded(), on_the_way(cpu, both));
  EXPECT_EQ(act<WritePoolFile>()->text, text(both));
  EXPECT_EQ(act<slurm::Reconfigure>()->cluster, "c");
  EXPECT_EQ(plan.waits_on(), std::set<std::string>{"c"});
}

TEST_F(PoolsPlan, WaitsUntilThePoolsStayTheSame) {
  observed.pools = both;
  const core::MonoTime now = observed.context.mono;
  observed.edits = Edits{now - 300ms, now - 300ms};
  EXPECT_THAT(steps(), IsEmpty());
  EXPECT_EQ(plan.wake(), 700ms);
  observed.edits = Edits{now - 4800ms, now - 100ms};
  EXPECT_THAT(steps(), IsEmpty());
  EXPECT_EQ(plan.wake(), 200ms) << "at most five seconds in all";
  observed.edits = Edits{now - 1s, now - 1s};
  EXPECT_THAT(steps(), ElementsAre("record", "write", "look for", "reconfigure"));
}

TEST_F(PoolsPlan, ConfirmsWhatIsLoaded) {
  observed.pools = both;
  observed.file = text(both);
  store(on_the_way(cpu, both));
  ended(on_the_way(cpu, both), {});
  load(both);
  EXPECT_THAT(steps(), ElementsAre("record"));
  EXPECT_EQ(recorded(), state_of(both));
}

TEST_F(PoolsPlan, GoesOnAfterACrash) {
  observed.pools = both;
  store(on_the_way(cpu, both));
  EXPECT_THAT(steps(), ElementsAre("write", "look for", "reconfigure")) << "between the state and the file";
  observed.file = text(both);
  EXPECT_THAT(steps(), ElementsAre("look for", "reconfigure")) << "between the file and the reconfigure";
}

TEST_F(PoolsPlan, ReconfiguresUntilItIsLoaded) {
  observed.pools = both;
  observed.file = text(both);
  const State state = on_the_way(cpu, both);
  store(state);
  ended(state, {}, 300ms);
  EXPECT_THAT(steps(), IsEmpty());
  EXPECT_EQ(plan.wake(), 700ms);
  EXPECT_THAT(plan.remembered(), testing::Contains(reconfigure_id(state)));
  ended(state, {}, 1s);
  EXPECT_THAT(steps(), ElementsAre("look for", "reconfigure"));
  ended(state, {}, 2s, 3);
  EXPECT_THAT(steps(), ElementsAre("record"));
  EXPECT_EQ(plan.wake(), 2s) << "ever more rarely";
  EXPECT_EQ(act<RecordRollout>()->state, std::nullopt);
  EXPECT_THAT(problems(), ElementsAre(Pair("cpu", HasSubstr("Include slurm-enlist.conf")), Key("gpu")));
  observed.problems = problems();
  EXPECT_THAT(steps(), IsEmpty());
  ended(state, core::Error{core::ErrorCode::kUnavailable, "away", 0, {}, {}});
  observed.problems.reset();
  EXPECT_THAT(steps(), ElementsAre("look for", "reconfigure")) << "no answer is no refusal";
}

TEST_F(PoolsPlan, WritesTheAcceptedFileBackAtOnce) {
  observed.pools = both;
  observed.file = text(both);
  State state = on_the_way(cpu, both);
  store(state);
  ended(state, refusal());
  EXPECT_THAT(steps(), ElementsAre("record", "write", "look for", "reconfigure"));
  EXPECT_EQ(act<WritePoolFile>()->text, text(cpu));
  EXPECT_THAT(problems(),
              ElementsAre(Pair(
                  "gpu", "slurmctld refused the pool file: bad line. The coordinator tries it again at 2026-01-02T03:05:05Z")));
  EXPECT_THAT(plan.remembered(), testing::Contains(reconfigure_id(state))) << "until it is stored";
  state = recorded();
  EXPECT_EQ(state.offered, files(cpu));
  EXPECT_EQ(state.refused_hash, hash(both));

  // slurmctld has to read the accepted file once, because until then it sends the refused one to slurmds.
  store(state);
  observed.file = text(cpu);
  observed.problems = problems();
  observed.context.outcomes.clear();
  EXPECT_THAT(steps(), ElementsAre("look for", "reconfigure"));
  ended(state, {});
  EXPECT_THAT(steps(), IsEmpty());
  EXPECT_EQ(plan.wake(), 60s);
  ended(state, refusal(), 3h, 4);
  EXPECT_THAT(steps(), IsEmpty()) << "slurm.conf itself may be refused: it is not tried for ever";
}

TEST_F(PoolsPlan, TriesARefusedFileAgain) {
  State state = state_of(cpu);
  state.refused_hash = hash(both);
  state.refused_reason = "bad line";
  state.refused_by = "26.05.5";
  state.refused_at = observed.context.now;
  state.refusals = 2;
  const std::map<std::string, std::string> told{
      {"gpu", "slurmctld refused the pool file: bad line. The coordinator tries it again at 2026-01-02T03:06:05Z"}};
  observed.problems = told;
  observed.pools = both;
  store(state);
  ended(state, {});
  EXPECT_THAT(steps(), IsEmpty());
  EXPECT_EQ(plan.wake(), 2min);
  snapshot->capabilities.release = "26.11.0";
  EXPECT_THAT(steps(), ElementsAre("record", "write", "look for", "reconfigure")) << "another slurmctld runs";
  EXPECT_THAT(problems(), IsEmpty());
  snapshot->capabilities.release = "26.05.5";

  observed.context.now = *state.refused_at + 2min;
  EXPECT_THAT(steps(), ElementsAre("record", "write", "look for", "reconfigure"));
  EXPECT_THAT(problems(), ElementsAre(Pair("gpu", "slurmctld refused the pool file: bad line")));
  const State trying = recorded();
  EXPECT_EQ(trying.offered, files(both));
  store(trying);
  observed.file = text(both);
  ended(trying, refusal());
  EXPECT_THAT(steps(), ElementsAre("record", "write", "look for", "reconfigure"));
  EXPECT_EQ(recorded().refusals, 3);
  EXPECT_EQ(recorded().offered, files(cpu));

  observed.pools = of({pool("cpu"), pool("gpu", "MaxTime=2-0")});
  EXPECT_THAT(steps(), ElementsAre("record", "write", "look for", "reconfigure"));
  EXPECT_EQ(recorded().offered, files(observed.pools)) << "the pool was mended";
  EXPECT_THAT(problems(), IsEmpty());
}

TEST_F(PoolsPlan, RollsBackWhileThePoolsChange) {
  observed.pools = of({pool("cpu"), pool("gpu"), pool("tpu")});
  observed.edits = Edits{observed.context.mono, observed.context.mono};
  observed.file = text(both);
  store(on_the_way(cpu, both));
  ended(on_the_way(cpu, both), refusal());
  EXPECT_THAT(steps(), ElementsAre("record", "write", "look for", "reconfigure"));
  EXPECT_EQ(recorded().offered, files(cpu));
}

TEST_F(PoolsPlan, AnotherKeyIsOfferedWithTheAcceptedPoolsBeforeARefusedPool) {
  observed.pools = both;
  State refused = state_of(cpu);
  refused.refused_hash = hash(both);
  refused.refused_reason = "bad line";
  refused.refused_at = observed.context.now;
  refused.refusals = 1;
  store(refused);
  observed.key_mark = "k2";
  (void)steps();
  EXPECT_EQ(recorded().offered_hash, hash_of(pool_file(cpu, "k2")));
  EXPECT_EQ(recorded().refused_hash, "");
  // slurmctld loads it. The refused pool is offered again afterwards.
  store([&] {
    State out;
    out.offered = {{std::string(kPoolFile), pool_file(cpu, "k2")}};
    out.offered_hash = out.accepted_hash = hash_of(pool_file(cpu, "k2"));
    return out;
  }());
  observed.file = pool_file(cpu, "k2");
  const std::string name = slurm::conf::marker_name(slurm::Owner::kEnlistment, hash_of(pool_file(cpu, "k2")));
  load(cpu);
  snapshot->partitions[name] = {name, "", "INACTIVE"};
  snapshot->partitions.erase(slurm::conf::marker_name(slurm::Owner::kEnlistment, hash(cpu)));
  (void)steps();
  EXPECT_EQ(recorded().offered_hash, hash_of(pool_file(both, "k2")));
}

TEST_F(PoolsPlan, AnotherKeyTakesNoPoolAwayThatWasJustLoaded) {
  observed.pools = both;
  State tried = on_the_way(cpu, both);
  tried.refused_hash = hash(both);
  tried.refused_reason = "bad line";
  tried.refused_at = observed.context.now;
  store(tried);
  observed.file = text(both);
  load(both);
  observed.key_mark = "k2";
  (void)steps();
  EXPECT_EQ(recorded().offered_hash, hash_of(pool_file(both, "k2")));
}

TEST_F(PoolsPlan, WithoutSlurmOffersNothing) {
  observed.pools = both;
  snapshot->health = slurm::Snapshot::Health::kStale;
  EXPECT_THAT(steps(), IsEmpty()) << "a slurmctld that starts must not find what it may refuse";
  observed.file = "edited";
  EXPECT_THAT(steps(), ElementsAre("write"));
  EXPECT_EQ(act<WritePoolFile>()->text, text(cpu));
  observed.file = text(both);
  store(on_the_way(cpu, both));
  EXPECT_THAT(steps(), IsEmpty()) << "slurmctld may have loaded it";
}

/// slurmctld may have loaded the file although it does not answer, and jobs may wait in the new partition already.
TEST_F(PoolsPlan, KeepsTheOfferedFileWhileSlurmctldDoesNotAnswer) {
  observed.pools = both;
  observed.file = text(both);
  store(on_the_way(cpu, both));
  silence();
  const auto stays = [&] {
    observed.problems.reset();
    EXPECT_THAT(steps(), ElementsAre("record")) << "the jobs of the partition would end with its line";
    EXPECT_FALSE(act<RecordRollout>()->state);
    EXPECT_THAT(problems(), ElementsAre(Pair("gpu", HasSubstr("does not answer any more"))));
    observed.problems = problems();
    EXPECT_THAT(steps(), IsEmpty());
  };
  stays();
  ended(on_the_way(cpu, both), core::Error{core::ErrorCode::kUnknownOutcome, "no answer", 0, {}, {}});
  stays();
  // slurmctld had loaded the file, and starts again.
  snapshot->health = slurm::Snapshot::Health::kComplete;
  load(both);
  EXPECT_THAT(steps(), ElementsAre("record"));
  EXPECT_EQ(recorded(), state_of(both));
  EXPECT_THAT(problems(), IsEmpty());
}

TEST_F(PoolsPlan, AnAdministratorCanChangeTheFileWithWhichSlurmctldDoesNotStart) {
  observed.pools = both;
  observed.file = text(cpu);
  store(on_the_way(cpu, both));
  silence();
  EXPECT_THAT(steps(), ElementsAre("record"));
  observed.problems = problems();
  EXPECT_THAT(steps(), IsEmpty());
  // slurmctld starts with the edited file. Then it is offered the other file, and refuses it.
  snapshot->health = slurm::Snapshot::Health::kComplete;
  load(cpu);
  EXPECT_THAT(steps(), ElementsAre("record", "write", "look for", "reconfigure"));
  observed.file = text(both);
  ended(on_the_way(cpu, both), refusal());
  EXPECT_THAT(steps(), ElementsAre("record", "write", "look for", "reconfigure"));
  EXPECT_EQ(recorded().offered, files(cpu));
}

TEST_F(PoolsPlan, WritesAgainWhatSomebodyEditedOrRemoved) {
  for (const std::optional<std::string>& there : {std::optional<std::string>("edited"), std::optional<std::string>()}) {
    observed.file = there;
    EXPECT_THAT(steps(), ElementsAre("write"));
    EXPECT_EQ(act<WritePoolFile>()->text, text(cpu));
  }
}

TEST_F(PoolsPlan, AFileThatCannotBeReadIsNotWritten) {
  observed.pools = both;
  observed.file = core::fail(core::ErrorCode::kUnavailable, "I/O error");
  EXPECT_THAT(steps(), ElementsAre("record"));
  EXPECT_EQ(act<RecordRollout>()->state, std::nullopt);
  EXPECT_THAT(problems(), ElementsAre(Pair("cpu", "I/O error"), Pair("gpu", "I/O error")));
}

TEST_F(PoolsPlan, LeavesTheFileOfSomebodyElse) {
  observed.state.reset();
  observed.file = "NodeName=a\n";
  EXPECT_THAT(steps(), ElementsAre("record"));
  EXPECT_THAT(problems(), ElementsAre(Pair("cpu", HasSubstr("was not written by slurm-enlist"))));
  observed.file = "\n";
  EXPECT_THAT(steps(), ElementsAre("record", "write"));
}

TEST_F(PoolsPlan, AStateThatCannotBeReadChangesNothing) {
  observed.state = core::Json{{"offered", "x"}};
  EXPECT_THAT(steps(), ElementsAre("record"));
  EXPECT_EQ(act<RecordRollout>()->state, std::nullopt);
  EXPECT_THAT(problems(), ElementsAre(Pair("cpu", HasSubstr("lacks offeredHash"))));
}

TEST_F(PoolsPlan, ALostStoreKeepsThePoolsOfTheFile) {
  observed.pools.clear();
  observed.state.reset();
  EXPECT_THAT(steps(), ElementsAre("record")) << "jobs may be submitted to the partition at any time";
  EXPECT_EQ(recorded(), state_of(cpu)) << "the file on the disk is ours, and slurmctld may run with it";
  EXPECT_EQ(act<RecordRollout>()->found, cpu);
  EXPECT_THAT(problems(), ElementsAre(Pair("cpu", HasSubstr("slurm-enlist pool create cpu adds it to the records"))));
  note_record();
  EXPECT_THAT(steps(), IsEmpty());
  EXPECT_EQ(plan.wake(), std::nullopt);
  // The found pool does not prevent changes of other pools.
  observed.pools = of({pool("gpu", "MaxTime=1-0")});
  EXPECT_THAT(steps(), ElementsAre("record", "write", "look for", "reconfigure"));
  EXPECT_EQ(act<WritePoolFile>()->text, text(both));
  EXPECT_THAT(problems(), ElementsAre(Key("cpu")));
  // After somebody has taken up the pool with the same parameters, it is like any other pool.
  observed.pools = cpu;
  observed.found.clear();
  EXPECT_THAT(steps(), ElementsAre("record"));
  EXPECT_THAT(problems(), IsEmpty());
  EXPECT_FALSE(act<RecordRollout>()->state);
}

TEST_F(PoolsPlan, ALostStoreWaitsForSlurmWithThePoolsOfTheFile) {
  observed.pools.clear();
  observed.state.reset();
  observed.slurm.reset();
  EXPECT_THAT(steps(), ElementsAre("record"));
  EXPECT_EQ(act<RecordRollout>()->found, cpu);
  note_record();
  EXPECT_THAT(steps(), IsEmpty());
}

TEST_F(PoolsPlan, ARestoredOlderStoreKeepsThePoolsOfTheFile) {
  observed.file = text(both);
  load(both);
  EXPECT_THAT(steps(), ElementsAre("record")) << "the store knows nothing of the pool gpu";
  EXPECT_EQ(recorded(), state_of(both));
  EXPECT_EQ(act<RecordRollout>()->found, of({pool("gpu", "MaxTime=1-0")}));
  EXPECT_THAT(problems(), ElementsAre(Pair("gpu", HasSubstr("slurm-enlist pool remove gpu removes it"))));
  observed.edits = Edits{observed.context.mono, observed.context.mono};
  EXPECT_THAT(steps(), ElementsAre("record")) << "nor is the file of before written while the pools may change again";
  observed.edits.reset();
  note_record();
  EXPECT_THAT(steps(), IsEmpty());

  // The content that is written back after a refusal has the found pool, too.
  observed.pools = of({pool("cpu"), pool("tpu")});
  const Pools all = of({pool("cpu"), pool("gpu", "MaxTime=1-0"), pool("tpu")});
  EXPECT_THAT(steps(), ElementsAre("record", "write", "look for", "reconfigure"));
  EXPECT_EQ(recorded(), on_the_way(both, all));
  store(recorded());
  observed.file = text(all);
  ended(on_the_way(both, all), refusal());
  EXPECT_THAT(steps(), ElementsAre("record", "write", "look for", "reconfigure"));
  EXPECT_EQ(act<WritePoolFile>()->text, text(both));
}

TEST_F(PoolsPlan, AFoundPoolIsRemovedLikeAnyOther) {
  observed.file = text(both);
  load(both);
  store(state_of(both));
  observed.pools = both;
  observed.pools["gpu"].removing = true;
  EXPECT_THAT(steps(), ElementsAre("record", "write", "look for", "reconfigure"));
  EXPECT_THAT(act<WritePoolFile>()->text, HasSubstr("PartitionName=gpu Nodes=gpu MaxTime=1-0 State=DRAIN\n"));
  // After its record is deleted, the pool is not found again, although the file still has its lines.
  observed.pools = cpu;
  EXPECT_THAT(steps(), ElementsAre("record", "write", "look for", "reconfigure"));
  EXPECT_THAT(act<RecordRollout>()->found, IsEmpty());
  store(recorded());
  EXPECT_THAT(steps(), ElementsAre("write", "look for", "reconfigure")) << "between the state and the file";
}

TEST_F(PoolsPlan, APartitionThatSomebodyHasAddedEndsNoJobs) {
  observed.file = text(cpu) + "partitionname=gpu Nodes=ALL\n";
  add_job("debug,gpu");
  EXPECT_THAT(steps(), ElementsAre("record"));
  EXPECT_FALSE(act<RecordRollout>()->state);
  EXPECT_THAT(act<RecordRollout>()->found, IsEmpty()) << "it is no pool";
  EXPECT_THAT(problems(), ElementsAre(Pair("cpu", "the coordinator changes no pool while jobs use the removed partition gpu")));
  EXPECT_EQ(plan.wake(), 5s);
  observed.problems = problems();
  EXPECT_THAT(steps(), IsEmpty());
  add_job("");
  EXPECT_THAT(steps(), IsEmpty()) << "a job that could not be read may use any partition";
  const auto silent = snapshot->health;
  snapshot->health = slurm::Snapshot::Health::kStale;
  observed.problems.reset();
  EXPECT_THAT(steps(), IsEmpty()) << "nobody knows the jobs";
  snapshot->health = silent;
  snapshot->jobs.clear();
  EXPECT_THAT(steps(), ElementsAre("write")) << "no job uses it any more";
  EXPECT_EQ(act<WritePoolFile>()->text, text(cpu));
}

TEST_F(PoolsPlan, SaysThatTheFileCannotBeWritten) {
  observed.pools = both;
  const plan::StepId write{"write", "", std::string(kPoolFile)};
  ended(write, core::Error{core::ErrorCode::kUnavailable, "No space left on device", 0, {}, {}});
  EXPECT_THAT(steps(), ElementsAre("record", "write", "look for", "reconfigure"));
  EXPECT_THAT(problems(), ElementsAre(Pair("gpu", "slurm-enlist.conf cannot be written: No space left on device")));
  EXPECT_THAT(plan.remembered(), testing::Contains(write));
  observed.file = text(both);
  store(on_the_way(cpu, both));
  EXPECT_THAT(steps(), ElementsAre("look for", "reconfigure")) << "somebody has written it";
}

TEST_F(PoolsPlan, SaysThatSlurmctldCannotBeReconfigured) {
  observed.pools = both;
  observed.file = text(both);
  store(on_the_way(cpu, both));
  ended(on_the_way(cpu, both), core::Error{core::ErrorCode::kForbidden, "Access denied", 0, {}, {}}, 2s, 2);
  EXPECT_THAT(steps(), ElementsAre("record", "look for", "reconfigure"));
  EXPECT_THAT(problems(), ElementsAre(Pair("gpu", "slurmctld cannot be reconfigured: Access denied")));
  load(both);
  EXPECT_THAT(steps(), ElementsAre("record"));
  EXPECT_THAT(problems(), IsEmpty());
}

TEST_F(PoolsPlan, APartitionOfSlurmConfIsNoRemovedPool) {
  load(both);
  slurm::Node node;
  node.name = "n1";
  node.features = {"fast"};
  snapshot->nodes["n1"] = std::make_shared<const slurm::Node>(node);
  snapshot->partitions["fast"] = {"fast", "n1", "UP"};
  add_job("fast");
  EXPECT_THAT(steps(), ElementsAre("record")) << "it may be of the loaded file, which is not known";
  observed.elsewhere = {"fast"};
  EXPECT_THAT(steps(), ElementsAre("look for", "reconfigure"));
}

TEST_F(PoolsPlan, ALoadedFileThatIsNotKnownEndsNoJobs) {
  load(both);
  snapshot->partitions["gpu"] = {"gpu", "", "UP"};
  snapshot->partitions["debug"] = {"debug", "n1", "UP"};
  add_job("debug");
  EXPECT_THAT(steps(), ElementsAre("look for", "reconfigure")) << "slurm.conf has that partition";
  add_job("gpu");
  EXPECT_THAT(steps(), ElementsAre("record"));
  EXPECT_THAT(problems(), ElementsAre(Pair("cpu", HasSubstr("removed partition gpu"))));
  slurm::Node node;
  node.name = "gpu-1";
  node.features = {"gpu"};
  snapshot->partitions["gpu"].nodes = "gpu-1";
  EXPECT_THAT(steps(), ElementsAre("look for", "reconfigure"));
  snapshot->nodes["gpu-1"] = std::make_shared<const slurm::Node>(node);
  EXPECT_THAT(steps(), ElementsAre("record")) << "the nodes have the feature of a pool";
}

// Requirement 26
// Requirement 28
TEST_F(PoolsPlan, RemovesAPoolAfterItsJobsAndItsNodes) {
  Pools pools = of({pool("cpu"), pool("gpu", "State=UP MaxTime=60")});
  store(state_of(pools));
  observed.file = text(pools);
  load(pools);
  pools["gpu"].removing = true;
  observed.pools = pools;
  EXPECT_THAT(text(pools), HasSubstr("PartitionName=gpu Nodes=gpu MaxTime=60 State=DRAIN\n"));
  EXPECT_THAT(steps(), testing::Contains("write")) << "it takes no new jobs";
  observed.left["gpu"] = {.nodes = 2, .staying = 2};
  EXPECT_THAT(steps(), testing::Not(testing::Contains("leave"))) << "slurmctld may still take jobs";

  store(state_of(pools));
  observed.file = text(pools);
  load(pools);
  add_job("cpu,gpu");
  EXPECT_THAT(steps(), ElementsAre("record"));
  EXPECT_EQ(act<RecordRollout>()->problems.at("gpu"), "it is being removed: jobs use its partition: 7 (PENDING)");
  snapshot->jobs.erase(7);
  EXPECT_THAT(steps(), testing::Contains("leave"));
  observed.left["gpu"].staying = 0;
  EXPECT_THAT(steps(), ElementsAre("record"));
  observed.left.clear();
  EXPECT_THAT(steps(), testing::Contains("forget"));
  // The lines of the pool are removed after its record.
  observed.pools.erase("gpu");
  EXPECT_THAT(steps(), testing::Contains("write"));
  EXPECT_THAT(act<WritePoolFile>()->text, testing::Not(HasSubstr("gpu")));
}

TEST_F(PoolsPlan, APoolThatSlurmctldRefusesCanBeRemoved) {
  observed.pools = both;
  observed.pools["gpu"].removing = true;
  State state = state_of(cpu);
  state.refused_hash = hash(observed.pools);
  state.refused_reason = "bad line";
  state.refused_by = "26.05.5";
  state.refused_at = observed.context.now;
  store(state);
  observed.left["gpu"] = {.nodes = 1, .staying = 1};
  EXPECT_THAT(steps(), testing::Contains("leave"));
  observed.left.clear();
  EXPECT_THAT(steps(), testing::Contains("forget"));
  silence();
  EXPECT_THAT(steps(), testing::Not(testing::Contains("forget"))) << "it may have the partition";
}

// Requirement 48
TEST_F(PoolsPlan, WaitsForJobsThatStart) {
  observed.pools = both;
  const core::Error busy{core::ErrorCode::kBusy, "job 7 is starting", 0, {}, {}};
  ended(slurm::rollout::kLookForStarting, busy, 59s, 100);
  EXPECT_THAT(steps(), ElementsAre("record", "write", "look for", "reconfigure"));
  EXPECT_EQ(plan.wake(), 500ms);
  ended(slurm::rollout::kLookForStarting, busy, 60s, 100);
  EXPECT_THAT(steps(), ElementsAre("record", "write", "reconfigure")) << "a minute at most";
}

TEST_F(PoolsPlan, ARotationWaitsForJobsThatStartForAsLongAsItTakes) {
  observed.key_mark = "r1";
  ended(slurm::rollout::kLookForStarting, core::Error{core::ErrorCode::kBusy, "job 7 is starting", 0, {}, {}}, 1h, 100);
  EXPECT_THAT(steps(), ElementsAre("record", "write", "look for", "reconfigure"));
  observed.pools = both;
  EXPECT_THAT(steps(), ElementsAre("record", "write", "reconfigure")) << "but a pool that is made has the limit as always";
}

TEST_F(PoolsPlan, TheStateIsReadAsItWasWritten) {
  State state = on_the_way(cpu, both);
  EXPECT_EQ(*rollout_from_json(to_json(state)), state);
  state = state_of(cpu);
  state.refused_hash = hash(both);
  state.refused_reason = "bad line";
  state.refused_by = "26.05.5";
  state.refused_at = observed.context.now;
  state.refusals = 4;
  EXPECT_EQ(*rollout_from_json(to_json(state)), state);
  core::Json lacks = to_json(on_the_way(cpu, both));
  lacks.erase("accepted");
  EXPECT_FALSE(rollout_from_json(lacks));
  EXPECT_FALSE(rollout_from_json(core::Json()));
}

}  // namespace
}  // namespace enlist
