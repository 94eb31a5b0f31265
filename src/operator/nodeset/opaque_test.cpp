#include "operator/testing/opaque.hpp"

#include <gtest/gtest.h>

#include "operator/nodeset/plan.hpp"
#include "operator/nodeset/testing/world.hpp"

namespace op::nodeset {
namespace {

using namespace op::testing;

TEST(OpaqueValues, NothingInANodeSetEndsAPass) {
  const auto attempt = [](const Json& spec) {
    nodeset::testing::World world;
    world.nodeset()["spec"].update(spec);
    return plan_nodeset(world.observe());
  };
  Json spec{
      {"slurmd", some_container("slurmd")}, {"logfile", {{"image", "x"}, {"args", {"-v"}}}}, {"template", some_pod("slurmd")}};
  ASSERT_TRUE(has_step(attempt(spec), "create Pod"));
  with_anything_anywhere(spec, attempt);
}

TEST(OpaqueValues, NothingInTemplatesOfClaimsEndsAPass) {
  const auto attempt = [](const Json& spec) {
    nodeset::testing::World world;
    world.nodeset()["spec"].update(spec);
    const Json labels{{"app.kubernetes.io/name", "slurmd"}, {"app.kubernetes.io/instance", "cpu"}};
    world.put({{"kind", "PersistentVolumeClaim"}, {"metadata", {{"name", "a-cpu-0"}, {"labels", labels}}}});
    return plan_nodeset(world.observe());
  };
  const Json one = Json::parse(R"({"metadata": {"name": "a", "labels": {"a": "b"}, "annotations": {}},
    "spec": {"accessModes": [], "storageClassName": "", "volumeMode": "", "resources": {"requests": {"a": "b"}}}})");
  Json other = one;
  other["metadata"]["name"] = "b";
  for (const Json& spec : {Json{{"volumeClaimTemplates", {one}}}, Json{{"volumeClaimTemplates", {one, other}}}}) {
    ASSERT_TRUE(has_step(attempt(spec), "create"));
    with_anything_anywhere(spec, attempt);
  }
}

}  // namespace
}  // namespace op::nodeset
