#include "sim/programs/enlist/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "core/hash.hpp"
#include "enlist/agent/agent.hpp"
#include "enlist/agent/join.hpp"
#include "enlist/agent/leave.hpp"
#include "enlist/agent/memory_file.hpp"
#include "enlist/coordinator/coordinator.hpp"
#include "enlist/rules/pool_file.hpp"
#include "enlist/wire/messages.hpp"
#include "enlist/wire/token.hpp"
#include "sim/oracles/tap.hpp"
#include "sim/programs/enlist/store.hpp"
#include "sim/programs/enlist/wire.hpp"
#include "sim/programs/enlist/workload.hpp"

namespace sim {
namespace {

using namespace std::chrono_literals;
using core::Json;

const std::string kFolder = "/etc/slurm/";
const std::string kInclude = "Include slurm-enlist.conf\n";
const std::string kConf =
    "ClusterName=site\nSlurmctldHost=ctl\nSlurmUser=slurm\nMaxNodeCount=6\nReturnToService=2\nSlurmdTimeout=60\n"
    "SlurmctldParameters=enable_configless\nAuthType=auth/slurm\nAuthAltTypes=auth/jwt\n"
    "AuthAltParameters=jwt_key=/etc/slurm/jwt.key\n" +
    kInclude;
constexpr const char* kJwtKey = "a key of 32 bytes for the tokens..";

// --- The processes ----------------------------------------------------------------------------------------------------

/// slurmrestd as a child process of the coordinator. slurmrestd ends at random times, and starts again.
class EnlistRestd final : public enlist::Supervised {
 public:
  EnlistRestd(core::Loop& loop, World& world, bool& listens, std::function<void()> changed)
      : world_(world), listens_(listens), changed_(std::move(changed)), next_(loop) {
    listens_ = true;
    wait();
  }
  ~EnlistRestd() override { listens_ = false; }
  void stop() override {
    listens_ = false;
    next_.cancel();
  }
  [[nodiscard]] bool running() const override { return listens_; }
  [[nodiscard]] std::string last_error() const override { return listens_ ? "" : "killed"; }

 private:
  void wait() {
    next_.set(core::Duration{world_.random().between(20000, 200000)}, [this] {
      // slurmrestd ends only during a spell of faults.
      if (world_.faults().rates.refuse == 0) return wait();
      listens_ = false;
      changed_();
      next_.set(core::Duration{world_.random().between(300, 10000)}, [this] {
        listens_ = true;
        changed_();
        wait();
      });
    });
  }
  World& world_;
  bool& listens_;
  std::function<void()> changed_;
  core::Timer next_;
};

class EnlistCoordinatorProcess final : public ProgramProcess, public EnlistCoordinator {
 public:
  EnlistCoordinatorProcess(World& world, EnlistProgram& program, int slot)
      : program_(program),
        host_(world.loop()),
        random_(world.random().fork()),
        log_(world.oracles(), host_.clock(), "coordinator", world.options().print),
        store_(host_, program.controller(), program.oracle(), program.disk()),
        clusters_(host_, random_, log_,
                  [this, &world, &program, slot](const slurm::Endpoint&) {
                    return slurm_transport(
                        world.loop(), host_, random_,
                        [listens = listens_, &program] { return *listens ? &program.rest() : nullptr; },
                        [&world, &program, slot](const net::HttpRequest& request) {
                          program.oracle().request(request);
                          return world.slurm_fault(request, slot);
                        });
                  }),
        coordinator_(host_, random_, log_, store_, program.controller(),
                     [this, &world](const enlist::Command& command, std::function<void()> changed) {
                       for (const std::string& word : command.arguments)
                         program_.oracle().search(word, "an argument of slurmrestd");
                       return std::make_unique<EnlistRestd>(host_, world, *listens_, std::move(changed));
                     },
                     clusters_,
                     {.server = {.admin = EnlistProgram::kAdmin,
                                 .own = EnlistProgram::kOwn,
                                 .host = "ctl",
                                 .join_port = 6831,
                                 .agent_port = 6830,
                                 .cluster = {}},
                      .slurmrestd = {},
                      .slurm_conf = kFolder + "slurm.conf",
                      .forget_dead_after = program.forget_dead_after}) {
    program.controller().dead = false;
    program.set_coordinator(this);
    coordinator_.start();
  }
  ~EnlistCoordinatorProcess() override { program_.set_coordinator(nullptr); }
  [[nodiscard]] SimHost& host() override { return host_; }

  void serve(const net::HttpRequest& request, std::function<void(net::HttpResponse)> reply) override {
    host_.after(core::Duration{0}, [this, request, reply = std::move(reply)]() mutable {
      if (request.target == "/v1/join") return coordinator_.server().join(request, std::move(reply));
      coordinator_.server().serve(request, std::move(reply));
    });
  }

 private:
  EnlistProgram& program_;
  std::shared_ptr<bool> listens_ = std::make_shared<bool>(false);  ///< Whether slurmrestd runs.
  SimHost host_;
  SeededRandom random_;
  OracleLogger log_;
  EnlistStore store_;
  slurm::Clusters clusters_;
  enlist::Coordinator coordinator_;
};

class EnlistAgentProcess final : public ProgramProcess {
 public:
  EnlistAgentProcess(World& world, EnlistProgram& program, const std::shared_ptr<EnlistHost>& machine, int slot)
      : host_(world.loop()),
        random_(world.random().fork()),
        log_(world.oracles(), host_.clock(), machine->name(), world.options().print),
        transport_(world, program, host_, machine.get(), [&world, slot] { world.crash(slot, 500ms); }) {
    if (!machine->has_agent()) return;
    machine->dead = false;
    auto memory = enlist::read_memory(*machine, EnlistHost::kState);
    if (!memory) {
      // The program ends with an error, and systemd starts it again.
      world.crash(slot, 1s);
      return;
    }
    agent_.emplace(host_, random_, log_, transport_, machine, machine->service(),
                   enlist::MachineOptions{.check = EnlistHost::kCheck}, *std::move(memory));
    agent_->start();
  }
  [[nodiscard]] SimHost& host() override { return host_; }
  [[nodiscard]] bool leads() const override { return false; }

 private:
  SimHost host_;
  SeededRandom random_;
  OracleLogger log_;
  EnlistTransport transport_;
  std::optional<enlist::Agent> agent_;
};

// --- The command `join` -----------------------------------------------------------------------------------------------

/// Thrown when the command is killed, so that the rest of the command does not run.
struct Killed {};

/// The host, as a command on it (join or leave) uses it. A fault that ends the command does not end the agent on the host.
class JoiningHost final : public enlist::Host {
  template <class Act>
  auto mortal(const Act& act) {
    const bool dead = std::exchange(host_.dead, false);
    bool killed = false;
    host_.on_death = [&killed] { killed = true; };
    auto out = act();
    host_.on_death = nullptr;
    host_.dead = dead;
    if (killed) throw Killed();
    return out;
  }

 public:
  explicit JoiningHost(EnlistHost& host) : host_(host) {}
  core::Result<enlist::Output> run(const std::vector<std::string>& arguments, std::chrono::milliseconds limit,
                                   const std::string& input) override {
    return mortal([&] { return host_.run(arguments, limit, input); });
  }
  core::Result<std::string> read(const std::filesystem::path& file) override { return host_.read(file); }
  core::Result<void> write(const std::filesystem::path& file, const std::string& text, unsigned mode) override {
    return mortal([&] { return host_.write(file, text, mode); });
  }
  core::Result<void> remove(const std::filesystem::path& file) override {
    return mortal([&] { return host_.remove(file); });
  }
  core::Result<enlist::Identity> identity() {
    return mortal([&] { return host_.identity(); });
  }

 private:
  EnlistHost& host_;
};

}  // namespace

std::optional<core::Result<net::HttpResponse>> EnlistProgram::ask(World& world, const EnlistHost* host,
                                                                  net::HttpRequest request) {
  std::optional<core::Result<net::HttpResponse>> out;
  bool killed = false;
  std::function<void()> on_crash;
  if (host != nullptr) on_crash = [&killed] { killed = true; };
  EnlistTransport transport(world, *this, world.loop(), host, std::move(on_crash));
  const core::Duration limit = request.timeout + 1s;
  transport.send(std::move(request), [&out](core::Result<net::HttpResponse> reply) { out = std::move(reply); });
  const auto over = [&] { return out || killed || (host != nullptr && !host->up()); };
  if (!world.loop().run_until(over, limit) || !out) return std::nullopt;
  return out;
}

/// Runs a command on a host. Returns the exit code; -1 if the command was killed.
int EnlistProgram::run_on(World& world, EnlistHost& host, const std::string& name,
                          const std::function<int(const enlist::JoinParts&)>& command) {
  JoiningHost machine(host);
  const auto said = [&](std::string_view text) {
    oracle_->search(text, "what " + name + " says");
    world.oracles().note(host.name() + " " + std::string(text.substr(0, text.find('\n'))));
  };
  try {
    return command({.host = machine,
                    .identity = [&](const auto&, const auto&) { return machine.identity(); },
                    .send = [&](const net::Endpoint&, const net::HttpRequest& request) -> core::Result<net::HttpResponse> {
                      auto reply = ask(world, &host, request);
                      if (!reply) throw Killed();
                      return *std::move(reply);
                    },
                    .slurmd = [&](const auto&) -> core::Result<std::shared_ptr<enlist::Service>> {
                      return enlist::systemd_service(machine, EnlistHost::kSlurmd);
                    },
                    .read_input = [] { return std::string(); },
                    .write_out = said,
                    .write_err = said,
                    .now = [&] { return world.loop().clock().mono(); },
                    .sleep =
                        [&](core::Duration time) {
                          world.loop().run_for(time);
                          if (!host.up()) throw Killed();
                        },
                    .program = "/usr/bin/slurm-enlist"});
  } catch (const Killed&) {
    world.oracles().note(name + " on " + host.name() + " is killed");
    return -1;
  }
}

int EnlistProgram::join(World& world, EnlistHost& host, const std::string& token, bool again) {
  enlist::JoinOptions options;
  options.token = token;
  options.again = again;
  options.wait = 0s;
  options.agent.check = EnlistHost::kCheck;
  oracle_->joins(host);
  return run_on(world, host, "join", [&](const enlist::JoinParts& parts) { return enlist::join(options, parts); });
}

int EnlistProgram::leave(World& world, EnlistHost& host) {
  enlist::LeaveOptions options;
  options.wait = 0s;
  return run_on(world, host, "leave", [&](const enlist::JoinParts& parts) { return enlist::leave(options, parts); });
}

EnlistProgram::Answer EnlistProgram::ask_admin(World& world, const std::string& target, const core::Json& body) {
  const auto reply = ask(world, nullptr, {.method = "POST", .target = target, .body = core::canonical(body)});
  if (!reply || !*reply || (*reply)->status >= 500) return Answer::kUnknown;
  return (*reply)->status == 200 ? Answer::kDone : Answer::kRefused;
}

std::string EnlistProgram::make_token(World& world, const std::string& pool, int uses) {
  const auto reply = ask(world, nullptr,
                         {.method = "POST",
                          .target = "/v1/tokens",
                          .body = core::canonical({{"pool", pool}, {"valid_for_s", 600}, {"uses", uses}})});
  if (!reply || !*reply || (*reply)->status != 200) return "";
  std::string token = core::get_string(*core::parse_json((*reply)->body), {"token"});
  oracle_->learn(token);
  oracle_->learn(enlist::read_token(token)->secret);
  return token;
}

bool EnlistProgram::make_pool(World& world, const std::string& name, const std::string& node_conf) {
  const enlist::Pool pool{.name = name, .partition_conf = "MaxTime=1-0", .node_conf = node_conf};
  const auto reply =
      ask(world, nullptr, {.method = "POST", .target = "/v1/pools", .body = core::canonical(enlist::to_json(pool))});
  return reply && *reply && (*reply)->status == 200;
}

void EnlistProgram::reconfigure() {
  oracle_->admin_reconfigures = true;
  (void)slurm_->reconfigure();
  oracle_->admin_reconfigures = false;
}

void EnlistProgram::change_key(World& world) {
  const std::string key = "auth-key-" + core::hex(world.random().bytes(16));
  oracle_->learn(key);
  controller_->files[kFolder + "slurm.key"] = key;
}

// --- The program ------------------------------------------------------------------------------------------------------

/// Returns slurm.conf as slurmctld reads it.
std::string EnlistProgram::configuration() const {
  std::string out = controller_->content(kFolder + "slurm.conf");
  out.replace(out.find(kInclude), kInclude.size(), controller_->content(kFolder + std::string(enlist::kPoolFile)));
  return out;
}

/// Returns the key file of slurmctld (""), or of the slurmd of a node.
SlurmKeys EnlistProgram::keys_of(const std::string& node) const {
  std::string key = controller_->auth_key();
  if (!node.empty()) {
    key = "none";
    for (const auto& host : hosts_) {
      if (host->last_node() == node && !host->auth_key().empty()) key = host->auth_key();
    }
  }
  return {.kids = {key}, .use_default = {}, .bytes = {}, .alone = true};
}

void EnlistProgram::install(World& world) {
  SlurmOptions options;
  options.release = world.options().slurm_release;
  options.listens = "ctl:6817";
  options.keeps_instance = true;
  slurm_ = std::make_unique<SimSlurm>(
      world.loop(), world.random(), [this] { return configuration(); }, options);
  slurm_->key_file = [this](const std::string& node) { return keys_of(node); };
  oracle_ = std::make_unique<EnlistOracle>(world.oracles(), world.loop(), *slurm_, hosts_, disk_);
  oracle_->learn(kJwtKey);
  controller_ = std::make_shared<EnlistHost>(world, *oracle_, *slurm_, 0);
  controller_->files = {{kFolder + "slurm.conf", kConf},
                        {kFolder + std::string(enlist::kPoolFile), enlist::pool_file({})},
                        {kFolder + "jwt.key", kJwtKey}};
  change_key(world);
  for (int i = 1; i <= kHosts; ++i) hosts_.push_back(std::make_shared<EnlistHost>(world, *oracle_, *slurm_, i));
  rest_ = std::make_unique<SlurmRest>(world.loop(), *slurm_, [] { return std::string(kJwtKey); });
  if (const auto started = slurm_->start(); !started) throw std::runtime_error(started.error().message);
}

std::unique_ptr<ProgramProcess> EnlistProgram::start(World& world, int which, int slot) {
  if (which == 0) {
    controller_->slot = slot;
    return std::make_unique<EnlistCoordinatorProcess>(world, *this, slot);
  }
  const auto& host = hosts_[static_cast<std::size_t>(which - 1)];
  host->slot = slot;
  return std::make_unique<EnlistAgentProcess>(world, *this, host, slot);
}

std::unique_ptr<Workload> EnlistProgram::workload(World& world, History& history) {
  return std::make_unique<EnlistWorkload>(world, history, *this);
}

}  // namespace sim
