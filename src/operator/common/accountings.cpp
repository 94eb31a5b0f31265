#include "operator/common/accountings.hpp"

#include <algorithm>
#include <utility>

#include "operator/common/named_objects.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/caches.hpp"
#include "slinky/status.hpp"

namespace op {

std::vector<kube::ObjectPtr> clusters_of(const kube::Cache<kube::Object>& controllers, const kube::Key& accounting) {
  std::vector<kube::ObjectPtr> out = controllers.by_index(kIndexAccounting, accounting.str());
  std::ranges::sort(out, {}, [](const kube::ObjectPtr& object) { return std::pair(object->meta.created, object->meta.name); });
  return out;
}

AccountingKeys read_accounting_keys(kube::Recorder& recorder, const std::string& ns, const api::AccountingSpec& spec,
                                    const std::vector<kube::ObjectPtr>& clusters) {
  api::Controller oldest;
  const bool readable = !clusters.empty() && read_object(*clusters.front(), oldest).empty();
  const auto read = [&](const api::SecretKeySelector* named,
                        KeyRef (*of_cluster)(const api::ControllerSpec&, std::string_view)) -> std::optional<SecretFacts> {
    if (named != nullptr) return read_key(recorder, ns, {.secret = named->name, .key = named->key});
    if (!readable) return {};
    return read_key(recorder, ns, of_cluster(oldest.spec, clusters.front()->meta.name));
  };
  return {read(spec.slurm_key_ref ? &*spec.slurm_key_ref : nullptr, slurm_key_ref), read(spec.jwt_key(), jwt_key_ref)};
}

}  // namespace op
