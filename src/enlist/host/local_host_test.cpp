#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "enlist/host/host.hpp"
#include "enlist/host/spawn.hpp"

namespace enlist {
namespace {

using core::ErrorCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

class LocalHostTest : public ::testing::Test {
 protected:
  LocalHostTest() {
    std::string path = fs::temp_directory_path() / "enlist-host-XXXXXX";
    root = mkdtemp(path.data());
  }
  ~LocalHostTest() override { fs::remove_all(root); }
  core::Result<Output> sh(const std::string& script, const std::string& input = "", std::chrono::milliseconds limit = 60s) {
    return host->run({"/bin/sh", "-c", script}, limit, input);
  }
  fs::path root;
  std::unique_ptr<Host> host = local_host();
};

TEST_F(LocalHostTest, RunsProgramsWithoutAShell) {
  const auto output = host->run({"echo", "$HOME", "a  b"}, 60s, "");
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_EQ(output->out, "$HOME a  b\n");
  EXPECT_EQ(output->status, 0);
}

TEST_F(LocalHostTest, TellsBothStreamsAndTheExitCode) {
  const auto output = sh("cat; echo bad >&2; exit 3", std::string(300'000, 'x'));
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_EQ(output->out, std::string(300'000, 'x'));
  EXPECT_EQ(output->err, "bad\n");
  EXPECT_EQ(output->status, 3);
  EXPECT_EQ(sh("kill -9 $$")->status, 137);
  EXPECT_EQ(sh("exit 0", std::string(300'000, 'x'))->status, 0) << "input that nobody reads";
}

TEST_F(LocalHostTest, TellsWhatCannotRun) {
  EXPECT_EQ(host->run({root / "none"}, 60s, "").error().code, ErrorCode::kNotFound);
  const auto denied = host->run({root}, 60s, "");
  ASSERT_FALSE(denied);
  EXPECT_EQ(denied.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(denied.error().message, HasSubstr("Permission denied"));
}

TEST_F(LocalHostTest, EndsWhatTakesTooLongWithItsChildren) {
  const auto output = sh("sleep 1000 & echo $! >" + (root / "pid").string() + "; wait", "", 500ms);
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(output.error().message, HasSubstr("did not end within 500 ms"));
  pid_t pid = 0;
  std::ifstream(root / "pid") >> pid;
  ASSERT_GT(pid, 0);
  EXPECT_FALSE(host->run({"/bin/sh", "-c",
                          "while kill -0 " + std::to_string(pid) + "; do grep -q '^State:.Z' /proc/" + std::to_string(pid) +
                              "/status && exit; sleep 0.1; done; exit"},
                         60s, "")
                   ->status);
}

TEST_F(LocalHostTest, EndsWhatWritesTooMuch) {
  const auto output = sh("exec cat /dev/zero");
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().code, ErrorCode::kInternal);
}

TEST_F(LocalHostTest, DoesNotWaitForGrandchildren) {
  const auto output = sh("sleep 1000 & echo $!");
  ASSERT_TRUE(output) << output.error().message;
  kill(static_cast<pid_t>(std::stol(output->out)), SIGKILL);
}

TEST_F(LocalHostTest, GivesNoDescriptorsAndDefaultSignals) {
  std::signal(SIGUSR1, SIG_IGN);
  const auto output = sh("ls /proc/self/fd; grep SigIgn /proc/self/status");
  std::signal(SIGUSR1, SIG_DFL);
  ASSERT_TRUE(output);
  const std::string begin = "0\n1\n2\n3\nSigIgn:\t";
  ASSERT_TRUE(output->out.starts_with(begin)) << output->out << "3 is the folder that ls reads";
  // Signals 32 and 33 belong to glibc. If they were ignored when this test was started, no program can change that.
  EXPECT_EQ(std::stoull(output->out.substr(begin.size()), nullptr, 16) & 0x7fffffffULL, 0U) << output->out;
}

TEST_F(LocalHostTest, ReplacesFilesAsAWhole) {
  const fs::path file = root / "a/b/key";
  ASSERT_TRUE(host->write(file, "one", 0600));
  ASSERT_TRUE(host->write(file, "two", 0600));
  EXPECT_EQ(host->read(file), "two");
  struct stat found {};
  ASSERT_EQ(stat(file.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600U);
  EXPECT_EQ(std::distance(fs::directory_iterator(root / "a/b"), fs::directory_iterator()), 1) << "nothing is left over";
  fs::create_directory(root / "folder");
  EXPECT_FALSE(host->write(root / "folder", "x", 0600));
  EXPECT_EQ(std::distance(fs::directory_iterator(root), fs::directory_iterator()), 2) << "also after an error";
  EXPECT_FALSE(host->write(file / "below", "x", 0600)) << "a file is no folder";
}

TEST_F(LocalHostTest, ReplacesAFileBehindALinkWithTheOwnerOfAnother) {
  ASSERT_TRUE(host->write(root / "real/keys", "old", 0640));
  fs::create_symlink(root / "real/keys", root / "keys");
  const bool root_user = geteuid() == 0;
  if (root_user) ASSERT_EQ(chown((root / "real/keys").c_str(), 12, 34), 0);
  ASSERT_TRUE(host->write_as(root / "keys", "new", 0600, root / "keys"));
  EXPECT_TRUE(fs::is_symlink(root / "keys"));
  EXPECT_EQ(host->read(root / "real/keys"), "new");
  struct stat now {};
  ASSERT_EQ(stat((root / "real/keys").c_str(), &now), 0);
  EXPECT_EQ(now.st_mode & 0777U, 0600U);
  EXPECT_EQ(now.st_uid, root_user ? 12U : geteuid());
  fs::permissions(root / "real/keys", fs::perms(0644));
  ASSERT_TRUE(host->write_as(root / "keys", "newer", 0770, root / "keys"));
  ASSERT_EQ(stat((root / "real/keys").c_str(), &now), 0);
  EXPECT_EQ(now.st_mode & 0777U, 0640U) << "a group that reads it reads it still";
  EXPECT_EQ(host->write_as(root / "x", "new", 0600, root / "none").error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(fs::exists(root / "x"));
}

TEST_F(LocalHostTest, WritesWithTheModeAndTheOwnerOfAnother) {
  ASSERT_TRUE(host->write(root / "like", "x", 0640));
  const bool root_user = geteuid() == 0;
  if (root_user) ASSERT_EQ(chown((root / "like").c_str(), 12, 34), 0);
  for (const char* name : {"new", "like"}) {
    ASSERT_TRUE(host->write_like(root / name, "y", root / "like"));
    struct stat now {};
    ASSERT_EQ(stat((root / name).c_str(), &now), 0);
    EXPECT_EQ(now.st_mode & 07777U, 0640U) << name;
    EXPECT_EQ(now.st_gid, root_user ? 34U : getegid()) << name;
    EXPECT_EQ(host->read(root / name), "y");
  }
  EXPECT_EQ(host->write_like(root / "other", "y", root / "none").error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(fs::exists(root / "other"));
}

TEST_F(LocalHostTest, RemovesWhatKilledWritesHaveLeft) {
  const fs::path file = root / "slurm.key";
  EXPECT_TRUE(host->remove_leftovers(root / "none/slurm.key"));
  for (const char* name : {"slurm.key", ".slurm.key.aZ09xy", ".slurm.key.000000", ".slurm.key.short", ".slurm.key.toolong",
                           ".slurm.key.a-b_c.", ".slurm.jwks.aZ09xy", "slurm.key.aZ09xy", ".slurm.key.swp"})
    std::ofstream(root / name) << "x";
  ASSERT_TRUE(host->remove_leftovers(file));
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(root)) left.push_back(entry.path().filename());
  EXPECT_THAT(left, ::testing::UnorderedElementsAre("slurm.key", ".slurm.key.short", ".slurm.key.toolong", ".slurm.key.a-b_c.",
                                                    ".slurm.jwks.aZ09xy", "slurm.key.aZ09xy", ".slurm.key.swp"));
}

TEST_F(LocalHostTest, ReadsAndRemoves) {
  EXPECT_EQ(host->read(root / "none").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(host->read(root).error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(*host->read("/proc/self/stat"), HasSubstr(" ")) << "a file whose size is not known";
  ASSERT_TRUE(host->write(root / "a", "x", 0644));
  EXPECT_TRUE(host->remove(root / "a"));
  EXPECT_TRUE(host->remove(root / "a"));
  EXPECT_FALSE(fs::exists(root / "a"));
  ASSERT_TRUE(host->write(root / "folder/a", "x", 0644));
  EXPECT_FALSE(host->remove(root / "folder")) << "it is not empty";
  ASSERT_TRUE(host->remove(root / "folder/a"));
  EXPECT_TRUE(host->remove(root / "folder"));
  EXPECT_FALSE(fs::exists(root / "folder"));
}

TEST(TellingLines, PrefersTheLastFatalLine) {
  EXPECT_EQ(telling_lines("fatal: a\nslurmd: error: b\nslurmd: fatal: c\nslurmd: error: d\nended\n"), "slurmd: fatal: c");
  EXPECT_EQ(telling_lines("error: harmless\nerror: no cgroup\nerror: slurmd initialization failed\nended\n\n"),
            "error: no cgroup; error: slurmd initialization failed; ended");
  EXPECT_EQ(telling_lines("a\nb"), "a; b");
  EXPECT_EQ(telling_lines(""), "");
}

}  // namespace
}  // namespace enlist
