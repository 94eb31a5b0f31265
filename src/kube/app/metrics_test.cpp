#include "kube/app/metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kube {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using namespace std::chrono_literals;

TEST(MetricsTest, Counts) {
  Metrics metrics{"slurm-operator"};
  EXPECT_THAT(metrics.text(), AllOf(HasSubstr("certwatcher_read_certificate_total 0"),
                                    HasSubstr("certwatcher_read_certificate_errors_total 0")));
  metrics.credentials_read(true);
  metrics.credentials_read(false);
  metrics.request({"GET", 200, 30ms, 0, 100, false}, "api");
  metrics.request({"POST", 0, 30ms, 10, 0, true}, "api");
  metrics.leader("slurm-operator", true);
  metrics.slow_renewal("slurm-operator");
  metrics.watch_failures("pods", 2);
  metrics.watch_failures("pods", 5);
  metrics.cache("pods", 3, "12345");
  const std::string text = metrics.text();
  for (const char* line : {
           "rest_client_requests_total{code=\"200\",host=\"api\",method=\"GET\"} 1",
           "rest_client_requests_total{code=\"<error>\",host=\"api\",method=\"POST\"} 1",
           "rest_client_request_retries_total{code=\"<error>\",host=\"api\",verb=\"POST\"} 1",
           "leader_election_master_status{name=\"slurm-operator\"} 1",
           "leader_election_slowpath_total{name=\"slurm-operator\"} 1",
           "certwatcher_read_certificate_total 2",
           "certwatcher_read_certificate_errors_total 1",
           "slurm_operator_watch_failures_total{cache=\"pods\"} 5",
           "slurm_operator_cache_resource_version{cache=\"pods\"} 12345",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

}  // namespace
}  // namespace kube
