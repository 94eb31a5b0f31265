// slurm-bridge: lets Slurm choose where and when pods run. This file contains only the flags and wiring of slurm-bridge.

#include <algorithm>
#include <charconv>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bridge/admission/server.hpp"
#include "bridge/bridge.hpp"
#include "bridge/retirement.hpp"
#include "kube/app/app.hpp"
#include "net/beast_transport.hpp"

namespace {

/// The limit, in bytes, for the memory of Slurm's answers that are not decoded yet.
constexpr std::size_t kSlurmReplies = 1UL << 28;

slurm::Clusters::TransportFactory slurm_transport(net::AsioLoop& loop) {
  net::TransportOptions options;
  options.budget = std::make_shared<net::ReplyBudget>(kSlurmReplies);
  return [&loop, options](const slurm::Endpoint& endpoint) -> std::unique_ptr<net::HttpTransport> {
    return std::make_unique<net::BeastTransport>(loop, net::Endpoint{"http", endpoint.host, endpoint.port, {}}, options);
  };
}

core::Error invalid(std::string message) {
  return core::fail(core::ErrorCode::kInvalid, std::move(message)).error();
}

/// Splits "a/b/c" into exactly `count` parts that are not empty. Returns nothing otherwise.
std::vector<std::string> parts(std::string_view text, std::size_t count) {
  std::vector<std::string> out;
  for (;;) {
    const std::size_t slash = std::min(text.find('/'), text.size());
    if (slash == 0) return {};
    out.emplace_back(text.substr(0, slash));
    if (slash == text.size()) break;
    text.remove_prefix(slash + 1);
  }
  return out.size() == count ? out : std::vector<std::string>{};
}

struct Flags {
  std::string cluster, slurmrestd, slurm_key, silence_limit, outlive_limit;
  std::string admission_address = "0", admission_name = "slurm-bridge";
};

/// Reads a flag's value in minutes into `limit`. Keeps `limit` if the flag is absent. Returns the error, or nullopt.
std::optional<core::Error> read_minutes(const std::string& flag, const std::string& text, core::Duration& limit) {
  if (text.empty()) return {};
  std::int64_t minutes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), minutes);
  if (error != std::errc() || end != text.data() + text.size() || minutes < 1 || minutes > 60 * 24 * 365)
    return invalid(flag + " " + text + ": must be a whole number of minutes, 1 or more");
  limit = std::chrono::minutes{minutes};
  return {};
}

/// Reads the flags that say how to reach Slurm into `options`. Returns the error, or nullopt.
std::optional<core::Error> read_connection(const Flags& flags, bridge::Options& options) {
  if (flags.cluster.empty() == flags.slurmrestd.empty()) return invalid("exactly one of --cluster and --slurmrestd is needed");
  if (!flags.cluster.empty()) {
    const auto names = parts(flags.cluster, 2);
    if (names.empty()) return invalid("--cluster " + flags.cluster + ": must be NAMESPACE/NAME of a Controller");
    options.controller = kube::Key{names[0], names[1]};
    return {};
  }
  const std::size_t colon = flags.slurmrestd.rfind(':');
  std::uint16_t port = 0;
  const char* end = flags.slurmrestd.data() + flags.slurmrestd.size();
  const bool has_port = colon != std::string::npos && colon > 0 &&
                        std::from_chars(flags.slurmrestd.data() + colon + 1, end, port).ptr == end && port != 0;
  if (!has_port) return invalid("--slurmrestd " + flags.slurmrestd + ": must be HOST:PORT");
  const auto names = parts(flags.slurm_key, 3);
  if (names.empty()) return invalid("--slurm-key " + flags.slurm_key + ": must be NAMESPACE/SECRET/KEY");
  options.address = bridge::SlurmAddress{{flags.slurmrestd.substr(0, colon), port}, {names[0], names[1]}, names[2]};
  return {};
}

/// Returns the admission webhook, which is not started yet; null if the flags disable it, or for a dry run.
core::Result<std::unique_ptr<bridge::admission::Server>> make_admission(kube::App& app, const Flags& flags,
                                                                        const bridge::Bridge& slurm_bridge) {
  if (flags.admission_address == "0" || app.dry_run()) return nullptr;
  const bridge::Settings& settings = slurm_bridge.settings();
  auto listen = net::parse_listen_address(flags.admission_address);
  if (!listen) return std::unexpected(listen.error().with("--admission-addr"));
  const std::string own = app.own_namespace();
  // In its own namespace, slurm-bridge would manage its own pods. They would wait for slurm-bridge to schedule them.
  if (std::ranges::find(settings.managed_namespaces, own) != settings.managed_namespaces.end())
    return core::fail(core::ErrorCode::kInvalid, "--managed-namespaces: " + own + ", must not be slurm-bridge's own namespace");
  return std::make_unique<bridge::admission::Server>(
      app.loop(), app.log(), app.manager(), settings,
      bridge::admission::ServerOptions{*std::move(listen), own, flags.admission_name,
                                       [&slurm_bridge] { return slurm_bridge.too_old(); }});
}

std::optional<core::Error> check_managed(const std::vector<std::string>& namespaces) {
  if (namespaces.empty()) return invalid("--managed-namespaces: empty, must name at least one namespace");
  if (std::ranges::find(namespaces, "kube-system") != namespaces.end())
    return invalid("--managed-namespaces: kube-system, must not be the namespace of Kubernetes");
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  kube::App app({.name = "slurm-bridge",
                 .version = SLURM_BRIDGE_VERSION,
                 .about = "Lets Slurm choose where and when pods run: a pod with the scheduling gate becomes a job of Slurm."});
  bridge::Options options;
  Flags flags;
  bool shared_nodes = false, no_nodes = false;
  app.flag("--cluster", flags.cluster, "The Slurm cluster: NAMESPACE/NAME of its Controller, which has a RestApi");
  app.flag("--slurmrestd", flags.slurmrestd, "Instead of --cluster: HOST:PORT of a slurmrestd");
  app.flag("--slurm-key", flags.slurm_key, "With --slurmrestd: NAMESPACE/SECRET/KEY of the key that signs tokens (HS256)");
  app.flag("--managed-namespaces", options.jobs.managed_namespaces, "Namespaces whose pods become jobs (comma-separated)");
  app.flag("--partition", options.jobs.partition, "The partition of pods that name none (default: Slurm's)");
  app.flag("--mcs-label", options.jobs.mcs_label, "The MCS label of all jobs (default: none)");
  app.flag("--shared-nodes", shared_nodes, "Pods share their nodes with other jobs unless an annotation says otherwise");
  app.flag("--no-nodes", no_nodes, "Do not register, taint or drain nodes");
  app.flag("--trust-identities", options.jobs.trusts_identities,
           "Let pods choose the user, the group and the priority of their jobs");
  app.flag("--node-silence-limit", flags.silence_limit,
           "Release the jobs of pods whose node has not been ready for this many minutes (default: 10)");
  app.flag("--pod-outlive-limit", flags.outlive_limit,
           "Shorten the grace periods of pods that would outlive their jobs by more than this many minutes (default: 5)");
  app.flag("--retire", options.retires,
           "Undo what slurm-bridge has changed, and exit: remove the gates of pods that wait, and its nodes from Slurm");
  app.flag("--admission-addr", flags.admission_address, "Where the admission webhook is served; 0: nowhere");
  app.flag("--admission-name", flags.admission_name,
           "The name of the webhook's Service, Secret and MutatingWebhookConfiguration");
  app.flag("--scheduler-name", options.jobs.scheduler_name,
           "Manage pods with this schedulerName in all namespaces, as the webhook sees them (default: none)");
  if (const std::optional<int> code = app.start(argc, argv)) return *code;
  if (const auto wrong = read_connection(flags, options)) return app.fatal("flags", *wrong);
  if (const auto wrong = check_managed(options.jobs.managed_namespaces)) return app.fatal("flags", *wrong);
  bridge::Settings& jobs = options.jobs;
  if (const auto wrong = read_minutes("--node-silence-limit", flags.silence_limit, jobs.silence_limit))
    return app.fatal("flags", *wrong);
  if (const auto wrong = read_minutes("--pod-outlive-limit", flags.outlive_limit, jobs.outlive_limit))
    return app.fatal("flags", *wrong);
  options.jobs.whole_nodes = !shared_nodes;
  options.runs_nodes = !no_nodes;
  bridge::Bridge slurm_bridge(app.loop(), app.random(), app.log(), app.manager(), slurm_transport(app.loop()), options);
  // SIGTERM starts the orderly end of the process.
  bridge::Retirement retirement(
      app.loop(), app.log(), [&] { return slurm_bridge.left(); }, [] { (void)std::raise(SIGTERM); });
  if (options.retires) retirement.start();
  auto admission = make_admission(app, flags, slurm_bridge);
  if (!admission) return app.fatal("flags", admission.error());
  if (bridge::admission::Server* webhook = admission->get()) {
    app.ready_when([webhook] { return webhook->ready(); });
    app.stop_first([webhook](std::function<void()> done) { webhook->stop(std::move(done)); });
    webhook->start();
  }
  return app.run();
}
