// Runs the program itself: the coordinator, without Slurm, and an administrator who connects over the loopback interface.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "enlist/cli/connection.hpp"
#include "net/certificate.hpp"

namespace enlist::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class ProcessTest : public ::testing::Test {
 protected:
  ProcessTest() {
    std::string path = fs::temp_directory_path() / "slurm-enlist-XXXXXX";
    root = mkdtemp(path.data());
    std::ofstream(root / "slurm.conf") << "ClusterName=site\nSlurmctldHost=localhost\n";
    std::ofstream(root / "slurm.key") << "the content of the key";
  }
  ~ProcessTest() override {
    if (pid > 0) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
    fs::remove_all(root);
  }

  void spawn(const std::vector<std::string>& flags = {}) {
    const passwd* self = getpwuid(getuid());
    std::vector<std::string> words = {SLURM_ENLIST,
                                      "coordinator",
                                      "run",
                                      "--state",
                                      root / "state",
                                      "--slurm-conf",
                                      root / "slurm.conf",
                                      "--join-addr",
                                      "127.0.0.1:0",
                                      "--agent-addr",
                                      "127.0.0.1:0",
                                      "--slurmrestd",
                                      "/bin/false",
                                      "--slurmrestd-user",
                                      self == nullptr ? "root" : self->pw_name,
                                      "--slurmrestd-folder",
                                      root / "rest"};
    words.insert(words.end(), flags.begin(), flags.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 2, (root / "log").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ASSERT_EQ(posix_spawn(&pid, SLURM_ENLIST, &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  void start() {
    spawn();
    for (int i = 0; i < 300 && port() == 0; ++i) std::this_thread::sleep_for(100ms);
    ASSERT_NE(port(), 0) << log();
  }
  int exit_code() {
    int status = -1;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  [[nodiscard]] std::string log() const {
    std::ostringstream out;
    out << std::ifstream(root / "log").rdbuf();
    return out.str();
  }
  /// Returns a port that the program logs when it has started; 0: it has not started. The default is that for administrators.
  [[nodiscard]] int port(const char* which = "agent_port") const {
    std::ifstream lines(root / "log");
    for (std::string line; std::getline(lines, line);) {
      if (const auto json = core::parse_json(line); json && core::get_string(*json, {"msg"}) == "starting")
        return static_cast<int>(core::get_int(*json, {which}));
    }
    return 0;
  }
  [[nodiscard]] core::Result<core::Json> ask(const std::string& path, const core::Json& body = nullptr,
                                             const char* which = "agent_port") const {
    return ask_coordinator({.address = "127.0.0.1:" + std::to_string(port(which)), .state = root / "state"}, path, body);
  }
  [[nodiscard]] static mode_t mode_of(const fs::path& file) {
    struct stat found {};
    return stat(file.c_str(), &found) == 0 ? found.st_mode & 0777U : 0;
  }

  fs::path root;
  pid_t pid = 0;
};

TEST_F(ProcessTest, TheCoordinatorAnswersAdministratorsAndNobodyElse) {
  start();
  const auto pools = ask("/v1/pools");
  ASSERT_TRUE(pools) << pools.error().message;
  EXPECT_EQ(pools->at("pools"), core::Json::array());
  const auto refused = ask("/v1/pools", {{"name", "gpu"}});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("Slurm does not answer the coordinator"));

  const core::Json long_wish{{"name", std::string(40'000, 'x')}};
  EXPECT_THAT(ask("/v1/pools", long_wish).error().message, HasSubstr("the name must"));
  EXPECT_THAT(ask("/v1/pools", long_wish, "join_port").error().message, HasSubstr("status 413"));
  EXPECT_THAT(ask("/v1/pools", nullptr, "join_port").error().message, HasSubstr("there is nothing at this address"));

  for (const char* file : {"admin.key", "coordinator.key", "coordinator.db"})
    EXPECT_EQ(mode_of(root / "state" / file), 0600U) << file;

  // The administrator's key is another one. The certificate of the coordinator is right.
  const net::SelfSigned other = net::make_self_signed("other");
  std::ofstream(root / "state/admin.crt") << other.cert;
  std::ofstream(root / "state/admin.key") << other.key;
  const auto stranger = ask("/v1/pools");
  ASSERT_FALSE(stranger);
  EXPECT_THAT(stranger.error().message, HasSubstr("this is not the key of the administrators"));
  EXPECT_THAT(ask("/v1/pools", long_wish).error().message, HasSubstr("status 413")) << "it is not read to its end";
  // Now the certificate is that of another coordinator.
  std::ofstream(root / "state/coordinator.crt") << other.cert;
  EXPECT_FALSE(ask("/v1/pools"));

  kill(pid, SIGTERM);
  EXPECT_EQ(exit_code(), 0) << log();
  EXPECT_THAT(log(), ::testing::Not(HasSubstr("the content of the key")));
}

TEST_F(ProcessTest, AnAddressThatNoTokenCanHaveIsRefused) {
  spawn({"--address", std::string(254, 'a')});
  EXPECT_NE(exit_code(), 0);
  EXPECT_THAT(log(), HasSubstr("must be a name or an IP address, of at most 253 characters"));
}

}  // namespace
}  // namespace enlist::cli
