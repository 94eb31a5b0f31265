#include "enlist/cli/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iomanip>
#include <sstream>

#include "core/hash.hpp"
#include "enlist/cli/connection.hpp"

namespace enlist::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct ProgramTest : ::testing::Test {
  int run(const std::string& line) {
    std::vector<std::string> words;
    std::istringstream in(line);
    for (std::string word; in >> std::quoted(word);) words.push_back(word);
    const auto program = [this](const char* name) {
      return [this, name](const std::vector<std::string>& rest) {
        ran = name;
        for (const std::string& word : rest) ran += " " + word;
        return 7;
      };
    };
    const Outside outside{.version = "1.2.3",
                          .root = root,
                          .write_out = [this](std::string_view text) { out += text; },
                          .write_err = [this](std::string_view text) { err += text; },
                          .ask =
                              [this](const Connection& connection, const std::string& path, const core::Json& body) {
                                to = connection;
                                asked.push_back(path + (body.is_null() ? "" : " " + core::canonical(body)));
                                if (error) return core::Result<core::Json>(std::unexpected(*error));
                                return core::Result<core::Json>(answers[path]);
                              },
                          .coordinator = program("coordinator"),
                          .init = program("init"),
                          .agent = program("agent"),
                          .join = program("join"),
                          .leave = program("leave"),
                          .charm = program("charm"),
                          .now = [this] { return clock; },
                          .sleep =
                              [this](std::chrono::milliseconds time) {
                                clock += time;
                                if (on_sleep) on_sleep();
                              }};
    out.clear();
    err.clear();
    return run_program(outside, words);
  }

  std::map<std::string, core::Json> answers;
  std::optional<core::Error> error;
  std::vector<std::string> asked;
  Connection to;
  std::string out, err, ran;
  bool root = true;
  std::chrono::nanoseconds clock{0};
  std::function<void()> on_sleep;
};

TEST_F(ProgramTest, ProcessesGetTheirOwnFlags) {
  EXPECT_EQ(run("coordinator run --log-level debug"), 7);
  EXPECT_EQ(ran, "coordinator --log-level debug");
  run("coordinator init --yes");
  EXPECT_EQ(ran, "init --yes");
  run("agent --help");
  EXPECT_EQ(ran, "agent --help");
  run("join --token x");
  EXPECT_EQ(ran, "join --token x");
}

TEST_F(ProgramTest, ProcessesNeedRoot) {
  root = false;
  for (const char* command : {"coordinator run", "coordinator init", "agent", "join", "leave"}) {
    EXPECT_EQ(run(command + std::string(" --state x")), 1);
    EXPECT_EQ(err, "slurm-enlist " + std::string(command) + ": run this as root\n");
    EXPECT_EQ(run(command + std::string(" --help")), 7);
  }
  EXPECT_EQ(run("charm slurmd"), 7);
}

TEST_F(ProgramTest, ATokenThatIsAnArgumentIsNotPrinted) {
  for (const char* line : {"join enlist1_secret", "join --token-file enlist1_secret", "join --token-file=enlist1_secret"}) {
    EXPECT_EQ(run(line), 2);
    EXPECT_THAT(err, HasSubstr("slurm-enlist join --token-file - and paste the token"));
    EXPECT_THAT(err, ::testing::Not(HasSubstr("secret")));
  }
  EXPECT_EQ(run("join --token enlist1_secret"), 7);
}

TEST_F(ProgramTest, AnUnknownCommandIsNamed) {
  EXPECT_EQ(run("nodes"), 2);
  EXPECT_EQ(err, "slurm-enlist: there is no command nodes; see slurm-enlist --help\n");
  EXPECT_EQ(run("node lst"), 2);
  EXPECT_EQ(err, "slurm-enlist: there is no command lst; see slurm-enlist --help\n");
  EXPECT_EQ(run(""), 2);
  EXPECT_THAT(err, HasSubstr("A subcommand is required"));
}

TEST_F(ProgramTest, APoolIsMade) {
  EXPECT_EQ(run(R"(pool create gpu --partition "Default=YES MaxTime=60" --nodes Weight=5)"), 0);
  EXPECT_THAT(asked,
              ElementsAre(R"(/v1/pools {"name":"gpu","node_conf":"Weight=5","partition_conf":"Default=YES MaxTime=60"})"));
  EXPECT_EQ(out, "pool gpu is made\n");
  answers["/v1/pools"] = {{"name", "gpu"}, {"existed", true}};
  EXPECT_EQ(run("pool create gpu"), 0);
  EXPECT_EQ(out, "pool gpu exists already, with these parameters\n");
}

TEST_F(ProgramTest, ATokenIsAllThatIsPrinted) {
  answers["/v1/tokens"] = {{"token", "enlist1_abc"}};
  EXPECT_EQ(run("token gpu --valid-for 15m --uses 20"), 0);
  EXPECT_THAT(asked, ElementsAre(R"(/v1/tokens {"pool":"gpu","uses":20,"valid_for_s":900})"));
  EXPECT_EQ(out, "enlist1_abc\n");
}

TEST_F(ProgramTest, ListsAreTablesOrJson) {
  answers["/v1/nodes"] = {
      {"nodes", core::Json::array({{{"name", "gpu-1"},
                                    {"pool", "gpu"},
                                    {"phase", "Ready"},
                                    {"message", ""},
                                    {"report", {{"hostname", "h"}, {"slurm_version", "26.05.1"}}}},
                                   {{"name", "gpu-2"}, {"pool", "gpu"}, {"phase", "Refused"}, {"message", "why"}}})}};
  answers["/v1/pools"] = {{"pools", core::Json::array({{{"name", "gpu"}, {"partition_conf", "MaxTime=60"}}})}};
  EXPECT_EQ(run("node list"), 0);
  EXPECT_EQ(out,
            "NAME   POOL  PHASE    HOST  SLURMD   MESSAGE\n"
            "gpu-1  gpu   Ready    h     26.05.1  -\n"
            "gpu-2  gpu   Refused  -     -        why\n");
  EXPECT_EQ(run("pool list"), 0);
  EXPECT_EQ(out,
            "NAME  NODES  READY  PARTITION   NODE-CONF  PROBLEM\n"
            "gpu   2      1      MaxTime=60  -          -\n");
  EXPECT_EQ(err, "");
  answers["/v1/nodes"]["store_problem"] = "coordinator.db: database or disk is full";
  EXPECT_EQ(run("node list"), 0);
  EXPECT_EQ(err,
            "slurm-enlist: warning: the last write to the records of the coordinator has failed: coordinator.db: database or "
            "disk is full\n");
  EXPECT_EQ(run("node list -o json --coordinator 127.0.0.1:7000 --state /tmp/x"), 0);
  EXPECT_EQ(*core::parse_json(out), answers["/v1/nodes"]["nodes"]);
  EXPECT_EQ(to.address, "127.0.0.1:7000");
  EXPECT_EQ(to.state, "/tmp/x");
}

TEST_F(ProgramTest, ARefusalIsOneLine) {
  error = core::fail(core::ErrorCode::kInvalid, "there is no pool x").error();
  EXPECT_EQ(run("token x"), 1);
  EXPECT_EQ(err, "slurm-enlist: there is no pool x\n");
  EXPECT_EQ(run("pool list"), 1);
  EXPECT_THAT(out, IsEmpty());
}

TEST_F(ProgramTest, WrongUsageIsTold) {
  for (const char* line : {"", "pool", "pool create", "token", "no such", "node list -o yaml", "token x --valid-for 1",
                           "token x --uses 0", "coordinator", "pool list extra"}) {
    EXPECT_EQ(run(line), 2) << line;
    EXPECT_THAT(err, HasSubstr("slurm-enlist: ")) << line;
    EXPECT_EQ(std::ranges::count(err, '\n'), 1) << err;
  }
  EXPECT_THAT(asked, IsEmpty());
}

TEST_F(ProgramTest, HelpAndVersion) {
  EXPECT_EQ(run("--version"), 0);
  EXPECT_EQ(out, "1.2.3\n");
  EXPECT_EQ(run("token --help"), 0);
  EXPECT_THAT(out, HasSubstr("--valid-for"));
}

TEST_F(ProgramTest, ARemovalShowsWhatItWaitsFor) {
  const auto shows = [this](const char* phase, const char* message) {
    answers["/v1/nodes"] = {
        {"nodes",
         core::Json::array({{{"name", "gpu-1"}, {"phase", phase}, {"message", message}, {"leaving", {{"wanted", true}}}}})}};
  };
  shows("Draining", "jobs run there: 12");
  int looks = 0;
  on_sleep = [&] {
    ++looks;
    if (looks == 3) shows("Stopping", "the agent stops slurmd");
    if (looks == 4) error = core::Error{core::ErrorCode::kUnavailable, "no answer", 0, {}, {}};
    if (looks == 6) error.reset();
    if (looks == 7) answers["/v1/nodes"] = {{"nodes", core::Json::array()}};
  };
  EXPECT_EQ(run("node remove gpu-1 --force"), 0) << err;
  EXPECT_EQ(asked.front(), R"(/v1/nodes/leave {"force":true,"nodes":["gpu-1"]})");
  EXPECT_EQ(out, "gpu-1: Draining: jobs run there: 12\ngpu-1: Stopping: the agent stops slurmd\ngpu-1: it has left\n");
  EXPECT_EQ(err, "slurm-enlist: no answer; trying again\n");
}

TEST_F(ProgramTest, AWaitHasAnEnd) {
  answers["/v1/nodes"] = {{"nodes", core::Json::array({{{"name", "a-1"}, {"leaving", {{"wanted", true}}}}})}};
  EXPECT_EQ(run("node remove a-1 --wait 5"), 1);
  EXPECT_THAT(err, HasSubstr("the nodes have not left after 5 s"));
  EXPECT_EQ(run("node remove a-1 --wait 0"), 0);
  EXPECT_EQ(out, "");
  answers["/v1/nodes"]["nodes"][0]["leaving"]["wanted"] = false;
  EXPECT_EQ(run("node remove a-1"), 1);
  EXPECT_THAT(err, HasSubstr("node a-1 stays"));
}

TEST_F(ProgramTest, ANodeGetsWords) {
  const auto shows = [this](const char* phase, const char* conf, bool waits) {
    const core::Json node = {{"name", "gpu-1"},
                             {"phase", phase},
                             {"node_conf", waits ? "" : conf},
                             {"configuring", {{"wanted", waits}, {"conf", waits ? conf : ""}}}};
    answers["/v1/nodes"] = answers["/v1/nodes/config"] = {{"nodes", core::Json::array({node})}};
  };
  shows("Draining", "RealMemory=5 Weight=2", true);
  on_sleep = [&] { shows(out.find("Starting") == std::string::npos ? "Starting" : "Ready", "RealMemory=5 Weight=2", false); };
  EXPECT_EQ(run("node config gpu-1 RealMemory=5 Weight=2"), 0) << err;
  EXPECT_EQ(asked.front(), R"(/v1/nodes/config {"conf":"RealMemory=5 Weight=2","nodes":["gpu-1"]})");
  EXPECT_EQ(out, "gpu-1: Draining\ngpu-1: Starting\ngpu-1: Ready\n");
  EXPECT_EQ(run("node config gpu-1"), 0);
  EXPECT_EQ(out, "RealMemory=5 Weight=2\n");

  shows("Refused", "", false);
  EXPECT_EQ(run("node config gpu-1 --reset"), 1);
  EXPECT_THAT(err, HasSubstr("not ready with its new parameters"));
  shows("Draining", "Weight=9", true);
  EXPECT_EQ(run("node config gpu-1 --reset"), 1);
  EXPECT_THAT(err, HasSubstr("or gpu-1 was given other parameters"));
  EXPECT_EQ(run("node config gpu-1 Weight=9 --wait 0"), 0);
  EXPECT_EQ(run("node config gpu-1 Weight=9 --reset"), 2);
}

TEST_F(ProgramTest, OtherVerbsForNodesAndPools) {
  run("node keep a-1 a-2");
  run("node revoke a-1");
  run("node drain a-1 --reason \"bad fan\"");
  run("node resume a-1");
  EXPECT_THAT(asked,
              ElementsAre(R"(/v1/nodes/keep {"nodes":["a-1","a-2"]})", R"(/v1/nodes/revoke {"nodes":["a-1"]})",
                          R"(/v1/nodes/drain {"nodes":["a-1"],"reason":"bad fan"})", R"(/v1/nodes/resume {"nodes":["a-1"]})"));
  asked.clear();
  answers["/v1/pools"] = {{"pools", core::Json::array({{{"name", "gpu"}, {"problem", "it is being removed: 1 node leaves"}}})}};
  int looks = 0;
  on_sleep = [&] {
    answers["/v1/pools"] = {{"pools", core::Json::array()}};
    if (++looks < 3) answers["/v1/pools"]["dropping"] = core::Json::array({"gpu"});
  };
  EXPECT_EQ(run("pool remove gpu"), 0) << err;
  EXPECT_EQ(looks, 3);
  EXPECT_EQ(asked.front(), R"(/v1/pools/remove {"force":false,"name":"gpu"})");
  EXPECT_EQ(out, "gpu: it is being removed: 1 node leaves\ngpu: slurmctld drops its partition\ngpu: it is removed\n");
}

TEST_F(ProgramTest, JobsThatWereEndedAreNamed) {
  answers["/v1/jobs/end"] = {
      {"jobs",
       core::Json::array({{{"job", "12"}, {"name", "train"}, {"user", "ann"}, {"partition", "gpu"}, {"nodes", "gpu-[1-2]"}}})}};
  EXPECT_EQ(run("destroy-jobs gpu-1"), 0);
  EXPECT_THAT(out, HasSubstr("12   train  ann   gpu        gpu-[1-2]  ended"));
  EXPECT_EQ(asked.back(), R"(/v1/jobs/end {"node":"gpu-1"})");
  answers["/v1/jobs/end"]["jobs"][0]["error"] = "Access denied";
  EXPECT_EQ(run("destroy-jobs --pool gpu"), 1);
  EXPECT_THAT(out, HasSubstr("not ended: Access denied"));
  EXPECT_EQ(run("destroy-jobs"), 2);
}

TEST(AnswerTest, ErrorsAreTheCoordinatorsWords) {
  EXPECT_EQ(read_answer(200, R"({"pools":[]})").value_or(nullptr), core::Json({{"pools", core::Json::array()}}));
  EXPECT_EQ(read_answer(409, R"({"error":"the name is taken"})").error().message, "the name is taken");
  EXPECT_EQ(read_answer(502, "<html>").error().message, "the coordinator answers with status 502");
}

TEST(AnswerTest, KeysThatAreMissingAreNamed) {
  const auto answer = ask_coordinator({.state = "/nonexistent"}, "/v1/pools", nullptr);
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("/nonexistent/admin.crt does not exist"));
}

TEST_F(ProgramTest, ARotationIsBegunAndShownUntilItEnds) {
  answers["/v1/rotation"] = {{"phase", "Spread"},
                             {"running", true},
                             {"holders", {{{"host", "db"}, {"what", "restart slurmdbd"}}}},
                             {"hosts",
                              {{{"host", "gpu-1"}, {"why", "it has the key file"}, {"acknowledge", false}},
                               {{"host", "db"}, {"why", "restart slurmdbd"}, {"acknowledge", true}}}}};
  on_sleep = [this] {
    answers["/v1/rotation"] = {{"phase", "Ended"}, {"running", false}, {"result", "done: the cluster has a new key"}};
  };
  EXPECT_EQ(run("rotate --also login1,login2 --lifetime 10m"), 0);
  EXPECT_THAT(asked.front(), HasSubstr(R"(/v1/rotation {"also":["login1,login2"],"lifetime_s":600})"));
  EXPECT_THAT(out, HasSubstr("db has the key, too: in each phase, copy the file there, restart slurmdbd, and run slurm-enlist "
                             "rotate --acknowledge.\n"));
  EXPECT_THAT(out, HasSubstr("gpu-1: it has the key file\n"));
  EXPECT_THAT(out, HasSubstr("slurm-enlist rotate --acknowledge db --phase Spread\n"));
  EXPECT_THAT(out, HasSubstr("done: the cluster has a new key\n"));
}

TEST_F(ProgramTest, ARotationThatEndsWithoutANewKeyIsAFailure) {
  answers["/v1/rotation"] = {{"phase", "Ended"}, {"running", false}, {"result", "slurmctld refused to load the keys"}};
  EXPECT_EQ(run("rotate"), 1);
  answers["/v1/rotation/abandon"] = core::Json::object();
  EXPECT_EQ(run("rotate --abandon"), 0) << "that is what was wanted";
  answers["/v1/rotation"] = {{"phase", "Sign"}, {"running", true}, {"waits", "what was signed expires"}};
  EXPECT_EQ(run("rotate --wait 3"), 1);
  EXPECT_THAT(err, HasSubstr("the rotation has not ended"));
  EXPECT_EQ(run("rotate --wait 0"), 0);
}

TEST_F(ProgramTest, HostsOfARotationAreAcknowledgedAndLeftOut) {
  answers["/v1/rotation/acknowledge"] = answers["/v1/rotation/without"] = {{"phase", "Sign"}, {"running", true}};
  answers["/v1/rotation"] = answers["/v1/rotation/without"];
  EXPECT_EQ(run("rotate --acknowledge db,login1 --phase Spread"), 0);
  EXPECT_EQ(run("rotate --acknowledge db"), 0);
  EXPECT_EQ(run("rotate --without gpu-1"), 0);
  EXPECT_THAT(asked, ElementsAre(R"(/v1/rotation/acknowledge {"hosts":["db,login1"],"phase":"Spread"})", "/v1/rotation",
                                 R"(/v1/rotation/acknowledge {"hosts":["db"],"phase":"Sign"})",
                                 R"(/v1/rotation/without {"nodes":["gpu-1"]})"));
  asked.clear();
  EXPECT_EQ(run("rotate --acknowledge db --abandon"), 2);
  EXPECT_EQ(run("rotate --acknowledge db --also x"), 2);
  EXPECT_EQ(run("rotate --phase Sign"), 2);
  EXPECT_EQ(run("rotate --lifetime soon"), 2);
  EXPECT_THAT(asked, IsEmpty());
}

TEST_F(ProgramTest, TheStatusOfARotationIsShown) {
  answers["/v1/rotation"] = {{"phase", ""}, {"running", false}};
  EXPECT_EQ(run("rotate status"), 0);
  EXPECT_EQ(out, "there was no rotation\n");
  EXPECT_THAT(asked, ElementsAre("/v1/rotation")) << "it begins none";
  answers["/v1/rotation"] = {{"phase", "Spread"}, {"running", true}, {"problem", "somebody else has changed the keys"}};
  run("rotate status");
  EXPECT_EQ(out, "Spread\n  problem: somebody else has changed the keys\n");
  EXPECT_EQ(err, "");
  run("rotate status -o json");
  EXPECT_EQ(core::parse_json(out), answers["/v1/rotation"]);
}

}  // namespace
}  // namespace enlist::cli
