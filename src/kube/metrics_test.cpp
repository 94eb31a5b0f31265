#include "kube/metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kube {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

TEST(MetricsTest, LabelSetsExistBeforeAnythingHappens) {
  Metrics metrics{"slurm-operator"};
  metrics.add_controller("nodeset", 16);
  const std::string text = metrics.text();
  for (const char* line : {
           "controller_runtime_reconcile_total{controller=\"nodeset\",result=\"success\"} 0",
           "controller_runtime_reconcile_total{controller=\"nodeset\",result=\"error\"} 0",
           "controller_runtime_reconcile_total{controller=\"nodeset\",result=\"requeue\"} 0",
           "controller_runtime_reconcile_total{controller=\"nodeset\",result=\"requeue_after\"} 0",
           "controller_runtime_reconcile_errors_total{controller=\"nodeset\"} 0",
           "controller_runtime_reconcile_panics_total{controller=\"nodeset\"} 0",
           "controller_runtime_terminal_reconcile_errors_total{controller=\"nodeset\"} 0",
           "controller_runtime_reconcile_timeouts_total{controller=\"nodeset\"} 0",
           "controller_runtime_reconcile_time_seconds_count{controller=\"nodeset\"} 0",
           "controller_runtime_max_concurrent_reconciles{controller=\"nodeset\"} 16",
           "controller_runtime_active_workers{controller=\"nodeset\"} 0",
           "workqueue_depth{controller=\"nodeset\",name=\"nodeset\",priority=\"\"} 0",
           "workqueue_adds_total{controller=\"nodeset\",name=\"nodeset\"} 0",
           "workqueue_queue_duration_seconds_count{controller=\"nodeset\",name=\"nodeset\"} 0",
           "workqueue_work_duration_seconds_count{controller=\"nodeset\",name=\"nodeset\"} 0",
           "workqueue_unfinished_work_seconds{controller=\"nodeset\",name=\"nodeset\"} 0",
           "workqueue_longest_running_processor_seconds{controller=\"nodeset\",name=\"nodeset\"} 0",
           "workqueue_retries_total{controller=\"nodeset\",name=\"nodeset\"} 0",
           "slurm_operator_steps_total{controller=\"nodeset\",outcome=\"withheld\"} 0",
           "certwatcher_read_certificate_total 0",
           "certwatcher_read_certificate_errors_total 0",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(MetricsTest, Counts) {
  Metrics metrics{"slurm-operator"};
  metrics.add_controller("c", 1);
  metrics.pass_started("c");
  metrics.pass_worked("c", 700ms);
  metrics.pass_ended("c", Metrics::PassEnd::kError);
  metrics.queue_counts("c", 2, 3);
  metrics.queue_counts("c", 1, 5);
  metrics.credentials_read(true);
  metrics.credentials_read(false);
  metrics.request({"GET", 200, 30ms, 0, 100, false}, "api");
  metrics.request({"POST", 0, 30ms, 10, 0, true}, "api");
  metrics.pass_panicked("c");
  metrics.pass_timed_out("c");
  metrics.leader("slurm-operator", true);
  metrics.slow_renewal("slurm-operator");
  metrics.watch_failures("pods", 2);
  metrics.watch_failures("pods", 5);
  metrics.cache("pods", 3, 4096, "12345");
  metrics.gate_waited("c", 20ms, true);
  const std::string text = metrics.text();
  for (const char* line : {
           "controller_runtime_reconcile_errors_total{controller=\"c\"} 1",
           "controller_runtime_reconcile_time_seconds_bucket{controller=\"c\",le=\"0.5\"} 0",
           "controller_runtime_reconcile_time_seconds_bucket{controller=\"c\",le=\"1\"} 1",
           "rest_client_requests_total{code=\"200\",host=\"api\",method=\"GET\"} 1",
           "rest_client_requests_total{code=\"<error>\",host=\"api\",method=\"POST\"} 1",
           "rest_client_request_retries_total{code=\"<error>\",host=\"api\",verb=\"POST\"} 1",
           "leader_election_master_status{name=\"slurm-operator\"} 1",
           "leader_election_slowpath_total{name=\"slurm-operator\"} 1",
           "controller_runtime_reconcile_panics_total{controller=\"c\"} 1",
           "controller_runtime_reconcile_timeouts_total{controller=\"c\"} 1",
           "workqueue_depth{controller=\"c\",name=\"c\",priority=\"\"} 1",
           "workqueue_adds_total{controller=\"c\",name=\"c\"} 5",
           "certwatcher_read_certificate_total 2",
           "certwatcher_read_certificate_errors_total 1",
           "slurm_operator_watch_failures_total{cache=\"pods\"} 5",
           "slurm_operator_cache_bytes{cache=\"pods\"} 4096",
           "slurm_operator_cache_resource_version{cache=\"pods\"} 12345",
           "slurm_operator_gates_settled_live_total{controller=\"c\"} 1",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(MetricsTest, SayWhatTheProcessUses) {
  Metrics metrics{"slurm-operator"};
  metrics.process({.cpu_seconds = 2, .resident_bytes = 4096, .heap_used_bytes = 300, .heap_free_bytes = 20});
  metrics.process({.cpu_seconds = 5, .resident_bytes = 8192, .heap_used_bytes = 300, .heap_free_bytes = 20});
  const std::string text = metrics.text();
  for (const char* line : {
           "process_cpu_seconds_total 5",
           "process_resident_memory_bytes 8192",
           "slurm_operator_heap_bytes{state=\"used\"} 300",
           "slurm_operator_heap_bytes{state=\"free\"} 20",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

}  // namespace
}  // namespace kube
