// Checks properties of random histories. A history consists of random acts of users, jobs and administrators with random
// failures, followed by a time without events. The operator must delete no busy worker and undo no drain of others, and must
// reach the declared state.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "operator/nodeset/parts.hpp"
#include "operator/nodeset/plan.hpp"
#include "operator/nodeset/testing/world.hpp"

namespace op::nodeset {
namespace {

using core::Json;
using testing::World;

std::string pick(const World& world, int number) {
  if (world.pods.empty()) return "";
  return std::next(world.pods.begin(), number % static_cast<int>(world.pods.size()))->first;
}

bool free_for_jobs(const World& world, const std::string& name) {
  const auto node = world.nodes.find(name);
  if (node == world.nodes.end() || node->second.state.base != "IDLE" || node->second.state.has("DRAIN")) return false;
  const auto pod = world.pods.find(name);
  return pod != world.pods.end() && pod->second.ready() && !pod->second.meta.terminating() && pod->second.phase == "Running";
}

/// Ends a drain as an administrator's RESUME does. A node without a slurmd soon goes down again, because the node does not
/// respond.
void free_node(slurm::Node& node) {
  node.state.flags.erase("DRAIN");
  node.reason = node.state.base == "DOWN" ? slurm::kNotResponding : "";
}

void happen(World& world, int what, int number) {
  const std::string name = pick(world, number);
  const auto node = world.nodes.find(name);
  switch (what) {
    case 0:
      world.edit("replicas", number % 7);
      break;
    case 1:
      world.start_pods();
      break;
    case 2:
      world.finish_pods();
      break;
    case 3:
      if (free_for_jobs(world, name)) world.add_job({name}, number % 5 == 0 ? "SUSPENDED" : "RUNNING");
      break;
    case 4:
      if (!world.jobs.empty())
        world.end_job(std::next(world.jobs.begin(), number % static_cast<int>(world.jobs.size()))->first);
      break;
    case 5:
      if (!name.empty() && world.jobs.empty()) world.pod(name).phase = "Failed";
      break;
    case 6:
      if (!name.empty()) world.user_deletes(name);
      break;
    case 7:
      if (node != world.nodes.end() && !node->second.state.has("DRAIN") && node->second.state.base != "DOWN") {
        node->second.state.flags.insert("DRAIN");
        node->second.reason = "by an admin";
      }
      break;
    case 8:
      if (node != world.nodes.end() && node->second.reason == "by an admin") {
        free_node(node->second);
      }
      break;
    case 9:
      world.add_host("kube-1").unschedulable = number % 2 == 0;
      break;
    case 10:
      if (!name.empty())
        world.pod(name).meta.annotations["nodeset.slinky.slurm.net/pod-cordon"] = number % 2 == 0 ? "true" : "false";
      break;
    case 11:
      world.health = static_cast<slurm::Snapshot::Health>(number % 3);
      break;
    case 12:
      world.snapshot_age = core::Duration{number % 2 == 0 ? 100 : 5000};
      break;
    case 13: {
      constexpr std::array<const char*, 6> kSteps{"create", "delete Pod", "delete Slurm", "drain", "clear", "status"};
      world.refuse[kSteps[static_cast<std::size_t>(number) % kSteps.size()]] = {core::ErrorCode::kInternal, "no", 500, "", {}};
      break;
    }
    case 14:
      world.refuse.clear();
      break;
    case 15:
      world.ledger = {};
      break;  // The operator restarts.
    case 16:
      if (!name.empty() && world.pod(name).phase == "Pending") {
        world.pod(name).node_name = "kube-1";
        world.pod(name).containers = {{.name = "slurmd", .waiting_reason = "ImagePullBackOff", .message = ""}};
      }
      break;
    case 17:
      world.edit("slurmd", {{"image", "slurmd:" + std::to_string(number)}});
      break;
    default:
      world.advance(core::Duration{number * 100});
      break;
  }
}

void come_to_rest(World& world) {
  world.refuse.clear();
  world.health = slurm::Snapshot::Health::kComplete;
  world.snapshot_age = core::Duration{100};
  world.hosts.clear();
  while (!world.jobs.empty()) world.end_job(world.jobs.begin()->first);
  for (auto& [name, pod] : world.pods) pod.meta.annotations.erase("nodeset.slinky.slurm.net/pod-cordon");
  for (auto& [name, node] : world.nodes) {
    if (node.reason == "by an admin") free_node(node);
  }
  world.ledger = {};
  const auto at_rest = [&] {
    const bool moving = std::any_of(world.pods.begin(), world.pods.end(), [](const auto& item) {
      return item.second.meta.terminating() || item.second.phase != "Running";
    });
    return !moving && static_cast<int>(world.pods.size()) == world.spec()["replicas"] &&
           world.condition("Ready") == "True Ready";
  };
  for (int i = 0; i < 14 && (i < 2 || !at_rest()); ++i) {
    world.advance(core::Duration{20000});
    world.start_pods();
    world.settle(6);
    world.finish_pods();
  }
}

RC_GTEST_PROP(NodeSetHistories, EndInTheDeclaredState, ()) {
  World world(Json{{"replicas", 3}});
  const auto events =
      *rc::gen::container<std::vector<std::pair<int, int>>>(rc::gen::pair(rc::gen::inRange(0, 19), rc::gen::inRange(0, 60)));
  for (const auto& [what, number] : events) {
    happen(world, what, number);
    world.run(plan_nodeset(world.observe()));
    world.advance(core::Duration{100});
  }
  come_to_rest(world);

  const int replicas = world.spec()["replicas"];
  for (const std::string& violation : world.violations) RC_FAIL(violation);
  RC_ASSERT(static_cast<int>(world.pods.size()) == replicas);
  RC_ASSERT(static_cast<int>(world.nodes.size()) == replicas);
  for (const auto& [name, node] : world.nodes) {
    RC_ASSERT(world.pods.contains(name));
    RC_ASSERT(node.state.base == "IDLE");
    RC_ASSERT(!node.state.has("DRAIN"));
  }
  RC_ASSERT(world.condition("Ready") == "True Ready");
  RC_ASSERT(world.condition("Degraded") == "False AsExpected");
  world.advance(core::Duration{1000});
  const plan::Plan rest = plan_nodeset(world.observe());
  RC_ASSERT(rest.empty());
  RC_ASSERT(rest.intent.remaining.empty());
}

/// Disturbs a worker in one of several ways, so that the NodeSet has various kinds of steps to take.
void disturb(World& world, int ordinal, int what) {
  const std::string name = "cpu-" + std::to_string(ordinal);
  slurm::Node& node = world.node(name);
  switch (what) {
    case 0:
      world.pod(name).meta.annotations["nodeset.slinky.slurm.net/pod-cordon"] = "true";
      break;
    case 1:
      node.state.flags.insert("DRAIN");
      node.reason = "slurm-operator: cordoned once";
      break;
    case 2:
      node.state.flags.insert("DRAIN");
      node.reason = "by an admin";
      break;
    case 3:
      world.pod(name).phase = "Failed";
      break;
    case 4:
      world.user_deletes(name);
      break;
    case 5:
      node.comment.clear();
      break;
    default:
      break;
  }
}

/// Adds `count` Slurm records without workers, from ordinal `first` on. `stale`: the records have another extraConf.
void leave_records(World& world, int first, int count, bool stale) {
  for (int i = 0; i < count; ++i) {
    slurm::Node& node = world.add_node("cpu-" + std::to_string(first + i));
    node.state.base = "DOWN";
    node.reason = "Not responding";
    if (!stale) continue;
    node.comment = Json{{"namespace", "default"},  {"podName", node.name},       {"nodeSetName", "cpu"},
                        {"nodeSetUID", "set-uid"}, {"extraConfHash", "another"}, {"node", ""}}
                       .dump();
  }
}

/// Starts from a settled world and applies all random events at once. If there are jobs, each worker runs one. So the end of a
/// job does not change which workers are deleted.
World troubled_world() {
  const int before = *rc::gen::inRange(0, 120);
  const int after = *rc::gen::inRange(0, 120);
  World world(Json{{"replicas", before}});
  for (int i = 0; i < before; ++i) world.add_pod(i);
  world.settle();
  world.edit("replicas", after);
  const int orphans = *rc::gen::inRange(0, 4);
  if (before + orphans <= after) {
    for (int i = 200; i < 200 + orphans; ++i) {
      world.add_pod(i);
      world.orphan("cpu-" + std::to_string(i));
    }
  }
  const int unmanaged = *rc::gen::inRange(0, 3);
  for (int i = 0; i < unmanaged; ++i) {
    const int ordinal = before + 2 * i;
    world.add_pod(ordinal);
    const std::string name = "cpu-" + std::to_string(ordinal);
    world.orphan(name);
    world.pod(name).meta.labels[std::string(api::kLabelCluster)] = "other";
  }
  leave_records(world, 300, *rc::gen::inRange(0, 4), false);
  const int vacant = std::max(0, after - before - orphans);
  leave_records(world, before, std::min(vacant, *rc::gen::inRange(0, 80)), true);
  const auto what = *rc::gen::container<std::vector<int>>(static_cast<std::size_t>(before), rc::gen::inRange(0, 30));
  for (int i = 0; i < before; ++i) disturb(world, i, what[static_cast<std::size_t>(i)]);
  const bool busy = *rc::gen::arbitrary<bool>();
  for (const auto& [name, pod] : world.pods) {
    if (busy && pod.phase == "Running" && !pod.meta.terminating()) world.add_job({name});
  }
  return world;
}

using Items = std::set<std::string>;

/// Returns the remaining steps of the intent, such as "drain cpu-3". Late steps become necessary only because workers and Slurm
/// react to other steps. Returns only the late steps if `late` is true, else only the other steps.
Items items(const plan::Intent& intent, bool late) {
  constexpr std::array<std::string_view, 3> kLate{"comment", "mark", "report Slurm state on"};
  Items out;
  for (const auto& [kind, names] : intent.remaining) {
    if ((std::ranges::find(kLate, kind.verb) != kLate.end()) != late) continue;
    for (const std::string& name : names) out.insert(kind.of(name).text());
  }
  return out;
}

/// Returns the items of `some` that are not in `all`.
Items missing(const Items& some, const Items& all) {
  Items out;
  std::ranges::set_difference(some, all, std::inserter(out, out.end()));
  return out;
}

RC_GTEST_PROP(NodeSetHistories, StepsOfAllPassesAddUpToTheIntent, ()) {
  World world = troubled_world();
  world.did = {};
  const plan::Plan first = plan_nodeset(world.observe());
  plan::Plan last = first;
  for (int pass = 0, idle = 0; pass < 100 && idle < 3; ++pass) {
    idle = world.run(last) == 0 && world.jobs.empty() ? idle + 1 : 0;
    world.advance(core::Duration{300});
    world.start_pods();
    world.finish_pods();
    while (pass > 10 && !world.jobs.empty()) world.end_job(world.jobs.begin()->first);
    last = plan_nodeset(world.observe());
  }
  // World has checked that every step was in the intent of its own pass.
  for (const std::string& violation : world.violations) RC_FAIL(violation);
  // Apart from late steps, the steps that were done are exactly the steps of the first intent.
  RC_ASSERT(missing(items(world.did, false), items(first.intent, false)) == Items{});
  RC_ASSERT(missing(items(first.intent, false), items(world.did, false)) == Items{});
  Items late = missing(items(first.intent, true), items(world.did, true));
  std::erase_if(late, [&](const std::string& item) { return !world.pods.contains(item.substr(item.find("cpu-"))); });
  RC_ASSERT(late == Items{});
  const auto count = [&](const plan::StepId& kind) { return static_cast<int>(world.did.remaining[kind].size()); };
  RC_ASSERT(first.intent.pods == count(kCreatePod) + count(kDeletePod));
  RC_ASSERT(last.intent.remaining.empty());
}

}  // namespace
}  // namespace op::nodeset
