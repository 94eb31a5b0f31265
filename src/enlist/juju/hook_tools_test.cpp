#include "enlist/juju/hook_tools.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base64.hpp"
#include "enlist/host/testing/fake_host.hpp"

namespace enlist::juju {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Records the standard input of the programs.
class RecordingHost final : public enlist::testing::FakeHost {
 public:
  core::Result<Output> run(const std::vector<std::string>& arguments, std::chrono::milliseconds limit,
                           const std::string& input) override {
    inputs.push_back(input);
    return FakeHost::run(arguments, limit, input);
  }
  std::vector<std::string> inputs;
};

struct JujuTools : ::testing::Test {
  void says(const std::string& line, const std::string& out) { host.programs[line] = {0, out, ""}; }
  RecordingHost host;
  std::unique_ptr<HookTools> tools = juju_tools(host);
};

TEST_F(JujuTools, ReadsWhatTheProgramsPrint) {
  says("is-leader --format=json", "true\n");
  says("config-get --format=json", "{\"partition-config\":\"MaxTime=1\"}\n");
  says("relation-ids --format=json slurmd", "[\"slurmd:3\",\"slurmd:12\"]\n");
  says("relation-list --format=json --relation slurmd:3 --app", "\"gpu\"\n");
  says("relation-list --format=json --relation slurmd:3", "[\"gpu/0\",\"gpu/3\"]\n");
  says("relation-list --format=json --relation slurmd:4", "null\n");
  says("relation-list --format=json --relation slurmd:5", "{}\n");
  says("relation-get --format=json --relation slurmd:3 --app - gpu", "{\"partition\":\"{}\"}\n");
  says("status-get --format=json --include-data", "{\"message\":\"m\",\"status\":\"waiting\",\"status-data\":{}}\n");
  EXPECT_TRUE(tools->is_leader().value());
  EXPECT_EQ(tools->config().value()["partition-config"], "MaxTime=1");
  EXPECT_THAT(tools->relations("slurmd").value(), ElementsAre("slurmd:3", "slurmd:12"));
  EXPECT_EQ(tools->remote_app("slurmd:3").value(), "gpu");
  EXPECT_THAT(tools->remote_units("slurmd:3").value(), ElementsAre("gpu/0", "gpu/3"));
  EXPECT_THAT(tools->remote_units("slurmd:4").value(), IsEmpty());
  EXPECT_FALSE(tools->remote_units("slurmd:5"));
  EXPECT_EQ(tools->databag("slurmd:3", "gpu").value(), (Databag{{"partition", "{}"}}));
  EXPECT_EQ(tools->status().value(), waiting("m"));
}

TEST_F(JujuTools, AStatusThatIsNotOursIsNone) {
  says("status-get --format=json --include-data", "{\"message\":\"installing agent\",\"status\":\"unknown\"}");
  EXPECT_EQ(tools->status().value(), std::nullopt);
}

TEST_F(JujuTools, PublishesThroughStandardInput) {
  says("relation-set", "");
  EXPECT_TRUE(tools->publish("slurmd:3", {{"controllers", "[\"a:1\"]"}}));
  EXPECT_THAT(host.ran, ElementsAre("relation-set --relation slurmd:3 --app --file -"));
  EXPECT_THAT(host.inputs, ElementsAre(R"({"controllers":"[\"a:1\"]"})"));
}

// Requirement 31
TEST_F(JujuTools, TheKeyIsNoArgument) {
  says("secret-add", "secret:abc\n");
  says("secret-set", "");
  EXPECT_EQ(tools->add_key("slurm-enlist-key-3", "/etc/slurm/slurm.key").value(), "secret:abc");
  EXPECT_TRUE(tools->set_key("secret:abc", "/etc/slurm/slurm.jwks"));
  EXPECT_THAT(host.ran,
              ElementsAre("secret-add --owner application --label slurm-enlist-key-3 auth-key#file=/etc/slurm/slurm.key "
                          "file=slurm.key",
                          "secret-set secret:abc auth-key#file=/etc/slurm/slurm.jwks file=slurm.jwks"));
}

TEST_F(JujuTools, ReadsAKeyThatIsNoText) {
  const std::string key("\0\xff\n", 3);
  says("secret-get --format=json secret:abc --refresh file", "\"slurm.key\"\n");
  says("secret-get --format=json secret:abc --refresh auth-key#base64", "\"" + core::base64_encode(key) + "\"\n");
  const auto read = tools->key("secret:abc", false);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->file, "slurm.key");
  EXPECT_EQ(read->content, key);
  EXPECT_FALSE(tools->key("secret:abc", true));
  EXPECT_THAT(host.ran, Contains("secret-get --format=json secret:abc --peek file"));
}

TEST_F(JujuTools, ReadsAndAnswersAnAction) {
  says("action-get --format=json", "{\"reset\":true}\n");
  says("action-set jobs=7,10_3 words=Weight=5 Features=a", "");
  says("action-fail Slurm has no node gpu-0", "");
  EXPECT_EQ(tools->action_parameters().value()["reset"], true);
  EXPECT_TRUE(tools->set_results({{"jobs", "7,10_3"}, {"words", "Weight=5 Features=a"}}));
  EXPECT_TRUE(tools->fail_action("Slurm has no node gpu-0"));
}

TEST_F(JujuTools, ListsTheSecretsOfTheApplication) {
  says("secret-ids --format=json", "[\"abc\",\"def\"]\n");
  says("secret-info-get --format=json secret:abc", R"({"abc":{"revision":1,"label":"one","owner":"application"}})");
  says("secret-info-get --format=json secret:def", R"({"def":{"revision":1,"label":"two","owner":"application"}})");
  const auto secrets = tools->owned_secrets().value();
  ASSERT_EQ(secrets.size(), 2U);
  EXPECT_EQ(secrets[1].id, "secret:def");
  EXPECT_EQ(secrets[1].label, "two");
}

TEST_F(JujuTools, TellsWhyAProgramFails) {
  host.programs["secret-get"] = {1, "", "ERROR permission denied\n"};
  const auto key = tools->key("secret:abc", false);
  ASSERT_FALSE(key);
  EXPECT_EQ(key.error().code, core::ErrorCode::kForbidden);
  EXPECT_EQ(key.error().message, "secret-get: ERROR permission denied");
  EXPECT_THAT(tools->relations("slurmd").error().message, HasSubstr("relation-ids"));
}

}  // namespace
}  // namespace enlist::juju
