// The example program without its main function: the controller, and the engine that runs the controller.
//
//   example::Keeper keeper(loop, random, log, std::make_shared<example::LocalDisk>("/etc/list.json", "/etc/files"));
//   keeper.start();
//   loop.run();
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/log.hpp"
#include "core/loop.hpp"
#include "core/random.hpp"
#include "example/folder.hpp"
#include "run/controller.hpp"
#include "run/passes.hpp"
#include "run/shutdown.hpp"

namespace example {

class Keeper final : private run::TypedController<Observed> {
 public:
  /// `metrics` may be null. The loop must not run any more after the keeper is destroyed.
  Keeper(core::Loop& loop, core::Random& random, core::Logger& log, std::shared_ptr<Disk> disk,
         run::PassMetrics* metrics = nullptr);
  void start() { folder_.look(); }
  /// Ends the passes, and calls `done` once no write is under way any more.
  void stop(std::function<void()> done);
  /// Reports whether the last reading of the list and the folder succeeded.
  [[nodiscard]] bool ready() const { return folder_.contents().has_value(); }
  [[nodiscard]] const run::Passes& passes() const { return passes_; }

 private:
  [[nodiscard]] std::string name() const override { return "keep-files"; }
  [[nodiscard]] std::shared_ptr<const Observed> observe_typed(const run::Key& key, run::Recorder& recorder,
                                                              const run::Observation& context) override;
  void looked(bool changed);

  core::Logger& log_;
  Folder folder_;
  plan::Executor executor_;
  run::Passes passes_;
  run::Shutdown shutdown_;
};

}  // namespace example
