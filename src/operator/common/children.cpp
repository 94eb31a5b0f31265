#include "operator/common/children.hpp"

#include <algorithm>
#include <array>

#include "core/hash.hpp"
#include "kube/acts.hpp"
#include "kube/apply_helper.hpp"

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
  if (observed != nullptr && observed->meta.terminating()) return {};
  const std::string id = "apply " + resource.kind + " " + name_of(intent);
  const bool wanted_before = observed != nullptr && observed->meta.annotation(kube::kIntentHash) == kube::intent_hash(intent);
  plan::ActPtr act = kube::apply_if_different(resource, std::move(intent), observed, std::string(manager));
  if (act == nullptr) return {};
  const char* why = observed == nullptr ? "it does not exist"
                    : wanted_before     ? "somebody has changed it"
                                        : "what is wanted has changed";
  return plan::Step{id, why, std::move(act)};
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
