#include "operator/budgets.hpp"

#include <memory>
#include <optional>
#include <utility>

#include "api/well_known.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/names.hpp"

namespace op {
namespace {

/// The progress of a removal. The callbacks of the requests share ownership of this object.
struct Removal {
  std::function<void(core::Result<int>)> done;
  std::size_t open = 1;  ///< The number of open requests, plus one until the first requests have been sent.
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

/// kLookAgain: the time between two reads of the Lease. kEnding: how long a terminating operator can still renew the Lease. A
/// renewal after kEnding means that an operator runs.
constexpr core::Duration kLookAgain{2000}, kEnding{80000};

/// Reads the Lease until it is clear whether an operator renews it. Calls `done` with "" if no operator renews the Lease,
/// otherwise with an error.
struct Look : std::enable_shared_from_this<Look> {
  Look(core::Loop& on, kube::Client& with, kube::Key of, std::function<void(core::Result<std::string>)> to)
      : loop(on), client(with), lease(std::move(of)), done(std::move(to)), begun(on.clock().mono()) {}
  core::Loop& loop;
  kube::Client& client;
  kube::Key lease;
  std::function<void(core::Result<std::string>)> done;
  core::MonoTime begun, changed_at;
  std::string version;

  void read() {
    client.get(kube::resources::kLease, lease,
               [self = shared_from_this()](const core::Result<core::Json>& reply) { self->judge(reply); });
  }

  void judge(const core::Result<core::Json>& reply) {
    if (!reply) {
      if (reply.error().code == core::ErrorCode::kNotFound) return done(std::string());
      return done(std::unexpected(reply.error()));
    }
    const std::string holder = core::get_string(*reply, {"spec", "holderIdentity"});
    if (holder.empty()) return done(std::string());
    const core::MonoTime now = loop.clock().mono();
    const std::string seen = core::get_string(*reply, {"metadata", "resourceVersion"});
    if (seen != version) {
      version = seen;
      changed_at = now;
    }
    const core::Duration lasts{1000 * core::get_int(*reply, {"spec", "leaseDurationSeconds"})};
    if (now - changed_at > lasts) return done(std::string());
    if (now - begun > kEnding) {
      return done(core::fail(core::ErrorCode::kConflict,
                             "Deployment " + lease.str() + " is gone, but operator " + holder +
                                 " renews the Lease of this name: stop that operator, and run this command again"));
    }
    loop.after(kLookAgain, [self = shared_from_this()] { self->read(); });
  }
};

}  // namespace

void look_for_operator(core::Loop& loop, kube::Client& client, const kube::Key& name,
                       std::function<void(core::Result<std::string>)> done) {
  const auto look = std::make_shared<Look>(loop, client, name, std::move(done));
  client.get(kube::resources::kDeployment, name, [look](const core::Result<core::Json>& reply) {
    if (!reply && reply.error().code != core::ErrorCode::kNotFound) return look->done(std::unexpected(reply.error()));
    const bool goes = !reply || core::find(*reply, {"metadata", "deletionTimestamp"}) != nullptr;
    if (!goes) return look->done("Deployment " + look->lease.str());
    look->read();
  });
}

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
