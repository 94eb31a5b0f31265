#include "operator/testing/fields.hpp"

#include <gtest/gtest.h>

#include "operator/loginset/observe.hpp"

namespace op::loginset {
namespace {

using namespace op::testing;

TEST(Fields, EachOfALoginSetHasAnEffectThatIsTakenBack) {
  const Json base = Json::parse(R"({
    "controllerRef": {"name": "demo"}, "replicas": 2,
    "login": {"image": "x:26.05", "env": [{"name": "A", "value": "1"}]}, "initconf": {"image": "y:26.05"},
    "template": {"metadata": {"labels": {"b": "c"}, "annotations": {"d": "e"}}, "spec": {"nodeSelector": {"f": "g"}}},
    "rootSshAuthorizedKeys": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA", "authorizedKeysRefs": [{"name": "keys"}], "extraSshdConfig": "Banner none",
    "sssdConfRef": {"name": "mine", "key": "k"},
    "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": "50%"}},
    "service": {"metadata": {"labels": {"b": "c"}, "annotations": {"d": "e"}}, "spec": {"type": "NodePort"}, "port": 80,
                "nodePort": 30080}})");
  const Findings wanted{{"sssdConfRef.optional", "told"}, {"strategy.type", "no effect when it is set"}};
  EXPECT_EQ(field_findings("LoginSet", base, states_of<LoginSetController>("LoginSet")), wanted);
}

}  // namespace
}  // namespace op::loginset
