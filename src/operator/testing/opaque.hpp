// Documents for tests with users' containers, pod specs and Service specs. The operator passes these on unchecked, so these can
// contain anything. Whatever they contain, a pass must continue, and must report the parts that are wrong.
#pragma once

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "core/json.hpp"
#include "operator/testing/world.hpp"
#include "plan/plan.hpp"

namespace op::testing {

inline Json some_container(const char* name) {
  Json out = Json::parse(R"({
    "image": "x:26.05", "command": ["sh"], "args": ["-v"], "imagePullPolicy": "Always",
    "env": [{"name": "SLURM_JWT", "value": "1"}, {"name": "B", "valueFrom": {"secretKeyRef": {"name": "mine", "key": "k"}}}],
    "envFrom": [{"configMapRef": {"name": "mine"}}],
    "ports": [{"name": "more", "containerPort": 1}],
    "volumeMounts": [{"name": "a", "mountPath": "/etc/slurm"}],
    "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": 1}},
    "readinessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 1},
    "lifecycle": {"preStop": {"exec": {"command": ["true"]}}},
    "securityContext": {"privileged": false, "capabilities": {"add": ["BPF"]}}})");
  out["name"] = name;
  return out;
}

inline Json some_pod(const char* container) {
  Json out = Json::parse(R"({
    "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
    "spec": {
      "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "z"}]}},
      "volumes": [{"name": "slurm-etc", "projected": {"sources": [{"secret": {"name": "mine", "items": [{"key": "k"}]}}]}},
                  {"name": "more", "configMap": {"name": "mine"}}],
      "tolerations": [{"operator": "Exists"}], "nodeSelector": {"a": "b"}, "hostname": "host", "hostNetwork": false,
      "dnsConfig": {"searches": ["a"]}, "resources": {"limits": {"cpu": "1"}}, "securityContext": {"runAsUser": 1}}})");
  const auto container_of = [](const char* name) {
    return Json{{"name", name}, {"args", {"-v"}}, {"env", {{{"name", "A"}}}}, {"volumeMounts", {{{"name", "more"}}}}};
  };
  out["spec"]["containers"] = Json::array({container_of(container)});
  out["spec"]["initContainers"] = Json::array({container_of("logfile")});
  return out;
}

inline const Json kSomeService =
    Json::parse(R"({"port": 1, "spec": {"selector": {"a": "b"}, "ports": [{"name": "p", "port": 1}]}})");

/// Adds to `out` the JSON pointers of `json`, whose own pointer is `at`, and of all values inside `json`.
inline void places(const Json& json, const Json::json_pointer& at, std::vector<Json::json_pointer>& out) {
  out.push_back(at);
  if (json.is_object()) {
    for (const auto& [name, value] : json.items()) places(value, at / name, out);
  } else if (json.is_array()) {
    for (std::size_t i = 0; i < json.size(); ++i) places(json[i], at / i, out);
  }
}

/// Replaces each value in the document except the root by values of other types, calls `attempt` with each changed document,
/// and expects that it does not throw.
template <class Attempt>
void with_anything_anywhere(const Json& document, Attempt attempt) {
  std::vector<Json::json_pointer> all;
  places(document, Json::json_pointer(), all);
  const Json values = Json::parse(R"(["x", 7, ["x"], [{}], {"x": "y"}])");
  for (const Json::json_pointer& at : all) {
    if (at.empty()) continue;
    for (const Json& value : values) {
      if (value.type() == document[at].type() && !value.is_array()) continue;
      Json changed = document;
      changed[at] = value;
      EXPECT_NO_THROW(attempt(changed)) << at.to_string() << " is " << value;
    }
  }
}

inline bool has_step(const plan::Plan& plan, std::string_view begin) {
  for (const auto& [name, lane] : plan.lanes()) {
    for (const auto& group : lane.groups()) {
      for (const plan::Step& step : group) {
        if (step.id.text().starts_with(begin)) return true;
      }
    }
  }
  return false;
}

/// Returns the simplest cluster, with an object `x` of that kind.
inline World world_with(const char* kind, const Json& spec) {
  World world;
  world.put({{"kind", "Secret"}, {"metadata", {{"name", "mine"}}}, {"data", {{"k", "QUFBQQ=="}}}});
  for (const std::string name : {"demo", "x"}) {
    const Json note{{std::string(api::kAnnotationSlurmKeyHash), "digest"}};
    world.put({{"kind", "Secret"},
               {"metadata", {{"name", keyring_name(name)}, {"labels", controller_labels(name)}, {"annotations", note}}},
               {"data", {{"slurm.key", "QUFBQQ=="}}}});
  }
  world.put({{"kind", "ConfigMap"},
             {"metadata", {{"name", "demo-config"}, {"labels", {{"app.kubernetes.io/name", "slurmctld"}}}}},
             {"data", {{"slurm.conf", "ClusterName=a\n"}}}});
  const Json key{{"name", "mine"}, {"key", "k"}};
  world.put({{"kind", "Controller"}, {"metadata", {{"name", "demo"}}}, {"spec", {{"slurmKeyRef", key}, {"jwtKeyRef", key}}}});
  world.put({{"kind", kind}, {"metadata", {{"name", "x"}}}, {"spec", spec}});
  return world;
}

/// Returns the plan for an object of that kind in the simplest cluster.
template <class Controller>
plan::Plan plan_of(const char* kind, const Json& spec) {
  return world_with(kind, spec).plan<Controller>({"default", "x"});
}

}  // namespace op::testing
