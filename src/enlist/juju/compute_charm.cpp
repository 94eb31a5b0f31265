#include <algorithm>
#include <utility>

#include "core/hash.hpp"
#include "enlist/agent/machine.hpp"
#include "enlist/host/spawn.hpp"
#include "enlist/juju/compute.hpp"
#include "enlist/juju/departure.hpp"
#include "enlist/juju/program.hpp"
#include "enlist/rules/node_conf.hpp"

namespace enlist::juju {
namespace {

using core::ErrorCode;
using namespace std::chrono_literals;

/// One hook of the charm slurmd: looks, lets the plan decide, and acts.
class ComputeHook {
 public:
  ComputeHook(const Event& event, const CharmParts& parts) : parts_(parts) { seen_.event = event; }

  core::Result<std::optional<Status>> run() {
    if (auto looked = look(); !looked) return std::unexpected(looked.error());
    if (seen_.relation.empty()) {
      if (const auto leaves = leave_cluster()) return leaves;
    } else if (auto done = stay_in_cluster(); !done) {
      return waiting(done.error().message);
    }
    const ComputePlan plan = plan_compute(seen_);
    if (plan.publish) {
      if (auto done = parts_.tools.publish(seen_.relation, *plan.publish); !done) return std::unexpected(done.error());
    }
    // Without the partition, slurmctld has nothing to publish, so that this is the cause of the obstacle as well.
    if (plan.obstacle) return plan.not_published ? plan.not_published : plan.obstacle;
    if (auto done = act(plan); !done) return blocked("slurmd does not start: " + done.error().message);
    const Status status = observe(plan.start || plan.reload);
    // That the application publishes nothing is said unless there is worse to say.
    if (plan.not_published && status.kind != Status::Kind::kBlocked) return plan.not_published;
    return status;
  }

  /// Carries out a hook of a unit that leaves. No event follows that of `stop`, which therefore waits.
  core::Result<std::optional<Status>> leave_for_good() {
    auto memory = read_memory();
    if (!memory) return std::unexpected(memory.error());
    seen_.memory = *std::move(memory);
    const auto slurmd = state_of_slurmd();
    if (!slurmd) return std::unexpected(slurmd.error());
    if (!is_ours(seen_.event, *slurmd)) return std::nullopt;
    if (seen_.event.name == "stop") return wait_and_leave();
    if (auto drained = Departure(seen_.event, parts_).drain(); !drained)
      parts_.tools.log("WARNING", node() + " is not drained yet: " + drained.error().message);
    return waiting(node() + " leaves");
  }

 private:
  [[nodiscard]] std::string node() const { return node_of(seen_.event.unit); }

  // --- the node leaves ---

  core::Result<std::optional<Status>> wait_and_leave() {
    Departure departure(seen_.event, parts_);
    core::MonoTime answered = parts_.now();
    for (std::string told;; parts_.pause(kLeavePoll)) {
      const auto left = departure.advance();
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
    if (auto done = retire(); !done) return std::unexpected(done.error());
    return std::nullopt;
  }
  /// Decides what a unit does that cannot ask Slurm. nullopt: it waits. Error: it has waited for too long.
  std::optional<core::Result<void>> without_slurm(const core::Error& cause, core::MonoTime answered) {
    const auto slurmd = state_of_slurmd();
    const auto steps = parts_.slurmd.steps();
    if (slurmd && !slurmd->running && !slurmd->changing && steps && steps->empty()) {
      parts_.tools.log("WARNING", "slurmd does not run, and no step is on this machine. Slurm may still have a record of " +
                                      node() + ": " + cause.message);
      return core::Result<void>();
    }
    if (parts_.now() - answered < kUnanswered) return std::nullopt;
    return core::Result<void>(
        core::fail(ErrorCode::kUnavailable, node() + " cannot leave, because Slurm does not answer: " + cause.message));
  }
  /// The relation has ended, and the unit stays: the node leaves step by step, one in each hook. nullopt: there is none.
  std::optional<Status> leave_cluster() {
    const bool begins = seen_.event.name.ends_with("-relation-broken");
    if (!begins && !seen_.memory.leaving) return std::nullopt;
    if (!seen_.slurmd) return blocked("slurmd: " + seen_.slurmd.error().message);
    if (!is_ours(seen_.event, *seen_.slurmd)) return std::nullopt;
    ComputeMemory memory = seen_.memory;
    memory.leaving = true;
    if (auto done = write_memory(memory); !done) return blocked(done.error().message);
    const auto left = Departure(seen_.event, parts_).advance();
    if (!left) return waiting(node() + " leaves: Slurm does not answer: " + left.error().message);
    if (left->phase != Phase::kGone) return waiting(node() + " leaves: " + left->message);
    if (auto done = retire(); !done) return blocked(done.error().message);
    look_at_slurmd();
    return std::nullopt;
  }
  core::Result<void> stay_in_cluster() {
    if (!seen_.memory.leaving) return {};
    if (auto done = Departure(seen_.event, parts_).stay(); !done) return done;
    ComputeMemory memory = seen_.memory;
    memory.leaving = false;
    return write_memory(memory);
  }
  /// Stops slurmd, and removes what this charm has written for it. The node is out of Slurm.
  core::Result<void> retire() {
    if (auto done = parts_.slurmd.stop(); !done) return done;
    if (auto done = parts_.slurmd.uninstall(); !done) return done;
    if (const KeyFile& key = seen_.memory.key; !key.file.empty()) {
      const auto there = parts_.host.read(file_of(key.file));
      if (there && core::sha256_hex(*there) == key.digest) {
        if (auto done = parts_.host.remove(file_of(key.file)); !done) return done;
      }
    }
    auto done = parts_.host.remove(parts_.state / kMemory);
    if (done) seen_.memory = {};
    return done;
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
    const auto local = parts_.host.read(file_of(key_.file));
    if (local) {
      seen_.local_key = KeySeen{key_.file, core::sha256_hex(*local)};
    } else if (local.error().code != ErrorCode::kNotFound) {
      seen_.local_key = std::unexpected(local.error());
    }
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
    memory.loaded_key = (*seen_.shared_key)->digest;
    return write_memory(memory);
  }
  core::Result<void> write_key(ComputeMemory& memory) {
    const std::string before = memory.key.file;
    memory.key = {key_.file, "", (*seen_.shared_key)->digest};
    // The note comes first: a key without it would count as somebody else's.
    if (auto done = write_memory(memory); !done) return done;
    if (auto done = parts_.host.write(file_of(key_.file), key_.content, 0600); !done) return done;
    // Slurm prefers slurm.jwks, also to a newer slurm.key.
    if (before.empty() || before == key_.file) return {};
    return parts_.host.remove(file_of(before));
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

  /// Returns what has become of slurmd. `fresh`: it has just been told to register.
  Status observe(bool fresh) {
    for (auto waited = 0ms;; waited += kLookAgain) {
      const core::Result<SlurmdSeen> slurmd = state_of_slurmd();
      const bool last = !fresh || waited >= kRegisters;
      const Status out = status_of(seen_.event, slurmd, record(), last);
      if (last || out.kind == Status::Kind::kActive) return out;
      // It may be between two starts by the service manager.
      if (slurmd && !slurmd->running && !slurmd->changing && !slurmd->error.empty()) return out;
      parts_.pause(kLookAgain);
    }
  }
  core::Result<std::optional<Registered>> record() {
    const auto output = parts_.host.run({"scontrol", "--json", "show", "node", node_of(seen_.event.unit)}, kRegisters, "");
    if (!output) return std::unexpected(output.error());
    const auto json = core::parse_json(output->out);
    if (json && core::find(*json, {"nodes"}) != nullptr) return registered_from(*json);
    return core::fail(ErrorCode::kUnavailable, "scontrol: " + telling_lines(output->err));
  }

  static constexpr const char* kMemory = "charm-slurmd.json";
  /// Slurm takes a node within a second. So long it is waited for, since other hooks of the machine wait meanwhile.
  static constexpr auto kRegisters = 10s;
  static constexpr auto kLookAgain = 500ms;
  static constexpr auto kLeavePoll = 5s;
  /// So long `stop` waits for Slurm's answer. Then it fails, so that other hooks of the machine run before Juju tries it again.
  static constexpr auto kUnanswered = 10min;

  const CharmParts& parts_;
  ComputeSeen seen_;
  SharedKey key_;
};

}  // namespace

core::Result<std::optional<Status>> leave_compute(const Event& event, const CharmParts& parts) {
  return ComputeHook(event, parts).leave_for_good();
}

core::Result<std::optional<Status>> run_compute(const Event& event, const CharmParts& parts) {
  return ComputeHook(event, parts).run();
}

}  // namespace enlist::juju
