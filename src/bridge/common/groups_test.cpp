#include "bridge/common/groups.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "bridge/common/names.hpp"

namespace bridge {
namespace {

using core::Json;

kube::ObjectMeta pod(const std::string& name, kube::StringMap labels = {}, kube::StringMap annotations = {}) {
  kube::ObjectMeta out;
  out.ns = "ns";
  out.name = name;
  out.labels = std::move(labels);
  out.annotations = std::move(annotations);
  return out;
}

kube::ObjectMeta of_job(const std::string& gang, const std::string& kind = "Job") {
  kube::ObjectMeta out = pod("p", {}, {{std::string(kAnnotationGang), gang}});
  out.owners.push_back({"batch/v1", kind, "sweep", "j", true});
  return out;
}

TEST(Groups, OfAPod) {
  EXPECT_FALSE(group_of(pod("p")));
  EXPECT_EQ(group_of(pod("p", {{std::string(kLabelPodGroup), "train"}})), (run::Key{"ns", "podgroup/train"}));
  EXPECT_EQ(group_of(of_job("true")), (run::Key{"ns", "job/sweep"}));
  EXPECT_FALSE(group_of(of_job("false")));
  EXPECT_FALSE(group_of(of_job("true", "CronJob")));
  EXPECT_TRUE(is_group({"ns", "job/sweep"}));
  EXPECT_FALSE(is_group({"ns", "sweep"}));
}

TEST(Groups, TheirObjects) {
  EXPECT_EQ(object_of({"ns", "podgroup/train"}).resource.plural, "podgroups");
  EXPECT_EQ(object_of({"ns", "job/sweep"}).key, (kube::Key{"ns", "sweep"}));
  EXPECT_TRUE(belongs_to(of_job("true"), {"ns", "job/sweep"}, "j"));
  EXPECT_FALSE(belongs_to(of_job("true"), {"ns", "job/sweep"}, "i"));
  EXPECT_TRUE(belongs_to(pod("p"), {"ns", "podgroup/train"}, "g"));
}

TEST(Groups, TheSizeIsThatOfTheSpec) {
  const auto size = [](const char* group, const char* more) {
    Json object = Json::parse(more);
    object["metadata"]["uid"] = "x";
    const auto spec = read_group({"ns", group}, object);
    return spec ? spec->size : -1;
  };
  EXPECT_EQ(size("podgroup/g", R"({"spec": {"minMember": 3}})"), 3);
  EXPECT_EQ(size("podgroup/g", R"({"spec": {}})"), -1);
  EXPECT_EQ(size("podgroup/g", R"({"spec": {"minMember": 401}})"), -1);
  EXPECT_EQ(size("job/j", R"({"spec": {}})"), 1);
  EXPECT_EQ(size("job/j", R"({"spec": {"parallelism": 4}})"), 4);
  EXPECT_EQ(size("job/j", R"({"spec": {"parallelism": 4, "completions": 6}, "status": {"succeeded": 3}})"), 3);
  EXPECT_EQ(size("job/j", R"({"spec": {"parallelism": 4, "completions": 3}, "status": {"succeeded": 3}})"), 0);
  EXPECT_EQ(size("job/j", R"({"spec": {"parallelism": 0}})"), 0);
}

TEST(Groups, TheOrderOfPods) {
  const auto index = [](const char* label, const char* value) { return kube::StringMap{{label, value}}; };
  const std::vector<kube::ObjectMeta> wanted{pod("z", index("batch.kubernetes.io/job-completion-index", "0")),
                                             pod("b", index("apps.kubernetes.io/pod-index", "9")),
                                             pod("a", index("batch.kubernetes.io/job-completion-index", "10")),
                                             pod("p"),
                                             pod("p-2"),
                                             pod("p-02"),
                                             pod("p-9a"),
                                             pod("p-10"),
                                             pod("q")};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    for (std::size_t j = 0; j < wanted.size(); ++j) {
      if (wanted[i].name == "p-02" || wanted[j].name == "p-02") continue;
      EXPECT_EQ(comes_before(wanted[i], wanted[j]), i < j) << wanted[i].name << " and " << wanted[j].name;
    }
  }
  EXPECT_NE(comes_before(wanted[4], wanted[5]), comes_before(wanted[5], wanted[4])) << "any order, but one";
  EXPECT_FALSE(index_of(pod("a", index("apps.kubernetes.io/pod-index", "x"))));
}

}  // namespace
}  // namespace bridge
