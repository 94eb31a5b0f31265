#include "example/keeper.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/fake_random.hpp"
#include "core/testing/manual_loop.hpp"

namespace example {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

std::string ours(const std::string& text) {
  return std::string(kMark) + text;
}

struct TestDisk final : Disk {
  core::Result<Contents> read() override {
    if (!readable) return core::fail(core::ErrorCode::kUnavailable, "no list");
    Contents out = contents;
    if (++reads == 1 && after_first_read) after_first_read();
    return out;
  }
  core::Result<void> write(const std::string& name, const std::string& text) override {
    if (full) return core::fail(core::ErrorCode::kUnavailable, "no space is left");
    contents.files[name] = text;
    ++writes;
    return {};
  }
  core::Result<void> remove(const std::string& name) override {
    contents.files.erase(name);
    ++writes;
    return {};
  }
  Contents contents;
  bool readable = true, full = false;
  int reads = 0, writes = 0;
  std::function<void()> after_first_read;
};

class KeeperTest : public testing::Test {
 protected:
  core::ManualLoop loop;
  core::FakeRandom random;
  core::NullLogger log;
  std::shared_ptr<TestDisk> disk = std::make_shared<TestDisk>();
  Keeper keeper{loop, random, log, disk};
};

TEST_F(KeeperTest, MakesFilesAsListedAndLeavesThoseOfOthers) {
  disk->contents = {.list = {{"a", "1"}, {"b", "2"}, {"c", "3"}},
                    .files = {{"b", ours("0")}, {"c", "x"}, {"d", ours("4")}, {"e", "y"}}};
  keeper.start();
  loop.advance(3s);
  EXPECT_THAT(disk->contents.files,
              UnorderedElementsAre(Pair("a", ours("1")), Pair("b", ours("2")), Pair("c", "x"), Pair("e", "y")));
  EXPECT_EQ(disk->writes, 3);
  loop.advance(1min);
  EXPECT_EQ(disk->writes, 3) << "at rest";
}

TEST_F(KeeperTest, AListThatCannotBeReadRemovesNothing) {
  disk->contents.files = {{"a", ours("1")}};
  disk->readable = false;
  keeper.start();
  loop.advance(1min);
  EXPECT_FALSE(keeper.ready());
  EXPECT_EQ(disk->writes, 0);
  disk->readable = true;
  loop.advance(3s);
  EXPECT_THAT(disk->contents.files, IsEmpty());
}

TEST_F(KeeperTest, AnActLooksAgain) {
  disk->contents = {.list = {{"a", "1"}}, .files = {{"b", ours("2")}}};
  disk->after_first_read = [this] {
    disk->contents.files["a"] = "x";
    disk->contents.list["b"] = "2";
  };
  keeper.start();
  loop.advance(10s);
  EXPECT_THAT(disk->contents.files, UnorderedElementsAre(Pair("a", "x"), Pair("b", ours("2"))));
  EXPECT_EQ(disk->writes, 0);
}

TEST_F(KeeperTest, AFullDiskIsTriedAgain) {
  disk->contents.list = {{"a", "1"}};
  disk->full = true;
  keeper.start();
  loop.advance(10s);
  disk->full = false;
  loop.advance(30s);
  EXPECT_THAT(disk->contents.files, ElementsAre(Pair("a", ours("1"))));
}

TEST_F(KeeperTest, StopsWhenNothingIsWrittenAnyMore) {
  disk->contents.list = {{"a", "1"}};
  keeper.start();
  bool stopped = false;
  keeper.stop([&] { stopped = true; });
  loop.run_ready();
  EXPECT_TRUE(stopped);
  const int reads = disk->reads;
  loop.advance(1min);
  EXPECT_EQ(disk->reads, reads);
  EXPECT_EQ(disk->writes, 0);
}

}  // namespace
}  // namespace example
