// The metrics of the bridge, beside those of the engine.
#pragma once

#include <memory>
#include <string>

#include "bridge/jobs/observe.hpp"
#include "core/clock.hpp"

namespace run {
struct MetricFamilies;
}

namespace bridge {

class Metrics {
 public:
  explicit Metrics(run::MetricFamilies& families);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// A pod was placed, so long after its job was submitted.
  void placed(core::Duration waited);
  /// The bridge ends a pod. `reason`: that of its condition SlurmEnded.
  void ended(const std::string& reason);
  void counts(const jobs::Counts& counts);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bridge
