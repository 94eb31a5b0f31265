// Tests the agent with real files, programs, processes and TLS. Only the coordinator is a fake.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <boost/asio/io_context.hpp>
#include <fstream>

#include "core/base64.hpp"
#include "core/random.hpp"
#include "enlist/agent/agent.hpp"
#include "enlist/wire/identity.hpp"
#include "net/beast_transport.hpp"
#include "net/http_server.hpp"
#include "net/testing/loop_test.hpp"

namespace enlist {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class LiveTest : public net::testing::LoopTest {
 protected:
  LiveTest() {
    std::ofstream(root / "slurmd") << "#!/bin/sh\n"
                                      "case $1 in\n"
                                      "  -V) echo slurm 26.05.1 ;;\n"
                                      "  -C) echo NodeName=h CPUs=2 Boards=1 SocketsPerBoard=1 CoresPerSocket=2 "
                                      "ThreadsPerCore=1 RealMemory=4000 ;;\n"
                                      "  *) trap '' HUP; echo \"$@\"; exec sleep 1000 ;;\n"
                                      "esac\n";
    chmod((root / "slurmd").c_str(), 0755);
    ours = load_or_make_identity(root / "coordinator", "coordinator").value();
    host_key = load_or_make_identity(root / "state", "host").value();
  }
  ~LiveTest() override {
    EXPECT_TRUE(service->stop());
    fs::remove_all(root);
  }
  static fs::path make_root() {
    std::string path = fs::temp_directory_path() / "enlist-live-XXXXXX";
    return mkdtemp(path.data());
  }
  void answer(const net::HttpRequest& request, net::Responder responder) {
    if (request.peer_key != host_key.fingerprint) return responder.respond({403, {}, R"({"error": "who are you?"})"});
    if (request.target == "/v1/key") {
      const core::Json key = {{"file", "slurm.key"}, {"revision", "k1"}, {"content", core::base64_encode("the key")}};
      return responder.respond({200, {}, key.dump()});
    }
    const auto sync = from_json<Sync>(core::parse_json(request.body).value());
    ASSERT_TRUE(sync) << sync.error().message;
    report = sync->report;
    SyncReply reply{
        .desired = {.node = "gpu-1", .pool = "gpu", .cluster = "lab"}, .revision = "1", .phase = "Starting", .message = ""};
    reply.desired.controllers = {"127.0.0.1:6817"};
    reply.desired.key_revision = "k1";
    if (report.running) reply.phase = "Ready", reply.revision = "2";
    if (sync->revision == reply.revision && sync->wait_ms > 0) {
      waiting.push_back(responder);
    } else {
      responder.respond({200, {}, to_json(reply).dump()});
    }
  }
  std::string file(const fs::path& name) { return host->read(root / name).value_or(""); }

  fs::path root = make_root();
  Identity ours, host_key;
  std::shared_ptr<Host> host = local_host();
  std::shared_ptr<Service> service = child_service(*host, root / "slurmd", root / "log/slurmd.log");
  core::SystemRandom random;
  core::NullLogger log;
  Report report;
  std::vector<net::Responder> waiting;
};

TEST_F(LiveTest, FromJoiningToReady) {
  net::HttpServer server(
      loop, {.use_tls = true, .tls = {.cert_pem = ours.cert_pem, .key_pem = ours.key_pem, .any_client = true}},
      [this](const net::HttpRequest& request, net::Responder responder) { answer(request, std::move(responder)); });
  ASSERT_TRUE(server.start());
  net::BeastTransport transport(
      loop, {.scheme = "https",
             .host = "127.0.0.1",
             .port = server.port(),
             .tls = {.cert_pem = host_key.cert_pem, .key_pem = host_key.key_pem, .pinned_key = ours.fingerprint}});
  const MachineOptions options{.state = root / "state",
                               .status_file = root / "run/agent.status",
                               .slurm_folder = root / "slurm",
                               .slurmd = root / "slurmd"};
  Agent agent(loop, random, log, transport, host, service, options,
              {.host = "127.0.0.1",
               .port = server.port(),
               .coordinator = ours.fingerprint,
               .node = "gpu-1",
               .pool = "gpu",
               .cluster = "lab"});
  agent.start();
  ASSERT_TRUE(run_until([&] { return file("run/agent.status").find("Ready") != std::string::npos; }))
      << file("run/agent.status");
  EXPECT_TRUE(agent.ready());
  EXPECT_EQ(file("slurm/slurm.key"), "the key");
  struct stat found {};
  ASSERT_EQ(stat((root / "slurm/slurm.key").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600U);
  EXPECT_EQ(report.slurm_version, "26.05.1");
  EXPECT_EQ(report.error, "");
  EXPECT_THAT(report.conf, HasSubstr("CPUs=2"));
  EXPECT_THAT(report.conf, HasSubstr("State=DRAIN"));
  ASSERT_TRUE(run_until([&] { return !file("log/slurmd.log").empty(); }));
  EXPECT_THAT(file("log/slurmd.log"), HasSubstr("-D -Z -N gpu-1 --conf"));
  EXPECT_THAT(file("log/slurmd.log"), HasSubstr("--conf-server 127.0.0.1:6817 --instance-id " + report.instance_id));
  bool stopped = false;
  agent.stop([&] { stopped = true; });
  EXPECT_TRUE(run_until([&] { return stopped; }));
  EXPECT_TRUE(service->state()->running) << "slurmd outlives the agent";
}

TEST_F(LiveTest, AnotherCoordinatorIsNotBelieved) {
  const Identity other = load_or_make_identity(root / "other", "coordinator").value();
  net::HttpServer server(loop,
                         {.use_tls = true, .tls = {.cert_pem = other.cert_pem, .key_pem = other.key_pem, .any_client = true}},
                         [](const net::HttpRequest&, const net::Responder&) { FAIL() << "nothing is sent to it"; });
  ASSERT_TRUE(server.start());
  net::BeastTransport transport(
      loop, {.scheme = "https",
             .host = "127.0.0.1",
             .port = server.port(),
             .tls = {.cert_pem = host_key.cert_pem, .key_pem = host_key.key_pem, .pinned_key = ours.fingerprint}});
  std::string trouble;
  Connection connection(
      loop, random, transport,
      {.on_reply = [](const SyncReply&) { FAIL(); }, .on_trouble = [&](const std::string& why) { trouble = why; }});
  connection.report({.hostname = "h", .boot_id = "b"});
  ASSERT_TRUE(run_until([&] { return !trouble.empty(); }));
  EXPECT_THAT(trouble, HasSubstr("certificate"));
}

}  // namespace
}  // namespace enlist
