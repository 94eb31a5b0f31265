#include "enlist/coordinator/slurm_requests.hpp"

#include <algorithm>
#include <utility>

#include "core/hostlist.hpp"
#include "slurm/holds.hpp"

namespace enlist {
namespace {

using core::ErrorCode;
using Queue = std::vector<std::shared_ptr<const slurm::accounting::QueuedJob>>;

/// Reports whether the job runs on one of the nodes. Error: kUnavailable if the job's nodes cannot be read.
core::Result<bool> runs_on(const slurm::accounting::QueuedJob& job, const std::set<std::string>& nodes) {
  if (!job.running() || job.flags.contains("COMPLETING")) return false;
  const auto names = core::expand_hostlist(job.nodes);
  if (job.id <= 0 || !names || names->empty())
    return core::fail(ErrorCode::kUnavailable, "the nodes of job " + job.full_id() + " cannot be read; no job is ended");
  return std::ranges::any_of(*names, [&](const std::string& name) { return nodes.contains(name); });
}

}  // namespace

/// The jobs that are being ended, one after another.
struct SlurmRequests::Ending {
  std::vector<core::Json> jobs;
  std::size_t next = 0;
  Done<core::Json> done;
};

slurm::Client* SlurmRequests::client(const std::function<void(core::Error)>& failed) {
  slurm::Client* found = clusters_.client(cluster_);
  if (found == nullptr) failed({ErrorCode::kUnavailable, "Slurm has not answered the coordinator yet; try again", 0, {}, {}});
  return found;
}

void SlurmRequests::drain(const std::string& node, const std::string& reason, Done<void> done) {
  slurm::Client* to = client([&](core::Error error) { done(std::unexpected(std::move(error))); });
  if (to == nullptr) return;
  slurm::NodeUpdate update;
  update.state = "DRAIN";
  update.reason = reason;
  to->update_node(node, update, [this, alive = std::weak_ptr(alive_), done = std::move(done)](core::Result<void> result) {
    if (!alive.expired()) clusters_.poll_soon(cluster_);
    done(std::move(result));
  });
}

void SlurmRequests::resume(const std::string& node, Done<void> done) {
  slurm::Client* to = client([&](core::Error error) { done(std::unexpected(std::move(error))); });
  if (to == nullptr) return;
  slurm::NodeUpdate update;
  update.state = "RESUME";
  // Slurm before 26.05 does not clear the reason, and would reuse it for a drain of its own. "Not responding" is a reason that
  // slurmctld overwrites. An empty reason would change nothing.
  update.reason = slurm::kNotResponding;
  to->update_node(node, update, [this, alive = std::weak_ptr(alive_), done = std::move(done)](core::Result<void> result) {
    if (!alive.expired()) clusters_.poll_soon(cluster_);
    done(std::move(result));
  });
}

void SlurmRequests::end_jobs(std::set<std::string> nodes, Done<core::Json> done) {
  slurm::Client* to = client([&](core::Error error) { done(std::unexpected(std::move(error))); });
  if (to == nullptr) return;
  to->queue([this, alive = std::weak_ptr(alive_), nodes = std::move(nodes), done = std::move(done)](core::Result<Queue> queue) {
    if (alive.expired()) return;
    if (!queue) return done(std::unexpected(queue.error()));
    auto ending = std::make_shared<Ending>();
    ending->done = done;
    for (const auto& job : *queue) {
      const core::Result<bool> there = runs_on(*job, nodes);
      if (!there) return done(std::unexpected(there.error()));
      if (!*there) continue;
      ending->jobs.push_back({{"job", job->full_id()},
                              {"name", job->name},
                              {"user", job->user},
                              {"partition", job->partition},
                              {"nodes", job->nodes}});
    }
    end_next(ending);
  });
}

void SlurmRequests::end_next(const std::shared_ptr<Ending>& ending) {
  if (ending->next == ending->jobs.size()) {
    clusters_.poll_soon(cluster_);
    return ending->done(core::Json(ending->jobs));
  }
  core::Json& job = ending->jobs[ending->next++];
  slurm::Client* to = client([&](const core::Error& error) { ending->done(std::unexpected(error)); });
  if (to == nullptr) return;
  to->cancel_job(core::get_string(job, {"job"}),
                 [this, alive = std::weak_ptr(alive_), ending, &job](const core::Result<void>& result) {
                   if (alive.expired()) return;
                   // If the job has ended meanwhile, the result is the same.
                   if (!result && result.error().code != ErrorCode::kNotFound) job["error"] = result.error().message;
                   end_next(ending);
                 });
}

}  // namespace enlist
