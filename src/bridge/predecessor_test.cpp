#include "bridge/predecessor.hpp"

#include <gtest/gtest.h>

#include "kube/testing/client_fixture.hpp"

namespace bridge {
namespace {

using core::Json;

const std::string kWebhook = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/hook";
const std::string kScale = "/apis/apps/v1/namespaces/ns/deployments/b/scale";
const Json kGone{{"kind", "Status"}, {"reason", "NotFound"}};
const Json kDone{{"kind", "Status"}, {"metadata", Json::object()}};

class EndPredecessor : public testing::Test, protected kube::ClientFixture {
 protected:
  EndPredecessor() {
    client.set_lease_deadline([] { return std::nullopt; });
  }
  void scaled(int status = 200) {
    const auto scale = api.take("PATCH", kScale);
    EXPECT_EQ(scale.body(), (Json{{"spec", {{"replicas", 0}}}}));
    scale.reply(status, status == 200 ? kDone : kGone);
  }
};

TEST_F(EndPredecessor, ItsWebhookGoesFirst) {
  end_predecessor(loop, log, client, {{"ns", "b"}, "hook"});
  EXPECT_EQ(api.sent.size(), 1U);
  api.take("DELETE", kWebhook).reply(200, kDone);
  scaled();
  EXPECT_TRUE(api.sent.empty());
}

TEST_F(EndPredecessor, WhatIsGoneIsSkipped) {
  end_predecessor(loop, log, client, {{"ns", "b"}, "hook"});
  api.take("DELETE", kWebhook).reply(404, kGone);
  scaled(404);
  EXPECT_TRUE(api.sent.empty());
  loop.advance(core::Duration{60000});
  EXPECT_TRUE(api.sent.empty());

  end_predecessor(loop, log, client, {{"ns", "b"}, ""});
  scaled();
}

TEST_F(EndPredecessor, WhatFailsIsTriedAgain) {
  end_predecessor(loop, log, client, {{"ns", "b"}, "hook"});
  api.take("DELETE", kWebhook).reply(403, {{"kind", "Status"}, {"reason", "Forbidden"}});
  EXPECT_TRUE(api.sent.empty()) << "while it has its webhook, it stays";
  loop.advance(core::Duration{5000});
  api.take("DELETE", kWebhook).reply(200, kDone);
  api.take("PATCH", kScale).reply(403, {{"kind", "Status"}, {"reason", "Forbidden"}});
  loop.advance(core::Duration{5000});
  api.take("DELETE", kWebhook).reply(404, kGone);
  scaled();
}

}  // namespace
}  // namespace bridge
