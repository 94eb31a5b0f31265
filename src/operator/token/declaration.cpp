// Declares what the Token controller reads, what wakes it, and the rights that it needs.
#include "operator/token/observe.hpp"
#include "operator/token/plan.hpp"

namespace op::token {

Caches::Caches(Wiring& wiring) : tokens(wiring.cache(caches::kTokens)), token_secrets(wiring.cache(caches::kTokenSecrets)) {}

TokenController::TokenController(Wiring& wiring) : TypedController(token::plan), caches_(wiring) {
  wiring.run(*this);
  wiring.reconciles(resources::kToken);
  wiring.makes(kube::resources::kSecret);
  wiring.wakes<kube::Object>(*this, caches_.tokens, kube::self<kube::Object>());
  wiring.wakes<kube::SecretRecord>(*this, caches_.token_secrets,
                                   kube::controller_owner<kube::SecretRecord>(resources::kToken.kind));
}

}  // namespace op::token
