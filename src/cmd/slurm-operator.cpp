// slurm-operator: makes slinky.slurm.net resources a running Slurm cluster. Flags, wiring, signals; nothing else.

#include <malloc.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/random.hpp"
#include "kube/client.hpp"
#include "kube/credentials.hpp"
#include "kube/health.hpp"
#include "kube/manager.hpp"
#include "kube/metrics.hpp"
#include "kube/process.hpp"
#include "net/asio_loop.hpp"
#include "net/beast_transport.hpp"
#include "net/http_server.hpp"
#include "operator/budgets.hpp"
#include "operator/operator.hpp"

namespace {

/// What Slurms answer, and is not read yet; with what it is read into, well below the chart's limit.
constexpr std::size_t kSlurmReplies = 1UL << 30;
constexpr std::size_t kLongestBody = 4096;  ///< Nobody has anything to say there.
constexpr std::size_t kMaxClients = 64;     ///< Of the health port, and of the metrics port: probes and scrapers are few.

struct Flags {
  bool leader_elect = true;
  std::string leader_elect_namespace;
  std::string leader_elect_name = "slurm-operator";
  std::string health_address = ":8081";
  std::string metrics_address = ":8080";
  std::string metrics_token_file;
  std::vector<std::string> namespaces;
  std::string log_level = "info";
  std::string kubeconfig;
  std::string cluster_domain = "cluster.local";
  std::string worker_priority_class;
  bool dry_run = false;
  bool remove_budgets = false;
};

std::string hostname() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

/// Read for every request: who rotates it needs no restart.
std::optional<std::string> read_token(const std::string& path) {
  std::ifstream file(path);
  std::string token;
  if (!std::getline(file, token)) return std::nullopt;
  return token;
}

int fatal(core::Logger& log, std::string_view what, const core::Error& error) {
  log.error(what, {core::error_field(error)});
  return 1;
}

/// Gives back what lists, watches and OpenAPI documents once needed: without it, memory stays at its peak.
void trim_memory(core::Loop& loop) {
  malloc_trim(0);
  loop.after(std::chrono::seconds(30), [&loop] { trim_memory(loop); });
}

int run(const Flags& flags) {
  net::AsioLoop loop(2);
  const auto level = core::parse_level(flags.log_level);
  core::SpdLogger log(level.value_or(core::Level::kInfo), loop.clock());
  if (!level) return fatal(log, "--log-level", level.error());
  core::SystemRandom random;

  auto credentials = kube::discover_credentials(loop, flags.kubeconfig);
  if (!credentials) return fatal(log, "no way to the API server", credentials.error());
  net::BeastTransport api(loop, (*credentials)->endpoint());
  (*credentials)->on_change([&](const net::Endpoint& endpoint) {
    if (auto changed = api.set_endpoint(endpoint); !changed)
      log.warn("new certificates refused", {core::error_field(changed.error())});
  });

  kube::Metrics metrics;
  (*credentials)->on_read([&](bool good) { metrics.credentials_read(good); });
  const std::string api_host = (*credentials)->endpoint().host;
  kube::ClientOptions client_options;
  client_options.user_agent = "slurm-operator/" SLURM_OPERATOR_VERSION;
  client_options.observe = [&](const kube::RequestRecord& record) { metrics.request(record, api_host); };
  kube::Client client(loop, random, api, **credentials, client_options);
  if (flags.remove_budgets) {
    core::Result<int> removed = 0;
    op::remove_budgets(client, flags.namespaces, [&](core::Result<int> result) {
      removed = std::move(result);
      loop.stop();
    });
    loop.run();
    if (!removed) return fatal(log, "budgets of workers are left", removed.error());
    log.info("removed budgets of workers", {{"count", *removed}});
    return 0;
  }

  kube::ManagerOptions options;
  options.dry_run = flags.dry_run;
  options.metrics = &metrics;
  options.events.instance = hostname();
  options.on_lost = [&](const std::string& why) {
    // Another may act from now on: nothing of ours may run any longer.
    log.error("the lease is lost, ending at once", {{"why", why}});
    std::_Exit(1);
  };
  if (flags.leader_elect && !flags.dry_run) {
    kube::LeaseOptions lease;
    const std::string ns =
        flags.leader_elect_namespace.empty() ? (*credentials)->default_namespace() : flags.leader_elect_namespace;
    lease.key = {ns, flags.leader_elect_name};
    lease.identity = hostname() + "_" + core::hex(random.bytes(8));
    options.election = lease;
  }
  kube::Manager manager(loop, random, log, client, options);

  net::TransportOptions slurm_options;
  slurm_options.budget = std::make_shared<net::ReplyBudget>(kSlurmReplies);
  const auto slurm_transport = [&](const slurm::Endpoint& endpoint) -> std::unique_ptr<net::HttpTransport> {
    return std::make_unique<net::BeastTransport>(loop, net::Endpoint{"http", endpoint.host, endpoint.port, {}}, slurm_options);
  };
  op::Operator slurm_operator(loop, random, log, manager, slurm_transport,
                              {flags.namespaces, flags.cluster_domain, flags.worker_priority_class});

  const kube::HealthChecks checks{.ready = [&] { return manager.synced(); },
                                  .healthy = [&] { return manager.plans_in_time(); }};
  const auto metrics_text = [&] {
    manager.collect();
    metrics.process(kube::read_process_usage());
    return metrics.text();
  };
  kube::MetricsToken metrics_token;
  if (!flags.metrics_token_file.empty()) metrics_token = [file = flags.metrics_token_file] { return read_token(file); };
  std::vector<std::unique_ptr<net::HttpServer>> servers;
  const auto serve = [&](const std::string& flag, const std::string& text,
                         net::HttpServer::Handler handler) -> core::Result<void> {
    if (text == "0") return {};
    auto address = net::parse_listen_address(text);
    if (!address) return std::unexpected(address.error().with(flag));
    address->max_connections = kMaxClients;
    address->max_request_bytes = kLongestBody;
    servers.push_back(std::make_unique<net::HttpServer>(loop, *address, std::move(handler)));
    auto started = servers.back()->start();
    if (!started) return std::unexpected(started.error().with(flag));
    return {};
  };
  if (auto served = serve("--health-addr", flags.health_address, kube::health_handler(checks)); !served) {
    return fatal(log, "no health endpoint", served.error());
  }
  if (auto served = serve("--metrics-addr", flags.metrics_address, kube::metrics_handler(metrics_text, metrics_token));
      !served) {
    return fatal(log, "no metrics endpoint", served.error());
  }

  bool stopping = false;
  loop.on_signals([&](int signal) {
    if (stopping) {
      log.warn("second signal, ending at once", {{"signal", signal}});
      std::_Exit(1);
    }
    stopping = true;
    log.info("stopping", {{"signal", signal}});
    manager.stop([&] { loop.stop(); });
  });
  log.info("starting", {{"version", SLURM_OPERATOR_VERSION}, {"api", api_host}});
  manager.start();
  trim_memory(loop);
  try {
    loop.run();
  } catch (const std::exception& error) {
    // A bug. What runs may be in any state: nothing of it is to go on, not even to its own end.
    log.error("ending at once: an exception", {{"what", error.what()}});
    std::_Exit(1);
  }
  log.info("stopped");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  // A few threads that allocate little: one arena keeps the memory at rest low.
  // NOLINTBEGIN(concurrency-mt-unsafe): no thread runs yet
  mallopt(M_ARENA_MAX, 1);
  // Fixed, or it grows with the first large list, and such lists stay in the heap from then on.
  mallopt(M_MMAP_THRESHOLD, 128 * 1024);
  // NOLINTEND(concurrency-mt-unsafe)
  kube::raise_fd_limit();
  Flags flags;
  CLI::App app{"Makes slinky.slurm.net resources (Controller, RestApi, NodeSet, Token) a running Slurm cluster."};
  app.set_version_flag("--version", SLURM_OPERATOR_VERSION);
  app.add_option("--leader-elect", flags.leader_elect, "Act only while holding the Lease")->capture_default_str();
  app.add_option("--leader-elect-namespace", flags.leader_elect_namespace, "Where the Lease is (default: our own namespace)");
  app.add_option("--leader-elect-name", flags.leader_elect_name, "The Lease's name; of the operators that share one, one acts")
      ->capture_default_str();
  app.add_option("--health-addr", flags.health_address, "Where /healthz and /readyz are served; 0: nowhere")
      ->capture_default_str();
  app.add_option("--metrics-addr", flags.metrics_address, "Where /metrics is served; 0: nowhere")->capture_default_str();
  app.add_option("--metrics-token-file", flags.metrics_token_file,
                 "Whoever reads metrics must show this bearer token (default: nobody must)");
  app.add_option("--namespaces", flags.namespaces, "Act only on these (comma-separated; default: all)")->delimiter(',');
  app.add_option("--log-level", flags.log_level, "debug, info, warn or error")->capture_default_str();
  app.add_option("--kubeconfig", flags.kubeconfig, "Path (default: $KUBECONFIG, the pod's service account, ~/.kube/config)");
  app.add_option("--cluster-domain", flags.cluster_domain, "DNS domain of the Kubernetes cluster")->capture_default_str();
  app.add_option("--worker-priority-class", flags.worker_priority_class, "PriorityClass of workers whose NodeSet names none");
  app.add_flag("--remove-budgets", flags.remove_budgets,
               "Delete the PodDisruptionBudgets of workers, and end: when no operator runs any more");
  app.add_flag("--dry-run", flags.dry_run, "Log what would be done; write nothing");
  CLI11_PARSE(app, argc, argv);
  return run(flags);
}
