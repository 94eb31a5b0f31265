#include "operator/loginset/observe.hpp"

#include <fmt/format.h>

#include "core/hash.hpp"
#include "operator/common/named_objects.hpp"
#include "operator/common/slinky.hpp"
#include "operator/common/ssh.hpp"
#include "slinky/releases.hpp"
#include "slinky/status.hpp"

namespace op::loginset {
namespace {

void look_at_keys(std::string_view lines, const std::string& place, std::vector<Problem>& out) {
  if (const int bad = bad_key_line(lines); bad > 0)
    out.push_back({"AuthorizedKeysInvalid", fmt::format("{}: line {} is no SSH public key", place, bad)});
}

}  // namespace

std::shared_ptr<const Observed> LoginSetController::observe_typed(const kube::Key& key, kube::Recorder& recorder,
                                                                  const run::Observation& context) {
  auto out = std::make_shared<Observed>();
  out->context = context;
  out->cluster_domain = cluster_domain_;
  out->object = caches_.loginsets.find(key);
  if (!out->object) return out;
  out->parse_error = read_object(*out->object, out->loginset);
  if (!out->parse_error.empty()) return out;

  const api::LoginSetSpec& spec = out->loginset.spec;
  out->missing =
      missing_objects(recorder, key.ns, spec.pod_template, {{"spec.login", spec.login}, {"spec.initconf", spec.initconf}});
  const std::string& controller = spec.controller_ref.name;
  if (const kube::ObjectPtr owner = caches_.controllers.find({key.ns, controller})) {
    out->controller_exists = true;
    if (const auto of_controller = api::from_json<api::Controller>(owner->body)) {
      out->controller = controller_endpoint(of_controller->spec, key.ns, controller);
      out->external = of_controller->spec.external;
      out->conf_servers = conf_servers(of_controller->spec, key.ns, controller);
      out->slurm_key = read_key(recorder, key.ns, slurm_key_ref(of_controller->spec, controller));
      out->keyring = read_keyring(recorder, key.ns, controller);
    } else {
      out->controller_error = of_controller.error().message;
    }
  }
  if (spec.sssd_conf_ref)
    out->sssd_conf = read_key(recorder, key.ns, {.secret = spec.sssd_conf_ref->name, .key = spec.sssd_conf_ref->key});
  out->host_keys = recorder.secret({key.ns, ssh_host_keys_name(key.name)});
  for (std::size_t i = 0; i < spec.authorized_keys_refs.size(); ++i) {
    const std::string& name = spec.authorized_keys_refs[i].name;
    const kube::Named<kube::Object> keys = recorder.config_map({key.ns, name});
    if (keys.presence == kube::Presence::kAbsent) {
      out->keys_problems.push_back(
          {"ConfigMapMissing",
           fmt::format("spec.authorizedKeysRefs[{}].name: ConfigMap {}/{} does not exist", i, key.ns, name)});
    }
    if (keys.presence != kube::Presence::kPresent) continue;
    const core::Json data = keys.record->body.value("data", core::Json::object());
    out->users_keys += core::canonical(data);
    for (const auto& [user, lines] : data.items()) {
      const std::string place = fmt::format("spec.authorizedKeysRefs[{}].name: ConfigMap {}/{}, key {}", i, key.ns, name, user);
      if (lines.is_string()) look_at_keys(lines.get<std::string>(), place, out->keys_problems);
      // The files of these ConfigMaps and the file of rootSshAuthorizedKeys are in one volume. If several files have one name,
      // the last file wins.
      if (user == "root" && !spec.root_ssh_authorized_keys.empty()) {
        out->keys_problems.push_back(
            {"AuthorizedKeysInvalid", place + ": these keys replace spec.rootSshAuthorizedKeys, which then has no effect. Set "
                                              "root's keys in only one of the two"});
      }
    }
  }
  look_at_keys(spec.root_ssh_authorized_keys, "spec.rootSshAuthorizedKeys", out->keys_problems);
  out->users_keys = core::short_digest(out->users_keys);

  out->service = caches_.services.find(key);
  out->config_map = caches_.config_maps.find({key.ns, ssh_config_name(key.name)});
  out->newer = newer_than_slurmctld("spec.login.image", core::get_string(spec.login, {"image"}, kDefaultLoginImage),
                                    caches_.config_maps.find({key.ns, config_map_name(controller)}).get());
  out->deployment = caches_.deployments.find(key);
  out->hosts = caches_.endpoint_slices.find({key.ns, login_hosts_name(key.name)});
  out->pods = caches_.pods.by_index(kIndexInstance, instance_key(key.ns, kAppLogin, key.name));
  return out;
}

}  // namespace op::loginset
