#include "kube/app/app.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>

namespace kube {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class AppTest : public testing::Test {
 protected:
  AppTest() {
    std::ofstream(config_) << "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
                              "contexts: [{name: x, context: {cluster: c}}]\n"
                              "current-context: x\n";
  }
  ~AppTest() override { std::filesystem::remove(config_); }

  struct End {
    std::optional<int> code;
    std::string said;
  };
  template <class Call>
  static End listen(Call call) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const std::optional<int> code = call();
    return {code, testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr()};
  }
  End start(std::vector<std::string> args) {
    args.insert(args.begin(), {"program", "--kubeconfig=" + config_});
    std::vector<char*> argv;
    for (std::string& arg : args) argv.push_back(arg.data());
    return listen([&] { return app.start(static_cast<int>(argv.size()), argv.data()); });
  }
  End run() {
    return listen([&] { return app.run(); });
  }

  const std::string config_ = testing::TempDir() + "app_test." + std::to_string(getpid());
  App app{{.name = "slurm-bridge", .version = "1.2", .about = "Bridges."}};
};

TEST_F(AppTest, HasNoMoreToDoThanToSayWhatItIs) {
  const End end = start({"--version"});
  EXPECT_EQ(end.code, 0);
  EXPECT_EQ(end.said, "1.2\n");
}

TEST_F(AppTest, TellsItsFlagsAndTheirDefaults) {
  std::string domain = "cluster.local";
  app.flag("--cluster-domain", domain, "DNS domain");
  const End end = start({"--help"});
  EXPECT_EQ(end.code, 0);
  EXPECT_THAT(end.said, AllOf(HasSubstr("Bridges."), HasSubstr("--leader-elect-name TEXT=slurm-bridge"),
                              HasSubstr("--cluster-domain TEXT=cluster.local")));
}

TEST_F(AppTest, ReadsFlagsOfTheProgram) {
  std::vector<std::string> namespaces;
  std::string domain = "cluster.local", other = "default";
  bool first = false, second = false;
  app.flag("--namespaces", namespaces, "");
  app.flag("--cluster-domain", domain, "");
  app.flag("--other", other, "");
  app.flag("--first", first, "");
  app.flag("--second", second, "");
  EXPECT_EQ(start({"--namespaces=a,b", "--cluster-domain=x.org", "--first"}).code, std::nullopt);
  EXPECT_THAT(namespaces, ElementsAre("a", "b"));
  EXPECT_EQ(domain, "x.org");
  EXPECT_EQ(other, "default");
  EXPECT_TRUE(first);
  EXPECT_FALSE(second);
}

TEST_F(AppTest, RefusesALevelThatIsNone) {
  const End end = start({"--log-level=loud"});
  EXPECT_EQ(end.code, 1);
  EXPECT_THAT(end.said, AllOf(HasSubstr("--log-level"), HasSubstr("loud"), HasSubstr("must be debug, info, warn or error")));
}

TEST_F(AppTest, RefusesWhatItDoesNotKnow) {
  const End end = start({"--no-such=1"});
  EXPECT_NE(end.code.value_or(0), 0);
  EXPECT_THAT(end.said, HasSubstr("--no-such=1"));
}

TEST_F(AppTest, RefusesAWordThatIsNotYesOrNo) {
  const End end = start({"--leader-elect=maybe"});
  EXPECT_NE(end.code.value_or(0), 0);
  EXPECT_THAT(end.said, AllOf(HasSubstr("--leader-elect"), HasSubstr("maybe")));
}

TEST_F(AppTest, RefusesAKubeconfigThatCannotBeRead) {
  std::filesystem::remove(config_);
  const End end = start({});
  EXPECT_EQ(end.code, 1);
  EXPECT_THAT(end.said, AllOf(HasSubstr("cannot reach the API server"), HasSubstr(config_)));
}

TEST_F(AppTest, RefusesAddressesThatAreNone) {
  ASSERT_EQ(start({"--health-addr=here"}).code, std::nullopt);
  const End end = run();
  EXPECT_EQ(end.code, 1);
  EXPECT_THAT(end.said, AllOf(HasSubstr("no health endpoint"), HasSubstr("--health-addr: here is not host:port")));
}

TEST_F(AppTest, RefusesAddressesOfMetricsToo) {
  ASSERT_EQ(start({"--health-addr=0", "--metrics-addr=:65536"}).code, std::nullopt);
  const End end = run();
  EXPECT_EQ(end.code, 1);
  EXPECT_THAT(end.said, AllOf(HasSubstr("no metrics endpoint"), HasSubstr("--metrics-addr: :65536 is not host:port"),
                              HasSubstr("a port of 0 to 65535")));
}

TEST_F(AppTest, KnowsItsNamespace) {
  ASSERT_EQ(start({"--leader-elect-namespace=slurm"}).code, std::nullopt);
  EXPECT_EQ(app.own_namespace(), "slurm");
}

TEST_F(AppTest, KnowsTheNamespaceOfItsContext) {
  ASSERT_EQ(start({}).code, std::nullopt);
  EXPECT_EQ(app.own_namespace(), "default");
}

TEST_F(AppTest, SomethingStopsBeforeTheManager) {
  ASSERT_EQ(start({"--health-addr=0", "--metrics-addr=0", "--leader-elect=false"}).code, std::nullopt);
  bool stopped = false;
  app.stop_first([&](const std::function<void()>& done) {
    stopped = true;
    done();
  });
  app.loop().after(core::Duration{1}, [] { std::raise(SIGTERM); });
  EXPECT_EQ(run().code, 0);
  EXPECT_TRUE(stopped);
}

// If programs had a common name, each would take the other's fields, Leases and dashboards.
TEST_F(AppTest, ItsNameIsItsOwnEverywhere) {
  ASSERT_EQ(start({}).code, std::nullopt);
  EXPECT_EQ(app.client().options().user_agent, "slurm-bridge/1.2");
  EXPECT_EQ(app.client().options().field_manager, "slurm-bridge");
  EXPECT_THAT(app.metrics_text(), AllOf(HasSubstr("\nslurm_bridge_heap_bytes{"), HasSubstr("\nprocess_open_fds "),
                                        Not(HasSubstr("slurm_operator"))));
}

}  // namespace
}  // namespace kube
