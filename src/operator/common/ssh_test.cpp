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
                std::string(kOurs) + "\n# extraSshdConfig\n  match User bob\n    X11Forwarding no\nMatch User eve\n\n")
      << "what a block says of its users is no reason to leave ours out";
}

TEST(SshdConfig, LeavesOutWhatUsersSayForAll) {
  EXPECT_THAT(config("SUBSYSTEM\tsftp /usr/lib/sftp-server\nusepam=no\nHostKey /mine\n x11forwarding = no"),
              AllOf(Not(HasSubstr("internal-sftp")), Not(HasSubstr("UsePAM yes")), Not(HasSubstr("/keys/rsa")),
                    Not(HasSubstr("X11Forwarding yes"))));
  EXPECT_THAT(config("Match User bob\nBanner none\nMatch all\nUsePAM no"), Not(HasSubstr("UsePAM yes")));
  EXPECT_THAT(config("Subsystem \"sftp\" x"), Not(HasSubstr("internal-sftp")));
  EXPECT_THAT(config("# UsePAM no\nSubsystem other x"), AllOf(HasSubstr("\nUsePAM yes"), HasSubstr("internal-sftp")));
}

TEST(AuthorizedKeys, ALineThatIsNoKeyIsFound) {
  const std::string key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBF5ZZYSmS3vAG9iIHqz2oM6ydhGsuHcjLcrhR0VYFXo";
  EXPECT_EQ(bad_key_line(""), 0);
  EXPECT_EQ(bad_key_line("# mine\n\n" + key + "\n\t" + key + " alice@home\r\n"), 0);
  EXPECT_EQ(bad_key_line("from=\"10.0.0.0/8\",command=\"echo \\\"a b\\\"\" " + key + " me"), 0);
  EXPECT_EQ(bad_key_line("sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAIA=="), 0);
  EXPECT_EQ(bad_key_line(key + "\nssh-ed25519 AAAA me"), 2);
  EXPECT_EQ(bad_key_line("ssh-rsa " + key.substr(12)), 1) << "a key of another type";
  EXPECT_EQ(bad_key_line("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjE\n"), 1);
  EXPECT_EQ(bad_key_line("ssh-ed25519"), 1);
}

}  // namespace
}  // namespace op
