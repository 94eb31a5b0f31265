// Creates families of metrics (prometheus-cpp). Include this header only in sources that define metrics.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "core/clock.hpp"

namespace run {

inline double seconds(core::Duration d) {
  return static_cast<double>(d.count()) / 1000.0;
}

/// Raises a counter to a total that is counted elsewhere. Never lowers the counter.
inline void raise_to(prometheus::Counter& counter, double total) {
  if (total > counter.Value()) counter.Increment(total - counter.Value());
}

struct MetricFamilies {
  /// Replaces the dashes in the program's name, because metric names cannot contain them.
  explicit MetricFamilies(std::string_view program) : prefix(program) { std::ranges::replace(prefix, '-', '_'); }

  std::string prefix;
  prometheus::Registry registry;

  /// Returns the full name of a metric: puts the program's prefix before a name that starts with _, and keeps other names.
  [[nodiscard]] std::string full(std::string_view name) const {
    return std::string(name.starts_with('_') ? prefix : "").append(name);
  }
  prometheus::Family<prometheus::Counter>& counter(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(full(name)).Help(help).Register(registry);
  }
  prometheus::Family<prometheus::Gauge>& gauge(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(full(name)).Help(help).Register(registry);
  }
  prometheus::Family<prometheus::Histogram>& histogram(const char* name, const char* help) {
    return prometheus::BuildHistogram().Name(full(name)).Help(help).Register(registry);
  }
};

}  // namespace run
