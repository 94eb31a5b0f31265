#include "enlist/coordinator/slurm_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/manual_loop.hpp"
#include "enlist/coordinator/testing/fakes.hpp"

namespace enlist {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

struct SlurmFilesTest : ::testing::Test {
  SlurmFilesTest() {
    host.files["/etc/slurm/slurm.conf"] = "ClusterName=c\nSlurmctldHost=h\nInclude sets.conf\nInclude gone.conf\n";
    host.files["/etc/slurm/sets.conf"] = "NodeSet=a Feature=a\nInclude more.conf\n";
    host.files["/etc/slurm/more.conf"] = "NodeSet=b Feature=b\nInclude sets.conf\n";
    host.files["/etc/slurm/slurm-enlist.conf"] = "NodeSet=c Feature=c\n";
    host.files["/etc/slurm/slurm.key"] = "first secret";
  }
  core::ManualLoop loop;
  testing::FakeHost host;
  testing::KeptLog log;
  int changes = 0;
  SlurmFiles files{loop, log, host, "/etc/slurm/slurm.conf", [this] { ++changes; }};
};

TEST_F(SlurmFilesTest, IncludeFilesAreReadToo) {
  files.start();
  loop.advance(0s);
  ASSERT_TRUE(files.facts()) << files.facts().error().message;
  EXPECT_THAT(files.facts()->node_sets, UnorderedElementsAre("a", "b", "c"));
}

TEST_F(SlurmFilesTest, ChangesAreSeen) {
  files.start();
  loop.advance(1min);
  EXPECT_EQ(changes, 1);
  const std::string before = files.key_revision().value_or("");
  host.files["/etc/slurm/slurm.key"] = "second secret";
  loop.advance(10s);
  EXPECT_EQ(changes, 2);
  EXPECT_NE(files.key_revision().value_or(before), before);
  EXPECT_EQ(files.key_file(), "slurm.key");
  files.stop();
  host.files["/etc/slurm/slurm.conf"] = "";
  loop.advance(1min);
  EXPECT_EQ(changes, 2);
}

TEST_F(SlurmFilesTest, KeysOfSlurmJwksWin) {
  const std::string keys = R"({"keys": [{"alg": "HS256", "kty": "oct", "kid": "a", "k": "MDEyMzQ1Njc4OWFiY2RlZg=="}]})";
  host.files["/etc/slurm/slurm.jwks"] = keys;
  core::Result<AuthKey> key = read_auth_key(host, files.slurm_conf());
  ASSERT_TRUE(key) << key.error().message;
  EXPECT_EQ(key->file, "slurm.jwks");
  EXPECT_EQ(key->content, keys);
  // slurmd exits if it starts with such a file, so the coordinator must not send it to hosts.
  host.files["/etc/slurm/slurm.jwks"] = keys.substr(0, 40);
  EXPECT_EQ(read_auth_key(host, files.slurm_conf()).error().message, "the auth key: slurm.jwks is not JSON");
  // An error of reading slurm.jwks does not count as a missing file, for which slurm.key would be read.
  host.unreadable = "/etc/slurm/slurm.jwks";
  EXPECT_EQ(read_auth_key(host, files.slurm_conf()).error().code, core::ErrorCode::kUnavailable);
}

TEST_F(SlurmFilesTest, WhatIsMissingIsAnErrorAndNamedInTheLog) {
  host.files.erase("/etc/slurm/slurm.key");
  host.files.erase("/etc/slurm/slurm.conf");
  files.start();
  loop.advance(0s);
  EXPECT_FALSE(files.facts());
  EXPECT_EQ(files.key_revision().error().message, "there is neither slurm.jwks nor slurm.key in /etc/slurm");
  EXPECT_THAT(log.text, HasSubstr("/etc/slurm/slurm.conf"));
  EXPECT_THAT(log.text, Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace enlist
