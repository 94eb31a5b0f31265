// One Slurm with two nodes, n1 and n2, real or simulated, for tests that must give the same results in both.
//
// The real one is an instance of dev/slurm-local.sh. The environment names it: SLURM_REST_URL (http://127.0.0.1:PORT), and
// SLURM_LOCAL_RELEASE and SLURM_LOCAL_DIR as for that script.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/log.hpp"
#include "core/loop.hpp"
#include "slurm/rest/client.hpp"
#include "slurm/snapshot/registry.hpp"

namespace conformance {

class World {
 public:
  virtual ~World() = default;

  [[nodiscard]] virtual std::string release() const = 0;  ///< "24.11", "26.05".
  [[nodiscard]] virtual core::Loop& loop() = 0;
  [[nodiscard]] virtual core::Random& random() = 0;
  [[nodiscard]] virtual std::unique_ptr<net::HttpTransport> transport() = 0;
  [[nodiscard]] virtual std::string key() const = 0;  ///< The content of jwt.key.
  /// Lets time pass until the test holds. Returns false after `most`.
  virtual bool until(const std::function<bool()>& test, core::Duration most = std::chrono::seconds(30)) = 0;

  /// Submits a batch job of an ordinary user on this node (or these: "n1,n2"), with one CPU of each. Returns 0 if it is
  /// refused.
  virtual std::int64_t submit(const std::string& nodes, core::Duration duration, const std::string& partition = "all") = 0;
  virtual void suspend(std::int64_t job) = 0;
  virtual void resume(std::int64_t job) = 0;
  virtual void cancel(std::int64_t job) = 0;
  /// Sets the state and reason of a node, as an administrator does with scontrol.
  virtual void scontrol(const std::string& node, const std::string& state, const std::string& reason) = 0;
  /// Appends lines to the configuration that every test begins with; "" removes them. Does not load it.
  virtual void configure(const std::string& lines) = 0;
  /// Starts a slurmd with this --conf. `servers` is the value of --conf-server; "" means this slurmctld.
  virtual void start_node(const std::string& name, const std::string& conf, const std::string& servers = "") = 0;
  virtual void stop_node(const std::string& name) = 0;
  /// Returns true if the slurmd that was last started under this name runs, registered or not.
  [[nodiscard]] virtual bool slurmd_runs(const std::string& name) = 0;
  /// Sends SIGHUP to the slurmd of the node.
  virtual void reload_node(const std::string& name) = 0;
  /// Returns what `scontrol show` prints about `what` ("config", "partition"), one object a line. The model has no scontrol,
  /// and returns "".
  virtual std::string show(const std::string& /*what*/) { return ""; }
  /// Makes a reservation that begins now, as an administrator does with scontrol.
  virtual void reserve(const std::string& reservation, const std::string& node) = 0;
  virtual void end_reservation(const std::string& reservation) = 0;
  /// Creates a node with State=CLOUD, as an administrator does with scontrol. Returns false if it is refused.
  virtual bool create_node(const std::string& name) = 0;
  /// Returns a configuration line that keeps jobs COMPLETING long enough to observe.
  [[nodiscard]] virtual std::string slow_epilog() = 0;
  /// Return the host of slurmctld, and a host where nobody listens, as --conf-server takes them, but without the port.
  [[nodiscard]] virtual std::string slurmctld_host() = 0;
  [[nodiscard]] virtual std::string nobody() { return "127.255.255.255"; }
  [[nodiscard]] virtual std::uint16_t slurmctld_port() = 0;
  /// Writes a slurm.jwks for slurmctld ("") or a node, with keys of these kids. `use_default` is the kid of the key that signs;
  /// "" means the first. Without kids, removes the file: then slurm.key, which all daemons have, is used again. No daemon is
  /// reconfigured.
  virtual void set_keys(const std::string& host, const std::vector<std::string>& kids, const std::string& use_default = "") = 0;
  /// Returns the status of an HTTP GET to slurmctld ("") or to the slurmd of a node; 0 if there is no HTTP answer.
  [[nodiscard]] virtual int http_status(const std::string& host, const std::string& path) = 0;
  virtual void start_slurmctld() = 0;
  virtual void stop_slurmctld() = 0;
  /// Deletes the state of slurmctld, which must be stopped.
  virtual void lose_state() = 0;
};

/// The --conf with which the slurmds of n1 and n2 are started.
inline constexpr const char* kNodeConf = "CPUs=4 RealMemory=1000 Features=cpu";

/// Returns null if the environment names no instance.
std::unique_ptr<World> real_world();
std::unique_ptr<World> simulated_world(const std::string& release);

}  // namespace conformance
