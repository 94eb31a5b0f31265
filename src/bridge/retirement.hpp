// The end of a bridge that is being removed (--retire): the bridge undoes what it has changed, and ends when nothing is left.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/log.hpp"
#include "core/loop.hpp"

namespace bridge {

/// The objects for which a bridge that retires must keep running.
struct Left {
  std::vector<std::string> names;  ///< Pods, jobs and nodes: "pod ns/p", "job 7", "node a".
  std::string slurm_away;          ///< Why Slurm does not answer, so that more than `names` might be left. "": Slurm answers.
};

/// Checks regularly what is left, and calls `done` when nothing is left.
class Retirement {
 public:
  /// Returns what is left; nullopt: it is not known now.
  using Look = std::function<std::optional<Left>()>;
  Retirement(core::Loop& loop, core::Logger& log, Look look, std::function<void()> done);

  /// Begins to check every two seconds. Because caches lag behind writes, `done` is called only after three checks in a row
  /// have found nothing.
  void start();

 private:
  void look();
  void tell(const Left& left);

  core::Logger& log_;
  Look look_;
  std::function<void()> done_;
  int empty_ = 0;     ///< How often in a row nothing was left.
  int away_ = 0;      ///< How often in a row Slurm did not answer.
  std::string told_;  ///< The last logged state. The same state is not logged again.
  core::Timer timer_;
};

}  // namespace bridge
