#include "operator/testing/opaque.hpp"

#include <gtest/gtest.h>

#include "operator/common/pod_template.hpp"
#include "operator/common/services.hpp"

namespace op {
namespace {

using namespace op::testing;

// The schema already checks the input of the builders, but the builders do not rely on the schema.
TEST(OpaqueValues, NothingEndsAMerge) {
  const Json container = some_container("c");
  with_anything_anywhere(container, [&](const Json& over) { return merge_container(container, over); });
  const Json pod = some_pod("c")["spec"];
  with_anything_anywhere(pod, [&](const Json& over) {
    api::PodTemplate wanted;
    wanted.spec = over;
    return merge_pod_template(pod, wanted, {}, {{"a", "b"}}, {});
  });
  const Json service = kSomeService["spec"];
  with_anything_anywhere(service, [&](const Json& over) {
    return merge_service_spec(service, over, {{"a", "b"}}, Json::array({service_port("p", 1, "p")}));
  });
}

}  // namespace
}  // namespace op
