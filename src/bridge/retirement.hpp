// The end of a bridge that is being removed (--retire): it gives back what the bridge has changed, and ends when nothing is
// left.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/log.hpp"
#include "core/loop.hpp"

namespace bridge {

/// What a bridge that retires has to stay for.
struct Left {
  std::vector<std::string> names;  ///< Pods, jobs and nodes, in words.
  std::string slurm_away;          ///< Why Slurm does not answer. Then more may be left than `names`. "": it answers.
};

/// Watches what is left, and calls `done` when it is nothing.
class Retirement {
 public:
  /// Returns what is left; nullopt: it is not known now.
  using Look = std::function<std::optional<Left>()>;
  Retirement(core::Loop& loop, core::Logger& log, Look look, std::function<void()> done);

  /// Begins to look every two seconds. Caches lag behind writes, so nothing must be left three times in a row.
  void start();

 private:
  void look();
  void tell(const Left& left);

  core::Logger& log_;
  Look look_;
  std::function<void()> done_;
  int empty_ = 0;     ///< How often in a row nothing was left.
  int away_ = 0;      ///< How often in a row Slurm did not answer.
  std::string told_;  ///< The last line in the log.
  core::Timer timer_;
};

}  // namespace bridge
