#include <gtest/gtest.h>

#include "operator/common/slinky.hpp"
#include "operator/loginset/observe.hpp"
#include "slinky/local_wiring.hpp"

namespace op::loginset {
namespace {

using core::Json;

class LoginSetWakes : public ::testing::Test {
 protected:
  LoginSetWakes() {
    put(caches_.loginsets,
        {{"kind", "LoginSet"}, {"metadata", {{"name", "l"}}}, {"spec", {{"controllerRef", {{"name", "x"}}}}}});
  }

  template <class Record>
  std::vector<std::string> put(kube::Cache<Record>& cache, Json document) {
    return wiring_.put(cache, std::move(document));
  }

  LocalWiring wiring_;
  LoginSetController controller_{wiring_};
  Caches caches_{wiring_};
  const std::vector<std::string> none_, itself_{"loginset ns/l"};
};

TEST_F(LoginSetWakes, OnItsController) {
  Json controller{{"kind", "Controller"}, {"metadata", {{"name", "x"}, {"generation", 1}}}, {"spec", Json::object()}};
  EXPECT_EQ(put(caches_.controllers, controller), itself_);
  controller["status"]["conditions"] = Json::array();
  EXPECT_EQ(put(caches_.controllers, controller), none_) << "a status alone does not count";
  controller["metadata"]["generation"] = 2;
  EXPECT_EQ(put(caches_.controllers, controller).at(0), itself_.at(0));
  controller["metadata"]["name"] = "y";
  EXPECT_EQ(put(caches_.controllers, controller), none_);
}

TEST_F(LoginSetWakes, OnItsPods) {
  const auto pod = [](const char* app) {
    return Json{
        {"kind", "Pod"},
        {"metadata", {{"name", "l-1"}, {"labels", {{"app.kubernetes.io/name", app}, {"app.kubernetes.io/instance", "l"}}}}}};
  };
  EXPECT_EQ(put(caches_.pods, pod("login")).at(0), itself_.at(0));
  EXPECT_EQ(put(caches_.pods, pod("slurmrestd")).size(), 1U) << "it was one of its pods";
  EXPECT_EQ(put(caches_.pods, pod("slurmrestd")), none_);
}

TEST_F(LoginSetWakes, OnTheNamesOfItsPods) {
  Json slice{{"kind", "EndpointSlice"},
             {"metadata",
              {{"name", "l-hosts"}, {"labels", {{"app.kubernetes.io/name", "login"}, {"app.kubernetes.io/instance", "l"}}}}}};
  EXPECT_EQ(put(caches_.endpoint_slices, slice), itself_) << "also where no LoginSet owns it";
  slice["metadata"].erase("labels");
  EXPECT_EQ(put(caches_.endpoint_slices, slice), itself_) << "it was its own";
  EXPECT_EQ(put(caches_.endpoint_slices, slice), none_);
}

}  // namespace
}  // namespace op::loginset
