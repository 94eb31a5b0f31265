#include "operator/common/children.hpp"

#include <algorithm>
#include <array>

#include "api/well_known.hpp"
#include "core/hash.hpp"
#include "kube/acts.hpp"

namespace op {
namespace {

std::string name_of(const core::Json& object) {
  return core::get_string(object, {"metadata", "name"});
}

/// Tools find what they manage by these: on a child they would claim, or prune, what they do not know.
bool belongs_to_tool(std::string_view name) {
  constexpr std::array<std::string_view, 4> kPrefixes{"kubectl.kubernetes.io/", "deployment.kubernetes.io/", "meta.helm.sh/",
                                                      "argocd.argoproj.io/"};
  return name.find(".toolkit.fluxcd.io/") != std::string_view::npos ||
         std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

core::Json child_json(const kube::Resource& resource, const kube::Key& key, const kube::Resource& owner_kind,
                      const kube::ObjectMeta& owner, const kube::StringMap& labels, const kube::StringMap& annotations) {
  core::Json meta = kube::meta_json(key, labels, annotations);
  meta["ownerReferences"] = core::Json::array({kube::owner_reference_json(owner_kind, owner)});
  return {{"apiVersion", resource.api_version()}, {"kind", resource.kind}, {"metadata", std::move(meta)}};
}

std::optional<plan::Step> apply_step(const kube::Resource& resource, core::Json intent, const kube::Object* observed,
                                     std::string_view manager) {
  const std::string hash = core::sha256_hex(core::canonical(intent)).substr(0, 16);
  intent["metadata"]["annotations"][std::string(api::kAnnotationIntentHash)] = hash;
  const std::string id = "apply " + resource.kind + " " + name_of(intent);
  if (observed == nullptr) {
    return plan::Step{id, "it does not exist", kube::apply(resource, std::move(intent), std::string(manager))};
  }
  if (observed->meta.terminating()) return {};
  if (observed->meta.annotation(api::kAnnotationIntentHash) != hash) {
    return plan::Step{id, "what is wanted has changed", kube::apply(resource, std::move(intent), std::string(manager))};
  }
  if (!core::contains(observed->body, intent)) {
    return plan::Step{id, "somebody has changed it", kube::apply(resource, std::move(intent), std::string(manager))};
  }
  return {};
}

void add_metadata(kube::StringMap& into, const kube::StringMap& from) {
  for (const auto& [name, value] : from) {
    if (!belongs_to_tool(name)) into[name] = value;
  }
}

std::string short_digest(std::string_view text) {
  return core::sha256_hex(text).substr(0, 16);
}

}  // namespace op
