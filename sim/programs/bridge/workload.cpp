#include "sim/programs/bridge/workload.hpp"

#include <algorithm>
#include <utility>

#include "bridge/common/groups.hpp"
#include "bridge/common/names.hpp"

namespace sim {
namespace {

using core::Duration;
using core::Json;
namespace res = kube::resources;

constexpr Duration kSettle{600000};
constexpr Duration kLook{1000};
constexpr const char* kAdmin = "admin";

/// A container that runs until BridgeWorkload sets its pod's exit code.
class BridgePod final : public Process {
 public:
  BridgePod(PodView pod, std::shared_ptr<BridgeWorkload::Ends> ends) : pod_(std::move(pod)), ends_(std::move(ends)) {}
  [[nodiscard]] std::optional<int> exit_code() const override {
    const auto end = ends_->find(pod_.uid());
    return end == ends_->end() ? std::nullopt : std::optional(end->second);
  }
  void files_changed() override { pod_.changed(); }

 private:
  PodView pod_;
  std::shared_ptr<BridgeWorkload::Ends> ends_;
};

}  // namespace

BridgeWorkload::BridgeWorkload(World& world, History& history, BridgeProgram& program)
    : world_(world), random_(history.random()), program_(program) {}

void BridgeWorkload::found() {
  world_.kube().nodes().set_process_factory(
      [ends = ends_](PodView pod, const std::string&) { return std::make_unique<BridgePod>(std::move(pod), ends); });
  program_.add_nodes(world_);
  world_.start(program_);
  watch();
  for (int i = 0; i < 3; ++i) make_pod();
  make_gang();
  submit_foreign();
  submit_native();
}

void BridgeWorkload::watch() {
  world_.loop().after(kLook, [this] { watch(); });
  program_.oracle().look(fair());
}

/// Reports whether there is no fault now. A slow slurmrestd is a fault: the bridge then polls too rarely to meet the limits.
bool BridgeWorkload::fair() const {
  const FaultRates& rates = world_.faults().rates;
  const SlurmRates& slurm = world_.slurm_rates;
  const double failing = rates.refuse + rates.lost_request + rates.lost_reply + rates.conflict + rates.too_many +
                         rates.internal + rates.internal_after + rates.forbidden + rates.slow + rates.crash_before +
                         rates.crash_after + rates.cut + rates.gone + rates.duplicate + rates.delay + rates.withhold_bookmark +
                         slurm.unchanged + slurm.refused + slurm.slow + slurm.empty + slurm.bare + slurm.other + slurm.partial +
                         slurm.error + slurm.lost;
  return failing == 0 && slurm.latency < core::Duration{1000} && program_.slurm().up() && world_.kube().listening() &&
         world_.process(0) != nullptr;
}

// --- Pods -------------------------------------------------------------------------------------------------------------

std::string BridgeWorkload::some_pod() {
  const std::vector<std::string> names = world_.names(res::kPod);
  return names.empty() ? "" : names[random_.below(names.size())];
}

std::string BridgeWorkload::some_node() {
  return "kube-" + std::to_string(random_.below(static_cast<std::uint64_t>(world_.options().kube_nodes)));
}

void BridgeWorkload::make_pod() {
  // Sometimes uses the name of an earlier pod again.
  const std::string name = "p" + std::to_string(random_.chance(0.2) ? random_.below(5) : static_cast<std::uint64_t>(++pods_));
  // The last pair of values is more than a node has.
  const auto [cpu, memory] = std::vector<std::pair<const char*, const char*>>{
      {"1", "1000Mi"}, {"500m", "500Mi"}, {"2", "4000Mi"}, {"4", "8000Mi"}, {"4", "9000Mi"}}[random_.below(5)];
  Json pod = bridge_pod(name, cpu, memory);
  const auto annotate = [&](const char* word, const char* value) {
    pod["metadata"]["annotations"][std::string(bridge::kAnnotationPrefix) + word] = value;
  };
  if (random_.chance(0.2)) annotate("timelimit", "1");
  if (random_.chance(0.1)) annotate("partition", "nowhere");
  if (random_.chance(0.2)) annotate("exclusive", "true");
  if (random_.chance(0.2)) pod["spec"]["nodeSelector"]["kubernetes.io/hostname"] = some_node();
  if (random_.chance(0.2)) pod["spec"]["terminationGracePeriodSeconds"] = 45;
  world_.oracles().note("user creates pod " + name);
  pod["metadata"]["namespace"] = World::kNamespace;
  (void)world_.api().create(res::kPod, pod);
}

/// Creates a group of two or three pods, sometimes without a PodGroup.
void BridgeWorkload::make_gang() {
  const std::string name = "g" + std::to_string(++pods_);
  const int size = static_cast<int>(random_.between(2, 3));
  gangs_[name] = size;
  world_.oracles().note("user creates gang " + name + " of " + std::to_string(size));
  if (random_.chance(0.9)) {
    Json group{{"apiVersion", "scheduling.x-k8s.io/v1alpha1"}, {"kind", "PodGroup"}};
    group["metadata"] = {{"name", name}, {"namespace", World::kNamespace}};
    group["spec"]["minMember"] = size;
    (void)world_.api().create(bridge::object_of({World::kNamespace, "podgroup/" + name}).resource, group);
  }
  for (int i = 0; i < size; ++i) make_member(name, i);
}

void BridgeWorkload::make_member(const std::string& gang, int index) {
  Json pod = bridge_pod(gang + "-" + std::to_string(index), "1", "1000Mi");
  pod["metadata"]["namespace"] = World::kNamespace;
  pod["metadata"]["labels"][std::string(bridge::kLabelPodGroup)] = gang;
  (void)world_.api().create(res::kPod, pod);
}

/// Recreates the pods of a gang that have ended or are gone, as their owner does.
void BridgeWorkload::mend_gang() {
  if (gangs_.empty()) return;
  const auto gang = std::next(gangs_.begin(), static_cast<std::ptrdiff_t>(random_.below(gangs_.size())));
  for (int i = 0; i < gang->second; ++i) {
    const std::string name = gang->first + "-" + std::to_string(i);
    const Json* pod = world_.find(res::kPod, name);
    if (pod != nullptr && ended(*pod)) world_.remove(res::kPod, name);
    if (world_.find(res::kPod, name) == nullptr) make_member(gang->first, i);
  }
}

void BridgeWorkload::finish_pod() {
  const std::string name = some_pod();
  const Json* pod = name.empty() ? nullptr : world_.find(res::kPod, name);
  if (pod == nullptr || core::get_string(*pod, {"status", "phase"}) != "Running") return;
  world_.oracles().note("pod " + name + " ends by itself");
  (*ends_)[core::get_string(*pod, {"metadata", "uid"})] = random_.chance(0.7) ? 0 : 3;
  if (Process* process = world_.kube().nodes().find_process({World::kNamespace, name}, "main")) process->files_changed();
}

/// Lets somebody remove the scheduling gate of a pod, so that the pod runs without Slurm.
void BridgeWorkload::free_pod() {
  const std::string name = some_pod();
  const Json* pod = name.empty() ? nullptr : world_.find(res::kPod, name);
  if (pod == nullptr || core::find(*pod, {"spec", "schedulingGates"}) == nullptr) return;
  program_.oracle().freed(core::get_string(*pod, {"metadata", "uid"}));
  world_.merge(res::kPod, name, {{"spec", {{"schedulingGates", nullptr}}}});
}

/// Lets a user change the label and the annotation that the bridge wrote to a pod.
void BridgeWorkload::change_words() {
  const std::string name = some_pod();
  if (name.empty()) return;
  const bool removes = random_.chance(0.7);
  world_.oracles().note("user changes the words of pod " + name);
  Json label{{std::string(bridge::kLabelJobId), removes ? Json(nullptr) : Json(std::to_string(random_.between(1, 40)))}};
  Json metadata{{"labels", std::move(label)}};
  if (random_.chance(0.5)) metadata["annotations"] = {{std::string(bridge::kAnnotationNode), nullptr}};
  world_.merge(res::kPod, name, {{"metadata", std::move(metadata)}});
}

// --- Slurm ------------------------------------------------------------------------------------------------------------

/// Lets slurmctld lose its volume. slurmctld counts jobs from 1 again, and the nodes are created again.
void BridgeWorkload::lose_slurm_state() {
  world_.oracles().note("slurmctld loses its state");
  SimSlurm& slurm = program_.slurm();
  slurm.stop();
  program_.oracle().state_lost();
  slurm.lose_state();
  world_.loop().after(Duration{random_.between(1000, 30000)}, [this, &slurm] {
    (void)slurm.start();
    program_.add_nodes(world_);
  });
}

/// Submits an external job of another user, which may look like a job of the bridge.
void BridgeWorkload::submit_foreign() {
  static const std::vector<std::string> kComments{
      "{}",
      "null",
      "[]",
      "plain text",
      R"({"jobstats": "x"})",
      R"({"pods": ["default/p1"]})",
      R"({"owner": "slurm-bridge", "instance": "another cluster", "key": "k", "pods": [{"ns": "default", "name": "p1", "uid": "u"}]})",
      R"({"owner": "slurm-operator", "instance": "another cluster", "key": "k"})"};
  JobRequest request;
  request.user = "alice";
  request.name = "foreign";
  request.memory = 500;
  request.admin_comment = kComments[random_.below(kComments.size())];
  const auto made = program_.slurm().submit_external(std::move(request));
  world_.oracles().note("somebody submits external job " + std::to_string(made.id));
}

void BridgeWorkload::submit_native() {
  JobRequest request;
  request.user = "alice";
  request.memory = 500;
  request.duration = Duration{random_.between(5000, 120000)};
  request.exclusive = random_.chance(0.3);
  // The admin comment of the bridge does not make this job a job of the bridge, because this job is not external.
  if (random_.chance(0.2)) request.admin_comment = R"({"owner": "slurm-bridge", "instance": "x", "key": "k"})";
  (void)program_.slurm().submit(std::move(request));
}

/// Returns a job that has not ended, of alice if `foreign`, else of the bridge; 0 if there is none.
std::int64_t BridgeWorkload::some_job(bool foreign) {
  std::vector<std::int64_t> ids;
  for (const auto& [id, job] : program_.slurm().jobs()) {
    const bool alien = job.request.user == "alice";
    if (!job.ended() && !job.completing && alien == foreign) ids.push_back(id);
  }
  return ids.empty() ? 0 : ids[random_.below(ids.size())];
}

void BridgeWorkload::fill_slurm_actions(std::vector<Action>& out) {
  SimSlurm& slurm = program_.slurm();
  const auto set = [this, &slurm](const std::string& state, const std::string& reason) {
    SimNodeUpdate update;
    update.state = state;
    if (!reason.empty()) update.reason = reason;
    const std::string node = some_node();
    world_.oracles().note("admin sets " + node + " " + state);
    (void)slurm.update_node(node, update, kAdmin);
  };
  const auto about = [this](const char* what, std::int64_t job) {
    if (job != 0) world_.oracles().note(std::string("admin ") + what + " job " + std::to_string(job));
    return job;
  };
  out.push_back({2, [this] { submit_foreign(); }});
  out.push_back({3, [this] { submit_native(); }});
  out.push_back({4, [=, this, &slurm] { slurm.cancel(about("cancels", some_job(false))); }});
  out.push_back({2, [=, this, &slurm] { slurm.cancel(about("cancels", some_job(true))); }});
  out.push_back({2, [=, this, &slurm] {
                   const Duration grace{random_.chance(0.5) ? 0 : random_.between(5000, 60000)};
                   slurm.preempt(about("preempts", some_job(false)), grace);
                 }});
  out.push_back({1, [=, this, &slurm] { slurm.suspend(about("suspends", some_job(false))); }});
  out.push_back({2, [=, this, &slurm] { slurm.resume(about("resumes", some_job(false))); }});
  out.push_back({2, [=] { set("DRAIN", "maintenance"); }});
  out.push_back({3, [=] { set("RESUME", ""); }});
  out.push_back({1, [=] { set("DOWN", "broken"); }});
  out.push_back({1, [this, &slurm] {
                   const std::string node = some_node();
                   if (node == BridgeProgram::kHybrid) return;
                   world_.oracles().note("admin deletes " + node);
                   (void)slurm.delete_node(node, kAdmin);
                 }});
  out.push_back({2, [this] { program_.register_by_hand(); }});
  out.push_back({1, [this, &slurm] {
                   world_.oracles().note("slurmctld stops");
                   slurm.stop();
                   world_.loop().after(Duration{random_.between(1000, 30000)}, [&slurm] { (void)slurm.start(); });
                 }});
  out.push_back({1, [&slurm] { (void)slurm.reconfigure(); }});
  out.push_back({1, [this] {
                   if (random_.chance(0.3)) lose_slurm_state();
                 }});
}

std::vector<Workload::Action> BridgeWorkload::actions() {
  std::vector<Action> out;
  out.push_back({10, [this] { make_pod(); }});
  out.push_back({3, [this] { make_gang(); }});
  out.push_back({5, [this] { mend_gang(); }});
  out.push_back({5, [this] {
                   if (const std::string pod = some_pod(); !pod.empty()) world_.remove(res::kPod, pod);
                 }});
  out.push_back({4, [this] { finish_pod(); }});
  out.push_back({1, [this] { free_pod(); }});
  out.push_back({2, [this] { change_words(); }});
  out.push_back({1, [this] {
                   if (const std::string pod = some_pod(); !pod.empty()) world_.evict(pod);
                 }});
  out.push_back({1, [this] {
                   const std::string node = some_node();
                   world_.merge(res::kNode, node, {{"spec", {{"unschedulable", random_.chance(0.4)}}}});
                 }});
  fill_node_actions(out);
  fill_slurm_actions(out);
  return out;
}

// --- Nodes ------------------------------------------------------------------------------------------------------------

/// Administrators label nodes and move them between partitions, machines get other sizes, and Kubernetes nodes come and go.
void BridgeWorkload::fill_node_actions(std::vector<Action>& out) {
  const auto meta = [this](const char* what, std::string_view name, const Json& value) {
    const std::string node = some_node();
    if (node == BridgeProgram::kHybrid || node == BridgeProgram::kByHand) return;
    world_.oracles().note("admin changes " + std::string(name) + " of " + node);
    world_.merge(res::kNode, node, {{"metadata", {{what, {{std::string(name), value}}}}}});
  };
  out.push_back({1, [=, this] {
                   const std::vector<Json> values{nullptr, "false", "true", "true", ""};
                   meta("labels", bridge::kLabelExternalNode, values[random_.below(values.size())]);
                 }});
  out.push_back({1, [=, this] {
                   const std::vector<Json> values{nullptr, "blue", "all", "blue,all", "blue,nowhere"};
                   meta("annotations", bridge::kAnnotationPartitions, values[random_.below(values.size())]);
                 }});
  out.push_back({1, [this] {
                   const std::string node = some_node();
                   const char* memory = random_.chance(0.5) ? "8000Mi" : "7990Mi";
                   world_.oracles().note(node + " has " + memory);
                   world_.api().modify(
                       res::kNode, {"", node}, [&](Json& one) { one["status"]["allocatable"]["memory"] = memory; }, {},
                       "status");
                 }});
  out.push_back({1, [this] {
                   const std::string node = some_node();
                   world_.oracles().note("Kubernetes node " + node + " is deleted");
                   world_.kube().nodes().delete_node(node);
                 }});
  out.push_back({2, [this] {
                   const std::string node = some_node();
                   if (world_.api().peek(res::kNode, {"", node}) == nullptr) program_.make_host(world_, node);
                 }});
}

// --- The end ----------------------------------------------------------------------------------------------------------

void BridgeWorkload::restore_slurm() {
  SimSlurm& slurm = program_.slurm();
  (void)slurm.start();
  if (!slurm.node(BridgeProgram::kHybrid)) program_.add_nodes(world_);
  for (int i = 0; i < world_.options().kube_nodes; ++i) {
    const std::string name = "kube-" + std::to_string(i);
    program_.make_host(world_, name);
    world_.merge(res::kNode, name, {{"spec", {{"unschedulable", false}}}});
    SimNodeUpdate update;
    update.state = "RESUME";
    (void)slurm.update_node(name, update, kAdmin);
  }
  program_.register_by_hand();
  std::vector<std::int64_t> suspended;
  for (const auto& [id, job] : slurm.jobs()) {
    if (job.state == SimJob::State::kSuspended) suspended.push_back(id);
  }
  for (const std::int64_t id : suspended) slurm.resume(id);
}

std::vector<std::string> BridgeWorkload::calm() {
  restore_slurm();
  // As the documentation says, an administrator deletes the pods whose jobs slurmctld has lost.
  for (const std::string& pod : program_.oracle().stranded()) world_.remove(res::kPod, pod);
  std::vector<std::string> out;
  for (const std::string& why : world_.settle(kSettle)) out.push_back("the declared state is not reached: " + why);
  if (!out.empty() || !world_.oracles().ok()) return out;
  // The declared state must last. The oracle checks this meanwhile.
  world_.loop().run_for(Duration{60000});
  return out;
}

std::vector<std::string> BridgeWorkload::end() {
  std::vector<std::int64_t> foreign;
  for (const auto& [id, job] : program_.slurm().jobs()) {
    if (job.request.user == "alice" && job.request.external && !job.ended()) foreign.push_back(id);
  }
  for (const std::string& pod : world_.names(res::kPod)) world_.remove(res::kPod, pod);
  std::vector<std::string> out;
  for (const std::string& why : world_.settle(kSettle)) out.push_back("left at the end: " + why);
  for (const std::int64_t id : foreign) {
    if (program_.slurm().jobs().at(id).ended()) out.push_back("job " + std::to_string(id) + " of somebody else has ended");
  }
  return out;
}

}  // namespace sim
