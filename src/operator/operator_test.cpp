#include "operator/operator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>

#include "kube/testing/client_fixture.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/names.hpp"

namespace op {
namespace {

using core::Json;

kube::ObjectPtr object(const char* kind, const std::string& ns, const char* name, const Json& spec) {
  return kube::record_from_json<kube::Object>(
             {{"kind", kind}, {"metadata", {{"namespace", ns}, {"name", name}, {"uid", ns + name}}}, {"spec", spec}})
      .value();
}

Network network() {
  return {[](const slurm::Endpoint&) { return std::make_unique<kube::FakeTransport>(); }, {}};
}

/// Returns the paths of all requests of an operator that acts in `namespaces`. In the test, three namespaces have one cluster
/// each.
std::vector<std::string> keys_read(std::vector<std::string> namespaces) {
  kube::ClientFixture fake;
  kube::Manager manager{fake.loop, fake.random, fake.log, fake.client};
  const Operator it(fake.loop, fake.random, fake.log, manager, network(), {.namespaces = std::move(namespaces)});
  for (const std::string ns : {"a", "b", "c"}) {
    manager.cache<kube::Object>(resources::kController).upsert(object("Controller", ns, "x", Json::object()));
    manager.cache<kube::Object>(resources::kRestApi).upsert(object("RestApi", ns, "r", {{"controllerRef", {{"name", "x"}}}}));
  }
  fake.loop.run_ready();
  std::vector<std::string> out;
  for (const auto& sent : fake.api.sent) out.push_back(sent.request.target);
  return out;
}

TEST(Operator, ReadsKeysOnlyWhereItActs) {
  const auto key = [](const char* ns) { return "/api/v1/namespaces/" + std::string(ns) + "/secrets/x-jwt-key"; };
  EXPECT_EQ(keys_read({"a", "c"}), (std::vector{key("a"), key("c")}));
  EXPECT_EQ(keys_read({}), (std::vector{key("a"), key("b"), key("c")}));
}

TEST(Operator, WatchesKubernetesNodesOnlyWhereItMay) {
  for (const bool nodes : {true, false}) {
    kube::ClientFixture fake;
    kube::Manager manager{fake.loop, fake.random, fake.log, fake.client};
    const Operator it(fake.loop, fake.random, fake.log, manager, network(), {.namespaces = {"a"}, .kubernetes_nodes = nodes});
    manager.start();
    fake.loop.run_ready();
    int of_nodes = 0;
    int elsewhere = 0;
    const auto count = [&](const std::string& target) {
      of_nodes += static_cast<int>(target.starts_with("/api/v1/nodes"));
      elsewhere += static_cast<int>(target.find("/namespaces/") == std::string::npos);
    };
    for (const auto& sent : fake.api.sent) count(sent.request.target);
    for (const auto& stream : fake.api.streams) count(stream.request.target);
    EXPECT_GT(fake.api.sent.size() + fake.api.streams.size(), 5U);
    EXPECT_EQ(of_nodes > 0, nodes);
    EXPECT_EQ(elsewhere, of_nodes);
  }
}

TEST(Operator, TheChartGrantsWhatControllersDeclare) {
  const api::GeneratedFile file = cluster_role_file();
  std::ifstream in(file.path, std::ios::binary);
  std::stringstream have;
  have << in.rdbuf();
  EXPECT_EQ(have.str(), file.text) << file.path << " is not what controllers declare: run slurm-operator-gen";
}

}  // namespace
}  // namespace op
