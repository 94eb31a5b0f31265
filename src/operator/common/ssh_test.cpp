#include "operator/common/ssh.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace op {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string config(std::string_view extra) {
  return sshd_config("LoginSet", extra, {"/keys/rsa"});
}

constexpr std::string_view kOurs =
    "Include /etc/ssh/sshd_config.d/*.conf\n"
    "UsePAM yes\n"
    "X11Forwarding yes\n"
    "Subsystem sftp internal-sftp\n"
    "HostKey /keys/rsa\n";

TEST(SshdConfig, HasOursAloneWhereUsersSayNothing) {
  EXPECT_EQ(config(""), "# Made by slurm-operator from the LoginSet.\n" + std::string(kOurs));
}

TEST(SshdConfig, HasTheUsersLinesFirst) {
  EXPECT_EQ(config("MaxSessions 7"),
            "# Made by slurm-operator from the LoginSet.\n# extraSshdConfig\nMaxSessions 7\n\n" + std::string(kOurs));
}

TEST(SshdConfig, NoBlockOfUsersTakesOursIn) {
  EXPECT_EQ(config("Port 2222\n  match User bob\n    X11Forwarding no\nMatch User eve\n"),
            "# Made by slurm-operator from the LoginSet.\n"
            "# extraSshdConfig\nPort 2222\n\n" +
                std::string(kOurs) +
                "\n# extraSshdConfig\n  match User bob\n    X11Forwarding no\nMatch User eve\n\n")
      << "what a block says of its users is no reason to leave ours out";
}

TEST(SshdConfig, LeavesOutWhatUsersSayForAll) {
  EXPECT_THAT(config("SUBSYSTEM\tSFTP /usr/lib/sftp-server\nusepam=no\nHostKey /mine\n x11forwarding = no"),
              AllOf(Not(HasSubstr("internal-sftp")), Not(HasSubstr("UsePAM yes")), Not(HasSubstr("/keys/rsa")),
                    Not(HasSubstr("X11Forwarding yes"))));
  EXPECT_THAT(config("Match User bob\nBanner none\nMatch all\nUsePAM no"), Not(HasSubstr("UsePAM yes")));
  EXPECT_THAT(config("Subsystem \"sftp\" x"), Not(HasSubstr("internal-sftp")));
  EXPECT_THAT(config("# UsePAM no\nSubsystem other x"),
              AllOf(HasSubstr("\nUsePAM yes"), HasSubstr("internal-sftp")));
}

}  // namespace
}  // namespace op
