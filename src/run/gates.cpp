#include "run/gates.hpp"

namespace run {

namespace {

constexpr core::Duration kTick{1000};  ///< How often closed gates are checked if no cache changes.
/// The maximum number of held passes that are checked per millisecond. Without this limit, changes of n objects would cause n²
/// checks of a pass.
constexpr std::size_t kPassesInAMillisecond = 20;

}  // namespace

Gates::Gates(core::Loop& loop, core::Logger& logger, core::Duration cap, std::function<void(const PassPtr&)> opened)
    : loop_(loop), logger_(logger), cap_(cap), opened_(std::move(opened)), tick_(loop), soon_(loop) {}

bool Gates::all_open(Pass& pass) {
  std::erase_if(pass.gates, [](const plan::GatePtr& gate) { return gate == nullptr || gate->open(); });
  return pass.gates.empty();
}

void Gates::hold(const PassPtr& pass) {
  pass->gated_since = loop_.clock().mono();
  pass->settle_at = pass->gated_since + cap_;
  held_[pass->key] = pass;
  tick();
}

void Gates::tick() {
  if (held_.empty()) return tick_.cancel();
  if (tick_.pending()) return;
  tick_.set(kTick, [this] {
    check();
    tick();
  });
}

void Gates::check() {
  const core::MonoTime due = checked_ + core::Duration{static_cast<core::Duration::rep>(held_.size() / kPassesInAMillisecond)};
  const core::MonoTime now = loop_.clock().mono();
  if (due <= now) return check_all();
  if (!soon_.pending()) soon_.set(due - now, [this] { check_all(); });
}

void Gates::check_all() {
  soon_.cancel();
  checked_ = loop_.clock().mono();
  std::vector<PassPtr> opened;
  for (const auto& [key, pass] : held_) {
    // One closed gate is enough to hold the key, so the check stops at the first closed gate. A key can have hundreds of gates,
    // and each change of a cache checks them.
    while (!pass->gates.empty() && pass->gates.back()->open()) pass->gates.pop_back();
    if (!pass->gates.empty() && loop_.clock().mono() >= pass->settle_at) settle(*pass);
    if (pass->gates.empty()) opened.push_back(pass);
  }
  for (const PassPtr& pass : opened) {
    held_.erase(pass->key);
    opened_(pass);
  }
}

void Gates::settle(Pass& pass) {
  pass.settle_at = loop_.clock().mono() + cap_;
  pass.settled_live = true;
  std::erase_if(pass.gates, [&](const plan::GatePtr& gate) {
    if (gate->open()) return true;
    if (!gate->settle()) {
      // The outcome of the write cannot be read. The key must not wait forever for a server that possibly never returns.
      logger_.info("a write did not reach the caches in time: continuing without it",
                   pass.fields({{"gate", gate->describe()}}));
      return true;
    }
    logger_.warn("caches are slow to show a write: reading it live", pass.fields({{"gate", gate->describe()}}));
    return false;
  });
}

std::vector<PassPtr> Gates::drop_all() {
  tick_.cancel();
  soon_.cancel();
  std::vector<PassPtr> dropped;
  for (const auto& [key, pass] : std::exchange(held_, {})) dropped.push_back(pass);
  return dropped;
}

std::vector<std::string> Gates::describe() const {
  std::vector<std::string> result;
  for (const auto& [key, pass] : held_) {
    for (const plan::GatePtr& gate : pass->gates) {
      if (!gate->open()) result.push_back(pass->controller + " " + key.key.str() + ": " + gate->describe());
    }
  }
  return result;
}

}  // namespace run
