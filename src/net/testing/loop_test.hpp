// A fixture with a real loop of one thread, which the test itself runs.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>

#include "net/asio_loop.hpp"

namespace net::testing {

struct LoopTest : ::testing::Test {
  AsioLoop loop{1};

  /// Runs the loop until `until` holds. Returns false after a minute.
  bool run_until(const std::function<bool()>& until) {
    using namespace std::chrono_literals;
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (!until()) {
      if (std::chrono::steady_clock::now() > end) return false;
      loop.context().restart();
      loop.context().run_one_for(20ms);
    }
    return true;
  }
};

}  // namespace net::testing
