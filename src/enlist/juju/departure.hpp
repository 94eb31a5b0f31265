// Takes the node of this unit out of Slurm with Slurm's own commands, which need the slurmd of this machine. Blocks while a
// command runs, and never for jobs.
#pragma once

#include <string>
#include <vector>

#include "core/result.hpp"
#include "enlist/juju/leaving.hpp"
#include "enlist/juju/program.hpp"

namespace enlist::juju {

class Departure {
 public:
  Departure(const Event& event, const CharmParts& parts);

  /// Drains the node unless it is drained. Error: Slurm does not answer, or refuses.
  core::Result<void> drain();
  /// Does all that can be done now: drains the node, and once nothing runs there deletes its record. Returns how far it has
  /// come; with Phase::kGone, slurmd may be stopped. Errors: Slurm does not tell all that has to be known, or refuses.
  core::Result<Leaves> advance();
  /// Opens the node again if it is drained because the unit was to leave.
  core::Result<void> stay();
  /// Returns the record of the node. nullopt: Slurm has none.
  core::Result<std::optional<slurm::Node>> record();

 private:
  core::Result<LeaveSeen> look();
  core::Result<void> drain(const slurm::Node& record);
  core::Result<Jobs> jobs(const std::vector<std::string>& which);
  core::Result<std::string> ask(const std::vector<std::string>& words);

  std::string node_, instance_;
  const CharmParts& parts_;
};

}  // namespace enlist::juju
