#include "enlist/agent/agent.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base64.hpp"
#include "core/hash.hpp"
#include "core/testing/fake_random.hpp"
#include "core/testing/manual_loop.hpp"
#include "enlist/agent/memory_file.hpp"
#include "enlist/agent/testing/fake_transport.hpp"
#include "enlist/host/testing/fake_host.hpp"
#include "enlist/rules/service_files.hpp"

namespace enlist {
namespace {

using namespace std::chrono_literals;
using core::ErrorCode;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

struct FakeService final : Service {
  core::Result<ServiceState> state() override { return now; }
  core::Result<void> start(const std::vector<std::string>& arguments) override {
    acts.emplace_back("start");
    if (broken) return core::fail(ErrorCode::kUnavailable, "systemctl restart: no");
    if (on_start) on_start();
    now = {.running = true, .arguments = arguments, .image = std::to_string(++images)};
    return {};
  }
  core::Result<void> prepare(const std::vector<std::string>& arguments) override {
    acts.emplace_back("prepare " + launch_of(arguments).conf);
    return {};
  }
  core::Result<void> reload() override {
    acts.emplace_back("reload");
    if (reloads) now.image = std::to_string(++images);
    return {};
  }
  core::Result<void> stop() override {
    acts.emplace_back("stop");
    now.running = false;
    return {};
  }
  core::Result<void> uninstall() override {
    acts.emplace_back("uninstall");
    now = {};
    return {};
  }
  core::Result<std::vector<std::string>> steps() override { return on_host; }
  ServiceState now;
  core::Result<std::vector<std::string>> on_host = std::vector<std::string>();
  std::vector<std::string> acts;
  std::function<void()> on_start;
  bool broken = false, reloads = true;
  int images = 0;
};

Memory joined() {
  return {.host = "ctl", .port = 6830, .coordinator = "sha256:1", .node = "gpu-1", .pool = "gpu", .cluster = "lab"};
}

class AgentTest : public ::testing::Test {
 protected:
  AgentTest() {
    files("/proc/sys/kernel/hostname") = "h\n";
    files("/proc/sys/kernel/random/boot_id") = "boot\n";
    host->programs["/usr/sbin/slurmd -V"].out = "slurm 26.05.1\n";
    host->programs["/usr/sbin/slurmd -C"].out =
        "NodeName=h CPUs=4 Boards=1 SocketsPerBoard=1 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=8000\nUpTime=0-00:01:00\n";
    desired.controllers = {"a:6817"};
    desired.key_revision = "k1";
  }
  void begin(Memory memory) {
    agent.emplace(loop, random, log, transport, host, service, options, std::move(memory), nullptr, [this] { ended = true; });
    agent->start();
    loop.advance(2s);
  }
  void replies(Phase phase = Phase::kStarting, const std::string& message = "") {
    const SyncReply reply{
        .desired = desired, .revision = std::to_string(++revision), .phase = std::string(to_string(phase)), .message = message};
    ASSERT_TRUE(transport.answer("/v1/sync", 200, to_json(reply)));
    loop.advance(2s);
  }
  void gives_key(const std::string& content = "the key", const std::string& key_revision = "k1",
                 const std::string& file = "slurm.key") {
    ASSERT_TRUE(transport.answer("/v1/key", 200,
                                 {{"file", file}, {"revision", key_revision}, {"content", core::base64_encode(content)}}));
    loop.advance(2s);
  }
  core::Json report() {
    const auto* request = transport.find("/v1/sync");
    return request == nullptr ? core::Json() : core::Json::parse(request->body)["report"];
  }
  std::string& files(const std::filesystem::path& file) { return host->files[file].first; }

  core::ManualLoop loop;
  core::FakeRandom random;
  core::NullLogger log;
  testing::FakeTransport transport{loop};
  std::shared_ptr<testing::FakeHost> host = std::make_shared<testing::FakeHost>();
  std::shared_ptr<FakeService> service = std::make_shared<FakeService>();
  MachineOptions options;
  Desired desired{.node = "gpu-1", .pool = "gpu", .cluster = "lab"};
  int revision = 0;
  bool ended = false;  ///< The agent has reported that its process must end.
  std::optional<Agent> agent;
};

TEST_F(AgentTest, FromJoiningToReady) {
  begin(joined());
  EXPECT_EQ(report()["slurm_version"], "26.05.1");
  EXPECT_THAT(service->acts, IsEmpty());
  replies();
  EXPECT_THAT(service->acts, IsEmpty()) << "slurmd needs the key";
  gives_key();
  EXPECT_EQ(files("/etc/slurm/slurm.key"), "the key");
  EXPECT_EQ(host->files["/etc/slurm/slurm.key"].second, 0600U);
  ASSERT_THAT(service->acts, ElementsAre("start"));
  const Launch launch = launch_of(*service->now.arguments);
  EXPECT_EQ(launch.node, "gpu-1");
  EXPECT_EQ(launch.instance.size(), 16U);
  EXPECT_EQ(report()["running"], true);
  EXPECT_EQ(report()["instance_id"], launch.instance);
  EXPECT_EQ(report()["key_revision"], "k1");
  EXPECT_EQ(report()["check_passed"], true);
  replies(Phase::kReady, "in service");
  EXPECT_THAT(files("/run/slurm-enlist/agent.status"), HasSubstr(R"("message":"in service","node":"gpu-1","phase":"Ready")"));
  EXPECT_TRUE(agent->ready());

  const auto writes = host->writes.size();
  loop.advance(10min);
  EXPECT_EQ(host->writes.size(), writes) << "at rest";
  EXPECT_THAT(service->acts, ElementsAre("start"));
  for (const auto& [file, content] : host->files) {
    if (file == "/etc/slurm/slurm.key") continue;
    EXPECT_THAT(content.first, Not(HasSubstr("the key"))) << file;
  }
}

TEST_F(AgentTest, ARotatedKeyIsReportedWhenSlurmdHasLoadedIt) {
  begin(joined());
  replies();
  gives_key();
  EXPECT_EQ(report()["key_loaded"], "k1");
  service->reloads = false;
  desired.key_revision = "k2";
  replies(Phase::kReady);
  gives_key("two keys", "k2");
  EXPECT_THAT(service->acts, ElementsAre("start", "reload")) << "never a restart under a job";
  EXPECT_EQ(files("/etc/slurm/slurm.key"), "two keys");
  EXPECT_EQ(report()["key_revision"], "k2");
  EXPECT_EQ(report()["key_loaded"], "") << "slurmd goes on with the program from before";
  loop.advance(3min);
  EXPECT_THAT(service->acts, ElementsAre("start", "reload", "reload")) << "it is asked again";
  service->now.image = "later";
  loop.advance(15s);
  EXPECT_EQ(report()["key_loaded"], "k2");

  // agent.json stores the image from before the reload, so that the next process can tell as well.
  const auto memory = memory_from(files("/var/lib/slurm-enlist/agent.json"));
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->stale_image, "1");
}

TEST_F(AgentTest, ASlurmdThatKeepsToASlurmKeyIsRestartedOnce) {
  begin(joined());
  replies();
  gives_key();
  desired.key_revision = "k2";
  replies(Phase::kReady);
  service->now.keeps_plain_key = true;
  gives_key("two keys", "k2", "slurm.jwks");
  EXPECT_THAT(service->acts, ElementsAre("start", "start")) << "a reload would read the file from before";
  EXPECT_EQ(files("/etc/slurm/slurm.jwks"), "two keys");
  EXPECT_EQ(report()["key_loaded"], "k2");
  EXPECT_FALSE(host->files.contains("/etc/slurm/slurm.key")) << "nothing reads it any more";
  service->now.keeps_plain_key = true;  // Something else has set it in the environment.
  loop.advance(10min);
  EXPECT_THAT(service->acts, ElementsAre("start", "start"));
}

TEST_F(AgentTest, ASlurmKeyIsNeededUntilSlurmdHasTheSlurmJwks) {
  begin(joined());
  replies();
  gives_key();
  desired.key_revision = "k2";
  replies(Phase::kReady);
  service->broken = true;
  gives_key("two keys", "k2", "slurm.jwks");
  loop.advance(1min);
  EXPECT_EQ(files("/etc/slurm/slurm.key"), "the key") << "a slurmd that reloads meanwhile needs it";
  service->broken = false;
  loop.advance(5min);
  EXPECT_FALSE(host->files.contains("/etc/slurm/slurm.key"));
}

/// A host whose key moves from slurm.jwks to slurm.key. slurmd prefers slurm.jwks as long as this file exists.
struct MovingKeyTest : AgentTest {
  MovingKeyTest() { memory.desired = desired; }
  /// Sets up the host before the move: slurmd runs with the key in slurm.jwks.
  void at_work() {
    begin(joined());
    replies();
    gives_key("keys", "k1", "slurm.jwks");
    replies(Phase::kReady);
    arguments = service->now.arguments;
  }
  void moves() {
    desired.key_revision = "k2";
    replies(Phase::kReady);
  }
  [[nodiscard]] Memory saved() {
    const auto read = memory_from(files("/var/lib/slurm-enlist/agent.json"));
    EXPECT_TRUE(read) << read.error().message;
    return *read;
  }
  /// Ends the agent without a shutdown, and starts the next one with `noted` as the content of agent.json.
  void next_process(const Memory& noted) {
    agent.reset();
    transport.pending.clear();
    begin(noted);
    replies(Phase::kReady);
  }
  void has_moved() {
    EXPECT_EQ(files("/etc/slurm/slurm.key"), "the key");
    EXPECT_FALSE(host->files.contains("/etc/slurm/slurm.jwks"));
    EXPECT_EQ(report()["key_loaded"], "k2");
    EXPECT_EQ(report()["error"], "");
    EXPECT_THAT(saved().former, IsEmpty());
    EXPECT_EQ(saved().started_with, "slurm.key");
    const auto acts = service->acts;
    loop.advance(10min);
    EXPECT_EQ(service->acts, acts);
  }
  Memory memory = joined();
  std::optional<std::vector<std::string>> arguments;
};

TEST_F(MovingKeyTest, TheFormerFileIsRemovedRightBeforeTheRestart) {
  at_work();
  service->on_start = [this] {
    EXPECT_FALSE(host->files.contains("/etc/slurm/slurm.jwks")) << "slurmd would read it";
    EXPECT_EQ(files("/etc/slurm/slurm.key"), "the key");
  };
  moves();
  gives_key("the key", "k2", "slurm.key");
  EXPECT_THAT(service->acts, ElementsAre("start", "start")) << "a reload would not find its file any more";
  EXPECT_EQ(service->now.arguments, arguments);
  has_moved();
}

TEST_F(MovingKeyTest, GoesOnWhereverTheProcessEnds) {
  const std::string jwks_digest = core::sha256_hex("keys"), key_digest = core::sha256_hex("the key");
  at_work();
  const Memory before = saved();
  Memory noted = before;
  noted.desired->key_revision = desired.key_revision = "k2";
  noted.key = {"slurm.key", "k2", key_digest};
  noted.former = {{"slurm.jwks", "k1", jwks_digest}};
  noted.loaded_key.clear();
  const ServiceState running = service->now;
  enum Point { kNoted, kWritten, kRemoved, kRestarted };
  for (const Point point : {kNoted, kWritten, kRemoved, kRestarted}) {
    SCOPED_TRACE(point);
    host->files.erase("/etc/slurm/slurm.key");
    files("/etc/slurm/slurm.jwks") = "keys";
    service->acts.clear();
    service->now = running;
    if (point >= kWritten) host->files["/etc/slurm/slurm.key"] = {"the key", 0600};
    if (point >= kRemoved) host->files.erase("/etc/slurm/slurm.jwks");
    if (point == kRestarted) service->now.image = "restarted";
    next_process(noted);
    if (point == kNoted) gives_key("the key", "k2", "slurm.key");
    EXPECT_THAT(service->acts, ElementsAre("start"));
    has_moved();
  }
}

TEST_F(MovingKeyTest, TheNoteOfTheFormerFileComesBeforeTheNewFile) {
  at_work();
  moves();
  bool noted = false;
  host->on_write = [&](const std::filesystem::path& file) {
    if (file != "/etc/slurm/slurm.key") return;
    const Memory memory = saved();
    noted = wrote(memory, "slurm.jwks", core::sha256_hex("keys")) && memory.started_with == "slurm.jwks";
  };
  gives_key("the key", "k2", "slurm.key");
  EXPECT_TRUE(noted);
  host->on_write = {};
}

TEST_F(MovingKeyTest, AHostThatBootsInTheMidstStartsWithTheNewFile) {
  at_work();
  Memory noted = saved();
  noted.desired->key_revision = desired.key_revision = "k2";
  noted.key = {"slurm.key", "k2", core::sha256_hex("the key")};
  noted.former = {{"slurm.jwks", "k1", core::sha256_hex("keys")}};
  host->files["/etc/slurm/slurm.key"] = {"the key", 0600};
  service->now = {.running = false, .arguments = service->now.arguments};
  next_process(noted);
  EXPECT_THAT(service->acts, ElementsAre("start", "start"));
  has_moved();
}

TEST_F(MovingKeyTest, AFileThatSomebodyElseHasWrittenStaysAndIsNamed) {
  at_work();
  files("/etc/slurm/slurm.jwks") = "of another cluster";
  moves();
  gives_key("the key", "k2", "slurm.key");
  loop.advance(1min);
  EXPECT_EQ(files("/etc/slurm/slurm.jwks"), "of another cluster");
  EXPECT_THAT(service->acts, ElementsAre("start")) << "slurmd goes on as it is";
  EXPECT_THAT(report()["error"].get<std::string>(), HasSubstr("/etc/slurm/slurm.jwks has another key"));
  EXPECT_EQ(report()["key_loaded"], "");
  host->files.erase("/etc/slurm/slurm.jwks");
  loop.advance(1min);
  EXPECT_THAT(service->acts, ElementsAre("start", "start"));
  has_moved();
}

TEST_F(MovingKeyTest, AJwksOfOthersKeepsASlurmdFromItsFirstStart) {
  files("/etc/slurm/slurm.jwks") = "of another cluster";
  begin(joined());
  replies();
  gives_key();
  EXPECT_THAT(service->acts, IsEmpty());
  EXPECT_THAT(report()["error"].get<std::string>(), HasSubstr("/etc/slurm/slurm.jwks has another key"));
}

TEST_F(MovingKeyTest, TheKeyMayMoveBackBeforeTheFormerFileIsGone) {
  at_work();
  service->broken = true;
  moves();
  gives_key("the key", "k2", "slurm.key");
  files("/etc/slurm/slurm.jwks") = "keys";  // As if the removal of the file had failed.
  desired.key_revision = "k3";
  replies(Phase::kReady);
  service->broken = false;
  gives_key("other keys", "k3", "slurm.jwks");
  loop.advance(5min);
  EXPECT_EQ(files("/etc/slurm/slurm.jwks"), "other keys") << "the file was ours";
  EXPECT_FALSE(host->files.contains("/etc/slurm/slurm.key"));
  EXPECT_EQ(report()["key_loaded"], "k3");
  EXPECT_EQ(report()["error"], "");
  EXPECT_THAT(saved().former, IsEmpty());
}

TEST_F(MovingKeyTest, AHostThatLeavesInTheMidstKeepsNoKey) {
  at_work();
  moves();
  service->broken = true;
  gives_key("the key", "k2", "slurm.key");
  files("/etc/slurm/slurm.jwks") = "keys";
  host->leftovers_removed.clear();
  desired.leave = kLeaveStop;
  replies(Phase::kStopping);
  desired.leave = kLeaveClean;
  replies(Phase::kGone);
  EXPECT_EQ(report()["left"], true);
  EXPECT_FALSE(host->files.contains("/etc/slurm/slurm.key"));
  EXPECT_FALSE(host->files.contains("/etc/slurm/slurm.jwks"));
  EXPECT_THAT(host->leftovers_removed, ::testing::UnorderedElementsAre("/etc/slurm/slurm.key", "/etc/slurm/slurm.jwks"));
}

TEST_F(MovingKeyTest, AKeyThatWasNotedAndNotWrittenLeavesWithTheHost) {
  at_work();
  Memory noted = saved();
  noted.key = {"slurm.jwks", "k2", core::sha256_hex("other keys")};
  noted.former = {{"slurm.jwks", "k1", core::sha256_hex("keys")}};
  noted.desired->leave = desired.leave = kLeaveStop;
  next_process(noted);
  desired.leave = kLeaveClean;
  replies(Phase::kGone);
  EXPECT_EQ(report()["left"], true);
  EXPECT_FALSE(host->files.contains("/etc/slurm/slurm.jwks"));
}

TEST_F(AgentTest, WhatAKilledWriteOfTheKeyHasLeftIsRemoved) {
  begin(joined());
  replies();
  gives_key();
  EXPECT_THAT(host->leftovers_removed, Contains("/etc/slurm/slurm.key"));
}

TEST_F(AgentTest, ACoordinatorThatIsAwayStopsNothing) {
  begin(joined());
  replies();
  gives_key();
  const auto arguments = service->now.arguments;
  auto memory = memory_from(files("/var/lib/slurm-enlist/agent.json"));
  ASSERT_TRUE(memory) << memory.error().message;
  EXPECT_EQ(memory->desired, desired);
  EXPECT_EQ(memory->loaded_key, "k1");

  // The agent starts again, and the coordinator does not answer.
  agent.reset();
  transport.pending.clear();
  begin(*memory);
  loop.advance(10min);
  EXPECT_EQ(service->now.arguments, arguments);
  EXPECT_THAT(service->acts, ElementsAre("start"));

  // The host boots, and the coordinator still does not answer.
  agent.reset();
  transport.pending.clear();
  service->now = {};
  begin(*memory);
  EXPECT_THAT(service->acts, ElementsAre("start", "start"));
  EXPECT_EQ(service->now.arguments, arguments) << "Slurm would keep the instance id of the first registration";
}

TEST_F(AgentTest, ALostRecordIsReloadedOnce) {
  begin(joined());
  replies();
  gives_key();
  desired.registrations = 1;
  replies(Phase::kLost);
  EXPECT_THAT(service->acts, ElementsAre("start", "reload"));
  EXPECT_EQ(report()["registrations"], 1);
  loop.advance(1min);
  EXPECT_THAT(service->acts, ElementsAre("start", "reload"));
}

TEST_F(AgentTest, ANewKeyIsWrittenAndLoaded) {
  begin(joined());
  replies();
  gives_key();
  desired.key_revision = "k2";
  replies(Phase::kReady);
  gives_key("another key", "k2");
  EXPECT_EQ(files("/etc/slurm/slurm.key"), "another key");
  EXPECT_THAT(service->acts, ElementsAre("start", "reload"));
  EXPECT_EQ(report()["key_revision"], "k2");
}

TEST_F(AgentTest, AFileThatWasChangedIsPutBackAndReadAgain) {
  begin(joined());
  replies();
  gives_key();
  replies(Phase::kReady);
  EXPECT_EQ(report()["key_loaded"], "k1");
  // If slurmd was reloaded meanwhile, it may have read the changed file.
  files("/etc/slurm/slurm.key") = "an older key";
  service->now.image = "another";
  loop.advance(20s);
  gives_key();
  EXPECT_EQ(files("/etc/slurm/slurm.key"), "the key");
  EXPECT_THAT(service->acts, ElementsAre("start", "reload"));
  replies(Phase::kReady);
  EXPECT_EQ(report()["key_loaded"], "k1");
}

TEST_F(AgentTest, AKeyOfOthersStays) {
  files("/etc/slurm/slurm.key") = "of another cluster";
  begin(joined());
  replies();
  gives_key();
  EXPECT_EQ(files("/etc/slurm/slurm.key"), "of another cluster");
  EXPECT_THAT(service->acts, IsEmpty());
  EXPECT_THAT(report()["error"].get<std::string>(), HasSubstr("/etc/slurm/slurm.key has another key"));
}

TEST_F(AgentTest, AKeyThatCannotBeFetchedIsSaid) {
  begin(joined());
  replies();
  ASSERT_TRUE(transport.answer("/v1/key", 403, {{"error", "not enlisted"}}));
  loop.advance(1s);
  EXPECT_EQ(report()["error"], "the coordinator refuses the auth key: not enlisted");
  EXPECT_THAT(service->acts, IsEmpty());
}

TEST_F(AgentTest, ASlurmdThatFailsIsNotStartedAllTheTime) {
  service->broken = true;
  begin(joined());
  replies();
  gives_key();
  EXPECT_EQ(report()["error"], "systemctl restart: no");
  loop.advance(10min);
  EXPECT_LT(service->acts.size(), 60U);
  service->broken = false;
  loop.advance(5min);
  EXPECT_TRUE(service->now.running);
  EXPECT_EQ(report()["error"], "");
}

TEST_F(AgentTest, TheReleaseOfASlurmdThatWasReplacedIsReported) {
  host->programs["stat"].out = "1 17 100 1000\n";
  begin(joined());
  replies();
  gives_key();
  replies(Phase::kReady);
  const std::string version = "/usr/sbin/slurmd -V";
  const auto asked = [&] { return std::ranges::count(host->ran, version); };
  EXPECT_EQ(asked(), 1);
  host->programs["stat"].out = "1 18 100 2000\n";
  host->programs[version] = {.status = 127, .out = "", .err = "a library is missing"};
  host->programs["/usr/sbin/slurmd -C"].out = "NodeName=h CPUs=4 RealMemory=7000\n";
  loop.advance(15s);
  EXPECT_EQ(report()["slurm_version"], "26.05.1") << "it is just being replaced";
  EXPECT_EQ(report()["error"], "");
  host->programs[version] = {.status = 0, .out = "slurm 26.05.2\n", .err = ""};
  loop.advance(15s);
  EXPECT_EQ(report()["slurm_version"], "26.05.2");
  const auto before = asked();
  loop.advance(1min);
  EXPECT_EQ(asked(), before);
  EXPECT_THAT(service->acts, ElementsAre("start")) << "the slurmd that runs is left alone";
}

TEST_F(AgentTest, AnInvalidNodeGetsTheWordsOfADriverThatComesLate) {
  options.gpu_detector = "/usr/local/bin/gpus";
  host->programs[options.gpu_detector] = {};
  begin(joined());
  replies();
  gives_key();
  replies(Phase::kReady);
  host->programs[options.gpu_detector].out = "Gres=gpu:a100:2\n";
  loop.advance(5min);
  EXPECT_THAT(service->acts, ElementsAre("start")) << "a node in service is left alone";
  service->on_host = {"12.batch"};
  replies(Phase::kInvalid, "INVALID_REG");
  loop.advance(5min);
  service->on_host = core::fail(ErrorCode::kUnavailable, "/proc: Input/output error");
  loop.advance(5min);
  EXPECT_THAT(service->acts, ElementsAre("start")) << "a step runs, or may run";
  service->on_host = std::vector<std::string>();
  loop.advance(2min);
  EXPECT_THAT(service->acts, ElementsAre("start", "start"));
  EXPECT_THAT(launch_of(*service->now.arguments).conf, HasSubstr("Gres=gpu:a100:2"));
  const auto asked = std::ranges::count(host->ran, options.gpu_detector);
  loop.advance(10min);
  EXPECT_LE(std::ranges::count(host->ran, options.gpu_detector) - asked, 10);
  host->programs[options.gpu_detector].status = 1;
  loop.advance(5min);
  EXPECT_THAT(service->acts, ElementsAre("start", "start"));
  EXPECT_EQ(report()["error"], "") << "what was read before stays";
}

TEST_F(AgentTest, WithoutSlurmdTheReportSaysSo) {
  host->programs.clear();
  begin(joined());
  EXPECT_EQ(report()["error"], "there is no program /usr/sbin/slurmd") << "also without a desire";
}

TEST_F(AgentTest, TheCheckScriptDecidesWhenSlurmMayStartJobs) {
  options.check = "/usr/local/bin/check";
  host->programs[options.check] = {.status = 1, .out = "scratch is not mounted\n", .err = ""};
  begin(joined());
  replies();
  gives_key();
  EXPECT_EQ(report()["check_passed"], false);
  EXPECT_EQ(report()["error"], "the check /usr/local/bin/check fails (exit code 1): scratch is not mounted");
  EXPECT_THAT(host->ran, ::testing::Contains("/usr/local/bin/check gpu-1 gpu"));
  host->programs[options.check] = {};
  loop.advance(6s);
  EXPECT_EQ(report()["check_passed"], true);
  const auto ran = std::ranges::count(host->ran, "/usr/local/bin/check gpu-1 gpu");
  loop.advance(1min);
  EXPECT_EQ(std::ranges::count(host->ran, "/usr/local/bin/check gpu-1 gpu"), ran) << "once for each start of slurmd";
}

// Requirement 42
TEST_F(AgentTest, TheDetectorOfGpusAddsWords) {
  options.gpu_detector = "/usr/local/bin/gpus";
  host->programs[options.gpu_detector].out = "Gres=gpu:a100:2\n";
  begin(joined());
  replies();
  gives_key();
  EXPECT_THAT(launch_of(*service->now.arguments).conf, HasSubstr("Gres=gpu:a100:2"));
}

TEST_F(AgentTest, AFullDiskIsTriedAgain) {
  begin(joined());
  host->full = true;
  replies();
  gives_key();
  EXPECT_THAT(service->acts, IsEmpty());
  EXPECT_THAT(report()["error"].get<std::string>(), HasSubstr("No space left"));
  host->full = false;
  for (int i = 0; i < 60 && transport.find("/v1/key") == nullptr; ++i) loop.advance(1s);
  gives_key();
  EXPECT_THAT(service->acts, ElementsAre("start"));
}

TEST_F(AgentTest, StopLeavesSlurmdRunning) {
  begin(joined());
  replies();
  gives_key();
  bool stopped = false;
  agent->stop([&] { stopped = true; });
  loop.advance(1s);
  EXPECT_TRUE(stopped);
  EXPECT_TRUE(service->now.running);
  const auto ran = host->ran.size();
  loop.advance(10min);
  EXPECT_EQ(host->ran.size(), ran);
  EXPECT_THAT(transport.pending, IsEmpty());
}

/// A host that has joined, with a running slurmd. The tests let its node leave.
struct LeavingAgentTest : AgentTest {
  void at_work() {
    begin(joined());
    replies();
    gives_key();
    files("/var/lib/slurm-enlist/host.key") = files("/var/lib/slurm-enlist/host.crt") = "mine";
    replies(Phase::kReady);
  }
  void told(std::string_view leave, Phase phase) {
    desired.leave = leave;
    replies(phase);
  }
};

TEST_F(LeavingAgentTest, StepByStep) {
  at_work();
  EXPECT_EQ(report()["steps_known"], false) << "nobody asks";
  service->on_host = {"12.batch"};
  told(kLeaveSteps, Phase::kDraining);
  EXPECT_EQ(report()["steps"], core::Json::array({"12.batch"}));
  EXPECT_EQ(report()["steps_known"], true);
  service->on_host = std::vector<std::string>();
  loop.advance(2s);
  EXPECT_EQ(report()["steps"], core::Json::array());
  EXPECT_THAT(service->acts, ElementsAre("start"));
  told(kLeaveStop, Phase::kStopping);
  EXPECT_THAT(service->acts, ElementsAre("start", "stop"));
  EXPECT_EQ(report()["stopped"], true);
  EXPECT_EQ(report()["error"], "");
  EXPECT_TRUE(host->files.contains("/etc/slurm/slurm.key")) << "it is needed until Slurm has forgotten the node";
  told(kLeaveClean, Phase::kGone);
  EXPECT_THAT(service->acts, ElementsAre("start", "stop", "uninstall"));
  EXPECT_FALSE(host->files.contains("/etc/slurm/slurm.key"));
  EXPECT_EQ(report()["left"], true);
  EXPECT_FALSE(ended) << "the coordinator has not heard it yet";
  ASSERT_TRUE(transport.answer("/v1/sync", 403, {{"error", "this host is not known here"}}));
  loop.advance(2s);
  EXPECT_TRUE(ended);
  for (const char* file : {"agent.json", "host.key", "host.crt"})
    EXPECT_FALSE(host->files.contains(std::filesystem::path("/var/lib/slurm-enlist") / file)) << file;
}

TEST_F(LeavingAgentTest, GoesOnAfterEachEndOfTheProcess) {
  at_work();
  const auto again = [&] {
    auto memory = memory_from(files("/var/lib/slurm-enlist/agent.json"));
    ASSERT_TRUE(memory) << memory.error().message;
    agent.reset();
    transport.pending.clear();
    begin(*memory);
  };
  told(kLeaveStop, Phase::kStopping);
  again();
  EXPECT_THAT(service->acts, ElementsAre("start", "stop")) << "slurmd is neither started nor stopped again";
  EXPECT_EQ(report()["stopped"], true);
  told(kLeaveClean, Phase::kGone);
  again();
  EXPECT_EQ(report()["left"], true);
  EXPECT_THAT(service->acts, ElementsAre("start", "stop", "uninstall"));
  replies(Phase::kGone);
  EXPECT_TRUE(ended);
}

// Requirement 20
TEST_F(LeavingAgentTest, NothingIsStoppedWhileStepsRunOrMayRun) {
  at_work();
  service->on_host = {"12.0"};
  told(kLeaveStop, Phase::kStopping);
  EXPECT_THAT(service->acts, ElementsAre("start"));
  EXPECT_EQ(report()["stopped"], false);
  EXPECT_THAT(report()["error"].get<std::string>(), HasSubstr("12.0"));
  service->on_host = core::fail(ErrorCode::kUnavailable, "/proc: Input/output error");
  loop.advance(1min);
  EXPECT_THAT(service->acts, ElementsAre("start"));
  EXPECT_EQ(report()["steps_known"], false);
}

TEST_F(LeavingAgentTest, ANodeThatStaysAfterAllHasItsSlurmdAgain) {
  at_work();
  told(kLeaveStop, Phase::kStopping);
  told(kLeaveSteps, Phase::kDraining);
  EXPECT_THAT(service->acts, ElementsAre("start", "stop", "start"));
  EXPECT_EQ(report()["stopped"], false);
  told("", Phase::kReady);
  EXPECT_EQ(report()["steps_known"], false);
  EXPECT_THAT(service->acts, ElementsAre("start", "stop", "start"));
}

TEST_F(LeavingAgentTest, WordsThatSlurmTakesLiveAreWrittenForTheNextStart) {
  at_work();
  const auto arguments = service->now.arguments;
  desired.node_conf = "Weight=5";
  replies(Phase::kReady);
  ASSERT_EQ(service->acts.size(), 2U);
  EXPECT_THAT(service->acts.back(), HasSubstr("prepare CPUs=4"));
  EXPECT_THAT(service->acts.back(), HasSubstr("Weight=5"));
  EXPECT_EQ(service->now.arguments, arguments) << "slurmd is not touched";
  loop.advance(1min);
  desired.registrations = 1;
  replies(Phase::kLost);
  EXPECT_EQ(service->acts.size(), 3U) << "it is written once";
  EXPECT_EQ(service->acts.back(), "reload");
  service->now.running = false;
  loop.advance(1min);
  EXPECT_EQ(service->acts.back(), "start");
  EXPECT_THAT(launch_of(*service->now.arguments).conf, HasSubstr("Weight=5"));
}

// Requirement 40
TEST_F(LeavingAgentTest, OtherWordsAreStartedAfterTheStop) {
  at_work();
  told(kLeaveStop, Phase::kStopping);
  EXPECT_THAT(service->acts, ElementsAre("start", "stop"));
  desired.node_conf = "RealMemory=500";
  told("", Phase::kStarting);
  EXPECT_THAT(service->acts, ElementsAre("start", "stop", "start"));
  EXPECT_THAT(launch_of(*service->now.arguments).conf, HasSubstr("RealMemory=500"));
  EXPECT_EQ(report()["stopped"], false);
}

TEST_F(LeavingAgentTest, ASlurmdThatEndsAgainAndAgainIsStopped) {
  at_work();
  service->now = {.running = false, .error = "slurmd ended", .changing = true, .arguments = service->now.arguments};
  told(kLeaveStop, Phase::kStopping);
  EXPECT_THAT(service->acts, ElementsAre("start", "stop"));
}

TEST_F(LeavingAgentTest, ASlurmdOfSomebodyElseAndItsKeyStay) {
  files("/etc/slurm/slurm.key") = "of another cluster";
  service->now = {.running = true};
  begin(joined());
  desired.leave = kLeaveClean;
  replies(Phase::kGone);
  EXPECT_THAT(service->acts, ElementsAre("uninstall")) << "which leaves foreign files alone";
  EXPECT_EQ(files("/etc/slurm/slurm.key"), "of another cluster");
  EXPECT_EQ(report()["left"], true);
}

TEST_F(LeavingAgentTest, ItsServiceIsRemovedIfJoinHasWrittenIt) {
  files("/etc/systemd/system/slurm-enlist-agent.service") = std::string(kFileMark) + "[Unit]\n";
  host->programs["systemctl"] = {};
  at_work();
  told(kLeaveClean, Phase::kGone);
  replies(Phase::kGone);
  EXPECT_TRUE(ended);
  EXPECT_FALSE(host->files.contains("/etc/systemd/system/slurm-enlist-agent.service"));
  EXPECT_THAT(host->ran, ::testing::IsSupersetOf({"systemctl disable slurm-enlist-agent.service",
                                                  "systemctl stop --no-block slurm-enlist-agent.service"}));
}

TEST(AgentMemory, ComesBackAsItWas) {
  Memory memory = joined();
  memory.desired = Desired{.node = "gpu-1", .pool = "gpu", .cluster = "lab"};
  memory.desired->controllers = {"a:6817"};
  memory.key = {"slurm.key", "k1", "d"};
  memory.former = {{"slurm.jwks", "k0", "e"}, {"slurm.key", "k8", "f"}};
  memory.started_with = "slurm.jwks";
  memory.loaded_key = "k0";
  memory.stale_image = "7.1.8";
  memory.restarted_for = "k9";
  memory.registrations = 7;
  memory.stopped = memory.left = true;
  EXPECT_EQ(memory_from(memory_text(memory)), memory);
  memory.desired.reset();
  EXPECT_EQ(memory_from(memory_text(memory)), memory);
  for (const char* text : {"", "{}", R"({"host": "a", "port": 0, "coordinator": "x"})", R"({"host": "a", "port": 1})",
                           R"({"host": "a", "port": 1, "coordinator": "x", "desired": 1})"})
    EXPECT_FALSE(memory_from(text)) << text;
}

}  // namespace
}  // namespace enlist
