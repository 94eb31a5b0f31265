#include "slinky/rights.hpp"

#include <gtest/gtest.h>

namespace slinky {
namespace {

using core::Json;
namespace kinds = kube::resources;

TEST(Rights, AreOneRuleForResourcesOfAGroupWithTheSameVerbs) {
  Rights rights;
  rights.add(kinds::kDeployment, {"get", "create"});
  rights.add(kinds::kStatefulSet, {"create"});
  rights.add(kinds::kStatefulSet, {"get"});
  rights.add(kinds::kPod, {"create", "get"});
  rights.add(kinds::kPod, {"patch"}, "status");
  EXPECT_EQ(rights.rules(), Json::parse(R"([
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "create"]},
    {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]},
    {"apiGroups": ["apps"], "resources": ["deployments", "statefulsets"], "verbs": ["get", "create"]}])"));
}

TEST(Rights, RefuseAVerbThatTheyCannotWrite) {
  Rights rights;
  EXPECT_THROW(rights.add(kinds::kPod, {"deletecollection"}), std::invalid_argument);
}

}  // namespace
}  // namespace slinky
