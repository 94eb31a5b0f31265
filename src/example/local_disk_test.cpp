#include "example/local_disk.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace example {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
namespace fs = std::filesystem;

class LocalDiskTest : public testing::Test {
 protected:
  LocalDiskTest() {
    std::string path = fs::temp_directory_path() / "keep-files-XXXXXX";
    root = mkdtemp(path.data());
    fs::create_directory(root / "files");
  }
  ~LocalDiskTest() override { fs::remove_all(root); }
  void list(const std::string& text) const { std::ofstream(root / "list.json") << text; }

  fs::path root;
};

TEST_F(LocalDiskTest, ReadsAndWrites) {
  LocalDisk disk(root / "list.json", root / "files");
  list(R"({"a": "1"})");
  std::ofstream(root / "files/empty");
  fs::create_directory(root / "files/folder");
  ASSERT_TRUE(disk.write("a", "first").has_value());
  ASSERT_TRUE(disk.write("a", "second").has_value());
  const auto contents = disk.read();
  ASSERT_TRUE(contents.has_value()) << contents.error().message;
  EXPECT_THAT(contents->list, ElementsAre(Pair("a", "1")));
  EXPECT_THAT(contents->files, ElementsAre(Pair("a", "second"), Pair("empty", ""), Pair("folder", "")));
  ASSERT_TRUE(disk.remove("a").has_value());
  EXPECT_FALSE(fs::exists(root / "files/a"));
}

TEST_F(LocalDiskTest, WhatCannotBeReadIsAnError) {
  LocalDisk disk(root / "list.json", root / "files");
  EXPECT_THAT(disk.read().error().message, HasSubstr("list.json: cannot be read"));
  for (const char* text : {"{", "[]", R"({"../a": "1"})", R"({".a": "1"})", R"({"a": 1})"}) {
    list(text);
    EXPECT_FALSE(disk.read().has_value()) << text;
  }
  list("{}");
  EXPECT_TRUE(disk.read().has_value());
  fs::remove(root / "files");
  EXPECT_FALSE(disk.read().has_value()) << "a folder that is gone is not an empty one";
}

/// Runs the program itself, not only the disk.
TEST_F(LocalDiskTest, TheProgramWritesUntilItIsStopped) {
  list(R"({"motd": "Hello"})");
  std::vector<std::string> words = {KEEP_FILES,      "--list", root / "list.json", "--folder", root / "files",
                                    "--health-addr", "0",      "--metrics-addr",   "0"};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  ASSERT_EQ(posix_spawn(&pid, KEEP_FILES, nullptr, nullptr, argv.data(), environ), 0);
  for (int i = 0; i < 600 && !fs::exists(root / "files/motd"); ++i) std::this_thread::sleep_for(100ms);
  kill(pid, SIGTERM);
  int status = -1;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  std::string mark, text;
  std::ifstream file(root / "files/motd");
  std::getline(file, mark);
  std::getline(file, text);
  EXPECT_EQ(mark, "# kept by keep-files");
  EXPECT_EQ(text, "Hello");
}

}  // namespace
}  // namespace example
