// Resources from the API server of the local cluster, shortened, for unit tests.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "core/json.hpp"

namespace cli {

inline core::Json json(std::string_view text) {
  auto parsed = core::parse_json(text);
  if (!parsed) throw std::runtime_error(parsed.error().message);
  // The conditions of our resources always have a lastTransitionTime.
  if (const core::Json* conditions = core::find(*parsed, {"status", "conditions"});
      conditions != nullptr && parsed->contains("apiVersion")) {
    for (core::Json& condition : (*parsed)["status"]["conditions"]) condition["lastTransitionTime"] = "2026-01-02T03:00:00Z";
  }
  return *parsed;
}

inline core::Json controller_object() {
  return json(R"({"apiVersion": "slinky.slurm.net/v1beta1", "kind": "Controller",
    "metadata": {"name": "slurm", "namespace": "hpc", "uid": "c-1", "finalizers": ["controller.slinky.slurm.net/teardown"]},
    "spec": {"slurmctld": {"image": "ghcr.io/slinkyproject/slurmctld:26.05-ubuntu26.04"}},
    "status": {"conditions": [
      {"type": "ConfigAccepted", "status": "True", "reason": "Accepted", "message": ""},
      {"type": "Degraded", "status": "False", "reason": "AsExpected", "message": ""},
      {"type": "Progressing", "status": "False", "reason": "Done", "message": ""},
      {"type": "Ready", "status": "True", "reason": "Ready", "message": ""},
      {"type": "Reconfigured", "status": "True", "reason": "Loaded", "message": ""}]}})");
}

inline core::Json restapi_object() {
  return json(R"({"apiVersion": "slinky.slurm.net/v1beta1", "kind": "RestApi",
    "metadata": {"name": "slurm", "namespace": "hpc", "uid": "r-1", "finalizers": ["restapi.slinky.slurm.net/serve"]},
    "spec": {"controllerRef": {"name": "slurm"}},
    "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": ""}]}})");
}

inline core::Json nodeset_object() {
  return json(R"({"apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet",
    "metadata": {"name": "cpu", "namespace": "hpc", "uid": "n-1", "generation": 3,
                 "finalizers": ["nodeset.slinky.slurm.net/drain", "example.com/other"]},
    "spec": {"controllerRef": {"name": "slurm"}, "replicas": 3, "partition": {"enabled": true, "config": "State=UP"}},
    "status": {"desired": 3, "replicas": 3, "readyReplicas": 3, "updatedReplicas": 2, "nodeSetHash": "new", "observedGeneration": 3,
      "conditions": [
        {"type": "Degraded", "status": "False", "reason": "AsExpected", "message": ""},
        {"type": "Progressing", "status": "True", "reason": "Updating",
         "message": "1 of 3 workers still use an earlier template; 1 of at most 1 are out of service; waiting: cpu-1 runs job 7"},
        {"type": "Ready", "status": "True", "reason": "Ready", "message": ""}]}})");
}

/// Returns a ready worker with these states in Slurm ("Idle", "Drain") and this reason.
inline core::Json worker_object(const std::string& name, std::initializer_list<const char*> states,
                                const std::string& reason = "") {
  core::Json pod = json(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "hpc", "labels": {
      "app.kubernetes.io/name": "slurmd", "app.kubernetes.io/instance": "cpu", "slinky.slurm.net/cluster": "slurm",
      "controller-revision-hash": "new"}, "annotations": {}},
    "spec": {"nodeName": "kube-1"}, "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})");
  pod["metadata"]["name"] = name;
  pod["metadata"]["uid"] = "uid-" + name;
  pod["metadata"]["annotations"]["nodeset.slinky.slurm.net/registered"] = name;
  pod["metadata"]["labels"]["nodeset.slinky.slurm.net/pod-hostname"] = name;
  for (const char* state : states)
    pod["status"]["conditions"].push_back(
        {{"type", std::string("SlurmNodeState") + state}, {"status", "True"}, {"message", reason}});
  return pod;
}

}  // namespace cli
