#include "operator/testing/opaque.hpp"

#include <gtest/gtest.h>

#include "operator/accounting/observe.hpp"

namespace op::accounting {
namespace {

using namespace op::testing;

TEST(OpaqueValues, NothingInAnAccountingEndsAPass) {
  const auto attempt = [](const Json& spec) {
    Json all = Json::parse(R"({"slurmKeyRef": {"name": "mine", "key": "k"}, "jwtKeyRef": {"name": "mine", "key": "k"},
                               "storageConfig": {"host": "db", "passwordKeyRef": {"name": "mine", "key": "k"}}})");
    all.update(spec);
    return plan_of<AccountingController>("Accounting", all);
  };
  const Json spec{{"slurmdbd", some_container("slurmdbd")}, {"template", some_pod("slurmdbd")}, {"service", kSomeService}};
  ASSERT_TRUE(has_step(attempt(spec), "apply StatefulSet"));
  with_anything_anywhere(spec, attempt);
}

}  // namespace
}  // namespace op::accounting
