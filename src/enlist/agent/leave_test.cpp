#include "enlist/agent/leave.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/hash.hpp"
#include "enlist/agent/memory_file.hpp"
#include "enlist/host/testing/fake_host.hpp"
#include "enlist/rules/service_files.hpp"

namespace enlist {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class LeaveCommandTest : public ::testing::Test {
 protected:
  LeaveCommandTest() {
    files("agent.json") =
        memory_text({.host = "ctl", .port = 6830, .coordinator = "pin", .node = "gpu-1", .pool = "gpu", .cluster = "lab"});
    files("host.key") = "key";
  }
  std::string& files(const std::string& name) { return host.files["/var/lib/slurm-enlist/" + name].first; }
  void status(const std::string& phase, const std::string& message) {
    host.files["/run/slurm-enlist/agent.status"].first = core::Json{{"phase", phase}, {"message", message}}.dump();
  }
  int run(const LeaveOptions& options = {}) {
    return leave(options, {.host = host,
                           .identity = [](const std::filesystem::path&, const std::string&) -> core::Result<Identity> {
                             return Identity{"cert", "key", "fingerprint"};
                           },
                           .send =
                               [this](const net::Endpoint& to, const net::HttpRequest& request) {
                                 endpoint = to;
                                 sent = request;
                                 return core::Result<net::HttpResponse>(reply);
                               },
                           .slurmd = {},
                           .read_input = [] { return core::Result<std::string>(""); },
                           .write_out = [this](std::string_view text) { out += text; },
                           .write_err = [this](std::string_view text) { err += text; },
                           .now = [this] { return now; },
                           .sleep =
                               [this](core::Duration time) {
                                 now = now + time;
                                 if (on_sleep) on_sleep();
                               },
                           .program = {}});
  }

  testing::FakeHost host;
  net::HttpResponse reply{.status = 200, .headers = {}, .body = "{}"};
  net::Endpoint endpoint;
  net::HttpRequest sent;
  core::MonoTime now;
  std::function<void()> on_sleep;
  std::string out, err;
};

TEST_F(LeaveCommandTest, ShowsWhatIsWaitedForUntilTheHostHasLeft) {
  status("Ready", "");
  int looks = 0;
  on_sleep = [&] {
    ++looks;
    if (looks == 2) status("Draining", "jobs run there: 12");
    if (looks == 5) status("Gone", "the agent cleans up the host");
    if (looks == 7) host.files.erase("/var/lib/slurm-enlist/agent.json");
  };
  EXPECT_EQ(run(), 0) << err;
  EXPECT_EQ(sent.target, "/v1/leave");
  EXPECT_EQ(endpoint.tls.pinned_key, "pin");
  EXPECT_EQ(out,
            "Node gpu-1 leaves. You can interrupt this command: the host continues to leave.\nDraining: jobs run there: 12\n"
            "Gone: the agent cleans up the host\nThis host has left.\n");
}

TEST_F(LeaveCommandTest, EndsWhenSomebodyKeepsTheNode) {
  status("Draining", "jobs run there: 12");
  on_sleep = [&] { status("Ready", ""); };
  EXPECT_EQ(run(), 1);
  EXPECT_THAT(err, HasSubstr("the node stays"));
}

TEST_F(LeaveCommandTest, SaysOnceThatTheAgentDoesNotRun) {
  host.files["/etc/systemd/system/slurm-enlist-agent.service"].first = "unit";
  host.programs["systemctl is-active slurm-enlist-agent.service"] = {3, "inactive\n", ""};
  status("Ready", "");
  EXPECT_EQ(run({.wait = 9s}), 1);
  EXPECT_THAT(err, Not(HasSubstr("does not run"))) << "it may still answer";
  err.clear();
  EXPECT_EQ(run({.wait = 100s}), 1);
  EXPECT_EQ(err,
            "slurm-enlist leave: the agent does not run (slurm-enlist-agent.service is inactive), and the host does not leave "
            "without it. Start it: systemctl start slurm-enlist-agent.service\n"
            "slurm-enlist leave: the host has not left after 100 s. It continues to leave.\n");

  err.clear();
  status("Draining", "jobs run there: 12");  // The agent has ended while it waited for the job.
  EXPECT_EQ(run({.wait = 100s}), 1);
  EXPECT_THAT(err, HasSubstr("the agent does not run"));
}

TEST_F(LeaveCommandTest, SaysThatTheAgentDoesNotAnswer) {
  status("Ready", "");
  EXPECT_EQ(run({.wait = 100s}), 1);
  EXPECT_THAT(err, HasSubstr("the agent has to take the node out of the cluster, and has not reported for 10 s"));
  EXPECT_THAT(err, HasSubstr("Does slurm-enlist agent run?"));
  EXPECT_THAT(host.ran, IsEmpty()) << "there is no unit that systemd could know";
  err.clear();
  host.files["/etc/systemd/system/slurm-enlist-agent.service"].first = "unit";
  host.programs["systemctl is-active slurm-enlist-agent.service"] = {0, "active\n", ""};
  EXPECT_EQ(run({.wait = 100s}), 1);
  EXPECT_THAT(err, HasSubstr("See its log: journalctl -u slurm-enlist-agent.service\n"));
}

TEST_F(LeaveCommandTest, AnAgentThatWaitsForJobsIsNotCalledDown) {
  host.files["/etc/systemd/system/slurm-enlist-agent.service"].first = "unit";
  host.programs["systemctl is-active slurm-enlist-agent.service"] = {0, "active\n", ""};
  status("Draining", "jobs run there: 12");
  EXPECT_EQ(run({.wait = 100s}), 1);
  EXPECT_EQ(err, "slurm-enlist leave: the host has not left after 100 s. It continues to leave.\n");
}

TEST_F(LeaveCommandTest, AWaitHasAnEnd) {
  status("Draining", "jobs run there: 12");
  EXPECT_EQ(run({.wait = 0s}), 0);
  EXPECT_EQ(run({.wait = 5s}), 1);
  EXPECT_THAT(err, HasSubstr("has not left after 5 s"));
}

TEST_F(LeaveCommandTest, AHostThatIsNotKnownIsCleanedUpByHand) {
  files("agent.json") = memory_text({.host = "ctl",
                                     .port = 6830,
                                     .coordinator = "pin",
                                     .node = "gpu-1",
                                     .pool = "gpu",
                                     .cluster = "lab",
                                     .key = {"slurm.jwks", "r", core::sha256_hex("ours")}});
  host.files["/etc/slurm/slurm.jwks"].first = "ours";
  host.files["/etc/slurm/slurm.key"].first = "of another cluster";
  host.files["/etc/systemd/system/slurmd.service"].first = unit_file("/usr/sbin/slurmd", "/etc/default/slurmd");
  host.files["/etc/systemd/system/slurm-enlist-agent.service"].first = agent_unit("/usr/bin/slurm-enlist", {});
  host.files["/etc/default/slurmd"].first = "SLURMD_OPTIONS=-v\n";
  reply = {.status = 403,
           .headers = {},
           .body = R"({"error":"this host is not known here, and may have been removed; it must ..."})"};
  EXPECT_EQ(run(), 1);
  EXPECT_EQ(
      err,
      "slurm-enlist leave: the coordinator at ctl:6830: this host is not known here, and may have been removed. When no job "
      "runs here, clean it up by hand:\n"
      "  systemctl disable --now slurm-enlist-agent.service slurmd.service\n"
      "  rm /etc/systemd/system/slurm-enlist-agent.service /etc/systemd/system/slurmd.service /etc/slurm/slurm.jwks\n"
      "  rm -r /var/lib/slurm-enlist\n"
      "  systemctl daemon-reload\n"
      "If Slurm still has the node, on the controller:\n"
      "  scontrol delete NodeName=gpu-1\n")
      << "what somebody else has written stays";
}

TEST_F(LeaveCommandTest, TellsWhyItIsRefused) {
  reply = {.status = 403, .headers = {}, .body = R"({"error":"this host is not known here"})"};
  EXPECT_EQ(run(), 1);
  EXPECT_THAT(err,
              HasSubstr("may have been removed. When no job runs here, clean it up by hand:\n  end slurmd and the agent\n"));
  host.files.erase("/var/lib/slurm-enlist/agent.json");
  EXPECT_EQ(run(), 1);
  EXPECT_THAT(err, HasSubstr("this host has not joined a pool"));
}

}  // namespace
}  // namespace enlist
