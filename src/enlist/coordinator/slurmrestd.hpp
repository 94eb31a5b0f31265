// The coordinator's own slurmrestd: starts it, and connects to it.
//
// slurmrestd refuses to run as root and as SlurmUser, so it runs as a user of its own, who needs no key: with SLURM_JWT=daemon
// it passes on the token of each request, which slurmctld checks. It listens on a Unix socket in a folder of its user alone, so
// that no other user can take its place and get the tokens, or ask it anything.
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

/// Starts a program that must always run: supervise() of enlist/host/host.hpp, or that of a test.
using Supervise = std::function<std::unique_ptr<Supervised>(Command command, std::function<void()> changed)>;

/// Returns the command that runs slurmrestd. It has only the plugins that the coordinator uses.
[[nodiscard]] Command slurmrestd_command(const SlurmrestdOptions& options);

class Slurmrestd {
 public:
  /// `host` is used on other threads, and must outlive the loop.
  Slurmrestd(core::Loop& loop, core::Logger& log, Host& host, Supervise supervise, slurm::Clusters& clusters,
             slurm::ClusterKey cluster, SlurmrestdOptions options);
  /// Starts slurmrestd and connects to it, with a key that is read now. Call it after each change of slurm.conf.
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
