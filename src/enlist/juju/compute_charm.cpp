#include <algorithm>
#include <utility>

#include "core/hash.hpp"
#include "enlist/agent/machine.hpp"
#include "enlist/host/spawn.hpp"
#include "enlist/juju/compute.hpp"
#include "enlist/juju/program.hpp"
#include "enlist/juju/slurm_node.hpp"
#include "enlist/rules/key_file.hpp"
#include "enlist/rules/node_conf.hpp"
#include "enlist/rules/text.hpp"
#include "slurm/holds.hpp"

namespace enlist::juju {
namespace {

using core::ErrorCode;
using namespace std::chrono_literals;

/// One hook of the charm slurmd: reads the state, plans, and carries out the plan.
class ComputeHook {
 public:
  ComputeHook(const Event& event, const CharmParts& parts) : parts_(parts) { seen_.event = event; }

  core::Result<std::optional<Status>> run() {
    if (auto looked = look(); !looked) return std::unexpected(looked.error());
    return decide_and_act();
  }

  /// Carries out an action. Error: why the action fails.
  core::Result<Results> act_for_administrator(bool leaves) {
    const auto parameters = parts_.tools.action_parameters();
    if (!parameters) return std::unexpected(parameters.error());
    if (auto looked = look(); !looked) return std::unexpected(looked.error());
    const std::string& action = seen_.event.action;
    if (leaves && (action == "node-config" || action == "resume"))
      return core::fail(ErrorCode::kConflict, node() + " leaves, because the unit is being removed");
    if (action == "node-config") return configure(*parameters);
    SlurmNode slurm(seen_.event, parts_);
    if (action == "drain") {
      const std::string reason = core::get_string(*parameters, {"reason"});
      if (auto done = slurm.keep_out(reason.empty() ? kAdministrator : reason); !done) return std::unexpected(done.error());
      return state_of_node();
    }
    if (action == "resume") {
      if (seen_.memory.leaving) return core::fail(ErrorCode::kConflict, node() + " leaves, because the relation has ended");
      if (seen_.memory.next_conf)
        return core::fail(ErrorCode::kConflict,
                          node() + " is drained, and registers again with its new parameters when nothing runs there");
      if (auto done = slurm.resume(); !done) return std::unexpected(done.error());
      return state_of_node();
    }
    if (action != "destroy-jobs") return core::fail(ErrorCode::kInvalid, "the charm has no action " + action);
    const auto ended = slurm.end_jobs();
    if (!ended) return std::unexpected(ended.error());
    Results out{{"jobs", comma_list(ended->jobs)}};
    if (!ended->left.empty()) out["still-there"] = comma_list(ended->left);
    return out;
  }

  /// Plans from the state that look() has read, and carries out the plan. Returns the status of the unit.
  core::Result<std::optional<Status>> decide_and_act() {
    std::optional<Status> configures;
    if (seen_.relation.empty()) {
      if (const auto leaves = leave_cluster()) return leaves;
    } else {
      if (auto done = stay_in_cluster(); !done) return std::unexpected(done.error());
      if (!plan_compute(seen_).obstacle) configures = register_anew();
    }
    const ComputePlan plan = plan_compute(seen_);
    if (plan.publish) {
      if (auto done = parts_.tools.publish(seen_.relation, *plan.publish); !done) return std::unexpected(done.error());
    }
    // slurmctld publishes nothing before the leader has published a partition. So not_published may have caused the obstacle.
    if (plan.obstacle) return plan.not_published ? plan.not_published : plan.obstacle;
    if (auto done = act(plan); !done) return blocked("slurmd does not start: " + done.error().message);
    Status status = observe(plan.start || plan.reload);
    if (lost_ && seen_.event.name == "update-status") {
      // slurmd registers only when it starts or reloads. This is done in update-status only: if Slurm refuses the node, each of
      // the other hooks would wait in vain.
      if (auto done = parts_.slurmd.reload(); !done) return blocked("slurmd does not register again: " + done.error().message);
      status = observe(true);
    }
    if (!seen_.memory.next_conf && registered_ && slurm::held_by(registered_->reason, slurm::Owner::kEnlistment)) {
      if (auto done = SlurmNode(seen_.event, parts_).open(); !done)
        return waiting(node() + " is not open yet: " + done.error().message);
      status = observe(false);
    }
    if (configures && status.kind != Status::Kind::kBlocked) return configures;
    // A blocked slurmd is worse than an application that publishes nothing.
    if (plan.not_published && status.kind != Status::Kind::kBlocked) return plan.not_published;
    return status;
  }

  /// Carries out a hook of a unit that is being removed. `stop` waits until the node has left: Juju then removes the unit.
  core::Result<std::optional<Status>> leave_for_good() {
    auto memory = read_memory();
    if (!memory) return std::unexpected(memory.error());
    seen_.memory = *std::move(memory);
    const auto slurmd = state_of_slurmd();
    if (!slurmd) return std::unexpected(slurmd.error());
    if (!is_ours(seen_.event, *slurmd)) return std::nullopt;
    if (seen_.event.name == "stop") return wait_and_leave();
    if (auto drained = SlurmNode(seen_.event, parts_).drain(); !drained)
      parts_.tools.log("WARNING", node() + " is not drained yet: " + drained.error().message);
    return waiting(node() + " leaves");
  }

 private:
  [[nodiscard]] std::string node() const { return node_of(seen_.event.unit); }

  // --- the node leaves ---

  core::Result<std::optional<Status>> wait_and_leave() {
    SlurmNode slurm(seen_.event, parts_);
    core::MonoTime answered = parts_.now();
    for (std::string told;; parts_.pause(kLeavePoll)) {
      const auto left = slurm.take_out();
      if (left && left->phase == Phase::kGone) break;
      if (left) {
        answered = parts_.now();
      } else if (const auto over = without_slurm(left.error(), answered)) {
        if (!*over) return std::unexpected(over->error());
        break;
      }
      const std::string why = node() + " leaves: " + (left ? left->message : "Slurm does not answer: " + left.error().message);
      if (why == told) continue;
      told = why;
      if (auto said = parts_.tools.set_status(waiting(told)); !said) return std::unexpected(said.error());
    }
    seen_.memory.own_conf.clear();
    seen_.memory.next_conf.reset();
    if (auto done = retire(); !done) return std::unexpected(done.error());
    return std::nullopt;
  }
  /// Decides how the unit goes on if Slurm does not answer. nullopt: it waits. A value: it leaves without Slurm's answer.
  /// Error: it has waited for too long.
  std::optional<core::Result<void>> without_slurm(const core::Error& cause, core::MonoTime answered) {
    // A slurmd that crashes repeatedly may always be seen as starting, so after a long wait this does not count any more.
    const bool long_enough = parts_.now() - answered >= kUnanswered;
    if (dead_without_steps(cause, long_enough)) return core::Result<void>();
    if (!long_enough) return std::nullopt;
    return core::Result<void>(
        core::fail(ErrorCode::kUnavailable, node() + " cannot leave, because Slurm does not answer: " + cause.message));
  }
  /// Reports whether slurmd does not run, so that this machine cannot ask Slurm, and no step runs on this machine either.
  bool dead_without_steps(const core::Error& cause, bool may_be_starting) {
    const auto slurmd = state_of_slurmd();
    const auto steps = parts_.slurmd.steps();
    if (!slurmd || slurmd->running || (slurmd->changing && !may_be_starting) || !steps || !steps->empty()) return false;
    parts_.tools.log("WARNING", "slurmd does not run, and no step is on this machine. Slurm may still have a record of " +
                                    node() + ": " + cause.message);
    return true;
  }
  /// Takes the node out of Slurm after the relation has ended, as far as possible in this hook. Returns what the node waits
  /// for. nullopt: the node has left, or need not leave.
  std::optional<Status> leave_cluster() {
    const bool begins = seen_.event.name.ends_with("-relation-broken");
    if (!begins && !seen_.memory.leaving) return std::nullopt;
    if (!seen_.slurmd) return blocked("slurmd: " + seen_.slurmd.error().message);
    if (!is_ours(seen_.event, *seen_.slurmd)) return std::nullopt;
    ComputeMemory memory = seen_.memory;
    memory.leaving = true;
    if (auto done = write_memory(memory); !done) return blocked(done.error().message);
    const auto left = SlurmNode(seen_.event, parts_).take_out();
    if (!left && !dead_without_steps(left.error(), false))
      return waiting(node() + " leaves: Slurm does not answer: " + left.error().message);
    if (left && left->phase != Phase::kGone) return waiting(node() + " leaves: " + left->message);
    if (auto done = retire(); !done) return blocked(done.error().message);
    look_at_slurmd();
    return std::nullopt;
  }
  core::Result<void> stay_in_cluster() {
    ComputeMemory memory = seen_.memory;
    memory.leaving = false;
    return write_memory(memory);
  }
  /// Stops slurmd, and removes the files that this charm has written for it. Requires that the node has left or slurmd is dead.
  core::Result<void> retire() {
    if (auto done = parts_.slurmd.stop(); !done) return done;
    for (const KeySeen& key : {seen_.memory.key, seen_.memory.former}) {
      if (auto done = remove_key(key); !done) return done;
    }
    // uninstall() comes after the keys, because later hooks see no slurmd of ours then (is_ours()), and would remove no key.
    if (auto done = parts_.slurmd.uninstall(); !done) return done;
    ComputeMemory memory;
    memory.own_conf = seen_.memory.next_conf.value_or(seen_.memory.own_conf);
    if (memory != ComputeMemory{}) return write_memory(memory);
    auto done = parts_.host.remove(parts_.state / kMemory);
    if (done) seen_.memory = {};
    return done;
  }

  // --- the settings of this unit ---

  core::Result<Results> configure(const core::Json& parameters) {
    const std::string words = core::get_string(parameters, {"parameters"});
    const core::Json* given = core::find(parameters, {"reset"});
    const bool reset = given != nullptr && *given == true;
    if (words.empty() && !reset) return core::fail(ErrorCode::kInvalid, "give parameters, or reset=true");
    auto own = own_conf(seen_, words, reset);
    if (!own) return std::unexpected(own.error());
    const auto change = conf_change(seen_, *own);
    if (!change) return std::unexpected(change.error());
    ComputeMemory memory = seen_.memory;
    if (change->anew) {
      memory.next_conf = *own;
    } else {
      if (change->features) {
        if (auto done = SlurmNode(seen_.event, parts_).set_features(*change->features); !done)
          return std::unexpected(done.error());
      }
      memory.own_conf = *own;
      memory.next_conf.reset();
    }
    if (auto done = write_memory(memory); !done) return std::unexpected(done.error());
    const auto status = decide_and_act();
    if (!status) return std::unexpected(status.error());
    if (*status) {
      if (auto said = parts_.tools.set_status(**status); !said) return std::unexpected(said.error());
    }
    const char* result = change->stored_only      ? "stored: slurmd was not started for this unit"
                         : seen_.memory.next_conf ? "stored: the node is drained, and registers again when nothing runs there"
                                                  : "applied";
    return Results{{"result", result}, {"words", *own}, {"status", *status ? (*status)->message : ""}};
  }
  /// Takes the node out of Slurm once nothing runs there, so that it registers anew with ComputeMemory::next_conf. Returns what
  /// the node waits for; nullopt: nothing.
  std::optional<Status> register_anew() {
    if (!seen_.memory.next_conf || !seen_.slurmd || !seen_.slurmd->running || !is_ours(seen_.event, *seen_.slurmd))
      return std::nullopt;
    const auto left = SlurmNode(seen_.event, parts_, kConfigures).take_out([this](const slurm::Node& record) {
      ComputeMemory memory = seen_.memory;
      memory.kept_by = kept_by_others(record);
      return write_memory(memory);
    });
    const std::string what = node() + " must register again with its new parameters: ";
    if (!left) return waiting(what + "Slurm does not answer: " + left.error().message);
    if (left->phase != Phase::kGone) return waiting(what + left->message);
    ComputeMemory memory = seen_.memory;
    memory.own_conf = *std::exchange(memory.next_conf, std::nullopt);
    if (auto done = write_memory(memory); !done) return blocked(done.error().message);
    return std::nullopt;
  }
  core::Result<Results> state_of_node() {
    const auto now = record();
    if (!now) return std::unexpected(now.error());
    if (!*now) return core::fail(ErrorCode::kNotFound, "Slurm has no node " + node());
    if (!seen_.relation.empty() && !seen_.memory.leaving) {
      if (auto said = parts_.tools.set_status(observe(false)); !said) return std::unexpected(said.error());
    }
    return Results{{"state", (*now)->state}, {"reason", (*now)->reason}};
  }

  // --- what is known ---

  core::Result<void> look() {
    const auto leader = parts_.tools.is_leader();
    if (!leader) return std::unexpected(leader.error());
    seen_.leader = *leader;
    const auto config = parts_.tools.config();
    if (!config) return std::unexpected(config.error());
    seen_.partition_conf = core::get_string(*config, {"partition-config"});
    seen_.node_conf = core::get_string(*config, {"node-config"});
    if (auto looked = look_at_relation(); !looked) return looked;
    auto memory = read_memory();
    if (!memory) return std::unexpected(memory.error());
    seen_.memory = *std::move(memory);
    look_at_slurmd();
    look_at_key();
    return {};
  }
  core::Result<void> look_at_relation() {
    const auto relations = parts_.tools.relations(kComputeEndpoint);
    if (!relations) return std::unexpected(relations.error());
    const auto relation = std::ranges::find_if(*relations, [&](const std::string& id) { return !seen_.event.breaks(id); });
    if (relation == relations->end()) return {};
    seen_.relation = *relation;
    const auto app = parts_.tools.remote_app(*relation);
    if (!app) return std::unexpected(app.error());
    auto theirs = parts_.tools.databag(*relation, *app);
    if (!theirs) return std::unexpected(theirs.error());
    seen_.theirs = *std::move(theirs);
    if (!seen_.leader) return {};
    auto published = parts_.tools.databag(*relation, seen_.event.app);
    if (!published) return std::unexpected(published.error());
    seen_.published = *std::move(published);
    return {};
  }
  void look_at_slurmd() {
    seen_.slurmd = state_of_slurmd();
    if (seen_.slurmd && seen_.slurmd->running && !seen_.memory.detected.empty()) {
      seen_.detected = seen_.memory.detected;
      return;
    }
    auto facts = read_facts(parts_.host, {});
    if (facts) {
      seen_.detected = std::move(facts->detected);
    } else {
      seen_.detected = std::unexpected(facts.error());
    }
  }
  core::Result<SlurmdSeen> state_of_slurmd() {
    auto state = parts_.slurmd.state();
    if (!state) return std::unexpected(state.error());
    return SlurmdSeen{state->running, state->changing, std::move(state->error), std::move(state->arguments)};
  }
  void look_at_key() {
    const auto data = controller_data_from(seen_.theirs);
    if (!data || !*data) return;
    auto key = parts_.tools.key((*data)->auth_key_id, false);
    if (!key) {
      seen_.shared_key = std::unexpected(key.error());
      return;
    }
    key_ = *std::move(key);
    seen_.shared_key = KeySeen{key_.file, core::sha256_hex(key_.content)};
    seen_.local_key = local_key(key_.file);
    seen_.other_key = local_key(key_.file == kJwksFile ? "slurm.key" : std::string(kJwksFile));
  }
  core::Result<KeySeen> local_key(const std::string& file) {
    const auto local = parts_.host.read(file_of(file));
    if (local) return KeySeen{file, core::sha256_hex(*local)};
    if (local.error().code == ErrorCode::kNotFound) return KeySeen{};
    return std::unexpected(local.error());
  }

  // --- what is done ---

  core::Result<void> act(const ComputePlan& plan) {
    ComputeMemory memory = seen_.memory;
    if (plan.write_key) {
      if (auto done = write_key(memory); !done) return done;
    }
    if (plan.start) {
      const Launch& how = *plan.start;
      auto done = parts_.slurmd.start(slurmd_arguments(how.node, how.conf, how.controllers, how.instance));
      if (!done) return done;
      memory.detected = *seen_.detected;
    } else if (plan.reload) {
      if (auto done = parts_.slurmd.reload(); !done) return done;
    }
    memory.loaded = **seen_.shared_key;
    return write_memory(memory);
  }
  core::Result<void> write_key(ComputeMemory& memory) {
    const KeySeen& shared = **seen_.shared_key;
    if (!memory.key.file.empty() && memory.key.file != shared.file) memory.former = std::exchange(memory.key, {});
    if (*seen_.local_key != shared) memory.key = shared;
    // The memory is written first: a key file that it does not list would count as somebody else's.
    if (auto done = write_memory(memory); !done) return done;
    if (*seen_.local_key != shared) {
      if (auto done = parts_.host.write(file_of(shared.file), key_.content, 0600); !done) return done;
    }
    // A former slurm.jwks must be removed, because Slurm prefers it even to a newer slurm.key.
    if (memory.former.file != shared.file) {
      if (auto done = remove_key(memory.former); !done) return done;
    }
    memory.former = {};
    return {};
  }
  /// Removes a key file that this charm has written, unless somebody has changed the file since.
  core::Result<void> remove_key(const KeySeen& key) {
    if (key.file.empty()) return {};
    const auto there = local_key(key.file);
    if (!there) return std::unexpected(there.error());
    return *there == key ? parts_.host.remove(file_of(key.file)) : core::Result<void>();
  }
  [[nodiscard]] std::filesystem::path file_of(const std::string& key) const { return parts_.slurm_conf.parent_path() / key; }

  core::Result<ComputeMemory> read_memory() {
    const auto text = parts_.host.read(parts_.state / kMemory);
    if (!text && text.error().code == ErrorCode::kNotFound) return ComputeMemory{};
    if (!text) return std::unexpected(text.error());
    const auto json = core::parse_json(*text);
    if (!json) return std::unexpected(json.error().with(kMemory));
    return compute_memory_from(*json);
  }
  core::Result<void> write_memory(const ComputeMemory& memory) {
    if (memory == seen_.memory) return {};
    auto done = parts_.host.write(parts_.state / kMemory, to_json(memory).dump() + "\n", 0600);
    if (done) seen_.memory = memory;
    return done;
  }

  /// Returns the status of the unit. `fresh`: slurmd was just started or reloaded, so waits until it has registered.
  Status observe(bool fresh) {
    for (auto waited = 0ms;; waited += kLookAgain) {
      const core::Result<SlurmdSeen> slurmd = state_of_slurmd();
      const bool last = !fresh || waited >= kRegisters;
      const auto shown = record();
      const Status out = status_of(seen_.event, slurmd, shown, last);
      registered_.reset();
      lost_ = shown && !*shown && slurmd && slurmd->running;
      if (shown && *shown && (*shown)->instance == instance_of(seen_.event)) {
        registered_ = **shown;
        note_registered();
      }
      if (last || out.kind == Status::Kind::kActive) return out;
      // While `changing`, the service manager may be about to start slurmd again, so that the wait goes on.
      if (slurmd && !slurmd->running && !slurmd->changing && !slurmd->error.empty()) return out;
      parts_.pause(kLookAgain);
    }
  }
  /// Clears ComputeMemory::kept_by. The node has registered with this drain, and later registrations must not repeat the drain.
  void note_registered() {
    if (seen_.memory.kept_by.empty()) return;
    ComputeMemory memory = seen_.memory;
    memory.kept_by.clear();
    if (auto done = write_memory(memory); !done) parts_.tools.log("WARNING", done.error().message);
  }
  core::Result<std::optional<Registered>> record() {
    const auto output = parts_.host.run({"scontrol", "--json", "show", "node", node_of(seen_.event.unit)}, kRegisters, "");
    if (!output) return std::unexpected(output.error());
    const auto json = core::parse_json(output->out);
    if (json && core::find(*json, {"nodes"}) != nullptr) return registered_from(*json);
    return core::fail(ErrorCode::kUnavailable, "scontrol: " + telling_lines(output->err));
  }

  static constexpr const char* kMemory = "charm-slurmd.json";
  /// How long a hook waits for a registration, which takes a second at most. Other hooks of the machine wait meanwhile.
  static constexpr auto kRegisters = 10s;
  static constexpr auto kLookAgain = 500ms;
  static constexpr const char* kAdministrator = "drained with juju";
  static constexpr auto kLeavePoll = 5s;
  /// How long `stop` waits for Slurm's answer. Then `stop` fails, so that other hooks of the machine run before the next try.
  static constexpr auto kUnanswered = 10min;

  const CharmParts& parts_;
  ComputeSeen seen_;
  SharedKey key_;
  std::optional<Registered> registered_{};  ///< The record of this slurmd at the last observe().
  bool lost_ = false;                       ///< At the last observe(), slurmd ran, and Slurm had no record of the node.
};

}  // namespace

core::Result<std::optional<Status>> leave_compute(const Event& event, const CharmParts& parts) {
  return ComputeHook(event, parts).leave_for_good();
}

core::Result<Results> act_compute(const Event& event, const CharmParts& parts, bool leaves) {
  return ComputeHook(event, parts).act_for_administrator(leaves);
}

core::Result<std::optional<Status>> run_compute(const Event& event, const CharmParts& parts) {
  return ComputeHook(event, parts).run();
}

}  // namespace enlist::juju
