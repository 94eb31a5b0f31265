#include "operator/testing/opaque.hpp"

#include <gtest/gtest.h>

#include "operator/restapi/observe.hpp"

namespace op::restapi {
namespace {

using namespace op::testing;

TEST(OpaqueValues, NothingInARestApiEndsAPass) {
  const auto attempt = [](const Json& spec) {
    Json all{{"controllerRef", {{"name", "demo"}}}};
    all.update(spec);
    return plan_of<RestApiController>("RestApi", all);
  };
  const Json spec{
      {"slurmrestd", some_container("slurmrestd")}, {"template", some_pod("slurmrestd")}, {"service", kSomeService}};
  ASSERT_TRUE(has_step(attempt(spec), "apply Deployment"));
  with_anything_anywhere(spec, attempt);
}

}  // namespace
}  // namespace op::restapi
