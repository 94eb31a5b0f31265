#include "operator/nodeset/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include "operator/nodeset/observed.hpp"
#include "slurm/acts.hpp"

namespace op::nodeset {
namespace {

constexpr core::Duration kDay{24LL * 3600 * 1000};
constexpr std::array<std::pair<std::string_view, core::Duration>, 5> kPeriods{
    {{"HOURLY", kDay / 24}, {"DAILY", kDay}, {"WEEKDAY", kDay}, {"WEEKEND", kDay}, {"WEEKLY", kDay * 7}}};
/// Other flags that Slurm stores and shows, and that change neither the nodes nor the times of a reservation.
constexpr std::array<std::string_view, 6> kOthers{"FLEX",    "MAGNETIC", "NO_HOLD_JOBS_AFTER_END",
                                                  "OVERLAP", "STATIC",   "USER_DELETE"};
/// Flags that are ignored. The operator always sets MAINT and IGNORE_JOBS. Slurm sets SPEC_NODES itself, because the
/// reservation names its nodes. FORCE_START allows a start in the past, which is not needed.
constexpr std::array<std::string_view, 4> kImplied{"MAINT", "IGNORE_JOBS", "SPEC_NODES", "FORCE_START"};

bool recurs(std::string_view flag) {
  return std::ranges::any_of(kPeriods, [&](const auto& one) { return one.first == flag; });
}

bool among(const auto& all, std::string_view flag) {
  return std::ranges::find(all, flag) != all.end();
}

/// True on a Saturday or Sunday, in UTC. The Unix epoch began on a Thursday.
bool on_weekend(core::WallTime time) {
  const auto day = (time.since_epoch.count() / kDay.count() + 4) % 7;
  return day == 0 || day == 6;
}

}  // namespace

std::optional<Window> Schedule::window_at(core::WallTime time) const {
  Window out{start, start + duration};
  if (period.count() == 0) return out.end > time ? std::optional(out) : std::nullopt;
  if (out.end <= time) out.start = start + period * ((time - out.end).count() / period.count());
  const auto skipped = [&] {
    return (flags.contains("WEEKDAY") && on_weekend(out.start)) || (flags.contains("WEEKEND") && !on_weekend(out.start));
  };
  while (out.start + duration <= time || skipped()) out.start = out.start + period;
  out.end = out.start + duration;
  return out;
}

bool Schedule::made(const slurm::Reservation& reservation) const {
  std::set<std::string, std::less<>> has;
  for (const std::string& flag : reservation.flags) {
    if (recurs(flag) || among(kOthers, flag)) has.insert(flag);
  }
  if (has != flags || !reservation.start || !reservation.end || *reservation.start < start) return false;
  const core::Duration late = *reservation.start - start;
  if (period.count() > 0) return late.count() % period.count() == 0 && *reservation.end - *reservation.start == duration;
  // A reservation that is made after its window has begun starts at a whole second and lasts for whole minutes. So it can end
  // up to 61 seconds before its window ends.
  const core::Duration early = start + duration - *reservation.end;
  return early.count() >= 0 && early <= core::Duration{std::chrono::seconds{late.count() > 0 ? 61 : 0}};
}

Schedule read_schedule(const api::ScheduledUpdate& spec) {
  Schedule out;
  out.duration = std::max(std::chrono::minutes{1}, std::chrono::duration_cast<std::chrono::minutes>(spec.duration));
  if (!spec.start_time) {
    out.problem = "startTime: required";
    return out;
  }
  // Slurm stores times in whole seconds.
  out.start = core::WallTime{core::Duration{spec.start_time->since_epoch.count() / 1000 * 1000}};
  for (std::string flag : spec.flags) {
    std::ranges::transform(flag, flag.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    if (among(kImplied, flag)) continue;
    if (recurs(flag)) {
      if (out.period.count() > 0 && !out.flags.contains(flag))
        out.problem = "flags: one of HOURLY, DAILY, WEEKDAY, WEEKEND and WEEKLY at most";
      out.period = std::ranges::find_if(kPeriods, [&](const auto& one) { return one.first == flag; })->second;
    } else if (!among(kOthers, flag)) {
      out.problem =
          fmt::format("flags: {} is not one of HOURLY, DAILY, WEEKDAY, WEEKEND, WEEKLY, {}", flag, fmt::join(kOthers, ", "));
    }
    out.flags.insert(flag);
  }
  // With WEEKDAY or WEEKEND, Slurm chooses the day of the next window from the day on which the present window ends.
  const bool by_day = out.flags.contains("WEEKDAY") || out.flags.contains("WEEKEND");
  if (out.problem.empty() && by_day && core::Duration{out.start.since_epoch.count() % kDay.count()} + out.duration > kDay)
    out.problem = "duration: with WEEKDAY or WEEKEND, a window must end on the day on which it begins, in UTC";
  if (out.problem.empty() && out.period.count() > 0 && out.duration >= out.period)
    out.problem = "duration: must be shorter than the time from one window to the next";
  return out;
}

std::string reservation_name(const kube::ObjectMeta& nodeset) {
  return "SlurmOperatorMaint-" + nodeset.name;
}

std::string to_text(const Window& window) {
  return "from " + core::format_rfc3339(window.start) + " to " + core::format_rfc3339(window.end);
}

const slurm::Reservation* find_reservation(const Observed& observed) {
  if (!observed.seen.reservations) return nullptr;
  const auto& all = observed.seen.reservations->all;
  const auto found = std::ranges::find(all, reservation_name(observed.meta()), &slurm::Reservation::name);
  return found == all.end() ? nullptr : &*found;
}

plan::Need need_reservations(const Observed& observed) {
  return {"Slurm reservations", slurm::read_reservations(observed.cluster())};
}

}  // namespace op::nodeset
