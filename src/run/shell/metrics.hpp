// Metrics in the Prometheus text format. Metrics of the engine have the names of controller-runtime's metrics, so that its
// dashboards work. Our own metrics begin with the program's name. Programs derive their metrics from this class.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "run/pass_metrics.hpp"
#include "run/shell/process.hpp"

namespace run {

struct MetricFamilies;

class Metrics : public PassMetrics {
 public:
  /// `program` is the prefix of our own metrics: "slurm-operator" exports slurm_operator_steps_total.
  explicit Metrics(std::string_view program);
  ~Metrics() override;
  void add_controller(const std::string& name, std::size_t max_concurrent) override;
  void pass_started(const std::string& controller) override;
  void pass_worked(const std::string& controller, core::Duration took) override;
  void pass_ended(const std::string& controller, PassEnd end) override;
  void pass_panicked(const std::string& controller) override;
  void pass_timed_out(const std::string& controller) override;
  void queue_popped(const std::string& controller, core::Duration waited) override;
  void queue_retried(const std::string& controller) override;
  void queue_counts(const std::string& controller, std::size_t depth, std::uint64_t adds) override;
  void unfinished(const std::string& controller, core::Duration sum, core::Duration longest) override;
  void steps(const std::string& controller, std::size_t done, std::size_t failed) override;
  void steps_withheld(const std::string& controller, std::size_t count) override;
  void gate_waited(const std::string& controller, core::Duration waited, bool settled_live) override;
  void process(const ProcessUsage& usage);
  /// Returns the metrics in the text format.
  [[nodiscard]] std::string text();

 protected:
  /// Returns the families, to which a derived class adds its own families: see run/shell/metric_families.hpp.
  [[nodiscard]] MetricFamilies& families();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace run
