// One Slurm with two nodes, n1 and n2, real or simulated, for tests that must come out alike in both.
//
// The real one is an instance of dev/slurm-local.sh, told by the environment: SLURM_REST_URL (http://127.0.0.1:PORT), and
// SLURM_LOCAL_RELEASE and SLURM_LOCAL_DIR as that script takes them.
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
  [[nodiscard]] virtual std::string key() const = 0;  ///< Of jwt.key.
  /// Lets time pass until the test holds; false after `most`.
  virtual bool until(const std::function<bool()>& test, core::Duration most = std::chrono::seconds(30)) = 0;

  /// A batch job of an ordinary user on this node (or these: "n1,n2"), one CPU of each. 0: it was refused.
  virtual std::int64_t submit(const std::string& nodes, core::Duration duration, const std::string& partition = "all") = 0;
  virtual void suspend(std::int64_t job) = 0;
  virtual void resume(std::int64_t job) = 0;
  virtual void cancel(std::int64_t job) = 0;
  /// As an administrator with scontrol: state and reason of a node.
  virtual void scontrol(const std::string& node, const std::string& state, const std::string& reason) = 0;
  /// Appends lines to the configuration that every test begins with; "" takes them away. Does not load it.
  virtual void configure(const std::string& lines) = 0;
  /// `servers`: of --conf-server; "": this slurmctld.
  virtual void start_node(const std::string& name, const std::string& conf, const std::string& servers = "") = 0;
  virtual void stop_node(const std::string& name) = 0;
  /// Whether the slurmd that was started last under this name lives, be it registered or not.
  [[nodiscard]] virtual bool slurmd_runs(const std::string& name) = 0;
  /// SIGHUP to slurmd.
  virtual void reload_node(const std::string& name) = 0;
  /// What `scontrol show` says of that ("config", "partition"), a line each. The model has no scontrol: "".
  virtual std::string show(const std::string& /*what*/) { return ""; }
  /// As an administrator with scontrol: a reservation from now on.
  virtual void reserve(const std::string& reservation, const std::string& node) = 0;
  virtual void end_reservation(const std::string& reservation) = 0;
  /// As an administrator with scontrol: a node with State=CLOUD. False: refused.
  virtual bool create_node(const std::string& name) = 0;
  /// A line of configuration with which a job is COMPLETING for long enough to be looked at.
  [[nodiscard]] virtual std::string slow_epilog() = 0;
  /// Where slurmctld listens, and a host where nobody does, as --conf-server takes them without the port.
  [[nodiscard]] virtual std::string slurmctld_host() = 0;
  [[nodiscard]] virtual std::string nobody() { return "127.255.255.255"; }
  [[nodiscard]] virtual std::uint16_t slurmctld_port() = 0;
  /// Puts a slurm.jwks before slurmctld ("") or a node: keys by their kid, the one in use first or by its name. Without any
  /// kid the file goes, and the slurm.key that all have counts again. Nobody is told.
  virtual void set_keys(const std::string& host, const std::vector<std::string>& kids, const std::string& use_default = "") = 0;
  /// Status of an HTTP GET to slurmctld ("") or to the slurmd of a node; 0: no answer in HTTP.
  [[nodiscard]] virtual int http_status(const std::string& host, const std::string& path) = 0;
  virtual void start_slurmctld() = 0;
  virtual void stop_slurmctld() = 0;
  /// While slurmctld is stopped: its state is lost.
  virtual void lose_state() = 0;
};

/// What slurmd of n1 and n2 is started with.
inline constexpr const char* kNodeConf = "CPUs=4 RealMemory=1000 Features=cpu";

/// Null when the environment names none.
std::unique_ptr<World> real_world();
std::unique_ptr<World> simulated_world(const std::string& release);

}  // namespace conformance
