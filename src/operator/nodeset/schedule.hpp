// Translates the windows of spec.updateStrategy.scheduledUpdate into Slurm's reservations. Private to this folder.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>

#include "api/nodeset.hpp"
#include "core/clock.hpp"
#include "kube/object.hpp"
#include "plan/plan.hpp"
#include "slurm/reservation.hpp"

namespace op::nodeset {

struct Window {
  core::WallTime start, end;
  friend bool operator==(const Window&, const Window&) = default;
};

struct Schedule {
  core::WallTime start;
  std::chrono::minutes duration{1};
  core::Duration period{0};  ///< Time between the starts of two consecutive windows. 0: there is only one window.
  std::set<std::string, std::less<>> flags;
  std::string problem;  ///< Why no reservation can be created: "flags: ...". "": no reason.

  /// Returns the window that contains `time`, or else the next window after `time`. Empty: all windows are over.
  [[nodiscard]] std::optional<Window> window_at(core::WallTime time) const;
  /// True if the flags and times of the reservation are those that this schedule gives to one of its windows.
  [[nodiscard]] bool made(const slurm::Reservation& reservation) const;
};
[[nodiscard]] Schedule read_schedule(const api::ScheduledUpdate& spec);

/// Returns the name of the reservation of a NodeSet, as in slurm-operator 1.x.
[[nodiscard]] std::string reservation_name(const kube::ObjectMeta& nodeset);
/// Returns "from 2026-01-02T03:04:05Z to 2026-01-02T03:34:05Z".
[[nodiscard]] std::string to_text(const Window& window);

struct Observed;
/// Returns the reservation named reservation_name(), no matter who created it. Null: Slurm has no such reservation, or Slurm's
/// reservations were never read.
[[nodiscard]] const slurm::Reservation* find_reservation(const Observed& observed);
/// Returns the plan::Need to read Slurm's reservations.
[[nodiscard]] plan::Need need_reservations(const Observed& observed);

}  // namespace op::nodeset
