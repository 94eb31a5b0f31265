// The facts for the plan of a Token, copied from the caches at one moment.
#pragma once

#include <string>
#include <vector>

#include "api/token.hpp"
#include "kube/object.hpp"
#include "operator/common/slinky.hpp"
#include "plan/plan.hpp"
#include "slinky/keys.hpp"

namespace op::token {

struct Observed {
  plan::Context context;
  kube::ObjectPtr object;
  api::Token token;
  std::string parse_error;
  SecretFacts key;                          ///< The signing key.
  api::SecretKeySelector target;            ///< The Secret and data key for the token.
  kube::Named<kube::SecretRecord> secret;   ///< The Secret that `target` names.
  std::vector<kube::SecretPtr> superseded;  ///< Secrets that had the token before `target` changed.
};

}  // namespace op::token
