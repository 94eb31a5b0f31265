#include "cli/pod_facts.hpp"

#include <algorithm>

#include "bridge/common/groups.hpp"
#include "bridge/common/job_table.hpp"
#include "bridge/common/names.hpp"
#include "bridge/common/states.hpp"
#include "kube/cache/record.hpp"
#include "slinky/status.hpp"

namespace cli {
namespace {

using core::Json;
using Pod = kube::SchedulingPodRecord;

/// The events that `kubectl describe` shows. Users may read them, and often not those of events.k8s.io.
const kube::Resource kCoreEvent{"", "v1", "Event", "events", true};

bool interrupted(const core::Error& error) {
  return error.code == core::ErrorCode::kCancelled;
}

std::string number_of_placed(const Pod& pod) {
  const std::vector<bridge::JobId> placed = bridge::placed_for(pod);
  return placed.empty() ? "" : std::to_string(placed.front().number);
}

/// Reports whether Slurm may have a job of the pod.
bool may_have_job(const Pod& pod) {
  return std::ranges::find(pod.gates, bridge::kGate) != pod.gates.end() || !bridge::placed_for(pod).empty() ||
         bridge::is_freed_unnoticed(pod);
}

/// Reports whether the pod waits for the job of its group, according to slurm-bridge. If the pod took the place of another pod
/// of its group, the mark of the job does not name it.
bool waits_with_group(const Pod& pod, const bridge::JobTable::Row& row) {
  const auto group = bridge::group_of(pod.meta);
  const kube::PodCondition* queued = pod.condition(bridge::kConditionQueued);
  return group && row.group() != nullptr && *row.group() == *group && queued != nullptr && queued->status == "True" &&
         queued->message.starts_with("job " + std::to_string(row.job->id) + " ");
}

/// Reports whether slurm-bridge submitted the job for the pod. See job_of_pod().
bool is_job_of(const bridge::JobTable::Row& row, const Pod& pod, const std::string& installation) {
  const bool names_pod = bridge::submission_of(row.mark).root_uid == pod.meta.uid || row.uids.contains(pod.meta.uid);
  if (installation.empty()) return names_pod && row.is_for(pod);
  return row.mark.instance == installation && (row.is_for(pod) || waits_with_group(pod, row));
}

std::string why_no_job(const Pod& pod, const std::string& controller, bool installation_known) {
  const std::string number = number_of_placed(pod);
  std::string out = number.empty() ? "cluster " + controller + " has no job of the pod"
                                   : "cluster " + controller + " does not list job " + number +
                                         " of the pod any more: it ended some minutes ago, or slurmctld lost it";
  if (!installation_known)
    out += "; the namespace kube-system cannot be read, so jobs that do not name the UID of the pod were left out";
  return out;
}

/// Returns the UID of the Kubernetes cluster; "" if it cannot be read.
core::Result<std::string> read_installation(Api& api) {
  const auto found = api.get(kube::resources::kNamespace, {"", "kube-system"});
  if (found) return core::get_string(*found, {"metadata", "uid"});
  if (interrupted(found.error())) return std::unexpected(found.error());
  return "";
}

/// Finds the pod's job in the cluster of the Controller, and reads why it waits. An error says why Slurm does not show it.
core::Result<WhyFacts> read_job(Api& api, const Pod& pod, const kube::Key& controller) {
  const auto cluster = reach_cluster(api, controller);
  if (!cluster) return std::unexpected(cluster.error());
  const auto installation = read_installation(api);
  if (!installation) return std::unexpected(installation.error());
  slurm::Client& client = cluster->slurm->client();
  const auto jobs = cluster->slurm->await<slurm::Table<slurm::Job>>(api, [&](auto done) { client.jobs({}, std::move(done)); });
  if (!jobs) return std::unexpected(jobs.error());
  const auto job = job_of_pod(pod, *installation, jobs->rows);
  if (job == nullptr) return core::fail(core::ErrorCode::kNotFound, why_no_job(pod, controller.str(), !installation->empty()));
  auto facts = read_why(api, *cluster, {job->id, {}});
  // After slurmctld has lost its state, another job can have the number.
  if (facts && (facts->job->id != job->id || facts->job->submitted != job->details->submitted))
    return core::fail(core::ErrorCode::kNotFound, "job " + std::to_string(job->id) + " of the pod has just gone");
  return facts;
}

/// Fills `controller`, `job` and `no_job`. Error: kCancelled.
core::Result<void> add_job(Api& api, const std::optional<kube::Key>& named, PodFacts& to) {
  if (!may_have_job(*to.pod)) {
    to.no_job = "slurm-bridge does not manage the pod";
    return {};
  }
  const PodCluster cluster = named ? PodCluster{named, ""} : cluster_of(*to.pod, to.bridges);
  to.controller = cluster.controller;
  to.no_job = cluster.unknown;
  if (!to.controller) return {};
  auto job = read_job(api, *to.pod, *to.controller);
  if (job) {
    to.job = std::move(*job);
    return {};
  }
  if (interrupted(job.error())) return std::unexpected(job.error());
  to.no_job = slinky::one_line(explain(job.error()));
  return {};
}

core::Result<void> add_warnings(Api& api, PodFacts& to) {
  auto events = api.list({.resource = kCoreEvent,
                          .ns = to.pod->meta.ns,
                          .field_selector = "involvedObject.uid=" + to.pod->meta.uid + ",type=Warning"});
  if (!events && interrupted(events.error())) return std::unexpected(events.error());
  if (events) to.warnings = std::move(*events);
  return {};
}

}  // namespace

std::shared_ptr<const slurm::Job> job_of_pod(const Pod& pod, const std::string& installation,
                                             const std::vector<std::shared_ptr<const slurm::Job>>& jobs) {
  auto snapshot = std::make_shared<slurm::Snapshot>();
  for (const auto& job : jobs) snapshot->jobs.emplace(job->id, job);
  bridge::JobTable table;
  table.read(snapshot);
  const auto has_ended = [](const slurm::Job& job) { return bridge::phase_of(job) == bridge::JobPhase::kEnded; };
  const std::vector<bridge::JobId> placed = bridge::placed_for(pod);
  std::shared_ptr<const slurm::Job> out;
  for (const auto& [id, row] : table.rows()) {
    if (!is_job_of(row, pod, installation)) continue;
    if (!placed.empty()) {
      if (std::ranges::find(placed, bridge::id_of(*row.job)) != placed.end()) out = row.job;
    } else if (out == nullptr || has_ended(*out) || !has_ended(*row.job)) {
      out = row.job;
    }
  }
  return out;
}

core::Result<PodFacts> read_pod_facts(Api& api, const kube::Key& key, const std::optional<kube::Key>& controller) {
  PodFacts out;
  auto object = api.get(kube::resources::kPod, key);
  if (!object && object.error().code == core::ErrorCode::kNotFound)
    return core::fail(core::ErrorCode::kNotFound,
                      "there is no pod " + key.name + " in namespace " + key.ns + "; -n names another namespace");
  if (!object) return std::unexpected(object.error());
  auto pod = kube::record_from_json<Pod>(*object);
  if (!pod) return std::unexpected(pod.error());
  out.object = std::move(*object);
  out.pod = std::move(*pod);
  auto bridges = read_bridges(api);
  if (!bridges) return std::unexpected(bridges.error());
  out.bridges = std::move(*bridges);
  if (auto read = add_warnings(api, out); !read) return std::unexpected(read.error());
  if (auto read = add_job(api, controller, out); !read) return std::unexpected(read.error());
  out.now = api.clock().wall();
  return out;
}

}  // namespace cli
