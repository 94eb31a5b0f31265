#include <gtest/gtest.h>

#include "operator/common/slinky.hpp"
#include "operator/restapi/observe.hpp"
#include "slinky/local_wiring.hpp"

namespace op::restapi {
namespace {

using core::Json;

class RestApiWakes : public ::testing::Test {
 protected:
  RestApiWakes() {
    put(caches_.restapis, {{"kind", "RestApi"}, {"metadata", {{"name", "r"}}}, {"spec", {{"controllerRef", {{"name", "x"}}}}}});
  }

  template <class Record>
  std::vector<std::string> put(kube::Cache<Record>& cache, Json document) {
    return wiring_.put(cache, std::move(document));
  }
  std::vector<std::string> put_conf(const std::string& text) {
    const Json owner{
        {"apiVersion", "slinky.slurm.net/v1beta1"}, {"kind", "Controller"}, {"name", "x"}, {"uid", "x"}, {"controller", true}};
    return put(caches_.config_maps, {{"kind", "ConfigMap"},
                                     {"metadata", {{"name", "x-config"}, {"ownerReferences", Json::array({owner})}}},
                                     {"data", {{"slurm.conf", text}}}});
  }

  LocalWiring wiring_;
  RestApiController controller_{wiring_};
  Caches caches_{wiring_};
  const std::vector<std::string> none_, itself_{"restapi ns/r"};
};

TEST_F(RestApiWakes, OnEachSlurmConf) {
  EXPECT_EQ(put_conf("ClusterName=a\nSlurmctldPort=1\n"), itself_);
  EXPECT_EQ(put_conf("ClusterName=a\nSlurmctldPort=1\n"), none_);
  EXPECT_EQ(put_conf("ClusterName=a\nSlurmctldPort=1\nCommunicationParameters=EnableIPv6\n").size(), 2U);
  EXPECT_EQ(put_conf("ClusterName=a\nSlurmctldPort=2\n").size(), 2U);
}

TEST_F(RestApiWakes, OnTheNodeSetsOfItsController) {
  const auto nodeset = [](const char* controller) {
    return Json{{"kind", "NodeSet"}, {"metadata", {{"name", "n"}}}, {"spec", {{"controllerRef", {{"name", controller}}}}}};
  };
  EXPECT_EQ(put(caches_.nodesets, nodeset("y")), none_);
  Json named = nodeset("x");
  named["metadata"]["generation"] = 2;
  EXPECT_EQ(put(caches_.nodesets, named), itself_);
  named["status"]["replicas"] = 1;
  EXPECT_EQ(put(caches_.nodesets, named), none_) << "a status alone does not count";
}

}  // namespace
}  // namespace op::restapi
