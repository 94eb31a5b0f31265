#include "run/shutdown.hpp"

#include <utility>

namespace run {

Shutdown::Shutdown(core::Loop& loop, core::Logger& logger, core::Duration grace, Steps steps)
    : logger_(logger), grace_(grace), steps_(std::move(steps)), grace_over_(loop), closing_(loop) {}

void Shutdown::begin(std::function<void()> done) {
  done_.push_back(std::move(done));
  if (state_ == State::kEnded) return closing_.set(core::Duration{0}, [this] { ended(); });
  // The end may already be under way, because of an earlier call or a lost Lease. Its last step then also calls this `done`.
  if (state_ == State::kClosing || grace_over_.pending()) return;
  state_ = State::kEndingPasses;
  logger_.info("stopping", {{"passes", steps_.passes()}});
  if (steps_.passes() == 0) return close();
  grace_over_.set(grace_, [this] {
    logger_.warn("passes did not end in time", {{"passes", steps_.passes()}});
    close();
  });
}

void Shutdown::lease_lost() {
  if (!begun()) state_ = State::kEndingPasses;
}

void Shutdown::pass_ended() {
  if (state_ == State::kEndingPasses && steps_.passes() == 0) close();
}

void Shutdown::ended() {
  for (const auto& done : std::exchange(done_, {})) done();
}

void Shutdown::close() {
  state_ = State::kClosing;
  grace_over_.cancel();
  steps_.stop_watches();
  // The next steps run in a later loop iteration, because a pass of the executor may be what calls close().
  const auto guarded = [weak = std::weak_ptr<bool>(alive_)](auto call) {
    return [weak, call = std::move(call)] {
      if (!weak.expired()) call();
    };
  };
  closing_.set(core::Duration{0}, [this, guarded] {
    steps_.send_events(guarded([this, guarded] {
      steps_.give_up_lease(guarded([this] {
        state_ = State::kEnded;
        logger_.info("stopped");
        ended();
      }));
    }));
  });
}

}  // namespace run
