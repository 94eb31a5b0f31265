#include "operator/restapi/observe.hpp"

#include "operator/common/named_objects.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/config_map.hpp"
#include "slinky/releases.hpp"
#include "slinky/status.hpp"

namespace op::restapi {

std::shared_ptr<const Observed> RestApiController::observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                                 const run::Observation& context) {
  auto out = std::make_shared<Observed>();
  out->context = context;
  out->object = caches_.restapis.find(key);
  if (!out->object) return out;
  out->parse_error = read_object(*out->object, out->restapi);

  out->missing =
      missing_objects(recorder, key.ns, out->restapi.spec.pod_template, {{"spec.slurmrestd", out->restapi.spec.slurmrestd}});

  if (const auto& ref = out->restapi.spec.sssd_conf_ref)
    out->sssd_conf = read_key(recorder, key.ns, {.secret = ref->name, .key = ref->key});

  // The name of the Controller is read from the JSON, because the RestApi must be deletable even if its spec cannot be parsed.
  const std::string controller = core::get_string(out->object->body, {"spec", "controllerRef", "name"});
  if (const kube::ObjectPtr owner = caches_.controllers.find({key.ns, controller})) {
    out->controller_exists = true;
    if (const auto spec = api::from_json<api::Controller>(owner->body)) {
      out->external = spec->spec.external;
      out->accounting = spec->spec.accounting_ref.has_value();
      if (owner->meta.terminating() && spec->spec.drains_on_deletion()) {
        for (const kube::PodPtr& pod : caches_.pods.by_index(kIndexCluster, cluster_key(key.ns, controller))) {
          out->ending_workers.push_back(pod->meta.name);
        }
      }
    } else {
      out->controller_error = spec.error().message;
    }
  }
  out->config_map = caches_.config_maps.find({key.ns, config_map_name(controller)});
  out->accounting =
      out->accounting && out->config_map && !slurmdbd_of(core::get_string(out->config_map->body, {"data", kSlurmConf})).empty();
  out->newer = newer_than_slurmctld("spec.slurmrestd.image",
                                    core::get_string(out->restapi.spec.slurmrestd, {"image"}, kDefaultSlurmrestdImage),
                                    out->config_map.get());
  for (const kube::ObjectPtr& nodeset : caches_.nodesets.by_index(kIndexController, cluster_key(key.ns, controller))) {
    if (nodeset->meta.terminating()) {
      out->ending_nodesets.push_back(nodeset->meta.name);
    } else {
      out->lasting_nodesets = true;
    }
  }
  out->service = caches_.services.find({key.ns, restapi_object_name(key.name)});
  out->deployment = caches_.deployments.find({key.ns, restapi_object_name(key.name)});
  out->pods = caches_.pods.by_index(kIndexInstance, instance_key(key.ns, kAppRestApi, key.name));
  return out;
}

}  // namespace op::restapi
