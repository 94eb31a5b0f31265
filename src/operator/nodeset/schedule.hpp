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
  core::Duration period{0};  ///< Time between the starts of two windows; 0: there is only one.
  std::set<std::string, std::less<>> flags;
  std::string problem;  ///< Why no reservation can be made: "flags: ...". "": it can be made.

  /// Returns the window at that time, or the next one. Empty: all windows are over.
  [[nodiscard]] std::optional<Window> window_at(core::WallTime time) const;
  /// True if the reservation has the flags and times of a window of this schedule.
  [[nodiscard]] bool made(const slurm::Reservation& reservation) const;
};
[[nodiscard]] Schedule read_schedule(const api::ScheduledUpdate& spec);

/// Returns the name of the reservation of a NodeSet, as in slurm-operator 1.x.
[[nodiscard]] std::string reservation_name(const kube::ObjectMeta& nodeset);
/// Returns "from 2026-01-02T03:04:05Z to 2026-01-02T03:34:05Z".
[[nodiscard]] std::string to_text(const Window& window);

struct Observed;
/// Returns the reservation with the name for this NodeSet, even if a user made it. Null: there is none, or it is unknown.
[[nodiscard]] const slurm::Reservation* find_reservation(const Observed& observed);
/// Returns the plan::Need to read Slurm's reservations.
[[nodiscard]] plan::Need need_reservations(const Observed& observed);

}  // namespace op::nodeset
