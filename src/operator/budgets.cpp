#include "operator/budgets.hpp"

#include <memory>
#include <optional>
#include <utility>

#include "api/well_known.hpp"
#include "cluster/names.hpp"

namespace op {
namespace {

/// How far it has come; kept by the callbacks of its requests.
struct Removal {
  std::function<void(core::Result<int>)> done;
  std::size_t open = 1;  ///< Requests, and one for the beginning.
  int removed = 0;
  std::optional<core::Error> error;

  void close(const core::Result<core::Json>& reply) {
    if (!reply && reply.error().code != core::ErrorCode::kNotFound && !error) error = reply.error();
    if (--open > 0) return;
    done(error ? core::Result<int>(std::unexpected(*error)) : core::Result<int>(removed));
  }
};

bool of_workers(const kube::ObjectMeta& budget) {
  const kube::OwnerReference* owner = budget.controller_owner();
  return budget.label(api::kLabelName) == kAppWorker && !budget.label(api::kLabelCluster).empty() && owner != nullptr &&
         owner->kind == resources::kController.kind && owner->api_version.starts_with(std::string(api::kGroup) + "/");
}

}  // namespace

void remove_budgets(kube::Client& client, const std::vector<std::string>& namespaces,
                    std::function<void(core::Result<int>)> done) {
  const auto removal = std::make_shared<Removal>();
  removal->done = std::move(done);
  const auto found = [&client, removal](const core::Result<core::Json>& reply) {
    const core::Json items = reply ? reply->value("items", core::Json::array()) : core::Json::array();
    for (const core::Json& item : items) {
      const kube::ObjectMeta meta = kube::parse_meta(item);
      if (!of_workers(meta)) continue;
      ++removal->open;
      ++removal->removed;
      client.remove(kube::resources::kPodDisruptionBudget, meta.key(), {meta.uid, {}},
                    [removal](const core::Result<core::Json>& removed) { removal->close(removed); });
    }
    removal->close(reply);
  };
  for (const std::string& ns : namespaces.empty() ? std::vector<std::string>{""} : namespaces) {
    ++removal->open;
    client.list(kube::resources::kPodDisruptionBudget, ns, {}, found);
  }
  removal->close(core::Json());
}

}  // namespace op
