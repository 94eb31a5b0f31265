#include "operator/testing/opaque.hpp"

#include <gtest/gtest.h>

#include "operator/loginset/observe.hpp"

namespace op::loginset {
namespace {

using namespace op::testing;

TEST(OpaqueValues, NothingInALoginSetEndsAPass) {
  const auto attempt = [](const Json& spec) {
    Json all{{"controllerRef", {{"name", "demo"}}}};
    all.update(spec);
    return plan_of<LoginSetController>("LoginSet", all);
  };
  const Json spec{{"login", some_container("login")},
                  {"initconf", some_container("initconf")},
                  {"template", some_pod("login")},
                  {"service", kSomeService}};
  ASSERT_TRUE(has_step(attempt(spec), "apply Service"));
  with_anything_anywhere(spec, attempt);
}

}  // namespace
}  // namespace op::loginset
