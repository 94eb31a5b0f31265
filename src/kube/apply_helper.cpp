#include "kube/apply_helper.hpp"

#include "core/hash.hpp"

namespace kube {

namespace {

/// An apply replaces a selector as a whole. Each additional entry makes the selector match fewer objects, so both must be
/// equal.
bool selects_the_same(const core::Json& observed, const core::Json& intent) {
  const core::Json* wanted = core::find(intent, {"spec", "selector"});
  if (wanted == nullptr) return true;
  const core::Json* there = core::find(observed, {"spec", "selector"});
  return there != nullptr && *there == *wanted;
}

}  // namespace

std::string intent_hash(const core::Json& desired) {
  return core::short_hash(core::canonical(desired), 16);
}

plan::ActPtr apply_if_different(const Resource& resource, core::Json desired, const Object* observed, std::string manager) {
  const std::string hash = intent_hash(desired);
  const bool same = observed != nullptr && observed->meta.annotation(kIntentHash) == hash;
  desired["metadata"]["annotations"][std::string(kIntentHash)] = hash;
  if (same) {
    // Items in lists of built-in kinds lack apiVersion and kind. Their absence does not count as a difference.
    core::Json intent = desired;
    intent.erase("apiVersion");
    intent.erase("kind");
    if (core::contains(observed->body, intent) && selects_the_same(observed->body, intent)) return nullptr;
  }
  auto act = std::make_shared<Apply>(resource, std::move(desired), std::move(manager));
  act->unseen = observed == nullptr;
  return act;
}

}  // namespace kube
