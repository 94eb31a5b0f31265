// The files of volumes, and the environment, that a kubelet provides to containers.
#include <fmt/format.h>

#include <cstdlib>

#include "core/base64.hpp"
#include "sim/kube/kubelet_parts.hpp"

namespace sim {

using core::Duration;
using core::Json;
namespace res = kube::resources;

/// Returns the files of ConfigMap, Secret and projected volumes; nullopt if a required source is missing (named in `missing`).
std::optional<std::map<std::string, Files>> Kubelets::Impl::read_volumes(const Pod& pod, std::string& missing) {
  std::map<std::string, Files> out;
  for (const Json& volume : pod.object["spec"].value("volumes", Json::array())) {
    Files files;
    bool complete = true;
    if (volume.contains("configMap"))
      complete = read_source("configMap", volume["configMap"], "name", pod.key.ns, files, missing);
    if (volume.contains("secret")) complete = read_source("secret", volume["secret"], "secretName", pod.key.ns, files, missing);
    if (volume.contains("projected")) {
      for (const Json& source : volume["projected"].value("sources", Json::array())) {
        for (const char* kind : {"configMap", "secret"}) {
          if (source.contains(kind)) complete = read_source(kind, source[kind], "name", pod.key.ns, files, missing) && complete;
        }
      }
    }
    if (!complete) return std::nullopt;
    out[core::get_string(volume, {"name"})] = std::move(files);
  }
  return out;
}

bool Kubelets::Impl::read_source(const std::string& kind, const Json& source, const char* name_field, const std::string& ns,
                                 Files& out, std::string& missing) {
  const std::string name = core::get_string(source, {name_field});
  const bool secret = kind == "secret";
  const Json* object = api.peek(secret ? res::kSecret : res::kConfigMap, {ns, name});
  const bool optional = core::get_bool(source, {"optional"});
  if (object == nullptr) {
    if (!optional)
      missing = fmt::format("MountVolume.SetUp failed: {} \"{}\" not found", secret ? "secret" : "configmap", name);
    return optional;
  }
  const Json data = object->value("data", Json::object());
  const auto content = [&](const std::string& key) {
    const std::string value = data[key].is_string() ? data[key].get<std::string>() : "";
    return secret ? core::base64_decode(value).value_or("") : value;
  };
  if (!source.contains("items")) {
    for (const auto& [key, value] : data.items()) out[key] = content(key);
    return true;
  }
  for (const Json& item : source["items"]) {
    const std::string key = core::get_string(item, {"key"});
    if (data.contains(key)) {
      out[core::get_string(item, {"path"})] = content(key);
    } else if (!optional) {
      missing = fmt::format("references non-existent {} key: {}", secret ? "secret" : "config", key);
      return false;
    }
  }
  return true;
}

void Kubelets::Impl::plan_refresh(const PodPtr& pod) {
  refresh_files_in(pod, between(options.least_files, options.most_files));
}

void Kubelets::Impl::refresh_files_in(const PodPtr& pod, Duration delay) {
  const std::uint64_t number = ++pod->refresh;  // only the latest planned refresh runs
  later(delay, pod, [number](Impl& self, const PodPtr& p) {
    if (p->refresh != number || p->stopping) return;
    if (self.connected(p->node)) self.refresh_files(p);
    self.plan_refresh(p);
  });
}

void Kubelets::Impl::refresh_files(const PodPtr& pod) {
  std::string missing;
  auto files = read_volumes(*pod, missing);
  if (!files || *files == pod->volumes) return;
  pod->volumes = std::move(*files);
  for (Container& container : pod->containers) {
    if (container.process) container.process->files_changed();
  }
}

std::optional<std::map<std::string, std::string>> Kubelets::Impl::read_env(const Pod& pod, const Json& container,
                                                                           std::string& problem) {
  std::map<std::string, std::string> out;
  for (const Json& env : container.value("env", Json::array())) {
    const std::string name = core::get_string(env, {"name"});
    if (!env.contains("valueFrom")) {
      out[name] = core::get_string(env, {"value"});
      continue;
    }
    const Json& from = env["valueFrom"];
    if (from.contains("fieldRef")) out[name] = field(pod, core::get_string(from, {"fieldRef", "fieldPath"}));
    if (from.contains("resourceFieldRef")) out[name] = resource(container, from["resourceFieldRef"]);
    for (const char* kind : {"secretKeyRef", "configMapKeyRef"}) {
      if (!from.contains(kind)) continue;
      const bool secret = std::string_view(kind) == "secretKeyRef";
      const std::string object_name = core::get_string(from, {kind, "name"});
      const std::string key = core::get_string(from, {kind, "key"});
      const Json* object = api.peek(secret ? res::kSecret : res::kConfigMap, {pod.key.ns, object_name});
      const Json* value = object == nullptr ? nullptr : core::find(*object, {"data", key});
      if (value == nullptr) {
        if (core::get_bool(from, {kind, "optional"})) continue;
        problem = object == nullptr ? fmt::format("{} \"{}\" not found", secret ? "secret" : "configmap", object_name)
                                    : fmt::format("couldn't find key {} in {}/{}", key, pod.key.ns, object_name);
        return std::nullopt;
      }
      const std::string text = value->is_string() ? value->get<std::string>() : "";
      out[name] = secret ? core::base64_decode(text).value_or("") : text;
    }
  }
  return out;
}

std::string Kubelets::Impl::field(const Pod& pod, const std::string& path) {
  if (path == "metadata.name") return pod.key.name;
  if (path == "metadata.namespace") return pod.key.ns;
  if (path == "metadata.uid") return pod.uid;
  if (path == "spec.nodeName") return pod.node;
  if (path == "status.podIP") return pod.ip;
  for (const char* map : {"annotations", "labels"}) {
    const std::string start = fmt::format("metadata.{}['", map);
    if (!path.starts_with(start) || path.size() < start.size() + 2) continue;
    return core::get_string(pod.object, {"metadata", map, path.substr(start.size(), path.size() - start.size() - 2)});
  }
  return "";
}

/// Returns the value of a resourceFieldRef, rounded up: in cores or bytes, or in MiB with the divisor 1Mi. Other divisors are
/// ignored. Returns "0" if the container does not set the resource.
std::string Kubelets::Impl::resource(const Json& container, const Json& ref) {
  const std::string what = core::get_string(ref, {"resource"});
  const std::size_t dot = what.find('.');
  const Json* value = core::find(container, {"resources", what.substr(0, dot), what.substr(dot + 1)});
  if (value == nullptr) return "0";
  const std::string text = value->is_string() ? value->get<std::string>() : value->dump();
  double amount = std::atof(text.c_str());
  if (text.ends_with("m")) amount /= 1000;
  for (const auto& [suffix, factor] : {std::pair{"Ki", 1024.0}, {"Mi", 1048576.0}, {"Gi", 1073741824.0}}) {
    if (text.ends_with(suffix)) amount *= factor;
  }
  if (core::get_string(ref, {"divisor"}) == "1Mi") amount /= 1048576.0;
  return std::to_string(static_cast<long long>(amount + 0.999));
}

}  // namespace sim
