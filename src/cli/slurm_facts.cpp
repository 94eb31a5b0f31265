#include "cli/slurm_facts.hpp"

#include <algorithm>

#include "cli/slurm_access.hpp"
#include "slinky/names.hpp"
#include "slinky/worker_names.hpp"
#include "slinky/workers.hpp"

namespace cli {
namespace {

SlurmFacts unknown(std::string why) {
  SlurmFacts out;
  out.why_not = std::move(why);
  return out;
}

}  // namespace

const slurm::Node* SlurmFacts::node(std::string_view name) const {
  const auto found = std::ranges::find_if(nodes, [&](const auto& node) { return node->name == name; });
  return found == nodes.end() ? nullptr : found->get();
}

std::vector<const slurm::Job*> SlurmFacts::jobs_on(std::string_view node) const {
  std::vector<const slurm::Job*> out;
  for (const auto& job : jobs) {
    if (job->holds_nodes() && (job->nodes_unknown || job->holds(node))) out.push_back(job.get());
  }
  return out;
}

Said said_of(const kube::PodRecord& pod, const SlurmFacts* slurm) {
  Said out{slurm_word(pod)};
  if (slurm == nullptr || !slurm->known()) {
    out.missing = !out.word || slinky::missing_since(pod);
    out.deadline = deadline_of(pod);
    return out;
  }
  const std::string name = slinky::slurm_node_name(pod);
  const slurm::Node* record = slurm->node(name);
  out.missing = record == nullptr;
  out.word = record == nullptr ? std::nullopt : std::optional(SlurmWord{record->state, record->reason});
  const auto jobs = slurm->jobs_on(name);
  out.jobs = jobs.size();
  out.deadline = {!jobs.empty(), core::WallTime{}};
  for (const slurm::Job* job : jobs) {
    out.ids.push_back(job->id);
    if (!job->end) out.deadline.at.reset();
    if (out.deadline.at) out.deadline.at = std::max(*out.deadline.at, *job->end);
  }
  return out;
}

SlurmFacts ask_slurm(Api& api, const core::Json& controller, const std::vector<core::Json>& restapis) {
  const auto slurm = reach_slurm(api, controller, restapis);
  if (!slurm) return unknown(slurm.error().message);
  slurm::Client& client = (*slurm)->client();
  // Read nodes first: a draining node takes no new job, so a later list of jobs contains every job that it may still run.
  auto nodes = (*slurm)->await<slurm::Table<slurm::Node>>(api, [&](auto done) { client.nodes({}, std::move(done)); });
  if (!nodes) return unknown(nodes.error().message);
  auto jobs = (*slurm)->await<slurm::Table<slurm::Job>>(api, [&](auto done) { client.jobs({}, std::move(done)); });
  if (!jobs) return unknown(jobs.error().message);
  SlurmFacts out;
  out.release = (*slurm)->capabilities().release;
  out.nodes = std::move(nodes->rows);
  out.jobs = std::move(jobs->rows);
  return out;
}

SlurmFacts ask_slurm(Api& api, const kube::Key& controller) {
  const auto object = api.get(slinky::resources::kController, controller);
  if (!object) return unknown("Controller " + controller.str() + " cannot be read: " + object.error().message);
  const auto restapis = api.list({slinky::resources::kRestApi, controller.ns});
  if (!restapis) return unknown(restapis.error().message);
  return ask_slurm(api, *object, *restapis);
}

}  // namespace cli
