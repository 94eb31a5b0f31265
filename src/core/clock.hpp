// Time is passed in, never global: production uses SystemClock, tests and the simulator their own.
//
// Ages, deadlines and leases use mono() (it never jumps); only what users and servers read uses wall().
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
  /// It goes on while the machine sleeps: what we may still do must not outlast what others wait for.
  [[nodiscard]] virtual MonoTime mono() const = 0;
  [[nodiscard]] virtual WallTime wall() const = 0;
};

class SystemClock final : public Clock {
 public:
  [[nodiscard]] MonoTime mono() const override;
  [[nodiscard]] WallTime wall() const override;
};

/// Without its fraction of a second, as format_rfc3339 writes it.
WallTime whole_seconds(WallTime t);

/// RFC 3339 with seconds ("2026-01-02T03:04:05Z"), as metav1.Time is written.
std::string format_rfc3339(WallTime t);
/// RFC 3339 with six digits of a second, as metav1.MicroTime (Lease, events) is written.
std::string format_rfc3339_micro(WallTime t);
/// Reads either form, with any offset. Error: kInvalid.
Result<WallTime> parse_rfc3339(std::string_view text);

}  // namespace core
