#include "enlist/coordinator/plan.hpp"

#include <utility>

namespace enlist {
namespace {

using namespace std::chrono_literals;

/// Time alone changes the phase of a node on its way, of one with a fault, and of one at rest, which may fall silent.
core::Duration look_again(Phase phase) {
  switch (phase) {
    case Phase::kStarting:
    case Phase::kConfirming:
    case Phase::kEnlisted:
      return 1s;
    case Phase::kPending:
    case Phase::kReady:
    case Phase::kSilent:
      return 60s;
    default:
      return 5s;
  }
}

}  // namespace

core::Json RecordPhase::describe() const {
  return {{"act", "enlist.RecordPhase"},    {"node", node},          {"phase", to_string(phase)}, {"message", message},
          {"registrations", registrations}, {"confirmed", confirmed}};
}

std::string gate_reason() {
  return slurm::Holds().hold(slurm::Owner::kEnlistment, kGate).reason();
}

plan::Plan plan_node(const NodeObserved& observed) {
  plan::Plan out;
  if (!observed.node || observed.node->revoked) return out;
  const Node& node = *observed.node;
  const Judged judged = judge({.node = node,
                               .slurm = observed.slurm,
                               .running_since = observed.running_since,
                               .registered_at = observed.registered_at,
                               .registered = observed.registered,
                               .started_at = observed.started_at,
                               .heard_at = observed.heard_at,
                               .now = observed.context.mono,
                               .max_node_count = observed.max_node_count});
  auto record = std::make_shared<RecordPhase>(node, judged.phase, judged.message);
  if (judged.phase == Phase::kEnlisted || judged.phase == Phase::kReady) record->confirmed = node.report.instance_id;
  if (judged.register_again) ++record->registrations;
  if (judged.gate_decided) record->gate_boot = node.report.boot_id;
  plan::Lane& lane = out.lane("node");
  if (record->phase != node.phase || record->message != node.message || record->registrations != node.registrations ||
      record->confirmed != node.confirmed || record->gate_boot != node.gate_boot) {
    lane.add({{"record", "phase", node.name, std::string(to_string(judged.phase))}, judged.message, std::move(record)});
    lane.then();
  }
  if (judged.close_gate) {
    lane.add({{"close the gate of", "Slurm node", node.name},
              "the host has booted, and its check has not passed yet",
              slurm::drain_nodes(observed.cluster, slurm::Owner::kEnlistment, {node.name}, std::string(kGate))});
  }
  if (judged.open_gate) {
    lane.add({{"open the gate of", "Slurm node", node.name},
              "Slurm shows this slurmd with the values asked for, and the host's check has passed",
              slurm::resume_node(observed.cluster, slurm::Owner::kEnlistment, node.name, gate_reason())});
  }
  if (judged.phase == Phase::kConfirming || judged.phase == Phase::kEnlisted) out.waits_on(observed.cluster);
  out.wake_after(look_again(judged.phase), "time may change the phase");
  return out;
}

}  // namespace enlist
