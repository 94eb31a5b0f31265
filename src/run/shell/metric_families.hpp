// Families of metrics, for sources of metrics alone.
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

/// For counts that are kept elsewhere.
inline void raise_to(prometheus::Counter& counter, double total) {
  if (total > counter.Value()) counter.Increment(total - counter.Value());
}

struct MetricFamilies {
  /// Names of metrics have no dashes.
  explicit MetricFamilies(std::string_view program) : prefix(program) { std::ranges::replace(prefix, '-', '_'); }

  std::string prefix;
  prometheus::Registry registry;

  /// The full name: one that starts with _ is our own, the others are known from elsewhere.
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
