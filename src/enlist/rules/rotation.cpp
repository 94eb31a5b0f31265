#include "enlist/rules/rotation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "enlist/rules/judge.hpp"
#include "slurm/rollout/rollout.hpp"

namespace enlist {
namespace {

using core::ErrorCode;
using core::Json;
using namespace std::chrono_literals;

constexpr std::array<std::string_view, 5> kRotationPhases = {"Spread", "Sign", "Retire", "Return", "Ended"};
/// Tolerance for the start times of jobs. slurmctld's clock is known only to a second and to the time that slurmctld takes to
/// answer, and a slurmstepd reads the keys after the start of its job.
constexpr core::Duration kJobMargin = 5s;
/// The largest number of names in a message.
constexpr std::size_t kNamedOfRotation = 10;

std::string named_jobs(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), kNamedOfRotation); ++i) out += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kNamedOfRotation ? fmt::format("{} and {} others", out, names.size() - kNamedOfRotation) : out;
}

/// The keys that the file has in a phase, and the kid of the key that signs.
struct Content {
  std::vector<KeyId> keys;
  std::string signer;
};

Content content_of(const Rotation& state, RotationPhase phase) {
  if (phase == RotationPhase::kReturn) return {state.old_keys, state.old_signer};
  if (phase == RotationPhase::kRetire) return {{state.fresh}, state.fresh.kid};
  Content out{state.old_keys, phase == RotationPhase::kSpread ? state.old_signer : state.fresh.kid};
  out.keys.push_back(state.fresh);
  return out;
}

bool is_content(const KeySet& set, const Content& content) {
  return has_keys(set, content.keys, content.signer);
}

/// True if the rotation may replace the file that is there with the file of its phase: it is the file of the phase before, or
/// in Spread also that of Sign, from which the rotation goes back.
bool may_replace(const KeySet& set, const Rotation& state) {
  const auto is = [&](RotationPhase phase) { return is_content(set, content_of(state, phase)); };
  switch (state.phase) {
    case RotationPhase::kSpread:
      return (is(RotationPhase::kReturn) && !state.signed_anew) || is(RotationPhase::kSign);
    case RotationPhase::kSign:
      return is(RotationPhase::kSpread);
    case RotationPhase::kRetire:
      return is(RotationPhase::kSign);
    case RotationPhase::kReturn:
      return is(RotationPhase::kSpread);
    case RotationPhase::kEnded:
      break;
  }
  return false;
}

/// True if the new key may have signed although Rotation::signed_anew is false, because an older copy of the store was
/// restored.
bool unexpected_sign(const KeySet& keys, const Rotation& state) {
  return state.phase == RotationPhase::kSpread && !state.signed_anew &&
         is_content(keys, content_of(state, RotationPhase::kSign));
}

bool is_foreign(const KeySet& keys, const Rotation& state) {
  return !is_content(keys, content_of(state, state.phase)) && !may_replace(keys, state);
}

KeyChange change_of(const Rotation& state) {
  const Content content = content_of(state, state.phase);
  KeyChange out{.kids = {}, .signer = content.signer};
  if (state.phase == RotationPhase::kSpread) out.fresh_kid = state.fresh.kid;
  out.note = fmt::format("{} {}", to_string(state.phase), core::format_rfc3339(state.since));
  for (const KeyId& key : content.keys) out.kids.push_back(key.kid);
  return out;
}

Rotation in_phase(Rotation state, RotationPhase phase, core::WallTime now) {
  state.phase = phase;
  state.since = std::max(core::whole_seconds(now), state.since + 1s);
  state.revision.clear();
  state.acknowledged.clear();
  state.settled = {};
  return state;
}

Rotation ended(Rotation state, std::string result, core::WallTime now) {
  Rotation out = in_phase(std::move(state), RotationPhase::kEnded, now);
  out.result = std::move(result);
  return out;
}

/// Returns why the node has not loaded the key file; "": it has, or it does not need the key any more.
std::string not_loaded(const Node& node, const std::string& revision) {
  const Report& report = node.report;
  if (!has_reported(report)) return "its agent has not reported yet";
  if (report.stopped && node.leaving.wanted) return "";  // slurmd does not start again there.
  if (report.key_revision != revision) {
    return "its agent does not have the key file of this phase yet" + (report.error.empty() ? "" : ": " + report.error);
  }
  if (report.key_loaded == revision) return "";
  return "it has the key file; its slurmd has not loaded it yet, or its agent is too old to report this";
}

bool exempt(const RotationInput& in, const Node& node) {
  if (node.revoked) return true;
  return in.state.without.contains(node.name) && must_wait_for(in.slurm, node.name).empty();
}

std::vector<RotationWait> waits_for(const RotationInput& in, const std::string& revision) {
  std::vector<RotationWait> out;
  for (const auto& [name, node] : in.nodes) {
    if (exempt(in, node)) continue;
    if (std::string why = not_loaded(node, revision); !why.empty()) {
      if (node.phase == Phase::kSilent) why += "; the host is silent";
      out.push_back({.host = name, .why = std::move(why)});
    }
  }
  for (const KeyHolder& holder : all_holders(in.others, in.nodes, in.slurm)) {
    const bool left_out = in.state.without.contains(holder.host) && must_wait_for(in.slurm, holder.host).empty();
    if (left_out || in.state.acknowledged.contains(holder.host)) continue;
    out.push_back({.host = holder.host, .why = holder.what, .by_people = true, .here = holder.here});
  }
  return out;
}

/// Returns the jobs whose slurmstepd may have older keys than those of this phase.
std::vector<std::string> jobs_with_keys(const RotationInput& in) {
  std::vector<std::string> out;
  const core::WallTime now = in.slurm->time_at(in.mono).value_or(in.now);
  for (const auto& [id, job] : in.slurm->jobs) {
    if (!job->holds_nodes() || (!job->stepmgr && id >= 0)) continue;
    // If the start is in the future, the clock was set back since, so the start time is useless.
    const bool known = job->start && *job->start <= now + kJobMargin;
    if (!known || *job->start <= in.state.settled + kJobMargin) out.push_back(job->full_id());
  }
  return out;
}

std::vector<std::string> jobs_that_start(const slurm::Snapshot& slurm) {
  std::vector<std::string> out;
  for (const auto& [id, job] : slurm.jobs) {
    if (job->starting()) out.push_back(job->full_id());
  }
  return out;
}

/// Decides what follows once all daemons have loaded the file of the phase: another phase, the end, or a wait.
void leave_phase(const RotationInput& in, Rotating& out) {
  const Rotation& state = in.state;
  if (state.settled == core::WallTime{}) {
    out.next = state;
    out.next->settled = core::whole_seconds(in.slurm->time_at(in.mono).value_or(in.now));
    return;
  }
  if (state.phase == RotationPhase::kReturn) {
    const std::string why = state.abandoned ? "it was abandoned" : "slurmctld refused to load the keys: " + state.refusal;
    out.next = ended(state, why + "; the cluster has its former key", in.now);
    return;
  }
  if (state.phase == RotationPhase::kRetire) {
    out.next = ended(state, "done: the cluster has a new key", in.now);
    return;
  }
  // If the clock was set back to before the refusal, there is no wait.
  if (state.try_at > in.now && in.now >= state.refused_at) {
    out.waits = fmt::format("slurmctld refused to load the next phase ({}); the coordinator tries it again at {}",
                            state.refusal, core::format_rfc3339(state.try_at));
    out.look_again = state.try_at - in.now;
    return;
  }
  const bool back = state.phase == RotationPhase::kSpread && state.abandoned;
  const bool expires = state.phase == RotationPhase::kSign || (back && state.signed_anew);
  const core::Duration lifetime = std::max(in.lifetime, state.lifetime);
  if (expires) {
    const core::MonoTime due = in.settled_since.value_or(in.mono) + lifetime;
    if (in.mono < due) {
      out.waits = fmt::format("tokens and credentials that were signed before expire within {} s",
                              std::chrono::duration_cast<std::chrono::seconds>(lifetime).count());
      out.look_again = due - in.mono;
      return;
    }
  }
  if (const auto jobs = jobs_with_keys(in); !jobs.empty()) {
    out.waits = "jobs keep the keys with which they started (--stepmgr): " + named_jobs(jobs);
    out.look_again = 5s;
    return;
  }
  const RotationPhase next = back                                    ? RotationPhase::kReturn
                             : state.phase == RotationPhase::kSpread ? RotationPhase::kSign
                                                                     : RotationPhase::kRetire;
  out.next = in_phase(state, next, in.now);
  out.next->signed_anew = state.signed_anew || next == RotationPhase::kSign;
}

/// Returns to the phase before, because slurmctld has refused to load the file of this phase. In three cases the file stays,
/// because slurmctld works with it after a restart: in Retire (the old key does not exist any more), in Return, and in Spread
/// if the new key may have signed.
void step_back(const RotationInput& in, Rotating& out) {
  const bool stays = in.state.phase == RotationPhase::kRetire || in.state.phase == RotationPhase::kReturn ||
                     (in.state.phase == RotationPhase::kSpread && in.state.signed_anew);
  if (stays) {
    out.waits = fmt::format("slurmctld refused to load the file: {}; the coordinator tries it again at {}", in.refused->second,
                            core::format_rfc3339(in.next_try));
    return;
  }
  out.next =
      in_phase(in.state, in.state.phase == RotationPhase::kSign ? RotationPhase::kSpread : RotationPhase::kReturn, in.now);
  out.next->refusal = in.refused->second;
  out.next->refused_at = in.refused->first;
  // The rollout of the pool file forgets the refusal when it gets the former file, so the refusals are counted here. The pauses
  // grow because each try makes all slurmds reload twice.
  ++out.next->refusals;
  out.next->try_at = std::max(in.next_try, slurm::rollout::try_at(in.refused->first, out.next->refusals));
}

}  // namespace

std::string_view to_string(RotationPhase phase) {
  return kRotationPhases.at(static_cast<std::size_t>(phase));
}

std::vector<KeyHolder> all_holders(std::vector<KeyHolder> others, const std::map<std::string, Node>& nodes,
                                   const slurm::SnapshotPtr& slurm) {
  if (!slurm) return others;
  for (const auto& [name, node] : slurm->nodes) {
    if (nodes.contains(name) || node->state.base == "FUTURE") continue;
    if (std::ranges::find(others, name, &KeyHolder::host) == others.end()) others.push_back({name, "reload slurmd"});
  }
  return others;
}

core::Result<Rotation> begin_rotation(const KeySet& keys, const std::string& kid, core::WallTime now) {
  const auto taken = [&](const KeyId& key) { return key.kid == kid; };
  if (std::ranges::any_of(keys.keys, taken)) return core::fail(ErrorCode::kInvalid, "there is a key with the kid " + kid);
  Rotation out{.old_keys = keys.keys, .old_signer = keys.signer};
  out.fresh.kid = kid;
  out.began = out.since = core::whole_seconds(now);
  return out;
}

std::string must_wait_for(const slurm::SnapshotPtr& slurm, const std::string& node) {
  if (!slurm || !slurm->complete()) return "Slurm does not answer, so its jobs are not known";
  const slurm::Node* record = slurm->node(node);
  if (record == nullptr) return "";
  if (!slurm->jobs_on(node).empty()) return "Slurm has a job there";
  if (record->state.base != "DOWN" && !record->state.drains()) return "Slurm may start jobs there: drain it first";
  return "";
}

Rotating judge_rotation(const RotationInput& in) {
  Rotating out;
  const Rotation& state = in.state;
  if (state.phase == RotationPhase::kEnded) return out;
  if (!in.keys) {
    out.problem = in.keys.error().message;
    return out;
  }
  const KeySet& keys = *in.keys;
  const Content wanted = content_of(state, state.phase);
  if (!is_content(keys, wanted)) {
    if (!may_replace(keys, state)) {
      out.problem = fmt::format(
          "somebody else has changed the keys beside slurm.conf, and the coordinator does not overwrite them. Restore {} of "
          "the phase {}, or end the rotation with --abandon, which does not change the file",
          kJwksFile, to_string(state.phase));
    } else if (!state.revision.empty() || unexpected_sign(keys, state)) {
      // Somebody has replaced the file, and daemons may have loaded the replacement. So the phase begins again.
      out.next = in_phase(state, state.phase, in.now);
      out.next->signed_anew = state.signed_anew || unexpected_sign(keys, state);
      // Nothing was signed with the new key, so it is replaced by another one.
      if (state.phase == RotationPhase::kSpread && !out.next->signed_anew) out.next->fresh.print.clear();
    } else {
      out.write = change_of(state);
    }
    return out;
  }
  if (state.revision.empty() && keys.note != change_of(state).note) {
    // Somebody has restored a file of an earlier time with the same keys, which daemons may have loaded then.
    out.write = change_of(state);
    return out;
  }
  if (state.revision != keys.revision) {
    out.next = state;
    out.next->revision = keys.revision;
    out.next->settled = {};
    const auto found = std::ranges::find(keys.keys, state.fresh.kid, &KeyId::kid);
    if (found != keys.keys.end()) out.next->fresh.print = found->print;
    return out;
  }
  if (!in.slurm || !in.slurm->complete()) {
    out.waits = "Slurm does not answer";
    return out;
  }
  out.hosts = waits_for(in, keys.revision);
  if (!out.hosts.empty()) {
    out.look_again = 5s;
    return out;
  }
  const std::string mark = state.phase == RotationPhase::kReturn ? state.former_mark : keys.revision;
  if (state.mark != mark) {
    out.next = state;
    out.next->mark = mark;
    return out;
  }
  if (!in.loaded && in.refused && in.refused->first != state.refused_at) {
    step_back(in, out);
    return out;
  }
  if (!in.loaded) {
    const std::vector<std::string> starting = jobs_that_start(*in.slurm);
    out.waits = "slurmctld has not loaded the file yet: see also slurm-enlist pool list";
    if (!starting.empty())
      out.waits = "slurmctld has not loaded the file yet, because that would cut short the jobs that are starting: " +
                  named_jobs(starting);
    return out;
  }
  out.settled = true;
  leave_phase(in, out);
  return out;
}

core::Result<Rotation> abandoned(const Rotation& state, const core::Result<KeySet>& keys, core::WallTime now) {
  if (state.phase == RotationPhase::kEnded) return core::fail(ErrorCode::kConflict, "no rotation runs");
  if (!keys && keys.error().code == ErrorCode::kUnavailable) return std::unexpected(keys.error());
  if (!keys || is_foreign(*keys, state))
    return ended(state, "it was abandoned; somebody else has changed the keys beside slurm.conf, and they stay as they are",
                 now);
  if (state.phase == RotationPhase::kRetire) {
    return core::fail(
        ErrorCode::kConflict,
        "the old key does not exist any more; let the rotation end, and start another one if you do not want the new key");
  }
  Rotation out = state;
  out.abandoned = true;
  out.try_at = {};
  if (state.phase == RotationPhase::kSign || unexpected_sign(*keys, state)) {
    out = in_phase(std::move(out), RotationPhase::kSpread, now);
    out.signed_anew = true;
  } else if (state.phase == RotationPhase::kSpread && !state.signed_anew) {
    // All daemons sign with the old key, so the rotation can go straight to Return.
    out = in_phase(std::move(out), RotationPhase::kReturn, now);
  }
  return out;
}

core::Json to_json(const Rotation& state) {
  const auto key = [](const KeyId& id) { return Json{{"kid", id.kid}, {"print", id.print}}; };
  Json old_keys = Json::array();
  for (const KeyId& id : state.old_keys) old_keys.push_back(key(id));
  return {{"phase", to_string(state.phase)},
          {"oldKeys", std::move(old_keys)},
          {"oldSigner", state.old_signer},
          {"newKey", key(state.fresh)},
          {"began", core::format_rfc3339(state.began)},
          {"since", core::format_rfc3339(state.since)},
          {"revision", state.revision},
          {"mark", state.mark},
          {"formerMark", state.former_mark},
          {"settled", core::format_rfc3339(state.settled)},
          {"signedAnew", state.signed_anew},
          {"abandoned", state.abandoned},
          {"lifetimeMs", state.lifetime.count()},
          {"also", state.also},
          {"acknowledged", state.acknowledged},
          {"without", state.without},
          {"refusal", state.refusal},
          {"refusals", state.refusals},
          {"refusedAt", core::format_rfc3339(state.refused_at)},
          {"tryAt", core::format_rfc3339(state.try_at)},
          {"result", state.result}};
}

core::Result<Rotation> rotation_from(const core::Json& json) {
  const auto wrong = [](const char* member) {
    return core::fail(ErrorCode::kInvalid, "the stored state of the rotation has a wrong " + std::string(member));
  };
  const auto key = [](const Json& id) { return KeyId{core::get_string(id, {"kid"}), core::get_string(id, {"print"})}; };
  Rotation out;
  const auto phase = std::ranges::find(kRotationPhases, core::get_string(json, {"phase"}));
  if (phase == kRotationPhases.end()) return wrong("phase");
  out.phase = static_cast<RotationPhase>(phase - kRotationPhases.begin());
  const Json* old_keys = core::find(json, {"oldKeys"});
  const Json* fresh = core::find(json, {"newKey"});
  if (old_keys == nullptr || !old_keys->is_array() || old_keys->empty()) return wrong("oldKeys");
  if (fresh == nullptr || key(*fresh).kid.empty()) return wrong("newKey");
  for (const Json& id : *old_keys) out.old_keys.push_back(key(id));
  out.fresh = key(*fresh);
  for (const auto& [member, place] :
       {std::pair{"oldSigner", &out.old_signer}, std::pair{"revision", &out.revision}, std::pair{"mark", &out.mark},
        std::pair{"formerMark", &out.former_mark}, std::pair{"refusal", &out.refusal}, std::pair{"result", &out.result}})
    *place = core::get_string(json, {member});
  if (out.old_signer.empty()) return wrong("oldSigner");
  for (const auto& [member, place] :
       {std::pair{"began", &out.began}, std::pair{"since", &out.since}, std::pair{"settled", &out.settled},
        std::pair{"refusedAt", &out.refused_at}, std::pair{"tryAt", &out.try_at}}) {
    const auto time = core::parse_rfc3339(core::get_string(json, {member}));
    if (!time) return wrong(member);
    *place = *time;
  }
  for (const auto& [member, place] :
       {std::pair{"also", &out.also}, std::pair{"acknowledged", &out.acknowledged}, std::pair{"without", &out.without}}) {
    const Json* list = core::find(json, {member});
    if (list == nullptr || !list->is_array()) return wrong(member);
    for (const Json& item : *list) {
      if (!item.is_string()) return wrong(member);
      place->insert(item.get<std::string>());
    }
  }
  out.signed_anew = core::get_bool(json, {"signedAnew"});
  out.abandoned = core::get_bool(json, {"abandoned"});
  out.lifetime = core::Duration{core::get_int(json, {"lifetimeMs"})};
  out.refusals = static_cast<int>(core::get_int(json, {"refusals"}));
  return out;
}

}  // namespace enlist
