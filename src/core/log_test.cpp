#include "core/log.hpp"

#include <gtest/gtest.h>

namespace core {
namespace {

constexpr WallTime kTime{Duration{1767323045678}};

TEST(Log, LineIsJsonWithTimeLevelMessageFirst) {
  EXPECT_EQ(format_log_line(kTime, Level::kWarn, "two\nlines", {{"z", 1}, {"a", "x\"y"}}),
            R"({"ts":"2026-01-02T03:04:05.678000Z","level":"warn","msg":"two\nlines","z":1,"a":"x\"y"})");
}

TEST(Log, ErrorField) {
  const Field field = error_field({ErrorCode::kConflict, "pods cpu-0", 409, "Conflict", {}});
  EXPECT_EQ(field.key, "error");
  EXPECT_EQ(field.value, (Json{{"code", "Conflict"}, {"message", "pods cpu-0"}, {"status", 409}, {"reason", "Conflict"}}));
}

TEST(Log, ParsesLevels) {
  for (Level level : {Level::kDebug, Level::kInfo, Level::kWarn, Level::kError})
    EXPECT_EQ(*parse_level(to_string(level)), level);
  EXPECT_FALSE(parse_level("loud"));
}

TEST(Log, WritesOnlyFromItsLevelOn) {
  const SystemClock clock;
  SpdLogger logger(Level::kWarn, clock);
  testing::internal::CaptureStderr();
  logger.info("quiet");
  logger.error("loud {}", {{"n", 3}});
  const std::string out = testing::internal::GetCapturedStderr();
  EXPECT_EQ(out.find("quiet"), std::string::npos);
  EXPECT_NE(out.find(R"("level":"error","msg":"loud {}","n":3})"), std::string::npos) << out;
}

}  // namespace
}  // namespace core
