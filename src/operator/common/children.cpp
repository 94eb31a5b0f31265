#include "operator/common/children.hpp"

#include "api/well_known.hpp"
#include "core/hash.hpp"
#include "kube/acts.hpp"

namespace op {
namespace {

std::string name_of(const core::Json& object) {
  return core::get_string(object, {"metadata", "name"});
}

/// kubectl's own memory is about the object it stands on, not about its children.
bool belongs_to_tool(std::string_view name) {
  return name.starts_with("kubectl.kubernetes.io/") || name.starts_with("deployment.kubernetes.io/");
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
