// Code gets the time from a clock that is passed in: SystemClock in production, other clocks in tests and the simulator.
//
// Ages, deadlines and leases use mono(), which never jumps. Only times that users or servers read use wall().
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace core {

using Duration = std::chrono::milliseconds;

/// A point on the monotonic clock, in milliseconds from an arbitrary start.
struct MonoTime {
  Duration since_start{0};
  friend auto operator<=>(const MonoTime&, const MonoTime&) = default;
  friend MonoTime operator+(MonoTime t, Duration d) { return {t.since_start + d}; }
  friend MonoTime operator-(MonoTime t, Duration d) { return {t.since_start - d}; }
  friend Duration operator-(MonoTime a, MonoTime b) { return a.since_start - b.since_start; }
};

/// Civil time, in milliseconds since 1970-01-01T00:00:00Z.
struct WallTime {
  Duration since_epoch{0};
  friend auto operator<=>(const WallTime&, const WallTime&) = default;
  friend WallTime operator+(WallTime t, Duration d) { return {t.since_epoch + d}; }
  friend WallTime operator-(WallTime t, Duration d) { return {t.since_epoch - d}; }
  friend Duration operator-(WallTime a, WallTime b) { return a.since_epoch - b.since_epoch; }
};

class Clock {
 public:
  virtual ~Clock() = default;
  /// Returns the monotonic time. It continues while the machine is suspended: otherwise this process could still use a Lease
  /// that has already expired for other processes.
  [[nodiscard]] virtual MonoTime mono() const = 0;
  [[nodiscard]] virtual WallTime wall() const = 0;
};

class SystemClock final : public Clock {
 public:
  [[nodiscard]] MonoTime mono() const override;
  [[nodiscard]] WallTime wall() const override;
};

/// Drops the fraction of a second, as format_rfc3339 does.
WallTime whole_seconds(WallTime t);

/// Formats a time as RFC 3339 with seconds ("2026-01-02T03:04:05Z"), like metav1.Time.
std::string format_rfc3339(WallTime t);
/// Formats a time as RFC 3339 with microseconds, like metav1.MicroTime (Lease, events).
std::string format_rfc3339_micro(WallTime t);
/// Parses RFC 3339, with or without a fraction of a second, and with any offset. Error: kInvalid.
Result<WallTime> parse_rfc3339(std::string_view text);

}  // namespace core
