// The controller of Tokens: a Slurm JWT for one user, in a Secret. A key is the "ns/name" of a Token. declaration.cpp says
// which changes wake the controller. It reads the Secrets of the key and of the token through the recorder, so changes of these
// Secrets wake it as well.
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
