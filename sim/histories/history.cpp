#include "sim/histories/history.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

namespace sim {

using core::Duration;
using core::Json;

namespace {

template <class T>
void append(std::vector<T>& to, std::vector<T> more) {
  std::ranges::move(more, std::back_inserter(to));
}

}  // namespace

void act_one(const std::vector<Workload::Action>& actions, SeededRandom& random) {
  const int total = std::accumulate(actions.begin(), actions.end(), 0, [](int sum, const auto& a) { return sum + a.weight; });
  auto pick = static_cast<int>(random.below(static_cast<std::uint64_t>(total)));
  for (const Workload::Action& action : actions) {
    pick -= action.weight;
    if (pick < 0) return action.act();
  }
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

History::History(World& world) : world_(world), random_(world.random().fork()) {
  for (const auto& program : world_.programs()) workloads_.push_back(program->workload(world_, *this));
  // A busy slurmctld is slow all the time, even without faults.
  if (random_.chance(0.15)) fair_.latency = Duration{random_.between(100, 2500)};
  usual_latency_ = fair_.latency;
  world_.slurm_rates = fair_;
}

std::vector<std::string> History::run() {
  for (const auto& workload : workloads_) workload->found();
  storm();
  if (world_.oracles().ok()) calm();
  if (world_.oracles().ok() && wrong_.empty() && random_.chance(0.5)) {
    for (const auto& workload : workloads_) append(wrong_, workload->end());
  }
  std::vector<std::string> out = world_.oracles().violations();
  out.insert(out.end(), wrong_.begin(), wrong_.end());
  return out;
}

std::string History::some(const std::vector<std::string>& names) {
  return names.empty() ? "" : names[random_.below(names.size())];
}

/// Begins a spell: draws the rates of all faults. One spell has many faults, another has few or none.
void History::weather() {
  Faults& faults = world_.faults();
  const double rate = random_.chance(0.4) ? 0.0 : random_.chance(0.7) ? 0.01 : 0.05;
  faults.rates = FaultRates::all(rate);
  if (random_.chance(0.5)) faults.rates.crash_before = faults.rates.crash_after = rate / 2;
  // Occasionally one kind of fault is frequent.
  if (random_.chance(0.2)) faults.rates.cut = 0.2;
  if (random_.chance(0.1)) faults.rates.forbidden = 0.3;
  if (random_.chance(0.1)) faults.rates.lost_reply = 0.3;
  if (random_.chance(0.1)) faults.rates.withhold_bookmark = 1.0;
  SlurmRates& slurm = world_.slurm_rates;
  slurm = fair_;
  if (random_.chance(0.3)) {
    slurm.unchanged = slurm.refused = slurm.slow = slurm.empty = slurm.bare = slurm.partial = slurm.error = slurm.lost = 0.02;
  }
  if (random_.chance(0.1)) slurm.unchanged = random_.chance(0.5) ? 0.5 : 1.0;
  if (random_.chance(0.1)) slurm.refused = 1.0;
  if (random_.chance(0.1)) slurm.slow = 0.5;
  if (random_.chance(0.1)) slurm.empty = 0.5;
  if (random_.chance(0.1)) slurm.bare = 0.5;
  if (random_.chance(0.1)) slurm.partial = 0.5;
  if (random_.chance(0.1)) slurm.lost = 0.5;
}

void History::clear_up() {
  world_.faults().rates = {};
  world_.slurm_rates = fair_;
}

void History::set_latency(Duration latency) {
  fair_.latency = world_.slurm_rates.latency = latency;
}

void History::storm() {
  const core::MonoTime end = world_.loop().clock().mono() + Duration{random_.between(60000, 420000)};
  std::vector<Workload::Action> actions;
  for (const auto& workload : workloads_) append(actions, workload->actions());
  append(actions, accidents());
  core::MonoTime next_weather = world_.loop().clock().mono();
  while (world_.loop().clock().mono() < end && world_.oracles().ok()) {
    if (next_weather <= world_.loop().clock().mono()) {
      weather();
      next_weather = world_.loop().clock().mono() + Duration{random_.between(5000, 60000)};
    }
    act_one(actions, random_);
    for (const auto& workload : workloads_) workload->act_apart();
    // Three of ten actions follow within 300 ms, so that their effects overlap. The other actions follow within 12 s.
    world_.loop().run_for(Duration{random_.chance(0.3) ? random_.between(0, 300) : random_.between(300, 12000)});
    for (const auto& workload : workloads_) workload->look();
  }
}

void History::calm() {
  world_.oracles().note("--- calm ---");
  fair_.latency = usual_latency_;
  clear_up();
  world_.kube().set_listening(true);
  restore();
  world_.correct_clocks();
  for (const auto& workload : workloads_) append(wrong_, workload->calm());
}

// --- Accidents --------------------------------------------------------------------------------------------------------

std::vector<Workload::Action> History::accidents() {
  const auto kube_node = [this] {
    return "kube-" + std::to_string(random_.below(static_cast<std::uint64_t>(world_.options().kube_nodes)));
  };
  const auto which = [this] { return static_cast<int>(random_.below(static_cast<std::uint64_t>(world_.process_count()))); };
  std::vector<Workload::Action> out;
  // Separate statements make the program draw the random numbers in the same order with every compiler.
  const auto for_some = [=, this](void (World::*accident)(int, Duration), std::int64_t least, std::int64_t most) {
    return [=, this] {
      const int process = which();
      (world_.*accident)(process, Duration{random_.between(least, most)});
    };
  };
  out.push_back({3, for_some(&World::crash, 0, 20000)});
  out.push_back({2, for_some(&World::pause, 100, 40000)});
  out.push_back({1, for_some(&World::jump_clock, -300000, 300000)});
  out.push_back({1, [=, this] {
                   const std::string node = kube_node();
                   world_.oracles().note("machine " + node + " stops");
                   world_.kube().nodes().crash_node(node);
                   lost_nodes_.insert(node);
                 }});
  out.push_back({1, [=, this] {
                   const std::string node = kube_node();
                   world_.oracles().note("machine " + node + " is cut off");
                   world_.kube().nodes().cut_node(node);
                   cut_nodes_.insert(node);
                 }});
  out.push_back({3, [this] { restore(); }});
  out.push_back({2, [this] {
                   const std::string pod = some(world_.workers());
                   if (pod.empty()) return;
                   world_.oracles().note("pod " + pod + " fails");
                   world_.kube().nodes().fail_pod({World::kNamespace, pod});
                 }});
  out.push_back({2, [this] { world_.api().end_watches(); }});
  out.push_back({2, [this] { world_.api().compact(); }});
  out.push_back({1, [this] { world_.stop_api(Duration{random_.between(100, 15000)}); }});
  return out;
}

void History::restore() {
  for (const std::string& node : lost_nodes_) world_.kube().nodes().restart_node(node);
  for (const std::string& node : cut_nodes_) world_.kube().nodes().heal_node(node);
  lost_nodes_.clear();
  cut_nodes_.clear();
}

}  // namespace sim
