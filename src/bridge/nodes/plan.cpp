#include "bridge/nodes/plan.hpp"

#include <algorithm>

#include "bridge/common/held.hpp"
#include "bridge/common/names.hpp"
#include "bridge/common/steps.hpp"
#include "bridge/nodes/own_drains.hpp"
#include "bridge/nodes/taints.hpp"
#include "kube/acts.hpp"
#include "slurm/acts.hpp"

namespace bridge::nodes {
namespace {

using slurm::Owner;

/// The delay before a pass that needs a newer snapshot. A new snapshot wakes a key only if something changed.
constexpr core::Duration kSnapshotAgain{1000};
/// The delay before a registration that Slurm refused is tried again.
constexpr core::Duration kRefusedAgain{30000};
/// The time between two checks whether the pods of a node are gone.
constexpr core::Duration kListedAgain{30000};
constexpr const char* kNoSchedule = "NoSchedule";
constexpr const char* kNoExecute = "NoExecute";
constexpr const char* kRemoved = "slurm-bridge is being removed";

/// Reports whether an immediate retry cannot succeed after this error.
bool is_refusal(core::ErrorCode code) {
  using enum core::ErrorCode;
  return code == kInvalid || code == kNotFound || code == kForbidden || code == kUnsupported || code == kInternal ||
         code == kAlreadyExists || code == kConflict;
}

class Pass {
 public:
  explicit Pass(const Observed& observed) : in_(observed), name_(observed.key.name), host_(observed.host()) {}

  plan::Plan make() {
    if (in_.installation.empty() || in_.snapshot == nullptr || !in_.snapshot->complete()) return std::move(out_);
    if (!in_.snapshot->capabilities.external_jobs) return std::move(out_);
    for (std::size_t i = 1; i < in_.hosts.size(); ++i) refuse_claim(*in_.hosts[i]);
    node_ = in_.node();
    if (host_ != nullptr && is_external(host_->meta) && !in_.settings->retires) wish_ = wish_of(*host_, *in_.snapshot);
    if (node_ == nullptr) {
      follow_absent();
    } else if (in_.other_cluster.empty()) {
      follow_present();
    } else {
      leave_to_others();
    }
    return std::move(out_);
  }

 private:
  /// Reports in the condition of another Kubernetes node that its name in Slurm is already in use.
  void refuse_claim(const kube::SchedulingNodeRecord& other) {
    write_node(other, {},
               Condition{false, "NameInUse", "Kubernetes node " + host_->meta.name + " has the name " + name_ + " in Slurm"});
  }

  /// The Slurm node belongs to the bridge of another Kubernetes cluster. This bridge might have drained the node before.
  void leave_to_others() {
    if (host_ == nullptr) return;
    if (why_drained().empty()) resume(own_hold(*node_, in_.installation));
    if (!in_.fresh) return await_snapshot();
    if (in_.settings->retires) return retire_from(*host_);
    write_node(*host_, {},
               Condition{false, "NameInUse",
                         "in Slurm, " + name_ + " is a node of the Kubernetes cluster with the UID " + in_.other_cluster +
                             ": give this one another name with the label " + std::string(kLabelSlurmNodeName)});
  }

  // --- Slurm does not have the node ------------------------------------------------------------------------------------------

  void follow_absent() {
    if (host_ == nullptr) return;
    if (wish_) return register_node();
    std::optional<Condition> condition;
    if (has_condition(*host_)) condition = Condition{false, "NotInSlurm", "Slurm does not have the node " + name_};
    if (!is_tainted(*host_)) return write_node(*host_, {}, std::move(condition));
    const core::Duration absent = in_.absent_since ? in_.context.mono - *in_.absent_since : core::Duration{0};
    if (in_.fresh && in_.absent_since && absent >= in_.settings->believed_gone)
      return write_node(*host_, {}, std::move(condition));
    out_.wake_after(std::max(in_.settings->believed_gone - absent, kSnapshotAgain),
                    "Slurm may have lost the node for a moment");
  }

  void register_node() {
    if (const std::string why = why_not_yet(); !why.empty()) return report_unregistered("NotReady", why);
    if (!*wish_) return report_unregistered("Invalid", wish_->error().message);
    const slurm::NodeMark mark{Owner::kBridge, in_.installation, slurm::made_of(**wish_)};
    const plan::StepId id{"create", "Slurm node", name_};
    if (waits_after_error(id)) return out_.remember(id);
    out_.lane("slurm").add({id, "Kubernetes node " + host_->meta.name + " is labelled as external",
                            slurm::create_node(in_.settings->cluster, **wish_, mark)});
    out_.waits_on(in_.settings->cluster);
  }

  [[nodiscard]] std::string why_not_yet() const {
    if (host_->meta.terminating()) return "the Kubernetes node is being deleted";
    if (host_->unschedulable) return "the Kubernetes node is cordoned: it is registered when it is uncordoned";
    if (!host_->ready) return "the Kubernetes node is not ready: it is registered when it is ready";
    return {};
  }

  bool waits_after_error(const plan::StepId& id) {
    const auto before = in_.context.outcomes.find(id);
    if (before == in_.context.outcomes.end() || !before->second.error || !is_refusal(before->second.error->code)) return false;
    report_unregistered("Refused", before->second.error->message);
    const core::Duration waited = in_.context.mono - before->second.last;
    if (waited >= kRefusedAgain) return false;
    out_.wake_after(kRefusedAgain - waited, "the node is registered again then");
    return true;
  }

  /// Writes only the condition of the Kubernetes node. The taint stays as it is, because the node is about to be registered.
  void report_unregistered(std::string reason, std::string message) {
    report(*host_, Condition{false, std::move(reason), std::move(message)});
  }

  // --- Slurm has the node ----------------------------------------------------------------------------------------------------

  void follow_present() {
    keep_from_work();
    remove_node();
    update_features();
    hold_native_jobs();
    if (host_ == nullptr) return;
    if (in_.settings->retires && !in_.mark) return retire_from(*host_);
    if (in_.look_again) out_.wake_after(*in_.look_again, "the Slurm node has to be recreated");
    if (!in_.fresh && !is_tainted(*host_)) return await_snapshot();
    write_node(*host_, in_.fresh ? wanted_taints() : present_taints(), condition());
  }

  /// Removes the taint, so that Kubernetes schedules other pods to the node again. The Slurm node is not deleted.
  void retire_from(const kube::SchedulingNodeRecord& host) {
    // The taint stays until the pods of the bridge are gone.
    if (in_.in_use || (in_.held && !in_.held->empty())) return out_.wake_after(kListedAgain, "pods still run there for Slurm");
    std::optional<Condition> condition;
    if (has_condition(host))
      condition = Condition{false, "Retired", "slurm-bridge was removed, and does not look after the node"};
    write_node(host, {}, std::move(condition));
  }

  /// Returns why the Slurm node must be deleted, or "".
  [[nodiscard]] std::string why_removed() const {
    if (!in_.mark) return {};
    if (in_.settings->retires) return kRemoved;
    if (host_ == nullptr) return "no Kubernetes node has this name";
    if (!wish_) return "Kubernetes node (" + host_->meta.name + ") is not labelled as external any more";
    return in_.make_again;
  }

  /// Returns why the Slurm node must be drained, or "".
  [[nodiscard]] std::string why_drained() const {
    if (std::string why = why_removed(); !why.empty()) return why;
    if (in_.settings->retires) return {};
    if (host_ == nullptr) return in_.lost_host ? "Kubernetes node is gone" : "";
    const std::string node = "Kubernetes node (" + host_->meta.name + ") ";
    if (host_->meta.terminating()) return node + "is being deleted";
    if (host_->unschedulable) return node + "was cordoned";
    if (!host_->ready) return node + "is not ready";
    return {};
  }

  void keep_from_work() {
    const std::string why = why_drained();
    const auto held = own_hold(*node_, in_.installation);
    if (why.empty()) return resume(held);
    const slurm::Holder holder{Owner::kBridge, in_.mark ? "" : in_.installation};
    const bool as_wanted = held && held->holder == holder && held->why == why;
    const bool needed = !node_->state.drains() || (held ? !as_wanted : slurm::drained_without(*node_, holder));
    if (!needed) return;
    out_.lane("slurm").add(
        {{"drain", "Slurm node", name_}, why, slurm::drain_nodes(in_.settings->cluster, holder, {name_}, why, true)});
  }

  void resume(const std::optional<OwnHold>& held) {
    if (host_ == nullptr || !held || !node_->state.drains() || node_->state.has("FAIL")) return;
    // Only a person sets a node without a slurmd DOWN, so such a node stays DOWN. A node whose slurmd does not respond also
    // stays DOWN until the slurmd has registered.
    if (node_->state.base == "DOWN" && (node_->state.has("EXTERNAL") || slurm::is_silent(*node_))) return;
    out_.lane("slurm").add({{"resume", "Slurm node", name_},
                            in_.settings->retires ? kRemoved : "Kubernetes node " + host_->meta.name + " takes pods again",
                            slurm::resume_node(in_.settings->cluster, held->holder, name_, node_->reason)});
  }

  void remove_node() {
    const std::string why = why_removed();
    if (why.empty()) return;
    if (in_.drained && slurm::Holds::read(node_->reason).why(Owner::kBridge) == why) {
      out_.lane("slurm").add({{"remove", "Slurm node", name_}, why, slurm::remove_node(*in_.drained)});
    } else if (!in_.fresh) {
      await_snapshot();
    }
    out_.waits_on(in_.settings->cluster);
  }

  void update_features() {
    if (!in_.mark || !wish_ || !*wish_ || !in_.make_again.empty()) return;
    slurm::OwnFeatures own = features_of(**wish_, *in_.snapshot);
    if (slurm::has_own(*node_, own)) return;
    out_.lane("features")
        .add({{"update", "Slurm node", name_},
              "the partitions of Kubernetes node " + host_->meta.name + " have changed",
              slurm::update_features(in_.settings->cluster, name_, *in_.mark, std::move(own))});
  }

  /// Writes the list of jobs to `extra` of the node, so that the node's prolog delays native jobs (bridge/common/held.hpp).
  void hold_native_jobs() {
    if (!in_.held) return;
    for (const run::Key& pod : in_.unsure) {
      auto get = std::make_shared<kube::Get>();
      get->resource = kube::resources::kPod;
      get->key = pod;
      out_.need({unsure_fact(pod), std::move(get)});
    }
    // If the Kubernetes node is gone, changes of pods on the node do not wake this key.
    if (host_ == nullptr && in_.in_use) out_.wake_after(kListedAgain, "pods of its jobs may be gone");
    if (in_.holds_longer) out_.wake_after(in_.settings->still_held, "pods of a job that has ended may still appear");
    const auto have = held_in(node_->extra);
    const HeldJobs wanted{*in_.held, in_.held->empty() ? "" : in_.installation};
    if (!have || (have->jobs == wanted.jobs && (wanted.jobs.empty() || have->cluster == wanted.cluster))) return;
    slurm::NodeUpdate update;
    update.extra = extra_of(wanted);
    out_.lane("hold").add({{"hold", "Slurm node", name_},
                           "native jobs wait for the pods of these jobs",
                           slurm::update_node(in_.settings->cluster, name_, std::move(update))});
    out_.waits_on(in_.settings->cluster);
  }

  // --- The Kubernetes node ---------------------------------------------------------------------------------------------------

  [[nodiscard]] bool out_of_service() const {
    return node_->state.has("DRAIN") || node_->state.has("FAIL") || node_->state.base == "DOWN";
  }

  /// Returns the reason with which somebody else took the node out of service, or "".
  [[nodiscard]] std::string said_by_others() const {
    if (!out_of_service()) return {};
    const auto held = own_hold(*node_, in_.installation);
    return slurm::said_by_others(node_->reason, held ? held->holder : slurm::Holder{Owner::kBridge, in_.installation});
  }

  [[nodiscard]] Effects wanted_taints() const {
    Effects out{{kNoSchedule, taint_value(said_by_others())}};
    // The taint with the effect NoExecute always has the same value, because a pod might tolerate only one value.
    if (host_->meta.annotation(kAnnotationEffect) == kNoExecute && evicts()) out.emplace(kNoExecute, "");
    return out;
  }

  /// Reports whether pods without the toleration are allowed to be evicted. Not on a node with a slurmd: the pod of a worker
  /// might be absent only because it is being replaced.
  [[nodiscard]] bool evicts() const { return in_.slurm_pod.empty() && node_->state.has("EXTERNAL"); }

  [[nodiscard]] Effects present_taints() const {
    Effects out;
    for (const kube::Taint& taint : host_->taints) {
      if (taint.key == kTaintManagedNode) out.emplace(taint.effect, taint.value);
    }
    return out;
  }

  [[nodiscard]] Condition condition() const {
    if (out_of_service()) {
      const bool down = node_->state.base == "DOWN";
      return {false, down ? "Down" : node_->state.has("FAIL") ? "Failing" : "Drained", "Slurm: " + node_->reason};
    }
    if (is_unanswered(*node_)) return {false, "NotResponding", unanswered()};
    if (!wish_) return {true, "InService", "Slurm has the node " + name_ + note_on_extra() + note_on_effect()};
    if (!in_.mark)
      return {true, "RegisteredByOthers",
              "Slurm had the node " + name_ + " already: its partitions and resources are not changed"};
    if (!*wish_) return {true, "Invalid", wish_->error().message + "; the Slurm node is not changed"};
    return {true, "InService", "Slurm has the node " + name_ + notes()};
  }

  [[nodiscard]] std::string unanswered() const {
    std::string out = "Slurm waits for an answer of the node " + name_ + " (NOT_RESPONDING), and starts no job there";
    if (!node_->state.has("EXTERNAL")) return out;
    out += "; an external node never answers: ";
    return out + (in_.mark && wish_ && *wish_ ? "it is registered again when no job holds it" : "it must be created again");
  }

  [[nodiscard]] std::string notes() const {
    std::string out;
    for (const std::string& partition : (*wish_)->features) {
      if (std::ranges::find(node_->partitions, partition) != node_->partitions.end()) continue;
      out += (out.empty() ? ", but not in partition " : ", ") + partition;
    }
    if (!out.empty())
      out += ": slurm.conf needs a NodeSet with the feature of that name, and slurmctld reads it when it reconfigures";
    if ((*wish_)->gpus > 0 && node_->gres.empty()) out += "; it has no GPUs there, because GresTypes of slurm.conf lacks gpu";
    if (const auto gpus = gpu_resources_of(*host_); gpus.size() > 1)
      out += "; its GPUs are not registered, because a job cannot choose between " + gpus.front() + " and " + gpus.back();
    if (in_.look_again && in_.other_resources)
      out += "; it is registered again with its new resources when these have been stable, one node at a time";
    return out + note_on_effect();
  }

  [[nodiscard]] std::string note_on_effect() const {
    if (host_->meta.annotation(kAnnotationEffect) != kNoExecute || evicts()) return {};
    return "; its pods are not evicted, because " +
           (in_.slurm_pod.empty() ? "a slurmd runs there" : "pod " + in_.slurm_pod + " runs there");
  }

  [[nodiscard]] std::string note_on_extra() const {
    if (!in_.held || held_in(node_->extra)) return {};
    return "; native jobs do not wait for pods that end, because somebody else uses the field extra of the Slurm node";
  }

  void write_node(const kube::SchedulingNodeRecord& node, const Effects& taints, std::optional<Condition> condition) {
    if (node.meta.terminating()) return;
    if (plan::ActPtr act = set_taints(node, taints)) {
      out_.lane(node.meta.name)
          .add({{taints.empty() ? "untaint" : "taint", "Node", node.meta.name},
                taints.empty() ? in_.settings->retires ? kRemoved : "Slurm does not have the node" : "Slurm has the node",
                std::move(act)})
          .then();
    }
    if (condition) report(node, *condition);
  }

  void report(const kube::SchedulingNodeRecord& node, const Condition& condition) {
    if (plan::ActPtr act = set_condition(node, condition, in_.context.now))
      out_.lane(node.meta.name).add({{"report", "Node", node.meta.name}, condition.message, std::move(act)});
  }

  void await_snapshot() {
    out_.waits_on(in_.settings->cluster);
    out_.wake_after(kSnapshotAgain, "a newer answer of Slurm is needed");
  }

  const Observed& in_;
  std::string name_;
  const kube::SchedulingNodeRecord* host_;
  const slurm::Node* node_ = nullptr;
  std::optional<core::Result<slurm::NodeWish>> wish_;  ///< Set if the Kubernetes node is labelled as external.
  plan::Plan out_;
};

}  // namespace

plan::Plan plan(const Observed& observed) {
  return Pass(observed).make();
}

}  // namespace bridge::nodes
