// Reservations in Slurm, reservations that the operator makes, and the evidence that the operator made a reservation.
//
// Reservations are not part of a snapshot, because few plans need them. A plan that needs reservations asks for them as a fact
// (ReadReservations in acts.hpp).
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json.hpp"
#include "plan/evidence.hpp"
#include "slurm/model.hpp"

namespace slurm {

/// Nodes that are reserved for the jobs of some users, for a time.
struct Reservation {
  std::string name, users;                   ///< users: "slurm,root".
  std::vector<std::string> nodes;            ///< Node names, expanded from Slurm's hostlist.
  bool nodes_unknown = false;                ///< The nodes could not be read. Any node can be among them.
  std::set<std::string, std::less<>> flags;  ///< In upper case as Slurm names them: MAINT IGNORE_JOBS DAILY ...
  std::optional<core::WallTime> start, end;  ///< For a recurring reservation: the current window, or else the next.
  [[nodiscard]] bool holds(std::string_view node) const;
  friend bool operator==(const Reservation&, const Reservation&) = default;
};
[[nodiscard]] core::Json to_json(const Reservation& reservation);
/// Reads what to_json wrote.
[[nodiscard]] Reservation reservation_from_json(const core::Json& json);

/// The user of the reservations that the operator makes: SlurmUser.
inline constexpr std::string_view kReservationUser = "slurm";
/// True if this operator or slurm-operator 1.x made the reservation: a maintenance that ignores running jobs, for SlurmUser
/// alone. There is no better sign, because REST does not show the comments of reservations.
[[nodiscard]] bool made_by_operator(const Reservation& reservation);

/// A reservation to make. It always has the flags MAINT and IGNORE_JOBS and belongs to SlurmUser.
struct ReservationWish {
  std::string name;
  std::vector<std::string> nodes;  ///< The nodes to reserve: at least one.
  std::vector<std::string> flags;  ///< Flags other than MAINT and IGNORE_JOBS.
  core::WallTime start;            ///< Slurm refuses a start more than half a minute in the past.
  std::chrono::minutes duration{0};
  std::string comment;  ///< Shown to people by `scontrol show reservation`.
};

/// Evidence that Slurm has this reservation, and that the operator made it.
class OwnReservation final : public plan::Evidence {
 public:
  /// Returns nullopt if the operator did not make the reservation, or if `until` has passed. After `until`, the answer that
  /// showed the reservation is no longer evidence.
  static std::optional<OwnReservation> of(const plan::Observing& observing, ClusterKey cluster, Reservation seen,
                                          core::MonoTime until);
  [[nodiscard]] const ClusterKey& cluster() const { return cluster_; }
  [[nodiscard]] const Reservation& seen() const { return seen_; }

 private:
  OwnReservation(const plan::Observing& observing, ClusterKey cluster, Reservation seen, core::MonoTime until)
      : Evidence(observing, "OwnReservation", "reservation " + seen.name + " was made by the operator", until),
        cluster_(std::move(cluster)),
        seen_(std::move(seen)) {}

  ClusterKey cluster_;
  Reservation seen_;
};

}  // namespace slurm
