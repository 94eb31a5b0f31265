#include "enlist/agent/program.hpp"

#include <CLI/CLI.hpp>
#include <csignal>
#include <filesystem>
#include <optional>
#include <utility>

#include "enlist/agent/agent.hpp"
#include "enlist/agent/memory_file.hpp"
#include "enlist/wire/identity.hpp"
#include "net/beast_transport.hpp"

namespace enlist {

namespace {

class AgentProgram final : public run::Shell {
 public:
  explicit AgentProgram(AgentOptions options)
      : Shell({.name = "slurm-enlist agent",
               .version = options.version,
               .about = "Runs the slurmd of this host as the coordinator of its cluster asks."},
              std::make_unique<run::Metrics>("slurm-enlist-agent")),
        options_(std::move(options)) {
    flag("--state", options_.state, "The folder of the agent's state and key");
    flag("--status-file", options_.status_file, "The file in which the agent reports its phase and errors");
    flag("--slurm-folder", options_.slurm_folder, "The folder of Slurm's auth key");
    flag("--slurmd", options_.slurmd, "Slurm's daemon");
    flag("--check", options_.check, "A script that must succeed before Slurm may start jobs here");
    flag("--gpu-detector", options_.gpu_detector,
         "A program that prints node parameters for slurmd --conf, such as Gres=gpu:a100:2");
    flag("--supervisor", options_.supervisor, "systemd, child (of the agent) or auto");
    flag("--slurmd-unit", options_.slurmd_unit, "The unit of slurmd");
    flag("--slurmd-defaults", options_.slurmd_defaults, "The file with the arguments of slurmd");
    flag("--agent-unit", options_.agent_unit, "The unit of this agent, which is removed when the host leaves");
    flag("--slurmd-log", options_.slurmd_log, "The log of a slurmd that is a child");
    // By default, the agent opens no port on a compute node.
    for (const char* address : {"--health-addr", "--metrics-addr"})
      cli().get_option(address)->run_callback_for_default()->default_val("0");
  }

 private:
  std::optional<int> prepare() override {
    const std::filesystem::path folder = options_.state;
    auto memory = read_memory(*host_, folder);
    if (!memory && memory.error().code == core::ErrorCode::kNotFound)
      return fatal("this host has not joined a pool: slurm-enlist join", memory.error());
    if (!memory) return fatal("the memory of the agent", memory.error());
    // Without host.crt, load_or_make_identity() would make a new key, which the coordinator does not know.
    if (const auto cert = host_->read(folder / "host.crt"); !cert) return fatal("the key of this host", cert.error());
    auto identity = load_or_make_identity(folder, "host");
    if (!identity) return fatal("the key of this host", identity.error());
    auto service = slurmd_service(*host_, options_);
    if (!service) return fatal("--supervisor", service.error());
    node_ = memory->node;
    transport_.emplace(loop(),
                       net::Endpoint{.scheme = "https",
                                     .host = memory->host,
                                     .port = memory->port,
                                     .tls = {.cert_pem = std::move(identity->cert_pem),
                                             .key_pem = std::move(identity->key_pem),
                                             .pinned_key = memory->coordinator}},
                       net::TransportOptions{.max_connections = 4, .max_reply_bytes = 1UL << 20});
    agent_.emplace(loop(), random(), log(), *transport_, host_, *std::move(service), machine_options(options_),
                   *std::move(memory), &metrics(), [] { raise(SIGTERM); });
    return {};
  }
  run::HealthChecks health() override {
    return {.ready = [this] { return agent_->ready(); }, .healthy = [this] { return agent_->passes().plans_in_time(); }};
  }
  std::vector<core::Field> connected_to() override {
    return {{"node", node_}, {"coordinator", transport_->endpoint().host}, {"port", transport_->endpoint().port}};
  }
  void begin() override { agent_->start(); }
  void end(std::function<void()> done) override { agent_->stop(std::move(done)); }
  void collect() override { agent_->passes().collect(); }

  AgentOptions options_;
  std::shared_ptr<Host> host_ = local_host();
  std::string node_;
  std::optional<net::BeastTransport> transport_;
  std::optional<Agent> agent_;
};

}  // namespace

MachineOptions machine_options(const AgentOptions& options) {
  return {.state = options.state,
          .status_file = options.status_file,
          .slurm_folder = options.slurm_folder,
          .slurmd = options.slurmd,
          .check = options.check,
          .agent_unit = options.agent_unit,
          .gpu_detector = options.gpu_detector};
}

core::Result<std::shared_ptr<Service>> slurmd_service(Host& host, const AgentOptions& options) {
  const std::string& by = options.supervisor;
  if (by == "systemd" || (by == "auto" && systemd_runs())) {
    const std::filesystem::path unit = options.slurmd_unit;
    return systemd_service(host, options.slurmd, {unit.filename().string(), unit, options.slurmd_defaults});
  }
  if (by == "child" || by == "auto") return child_service(host, options.slurmd, options.slurmd_log);
  return core::fail(core::ErrorCode::kInvalid, by + ": must be systemd, child or auto");
}

bool systemd_runs() {
  std::error_code error;
  return std::filesystem::is_directory("/run/systemd/system", error);
}

std::unique_ptr<run::Shell> make_agent(AgentOptions options) {
  return std::make_unique<AgentProgram>(std::move(options));
}

}  // namespace enlist
