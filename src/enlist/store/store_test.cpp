// Uses real files, because the tests are also about SQLite: its locks, its journal, and the files that a killed process leaves.
#include "enlist/store/store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <csignal>
#include <fstream>
#include <memory>
#include <vector>

#include "core/testing/manual_loop.hpp"
#include "net/testing/loop_test.hpp"

namespace enlist {
namespace {

namespace fs = std::filesystem;
using core::ErrorCode;
using core::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

Changes pool_named(const std::string& name, std::int64_t next_number = 1) {
  return {.pools = {{name, Pool{.name = name, .next_number = next_number}}}};
}
Changes value_of(const std::string& name, Json value) {
  return {.values = {{name, std::move(value)}}};
}
/// Adds one to a value, so that the result shows whether each commit has seen the one before.
Store::Change count_up() {
  return [](const Contents& now) -> core::Result<Changes> {
    const auto at = now.values.find("count");
    return value_of("count", (at == now.values.end() ? 0 : at->second.get<int>()) + 1);
  };
}

/// A temporary folder, on a file system in memory if there is one. It is faster for some thousand commits, and no test needs
/// the file to survive a power failure.
struct Folder {
  Folder() {
    const fs::path memory = "/dev/shm";
    std::string name = (fs::is_directory(memory) ? memory : fs::temp_directory_path()) / "store_test.XXXXXX";
    path = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  fs::path path;
};

class StoreTest : public ::testing::Test {
 protected:
  core::ManualLoop loop;
  Folder folder;
  fs::path file = folder.path / "coordinator.db";
  std::unique_ptr<Store> store;

  core::Result<void> open() {
    store = nullptr;
    auto opened = Store::open(loop, file);
    if (!opened) return std::unexpected(opened.error());
    store = *std::move(opened);
    return {};
  }
  core::Result<void> commit(Store::Change change) {
    core::Result<void> out = core::fail(ErrorCode::kInternal, "done was not called");
    store->commit(std::move(change), [&](core::Result<void> result) { out = std::move(result); });
    loop.run_ready();
    return out;
  }
  core::Result<void> commit(const Changes& changes) {
    return commit([changes](const Contents&) -> core::Result<Changes> { return changes; });
  }
  /// Runs SQL in the file while the store is closed.
  void sql(const std::string& text) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(file.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, text.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
    sqlite3_close(database);
  }
  static unsigned mode(const fs::path& path) {
    struct stat about {};
    EXPECT_EQ(stat(path.c_str(), &about), 0) << path;
    return about.st_mode & 07777U;
  }
};

TEST_F(StoreTest, ANewFileIsEmptyAndPrivate) {
  ASSERT_TRUE(open());
  EXPECT_THAT(store->contents().pools, IsEmpty());
  EXPECT_THAT(store->contents().values, IsEmpty());
  ASSERT_TRUE(commit(pool_named("gpu")));
  for (const auto& entry : fs::directory_iterator(folder.path)) EXPECT_EQ(mode(entry.path()), 0600U) << entry.path();
}

TEST_F(StoreTest, EverythingIsThereAfterwards) {
  ASSERT_TRUE(open());
  Node node{.name = "gpu-1", .pool = "gpu", .key = std::string(64, 'a'), .node_conf = "Weight=5"};
  node.joined = core::WallTime{core::Duration{1'767'323'045'678}};
  node.report = {.hostname = "h", .boot_id = "b", .conf = R"(CPUs=8 Reason="a")", .registrations = ~0ULL};
  node.phase = Phase::kLost;
  const Token token{.pool = "gpu", .expires = core::WallTime{core::Duration{1'767'323'045'678}}, .uses_left = 3};
  Changes all;
  all.pools = {{"gpu", Pool{"gpu", "MaxTime=1-0", "Weight=5", 7}}, {"cpu", Pool{.name = "cpu"}}};
  all.nodes["gpu-1"] = node;
  all.tokens["digest"] = token;
  all.values["rollout"] = Json::object({{"hash", "x"}, {"list", Json::array({1, 2})}});
  all.values["nothing"] = Json(nullptr);
  all.values[""] = Json("empty name");
  ASSERT_TRUE(commit(all));
  ASSERT_TRUE(commit({.pools = {{"cpu", std::nullopt}, {"never", std::nullopt}}, .values = {{"nothing", std::nullopt}}}));
  const Contents before = store->contents();
  ASSERT_TRUE(open());
  const Contents& now = store->contents();
  EXPECT_EQ(now.pools, (std::map<std::string, Pool>{{"gpu", Pool{"gpu", "MaxTime=1-0", "Weight=5", 7}}}));
  EXPECT_EQ(now.nodes, (std::map<std::string, Node>{{"gpu-1", node}}));
  EXPECT_EQ(now.tokens, (std::map<std::string, Token>{{"digest", token}}));
  EXPECT_EQ(now.values, before.values);
  EXPECT_THAT(now.values, SizeIs(2));
}

TEST_F(StoreTest, CommitsAreCarriedOutInOrderAndSeeEachOther) {
  ASSERT_TRUE(open());
  std::vector<int> seen;
  std::vector<std::string> order;
  store->listen([&](const Changes& changes) {
    order.push_back("listener " + changes.values.at("count")->dump());
    EXPECT_EQ(store->contents().values.at("count"), *changes.values.at("count"));
  });
  for (int i = 1; i <= 5; ++i) {
    store->commit(count_up(), [&, i](const core::Result<void>& result) {
      EXPECT_TRUE(result);
      seen.push_back(store->contents().values.at("count").get<int>());
      order.push_back("done " + std::to_string(i));
    });
  }
  EXPECT_THAT(store->contents().values, IsEmpty()) << "nothing happens inside of commit";
  loop.run_ready();
  EXPECT_THAT(seen, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(std::vector(order.begin(), order.begin() + 4), ElementsAre("listener 1", "done 1", "listener 2", "done 2"));
}

TEST_F(StoreTest, AChangeThatFailsLeavesAllAsItWas) {
  ASSERT_TRUE(open());
  ASSERT_TRUE(commit(pool_named("gpu")));
  int told = 0;
  store->listen([&](const Changes&) { ++told; });
  const auto failed =
      commit([](const Contents&) -> core::Result<Changes> { return core::fail(ErrorCode::kAlreadyExists, "taken"); });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kAlreadyExists);
  EXPECT_EQ(failed.error().message, "taken");
  EXPECT_EQ(told, 0);
  EXPECT_THAT(store->contents().pools, SizeIs(1));
  EXPECT_TRUE(commit(pool_named("cpu"))) << "the next one is carried out";
  EXPECT_EQ(told, 1);
}

TEST_F(StoreTest, WhatIsThereAlreadyIsNotWritten) {
  ASSERT_TRUE(open());
  ASSERT_TRUE(commit(pool_named("gpu")));
  std::vector<std::size_t> told;
  store->listen([&](const Changes& changes) { told.push_back(changes.pools.size()); });
  const auto size = fs::file_size(file.string() + "-wal");
  EXPECT_TRUE(commit(pool_named("gpu")));
  EXPECT_TRUE(commit(Changes{}));
  EXPECT_TRUE(commit({.nodes = {{"gpu-1", std::nullopt}}}));
  EXPECT_THAT(told, IsEmpty());
  EXPECT_EQ(fs::file_size(file.string() + "-wal"), size);
  Changes both = pool_named("gpu");
  both.pools.merge(pool_named("cpu").pools);
  EXPECT_TRUE(commit(both));
  EXPECT_THAT(told, ElementsAre(1));
}

TEST_F(StoreTest, CallbacksMayCommitAndMayDestroyTheStore) {
  ASSERT_TRUE(open());
  int calls = 0;
  store->listen([&](const Changes&) {
    if (++calls == 1) store->commit(count_up(), nullptr);
  });
  store->commit(count_up(), [&](const core::Result<void>&) { store->commit(count_up(), nullptr); });
  loop.run_ready();
  EXPECT_EQ(store->contents().values.at("count"), 3);
  EXPECT_EQ(calls, 3);

  bool later = false;
  store->commit(count_up(), [&](const core::Result<void>&) { store = nullptr; });
  store->commit(count_up(), [&](const core::Result<void>&) { later = true; });
  loop.run_ready();
  EXPECT_FALSE(later);
  ASSERT_TRUE(open());
  EXPECT_EQ(store->contents().values.at("count"), 4);
  store->commit(
      [&](const Contents&) -> core::Result<Changes> {
        store = nullptr;
        return Changes{};
      },
      [&](const core::Result<void>&) { later = true; });
  loop.run_ready();
  EXPECT_FALSE(later);
}

TEST_F(StoreTest, ACommitUnderWayEndsWithoutTheStore) {
  ASSERT_TRUE(open());
  bool told = false;
  store->commit(count_up(), [&](const core::Result<void>&) { told = true; });
  loop.advance(core::Duration{0});
  store = nullptr;
  loop.run_ready();
  ASSERT_TRUE(open()) << "nothing holds the file any more";
}

TEST_F(StoreTest, ASecondOpenerIsRefusedAtOnce) {
  ASSERT_TRUE(open());
  const auto second = Store::open(loop, file);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(second.error().message, HasSubstr("another process has it open"));

  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    core::ManualLoop own;
    const auto opened = Store::open(own, file);
    _exit(!opened && opened.error().code == ErrorCode::kUnavailable &&
                  opened.error().message.find("another process has it open") != std::string::npos
              ? 0
              : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "another process";

  EXPECT_TRUE(commit(pool_named("gpu"))) << "the first one is not disturbed";
  store = nullptr;
  EXPECT_TRUE(open());
  EXPECT_THAT(store->contents().pools, SizeIs(1));
}

TEST_F(StoreTest, FilesOfOthersAndOfNewerVersionsAreRefused) {
  const auto refused = [&](const std::string& what) {
    const auto opened = open();
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::kInvalid) << opened.error().message;
    EXPECT_THAT(opened.error().message, HasSubstr("coordinator.db: "));
    EXPECT_THAT(opened.error().message, HasSubstr(what));
  };
  ASSERT_TRUE(open());
  ASSERT_TRUE(commit(pool_named("gpu")));
  store = nullptr;
  sql("PRAGMA user_version=2; ALTER TABLE pool RENAME TO pools");
  refused("written by a newer slurm-enlist: its schema is 2, this version knows 1");
  sql("PRAGMA user_version=0");
  refused("has the schema 0");
  fs::remove(file);
  sql("CREATE TABLE theirs(a)");
  fs::permissions(file, fs::perms(0644));
  refused("is a file of another program");
  EXPECT_EQ(mode(file), 0644U) << "it is not touched";
  std::ofstream(file) << std::string(4096, 'x');
  refused("is not an SQLite file");
  fs::remove(file);
  std::ofstream(file).close();
  EXPECT_TRUE(open()) << "an empty file is what a crash at the first start leaves";
  EXPECT_EQ(mode(file), 0600U);
}

TEST_F(StoreTest, ARowThatCannotBeReadIsNotPassedOver) {
  const auto refused = [&](const std::string& row, const std::string& what) {
    ASSERT_TRUE(open());
    store = nullptr;
    sql("INSERT INTO node VALUES('gpu-1', '" + row + "')");
    const auto opened = open();
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(opened.error().message, HasSubstr("row \"gpu-1\" of table node: " + what));
    sql("DELETE FROM node");
  };
  refused(R"({"name": "gpu-1", "pool": "gpu"})", "key: is missing");
  refused(R"({"name": "gpu-1", "pool": "gpu", "key": "k", "phase": "Beyond"})",
          "phase: must be a phase that this version knows");
  refused("{", "");
  ASSERT_TRUE(open());
}

TEST_F(StoreTest, ACopyBesideTheJournalOfALaterFileIsDamaged) {
  const auto rows = [](const char* prefix, int count, std::size_t size, int drop = 1) {
    Changes out;
    for (int i = 0; i < count; ++i) {
      const std::string name = prefix + std::to_string(i);
      if (i % 2 == drop) {
        out.values[name] = std::nullopt;
      } else {
        out.values[name] = std::string(size, 'x');
      }
    }
    return out;
  };
  const fs::path journal = file.string() + "-wal", copy = folder.path / "copy";
  ASSERT_TRUE(open());
  ASSERT_TRUE(commit(rows("n", 200, 1500, 2)));
  store = nullptr;
  fs::copy_file(file, copy);
  // Write so many pages that SQLite begins its journal again. Then the journal has only some of the pages of the later file.
  ASSERT_TRUE(open());
  ASSERT_TRUE(commit(rows("n", 200, 3000)));
  for (std::size_t i = 0; i < 20; ++i) ASSERT_TRUE(commit(rows("m", 300, 900 + i * 200, 2)));
  fs::copy_file(journal, folder.path / "journal");
  store = nullptr;
  fs::copy_file(copy, file, fs::copy_options::overwrite_existing);
  fs::copy_file(folder.path / "journal", journal);
  const auto opened = open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(opened.error().message, HasSubstr("is damaged: restore it from a backup"));
}

TEST_F(StoreTest, MissingFoldersAreNamed) {
  const auto opened = Store::open(loop, folder.path / "a" / "b.db");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(opened.error().message, HasSubstr("a/b.db: No such file or directory"));
}

/// Limits every file of this process to `bytes` bytes. Beyond that, the kernel reports EFBIG, and SQLite a failed write.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : signal_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limited{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limited);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*signal_)(int);
};

TEST_F(StoreTest, AWriteThatFailsChangesNothing) {
  ASSERT_TRUE(open());
  ASSERT_TRUE(commit(pool_named("gpu")));
  int told = 0;
  store->listen([&](const Changes&) { ++told; });
  Changes large = value_of("large", std::string(200'000, 'x'));
  large.pools["gpu"] = std::nullopt;
  for (const rlim_t more : {0UL, 100UL, 5000UL, 60'000UL}) {
    core::Result<void> failed;
    {
      const FileSizeLimit limit(fs::file_size(file.string() + "-wal") + more);
      failed = commit(large);
    }
    ASSERT_FALSE(failed) << more;
    EXPECT_EQ(failed.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(failed.error().message, HasSubstr("coordinator.db: disk I/O error (File too large)"));
    EXPECT_EQ(told, 0);
    EXPECT_THAT(store->contents().pools, SizeIs(1));
    EXPECT_THAT(store->contents().values, IsEmpty());
  }
  ASSERT_TRUE(commit(pool_named("cpu"))) << "it goes on when there is room again";
  ASSERT_TRUE(open());
  EXPECT_THAT(store->contents().pools, SizeIs(2));
  EXPECT_THAT(store->contents().values, IsEmpty());
}

TEST_F(StoreTest, AStoreThatCannotBeMadeSaysWhy) {
  core::Result<void> opened;
  {
    const FileSizeLimit limit(100);
    opened = open();
  }
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(opened.error().message, HasSubstr("File too large"));
  EXPECT_TRUE(open());
}

/// Commits growing numbers for ever, and writes each number to the pipe `acknowledged` once its commit is done.
[[noreturn]] void commit_for_ever(const fs::path& file, int acknowledged) {
  core::ManualLoop own;
  auto store = Store::open(own, file);
  if (!store) _exit(1);
  const auto count = [&] {
    const auto at = (*store)->contents().values.find("count");
    return at == (*store)->contents().values.end() ? 0 : at->second.get<int>();
  };
  for (;;) {
    (*store)->commit(
        [next = count() + 1](const Contents&) -> core::Result<Changes> {
          // Several rows, and some of more than one page, so that the test would see a commit that was written in part.
          Changes out = value_of("count", next);
          out.values["twice"] = Json::array({next, std::string(static_cast<std::size_t>(next % 7) * 3000, 'x')});
          out.pools = pool_named("gpu", next).pools;
          return out;
        },
        [&](const core::Result<void>& result) {
          const int number = result ? count() : -1;
          if (write(acknowledged, &number, sizeof number) != sizeof number) _exit(2);
        });
    own.run_ready();
  }
}

TEST_F(StoreTest, EveryAcknowledgedCommitOutlivesTheProcess) {
  int last = 0;
  for (int round = 0; round < 8; ++round) {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) commit_for_ever(file, ends[1]);
    close(ends[1]);
    int number = 0;
    // In each round the child is killed at another point of its work, because it goes on while this process reads.
    for (int reads = 0; reads < 5 + 3 * round && read(ends[0], &number, sizeof number) == sizeof number; ++reads) {
      ASSERT_EQ(number, last + 1);
      last = number;
    }
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << status;
    while (read(ends[0], &number, sizeof number) == sizeof number) last = number;
    close(ends[0]);

    ASSERT_TRUE(open());
    const Contents& now = store->contents();
    const int found = now.values.at("count").get<int>();
    EXPECT_GE(found, last);
    EXPECT_LE(found, last + 1) << "the one that was under way";
    EXPECT_EQ(now.values.at("twice").at(0), found);
    EXPECT_EQ(now.pools.at("gpu").next_number, found);
    last = found;
    store = nullptr;
  }
}

/// After any changes in any order, the file has the same contents as the memory of the process.
RC_GTEST_FIXTURE_PROP(StoreTest, TheFileIsTheMirror, ()) {
  file = folder.path / "mirror.db";
  fs::remove(file);
  RC_ASSERT(open().has_value());
  Contents expected;
  const auto name = rc::gen::elementOf(std::vector<std::string>{"a", "b", "", "ä", std::string("n\0ul", 4), "'; --"});
  const int commits = *rc::gen::inRange(0, 8);
  for (int i = 0; i < commits; ++i) {
    Changes changes;
    const int rows = *rc::gen::inRange(0, 4);
    for (int k = 0; k < rows; ++k) {
      const std::string key = *name;
      const int what = *rc::gen::inRange(0, 100);
      switch (*rc::gen::inRange(0, 3)) {
        case 0:
          changes.pools[key] = Pool{.name = key, .next_number = what};
          break;
        case 1:
          changes.pools[key] = std::nullopt;
          break;
        default:
          changes.values[key] = Json::object({{key, what}});
      }
    }
    for (const auto& [key, row] : changes.pools) row ? void(expected.pools[key] = *row) : void(expected.pools.erase(key));
    for (const auto& [key, row] : changes.values) expected.values[key] = *row;
    RC_ASSERT(commit(changes).has_value());
    RC_ASSERT(store->contents().pools == expected.pools);
    RC_ASSERT(store->contents().values == expected.values);
  }
  RC_ASSERT(open().has_value());
  RC_ASSERT(store->contents().pools == expected.pools);
  RC_ASSERT(store->contents().values == expected.values);
}

using RealStore = net::testing::LoopTest;

TEST_F(RealStore, WorksOnAnotherThread) {
  const Folder folder;
  auto store = Store::open(loop, folder.path / "coordinator.db");
  ASSERT_TRUE(store) << store.error().message;
  int done = 0;
  for (int i = 0; i < 50; ++i) {
    (*store)->commit(count_up(), [&](const core::Result<void>& result) { done += result ? 1 : 1000; });
  }
  ASSERT_TRUE(run_until([&] { return done >= 50; }));
  EXPECT_EQ(done, 50);
  EXPECT_EQ((*store)->contents().values.at("count"), 50);
}

}  // namespace
}  // namespace enlist
