#include "operator/accounting/observe.hpp"

#include <algorithm>

#include "api/controller.hpp"
#include "operator/accounting/database.hpp"
#include "operator/accounting/slurmdbd.hpp"
#include "operator/common/accountings.hpp"
#include "operator/common/named_objects.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/config_map.hpp"
#include "slinky/status.hpp"

namespace op::accounting {
namespace {

Cluster read_cluster(const Caches& caches, kube::Recorder& recorder, const NamedBy& named, const std::string& slurmdbd) {
  const kube::Object& object = *named.object;
  const std::string& ns = object.meta.ns;
  Cluster out{.name = object.meta.name,
              .key = cluster_key(ns, object.meta.name),
              .cluster_name = {},
              .slurm_key = {},
              .jwt_key = {},
              .keyring = {},
              .ends = object.meta.terminating(),
              .said = {}};
  // If the spec of a Controller cannot be parsed any more, a slurmctld that has joined still uses slurmdbd.
  out.offered = named.joined;
  api::Controller controller;
  if (!read_object(object, controller).empty()) return out;
  out.slurm_key = read_key(recorder, ns, slurm_key_ref(controller.spec, object.meta.name));
  out.jwt_key = read_key(recorder, ns, jwt_key_ref(controller.spec, object.meta.name));
  out.keyring = read_keyring(recorder, ns, object.meta.name);
  out.cluster_name = api::cluster_name(controller.spec, ns, object.meta.name);
  out.external = controller.spec.external;
  out.restapi = std::ranges::any_of(caches.restapis.by_index(kIndexController, out.key),
                                    [](const kube::ObjectPtr& restapi) { return !restapi->meta.terminating(); });
  const kube::ObjectPtr config_map = caches.config_maps.find({ns, config_map_name(object.meta.name)});
  out.joined = config_map && joined_slurmdbd(*config_map) == slurmdbd;
  return out;
}

/// Stores the answers of this pass in `said` and in `clusters`. Removes from `said` all clusters that are not in `clusters`.
void remember(const plan::Facts& facts, std::map<slurm::ClusterKey, Said>& said, std::vector<Cluster>& clusters) {
  std::map<slurm::ClusterKey, Said> now;
  for (Cluster& cluster : clusters) {
    if (const auto fact = facts.find(ask_clusters(cluster.key).id); fact != facts.end()) {
      cluster.said = read_said(fact->second);
    } else if (const auto before = said.find(cluster.key); before != said.end()) {
      cluster.said = before->second;
    }
    if (cluster.said) now.emplace(cluster.key, *cluster.said);
  }
  said = std::move(now);
}

void read_jwks(kube::Recorder& recorder, const std::string& ns, Observed& out) {
  const std::optional<api::ConfigMapKeySelector>& ref = out.accounting.spec.jwks_key_ref;
  if (!ref) return;
  const std::string name = "ConfigMap " + ns + "/" + ref->name;
  const kube::Named<kube::Object> named = recorder.config_map({ns, ref->name});
  if (named.presence == kube::Presence::kUnknown) {
    out.missing.push_back({"Waiting", name + " is being read", Problem::Kind::kComing});
  } else if (named.presence == kube::Presence::kAbsent) {
    out.missing.push_back({"ConfigMapMissing", "spec.jwksKeyRef.name: " + name + " does not exist"});
  } else if (const core::Json* text = core::find(named.record->body, {"data", ref->key}); text && text->is_string()) {
    out.jwks = text->get<std::string>();
  } else {
    out.missing.push_back({"ConfigMapKeyMissing", "spec.jwksKeyRef.key: " + name + " has no data under the key " + ref->key});
  }
}

void read_storage(const Caches& caches, kube::Recorder& recorder, const kube::Key& key, Observed& out) {
  const api::StorageConfig& config = *out.accounting.spec.storage_config;
  out.password = read_key(recorder, key.ns, storage_of(config, key.name).password);
  if (!config.managed) return;
  std::ranges::move(missing_objects(recorder, key.ns, config.pod_template, {{"spec.storageConfig.mariadb", config.mariadb}}),
                    std::back_inserter(out.missing));
  const kube::Key child{key.ns, database_object_name(key.name)};
  out.database_service = caches.services.find(child);
  out.database_set = caches.stateful_sets.find(child);
  out.database_pods = caches.pods.by_index(kIndexInstance, instance_key(key.ns, kAppDatabase, key.name));
}

}  // namespace

std::shared_ptr<const Observed> AccountingController::observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                                    const run::Observation& context) {
  auto out = std::make_shared<Observed>();
  out->context = context;
  out->object = caches_.accountings.find(key);
  if (!out->object) {
    answers_.erase(key);
    return out;
  }
  out->parse_error = read_object(*out->object, out->accounting);
  const api::AccountingSpec& spec = out->accounting.spec;
  const std::string slurmdbd = accounting_endpoint(spec, key.ns, key.name).str();
  const std::vector<NamedBy> controllers = clusters_of(caches_.controllers, caches_.config_maps, key, spec);
  for (const NamedBy& named : controllers) out->clusters.push_back(read_cluster(caches_, recorder, named, slurmdbd));
  if (out->object->meta.terminating()) out->leaving = leaving_clusters(caches_.controllers, caches_.config_maps, key, spec);
  if (!out->parse_error.empty()) return out;

  Answers& answers = answers_[key];
  remember(context.facts, answers.through_clusters, out->clusters);
  if (spec.external) {
    const Endpoint port = accounting_endpoint(spec, key.ns, key.name);
    if (const auto fact = context.facts.find(ask_port(port).id); fact != context.facts.end())
      answers.of_port = read_reached(port, fact->second);
    if (answers.of_port && answers.of_port->port != port) answers.of_port.reset();
    out->reached = answers.of_port;
  } else {
    answers.of_port.reset();
    AccountingKeys keys = read_accounting_keys(recorder, key.ns, spec, controllers);
    out->slurm_key = std::move(keys.slurm);
    out->jwt_key = std::move(keys.jwt);
    out->keys_of = std::move(keys.controller);
    out->missing = missing_objects(recorder, key.ns, spec.pod_template, {{"spec.slurmdbd", spec.slurmdbd}});
    if (spec.storage_config) read_storage(caches_, recorder, key, *out);
    read_jwks(recorder, key.ns, *out);
  }
  const kube::Key child{key.ns, accounting_object_name(key.name)};
  out->service = caches_.services.find(child);
  out->config_map = caches_.config_maps.find(child);
  out->stateful_set = caches_.stateful_sets.find(child);
  out->pods = caches_.pods.by_index(kIndexInstance, instance_key(key.ns, kAppAccounting, key.name));
  return out;
}

}  // namespace op::accounting
