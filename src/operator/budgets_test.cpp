#include "operator/budgets.hpp"

#include <gtest/gtest.h>

#include "kube/testing/client_fixture.hpp"

namespace op {
namespace {

using core::Json;

class RemoveBudgets : public testing::Test, protected kube::ClientFixture {};

Json budget(const char* name, const char* app, const char* owner_group) {
  Json owner{{"apiVersion", std::string(owner_group) + "/v1beta1"},
             {"kind", "Controller"},
             {"name", "demo"},
             {"uid", "c"},
             {"controller", true}};
  return {{"metadata",
           {{"name", name},
            {"namespace", "ns"},
            {"uid", std::string(name) + "-uid"},
            {"labels", {{"app.kubernetes.io/name", app}, {"slinky.slurm.net/cluster", "demo"}}},
            {"ownerReferences", Json::array({owner})}}}};
}

TEST_F(RemoveBudgets, TakesThoseOfWorkersAndNoOthers) {
  std::optional<core::Result<int>> result;
  const auto keep = [&](core::Result<int> r) { result = std::move(r); };

  remove_budgets(client, {}, keep);
  api.take("GET", "/apis/policy/v1/poddisruptionbudgets")
      .reply(200,
             {{"kind", "List"},
              {"metadata", Json::object()},
              {"items", Json::array({budget("a", "slurmd", "slinky.slurm.net"), budget("b", "slurmd", "other.net"),
                                     budget("c", "web", "slinky.slurm.net"), budget("d", "slurmd", "slinky.slurm.net")})}});
  const std::string path = "/apis/policy/v1/namespaces/ns/poddisruptionbudgets/";
  const auto first = api.take("DELETE", path + "a");
  EXPECT_EQ(first.body()["preconditions"]["uid"], "a-uid");
  first.reply(200, {{"kind", "Status"}, {"metadata", Json::object()}});
  EXPECT_FALSE(result);
  api.take("DELETE", path + "d").reply(404, {{"kind", "Status"}, {"reason", "NotFound"}});
  EXPECT_TRUE(api.sent.empty());
  ASSERT_TRUE(result && *result);
  EXPECT_EQ(**result, 2);

  result.reset();
  remove_budgets(client, {"x", "y"}, keep);
  api.take("GET", "/apis/policy/v1/namespaces/x/poddisruptionbudgets")
      .reply(403, {{"kind", "Status"}, {"reason", "Forbidden"}});
  EXPECT_FALSE(result) << "the others are looked through all the same";
  api.take("GET", "/apis/policy/v1/namespaces/y/poddisruptionbudgets")
      .reply(200, {{"kind", "List"}, {"metadata", Json::object()}, {"items", Json::array()}});
  ASSERT_TRUE(result);
  EXPECT_FALSE(*result);
}

}  // namespace
}  // namespace op
