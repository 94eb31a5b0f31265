#include "operator/controller/accounting.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "kube/client/credentials.hpp"
#include "operator/controller/build.hpp"
#include "operator/controller/cluster_number.hpp"
#include "operator/controller/testing/observed.hpp"

namespace op::controller {
namespace {

namespace fs = std::filesystem;
using core::Json;
using ::testing::HasSubstr;
using ::testing::Not;

/// A port on which a socket listens, or which refuses connections.
class Port {
 public:
  explicit Port(bool listens) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    // The kernel completes connections to a listening socket. The test itself accepts none of these connections.
    if (listens) {
      EXPECT_EQ(::listen(socket_, SOMAXCONN), 0);
    }
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

/// Runs the scripts of init containers. A temporary directory takes the place of slurmctld's state directory.
class Join : public ::testing::Test {
 protected:
  Join() : state_(fs::path(::testing::TempDir()) / ("join-" + std::to_string(getpid()))) {
    fs::remove_all(state_);
    fs::create_directories(state_);
    write("release", "unknown");
  }
  ~Join() override { fs::remove_all(state_); }
  Join(const Join&) = delete;
  Join& operator=(const Join&) = delete;

  void number(const char* text) const { std::ofstream(state_ / "clustername") << text; }
  [[nodiscard]] bool has_number() const { return fs::exists(state_ / "clustername"); }
  /// Runs the script of an init container with these arguments. Returns its exit status. "124": the script still waits.
  [[nodiscard]] std::string end_of(const std::string& script, const std::vector<std::string>& arguments) const {
    kube::System::Command command;
    command.argv = {"/usr/bin/env",
                    "PATH=" + state_.string() + ":/usr/bin:/bin",
                    "bash",
                    "-c",
                    "timeout 3 bash -c \"$@\" >/dev/null; printf $?",
                    "bash",
                    script,
                    "bash",
                    state_.string()};
    command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
    const core::Result<std::string> said = kube::real_system().run(command);
    EXPECT_TRUE(said) << said.error().message;
    return said.value_or("");
  }
  /// True if the script has ended with success.
  [[nodiscard]] bool run(const std::string& slurmdbd) const { return join(slurmdbd) == "0"; }
  [[nodiscard]] std::string join(const std::string& slurmdbd) const {
    return end_of(join_script(), {slurmdbd, release_, path("told"), path("words")});
  }
  [[nodiscard]] std::string path(const char* name) const { return (state_ / name).string(); }
  void write(const char* name, const std::string& text) const { std::ofstream(state_ / name) << text; }
  [[nodiscard]] std::string read(const char* name) const {
    std::ifstream in(state_ / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const fs::path state_;
  std::string release_ = path("release");
  const Port up_{true}, other_{true}, down_{false};
};

TEST_F(Join, ANewClusterWaitsForItsSlurmdbd) {
  EXPECT_FALSE(run(down_.str())) << "slurmctld would wait with its port open";
  EXPECT_TRUE(run(up_.str()));
}

TEST_F(Join, WhoWaitsLooksOftenAtFirst) {
  write("release", "");
  write("sleep", "#!/bin/sh\necho $1 >>${0%/*}/pauses\n[ $1 = 0.2 ] || echo 26.05 >${0%/*}/release\n");
  fs::permissions(state_ / "sleep", fs::perms::owner_all);
  EXPECT_TRUE(run(up_.str()));
  const std::string pauses = read("pauses");
  EXPECT_TRUE(pauses.starts_with("0.2\n") && pauses.ends_with("0.2\n1\n")) << pauses;
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

TEST_F(Join, WhoWasNeverWithASlurmdbdWaitsForIt) {
  number("cluster|1");
  EXPECT_EQ(join(down_.str()), "124") << "slurmctld would end, because its state has no TRES";
  EXPECT_TRUE(has_number()) << "it may yet start without accounting";
  EXPECT_EQ(read("words"), "");
}

TEST_F(Join, WhileSlurmdbdIsAwaySlurmctldStartsFromItsState) {
  number("cluster|1");
  write("last_tres", "tres");
  EXPECT_TRUE(run(down_.str()));
  EXPECT_TRUE(has_number()) << "without it slurmctld would wait";
  EXPECT_EQ(read("words"), "slurmdbd does not answer at " + down_.str() + ": slurmctld starts without it\n");
  fs::remove(state_ / "words");
  EXPECT_TRUE(run(up_.str()));
  EXPECT_EQ(read("words"), "");
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

TEST_F(Join, WithoutANumberSlurmctldWaitsForTheSlurmdbdThatItWasWith) {
  write("slurm-operator.slurmdbd", down_.str());
  EXPECT_FALSE(run(down_.str())) << "somebody has removed it, to accept that of the database";
  number("cluster|1");
  write("assoc_usage", "usage");
  write("last_tres", "tres");
  EXPECT_TRUE(run(down_.str()));
}

TEST_F(Join, OneThatIsNewerThanItsSlurmdbdSaysSoOnceAndWaits) {
  write("slurmctld", "#!/bin/sh\necho slurm-wlm 26.05.5\n");
  fs::permissions(state_ / "slurmctld", fs::perms::owner_all);
  number("cluster|1");
  write("assoc_usage", "usage");
  write("slurm-operator.slurmdbd", up_.str());
  for (const char* theirs : {"26.05", "26.11", "unknown", ""}) {
    write("release", theirs);
    EXPECT_TRUE(run(up_.str())) << theirs;
  }
  write("release", "24.11");
  EXPECT_EQ(join(up_.str()), "1");
  EXPECT_EQ(read("words"), "newer: 26.05 24.11");
  EXPECT_EQ(join(up_.str()), "124") << "a crash would tell no more";
  write("release", "25.11");
  EXPECT_EQ(join(up_.str()), "124");
  write("release", "26.05");
  EXPECT_TRUE(run(up_.str()));
}

TEST_F(Join, WhoeverJoinsWaitsForTheReleaseOfItsSlurmdbd) {
  fs::remove(state_ / "release");
  EXPECT_FALSE(run(up_.str()));
  number("cluster|1");
  EXPECT_FALSE(run(up_.str()));
  write("last_tres", "tres");
  EXPECT_TRUE(run(down_.str())) << "it starts from its state";
  release_.clear();
  EXPECT_TRUE(run(up_.str())) << "nobody tells that of an external one";
}

TEST_F(Join, WhereTheNumbersDifferItWaitsForAPersonOnce) {
  const auto wait = [&](const char* note) { return end_of(wait_number_script(), {"17", "23", note}); };
  number("cluster|17");
  write("job_state", "jobs");
  EXPECT_EQ(wait("one"), "124");
  write("slurm-operator.try-again", "");
  EXPECT_EQ(wait("one"), "0") << "the database was restored";
  EXPECT_TRUE(has_number());
  EXPECT_EQ(wait("one"), "0") << "the next pods pass";
  EXPECT_EQ(wait("two"), "124") << "it was not";
  fs::remove(state_ / "clustername");
  EXPECT_EQ(wait("two"), "0") << "slurmdbd's number is accepted";
  number("cluster|23");
  EXPECT_EQ(wait("three"), "0") << "it has it";
  EXPECT_EQ(read("job_state"), "jobs");
}

TEST(ClusterNumber, IsReadFromTheLastWordsOfSlurmctld) {
  kube::ContainerState slurmctld;
  slurmctld.message =
      "slurmctld: error: something\nslurmctld: fatal: CLUSTER ID MISMATCH.\nslurmctld has been started with \"ClusterID=1781\" "
      " "
      "from the state files in StateSaveLocation, but the DBD thinks it should be \"2943\".\nRunning multiple clusters from a "
      "shared StateSaveLocation WILL CAUSE CORRUPTION.\n";
  const auto numbers = differing_numbers(slurmctld);
  ASSERT_TRUE(numbers);
  EXPECT_EQ(numbers->ours, "1781");
  EXPECT_EQ(numbers->theirs, "2943");
  slurmctld.ready = true;
  EXPECT_FALSE(differing_numbers(slurmctld)) << "it runs";
  for (const char* other : {"", "fatal: CLUSTER NAME MISMATCH.\n", "fatal: CLUSTER ID MISMATCH.\n",
                            "fatal: CLUSTER ID MISMATCH.\n\"ClusterID=17\"", "fatal: CLUSTER ID MISMATCH.\n\"ClusterID=\""}) {
    slurmctld = {};
    slurmctld.message = other;
    EXPECT_FALSE(differing_numbers(slurmctld)) << other;
  }
}

TEST(Accounting, TheReleaseIsThatOfASlurmdbdOfOurs) {
  EXPECT_EQ(release_map("ns", "acct-accounting.ns:6819"), "acct-accounting");
  EXPECT_EQ(release_map("ns", "acct-accounting:6819"), "acct-accounting");
  for (const char* other : {"", "db:6819", "slurmdbd.example.com:6819", "acct-accounting.other:6819", "a.b-accounting:6819"})
    EXPECT_EQ(release_map("ns", other), "") << other;
}

Observed with_accounting() {
  Observed out = testing::observed_of({{"accountingRef", {{"name", "acct"}}}});
  out.accounting = AccountingFacts{
      .name = "acct", .exists = true, .error = "", .slurmdbd = {"db", 7000}, .slurm_key = {}, .jwt_key = {}, .namesake = ""};
  return out;
}

TEST(ClusterNumber, EachSlurmctldWaitsWhereItIsNoted) {
  Observed observed = testing::observed_of(
      {{"accountingRef", {{"name", "acct"}}}, {"ha", {{"enabled", true}}}, {"persistence", {{"existingClaim", "shared"}}}});
  observed.accounting = with_accounting().accounting;
  ConfigState state;
  state.offered["slurm.conf"] = "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=db\n";
  const auto waits = [&](bool backup) {
    const Json set = backup ? build_backup_set(observed, state, "key") : build_stateful_set(observed, state, "key");
    const Json* init = core::find(set, {"spec", "template", "spec", "initContainers"});
    const std::string text = init == nullptr ? "" : init->dump();
    return text.find("\"cluster-number\"") != std::string::npos && text.find("\"17\",\"23\",\"uid\"") != std::string::npos;
  };
  EXPECT_FALSE(waits(false) || waits(true));
  state.numbers_differ = "17 23 uid";
  EXPECT_TRUE(waits(false));
  EXPECT_TRUE(waits(true)) << "one that takes over would end as well";
  observed.controller.spec.accounting_ref.reset();
  EXPECT_FALSE(waits(false) || waits(true)) << "nobody tells another number";
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
