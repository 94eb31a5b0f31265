#include "enlist/juju/program.hpp"

#include <unistd.h>

#include <cstdio>
#include <thread>

#include "enlist/agent/program.hpp"

namespace enlist::juju {
namespace {

std::map<std::string, std::string> environment_of_process() {
  std::map<std::string, std::string> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (const std::size_t is = text.find('='); is != std::string_view::npos)
      out.emplace(text.substr(0, is), text.substr(is + 1));
  }
  return out;
}

/// Reports whether this event or an earlier one has shown that this unit is being removed. Stores that in a file, because a
/// relation-broken that follows looks as if the relation itself ended.
core::Result<bool> leaves(const Event& event, const CharmParts& parts) {
  const std::filesystem::path file = parts.state / ("charm-leaves-" + node_of(event.unit));
  // The file may be that of an earlier unit that had the same name on this machine.
  if (event.name == "install") {
    if (auto done = parts.host.remove(file); !done) return std::unexpected(done.error());
    return false;
  }
  const auto before = parts.host.read(file);
  if (before) return true;
  if (before.error().code != core::ErrorCode::kNotFound) return std::unexpected(before.error());
  if (!event.leaves()) return false;
  if (auto noted = parts.host.write(file, event.unit, 0644); !noted) return std::unexpected(noted.error());
  return true;
}

}  // namespace

int run_charm(std::string_view charm, const std::map<std::string, std::string>& environment, const CharmParts& parts,
              const std::function<void(std::string_view)>& write_err) {
  const bool compute = charm == "slurmd";
  if (!compute && charm != "slurmctld") {
    write_err("slurm-enlist charm: the charms are slurmd and slurmctld\n");
    return 2;
  }
  const core::Result<Event> event = event_from(environment);
  if (!event) {
    write_err("slurm-enlist charm: " + event.error().message + "\n");
    return 2;
  }
  const auto failed = [&](const core::Error& error) {
    parts.tools.log("ERROR", event->name + ": " + error.message);
    return 1;
  };
  if (!event->action.empty() && !compute) {
    write_err("slurm-enlist charm: slurmctld has no actions\n");
    return 2;
  }
  const auto left = leaves(*event, parts);
  if (!left) return failed(left.error());
  if (!event->action.empty()) {
    const auto results = act_compute(*event, parts, *left);
    const auto told = results ? parts.tools.set_results(*results) : parts.tools.fail_action(results.error().message);
    return told ? 0 : failed(told.error());
  }
  if (*left && !compute) return 0;
  const auto status = *left     ? leave_compute(*event, parts)
                      : compute ? run_compute(*event, parts)
                                : run_controller(*event, parts);
  if (!status) return failed(status.error());
  if (!*status) return 0;
  const auto before = parts.tools.status();
  if (!before) return failed(before.error());
  if (*before == **status) return 0;
  if ((*status)->kind == Status::Kind::kBlocked) parts.tools.log("ERROR", (*status)->message);
  if (auto set = parts.tools.set_status(**status); !set) return failed(set.error());
  return 0;
}

int run_charm(std::string_view charm) {
  const std::unique_ptr<Host> host = local_host();
  const std::unique_ptr<HookTools> tools = juju_tools(*host);
  const AgentOptions defaults;
  const std::unique_ptr<Service> service =
      systemd_runs() ? systemd_service(*host, defaults.slurmd) : child_service(*host, defaults.slurmd, defaults.slurmd_log);
  const core::SystemClock clock;
  const CharmParts parts{.host = *host,
                         .tools = *tools,
                         .slurmd = *service,
                         .pause = [](std::chrono::milliseconds time) { std::this_thread::sleep_for(time); },
                         .now = [&clock] { return clock.mono(); }};
  return run_charm(charm, environment_of_process(), parts,
                   [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); });
}

}  // namespace enlist::juju
