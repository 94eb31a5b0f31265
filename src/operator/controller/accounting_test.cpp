#include "operator/controller/accounting.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "kube/credentials.hpp"
#include "operator/controller/testing/observed.hpp"

namespace op::controller {
namespace {

namespace fs = std::filesystem;
using core::Json;
using ::testing::HasSubstr;
using ::testing::Not;

/// A port that answers, or one that does not.
class Port {
 public:
  explicit Port(bool listens) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    if (listens) EXPECT_EQ(::listen(socket_, 1), 0);
    name_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~Port() { ::close(socket_); }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  [[nodiscard]] const std::string& str() const { return name_; }

 private:
  int socket_;
  std::string name_;
};

/// The script of the init container, with a folder in the state's stead.
class Join : public ::testing::Test {
 protected:
  Join() : state_(fs::path(::testing::TempDir()) / ("join-" + std::to_string(getpid()))), words_(state_.string() + ".words") {
    fs::remove_all(state_);
    fs::remove(words_);
    fs::create_directories(state_);
  }
  ~Join() override {
    fs::remove_all(state_);
    fs::remove(words_);
  }
  Join(const Join&) = delete;
  Join& operator=(const Join&) = delete;

  void number(const char* text) const { std::ofstream(state_ / "clustername") << text; }
  [[nodiscard]] bool has_number() const { return fs::exists(state_ / "clustername"); }
  /// Whether it has ended by itself.
  [[nodiscard]] bool run(const std::string& slurmdbd) const {
    kube::System::Command command;
    command.argv = {"/usr/bin/env", "bash",         "-c",   "timeout 3 bash -c \"$@\" >/dev/null; echo $?",
                    "bash",         join_script(),  "bash", state_.string(),
                    slurmdbd,       words_.string()};
    const core::Result<std::string> said = kube::real_system().run(command);
    EXPECT_TRUE(said) << said.error().message;
    return said && *said == "0\n";
  }

  [[nodiscard]] std::string words() const {
    std::stringstream out;
    out << std::ifstream(words_).rdbuf();
    return out.str();
  }

  const fs::path state_, words_;
  const Port up_{true}, other_{true}, down_{false};
};

TEST_F(Join, ANewClusterWaitsForItsSlurmdbd) {
  EXPECT_FALSE(run(down_.str())) << "slurmctld would wait with its port open";
  EXPECT_TRUE(run(up_.str()));
}

TEST_F(Join, WhoWasWithNoneOrAnotherForgetsTheNumberOfTheClusterOnce) {
  number("cluster|1");
  EXPECT_TRUE(run(up_.str()));
  EXPECT_FALSE(has_number());
  number("cluster|2");
  std::ofstream(state_ / "assoc_usage") << "usage";
  EXPECT_TRUE(run(up_.str()));
  EXPECT_TRUE(has_number()) << "it is this slurmdbd's";
  EXPECT_TRUE(run(other_.str()));
  EXPECT_FALSE(has_number()) << "it was another slurmdbd's";
}

TEST_F(Join, WhileSlurmdbdIsAwaySlurmctldStartsFromItsState) {
  number("cluster|1");
  EXPECT_TRUE(run(down_.str()));
  EXPECT_TRUE(has_number()) << "without it slurmctld would wait";
  EXPECT_EQ(words(), "slurmdbd does not answer at " + down_.str() + ": slurmctld starts without it\n");
  fs::remove(words_);
  EXPECT_TRUE(run(up_.str()));
  EXPECT_EQ(words(), "");
  EXPECT_FALSE(has_number()) << "the next start makes up for it";
}

TEST_F(Join, WhoWasKilledBeforeItWroteItsUsageForgetsTheNumberOfTheCluster) {
  number("cluster|1");
  EXPECT_TRUE(run(up_.str()));
  number("cluster|2");
  std::ofstream(state_ / "job_state") << "jobs";
  EXPECT_TRUE(run(up_.str()));
  EXPECT_FALSE(has_number()) << "slurmctld would end with a number and without usage";
  EXPECT_TRUE(fs::exists(state_ / "job_state"));
  number("cluster|2");
  std::ofstream(state_ / "assoc_usage") << "usage";
  EXPECT_TRUE(run(up_.str()));
  EXPECT_TRUE(has_number());
}

Observed with_accounting() {
  Observed out = testing::observed_of({{"accountingRef", {{"name", "acct"}}}});
  out.accounting = AccountingFacts{
      .name = "acct", .exists = true, .error = "", .slurmdbd = {"db", 7000}, .slurm_key = {}, .jwt_key = {}, .namesake = ""};
  return out;
}

TEST(Accounting, ARunningClusterJoinsWhenItsSlurmdbdAnswersAndStays) {
  Observed observed = with_accounting();
  ConfigState state;
  state.offered["slurm.conf"] = "ClusterName=ns_x\n";
  const auto conf = [&] { return render_config(observed, state).files.at("slurm.conf"); };
  EXPECT_THAT(conf(), HasSubstr("AccountingStorageType=accounting_storage/none\n"));
  EXPECT_EQ(joins(observed, state), "");
  observed.accounting->serving = true;
  EXPECT_THAT(
      conf(),
      HasSubstr("AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=db\nAccountingStoragePort=7000\n"));
  state.offered["slurm.conf"] = conf();
  EXPECT_EQ(joins(observed, state), "db:7000");
  observed.accounting->serving = false;
  EXPECT_THAT(conf(), HasSubstr("AccountingStorageHost=db\n")) << "it has it";
  observed.accounting->slurmdbd.port = 7001;
  EXPECT_THAT(conf(), HasSubstr("AccountingStoragePort=7000\n")) << "the other one does not answer";
  observed.accounting->exists = false;
  EXPECT_THAT(conf(), HasSubstr("AccountingStoragePort=7000\n")) << "jobs would end unrecorded";
}

TEST(Accounting, ARefusedOneIsNotTriedAgainByTime) {
  Observed observed = with_accounting();
  observed.accounting->serving = true;
  ConfigState now;
  now.offered["slurm.conf"] = "ClusterName=ns_x\n";
  now.offered_hash = now.accepted_hash = "before";
  const Rendered wanted = render_config(observed, now);
  now.refused_hash = wanted.hash;
  now.refused_at = core::WallTime{};
  now.refusals = 1;
  SlurmctldFacts slurmctld{.loaded = "before", .refusal = {}, .made_of = "", .ready = true};
  slurmctld.now = core::WallTime{core::Duration{3'600'000}};
  const auto render = [&](const ConfigState& state) { return render_config(observed, state); };
  EXPECT_EQ(next_config_state(now, render, slurmctld).offered_hash, "before") << "each try is a restart of slurmctld";
}

}  // namespace
}  // namespace op::controller
