#include "enlist/wire/identity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "net/certificate.hpp"

namespace enlist {
namespace {

namespace fs = std::filesystem;
using core::ErrorCode;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

class IdentityTest : public ::testing::Test {
 protected:
  IdentityTest() {
    std::string name = fs::temp_directory_path() / "identity_test.XXXXXX";
    folder = fs::path(mkdtemp(name.data())) / "state";
  }
  ~IdentityTest() override { fs::remove_all(folder.parent_path()); }

  [[nodiscard]] core::Result<Identity> load() const { return load_or_make_identity(folder, "host"); }
  [[nodiscard]] std::string text(const std::string& name) const {
    std::ifstream file(folder / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder / name) << text; }
  [[nodiscard]] std::set<std::string> names() const {
    std::set<std::string> out;
    for (const auto& entry : fs::directory_iterator(folder)) out.insert(entry.path().filename());
    return out;
  }
  [[nodiscard]] unsigned mode(const fs::path& path) const {
    struct stat about {};
    EXPECT_EQ(stat(path.c_str(), &about), 0);
    return about.st_mode & 07777U;
  }
  fs::path folder;
};

TEST_F(IdentityTest, IsMadeOnceAndReadAgain) {
  const auto made = load();
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->fingerprint, *net::fingerprint_of(made->cert_pem));
  EXPECT_TRUE(net::check_pair(made->cert_pem, made->key_pem));
  EXPECT_THAT(names(), UnorderedElementsAre("host.crt", "host.key"));
  EXPECT_EQ(mode(folder), 0700U);
  EXPECT_EQ(mode(folder / "host.key"), 0600U);

  const auto read = load();
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->cert_pem, made->cert_pem);
  EXPECT_EQ(read->key_pem, made->key_pem);
  EXPECT_EQ(read->fingerprint, made->fingerprint);
  EXPECT_NE(load_or_make_identity(folder, "admin")->fingerprint, made->fingerprint);
}

TEST_F(IdentityTest, ACrashBeforeTheCertificateKeepsTheKey) {
  const auto made = load();
  fs::remove(folder / "host.crt");
  const auto again = load();
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->key_pem, made->key_pem);
  EXPECT_EQ(again->fingerprint, made->fingerprint);
  EXPECT_EQ(load()->cert_pem, again->cert_pem);
}

TEST_F(IdentityTest, WhatIsThereIsNeverOverwritten) {
  ASSERT_TRUE(load());
  const std::string cert = text("host.crt"), key = text("host.key");
  const std::string other = net::make_self_signed("other").key;
  const auto refused = [&](const std::string& what) {
    const auto read = load();
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(read.error().message, HasSubstr(what));
    EXPECT_THAT(read.error().message, Not(HasSubstr(key.substr(40, 20))));
  };
  write("host.key", other);
  refused("the private key is not the certificate's");
  EXPECT_EQ(text("host.key"), other);
  write("host.key", "nonsense");
  refused("the private key is not the certificate's");
  fs::remove(folder / "host.crt");
  refused("host.key: the private key cannot be read");
  EXPECT_THAT(names(), UnorderedElementsAre("host.key"));
  write("host.key", "");
  refused("host.key: the private key cannot be read");
  EXPECT_THAT(names(), UnorderedElementsAre("host.key"));

  fs::remove(folder / "host.key");
  write("host.crt", cert);
  refused("host.key: is missing");
  write("host.crt", "nonsense");
  refused("host.key: is missing");
  EXPECT_THAT(names(), UnorderedElementsAre("host.crt"));
  write("host.key", key);
  refused("0644");
  fs::permissions(folder / "host.key", fs::perms::owner_read);
  refused("there is no certificate");
  fs::remove(folder / "host.crt");
  fs::create_directory(folder / "host.crt");
  refused("host.crt: is not a regular file");
}

TEST_F(IdentityTest, AKeyThatOthersCanReadIsRefused) {
  ASSERT_TRUE(load());
  fs::permissions(folder / "host.key", fs::perms::group_read, fs::perm_options::add);
  const auto read = load();
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(read.error().message, HasSubstr("host.key: has mode 0640, must be 0600"));
}

TEST_F(IdentityTest, AFolderThatCannotBeMadeIsNamed) {
  const auto read = load_or_make_identity(folder / "a" / "b", "host");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(read.error().message, HasSubstr("No such file or directory"));
  const auto nowhere = load_or_make_identity("/proc/self", "host");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, ErrorCode::kUnavailable);
}

TEST_F(IdentityTest, ManyAtOnceGetTheSame) {
  std::vector<std::string> found(8);
  std::vector<std::thread> threads;
  for (std::string& out : found) {
    threads.emplace_back([&] {
      const auto identity = load();
      out = identity ? identity->fingerprint : identity.error().message;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set(found.begin(), found.end()), std::set{load()->fingerprint});
  EXPECT_THAT(names(), UnorderedElementsAre("host.crt", "host.key"));
}

}  // namespace
}  // namespace enlist
