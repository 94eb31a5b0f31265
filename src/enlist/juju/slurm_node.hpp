// The node of a unit in Slurm, by Slurm's own commands, which need a daemon of Slurm on this machine. Blocks while a command
// runs, and never for jobs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "enlist/juju/event.hpp"
#include "enlist/juju/leaving.hpp"
#include "enlist/juju/program.hpp"

namespace enlist::juju {

class SlurmNode {
 public:
  /// `why`: the reason of its drains, such as kLeaves.
  SlurmNode(const Event& event, const CharmParts& parts, std::string_view why = kLeaves);
  /// The node of a unit that is gone. `event`: has the unit and its model. `silent_for`: for how long Slurm has had no answer
  /// from its slurmd.
  SlurmNode(const Event& event, const CharmParts& parts, core::Duration silent_for);

  /// Returns the record. nullopt: Slurm has none.
  core::Result<std::optional<slurm::Node>> record();

  /// Drains the node unless it is drained. Error: Slurm does not answer, or refuses.
  core::Result<void> drain();
  /// Does all that can be done now: drains the node, and once nothing runs there deletes its record. Returns how far it has
  /// come; with Phase::kGone, slurmd may be stopped. `keep` gets the record before it is deleted. Errors: Slurm does not tell
  /// all that has to be known, or refuses.
  using Keep = std::function<core::Result<void>(const slurm::Node& record)>;
  core::Result<Leaves> take_out(const Keep& keep = nullptr);
  /// Opens the node again if it is drained because it was to leave or to register anew.
  core::Result<void> open();

  // What administrators ask for. Error: kNotFound if Slurm has no such node.

  /// Drains the node with the reason of an administrator. Error: kConflict if somebody else has drained it.
  core::Result<void> keep_out(std::string reason);
  /// Lets the node take jobs again. Error: kConflict if another program keeps it out.
  core::Result<void> resume();
  struct Ended {
    std::vector<std::string> jobs{}, left{};  ///< The jobs that were ended, and those of them that Slurm still has on the node.
  };
  /// Ends the jobs on the node. Waits for Slurm to take them off it, for 10 s at most.
  core::Result<Ended> end_jobs();
  core::Result<void> set_features(const std::string& features);

 private:
  core::Result<LeaveSeen> look();
  core::Result<slurm::Node> known_record();
  core::Result<Jobs> jobs(const std::vector<std::string>& which);
  core::Result<std::vector<std::string>> jobs_there();
  core::Result<std::string> ask(const std::vector<std::string>& words);
  core::Result<void> update(const std::vector<std::string>& words);

  std::string node_, instance_;
  std::string why_;
  std::optional<core::Duration> silent_for_{};
  const CharmParts& parts_;
};

}  // namespace enlist::juju
