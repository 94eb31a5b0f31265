#include "operator/testing/fields.hpp"

#include <gtest/gtest.h>

#include "operator/controller/observe.hpp"

namespace op::controller {
namespace {

using namespace op::testing;

const kube::Key kKey{"default", "x"};

/// Creates a ready pod for each StatefulSet, and replaces a pod that has another template. After that, slurmctld has loaded the
/// present files.
void start_pods(World& world) {
  for (const char* name : {"x-controller", "x-controller-backup"}) {
    const Json* set = world.find("StatefulSet", {"default", name});
    if (set == nullptr) continue;
    const std::string pod = std::string(name) + "-0";
    const Json wanted = (*set)["spec"]["template"];
    if (const Json* there = world.find("Pod", {"default", pod}); there != nullptr && (*there)["template"] == wanted) continue;
    world.remove("Pod", {"default", pod});
    Json made = wanted;
    made["kind"] = "Pod";
    made["template"] = wanted;
    made["metadata"]["name"] = pod;
    made["status"] = {{"phase", "Running"}, {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}};
    world.put(std::move(made));
    if (const Json* config = world.find("ConfigMap", {"default", "x-config"}))
      world.loaded = core::get_string(*config, {"metadata", "annotations", "slinky.slurm.net/slurm-config-hash"});
  }
}

World begin(const Json& spec) {
  World world = world_with("Controller", spec);
  world.put({{"kind", "RestApi"}, {"metadata", {{"name", "x"}}}, {"spec", {{"controllerRef", {{"name", "x"}}}}}});
  world.put({{"kind", "Node"}, {"metadata", {{"name", "n"}, {"labels", {{"zone", "a"}, {"rack", "b"}}}}}});
  world.put({{"kind", "ConfigMap"}, {"metadata", {{"name", "files"}}}, {"data", {{"10-a.sh", "#!/bin/sh\n"}}}});
  world.put({{"kind", "CustomResourceDefinition"},
             {"metadata", {{"name", "servicemonitors.monitoring.coreos.com"}, {"namespace", ""}}}});
  world.put({{"kind", "Accounting"},
             {"metadata", {{"name", "db"}, {"generation", 1}}},
             {"spec", {{"external", true}, {"externalConfig", {{"host", "db.example.org"}, {"port", 6819}}}}},
             {"status",
              {{"conditions",
                {{{"type", "Serving"},
                  {"status", "True"},
                  {"reason", "PortAnswers"},
                  {"message", ""},
                  {"lastTransitionTime", "2026-01-01T00:00:00Z"},
                  {"observedGeneration", 1}}}}}}});
  world.slurmctld = Slurmctld::kObeys;
  return world;
}

State ask(World& world, const Json& spec) {
  world.edit("Controller", kKey, spec);
  settle<ControllerController>(world, kKey, [&] { start_pods(world); });
  return state_of(world, "Controller");
}

const States kStates = in_turn<World>(begin, ask);

TEST(Fields, EachOfAControllerHasAnEffectThatIsTakenBack) {
  const Json base = Json::parse(R"({
    "clusterName": "site", "slurmKeyRef": {"name": "mine", "key": "k"}, "jwtKeyRef": {"name": "mine", "key": "k"},
    "jwtHs256KeyRef": {"name": "other", "key": "k"}, "jwksKeyRef": {"name": "files", "key": "10-a.sh"},
    "accountingRef": {"name": "db"},
    "ha": {"enabled": true, "backups": 2}, "persistence": {"enabled": true, "existingClaim": "shared"},
    "slurmctld": {"image": "x:26.05", "args": ["-v"]}, "reconfigure": {"image": "y:26.05"}, "logfile": {"image": "x:26.05"},
    "inplaceReconfigure": true,
    "template": {"metadata": {"labels": {"b": "c"}, "annotations": {"d": "e"}}, "spec": {"nodeSelector": {"f": "g"}}},
    "extraConf": "SlurmctldDebug=debug\n", "sssdConfRef": {"name": "mine", "key": "k"},
    "configFileRefs": [{"name": "files"}], "topology": {"type": "Block", "nodeLabels": ["zone", "rack"], "blockSizes": [4]},
    "prologScriptRefs": [{"name": "files"}], "epilogScriptRefs": [{"name": "files"}],
    "prologSlurmctldScriptRefs": [{"name": "files"}], "epilogSlurmctldScriptRefs": [{"name": "files"}],
    "service": {"metadata": {"labels": {"b": "c"}, "annotations": {"d": "e"}}, "spec": {"type": "NodePort"}, "port": 80,
                "nodePort": 30080},
    "metrics": {"enabled": true, "serviceMonitor": {
      "enabled": true, "labels": {"b": "c"}, "annotations": {"d": "e"}, "interval": "30s", "scrapeTimeout": "10s",
      "endpoints": [{"path": "/metrics/jobs"}], "tokenSecretRef": {"name": "mine", "key": "k"}}}})");
  Findings wanted{
      {"deletionPolicy", "no effect"},  // Tested in scenario deletion.
      {"externalConfig", "no effect"},  // Tested with `external` below.
  };
  // jwtKeyRef takes precedence over jwtHs256KeyRef.
  for (const char* field : {"", ".name", ".key"}) wanted[std::string("jwtHs256KeyRef") + field] = "no effect";
  for (const char* ref :
       {"slurmKeyRef", "jwtKeyRef", "jwtHs256KeyRef", "jwksKeyRef", "sssdConfRef", "metrics.serviceMonitor.tokenSecretRef"})
    wanted[std::string(ref) + ".optional"] = "told";
  // These fields describe the claim that the StatefulSet creates if the spec names no existing claim.
  for (const char* field : {"accessModes", "dataSource", "dataSourceRef", "resources", "selector", "storageClassName",
                            "volumeAttributesClassName", "volumeMode", "volumeName"})
    wanted[std::string("persistence.") + field] = "no effect";
  EXPECT_EQ(field_findings("Controller", base, kStates), wanted);
}

TEST(Fields, EachOfAControllerThatIsNearlyEmptyHasAnEffectThatIsTakenBack) {
  const Json base =
      Json::parse(R"({"jwtHs256KeyRef": {"name": "mine", "key": "k"}, "persistence": {"storageClassName": "fast"}})");
  const Findings wanted{{"deletionPolicy", "no effect"},
                        {"externalConfig", "no effect"},
                        {"jwtHs256KeyRef.optional", "told"},
                        {"reconfigure", "no effect"}};  // Has an effect only with inplaceReconfigure.
  // The claim is created only once. So this test skips the claim's fields, and scenario persistence_fixed compares them between
  // worlds.
  EXPECT_EQ(field_findings("Controller", base, kStates, {"persistence"}), wanted);
}

TEST(Fields, EachOfAnExternalControllerHasAnEffectThatIsTakenBack) {
  const Json base = Json::parse(R"({
    "slurmKeyRef": {"name": "mine", "key": "k"}, "jwtKeyRef": {"name": "mine", "key": "k"},
    "jwtHs256KeyRef": {"name": "other", "key": "k"}, "external": true,
    "externalConfig": {"host": "h.example.org", "port": 6900}, "clusterName": "site"})");
  Findings wanted{{"deletionPolicy", "no effect"}};  // The deletion policy of an external cluster is always Drain.
  for (const char* field : {"", ".name", ".key"}) wanted[std::string("jwtHs256KeyRef") + field] = "no effect";
  for (const char* field : {"configFileRefs",
                            "epilogScriptRefs",
                            "epilogSlurmctldScriptRefs",
                            "ha",
                            "inplaceReconfigure",
                            "jwksKeyRef",
                            "jwtHs256KeyRef.optional",
                            "jwtKeyRef.optional",
                            "logfile",
                            "metrics",
                            "persistence",
                            "prologScriptRefs",
                            "prologSlurmctldScriptRefs",
                            "reconfigure",
                            "service",
                            "slurmctld",
                            "slurmKeyRef.optional",
                            "sssdConfRef",
                            "template",
                            "topology"})
    wanted[field] = "told";
  EXPECT_EQ(field_findings("Controller", base, kStates), wanted);
}

}  // namespace
}  // namespace op::controller
