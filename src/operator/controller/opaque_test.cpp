#include "operator/testing/opaque.hpp"

#include <gtest/gtest.h>

#include "operator/controller/observe.hpp"

namespace op::controller {
namespace {

using namespace op::testing;

TEST(OpaqueValues, NothingInAControllerEndsAPass) {
  const Json key{{"name", "mine"}, {"key", "k"}};
  const Json fixed{{"slurmKeyRef", key}, {"jwtKeyRef", key}, {"inplaceReconfigure", true}};
  const auto attempt = [&](const Json& spec) {
    Json all = fixed;
    all.update(spec);
    return plan_of<ControllerController>("Controller", all);
  };
  const Json spec{{"slurmctld", some_container("slurmctld")},
                  {"reconfigure", {{"args", {"-v"}}}},
                  {"logfile", {{"image", "x"}, {"args", {"-v"}}}},
                  {"template", some_pod("slurmctld")},
                  {"service", kSomeService}};
  ASSERT_TRUE(has_step(attempt(spec), "apply StatefulSet"));
  with_anything_anywhere(spec, attempt);
}

}  // namespace
}  // namespace op::controller
