// Reads facts from resources: conditions, what an object waits for, and what the operator wrote on a pod about its Slurm node.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "core/json.hpp"
#include "kube/object.hpp"
#include "slurm/model.hpp"

namespace cli {

/// Returns a condition of status.conditions, or null.
[[nodiscard]] const core::Json* condition_of(const core::Json& object, std::string_view type);
[[nodiscard]] bool is_true(const core::Json& object, std::string_view condition);
/// Returns "REASON: MESSAGE" of the condition. If the reason or the message is empty, returns only the other of the two.
[[nodiscard]] std::string told(const core::Json& condition);

/// Returns what the object waits for and what is wrong with the object, one line each, the most severe first.
[[nodiscard]] std::vector<std::string> waits_of(const core::Json& object);

/// The state and reason of a worker's Slurm node, as the operator wrote them on the pod. slurm_word() returns nullopt if the
/// operator wrote none.
struct SlurmWord {
  slurm::NodeState state;
  std::string reason;
};
[[nodiscard]] std::optional<SlurmWord> slurm_word(const kube::PodRecord& pod);
/// Returns the state as Slurm's tools show it: "IDLE+DRAIN".
[[nodiscard]] std::string state_text(const slurm::NodeState& state);

/// The origin of a node's drain, as the node's reason in Slurm shows it.
struct DrainOwner {
  bool ours = false;    ///< slurm-operator drained the node, alone or with others.
  bool others = false;  ///< A person, another program or slurmctld drained the node.
  std::string who;      ///< "slurm-operator", "slurm-bridge", "slurm-enlist", several of them, "Slurm" or "somebody else".
  std::string why;  ///< The reason without the program's name; the whole reason if slurm-operator and others drained the node.
};
[[nodiscard]] DrainOwner drain_owner(std::string_view reason);

/// The end of the last job of a worker.
struct Deadline {
  bool busy = false;
  std::optional<core::WallTime> at;  ///< Absent although `busy`: a job has no time limit.
};
/// Returns the deadline that the operator wrote on the pod.
[[nodiscard]] Deadline deadline_of(const kube::PodRecord& pod);
/// Returns "in 1h5m", "now", "no limit", or "" if no job runs.
[[nodiscard]] std::string deadline_text(const Deadline& deadline, core::WallTime now);

[[nodiscard]] std::vector<kube::PodPtr> pod_records(const std::vector<core::Json>& pods);

}  // namespace cli
