#include "sim/programs/operator/oracles/tokens.hpp"

#include <fmt/format.h>

#include "operator/token/plan.hpp"
#include "sim/programs/operator/oracles/agents.hpp"
#include "sim/programs/operator/oracles/objects.hpp"
#include "slinky/names.hpp"

namespace sim {

using core::Json;
namespace kinds = kube::resources;

TokenOracle::TokenOracle(KubeApi& api, Tell violation) : api_(api), violation_(std::move(violation)) {
  listen();
}

void TokenOracle::listen() {
  api_.add_admission([this](const AdmissionRequest& request) -> std::optional<Refusal> {
    const bool input = request.resource == kinds::kSecret || request.resource == kinds::kConfigMap;
    if (!input || request.before == nullptr) return {};
    // The Secret is deleted, so another token is due.
    if (request.user != kOperatorAgent && request.operation == "DELETE") minted_.erase(request.key);
    return {};
  });
  api_.store().listen([this](const std::string& table, const ChangePtr& change) {
    if (change->type != Change::Type::kDeleted && table == "secrets") learn_token(change->object->body);
  });
}

/// A token that is not refreshed changes only if its Token or its key changes, or if its Secret is deleted: see listen().
void TokenOracle::learn_token(const Json& secret) {
  const std::string uid = owner_uid(secret, "Token");
  const kube::Key key{namespace_of(secret), name_of(secret)};
  if (terminating(secret) || uid.empty() || !core::get_bool(secret, {"immutable"})) {
    minted_.erase(key);
    return;
  }
  std::string source = uid + " " + annotation(secret, op::token::kAnnotationInputHash);
  for (const auto& [of, token] : api_.store().all(table_name(slinky::resources::kToken))) {
    if (text_at(token->body, {"metadata", "uid"}) == uid)
      source += fmt::format(", generation {}", core::get_int(token->body, {"metadata", "generation"}));
  }
  std::pair now{source, secret["data"].dump()};
  const auto before = minted_.find(key);
  if (before != minted_.end() && before->second.first == now.first && before->second.second != now.second)
    violation_("a token that is not to be refreshed was minted again: Secret " + key_of(secret));
  minted_[key] = std::move(now);
}

}  // namespace sim
