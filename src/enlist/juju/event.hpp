// An event of Juju, read from the environment with which Juju runs the charm. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace enlist::juju {

struct Event {
  std::string name;              ///< The hook: "install", "slurmctld-relation-changed". "": an action runs.
  std::string unit, app;         ///< The unit that runs the charm, "slurmd/0", and its application.
  std::string action{};          ///< The name of the action: "drain". "": a hook runs.
  std::string model{};           ///< The UUID of the model.
  std::string relation_id{};     ///< "slurmctld:3" in an event of a relation.
  std::string remote_app{};      ///< The application at the other end of that relation; "": not known.
  std::string departing_unit{};  ///< In relation-departed: the unit that departs.

  /// Reports whether the relation ends with this event. Juju can still list the relation then.
  [[nodiscard]] bool breaks(std::string_view relation) const {
    return name.ends_with("-relation-broken") && relation_id == relation;
  }
  /// Reports whether the event shows that this unit itself is being removed. A later relation-broken does not show it.
  [[nodiscard]] bool leaves() const { return departing_unit == unit || name == "stop" || name == "remove"; }
};

/// Reads the environment. Error: kInvalid if Juju has not set it for a hook or an action.
[[nodiscard]] core::Result<Event> event_from(const std::map<std::string, std::string>& environment);

/// Returns the application of a unit.
[[nodiscard]] std::string app_of(std::string_view unit);
/// Returns the name of the unit's node in Slurm: "slurmd-0" of "slurmd/0".
[[nodiscard]] std::string node_of(std::string_view unit);

}  // namespace enlist::juju
