#include "enlist/coordinator/plan.hpp"

#include <algorithm>
#include <utility>

#include "enlist/rules/node_conf.hpp"

namespace enlist {
namespace {

using namespace std::chrono_literals;

/// Returns after what time a node must be judged again, because its phase may change without any event. Any node may become
/// silent, for example.
core::Duration look_again(Phase phase) {
  switch (phase) {
    case Phase::kStarting:
    case Phase::kConfirming:
    case Phase::kEnlisted:
    case Phase::kStopping:
    case Phase::kDeleting:
    case Phase::kGone:
      return 1s;
    case Phase::kPending:
    case Phase::kReady:
    case Phase::kSilent:
      return 60s;
    default:
      return 5s;
  }
}

using slurm::Owner;

/// A silent node is not removed before this process has had no report for this time, or for `forget_dead_after` if that is
/// shorter. Otherwise a changed clock, or a boot of all machines at once, could remove nodes.
constexpr core::Duration kMissedFor = 10min;

bool changes(const RecordPhase& record, const Node& node) {
  return record.phase != node.phase || record.message != node.message || record.registrations != node.registrations ||
         record.confirmed != node.confirmed || record.leaving != node.leaving || record.configuring != node.configuring ||
         record.node_conf != node.node_conf || record.live != node.live || record.marks != node.marks ||
         record.silent_since != node.silent_since || record.gate_boot != node.gate_boot;
}

/// Adds the step that writes the record, if anything in it has changed. Steps that are added later wait for this one.
void add_record(const Node& node, std::shared_ptr<RecordPhase> record, plan::Lane& lane) {
  if (!changes(*record, node)) return;
  const Phase phase = record->phase;
  std::string why = record->message;
  lane.add({{"record", "phase", node.name, std::string(to_string(phase))}, std::move(why), std::move(record)});
  lane.then();
}

plan::Step drain(const NodeObserved& observed, std::string_view why) {
  const char* said = why == kLeaves       ? "the node leaves"
                     : why == kConfigures ? "the node gets new parameters"
                                          : "neither its agent nor its slurmd responds";
  // If somebody else has drained the node, that reason stays.
  return {{"drain", "Slurm node", observed.node->name, std::string(why)},
          said,
          slurm::drain_nodes(observed.cluster, Owner::kEnlistment, {observed.node->name}, std::string(why), true)};
}

/// Returns ": " and the error of the step if its last try failed, else "".
std::string error_of(const NodeObserved& observed, const plan::StepId& id) {
  const auto found = observed.context.outcomes.find(id);
  return found != observed.context.outcomes.end() && found->second.error ? ": " + found->second.error->message : "";
}

/// Returns what people have set in Slurm's record of the node.
Marks marks_of(const slurm::Node& record, const Node& node) {
  const bool kept = record.state.drains() || record.state.has("FAIL") || record.state.base == "DOWN";
  // slurmctld itself sets reasons that begin like these for INVALID_REG.
  const std::string& reason = record.reason;
  const bool refused =
      record.state.has("INVALID_REG") && (reason.empty() || reason.starts_with("Low ") || reason.starts_with("gres/"));
  if ((record.state.drains() && holds_itself(reason)) || refused) {
    // The record may be a new one. Then the stored marks are those of the former record.
    return {.reason = node.marks.reason, .comment = record.comment.empty() ? node.marks.comment : record.comment};
  }
  const bool foreign = kept && !slurm::down_by_slurm(record) && !slurm::slurms_own(record.reason);
  return {.reason = foreign ? record.reason : "", .comment = record.comment};
}

/// True if the node is in service and its reason still has only our hold: somebody has resumed the node, and Slurm before 26.05
/// does not clear the reason. If slurmctld itself drained the node later, its drain would have this reason and look like ours.
bool has_leftover(const slurm::Node& record) {
  const bool kept = record.state.has("DRAIN") || record.state.has("FAIL") || record.state.base == "DOWN";
  return !kept && holds_itself(record.reason) && !slurm::Holds::read(record.reason).others_than(Owner::kEnlistment);
}

/// Returns Slurm's record of the node; null if Slurm does not answer, has none, or has one of another host.
const slurm::Node* record_of(const NodeObserved& observed) {
  if (!observed.slurm || !observed.slurm->complete()) return nullptr;
  const slurm::Node* record = observed.slurm->node(observed.node->name);
  return record != nullptr && is_of(*record, *observed.node) ? record : nullptr;
}

/// Plans for a node that leaves, or that is restarted with other parameters.
plan::Plan plan_leave(const NodeObserved& observed) {
  plan::Plan out;
  const Node& node = *observed.node;
  const bool leaves = node.leaving.wanted;
  Leaves judged = judge_leave(leave_input(observed));
  plan::Lane& lane = out.lane("node");
  const plan::StepId erase{"delete", "Slurm node", node.name};
  if (judged.erase) judged.message += error_of(observed, erase);
  if (!leaves) judged.message = "it gets new parameters: " + judged.message;
  auto record = std::make_shared<RecordPhase>(node, judged.phase, judged.message);
  (leaves ? record->leaving.stop : record->configuring.stop) = judged.stop;
  // slurmd may have been stopped before, for a restart with other parameters. Without `stop`, the agent starts slurmd again.
  if (!judged.stop) record->configuring.stop = false;
  if (judged.cancel) record->leaving = {};
  if (record->leaving.dead && judged.stop && !node.leaving.stop) record->heard_at = observed.heard_at;
  if (const slurm::Node* in_slurm = record_of(observed)) record->marks = marks_of(*in_slurm, node);
  if (!leaves) record->silent_since = {};
  if (judged.start) {
    record->node_conf = node.configuring.conf;
    record->configuring = {};
    record->live = {};
    record->confirmed.clear();
  }
  const bool stop_is_known = leaves ? node.leaving.stop : node.configuring.stop;
  const bool marks_are_known = record->marks == node.marks;
  add_record(node, std::move(record), lane);
  if (judged.drain) lane.add(drain(observed, leaves ? kLeaves : kConfigures));
  // Slurm's record is deleted only in a pass that finds the stop and the marks stored: the agent gets the stop from the store,
  // and the marks are needed for a new record.
  if (judged.erase && stop_is_known && marks_are_known) {
    lane.add({erase,
              leaves ? "nothing runs there, and the node leaves" : "nothing runs there, and the node gets new parameters",
              slurm::delete_node(observed.cluster, Owner::kEnlistment, *observed.slurm->node(node.name),
                                 leaves ? "the host leaves the cluster" : "slurmd registers with new parameters",
                                 slurm::NodeEvidence::Live::kDrained)});
  }
  if (judged.forget) {
    auto forget = std::make_shared<ForgetNode>(node);
    if (!node.report.left) forget->heard_at = observed.heard_at.value_or(core::MonoTime{});
    lane.add({{"forget", "node", node.name}, "it has left", std::move(forget)});
  }
  const bool may_last = judged.kept_by == "jobs";
  if (!may_last) out.waits_on(observed.cluster);
  out.wake_after(may_last ? core::Duration{5s} : core::Duration{1s},
                 leaves ? "the node leaves" : "the node gets new parameters");
  return out;
}

/// Reports whether the agent has reported lately or slurmd responds. False also if the coordinator has just started and has no
/// report yet.
bool is_back(const NodeObserved& observed) {
  if (observed.heard_at && observed.context.mono - *observed.heard_at < kSilentAfter) return true;
  const slurm::Node* record = record_of(observed);
  return record != nullptr && !record->state.has("NOT_RESPONDING");
}

/// Reports whether the record is the one that was deleted so that the node gets other parameters. slurmctld has it again if it
/// was killed before it had saved the deletion (departed.hpp). A new record has the hold of the gate instead.
bool is_from_before(const slurm::Node& record, const Node& node) {
  return !node.configuring.wanted && !node.configuring.taken_back && record.state.drains() &&
         slurm::Holds::read(record.reason).why(Owner::kEnlistment) == kConfigures;
}

/// Reports whether the node has been silent for so long that it is to leave.
bool is_given_up(const NodeObserved& observed) {
  const auto& limit = observed.forget_dead_after;
  return limit && observed.slurm && observed.slurm->complete() && observed.heard_at &&
         observed.context.now - observed.node->silent_since >= *limit &&
         observed.context.mono - *observed.heard_at >= std::min<core::Duration>(*limit, kMissedFor);
}

/// The values that Slurm's record must have although slurmd registered with others, or a reconfigure has reverted them.
struct LiveWish {
  slurm::NodeUpdate update{};
  std::optional<slurm::OwnFeatures> features{};
  [[nodiscard]] bool fits(const slurm::Node& record) const {
    return (!update.weight || *update.weight == record.weight) && (!features || slurm::has_own(record, *features));
  }
};

/// Returns what must be set in Slurm's record. Leaves out what this node's own parameters have never set, because somebody else
/// may have set it.
LiveWish live_wish(const NodeObserved& observed) {
  const Node& node = *observed.node;
  const std::string words = merged_conf(observed.pool_conf, node.node_conf).value_or("");
  LiveWish out;
  if (node.live.weight || has_word(node.node_conf, "Weight")) out.update.weight = weight_in(words);
  slurm::OwnFeatures features{.prefix = {}, .values = {}, .besides = features_in(node.node_conf), .obsolete = {}};
  std::ranges::copy_if(node.live.dropped, std::back_inserter(features.obsolete), [&](const std::string& feature) {
    const std::vector<std::string> stay = features_in(words);
    return feature != node.pool && std::ranges::find(stay, feature) == stay.end();
  });
  if (!features.besides.empty() || !features.obsolete.empty()) out.features = std::move(features);
  return out;
}

/// Adds the steps that set in a new record of the node what people had set in the former one. Returns true if the node stays
/// drained.
bool add_restore(const NodeObserved& observed, const slurm::Node& record, const Marks& marks, plan::Lane& lane) {
  const std::string& name = observed.node->name;
  if (!marks.comment.empty() && record.comment.empty()) {
    slurm::NodeUpdate update;
    update.comment = marks.comment;
    lane.add({{"restore", "comment", name}, "Slurm had lost the record", slurm::update_node(observed.cluster, name, update)});
  }
  if (marks.reason.empty()) return false;
  lane.add({{"restore", "drain", name},
            "somebody had drained it before Slurm lost the record",
            slurm::restore_reason(observed.cluster, record, marks.reason)});
  return true;
}

/// Plans for NodeObserved::departed.
plan::Plan plan_departed(const NodeObserved& observed) {
  plan::Plan out;
  out.wake_after(core::Duration{5'000}, "slurmctld may lose the deletion of the record");
  if (!observed.slurm || !observed.slurm->complete()) return out;
  const Node& node = *observed.departed;
  const slurm::Node* record = observed.slurm->node(node.name);
  if (record != nullptr && is_of(*record, node)) {
    out.lane("node").add({{"return", "node", node.name}, node.message, std::make_shared<ReturnNode>(node.name)});
  } else if (observed.absent_since && observed.slurm->requested_at - *observed.absent_since >= kSavedAfter) {
    out.lane("node").add({{"forget", "departed node", node.name},
                          "slurmctld has saved the deletion",
                          std::make_shared<ForgetDeparted>(node.name)});
  }
  return out;
}

}  // namespace

core::Json RecordPhase::describe() const {
  core::Json out = {{"act", "enlist.RecordPhase"},    {"node", node},
                    {"phase", to_string(phase)},      {"message", message},
                    {"registrations", registrations}, {"confirmed", confirmed}};
  if (leaving.wanted) out["stop"] = leaving.stop;
  if (configuring.wanted || seen_configuring.wanted) out["configuring"] = configuring.wanted;
  return out;
}

std::string gate_reason() {
  return slurm::Holds().hold(Owner::kEnlistment, kGate).reason();
}

Node departed(const Node& left) {
  Node out;
  out.name = left.name;
  out.pool = left.pool;
  // The host may join again with its key, as another node.
  out.key = kDepartedKey;
  out.revoked = true;
  out.joined = left.joined;
  out.report.hostname = left.report.hostname;
  out.report.instance_id = left.report.instance_id;
  out.report.left = true;
  out.confirmed = left.confirmed;
  out.phase = Phase::kDraining;
  out.message =
      "Slurm has its record again: slurmctld was killed before it had saved the deletion, or its slurmd has registered again";
  out.leaving = {.wanted = true, .stop = true, .since = left.leaving.since};
  return out;
}

LeaveInput leave_input(const NodeObserved& observed) {
  return {.node = *observed.node,
          .slurm = observed.slurm,
          .asked_at = observed.leave_asked_at,
          .heard_at = observed.heard_at,
          .kept_since = observed.kept_since,
          .now = observed.context.mono,
          .two_hosts = observed.two_hosts};
}

plan::Plan plan_node(const NodeObserved& observed) {
  plan::Plan out;
  if (!observed.node) return observed.departed ? plan_departed(observed) : out;
  if (observed.node->leaving.wanted) return plan_leave(observed);
  if (observed.node->revoked) return out;
  const Node& node = *observed.node;
  const Judged judged = judge({.node = node,
                               .slurm = observed.slurm,
                               .running_since = observed.running_since,
                               .registered_at = observed.registered_at,
                               .registered = observed.registered,
                               .started_at = observed.started_at,
                               .heard_at = observed.heard_at,
                               .now = observed.context.mono,
                               .max_node_count = observed.max_node_count,
                               .two_hosts = observed.two_hosts});
  if (node.configuring.restarts() && judged.phase != Phase::kSilent) return plan_leave(observed);
  const bool known = observed.slurm && observed.slurm->complete();
  const slurm::Node* in_slurm = record_of(observed);
  const LiveWish wish = live_wish(observed);
  const bool fits = in_slurm == nullptr || wish.fits(*in_slurm);
  const plan::StepId set{"set", "parameters of Slurm node", node.name};
  std::string message = judged.message;
  if (const std::string error = fits ? "" : error_of(observed, set); !error.empty())
    message += (message.empty() ? "" : "; ") + std::string("Slurm does not accept its parameters") + error;
  auto record = std::make_shared<RecordPhase>(node, judged.phase, std::move(message));
  if (judged.phase == Phase::kEnlisted || judged.phase == Phase::kReady) record->confirmed = node.report.instance_id;
  if (judged.register_again) ++record->registrations;
  if (judged.gate_decided) record->gate_boot = node.report.boot_id;
  if (in_slurm != nullptr) record->marks = marks_of(*in_slurm, node);
  const bool silent = judged.phase == Phase::kSilent;
  if (!silent) {
    if (is_back(observed)) record->silent_since = {};
  } else if (node.silent_since == core::WallTime{}) {
    record->silent_since = core::whole_seconds(observed.context.now);
  } else if (is_given_up(observed)) {
    record->leaving = {.wanted = true, .dead = true, .since = core::whole_seconds(observed.context.now)};
    record->heard_at = observed.heard_at;
  }
  if (known && fits && node.configuring.live) record->configuring = {.taken_back = node.configuring.taken_back};
  const bool from_before = in_slurm != nullptr && !record->leaving.wanted && is_from_before(*in_slurm, node);
  if (from_before) {
    record->configuring = {.wanted = true, .conf = node.node_conf, .since = core::whole_seconds(observed.context.now)};
    record->phase = Phase::kDraining;
    record->message = "Slurm's record of the node is from before its new parameters; the record is made again";
  }
  const Marks marks = record->marks;
  plan::Lane& lane = out.lane("node");
  add_record(node, std::move(record), lane);
  if (silent && in_slurm != nullptr && !in_slurm->state.drains()) lane.add(drain(observed, kUnheard));
  if (!fits) {
    lane.add({set, "Slurm has other values than the parameters of the node",
              slurm::update_node(observed.cluster, node.name, wish.update, wish.features)});
  }
  if (in_slurm != nullptr && !silent && !judged.close_gate && has_leftover(*in_slurm)) {
    lane.add({{"take our reason from", "Slurm node", node.name},
              "somebody has resumed it",
              slurm::resume_node(observed.cluster, Owner::kEnlistment, node.name, in_slurm->reason)});
  }
  if (judged.close_gate) {
    lane.add({{"close the gate of", "Slurm node", node.name},
              "the host has booted, and its check has not passed yet",
              slurm::drain_nodes(observed.cluster, Owner::kEnlistment, {node.name}, std::string(kGate))});
  }
  if (judged.open_gate && !from_before && !add_restore(observed, *in_slurm, marks, lane)) {
    lane.add({{"open the gate of", "Slurm node", node.name},
              "Slurm shows this slurmd with the values asked for, and the host's check has passed",
              slurm::resume_node(observed.cluster, Owner::kEnlistment, node.name, in_slurm->reason)});
  }
  if (judged.phase == Phase::kConfirming || judged.phase == Phase::kEnlisted) out.waits_on(observed.cluster);
  out.wake_after(look_again(judged.phase), "time may change the phase");
  return out;
}

}  // namespace enlist
