// An event of Juju, as the environment of a dispatch tells it. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace enlist::juju {

struct Event {
  std::string name;              ///< Of the hook: "install", "slurmctld-relation-changed". "": it is an action.
  std::string unit, app;         ///< The unit that runs it, "slurmd/0", and its application.
  std::string action{};          ///< The name of the action: "drain". "": it is a hook.
  std::string model{};           ///< The UUID of the model.
  std::string relation_id{};     ///< "slurmctld:3" in an event of a relation.
  std::string remote_app{};      ///< The application at the other end of that relation; "": Juju does not tell.
  std::string departing_unit{};  ///< The unit that leaves, in relation-departed.

  /// Reports whether the relation ends with this event. Juju may list it still.
  [[nodiscard]] bool breaks(std::string_view relation) const {
    return name.ends_with("-relation-broken") && relation_id == relation;
  }
  /// Reports whether the event says that this unit itself leaves. A relation-broken that follows does not say so.
  [[nodiscard]] bool leaves() const { return departing_unit == unit || name == "stop" || name == "remove"; }
};

/// Reads the environment. Error: kInvalid if it is not one of Juju's dispatch of a hook or an action.
[[nodiscard]] core::Result<Event> event_from(const std::map<std::string, std::string>& environment);

/// Returns the application of a unit.
[[nodiscard]] std::string app_of(std::string_view unit);
/// Returns the name of the unit's node in Slurm: "slurmd-0" of "slurmd/0".
[[nodiscard]] std::string node_of(std::string_view unit);

}  // namespace enlist::juju
