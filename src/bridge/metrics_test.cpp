#include "bridge/metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/app/metrics.hpp"

namespace bridge {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(BridgeMetrics, ShowWhatTheControllerCounts) {
  kube::Metrics all("slurm-bridge");
  Metrics metrics(all.families());
  metrics.placed(core::Duration{3000});
  metrics.ended("TimedOut");
  metrics.ended("TimedOut");
  metrics.counts({.waiting = 4, .placed = 2, .orphans = 1, .missing = 3, .oldest = core::Duration{90000}});
  const std::string text = all.text();
  for (const char* line :
       {"slurm_bridge_wait_seconds_sum 3", "slurm_bridge_wait_seconds_bucket{le=\"2\"} 0",
        "slurm_bridge_wait_seconds_bucket{le=\"5\"} 1", "slurm_bridge_pods_ended_total{reason=\"TimedOut\"} 2",
        "slurm_bridge_pods{state=\"waiting\"} 4", "slurm_bridge_pods{state=\"placed\"} 2", "slurm_bridge_queue_age_seconds 90",
        "slurm_bridge_orphan_jobs 1", "slurm_bridge_missing_jobs 3"})
    EXPECT_THAT(text, HasSubstr(line));
}

}  // namespace
}  // namespace bridge
