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
    world.nodeset["spec"].update(spec);
    return plan_nodeset(world.observe());
  };
  const Json spec{{"slurmd", some_container("slurmd")},
                  {"logfile", {{"image", "x"}, {"args", {"-v"}}}},
                  {"template", some_pod("slurmd")},
                  {"volumeClaimTemplates", Json::parse(R"([{"metadata": {"name": "a"}}])")}};
  ASSERT_TRUE(has_step(attempt(spec), "create Pod"));
  with_anything_anywhere(spec, attempt);
}

}  // namespace
}  // namespace op::nodeset
