#include "kube/app.hpp"

#include <malloc.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <fstream>

#include "core/hash.hpp"
#include "kube/credentials.hpp"
#include "kube/health.hpp"
#include "kube/metrics.hpp"
#include "kube/process.hpp"
#include "net/beast_transport.hpp"
#include "net/http_server.hpp"

namespace kube {

namespace {

constexpr std::size_t kLongestBody = 4096;  ///< Nobody has anything to say there.
constexpr std::size_t kMaxClients = 64;     ///< Of the health port, and of the metrics port: probes and scrapers are few.

struct Flags {
  bool leader_elect = true;
  std::string leader_elect_namespace;
  std::string leader_elect_name;
  std::string health_address = ":8081";
  std::string metrics_address = ":8080";
  std::string metrics_token_file;
  std::string log_level = "info";
  std::string kubeconfig;
  bool dry_run = false;
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

void tune_malloc() {
  // A few threads that allocate little: one arena keeps the memory at rest low.
  // NOLINTBEGIN(concurrency-mt-unsafe): no thread runs yet
  mallopt(M_ARENA_MAX, 1);
  // Fixed, or it grows with the first large list, and such lists stay in the heap from then on.
  mallopt(M_MMAP_THRESHOLD, 128 * 1024);
  // NOLINTEND(concurrency-mt-unsafe)
}

/// Gives back what lists, watches and OpenAPI documents once needed: without it, memory stays at its peak.
void trim_memory(core::Loop& loop) {
  malloc_trim(0);
  loop.after(std::chrono::seconds(30), [&loop] { trim_memory(loop); });
}

}  // namespace

struct App::Impl {
  Program program;
  Flags flags;
  CLI::App cli;
  net::AsioLoop loop{2};
  std::optional<core::SpdLogger> log;
  core::SystemRandom random;
  std::unique_ptr<Credentials> credentials;
  std::string api_host;
  std::optional<net::BeastTransport> api;
  Metrics metrics;
  std::optional<Client> client;
  std::optional<Manager> manager;
  bool stopping = false;

  explicit Impl(Program given) : program(std::move(given)), cli(program.about), metrics(program.name) {}

  int fatal(std::string_view what, const core::Error& error) {
    log->error(what, {core::error_field(error)});
    return 1;
  }

  std::optional<int> start(int argc, char** argv) {
    try {
      cli.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return cli.exit(error);
    }
    const auto level = core::parse_level(flags.log_level);
    log.emplace(level.value_or(core::Level::kInfo), loop.clock());
    if (!level) return fatal("--log-level", level.error());
    auto found = discover_credentials(loop, flags.kubeconfig);
    if (!found) return fatal("no way to the API server", found.error());
    credentials = std::move(*found);
    connect();
    return {};
  }

  void connect() {
    api_host = credentials->endpoint().host;
    api.emplace(loop, credentials->endpoint());
    credentials->on_change([this](const net::Endpoint& endpoint) {
      if (auto changed = api->set_endpoint(endpoint); !changed)
        log->warn("new certificates refused", {core::error_field(changed.error())});
    });
    credentials->on_read([this](bool good) { metrics.credentials_read(good); });
    ClientOptions options;
    options.user_agent = program.name + "/" + program.version;
    options.field_manager = program.name;
    options.observe = [this](const RequestRecord& record) { metrics.request(record, api_host); };
    client.emplace(loop, random, *api, *credentials, std::move(options));
  }

  std::optional<LeaseOptions> election() {
    if (!flags.leader_elect || flags.dry_run) return {};
    const std::string& ns = flags.leader_elect_namespace;
    LeaseOptions lease;
    lease.key = {ns.empty() ? credentials->default_namespace() : ns, flags.leader_elect_name};
    lease.identity = hostname() + "_" + core::hex(random.bytes(8));
    return lease;
  }

  ManagerOptions manager_options() {
    ManagerOptions options;
    options.dry_run = flags.dry_run;
    options.metrics = &metrics;
    options.secret_salt = program.name;
    options.events.controller = program.name;
    options.events.instance = hostname();
    options.election = election();
    options.on_lost = [this](const std::string& why) {
      // Another may act from now on: nothing of ours may run any longer.
      log->error("the lease is lost, ending at once", {{"why", why}});
      std::_Exit(1);
    };
    return options;
  }

  Manager& get_manager() {
    if (!manager) manager.emplace(loop, random, *log, *client, manager_options());
    return *manager;
  }

  std::string metrics_text() {
    get_manager().collect();
    metrics.process(read_process_usage());
    return metrics.text();
  }

  net::HttpServer::Handler answer_health() {
    return health_handler(
        {.ready = [this] { return get_manager().synced(); }, .healthy = [this] { return get_manager().plans_in_time(); }});
  }

  net::HttpServer::Handler answer_metrics() {
    MetricsToken token;
    if (!flags.metrics_token_file.empty()) token = [this] { return read_token(flags.metrics_token_file); };
    return metrics_handler([this] { return metrics_text(); }, std::move(token));
  }

  /// Null for the address 0.
  core::Result<std::unique_ptr<net::HttpServer>> serve(std::string_view flag, const std::string& text,
                                                       net::HttpServer::Handler handler) {
    if (text == "0") return nullptr;
    auto address = net::parse_listen_address(text);
    if (!address) return std::unexpected(address.error().with(flag));
    address->max_connections = kMaxClients;
    address->max_request_bytes = kLongestBody;
    auto server = std::make_unique<net::HttpServer>(loop, *address, std::move(handler));
    if (auto started = server->start(); !started) return std::unexpected(started.error().with(flag));
    return server;
  }

  void on_signal(int signal) {
    if (stopping) {
      log->warn("second signal, ending at once", {{"signal", signal}});
      std::_Exit(1);
    }
    stopping = true;
    log->info("stopping", {{"signal", signal}});
    get_manager().stop([this] { loop.stop(); });
  }

  int run() {
    const auto health_server = serve("--health-addr", flags.health_address, answer_health());
    if (!health_server) return fatal("no health endpoint", health_server.error());
    const auto metrics_server = serve("--metrics-addr", flags.metrics_address, answer_metrics());
    if (!metrics_server) return fatal("no metrics endpoint", metrics_server.error());
    loop.on_signals([this](int signal) { on_signal(signal); });
    log->info("starting", {{"version", program.version}, {"api", api_host}});
    get_manager().start();
    trim_memory(loop);
    try {
      loop.run();
    } catch (const std::exception& error) {
      // A bug. What runs may be in any state: nothing of it is to go on, not even to its own end.
      log->error("ending at once: an exception", {{"what", error.what()}});
      std::_Exit(1);
    }
    log->info("stopped");
    return 0;
  }
};

App::App(Program program) {
  tune_malloc();
  raise_fd_limit();
  impl_ = std::make_unique<Impl>(std::move(program));
  Flags& flags = impl_->flags;
  flags.leader_elect_name = impl_->program.name;
  impl_->cli.set_version_flag("--version", impl_->program.version);
  impl_->cli.add_option("--leader-elect", flags.leader_elect, "Act only while holding the Lease")->capture_default_str();
  flag("--leader-elect-namespace", flags.leader_elect_namespace, "Where the Lease is (default: our own namespace)");
  flag("--leader-elect-name", flags.leader_elect_name, "The Lease's name; of the operators that share one, one acts");
  flag("--health-addr", flags.health_address, "Where /healthz and /readyz are served; 0: nowhere");
  flag("--metrics-addr", flags.metrics_address, "Where /metrics is served; 0: nowhere");
  flag("--metrics-token-file", flags.metrics_token_file,
       "Whoever reads metrics must show this bearer token (default: nobody must)");
  flag("--log-level", flags.log_level, "debug, info, warn or error");
  flag("--kubeconfig", flags.kubeconfig, "Path (default: $KUBECONFIG, the pod's service account, ~/.kube/config)");
  flag("--dry-run", flags.dry_run, "Log what would be done; write nothing");
}
App::~App() = default;

void App::flag(const char* name, bool& value, const char* help) {
  impl_->cli.add_flag(name, value, help);
}
void App::flag(const char* name, std::string& value, const char* help) {
  impl_->cli.add_option(name, value, help)->capture_default_str();
}
void App::flag(const char* name, std::vector<std::string>& value, const char* help) {
  impl_->cli.add_option(name, value, help)->delimiter(',');
}

std::optional<int> App::start(int argc, char** argv) {
  return impl_->start(argc, argv);
}
net::AsioLoop& App::loop() {
  return impl_->loop;
}
core::Random& App::random() {
  return impl_->random;
}
core::Logger& App::log() {
  return *impl_->log;
}
Client& App::client() {
  return *impl_->client;
}
Manager& App::manager() {
  return impl_->get_manager();
}
std::string App::metrics_text() {
  return impl_->metrics_text();
}
int App::fatal(std::string_view what, const core::Error& error) {
  return impl_->fatal(what, error);
}
int App::run() {
  return impl_->run();
}

}  // namespace kube
