#include "bridge/common/node_affinity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bridge {
namespace {

using core::Json;
using ::testing::HasSubstr;

/// `terms`: the expressions of each term, as JSON.
std::string of_terms(const std::string& terms, const kube::StringMap& node_selector = {}) {
  const Json required{{"nodeSelectorTerms", Json::parse(terms)}};
  return contradiction(node_selector, {{"nodeAffinity", {{"requiredDuringSchedulingIgnoredDuringExecution", required}}}});
}
std::string of(const std::string& expressions, const kube::StringMap& node_selector = {}) {
  return of_terms(R"([{"matchExpressions": [)" + expressions + "]}]", node_selector);
}

TEST(Contradiction, NoneInWhatANodeCanSatisfy) {
  EXPECT_EQ(contradiction({{"zone", "a"}}, nullptr), "");
  EXPECT_EQ(contradiction({}, {{"podAffinity", {}}}), "");
  EXPECT_EQ(
      of(R"({"key": "zone", "operator": "In", "values": ["a", "b"]}, {"key": "zone", "operator": "NotIn", "values": ["a"]})"),
      "");
  EXPECT_EQ(
      of(R"({"key": "zone", "operator": "In", "values": ["a", "b"]}, {"key": "zone", "operator": "Exists"})", {{"zone", "b"}}),
      "");
  EXPECT_EQ(of(R"({"key": "cpus", "operator": "Gt", "values": ["4"]}, {"key": "cpus", "operator": "Lt", "values": ["6"]})"),
            "");
  EXPECT_EQ(of(R"({"key": "gpu", "operator": "DoesNotExist"}, {"key": "zone", "operator": "NotIn", "values": ["a"]})"), "");
  EXPECT_EQ(of(R"({"key": "gpu", "operator": "DoesNotExist"}, {"key": "gpu", "operator": "NotIn", "values": ["a"]})"), "");
}

TEST(Contradiction, WithinATerm) {
  for (const char* expressions : {
           R"({"key": "x", "operator": "In", "values": ["a"]}, {"key": "x", "operator": "In", "values": ["b"]})",
           R"({"key": "x", "operator": "In", "values": ["a"]}, {"key": "x", "operator": "NotIn", "values": ["a", "b"]})",
           R"({"key": "x", "operator": "In", "values": ["a"]}, {"key": "x", "operator": "DoesNotExist"})",
           R"({"key": "x", "operator": "Exists"}, {"key": "x", "operator": "DoesNotExist"})",
           R"({"key": "x", "operator": "Gt", "values": ["4"]}, {"key": "x", "operator": "DoesNotExist"})",
           R"({"key": "x", "operator": "Gt", "values": ["4"]}, {"key": "x", "operator": "Lt", "values": ["5"]})",
           R"({"key": "x", "operator": "In", "values": ["4", "a"]}, {"key": "x", "operator": "Gt", "values": ["4"]})",
           R"({"key": "x", "operator": "Gt", "values": ["many"]})",
       }) {
    EXPECT_EQ(of(expressions),
              "spec.affinity.nodeAffinity: no node can match the required term 1, which contradicts itself about x")
        << expressions;
  }
}

TEST(Contradiction, OneTermIsEnough) {
  EXPECT_THAT(of_terms(R"([{"matchExpressions": [{"key": "x", "operator": "Exists"}]},
                           {"matchExpressions": [{"key": "x", "operator": "Exists"}, {"key": "x", "operator": "DoesNotExist"}]}])"),
              HasSubstr("the required term 2,"));
}

TEST(Contradiction, WithTheNodeSelector) {
  EXPECT_EQ(
      of(R"({"key": "zone", "operator": "In", "values": ["b"]})", {{"zone", "a"}}),
      "spec.affinity.nodeAffinity: no node can match the required term 1, which contradicts the node selector about zone");
}

TEST(Contradiction, AboutTheNameOfTheNode) {
  EXPECT_THAT(of_terms(R"([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]},
                                            {"key": "metadata.name", "operator": "In", "values": ["b"]}]}])"),
              HasSubstr("contradicts itself about metadata.name"));
  EXPECT_EQ(of_terms(R"([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}],
                          "matchExpressions": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}])"),
            "")
      << "a label of that name is something else";
}

}  // namespace
}  // namespace bridge
