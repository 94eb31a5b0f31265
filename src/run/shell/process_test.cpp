#include "run/shell/process.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ctime>
#include <vector>

namespace run {
namespace {

TEST(ProcessTest, ReadsWhatThisProcessUses) {
  const ProcessUsage before = read_process_usage();
  EXPECT_LE(before.start_time_seconds, static_cast<double>(std::time(nullptr)) + 1);
  EXPECT_GT(before.start_time_seconds, static_cast<double>(std::time(nullptr)) - 24 * 3600);
  EXPECT_GT(before.resident_bytes, 1 << 20);
  EXPECT_GE(before.virtual_bytes, before.resident_bytes);
  EXPECT_GE(before.open_fds, 3);
  EXPECT_GE(before.max_fds, before.open_fds);

  const int extra = dup(0);
  const std::vector<char> touched(64U << 20U, 'x');
  const ProcessUsage after = read_process_usage();
  close(extra);
  EXPECT_EQ(after.open_fds, before.open_fds + 1);
  EXPECT_GE(after.resident_bytes, before.resident_bytes + (32 << 20)) << touched[1];
}

TEST(ProcessTest, RaisesTheLimitOfFileDescriptorsToTheHardOne) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 100;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  raise_fd_limit();
  EXPECT_EQ(read_process_usage().max_fds, static_cast<double>(before.rlim_max));
  setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace
}  // namespace run
