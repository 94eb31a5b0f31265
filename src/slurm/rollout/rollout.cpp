#include "slurm/rollout/rollout.hpp"

#include <algorithm>
#include <utility>

#include "slurm/conf/loaded.hpp"

namespace slurm::rollout {
namespace {

/// The time for which a refused content waits for its next try. The time doubles with each refusal, up to kLongestRetry.
constexpr core::Duration kFirstRetry{60000};
constexpr core::Duration kLongestRetry{30 * 60 * 1000};

void roll_back(State& state) {
  state.offered = std::move(state.accepted);
  state.offered_hash = state.accepted_hash;
  state.offered_asked.clear();
  state.accepted.clear();
}

enum class Move { kStay, kRollBack, kOffer };

// clang-format off
/// The columns: the offered content, whether the wanted content was refused, the state of slurmctld, and the move.
/// wanted   no       any                                          stay
/// wanted   now      has just refused the content                 roll back, if a content was ever accepted
/// wanted   before   is up, and has not answered yet: a try       stay
/// wanted   before   has refused it again, or is not up           roll back, if a content was ever accepted
/// other    no       any                                          offer
/// other    before   runs the offered content, and a try is due   offer; otherwise stay
/// other    now      crashes, and no content was ever accepted    offer
// clang-format on
Move choose(const State& state, const Wanted& wanted, const Slurmctld& slurmctld, bool may_try) {
  const bool was_refused = state.refuses(wanted);
  if (was_refused && state.offered_hash == state.refused_hash) {
    // slurmctld must find the accepted content when it starts, so roll back unless slurmctld is up and still trying.
    const bool trying = !slurmctld.refusal && slurmctld.ready;
    if (state.can_roll_back()) return trying ? Move::kStay : Move::kRollBack;
    // The offered content may contain a line that is needed only for jobs and that prevents slurmctld from starting.
    return slurmctld.crashes && state.offered_hash != wanted.hash ? Move::kOffer : Move::kStay;
  }
  const bool tries =
      may_try && state.is_loaded(slurmctld) && slurmctld.ready && try_due(state.refused_at, state.refusals, slurmctld.now);
  if (was_refused && !tries) return Move::kStay;
  // The same hash with different files means that somebody has edited the files.
  return state.offered_hash == wanted.hash && state.offered == wanted.files ? Move::kStay : Move::kOffer;
}

}  // namespace

Files State::accepted_files() const {
  if (accepted_hash.empty()) return {};
  return offered_hash == accepted_hash ? offered : accepted;
}

bool State::offers(const Wanted& wanted) const {
  return offered_hash == wanted.hash || (!offered_asked.empty() && offered_asked == wanted.asked);
}

bool State::refuses(const Wanted& wanted) const {
  if (refused_hash.empty()) return false;
  return refused_hash == wanted.hash || (!refused_asked.empty() && refused_asked == wanted.asked);
}

void State::forget_refusal() {
  refused_hash.clear();
  refused_asked.clear();
  refused_reason.clear();
  refused_at.reset();
  refusals = 0;
}

State next_state(const State& now, const std::optional<Wanted>& wanted, const Slurmctld& slurmctld) {
  State next = now;
  note_loaded(next, slurmctld);
  const bool refuses = is_refused(next, slurmctld);
  if (!wanted) {
    if (refuses) withdraw(next, slurmctld);
    return next;
  }
  if (refuses && next.offers(*wanted)) refuse_offered(next, wanted->asked, slurmctld);
  if (!next.refuses(*wanted)) next.forget_refusal();
  if (next.refused_hash.empty()) next.refused_by.clear();
  advance(next, *wanted, slurmctld);
  return next;
}

bool note_loaded(State& state, const Slurmctld& slurmctld) {
  if (!state.is_loaded(slurmctld)) return false;
  state.accepted_hash = state.offered_hash;
  state.accepted.clear();
  // slurmctld has accepted the content after all, perhaps at a later start.
  if (state.refused_hash == state.offered_hash) state.forget_refusal();
  if (!slurmctld.ready || slurmctld.made_of.empty() || slurmctld.made_of == state.refused_by) return false;
  state.forget_refusal();
  return true;
}

bool is_refused(const State& state, const Slurmctld& slurmctld) {
  return slurmctld.refusal && state.offered_hash != state.accepted_hash;
}

void refuse_offered(State& state, const std::string& asked, const Slurmctld& slurmctld) {
  state.refused_by = slurmctld.made_of;
  state.refused_hash = state.offered_hash;
  state.refused_asked = asked;
  state.refused_reason = *slurmctld.refusal;
  if (state.can_roll_back()) {
    state.refused_at = slurmctld.now;
    ++state.refusals;
  }
}

void withdraw(State& state, const Slurmctld& slurmctld) {
  if (!state.can_roll_back()) return;
  refuse_offered(state, state.offered_asked, slurmctld);
  roll_back(state);
}

void advance(State& state, Wanted wanted, const Slurmctld& slurmctld, bool may_try) {
  switch (choose(state, wanted, slurmctld, may_try)) {
    case Move::kStay:
      break;
    case Move::kRollBack:
      // If slurmctld went down during a try, that counts as a refusal as well.
      if (!slurmctld.refusal) {
        state.refused_at = slurmctld.now;
        ++state.refusals;
      }
      roll_back(state);
      break;
    case Move::kOffer:
      if (state.offered_hash == state.accepted_hash && state.exists()) state.accepted = state.offered;
      state.offered = std::move(wanted.files);
      state.offered_hash = std::move(wanted.hash);
      state.offered_asked = std::move(wanted.asked);
      // This offer tries the refused request again. Its content can differ from the refused content, so refused_hash is
      // updated.
      if (!state.refused_hash.empty()) state.refused_hash = state.offered_hash;
      // The offered content is the accepted content, so `accepted` must be empty (State::accepted).
      if (state.offered_hash == state.accepted_hash) state.accepted.clear();
      break;
  }
}

core::Duration wait_of_try(int count, core::Duration first, core::Duration longest) {
  core::Duration wait = first;
  for (int i = 1; i < count && wait < longest; ++i) wait *= 2;
  return std::min(wait, longest);
}

core::WallTime try_at(core::WallTime refused_at, int refusals) {
  return refused_at + wait_of_try(refusals, kFirstRetry, kLongestRetry);
}

bool try_due(const std::optional<core::WallTime>& refused_at, int refusals, core::WallTime now) {
  return refused_at && (now >= try_at(*refused_at, refusals) || now < *refused_at);
}

std::optional<core::WallTime> next_try(const State& state) {
  if (!state.refused_at || state.offered_hash == state.refused_hash) return {};
  return try_at(*state.refused_at, state.refusals);
}

std::optional<std::string> loaded(Owner writer, const SnapshotPtr& snapshot) {
  if (!snapshot || !snapshot->complete()) return {};
  return conf::loaded_hash(writer, *snapshot).value_or("");
}

const plan::Outcome* outcome_of(const plan::Context& context, const plan::StepId& id) {
  const auto found = context.outcomes.find(id);
  return found == context.outcomes.end() ? nullptr : &found->second;
}

bool refused(const plan::Outcome* outcome) {
  return outcome != nullptr && outcome->error && outcome->error->code == core::ErrorCode::kInvalid;
}

bool answered(const plan::Outcome* outcome) {
  return outcome != nullptr && (outcome->state == plan::Outcome::State::kDone || refused(outcome));
}

bool waited(const plan::Context& context, core::MonoTime from, core::Duration wait, plan::Plan& plan, const std::string& why) {
  const core::Duration left = from + wait - context.mono;
  if (left <= core::Duration{0}) return true;
  plan.wake_after(left, why);
  return false;
}

std::optional<core::MonoTime> looks_fail_since(const plan::Context& context) {
  const plan::Outcome* look = outcome_of(context, kLookForStarting);
  if (look == nullptr || !look->error) return {};
  return look->since;
}

std::set<std::int64_t> starting_jobs(const SnapshotPtr& snapshot) {
  std::set<std::int64_t> out;
  if (!has_answered(snapshot)) return out;
  for (const auto& [id, job] : snapshot->jobs) {
    if (job->starting()) out.insert(id);
  }
  return out;
}

}  // namespace slurm::rollout
