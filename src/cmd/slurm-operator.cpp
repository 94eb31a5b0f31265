// slurm-operator: makes a running Slurm cluster of slinky.slurm.net resources. Contains only the flags and wiring of the
// program.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kube/app/app.hpp"
#include "net/beast_transport.hpp"
#include "net/reach.hpp"
#include "operator/budgets.hpp"
#include "operator/operator.hpp"

namespace {

/// The limit, in bytes, for the memory of Slurm's answers that are not decoded yet. The sum of this and the memory of decoded
/// answers stays below the chart's memory limit.
constexpr std::size_t kSlurmReplies = 1UL << 30;

/// Removes the PodDisruptionBudgets of workers. Returns the exit code. `unless` names an operator as "namespace/name": if that
/// operator exists, the budgets stay. If `unless` is "", the budgets are removed in any case.
int remove_budgets(kube::App& app, const std::vector<std::string>& namespaces, const std::string& unless) {
  core::Result<int> removed = 0;
  std::string stay;
  const auto end = [&](core::Result<int> result) {
    removed = std::move(result);
    app.loop().stop();
  };
  const auto looked = [&](core::Result<std::string> found) {
    if (!found) return end(std::unexpected(found.error()));
    stay = *std::move(found);
    if (!stay.empty()) return end(0);
    op::remove_budgets(app.client(), namespaces, end);
  };
  if (unless.empty()) {
    looked(std::string());
  } else {
    const std::size_t slash = unless.find('/');
    if (slash == std::string::npos)
      return app.fatal("--unless-operator", core::fail(core::ErrorCode::kInvalid, unless + ": must be NAMESPACE/NAME").error());
    op::look_for_operator(app.loop(), app.client(), {unless.substr(0, slash), unless.substr(slash + 1)}, looked);
  }
  app.loop().run();
  if (!removed) return app.fatal("some PodDisruptionBudgets of workers are not removed", removed.error());
  if (!stay.empty()) {
    app.log().info("the PodDisruptionBudgets of workers are kept, because an operator exists", {{"operator", stay}});
    return 0;
  }
  app.log().info("removed the PodDisruptionBudgets of workers", {{"count", *removed}});
  return 0;
}

slurm::Clusters::TransportFactory slurm_transport(net::AsioLoop& loop) {
  net::TransportOptions options;
  options.budget = std::make_shared<net::ReplyBudget>(kSlurmReplies);
  return [&loop, options](const slurm::Endpoint& endpoint) -> std::unique_ptr<net::HttpTransport> {
    return std::make_unique<net::BeastTransport>(loop, net::Endpoint{"http", endpoint.host, endpoint.port, {}}, options);
  };
}

/// The time that an external slurmdbd may take to accept a connection.
constexpr core::Duration kReachTimeout{3000};

op::Reach reach(net::AsioLoop& loop) {
  return [&loop](const std::string& host, int port, std::function<void(core::Result<void>)> done) {
    net::reach(loop, host, static_cast<std::uint16_t>(port), kReachTimeout, std::move(done));
  };
}

}  // namespace

int main(int argc, char** argv) {
  kube::App app({.name = "slurm-operator",
                 .version = SLURM_OPERATOR_VERSION,
                 .about = "Makes slinky.slurm.net resources (Controller, RestApi, NodeSet, LoginSet, Accounting, SlurmQos, "
                          "SlurmAccount, SlurmUser, SlurmAssociation, Token) a running Slurm cluster."});
  op::OperatorOptions options;
  bool only_remove_budgets = false;
  std::string unless_operator;
  bool without_nodes = false;
  app.flag("--namespaces", options.namespaces, "Namespaces to act on (comma-separated; default: all)");
  app.flag("--cluster-domain", options.cluster_domain, "DNS domain of the Kubernetes cluster");
  app.flag("--worker-priority-class", options.worker_priority_class, "PriorityClass of workers whose NodeSet names none");
  app.flag("--without-kubernetes-nodes", without_nodes,
           "Do not read Kubernetes nodes: with one namespace, a Role in it is enough. Then the operator notices neither "
           "cordons nor lost nodes");
  app.flag("--drain-taints", options.drain_taints,
           "Taints of Kubernetes nodes whose workers are then drained in Slurm (comma-separated keys)");
  app.flag("--propagated-node-conditions", options.propagated_node_conditions,
           "Conditions of Kubernetes nodes to quote in the reason of a drain for a cordon (comma-separated types)");
  app.flag("--remove-budgets", only_remove_budgets,
           "Delete the PodDisruptionBudgets of workers, and exit. Use it when no operator runs any more");
  app.flag("--unless-operator", unless_operator,
           "With --remove-budgets: do nothing while this operator exists (NAMESPACE/NAME of its Deployment and its Lease)");
  if (const std::optional<int> code = app.start(argc, argv)) return *code;
  if (only_remove_budgets) return remove_budgets(app, options.namespaces, unless_operator);
  options.kubernetes_nodes = !without_nodes;
  op::Operator slurm_operator(app.loop(), app.random(), app.log(), app.manager(),
                              {slurm_transport(app.loop()), reach(app.loop())}, options);
  return app.run();
}
