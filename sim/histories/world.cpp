#include "sim/histories/world.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/well_known.hpp"
#include "cluster/names.hpp"
#include "core/base64.hpp"
#include "sim/oracles/agents.hpp"
#include "sim/oracles/policies.hpp"

namespace sim {

using core::Json;
namespace kinds = kube::resources;

// --- A process of the operator ----------------------------------------------------------------------------------------

kube::ClientOptions OperatorProcess::client_options() const {
  kube::ClientOptions out;
  out.user_agent = operator_agent(identity_);
  return out;
}

kube::ManagerOptions OperatorProcess::manager_options(World& world) const {
  kube::ManagerOptions out;
  if (!identity_.empty()) {
    kube::LeaseOptions lease;
    lease.key = kLeaseKey;
    lease.identity = identity_;
    out.election = lease;
  }
  if (world.options_.show_plans) out.on_plan = [&world](const plan::Plan& plan) { world.oracles_->read_plan(plan); };
  // A process that lost its lease ends, and its pod restarts.
  out.on_lost = [&world, which = which_](const std::string& why) {
    world.oracles_->note(fmt::format("operator {} ends: {}", which, why));
    world.crash_operator(which, core::Duration{1000});
  };
  return out;
}

OperatorProcess::OperatorProcess(World& world, int which)
    : which_(which),
      host_(world.loop_),
      random_(world.random_.fork()),
      log_(*world.oracles_, host_.clock(), fmt::format("op{}", which), world.options_.print),
      transport_(world.loop_, host_, *world.tap_, world.faults_, world.random_.fork()),
      identity_(world.options_.operators < 2 ? "" : fmt::format("operator-{}-{}", which, world.random_.below(1U << 30U))),
      credentials_(net::Endpoint{}),
      client_(host_, random_, transport_, credentials_, client_options()),
      manager_(host_, random_, log_, client_, manager_options(world)),
      operator_(host_, random_, log_, manager_,
                [this, &world](const slurm::Endpoint& endpoint) {
                  return slurm_transport(
                      world.loop_, host_, random_,
                      [&world, endpoint] { return world.site_.listening(endpoint.host, endpoint.port); },
                      [this, &world](const net::HttpRequest& request) { return world.slurm_fault(request, *this); });
                },
                {.namespaces = world.options_.namespaces}) {
  transport_.set_on_crash([&world, which] { world.crash_operator(which, core::Duration{500}); });
  manager_.start();
}

// --- The world --------------------------------------------------------------------------------------------------------

World::World(WorldOptions options)
    : options_(std::move(options)),
      loop_(options_.seed),
      random_(loop_.random().fork()),
      site_(loop_, random_, {.release = options_.slurm_release}),
      kube_(std::make_unique<SimKube>(loop_, random_.fork(), SimKubeOptions{options_.api, options_.controllers, {}})),
      faults_(random_.fork()) {
  site_.attach(kube_->api());
  kube_->add_namespace(kNamespace);
  kube_->add_namespace("slurm-operator");
  kube_->add_namespace(kOtherNamespace);
  for (int i = 0; i < options_.kube_nodes; ++i) kube_->nodes().add_node("kube-" + std::to_string(i));
  for (const std::string_view image :
       {op::kDefaultSlurmctldImage, op::kDefaultSlurmdImage, op::kDefaultSlurmrestdImage, op::kDefaultLoginImage}) {
    kube_->nodes().add_image(std::string(image));
  }
  kube_->nodes().set_process_factory(
      [this](PodView pod, const std::string& container) { return site_.make_process(std::move(pod), container); });
  oracles_ = std::make_unique<Oracles>(loop_, kube_->api(), site_);
  kube_->nodes().set_on_accident([this](const std::string& pod, Accident what) { oracles_->accident(pod, what); });
  oracles_->limit_to(options_.namespaces);
  for (const op::AdmissionPolicy& policy : op::admission_policies())
    kube_->api().add_admission(admission_of(policy, kube_->api()));
  tap_ = std::make_unique<Tap>(*kube_, *oracles_);
  // Writes to Slurm count as well. A reconfigure is a GET.
  faults_.is_write = [](const net::HttpRequest& request) {
    const bool timed =
        request.target.find("/leases") != std::string::npos || request.target.find("/events") != std::string::npos;
    return (request.method != "GET" && !timed) || request.target.ends_with("/reconfigure/");
  };
  operators_.resize(static_cast<std::size_t>(options_.operators));
}

World::~World() {
  operators_.clear();
}

void World::start_operators() {
  for (int i = 0; i < options_.operators; ++i) start_operator(i);
}

void World::start_operator(int which) {
  auto& slot = operators_[static_cast<std::size_t>(which)];
  if (!slot) slot = std::make_unique<OperatorProcess>(*this, which);
}

void World::crash_operator(int which, core::Duration delay) {
  oracles_->note(fmt::format("operator {} dies", which));
  // The caller may be this very operator.
  loop_.after(core::Duration{0}, [this, which] { operators_[static_cast<std::size_t>(which)].reset(); });
  loop_.after(delay + core::Duration{1}, [this, which] { start_operator(which); });
}

void World::pause_operator(int which, core::Duration length) {
  OperatorProcess* process = operator_process(which);
  if (process == nullptr) return;
  oracles_->note(fmt::format("operator {} stands still for {} ms", which, length.count()));
  process->host().pause();
  loop_.after(length, [this, which, process] {
    if (operator_process(which) == process) process->host().resume();
  });
}

void World::jump_clock(int which, core::Duration by) {
  oracles_->note(fmt::format("the clock of operator {} jumps by {} ms", which, by.count()));
  oracles_->jobs().clocks_differ(core::Duration{std::abs(by.count())});
  if (OperatorProcess* process = operator_process(which)) process->host().jump(by);
}

void World::stop_api(core::Duration length) {
  oracles_->note(fmt::format("the API server is away for {} ms", length.count()));
  kube_->set_listening(false);
  loop_.after(length, [this] { kube_->set_listening(true); });
}

int World::leader() const {
  const std::string holder = lease_holder(kube_->api());
  const auto leads = [&](const auto& process) { return process && process->identity() == holder; };
  const auto found = std::ranges::find_if(operators_, leads);
  return found == operators_.end() ? 0 : static_cast<int>(found - operators_.begin());
}

void World::correct_clocks() {
  for (const auto& process : operators_) {
    if (process) process->host().jump(loop_.clock().wall() - process->host().clock().wall());
  }
}

SlurmFault World::slurm_fault(const net::HttpRequest& request, const OperatorProcess& process) {
  using Kind = SlurmFault::Kind;
  oracles_->request(request, true, process.identity());
  const auto crash = [this, which = process.which()] { crash_operator(which, core::Duration{500}); };
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
      crash();
      return {Kind::kLostEarly, {}, {}};
    case Fault::kCrashAfter:
      return {Kind::kLost, {}, crash};
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
    // A fault that returns tables would look like success to a write.
    const bool read = request.method == "GET" && !request.target.ends_with("/reconfigure/");
    const bool of_tables = kind == Kind::kBare || kind == Kind::kOther;
    // Another cluster's slurmrestd has the same paths.
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

/// Returns the kind of a user's object.
const kube::Resource* resource_of(const Json& object) {
  for (const kube::Resource* resource :
       {&op::resources::kController, &op::resources::kRestApi, &op::resources::kNodeSet, &op::resources::kLoginSet,
        &op::resources::kAccounting, &op::resources::kToken, &kinds::kConfigMap, &kinds::kSecret}) {
    if (core::get_string(object, {"kind"}) == resource->kind) return resource;
  }
  return nullptr;
}

Caller user() {
  Caller out;
  out.user = "user";
  out.manager = "kubectl";
  return out;
}

}  // namespace

void World::apply(const Json& object, const char* ns) {
  const kube::Resource* resource = resource_of(object);
  const std::string name = core::get_string(object, {"metadata", "name"});
  oracles_->note("user applies " + resource->kind + " " + name);
  const auto result = api().patch(*resource, {ns, name}, PatchKind::kApply, object, user(), "", true);
  if (!result) oracles_->note("user refused: " + result.error().dump().substr(0, 300));
}

void World::found_cluster(int workers, const Json& controller) {
  start_operators();
  apply(core::merge(controller_json(), controller));
  apply(restapi_json());
  apply(nodeset_json("cpu", workers));
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
    const bool worker = core::get_string(stored->body, {"metadata", "labels", api::kLabelName}) == op::kAppWorker;
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

Json controller_json(const std::string& extra_conf) {
  Json out{{"apiVersion", api::kApiVersion},
           {"kind", "Controller"},
           {"metadata", {{"name", World::kCluster}}},
           {"spec", Json::object()}};
  if (!extra_conf.empty()) out["spec"]["extraConf"] = extra_conf;
  return out;
}

Json restapi_json() {
  return {{"apiVersion", api::kApiVersion},
          {"kind", "RestApi"},
          {"metadata", {{"name", World::kCluster}}},
          {"spec", {{"controllerRef", {{"name", World::kCluster}}}}}};
}

Json nodeset_json(const std::string& name, int replicas) {
  return {{"apiVersion", api::kApiVersion},
          {"kind", "NodeSet"},
          {"metadata", {{"name", name}}},
          {"spec",
           {{"controllerRef", {{"name", World::kCluster}}},
            {"replicas", replicas},
            {"oversubscribeNode", true},
            {"extraConf", "CPUs=2 RealMemory=1000"},
            {"partition", {{"enabled", true}}}}}};
}

Json loginset_json(int replicas) {
  return {{"apiVersion", api::kApiVersion},
          {"kind", "LoginSet"},
          {"metadata", {{"name", World::kLogin}}},
          {"spec",
           {{"controllerRef", {{"name", World::kCluster}}},
            {"replicas", replicas},
            {"rootSshAuthorizedKeys", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA root\n"}}}};
}

Json accounting_json() {
  return {{"apiVersion", api::kApiVersion},
          {"kind", "Accounting"},
          {"metadata", {{"name", World::kAccounting}}},
          {"spec", {{"external", true}, {"externalConfig", {{"host", "slurmdbd.example.com"}, {"port", 6819}}}}}};
}

Json token_json(const std::string& name, const std::string& secret, const std::string& key) {
  return {{"apiVersion", api::kApiVersion},
          {"kind", "Token"},
          {"metadata", {{"name", name}}},
          {"spec", {{"jwtKeyRef", {{"name", secret}, {"key", key}}}, {"username", name}}}};
}

Json config_map_json(const std::string& name, const std::map<std::string, std::string>& data) {
  return {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", name}}}, {"data", data}};
}

Json secret_json(const std::string& name, const std::map<std::string, std::string>& data) {
  Json out{{"apiVersion", "v1"}, {"kind", "Secret"}, {"metadata", {{"name", name}}}, {"data", Json::object()}};
  for (const auto& [key, text] : data) out["data"][key] = core::base64_encode(text);
  return out;
}

}  // namespace sim
