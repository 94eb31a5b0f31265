#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "enlist/host/host.hpp"
#include "enlist/host/testing/fake_host.hpp"
#include "enlist/rules/service_files.hpp"

namespace enlist {
namespace {

using core::ErrorCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;
namespace fs = std::filesystem;
using Words = std::vector<std::string>;

// --- systemd ---

class SystemdServiceTest : public ::testing::Test {
 protected:
  SystemdServiceTest() {
    for (const char* verb : {"daemon-reload", "enable", "reset-failed", "restart", "reload", "disable"})
      host.programs["systemctl " + std::string(verb)] = {};
  }
  void shows(const std::string& properties) { host.programs["systemctl show"].out = properties; }
  std::string& file(const char* name) { return host.files[name].first; }

  testing::FakeHost host;
  std::unique_ptr<Service> service = systemd_service(host, "/usr/sbin/slurmd");
};

TEST_F(SystemdServiceTest, WritesItsFilesAndStartsWithoutWaiting) {
  ASSERT_TRUE(service->start({"-Z", "-N", "gpu-1"}));
  EXPECT_EQ(file("/etc/systemd/system/slurmd.service"), unit_file("/usr/sbin/slurmd", "/etc/default/slurmd"));
  EXPECT_EQ(file("/etc/default/slurmd"), defaults_file({"-Z", "-N", "gpu-1"}));
  EXPECT_THAT(host.ran, ElementsAre("systemctl daemon-reload", "systemctl enable slurmd.service",
                                    "systemctl reset-failed slurmd.service", "systemctl restart --no-block slurmd.service"));
}

TEST_F(SystemdServiceTest, ArgumentsForTheNextStartDoNotTouchTheProcess) {
  ASSERT_TRUE(service->start({"-Z"}));
  host.ran.clear();
  ASSERT_TRUE(service->prepare({"-Z", "-v"}));
  EXPECT_EQ(file("/etc/default/slurmd"), defaults_file({"-Z", "-v"}));
  EXPECT_THAT(host.ran, ::testing::IsEmpty());
}

TEST_F(SystemdServiceTest, TheUnitReadsTheFileThatIsWritten) {
  service = systemd_service(host, "/usr/sbin/slurmd", {.defaults = "/opt/slurm/options"});
  ASSERT_TRUE(service->start({"-Z"}));
  EXPECT_EQ(file("/opt/slurm/options"), defaults_file({"-Z"}));
  EXPECT_THAT(file("/etc/systemd/system/slurmd.service"), HasSubstr("EnvironmentFile=/opt/slurm/options\n"));
}

TEST_F(SystemdServiceTest, KeepsFilesOfOthersBesideOurs) {
  file("/etc/default/slurmd") = "SLURMD_OPTIONS=-v\n";
  ASSERT_TRUE(service->start({"-Z"}));
  ASSERT_TRUE(service->start({"-Z", "-v"}));
  EXPECT_EQ(file("/etc/default/slurmd.before-slurm-enlist"), "SLURMD_OPTIONS=-v\n");
  EXPECT_EQ(file("/etc/default/slurmd"), defaults_file({"-Z", "-v"}));
}

TEST_F(SystemdServiceTest, GivesBackWhatWasThere) {
  file("/etc/default/slurmd") = "SLURMD_OPTIONS=-v\n";
  ASSERT_TRUE(service->start({"-Z"}));
  ASSERT_TRUE(service->stop());
  EXPECT_EQ(host.ran.back(), "systemctl disable --now slurmd.service") << "also at the next boot";
  ASSERT_TRUE(service->uninstall());
  EXPECT_EQ(file("/etc/default/slurmd"), "SLURMD_OPTIONS=-v\n");
  EXPECT_FALSE(host.files.contains("/etc/default/slurmd.before-slurm-enlist"));
  EXPECT_FALSE(host.files.contains("/etc/systemd/system/slurmd.service"));
  ASSERT_TRUE(service->uninstall()) << "a second time";
  EXPECT_EQ(file("/etc/default/slurmd"), "SLURMD_OPTIONS=-v\n") << "it is not ours";
}

TEST_F(SystemdServiceTest, AFileOfOthersKeepsItsModeAndOwner) {
  host.files["/etc/default/slurmd"] = {"SLURMD_OPTIONS=-v\nTOKEN=x\n", 0640};
  const auto mode = [&](const char* name) { return host.files[name].second; };
  ASSERT_TRUE(service->start({"-Z"}));
  EXPECT_EQ(mode("/etc/default/slurmd.before-slurm-enlist"), 0640U) << "it may have secrets";
  EXPECT_EQ(mode("/etc/default/slurmd"), 0640U);
  ASSERT_TRUE(service->prepare({"-Z", "-v"}));
  EXPECT_EQ(mode("/etc/default/slurmd"), 0640U);
  host.files.erase("/etc/default/slurmd");  // Somebody removes our file.
  ASSERT_TRUE(service->uninstall());
  EXPECT_EQ(host.files["/etc/default/slurmd"], std::pair(std::string("SLURMD_OPTIONS=-v\nTOKEN=x\n"), 0640U));
}

TEST_F(SystemdServiceTest, TellsWhatSystemctlRefuses) {
  host.programs["systemctl restart"] = {.status = 1, .out = "", .err = "Failed to restart slurmd.service: Access denied\n"};
  EXPECT_EQ(service->start({"-Z"}).error().message, "systemctl restart: Failed to restart slurmd.service: Access denied");
  host.programs.erase("systemctl show");
  EXPECT_EQ(service->state().error().code, ErrorCode::kNotFound);
  host.full = true;
  EXPECT_THAT(service->start({"-Z", "-x"}).error().message, HasSubstr("No space left"));
}

TEST_F(SystemdServiceTest, ReadsTheArgumentsOfTheProcess) {
  ASSERT_TRUE(service->start({"-Z", "-N", "new"}));
  file("/proc/17/cmdline") = std::string("slurmd\0--systemd\0-Z\0-N\0old\0", 27);
  shows("ActiveState=active\nSubState=running\nMainPID=17\nJob=\nResult=success\nExecMainStatus=0\n");
  EXPECT_EQ(service->state(), (ServiceState{.running = true, .arguments = Words{"--systemd", "-Z", "-N", "old"}}))
      << "the file may have been written for a restart that failed";
  shows("ActiveState=activating\nSubState=start\nMainPID=17\nJob=99\n");
  EXPECT_EQ(service->state(), (ServiceState{.running = true, .arguments = Words{"--systemd", "-Z", "-N", "old"}}))
      << "it waits for slurmctld, with what it was started with";
  file("/proc/17/cmdline") = std::string("/usr/lib/systemd/systemd-executor\0--deserialize\0", 48);
  EXPECT_EQ(service->state(), (ServiceState{.running = true, .changing = true, .arguments = Words{"-Z", "-N", "new"}}))
      << "it has not become slurmd yet";
  file("/proc/17/cmdline").clear();
  EXPECT_TRUE(service->state()->changing);
}

TEST_F(SystemdServiceTest, WithoutTheFileOfTheArgumentsASlurmdOfOurUnitIsStillOurs) {
  ASSERT_TRUE(service->start({"-Z", "-N", "gpu-1"}));
  host.files.erase("/etc/default/slurmd");
  file("/proc/17/cmdline") = std::string("slurmd\0-Z\0-N\0gpu-1\0", 19);
  shows("ActiveState=active\nSubState=running\nMainPID=17\nJob=\n");
  EXPECT_EQ(service->state()->arguments, (Words{"-Z", "-N", "gpu-1"}));
  file("/etc/systemd/system/slurmd.service") = "[Service]\n";
  EXPECT_EQ(service->state()->arguments, std::nullopt) << "somebody else's unit";
}

TEST_F(SystemdServiceTest, WritesItsFilesAgainWithoutAStart) {
  ASSERT_TRUE(service->start({"-Z"}));
  file("/proc/17/cmdline") = std::string("slurmd\0-Z\0", 10);
  shows("ActiveState=active\nSubState=running\nMainPID=17\nJob=\n");
  EXPECT_FALSE(service->state()->file_missing);
  const auto files = host.files;
  for (const auto& [path, ran] : std::map<std::string, Words>{
           {"/etc/default/slurmd", {}}, {"/etc/systemd/system/slurmd.service", {"systemctl daemon-reload"}}}) {
    host.files.erase(path);
    EXPECT_TRUE(service->state()->file_missing) << path;
    host.ran.clear();
    ASSERT_TRUE(service->prepare({"-Z"}));
    EXPECT_EQ(host.files, files) << path;
    EXPECT_EQ(host.ran, ran);
  }
  file("/etc/systemd/system/slurmd.service") = "[Service]\n";
  ASSERT_TRUE(service->prepare({"-Z"}));
  EXPECT_EQ(file("/etc/systemd/system/slurmd.service"), "[Service]\n") << "the next start replaces it";
  host.files.clear();
  file("/proc/17/cmdline") = std::string("slurmd\0-Z\0", 10);
  EXPECT_FALSE(service->state()->file_missing) << "a slurmd of somebody else";
}

TEST_F(SystemdServiceTest, TellsWhenTheProcessWasStarted) {
  file("/etc/default/slurmd") = defaults_file({"-Z"});
  file("/proc/17/cmdline") = std::string("slurmd\0-Z\0", 10);
  const auto since_boot =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch() - 1h).count();
  const std::string shown = "ExecMainStartTimestampMonotonic=" + std::to_string(since_boot) + "\n";
  shows("ActiveState=active\nMainPID=17\nJob=\n" + shown);
  const core::WallTime started = service->state()->started;
  const core::Duration ago = core::SystemClock().wall() - started;
  EXPECT_GT(ago, 30min);
  EXPECT_LT(ago, 90min);
  EXPECT_EQ(core::whole_seconds(started), started);
  EXPECT_EQ(service->state()->started, started) << "however the clocks are adjusted";
  shows("ActiveState=inactive\nMainPID=0\n" + shown);
  EXPECT_EQ(service->state()->started, core::WallTime{});
}

TEST_F(SystemdServiceTest, SeesWhatIsUnderWay) {
  ASSERT_TRUE(service->start({"-Z"}));
  file("/proc/17/cmdline") = std::string("slurmd\0-Z\0", 10);
  for (const char* shown : {"ActiveState=active\nMainPID=17\nJob=5\n", "ActiveState=deactivating\nMainPID=17\n",
                            "ActiveState=activating\nSubState=auto-restart\nMainPID=0\n", "ActiveState=active\nMainPID=18\n"}) {
    shows(shown);
    EXPECT_TRUE(service->state()->changing) << shown;
  }
  shows("ActiveState=inactive\nMainPID=0\n");
  EXPECT_EQ(service->state(), (ServiceState{.arguments = Words{"-Z"}}));
}

TEST_F(SystemdServiceTest, ASlurmdOfOthersHasNoArguments) {
  file("/etc/default/slurmd") = "SLURMD_OPTIONS=-v\n";
  shows("ActiveState=active\nMainPID=17\nJob=\n");
  EXPECT_EQ(service->state(), (ServiceState{.running = true}));
}

TEST_F(SystemdServiceTest, TheFailureOfASlurmdOfOthersIsNotOurs) {
  host.programs["journalctl _SYSTEMD_UNIT=slurmd.service"].out = "slurmd: error: failed to load configs\n";
  shows("ActiveState=failed\nSubState=failed\nMainPID=0\nResult=timeout\nExecMainStatus=15\n");
  EXPECT_EQ(service->state(), ServiceState{});
  file("/etc/default/slurmd") = "SLURMD_OPTIONS=-v\n";
  EXPECT_EQ(service->state(), ServiceState{});
  shows("ActiveState=activating\nSubState=auto-restart-queued\nMainPID=0\nResult=exit-code\nExecMainStatus=1\n");
  EXPECT_TRUE(service->state()->changing);
  EXPECT_EQ(service->state()->error, "slurmd ended (exit-code, exit code 1): slurmd: error: failed to load configs")
      << "the agent waits for it, and has to say why";
}

TEST_F(SystemdServiceTest, TellsWhyItFailed) {
  file("/etc/default/slurmd") = defaults_file({"-Z"});
  host.programs["journalctl _SYSTEMD_UNIT=slurmd.service"].out =
      "slurmd: error: harmless\nslurmd: fatal: Unable to parse --conf\nslurmd: error: harmless\n";
  shows("ActiveState=failed\nSubState=failed\nMainPID=0\nResult=exit-code\nExecMainStatus=1\n");
  EXPECT_EQ(service->state()->error, "slurmd ended (exit-code, exit code 1): slurmd: fatal: Unable to parse --conf");
  host.programs.erase("journalctl _SYSTEMD_UNIT=slurmd.service");
  EXPECT_EQ(service->state()->error, "slurmd ended (exit-code, exit code 1)");
  shows("\n");
  EXPECT_FALSE(service->state()) << "unknown is not stopped";
}

TEST_F(SystemdServiceTest, TellsWhatKeepsASlurmdThatRuns) {
  file("/etc/default/slurmd") = defaults_file({"-Z"});
  file("/proc/17/cmdline") = std::string("slurmd\0-Z\0", 10);
  host.programs["journalctl _SYSTEMD_UNIT=slurmd.service --lines"].out = "slurmd: fatal: can't stat gres.conf file /dev/gpu0\n";
  host.programs["journalctl _SYSTEMD_UNIT=slurmd.service _PID=17 --lines"].out = "slurmd: error: getaddrinfo() failed\n";
  const auto error = [&](std::chrono::seconds ago, const std::string& properties) {
    const auto started = std::chrono::steady_clock::now().time_since_epoch() - ago;
    shows(properties + "MainPID=17\nJob=\nExecMainStartTimestampMonotonic=" +
          std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(started).count()) + "\n");
    const auto state = service->state();
    EXPECT_TRUE(state->running);
    return state->error;
  };
  EXPECT_EQ(error(1h, "ActiveState=activating\nNRestarts=0\n"),
            "slurmd is still starting: slurmd: error: getaddrinfo() failed");
  EXPECT_EQ(error(0s, "ActiveState=activating\nNRestarts=0\n"), "") << "it has just been started";
  EXPECT_EQ(error(1h, "ActiveState=active\nNRestarts=7\n"), "") << "it is well again";
  const std::string again =
      "slurmd ends again and again, and systemd starts it each time: slurmd: fatal: can't stat gres.conf file /dev/gpu0";
  EXPECT_EQ(error(0s, "ActiveState=activating\nNRestarts=7\n"), again);
  EXPECT_EQ(error(0s, "ActiveState=active\nNRestarts=7\n"), again);
  file("/etc/default/slurmd") = "SLURMD_OPTIONS=-v\n";
  EXPECT_EQ(error(1h, "ActiveState=activating\nNRestarts=7\n"), "") << "a slurmd of somebody else";
}

// --- steps ---

TEST(ServiceSteps, AreTheSlurmstepdsOfJobs) {
  testing::FakeHost host;
  const auto service = systemd_service(host, "/usr/sbin/slurmd");
  const std::string own = "/proc/" + std::to_string(getpid());
  const auto is = [&](const std::string& name, const std::string& line) {
    host.files[own + "/comm"].first = name + "\n";
    host.files[own + "/cmdline"].first = line;
    return service->steps();
  };
  EXPECT_EQ(is("bash", "bash"), Words{});
  EXPECT_EQ(is("slurmstepd", "slurmstepd: [12.batch]"), Words{"12.batch"});
  EXPECT_EQ(is("slurmstepd", std::string("/usr/sbin/slurmstepd\0infinity\0", 30)), Words{})
      << "it keeps the cgroup of all steps";
  EXPECT_EQ(is("slurmstepd", std::string("/usr/sbin/slurmstepd\0", 21)), Words{"?"}) << "a step begins";
  EXPECT_EQ(is("slurmstepd", ""), Words{}) << "a zombie";
}

// --- a child ---

class ChildServiceTest : public ::testing::Test {
 protected:
  ChildServiceTest() {
    std::string path = fs::temp_directory_path() / "enlist-child-XXXXXX";
    root = mkdtemp(path.data());
  }
  ~ChildServiceTest() override {
    EXPECT_TRUE(make("")->stop());
    fs::remove_all(root);
  }
  std::unique_ptr<Service> make(const std::string& script) {
    std::ofstream(root / "slurmd") << "#!/bin/sh\n" << script << "\n";
    chmod((root / "slurmd").c_str(), 0755);
    return child_service(*host, root / "slurmd", root / "log/slurmd.log");
  }
  static bool until(const std::function<bool()>& holds) {
    for (int i = 0; i < 600; ++i) {
      if (holds()) return true;
      std::this_thread::sleep_for(100ms);
    }
    return false;
  }
  std::string log() const { return host->read(root / "log/slurmd.log").value_or(""); }

  std::unique_ptr<Host> host = local_host();
  fs::path root;
};

TEST_F(ChildServiceTest, RunsAndIsFoundByTheNextProcess) {
  auto service = make("trap 'echo hangup' HUP; echo \"$@\"; while :; do sleep 0.1; done");
  EXPECT_EQ(service->state(), ServiceState{});
  EXPECT_EQ(service->reload().error().code, ErrorCode::kConflict);
  ASSERT_TRUE(service->start({"-Z", "-N", "a b"}));
  EXPECT_TRUE(until([&] { return log() == "-D -Z -N a b\n"; })) << log();
  ASSERT_TRUE(service->reload());
  EXPECT_TRUE(until([&] { return log().ends_with("hangup\n"); })) << log();

  const auto next = child_service(*host, root / "slurmd", root / "log/slurmd.log");
  const core::WallTime started = service->state()->started;
  EXPECT_LT(core::SystemClock().wall() - started, 1h);
  const std::string image = service->state()->image;
  EXPECT_NE(image, "");
  EXPECT_EQ(next->state(),
            (ServiceState{.running = true, .arguments = Words{"-Z", "-N", "a b"}, .started = started, .image = image}));
  ASSERT_TRUE(next->stop());
  EXPECT_EQ(service->state(), ServiceState{});
}

TEST_F(ChildServiceTest, AReloadThatIsCarriedOutIsAnotherImageOfTheSameProcess) {
  // A stand-in that executes itself at SIGHUP, as slurmd -D does.
  auto service = make(
      "export SLURM_SACK_KEY=x; trap 'exec \"$0\" again' HUP; echo \"begins $1\"; while [ $1 != end ]; do sleep 0.1; done");
  ASSERT_TRUE(service->start({}));
  ASSERT_TRUE(until([&] { return log().ends_with("begins -D\n"); })) << log();
  const auto before = service->state();
  ASSERT_TRUE(service->reload());
  EXPECT_TRUE(until([&] { return log().ends_with("begins again\n"); })) << log();
  const auto after = service->state();
  EXPECT_TRUE(after->running);
  EXPECT_EQ(after->started, before->started);
  EXPECT_NE(after->image, before->image);
  EXPECT_EQ(service->state()->image, after->image);
  EXPECT_FALSE(before->keeps_plain_key);
  EXPECT_TRUE(after->keeps_plain_key) << "its environment tells what it has found at its first start";
}

TEST_F(ChildServiceTest, AReloadDoesNotEndASlurmdThatStarts) {
  auto service = make("exec sleep 1000");
  ASSERT_TRUE(service->start({}));
  EXPECT_EQ(service->reload().error().message, "slurmd is still starting: it may wait for slurmctld");
  EXPECT_TRUE(service->state()->running);
  EXPECT_TRUE(until([&] { return service->state()->error.starts_with("slurmd is still starting"); }));
}

TEST_F(ChildServiceTest, ARestartEndsOnlyTheProcessItself) {
  auto service = make("[ -e " + (root / "step").string() + " ] || { sleep 1000 & echo $! > " + (root / "step").string() +
                      "; }; exec sleep 1000");
  ASSERT_TRUE(service->start({"one"}));
  ASSERT_TRUE(until([&] { return host->read(root / "step").value_or("").ends_with("\n"); }));
  ASSERT_TRUE(service->start({"two"}));
  EXPECT_EQ(service->state()->arguments, Words{"two"});
  const auto step = static_cast<pid_t>(std::stol(*host->read(root / "step")));
  EXPECT_EQ(kill(step, SIGKILL), 0) << "a job outlives the restart";
}

TEST_F(ChildServiceTest, TellsWhyItEnded) {
  auto service = make("echo 'slurmd: fatal: no key' >&2; exit 4");
  ASSERT_TRUE(service->start({}));
  ASSERT_TRUE(until([&] { return !service->state()->running; }));
  EXPECT_EQ(service->state()->error, "slurmd ended (exit code 4): slurmd: fatal: no key");
  service = make("echo 'slurmd: error: no cgroup' >&2; exit 5");
  ASSERT_TRUE(service->start({}));
  ASSERT_TRUE(until([&] { return !service->state()->running; }));
  EXPECT_EQ(service->state()->error, "slurmd ended (exit code 5): slurmd: error: no cgroup") << "the log goes on";
  fs::remove(root / "slurmd");
  EXPECT_EQ(service->start({}).error().code, ErrorCode::kNotFound);
}

TEST_F(ChildServiceTest, AProcessWhoseFirstThreadHasEndedRuns) {
  // slurmd has no first thread for a moment when it reconfigures, because another thread calls execve(2).
  const pid_t pid = fork();
  if (pid == 0) {
    std::thread([] { pause(); }).detach();
    syscall(SYS_exit, 0);  // ends this thread only
  }
  const auto after_name = [&] {
    const std::string stat = host->read("/proc/" + std::to_string(pid) + "/stat").value_or("");
    return stat.substr(stat.rfind(')') + 2);
  };
  ASSERT_TRUE(until([&] { return after_name().starts_with("Z"); }));
  std::istringstream words(after_name());
  std::string start;
  for (int field = 3; field <= 22; ++field) words >> start;
  auto service = make("");
  ASSERT_TRUE(host->write(root / "log/slurmd.log.state",
                          R"({"pid": )" + std::to_string(pid) + R"(, "start": ")" + start + R"(", "arguments": []})", 0600));
  EXPECT_TRUE(service->state()->running);
  EXPECT_EQ(kill(pid, SIGKILL), 0);
  EXPECT_TRUE(until([&] { return !service->state()->running; }));
}

TEST_F(ChildServiceTest, AnotherProcessWithTheSameNumberIsNotTheChild) {
  auto service = make("exec sleep 1000");
  ASSERT_TRUE(host->write(root / "log/slurmd.log.state",
                          R"({"pid": )" + std::to_string(getpid()) + R"(, "start": "1", "arguments": []})", 0600));
  EXPECT_FALSE(service->state()->running);
  EXPECT_TRUE(service->stop()) << "and this test goes on";
  ASSERT_TRUE(host->write(root / "log/slurmd.log.state", "{", 0600));
  EXPECT_FALSE(service->state()) << "unknown is not stopped";
  EXPECT_FALSE(service->start({}));
  ASSERT_TRUE(host->remove(root / "log/slurmd.log.state"));
}

}  // namespace
}  // namespace enlist
