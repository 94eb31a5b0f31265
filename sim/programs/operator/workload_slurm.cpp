// Events in Slurm: users' jobs, and an administrator's changes of nodes.
#include <algorithm>
#include <cstddef>

#include "sim/programs/operator/oracles/agents.hpp"
#include "sim/programs/operator/workload.hpp"
#include "sim/programs/operator/workload_parts.hpp"
#include "slinky/names.hpp"

namespace sim {

using core::Duration;
using core::Json;
namespace kinds = kube::resources;

namespace {

constexpr const char* kBadDisk = R"(disk "sda" is failing; it's $HOME, see #12)";
constexpr const char* kBadPower = "power supply";
/// An amount of memory in MiB that is less than any worker has registered.
constexpr std::int64_t kLittleMemory = 500;

}  // namespace

void OperatorWorkload::submit_job(const std::string& partition) {
  SimSlurm* slurm = world_.slurm();
  if (slurm == nullptr) return;
  JobRequest job;
  job.partition = partition;
  job.nodes = static_cast<int>(random_.between(1, 2));
  job.duration = Duration{random_.between(500, 150000)};
  job.exclusive = random_.chance(0.3);
  job.requeue = random_.chance(0.7);
  if (random_.chance(0.5)) job.limit = Duration{600000};
  // Gives some jobs a name with an odd byte. No oracle excuses the effects, because any user may submit such a job.
  if (job.duration.count() % 8 == 0) job.name = {'w', kOddByte};
  if (has_prologs_ && prologs_.chance(0.25)) job.prolog = Duration{prologs_.between(3000, 70000)};
  (void)slurm->submit(job);
}

/// Submits a job whose prolog runs during the next edit.
void OperatorWorkload::submit_with_prolog() {
  SimSlurm* slurm = world_.slurm();
  const std::vector<std::string> nodesets = world_.names(slinky::resources::kNodeSet);
  if (!has_prologs_ || slurm == nullptr || nodesets.empty()) return;
  JobRequest job;
  job.partition = nodesets[prologs_.below(nodesets.size())];
  job.duration = Duration{2000};
  job.prolog = Duration{prologs_.between(11000, 50000)};
  (void)slurm->submit(job);
  // Waits until the operator must know about the job. The operator polls a slow Slurm more rarely.
  world_.loop().run_for(Duration{9000} + std::min(60 * history_.latency(), Duration{15000}) + 4 * history_.latency());
}

/// Scales out, submits jobs, and scales in when the first job starts. At that time, the operator possibly does not know about
/// the jobs on the new workers.
void OperatorWorkload::change_mind(const std::string& nodeset) {
  const std::int64_t before = core::get_int(*world_.find(slinky::resources::kNodeSet, nodeset), {"spec", "replicas"}, 1);
  const auto scale = [&](std::int64_t replicas) {
    world_.merge(slinky::resources::kNodeSet, nodeset, {{"spec", {{"replicas", replicas}}}});
  };
  const auto running = [&] {
    const SimSlurm* slurm = world_.slurm();
    if (slurm == nullptr) return std::ptrdiff_t{0};
    return std::ranges::count_if(slurm->jobs(), [&](const auto& entry) {
      return entry.second.request.partition == nodeset && entry.second.state == SimJob::State::kRunning;
    });
  };
  scale(before + random_.between(1, 3));
  for (int i = 0; i < 6; ++i) submit_job(nodeset);
  const auto busy = running();
  world_.loop().run_until([&] { return running() > busy; }, Duration{random_.between(1000, 15000)});
  world_.loop().run_for(Duration{random_.between(0, 300)});
  scale(random_.between(0, before));
}

void OperatorWorkload::fill_slurm_actions() {
  const auto update = [this](const char* state, const char* reason) {
    const std::string node = some_node();
    SimSlurm* slurm = world_.slurm();
    if (slurm == nullptr || node.empty()) return;
    SimNodeUpdate change;
    change.state = state;
    if (reason != nullptr) change.reason = reason;
    (void)slurm->update_node(node, change, std::string(kSlurmAdmin));
  };
  actions_.push_back({10, [this] { submit_job(some(kNodeSets)); }});
  actions_.push_back({3, [this] {
                        SimSlurm* slurm = world_.slurm();
                        if (slurm == nullptr) return;
                        std::vector<std::int64_t> jobs;
                        for (const auto& [id, job] : slurm->jobs()) {
                          if (!job.ended()) jobs.push_back(id);
                        }
                        if (jobs.empty()) return;
                        const std::int64_t job = jobs[random_.below(jobs.size())];
                        switch (random_.below(3)) {
                          case 0:
                            slurm->suspend(job);
                            break;
                          case 1:
                            slurm->resume(job);
                            break;
                          default:
                            slurm->cancel(job);
                        }
                      }});
  actions_.push_back({3, [=] { update("DRAIN", kBadDisk); }});
  actions_.push_back({1, [=] { update("DOWN", kBadPower); }});
  actions_.push_back({3, [=] { update("RESUME", nullptr); }});
  actions_.push_back({1, [=] { update("UNDRAIN", nullptr); }});
  actions_.push_back({2, [this] {
                        const std::string node = some_node();
                        SimSlurm* slurm = world_.slurm();
                        if (slurm == nullptr || node.empty()) return;
                        world_.oracles().note("a reservation over " + node);
                        slurm->reserve(kReservation, {node});
                      }});
  actions_.push_back({1, [this] {
                        if (SimSlurm* slurm = world_.slurm()) slurm->end_reservation(kReservation);
                      }});
  actions_.push_back({1, [this] {
                        const std::string node = some_node();
                        SimSlurm* slurm = world_.slurm();
                        if (slurm == nullptr || node.empty() || slurm->busy(node)) return;
                        world_.oracles().note("an admin deletes the record of " + node);
                        (void)slurm->delete_node(node, std::string(kSlurmAdmin));
                      }});
  actions_.push_back({1, [this] {
                        SimSlurm* slurm = world_.slurm();
                        if (slurm == nullptr) return;
                        const bool little = random_.chance(0.5);
                        world_.oracles().note(little ? "machines have little memory" : "machines have their memory");
                        slurm->set_memory(little ? kLittleMemory : SlurmOptions{}.memory);
                      }});
}

/// Gives the machines their memory back. Resumes nodes whose drain can come from lack of memory or from a failed prolog or
/// epilog. Also resumes nodes that a former worker left DOWN. Nobody else would resume these nodes.
void OperatorWorkload::give_memory_back(SimSlurm& slurm) {
  slurm.set_memory(SlurmOptions{}.memory);
  std::vector<std::string> drained;
  for (const auto& [name, node] : slurm.nodes()) {
    if (node.invalid_reg) slurm.reload_slurmd(name);
    // If the node already had a reason, from a DOWN or from an earlier drain, Slurm possibly did not replace it by a reason
    // about lack of memory.
    const bool failed = node.reason == "Prolog error" || node.reason == "Epilog error";  // perhaps of an earlier record
    const bool lacked = failed || node.reason.starts_with("Low RealMemory") ||
                        (!node.down && (node.reason.starts_with(kBadPower) || node.reason.starts_with(kBadDisk)));
    // The end of a worker possibly left a DOWN with the reason of a drain. The DOWN can remain after the drain, although the
    // worker's successor is up.
    const Json* pod = world_.find(kinds::kPod, name);
    const bool serves =
        pod != nullptr && slurm.slurmd_ready(name) && core::find(*pod, {"metadata", "deletionTimestamp"}) == nullptr;
    const bool left_down = node.down && !node.drain && serves && node.reason.starts_with(kBadDisk);
    if (!node.invalid_reg && (left_down || (node.drain && (lacked || node.own_drain)))) drained.push_back(name);
  }
  SimNodeUpdate change;
  change.state = "RESUME";
  for (const std::string& name : drained) (void)slurm.update_node(name, change, std::string(kSlurmAdmin));
}

}  // namespace sim
