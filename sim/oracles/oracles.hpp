// Collects the violations that the oracles find in a history, and forwards the world's events to the oracles. Each program of a
// world has its own oracles (sim/programs). Oracles rely on what the simulated servers know, never on what a program reports.
//
// Folder sim/oracles: what the oracles of all programs share. Uses sim/site.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "core/loop.hpp"
#include "sim/kube/api.hpp"
#include "sim/kube/kubelet.hpp"

namespace sim {

/// The interface of a program's oracles: the events that they receive, and the verdicts that they return.
class Oracle {
 public:
  virtual ~Oracle() = default;
  /// Called when the pod with this uid has an accident.
  virtual void accident(const std::string& /*pod*/, Accident /*what*/) {}
  /// Called when the clock of a process jumps by this much, in addition to earlier jumps.
  virtual void clock_jumps(core::Duration /*by*/) {}
  /// Called for each line in the log of any process.
  virtual void log_line(std::string_view /*line*/) {}
  /// Returns why the declared state is not reached; empty if it is.
  [[nodiscard]] virtual std::vector<std::string> unmet() const { return {}; }
};

/// The verdicts of all oracles of a world.
class Oracles {
 public:
  Oracles(core::Loop& loop, KubeApi& api);
  Oracles(const Oracles&) = delete;
  Oracles& operator=(const Oracles&) = delete;

  /// Adds an oracle, which must live until the last event.
  void add(Oracle& oracle) { oracles_.push_back(&oracle); }

  [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }
  [[nodiscard]] bool ok() const { return violations_.empty(); }
  void violation(std::string text);

  /// Adds an event to the list of recent events, which the report of a failing seed shows.
  void note(std::string text);
  [[nodiscard]] const std::deque<std::string>& notes() const { return notes_; }

  // These functions call the same function of all oracles.
  void accident(const std::string& pod, Accident what);
  void clock_jumps(core::Duration by);
  void log_line(std::string_view line);
  [[nodiscard]] std::vector<std::string> unmet() const;

 private:
  core::Loop& loop_;
  std::vector<Oracle*> oracles_;
  std::vector<std::string> violations_;
  std::deque<std::string> notes_;
};

}  // namespace sim
