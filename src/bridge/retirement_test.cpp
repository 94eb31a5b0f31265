#include "bridge/retirement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "core/testing/manual_loop.hpp"

namespace bridge {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(RetirementTest, EndsWhenNothingHasBeenLeftThreeTimes) {
  core::ManualLoop loop;
  core::NullLogger log;
  std::optional<Left> left{{{"pod ns/p"}, {}}};
  int done = 0;
  Retirement retirement(
      loop, log, [&] { return left; }, [&] { ++done; });
  retirement.start();
  const auto after = [&](int seconds) {
    loop.advance(core::Duration{1000 * seconds});
    return done;
  };
  EXPECT_EQ(after(600), 0);
  left->names.clear();
  EXPECT_EQ(after(4), 0);
  left.reset();
  EXPECT_EQ(after(600), 0) << "unknown is not empty";
  left.emplace(Left{{}, "no route to host"});
  EXPECT_EQ(after(600), 0) << "nor is what Slurm does not tell";
  left.emplace();
  EXPECT_EQ(after(4), 0);
  EXPECT_EQ(after(2), 1);
  EXPECT_EQ(after(600), 1);
}

TEST(RetirementTest, LogsWhatIsLeftAndThatSlurmDoesNotAnswer) {
  struct Lines : core::Logger {
    std::vector<std::string> lines;
    void log(core::Level level, std::string_view message, std::vector<core::Field> fields) override {
      lines.push_back(core::format_log_line({}, level, message, fields));
    }
  } log;
  core::ManualLoop loop;
  Left left{{"pod ns/p", "node n"}, {}};
  Retirement retirement(
      loop, log, [&] { return left; }, [] {});
  retirement.start();
  const auto told = [&] {
    loop.advance(core::Duration{60000});
    return std::exchange(log.lines, {});
  };
  EXPECT_THAT(told(), ElementsAre(AllOf(HasSubstr("waits for these to end"), HasSubstr("pod ns/p, node n"))));
  EXPECT_THAT(told(), IsEmpty()) << "nothing has changed";
  left = {{"node n"}, "no route to host"};
  EXPECT_THAT(told(), ElementsAre(AllOf(HasSubstr("Slurm does not answer"), HasSubstr("clean up by hand"), HasSubstr("node n"),
                                        HasSubstr("no route to host"))));
  left.names.clear();
  EXPECT_THAT(told(), ElementsAre(HasSubstr("Slurm does not answer")));
}

}  // namespace
}  // namespace bridge
