#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "core/testing/manual_loop.hpp"
#include "enlist/host/host.hpp"

namespace enlist {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

/// The tests run real processes. The time between two polls of a process is simulated.
class SuperviseTest : public ::testing::Test {
 protected:
  SuperviseTest() {
    std::string path = fs::temp_directory_path() / "enlist-supervise-XXXXXX";
    root = mkdtemp(path.data());
  }
  ~SuperviseTest() override { fs::remove_all(root); }
  bool until(const std::function<bool()>& holds) {
    for (int i = 0; i < 6000; ++i) {
      if (holds()) return true;
      loop.advance(100ms);
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }
  std::string file(const char* name) { return host->read(root / name).value_or(""); }
  std::unique_ptr<Supervised> run(const std::string& script, std::vector<std::string> environment = {}, std::string user = {}) {
    return supervise(loop, {{"/bin/sh", "-c", script}, std::move(environment), std::move(user)}, [this] { ++changes; });
  }

  core::ManualLoop loop;
  std::unique_ptr<Host> host = local_host();
  fs::path root;
  int changes = 0;
};

TEST_F(SuperviseTest, RunsAgainWhatEnds) {
  const auto child = run("echo $NAME >>" + (root / "runs").string() + "; echo 'error: bad' >&2; exit 2", {"NAME=x"});
  EXPECT_EQ(changes, 0) << "in a later turn";
  ASSERT_TRUE(until([&] { return file("runs") == "x\nx\nx\n"; })) << file("runs");
  ASSERT_TRUE(until([&] { return !child->running(); }));
  EXPECT_EQ(child->last_error(), "/bin/sh ended (exit code 2): error: bad");
  child->stop();
  const std::string runs = file("runs");
  loop.advance(1min);
  EXPECT_EQ(file("runs"), runs);
}

TEST_F(SuperviseTest, MakesAFolderForItsUserAlone) {
  const fs::path folder = root / "own";
  const std::string user = geteuid() == 0 ? "nobody" : "";
  const auto start = [&](const std::string& script) {
    return supervise(loop, {.arguments = {"/bin/sh", "-c", script}, .user = user, .folder = folder}, [] {});
  };
  // The folder belongs to root, as if systemd had created it.
  fs::create_directory(folder);
  fs::permissions(folder, fs::perms::all);
  fs::permissions(root, fs::perms::owner_all | fs::perms::others_exec);
  auto child = start("cd " + folder.string() + " && stat -c '%a %U' . >out; exec sleep 1000");
  ASSERT_TRUE(until([&] { return file("own/out").ends_with("\n"); })) << child->last_error();
  EXPECT_EQ(file("own/out"), "700 " + (user.empty() ? std::string(getpwuid(geteuid())->pw_name) : user) + "\n");
  child.reset();
  child = start("exec sleep 1000");
  ASSERT_TRUE(until([&] { return child->running(); })) << "it is taken again, with what is in it";
  child.reset();

  fs::remove_all(folder);
  fs::create_directory_symlink(root, folder);
  child = start("exec sleep 1000");
  ASSERT_TRUE(until([&] { return !child->last_error().empty(); }));
  EXPECT_EQ(child->last_error(), folder.string() + " belongs to another user, or is not an empty folder: remove it");
  EXPECT_FALSE(child->running());
  if (user.empty()) return;
  fs::remove(folder);
  fs::create_directory(folder);
  std::ofstream(folder / "x") << "x";
  child = start("exec sleep 1000");
  ASSERT_TRUE(until([&] { return !child->last_error().empty(); }));
  EXPECT_FALSE(child->running());
}

TEST_F(SuperviseTest, StopEndsIt) {
  const auto child = run("exec sleep 1000");
  ASSERT_TRUE(until([&] { return child->running(); }));
  EXPECT_EQ(child->last_error(), "");
  child->stop();
  ASSERT_TRUE(until([&] { return !child->running(); }));
  EXPECT_EQ(changes, 2);
  EXPECT_THAT(child->last_error(), HasSubstr("exit code 143"));
}

TEST_F(SuperviseTest, ReadsWhatItWrites) {
  const auto child =
      run("i=0; while [ $i -lt 3000 ]; do echo \"a line of the log of a program that says much $i\" >&2; i=$((i+1)); "
          "done; touch " +
          (root / "done").string() + "; exec sleep 1000");
  EXPECT_TRUE(until([&] { return fs::exists(root / "done"); })) << "a full pipe would stop it";
}

TEST_F(SuperviseTest, TheDestructorLeavesNothingRunning) {
  auto child = run("echo $$ >" + (root / "pid").string() + "; trap '' TERM; while :; do sleep 0.1; done");
  ASSERT_TRUE(until([&] { return file("pid").ends_with("\n"); }));
  const auto pid = static_cast<pid_t>(std::stol(file("pid")));
  child.reset();
  EXPECT_NE(kill(pid, 0), 0);
}

TEST_F(SuperviseTest, TellsWhatCannotRun) {
  const auto none = supervise(loop, {{root / "none"}}, [] {});
  loop.run_ready();
  EXPECT_THAT(none->last_error(), HasSubstr("there is no program"));
  const auto nobody = run("true", {}, "nobody-of-this-name");
  loop.run_ready();
  EXPECT_EQ(nobody->last_error(), "there is no user nobody-of-this-name");
}

TEST_F(SuperviseTest, GivesUpRights) {
  if (getuid() != 0) GTEST_SKIP() << "needs root";
  fs::permissions(root, fs::perms::all);
  const auto child =
      run("id -u >" + (root / "id").string() + "; id -G >>" + (root / "id").string() + "; exec sleep 1000", {}, "nobody");
  ASSERT_TRUE(until([&] { return std::ranges::count(file("id"), '\n') == 2; }));
  const auto expected = host->run({"/bin/sh", "-c", "id -u nobody; id -G nobody"}, 60s, "");
  EXPECT_EQ(file("id"), expected->out);
}

}  // namespace
}  // namespace enlist
