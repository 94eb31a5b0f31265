#include "operator/testing/fields.hpp"

#include <gtest/gtest.h>

#include "operator/restapi/observe.hpp"

namespace op::restapi {
namespace {

using namespace op::testing;

TEST(Fields, EachOfARestApiHasAnEffectThatIsTakenBack) {
  const Json base = Json::parse(R"({
    "controllerRef": {"name": "demo"}, "replicas": 2,
    "slurmrestd": {"image": "x:26.05", "args": ["-v"], "env": [{"name": "A", "value": "1"}]},
    "template": {"metadata": {"labels": {"b": "c"}, "annotations": {"d": "e"}}, "spec": {"nodeSelector": {"f": "g"}}},
    "sssdConfRef": {"name": "mine", "key": "k"},
    "service": {"metadata": {"labels": {"b": "c"}, "annotations": {"d": "e"}}, "spec": {"type": "NodePort"}, "port": 80,
                "nodePort": 30080}})");
  const Findings wanted{{"sssdConfRef.optional", "told"}};
  EXPECT_EQ(field_findings("RestApi", base, states_of<RestApiController>("RestApi")), wanted);
}

}  // namespace
}  // namespace op::restapi
