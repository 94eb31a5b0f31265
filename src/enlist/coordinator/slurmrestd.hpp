// Starts the coordinator's own slurmrestd, and connects to it.
//
// slurmrestd refuses to run as root and as SlurmUser, so it runs as a user of its own. This user needs no key: with
// SLURM_JWT=daemon, slurmrestd passes on the token of each request, and slurmctld checks the token. slurmrestd listens on a
// Unix socket in a folder that belongs to its user alone, so that no other user can take its place, get the tokens, or send
// requests.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/log.hpp"
#include "core/loop.hpp"
#include "enlist/coordinator/slurm_facts.hpp"
#include "enlist/host/host.hpp"
#include "slurm/snapshot/keyed_cluster.hpp"

namespace enlist {

struct SlurmrestdOptions {
  std::string program = "slurmrestd";
  std::string user = "slurm-enlist";
  std::filesystem::path socket = "/run/slurm-enlist-coordinator/slurmrestd";  ///< Its folder belongs to `user` alone.
  std::filesystem::path slurm_conf = "/etc/slurm/slurm.conf";
};

/// Starts a program that must always run: supervise() of enlist/host/host.hpp, or a function of a test.
using Supervise = std::function<std::unique_ptr<Supervised>(Command command, std::function<void()> changed)>;

/// Returns the command that runs slurmrestd with only the plugins that the coordinator uses.
[[nodiscard]] Command slurmrestd_command(const SlurmrestdOptions& options);

class Slurmrestd {
 public:
  /// `host` is used on other threads, and must outlive the loop.
  Slurmrestd(core::Loop& loop, core::Logger& log, Host& host, Supervise supervise, slurm::Clusters& clusters,
             slurm::ClusterKey cluster, SlurmrestdOptions options);
  /// Starts slurmrestd if it does not run, and connects to it if the key for tokens, the cluster or SlurmUser has changed.
  /// Restarts slurmrestd if the controllers have changed. Call it after each change of slurm.conf.
  void use(const SlurmFacts& facts);
  /// Call it for each change of Slurm.
  void changed(const slurm::Change& change) { connection_.changed(change); }
  void stop();
  /// Returns why slurmrestd does not run; "" if it runs or was not started.
  [[nodiscard]] std::string error() const;

 private:
  void process_changed();

  core::Loop& loop_;
  core::Logger& log_;
  Host& host_;
  Supervise supervise_;
  SlurmrestdOptions options_;
  slurm::KeyedCluster connection_;
  std::optional<SlurmFacts> facts_;
  std::unique_ptr<Supervised> process_;
};

}  // namespace enlist
