#include "core/ssh_key.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace core {
namespace {

using ::testing::StartsWith;

TEST(SshKey, HasTheNamesOfHostKeys) {
  EXPECT_EQ(ssh_key_type("rsa"), SshKeyType::kRsa);
  EXPECT_EQ(ssh_key_type("ecdsa"), SshKeyType::kEcdsa);
  EXPECT_EQ(ssh_key_type("ed25519"), SshKeyType::kEd25519);
  EXPECT_EQ(ssh_key_type("dsa"), std::nullopt);
}

// The expected key was written by ssh-keygen.
TEST(SshKey, OfASeedIsAlwaysTheSame) {
  const SshKeyPair pair = ssh_key_of_seed(std::string(32, 'a'), "login");
  EXPECT_EQ(pair.public_key, "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK8Go+MpFxTk81bBnJsVzRlR7G5mYqp3vgdUfyiTgzQd login\n");
  EXPECT_EQ(ssh_key_of_seed(std::string(32, 'a'), "login").private_key, pair.private_key);
  EXPECT_THROW(ssh_key_of_seed("short", ""), std::runtime_error);
}

TEST(SshKey, EachIsNew) {
  EXPECT_NE(make_ssh_key(SshKeyType::kEd25519, "").public_key, make_ssh_key(SshKeyType::kEd25519, "").public_key);
  EXPECT_NE(make_ssh_key(SshKeyType::kEcdsa, "").public_key, make_ssh_key(SshKeyType::kEcdsa, "").public_key);
  EXPECT_THAT(make_ssh_key(SshKeyType::kEcdsa, "").public_key, StartsWith("ecdsa-sha2-nistp256 "));
}

/// Returns the output of a command.
std::string output_of(const std::string& command) {
  std::string out;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return out;
  std::array<char, 4096> part{};
  while (fgets(part.data(), part.size(), pipe) != nullptr) out += part.data();
  pclose(pipe);
  return out;
}

// ssh-keygen derives the public key from the private one, so it has to read the whole file.
TEST(SshKey, IsReadByOpenssh) {
  if (output_of("command -v ssh-keygen").empty()) GTEST_SKIP() << "there is no ssh-keygen";
  const std::filesystem::path file = std::filesystem::temp_directory_path() /
                                     ("ssh_key_test-" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()));
  for (const SshKeyType type : {SshKeyType::kRsa, SshKeyType::kEcdsa, SshKeyType::kEd25519}) {
    // Only some keys contain a number whose highest bit is set, so several keys are tried.
    for (int i = 0; i < (type == SshKeyType::kRsa ? 1 : 8); ++i) {
      const SshKeyPair pair = make_ssh_key(type, "a comment");
      std::ofstream(file) << pair.private_key;
      std::filesystem::permissions(file, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
      EXPECT_EQ(output_of("ssh-keygen -y -P '' -f " + file.string()), pair.public_key);
    }
  }
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace core
