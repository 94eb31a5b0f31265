// The fixed history, and the end of all histories: a comparison of states, and rest.
#include <fmt/format.h>

#include <chrono>

#include "api/token.hpp"
#include "api/well_known.hpp"
#include "cluster/names.hpp"
#include "sim/histories/history.hpp"
#include "sim/histories/history_parts.hpp"

namespace sim {

using core::Duration;
using core::Json;
namespace kinds = kube::resources;

namespace {

/// Everything that was coalesced or delayed happens within this time. A watch whose request was lost is noticed after 30 s, and
/// retried up to 30 s later.
constexpr Duration kBeforeRest{std::chrono::seconds{70}};

/// Returns the expected writes: a token and its status at four fifths of each lifetime, or the status and the event of one that
/// expires.
std::uint64_t token_writes_due(const World& world, Duration length) {
  std::uint64_t out = 0;
  for (const std::string& name : world.names(op::resources::kToken)) {
    const auto token = api::from_json<api::Token>(*world.find(op::resources::kToken, name));
    if (!token) continue;
    const Duration life = token->spec.lifetime.value_or(api::kDefaultTokenLifetime);
    out += 2 * (1 + (token->spec.refresh ? static_cast<std::uint64_t>(length / (life * 4 / 5)) : 0));
  }
  return out;
}

}  // namespace

std::vector<std::string> check_rest(World& world, Duration length) {
  world.loop().run_for(kBeforeRest);
  const std::uint64_t before = world.oracles().writes(), before_of_tokens = world.oracles().token_writes(),
                      before_of_reminders = world.oracles().reminders();
  world.loop().run_for(length);
  const std::uint64_t kept_fresh = world.oracles().token_writes() - before_of_tokens;
  const std::uint64_t reminders = world.oracles().reminders() - before_of_reminders;
  const std::uint64_t written = world.oracles().writes() - before - kept_fresh - reminders;
  std::vector<std::string> out;
  if (written > 0) out.push_back(fmt::format("{} writes in {} s of rest", written, length.count() / 1000));
  const std::uint64_t due = token_writes_due(world, length);
  if (kept_fresh > due)
    out.push_back(fmt::format("{} writes of Tokens in {} s of rest, of {} due", kept_fresh, length.count() / 1000, due));
  return out;
}

void differences(const Json& expected, const Json& state, const std::string& path, std::vector<std::string>& out) {
  constexpr std::size_t kShown = 600;
  if (expected == state) return;
  if (!expected.is_object() || !state.is_object()) {
    out.push_back(
        fmt::format("another end: {} is {}, not {}", path, state.dump().substr(0, kShown), expected.dump().substr(0, kShown)));
    return;
  }
  for (const auto& [name, was] : expected.items()) differences(was, state.value(name, Json()), path + "/" + name, out);
  for (const auto& [name, is] : state.items()) {
    if (!expected.contains(name)) differences(Json(), is, path + "/" + name, out);
  }
}

FixedResult run_fixed(World& world) {
  constexpr const char* kKey = "site-key";
  FixedResult out;
  const auto settled = [&](const char* what) {
    if (!out.wrong.empty()) return false;
    const std::vector<std::string> unmet = world.settle(kSettle);
    if (!unmet.empty()) out.wrong.push_back(fmt::format("{}: {}", what, first_few(unmet)));
    for (const std::string& violation : world.oracles().violations()) out.wrong.push_back(violation);
    return out.wrong.empty();
  };
  const auto scale = [&](int replicas) { world.merge(op::resources::kNodeSet, "cpu", {{"spec", {{"replicas", replicas}}}}); };
  world.apply(secret_json(kKey, {{std::string(api::kKeySlurm), "the auth/slurm key of a user"}}));
  world.found_cluster(2, {{"spec", {{"slurmKeyRef", {{"name", kKey}, {"key", api::kKeySlurm}}}}}});
  world.apply(loginset_json(1));
  if (settled("founding")) scale(3);
  if (settled("scale-out") && world.slurm() != nullptr) {
    JobRequest job;
    job.partition = "cpu";
    job.duration = Duration{20000};
    job.nodes = 3;
    (void)world.slurm()->submit(job);
    world.loop().run_for(Duration{3000});
    scale(1);
  }
  if (settled("scale-in under a job")) scale(2);
  if (settled("scale-out again") && world.slurm() != nullptr) {
    JobRequest job;
    job.partition = "cpu";
    job.duration = Duration{15000};
    (void)world.slurm()->submit(job);
    world.loop().run_for(Duration{3000});
    world.merge(op::resources::kNodeSet, "cpu",
                {{"spec", {{"template", {{"metadata", {{"annotations", {{"site", "new"}}}}}}}}}});
  }
  if (settled("an update under a job")) {
    world.apply(nodeset_json("gpu", 1));
    world.merge(op::resources::kController, World::kCluster, {{"spec", {{"extraConf", "MessageTimeout=33\n"}}}});
  }
  if (settled("a new partition")) world.remove(op::resources::kNodeSet, "gpu");
  if (settled("a NodeSet goes")) {
    world.merge(op::resources::kLoginSet, World::kLogin,
                {{"spec", {{"replicas", 2}, {"rootSshAuthorizedKeys", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA another\n"}}}});
  }
  if (settled("other keys")) world.remove(kinds::kPod, "cpu-0");
  if (settled("a worker is deleted by hand")) {
    world.merge(op::resources::kLoginSet, World::kLogin, {{"spec", {{"replicas", 0}}}});
  }
  if (settled("nobody logs in") && world.slurm() != nullptr) {
    JobRequest job;
    job.partition = "cpu";
    job.duration = Duration{std::chrono::minutes{5}};
    (void)world.slurm()->submit(job);
    world.apply(secret_json(kKey, {{std::string(api::kKeySlurm), "another auth/slurm key, of a user"}}));
    world.loop().run_for(Duration{10000});
  }
  if (settled("a key rotates under a job")) world.loop().run_for(Duration{std::chrono::minutes{3}});
  if (out.wrong.empty()) out.wrong = check_rest(world, Duration{60000});
  out.state = world.oracles().final_state();
  out.state["starts"] = world.oracles().starts();
  out.writes = world.faults().writes();
  return out;
}

}  // namespace sim
