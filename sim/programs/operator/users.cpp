#include "sim/programs/operator/users.hpp"

#include "api/well_known.hpp"
#include "core/base64.hpp"
#include "sim/histories/world.hpp"

namespace sim {

using core::Json;

Json controller_json(const std::string& extra_conf) {
  Json out{{"apiVersion", api::kApiVersion},
           {"kind", "Controller"},
           {"metadata", {{"name", World::kCluster}}},
           {"spec", Json::object()}};
  if (!extra_conf.empty()) out["spec"]["extraConf"] = extra_conf;
  return out;
}

Json restapi_json() {
  return {{"apiVersion", api::kApiVersion},
          {"kind", "RestApi"},
          {"metadata", {{"name", World::kCluster}}},
          {"spec", {{"controllerRef", {{"name", World::kCluster}}}}}};
}

Json nodeset_json(const std::string& name, int replicas) {
  return {{"apiVersion", api::kApiVersion},
          {"kind", "NodeSet"},
          {"metadata", {{"name", name}}},
          {"spec",
           {{"controllerRef", {{"name", World::kCluster}}},
            {"replicas", replicas},
            {"oversubscribeNode", true},
            {"extraConf", "CPUs=2 RealMemory=1000"},
            {"partition", {{"enabled", true}}}}}};
}

Json loginset_json(int replicas) {
  return {{"apiVersion", api::kApiVersion},
          {"kind", "LoginSet"},
          {"metadata", {{"name", kLogin}}},
          {"spec",
           {{"controllerRef", {{"name", World::kCluster}}},
            {"replicas", replicas},
            {"rootSshAuthorizedKeys", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA root\n"}}}};
}

Json accounting_json() {
  return {{"apiVersion", api::kApiVersion},
          {"kind", "Accounting"},
          {"metadata", {{"name", kAccounting}}},
          {"spec", {{"external", true}, {"externalConfig", {{"host", "slurmdbd.example.com"}, {"port", 6819}}}}}};
}

Json token_json(const std::string& name, const std::string& secret, const std::string& key) {
  return {{"apiVersion", api::kApiVersion},
          {"kind", "Token"},
          {"metadata", {{"name", name}}},
          {"spec", {{"jwtKeyRef", {{"name", secret}, {"key", key}}}, {"username", name}}}};
}

Json config_map_json(const std::string& name, const std::map<std::string, std::string>& data) {
  return {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", name}}}, {"data", data}};
}

Json secret_json(const std::string& name, const std::map<std::string, std::string>& data) {
  Json out{{"apiVersion", "v1"}, {"kind", "Secret"}, {"metadata", {{"name", name}}}, {"data", Json::object()}};
  for (const auto& [key, text] : data) out["data"][key] = core::base64_encode(text);
  return out;
}

}  // namespace sim
