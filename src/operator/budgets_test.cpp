#include "operator/budgets.hpp"

#include <gmock/gmock.h>
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

class LookForOperator : public testing::Test, protected kube::ClientFixture {
 protected:
  void look() {
    result.reset();
    look_for_operator(loop, client, {"ns", "op"}, [this](core::Result<std::string> r) { result = std::move(r); });
  }
  void deployment_is_gone() {
    api.take("GET", "/apis/apps/v1/namespaces/ns/deployments/op").reply(404, {{"kind", "Status"}, {"reason", "NotFound"}});
  }
  void lease(const char* holder, int version) {
    api.take("GET", "/apis/coordination.k8s.io/v1/namespaces/ns/leases/op")
        .reply(200, {{"kind", "Lease"},
                     {"metadata", {{"name", "op"}, {"resourceVersion", std::to_string(version)}}},
                     {"spec", {{"holderIdentity", holder}, {"leaseDurationSeconds", 15}}}});
  }
  void wait(int seconds) { loop.advance(core::Duration{1000 * seconds}); }
  std::optional<core::Result<std::string>> result;
};

TEST_F(LookForOperator, ItsDeploymentIsEnough) {
  look();
  api.take("GET", "/apis/apps/v1/namespaces/ns/deployments/op")
      .reply(200, {{"kind", "Deployment"}, {"metadata", {{"name", "op"}}}});
  ASSERT_TRUE(result && *result);
  EXPECT_EQ(**result, "Deployment ns/op");
  look();
  api.take("GET", "/apis/apps/v1/namespaces/ns/deployments/op").reply(403, {{"kind", "Status"}, {"reason", "Forbidden"}});
  ASSERT_TRUE(result);
  EXPECT_FALSE(*result) << "what cannot be read may be there";
}

TEST_F(LookForOperator, WithoutALeaseOrAHolderThereIsNone) {
  look();
  deployment_is_gone();
  api.take("GET", "/apis/coordination.k8s.io/v1/namespaces/ns/leases/op")
      .reply(404, {{"kind", "Status"}, {"reason", "NotFound"}});
  ASSERT_TRUE(result && *result);
  EXPECT_EQ(**result, "");
  look();
  deployment_is_gone();
  lease("op-1", 1);
  EXPECT_FALSE(result);
  wait(2);
  lease("", 2);  // The operator has ended.
  ASSERT_TRUE(result && *result);
  EXPECT_EQ(**result, "");
}

TEST_F(LookForOperator, AHolderThatDoesNotRenewItsLeaseIsGone) {
  look();
  deployment_is_gone();
  for (int i = 0; i < 8; ++i) {
    lease("op-1", 1);
    EXPECT_FALSE(result);
    wait(2);
  }
  lease("op-1", 1);
  ASSERT_TRUE(result && *result);
  EXPECT_EQ(**result, "");
}

TEST_F(LookForOperator, AHolderThatDoesWithoutItsDeploymentIsAnError) {
  look();
  deployment_is_gone();
  int version = 0;
  while (!result && version < 100) {
    lease("op-1", ++version);
    wait(2);
  }
  ASSERT_TRUE(result && !*result) << "budgets are left: that is no success";
  EXPECT_THAT(result->error().message, testing::HasSubstr("Deployment ns/op is gone, but operator op-1 renews"));
}

}  // namespace
}  // namespace op
