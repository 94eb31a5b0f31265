#include "bridge/retirement.hpp"

#include <algorithm>
#include <utility>

namespace bridge {
namespace {

constexpr core::Duration kLookAgain{2000};
constexpr int kLooks = 3;
/// A log line lists at most this many names.
constexpr std::size_t kNames = 10;

}  // namespace

Retirement::Retirement(core::Loop& loop, core::Logger& log, Look look, std::function<void()> done)
    : log_(log), look_(std::move(look)), done_(std::move(done)), timer_(loop) {}

void Retirement::start() {
  timer_.set(kLookAgain, [this] { look(); });
}

void Retirement::look() {
  const auto left = look_();
  empty_ = left && left->names.empty() && left->slurm_away.empty() ? empty_ + 1 : 0;
  if (empty_ == kLooks) {
    log_.info("nothing of the bridge is left");
    return done_();
  }
  away_ = left && !left->slurm_away.empty() ? away_ + 1 : 0;
  if (left && empty_ == 0 && (away_ == 0 || away_ >= kLooks)) tell(*left);
  start();
}

void Retirement::tell(const Left& left) {
  std::string names;
  for (std::size_t i = 0; i < std::min(left.names.size(), kNames); ++i) names += (names.empty() ? "" : ", ") + left.names[i];
  const std::string told = left.slurm_away + "\n" + names;
  if (told == std::exchange(told_, told)) return;
  if (left.slurm_away.empty())
    return log_.info("slurm-bridge waits for these to end", {{"count", left.names.size()}, {"first", names}});
  log_.warn(
      "Slurm does not answer, so it is unknown what slurm-bridge still has there. Restore slurmrestd, or clean up by hand and "
      "uninstall the release",
      {{"count", left.names.size()}, {"first", names}, {"reason", left.slurm_away}});
}

}  // namespace bridge
