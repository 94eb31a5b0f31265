// Metrics of the engine. The functions of PassMetrics do nothing. A program that exports metrics overrides them: see
// run/shell/metrics.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/clock.hpp"

namespace run {

class PassMetrics {
 public:
  virtual ~PassMetrics() = default;
  /// Creates the metrics of a controller for all values of their labels, with the value 0.
  virtual void add_controller(const std::string& /*name*/, std::size_t /*max_concurrent*/) {}
  enum class PassEnd { kSuccess, kError, kRequeue, kRequeueAfter };
  virtual void pass_started(const std::string& /*controller*/) {}
  /// The pass has finished its work. A gate can still hold its key.
  virtual void pass_worked(const std::string& /*controller*/, core::Duration /*took*/) {}
  virtual void pass_ended(const std::string& /*controller*/, PassEnd /*end*/) {}
  /// A `plan` or an `observe` threw, or an `observe` returned null.
  virtual void pass_panicked(const std::string& /*controller*/) {}
  /// Steps were left because the pass ran out of time.
  virtual void pass_timed_out(const std::string& /*controller*/) {}
  virtual void queue_popped(const std::string& /*controller*/, core::Duration /*waited*/) {}
  virtual void queue_retried(const std::string& /*controller*/) {}
  /// `depth` keys are due now. `adds` is how often a key has become due so far.
  virtual void queue_counts(const std::string& /*controller*/, std::size_t /*depth*/, std::uint64_t /*adds*/) {}
  /// The ages of all passes under way: their sum, and the age of the oldest pass.
  virtual void unfinished(const std::string& /*controller*/, core::Duration /*sum*/, core::Duration /*longest*/) {}
  virtual void steps(const std::string& /*controller*/, std::size_t /*done*/, std::size_t /*failed*/) {}
  /// A pass withheld this many steps, because they repeat (run/repeats.hpp).
  virtual void steps_withheld(const std::string& /*controller*/, std::size_t /*count*/) {}
  virtual void gate_waited(const std::string& /*controller*/, core::Duration /*waited*/, bool /*settled_live*/) {}
};

}  // namespace run
