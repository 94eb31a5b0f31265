#include "run/shell/shell.hpp"

#include <malloc.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <fstream>

#include "core/hash.hpp"
#include "run/shell/process.hpp"

namespace run {

namespace {

constexpr std::size_t kLongestBody = 4096;  ///< Requests for health and metrics need no body.
constexpr std::size_t kMaxClients = 64;     ///< The limit of each of the two ports: there are few probes and scrapers.

/// Reads the token from its file. Called for every request, so that a rotation of the token needs no restart.
std::optional<std::string> read_token(const std::string& path) {
  std::ifstream file(path);
  std::string token;
  if (!std::getline(file, token)) return std::nullopt;
  return token;
}

void tune_malloc() {
  // Few threads allocate memory, and only a little: a single arena keeps the memory at rest low.
  // NOLINTBEGIN(concurrency-mt-unsafe): no thread runs yet
  mallopt(M_ARENA_MAX, 1);
  // Sets a fixed threshold. Otherwise malloc raises it after the first large list, and keeps such lists in the heap.
  mallopt(M_MMAP_THRESHOLD, 128 * 1024);
  // NOLINTEND(concurrency-mt-unsafe)
}

/// Gives free memory back to the system, now and every 30 s. Otherwise the process keeps the memory of lists, watches and
/// OpenAPI documents that it no longer needs.
void trim_memory(core::Loop& loop) {
  malloc_trim(0);
  loop.after(std::chrono::seconds(30), [&loop] { trim_memory(loop); });
}

}  // namespace

Shell::Shell(Program program, std::unique_ptr<Metrics> metrics)
    : program_(std::move(program)), cli_(std::make_unique<CLI::App>(program_.about)), metrics_(std::move(metrics)) {
  tune_malloc();
  raise_fd_limit();
  cli_->set_version_flag("--version", program_.version);
  flag("--health-addr", health_address_, "Where /healthz and /readyz are served; 0: nowhere");
  flag("--metrics-addr", metrics_address_, "Where /metrics is served; 0: nowhere");
  flag("--metrics-token-file", metrics_token_file_,
       "A file with the bearer token that readers of /metrics must present (default: none is required)");
  flag("--log-level", log_level_, "debug, info, warn or error");
}
Shell::~Shell() = default;

void Shell::flag(const char* name, bool& value, const char* help) {
  cli_->add_flag(name, value, help);
}
void Shell::flag(const char* name, std::string& value, const char* help) {
  cli_->add_option(name, value, help)->capture_default_str();
}
void Shell::flag(const char* name, std::vector<std::string>& value, const char* help) {
  cli_->add_option(name, value, help)->delimiter(',');
}

int Shell::fatal(std::string_view what, const core::Error& error) {
  log_->error(what, {core::error_field(error)});
  return 1;
}

std::optional<int> Shell::start(int argc, char** argv) {
  try {
    cli_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return cli_->exit(error);
  }
  const auto level = core::parse_level(log_level_);
  log_.emplace(level.value_or(core::Level::kInfo), loop_.clock());
  if (!level) return fatal("--log-level", level.error());
  return prepare();
}

std::string Shell::metrics_text() {
  collect();
  metrics_->process(read_process_usage());
  return metrics_->text();
}

net::HttpServer::Handler Shell::answer_metrics() {
  MetricsToken token;
  if (!metrics_token_file_.empty()) token = [this] { return read_token(metrics_token_file_); };
  return metrics_handler([this] { return metrics_text(); }, std::move(token));
}

/// Starts an HTTP server on the address in `text`; returns null for "0". `flag`: the option, for errors.
Shell::Server Shell::serve(std::string_view flag, const std::string& text, net::HttpServer::Handler handler) {
  if (text == "0") return nullptr;
  auto address = net::parse_listen_address(text);
  if (!address) return std::unexpected(address.error().with(flag));
  address->max_connections = kMaxClients;
  address->max_request_bytes = kLongestBody;
  auto server = std::make_unique<net::HttpServer>(loop_, *address, std::move(handler));
  if (auto started = server->start(); !started) return std::unexpected(started.error().with(flag));
  return server;
}

void Shell::on_signal(int signal) {
  if (stopping_) {
    log_->warn("second signal, ending at once", {{"signal", signal}});
    std::_Exit(1);
  }
  stopping_ = true;
  log_->info("stopping", {{"signal", signal}});
  end([this] { loop_.stop(); });
}

int Shell::run() {
  const Server health_server = serve("--health-addr", health_address_, health_handler(health()));
  if (!health_server) return fatal("no health endpoint", health_server.error());
  const Server metrics_server = serve("--metrics-addr", metrics_address_, answer_metrics());
  if (!metrics_server) return fatal("no metrics endpoint", metrics_server.error());
  loop_.on_signals([this](int signal) { on_signal(signal); });
  std::vector<core::Field> fields = connected_to();
  fields.insert(fields.begin(), {"version", program_.version});
  log_->info("starting", std::move(fields));
  begin();
  trim_memory(loop_);
  try {
    loop_.run();
  } catch (const std::exception& error) {
    // An exception is a bug, and the state of the process is unknown. So the process ends at once, without an orderly shutdown.
    log_->error("ending at once: an exception", {{"what", error.what()}});
    std::_Exit(1);
  }
  log_->info("stopped");
  return 0;
}

}  // namespace run
