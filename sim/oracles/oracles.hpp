// Who judges a history. Each program of a world brings oracles of its own (sim/programs); here they are told what befalls the
// world, and what they say is collected. They judge by what the simulated servers know, never by a program's word.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "core/loop.hpp"
#include "sim/kube/api.hpp"
#include "sim/kube/kubelet.hpp"

namespace sim {

/// What a program's oracles are told, and asked.
class Oracle {
 public:
  virtual ~Oracle() = default;
  /// The pod with this uid has an accident.
  virtual void accident(const std::string& /*pod*/, Accident /*what*/) {}
  /// The clock of a process is wrong by as much more.
  virtual void clock_jumps(core::Duration /*by*/) {}
  /// A line of the log of any process.
  virtual void log_line(std::string_view /*line*/) {}
  /// Returns why the declared state is not reached; empty if it is.
  [[nodiscard]] virtual std::vector<std::string> unmet() const { return {}; }
};

/// What all oracles of a world have to say.
class Oracles {
 public:
  Oracles(core::Loop& loop, KubeApi& api);
  Oracles(const Oracles&) = delete;
  Oracles& operator=(const Oracles&) = delete;

  /// It must live as long as anything happens.
  void add(Oracle& oracle) { oracles_.push_back(&oracle); }

  [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }
  [[nodiscard]] bool ok() const { return violations_.empty(); }
  void violation(std::string text);

  /// Adds an event to the last ones, for the report of a failing seed.
  void note(std::string text);
  [[nodiscard]] const std::deque<std::string>& notes() const { return notes_; }

  // To and from all oracles.
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
