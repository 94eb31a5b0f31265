#include "operator/common/accountings.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "api/controller.hpp"
#include "operator/common/named_objects.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/caches.hpp"
#include "slinky/config_map.hpp"
#include "slinky/status.hpp"

namespace op {
namespace {

/// True if this slurm.conf names the slurmdbd at this host. Ignores the port, because the cluster still uses this slurmdbd
/// while the port changes.
bool has_slurmdbd(std::string_view conf, std::string_view host) {
  const std::string slurmdbd = slurmdbd_of(conf);
  const std::string_view there = std::string_view(slurmdbd).substr(0, slurmdbd.rfind(':'));
  // The Go operator omits the namespace in the host name.
  return !there.empty() &&
         (there == host || (host.starts_with(there) && host[there.size()] == '.' && there.find('.') == std::string_view::npos));
}

/// True if the loaded or the offered slurm.conf of the Controller names the slurmdbd at this host.
bool has_slurmdbd(const kube::Cache<kube::Object>& config_maps, const kube::Object& controller, std::string_view host) {
  const kube::ObjectPtr map = config_maps.find({controller.meta.ns, config_map_name(controller.meta.name)});
  return map && (has_slurmdbd(core::get_string(map->body, {"data", kSlurmConf}), host) ||
                 has_slurmdbd(loaded_file(*map, kSlurmConf), host));
}

/// Returns a spec with only the fields that name keys. Ignores the other fields, which might not be parseable. nullopt: a field
/// that names a key cannot be parsed.
std::optional<api::ControllerSpec> spec_of_keys(const kube::Object& object) {
  api::ControllerSpec out;
  for (const auto& [name, field] : {std::pair("slurmKeyRef", &api::ControllerSpec::slurm_key_ref),
                                    {"jwtKeyRef", &api::ControllerSpec::jwt_key_ref},
                                    {"jwtHs256KeyRef", &api::ControllerSpec::jwt_hs256_key_ref}}) {
    const core::Json* said = core::find(object.body, {"spec", name});
    if (said == nullptr || said->is_null()) continue;
    auto read = api::from_json<api::SecretKeySelector>(*said, name);
    if (!read) return {};
    out.*field = std::move(*read);
  }
  return out;
}

/// Returns the name of the cluster whose keys slurmdbd uses, and a spec that names these keys. nullopt: there is no such
/// cluster.
std::optional<std::pair<std::string, api::ControllerSpec>> owner_of_keys(const std::vector<NamedBy>& clusters) {
  const bool some_joined = !clusters.empty() && clusters.front().joined;
  for (const NamedBy& cluster : clusters) {
    // Do not use the keys of a cluster that has not joined, because slurmdbd would then refuse the clusters that have joined.
    if (some_joined && !cluster.joined) break;
    if (cluster.joined) {
      if (auto spec = spec_of_keys(*cluster.object)) return std::pair(cluster.object->meta.name, std::move(*spec));
    } else if (api::Controller read; read_object(*cluster.object, read).empty()) {
      return std::pair(cluster.object->meta.name, std::move(read.spec));
    }
  }
  return {};
}

}  // namespace

std::vector<NamedBy> clusters_of(const kube::Cache<kube::Object>& controllers, const kube::Cache<kube::Object>& config_maps,
                                 const kube::Key& accounting, const api::AccountingSpec& spec) {
  const std::string host = accounting_endpoint(spec, accounting.ns, accounting.name).host;
  std::vector<NamedBy> out;
  for (kube::ObjectPtr& object : controllers.by_index(kIndexAccounting, accounting.str())) {
    const bool joined = has_slurmdbd(config_maps, *object, host);
    out.push_back({std::move(object), joined});
  }
  std::ranges::sort(out, {}, [](const NamedBy& cluster) {
    return std::tuple(!cluster.joined, cluster.object->meta.created, cluster.object->meta.name);
  });
  return out;
}

std::vector<std::string> leaving_clusters(const kube::Cache<kube::Object>& controllers,
                                          const kube::Cache<kube::Object>& config_maps, const kube::Key& accounting,
                                          const api::AccountingSpec& spec) {
  const std::string host = accounting_endpoint(spec, accounting.ns, accounting.name).host;
  std::vector<std::string> out;
  for (const kube::ObjectPtr& object : controllers.all()) {
    if (object->meta.ns != accounting.ns || object->meta.terminating() || accounting_ref(*object) == accounting) continue;
    if (has_slurmdbd(config_maps, *object, host)) out.push_back(object->meta.name);
  }
  std::ranges::sort(out);
  return out;
}

AccountingKeys read_accounting_keys(kube::Recorder& recorder, const std::string& ns, const api::AccountingSpec& spec,
                                    const std::vector<NamedBy>& clusters) {
  const auto owner = owner_of_keys(clusters);
  const auto read = [&](const api::SecretKeySelector* named,
                        KeyRef (*of_cluster)(const api::ControllerSpec&, std::string_view)) -> std::optional<SecretFacts> {
    if (named != nullptr) return read_key(recorder, ns, {.secret = named->name, .key = named->key});
    if (!owner) return {};
    return read_key(recorder, ns, of_cluster(owner->second, owner->first));
  };
  return {read(spec.slurm_key_ref ? &*spec.slurm_key_ref : nullptr, slurm_key_ref), read(spec.jwt_key(), jwt_key_ref),
          owner ? owner->first : ""};
}

}  // namespace op
