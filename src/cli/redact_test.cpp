#include "cli/redact.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "cli/testing/objects.hpp"
#include "core/base64.hpp"

namespace cli {
namespace {

using core::Json;
using testing::HasSubstr;
using testing::Not;

std::string shown(std::string_view text) {
  return Redactor().text(text);
}

TEST(Redact, PasswordsInConfigurationAndLogs) {
  EXPECT_EQ(shown("StoragePass=hunter2\nStorageHost=db"), "StoragePass=(redacted)\nStorageHost=db");
  EXPECT_EQ(shown("AccountingStoragePass = 'two words'"), "AccountingStoragePass = '(redacted)'");
  EXPECT_EQ(shown(R"({"password":"ab","user":"x"})"), R"x({"password":"(redacted)","user":"x"})x");
  EXPECT_EQ(shown("{\"password\":\"a\\\"b\",\"user\":1}"), "{\"password\":\"(redacted)\",\"user\":1}");
  EXPECT_EQ(shown("\"{\\\"password\\\":\\\"ab\\\",\\\"user\\\":1}\""),
            "\"{\\\"password\\\":\\\"(redacted)\\\",\\\"user\\\":1}\"");
  EXPECT_EQ(shown("db_password: hunter2"), "db_password: (redacted)");
  EXPECT_EQ(shown("mysql --password hunter2 -h db"), "mysql --password (redacted) -h db");
  EXPECT_EQ(shown("SLURM_JWT=abc.def"), "SLURM_JWT=(redacted)");
  EXPECT_EQ(shown("client_secret=x;next=y"), "client_secret=(redacted)") << "a value may have any character";
}

TEST(Redact, ValuesWithoutQuotesEndAtASpace) {
  EXPECT_EQ(shown("a ProfileInfluxDBPass=xY)7&k, b"), "a ProfileInfluxDBPass=(redacted) b");
  for (const char c : std::string(",;&)]}\"'"))
    EXPECT_EQ(shown(std::string("x StoragePass=a") + c + "b StorageHost=db"), "x StoragePass=(redacted) StorageHost=db") << c;
  EXPECT_EQ(shown("curl -H 'Authorization: Bearer a,b'"), "curl -H 'Authorization: Bearer (redacted)");
}

TEST(Redact, ConfigurationOfLdap) {
  EXPECT_EQ(shown("[domain/x]\nldap_default_authtok = two words\nldap_uri = ldap://x"),
            "[domain/x]\nldap_default_authtok = (redacted)\nldap_uri = ldap://x");
  EXPECT_EQ(shown("  bindpw hunter2\nrootpw\t{SSHA}x\nbase dc=x"), "  bindpw (redacted)\nrootpw\t(redacted)\nbase dc=x");
  EXPECT_EQ(shown("ldap_default_authtok_type = password"), "ldap_default_authtok_type = password");
}

TEST(Redact, ArgumentsInLists) {
  EXPECT_EQ(shown(R"(["--token", "abc", "-v"])"), R"x(["--token", "(redacted)", "-v"])x");
  EXPECT_EQ(shown(R"("[\"--token\",\"abc\"]")"), R"x("[\"--token\",\"(redacted)\"]")x");
  EXPECT_EQ(shown("args:\n- --token\n- abc\n- -v"), "args:\n- --token\n- (redacted)\n- -v");
  EXPECT_EQ(shown("usage: --token, --verbose"), "usage: --token, --verbose");
}

TEST(Redact, ManifestsInAnnotations) {
  const Json pod = json(R"({"kind": "Pod", "metadata": {"annotations": {
    "kapp.k14s.io/original": "{\"env\": [{\"name\": \"X\", \"value\": \"anything\"}]}",
    "kubectl.kubernetes.io/last-applied-configuration": "{\"value\": \"anything\"}",
    "example.com/other": "{\"env\": [{\"name\": \"X\", \"value\": \"anything\"}], \"image\": \"slurmd:2\"}",
    "example.com/plain": "kept"}}})");
  const Json out = Redactor().object(pod)["metadata"]["annotations"];
  EXPECT_THAT(out.dump(), Not(HasSubstr("anything")));
  EXPECT_EQ(out.size(), 2U);
  EXPECT_THAT(out["example.com/other"].get<std::string>(), HasSubstr("slurmd:2"));
  EXPECT_EQ(out["example.com/plain"], "kept");
}

TEST(Redact, TokensAndKeys) {
  EXPECT_EQ(shown("Authorization: Bearer abc123"), "Authorization: Bearer (redacted)");
  EXPECT_EQ(shown("got eyJhbGciOiJIUzI1NiJ9.eyJzdW4iOiJzbHVybSJ9.c2ln now"), "got (redacted) now");
  EXPECT_EQ(shown("-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----\nafter"), "(redacted)\nafter");
  EXPECT_EQ(shown("-----BEGIN PRIVATE KEY-----\nMIIE, cut"), "(redacted)");
  EXPECT_EQ(shown("mysql://slurm:hunter2@db:3306/acct"), "mysql://slurm:(redacted)@db:3306/acct");
}

TEST(Redact, LeavesWhatIsNoSecret) {
  for (const char* text :
       {"jwtKeyRef: {name: slurm-jwt-key, key: jwt.key}", "slurm.net/slurm-key-hash: abc", "https://example.com:6443/x",
        "passed: 3", "secretName: demo-slurm-key", "AuthAltParameters=jwt_key=/etc/slurm/jwt.key",
        "-----BEGIN CERTIFICATE-----\nMIIC\n-----END CERTIFICATE-----", "the token of alice has expired",
        "cpu-[0-3] drained: bad disk"}) {
    EXPECT_EQ(shown(text), text);
  }
}

TEST(Redact, KnownValuesGoWhereverTheyStand) {
  const Redactor redact({"s3cr3t-value\n", "line one of a key file\nline two of a key file"});
  EXPECT_EQ(redact.text("x s3cr3t-value y"), "x (redacted) y");
  EXPECT_EQ(redact.text(core::base64_encode("s3cr3t-value\n")), "(redacted)");
  EXPECT_EQ(redact.text("at line two of a key file."), "at (redacted).");
  EXPECT_EQ(Redactor({"on", "true"}).text("it is on, and true"), "it is on, and true") << "short values are words";
}

TEST(Redact, SecretsAreDescribed) {
  Json secret = json(R"({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {"name": "s", "namespace": "hpc",
    "managedFields": [], "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{\"data\": \"x\"}"}},
    "data": {"slurm.key": "aHVudGVyMg=="}})");
  const Json out = Redactor().object(secret, "salt");
  EXPECT_EQ(out["dataFacts"]["slurm.key"]["bytes"], 7);
  EXPECT_FALSE(out.contains("data"));
  EXPECT_THAT(out.dump(), Not(HasSubstr("aHVudGVyMg")));
  EXPECT_FALSE(out["metadata"]["annotations"].contains("kubectl.kubernetes.io/last-applied-configuration"));
  EXPECT_FALSE(out["metadata"].contains("managedFields"));
  EXPECT_NE(out["dataFacts"], Redactor().object(secret, "other")["dataFacts"]) << "hashes of one bundle say nothing in another";
}

TEST(Redact, ValuesOfEnvironmentVariablesGo) {
  const Json pod =
      json(R"({"kind": "Pod", "spec": {"containers": [{"name": "c", "args": ["--token", "abc", "--db-password=hunter2"],
    "env": [{"name": "X", "value": "anything"}, {"name": "POD_CPUS", "value": "4"},
            {"name": "Y", "valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}}]}]}})");
  const Json out = Redactor().object(pod);
  const Json& container = out["spec"]["containers"][0];
  EXPECT_EQ(container["env"][0]["value"], kRedacted);
  EXPECT_EQ(container["env"][1]["value"], "4");
  EXPECT_EQ(container["env"][2]["valueFrom"]["secretKeyRef"]["name"], "s");
  EXPECT_EQ(container["args"][0], "--token");
  EXPECT_EQ(container["args"][1], kRedacted);
  EXPECT_EQ(container["args"][2], "--db-password=(redacted)");
}

RC_GTEST_PROP(Redact, NoKnownValueIsLeft, (const std::string& before, const std::string& after)) {
  const auto value = *rc::gen::container<std::string>(12, rc::gen::inRange('!', '~'));
  const std::string out = Redactor({value}).text(before + value + after);
  RC_ASSERT(out.find(value) == std::string::npos);
}

}  // namespace
}  // namespace cli
