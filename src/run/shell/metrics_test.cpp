#include "run/shell/metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace run {
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
  metrics.pass_panicked("c");
  metrics.pass_timed_out("c");
  metrics.gate_waited("c", 20ms, true);
  const std::string text = metrics.text();
  for (const char* line : {
           "controller_runtime_reconcile_errors_total{controller=\"c\"} 1",
           "controller_runtime_reconcile_time_seconds_bucket{controller=\"c\",le=\"0.5\"} 0",
           "controller_runtime_reconcile_time_seconds_bucket{controller=\"c\",le=\"1\"} 1",
           "controller_runtime_reconcile_panics_total{controller=\"c\"} 1",
           "controller_runtime_reconcile_timeouts_total{controller=\"c\"} 1",
           "workqueue_depth{controller=\"c\",name=\"c\",priority=\"\"} 1",
           "workqueue_adds_total{controller=\"c\",name=\"c\"} 5",
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
}  // namespace run
