// Reads and changes a unit's node in Slurm with Slurm's commands, which need a daemon of Slurm on this machine. Blocks while a
// command runs. Only end_jobs() also waits for jobs.
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
  /// `why`: the reason with which the node is drained, such as kLeaves.
  SlurmNode(const Event& event, const CharmParts& parts, std::string_view why = kLeaves);
  /// For the node of a unit that is gone. `event`: names the unit and its model. `silent_for`: for how long Slurm has had no
  /// answer from the unit's slurmd.
  SlurmNode(const Event& event, const CharmParts& parts, core::Duration silent_for);

  /// Returns Slurm's record of the node. nullopt: Slurm has no record.
  core::Result<std::optional<slurm::Node>> record();

  /// Drains the node unless it is drained already. Error: Slurm does not answer, or refuses.
  core::Result<void> drain();
  /// Takes the node out of Slurm as far as possible now: drains it and, if nothing runs there, deletes its record. Returns the
  /// state that is reached; with Phase::kGone, slurmd may be stopped. Calls `keep` with the record before it is deleted.
  /// Errors: Slurm or the host does not answer, or Slurm refuses.
  using Keep = std::function<core::Result<void>(const slurm::Node& record)>;
  core::Result<Leaves> take_out(const Keep& keep = nullptr);
  /// Undoes the drain of the node if slurm-enlist has drained it to let it leave or register anew.
  core::Result<void> open();

  // Requests of administrators. Errors: kNotFound if Slurm has no such node, kConflict if the node is that of another slurmd.

  /// Drains the node with the reason of an administrator. Error: kConflict if somebody else has drained the node.
  core::Result<void> keep_out(std::string reason);
  /// Lets the node take jobs again. Error: kConflict if another of our programs keeps the node out of service.
  core::Result<void> resume();
  struct Ended {
    std::vector<std::string> jobs{}, left{};  ///< The cancelled jobs, and those of them that Slurm still has on the node.
  };
  /// Cancels the jobs on the node. Waits up to 10 s until Slurm has none of these jobs on the node.
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
