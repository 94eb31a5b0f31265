#include "sim/histories/world.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/well_known.hpp"
#include "slinky/names.hpp"

namespace sim {

using core::Json;
namespace kinds = kube::resources;

World::World(WorldOptions options, std::vector<std::unique_ptr<Program>> programs)
    : options_(std::move(options)),
      loop_(options_.seed),
      random_(loop_.random().fork()),
      site_(loop_, random_, {.release = options_.slurm_release}),
      kube_(std::make_unique<SimKube>(loop_, random_.fork(), SimKubeOptions{options_.api, options_.controllers, {}})),
      faults_(random_.fork()),
      programs_(std::move(programs)) {
  site_.attach(kube_->api());
  oracles_ = std::make_unique<Oracles>(loop_, kube_->api());
  kube_->nodes().set_on_accident([this](const std::string& pod, Accident what) { oracles_->accident(pod, what); });
  kube_->add_namespace(kNamespace);
  for (const auto& program : programs_) {
    program->install(*this);
    for (int i = 0; i < program->processes(); ++i) slots_.push_back({program.get(), i});
  }
  for (int i = 0; i < options_.kube_nodes; ++i) kube_->nodes().add_node("kube-" + std::to_string(i));
  kube_->nodes().set_process_factory(
      [this](PodView pod, const std::string& container) { return site_.make_process(std::move(pod), container); });
  // Writes to Slurm count as well. A reconfigure counts too, although its request is a GET.
  faults_.is_write = [](const net::HttpRequest& request) {
    const bool timed =
        request.target.find("/leases") != std::string::npos || request.target.find("/events") != std::string::npos;
    return (request.method != "GET" && !timed) || request.target.ends_with("/reconfigure/");
  };
}

World::~World() {
  slots_.clear();
}

// --- Processes --------------------------------------------------------------------------------------------------------

void World::start(const Program& program) {
  for (int i = 0; i < process_count(); ++i) {
    if (slots_[static_cast<std::size_t>(i)].program == &program) start(i);
  }
}

void World::start(int slot) {
  Slot& at = slots_[static_cast<std::size_t>(slot)];
  if (!at.process) at.process = at.program->start(*this, at.which, slot);
}

/// Adds a note about a process, such as "operator 0 dies".
void World::note_of(int slot, const std::string& what) {
  const Slot& at = slots_[static_cast<std::size_t>(slot)];
  oracles_->note(fmt::format("{} {} {}", at.program->name(), at.which, what));
}

void World::crash(int slot, core::Duration delay) {
  note_of(slot, "dies");
  // The process that is destroyed here may be the caller, so destroy it later.
  loop_.after(core::Duration{0}, [this, slot] { slots_[static_cast<std::size_t>(slot)].process.reset(); });
  loop_.after(delay + core::Duration{1}, [this, slot] { start(slot); });
}

void World::pause(int slot, core::Duration length) {
  ProgramProcess* paused = process(slot);
  if (paused == nullptr) return;
  note_of(slot, fmt::format("stands still for {} ms", length.count()));
  paused->host().pause();
  loop_.after(length, [this, slot, paused] {
    if (process(slot) == paused) paused->host().resume();
  });
}

void World::jump_clock(int slot, core::Duration by) {
  note_of(slot, fmt::format("has its clock jump by {} ms", by.count()));
  oracles_->clock_jumps(by);
  if (ProgramProcess* jumping = process(slot)) jumping->host().jump(by);
}

void World::stop_api(core::Duration length) {
  oracles_->note(fmt::format("the API server is away for {} ms", length.count()));
  kube_->set_listening(false);
  loop_.after(length, [this] { kube_->set_listening(true); });
}

int World::leader() const {
  const auto found = std::ranges::find_if(slots_, [](const Slot& slot) { return slot.process && slot.process->leads(); });
  return found == slots_.end() ? 0 : static_cast<int>(found - slots_.begin());
}

void World::correct_clocks() {
  for (const Slot& slot : slots_) {
    if (slot.process) slot.process->host().jump(loop_.clock().wall() - slot.process->host().clock().wall());
  }
}

SlurmFault World::slurm_fault(const net::HttpRequest& request, int slot) {
  using Kind = SlurmFault::Kind;
  const auto dies = [this, slot] { crash(slot, core::Duration{500}); };
  switch (faults_.decide(request)) {
    case Fault::kNone:
      break;
    case Fault::kRefuse:
      return {Kind::kRefused, {}, {}};
    case Fault::kLostRequest:
      return {Kind::kLostEarly, {}, {}};
    case Fault::kLostReply:
    case Fault::kInternalAfter:
      return {Kind::kLost, {}, {}};
    case Fault::kConflict:
    case Fault::kTooMany:
    case Fault::kInternal:
    case Fault::kForbidden:
      return {Kind::kError, {}, {}};
    case Fault::kSlow:
      return {Kind::kSlow, core::Duration{5000}, {}};
    case Fault::kCrashBefore:
      dies();
      return {Kind::kLostEarly, {}, {}};
    case Fault::kCrashAfter:
      return {Kind::kLost, {}, dies};
  }
  double drawn = random_.unit();
  for (const auto& [rate, kind] : {std::pair{slurm_rates.unchanged, Kind::kUnchanged},
                                   {slurm_rates.refused, Kind::kRefused},
                                   {slurm_rates.slow, Kind::kSlow},
                                   {slurm_rates.empty, Kind::kEmpty},
                                   {slurm_rates.bare, Kind::kBare},
                                   {slurm_rates.other, Kind::kOther},
                                   {slurm_rates.partial, Kind::kPartial},
                                   {slurm_rates.error, Kind::kError},
                                   {slurm_rates.lost, Kind::kLost}}) {
    // Only reads get the faults kBare and kOther, because the answer would look like the success of a write.
    const bool read = request.method == "GET" && !request.target.ends_with("/reconfigure/");
    const bool of_tables = kind == Kind::kBare || kind == Kind::kOther;
    // Another cluster's slurmrestd would answer this request in the same way, so kOther would be no fault.
    const bool same = kind == Kind::kOther && request.target == "/openapi/v3";
    if (drawn < rate && (read || !of_tables) && !same) {
      return {kind, kind == Kind::kSlow ? core::Duration{random_.between(500, 15000)} : core::Duration{0}, {}};
    }
    drawn -= rate;
  }
  if (slurm_rates.latency.count() > 0) return {Kind::kSlow, slurm_rates.latency, {}};
  return {};
}

// --- Users ------------------------------------------------------------------------------------------------------------

namespace {

Caller user() {
  Caller out;
  out.user = "user";
  out.manager = "kubectl";
  return out;
}

}  // namespace

void World::apply(const Json& object, const char* ns) {
  const auto named = [&](const KubeKind& kind) {
    return core::get_string(object, {"apiVersion"}) == kind.resource.api_version() &&
           core::get_string(object, {"kind"}) == kind.resource.kind;
  };
  const kube::Resource* resource = &std::ranges::find_if(api().kinds(), named)->resource;
  const std::string name = core::get_string(object, {"metadata", "name"});
  oracles_->note("user applies " + resource->kind + " " + name);
  const auto result = api().patch(*resource, {ns, name}, PatchKind::kApply, object, user(), "", true);
  if (!result) oracles_->note("user refused: " + result.error().dump().substr(0, 300));
}

void World::remove(const kube::Resource& resource, const std::string& name, const std::string& propagation) {
  oracles_->note("user deletes " + resource.kind + " " + name);
  Deletion deletion;
  deletion.propagation = propagation;
  (void)api().remove(resource, {kNamespace, name}, deletion, user());
}

void World::tear_away(const kube::Resource& resource, const std::string& name) {
  remove(resource, name);
  merge(resource, name, {{"metadata", {{"finalizers", nullptr}}}});
}

void World::evict(const std::string& pod) {
  oracles_->note("user evicts " + pod);
  (void)api().evict({kNamespace, pod}, {}, user());
}

void World::merge(const kube::Resource& resource, const std::string& name, const Json& patch) {
  oracles_->note("user patches " + resource.kind + " " + name + " " + patch.dump());
  (void)api().patch(resource, {resource.namespaced ? kNamespace : "", name}, PatchKind::kMerge, patch, user());
}

const Json* World::find(const kube::Resource& resource, const std::string& name) const {
  return kube_->api().peek(resource, {resource.namespaced ? kNamespace : "", name});
}

std::vector<std::string> World::names(const kube::Resource& resource) const {
  std::vector<std::string> out;
  for (const auto& [key, stored] : kube_->api().store().all(table_name(resource))) {
    const bool elsewhere = resource.namespaced && key.ns != kNamespace;
    if (!elsewhere && core::find(stored->body, {"metadata", "deletionTimestamp"}) == nullptr) out.push_back(key.name);
  }
  return out;
}

std::vector<std::string> World::workers() const {
  std::vector<std::string> out;
  for (const auto& [key, stored] : kube_->api().store().all(table_name(kinds::kPod))) {
    const bool worker = core::get_string(stored->body, {"metadata", "labels", api::kLabelName}) == slinky::kAppWorker;
    if (worker && core::find(stored->body, {"metadata", "deletionTimestamp"}) == nullptr) out.push_back(key.name);
  }
  return out;
}

SimSlurm* World::slurm() const {
  const SlurmSite::Cluster* cluster = site_.find({kNamespace, kCluster});
  return cluster == nullptr || !cluster->slurm->up() ? nullptr : cluster->slurm.get();
}

std::vector<std::string> World::settle(core::Duration limit) {
  constexpr core::Duration kLook{1000};
  constexpr int kQuietLooks = 4;
  std::vector<std::string> reasons;
  int quiet = 0;
  for (core::Duration passed{0}; passed < limit; passed += kLook) {
    loop_.run_for(kLook);
    reasons = oracles_->unmet();
    quiet = reasons.empty() ? quiet + 1 : 0;
    if (quiet == kQuietLooks || !oracles_->ok()) break;
  }
  return reasons;
}

}  // namespace sim
