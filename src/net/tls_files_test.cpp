#include "net/tls_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/testing/manual_loop.hpp"

namespace net {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

/// The texts are not certificates. `use` decides whether they are valid.
class TlsFilesTest : public ::testing::Test {
 protected:
  TlsFilesTest() : folder(fs::temp_directory_path() / ("tls_files_test." + std::to_string(getpid()))) {
    fs::create_directories(folder);
    write("cert", "c1");
    write("key", "k1");
  }
  ~TlsFilesTest() override { fs::remove_all(folder); }
  TlsFilesTest(const TlsFilesTest&) = delete;
  TlsFilesTest& operator=(const TlsFilesTest&) = delete;

  void write(const std::string& name, const std::string& text) { std::ofstream(folder / name) << text; }
  void start() {
    ASSERT_TRUE(files.read());
    files.watch([this](const core::Error& error) { failures.push_back(error.message); });
  }

  fs::path folder;
  core::ManualLoop loop;
  std::vector<std::string> used, failures;
  bool refuse = false;
  TlsFiles files{loop,
                 {.cert_file = folder / "cert", .key_file = folder / "key", .interval = 10s},
                 [this](const Tls& tls) -> core::Result<void> {
                   if (refuse) return core::fail(core::ErrorCode::kInvalid, "no pair");
                   used.push_back(tls.cert_pem + " " + tls.key_pem);
                   return {};
                 }};
};

TEST_F(TlsFilesTest, WhatIsNewIsUsedOnce) {
  start();
  loop.advance(60s);
  EXPECT_THAT(used, IsEmpty()) << "nothing has changed";
  write("cert", "c2");
  write("key", "k2");
  loop.advance(9s);
  EXPECT_THAT(used, IsEmpty());
  loop.advance(1s);
  EXPECT_THAT(used, ElementsAre("c2 k2"));
  loop.advance(60s);
  EXPECT_THAT(used, ElementsAre("c2 k2"));
}

TEST_F(TlsFilesTest, WhatIsRefusedIsOfferedAgain) {
  start();
  refuse = true;
  write("cert", "c2");
  loop.advance(20s);
  EXPECT_THAT(failures, ElementsAre("no pair", "no pair"));
  refuse = false;
  loop.advance(10s);
  EXPECT_THAT(used, ElementsAre("c2 k1"));
}

TEST_F(TlsFilesTest, AFileThatIsGoneIsSaidAndReadAgain) {
  start();
  fs::remove(folder / "key");
  loop.advance(10s);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_THAT(failures[0], HasSubstr((folder / "key").string()));
  write("key", "k2");
  loop.advance(10s);
  EXPECT_THAT(used, ElementsAre("c1 k2"));
}

TEST_F(TlsFilesTest, AnAuthorityOfClientsIsReadToo) {
  write("ca", "a1");
  TlsFiles with_ca(loop, {.cert_file = folder / "cert", .key_file = folder / "key", .ca_file = folder / "ca"},
                   [](const Tls&) { return core::Result<void>{}; });
  EXPECT_EQ(with_ca.read()->ca_pem, "a1");
  EXPECT_EQ(files.read()->ca_pem, "");
}

}  // namespace
}  // namespace net
