#include "slinky/names.hpp"

#include <gtest/gtest.h>

#include "slinky/worker_names.hpp"

namespace slinky {
namespace {

TEST(Names, AreThoseOfTheGoOperator) {
  EXPECT_EQ(controller_object_name("x"), "x-controller");
  EXPECT_EQ(config_map_name("x"), "x-config");
  EXPECT_EQ(restapi_object_name("x"), "x-restapi");
  EXPECT_EQ(workers_service_name("x"), "slurm-workers-x");
  EXPECT_EQ(workers_pdb_name("x"), "slurm-workers-pdb-x");
  EXPECT_EQ(controller_labels("x"), (kube::StringMap{{"app.kubernetes.io/name", "slurmctld"},
                                                     {"app.kubernetes.io/instance", "x"},
                                                     {"app.kubernetes.io/component", "controller"}}));
  EXPECT_EQ(worker_labels("n", "x"), (kube::StringMap{{"app.kubernetes.io/name", "slurmd"},
                                                      {"app.kubernetes.io/instance", "n"},
                                                      {"app.kubernetes.io/component", "worker"},
                                                      {"slinky.slurm.net/cluster", "x"}}));
}

TEST(Names, OfTheLongestObjectsFit) {
  constexpr std::size_t kLabel = 63;
  const std::string controller(api::kMaxControllerName, 'x');
  EXPECT_LE(controller_internal_service_name(controller).size(), kLabel);
  EXPECT_LE(workers_service_name(controller).size(), kLabel);
  EXPECT_EQ((controller_object_name(controller) + "-0123456789").size(), kLabel);  // controller-revision-hash of its pods.
  EXPECT_EQ((backup_object_name(std::string(api::kMaxNameWithBackups, 'x')) + "-0123456789").size(), kLabel);
  EXPECT_EQ(restapi_object_name(std::string(api::kMaxRestApiName, 'x')).size(), kLabel);
  EXPECT_EQ(pod_name(std::string(api::kMaxNodeSetName, 'x'), 9, 0).size(), kLabel);
  EXPECT_EQ(hostname_problem(std::string(api::kMaxHostnamePrefix, 'x'), 9, 0), "");
  EXPECT_NE(hostname_problem(std::string(api::kMaxHostnamePrefix + 1, 'x'), 9, 0), "");
}

TEST(Names, KeysAreNamedOrGenerated) {
  api::ControllerSpec spec;
  EXPECT_EQ(slurm_key_ref(spec, "x"), (KeyRef{.secret = "x-slurm-key", .key = "slurm.key", .generated = true}));
  EXPECT_EQ(jwt_key_ref(spec, "x"), (KeyRef{.secret = "x-jwt-key", .key = "jwt.key", .generated = true}));
  spec.jwt_hs256_key_ref.emplace();
  spec.jwt_hs256_key_ref->name = "old";
  spec.jwt_hs256_key_ref->key = "k";
  EXPECT_EQ(jwt_key_ref(spec, "x"), (KeyRef{"old", "k"}));
  spec.jwt_key_ref.emplace();
  spec.jwt_key_ref->name = "new";
  spec.jwt_key_ref->key = "k";
  EXPECT_EQ(jwt_key_ref(spec, "x"), (KeyRef{"new", "k"}));
}

TEST(Names, EndpointsFollowTheServicesPort) {
  api::ControllerSpec spec;
  EXPECT_EQ(controller_endpoint(spec, "ns", "x").str(), "x-controller.ns:6817");
  EXPECT_EQ(conf_servers(spec, "ns", "x"), "x-controller.ns:6817");
  spec.ha = {.enabled = true, .backups = 2};
  EXPECT_EQ(conf_servers(spec, "ns", "x"),
            "x-controller-0.ns:6817,x-controller-backup-0.ns:6817,x-controller-backup-1.ns:6817,x-controller.ns:6817");
  spec.service.port = 7000;
  EXPECT_EQ(controller_endpoint(spec, "ns", "x").str(), "x-controller.ns:7000");
  spec.external = true;
  spec.external_config = api::ExternalConfig{"ctl.example", 6900};
  EXPECT_EQ(controller_endpoint(spec, "ns", "x").str(), "ctl.example:6900");
  api::RestApiSpec restapi;
  EXPECT_EQ(restapi_endpoint(restapi, "ns", "r").str(), "r-restapi.ns:6820");
  restapi.service.port = 80;
  EXPECT_EQ(restapi_endpoint(restapi, "ns", "r").str(), "r-restapi.ns:80");
}

TEST(Names, SlurmNodeSetNameFollowsTheHostname) {
  api::NodeSetSpec spec;
  EXPECT_EQ(slurm_node_set_name(spec, "cpu"), "cpu");
  spec.pod_template.spec["hostname"] = "gpu--";
  EXPECT_EQ(slurm_node_set_name(spec, "cpu"), "gpu");
  kube::Object object;
  object.meta.name = "cpu";
  object.body = {{"spec", {{"replicas", "three"}, {"template", {{"spec", {{"hostname", "gpu--"}}}}}}}};
  EXPECT_EQ(slurm_node_set_name(object), "gpu");
  spec.pod_template.spec["hostname"] = "---";
  EXPECT_EQ(slurm_node_set_name(spec, "cpu"), "cpu");
}

}  // namespace
}  // namespace slinky
