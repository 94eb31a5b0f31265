// Events (events.k8s.io/v1) about objects: what a person sees under `kubectl describe`.
//
// The same event (object, reason, action, type, note) again within the series time is one event with a growing series count,
// sent by patch as it doubles: a series that ended has up to half of its repeats untold, and costs no write at rest. Nothing
// waits for an event, and nothing fails by one: what does not fit is dropped and counted.
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
  std::string controller = "slurm-operator";  ///< reportingController.
  std::string instance;                       ///< reportingInstance: our pod's name.
  std::size_t max_queue = 1000;
  std::size_t max_series = 4096;
  core::Duration series_finish{360000};    ///< A series that was quiet this long is over.
  core::Duration series_refresh{1800000};  ///< A count that grows is written after this, though it has not doubled.
  std::size_t burst = 100;                 ///< New events per object at once ...
  core::Duration refill{300000};           ///< ... and one more each.
};

class EventRecorder {
 public:
  EventRecorder(core::Loop& loop, core::Random& random, core::Logger& logger, Client& client, EventOptions options);
  ~EventRecorder();
  void record(const EventAct& event);
  /// Sends what is queued, for at most `grace`, then calls `done`.
  void stop(core::Duration grace, std::function<void()> done);
  [[nodiscard]] std::uint64_t dropped() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace kube
