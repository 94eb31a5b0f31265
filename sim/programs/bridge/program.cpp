#include "sim/programs/bridge/program.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bridge/bridge.hpp"
#include "bridge/common/names.hpp"
#include "core/base64.hpp"
#include "kube/client/client.hpp"
#include "kube/client/credentials.hpp"
#include "sim/base/transport.hpp"
#include "sim/oracles/tap.hpp"
#include "sim/programs/bridge/workload.hpp"

namespace sim {
namespace {

using core::Json;
namespace res = kube::resources;

constexpr const char* kConf =
    "ClusterName=c\nSlurmctldHost=ctld(127.0.0.1)\nMaxNodeCount={}\nSlurmUser=slurm\nReturnToService=2\n"
    "NodeSet=blues Feature=blue\nPartitionName=all Nodes=ALL Default=YES\nPartitionName=blue Nodes=blues\n";
const kube::Key kSecret{"kube-system", "slurm-key"};

class BridgeProcess final : public ProgramProcess {
 public:
  BridgeProcess(World& world, BridgeProgram& program, int slot)
      : host_(world.loop()),
        random_(world.random().fork()),
        log_(world.oracles(), host_.clock(), "bridge", world.options().print),
        transport_(world.loop(), host_, world.kube(), world.faults(), world.random().fork()),
        credentials_(net::Endpoint{}),
        client_(host_, random_, transport_, credentials_, agent()),
        manager_(host_, random_, log_, client_, manager_options(world, program, slot)),
        bridge_(
            host_, random_, log_, manager_,
            [this, &world, &program, slot](const slurm::Endpoint&) {
              return slurm_transport(
                  world.loop(), host_, random_, [&program] { return &program.rest(); },
                  [&world, &program, slot](const net::HttpRequest& request) {
                    program.oracle().request(request);
                    return program.on_request ? program.on_request(request) : world.slurm_fault(request, slot);
                  });
            },
            options()) {
    transport_.set_on_crash([&world, slot] { world.crash(slot, core::Duration{500}); });
    manager_.start();
  }
  [[nodiscard]] SimHost& host() override { return host_; }

 private:
  static kube::ClientOptions agent() {
    kube::ClientOptions out;
    out.user_agent = "slurm-bridge";
    return out;
  }
  static kube::ManagerOptions manager_options(World& world, const BridgeProgram& program, int slot) {
    kube::ManagerOptions out;
    out.on_plan = program.on_plan;
    out.on_lost = [&world, slot](const std::string& why) {
      world.oracles().note("the bridge ends: " + why);
      world.crash(slot, core::Duration{1000});
    };
    return out;
  }
  static bridge::Options options() {
    bridge::Options out;
    out.address = bridge::SlurmAddress{{BridgeProgram::kHost, 6820}, kSecret, "jwt.key"};
    out.jobs.managed_namespaces = {World::kNamespace};
    out.jobs.whole_nodes = false;
    return out;
  }

  SimHost host_;
  SeededRandom random_;
  OracleLogger log_;
  Transport transport_;
  kube::StaticCredentials credentials_;
  kube::Client client_;
  kube::Manager manager_;
  bridge::Bridge bridge_;
};

}  // namespace

Json bridge_pod(const std::string& name, const std::string& cpu, const std::string& memory) {
  Json pod{{"apiVersion", "v1"}, {"kind", "Pod"}};
  pod["metadata"] = {{"name", name}};
  Json& spec = pod["spec"];
  spec["restartPolicy"] = "Never";
  spec["schedulingGates"].push_back({{"name", bridge::kGate}});
  spec["containers"].push_back({{"name", "main"}, {"image", "work:1"}});
  spec["containers"][0]["resources"]["requests"] = {{"cpu", cpu}, {"memory", memory}};
  return pod;
}

void BridgeProgram::install(World& world) {
  world.kube().add_namespace("kube-system");
  SlurmOptions options;
  options.release = world.options().slurm_release;
  slurm_ = std::make_unique<SimSlurm>(
      world.loop(), world.random(), [most = 4 * world.options().kube_nodes] { return fmt::format(kConf, most); }, options);
  rest_ = std::make_unique<SlurmRest>(world.loop(), *slurm_, [] { return std::string(kKey); });
  if (const auto started = slurm_->start(); !started) throw std::runtime_error(started.error().message);
  const Json* installation = world.api().peek(res::kNamespace, {"", "kube-system"});
  oracle_ = std::make_unique<BridgeOracle>(world.oracles(), world.loop(), world.api(), *slurm_,
                                           core::get_string(*installation, {"metadata", "uid"}));
  Json secret{{"metadata", {{"name", kSecret.name}, {"namespace", kSecret.ns}}}};
  secret["data"]["jwt.key"] = core::base64_encode(kKey);
  (void)world.api().create(res::kSecret, secret);
}

void BridgeProgram::add_nodes(World& world) {
  for (int i = 0; i < world.options().kube_nodes; ++i) make_host(world, "kube-" + std::to_string(i));
  register_by_hand();
  slurm_->start_slurmd(kHybrid, "CPUs=4 RealMemory=8000");
}

void BridgeProgram::make_host(World& world, const std::string& name) {
  if (world.api().peek(res::kNode, {"", name}) == nullptr) world.kube().nodes().add_node(name);
  if (name != kByHand && name != kHybrid) {
    const Json labels{{std::string(bridge::kLabelExternalNode), "true"}};
    const Json annotations{{std::string(bridge::kAnnotationPartitions), "blue"}};
    world.merge(res::kNode, name, {{"metadata", {{"labels", labels}, {"annotations", annotations}}}});
  }
  world.api().modify(
      res::kNode, {"", name},
      [](Json& node) {
        Json& status = node["status"];
        status["capacity"] = status["allocatable"] = {{"cpu", "4"}, {"memory", "8000Mi"}, {"pods", "20"}};
        status["addresses"] = Json::array({{{"type", "InternalIP"}, {"address", "10.0.0.1"}}});
      },
      {}, "status");
}

void BridgeProgram::register_by_hand() {
  if (slurm_->node(kByHand) == nullptr)
    (void)slurm_->create_nodes("NodeName=" + std::string(kByHand) + " CPUs=4 RealMemory=8000 State=External");
}

std::unique_ptr<ProgramProcess> BridgeProgram::start(World& world, int, int slot) {
  return std::make_unique<BridgeProcess>(world, *this, slot);
}

std::unique_ptr<Workload> BridgeProgram::workload(World& world, History& history) {
  return std::make_unique<BridgeWorkload>(world, history, *this);
}

}  // namespace sim
