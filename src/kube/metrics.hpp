// Metrics in the Prometheus text format, under the names that dashboards for controller-runtime know, plus our own, which begin
// with the program's name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "kube/client.hpp"
#include "kube/process.hpp"

namespace kube {

class Metrics {
 public:
  /// "slurm-operator" has slurm_operator_steps_total.
  explicit Metrics(std::string_view program);
  ~Metrics();
  /// Makes all label sets of a controller, at 0.
  void add_controller(const std::string& name, std::size_t max_concurrent);
  enum class PassEnd { kSuccess, kError, kRequeue, kRequeueAfter };
  void pass_started(const std::string& controller);
  /// The pass does nothing any more; its key may still be held by a gate.
  void pass_worked(const std::string& controller, core::Duration took);
  void pass_ended(const std::string& controller, PassEnd end);
  /// A plan or an observe threw.
  void pass_panicked(const std::string& controller);
  /// Steps were left because the pass had used up its time.
  void pass_timed_out(const std::string& controller);
  void queue_popped(const std::string& controller, core::Duration waited);
  void queue_retried(const std::string& controller);
  /// Keys that are due now, and how many came to be so far.
  void queue_counts(const std::string& controller, std::size_t depth, std::uint64_t adds);
  /// Of all passes under way now.
  void unfinished(const std::string& controller, core::Duration sum, core::Duration longest);
  void steps(const std::string& controller, std::size_t done, std::size_t failed);
  /// Steps that a pass left out, because they are done again and again.
  void steps_withheld(const std::string& controller, std::size_t count);
  void gate_waited(const std::string& controller, core::Duration waited, bool settled_live);
  void request(const RequestRecord& record, const std::string& host);
  void leader(const std::string& lease, bool leading);
  /// The lease had to be read before it could be renewed.
  void slow_renewal(const std::string& lease);
  void cache(const std::string& name, std::size_t objects, std::size_t bytes, const std::string& resource_version);
  void watch_failures(const std::string& name, std::uint64_t total);
  void events_dropped(std::uint64_t total);
  /// The files of the credentials were read again, or could not be.
  void credentials_read(bool good);
  void process(const ProcessUsage& usage);
  /// The exposition text.
  [[nodiscard]] std::string text();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kube
