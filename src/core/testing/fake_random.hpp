// A random source for unit tests.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/random.hpp"

namespace core {

/// Returns the same numbers in every run. bytes() returns the letters from A to Z, over and over.
class FakeRandom final : public Random {
 public:
  std::uint64_t below(std::uint64_t bound) override {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return (state_ >> 11U) % bound;
  }
  std::string bytes(std::size_t n) override {
    std::string result;
    for (std::size_t i = 0; i < n; ++i) result += static_cast<char>('A' + static_cast<int>(next_++ % 26));
    return result;
  }
  [[nodiscard]] std::unique_ptr<Random> stream(std::string_view) const override { return std::make_unique<FakeRandom>(); }

 private:
  std::uint64_t state_ = 42;
  unsigned next_ = 0;
};

}  // namespace core
