// Reservations of SimSlurm: their creation, recurrence and end, and the state of their nodes.
#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <utility>

#include "sim/slurm/sim_slurm.hpp"

namespace sim {
namespace {

constexpr std::int64_t kHour = 3600, kDay = 24 * kHour;
/// The start of a new reservation may be this long ago, in seconds.
constexpr std::int64_t kLateStart = 30;
constexpr std::array<std::pair<const char*, std::int64_t>, 5> kPeriods{
    {{"HOURLY", kHour}, {"DAILY", kDay}, {"WEEKDAY", kDay}, {"WEEKEND", kDay}, {"WEEKLY", 7 * kDay}}};

/// Reports whether the time is on a Saturday or a Sunday. The epoch began on a Thursday.
bool on_weekend(std::int64_t seconds) {
  const std::int64_t day = (seconds / kDay + 4) % 7;
  return day == 0 || day == 6;
}

bool skips(const SimReservation& reservation, std::int64_t start) {
  return (reservation.flags.contains("WEEKDAY") && on_weekend(start)) ||
         (reservation.flags.contains("WEEKEND") && !on_weekend(start));
}

}  // namespace

std::int64_t SimReservation::period() const {
  for (const auto& [flag, seconds] : kPeriods) {
    if (flags.contains(flag)) return seconds;
  }
  return 0;
}

void SimSlurm::reserve(const std::string& reservation, std::set<std::string> nodes) {
  if (!up_ || std::ranges::any_of(nodes, [&](const std::string& node) { return busy(node); })) return;
  reservations_[reservation] = {.nodes = std::move(nodes), .start = now_seconds(), .end = now_seconds() + 10 * 366 * kDay};
  later(options_.reservation, [this] { mark_reserved(); });
}

void SimSlurm::end_reservation(const std::string& reservation) {
  if (up_ && reservations_.erase(reservation) > 0) mark_reserved();
}

SlurmErrno SimSlurm::create_reservation(const std::string& name, SimReservation wanted) {
  if (!up_) return SlurmErrno::kNoController;
  if (wanted.nodes.empty() || reservations_.contains(name)) return SlurmErrno::kInvalidReservation;
  if (wanted.start < now_seconds() - kLateStart || wanted.end <= wanted.start) return SlurmErrno::kInvalidTime;
  const auto known = [&](const std::string& node) { return nodes_.contains(node); };
  if (!std::ranges::all_of(wanted.nodes, known)) return SlurmErrno::kInvalidNode;
  if (!wanted.flags.contains("IGNORE_JOBS") &&
      std::ranges::any_of(wanted.nodes, [&](const std::string& node) { return busy(node); }))
    return SlurmErrno::kBusy;
  wanted.flags.insert("SPEC_NODES");
  reservations_[name] = std::move(wanted);
  tend_reservations();
  return SlurmErrno::kSuccess;
}

SlurmErrno SimSlurm::set_reservation_nodes(const std::string& name, const std::set<std::string>& nodes) {
  if (!up_) return SlurmErrno::kNoController;
  const auto found = reservations_.find(name);
  if (found == reservations_.end()) return SlurmErrno::kInvalidReservation;
  if (found->second.end <= now_seconds()) return SlurmErrno::kInvalidTime;
  std::set<std::string> known;
  std::ranges::copy_if(nodes, std::inserter(known, known.end()),
                       [&](const std::string& node) { return nodes_.contains(node); });
  if (known.empty()) return SlurmErrno::kInvalidNode;
  found->second.nodes = std::move(known);
  tend_reservations();
  return SlurmErrno::kSuccess;
}

SlurmErrno SimSlurm::delete_reservation(const std::string& name) {
  if (!up_) return SlurmErrno::kNoController;
  if (reservations_.erase(name) == 0) return SlurmErrno::kInvalidReservation;
  tend_reservations();
  return SlurmErrno::kSuccess;
}

/// Ends or advances the reservations that are over, marks their nodes, and waits for the next begin or end.
void SimSlurm::tend_reservations() {
  const std::uint64_t turn = ++tended_;
  if (!up_) return;
  const std::int64_t now = now_seconds();
  std::int64_t next = std::numeric_limits<std::int64_t>::max();
  std::erase_if(reservations_, [&](const auto& entry) { return entry.second.end <= now && entry.second.period() == 0; });
  for (auto& [name, reservation] : reservations_) {
    const std::int64_t period = reservation.period();
    while (period > 0 && (reservation.end <= now || skips(reservation, reservation.start))) {
      reservation.start += period;
      reservation.end += period;
    }
    next = std::min(next, reservation.start > now ? reservation.start : reservation.end);
  }
  mark_reserved();
  // Slurm checks reservations only from time to time, so this runs a moment after the next begin or end.
  if (next - now > 366 * kDay) return;
  later(std::chrono::seconds{next - now} + core::Duration{500}, [this, turn] {
    if (turn == tended_) tend_reservations();
  });
}

void SimSlurm::mark_reserved() {
  const std::int64_t now = now_seconds();
  for (auto& [name, node] : nodes_) {
    const auto over = std::ranges::find_if(reservations_, [&, its = name](const auto& entry) {
      return entry.second.start <= now && now < entry.second.end && entry.second.nodes.contains(its);
    });
    node.reservation = over == reservations_.end() ? "" : over->first;
    const bool was = node.maintenance;
    node.maintenance = over != reservations_.end() && over->second.flags.contains("MAINT");
    if (was || node.maintenance) node.maintained = loop_.clock().mono();
  }
  touch_nodes();
  schedule_soon();
}

}  // namespace sim
