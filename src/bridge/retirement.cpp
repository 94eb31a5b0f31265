#include "bridge/retirement.hpp"

#include <algorithm>
#include <utility>

namespace bridge {
namespace {

constexpr core::Duration kLookAgain{2000};
constexpr int kLooks = 3;
/// So many names are told at most.
constexpr std::size_t kNames = 10;

}  // namespace

Retirement::Retirement(core::Loop& loop, core::Logger& log, Look look, std::function<void()> done)
    : log_(log), look_(std::move(look)), done_(std::move(done)), timer_(loop) {}

void Retirement::start() {
  timer_.set(kLookAgain, [this] { look(); });
}

void Retirement::look() {
  const auto left = look_();
  empty_ = left && left->empty() ? empty_ + 1 : 0;
  if (empty_ == kLooks) {
    log_.info("nothing of the bridge is left");
    return done_();
  }
  if (left && !left->empty()) {
    std::string names;
    for (std::size_t i = 0; i < std::min(left->size(), kNames); ++i) names += (names.empty() ? "" : ", ") + (*left)[i];
    if (names != told_) log_.info("the bridge waits for these to end", {{"count", left->size()}, {"some", names}});
    told_ = std::move(names);
  }
  start();
}

}  // namespace bridge
