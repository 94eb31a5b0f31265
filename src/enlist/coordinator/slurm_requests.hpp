// What administrators ask of Slurm through the coordinator: they drain and resume nodes, and end jobs.
//
// These requests do what people want at once, as scontrol and scancel do. No plan decides them, and nothing repeats them.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "core/loop.hpp"
#include "core/result.hpp"
#include "slurm/snapshot/registry.hpp"

namespace enlist {

class SlurmRequests {
 public:
  template <class T>
  using Done = std::function<void(core::Result<T>)>;

  SlurmRequests(slurm::Clusters& clusters, slurm::ClusterKey cluster) : clusters_(clusters), cluster_(std::move(cluster)) {}

  /// Drains a node with the reason of the caller, which replaces any other. Errors: those of slurm::Client.
  void drain(const std::string& node, const std::string& reason, Done<void> done);
  /// Returns a node to service, whoever has drained it or set it down.
  void resume(const std::string& node, Done<void> done);
  /// Cancels the jobs that Slurm, asked now, has on the nodes. A job that also holds other nodes ends there too.
  /// Returns an object for each: "job", "name", "user", "partition", "nodes", and "error" if it could not be cancelled. Jobs
  /// that are completing are left out. Error: kUnavailable, also if the nodes of a job cannot be read: then no job is ended.
  void end_jobs(std::set<std::string> nodes, Done<core::Json> done);

 private:
  struct Ending;
  void end_next(const std::shared_ptr<Ending>& ending);
  slurm::Client* client(const std::function<void(core::Error)>& failed);

  slurm::Clusters& clusters_;
  slurm::ClusterKey cluster_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace enlist
