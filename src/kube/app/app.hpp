// The shell of a process that uses an API server. Adds credentials, a client, a Lease and a manager to run::Shell, so that
// main contains only the wiring:
//
//   int main(int argc, char** argv) {
//     kube::App app({.name = "slurm-bridge", .version = "1.0", .about = "Runs pods as jobs of Slurm."});
//     bridge::Options options;
//     app.flag("--namespaces", options.namespaces, "Namespaces to act on (comma-separated; default: all)");
//     if (const std::optional<int> code = app.start(argc, argv)) return *code;
//     bridge::Bridge bridge(app.loop(), app.random(), app.log(), app.manager(), options);
//     return app.run();
//   }
//
// By default, the Lease, the user agent, the field manager and the controller of the events have the program's name.
//
// Folder src/kube/app: the Lease, the manager, and the process with an API server. Uses the rest of kube, run and run/shell.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kube/app/manager.hpp"
#include "kube/app/metrics.hpp"
#include "kube/client/client.hpp"
#include "kube/client/credentials.hpp"
#include "net/beast_transport.hpp"
#include "run/shell/shell.hpp"

namespace kube {

class App final : public run::Shell {
 public:
  explicit App(const run::Program& program);

  /// Adds a condition for readiness: the process is ready only while `holds` returns true.
  void ready_when(std::function<bool()> holds) { ready_when_ = std::move(holds); }
  /// Sets a function that is called when the orderly end begins, before the manager is stopped. `stop` must call `done`.
  void stop_first(std::function<void(std::function<void()> done)> stop) { stop_first_ = std::move(stop); }

  // Call these only after start().
  /// Returns the client. The client does not check the lease before writes until the manager exists.
  [[nodiscard]] Client& client() { return *client_; }
  /// Creates the manager on the first call. run() starts and stops the manager. Controllers and targets that are added to the
  /// manager must be destroyed before the App. If the lease is lost, the process ends at once.
  [[nodiscard]] Manager& manager();
  /// Returns the namespace in which the process runs, and in which the Lease is.
  [[nodiscard]] std::string own_namespace() const;
  [[nodiscard]] bool dry_run() const { return dry_run_; }

 private:
  std::optional<int> prepare() override;
  run::HealthChecks health() override;
  std::vector<core::Field> connected_to() override;
  void begin() override { manager().start(); }
  void end(std::function<void()> done) override;
  void collect() override { manager().collect(); }

  [[nodiscard]] std::optional<LeaseOptions> election();
  [[nodiscard]] ManagerOptions manager_options();

  bool leader_elect_ = true;
  std::string leader_elect_namespace_;
  std::string leader_elect_name_;
  std::string kubeconfig_;
  bool dry_run_ = false;
  std::function<bool()> ready_when_;
  std::function<void(std::function<void()> done)> stop_first_;
  Metrics& metrics_;  ///< The metrics of the shell.
  std::unique_ptr<Credentials> credentials_;
  std::string api_host_;
  std::optional<net::BeastTransport> api_;
  std::optional<Client> client_;
  std::optional<Manager> manager_;
};

}  // namespace kube
