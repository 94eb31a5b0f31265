#include "cli/why_target.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cli {
namespace {

using testing::HasSubstr;

std::string error_of(const std::vector<std::string>& words) {
  const auto read = read_target(words);
  return read ? "" : read.error().message;
}

std::string pod_of(const std::vector<std::string>& words) {
  const auto read = read_target(words);
  const auto* pod = read ? std::get_if<PodName>(&*read) : nullptr;
  return pod == nullptr ? "" : pod->name;
}

TEST(WhyTarget, IsAJobOrAPod) {
  EXPECT_EQ(std::get<JobName>(*read_target({"12_3"})).text(), "12_3");
  for (const char* word : {"pod", "pods", "po"}) {
    EXPECT_EQ(pod_of({std::string(word) + "/train-0"}), "train-0");
    EXPECT_EQ(pod_of({word, "train-0"}), "train-0");
  }
  EXPECT_EQ(pod_of({"pod", "12"}), "12");
}

TEST(WhyTarget, AMistakeIsNamedWithWhatIsAllowed) {
  EXPECT_EQ(error_of({"train-0"}),
            "\"train-0\" is not a job: name it by its number, 12, or 12_3 for a task of an array; name a pod as pod/train-0");
  EXPECT_EQ(error_of({"12x"}), "\"12x\" is not a job: name it by its number, 12, or 12_3 for a task of an array");
  EXPECT_EQ(error_of({"7_[1-3]"}),
            "\"7_[1-3]\" is not a job: name one of its tasks, 7_3 for example, or all tasks that wait, 7");
  EXPECT_EQ(error_of({"12+1"}), "\"12+1\" is not a job: name a heterogeneous job by the number of its first component, 12");
  EXPECT_EQ(error_of({"12.batch"}), "\"12.batch\" is not a job: name the job of the step, 12");
  EXPECT_THAT(error_of({""}), HasSubstr("\"\" is not a job"));
  EXPECT_EQ(error_of({"pod"}), "\"pod\" lacks the name of the pod: write pod/NAME");
  EXPECT_EQ(error_of({"pod/"}), "\"pod/\" lacks the name of the pod: write pod/NAME");
  EXPECT_THAT(error_of({"pod/research/train-0"}), HasSubstr("\"research/train-0\" is no name of a pod"));
  EXPECT_THAT(error_of({"pod/Train"}), HasSubstr("-n names the namespace"));
  EXPECT_THAT(error_of({"deployment/web"}), HasSubstr("\"deployment/web\" is neither a job nor a pod"));
  EXPECT_THAT(error_of({"node", "kube-1"}), HasSubstr("\"node kube-1\" is neither a job nor a pod"));
  EXPECT_THAT(error_of({"job/train"}), HasSubstr("is a Job of Kubernetes: name one of its pods"));
  EXPECT_EQ(error_of({"12", "13"}), "\"12 13\" is more than one job: name one");
  EXPECT_EQ(error_of({"pod/a", "pod/b"}), "\"pod/a pod/b\" is more than one object: name one");
}

TEST(WhyTarget, AClusterHasItsNamespaceForAPod) {
  const WhyTarget job = JobName{12, {}}, pod = PodName{"train-0"};
  EXPECT_EQ(*read_cluster("", pod), (kube::Key{}));
  EXPECT_EQ(*read_cluster("slurm", job), (kube::Key{"", "slurm"}));
  EXPECT_EQ(*read_cluster("hpc/slurm", job), (kube::Key{"hpc", "slurm"}));
  EXPECT_EQ(*read_cluster("hpc/slurm", pod), (kube::Key{"hpc", "slurm"}));
  EXPECT_THAT(read_cluster("slurm", pod).error().message, HasSubstr("must be NAMESPACE/NAME of a Controller, because"));
  for (const char* wrong : {"/slurm", "hpc/", "a/b/c", "/"}) {
    EXPECT_FALSE(read_cluster(wrong, job)) << wrong;
    EXPECT_THAT(read_cluster(wrong, pod).error().message, HasSubstr("must be NAME or NAMESPACE/NAME of")) << wrong;
  }
}

}  // namespace
}  // namespace cli
