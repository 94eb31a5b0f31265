// Reaches a cluster's slurmrestd through the API server's proxy of Services, with a token minted from the cluster's JWT key.
// This access needs no network route to slurmrestd and no program in a pod. It needs two rights: `get` on the Secret of the
// key, and `get` on services/proxy.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/session.hpp"
#include "slurm/rest/client.hpp"

namespace cli {

/// The connection to a slurmrestd that has answered.
class SlurmAccess {
 public:
  virtual ~SlurmAccess() = default;
  [[nodiscard]] virtual slurm::Client& client() = 0;
  [[nodiscard]] virtual const slurm::Capabilities& capabilities() const = 0;

  template <class Row>
  using Rows = std::vector<std::shared_ptr<const Row>>;
  /// Calls `start` with a callback, as Api::await does. The error says that Slurm does not answer, or that the user
  /// interrupted.
  template <class T>
  core::Result<T> await(Api& api, const std::function<void(std::function<void(core::Result<T>)>)>& start) {
    auto answer = api.await<T>(start);
    if (!answer) return std::unexpected(no_answer(answer.error()));
    return answer;
  }

  static core::Error no_answer(const core::Error& error);
};

/// Reads the name of a Controller with its namespace: "NAMESPACE/NAME". nullopt if the text has another form.
[[nodiscard]] std::optional<kube::Key> controller_key(std::string_view text);

/// Returns the Controller named `name`; if `name` is "", the only Controller. `controllers`: all Controllers in the namespace
/// `ns`. Errors: kNotFound; kInvalid if `name` is "" and there are several Controllers.
core::Result<core::Json> one_controller(const std::vector<core::Json>& controllers, const std::string& ns,
                                        const std::string& name);

/// A cluster, and the connection to its slurmrestd.
struct ReachedCluster {
  core::Json controller;
  std::unique_ptr<SlurmAccess> slurm;
};
/// Reads the Controller and the RestApis of its namespace, and connects. An empty name means the only Controller of the
/// namespace. Errors: those of one_controller() and reach_slurm().
core::Result<ReachedCluster> reach_cluster(Api& api, const kube::Key& controller);

/// Connects to the slurmrestd of a Controller. `restapis`: all in its namespace. The error says why Slurm cannot be asked.
core::Result<std::unique_ptr<SlurmAccess>> reach_slurm(Api& api, const core::Json& controller,
                                                       const std::vector<core::Json>& restapis);

}  // namespace cli
