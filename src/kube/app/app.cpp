#include "kube/app/app.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "core/hash.hpp"

namespace kube {

namespace {

std::string hostname() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

}  // namespace

App::App(const run::Program& program)
    : Shell(program, std::make_unique<Metrics>(program.name)),
      leader_elect_name_(program.name),
      metrics_(dynamic_cast<Metrics&>(metrics())) {
  cli().add_option("--leader-elect", leader_elect_, "Act only while holding the Lease")->capture_default_str();
  flag("--leader-elect-namespace", leader_elect_namespace_, "The Lease's namespace (default: that of this program)");
  flag("--leader-elect-name", leader_elect_name_, "The Lease's name. Only one of the operators that share it acts");
  flag("--kubeconfig", kubeconfig_, "Path (default: $KUBECONFIG, the pod's service account, ~/.kube/config)");
  flag("--dry-run", dry_run_, "Log what would be done; write nothing");
}

std::optional<int> App::prepare() {
  auto found = discover_credentials(loop(), kubeconfig_);
  if (!found) return fatal("cannot reach the API server", found.error());
  credentials_ = std::move(*found);
  api_host_ = credentials_->endpoint().host;
  api_.emplace(loop(), credentials_->endpoint());
  credentials_->on_change([this](const net::Endpoint& endpoint) {
    if (auto changed = api_->set_endpoint(endpoint); !changed)
      log().warn("new certificates refused", {core::error_field(changed.error())});
  });
  credentials_->on_read([this](bool good) { metrics_.credentials_read(good); });
  ClientOptions options;
  options.user_agent = program_.name + "/" + program_.version;
  options.field_manager = program_.name;
  options.observe = [this](const RequestRecord& record) { metrics_.request(record, api_host_); };
  client_.emplace(loop(), random(), *api_, *credentials_, std::move(options));
  return {};
}

std::optional<LeaseOptions> App::election() {
  if (!leader_elect_ || dry_run_) return {};
  LeaseOptions lease;
  lease.key = {own_namespace(), leader_elect_name_};
  lease.identity = hostname() + "_" + core::hex(random().bytes(8));
  return lease;
}

ManagerOptions App::manager_options() {
  ManagerOptions options;
  options.dry_run = dry_run_;
  options.metrics = &metrics_;
  options.secret_salt = program_.name;
  options.events.controller = program_.name;
  options.events.instance = hostname();
  options.election = election();
  options.on_lost = [this](const std::string& why) {
    // Another process may act from now on, so this process must stop all its work at once.
    log().error("the lease is lost, ending at once", {{"why", why}});
    std::_Exit(1);
  };
  return options;
}

Manager& App::manager() {
  if (!manager_) manager_.emplace(loop(), random(), log(), client(), manager_options());
  return *manager_;
}

run::HealthChecks App::health() {
  return {.ready = [this] { return manager().synced() && (!ready_when_ || ready_when_()); },
          .healthy = [this] { return manager().passes().plans_in_time(); }};
}

std::string App::own_namespace() const {
  return leader_elect_namespace_.empty() ? credentials_->default_namespace() : leader_elect_namespace_;
}

void App::end(std::function<void()> done) {
  auto stop_manager = [this, done = std::move(done)] { manager().stop(done); };
  stop_first_ ? stop_first_(std::move(stop_manager)) : stop_manager();
}

std::vector<core::Field> App::connected_to() {
  return {{"api", api_host_}};
}

}  // namespace kube
