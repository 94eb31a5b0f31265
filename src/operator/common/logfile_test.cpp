#include "operator/common/logfile.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "kube/client/credentials.hpp"

namespace op {
namespace {

/// If the sidecar ignored TERM, its pod would end only after the whole grace period, and only then would the next slurmctld
/// start.
TEST(Logfile, PrintsWhatSeveralDaemonsWriteAndEndsAtTerm) {
  const std::filesystem::path home = std::filesystem::path(::testing::TempDir()) / ("logfile-" + std::to_string(getpid()));
  std::filesystem::create_directories(home);
  const char* const script =
      "{ until [ -p \"$SOCKET\" ]; do sleep 0.01; done; echo first >\"$SOCKET\"; echo second >\"$SOCKET\"; } &\n"
      "timeout --foreground -s TERM -k 5 4 sh -c \"$1\"; echo \"ended with $?\"";
  kube::System::Command command;
  command.argv = {"/usr/bin/env", "SOCKET=" + (home / "log" / "daemon.log").string(), "sh", "-c", script, "sh", kLogfileScript};
  const core::Result<std::string> said = kube::real_system().run(command);
  std::filesystem::remove_all(home);
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(*said, "first\nsecond\nended with 124\n") << "137: it was killed";
}

}  // namespace
}  // namespace op
