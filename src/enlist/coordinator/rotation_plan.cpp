#include "enlist/coordinator/rotation_plan.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "enlist/coordinator/pools_plan.hpp"
#include "enlist/rules/pool_file.hpp"
#include "slurm/rollout/rollout.hpp"

namespace enlist {
namespace {

namespace rollout = slurm::rollout;
using slurm::Owner;

plan::StepId write_id(const Rotation& state) {
  return {"write", "auth key", "", std::string(to_string(state.phase))};
}

/// True if slurmctld has refused the file with this mark, and with the pools that it had accepted (pools_plan.cpp): the keys
/// are the cause.
bool refuses_key(const rollout::State& stored, const std::string& mark) {
  const rollout::Files files = stored.accepted_files();
  if (files.empty() || key_revision_of(files.begin()->second) == mark) return false;
  return stored.refused_hash == hash_of(with_key_revision(files.begin()->second, mark));
}

Rotating judge_now(const Rotation& state, const RotationObserved& observed) {
  RotationInput in{.state = state,
                   .keys = observed.keys,
                   .nodes = observed.nodes,
                   .others = observed.others,
                   .slurm = observed.slurm,
                   .lifetime = observed.lifetime,
                   .settled_since = observed.settled_since,
                   .now = observed.context.now,
                   .mono = observed.context.mono};
  // slurmctld may run with an offered or accepted file that has the mark, and refuse a later file because of a new pool.
  const auto stored = observed.pool_file ? rollout_from_json(*observed.pool_file) : rollout::State{};
  std::vector<std::string> marked{pool_file(observed.pools, state.mark)};
  if (stored) {
    for (const rollout::Files& files : {stored->offered, stored->accepted}) {
      for (const auto& [name, text] : files) {
        if (key_revision_of(text) == state.mark) marked.push_back(text);
      }
    }
  }
  const std::optional<std::string> loaded = rollout::loaded(Owner::kEnlistment, observed.slurm);
  in.loaded = loaded && std::ranges::any_of(marked, [&](const std::string& text) { return hash_of(text) == *loaded; });
  if (stored && stored->refused_at && refuses_key(*stored, state.mark)) {
    in.refused.emplace(*stored->refused_at, stored->refused_reason);
    in.next_try = rollout::next_try(*stored).value_or(observed.context.now);
  }
  Rotating out = judge_rotation(in);
  const plan::Outcome* written = rollout::outcome_of(observed.context, write_id(state));
  if (out.write && written != nullptr && written->error)
    out.problem = "the key file cannot be written: " + written->error->message;
  return out;
}

}  // namespace

std::string key_mark_of(const std::map<std::string, core::Json>& values) {
  const auto found = values.find(kRotationValue);
  return found == values.end() ? "" : core::get_string(found->second, {"mark"});
}

plan::Plan plan_rotation(const RotationObserved& observed) {
  plan::Plan out;
  if (!observed.state) return out;
  const core::Result<Rotation> state = rotation_from(*observed.state);
  if (!state || state->phase == RotationPhase::kEnded) return out;
  const Rotating now = judge_now(*state, observed);
  plan::Lane& lane = out.lane("auth key");
  if (now.next) {
    const std::string phase(to_string(now.next->phase));
    lane.add({{"record", "rotation", "", phase},
              "the rotation of the auth key goes on",
              std::make_shared<RecordRotation>(*observed.state, to_json(*now.next))});
  } else if (now.write) {
    lane.add({write_id(*state), "it is rotated", std::make_shared<WriteAuthKey>(observed.keys->revision, *now.write)});
  }
  if (now.look_again) out.wake_after(*now.look_again, "the auth key is rotated");
  if (!now.settled && now.hosts.empty() && !now.next && !now.write) out.waits_on(observed.cluster);
  return out;
}

core::Json rotation_status(const RotationObserved& observed) {
  if (!observed.state) return {{"phase", ""}, {"running", false}};
  const core::Result<Rotation> state = rotation_from(*observed.state);
  if (!state) return {{"phase", ""}, {"running", false}, {"problem", state.error().message}};
  const Rotating now = judge_now(*state, observed);
  core::Json out{{"phase", to_string(state->phase)},
                 {"running", state->phase != RotationPhase::kEnded},
                 {"began", core::format_rfc3339(state->began)},
                 {"since", core::format_rfc3339(state->since)},
                 {"abandoned", state->abandoned},
                 {"hosts", core::Json::array()},
                 {"holders", core::Json::array()}};
  for (const RotationWait& wait : now.hosts)
    out["hosts"].push_back({{"host", wait.host}, {"why", wait.why}, {"acknowledge", wait.by_people}, {"here", wait.here}});
  for (const KeyHolder& holder : all_holders(observed.others, observed.nodes, observed.slurm))
    out["holders"].push_back({{"host", holder.host}, {"what", holder.what}});
  for (const auto& [member, text] : {std::pair{"waits", now.waits}, std::pair{"problem", now.problem},
                                     std::pair{"refusal", state->refusal}, std::pair{"result", state->result}}) {
    if (!text.empty()) out[member] = text;
  }
  if (!state->without.empty()) out["without"] = state->without;
  return out;
}

}  // namespace enlist
