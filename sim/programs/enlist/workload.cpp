#include "sim/programs/enlist/workload.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "enlist/wire/token.hpp"

namespace sim {
namespace {

using core::Duration;
using namespace std::chrono_literals;

constexpr const char* kAdmin = "admin";
constexpr Duration kSettle = 10min;
constexpr Duration kRest = 5min;

}  // namespace

EnlistWorkload::EnlistWorkload(World& world, History& history, EnlistProgram& program)
    : world_(world), random_(history.random()), program_(program) {}

void EnlistWorkload::found() {
  world_.start(program_);
  // A slow slurmrestd takes a while until it has answered everything.
  for (int attempt = 0; attempt < 20 && program_.disk().pools.empty(); ++attempt) {
    world_.loop().run_for(5s);
    make_pool();
  }
  for (int i = 0; i < EnlistProgram::kHosts; ++i) {
    make_token();
    join();
  }
}

// --- Users and administrators -----------------------------------------------------------------------------------------

EnlistHost& EnlistWorkload::some_host() {
  return *program_.hosts()[random_.below(EnlistProgram::kHosts)];
}

std::string EnlistWorkload::some_node() {
  const auto& nodes = program_.slurm().nodes();
  if (nodes.empty()) return "";
  return std::next(nodes.begin(), static_cast<std::ptrdiff_t>(random_.below(nodes.size())))->first;
}

std::string EnlistWorkload::some_pool() {
  const auto& pools = program_.disk().pools;
  if (pools.empty()) return "";
  return std::next(pools.begin(), static_cast<std::ptrdiff_t>(random_.below(pools.size())))->first;
}

void EnlistWorkload::make_pool() {
  const std::string name = std::vector<std::string>{"cpu", "gpu", "big"}[random_.below(3)];
  const bool made = program_.make_pool(world_, name, name == "big" ? "Weight=5" : "");
  note("admin makes pool " + name + (made ? "" : ", and it is refused"));
}

void EnlistWorkload::make_token() {
  const std::string pool = some_pool();
  if (pool.empty()) return;
  const std::string token = program_.make_token(world_, pool, static_cast<int>(random_.between(1, 2)));
  if (!token.empty()) tokens_.push_back({token, pool});
}

/// A user joins a host: with a token that may be used up or wrong, and maybe again.
void EnlistWorkload::join() {
  EnlistHost& host = some_host();
  if (tokens_.empty() || !host.up()) return;
  Token token = tokens_[random_.below(tokens_.size())];
  const bool wrong = random_.chance(0.1), again = unfinished_.contains(&host) || random_.chance(0.3);
  if (wrong) {
    enlist::TokenText other = *enlist::read_token(token.text);
    other.secret.front() = other.secret.front() == '0' ? '1' : '0';
    token.text = enlist::write_token(other);
  }
  const bool before = host.enabled(EnlistHost::kAgentUnit);
  note("user joins " + host.name() + " to " + token.pool + (wrong ? " with a wrong token" : ""));
  const int code = program_.join(world_, host, token.text, again);
  if (wrong && code == 0 && !before) program_.oracle().violation(host.name() + " has joined with a wrong token");
  if (wrong || before) return;
  program_.oracle().wants(host, token.pool);
  if (code == 0) {
    unfinished_.erase(&host);
  } else {
    unfinished_.insert(&host);
  }
}

void EnlistWorkload::submit() {
  JobRequest request;
  request.partition = some_pool();
  if (request.partition.empty()) return;
  request.duration = between(2000, 120000);
  request.nodes = random_.chance(0.2) ? 2 : 1;
  request.exclusive = random_.chance(0.3);
  request.requeue = random_.chance(0.5);
  if (random_.chance(0.2)) request.prolog = 3s;
  if (random_.chance(0.05)) request.epilog_fails = true;
  if (random_.chance(0.1)) request.required_nodes = {some_node()};
  (void)program_.slurm().submit(std::move(request));
}

void EnlistWorkload::change_node(const std::string& state, const std::string& reason) {
  const std::string node = some_node();
  SimNodeUpdate update;
  update.state = state;
  if (!reason.empty()) update.reason = reason;
  note("admin sets " + node + " " + state);
  (void)program_.slurm().update_node(node, update, kAdmin);
}

std::vector<Workload::Action> EnlistWorkload::actions() {
  std::vector<Action> out;
  out.push_back({2, [this] { make_pool(); }});
  out.push_back({5, [this] { make_token(); }});
  out.push_back({9, [this] { join(); }});
  out.push_back({8, [this] { submit(); }});
  out.push_back({1, [this] {
                   for (const auto& [id, job] : program_.slurm().jobs()) {
                     if (!job.ended() && random_.chance(0.3)) return void(program_.slurm().cancel(id));
                   }
                 }});
  fill_host_actions(out);
  fill_slurm_actions(out);
  return out;
}

// --- Hosts ------------------------------------------------------------------------------------------------------------

void EnlistWorkload::fill_host_actions(std::vector<Action>& out) {
  const auto for_a_while = [this](const char* what, std::int64_t most, void (*act)(EnlistHost&, bool)) {
    return [=, this] {
      EnlistHost& host = random_.chance(0.1) ? program_.controller() : some_host();
      note(host.name() + " " + what);
      act(host, true);
      world_.loop().after(between(1000, most), [&host, act] { act(host, false); });
    };
  };
  out.push_back({3, [this] {
                   EnlistHost& host = some_host();
                   if (!host.up()) return;
                   if (random_.chance(0.5)) host.hostname = "renamed-" + std::to_string(random_.below(100));
                   if (random_.chance(0.3)) host.address = "10.1.0." + std::to_string(random_.between(1, 250));
                   host.power_cycle(between(1000, 90000));
                 }});
  out.push_back({3, [this] {
                   EnlistHost& host = some_host();
                   const bool failed = random_.chance(0.7);
                   note("slurmd on " + host.name() + (failed ? " dies" : " is stopped"));
                   host.end_slurmd(failed);
                 }});
  out.push_back({1, [this] { some_host().reload_slurmd(); }});
  out.push_back({2, for_a_while("is cut off", 150000, [](EnlistHost& host, bool on) { host.set_cut(on); })});
  out.push_back({1, for_a_while("has a slurmd that hangs", 90000, [](EnlistHost& host, bool on) { host.set_hung(on); })});
  out.push_back({2, for_a_while("has a full disk", 60000, [](EnlistHost& host, bool on) { host.disk_full = on; })});
  out.push_back({1, for_a_while("does not pass its check", 60000, [](EnlistHost& host, bool on) { host.check_passes = !on; })});
  out.push_back({1, [this] {
                   EnlistHost& host = some_host();
                   note("somebody removes the auth key of " + host.name());
                   host.files.erase("/etc/slurm/slurm.key");
                 }});
}

// --- Slurm ------------------------------------------------------------------------------------------------------------

void EnlistWorkload::stop_slurmctld(bool loses_state) {
  SimSlurm& slurm = program_.slurm();
  note(loses_state ? "slurmctld loses its state" : "slurmctld stops");
  slurm.stop();
  if (loses_state) slurm.lose_state();
  world_.loop().after(between(500, 60000), [&slurm] { (void)slurm.start(); });
}

void EnlistWorkload::lose_registrations() {
  note("slurmctld is reconfigured, and loses registrations");
  program_.slurm().lose_registrations();
  program_.reconfigure();
}

void EnlistWorkload::fill_slurm_actions(std::vector<Action>& out) {
  SimSlurm& slurm = program_.slurm();
  out.push_back({3, [this] { change_node("DRAIN", "maintenance"); }});
  out.push_back({3, [this] { change_node("RESUME", ""); }});
  out.push_back({1, [this] { change_node("DOWN", "broken"); }});
  out.push_back({1, [this, &slurm] {
                   const std::string node = some_node();
                   note("admin deletes " + node);
                   (void)slurm.delete_node(node, kAdmin);
                 }});
  out.push_back({2, [this] { stop_slurmctld(false); }});
  out.push_back({1, [this] { stop_slurmctld(true); }});
  out.push_back({1, [this] { program_.reconfigure(); }});
  out.push_back({1, [this] { lose_registrations(); }});
  out.push_back({1, [this, &slurm] {
                   note("admin makes another node");
                   (void)slurm.create_node("cloud-" + std::to_string(++clouds_));
                 }});
  out.push_back({1, [this] {
                   note("admin changes the auth key");
                   program_.change_key(world_);
                   program_.reconfigure();
                 }});
}

// --- The end ----------------------------------------------------------------------------------------------------------

/// Ends all that users, administrators and accidents have left.
void EnlistWorkload::heal() {
  SimSlurm& slurm = program_.slurm();
  (void)slurm.start();
  program_.controller().disk_full = false;
  for (const auto& host : program_.hosts()) {
    host->boot();
    host->set_cut(false);
    host->set_hung(false);
    host->disk_full = false;
    host->check_passes = true;
  }
  std::vector<std::string> names;
  for (const auto& [name, node] : slurm.nodes()) names.push_back(name);
  const bool resumes = random_.chance(0.5);
  for (const std::string& name : names) {
    if (slurm.node(name)->cloud) {
      (void)slurm.delete_node(name, kAdmin);
    } else if (const SimNode& node = *slurm.node(name); resumes && !node.reason.starts_with(EnlistOracle::kGate)) {
      (void)slurm.update_node(name, {.state = "RESUME"}, kAdmin);
    }
  }
  // slurmctld and all hosts have one key again.
  program_.reconfigure();
}

/// Users join again where joining was refused or has died.
void EnlistWorkload::finish_joins() {
  for (int attempt = 0; attempt < 5; ++attempt) {
    for (const auto& host : program_.hosts()) {
      if (!unfinished_.contains(host.get())) continue;
      std::string pool = program_.oracle().wanted().at(host.get());
      for (const auto& [name, node] : program_.disk().nodes) {
        if (node.key == host->fingerprint()) pool = node.pool;
      }
      const std::string token = program_.make_token(world_, pool, 1);
      if (!token.empty() && program_.join(world_, *host, token, true) == 0) unfinished_.erase(host.get());
    }
    world_.loop().run_for(5s);
  }
}

/// As the documentation says, an administrator reloads a slurmd whose first registration Slurm has not taken.
void EnlistWorkload::mend_refused() {
  for (const auto& host : program_.hosts()) {
    const std::string node = host->node();
    const auto record = program_.disk().nodes.find(node);
    if (record == program_.disk().nodes.end() || record->second.phase != enlist::Phase::kRefused) continue;
    if (program_.slurm().node(node) != nullptr || !program_.slurm().slurmd_ready(node)) continue;
    note("admin reloads slurmd on " + host->name());
    host->reload_slurmd();
  }
}

/// Returns what is written although nothing happens.
std::vector<std::string> EnlistWorkload::rest() {
  world_.loop().run_for(1min);
  const std::uint64_t before = program_.oracle().writes();
  world_.loop().run_for(kRest);
  if (program_.oracle().writes() == before) return {};
  return {"something is written at rest: " + program_.oracle().last_write()};
}

std::vector<std::string> EnlistWorkload::calm() {
  heal();
  // What accidents have planned for later happens first.
  world_.loop().run_for(3min);
  heal();
  world_.loop().run_for(20s);
  finish_joins();
  world_.loop().run_for(1min);
  mend_refused();
  std::vector<std::string> out;
  for (const std::string& why : world_.settle(kSettle)) out.push_back("the declared state is not reached: " + why);
  if (!out.empty() || !world_.oracles().ok()) return out;
  return rest();
}

}  // namespace sim
