#include "enlist/agent/join.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>

#include "core/hash.hpp"
#include "enlist/agent/memory_file.hpp"
#include "enlist/host/testing/fake_host.hpp"
#include "enlist/rules/key_file.hpp"
#include "enlist/wire/messages.hpp"
#include "enlist/wire/token.hpp"

namespace enlist {
namespace {

using namespace std::chrono_literals;
using core::ErrorCode;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kSecret = "0123456789abcdef0123456789abcdef";
const std::string kFingerprint(64, 'a');

struct FakeSlurmd final : Service {
  core::Result<ServiceState> state() override { return now; }
  core::Result<void> start(const std::vector<std::string>&) override { return {}; }
  core::Result<void> prepare(const std::vector<std::string>&) override { return {}; }
  core::Result<void> reload() override { return {}; }
  core::Result<void> stop() override { return {}; }
  core::Result<void> uninstall() override { return {}; }
  core::Result<std::vector<std::string>> steps() override { return std::vector<std::string>(); }
  ServiceState now;
};

class JoinTest : public ::testing::Test {
 protected:
  JoinTest() {
    host.files["/proc/sys/kernel/hostname"].first = "h\n";
    host.files["/proc/sys/kernel/random/boot_id"].first = "boot\n";
    host.programs["/usr/sbin/slurmd -V"].out = "slurm 26.05.1\n";
    host.programs["/usr/sbin/slurmd -C"].out =
        "NodeName=h CPUs=4 Boards=1 SocketsPerBoard=1 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=8000\nUpTime=0-00:01:00\n";
    host.programs["systemctl"] = {};
    options.token = write_token({.host = "ctl", .port = 6831, .coordinator = kFingerprint, .secret = kSecret});
    replies.push_back(answer(200, to_json(JoinReply{.node = "gpu-7", .pool = "gpu", .cluster = "lab", .port = 6830})));
  }
  static core::Result<net::HttpResponse> answer(int status, const core::Json& body) {
    return net::HttpResponse{.status = status, .headers = {}, .body = body.dump()};
  }
  /// Lets the agent write this status at the time `after` from the start of the command.
  void status(core::Duration after, const std::string& phase, const std::string& message = "") {
    statuses.emplace_back(after, core::Json{{"phase", phase}, {"message", message}}.dump());
  }
  int run() {
    return join(options,
                {.host = host,
                 .identity = [this](const std::filesystem::path& folder, const std::string& name) -> core::Result<Identity> {
                   host.files[folder / (name + ".key")] = {"key", 0600};
                   host.files[folder / (name + ".crt")] = {"cert", 0644};
                   return Identity{"cert", "key", "fingerprint"};
                 },
                 .send =
                     [this](const net::Endpoint& endpoint, const net::HttpRequest& request) {
                       endpoints.push_back(endpoint);
                       requests.push_back(request);
                       meanwhile();
                       auto reply = replies.front();
                       if (replies.size() > 1) replies.pop_front();
                       return reply;
                     },
                 .slurmd = [this](const AgentOptions&) { return slurmd; },
                 .read_input = [this]() -> core::Result<std::string> { return input; },
                 .write_out = [this](std::string_view text) { out += text; },
                 .write_err = [this](std::string_view text) { err += text; },
                 .now = [this] { return now; },
                 .sleep =
                     [this](core::Duration time) {
                       now = now + time;
                       while (!statuses.empty() && now.since_start >= statuses.front().first) {
                         host.files[options.agent.status_file] = {statuses.front().second, 0644};
                         statuses.pop_front();
                       }
                     },
                 .program = "/usr/bin/slurm-enlist"});
  }
  bool left_nothing() {
    return !host.files.contains("/var/lib/slurm-enlist/host.key") && !host.files.contains("/var/lib/slurm-enlist/agent.json") &&
           !host.files.contains(options.agent.agent_unit);
  }

  testing::FakeHost host;
  std::shared_ptr<FakeSlurmd> slurmd = std::make_shared<FakeSlurmd>();
  JoinOptions options;
  std::deque<core::Result<net::HttpResponse>> replies;
  std::deque<std::pair<core::Duration, std::string>> statuses;
  std::vector<net::Endpoint> endpoints;
  std::vector<net::HttpRequest> requests;
  std::function<void()> meanwhile = [] {};  ///< Called at each request to the coordinator.
  std::string input, out, err;
  core::MonoTime now;
};

TEST_F(JoinTest, ShowsEachChangeUntilTheNodeIsReady) {
  status(500ms, "Starting");
  status(1s, "Confirming", "Slurm does not show it yet");
  status(2s, "Ready");
  EXPECT_EQ(run(), 0) << err;
  EXPECT_EQ(
      out, "This host is gpu-7 of the pool gpu of the cluster lab.\nStarting\nConfirming: Slurm does not show it yet\nReady\n");
  EXPECT_EQ(err, "");
  ASSERT_EQ(endpoints.size(), 1U);
  EXPECT_EQ(endpoints[0].host, "ctl");
  EXPECT_EQ(endpoints[0].port, 6831);
  EXPECT_EQ(endpoints[0].tls.pinned_key, kFingerprint);
  EXPECT_EQ(endpoints[0].tls.cert_pem, "cert");
  const auto body = core::Json::parse(requests[0].body);
  EXPECT_EQ(body["secret"], kSecret);
  EXPECT_EQ(body["slurm_version"], "26.05.1");
  EXPECT_THAT(body["conf"].get<std::string>(), HasSubstr("CPUs=4"));
  const auto memory = read_memory(host, "/var/lib/slurm-enlist");
  ASSERT_TRUE(memory) << memory.error().message;
  EXPECT_EQ(memory->host, "ctl");
  EXPECT_EQ(memory->port, 6830);
  EXPECT_EQ(memory->coordinator, kFingerprint);
  EXPECT_EQ(memory->node, "gpu-7");
  EXPECT_EQ(host.files["/var/lib/slurm-enlist/agent.json"].second, 0600U);
  EXPECT_THAT(host.ran, Contains("systemctl restart --no-block slurm-enlist-agent.service"));
  for (const auto& [file, content] : host.files) EXPECT_THAT(content.first, Not(HasSubstr(kSecret))) << file;
}

TEST_F(JoinTest, ARefusalByTheCoordinatorLeavesNothing) {
  replies = {answer(401, {{"error", "the token was used"}})};
  EXPECT_EQ(run(), 1);
  EXPECT_EQ(err, "slurm-enlist join: the coordinator at ctl:6831: the token was used\n");
  EXPECT_TRUE(left_nothing());
  ASSERT_THAT(host.removed, Not(::testing::IsEmpty()));
  EXPECT_EQ(host.removed.back(), "/var/lib/slurm-enlist") << "join has made the folder";
  EXPECT_EQ(requests.size(), 1U);
}

TEST_F(JoinTest, ASlurmdOfSomebodyElseIsRefusedBeforeTheHostJoins) {
  slurmd->now.running = true;
  EXPECT_EQ(run(), 1);
  EXPECT_EQ(
      err,
      "slurm-enlist join: slurmd runs already, and slurm-enlist has not started it: stop and disable it (systemctl disable "
      "--now slurmd), and join again\n");
  EXPECT_TRUE(left_nothing());
  EXPECT_TRUE(requests.empty());
  // A slurmd that slurm-enlist has started does not prevent the join.
  slurmd->now.arguments.emplace();
  status(500ms, "Ready");
  EXPECT_EQ(run(), 0) << err;
}

TEST_F(JoinTest, TheCoordinatorLearnsOfForeignKeys) {
  status(500ms, "Ready");
  host.files["/etc/slurm/slurm.key"].first = "ours";
  host.files["/etc/slurm/slurm.jwks"].first = "theirs";
  Memory memory{.host = "ctl", .port = 6830, .coordinator = kFingerprint, .node = "gpu-7", .pool = "gpu", .cluster = "lab"};
  memory.key = {"slurm.key", "k1", core::sha256_hex("ours")};
  ASSERT_TRUE(write_memory(host, "/var/lib/slurm-enlist", memory));
  options.again = true;
  EXPECT_EQ(run(), 0) << err;
  const auto request = from_json<JoinRequest>(core::Json::parse(requests[0].body));
  ASSERT_TRUE(request);
  EXPECT_EQ(request->plain_key, "") << "slurm-enlist has written it";
  EXPECT_EQ(request->jwks, key_revision("slurm.jwks", "theirs"));
  EXPECT_THAT(requests[0].body, Not(HasSubstr("theirs")));
}

TEST_F(JoinTest, ARefusalLeavesAFolderThatWasThere) {
  host.files["/var/lib/slurm-enlist"];
  replies = {answer(401, {{"error", "the token was used"}})};
  EXPECT_EQ(run(), 1);
  EXPECT_TRUE(left_nothing());
  EXPECT_THAT(host.removed, Not(Contains("/var/lib/slurm-enlist")));
}

TEST_F(JoinTest, ARefusalBySlurmIsSaid) {
  status(1s, "Refused", "the node table of slurmctld is full");
  EXPECT_EQ(run(), 1);
  EXPECT_EQ(err, "slurm-enlist join: the node was refused: the node table of slurmctld is full\n");
}

TEST_F(JoinTest, WhatTheAgentAndTheCoordinatorBothSayIsShownOnce) {
  statuses.emplace_back(1s,
                        core::Json{{"phase", "Refused"}, {"message", "slurmd ended: no disk"}, {"error", "no disk"}}.dump());
  EXPECT_EQ(run(), 1);
  EXPECT_THAT(out, HasSubstr("\nRefused: slurmd ended: no disk\n"));
}

TEST_F(JoinTest, ANoteOfTheAgentIsShown) {
  statuses.emplace_back(1s, core::Json{{"phase", "Starting"}, {"message", ""}, {"note", "note: a"}}.dump());
  statuses.emplace_back(2s, core::Json{{"phase", "Ready"}, {"message", "note: a"}, {"note", "note: a"}}.dump());
  EXPECT_EQ(run(), 0) << err;
  EXPECT_THAT(out, HasSubstr("\nStarting (note: a)\nReady: note: a\n"));
}

TEST_F(JoinTest, ACoordinatorThatIsAwayIsAskedForTenSeconds) {
  replies = {core::fail(ErrorCode::kUnavailable, "connection refused")};
  EXPECT_EQ(run(), 1);
  EXPECT_THAT(err, HasSubstr("connection refused"));
  EXPECT_LE(now.since_start, 10s);
  EXPECT_GT(requests.size(), 10U);
  EXPECT_TRUE(left_nothing());
}

TEST_F(JoinTest, ALostAnswerIsAskedForAgainWithTheSameKey) {
  replies.push_front(core::fail(ErrorCode::kUnknownOutcome, "cut"));
  status(1s, "Ready");
  EXPECT_EQ(run(), 0) << err;
  EXPECT_EQ(requests.size(), 2U);
}

TEST_F(JoinTest, TheKeyIsKeptIfAnyAnswerWasLost) {
  replies = {core::fail(ErrorCode::kUnknownOutcome, "cut"), core::fail(ErrorCode::kUnavailable, "connection refused")};
  EXPECT_EQ(run(), 1);
  EXPECT_TRUE(host.files.contains("/var/lib/slurm-enlist/host.key")) << "the coordinator may know it";
}

TEST_F(JoinTest, ReadsTheTokenFromAFileOrFromStandardInput) {
  options.wait = 0s;
  input = std::exchange(options.token, "") + "\n";
  options.token_file = "-";
  EXPECT_EQ(run(), 0) << err;
  host.files["/root/token"].first = input;
  options.token_file = "/root/token";
  options.again = true;
  EXPECT_EQ(run(), 0) << err;
}

TEST_F(JoinTest, ABadTokenIsRefusedWithoutBeingShown) {
  options.token = "enlist1_nonsense";
  EXPECT_EQ(run(), 1);
  EXPECT_THAT(err, Not(HasSubstr("nonsense")));
  options.token.clear();
  err.clear();
  EXPECT_EQ(run(), 1);
  EXPECT_THAT(err, HasSubstr("--token"));
  EXPECT_TRUE(left_nothing());
  EXPECT_TRUE(requests.empty());
}

TEST_F(JoinTest, ANameThatDoesNotResolveIsForTheHostToMend) {
  replies = {core::fail(ErrorCode::kInvalid, "POST /v1/join: resolve ctl: Host not found (authoritative)")};
  EXPECT_EQ(run(), 1);
  EXPECT_THAT(err, HasSubstr("Let this host resolve the name, by DNS or in /etc/hosts, and join again with the same token"));
}

TEST_F(JoinTest, WithoutSlurmdNothingIsAsked) {
  host.programs.erase("/usr/sbin/slurmd -V");
  EXPECT_EQ(run(), 1);
  EXPECT_THAT(err, HasSubstr("there is no program /usr/sbin/slurmd"));
  EXPECT_TRUE(requests.empty());
  EXPECT_TRUE(left_nothing());
}

TEST_F(JoinTest, AHostThatHasJoinedIsLeftAlone) {
  options.wait = 0s;
  ASSERT_EQ(run(), 0);
  out.clear();
  EXPECT_EQ(run(), 0);
  EXPECT_THAT(out, HasSubstr("already gpu-7 of the pool gpu"));
  EXPECT_THAT(out, HasSubstr("To move to another pool, run slurm-enlist leave, and then join."));
  EXPECT_EQ(requests.size(), 1U);
  host.files["/var/lib/slurm-enlist/agent.json"].first = "{";
  EXPECT_EQ(run(), 1) << "unknown is not absent";
  options.again = true;
  EXPECT_EQ(run(), 0) << err;
  EXPECT_EQ(requests.size(), 2U);
}

TEST_F(JoinTest, AJoinThatWasKilledBeforeItStartedTheAgentIsFinished) {
  options.wait = 0s;
  options.no_service = true;
  ASSERT_EQ(run(), 0);
  ASSERT_FALSE(host.files.contains(options.agent.agent_unit));
  options.wait = 10s;
  options.no_service = false;
  host.programs["systemctl is-active slurm-enlist-agent.service"].status = 3;
  status(1s, "Ready");
  EXPECT_EQ(run(), 0) << err;
  EXPECT_THAT(host.ran, Contains("systemctl restart --no-block slurm-enlist-agent.service"));
  EXPECT_TRUE(host.files.contains(options.agent.agent_unit));
  EXPECT_EQ(requests.size(), 1U) << "it is not registered again";
}

TEST_F(JoinTest, AnAgentThatIsStartedAgainKeepsItsFlags) {
  options.wait = 0s;
  options.agent.gpu_detector = "/usr/local/bin/gpus";
  host.programs[options.agent.gpu_detector].out = "Gres=gpu:a100:2\n";
  ASSERT_EQ(run(), 0) << err;
  const std::string unit = host.files[options.agent.agent_unit].first;
  options.agent.gpu_detector.clear();
  host.programs["systemctl is-active slurm-enlist-agent.service"].status = 3;
  host.ran.clear();
  ASSERT_EQ(run(), 0);
  EXPECT_THAT(host.ran, Contains("systemctl restart --no-block slurm-enlist-agent.service"));
  EXPECT_EQ(host.files[options.agent.agent_unit].first, unit);
}

TEST_F(JoinTest, WordsThatSlurmdDoesNotKnowAreNoWordsOfTheDetector) {
  options.agent.gpu_detector = "/usr/local/bin/gpus";
  for (const char* words : {"Gres=gpu:a100:2 Mig=2\n", "State=IDLE\n"}) {
    host.programs[options.agent.gpu_detector].out = words;
    EXPECT_EQ(run(), 1);
  }
  EXPECT_THAT(err, HasSubstr("/usr/local/bin/gpus: Mig: not a known node parameter"));
  EXPECT_THAT(err, HasSubstr("/usr/local/bin/gpus: State: set by slurm-enlist"));
  EXPECT_TRUE(requests.empty());
  EXPECT_TRUE(left_nothing());
}

TEST_F(JoinTest, AHostThatJoinsAgainKnowsItsKeyFile) {
  options.wait = 0s;
  ASSERT_EQ(run(), 0);
  auto memory = *read_memory(host, "/var/lib/slurm-enlist");
  memory.key = {"slurm.jwks", "revision", "digest"};
  memory.loaded_key = "revision";
  memory.stale_image = "7.1.8";
  memory.restarted_for = "revision";
  memory.prepared = "CPUs=4";
  meanwhile = [&] {
    Memory now = memory;
    now.node = "gpu-6";
    now.desired = Desired{};
    now.registrations = 3;
    now.stopped = now.left = true;
    EXPECT_TRUE(write_memory(host, "/var/lib/slurm-enlist", now)) << "the agent writes it";
  };
  options.again = true;
  ASSERT_EQ(run(), 0);
  EXPECT_EQ(*read_memory(host, "/var/lib/slurm-enlist"), memory);
}

TEST_F(JoinTest, AStatusOfBeforeIsNoAnswer) {
  host.files[options.agent.status_file].first = R"({"phase": "Ready"})";
  options.wait = 2s;
  EXPECT_EQ(run(), 1);
  EXPECT_THAT(err, HasSubstr("not ready after 2 s: the agent has not written /run/slurm-enlist/agent.status"));
}

TEST_F(JoinTest, WithoutSystemdTheAgentIsSomebodyElses) {
  host.programs.erase("systemctl");
  EXPECT_EQ(run(), 1);
  EXPECT_THAT(err, HasSubstr("without systemd, run slurm-enlist agent"));
  options.again = options.no_service = true;
  status(now.since_start + 1s, "Ready");
  EXPECT_EQ(run(), 0) << err;
}

TEST(JoinCommandLine, TheTokenDisappears) {
  std::string words[] = {"slurm-enlist", "join", "--token", "enlist1_abc", "--again"};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  EXPECT_EQ(take_token(5, argv.data()), "enlist1_abc");
  EXPECT_EQ(words[3], "xxxxxxxxxxx");
  std::string one = "--token=abc";
  argv = {words[0].data(), one.data()};
  EXPECT_EQ(take_token(2, argv.data()), "abc");
  EXPECT_EQ(one, "--token=xxx");
  argv = {words[0].data(), words[2].data()};
  EXPECT_EQ(take_token(2, argv.data()), "");
}

TEST(JoinUnit, HasTheFlagsThatDiffer) {
  AgentOptions options;
  EXPECT_THAT(agent_unit("/usr/bin/slurm-enlist", options), HasSubstr("ExecStart=\"/usr/bin/slurm-enlist\" \"agent\"\n"));
  options.check = "/opt/100%/\"x\"";
  EXPECT_THAT(agent_unit("/usr/bin/slurm-enlist", options), HasSubstr("\"agent\" \"--check\" \"/opt/100%%/\\\"x\\\"\"\n"));
}

}  // namespace
}  // namespace enlist
