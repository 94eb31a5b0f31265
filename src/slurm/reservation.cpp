#include "slurm/reservation.hpp"

#include <algorithm>

namespace slurm {

bool Reservation::holds(std::string_view node) const {
  return nodes_unknown || std::ranges::find(nodes, node) != nodes.end();
}

core::Json to_json(const Reservation& reservation) {
  core::Json out{{"name", reservation.name},
                 {"users", reservation.users},
                 {"nodes", reservation.nodes},
                 {"nodesUnknown", reservation.nodes_unknown},
                 {"flags", reservation.flags}};
  if (reservation.start) out["start"] = reservation.start->since_epoch.count();
  if (reservation.end) out["end"] = reservation.end->since_epoch.count();
  return out;
}

Reservation reservation_from_json(const core::Json& json) {
  const auto time = [&](const char* key) -> std::optional<core::WallTime> {
    if (!json.contains(key)) return std::nullopt;
    return core::WallTime{core::Duration{json.at(key).get<std::int64_t>()}};
  };
  Reservation out;
  out.name = json.at("name");
  out.users = json.at("users");
  out.nodes = json.at("nodes").get<std::vector<std::string>>();
  out.nodes_unknown = json.at("nodesUnknown");
  for (const core::Json& flag : json.at("flags")) out.flags.insert(flag.get<std::string>());
  out.start = time("start");
  out.end = time("end");
  return out;
}

bool made_by_operator(const Reservation& reservation) {
  return reservation.users == kReservationUser && reservation.flags.contains("MAINT") &&
         reservation.flags.contains("IGNORE_JOBS");
}

std::optional<OwnReservation> OwnReservation::of(const plan::Observing& observing, ClusterKey cluster, Reservation seen,
                                                 core::MonoTime until) {
  if (!made_by_operator(seen) || observing.now() > until) return std::nullopt;
  return OwnReservation(observing, std::move(cluster), std::move(seen), until);
}

}  // namespace slurm
