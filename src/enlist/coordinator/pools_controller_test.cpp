#include "enlist/coordinator/pools_controller.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/log.hpp"
#include "run/passes.hpp"
#include "sim/base/loop.hpp"
#include "sim/base/random.hpp"
#include "sim/slurm/rest.hpp"
#include "sim/slurm/sim_slurm.hpp"
#include "slurm/rest/target.hpp"

namespace enlist {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(core::Loop& loop) : loop_(loop) {}
  [[nodiscard]] const Contents& contents() const override { return contents_; }
  void commit(Change change, Done done) override {
    loop_.after(1ms, [this, change = std::move(change), done = std::move(done)] {
      const core::Result<Changes> changes = change(contents_);
      if (!changes) return done(std::unexpected(changes.error()));
      if (full) return done(core::fail(core::ErrorCode::kUnavailable, "the disk is full"));
      for (const auto& [name, pool] : changes->pools) contents_.pools[name] = pool.value();
      for (const auto& [name, value] : changes->values) {
        contents_.values.erase(name);
        if (value) contents_.values[name] = *value;
      }
      if (listener_) listener_(*changes);
      done({});
    });
  }
  void listen(std::function<void(const Changes&)> listener) override { listener_ = std::move(listener); }
  void lose() { contents_ = {}; }
  bool full = false;

 private:
  core::Loop& loop_;
  Contents contents_;
  std::function<void(const Changes&)> listener_;
};

struct FileHost final : Host {
  core::Result<Output> run(const std::vector<std::string>&, std::chrono::milliseconds, const std::string&) override {
    return core::fail(core::ErrorCode::kUnsupported, "not here");
  }
  core::Result<std::string> read(const std::filesystem::path&) override {
    if (!file) return core::fail(core::ErrorCode::kNotFound, "no file");
    return *file;
  }
  core::Result<void> write(const std::filesystem::path&, const std::string& text, unsigned) override {
    ++writes;
    file = text;
    return {};
  }
  core::Result<void> remove(const std::filesystem::path&) override { return {}; }
  std::optional<std::string> file;
  int writes = 0;
};

struct PoolsControllerTest : testing::Test {
  PoolsControllerTest() {
    EXPECT_TRUE(slurmctld.start());
    router.add(file);
    router.add(slurm_target);
    passes.add(pools);
    store.listen([this](const Changes& changes) { pools.changed(changes); });
    clusters.listen([this](const slurm::Change& change) {
      pools.changed(change);
      passes.caches_changed();
    });
    clusters.set("c", {"restapi", 6820}, "key");
    pools.start();
    file.look();
    settle();
  }
  void put(const Pool& pool) {
    store.commit([pool](const Contents&) { return Changes{.pools = {{pool.name, pool}}}; }, [](const core::Result<void>&) {});
  }
  [[nodiscard]] std::string wanted() const { return pool_file(store.contents().pools); }
  [[nodiscard]] bool loaded() const { return slurmctld.configuration().ends_with(wanted()); }
  /// Runs until there is nothing to do before the next try of something that was refused.
  void settle() {
    loop.run_for(20s);
    EXPECT_TRUE(passes.idle() || passes.held().empty());
  }
  [[nodiscard]] int reconfigures() const { return static_cast<int>(std::ranges::count(requests, "reconfigure")); }

  sim::SimLoop loop{1};
  FileHost host;
  /// A slurmctld whose slurm.conf ends with the pool file, as with an Include line, if `includes` is set.
  sim::SimSlurm slurmctld{loop,
                          loop.random(),
                          [this] {
                            return "ClusterName=c\nSlurmctldHost=ctld(127.0.0.1)\nMaxNodeCount=4\nSlurmUser=slurm\n" +
                                   (includes ? host.file.value_or("") : "");
                          },
                          {.release = "26.05.5"}};
  bool includes = true;
  sim::SlurmRest rest{loop, slurmctld, [] { return std::string("key"); }};
  std::vector<std::string> requests;
  core::NullLogger log;
  slurm::Clusters clusters{loop, loop.random(), log, [this](const slurm::Endpoint&) {
                             return sim::slurm_transport(
                                 loop, loop, loop.random(), [this] { return &rest; },
                                 [this](const net::HttpRequest& request) {
                                   if (request.target.find("/reconfigure") != std::string::npos)
                                     requests.emplace_back("reconfigure");
                                   return sim::SlurmFault{};
                                 });
                           }};
  MemoryStore store{loop};
  FileTarget file{loop, store, host, "/etc/slurm/slurm-enlist.conf", [this](bool changed) {
                    pools.looked(changed);
                    passes.caches_changed();
                  }};
  slurm::Target slurm_target{loop, clusters};
  plan::Router router;
  plan::Executor executor{loop, router};
  run::Passes passes{loop,
                     loop.random(),
                     log,
                     executor,
                     {},
                     {.may_begin = [] { return true; },
                      .on_first = [](std::size_t) {},
                      .on_ended = [] {},
                      .on_waiting = [this](const std::string& system) { clusters.poll_often(system); }}};
  PoolsController pools{loop,
                        store,
                        clusters,
                        "c",
                        file,
                        [this](const run::Key& key) {
                          passes.wake({passes.id_of("pools"), key});
                        },
                        [] { return std::set<std::string>(); }};
};

TEST_F(PoolsControllerTest, MakesSlurmctldLoadThePoolsWithOneReconfigure) {
  EXPECT_EQ(host.file, pool_file({}));
  EXPECT_TRUE(loaded());
  const int before = reconfigures(), writes = host.writes;
  put({.name = "cpu"});
  loop.run_for(500ms);
  put({.name = "gpu", .partition_conf = "MaxTime=1-0"});
  settle();
  EXPECT_TRUE(loaded());
  EXPECT_EQ(host.file, wanted());
  EXPECT_EQ(reconfigures(), before + 1);
  EXPECT_EQ(host.writes, writes + 1);
  EXPECT_EQ(store.contents().values.count(kProblemsValue), 0U);
  Pool cpu{.name = "cpu"};
  cpu.next_number = 7;
  put(cpu);
  loop.run_for(1h);
  EXPECT_EQ(reconfigures(), before + 1) << "nothing in the file has changed";
}

TEST_F(PoolsControllerTest, ChangesWithoutEndAreLoadedEveryFiveSeconds) {
  const int before = reconfigures();
  for (int i = 0; i < 40; ++i) {
    put({.name = "cpu", .partition_conf = "MaxTime=" + std::to_string(i + 1)});
    loop.run_for(500ms);
  }
  settle();
  EXPECT_TRUE(loaded());
  EXPECT_GE(reconfigures(), before + 4);
  EXPECT_LE(reconfigures(), before + 5);
}

TEST_F(PoolsControllerTest, WritesTheAcceptedFileBackAndTriesAgain) {
  put({.name = "cpu"});
  settle();
  const std::string accepted = wanted();
  // slurmctld refuses a NodeSet that has the name of a node.
  slurmctld.start_slurmd("gpu", "Features=cpu");
  settle();
  put({.name = "gpu"});
  settle();
  EXPECT_EQ(host.file, accepted);
  EXPECT_TRUE(slurmctld.configuration().ends_with(accepted));
  const core::Json problems = store.contents().values.at(kProblemsValue);
  EXPECT_THAT(problems.at("gpu").get<std::string>(), HasSubstr("refused"));
  EXPECT_FALSE(problems.contains("cpu"));
  const int before = reconfigures();
  loop.run_for(70s);
  EXPECT_EQ(reconfigures(), before + 2) << "the refused file, and the accepted one again";
  EXPECT_EQ(host.file, accepted);
  slurmctld.stop_slurmd("gpu");
  EXPECT_EQ(slurmctld.delete_node("gpu"), sim::SlurmErrno::kSuccess);
  loop.run_for(130s);
  EXPECT_TRUE(loaded());
  EXPECT_EQ(host.file, wanted());
  EXPECT_FALSE(store.contents().values.contains(kProblemsValue));
}

TEST_F(PoolsControllerTest, WritesAgainWhatSomebodyChanged) {
  put({.name = "cpu"});
  settle();
  const int before = reconfigures();
  host.file = "PartitionName=mine Nodes=ALL\n";
  settle();
  EXPECT_EQ(host.file, wanted());
  host.file.reset();
  settle();
  EXPECT_EQ(host.file, wanted());
  EXPECT_EQ(reconfigures(), before) << "slurmctld has not read what somebody wrote";
}

TEST_F(PoolsControllerTest, WritesNoFileThatTheStoreDoesNotKnow) {
  const int before = host.writes;
  put({.name = "cpu"});
  loop.run_for(100ms);
  store.full = true;
  settle();
  EXPECT_EQ(host.writes, before);
  store.full = false;
  loop.run_for(10min);
  EXPECT_TRUE(loaded());
}

TEST_F(PoolsControllerTest, ALostStoreLosesNoPartition) {
  put({.name = "cpu", .partition_conf = "MaxTime=60"});
  settle();
  const std::string before = wanted();
  const int count = reconfigures();
  store.lose();
  pools.start();
  settle();
  EXPECT_EQ(host.file, before);
  EXPECT_EQ(reconfigures(), count);
  EXPECT_THAT(store.contents().values.at(kProblemsValue).at("cpu").get<std::string>(), HasSubstr("pool create cpu"));
  put({.name = "gpu"});
  settle();
  EXPECT_EQ(host.file, pool_file({{"cpu", {.name = "cpu", .partition_conf = "MaxTime=60"}}, {"gpu", {.name = "gpu"}}}));
  EXPECT_TRUE(slurmctld.configuration().ends_with(*host.file));
  EXPECT_EQ(reconfigures(), count + 1);
  loop.run_for(1h);
  EXPECT_EQ(reconfigures(), count + 1);
}

TEST_F(PoolsControllerTest, WaitsForASlurmThatIsAway) {
  slurmctld.stop();
  settle();
  const int before = reconfigures();
  put({.name = "cpu"});
  loop.run_for(5min);
  EXPECT_EQ(host.file, pool_file({}));
  EXPECT_EQ(reconfigures(), before);
  EXPECT_TRUE(slurmctld.start());
  loop.run_for(2min);
  EXPECT_TRUE(loaded());
}

TEST_F(PoolsControllerTest, SaysThatTheIncludeLineIsMissing) {
  includes = false;
  put({.name = "cpu"});
  loop.run_for(1h);
  EXPECT_THAT(store.contents().values.at(kProblemsValue).at("cpu").get<std::string>(), HasSubstr("Include"));
  EXPECT_LE(reconfigures(), 20) << "each makes all slurmds start anew";
  includes = true;
  loop.run_for(1h);
  EXPECT_TRUE(loaded());
  EXPECT_FALSE(store.contents().values.contains(kProblemsValue));
}

}  // namespace
}  // namespace enlist
