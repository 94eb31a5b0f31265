#include "slinky/worker_states.hpp"

#include <gtest/gtest.h>

#include "api/well_known.hpp"

namespace slinky {
namespace {

TEST(WorkerStates, TheReasonOfACordonIsTheUsersInOneLine) {
  kube::PodRecord pod;
  pod.meta.ns = "hpc";
  pod.meta.name = "cpu-0";
  EXPECT_EQ(pod_cordon_reason(pod), "Pod (hpc/cpu-0) was cordoned");
  pod.meta.annotations[std::string(api::kAnnotationPodCordonReason)] = "bad\ndisk";
  EXPECT_EQ(pod_cordon_reason(pod), "bad disk");
  EXPECT_EQ(plain_cordon_reason(pod), "Pod (hpc/cpu-0) was cordoned");
}

TEST(WorkerStates, ReasonsAreCutBetweenCharacters) {
  EXPECT_EQ(clean_reason(std::string(300, 'x')).size(), 256U);
  EXPECT_EQ(clean_reason(std::string(255, 'x') + "\xC3\xA4").size(), 255U);
}

}  // namespace
}  // namespace slinky
