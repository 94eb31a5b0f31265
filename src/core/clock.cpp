#include "core/clock.hpp"

#include <fmt/format.h>

#include <ctime>
#include <optional>

namespace core {
namespace {

using std::chrono::days;
using std::chrono::milliseconds;
using std::chrono::sys_days;

/// Reads exactly `n` digits at `at` and advances `at`. Returns -1 if fewer digits follow.
int read_digits(std::string_view text, std::size_t& at, std::size_t n) {
  if (at + n > text.size()) return -1;
  int value = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const char c = text[at + i];
    if (c < '0' || c > '9') return -1;
    value = value * 10 + (c - '0');
  }
  at += n;
  return value;
}

bool read_char(std::string_view text, std::size_t& at, char want) {
  if (at >= text.size() || (text[at] | 0x20) != (want | 0x20)) return false;
  ++at;
  return true;
}

struct Civil {
  std::string seconds;  ///< "2026-01-02T03:04:05"
  long long millis = 0;
};

Civil civil(WallTime t) {
  const auto day = std::chrono::floor<days>(t.since_epoch);
  const std::chrono::year_month_day date{sys_days{day}};
  const std::chrono::hh_mm_ss time{t.since_epoch - day};
  return {fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                      static_cast<unsigned>(date.day()), time.hours().count(), time.minutes().count(), time.seconds().count()),
          std::chrono::duration_cast<milliseconds>(time.subseconds()).count()};
}

/// Returns the offset from UTC at the end of the text, in minutes; nullopt if it is malformed.
std::optional<int> read_offset(std::string_view text, std::size_t& at) {
  if (read_char(text, at, 'Z')) return 0;
  if (at >= text.size() || (text[at] != '+' && text[at] != '-')) return std::nullopt;
  const int sign = text[at++] == '-' ? -1 : 1;
  const int hours = read_digits(text, at, 2);
  if (!read_char(text, at, ':')) return std::nullopt;
  const int minutes = read_digits(text, at, 2);
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return std::nullopt;
  return sign * (hours * 60 + minutes);
}

/// Returns the milliseconds of ".123456"; 0 without a fraction; nullopt if it is malformed.
std::optional<int> read_fraction(std::string_view text, std::size_t& at) {
  if (at >= text.size() || text[at] != '.') return 0;
  ++at;
  int millis = 0;
  int scale = 100;
  const std::size_t start = at;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    millis += (text[at] - '0') * scale;
    scale /= 10;
  }
  if (at == start) return std::nullopt;
  return millis;
}

}  // namespace

MonoTime SystemClock::mono() const {
  timespec time{};
  clock_gettime(CLOCK_BOOTTIME, &time);
  return {Duration{time.tv_sec * 1000 + time.tv_nsec / 1'000'000}};
}

WallTime SystemClock::wall() const {
  return {std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch())};
}

WallTime whole_seconds(WallTime t) {
  return {std::chrono::floor<std::chrono::seconds>(t.since_epoch)};
}

std::string format_rfc3339(WallTime t) {
  return civil(t).seconds + "Z";
}

std::string format_rfc3339_micro(WallTime t) {
  const Civil c = civil(t);
  return fmt::format("{}.{:03}000Z", c.seconds, c.millis);
}

Result<WallTime> parse_rfc3339(std::string_view text) {
  const auto bad = [&] { return fail(ErrorCode::kInvalid, fmt::format("not an RFC 3339 time: \"{}\"", text.substr(0, 40))); };
  std::size_t at = 0;
  const int year = read_digits(text, at, 4);
  if (year < 0 || !read_char(text, at, '-')) return bad();
  const int month = read_digits(text, at, 2);
  if (month < 1 || !read_char(text, at, '-')) return bad();
  const int day = read_digits(text, at, 2);
  if (day < 1 || !read_char(text, at, 'T')) return bad();
  const int hour = read_digits(text, at, 2);
  if (hour < 0 || hour > 23 || !read_char(text, at, ':')) return bad();
  const int minute = read_digits(text, at, 2);
  if (minute < 0 || minute > 59 || !read_char(text, at, ':')) return bad();
  const int second = read_digits(text, at, 2);
  if (second < 0 || second > 60) return bad();  // 60: a leap second
  const std::optional<int> millis = read_fraction(text, at);
  const std::optional<int> offset = millis ? read_offset(text, at) : std::nullopt;
  if (!offset || at != text.size()) return bad();

  const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month{static_cast<unsigned>(month)},
                                         std::chrono::day{static_cast<unsigned>(day)}};
  if (!date.ok()) return bad();
  const auto since_epoch = sys_days{date}.time_since_epoch() + std::chrono::hours{hour} +
                           std::chrono::minutes{minute - *offset} + std::chrono::seconds{second} + milliseconds{*millis};
  return WallTime{std::chrono::duration_cast<Duration>(since_epoch)};
}

}  // namespace core
