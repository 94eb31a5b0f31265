#include "operator/token/observe.hpp"

#include "operator/token/plan.hpp"

namespace op::token {

std::shared_ptr<const Observed> TokenController::observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                               const kube::Context& context) {
  if (!caches_.tokens.synced() || !caches_.token_secrets.synced()) return nullptr;
  auto out = std::make_shared<Observed>();
  out->context = context;
  out->object = caches_.tokens.find(key);
  if (!out->object) return out;
  auto parsed = api::from_json<api::Token>(out->object->body);
  if (!parsed) {
    out->parse_error = parsed.error().message;
    // What has been told is known: an event comes once, and conditions keep their time.
    if (auto told = api::from_json<api::TokenStatus>(out->object->body.value("status", core::Json::object()))) {
      out->token.status = std::move(*told);
    }
    return out;
  }
  out->token = std::move(*parsed);
  if (const api::SecretKeySelector* named = out->token.spec.jwt_key()) {
    out->key = read_key(recorder, key.ns, {named->name, named->key, false});
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

plan::Plan TokenController::plan_typed(const Observed& observed) const {
  return token::plan(observed);
}

}  // namespace op::token
