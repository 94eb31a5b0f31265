// What the Token's plan knows: copies of what the caches held at one moment, and nothing else.
#pragma once

#include <string>
#include <vector>

#include "api/token.hpp"
#include "cluster/keys.hpp"
#include "kube/object.hpp"
#include "plan/plan.hpp"

namespace op::token {

struct Observed {
  plan::Context context;
  kube::ObjectPtr object;
  api::Token token;
  std::string parse_error;
  SecretFacts key;                          ///< The key that signs.
  api::SecretKeySelector target;            ///< Where the token is kept.
  kube::Named<kube::SecretRecord> secret;   ///< What is there.
  std::vector<kube::SecretPtr> superseded;  ///< Its other Secrets: it kept its token there before.
};

}  // namespace op::token
