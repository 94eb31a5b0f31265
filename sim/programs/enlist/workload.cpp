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
    : world_(world), random_(history.random()), program_(program) {
  if (random_.chance(0.4)) program_.forget_dead_after = between(60000, 180000);
}

void EnlistWorkload::found() {
  world_.start(program_);
  // If slurmrestd is slow, the coordinator cannot create a pool at once.
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

std::string EnlistWorkload::some_record() {
  const auto& nodes = program_.disk().nodes;
  if (nodes.empty()) return "";
  return std::next(nodes.begin(), static_cast<std::ptrdiff_t>(random_.below(nodes.size())))->first;
}

EnlistHost* EnlistWorkload::host_of(const std::string& node) {
  const auto record = program_.disk().nodes.find(node);
  if (record == program_.disk().nodes.end()) return nullptr;
  for (const auto& host : program_.hosts()) {
    if (host->fingerprint() == record->second.key) return host.get();
  }
  return nullptr;
}

bool EnlistWorkload::known(const EnlistHost& host) const {
  return std::ranges::any_of(program_.disk().nodes, [&](const auto& entry) { return entry.second.key == host.fingerprint(); });
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

/// Lets a user join a host, which possibly joined before, with a token that is possibly used up or wrong.
void EnlistWorkload::join() {
  EnlistHost& host = some_host();
  if (tokens_.empty() || !host.up()) return;
  const bool member = known(host);
  // The host has left, and its agent is about to end.
  if (host.has_agent() && !member && !program_.oracle().abandoned(host.fingerprint())) return;
  Token token = tokens_[random_.below(tokens_.size())];
  bool again = unfinished_.contains(&host) || random_.chance(0.3);
  const bool wrong = random_.chance(0.1);
  // The host has a key that the coordinator does not know. The command and the agent then ask the user to join the host again.
  if (!member && !host.fingerprint().empty()) again = true;
  if (wrong) {
    enlist::TokenText other = *enlist::read_token(token.text);
    other.secret.front() = other.secret.front() == '0' ? '1' : '0';
    token.text = enlist::write_token(other);
  }
  const bool before = host.enabled(EnlistHost::kAgentUnit) && member;
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

// --- Leaving ----------------------------------------------------------------------------------------------------------

void EnlistWorkload::wish(const std::string& node, bool leaves) {
  program_.oracle().leaves(node, leaves);
  EnlistHost* host = host_of(node);
  if (host == nullptr) return;
  program_.oracle().wants(*host, leaves ? "" : program_.disk().nodes.at(node).pool);
  if (leaves) unfinished_.erase(host);
}

void EnlistWorkload::leave_node(const std::string& node, bool force) {
  if (node.empty()) return;
  note("admin removes node " + node + (force ? " with --force" : ""));
  program_.oracle().asks_to_leave(node);
  const auto answer = program_.ask_admin(world_, "/v1/nodes/leave", {{"nodes", {node}}, {"force", force}});
  if (answer == EnlistProgram::Answer::kDone) wish(node, true);
  if (answer == EnlistProgram::Answer::kUnknown) unsure_.insert(node);
}

void EnlistWorkload::leave_host(EnlistHost& host) {
  std::string node;
  for (const auto& [name, record] : program_.disk().nodes) {
    if (record.key == host.fingerprint()) node = name;
  }
  if (node.empty() || !host.up()) return;
  note("user lets " + host.name() + " leave as " + node);
  program_.oracle().asks_to_leave(node);
  if (program_.leave(world_, host) == 0) return wish(node, true);
  unsure_.insert(node);
}

void EnlistWorkload::keep_node(const std::string& node) {
  if (node.empty()) return;
  note("admin keeps node " + node);
  const auto answer = program_.ask_admin(world_, "/v1/nodes/keep", {{"nodes", {node}}});
  if (answer == EnlistProgram::Answer::kDone) {
    wish(node, false);
    learn_words(node);
  }
  if (answer == EnlistProgram::Answer::kUnknown) unsure_.insert(node);
}

void EnlistWorkload::configure(const std::string& node, const std::string& words) {
  if (node.empty()) return;
  note("admin gives " + node + " the parameters " + words);
  const auto answer = program_.ask_admin(world_, "/v1/nodes/config", {{"nodes", {node}}, {"conf", words}});
  if (answer == EnlistProgram::Answer::kDone) {
    program_.oracle().wants_words(node, words);
    // The answer to an earlier request was lost, and the coordinator may carry out that request after this one. So
    // finish_words() repeats this request.
    if (words_.contains(node)) words_[node] = words;
  }
  if (answer == EnlistProgram::Answer::kUnknown) words_[node] = words;
}

void EnlistWorkload::finish_words() {
  const std::map<std::string, std::string> unsure = words_;
  words_.clear();
  for (const auto& [node, words] : unsure) configure(node, words);
}

/// Passes the node's current parameters to the oracle, because a request for other parameters may have been withdrawn.
void EnlistWorkload::learn_words(const std::string& node) {
  const auto record = program_.disk().nodes.find(node);
  if (record == program_.disk().nodes.end()) return;
  const enlist::Configuring& wish = record->second.configuring;
  program_.oracle().wants_words(node, wish.wanted ? wish.conf : record->second.node_conf);
}

void EnlistWorkload::set_state(const std::string& verb, const std::string& node) {
  if (node.empty()) return;
  note("admin lets the coordinator " + verb + " " + node);
  program_.oracle().people_set(node);
  (void)program_.ask_admin(world_, "/v1/nodes/" + verb, {{"nodes", {node}}, {"reason", "inspection"}});
  // `node resume` withdraws a request to leave, even if Slurm then refuses to resume the node.
  if (verb == "resume") unsure_.insert(node);
}

void EnlistWorkload::remove_pool(const std::string& pool, bool force) {
  if (pool.empty()) return;
  note("admin removes pool " + pool + (force ? " with --force" : ""));
  (void)program_.ask_admin(world_, "/v1/pools/remove", {{"name", pool}, {"force", force}});
}

void EnlistWorkload::lose_host() {
  EnlistHost& host = some_host();
  if (lost_.size() >= 2 || !lost_.insert(&host).second) return;
  if (random_.chance(0.5)) dead_.insert(&host);
  if (random_.chance(0.5)) {
    host.power_off();
    host.lost = true;
    return;
  }
  note(host.name() + " is cut off for good");
  host.set_cut(true);
  host.lost = true;
}

void EnlistWorkload::fill_leave_actions(std::vector<Action>& out) {
  out.push_back({4, [this] {
                   const bool force = random_.chance(0.25);
                   leave_node(some_record(), force);
                 }});
  out.push_back({2, [this] { leave_host(some_host()); }});
  out.push_back({2, [this] { keep_node(some_record()); }});
  out.push_back({2, [this] { set_state("drain", some_record()); }});
  out.push_back({2, [this] { set_state("resume", some_record()); }});
  out.push_back({1, [this] {
                   const bool force = random_.chance(0.7);
                   remove_pool(some_pool(), force);
                 }});
  out.push_back({1, [this] { lose_host(); }});
  out.push_back({4, [this] {
                   const auto words =
                       std::vector<std::string>{"",       "Weight=7",        "Features=fast",  "Weight=3 Features=fast,new",
                                                "CPUs=2", "RealMemory=8000", "CPUs=2 Weight=9"}[random_.below(7)];
                   configure(some_record(), words);
                 }});
}

void EnlistWorkload::suspend() {
  for (const auto& [id, job] : program_.slurm().jobs()) {
    if (job.state != SimJob::State::kRunning || !random_.chance(0.3)) continue;
    note("admin suspends job " + std::to_string(id));
    (void)program_.slurm().suspend(id);
    world_.loop().after(between(1000, 60000), [this, number = id] { (void)program_.slurm().resume(number); });
    return;
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
  out.push_back({1, [this] { suspend(); }});
  fill_leave_actions(out);
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

void EnlistWorkload::kill_slurmctld(Duration unsaved) {
  SimSlurm& slurm = program_.slurm();
  note("slurmctld is killed before it has saved its state");
  slurm.kill(unsaved);
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
  out.push_back({1, [this] { kill_slurmctld(between(0, 6000)); }});
  out.push_back({5, [this] {
                   note("slurmctld will be killed soon after a deletion");
                   program_.oracle().on_deleted = [this] {
                     program_.oracle().on_deleted = nullptr;
                     world_.loop().after(between(0, 5000), [this] { kill_slurmctld(6s); });
                   };
                 }});
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

/// Undoes what users, administrators and accidents have caused, except for hosts that never return.
void EnlistWorkload::heal() {
  SimSlurm& slurm = program_.slurm();
  (void)slurm.start();
  program_.oracle().on_deleted = nullptr;
  program_.controller().disk_full = false;
  program_.controller().set_cut(false);
  for (const auto& host : program_.hosts()) {
    host->disk_full = false;
    host->check_passes = true;
    if (dead_.contains(host.get())) continue;
    host->lost = false;
    host->boot();
    host->set_cut(false);
    host->set_hung(false);
  }
  std::vector<std::string> names;
  for (const auto& [name, node] : slurm.nodes()) names.push_back(name);
  const bool resumes = random_.chance(0.5);
  for (const std::string& name : names) {
    if (slurm.node(name)->cloud) {
      (void)slurm.delete_node(name, kAdmin);
    } else if (const SimNode& node = *slurm.node(name); resumes && !node.reason.starts_with(EnlistOracle::kOwnReason)) {
      (void)slurm.update_node(name, {.state = "RESUME"}, kAdmin);
    }
  }
  // slurmctld reads its key again. After that, slurmctld and all hosts have the same auth key.
  program_.reconfigure();
}

void EnlistWorkload::learn_wishes() {
  const auto& disk = program_.disk();
  for (const std::string& node : std::set<std::string>(unsure_)) {
    const auto record = disk.nodes.find(node);
    learn_words(node);
    wish(node, record == disk.nodes.end() || (record->second.leaving.wanted && !record->second.leaving.dead));
  }
  for (const auto& [name, node] : disk.nodes) {
    const auto pool = disk.pools.find(node.pool);
    if (pool != disk.pools.end() && pool->second.removing) wish(name, true);
  }
  unsure_.clear();
}

/// Cancels pending jobs and resumes suspended jobs, which could otherwise hold nodes and pools for ever.
void EnlistWorkload::end_jobs_that_keep() {
  std::vector<std::int64_t> waiting, suspended;
  for (const auto& [id, job] : program_.slurm().jobs()) {
    if (job.state == SimJob::State::kPending) waiting.push_back(id);
    if (job.state == SimJob::State::kSuspended) suspended.push_back(id);
  }
  for (const std::int64_t id : waiting) (void)program_.slurm().cancel(id);
  for (const std::int64_t id : suspended) (void)program_.slurm().resume(id);
}

/// Lets an administrator remove the nodes of hosts that never return.
void EnlistWorkload::bury_lost_hosts() {
  for (EnlistHost* host : dead_) {
    program_.oracle().wants(*host, "");
    unfinished_.erase(host);
    for (const auto& [name, node] : std::map(program_.disk().nodes)) {
      if (node.key == host->fingerprint() && (!node.leaving.wanted || node.leaving.dead)) leave_node(name, random_.chance(0.3));
    }
  }
}

/// Lets users join each host again whose join was refused or killed, or that the coordinator has forgotten.
void EnlistWorkload::finish_joins() {
  if (program_.disk().pools.empty()) make_pool();
  for (const auto& host : program_.hosts()) {
    if (dead_.contains(host.get())) continue;
    const auto wanted = program_.oracle().wanted().find(host.get());
    if (wanted == program_.oracle().wanted().end() || wanted->second.empty()) continue;
    if (!unfinished_.contains(host.get()) && known(*host)) continue;
    std::string pool = wanted->second;
    for (const auto& [name, node] : program_.disk().nodes) {
      if (node.key == host->fingerprint()) pool = node.pool;
    }
    const auto there = program_.disk().pools.find(pool);
    if (there == program_.disk().pools.end() || there->second.removing) pool = some_pool();
    program_.oracle().wants(*host, pool);
    const std::string token = program_.make_token(world_, pool, 1);
    if (!token.empty() && program_.join(world_, *host, token, true) == 0) unfinished_.erase(host.get());
  }
}

/// Cleans up by hand what slurm-enlist cannot clean up: forgotten hosts, and the records that their slurmds registered in
/// Slurm.
void EnlistWorkload::clean_up() {
  for (const auto& host : program_.hosts()) {
    const auto wanted = program_.oracle().wanted().find(host.get());
    const bool joins = wanted != program_.oracle().wanted().end() && !wanted->second.empty();
    if (!joins && host->up() && !known(*host) && program_.oracle().abandoned(host->fingerprint())) host->clean_by_hand();
  }
  for (const auto& [name, node] : std::map(program_.slurm().nodes())) {
    const bool runs = std::ranges::any_of(program_.hosts(), [&](const auto& host) { return host->node() == name; });
    if (runs || program_.disk().nodes.contains(name) || !program_.oracle().was_abandoned(name)) continue;
    note("admin deletes " + name + ", whose host was forgotten");
    (void)program_.slurm().delete_node(name, kAdmin);
  }
}

/// Reloads each slurmd whose first registration Slurm has not accepted, as the documentation tells administrators to do.
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

/// Runs the world while nothing happens. If anything is written, returns the last write; otherwise an empty list.
std::vector<std::string> EnlistWorkload::rest() {
  world_.loop().run_for(1min);
  const std::uint64_t before = program_.oracle().writes();
  world_.loop().run_for(kRest);
  if (program_.oracle().writes() == before) return {};
  return {"something is written at rest: " + program_.oracle().last_write()};
}

std::vector<std::string> EnlistWorkload::calm() {
  heal();
  // Waits until all delayed effects of accidents have happened.
  world_.loop().run_for(3min);
  heal();
  world_.loop().run_for(20s);
  learn_wishes();
  constexpr int kRounds = 12;
  for (int round = 0; round < kRounds && world_.oracles().ok(); ++round) {
    end_jobs_that_keep();
    bury_lost_hosts();
    finish_joins();
    finish_words();
    clean_up();
    world_.loop().run_for(1min);
    mend_refused();
    if (round > 0 && world_.oracles().unmet().empty()) break;
  }
  std::vector<std::string> out;
  for (const std::string& why : world_.settle(kSettle)) out.push_back("the declared state is not reached: " + why);
  if (!out.empty() || !world_.oracles().ok()) return out;
  return rest();
}

}  // namespace sim
