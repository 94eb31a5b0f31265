#include "operator/nodeset/schedule.hpp"

#include <gtest/gtest.h>

namespace op::nodeset {
namespace {

using namespace std::chrono_literals;

core::WallTime at(const char* text) {
  return core::parse_rfc3339(text).value();
}

Schedule schedule(const char* start, core::Duration duration, std::vector<std::string> flags = {}) {
  api::ScheduledUpdate spec;
  spec.start_time = at(start);
  spec.duration = duration;
  spec.flags = std::move(flags);
  return read_schedule(spec);
}

std::string window(const Schedule& schedule, const char* time) {
  const std::optional<Window> found = schedule.window_at(at(time));
  return found ? to_text(*found) : "over";
}

slurm::Reservation reservation(const char* start, const char* end, std::set<std::string, std::less<>> flags = {}) {
  flags.insert({"MAINT", "IGNORE_JOBS", "SPEC_NODES"});
  return {"x", "slurm", {"cpu-0"}, false, std::move(flags), at(start), at(end)};
}

TEST(Schedule, OnceIsOnce) {
  const Schedule once = schedule("2026-01-02T03:00:00Z", 90min);
  EXPECT_EQ(window(once, "2026-01-01T00:00:00Z"), "from 2026-01-02T03:00:00Z to 2026-01-02T04:30:00Z");
  EXPECT_EQ(window(once, "2026-01-02T04:29:59Z"), "from 2026-01-02T03:00:00Z to 2026-01-02T04:30:00Z");
  EXPECT_EQ(window(once, "2026-01-02T04:30:00Z"), "over");
}

TEST(Schedule, Recurs) {
  const Schedule daily = schedule("2026-01-02T03:00:00Z", 1h, {"daily"});
  EXPECT_EQ(window(daily, "2025-12-01T00:00:00Z"), "from 2026-01-02T03:00:00Z to 2026-01-02T04:00:00Z");
  EXPECT_EQ(window(daily, "2026-01-02T04:00:00Z"), "from 2026-01-03T03:00:00Z to 2026-01-03T04:00:00Z");
  EXPECT_EQ(window(daily, "2026-03-04T03:30:00Z"), "from 2026-03-04T03:00:00Z to 2026-03-04T04:00:00Z");
  // 2026-01-02 is a Friday.
  EXPECT_EQ(window(schedule("2026-01-02T03:00:00Z", 1h, {"WEEKDAY"}), "2026-01-02T05:00:00Z"),
            "from 2026-01-05T03:00:00Z to 2026-01-05T04:00:00Z");
  EXPECT_EQ(window(schedule("2026-01-02T03:00:00Z", 1h, {"WEEKEND"}), "2026-01-02T03:30:00Z"),
            "from 2026-01-03T03:00:00Z to 2026-01-03T04:00:00Z");
  EXPECT_EQ(window(schedule("2026-01-02T03:00:00Z", 1h, {"WEEKLY"}), "2026-01-02T05:00:00Z"),
            "from 2026-01-09T03:00:00Z to 2026-01-09T04:00:00Z");
  EXPECT_EQ(window(schedule("2026-01-02T03:00:00Z", 5min, {"HOURLY"}), "2026-01-02T05:05:00Z"),
            "from 2026-01-02T06:00:00Z to 2026-01-02T06:05:00Z");
}

TEST(Schedule, SaysWhatIsWrong) {
  EXPECT_EQ(schedule("2026-01-02T03:00:00Z", 1h, {"MAINT", "IGNORE_JOBS", "FLEX", "HOURLY"}).problem,
            "duration: must be shorter than the time from one window to the next");
  EXPECT_NE(schedule("2026-01-02T03:00:00Z", 1h, {"REPLACE"}).problem.find("REPLACE is not one of"), std::string::npos);
  EXPECT_NE(schedule("2026-01-02T03:00:00Z", 1h, {"DAILY", "WEEKLY"}).problem, "");
  EXPECT_NE(schedule("2026-01-02T23:00:00Z", 2h, {"WEEKEND"}).problem, "") << "it ends on the next day";
  EXPECT_EQ(schedule("2026-01-02T23:00:00Z", 1h, {"WEEKEND"}).problem, "");
  EXPECT_EQ(read_schedule({}).problem, "startTime: required");
}

TEST(Schedule, KnowsItsReservation) {
  const Schedule once = schedule("2026-01-02T03:00:00Z", 90min, {"FLEX"});
  EXPECT_TRUE(once.made(reservation("2026-01-02T03:00:00Z", "2026-01-02T04:30:00Z", {"FLEX"})));
  EXPECT_FALSE(once.made(reservation("2026-01-02T03:00:00Z", "2026-01-02T04:30:00Z"))) << "other flags";
  EXPECT_FALSE(once.made(reservation("2026-01-02T03:00:00Z", "2026-01-02T04:29:00Z", {"FLEX"}))) << "shorter";
  EXPECT_FALSE(once.made(reservation("2026-01-02T02:59:00Z", "2026-01-02T04:30:00Z", {"FLEX"}))) << "earlier";
  EXPECT_TRUE(once.made(reservation("2026-01-02T03:10:30Z", "2026-01-02T04:29:30Z", {"FLEX"}))) << "made late";
  const Schedule daily = schedule("2026-01-02T03:00:00Z", 1h, {"DAILY"});
  EXPECT_TRUE(daily.made(reservation("2026-02-02T03:00:00Z", "2026-02-02T04:00:00Z", {"DAILY"})));
  EXPECT_FALSE(daily.made(reservation("2026-02-02T03:00:00Z", "2026-02-02T04:00:00Z"))) << "once";
  EXPECT_FALSE(daily.made(reservation("2026-02-02T03:30:00Z", "2026-02-02T04:30:00Z", {"DAILY"}))) << "at another hour";
}

}  // namespace
}  // namespace op::nodeset
