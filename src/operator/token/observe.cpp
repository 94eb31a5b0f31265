#include "operator/token/observe.hpp"

#include "operator/common/named_objects.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/status.hpp"

namespace op::token {

std::shared_ptr<const Observed> TokenController::observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                               const run::Observation& context) {
  auto out = std::make_shared<Observed>();
  out->context = context;
  out->object = caches_.tokens.find(key);
  if (!out->object) return out;
  out->parse_error = read_object(*out->object, out->token);
  if (!out->parse_error.empty()) return out;
  if (const api::SecretKeySelector* named = out->token.spec.jwt_key()) {
    out->key = read_key(recorder, key.ns, {named->name, named->key});
  } else {
    out->parse_error = "spec.jwtKeyRef: absent, must name the key that signs the token";
    return out;
  }
  out->target = api::token_secret(out->token.spec, key.name);
  out->secret = recorder.secret({key.ns, out->target.name});
  out->superseded = caches_.token_secrets.by_index(kIndexOwner, out->object->meta.uid);
  std::erase_if(out->superseded, [&](const kube::SecretPtr& secret) { return secret->meta.name == out->target.name; });
  return out;
}

}  // namespace op::token
