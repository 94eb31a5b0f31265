#include "kube/client/credentials.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/base64.hpp"
#include "core/json.hpp"
#include "core/testing/manual_loop.hpp"

namespace kube {
namespace {

using namespace std::chrono_literals;
using core::ErrorCode;
using testing::ElementsAre;
using testing::HasSubstr;

class CredentialsTest : public testing::Test {
 protected:
  CredentialsTest() {
    system.env = [this](const std::string& name) -> std::optional<std::string> {
      const auto it = env.find(name);
      return it == env.end() ? std::nullopt : std::optional(it->second);
    };
    system.read_file = [this](const std::string& path) -> core::Result<std::string> {
      ++reads;
      const auto it = files.find(path);
      if (it == files.end()) return core::fail(ErrorCode::kNotFound, path + ": none");
      return it->second;
    };
    system.run = [this](const System::Command& command) -> core::Result<std::string> {
      commands.push_back(command);
      return output;
    };
  }
  core::Result<std::unique_ptr<Credentials>> open(const std::string& config, const std::string& context = "") {
    files["/etc/k/config"] = config;
    return kubeconfig_credentials(loop, system, "/etc/k/config", context);
  }
  std::optional<core::Result<void>> refresh(Credentials& credentials) {
    std::optional<core::Result<void>> result;
    credentials.refresh([&](core::Result<void> r) { result = std::move(r); });
    loop.run_ready();
    return result;
  }

  core::ManualLoop loop;
  System system;
  std::map<std::string, std::string> env, files;
  std::vector<System::Command> commands;
  core::Result<std::string> output;
  int reads = 0;
};

const char* const kConfig = R"(
apiVersion: v1
kind: Config
current-context: one
clusters:
- name: c1
  cluster: {server: "https://10.0.0.1:6443/base/", certificate-authority: ca.crt, tls-server-name: kube}
- name: c2
  cluster: {server: "https://[fd00::1]", certificate-authority-data: Q0E=, insecure-skip-tls-verify: true}
contexts:
- name: one
  context: {cluster: c1, user: u1, namespace: team}
- name: two
  context: {cluster: c2, user: u2}
- name: broken
  context: {cluster: none, user: u1}
users:
- name: u1
  user: {tokenFile: /var/token}
- name: u2
  user: {client-certificate-data: Q0VSVA==, client-key-data: S0VZ}
)";

TEST_F(CredentialsTest, ContextsNameClusterAndUser) {
  files["/etc/k/ca.crt"] = "CA1";
  files["/var/token"] = "secret\n";
  const auto one = open(kConfig);
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ((*one)->endpoint().host, "10.0.0.1");
  EXPECT_EQ((*one)->endpoint().port, 6443);
  EXPECT_EQ((*one)->base_path(), "/base");
  EXPECT_EQ((*one)->endpoint().tls.ca_pem, "CA1");
  EXPECT_EQ((*one)->endpoint().tls.server_name, "kube");
  EXPECT_FALSE((*one)->endpoint().tls.insecure_skip_verify);
  EXPECT_EQ((*one)->token(), "secret");
  EXPECT_EQ((*one)->default_namespace(), "team");

  const auto two = open(kConfig, "two");
  ASSERT_TRUE(two) << two.error().message;
  EXPECT_EQ((*two)->endpoint().host, "fd00::1");
  EXPECT_EQ((*two)->endpoint().port, 443);
  EXPECT_EQ((*two)->endpoint().tls.ca_pem, "CA");
  EXPECT_EQ((*two)->endpoint().tls.cert_pem, "CERT");
  EXPECT_EQ((*two)->endpoint().tls.key_pem, "KEY");
  EXPECT_TRUE((*two)->endpoint().tls.insecure_skip_verify);
  EXPECT_EQ((*two)->token(), "");
  EXPECT_EQ((*two)->default_namespace(), "default");
}

TEST_F(CredentialsTest, WhatIsMissingIsNamed) {
  files["/var/token"] = "t";
  EXPECT_THAT(open(kConfig, "none").error().message, HasSubstr("no context named \"none\""));
  EXPECT_THAT(open(kConfig, "broken").error().message, HasSubstr("no cluster named \"none\""));
  EXPECT_THAT(open(kConfig, "one").error().message, HasSubstr("ca.crt"));
  EXPECT_EQ(open("{ [").error().code, ErrorCode::kInvalid);
  EXPECT_THAT(open("{current-context: x, contexts: [{name: x, context: {cluster: c}}], clusters: [{name: c, cluster: {server: "
                   "'ftp://x'}}]}")
                  .error()
                  .message,
              HasSubstr("must begin with http:// or https://"));
  EXPECT_FALSE(kubeconfig_credentials(loop, system, "/nowhere"));
}

TEST_F(CredentialsTest, WhatIsNotActedOnIsRefusedByName) {
  const auto with = [&](const std::string& user) {
    return open(
        "{current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}], clusters: [{name: c, cluster: "
        "{server: 'http://h'}}], users: [{name: u, user: {token: t, " +
        user + "}}]}");
  };
  EXPECT_TRUE(with("as: '', as-groups: []"));
  const std::vector<std::pair<std::string, std::string>> refused = {{"as", "jane"},
                                                                    {"as-uid", "'7'"},
                                                                    {"as-groups", "[viewers]"},
                                                                    {"as-user-extra", "{reason: [audit]}"},
                                                                    {"auth-provider", "{name: gcp}"},
                                                                    {"username", "jane"}};
  for (const auto& [key, value] : refused) {
    const auto got = with(key + ": " + value);
    ASSERT_FALSE(got) << key;
    EXPECT_EQ(got.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(got.error().message, HasSubstr(key));
  }
}

TEST_F(CredentialsTest, SeveralFilesAreOne) {
  files["/a"] = "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]";
  files["/b"] =
      "current-context: y\nclusters: [{name: c, cluster: {server: 'http://h:80'}}]\nusers: [{name: u, user: {token: t}}]";
  const auto found = kubeconfig_credentials(loop, system, "/a:/missing:/b");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ((*found)->token(), "t");
  EXPECT_EQ((*found)->endpoint().scheme, "http");
}

TEST_F(CredentialsTest, TokenFilesAreReadAgain) {
  files["/etc/k/ca.crt"] = "CA1";
  files["/var/token"] = "t1";
  const auto c = open(kConfig);
  std::vector<std::string> changes;
  std::vector<bool> good;
  (*c)->on_change([&](const net::Endpoint& endpoint) { changes.push_back(endpoint.tls.ca_pem); });
  (*c)->on_read([&](bool read) { good.push_back(read); });
  files["/var/token"] = "t2";
  loop.advance(59s);
  EXPECT_EQ((*c)->token(), "t1");
  loop.advance(2s);
  EXPECT_EQ((*c)->token(), "t2");
  EXPECT_TRUE(changes.empty());
  files["/etc/k/ca.crt"] = "CA2";
  loop.advance(60s);
  EXPECT_THAT(changes, ElementsAre("CA2"));
  files.erase("/var/token");
  loop.advance(60s);
  EXPECT_EQ((*c)->token(), "t2") << "in the middle of a rotation";
  EXPECT_THAT(good, ElementsAre(true, true, false));
}

TEST_F(CredentialsTest, CertificateFilesAreReadAgain) {
  files["/etc/k/tls.crt"] = "CERT1";
  files["/etc/k/tls.key"] = "KEY1";
  const auto c = open(R"({current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}],
    clusters: [{name: c, cluster: {server: "https://h", certificate-authority-data: Q0E=}}],
    users: [{name: u, user: {client-certificate: tls.crt, client-key: tls.key}}]})");
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ((*c)->endpoint().tls.cert_pem, "CERT1");
  EXPECT_EQ((*c)->endpoint().tls.key_pem, "KEY1");
  std::vector<std::string> changes;
  (*c)->on_change([&](const net::Endpoint& endpoint) {
    changes.push_back(endpoint.tls.ca_pem + " " + endpoint.tls.cert_pem + " " + endpoint.tls.key_pem);
  });
  loop.advance(10min);
  EXPECT_TRUE(changes.empty());
  files["/etc/k/tls.crt"] = "CERT2";
  files.erase("/etc/k/tls.key");
  loop.advance(5min);
  EXPECT_TRUE(changes.empty()) << "in the middle of a rotation";
  EXPECT_EQ((*c)->endpoint().tls.cert_pem, "CERT1");
  files["/etc/k/tls.key"] = "KEY2";
  loop.advance(5min);
  EXPECT_THAT(changes, ElementsAre("CA CERT2 KEY2"));

  files["/etc/k/tls.crt"] = "CERT3";
  files["/etc/k/tls.key"] = "KEY3";
  const auto result = refresh(**c);
  ASSERT_TRUE(result && *result) << "one that is refused is read at once";
  EXPECT_EQ(changes.back(), "CA CERT3 KEY3");
}

TEST_F(CredentialsTest, ARefusedTokenIsReadAtOnce) {
  files["/etc/k/ca.crt"] = "CA1";
  files["/var/token"] = "t1";
  const auto c = open(kConfig);
  files["/var/token"] = "t2";
  const auto result = refresh(**c);
  ASSERT_TRUE(result && *result);
  EXPECT_EQ((*c)->token(), "t2");
}

TEST_F(CredentialsTest, AConstantCannotBeRenewed) {
  const auto c = open(kConfig, "two");
  const auto result = refresh(**c);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->error().code, ErrorCode::kUnauthorized);
}

TEST_F(CredentialsTest, InAPod) {
  EXPECT_EQ(in_cluster_credentials(loop, system).error().code, ErrorCode::kNotFound);
  env["KUBERNETES_SERVICE_HOST"] = "fd00::1";
  env["KUBERNETES_SERVICE_PORT"] = "443";
  const std::string base = "/var/run/secrets/kubernetes.io/serviceaccount/";
  files[base + "token"] = "t\n";
  files[base + "ca.crt"] = "CA";
  files[base + "namespace"] = "slinky";
  const auto c = in_cluster_credentials(loop, system);
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ((*c)->endpoint().host, "fd00::1");
  EXPECT_EQ((*c)->endpoint().scheme, "https");
  EXPECT_EQ((*c)->token(), "t");
  EXPECT_EQ((*c)->default_namespace(), "slinky");
}

std::string exec_config(const std::string& more = "", const std::string& ca = "certificate-authority-data: Q0E=") {
  return "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
         "clusters: [{name: c, cluster: {server: 'https://h:6443', " +
         ca +
         "}}]\n"
         "users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, args: [a, b], "
         "env: [{name: N, value: V}], provideClusterInfo: true" +
         more + "}}}]";
}

TEST_F(CredentialsTest, APluginIsRunWhenATokenIsNeeded) {
  const auto c = open(exec_config());
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ((*c)->token(), std::nullopt);
  EXPECT_TRUE(commands.empty());
  output = R"({"kind":"ExecCredential","status":{"token":"t1","expirationTimestamp":"2026-01-02T03:14:05Z"}})";
  int done = 0;
  for (int i = 0; i < 3; ++i) (*c)->refresh([&](const core::Result<void>& r) { done += r ? 1 : 0; });
  loop.run_ready();
  EXPECT_EQ(done, 3);
  ASSERT_EQ(commands.size(), 1U) << "those who ask at once share it";
  EXPECT_THAT(commands[0].argv, ElementsAre("/etc/k/./plugin", "a", "b"));
  EXPECT_EQ(commands[0].env[0], (std::pair<std::string, std::string>("N", "V")));
  const core::Json info = core::Json::parse(commands[0].env[1].second);
  EXPECT_EQ(info["spec"]["cluster"]["server"], "https://h:6443");
  EXPECT_EQ(info["spec"]["interactive"], false);
  EXPECT_EQ((*c)->token(), "t1");
  loop.advance(595s);
  EXPECT_EQ((*c)->token(), std::nullopt) << "it is about to end";
}

TEST_F(CredentialsTest, APluginMayGiveACertificate) {
  const auto c = open(exec_config());
  int changes = 0;
  (*c)->on_change([&](const net::Endpoint&) { ++changes; });
  output = R"({"status":{"clientCertificateData":"CERT","clientKeyData":"KEY"}})";
  ASSERT_TRUE(*refresh(**c));
  EXPECT_EQ((*c)->endpoint().tls.cert_pem, "CERT");
  EXPECT_EQ((*c)->token(), "");
  EXPECT_EQ(changes, 1);
}

TEST_F(CredentialsTest, AReadOfTheAuthorityLeavesThePluginsToken) {
  files["/etc/k/ca.crt"] = "CA1";
  const auto c = open(exec_config("", "certificate-authority: ca.crt"));
  ASSERT_TRUE(c) << c.error().message;
  std::vector<std::string> changes;
  (*c)->on_change([&](const net::Endpoint& endpoint) { changes.push_back(endpoint.tls.ca_pem); });
  output = R"({"status":{"token":"t1"}})";
  ASSERT_TRUE(*refresh(**c));
  files["/etc/k/ca.crt"] = "CA2";
  loop.advance(5min);
  EXPECT_THAT(changes, ElementsAre("CA2"));
  EXPECT_EQ((*c)->token(), "t1");
}

TEST_F(CredentialsTest, WhoWaitsForThePluginIsNotAnsweredByAReadOfFiles) {
  files["/etc/k/ca.crt"] = "CA1";
  const auto c = open(exec_config("", "certificate-authority: ca.crt"));
  output = core::fail(ErrorCode::kUnavailable, "log in first");
  std::vector<core::Result<void>> answers;
  loop.after(5min, [&] { (*c)->refresh([&](const core::Result<void>& r) { answers.push_back(r); }); });
  const int before = reads;
  loop.advance(5min);
  EXPECT_EQ(reads, before + 1) << "in the same turn of the loop";
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_FALSE(answers[0]);
}

TEST_F(CredentialsTest, APluginThatFailsSaysWhy) {
  const auto c = open(exec_config(", installHint: get it there"));
  output = core::fail(ErrorCode::kUnavailable, "exit status 1: log in first");
  const auto result = refresh(**c);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->error().message, "credential plugin /etc/k/./plugin: exit status 1: log in first (get it there)");
  output = "{}";
  EXPECT_FALSE(*refresh(**c));
}

TEST_F(CredentialsTest, APluginThatNeedsATerminalIsRefused) {
  EXPECT_EQ(open(exec_config(", interactiveMode: Always")).error().code, ErrorCode::kUnsupported);
}

TEST(RealSystemTest, RunsPrograms) {
  const System system = real_system();
  const auto said = system.run({{"/bin/sh", "-c", "cat; printf '%s' \"$X\"; printf err >&2"}, {{"X", "y"}}, 60s});
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(*said, "y");
  const auto failed = system.run({{"/bin/sh", "-c", "echo bad >&2; exit 3"}, {}, 60s});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "exit status 3: bad\n");
  EXPECT_FALSE(system.run({{"/nowhere/at-all"}, {}, 60s}));
  EXPECT_THAT(system.run({{"/bin/sh", "-c", "sleep 60"}, {}, 50ms}).error().message, HasSubstr("not done in time"));
}

}  // namespace
}  // namespace kube
