// Writes events (events.k8s.io/v1) about objects, which `kubectl describe` shows.
//
// An event that repeats (same object, reason, action, type and note) within EventOptions::series_finish only increases the
// count in the series of the first event. The count is written whenever it has doubled, so that repeats cost few writes. So the
// count that is written last can lack up to half of the repeats. No caller waits for an event, or fails because of an event.
// Events that exceed the limits are dropped and counted.
//
// Folder src/kube/act: carries out acts, and writes events. Uses kube/client and kube/cache.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/log.hpp"
#include "core/loop.hpp"
#include "core/random.hpp"
#include "kube/acts.hpp"
#include "kube/client/client.hpp"

namespace kube {

struct EventOptions {
  std::string controller = "slurm-operator";  ///< The reportingController of all events.
  std::string instance;                       ///< The reportingInstance of all events: our pod's name.
  std::size_t max_queue = 1000;
  std::size_t max_series = 4096;
  core::Duration series_finish{360000};    ///< A series ends after this time without a repeat.
  core::Duration series_refresh{1800000};  ///< A growing count is written after this time, even if it has not doubled.
  std::size_t burst = 100;                 ///< The number of new events that each object can have at once.
  core::Duration refill{300000};           ///< After each such period, each object can have one more new event.
};

class EventRecorder {
 public:
  EventRecorder(core::Loop& loop, core::Random& random, core::Logger& logger, Client& client, EventOptions options);
  ~EventRecorder();
  void record(const EventAct& event);
  /// Sends the queued events, for at most `grace`, and then calls `done`.
  void stop(core::Duration grace, std::function<void()> done);
  [[nodiscard]] std::uint64_t dropped() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace kube
