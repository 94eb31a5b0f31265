#include "sim/programs/operator/fixed_history.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "api/token.hpp"
#include "api/well_known.hpp"
#include "sim/programs/operator/workload_parts.hpp"
#include "slinky/names.hpp"

namespace sim {

using core::Duration;
using core::Json;
namespace kinds = kube::resources;

namespace {

/// All coalesced and delayed work happens within this time. The loss of a watch request is noticed after 30 s, and the request
/// is repeated up to 30 s later.
constexpr Duration kBeforeRest{std::chrono::seconds{70}};

/// Returns how many writes Tokens are allowed to cause: two at 4/5 of each lifetime (token and status), or two at the expiry
/// (status and event).
std::uint64_t token_writes_due(const World& world, Duration length) {
  std::uint64_t out = 0;
  for (const std::string& name : world.names(slinky::resources::kToken)) {
    const auto token = api::from_json<api::Token>(*world.find(slinky::resources::kToken, name));
    if (!token) continue;
    const Duration life = token->spec.lifetime.value_or(api::kDefaultTokenLifetime);
    out += 2 * (1 + (token->spec.refresh ? static_cast<std::uint64_t>(length / (life * 4 / 5)) : 0));
  }
  return out;
}

/// Waits until no login pod is terminating, for an hour at most. Sessions can keep such a pod for long. When the pod ends, the
/// operator updates the EndpointSlice with the names of login pods, which would count as a write.
void let_login_pods_end(World& world) {
  const auto one_ends = [&] {
    return std::ranges::any_of(world.api().store().all("pods"), [](const auto& entry) {
      const Json& pod = entry.second->body;
      return core::get_string(pod, {"metadata", "labels", api::kLabelName}) == slinky::kAppLogin && terminating(pod);
    });
  };
  for (int minutes = 0; minutes < 60 && one_ends(); ++minutes) world.loop().run_for(Duration{std::chrono::minutes{1}});
}

}  // namespace

std::vector<std::string> check_rest(World& world, const OperatorOracles& judges, Duration length) {
  let_login_pods_end(world);
  world.loop().run_for(kBeforeRest);
  const std::uint64_t before = judges.writes(), before_of_tokens = judges.token_writes(),
                      before_of_reminders = judges.reminders();
  world.loop().run_for(length);
  const std::uint64_t kept_fresh = judges.token_writes() - before_of_tokens;
  const std::uint64_t reminders = judges.reminders() - before_of_reminders;
  const std::uint64_t written = judges.writes() - before - kept_fresh - reminders;
  std::vector<std::string> out;
  if (written > 0) out.push_back(fmt::format("{} writes in {} s of rest", written, length.count() / 1000));
  const std::uint64_t due = token_writes_due(world, length);
  if (kept_fresh > due)
    out.push_back(fmt::format("{} writes of Tokens in {} s of rest, of {} due", kept_fresh, length.count() / 1000, due));
  return out;
}

FixedResult run_fixed(OperatorWorld& world) {
  constexpr const char* kKey = "site-key";
  FixedResult out;
  const auto settled = [&](const char* what) {
    if (!out.wrong.empty()) return false;
    const std::vector<std::string> unmet = world.settle(kSettle);
    if (!unmet.empty()) out.wrong.push_back(fmt::format("{}: {}", what, first_few(unmet)));
    for (const std::string& violation : world.oracles().violations()) out.wrong.push_back(violation);
    return out.wrong.empty();
  };
  const auto scale = [&](int replicas) {
    world.merge(slinky::resources::kNodeSet, "cpu", {{"spec", {{"replicas", replicas}}}});
  };
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
    world.merge(slinky::resources::kNodeSet, "cpu",
                {{"spec", {{"template", {{"metadata", {{"annotations", {{"site", "new"}}}}}}}}}});
  }
  if (settled("an update under a job")) {
    world.apply(nodeset_json("gpu", 1));
    world.merge(slinky::resources::kController, World::kCluster, {{"spec", {{"extraConf", "MessageTimeout=33\n"}}}});
  }
  if (settled("a new partition")) world.remove(slinky::resources::kNodeSet, "gpu");
  if (settled("a NodeSet goes")) {
    world.merge(slinky::resources::kLoginSet, kLogin,
                {{"spec", {{"replicas", 2}, {"rootSshAuthorizedKeys", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA another\n"}}}});
  }
  if (settled("other keys")) world.remove(kinds::kPod, "cpu-0");
  if (settled("a worker is deleted by hand")) {
    world.merge(slinky::resources::kLoginSet, kLogin, {{"spec", {{"replicas", 0}}}});
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
  if (out.wrong.empty()) out.wrong = check_rest(world, world.judges(), Duration{60000});
  out.state = world.judges().final_state();
  out.state["starts"] = world.judges().starts();
  out.writes = world.faults().writes();
  return out;
}

}  // namespace sim
