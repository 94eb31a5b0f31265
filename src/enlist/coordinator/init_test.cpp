#include "enlist/coordinator/init.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/testing/fake_random.hpp"
#include "enlist/coordinator/testing/fakes.hpp"

namespace enlist {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string kConf = "/etc/slurm/slurm.conf";
/// A slurm.conf that init can make ready for joining with some changes.
const std::string kText = R"(# The site's configuration.
ClusterName=site
SlurmctldHost=ctl
SlurmUser=slurm
AuthType=auth/slurm
CredType=cred/slurm
)";

struct InitTest : ::testing::Test {
  InitTest() {
    host.files[kConf] = kText;
    host.outputs = {{"getent passwd slurm-enlist", {2, "", ""}},
                    {"stat -c", {0, "644\n", ""}},
                    {"id -u slurm", {0, "64\n", ""}},
                    {"id -G slurm", {0, "64 70\n", ""}},
                    {"stat -L -c %a %u %g /etc/slurm/jwt_hs256.key", {0, "600 64 0\n", ""}},
                    {"realpath " + kConf, {0, kConf + "\n", ""}}};
  }
  int run(bool yes) {
    out.clear();
    return init_coordinator({.yes = yes}, host, random, [this](std::string_view text) { out += text; });
  }
  testing::FakeHost host;
  core::FakeRandom random;
  std::string out;
};

TEST_F(InitTest, WithoutYesItOnlySays) {
  EXPECT_EQ(run(false), 0);
  EXPECT_THAT(host.written, IsEmpty());
  EXPECT_THAT(host.ran, Each(AnyOf(HasSubstr("getent"), HasSubstr("realpath"))));
  EXPECT_THAT(out, HasSubstr("would change: make the system user slurm-enlist"));
  EXPECT_THAT(out, HasSubstr("would change: make the key /etc/slurm/jwt_hs256.key, which only slurm can read"));
  EXPECT_THAT(out, HasSubstr("would change: make /etc/slurm/slurm-enlist.conf"));
  EXPECT_THAT(out, HasSubstr("Include slurm-enlist.conf"));
  EXPECT_THAT(out, HasSubstr("run init again with --yes"));
}

TEST_F(InitTest, WithYesItWritesTheIncludeLineLast) {
  EXPECT_EQ(run(true), 0) << out;
  EXPECT_THAT(host.written, ElementsAre("/etc/slurm/jwt_hs256.key", "/etc/slurm/slurm-enlist.conf",
                                        "/etc/slurm/slurm.conf.before-enlist", kConf));
  EXPECT_EQ(host.modes["/etc/slurm/jwt_hs256.key"], 0600U);
  EXPECT_EQ(host.modes[kConf], 0644U);
  EXPECT_EQ(host.files["/etc/slurm/slurm.conf.before-enlist"], kText);
  EXPECT_THAT(host.files[kConf], HasSubstr("Include slurm-enlist.conf"));
  EXPECT_THAT(host.files[kConf], HasSubstr("# The site's configuration."));
  EXPECT_THAT(host.ran, Contains("chown slurm /etc/slurm/jwt_hs256.key"));
  EXPECT_THAT(host.ran, Contains(::testing::StartsWith("useradd --system")));
  EXPECT_THAT(out, Not(HasSubstr(host.files["/etc/slurm/jwt_hs256.key"])));
  EXPECT_THAT(host.ran, Not(Contains(HasSubstr(host.files["/etc/slurm/jwt_hs256.key"]))));
  EXPECT_THAT(out, HasSubstr("Now run: scontrol reconfigure"));

  host.written.clear();
  host.outputs.erase(host.outputs.begin());
  EXPECT_EQ(run(true), 0);
  EXPECT_THAT(host.written, IsEmpty()) << out;
  EXPECT_THAT(out,
              HasSubstr("Nothing has to be changed. Start the coordinator, if it does not run yet: systemctl enable --now"));
}

TEST_F(InitTest, ALinkIsNotReplacedByAFile) {
  host.outputs.back().second.out = "/srv/site/slurm.conf\n";
  host.outputs[1].second.out = "640\n";
  EXPECT_EQ(run(true), 0) << out;
  EXPECT_EQ(host.files[kConf], kText) << "the link is left alone";
  EXPECT_THAT(host.files["/srv/site/slurm.conf"], HasSubstr("Include slurm-enlist.conf"));
  EXPECT_EQ(host.modes["/srv/site/slurm.conf"], 0640U);
  EXPECT_EQ(host.files["/srv/site/slurm.conf.before-enlist"], kText);
  EXPECT_THAT(host.ran, Contains("stat -c %a /srv/site/slurm.conf"));
  EXPECT_EQ(host.owners_of["/srv/site/slurm.conf"], "/srv/site/slurm.conf") << "from the beginning, not by a second step";
  EXPECT_EQ(host.owners_of["/srv/site/slurm.conf.before-enlist"], "/srv/site/slurm.conf");
  EXPECT_TRUE(host.files.contains("/etc/slurm/slurm-enlist.conf")) << "slurmctld looks for it beside the link";
  EXPECT_THAT(out, HasSubstr("The old file is /srv/site/slurm.conf.before-enlist."));
}

TEST_F(InitTest, AKeyThatSlurmUserCannotReadIsMended) {
  ASSERT_EQ(run(true), 0) << out;
  const std::string key = host.files["/etc/slurm/jwt_hs256.key"];
  std::string& stat = host.outputs[4].second.out;
  for (const char* good : {"600 64 0\n", "640 0 70\n", "444 0 0\n"}) {
    stat = good;
    EXPECT_EQ(run(true), 0) << out;
    EXPECT_THAT(out, Not(HasSubstr("jwt_hs256.key"))) << good;
  }
  // The first one is the state after an init that was interrupted right after it had created the key.
  for (const char* bad : {"600 0 0\n", "200 64 0\n", "640 0 0\n", "604 0 70\n"}) {
    stat = bad;
    host.ran.clear();
    EXPECT_EQ(run(false), 0);
    EXPECT_THAT(out, HasSubstr("would change: make slurm the owner of /etc/slurm/jwt_hs256.key, which it cannot read")) << bad;
    EXPECT_THAT(host.ran, Not(Contains(HasSubstr("chown"))));
    EXPECT_EQ(run(true), 0) << out;
    EXPECT_THAT(host.ran, Contains("chown slurm /etc/slurm/jwt_hs256.key"));
    EXPECT_THAT(host.ran, Contains("chmod u+r /etc/slurm/jwt_hs256.key"));
    EXPECT_EQ(host.files["/etc/slurm/jwt_hs256.key"], key) << "its content is kept";
  }
  host.outputs[2].second = {1, "", "id: 'slurm': no such user\n"};
  EXPECT_EQ(run(true), 1);
  EXPECT_THAT(out, HasSubstr("id failed: id: 'slurm': no such user"));
}

TEST_F(InitTest, SeveralSlurmctldsMustShareTheFolder) {
  run(false);
  EXPECT_THAT(out, Not(HasSubstr("note:")));
  host.files[kConf] = kText + "SlurmctldHost=ctl2(10.0.0.2)\n";
  EXPECT_EQ(run(true), 0) << "it needs no answer";
  EXPECT_THAT(out, HasSubstr("note: slurm.conf names the SlurmctldHosts ctl,ctl2. They must share the folder /etc/slurm"));
  host.outputs.erase(host.outputs.begin());
  run(true);
  EXPECT_THAT(out, HasSubstr("note:")) << "also if nothing is to be changed";
}

TEST_F(InitTest, MungeIsRefusedByName) {
  host.files[kConf] = "ClusterName=site\nSlurmctldHost=ctl\nAuthType=auth/munge\n";
  EXPECT_EQ(run(true), 1);
  EXPECT_THAT(out, HasSubstr("auth/munge"));
  EXPECT_THAT(host.written, IsEmpty());
}

TEST_F(InitTest, SlurmrestdNeedsAUserOfItsOwn) {
  for (const char* user : {"root", "slurm"}) {
    std::string told;
    EXPECT_EQ(init_coordinator({.slurmrestd_user = user}, host, random, [&](std::string_view text) { told += text; }), 1);
    EXPECT_THAT(told, HasSubstr("slurmrestd refuses to run as root and as SlurmUser"));
  }
}

TEST_F(InitTest, WhatCannotBeReadChangesNothing) {
  host.files.erase(kConf);
  EXPECT_EQ(run(true), 1);
  EXPECT_THAT(out, HasSubstr("error: run this on the host of slurmctld"));
  host.files[kConf] = kText;
  host.unreadable = "/etc/slurm/jwt_hs256.key";
  EXPECT_EQ(run(true), 1);
  EXPECT_THAT(host.written, IsEmpty());
}

TEST_F(InitTest, AFailureIsNamedAndDoesNotTouchSlurmConf) {
  host.outputs.emplace_back("useradd", Output{9, "", "useradd: /etc/passwd is locked\n"});
  EXPECT_EQ(run(true), 1);
  EXPECT_THAT(out, HasSubstr("useradd failed: useradd: /etc/passwd is locked"));
  EXPECT_EQ(host.files[kConf], kText);
}

}  // namespace
}  // namespace enlist
