// The metrics of a program that uses an API server: those of run::Metrics, and requests, the Lease, caches, events,
// credentials.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "kube/client/client.hpp"
#include "run/shell/metrics.hpp"

namespace kube {

class Metrics final : public run::Metrics {
 public:
  explicit Metrics(std::string_view program);
  ~Metrics() override;
  /// The families, to which a program adds its own families: see run/shell/metric_families.hpp.
  using run::Metrics::families;
  void request(const RequestRecord& record, const std::string& host);
  void leader(const std::string& lease, bool leading);
  /// Counts a renewal of the Lease that had to read the Lease first.
  void slow_renewal(const std::string& lease);
  void cache(const std::string& name, std::size_t objects, const std::string& resource_version);
  void watch_failures(const std::string& name, std::uint64_t total);
  void events_dropped(std::uint64_t total);
  /// Counts one reading of the credential files. `good` is false if a file could not be read.
  void credentials_read(bool good);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kube
