// The simulator's random source: one seed determines everything that varies between histories.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "core/hash.hpp"
#include "core/random.hpp"

namespace sim {

class SeededRandom final : public core::Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : seed_(seed), engine_(seed) {}

  std::uint64_t below(std::uint64_t bound) override { return engine_() % bound; }  // a bias of 2^-40 does not matter here
  std::string bytes(std::size_t n) override {
    std::string out(n, '\0');
    for (char& c : out) c = static_cast<char>(engine_() & 255);
    return out;
  }
  [[nodiscard]] std::unique_ptr<core::Random> stream(std::string_view name) const override {
    const std::string digest = core::short_digest(std::to_string(seed_) + " " + std::string(name));
    return std::make_unique<SeededRandom>(std::stoull(digest, nullptr, 16));
  }

  /// Returns true with this probability.
  bool chance(double probability) { return unit() < probability; }
  /// Returns a value in [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
  }
  /// Returns a separate source, so that the draws of one part do not affect another part.
  SeededRandom fork() { return SeededRandom(engine_()); }

 private:
  std::uint64_t seed_;
  std::mt19937_64 engine_;
};

}  // namespace sim
