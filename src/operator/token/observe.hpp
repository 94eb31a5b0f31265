// The controller of Tokens. A Token requests a Secret with a Slurm JWT for one user. The controller reconciles each Token by
// its "ns/name". declaration.cpp lists the changes that wake the controller. The controller reads two Secrets through the
// recorder: the Secret with the signing key, and the Secret with the JWT. So changes of these Secrets also wake the controller.
//
// Folder src/operator/token: the controller of Tokens. Uses operator/common, and no other controller.
#pragma once

#include <memory>
#include <string>

#include "kube/cache/recorder.hpp"
#include "operator/common/slinky.hpp"
#include "operator/token/observed.hpp"
#include "slinky/wiring.hpp"

namespace op::token {

/// The caches that the controller reads.
struct Caches {
  explicit Caches(Wiring& wiring);
  kube::Cache<kube::Object>& tokens;
  kube::Cache<kube::SecretRecord>& token_secrets;
};

class TokenController final : public kube::TypedController<Observed> {
 public:
  explicit TokenController(Wiring& wiring);
  [[nodiscard]] std::string name() const override { return "token"; }

 protected:
  std::shared_ptr<const Observed> observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                const run::Observation& context) override;

 private:
  Caches caches_;
};

}  // namespace op::token
