#include "sim/programs/operator/program.hpp"

#include <fmt/format.h>

#include "sim/programs/operator/oracles/agents.hpp"
#include "sim/programs/operator/oracles/policies.hpp"
#include "sim/programs/operator/workload.hpp"
#include "slinky/names.hpp"

namespace sim {

// --- A process --------------------------------------------------------------------------------------------------------

kube::ClientOptions OperatorProcess::client_options() const {
  kube::ClientOptions out;
  out.user_agent = operator_agent(identity_);
  return out;
}

kube::ManagerOptions OperatorProcess::manager_options(World& world, OperatorProgram& program, int slot) const {
  kube::ManagerOptions out;
  if (!identity_.empty()) {
    kube::LeaseOptions lease;
    lease.key = kLeaseKey;
    lease.identity = identity_;
    out.election = lease;
  }
  if (program.options().show_plans) out.on_plan = [&program](const plan::Plan& plan) { program.oracles().read_plan(plan); };
  // A process that lost its lease ends, and its pod restarts.
  out.on_lost = [&world, slot](const std::string& why) {
    world.oracles().note(fmt::format("operator {} ends: {}", slot, why));
    world.crash(slot, core::Duration{1000});
  };
  return out;
}

OperatorProcess::OperatorProcess(World& world, OperatorProgram& program, int which, int slot)
    : world_(world),
      host_(world.loop()),
      random_(world.random().fork()),
      log_(world.oracles(), host_.clock(), fmt::format("op{}", which), world.options().print),
      transport_(world.loop(), host_, program.server(), world.faults(), world.random().fork()),
      identity_(program.processes() < 2 ? "" : fmt::format("operator-{}-{}", which, world.random().below(1U << 30U))),
      credentials_(net::Endpoint{}),
      client_(host_, random_, transport_, credentials_, client_options()),
      manager_(host_, random_, log_, client_, manager_options(world, program, slot)),
      operator_(host_, random_, log_, manager_,
                {[this, &world, &program, slot](const slurm::Endpoint& endpoint) {
                   return slurm_transport(
                       world.loop(), host_, random_,
                       [&world, endpoint] { return world.site().listening(endpoint.host, endpoint.port); },
                       [this, &world, &program, slot](const net::HttpRequest& request) {
                         program.oracles().request(request, true, identity_);
                         return world.slurm_fault(request, slot);
                       });
                 },
                 // An external slurmdbd answers from the beginning.
                 [this](const std::string&, int, std::function<void(core::Result<void>)> done) {
                   host_.after(core::Duration{0}, [done = std::move(done)] { done({}); });
                 }},
                {.namespaces = program.options().namespaces}) {
  transport_.set_on_crash([&world, slot] { world.crash(slot, core::Duration{500}); });
  manager_.start();
}

bool OperatorProcess::leads() const {
  return identity_ == lease_holder(world_.api());
}

// --- The program ------------------------------------------------------------------------------------------------------

void OperatorProgram::install(World& world) {
  oracles_ = std::make_unique<OperatorOracles>(world.oracles(), world.loop(), world.api(), world.site());
  oracles_->limit_to(options_.namespaces);
  tap_ = std::make_unique<Tap>(
      world.kube(), [this](const net::HttpRequest& request) { oracles_->request(request, false, identity_of(request)); });
  for (const char* ns : {kLeaseKey.ns.c_str(), kOtherNamespace}) world.kube().add_namespace(ns);
  for (const std::string_view image : {slinky::kDefaultSlurmctldImage, slinky::kDefaultSlurmdImage,
                                       slinky::kDefaultSlurmrestdImage, slinky::kDefaultLoginImage}) {
    world.kube().nodes().add_image(std::string(image));
  }
  for (const op::AdmissionPolicy& policy : op::admission_policies())
    world.api().add_admission(admission_of(policy, world.api()));
}

std::unique_ptr<ProgramProcess> OperatorProgram::start(World& world, int which, int slot) {
  return std::make_unique<OperatorProcess>(world, *this, which, slot);
}

std::unique_ptr<Workload> OperatorProgram::workload(World& world, History& history) {
  return std::make_unique<OperatorWorkload>(world, history, *this);
}

}  // namespace sim
