// Requests of administrators to Slurm through the coordinator: to drain and resume nodes, and to end jobs.
//
// These requests are sent to Slurm at once, like those of scontrol and scancel. They are part of no plan, and are not repeated.
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

  /// Drains a node with `reason`, which replaces any other reason. Errors: those of slurm::Client; kUnavailable (there is no
  /// client yet).
  void drain(const std::string& node, const std::string& reason, Done<void> done);
  /// Resumes a node, whoever has drained it or set it down. Errors: those of drain().
  void resume(const std::string& node, Done<void> done);
  /// Lists the jobs of Slurm and cancels those that run on the nodes. A job that also runs on other nodes ends there too.
  /// `done` gets a list with an object for each of these jobs: "job", "name", "user", "partition", "nodes", and "error" if the
  /// job could not be cancelled. Leaves out completing jobs. Error: kUnavailable, also if the nodes of a job cannot be read:
  /// then no job is cancelled.
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
