// The production event loop: one thread runs all callbacks, a few others run offloaded work.
//
//   net::AsioLoop loop(2);
//   loop.on_signals([&](int) { begin_graceful_stop(); });
//   loop.run();   // until stop()
//
// Call all functions except post() and stop() on the thread that calls run(), or before run().
//
// Folder src/net: HTTP, TLS and the event loop. Uses core.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "core/loop.hpp"

namespace boost::asio {
class io_context;
}

namespace net {

class AsioLoop final : public core::Loop {
 public:
  /// `threads` is the number of threads for offloaded work. The threads start with the first work.
  explicit AsioLoop(std::size_t threads = 2);
  /// Waits for all offloaded work, including work that has not begun. Pending callbacks are destroyed without a call.
  ~AsioLoop() override;

  [[nodiscard]] const core::Clock& clock() const override;
  TimerId after(core::Duration delay, core::Callback call) override;
  void cancel(TimerId id) override;
  void offload(core::Callback work, core::Callback then) override;

  /// Runs callbacks until stop(), even while no callback is due. Rethrows exceptions of callbacks, which are bugs.
  void run();
  /// Makes run() return after the current callback. May be called from any thread.
  void stop();
  /// Calls `call` on the loop. May be called from any thread.
  void post(core::Callback call);
  /// Calls `call` with the signal's number at every SIGTERM and SIGINT.
  void on_signals(std::function<void(int)> call);

  [[nodiscard]] boost::asio::io_context& context();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace net
