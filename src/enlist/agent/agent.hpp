// The agent without its main: the controller, the engine that runs it, and the connection to the coordinator.
//
//   enlist::Agent agent(loop, random, log, transport, host, service, options, memory);
//   agent.start();
//   loop.run();
//
// Folder src/enlist/agent: the agent of a host, and the commands `join` and `leave`. Uses run, enlist/host, enlist/wire and
// enlist/rules. The plan (plan.hpp) includes only enlist/rules and plan.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/log.hpp"
#include "core/loop.hpp"
#include "core/random.hpp"
#include "enlist/agent/connection.hpp"
#include "enlist/agent/machine.hpp"
#include "net/http.hpp"
#include "run/controller.hpp"
#include "run/passes.hpp"
#include "run/shutdown.hpp"

namespace enlist {

class Agent final : private run::TypedController<Observed> {
 public:
  /// `memory`: the content of agent.json. `metrics` may be null. `left`: called when the host has left the cluster; the process
  /// must end then. The loop must not run any more after the agent is destroyed.
  Agent(core::Loop& loop, core::Random& random, core::Logger& log, net::HttpTransport& transport, std::shared_ptr<Host> host,
        std::shared_ptr<Service> service, MachineOptions options, Memory memory, run::PassMetrics* metrics = nullptr,
        std::function<void()> left = {});
  void start() { machine_.look(); }
  /// Stops the agent, and calls `done` when no act runs any more. slurmd keeps running.
  void stop(std::function<void()> done);
  /// Reports whether the host has been read, and the coordinator answers.
  [[nodiscard]] bool ready() const { return machine_.seen() && !told_.phase.empty() && told_.trouble.empty(); }
  [[nodiscard]] const run::Passes& passes() const { return passes_; }
  [[nodiscard]] const Machine& machine() const { return machine_; }

 private:
  [[nodiscard]] std::string name() const override { return "agent"; }
  [[nodiscard]] std::shared_ptr<const Observed> observe_typed(const run::Key& key, run::Recorder& recorder,
                                                              const run::Observation& context) override;
  [[nodiscard]] bool at_rest() const;
  void looked(bool changed);
  void told(const SyncReply& reply);
  void troubled(const std::string& why);
  void wake();

  core::Logger& log_;
  Told told_;
  bool ended_ = false;  ///< The host has left the cluster.
  Connection connection_;
  Machine machine_;
  plan::Executor executor_;
  run::Passes passes_;
  run::Shutdown shutdown_;
};

}  // namespace enlist
