#include "core/clock.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace core {
namespace {

TEST(Clock, WritesBothForms) {
  const WallTime t{Duration{1767323045678}};
  EXPECT_EQ(format_rfc3339(t), "2026-01-02T03:04:05Z");
  EXPECT_EQ(format_rfc3339_micro(t), "2026-01-02T03:04:05.678000Z");
}

TEST(Clock, ReadsOffsetsAndFractions) {
  EXPECT_EQ(parse_rfc3339("2026-01-02T03:04:05Z")->since_epoch.count(), 1767323045000);
  EXPECT_EQ(parse_rfc3339("2026-01-02T05:34:05.25+02:30")->since_epoch.count(), 1767323045250);
  EXPECT_EQ(parse_rfc3339("2026-01-01t22:04:05.678901-05:00")->since_epoch.count(), 1767323045678);
  EXPECT_EQ(parse_rfc3339("1969-12-31T23:59:59Z")->since_epoch.count(), -1000);
}

TEST(Clock, RefusesWhatIsNoTime) {
  for (const char* text : {"", "2026-01-02", "2026-13-02T03:04:05Z", "2026-02-30T03:04:05Z", "2026-01-02T24:04:05Z",
                           "2026-01-02T03:04:05", "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05Zx", "2026-01-02T03:04:05+25:00",
                           "0026-1-02T03:04:05Z", "2026-01-02T03:61:05Z"}) {
    const auto t = parse_rfc3339(text);
    ASSERT_FALSE(t) << text;
    EXPECT_EQ(t.error().code, ErrorCode::kInvalid);
  }
}

RC_GTEST_PROP(Clock, RoundTrip, ()) {
  const WallTime t{Duration{*rc::gen::inRange<long long>(-60'000'000'000'000, 250'000'000'000'000)}};
  RC_ASSERT(parse_rfc3339(format_rfc3339_micro(t))->since_epoch.count() == t.since_epoch.count());
  const auto seconds = parse_rfc3339(format_rfc3339(t));
  RC_ASSERT(t - *seconds >= Duration{0});
  RC_ASSERT(t - *seconds < Duration{1000});
}

}  // namespace
}  // namespace core
