// What the engine counts and measures. A program that shows it derives from this (run/shell/metrics.hpp); this itself drops it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/clock.hpp"

namespace run {

class PassMetrics {
 public:
  virtual ~PassMetrics() = default;
  /// Makes all label sets of a controller, at 0.
  virtual void add_controller(const std::string& /*name*/, std::size_t /*max_concurrent*/) {}
  enum class PassEnd { kSuccess, kError, kRequeue, kRequeueAfter };
  virtual void pass_started(const std::string& /*controller*/) {}
  /// The pass does nothing any more; its key may still be held by a gate.
  virtual void pass_worked(const std::string& /*controller*/, core::Duration /*took*/) {}
  virtual void pass_ended(const std::string& /*controller*/, PassEnd /*end*/) {}
  /// A plan or an observe threw.
  virtual void pass_panicked(const std::string& /*controller*/) {}
  /// Steps were left because the pass had used up its time.
  virtual void pass_timed_out(const std::string& /*controller*/) {}
  virtual void queue_popped(const std::string& /*controller*/, core::Duration /*waited*/) {}
  virtual void queue_retried(const std::string& /*controller*/) {}
  /// Keys that are due now, and how many came to be so far.
  virtual void queue_counts(const std::string& /*controller*/, std::size_t /*depth*/, std::uint64_t /*adds*/) {}
  /// Of all passes under way now.
  virtual void unfinished(const std::string& /*controller*/, core::Duration /*sum*/, core::Duration /*longest*/) {}
  virtual void steps(const std::string& /*controller*/, std::size_t /*done*/, std::size_t /*failed*/) {}
  /// Steps that a pass left out, because they are done again and again.
  virtual void steps_withheld(const std::string& /*controller*/, std::size_t /*count*/) {}
  virtual void gate_waited(const std::string& /*controller*/, core::Duration /*waited*/, bool /*settled_live*/) {}
};

}  // namespace run
